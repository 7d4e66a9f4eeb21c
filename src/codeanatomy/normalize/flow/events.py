"""Definitions, uses and deletions of variables in a code object.

`def f(a): b = a; del b` has four events:

    parameter a   def  fast  before the first instruction
    LOAD_FAST a   use  fast
    STORE_FAST b  def  fast
    DELETE_FAST b del  fast

A variable is a name in a space of its unit: `fast`, `cell` (its own, used by inner functions), `free`
(another unit's cell), `name` (a module or class) or `global`. Constants, attributes and items are no
variables. Loop targets, imports, handlers' names, definitions of functions and classes are stores like any
other. A comprehension's `.0`, the iterator it is called with, is a parameter.

Tests: `tests/unit/normalize/test_flow_cases.py`, `tests/unit/normalize/test_flow_oracle.py`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from codeanatomy.normalize.file_view import Columns
from codeanatomy.normalize.flow.opcodes import EventKind, Opcodes, Space

VarKind: TypeAlias = Literal["fast", "cell", "free", "name", "global"]
VARARGS, VARKEYWORDS = 0x04, 0x08
ANNOTATIONS = "__annotations__"
# Of a parameter, which no instruction defines.
AT_ENTRY = -1


class Event(NamedTuple):
    """A touch of a variable by an instruction of the unit; `ordinal` tells events of one instruction apart.

    A `save` hides the variable from an inlined comprehension, and the store with `restores` brings it back:
    they are steps of the analysis, not events of the program.
    """

    kind: EventKind
    name: str
    var_kind: VarKind
    step: int
    ordinal: int
    restores: bool = False

    @property
    def variable(self) -> tuple[str, VarKind]:
        return self.name, self.var_kind


def events_of(unit: dict[str, Any], rules: Opcodes) -> list[Event]:
    """Parameters first, then by instruction."""
    cells, frees = frozenset(unit["cellvars"]), frozenset(unit["freevars"])
    shared = cells | frees
    steps: Columns = unit["instructions"]
    found = [
        Event("def", name, "cell" if name in cells else "fast", AT_ENTRY, ordinal)
        for ordinal, name in enumerate(_parameters(unit))
    ]
    # Variables that an inlined comprehension hides, and where: what brings them back has the same place.
    hidden: set[tuple[str, int | None, int | None]] = set()
    accesses = rules.events
    for step, (opname, argval) in enumerate(zip(steps["opname"], steps["argval"], strict=True)):
        touched = accesses.get(opname)
        if touched is None:
            continue
        if len(touched) == 1:
            kind, space = touched[0]
            name = argval if argval is not None else ANNOTATIONS
            if space == "fast" and name in shared:
                continue
            place = name, steps["bstart"][step], steps["bend"][step]
            if kind == "save":
                hidden.add(place)
            restores = kind == "def" and place in hidden
            found.append(Event(kind, name, _kind(name, space, cells), step, 0, restores))
        else:
            for ordinal, ((kind, space), name) in enumerate(zip(touched, argval.split(", "), strict=True)):
                if name not in shared:
                    found.append(Event(kind, name, _kind(name, space, cells), step, ordinal))
    return found


def _parameters(unit: dict[str, Any]) -> list[str]:
    count = unit["argcount"] + unit["kwonlyargcount"]
    stars = bool(unit["flags"] & VARARGS) + bool(unit["flags"] & VARKEYWORDS)
    names: list[str] = unit["varnames"][: count + stars]
    return names


def _kind(name: str, space: Space, cells: frozenset[str]) -> VarKind:
    if space == "deref":
        return "cell" if name in cells else "free"
    return space
