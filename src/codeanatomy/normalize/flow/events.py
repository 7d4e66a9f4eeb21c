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

From 3.12 on most comprehensions are part of the code object around them (PEP 709). Their variables remain
their own, also where the code object has one of the same name, or a cell:

    LOAD_FAST_AND_CLEAR x     the other x is put on the stack: a `save`, which is no event of the program
    MAKE_CELL x               only if an inner function uses the comprehension's x
    ...                       instructions within the span of the comprehension: x is its own
    STORE_FAST x              with the span of the comprehension: the other x is back

Tests: `tests/unit/normalize/test_flow_cases.py`, `tests/unit/normalize/test_flow_oracle.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from codeanatomy.file_view import Columns
from codeanatomy.normalize.flow.opcodes import EventKind, Opcodes, Space

VarKind: TypeAlias = Literal["fast", "cell", "free", "name", "global"]
# Name, kind, and of a variable of an inlined comprehension the instruction of its save.
Variable: TypeAlias = tuple[str, VarKind, int | None]
Span: TypeAlias = tuple[int | None, int | None]
VARARGS, VARKEYWORDS = 0x04, 0x08
ANNOTATIONS = "__annotations__"
# The instruction index of a parameter, which no instruction defines.
AT_ENTRY = -1


class VariableEvent(NamedTuple):
    """An access of a variable by an instruction; `ordinal` distinguishes events of one instruction.

    With a `save` an inlined comprehension begins to run: its variable has no value yet.
    """

    kind: EventKind
    name: str
    var_kind: VarKind
    # Index of the instruction.
    instruction: int
    ordinal: int
    # Of a variable of an inlined comprehension: the instruction of its save.
    comprehension: int | None = None

    @property
    def variable(self) -> Variable:
        return self.name, self.var_kind, self.comprehension


@dataclass(slots=True)
class InlinedVariable:
    """A variable of an inlined comprehension, and the spans of the inner functions made in it."""

    name: str
    comprehension: int
    span: Span
    is_cell: bool
    functions: set[Span] = field(default_factory=set)

    @property
    def kind(self) -> VarKind:
        return "cell" if self.is_cell else "fast"


def variable_events(
    code: dict[str, Any], rules: Opcodes
) -> tuple[list[VariableEvent], list[InlinedVariable]]:
    """Return the events of a code object, parameters first, and its inlined variables."""
    cells = frozenset(code["cellvars"])
    events = [
        VariableEvent("def", name, "cell" if name in cells else "fast", AT_ENTRY, ordinal)
        for ordinal, name in enumerate(_parameters(code))
    ]
    scopes = _Scopes(code, cells)
    known_accesses = rules.accesses
    instructions: Columns = code["instructions"]
    pairs = zip(instructions["opname"], instructions["argval"], strict=True)
    for instruction, (opname, argval) in enumerate(pairs):
        if scopes.active:
            scopes.leave(instruction, opname)
        accesses = known_accesses.get(opname)
        if accesses is None:
            continue
        # SETUP_ANNOTATIONS names no variable.
        names = (ANNOTATIONS if argval is None else argval,) if len(accesses) == 1 else argval.split(", ")
        for ordinal, ((kind, space), name) in enumerate(zip(accesses, names, strict=True)):
            if kind == "save":
                scopes.enter(instruction, name)
                variable: Variable | None = name, scopes.inlined[-1].kind, instruction
            elif scopes.inlined and kind == "def" and scopes.restores(instruction, name):
                variable = None
            else:
                variable = scopes.variable(space, name)
            if variable is not None:
                events.append(VariableEvent(kind, name, variable[1], instruction, ordinal, variable[2]))
    return events, scopes.inlined


class _Scopes:
    """The variables that names refer to, instruction by instruction."""

    def __init__(self, code: dict[str, Any], cells: frozenset[str]) -> None:
        self._cells, self._shared = cells, cells.union(code["freevars"])
        self._instructions: Columns = code["instructions"]
        self._known: set[tuple[str, Span]] = set()
        self.inlined: list[InlinedVariable] = []
        # Those of the comprehensions around the current instruction, the innermost last.
        self.active: list[InlinedVariable] = []

    def enter(self, instruction: int, name: str) -> None:
        """Begin a comprehension with a variable."""
        is_cell = self._instructions["opname"][instruction + 1] == "MAKE_CELL"
        variable = InlinedVariable(name, instruction, self._span(instruction), is_cell)
        self._known.add((name, variable.span))
        self.inlined.append(variable)
        self.active.append(variable)

    def leave(self, instruction: int, opname: str) -> None:
        """End the comprehensions that an instruction is not in."""
        span = self._span(instruction)
        while self.active and _is_outside(span, self.active[-1].span):
            self.active.pop()
        if opname == "LOAD_CONST":
            for each in self.active:
                each.functions.add(span)

    def restores(self, instruction: int, name: str) -> bool:
        """Return whether a store ends a comprehension that has a variable of that name."""
        known = name, self._span(instruction)
        if known not in self._known:
            return False
        self.active = [each for each in self.active if (each.name, each.span) != known]
        return True

    def variable(self, space: Space, name: str) -> Variable | None:
        """Return the variable of a name; None if its fast slot has a cell, which is handed to a function."""
        if space in {"name", "global"}:
            return name, space, None
        active = next((each for each in reversed(self.active) if each.name == name), None)
        is_cell = name in self._shared if active is None else active.is_cell
        if space == "fast":
            return None if is_cell else (name, "fast", active.comprehension if active is not None else None)
        if active is not None:
            return name, "cell", active.comprehension
        return name, "cell" if name in self._cells else "free", None

    def _span(self, instruction: int) -> Span:
        return self._instructions["bstart"][instruction], self._instructions["bend"][instruction]


def _is_outside(inner: Span, outer: Span) -> bool:
    """Return whether a span is not in another one, as far as both are known."""
    (start, end), (low, high) = inner, outer
    if start is None or end is None or low is None or high is None:
        return False
    return start < low or high < end


def _parameters(code: dict[str, Any]) -> list[str]:
    count = code["argcount"] + code["kwonlyargcount"]
    stars = bool(code["flags"] & VARARGS) + bool(code["flags"] & VARKEYWORDS)
    return list(code["varnames"][: count + stars])
