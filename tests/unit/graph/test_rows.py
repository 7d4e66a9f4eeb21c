"""From facts to rows: profiles, order, properties, and what files say of the repository together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis.strategies import lists, sampled_from, tuples

from codeanatomy import catalog
from codeanatomy.arrow import with_texts
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, EdgeKind, NodeKind
from codeanatomy.catalog.kinds.spec import Facts
from codeanatomy.file_view import FileView
from codeanatomy.graph import rows as graph_rows
from codeanatomy.graph.merge import merge_shared_rows
from codeanatomy.graph.rows import (
    EDGES,
    NODES,
    PROPS,
    PROPS_MAP,
    REPEAT_KEY,
    TABLES,
    kinds_of,
    number_edges,
)
from codeanatomy.graph.table_rows import schema_of
from support.graph_checks import Row, View, built, files_of, graph_from, problems_of, sources_of
from support.graph_stage import FileRows, Graph, graph_files, graph_of, whole_graph, whole_graphs
from support.graph_stage import rows_of as table_rows

SMALL = {
    "pkg/__init__.py": "from pkg.one import f  # why\nimport os\n",
    "pkg/one.py": "def f(x: int | None, y: dict[str, str]) -> list[int]: return len(os.sep)\nimport os\n",
    "pkg/two.py": "from typing import Optional\nimport os.path\na: Optional[int] = os.path.join('a')\nf()\n",
}
Tables = Mapping[str, pa.RecordBatch]
PLACE = graph_rows.RowOwner("test", "file:f", "f.py")


def files() -> list[FileView]:
    return graph_files(SMALL, {}, "test")


def rows_of(tables: Tables) -> dict[str, list[Row]]:
    return {name: table_rows(name, [tables[name]]) for name in TABLES}


# Profiles


def test_the_kinds_of_profiles() -> None:
    assert kinds_of("full") == (tuple(NODE_KINDS.values()), tuple(EDGE_KINDS.values()))
    nodes, edges = kinds_of("default")
    left_out = {*NODE_KINDS, *EDGE_KINDS} - {kind.name for kind in nodes} - {kind.name for kind in edges}
    assert left_out == {
        "INSTRUCTION",
        "SCIP_OCCURRENCE",
        "COMMENT",
        "HAS_INSTRUCTION",
        "HAS_OCCURRENCE",
        "OCCURRENCE_OF",
        "HAS_COMMENT",
    }


def test_a_profile_leaves_out_kinds_and_nothing_else() -> None:
    full, default = built("requests"), built("requests", "default")
    nodes = [row for row in full.nodes if "default" in NODE_KINDS[row["node_kind"]].profiles]
    assert default.nodes == nodes
    ids = {row["node_id"] for row in nodes}
    edges = [
        row
        for row in full.edges
        if "default" in EDGE_KINDS[row["edge_kind"]].profiles
        and {row["src_node_id"], row["dst_node_id"]} <= ids
    ]
    assert default.edges == edges
    assert len(edges) < len(full.edges)


# Rows


def test_rows_have_the_columns_of_their_tables() -> None:
    for file in files():
        made = whole_graph(file)
        for tables in (made.tables, made.shared):
            assert tables.keys() == set(TABLES)
            for name in TABLES:
                assert tables[name].schema.equals(schema_of(name))
                assert tables[name].schema.names == list(catalog.table(name).column_names)


@pytest.mark.parametrize("limit", [1, 3000, graph_rows.BATCH_ROWS])
def test_files_that_are_converted_together_have_the_rows_of_each(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_rows, "BATCH_ROWS", limit)
    some = [*files(), *files_of("requests")[:6]]
    for file, made in zip(some, whole_graphs(some), strict=True):
        alone = whole_graph(file)
        assert made.keys == alone.keys
        for name in TABLES:
            assert with_texts(made.tables[name]).equals(with_texts(alone.tables[name]))
            assert with_texts(made.shared[name]).equals(with_texts(alone.shared[name]))


def test_rows_are_in_the_order_of_their_table() -> None:
    made = [whole_graph(file) for file in [*files(), *files_of("requests")[:4]]]
    for tables in [*(one.tables for one in made), merge_shared_rows(one.shared for one in made)]:
        for name in TABLES:
            table = catalog.table(name)
            keys = [key for key in (*table.ordering, *table.primary_key) if key in table.column_names]
            found = [tuple(ordered(row[key]) for key in keys) for row in tables[name].to_pylist()]
            assert found == sorted(found), name


def ordered(value: Any) -> tuple[bool, Any]:
    """Nulls first."""
    return (value is not None, value if value is not None else 0)


def test_no_row_comes_twice() -> None:
    """`os` is imported by all, two unions are one type, and the module is told of by every package."""
    graph = graph_of(SMALL)
    for rows, key in ((graph.nodes, "node_id"), (graph.edges, "edge_id")):
        assert len({row[key] for row in rows}) == len(rows)
    view = View(graph)
    assert [row["qualname"] for row in view.all("PACKAGE")] == ["pkg"]
    assert view.one("EXTERNAL_MODULE", "os")
    [union] = view.all("TYPE", subkind="union")
    assert len(view.into("HAS_TYPE", union)) == 2


def test_facts_that_come_twice_are_one_row() -> None:
    told = {"node_id": ["a", "b", "a"], "name": ["first", "x", "second"], "parameter_count": [1, 2, 3]}
    tables = made_of({"functions": told}, NODE_KINDS["FUNCTION"])
    assert [(row["node_id"], row["name"]) for row in tables[NODES]] == [("a", "first"), ("b", "x")]
    assert [(row["entity_id"], row["value_int"]) for row in tables[PROPS]] == [("a", 1), ("b", 2)]


def test_an_edge_needs_both_ends() -> None:
    told = {"src_id": ["a", None, "b", "a"], "dst_id": ["b", "b", None, "b"]}
    tables = made_of({"contained": told}, EDGE_KINDS["CONTAINS"])
    assert [(row["src_node_id"], row["dst_node_id"]) for row in tables[EDGES]] == [("a", "b")]
    [row] = tables[EDGES]
    assert (row["origin"], row["rule_name"], row["confidence"]) == ("syntax", "containment", 1.0)
    assert (row["repo_id"], row["owner_file_id"], row["path"]) == ("test", "file:f", "f.py")


def test_edges_that_differ_in_place_role_or_number_are_several() -> None:
    told = {
        "src_id": ["a"] * 5,
        "dst_id": ["b"] * 5,
        "role": ["x", "y", "x", "x", "x"],
        "ordinal": [0, 0, 1, 0, 0],
        "bstart": [0, 0, 0, 1, 0],
        "bend": [2, 2, 2, 2, 2],
    }
    kind = msgspec.structs.replace(EDGE_KINDS["HAS_ARGUMENT"], made_of=Facts("some"))
    edges = made_of({"some": told}, kind)[EDGES]
    numbers = {(row["role"], row["ordinal"], row["bstart"]): row["repeat"] for row in edges}
    assert numbers == {("x", 0, 0): 0, ("x", 0, 1): 1, ("x", 1, 0): 2, ("y", 0, 0): 3}
    assert len({row["edge_id"] for row in edges}) == 4


def test_null_comes_before_every_role_ordinal_and_place() -> None:
    told = {
        "role": ["", None, "a", None, None, None],
        "ordinal": [None, 0, None, None, None, None],
        "bstart": [None, None, None, 0, None, 0],
        "bend": [None, None, None, 5, None, 3],
    }
    assert number_edges(["a"] * 6, ["b"] * 6, told) == (range(6), [4, 3, 5, 2, 0, 1])
    assert number_edges(["a"] * 2, ["b"] * 2, {"role": [None, ""]}) == (range(2), [0, 1])


def test_edges_of_other_ends_have_the_number_0() -> None:
    """Most lists are such, whatever their order; the facts are not looked at."""
    assert number_edges([], [], {}) == (range(0), None)
    assert number_edges(["a", "b"], ["c", "c"], {}) == (range(2), None)
    assert number_edges(["a", "a", "b", "b"], ["c", "d", "c", "d"], {}) == (range(4), None)
    assert number_edges(["a", "a", None, "b"], ["c", "c", "c", None], {}) == ([0], None)


@given(
    lists(
        tuples(
            *(sampled_from(values) for values in (["a", "b", None], ["a", "b"])),
            *(sampled_from(values) for values in ([None, "", "x"], [None, 0, 1], [None, 0], [None, 7])),
        ),
        max_size=12,
    )
)
def test_edges_are_numbered_as_if_they_were_sorted(rows: list[tuple[Any, ...]]) -> None:
    sources, targets, *others = map(list, zip(*rows, strict=True)) if rows else [[] for _ in range(6)]
    kept, repeats = number_edges(sources, targets, dict(zip(REPEAT_KEY, others, strict=True)))
    unique = {row for row in rows if None not in row[:2]}
    assert [rows[index] for index in kept] == list(dict.fromkeys(row for row in rows if row in unique))
    ranked = sorted(unique, key=lambda row: [ordered(value) for value in row])
    numbers = {row: sum(row[:2] == other[:2] for other in ranked[:at]) for at, row in enumerate(ranked)}
    assert [0 if repeats is None else repeats[at] for at in kept] == [numbers[rows[at]] for at in kept]


def test_rows_of_kinds_with_other_columns_are_aligned() -> None:
    """A column that some kinds lack is null in their rows, whether they come first or last."""
    facts = {
        "contained": {"src_id": ["a", "c"], "dst_id": ["b", "d"]},
        "some": {"src_id": ["x"], "dst_id": ["y"], "role": ["r"], "bstart": [0], "bend": [1]},
    }
    some = msgspec.structs.replace(EDGE_KINDS["HAS_ARGUMENT"], made_of=Facts("some"))
    for kinds in ((EDGE_KINDS["CONTAINS"], some), (some, EDGE_KINDS["CONTAINS"])):
        edges = rows_of(rows_from(facts, (), kinds))[EDGES]
        cells = [(row["src_node_id"], row["role"], row["bstart"], row["repeat"]) for row in edges]
        assert cells == [("a", None, None, 0), ("c", None, None, 0), ("x", "r", 0, 0)]


def made_of(facts: Mapping[str, Any], kind: NodeKind | EdgeKind) -> dict[str, list[Row]]:
    """The rows of one kind."""
    nodes = (kind,) if isinstance(kind, NodeKind) else ()
    edges = (kind,) if isinstance(kind, EdgeKind) else ()
    return rows_of(rows_from(facts, nodes, edges))


def rows_from(
    facts: Mapping[str, Any],
    nodes: Sequence[NodeKind],
    edges: Sequence[EdgeKind],
    owner: graph_rows.RowOwner = PLACE,
) -> Tables:
    rows = graph_rows.FactRows(nodes, edges, graph_rows.OWN)
    rows.add(facts, owner)
    [tables] = rows.batches()
    return tables


@pytest.mark.parametrize(
    "fields", [{"name": "no_such_field"}, {"parameter_count": "no_such_field"}], ids=["column", "property"]
)
def test_a_field_that_no_list_has_is_an_error(fields: dict[str, str]) -> None:
    kind = msgspec.structs.replace(NODE_KINDS["FUNCTION"], made_of=Facts("functions", fields))
    with pytest.raises(KeyError, match="no_such_field"):
        made_of({"functions": {"node_id": ["a"], "name": ["f"]}}, kind)


def test_values_of_another_type_are_refused() -> None:
    told = {"node_id": ["a"], "name": ["f"], "parameter_count": ["many"]}
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        made_of({"functions": told}, NODE_KINDS["FUNCTION"])


def test_nothing_makes_no_rows() -> None:
    assert made_of({}, NODE_KINDS["FUNCTION"]) == {name: [] for name in TABLES}
    assert made_of({"functions": {}}, NODE_KINDS["FUNCTION"]) == {name: [] for name in TABLES}
    assert rows_of(merge_shared_rows([])) == {name: [] for name in TABLES}


def test_properties_are_kept_with_their_types() -> None:
    """One row for each, and one for all of an entity; null is no property."""
    told = {
        "node_id": ["a", "b"],
        "flags": [3, 4],
        "is_generator": [True, False],
        "control_cut": [None, True],
    }
    tables = made_of({"units": told}, NODE_KINDS["CODE_UNIT"])
    assert sorted(
        (row["entity_id"], row["prop_key"], row["value_type"], row["value_int"], row["value_bool"])
        for row in tables[PROPS]
    ) == [
        ("a", "flags", "int", 3, None),
        ("a", "is_generator", "bool", None, True),
        ("b", "control_cut", "bool", None, True),
        ("b", "flags", "int", 4, None),
        ("b", "is_generator", "bool", None, False),
    ]
    assert [
        (row["entity_id"], row["node_kind"], [prop["prop_key"] for prop in row["props"]])
        for row in tables[PROPS_MAP]
    ] == [
        ("a", "CODE_UNIT", ["flags", "is_generator"]),
        ("b", "CODE_UNIT", ["control_cut", "flags", "is_generator"]),
    ]


def test_properties_of_edges_are_told_apart() -> None:
    told = {"src_id": ["a"], "dst_id": ["b"], "cut": ["too many"], "confidence": [0.5], "origin": ["values"]}
    told |= {"rule_name": ["some"]}
    kind = msgspec.structs.replace(EDGE_KINDS["CALLS"], made_of=Facts("calls"))
    tables = made_of({"calls": told}, kind)
    [edge], [prop] = tables[EDGES], tables[PROPS]
    assert (prop["entity_kind"], prop["entity_id"], prop["node_kind"]) == ("edge", "CALLS;a;b", None)
    assert edge["edge_id"] == "CALLS;a;b"
    assert (edge["confidence"], edge["origin"]) == (0.5, "values")


def test_a_property_names_the_number_of_its_edge() -> None:
    told = {"src_id": ["a"] * 2, "dst_id": ["b"] * 2, "role": ["x", None], "cut": ["too many", None]}
    kind = msgspec.structs.replace(EDGE_KINDS["CALLS"], made_of=Facts("calls"))
    assert [row["entity_id"] for row in made_of({"calls": told}, kind)[PROPS]] == ["CALLS;a;b;1"]


def test_an_edge_is_as_sure_as_its_facts_say() -> None:
    told = {"src_id": ["a"], "dst_id": ["b"], "confidence": [0.5], "origin": ["x"], "rule_name": ["y"]}
    [edge] = made_of({"contained": told}, EDGE_KINDS["CONTAINS"])[EDGES]
    assert (edge["origin"], edge["rule_name"], edge["confidence"]) == ("x", "y", 0.5)


# The repository


@cache
def shared() -> list[Tables]:
    return [whole_graph(file).shared for file in [*files(), *files_of("requests")[:6]]]


def test_the_order_of_files_does_not_matter() -> None:
    told = shared()
    expected = rows_of(merge_shared_rows(told))
    for seed in range(3):
        mixed = list(told)
        Random(seed).shuffle(mixed)
        assert rows_of(merge_shared_rows(mixed)) == expected


@pytest.mark.parametrize("size", [1, 2, 5])
def test_how_files_are_split_does_not_matter(size: int) -> None:
    told = shared()
    parts = [merge_shared_rows(told[start : start + size]) for start in range(0, len(told), size)]
    assert rows_of(merge_shared_rows(parts)) == rows_of(merge_shared_rows(told))


def test_a_repository_is_merged_with_itself() -> None:
    once = merge_shared_rows(shared())
    assert rows_of(merge_shared_rows([once, once])) == rows_of(once)


def test_edges_that_files_know_some_of_are_numbered_together() -> None:
    def contribution(*ordinals: int) -> Tables:
        ends = {"src_id": ["a"] * len(ordinals), "dst_id": ["b"] * len(ordinals), "ordinal": ordinals}
        owner = graph_rows.RowOwner("test", None, None)
        return rows_from({"type_arguments": ends}, (), (EDGE_KINDS["TYPE_ARGUMENT"],), owner)

    for parts in (([0, 2], [1]), ([2], [1, 0], [1])):
        merged = rows_of(merge_shared_rows(contribution(*each) for each in parts))[EDGES]
        assert [(row["ordinal"], row["repeat"]) for row in merged] == [(0, 0), (1, 1), (2, 2)]


def test_edges_of_the_repository_have_no_properties() -> None:
    """Which would name numbers that merging changes."""
    assert [kind.name for kind in EDGE_KINDS.values() if kind.owner != "file" and kind.props] == []


def test_files_know_different_parts() -> None:
    """One file imports a module by its name, another only uses what is in it."""
    names = ("pkg/__init__.py", "pkg/mod.py")
    assert [row["subkind"] for row in packages(*names)] == ["regular"]
    assert [row["subkind"] for row in packages(*reversed(names))] == ["regular"]
    assert [row["subkind"] for row in packages("pkg/mod.py")] == ["namespace"]


def packages(*paths: str) -> list[Row]:
    return View(graph_of(dict.fromkeys(paths, ""))).all("PACKAGE")


def test_what_is_shared_is_owned_by_no_file() -> None:
    graph = graph_of(SMALL)
    kinds = {row["node_kind"] for row in graph.nodes if row["owner_file_id"] is None}
    assert kinds == {"REPOSITORY", "PACKAGE", "EXTERNAL_MODULE", "QUALIFIED_NAME", "TYPE"}
    edges = {row["edge_kind"] for row in graph.edges if row["owner_file_id"] is None}
    assert edges == {"CONTAINS", "TYPE_ARGUMENT"}


def test_what_a_file_owns_does_not_depend_on_what_other_files_are_graphed() -> None:
    alone = [whole_graph(file) for file in files()]
    together = graph_from(files())
    own = [row for made in alone for row in made.tables[NODES].to_pylist()]
    assert own == [row for row in together.nodes if row["owner_file_id"] is not None]


# The same again


@pytest.mark.system
def test_two_runs_give_the_same_rows() -> None:
    assert graph_of(SMALL) == graph_of(SMALL)
    some = dict(list(sources_of("requests").items())[:5])
    runs = [graph_files(some, {}, "requests") for _ in range(2)]
    for one, other in zip(*runs, strict=True):
        assert same(whole_graph(one), whole_graph(other))


def same(one: FileRows, other: FileRows) -> bool:
    return all(
        with_texts(one.tables[name]).equals(with_texts(other.tables[name]))
        and with_texts(one.shared[name]).equals(with_texts(other.shared[name]))
        for name in TABLES
    )


def test_the_order_in_which_files_are_found_does_not_matter() -> None:
    def in_order(graph: Graph) -> list[list[str]]:
        return [sorted(map(repr, rows)) for rows in graph]

    backwards = dict(reversed(SMALL.items()))
    assert in_order(graph_of(backwards)) == in_order(graph_of(SMALL))


def test_ids_are_of_the_repository_and_the_path() -> None:
    """Where it lies on the disk is nowhere told; another repository has other nodes."""
    one, other = graph_of(SMALL), graph_of(SMALL, repo_id="other")
    assert not {row["node_id"] for row in one.nodes} & {row["node_id"] for row in other.nodes}
    moved = graph_of({f"src/{path}": text for path, text in SMALL.items()})
    assert {row["qualname"] for row in moved.nodes} == {row["qualname"] for row in one.nodes}
    assert problems_of(other) == problems_of(moved) == []


def test_a_change_of_one_file_leaves_the_nodes_of_others() -> None:
    changed = {**SMALL, "pkg/two.py": "x = 1\n" + SMALL["pkg/two.py"]}
    rows = [
        {row["node_id"]: row for row in graph.nodes if row["path"] not in (None, "pkg/two.py")}
        for graph in (graph_of(SMALL), graph_of(changed))
    ]
    assert rows[0] == rows[1]
