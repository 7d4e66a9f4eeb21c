"""Which definitions reach which uses in one code object: a fixpoint of sets over its control flow.

    x = 1                 def a
    try:
        x = f()           def b: if f() raises, b did not happen
    except E:
        print(x)          reached by a, not by b
    print(x)              reached by a and b

The sets are integers with a bit per definition, so a block costs a few operations on machine words. Of each
block two summaries are kept: what it does to the set when it is left at its end, and what an exception that
leaves it may see, which is the state before any of its instructions that may raise.

Besides its definitions a variable has two bits: *unbound* (at the entry, and after a del) and *outside* (some
other unit may have set it: at the entry, and whenever an instruction ran during which other code may run).
They answer whether a use may be unbound, and whether values of other units arrive at it.

Variables that nothing in the unit defines need no fixpoint, and most are of that kind. The others are taken
in groups whose bits, times the blocks, are bounded: a generated file with a hundred thousand of both must
not fill the memory. Tests: `tests/unit/normalize/test_flow_oracle.py`, `tests/unit/normalize/test_flow_execution.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from codeanatomy.normalize.flow.blocks import ControlFlow
from codeanatomy.normalize.flow.events import AT_ENTRY, Event, VarKind

# Bits of states and masks that are held at a time: definitions times blocks, or times definitions.
STATE_BITS = 1 << 28
# Of definition and use in a file: what generated code may multiply out to has a limit.
MAX_PAIRS = 1_000_000
MAY_BE_UNBOUND = frozenset({"fast", "cell", "name"})
OUTSIDE = frozenset({"cell", "free", "name", "global"})

Variable: TypeAlias = tuple[str, VarKind]
Group: TypeAlias = dict[Variable, list[int]]


@dataclass(slots=True)
class Reached:
    """The answers for one unit; events are numbered as in its list."""

    # Definitions by use or del, and by save.
    definitions: dict[int, list[int]] = field(default_factory=dict)
    # Uses and dels that some path comes to without a definition.
    unbound: set[int] = field(default_factory=set)
    # Uses at which another unit's definition may arrive.
    open_uses: set[int] = field(default_factory=set)
    # Definitions that other units may see.
    visible: set[int] = field(default_factory=set)
    # Uses whose definitions were left out.
    cut: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Budget:
    """Pairs of a file: how many there are, and how many more were left out."""

    pairs: int = 0
    left_out: int = 0

    def allows(self, count: int) -> bool:
        """Whether so many more are within the limit; counts them."""
        if self.pairs + count > MAX_PAIRS:
            self.left_out += count
            return False
        self.pairs += count
        return True


def reaching(flow: ControlFlow, events: Sequence[Event], budget: Budget) -> Reached:
    """Solve the unit."""
    found = Reached()
    order = _reverse_postorder(flow)
    by_variable: Group = {}
    for place, event in enumerate(events):
        by_variable.setdefault(event.variable, []).append(place)
    defined: Group = {}
    reachable: set[int] | None = None
    for variable, places in by_variable.items():
        if any(events[place].kind != "use" for place in places):
            defined[variable] = places
            continue
        if reachable is None:
            blocks = (flow.blocks[number] for number in order)
            reachable = {step for block in blocks for step in range(block.first, block.last)}
        arrived = [place for place in places if events[place].step in reachable]
        found.definitions.update((place, []) for place in arrived)
        found.unbound.update(arrived if variable[1] in MAY_BE_UNBOUND else ())
        found.open_uses.update(arrived if variable[1] in OUTSIDE else ())
    for group in _groups(defined, len(flow.blocks)):
        _solve(flow, order, events, group, budget, found)
    _see_through_restores(events, found)
    return found


def _reverse_postorder(flow: ControlFlow) -> list[int]:
    """The reachable blocks, each before those it leads to where there is no loop."""
    follow = _successors(flow)
    seen = {0}
    order: list[int] = []
    stack: list[tuple[int, Iterator[int]]] = [(0, iter(follow[0]))]
    while stack:
        number, rest = stack[-1]
        for after in rest:
            if after not in seen:
                seen.add(after)
                stack.append((after, iter(follow[after])))
                break
        else:
            stack.pop()
            order.append(number)
    return order[::-1]


def _successors(flow: ControlFlow) -> list[list[int]]:
    follow: list[list[int]] = [[] for _ in flow.blocks]
    for edge in flow.edges:
        follow[edge.src].append(edge.dst)
    return follow


def _groups(defined: Group, blocks: int) -> Iterator[Group]:
    """So many variables at a time that their states fit."""
    group: Group = {}
    bits = 0
    for variable, places in defined.items():
        more = bits + len(places) + 2
        if group and more * max(blocks, more) > STATE_BITS:
            yield group
            group, more = {}, len(places) + 2
        group[variable] = places
        bits = more
    if group:
        yield group


class _Bits(NamedTuple):
    """The bits of a variable: all of them, and the two that are no definitions (0 where it has none)."""

    mask: int
    unbound: int
    outside: int


class _Bitmap(NamedTuple):
    """The bits of a group."""

    variables: Mapping[Variable, _Bits]
    # By event that changes the state: the bits it clears, and the number of the one it sets, if it does.
    effects: Mapping[int, tuple[int, int | None]]
    # By bit: the definition, or -1.
    owners: Sequence[int]
    outside: int
    start: int


def _bitmap(events: Sequence[Event], group: Group) -> _Bitmap:
    variables: dict[Variable, _Bits] = {}
    effects: dict[int, tuple[int, int | None]] = {}
    owners: list[int] = []
    all_outside = start = 0
    for variable, places in group.items():
        first = len(owners)
        owners += [-1] * ((variable[1] in MAY_BE_UNBOUND) + (variable[1] in OUTSIDE))
        unbound = 1 << first if variable[1] in MAY_BE_UNBOUND else 0
        outside = 1 << len(owners) - 1 if variable[1] in OUTSIDE else 0
        own: dict[int, int] = {}
        for place in places:
            if events[place].kind == "def":
                own[place] = len(owners)
                owners.append(place)
        mask = (1 << len(owners)) - (1 << first)
        absent = first if unbound else None
        effects.update(
            (place, (mask, own.get(place, absent))) for place in places if events[place].kind != "use"
        )
        variables[variable] = _Bits(mask, unbound, outside)
        all_outside |= outside
        entered = [1 << own[place] for place in places if events[place].step == AT_ENTRY]
        start |= entered[-1] if entered else unbound | outside
    return _Bitmap(variables, effects, owners, all_outside, start)


class _Summary(NamedTuple):
    """What a block does: `state & keep | add` at its end, and the same for what an exception sees."""

    keep: int
    add: int
    # Null where nothing in the block may raise.
    raised: tuple[int, int] | None


def _summary(flow: ControlFlow, number: int, at: Mapping[int, list[int]], bits: _Bitmap) -> _Summary:
    keep, add = -1, 0
    raised_keep, raised_add, raises = 0, 0, False
    block = flow.blocks[number]
    for step in range(block.first, block.last):
        if flow.raising[step]:
            add |= bits.outside
            raised_add |= add
            if not raises:
                raised_keep, raises = keep, True
        for place in at.get(step, ()):
            if place in bits.effects:
                keep &= ~bits.effects[place][0]
                add = _after(add, place, bits)
    return _Summary(keep, add, (raised_keep, raised_add) if raises else None)


def _solve(
    flow: ControlFlow,
    order: Sequence[int],
    events: Sequence[Event],
    group: Group,
    budget: Budget,
    found: Reached,
) -> None:
    bits = _bitmap(events, group)
    at: dict[int, list[int]] = {}
    for places in group.values():
        for place in places:
            at.setdefault(events[place].step, []).append(place)
    for places in at.values():
        places.sort()
    summaries = {number: _summary(flow, number, at, bits) for number in order}
    states = _fixpoint(flow, order, summaries, bits.start)
    _answer(flow, events, at, bits, states, budget, found)
    seen = _seen_by_others(flow, summaries, states)
    found.visible.update(_members(seen, bits.owners))


def _fixpoint(
    flow: ControlFlow, order: Sequence[int], summaries: Mapping[int, _Summary], start: int
) -> dict[int, int]:
    """The state before each reachable block."""
    rank = {number: place for place, number in enumerate(order)}
    ways: dict[int, list[tuple[int, bool]]] = {number: [] for number in order}
    for edge in flow.edges:
        if edge.src in ways:
            ways[edge.src].append((edge.dst, edge.kind == "exception"))
    states = dict.fromkeys(order, 0)
    states[0] = start
    pending = [True] * len(order)
    again = True
    while again:
        again = False
        for place, number in enumerate(order):
            if not pending[place]:
                continue
            pending[place] = False
            state, summary = states[number], summaries[number]
            after = state & summary.keep | summary.add
            for dst, by_exception in ways[number]:
                passed = after
                if by_exception and summary.raised is not None:
                    passed = state & summary.raised[0] | summary.raised[1]
                if passed & ~states[dst]:
                    states[dst] |= passed
                    pending[rank[dst]] = True
                    again = again or rank[dst] <= place
    return states


def _answer(
    flow: ControlFlow,
    events: Sequence[Event],
    at: Mapping[int, list[int]],
    bits: _Bitmap,
    states: Mapping[int, int],
    budget: Budget,
    found: Reached,
) -> None:
    """Walk each reachable block once more, and note what arrives at its uses."""
    for number, before in states.items():
        state = before
        block = flow.blocks[number]
        for step in range(block.first, block.last):
            places = at.get(step, ())
            for place in places:
                if events[place].kind != "def":
                    _note(place, state, bits.variables[events[place].variable], bits.owners, budget, found)
                if flow.raising[step]:
                    state |= bits.outside
                state = _after(state, place, bits)
            if flow.raising[step] and not places:
                state |= bits.outside


def _after(state: int, place: int, bits: _Bitmap) -> int:
    """The state after an event."""
    if place not in bits.effects:
        return state
    cleared, now = bits.effects[place]
    state &= ~cleared
    return state if now is None else state | 1 << now


def _note(
    place: int, state: int, variable: _Bits, owners: Sequence[int], budget: Budget, found: Reached
) -> None:
    """What arrives at a use, del or save."""
    here = state & variable.mask
    if here & variable.unbound:
        found.unbound.add(place)
    if here & variable.outside:
        found.open_uses.add(place)
    definitions = here & ~(variable.unbound | variable.outside)
    if budget.allows(definitions.bit_count()):
        found.definitions[place] = _members(definitions, owners)
    else:
        found.definitions[place] = []
        found.cut.add(place)


def _seen_by_others(flow: ControlFlow, summaries: Mapping[int, _Summary], states: Mapping[int, int]) -> int:
    """What is there while other code may run, and at a return."""
    exit_number = len(flow.blocks) - 1
    returning = {edge.src for edge in flow.edges if edge.dst == exit_number and edge.kind == "next"}
    seen = 0
    for number, state in states.items():
        summary = summaries[number]
        if summary.raised is not None:
            seen |= state & summary.raised[0] | summary.raised[1]
        if number in returning:
            seen |= state & summary.keep | summary.add
    return seen


def _members(state: int, owners: Sequence[int]) -> list[int]:
    """The definitions in a state."""
    digits = bin(state)[:1:-1]
    members = []
    bit = digits.find("1")
    while bit >= 0:
        if owners[bit] >= 0:
            members.append(owners[bit])
        bit = digits.find("1", bit + 1)
    return members


def _see_through_restores(events: Sequence[Event], found: Reached) -> None:
    """A restored variable has the definitions it had when it was saved."""
    saves: dict[Variable, int] = {}
    saved: dict[int, int] = {}
    for place, event in enumerate(events):
        if event.kind == "save":
            saves[event.variable] = place
        elif event.restores and event.variable in saves:
            saved[place] = saves[event.variable]
    # In order: what a later comprehension saves, an earlier one may have restored.
    for place, event in enumerate(events) if saved else ():
        definitions = found.definitions.get(place)
        if (
            event.kind == "def"
            or definitions is None
            or not any(events[each].restores for each in definitions)
        ):
            continue
        real = {each for each in definitions if not events[each].restores}
        for save in {saved[each] for each in definitions if each in saved}:
            real.update(found.definitions.get(save, ()))
            if save in found.unbound:
                found.unbound.add(place)
        found.definitions[place] = sorted(real)
