"""Cycles: labelled sources in `tests/cases/ask/shop/shop/waste`; flask and random graphs by transitive
closure.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.errors import UsageError
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice
from codeanatomy.query.verbs.cycles import COLUMNS, cycles
from codeanatomy.query.walks.components import components, shortest_cycle
from support.ask_lake import reader_of

Graph = dict[str, set[str]]


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def groups(reader: LightReader, by: Any, repo_id: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of each group."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in reader.rows(cycles(reader, by=by, repo_id=repo_id).query):
        named = dict(zip(COLUMNS, row, strict=True))
        found.setdefault(named["group_id"], []).append(named)
    return found


def waste(reader: LightReader, by: Any, start: str = "shop.waste.") -> list[tuple[Any, ...]]:
    """Groups of a package: how many members, and the way around."""
    return [
        (
            rows[0]["amount"],
            *((row["symbol"].removeprefix(start), row["line"], row["method"]) for row in rows),
        )
        for rows in groups(reader, by, "shop").values()
        if rows[0]["symbol"].startswith(start)
    ]


def test_modules_that_import_each_other(reader: LightReader) -> None:
    """`loop_two` imports `loop_one` in a function, too: the way around is the one that runs at once."""
    assert waste(reader, "imports") == [
        (
            3,
            ("loop_one", 1, "module level"),
            ("loop_two", 1, "module level"),
            ("loop_three", 1, "module level"),
        ),
        (2, ("early", 2, "inside a function"), ("late", 1, "module level")),
        (2, ("typed", 6, "type checking"), ("typing_user", 1, "module level")),
    ]


def test_only_a_test_of_nothing_else_is_for_type_checkers(reader: LightReader) -> None:
    """By the syntax: blanks and brackets do not matter, `not` does, and `elif` is an `if`."""
    assert [first for _, first, _ in waste(reader, "imports", "shop.ends.")] == [
        ("blanks", 4, "type checking"),
        ("bracketed", 4, "type checking"),
        ("negated", 4, "module level"),
        ("otherwise", 7, "type checking"),
    ]


def test_cycles_that_exist_at_run_time(reader: LightReader) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in reader.rows(cycles(reader, runtime=True, repo_id="shop").query):
        named = dict(zip(COLUMNS, row, strict=True))
        found.setdefault(named["group_id"], []).append(named)
    assert {row["method"] for rows in found.values() for row in rows} == {"module level"}
    # Not `early`, which imports in a function, nor `typed`, which imports for type checkers.
    assert sorted((rows[0]["symbol"], rows[0]["amount"]) for rows in found.values()) == [
        ("shop.ends.negated", 2),
        ("shop.waste.loop_one", 3),
    ]


def test_a_larger_group_is_cut_to_what_runs_at_import(reader: LightReader) -> None:
    whole, runtime = (
        reader.rows(cycles(reader, runtime=runtime, repo_id="flask").query) for runtime in (False, True)
    )
    assert {row[COLUMNS.index("amount")] for row in whole} == {20}
    assert runtime == []


def test_run_time_is_about_imports(reader: LightReader) -> None:
    with pytest.raises(UsageError, match="--runtime is about imports"):
        cycles(reader, by="calls", runtime=True)


def test_functions_that_call_each_other(reader: LightReader) -> None:
    assert waste(reader, "calls") == [
        (
            3,
            ("loop_one.round_one", 5, "calls"),
            ("loop_one.round_two", 9, "calls"),
            ("loop_one.round_three", 13, "calls"),
        )
    ]
    # `_calls_itself` and `round_three`, among others.
    (note,) = cycles(reader, by="calls", repo_id="shop").notes
    assert note.endswith("functions that call themselves directly are not counted")


def test_a_row_leads_on(reader: LightReader) -> None:
    rows = next(rows for rows in groups(reader, "imports", "shop").values() if "loop" in rows[0]["symbol"])
    assert [row["target"] for row in rows] == [row["symbol"] for row in (*rows[1:], rows[0])]
    assert [(row["kind"], row["path"], row["relation"], row["confidence"]) for row in rows] == [
        ("MODULE", "shop/waste/loop_one.py", "IMPORTS_NAME", 0.9),
        ("MODULE", "shop/waste/loop_two.py", "IMPORTS_MODULE", 0.9),
        ("MODULE", "shop/waste/loop_three.py", "IMPORTS_MODULE", 0.9),
    ]


def test_no_cycles(reader: LightReader) -> None:
    assert reader.rows(cycles(reader, repo_id="depot").query) == []
    with pytest.raises(UsageError):
        cycles(reader, by="telepathy")  # type: ignore[arg-type]


# The same by transitive closure


def call_graph(reader: LightReader) -> Graph:
    edges = Slice("cpg_edges", edge_kind=("CALL_GRAPH",), repo_id=("flask",))
    return graph_of(reader.rows(Query("SELECT e.src_node_id, e.dst_node_id FROM e", {"e": edges})))


def import_graph(reader: LightReader) -> Graph:
    """Files of the importing modules, and modules; an import of a module by name is of that alone."""
    query = Query(
        "SELECT e.src_node_id, s.node_id, e.edge_kind, e.dst_node_id, t.node_kind FROM e"
        " JOIN s ON s.path = e.path JOIN t ON t.node_id = e.dst_node_id",
        {
            "e": Slice("cpg_edges", edge_kind=("IMPORTS_MODULE", "IMPORTS_NAME"), repo_id=("flask",)),
            "s": Slice("cpg_nodes", node_kind=("MODULE",), repo_id=("flask",)),
            "t": Slice("cpg_nodes", repo_id=("flask",)),
        },
    )
    rows = [row for row in reader.rows(query) if row[4] == "MODULE"]
    by_name = {row[0] for row in rows if row[2] == "IMPORTS_NAME"}
    return graph_of((row[1], row[3]) for row in rows if row[2] == "IMPORTS_NAME" or row[0] not in by_name)


def graph_of(edges: Any) -> Graph:
    graph: Graph = {}
    for start, end in edges:
        graph.setdefault(start, set()).add(end)
        graph.setdefault(end, set())
    return graph


def closed(graph: Graph) -> Graph:
    """What each node reaches, in at least one step."""
    reached = {node: set(steps) for node, steps in graph.items()}
    changed = True
    while changed:
        changed = False
        for known in reached.values():
            before = len(known)
            known.update(*[reached[step] for step in known])
            changed = changed or len(known) > before
    return reached


def circles(graph: Graph) -> set[frozenset[str]]:
    """Sets of more than one node that reach each other."""
    reached = closed(graph)
    found = {frozenset(to for to in steps if node in reached[to]) | {node} for node, steps in reached.items()}
    return {members for members in found if len(members) > 1}


@pytest.mark.parametrize("by", ["imports", "calls"])
def test_flask_has_the_groups_that_its_closure_has(reader: LightReader, by: Any) -> None:
    graph = import_graph(reader) if by == "imports" else call_graph(reader)
    expected = circles(graph)
    found = groups(reader, by, "flask")
    assert Counter(rows[0]["amount"] for rows in found.values()) == Counter(map(len, expected))
    assert expected
    met = set()
    for rows in found.values():
        walk = [row["symbol_id"] for row in rows]
        (members,) = (members for members in expected if set(walk) <= members)
        met.add(members)
        assert len(rows) == len(set(walk))
        assert all(to in graph[node] for node, to in zip(walk, [*walk[1:], walk[0]], strict=True))
    assert met == expected
    sizes = [rows[0]["amount"] for rows in found.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_random_graphs() -> None:
    """Components by closure, and the shortest way around by trying every order of up to six nodes."""
    chance = random.Random(9)
    for _ in range(150):
        names = [f"n{number}" for number in range(chance.randint(1, 6))]
        edges = [(a, b) for a in names for b in names if chance.random() < 0.3]
        graph = {name: {b for a, b in edges if a == name} for name in names}
        found = components(graph)
        assert set(map(frozenset, found)) == circles(graph)
        for members in found:
            walks = [
                walk
                for size in range(2, len(members) + 1)
                for walk in permutations(members, size)
                if walk[0] == min(walk)
                and all(b in graph[a] for a, b in zip(walk, (*walk[1:], walk[0]), strict=True))
            ]
            walk = shortest_cycle(members, graph, {name: name for name in names})
            assert tuple(walk) == min(walks, key=lambda each: (len(each), each))


def test_a_long_chain_needs_no_stack() -> None:
    size = 5_000
    graph = {f"{number:04}": [f"{(number + 1) % size:04}"] for number in range(size)}
    (members,) = components(graph)
    assert len(members) == size
    assert shortest_cycle(members, graph, {name: name for name in graph}) == sorted(graph)
