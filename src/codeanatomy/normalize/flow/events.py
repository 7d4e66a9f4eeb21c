"""List the definitions, uses and deletions of variables in a code object.

`def f(a): b = a; del b` has four events:

    parameter a   def  fast  before the first instruction
    LOAD_FAST a   use  fast
    STORE_FAST b  def  fast
    DELETE_FAST b del  fast

A variable is a name in a space of its code object: `fast`, `cell` (its own, used by inner functions), `free`
(a cell of another code object), `name` (a module or class) or `global`. Constants, attributes and items are
not variables. Loop targets, imports, names of handlers, definitions of functions and classes are stores like
any other. A comprehension's `.0`, the iterator it is called with, is a parameter.

Tests: `tests/unit/normalize/test_flow_cases.py`, `tests/unit/normalize/test_flow_oracle.py`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from codeanatomy.file_view import Columns
from codeanatomy.normalize.flow.opcodes import EventKind, Opcodes, Space

VarKind: TypeAlias = Literal["fast", "cell", "free", "name", "global"]
VARARGS, VARKEYWORDS = 0x04, 0x08
ANNOTATIONS = "__annotations__"
# The instruction index of a parameter, which no instruction defines.
AT_ENTRY = -1


class VariableEvent(NamedTuple):
    """An access of a variable by an instruction; `ordinal` distinguishes events of one instruction.

    A `save` hides the variable from an inlined comprehension, and the store with `restores` restores it: they
    are needed by the analysis and are not events of the program.
    """

    kind: EventKind
    name: str
    var_kind: VarKind
    # Index of the instruction.
    instruction: int
    ordinal: int
    restores: bool = False

    @property
    def variable(self) -> tuple[str, VarKind]:
        return self.name, self.var_kind


def variable_events(code: dict[str, Any], rules: Opcodes) -> list[VariableEvent]:
    """Return the events of a code object: parameters first, then by instruction."""
    cells, frees = frozenset(code["cellvars"]), frozenset(code["freevars"])
    shared = cells | frees
    instructions: Columns = code["instructions"]
    events = [
        VariableEvent("def", name, "cell" if name in cells else "fast", AT_ENTRY, ordinal)
        for ordinal, name in enumerate(_parameters(code))
    ]
    # Variables that an inlined comprehension hides, with the span: the store that restores one has the same.
    hidden: set[tuple[str, int | None, int | None]] = set()
    known_accesses = rules.accesses
    pairs = zip(instructions["opname"], instructions["argval"], strict=True)
    for instruction, (opname, argval) in enumerate(pairs):
        accesses = known_accesses.get(opname)
        if accesses is None:
            continue
        if len(accesses) == 1:
            kind, space = accesses[0]
            name = argval if argval is not None else ANNOTATIONS
            if space == "fast" and name in shared:
                continue
            named_span = name, instructions["bstart"][instruction], instructions["bend"][instruction]
            if kind == "save":
                hidden.add(named_span)
            restores = kind == "def" and named_span in hidden
            events.append(VariableEvent(kind, name, _kind(name, space, cells), instruction, 0, restores))
        else:
            for ordinal, ((kind, space), name) in enumerate(zip(accesses, argval.split(", "), strict=True)):
                if name not in shared:
                    events.append(VariableEvent(kind, name, _kind(name, space, cells), instruction, ordinal))
    return events


def _parameters(code: dict[str, Any]) -> list[str]:
    count = code["argcount"] + code["kwonlyargcount"]
    stars = bool(code["flags"] & VARARGS) + bool(code["flags"] & VARKEYWORDS)
    return list(code["varnames"][: count + stars])


def _kind(name: str, space: Space, cells: frozenset[str]) -> VarKind:
    if space == "deref":
        return "cell" if name in cells else "free"
    return space
