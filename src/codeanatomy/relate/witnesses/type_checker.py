"""Resolve calls, and identifiers that are not called, by a type checker's report.

    b.run()          call       pkg.Base.run, at the identifier in its `def`   (Base.run,), open to overrides
    Child()          init       pkg.Base.__init__, of the receiver pkg.Child   (Child, Base.__init__)
    path.exists()    call       pathlib.Path.exists                            (pathlib.Path.exists,)
    b + b, b[0]      operator   pkg.Base.__add__ ...                           only methods of the repository

As in the value analysis, a call of an external class claims the class, not its constructor, and a call of an
external method claims the method of the receiver's class, not of the base that defines it. Synthesised
methods (the `__init__` of a dataclass) have no place and claim only their class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from codeanatomy.node_ids import span_id
from codeanatomy.relate.program import OBJ_FUNCTION, Place, Program
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import MAX_OBJECTS
from codeanatomy.relate.witnesses.claims import CONSTRUCTORS, PYREFLY, Claim, DefinitionIndex, is_declaration

CALL_FORMS = ("call", "init", "new")
CLASS_FORMS = ("init", "new")
REFERENCE, PROPERTY = "reference", "property"
# Members that every class has: naming them claims nothing.
UNIVERSAL = frozenset({"builtins.object", "builtins.type.__call__"})
SET_ITEM = "__setitem__"
Row = tuple[Any, ...]


class CheckedTargets:
    """The definitions that the type checker names in a repository, resolved to nodes."""

    def __init__(self, index: DefinitionIndex) -> None:
        self.index = index
        # The claim of a row, without what is known only of its place: most rows name what others name, too.
        self.resolve = cache(self._resolve)

    def _resolve(
        self,
        form: str,
        name: str,
        path: str | None,
        bstart: int | None,
        bend: int | None,
        receiver: str | None,
        is_open: bool | None,
    ) -> Claim:
        owner, _, last = name.rpartition(".")
        is_class = last in CONSTRUCTORS and (form in CLASS_FORMS or (form != "call" and receiver is not None))
        function = self._function(path, bstart, bend)
        targets: tuple[Target, ...] = () if function is None else (function,)
        if is_class:
            cls = self.index.cls(receiver)
            if cls is not None:
                targets = self.index.call_targets(cls)
                targets = targets[:1] if form == REFERENCE else targets
            elif function is None and path is None:
                targets = self._external(receiver or owner)
        elif function is None and path is None:
            # If the receiver is of a class of the repository, the base that defines the method.
            by_receiver = receiver is not None and self.index.cls(receiver) is None
            targets = self._external(f"{receiver}.{last}" if by_receiver else name)
        role = "builtin" if form == "dunder" else None
        # Of the receiver's class, as far as the checker knows it: another one may override the method.
        cls = self.index.cls(receiver or owner) if is_open and function is not None and not is_class else None
        overrides = () if cls is None else self.index.overrides(cls, last)
        return Claim(PYREFLY, "", targets, is_open=bool(is_open), role=role, overrides=overrides)

    def _function(self, path: str | None, bstart: int | None, bend: int | None) -> Target | None:
        file = self.index.values.files.get(path) if path is not None else None
        if file is None or bstart is None or bend is None:
            return None
        definition = self.index.at(file, bstart, bend)
        if not isinstance(definition, int) or self.index.values.kind[definition] != OBJ_FUNCTION:
            return None
        return self.index.target(definition)

    def _external(self, name: str) -> tuple[Target, ...]:
        if name in UNIVERSAL or name.rpartition(".")[0] in UNIVERSAL:
            return ()
        return tuple(target for target in self.index.external(name) if not is_declaration(target))


class CallTargets:
    """The call targets that the type checker reports for one file, by their places."""

    def __init__(self, checked: CheckedTargets, program: Program) -> None:
        self._checked = checked
        self.file_id = program.file_id
        self._at: dict[tuple[int | None, int | None, str], list[Row]] = {}
        # By end: the identifier of an attribute ends where the whole attribute does.
        self._references: dict[int, list[Row]] = {}
        self._stores: dict[int, list[Row]] = {}
        for row in program.checker_calls:
            bstart, bend, form, name, *_ = row
            if bstart is None or bend is None or not name:
                continue
            self._at.setdefault((bstart, bend, form), []).append(row)
            if form in (REFERENCE, PROPERTY):
                self._references.setdefault(bend, []).append(row)
            elif name.endswith(SET_ITEM):
                # Reported at the whole statement; we look up the subscript that it starts with.
                self._stores.setdefault(bstart, []).append(row)

    def call(self, place: Place) -> list[Claim]:
        rows = self._rows(place, CALL_FORMS)
        if any(form == "init" and receiver is not None for _, _, form, *_, receiver, _ in rows):
            # `__new__` then belongs to some base, often `object`.
            rows = [row for row in rows if row[2] != "new" or row[4] is not None]
        return self._claims(rows)

    def implicit(self, place: Place, forms: Sequence[str]) -> list[Claim]:
        """Return the claims about methods of the repository that run implicitly."""
        rows = self._rows(place, forms)
        if not rows and "subscript" in forms and place[0] is not None:
            rows = self._stores.get(place[0], [])
        if not rows:
            return []
        claims = [
            claim._replace(targets=tuple(target for target in claim.targets if target.kind == "FUNCTION"))
            for claim in self._claims(rows)
        ]
        return [claim for claim in claims if claim.targets]

    def decorator(self, place: Place) -> list[Claim]:
        return self._claims(self._rows(place, ("decorator",)))

    def reference(self, bstart: int | None, bend: int | None) -> list[Claim]:
        """Return the claims about an identifier that refers to a function, a class or a property."""
        if bstart is None or bend is None:
            return []
        rows = self._references.get(bend)
        if rows is None:
            return []
        # A callable instance is not the `__call__` of its class.
        return self._claims(row for row in rows if row[0] <= bstart and not row[3].endswith(".__call__"))

    def called_identifier(self, place: Place, name: str) -> list[Claim]:
        """Return the claims about an identifier by the call of it at a place."""
        rows = self._rows(place, ("call",))
        return self._claims(row for row in rows if row[3].rpartition(".")[2] == name) if rows else []

    def _rows(self, place: Place, forms: Sequence[str]) -> list[Row]:
        start, end, _ = place
        if len(forms) == 1:
            return self._at.get((start, end, forms[0]), [])
        return [row for form in forms for row in self._at.get((start, end, form), ())]

    def _claims(self, rows: Iterable[Row]) -> list[Claim]:
        claims: dict[tuple[Target, ...], Claim] = {}
        for row in rows:
            claim = self._checked.resolve(*row[2:])
            if claim.targets and claim.targets not in claims:
                key = span_id(self.file_id, *row[:2])
                # Not by `_replace`, which takes thrice as long.
                claims[claim.targets] = Claim(
                    PYREFLY, key, claim.targets, claim.is_open, None, claim.role, claim.overrides
                )
            if len(claims) >= MAX_OBJECTS:
                break
        return list(claims.values())
