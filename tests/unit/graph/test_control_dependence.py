"""Control dependence: cases written by hand, a brute-force oracle on random graphs, and large units.

A case lists source lines in the notation of `unit/normalize/test_flow_cases.py`: "2 yes 3" means that line 3
runs because the test in line 2 is true; "3 raise 5", that line 5 runs because line 3 has raised. Code that
only re-raises an exception is left out.
"""

from __future__ import annotations

import sys
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeanatomy.graph.control_dependence import Dependence, Dependences, control_dependence
from codeanatomy.sources.source_file import Source
from oracles.bytecode_oracle import compiled, source_of
from oracles.flow_oracle import Step, Unit, rows_of, units_of
from support.flow_cases import ARROWS, parts, passes_on
from support.flow_cases import CASES as FLOW_CASES
from support.marks import examples
from support.processor_time import seconds_of

Edge: TypeAlias = tuple[int, int, str]
PLENTY = 10**6


class Case(NamedTuple):
    code: str
    picture: str


CASES = {
    "straight line": Case(
        """
def f(a):
    x = a
    return x
""",
        "",
    ),
    "if, elif, else": Case(
        """
def f(a, b):
    if a:
        x = 1
    elif b:
        x = 2
    else:
        x = 3
    return x
""",
        "2 yes 3, 2 no 4, 4 yes 5, 4 no 7",
    ),
    "if without else": Case(
        """
def f(a):
    if a:
        x = 1
    return x
""",
        "2 yes 3",
    ),
    "and, or": Case(
        """
def f(a, b, c):
    if a and b or c:
        x = 1
    return x
""",
        # b is asked if a is true, c if one of them is false.
        "2 yes 2, 2 no 2, 2 yes 3",
    ),
    "while": Case(
        """
def f(a):
    while a:
        g()
    return a
""",
        # The test at the end of the body is a test of line 2 too.
        "2 yes 3, 2 yes 2",
    ),
    "while True with break": Case(
        """
def f():
    while True:
        x = g()
        if x:
            break
        h()
    return x
""",
        # Every round after the first is because of line 4. That the loop is left in the end is no choice.
        "4 no 6, 4 no 2, 4 no 3, 4 no 4",
    ),
    "nested": Case(
        """
def f(a):
    for x in a:
        if x:
            for y in x:
                if y:
                    g()
                h()
        k()
    return a
""",
        "2 body 2, 2 body 3, 3 yes 4, 4 body 4, 4 body 5, 5 yes 6, 4 body 7, 2 body 8",
    ),
    "for with else": Case(
        """
def f(a):
    for x in a:
        if x:
            break
        g()
    else:
        h()
    return a
""",
        "2 body 2, 2 body 3, 3 yes 4, 3 no 5, 3 no 2, 2 done 7",
    ),
    "continue": Case(
        """
def f(a):
    for x in a:
        if x:
            continue
        g()
    return a
""",
        "2 body 2, 2 body 3, 3 yes 4, 3 no 5",
    ),
    "early return": Case(
        """
def f(a, b):
    if a:
        return 1
    g()
    if b:
        return 2
    return h()
""",
        # What follows the second return depends on the first by way of line 5.
        "2 yes 3, 2 no 4, 2 no 5, 5 yes 6, 5 no 7",
    ),
    "early raise": Case(
        """
def f(a):
    if a:
        raise a
    g()
    return 1
""",
        "2 yes 3, 2 no 4, 2 no 5",
    ),
    "assert": Case(
        """
def f(a):
    assert a
    return 1
""",
        "2 yes 3, 2 no 2",
    ),
    "infinite loop": Case(
        """
def f(a):
    while True:
        if a:
            g()
        h()
""",
        "3 yes 4",
    ),
    "infinite loop after a test": Case(
        """
def f(a):
    if a:
        while True:
            h()
    return g()
""",
        "2 yes 3, 2 yes 4, 2 no 5",
    ),
    "infinite loop that catches": Case(
        """
def f(a):
    while True:
        try:
            g()
        except:
            h()
""",
        # Another round is nobody's choice, so that nothing depends on line 4 but the handler.
        "4 raise 5, 4 raise 6",
    ),
    "try, except": Case(
        """
def f():
    try:
        g()
        h()
    except E:
        k()
    return 1
""",
        # If line 5 does not catch it, line 7 does not run.
        "3 raise 5, 4 raise 5, 5 yes 5, 5 yes 6, 5 yes 7",
    ),
    "try, except everything": Case(
        """
def f():
    try:
        g()
    except:
        k()
    return 1
""",
        "3 raise 4, 3 raise 5",
    ),
    "try, finally": Case(
        """
def f():
    try:
        g()
    finally:
        h()
    return 1
""",
        # The copy of line 5 that is for exceptions.
        "3 raise 5",
    ),
    "try, except, finally": Case(
        """
def f():
    try:
        g()
    except E:
        h()
    finally:
        k()
    return 1
""",
        # Line 7 has a copy for exceptions: that of line 3 if line 4 does not catch it, and new ones.
        "3 raise 4, 4 yes 4, 4 yes 5, 4 yes 7, 4 yes 8, 4 no 7, 4 raise 7, 5 raise 7",
    ),
    "a raise that is caught": Case(
        """
def f(a):
    try:
        if a:
            raise E
    except:
        g()
    return 1
""",
        # The raise makes no choice, it is a jump to the handler. To test `a` may raise, too.
        "3 yes 4, 3 no 3, 3 yes 5, 3 yes 6, 3 raise 5, 3 raise 6",
    ),
    "a handler of nothing": Case(
        """
def f():
    try:
        x = 1
    except E:
        x = 2
    return x
""",
        "",
    ),
    "return in a handler": Case(
        """
def f():
    try:
        x = g()
    except:
        return 1
    h(x)
    return 2
""",
        "3 raise 4, 3 raise 5",
    ),
    "with": Case(
        """
def f(a):
    with a:
        g()
    return 1
""",
        # Line 2 is asked whether it swallows the exception.
        "3 raise 2, 2 yes 2, 2 yes 4",
    ),
    "async for": Case(
        """
async def f(a):
    async for x in a:
        g(x)
    return 1
""",
        # Waiting for an item is a loop, and the end of the items is an exception.
        "2 body 2, 2 raise 2, 2 raise 4",
    ),
}
# From 3.12 on the compiler copies a return to the end of each branch that leads to it.
RETURN_IS_COPIED = {
    "if, elif, else": "2 yes 8, 4 yes 8, 4 no 8",
    "for with else": "2 done 2, 2 done 8, 3 yes 8",
    "try, except everything": "3 raise 6",
    "a raise that is caught": "3 yes 7, 3 no 7, 3 raise 7",
}


class Graph(NamedTuple):
    size: int
    edges: list[Edge]

    def dependences(self, limit: int = PLENTY) -> Dependences:
        return control_dependence(self.size, self.edges, self.size - 1, limit)


def graph_of(source: Source, unit: Unit) -> tuple[Graph, list[list[Step]]]:
    """The graph of a unit as the normalize stage has it, and the instructions of its blocks."""
    rows = rows_of(source)
    blocks = sorted((start, end) for key, start, end, _ in rows["blocks"] if key == unit.key)
    number = {start: place for place, (start, _) in enumerate(blocks)}
    edges = [(number[src], number[dst], kind) for key, kind, src, dst in rows["edges"] if key == unit.key]
    inside = [unit.steps[unit.at[start] : unit.at.get(end)] for start, end in blocks[:-1]]
    return Graph(len(blocks), edges), inside


def picture_of(code: str) -> set[str]:
    source = source_of(code.lstrip("\n"))
    unit = next(unit for unit in units_of(compiled(source)) if unit.code.co_name == "f")
    graph, inside = graph_of(source, unit)
    drawn = set()
    for dependent, controlling, role in graph.dependences().rows:
        steps = inside[controlling]
        deciders = [step for step in steps if step.may_raise] if role == "exception" else steps[-1:]
        if not passes_on(inside[dependent]):
            drawn |= {
                f"{decider.line} {ARROWS[role]} {step.line}"
                for decider in deciders
                for step in inside[dependent]
                if decider.line and step.line
            }
    return drawn


@pytest.mark.parametrize("name", CASES)
def test_a_construct_is_as_drawn(name: str) -> None:
    copies = RETURN_IS_COPIED.get(name, "") if sys.version_info >= (3, 12) else ""
    assert picture_of(CASES[name].code) == parts(CASES[name].picture) | parts(copies)


# By definition


def reached(leaving: dict[int, set[int]], start: int, without: int | None = None) -> set[int]:
    seen, waiting = set(), [start]
    while waiting:
        block = waiting.pop()
        if block not in seen and block != without:
            seen.add(block)
            waiting += leaving[block]
    return seen


def by_definition(graph: Graph) -> set[Dependence]:
    """Blocks that a way leads to for certain, but not the block that has this way and others."""
    size, edges = graph
    leaving = {block: {to for source, to, _ in edges if source == block} for block in range(size)}
    alive = reached(leaving, 0)
    plain = {
        block: {to for source, to, kind in edges if source == block and kind != "exception"}
        for block in range(size)
    }
    certain = {block: plain[block] or leaving[block] for block in range(size)}
    onward = {block: set(certain[block]) for block in range(size)}
    while stuck := [block for block in alive if size - 1 not in reached(onward, block)]:
        onward[max(stuck)].add(size - 1)
    # By block: those that, taken away, leave it no way to the exit.
    needed = {
        block: {
            other
            for other in range(size)
            if other != block and size - 1 not in reached(onward, block, without=other)
        }
        for block in alive
    }
    return {
        Dependence(dependent, source, role)
        for source, to, role in edges
        if source in alive and certain[source] - {to}
        for dependent in {to, *needed[to]} - needed[source]
    }


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(2, 9))
    edge = st.tuples(st.integers(0, size - 2), st.integers(0, size - 1), st.sampled_from(sorted(ARROWS)))
    return Graph(size, draw(st.lists(edge, max_size=2 * size)))


@settings(max_examples=examples(400), deadline=None)
@given(graphs())
def test_random_graphs_are_as_defined(graph: Graph) -> None:
    found = graph.dependences()
    assert found == (sorted(by_definition(graph)), False)
    assert graph.dependences(limit=len(found.rows)) == found


def test_real_graphs_are_as_defined() -> None:
    rows = 0
    for case in [*FLOW_CASES.values(), *CASES.values()]:
        source = source_of(case.code.lstrip("\n"))
        for unit in units_of(compiled(source)):
            graph, _ = graph_of(source, unit)
            found = graph.dependences()
            assert found == (sorted(by_definition(graph)), False)
            rows += len(found.rows)
    assert rows > 300


# Large units


def long_or(tests: int, below: int) -> Graph:
    """`if t or t or ...:`, and so many blocks below it that run one after the other."""
    last = tests + below
    edges = [(test, tests, "branch_true") for test in range(tests)]
    edges += [(test, test + 1, "branch_false") for test in range(tests - 1)]
    edges += [(tests - 1, last, "branch_false")]
    return Graph(last + 1, edges + [(block, block + 1, "next") for block in range(tests, last)])


def test_a_limit_leaves_the_nearest() -> None:
    graph = long_or(tests=20, below=30)
    whole = graph.dependences()
    assert (len(whole.rows), whole.is_cut) == (20 * 30 + 19, False)
    assert graph.dependences(limit=len(whole.rows)) == whole
    cut = graph.dependences(limit=100)
    assert cut.is_cut
    assert len(cut.rows) == 100
    assert cut.rows == sorted(set(cut.rows))
    assert set(cut.rows) < set(whole.rows)
    # The block of each test's both ways comes first, then what follows.
    assert {(row.dependent, row.controlling) for row in cut.rows} >= {(20, test) for test in range(20)}
    assert max(row.dependent for row in cut.rows) == 20 + 100 // 20 - 1
    assert Graph(graph.size, graph.edges[::-1]).dependences(limit=100) == cut
    assert graph.dependences(limit=0) == ([], True)


MANY = 30_000
LAST = MANY - 1
NEXT = [(block, block + 1, "next") for block in range(MANY)]
ON = [(block, block + 1, "branch_false") for block in range(MANY)]
OUT = [(block, MANY, "branch_true") for block in range(MANY)]
OVER = [(block, block + 2, "branch_true") for block in range(0, LAST, 2)]
RAISE = [(block, LAST, "exception") for block in range(LAST - 1)]
LARGE = {
    "chain": (NEXT, 0),
    # A block may jump over the next one.
    "ifs": (NEXT + OVER, MANY // 2),
    # Each block decides on the next one.
    "returns": (ON + OUT, LAST),
    # ... and the one before the last also on the first.
    "loop of breaks": ([*ON[:-1], *OUT[:-1], (LAST, 0, "jump")], MANY),
    # The last block decides on all of them.
    "loop": ([*NEXT[:-1], (LAST, 0, "branch_true"), (LAST, MANY, "branch_false")], MANY),
    "infinite loop": ([*NEXT[:-1], (LAST, 0, "jump")], 0),
    # A handler of all blocks but one, which is the end of the loop that they are.
    "handler": ([*NEXT[: LAST - 1], *RAISE, (LAST - 1, 0, "jump"), (LAST, MANY, "next")], LAST - 1),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_units_take_no_time(name: str) -> None:
    edges, rows = LARGE[name]
    made: list[Dependences] = []
    assert seconds_of(lambda: made.append(Graph(MANY + 1, edges).dependences())) < 5
    assert (len(made[0].rows), made[0].is_cut) == (rows, False)


def test_too_many_rows_take_no_time() -> None:
    graph = long_or(MANY // 2, MANY // 2)
    made: list[Dependences] = []
    assert seconds_of(lambda: made.append(graph.dependences(limit=50_000))) < 5
    assert (len(made[0].rows), made[0].is_cut) == (50_000, True)
