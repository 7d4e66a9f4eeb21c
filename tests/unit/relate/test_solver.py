"""The solver against the plainest fixpoint there is, its limit, and rules that miss nothing."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from codeanatomy.relate.values.solver import WEAK, Solver, prefer_strong

NODES = 8
EDGES = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 1)), max_size=20
)
ADDED = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, 9)), max_size=12)


def fixpoint(edges: Sequence[tuple[int, int, int]], added: Sequence[tuple[int, int]]) -> list[set[int]]:
    """Everything, again and again, until nothing is new."""
    found: list[set[int]] = [set() for _ in range(NODES)]
    for node, thing in added:
        found[node].add(thing)
    while True:
        before = [set(each) for each in found]
        for src, dst, weak in edges:
            found[dst] |= {thing | weak for thing in found[src]} if src != dst else set()
        if found == before:
            return found


@given(EDGES, ADDED, st.randoms(use_true_random=False))
def test_what_is_found_is_the_least_fixpoint(
    edges: list[tuple[int, int, int]], added: list[tuple[int, int]], chance: object
) -> None:
    solver = Solver()
    solver.reserve(NODES)
    steps: list[tuple[int, ...]] = [*edges, *added]
    chance.shuffle(steps)  # type: ignore[attr-defined]
    for at, step in enumerate(steps):
        if len(step) == 3:
            solver.flow(*step)
        else:
            solver.add(*step)
        if at % 5 == 0:
            solver.run()
    solver.run()
    wanted = fixpoint(edges, added)
    assert [set(solver.objects_at(node)) for node in range(NODES)] == [
        set(prefer_strong(each)) for each in wanted
    ]
    assert solver.truncated == set()


@given(EDGES, ADDED)
def test_a_rule_is_told_every_object(edges: list[tuple[int, int, int]], added: list[tuple[int, int]]) -> None:
    solver = Solver("context")
    solver.reserve(NODES)
    told: list[int] = []

    def rule(context: str, thing: int, mark: str) -> None:
        assert (context, mark) == ("context", "data")
        told.append(thing)

    for step in added[:6]:
        solver.add(*step)
    solver.subscribe(0, rule, "data")
    for edge in edges:
        solver.flow(*edge)
    solver.subscribe(0, rule, "data")
    for step in added[6:]:
        solver.add(*step)
    solver.run()
    assert set(told) == set(solver.points_to[0] or ())


def test_a_full_node_takes_no_more_and_is_noted() -> None:
    solver = Solver(limit=3)
    first, second, other = (solver.new_node() for _ in range(3))
    solver.flow(first, second)
    for thing in range(0, 20, 2):
        solver.add(first, thing)
    solver.add(other, 0)
    solver.run()
    assert list(solver.objects_at(first)) == list(solver.objects_at(second)) == [0, 2, 4]
    assert first in solver.truncated
    assert other not in solver.truncated


def test_hints_stay_hints_and_give_way_to_values() -> None:
    solver = Solver()
    hinted, plain, both = (solver.new_node() for _ in range(3))
    solver.flow(plain, both)
    solver.flow(hinted, both, weak=True)
    solver.add(hinted, 4)
    solver.run()
    assert solver.objects_at(both) == [4 | WEAK]
    solver.add(plain, 6)
    solver.run()
    assert solver.objects_at(both) == [6]


def test_nothing_flows_to_or_from_no_node() -> None:
    solver = Solver()
    node = solver.new_node()
    solver.flow(-1, node)
    solver.flow(node, -1)
    solver.subscribe(-1, print)
    solver.add(node, 2)
    solver.run()
    assert solver.objects_at(node) == [2]
    assert list(solver.objects_at(-1)) == []


def test_a_rule_that_asks_for_itself_ends() -> None:
    solver = Solver()
    node = solver.new_node()
    told: list[int] = []

    def again(_: object, thing: int) -> None:
        told.append(thing)
        solver.subscribe(node, again)
        solver.add(node, thing)

    solver.subscribe(node, again)
    solver.add(node, 2)
    solver.run()
    assert told == [2]


def test_a_chain_may_be_longer_than_the_stack() -> None:
    solver = Solver()
    size = 20_000
    solver.reserve(size)

    def onward(_: object, thing: int, at: int) -> None:
        solver.add(at, thing)
        if at + 1 < size:
            solver.subscribe(at, onward, at + 1)

    for at in range(size // 2):
        solver.flow(at, at + 1)
    solver.add(0, 8)
    solver.subscribe(size // 2, onward, size // 2 + 1)
    solver.run()
    assert solver.objects_at(size - 1) == [8]
