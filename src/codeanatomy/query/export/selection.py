"""Select the nodes and edges to export, and read their rows batch by batch.

    chosen = whole(("CALL_GRAPH",))                         # all such edges, and all nodes of kinds they join
    chosen = around(reader, symbol, (), hops=2)             # what is within two steps of a symbol
    with open_database() as database:
        nodes, edges = read(reader, database, chosen, props=True)

Kinds of nodes and of edges may be chosen. Only kinds of edges: with all nodes of the kinds that they may
join. Only kinds of nodes: with all edges between such nodes. No edge is exported without both of its nodes.

The order is by kind, then by place, then by id. Large kinds are read by a statement each, so that DuckDB
sorts one at a time, on disk if it has to. Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import duckdb
from msgspec import Struct

from codeanatomy.catalog.kinds import EDGE_KINDS, KINDS, NODE_KINDS
from codeanatomy.errors import UnknownName
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Reader, Slice, of_repository
from codeanatomy.query.export.rows import EDGES, NODES, Batch, ExportRows
from codeanatomy.query.walks.reachability import MAX_REACHED, End, neighbours

# Edges around a symbol that are followed by default: definitions and uses, not syntax or instructions.
NEAR = (
    "CALL_GRAPH",
    "CONTAINS",
    "DECORATES",
    "HAS_PARAMETER",
    "IMPORTS_MODULE",
    "IMPORTS_NAME",
    "INHERITS",
    "INSTANTIATES",
    "OVERRIDES",
    "REFERS_TO",
    "RE_EXPORTS",
)
# Edges that a picture shows.
DRAWN = ("CALL_GRAPH", "CONTAINS", "INHERITS", "INSTANTIATES", "OVERRIDES", "RE_EXPORTS")
FETCHED = 5_000
# Up to this number, ids are looked up in the table of properties; for more, all of it is read.
LOOKED_UP = 1_000
# Most rows of the kinds that one statement reads together; a larger kind is read on its own.
SORTED = 200_000
# Memory of DuckDB; beyond it, DuckDB sorts on disk.
MEMORY = "1GB"


class Chosen(Struct, frozen=True):
    """The nodes and edges to export."""

    node_kinds: tuple[str, ...]
    edge_kinds: tuple[str, ...]
    repo_id: str | None = None
    # Steps from the focus by node: less than 0 against the edges. Without it, all nodes of the kinds.
    steps: Mapping[str, int] | None = None
    notes: tuple[str, ...] = ()


class Walk(Struct, frozen=True):
    """Which edges and nodes a search from the focus may visit, and how far it goes."""

    edge_kinds: tuple[str, ...]
    # Prefixes of the ids of nodes that may be visited.
    prefixes: frozenset[str]
    hops: int


def whole(kinds: Collection[str], repo_id: str | None = None) -> Chosen:
    """Select all nodes and edges of some kinds, or of every kind."""
    nodes, edges = split_kinds(kinds)
    if not nodes:
        nodes = _joined(edges) if edges else tuple(NODE_KINDS)
    if not edges:
        edges = tuple(name for name, kind in EDGE_KINDS.items() if any(map(_between(nodes), kind.ends)))
    return Chosen(tuple(sorted(nodes)), tuple(sorted(edges)), repo_id)


def around(
    reader: Reader, focus: Symbol, kinds: Collection[str], hops: int, *, straight: bool = False
) -> Chosen:
    """Select what is within some steps of a symbol, in both directions.

    `straight` goes on in the direction of the first step: to callers of callers and callees of callees, but
    not to other callers of a callee.
    """
    nodes, edges = split_kinds(kinds)
    walk = Walk(
        edges or (DRAWN if straight else NEAR),
        frozenset(NODE_KINDS[name].prefix for name in nodes or NODE_KINDS),
        hops,
    )
    if straight:
        steps, complete = _search_each_direction(reader, focus.ids, walk)
    else:
        steps, complete = _search(reader, focus.ids, walk, ("src", "dst"))
    reached = set(map(_prefix, steps))
    return Chosen(
        tuple(sorted(name for name, kind in NODE_KINDS.items() if kind.prefix in reached)),
        tuple(sorted(walk.edge_kinds)),
        focus.repo_id,
        steps,
        () if complete else (f"stopped near {MAX_REACHED:,} nodes: take fewer --hops or --kinds",),
    )


def split_kinds(kinds: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split names into kinds of nodes and kinds of edges; raise UnknownName."""
    for name in kinds:
        if name not in KINDS:
            raise UnknownName("kind", name, KINDS)
    return tuple(k for k in kinds if k in NODE_KINDS), tuple(k for k in kinds if k in EDGE_KINDS)


def read(
    reader: LightReader, database: duckdb.DuckDBPyConnection, chosen: Chosen, *, props: bool
) -> tuple[ExportRows, ExportRows]:
    """The nodes and the edges, in their order; the nodes have to be read first."""
    database.execute(f"SET memory_limit = '{MEMORY}'")
    if chosen.steps is not None:
        database.execute("CREATE TEMP TABLE near AS SELECT unnest(?) AS id", [sorted(chosen.steps)])
    node_props = [prop for name in chosen.node_kinds for prop in NODE_KINDS[name].props] if props else ()
    edge_props = [prop for name in chosen.edge_kinds for prop in EDGE_KINDS[name].props] if props else ()
    node_groups = _groups(reader, chosen, "cpg_nodes", "node_kind", chosen.node_kinds)
    edge_groups = _groups(reader, chosen, "cpg_edges", "edge_kind", chosen.edge_kinds)
    node_queries = (_nodes(chosen, kinds, props) for kinds in node_groups)
    edge_queries = (_edges(chosen, kinds, props) for kinds in edge_groups)
    return (
        ExportRows(NODES, node_props, _batches(reader, database, node_queries)),
        ExportRows(EDGES, edge_props, _batches(reader, database, edge_queries)),
    )


def _groups(
    reader: LightReader, chosen: Chosen, table: str, column: str, kinds: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Kinds that one statement reads: all, for a focus, else as many as have not too many rows together."""
    if chosen.steps is not None:
        yield kinds
        return
    group, rows = list[str](), 0
    for name in kinds:
        files = reader.files(of_repository(table, chosen.repo_id, **{column: (name,)}))
        size = sum(SORTED if file.rows is None else file.rows for file in files)
        if group and rows + size > SORTED:
            yield tuple(group)
            group, rows = [], 0
        group.append(name)
        rows += size
    if group:
        yield tuple(group)


def _nodes(chosen: Chosen, kinds: tuple[str, ...], props: bool) -> Query:
    relations = {"n": of_repository("cpg_nodes", chosen.repo_id, node_kind=kinds)}
    having = tuple(name for name in kinds if NODE_KINDS[name].props) if props else ()
    few = {"entity_id": tuple(chosen.steps)} if chosen.steps and len(chosen.steps) <= LOOKED_UP else {}
    if having:
        relations["p"] = of_repository(
            "cpg_props_map", chosen.repo_id, entity_kind=("node",), node_kind=having, **few
        )
    conditions = [] if chosen.steps is None else ["n.node_id IN (SELECT id FROM near)"]
    order = ("node_kind", "repo_id", "path", "bstart", "node_id")
    return _query("n", "node_id", [column.name for column in NODES], relations, conditions, order)


def _edges(chosen: Chosen, kinds: tuple[str, ...], props: bool) -> Query:
    relations = {"e": of_repository("cpg_edges", chosen.repo_id, edge_kind=kinds)}
    if props and any(EDGE_KINDS[name].props for name in kinds):
        relations["p"] = of_repository("cpg_props_map", chosen.repo_id, entity_kind=("edge",))
    conditions = []
    if chosen.steps is not None:
        conditions = [f"e.{end}_node_id IN (SELECT id FROM near)" for end in ("src", "dst")]
    elif not set(_joined(kinds)) <= set(chosen.node_kinds):
        relations["n"] = of_repository("cpg_nodes", chosen.repo_id, node_kind=chosen.node_kinds)
        conditions = [f"e.{end}_node_id IN (SELECT node_id FROM n)" for end in ("src", "dst")]
    order = ("edge_kind", "repo_id", "path", "bstart", "src_node_id", "dst_node_id", "repeat")
    return _query("e", "edge_id", [column.name for column in EDGES], relations, conditions, order)


def _query(
    rows: str,
    key: str,
    columns: Sequence[str],
    relations: Mapping[str, Slice],
    conditions: Sequence[str],
    order: tuple[str, ...],
) -> Query:
    """Rows with their properties, if those are among the relations."""
    names = ", ".join(f"{rows}.{name}" for name in columns)
    having = "p" in relations
    joined = f" LEFT JOIN p ON p.entity_id = {rows}.{key}" if having else ""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Query(
        f"SELECT {names}, {'p.props' if having else 'NULL'} AS props FROM {rows}{joined}{where}",
        relations,
        order=order,
    )


def _batches(
    reader: LightReader, database: duckdb.DuckDBPyConnection, queries: Iterable[Query]
) -> Iterator[Batch]:
    for query in queries:
        # Rows are made while they are fetched; those that are not fetched yet are DuckDB's.
        cursor = database.execute(query.text(reader.relation))
        while batch := cursor.fetchmany(FETCHED):
            yield [(*row[:-1], _properties(row[-1])) if row[-1] else row for row in batch]


def _properties(stored: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["prop_key"]: each[f"value_{each['value_type']}"] for each in stored}


def _joined(edges: Iterable[str]) -> tuple[str, ...]:
    """The kinds of nodes that edges of some kinds may join."""
    ends = chain.from_iterable(EDGE_KINDS[name].ends for name in edges)
    return tuple(sorted({kind for each in ends for kind in (*each.src, *each.dst)}))


def _between(nodes: Collection[str]) -> Any:
    return lambda ends: not (set(nodes).isdisjoint(ends.src) or set(nodes).isdisjoint(ends.dst))


def _search_each_direction(reader: Reader, start: Collection[str], walk: Walk) -> tuple[dict[str, int], bool]:
    """Search against and along the edges; return nodes by distance, less than 0 if they lead to the start."""
    before, all_before = _search(reader, start, walk, ("dst",))
    after, all_after = _search(reader, start, walk, ("src",))
    steps = {node: -distance for node, distance in before.items()}
    for node, distance in after.items():
        if distance < abs(steps.get(node, MAX_REACHED)):
            steps[node] = distance
    return steps, all_before and all_after


def _search(
    reader: Reader, start: Collection[str], walk: Walk, ends: Sequence[End]
) -> tuple[dict[str, int], bool]:
    """Return nodes by distance, over edges with the nearer node at one of these ends; and if complete."""
    steps, level = dict.fromkeys(start, 0), sorted(start)
    for distance in range(1, walk.hops + 1):
        reached = {step.node_id for end in ends for step in neighbours(reader, level, walk.edge_kinds, end)}
        level = sorted(node for node in reached - steps.keys() if _prefix(node) in walk.prefixes)
        if len(steps) + len(level) > MAX_REACHED:
            return steps, False
        steps.update(dict.fromkeys(level, distance))
    return steps, True


def _prefix(node_id: str) -> str:
    return node_id.partition(":")[0]
