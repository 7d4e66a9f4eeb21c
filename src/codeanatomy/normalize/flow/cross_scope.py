"""Definitions that reach uses in other code objects of the file: through closure cells and module globals.

    n = 0                         def a, of the module
    def outer():
        k = 1                     def b, of a cell
        def inner():
            nonlocal k
            k = k + n             use of k: b, and inner's own def of the call before; use of n: a
        return inner

Between units there is no order to follow, so of one variable every *visible* definition (other code may run
while it stands, or it stands at a return) is paired with every *open* use (`reaching` says which).

A cell belongs to the nearest unit around that has it among its cell variables. A global is a name of the
module's unit, or of a `global` operation anywhere; a name of a class body is the global's if the class has
not bound it. A del in one unit may unbind what is open in another. Nothing is known here of other files, of
`globals()`, or of destructors.

Tests: `tests/unit/normalize/test_flow_cases.py`, `tests/unit/normalize/test_flow_oracle.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from codeanatomy.normalize.flow.events import Event
from codeanatomy.normalize.flow.reaching import MAY_BE_UNBOUND, Budget, Reached

ReachKind: TypeAlias = Literal["local", "closure", "global"]
# A unit and an event of it, by their numbers.
Site: TypeAlias = tuple[int, int]
# The module's unit is the first of its file.
MODULE = 0


class Solved(NamedTuple):
    """A unit's events and what was found out about them."""

    unit: dict[str, Any]
    events: Sequence[Event]
    reached: Reached


class Pair(NamedTuple):
    """A definition and a use it may reach."""

    kind: ReachKind
    definition: Site
    use: Site


@dataclass(slots=True)
class _Shared:
    """A variable of several units; open uses and visible definitions only."""

    kind: ReachKind
    # The unit in which pairs are local ones: it runs once for each of its variables.
    owner: int
    definitions: list[Site] = field(default_factory=list)
    deletions: list[Site] = field(default_factory=list)
    arrivals: list[Site] = field(default_factory=list)


def pairs_between(units: Sequence[Solved], budget: Budget) -> list[Pair]:
    """The pairs of closures and globals that are not local; notes in `reached` what others may unbind."""
    pairs: list[Pair] = []
    for variable in _shared(units):
        _unbind(units, variable)
        if budget.allows(len(variable.definitions) * len(variable.arrivals)):
            pairs += _pairs(units, variable)
    return pairs


def _unbind(units: Sequence[Solved], variable: _Shared) -> None:
    deleting = {number for number, _ in variable.deletions}
    for number, place in variable.arrivals if deleting else ():
        if deleting - {number} and units[number].events[place].var_kind in MAY_BE_UNBOUND:
            units[number].reached.unbound.add(place)


def _pairs(units: Sequence[Solved], variable: _Shared) -> Iterator[Pair]:
    for use in variable.arrivals:
        solved = units[use[0]]
        if solved.events[use[1]].kind != "use":
            continue
        local = frozenset(solved.reached.definitions[use[1]])
        # Of a use whose local definitions were left out it is not known which would be local.
        alone = use[0] == variable.owner or use[1] in solved.reached.cut
        for definition in variable.definitions:
            if definition[0] == use[0] and (alone or definition[1] in local):
                continue
            yield Pair(variable.kind, definition, use)


def _shared(units: Sequence[Solved]) -> Iterable[_Shared]:
    """The cells and globals of the file, by the order in which they first occur."""
    numbers = {solved.unit["code_unit_key"]: number for number, solved in enumerate(units)}
    found: dict[tuple[int | None, str], _Shared] = {}
    for number, (unit, events, reached) in enumerate(units):
        is_inner = number != MODULE
        for place, event in enumerate(events):
            if event.var_kind == "fast" or (event.var_kind == "name" and is_inner and event.kind != "use"):
                continue
            owner = None
            if event.var_kind == "cell":
                owner = number
            elif event.var_kind == "free":
                owner = _owner(units, numbers, unit, event.name)
            kind: ReachKind = "global" if owner is None else "closure"
            variable = found.setdefault(
                (owner, event.name), _Shared(kind, MODULE if owner is None else owner)
            )
            opened = reached.unbound if event.var_kind == "name" and is_inner else reached.open_uses
            if event.kind == "def" and place in reached.visible:
                variable.definitions.append((number, place))
            if event.kind == "del" and place in reached.definitions:
                variable.deletions.append((number, place))
            if event.kind in {"use", "del"} and place in opened:
                variable.arrivals.append((number, place))
    return found.values()


def _owner(units: Sequence[Solved], numbers: dict[str, int], unit: dict[str, Any], name: str) -> int:
    """The nearest unit around that has the name as a cell."""
    while True:
        number = numbers[unit["parent_key"]]
        unit = units[number].unit
        if name in unit["cellvars"]:
            return number
