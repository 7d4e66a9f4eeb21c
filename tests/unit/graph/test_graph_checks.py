"""Every graph is whole: of all constructs, of a package; and the checks that say so do find what is wrong."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

import pytest

from support.graph_checks import (
    CONSTRUCTS,
    built,
    id_problems_of,
    problems_of,
    sources_of,
    text_problems_of,
)
from support.graph_stage import Graph, graph_of
from support.marks import quick

# Whole graphs


@pytest.mark.parametrize("profile", quick(["full", "default"], 0))
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_the_graphs_of_all_constructs_are_whole(construct: str, profile: Any) -> None:
    graph = built(construct, profile)
    assert problems_of(graph, profile) == []
    assert text_problems_of(graph, sources_of(construct)) == []
    assert id_problems_of(graph, sources_of(construct)) == []


@pytest.mark.parametrize("profile", ["full", "default"])
@pytest.mark.system
def test_the_graph_of_a_package_is_whole(profile: Any) -> None:
    assert problems_of(built("requests", profile), profile) == []


def test_the_source_has_what_nodes_say() -> None:
    assert text_problems_of(built("requests"), sources_of("requests")) == []


def test_ids_are_those_of_a_second_implementation() -> None:
    assert id_problems_of(built("requests"), sources_of("requests")) == []


REPEATED = {
    "properties.py": "class A:\n  @p\n  def f(self): ...\n  @f.setter\n  def f(self, v): ...\n",
    "conditional.py": "if x:\n  def f(): ...\nelse:\n  def f(): ...\n",
    "loop.py": "for i in x:\n  class C:\n    def m(self, y=[lambda: i for _ in x]): ...\n",
    "line.py": "x = [f(lambda: 0) for f in (lambda: 1, lambda: 2)]; y = lambda a=lambda: 0: (lambda: a)\n",
    "finally.py": "try: ...\nfinally:\n  class B:\n    def g(self): return [i for i in (lambda: 1,)]\n",
    "two_names.py": "def f(a, a): ...\n",
    "f_strings.py": 'def f(x=f"{(lambda y: y)(1)}", *, '
    'z=f"""\n{[lambda w: w for w in q]}{(lambda x: x)}"""):\n'
    '    return f"{x!r:>{(lambda: 3)()}}"\n',
    "late.py": "from __future__ import annotations\ndef f(x: (lambda: y)) -> [z for z in w]: ...\n",
}


@pytest.mark.parametrize("path", REPEATED)
def test_ids_where_definitions_repeat_or_are_in_odd_places(path: str) -> None:
    sources = {path: REPEATED[path]}
    graph = graph_of(sources)
    assert problems_of(graph) == []
    assert id_problems_of(graph, sources) == []
    # An id with a span is that of a node that no witness has listed.
    assert not [row["node_id"] for row in graph.nodes if ".@" in row["node_id"]]


@pytest.mark.system
@pytest.mark.parametrize("package", ["commonmark", "flask", "pyflakes", "toolz"])
def test_ids_of_a_package_are_those_of_a_second_implementation(package: str) -> None:
    assert problems_of(built(package)) == []
    assert id_problems_of(built(package), sources_of(package)) == []


def test_every_node_of_the_tree_is_there() -> None:
    expected: Counter[tuple[str, str]] = Counter()
    for path, raw in sources_of("requests").items():
        tree = ast.parse(raw)
        expected.update((path, type(node).__name__) for node in ast.walk(tree))
    nodes = [row for row in built("requests").nodes if row["node_kind"] == "AST_NODE"]
    assert Counter((row["path"], row["subkind"]) for row in nodes) == expected
    assert len(nodes) > 20_000


def test_edges_of_the_tree_are_those_of_cpython() -> None:
    """Every child by its parent's class and field."""
    expected: Counter[tuple[str, str, str, int | None]] = Counter()
    for raw in sources_of("requests").values():
        for node in ast.walk(ast.parse(raw)):
            for field, value in ast.iter_fields(node):
                children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
                expected.update(
                    (type(node).__name__, type(child).__name__, field, index)
                    for index, child in children
                    if isinstance(child, ast.AST)
                )
    nodes = {row["node_id"]: row["subkind"] for row in built("requests").nodes}
    found = Counter(
        (nodes[row["src_node_id"]], nodes[row["dst_node_id"]], row["role"], row["ordinal"])
        for row in built("requests").edges
        if row["edge_kind"] == "AST_PARENT_OF"
    )
    assert found == expected


# The checks themselves


CALLED_TWICE = {"main.py": "def f(x): ...\nf(1)\nf(2)\n"}


def damaged(table: str, kind: str, **cells: Any) -> Graph:
    """A small graph, in which the first row of a kind has other cells; none are all cells of another row."""
    graph = graph_of(CALLED_TWICE)
    tables = {name: [dict(row) for row in rows] for name, rows in graph._asdict().items()}
    column = {"nodes": "node_kind", "edges": "edge_kind", "props": "prop_key"}[table]
    row = next(row for row in tables[table] if row[column] == kind)
    row.update(cells)
    if not cells:
        tables[table].remove(row)
    return Graph(**tables)


@pytest.mark.parametrize(
    ("complaint", "table", "kind", "cells"),
    [
        ("an end is missing", "nodes", "ARGUMENT", {}),
        ("a PARAMETER has none as dst", "edges", "HAS_PARAMETER", {}),
        ("without a required property", "props", "parameter_count", {}),
        ("properties differ", "props", "parameter_count", {"value_int": 7}),
        ("has a value of another type", "props", "parameter_count", {"value_int": None}),
        ("has not one value", "props", "parameter_count", {"value_bool": True}),
        ("parameter_count is json", "props", "parameter_count", {"value_type": "json"}),
        ("a property of nothing", "props", "parameter_count", {"entity_id": "function:x"}),
        ("FUNCTION.other is int", "props", "parameter_count", {"prop_key": "other"}),
        ("FOO is not of profile full", "nodes", "ARGUMENT", {"node_kind": "FOO"}),
        ("ARGUMENT: prefix", "nodes", "ARGUMENT", {"node_id": "arg:x"}),
        ("ARGUMENT: id is not made of", "nodes", "ARGUMENT", {"node_id": "argument:x.000000"}),
        ("ARGUMENT: numbers are not in source order", "nodes", "ARGUMENT", {"bstart": 30, "bend": 31}),
        ("LITERAL: placed always", "nodes", "LITERAL", {"bstart": None, "bend": None}),
        ("ARGUMENT: half a place", "nodes", "ARGUMENT", {"line": None}),
        ("ARGUMENT: its end comes first", "nodes", "ARGUMENT", {"bend": 1}),
        ("ARGUMENT: qualname is not declared", "nodes", "ARGUMENT", {"qualname": "x"}),
        ("ARGUMENT: path of another file", "nodes", "ARGUMENT", {"path": "b.py"}),
        ("ARGUMENT: of another file", "nodes", "ARGUMENT", {"owner_file_id": "file:x"}),
        ("REPOSITORY: owner is not the repository", "nodes", "REPOSITORY", {"owner_file_id": "file:x"}),
        ("cpg_nodes.repo_id is null", "nodes", "ARGUMENT", {"repo_id": None}),
        ("cpg_edges.confidence is null", "edges", "CALLS", {"confidence": None}),
        ("CALLS: confidence 0.8", "edges", "CALLS", {"confidence": 0.8}),
        ("CALLS: nobody says so", "edges", "CALLS", {"rule_name": ""}),
        ("CALLS: edges of the same ends are not numbered", "edges", "CALLS", {"repeat": 1}),
        ("CALLS: ordinal is not declared", "edges", "CALLS", {"ordinal": 1}),
        ("CALLS: half a place", "edges", "CALLS", {"bend": None}),
        ("CALLSITE -> PARAMETER is not allowed", "nodes", "ARGUMENT", {"node_kind": "CALLSITE"}),
    ],
)
def test_the_checks_find_what_is_wrong(complaint: str, table: str, kind: str, cells: dict[str, Any]) -> None:
    found = problems_of(damaged(table, kind, **cells))
    assert any(complaint in problem for problem in found), found


def test_the_checks_find_what_is_there_twice() -> None:
    graph = graph_of(CALLED_TWICE)
    calls = [row for row in graph.edges if row["edge_kind"] == "CALLS"]
    twice = graph._replace(nodes=[*graph.nodes, graph.nodes[0]], edges=[*graph.edges, *calls])
    found = problems_of(twice._replace(props=[*graph.props, graph.props[0]]))
    for complaint in ("node 2 times", "edge 2 times", " twice"):
        assert any(complaint in problem for problem in found), found
    owners = [row for row in graph.edges if row["edge_kind"] == "HAS_PARAMETER"]
    more = [{**row, "ordinal": 5} for row in owners]
    found = problems_of(graph._replace(edges=[*graph.edges, *more]))
    assert any("HAS_PARAMETER: 2 at one dst" in problem for problem in found), found


def test_the_checks_know_profiles() -> None:
    graph = graph_of({"main.py": "x = 1  # why\n"})
    assert "COMMENT is not of profile default" in problems_of(graph, "default")
    assert "HAS_COMMENT is not of profile default" in problems_of(graph, "default")


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("NAME_REF", {"name": "g"}),
        ("PARAMETER", {"bstart": 5}),
        ("FUNCTION", {"line": 2}),
        ("CALLSITE", {"bend": 15}),
    ],
)
def test_the_checks_read_the_source(kind: str, cells: dict[str, Any]) -> None:
    graph = damaged("nodes", kind, **cells)
    assert len(text_problems_of(graph, CALLED_TWICE)) == 1


@pytest.mark.parametrize(
    "kind",
    [
        *("FILE", "MODULE", "CLASS", "FUNCTION", "DOCSTRING", "SCOPE", "CODE_UNIT", "PARAMETER", "BINDING"),
        *("AST_NODE", "CALLSITE", "IMPORT_ALIAS", "LITERAL", "NAME_REF"),
    ],
)
def test_ids_of_another_definition_are_found(kind: str) -> None:
    sources = {"main.py": 'import a\nclass A:\n    """Doc."""\n    def f(self, x=lambda: a()): return x(1)\n'}
    graph = graph_of(sources)
    assert id_problems_of(graph, sources) == []
    row = next(row for row in graph.nodes if row["node_kind"] == kind)
    row["node_id"] = row["node_id"].replace(row["node_id"].partition(":")[2][:16], "-" * 16)
    assert any(f"main.py: {kind}: " in problem for problem in id_problems_of(graph, sources))


@pytest.mark.parametrize("kind", ["AST_NODE", "CALLSITE", "LITERAL"])
def test_numbers_in_another_order_are_found(kind: str) -> None:
    sources = {"main.py": "f(1)\nprint(2)\n"}
    graph = graph_of(sources)
    first, second, *_ = (row for row in graph.nodes if row["node_kind"] == kind and row["bstart"] is not None)
    first["node_id"], second["node_id"] = second["node_id"], first["node_id"]
    assert any(f"main.py: {kind}: " in problem for problem in id_problems_of(graph, sources))


@pytest.mark.parametrize(
    ("complaint", "prefix"),
    [
        ("OWNS_SCOPE: ends of two definitions", "scope"),
        ("HAS_PARAMETER: ends of two definitions", "parameter"),
        ("HAS_CODE_UNIT: no code with the key of the definition", "code"),
    ],
)
def test_ends_of_two_definitions_are_found(complaint: str, prefix: str) -> None:
    """As if two lambdas of one line had been mixed up."""
    graph = graph_of({"main.py": "x = (lambda a: 1), (lambda a: 2)\n"})
    assert problems_of(graph) == []
    keys = [row["node_id"].partition(":")[2] for row in graph.nodes if row["node_kind"] == "FUNCTION"]
    other = dict(zip(keys, keys[::-1], strict=True))
    for row in graph.edges:
        for end in ("src_node_id", "dst_node_id"):
            head, _, key = row[end].partition(":")
            if head == prefix:
                row[end] = f"{head}:{other.get(key[:16], key[:16])}{key[16:]}"
    assert any(complaint in problem for problem in problems_of(graph))
