"""What a type checker says is called, and what an identifier that is not called refers to.

    b.run()          call       pkg.Base.run, at the identifier in its `def`   (Base.run,), open to overrides
    Child()          init       pkg.Base.__init__, of the receiver pkg.Child   (Child, Base.__init__)
    path.exists()    call       pathlib.Path.exists                            (pathlib.Path.exists,)
    b + b, b[0]      operator   pkg.Base.__add__ ...                           only of the repository

A class outside is named by itself and not by its constructor, a method outside by the class of the receiver
and not by the base that has it, as the value analysis does. What is synthesised (the `__init__` of a
dataclass) has no place and claims only its class. Tests: `tests/unit/relate/test_witnesses.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from codeanatomy.relate.program import Place
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import MAX_OBJECTS
from codeanatomy.relate.witnesses.claims import (
    CONSTRUCTORS,
    PYREFLY,
    Claim,
    Landmarks,
    is_declaration,
    span_key,
)

CALL_FORMS = ("call", "init", "new")
CLASS_FORMS = ("init", "new")
REFERENCE, PROPERTY = "reference", "property"
# Constructors that every class has, and the call that every class is: they say nothing.
SILENT = frozenset({"builtins.object", "builtins.type.__call__"})
SET_ITEM = "__setitem__"
Row = tuple[Any, ...]


class CallTargets:
    """The call targets of one file by their places."""

    def __init__(self, landmarks: Landmarks, file: int) -> None:
        self.landmarks = landmarks
        program = landmarks.values.programs[file]
        self.file_id = program.file_id
        self._at: dict[tuple[int, int, str], list[Row]] = {}
        # An attribute's identifier ends where the whole does.
        self._references: dict[int, list[Row]] = {}
        self._stores: dict[int, list[Row]] = {}
        for row in program.typed:
            bstart, bend, form, name, *_ = row
            if bstart is None or bend is None or not name:
                continue
            self._at.setdefault((bstart, bend, form), []).append(row)
            if form in (REFERENCE, PROPERTY):
                self._references.setdefault(bend, []).append(row)
            elif name.endswith(SET_ITEM):
                # The whole statement, where we look at the subscript it begins with.
                self._stores.setdefault(bstart, []).append(row)

    def call(self, place: Place) -> list[Claim]:
        """What a call runs."""
        rows = self._rows(place, CALL_FORMS)
        if any(form == "init" and receiver is not None for _, _, form, *_, receiver, _ in rows):
            # What makes the instance is that of some base.
            rows = [row for row in rows if row[2] != "new" or row[4] is not None]
        return self._claims(rows)

    def implicit(self, place: Place, forms: Sequence[str]) -> list[Claim]:
        """What runs of the repository without being called."""
        rows = self._rows(place, forms)
        if not rows and "subscript" in forms and place[0] is not None:
            rows = self._stores.get(place[0], [])
        own = (_own(claim) for claim in self._claims(rows))
        return [claim for claim in own if claim.targets]

    def decorator(self, place: Place) -> list[Claim]:
        """What runs when a decorator is applied."""
        return self._claims(self._rows(place, ("decorator",)))

    def reference(self, bstart: int | None, bend: int | None) -> list[Claim]:
        """What the identifier at a place refers to, if it is a function, a class or a property."""
        if bstart is None or bend is None:
            return []
        rows = (row for row in self._references.get(bend, ()) if row[0] <= bstart)
        # An instance that can be called is not what its class has for that.
        return self._claims(row for row in rows if not row[3].endswith(".__call__"))

    def called_identifier(self, place: Place, name: str) -> list[Claim]:
        """What an identifier refers to, by the call of it at a place."""
        rows = (row for row in self._rows(place, ("call",)) if row[3].rpartition(".")[2] == name)
        return self._claims(rows)

    def _rows(self, place: Place, forms: Iterable[str]) -> list[Row]:
        start, end, _ = place
        if start is None or end is None:
            return []
        return [row for form in forms for row in self._at.get((start, end, form), ())]

    def _claims(self, rows: Iterable[Row]) -> list[Claim]:
        found: dict[tuple[Target, ...], Claim] = {}
        for row in rows:
            claim = self._claim(row)
            if claim is not None and claim.targets not in found:
                found[claim.targets] = claim
            if len(found) >= MAX_OBJECTS:
                break
        return list(found.values())

    def _claim(self, row: Row) -> Claim | None:
        bstart, bend, form, name, path, target_start, target_end, receiver, is_open = row
        owner, _, word = name.rpartition(".")
        is_class = word in CONSTRUCTORS and (form in CLASS_FORMS or (form != "call" and receiver is not None))
        function = self._function(path, target_start, target_end)
        targets: tuple[Target, ...] = () if function is None else (function,)
        if is_class:
            cls = self.landmarks.cls(receiver)
            if cls is not None:
                targets = self.landmarks.called(cls)
                targets = targets[:1] if form == REFERENCE else targets
            elif function is None and path is None:
                targets = self._outside(receiver or owner)
        elif function is None and path is None:
            # In a class of the repository, the base that has it.
            by_receiver = receiver is not None and self.landmarks.cls(receiver) is None
            targets = self._outside(f"{receiver}.{word}" if by_receiver else name)
        key = span_key(self.file_id, bstart, bend)
        if not targets:
            return None
        role = "builtin" if form == "dunder" else None
        return Claim(PYREFLY, key, targets, is_open=bool(is_open), role=role)

    def _function(self, path: str | None, bstart: int | None, bend: int | None) -> Target | None:
        file = self.landmarks.values.files.get(path) if path is not None else None
        if file is None or bstart is None or bend is None:
            return None
        found = self.landmarks.at(file, bstart, bend)
        is_function = isinstance(found, int) and self.landmarks.values.objects[found >> 1].kind == "F"
        return self.landmarks.target(found) if is_function and isinstance(found, int) else None

    def _outside(self, name: str) -> tuple[Target, ...]:
        if name in SILENT or name.rpartition(".")[0] in SILENT:
            return ()
        return tuple(one for one in self.landmarks.outside(name) if not is_declaration(one))


def _own(claim: Claim) -> Claim:
    """Only what the repository defines."""
    return claim._replace(targets=tuple(one for one in claim.targets if one.kind == "FUNCTION"))
