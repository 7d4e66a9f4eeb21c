"""Describe the address of a picture: what it shows, and what a visitor has expanded.

>>> PictureAddress("flask", "calls", "flask.app.Flask").adding(open="flask.app")
'/r/flask/picture/calls?symbol=flask.app.Flask&open=flask.app'

Tests: `tests/unit/serve/test_pictures.py`.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from msgspec import Struct, structs

# Values of one name in an address.
MAX_CHOICES = 60


class PictureAddress(Struct, frozen=True):
    """The address of a picture: what it shows, and which parts are expanded."""

    repo_id: str
    kind: str
    symbol: str
    as_of: str | None = None
    # Node ids, modules or packages, and columns.
    expand: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    # `hide`: without exception edges.
    exceptions: str = ""

    def link(self, suffix: str = "") -> str:
        """Return the address as text."""
        values: list[tuple[str, str]] = [("symbol", self.symbol)] if self.symbol else []
        for name in ("expand", "open", "close", "more"):
            values += [(name, value) for value in getattr(self, name)]
        values += [("exceptions", self.exceptions)] if self.exceptions else []
        values += [("as-of", self.as_of)] if self.as_of else []
        path = f"/r/{quote(self.repo_id, safe='')}/picture/{self.kind}{suffix}"
        return f"{path}?{urlencode(values)}" if values else path

    def adding(self, **values: str) -> str:
        """Return the address with a further value, and without it in the opposite list."""
        opposite = {"open": "close", "close": "open"}
        changes: dict[str, tuple[str, ...]] = {}
        for name, value in values.items():
            changes[name] = (*getattr(self, name), value)[-MAX_CHOICES:]
            if name in opposite:
                other = opposite[name]
                changes[other] = tuple(each for each in getattr(self, other) if each != value)
        return structs.replace(self, **changes).link()

    def without(self, **values: str) -> str:
        """Return the address without a value."""
        kept = {
            name: tuple(each for each in getattr(self, name) if each != value)
            for name, value in values.items()
        }
        return structs.replace(self, **kept).link()

    @property
    def changed(self) -> bool:
        """Whether something is expanded, opened or closed."""
        return bool(self.expand or self.open or self.close or self.more)

    @property
    def exceptions_link(self) -> str:
        """The address with exception edges if they are hidden, else without them."""
        return structs.replace(self, exceptions="" if self.exceptions else "hide").link()

    def of(self, symbol: str) -> str:
        """Return the address of the same kind of picture of another symbol."""
        return PictureAddress(self.repo_id, self.kind, symbol, self.as_of).link()
