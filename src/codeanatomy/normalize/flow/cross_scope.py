"""Pair definitions with uses in other code objects of the file: through closure cells and module globals.

    n = 0                         def a, of the module
    def outer():
        k = 1                     def b, of a cell
        def inner():
            nonlocal k
            k = k + n             use of k: b, and inner's own def of the call before; use of n: a
        return inner

Between code objects there is no order of execution to follow, so of one variable every *visible* definition
(other code may run while it is live, or it is live at a return) is paired with every *open* use (`reaching`
computes both).

A cell belongs to the nearest enclosing code object that has it among its cell variables, or to an inlined
comprehension in which the inner function is made. A global is a name
of the module's code object, or of a `global` operation anywhere; a name of a class body is the global's if
the class has not bound it. A del in one code object may unbind what is open in another. Other files,
`globals()` and destructors are not considered.

Tests: `tests/unit/normalize/test_flow_cases.py`, `tests/unit/normalize/test_flow_oracle.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from codeanatomy.normalize.flow.events import AT_ENTRY, InlinedVariable, Span, VariableEvent
from codeanatomy.normalize.flow.reaching import MAY_BE_UNBOUND, PairBudget, ReachingDefinitions

ReachKind: TypeAlias = Literal["local", "closure", "global"]
# A code unit and an event of it, by their indexes.
Site: TypeAlias = tuple[int, int]
# The module's code unit is the first of its file.
MODULE = 0


class SolvedUnit(NamedTuple):
    """A code unit with its events and its reaching definitions."""

    code: dict[str, Any]
    events: Sequence[VariableEvent]
    inlined: Sequence[InlinedVariable]
    reaching: ReachingDefinitions


class _Owner(NamedTuple):
    """The code unit of a cell; of one of an inlined comprehension also its span."""

    unit: int
    comprehension: Span | None


class DefUsePair(NamedTuple):
    """A definition and a use it may reach."""

    kind: ReachKind
    definition: Site
    use: Site


@dataclass(slots=True)
class _Shared:
    """A variable that several code units share: its open uses and visible definitions."""

    kind: ReachKind
    # The unit whose own pairs are local: it runs once for each of its variables.
    owner: int
    definitions: list[Site] = field(default_factory=list)
    deletions: list[Site] = field(default_factory=list)
    open_uses: list[Site] = field(default_factory=list)


def cross_unit_pairs(units: Sequence[SolvedUnit], budget: PairBudget) -> list[DefUsePair]:
    """Return the closure and global pairs; add uses that another unit may unbind to `unbound`."""
    pairs: list[DefUsePair] = []
    for variable in _shared_variables(units):
        _unbind(units, variable)
        if budget.allows(len(variable.definitions) * len(variable.open_uses)):
            pairs += _pairs(units, variable)
    return pairs


def _unbind(units: Sequence[SolvedUnit], variable: _Shared) -> None:
    deleting = {number for number, _ in variable.deletions}
    for number, index in variable.open_uses if deleting else ():
        if deleting - {number} and units[number].events[index].var_kind in MAY_BE_UNBOUND:
            units[number].reaching.unbound.add(index)


def _pairs(units: Sequence[SolvedUnit], variable: _Shared) -> Iterator[DefUsePair]:
    for use in variable.open_uses:
        solved = units[use[0]]
        if solved.events[use[1]].kind != "use":
            continue
        local = frozenset(solved.reaching.definitions[use[1]])
        # If local definitions were omitted, it is unknown which pairs would be local.
        skip_own = use[0] == variable.owner or use[1] in solved.reaching.cut
        for definition in variable.definitions:
            if definition[0] == use[0] and (skip_own or definition[1] in local):
                continue
            yield DefUsePair(variable.kind, definition, use)


def _shared_variables(units: Sequence[SolvedUnit]) -> Iterable[_Shared]:
    """Return the cells and globals of the file in the order of their first occurrence."""
    numbers = {solved.code["code_unit_key"]: number for number, solved in enumerate(units)}
    variables: dict[tuple[str, _Owner | None], _Shared] = {}
    for number, (code, events, inlined, reaching) in enumerate(units):
        span_of = {variable.comprehension: variable.span for variable in inlined}
        is_inner = number != MODULE
        for index, event in enumerate(events):
            if event.var_kind == "fast" or (event.var_kind == "name" and is_inner and event.kind != "use"):
                continue
            owner = None
            if event.var_kind == "cell":
                owner = _Owner(number, span_of.get(event.comprehension or AT_ENTRY))
            elif event.var_kind == "free":
                owner = _owner(units, numbers, code, event.name)
            kind: ReachKind = "global" if owner is None else "closure"
            variable = variables.setdefault(
                (event.name, owner), _Shared(kind, MODULE if owner is None else owner.unit)
            )
            is_class_name = event.var_kind == "name" and is_inner
            open_events = reaching.unbound if is_class_name else reaching.open_uses
            if event.kind == "def" and index in reaching.visible:
                variable.definitions.append((number, index))
            if event.kind == "del" and index in reaching.definitions:
                variable.deletions.append((number, index))
            if event.kind in {"use", "del"} and index in open_events:
                variable.open_uses.append((number, index))
    return variables.values()


def _owner(units: Sequence[SolvedUnit], numbers: dict[str, int], code: dict[str, Any], name: str) -> _Owner:
    """Return the nearest enclosing unit, or comprehension inlined there, that has the name as a cell."""
    while True:
        span = code["bstart"], code["bend"]
        number = numbers[code["parent_key"]]
        code = units[number].code
        for variable in reversed(units[number].inlined):
            if variable.is_cell and variable.name == name and span in variable.functions:
                return _Owner(number, variable.span)
        if name in code["cellvars"]:
            return _Owner(number, None)
