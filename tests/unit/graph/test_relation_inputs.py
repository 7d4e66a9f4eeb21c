"""What of a file's graph follows from its relations: edges, and what `told` tells of them."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.graph.context import LISTED_KINDS, NAMED_KIND, RELATIONS, Context
from codeanatomy.graph.file_view import READS, Columns, GraphFile, iter_rows
from codeanatomy.graph.relation_inputs import relation_inputs
from codeanatomy.graph.rows import (
    EDGES,
    NODES,
    PROPS,
    PROPS_MAP,
    RELATION_LISTS,
    GraphRows,
    file_rows,
    relation_edge_rows,
)
from support.graph_checks import files_of

LINKS = frozenset(
    name for name, kind in EDGE_KINDS.items() if kind.made_of.of.startswith(f"{RELATION_LISTS}.")
)


def rest(made: GraphRows) -> tuple[Any, ...]:
    """All rows of a file but those of its relations' edges."""
    edges = made.tables[EDGES].to_pylist()
    links = {row["edge_id"] for row in edges if row["edge_kind"] in LINKS}
    others = [row for row in edges if row["edge_id"] not in links]
    props = [
        row
        for name in (PROPS, PROPS_MAP)
        for row in made.tables[name].to_pylist()
        if row["entity_id"] not in links
    ]
    shared = [rows.to_pylist() for rows in made.shared.values()]
    return made.tables[NODES].to_pylist(), others, props, shared


def with_relations(file: GraphFile, rows: Columns) -> GraphFile:
    return GraphFile(file.repo_id, file.file_id, file.path, {**file.tables, RELATIONS: rows})


def test_no_node_is_made_of_relations_alone() -> None:
    assert LINKS
    assert not [kind.name for kind in NODE_KINDS.values() if kind.made_of.of.startswith(f"{RELATION_LISTS}.")]


@pytest.mark.parametrize("profile", ["default", "full"])
def test_links_are_the_edges_of_relations(profile: Any) -> None:
    for file in files_of("requests"):
        made, links = file_rows(file, profile).tables, relation_edge_rows(file, profile)
        edges = [row for row in made[EDGES].to_pylist() if row["edge_kind"] in LINKS]
        assert sorted(links[EDGES].to_pylist(), key=str) == sorted(edges, key=str)
        ids = {row["edge_id"] for row in edges}
        for name in (PROPS, PROPS_MAP):
            of_links = [row for row in made[name].to_pylist() if row["entity_id"] in ids]
            assert sorted(links[name].to_pylist(), key=str) == sorted(of_links, key=str)
        assert not links[NODES].num_rows


@pytest.mark.system
def test_where_the_same_is_told_only_edges_differ() -> None:
    """Cells of relations get the values of others, one at a time: what is not told of them is not used."""
    random = Random(20261116)
    untold: dict[str, int] = {}
    for file in files_of("requests")[:8]:
        rows = file.rows(RELATIONS)
        before = rest(file_rows(file, "full"))
        for column, place in product(READS[RELATIONS], random.sample(range(len(rows["src_id"])), 3)):
            values = list(rows[column])
            values[place] = random.choice(rows[column])
            changed = {**rows, column: values}
            if relation_inputs(changed) == relation_inputs(rows) and values != list(rows[column]):
                untold[column] = untold.get(column, 0) + 1
                assert rest(file_rows(with_relations(file, changed), "full")) == before, (file.path, column)
    # Where a call leads to is such a cell, and how it was found.
    assert untold.keys() >= {"dst_id", "origin", "confidence", "rule_name"}
    assert not untold.keys() & {"src_id", "src_kind", "bstart", "bend", "line"}


@pytest.mark.parametrize("name", ["requests", "flask"])
def test_no_two_relations_of_a_file_are_one_edge(name: str) -> None:
    """Which of them became the edge would depend on their order."""
    for file in files_of(name):
        rows = iter_rows(
            file.rows(RELATIONS), "relation_kind", "src_id", "dst_id", "bstart", "bend", "role", "ordinal"
        )
        edges = [row for row in rows if row[2] is not None]
        assert len(set(edges)) == len(edges), file.path


def test_lists_ask_only_for_relations_that_are_told() -> None:
    [first, *_] = files_of("requests")
    context = Context(first)
    for kind in (*LISTED_KINDS, NAMED_KIND):
        context.relations_of(kind)
    with pytest.raises(ValueError, match="lists may not use relations of kind CALLS"):
        context.relations_of("CALLS")
