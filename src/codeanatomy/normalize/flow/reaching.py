"""Compute which definitions reach which uses in one code object: a fixpoint over its control flow graph.

    x = 1                 def a
    try:
        x = f()           def b: if f() raises, b did not happen
    except E:
        print(x)          reached by a, not by b
    print(x)              reached by a and b

The sets are integers with a bit per definition, so a block costs a few bit operations. Of each block two
summaries are kept: the change to the set at its end, and the set that an exception leaving it may see, which
is the union of the states before each of its instructions that may raise.

Besides its definitions a variable has two bits: *unbound* (at the entry, and after a del) and *outside*
(another code object may have set it: at the entry, and after an instruction during which other code may run).
They decide whether a use may be unbound, and whether values of other code objects reach it.

Variables that nothing in the code object defines need no fixpoint, and most are of that kind. The others are
processed in groups for which bits times blocks are bounded: a generated file with a hundred thousand of both
must not exhaust the memory. Tests: `tests/unit/normalize/test_flow_oracle.py`,
`tests/unit/normalize/test_flow_execution.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from codeanatomy.normalize.flow.blocks import ControlFlow
from codeanatomy.normalize.flow.events import AT_ENTRY, Variable, VariableEvent

# Bits of states and masks held at a time: definitions times blocks, or times definitions.
STATE_BITS = 1 << 28
# Pairs of definition and use in a file: generated code can have quadratically many.
MAX_PAIRS = 1_000_000
MAY_BE_UNBOUND = frozenset({"fast", "cell", "name"})
OUTSIDE = frozenset({"cell", "free", "name", "global"})

Group: TypeAlias = dict[Variable, list[int]]


@dataclass(slots=True)
class ReachingDefinitions:
    """The result for one code object; events are given by their index."""

    # The definitions that reach each use and del.
    definitions: dict[int, list[int]] = field(default_factory=dict)
    # Uses and dels that some path reaches without a definition.
    unbound: set[int] = field(default_factory=set)
    # Uses that definitions of other code objects may reach.
    open_uses: set[int] = field(default_factory=set)
    # Definitions that other code objects may see.
    visible: set[int] = field(default_factory=set)
    # Uses of which the definitions were omitted, because there are too many pairs.
    cut: set[int] = field(default_factory=set)


@dataclass(slots=True)
class PairBudget:
    """The number of pairs of a file, and how many more were omitted."""

    pairs: int = 0
    omitted: int = 0

    def allows(self, count: int) -> bool:
        """Return whether `count` more pairs are within the limit, and count them."""
        if self.pairs + count > MAX_PAIRS:
            self.omitted += count
            return False
        self.pairs += count
        return True


def reaching_definitions(
    flow: ControlFlow, events: Sequence[VariableEvent], budget: PairBudget
) -> ReachingDefinitions:
    """Solve a code object."""
    result = ReachingDefinitions()
    order = _reverse_postorder(flow)
    by_variable: Group = {}
    for index, event in enumerate(events):
        by_variable.setdefault(event.variable, []).append(index)
    defined: Group = {}
    # Few code objects have unreachable blocks.
    unreachable = (flow.blocks[number] for number in set(range(len(flow.blocks))).difference(order))
    dead = {instruction for block in unreachable for instruction in range(block.first, block.last)}
    changed = {event.variable for event in events if event.kind != "use"}
    for variable, indexes in by_variable.items():
        if variable in changed:
            defined[variable] = indexes
            continue
        live = [index for index in indexes if events[index].instruction not in dead]
        result.definitions.update((index, []) for index in live)
        result.unbound.update(live if variable[1] in MAY_BE_UNBOUND else ())
        result.open_uses.update(live if variable[1] in OUTSIDE else ())
    for group in _groups(defined, len(flow.blocks)):
        _solve(flow, order, events, group, budget, result)
    return result


def _reverse_postorder(flow: ControlFlow) -> list[int]:
    """Return the reachable blocks, each before its successors except along back edges."""
    successors = _successors(flow)
    seen = {0}
    order: list[int] = []
    stack: list[tuple[int, Iterator[int]]] = [(0, iter(successors[0]))]
    while stack:
        number, rest = stack[-1]
        for after in rest:
            if after not in seen:
                seen.add(after)
                stack.append((after, iter(successors[after])))
                break
        else:
            stack.pop()
            order.append(number)
    return order[::-1]


def _successors(flow: ControlFlow) -> list[list[int]]:
    successors: list[list[int]] = [[] for _ in flow.blocks]
    for edge in flow.edges:
        successors[edge.src].append(edge.dst)
    return successors


def _groups(defined: Group, blocks: int) -> Iterator[Group]:
    """Yield groups of variables of which the states fit in memory."""
    group: Group = {}
    bits = 0
    for variable, indexes in defined.items():
        more = bits + len(indexes) + 2
        if group and more * max(blocks, more) > STATE_BITS:
            yield group
            group, more = {}, len(indexes) + 2
        group[variable] = indexes
        bits = more
    if group:
        yield group


class _Bits(NamedTuple):
    """The bits of a variable: all of them, and the two that are not definitions (0 if it has none)."""

    mask: int
    unbound: int
    outside: int


class _Bitmap(NamedTuple):
    """The bits of a group of variables."""

    variables: Mapping[Variable, _Bits]
    # By event that changes the state: the bits it clears, and the position of the bit it sets, if any.
    effects: Mapping[int, tuple[int, int | None]]
    # By bit: the index of the definition, or -1.
    owners: Sequence[int]
    outside: int
    start: int


def _bitmap(events: Sequence[VariableEvent], group: Group) -> _Bitmap:
    variables: dict[Variable, _Bits] = {}
    effects: dict[int, tuple[int, int | None]] = {}
    owners: list[int] = []
    all_outside = start = 0
    for variable, indexes in group.items():
        first = len(owners)
        owners += [-1] * ((variable[1] in MAY_BE_UNBOUND) + (variable[1] in OUTSIDE))
        unbound = 1 << first if variable[1] in MAY_BE_UNBOUND else 0
        outside = 1 << len(owners) - 1 if variable[1] in OUTSIDE else 0
        bit_of: dict[int, int] = {}
        for index in indexes:
            if events[index].kind == "def":
                bit_of[index] = len(owners)
                owners.append(index)
        mask = (1 << len(owners)) - (1 << first)
        absent = first if unbound else None
        effects.update(
            (index, (mask, bit_of.get(index, absent))) for index in indexes if events[index].kind != "use"
        )
        variables[variable] = _Bits(mask, unbound, outside)
        all_outside |= outside
        entered = [1 << bit_of[index] for index in indexes if events[index].instruction == AT_ENTRY]
        start |= entered[-1] if entered else unbound | outside
    return _Bitmap(variables, effects, owners, all_outside, start)


class _Summary(NamedTuple):
    """The effect of a block: `state & keep | add` at its end, and the same for what an exception sees."""

    keep: int
    add: int
    # None if nothing in the block may raise.
    raised: tuple[int, int] | None


def _summary(flow: ControlFlow, number: int, events_at: Mapping[int, list[int]], bits: _Bitmap) -> _Summary:
    keep, add = -1, 0
    raised_keep, raised_add, raises = 0, 0, False
    block = flow.blocks[number]
    for instruction in range(block.first, block.last):
        if flow.raising[instruction]:
            add |= bits.outside
            raised_add |= add
            if not raises:
                raised_keep, raises = keep, True
        for index in events_at.get(instruction, ()):
            if index in bits.effects:
                keep &= ~bits.effects[index][0]
                add = _after(add, index, bits)
    return _Summary(keep, add, (raised_keep, raised_add) if raises else None)


def _solve(
    flow: ControlFlow,
    order: Sequence[int],
    events: Sequence[VariableEvent],
    group: Group,
    budget: PairBudget,
    result: ReachingDefinitions,
) -> None:
    bits = _bitmap(events, group)
    events_at: dict[int, list[int]] = {}
    for indexes in group.values():
        for index in indexes:
            events_at.setdefault(events[index].instruction, []).append(index)
    for indexes in events_at.values():
        indexes.sort()
    summaries = {number: _summary(flow, number, events_at, bits) for number in order}
    states = _fixpoint(flow, order, summaries, bits.start)
    _record_uses(flow, events, events_at, bits, states, budget, result)
    seen = _visible_state(flow, summaries, states)
    result.visible.update(_members(seen, bits.owners))


def _fixpoint(
    flow: ControlFlow, order: Sequence[int], summaries: Mapping[int, _Summary], start: int
) -> dict[int, int]:
    """Return the state before each reachable block."""
    rank = {number: index for index, number in enumerate(order)}
    edges_from: dict[int, list[tuple[int, bool]]] = {number: [] for number in order}
    for edge in flow.edges:
        if edge.src in edges_from:
            edges_from[edge.src].append((edge.dst, edge.kind == "exception"))
    states = dict.fromkeys(order, 0)
    states[0] = start
    pending = [True] * len(order)
    again = True
    while again:
        again = False
        for index, number in enumerate(order):
            if not pending[index]:
                continue
            pending[index] = False
            state, summary = states[number], summaries[number]
            after = state & summary.keep | summary.add
            for dst, by_exception in edges_from[number]:
                passed = after
                if by_exception and summary.raised is not None:
                    passed = state & summary.raised[0] | summary.raised[1]
                if passed & ~states[dst]:
                    states[dst] |= passed
                    pending[rank[dst]] = True
                    again = again or rank[dst] <= index
    return states


def _record_uses(
    flow: ControlFlow,
    events: Sequence[VariableEvent],
    events_at: Mapping[int, list[int]],
    bits: _Bitmap,
    states: Mapping[int, int],
    budget: PairBudget,
    result: ReachingDefinitions,
) -> None:
    """Walk each reachable block once more, and record the definitions that reach its uses."""
    for number, before in states.items():
        state = before
        block = flow.blocks[number]
        for instruction in range(block.first, block.last):
            indexes = events_at.get(instruction, ())
            for index in indexes:
                if events[index].kind in {"use", "del"}:
                    _record_use(
                        index, state, bits.variables[events[index].variable], bits.owners, budget, result
                    )
                if flow.raising[instruction]:
                    state |= bits.outside
                state = _after(state, index, bits)
            if flow.raising[instruction] and not indexes:
                state |= bits.outside


def _after(state: int, index: int, bits: _Bitmap) -> int:
    """Return the state after an event."""
    if index not in bits.effects:
        return state
    cleared, now = bits.effects[index]
    state &= ~cleared
    return state if now is None else state | 1 << now


def _record_use(
    index: int,
    state: int,
    variable: _Bits,
    owners: Sequence[int],
    budget: PairBudget,
    result: ReachingDefinitions,
) -> None:
    """Record the definitions that reach a use or del."""
    arriving = state & variable.mask
    if arriving & variable.unbound:
        result.unbound.add(index)
    if arriving & variable.outside:
        result.open_uses.add(index)
    definitions = arriving & ~(variable.unbound | variable.outside)
    if budget.allows(definitions.bit_count()):
        result.definitions[index] = _members(definitions, owners)
    else:
        result.definitions[index] = []
        result.cut.add(index)


def _visible_state(flow: ControlFlow, summaries: Mapping[int, _Summary], states: Mapping[int, int]) -> int:
    """Return the state that other code may see: while it runs, and at a return."""
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
    """Return the definitions in a state."""
    digits = bin(state)[:1:-1]
    members = []
    bit = digits.find("1")
    while bit >= 0:
        if owners[bit] >= 0:
            members.append(owners[bit])
        bit = digits.find("1", bit + 1)
    return members
