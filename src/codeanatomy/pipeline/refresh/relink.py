"""Find relations of otherwise unchanged files that have new targets, and the edges they become.

    links = relinked(before, now, owners)  # rows of relations_v1, of several files
    links.removed, links.added             # rows that are on one side only
    edges = relinked_edges(links, owners, "default")
    edges.owners                           # the files that differ in nothing but edges
    edges.removed                          # ids of edges
    edges.added["cpg_edges"]               # rows, with their properties in other tables

The edge of a relation depends at most on relations of the same source and kind, so only sources with a
relation that differs are compared. Tests: `tests/unit/pipeline/test_relink.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, to_python
from codeanatomy.catalog.kinds import Profile
from codeanatomy.delta.read.duck import lookup_connection, translate_errors
from codeanatomy.graph.file_view import Columns, GraphFile
from codeanatomy.graph.relation_inputs import RELATION, relation_inputs
from codeanatomy.graph.rows import EDGES, PROPS, PROPS_MAP, relation_edge_rows
from codeanatomy.pipeline.refresh.file_tables import by_owner
from codeanatomy.relate.relation_rows import RELATIONS

# By table of the graph, the column that has the id of an edge.
EDGE_IDS: Mapping[str, str] = {EDGES: "edge_id", PROPS: "entity_id", PROPS_MAP: "entity_id"}
ONE_SIDED = {"removed": "FROM before EXCEPT FROM now", "added": "FROM now EXCEPT FROM before"}
SOURCES = """
SELECT {side}.* FROM {side} SEMI JOIN (
  SELECT owner_file_id, src_id FROM removed UNION SELECT owner_file_id, src_id FROM added
) USING (owner_file_id, src_id) ORDER BY relation_id
"""


class Relinked(NamedTuple):
    """Relations of files before and now: those that differ, and all of the same sources."""

    # The files that were compared.
    owners: frozenset[str]
    removed: pa.Table
    added: pa.Table
    before: pa.Table
    now: pa.Table


class RelinkedEdges(NamedTuple):
    """Edges that are added and removed, for files that differ in nothing else."""

    owners: frozenset[str]
    removed: pa.Array
    added: dict[str, pa.Table]


_NONE = arrow_schema(catalog.table(RELATIONS)).empty_table()
NOTHING = Relinked(frozenset(), _NONE, _NONE, _NONE, _NONE)


def relinked(before: pa.Table, now: pa.Table, owners: frozenset[str]) -> Relinked:
    """Compare all relations of some files before and now."""
    with translate_errors(), lookup_connection() as database:
        database.register("before", before)
        database.register("now", now)
        for name, query in ONE_SIDED.items():
            database.register(name, database.sql(query).to_arrow_table())
        links = [
            database.sql(query).to_arrow_table().cast(arrow_schema(catalog.table(RELATIONS)))
            for query in (
                "FROM removed ORDER BY relation_id",
                "FROM added ORDER BY relation_id",
                SOURCES.format(side="before"),
                SOURCES.format(side="now"),
            )
        ]
    return Relinked(owners, *links)


def relinked_edges(links: Relinked, owners: frozenset[str], profile: Profile) -> RelinkedEdges:
    """Return the edges that are added and removed, for compared files that differ in nothing else."""
    before, now = (by_owner(catalog.table(RELATIONS), rows) for rows in (links.before, links.now))
    added: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
    removed: list[str] = []
    owners &= links.owners
    whole: set[str] = set()
    for owner in sorted(owners & (before.keys() | now.keys())):
        old, new = (_file(owner, side.get(owner)) for side in (before, now))
        if relation_inputs(old.rows(RELATIONS)) != relation_inputs(new.rows(RELATIONS)):
            whole.add(owner)
            continue
        was, becomes = (relation_edge_rows(file, profile) for file in (old, new))
        same = _same_edges(was, becomes)
        removed += [edge for edge in to_python(was[EDGES].column("edge_id")) if edge not in same]
        for name, column in EDGE_IDS.items():
            ids = to_python(becomes[name].column(column))
            added[name].append(becomes[name].filter(pa.array([each not in same for each in ids], pa.bool_())))
    rows = {name: pa.Table.from_batches(added[name], arrow_schema(catalog.table(name))) for name in EDGE_IDS}
    return RelinkedEdges(owners - whole, pa.array(removed, pa.string()), rows)


def _file(file_id: str, rows: pa.Table | None) -> GraphFile:
    """Make a file view with relations only."""
    if rows is None:
        return GraphFile("", file_id, "", {})
    columns: Columns = {name: to_python(rows.column(name).combine_chunks()) for name in RELATION}
    repo_id, path = (rows.column(name)[0].as_py() for name in ("repo_id", "path"))
    return GraphFile(repo_id, file_id, path, {RELATIONS: columns})


def _same_edges(was: Mapping[str, pa.RecordBatch], becomes: Mapping[str, pa.RecordBatch]) -> frozenset[str]:
    """Return the edges that are equal, properties included."""
    old, new = map(_by_edge, (was, becomes))
    return frozenset(edge for edge, rows in new.items() if old.get(edge) == rows)


def _by_edge(tables: Mapping[str, pa.RecordBatch]) -> dict[str, list[dict[str, Any]]]:
    links: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for name in (EDGES, PROPS):
        for row in tables[name].to_pylist():
            links[row[EDGE_IDS[name]]].append(row)
    return links
