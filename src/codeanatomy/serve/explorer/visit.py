"""Bundle what a page needs: the request, the snapshot that answers it, and the templates.

    def stats_page(visit: Visit) -> Response:
        return visit.page("stats.html", rows=visit.lake.stats(repo_id=visit.text("repo")).rows)

Everything is read through `visit.lake`, so that a page shows one run. Templates escape every value, and show
characters that cannot be seen as such.

Tests: `tests/unit/serve/test_pages.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from codeanatomy.errors import MAX_NAME_CHARS, UsageError
from codeanatomy.query.export.escaping import TURNING, UNKNOWN, visible
from codeanatomy.query.lake import Lake
from codeanatomy.query.pictures.drawing import CERTAIN
from codeanatomy.serve.explorer import links
from codeanatomy.serve.explorer.lakes import OpenLakes

MAX_FIELDS = 100
MAX_DIGITS = 10


class Visit:
    """One request and the snapshot that it reads."""

    def __init__(self, request: Request, lakes: OpenLakes, body: bytes = b"") -> None:
        self.request = request
        self.lakes = lakes
        self.body = body
        # As in the address; links on the page keep it.
        self.as_of = request.query_params.get("as-of") or None
        self.lake: Lake = lakes.at(self.as_of)

    @property
    def run_id(self) -> str:
        """The run that answers."""
        return self.lake.snapshot.run_id

    @property
    def repo_id(self) -> str:
        """The repository in the address. Raise UnknownName if the lake has no such repository."""
        repo_id = str(self.request.path_params["repo"])
        self.lake.snapshot.select_repositories(repo_id)
        return repo_id

    def text(self, name: str, default: str = "") -> str:
        """Return a value of the address."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int, least: int, greatest: int) -> int:
        """Return an integer of the address. Raise UsageError if it is out of range."""
        return parse_number(name, self.text(name), default, least, greatest)

    def fields(self) -> dict[str, str]:
        """Return the fields of a form that was sent."""
        try:
            return dict(parse_qsl(self.body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS))
        except ValueError as problem:
            raise UsageError("the form cannot be read", "send it in UTF-8, with few fields") from problem

    def file_link(self, repo_id: str, path: str, line: int | None = None) -> str:
        """Return the address of a file or folder, in the same run if the visitor has named one."""
        return links.file_link(repo_id, path, line, self.as_of)

    def symbol_link(self, repo_id: str, symbol: str) -> str:
        """Return the address of a symbol, in the same run if the visitor has named one."""
        return links.symbol_link(repo_id, symbol, self.as_of)

    def repository_link(self, repo_id: str, page: str = "", **values: str | int | None) -> str:
        """Return the address of a repository or of one of its pages, in the same run."""
        return links.repository_link(repo_id, page, **values, as_of=self.as_of)

    def run_link(self, run_id: str) -> str:
        """Return the address of a page about a run; links on it keep the run that the visitor has named."""
        return links.run_link(run_id, self.as_of)

    @property
    def newest_link(self) -> str:
        """The address of this page for the newest run."""
        given = self.request.query_params.multi_items()
        return "?" + urlencode([(name, value) for name, value in given if name != "as-of"])

    def page_link(self, page: str, **values: str | int | None) -> str:
        """Return the address of another page, in the same run if the visitor has named one."""
        return links.page_link(page, **values, as_of=self.as_of)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Render a template."""
        return HTMLResponse(render(template, visit=self, **values), status)

    def json(self, value: Any, status: int = 200) -> Response:
        """Return a value as JSON, with the run that it is from."""
        body = msgspec.json.encode({"run": self.run_id, **value})
        return Response(body, status, media_type="application/json")


Page = Callable[[Visit], Response]


def parse_number(name: str, typed: str, default: int, least: int, greatest: int) -> int:
    """Parse what a visitor has typed as a number. Raise UsageError if it is none, or out of range."""
    if not typed:
        return default
    if not typed.isdecimal() or len(typed) > MAX_DIGITS or not least <= int(typed) <= greatest:
        raise UsageError(
            f"{name} must be {least}-{greatest}, got {typed[:MAX_NAME_CHARS]!r}", "use a number in this range"
        )
    return int(typed)


def render(template: str, **values: Any) -> str:
    """Render a template of this package."""
    return TEMPLATES.get_template(template).render(**values)


def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("codeanatomy.serve.explorer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=readable,
    )
    environment.filters |= {"amount": amount, "moment": moment, "size": size, "percent": percent}
    environment.globals |= {"CERTAIN": CERTAIN}
    return environment


def readable(value: Any) -> Any:
    r"""Replace characters that cannot be seen, or that turn the direction of text, by visible ones.

    >>> readable("a\u202eb\x00"), readable(7)
    ('a�b␀', 7)
    """
    return TURNING.sub(UNKNOWN, visible(value)) if type(value) is str and not value.isprintable() else value


def amount(value: int | None) -> str:
    """Format a number for people.

    >>> amount(1234567), amount(None)
    ('1,234,567', '-')
    """
    return "-" if value is None else f"{value:,}"


def percent(value: float) -> str:
    """Format a confidence.

    >>> percent(0.9)
    '90 %'
    """
    return f"{value:.0%}".replace("%", " %")


def size(value: int | None) -> str:
    """Format a number of bytes.

    >>> size(999), size(1_500_000), size(None)
    ('999 B', '1.5 MB', '-')
    """
    if value is None:
        return "-"
    number, units = float(value), ("B", "kB", "MB", "GB", "TB")
    for unit in units:
        if number < 1000 or unit == units[-1]:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError


def moment(value: datetime | None) -> Markup:
    """Format a time in UTC as an element that programs can read, too."""
    if value is None:
        return Markup("-")
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"), utc.strftime("%Y-%m-%d %H:%M:%S UTC")
    )


TEMPLATES = _templates()
