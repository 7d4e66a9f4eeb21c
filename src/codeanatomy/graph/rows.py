"""From facts to rows: nodes, edges and properties by the catalogue of kinds, as Arrow.

    made = file_rows(file, "default")
    made.tables["cpg_nodes"]        # record batches, one for each kind, each in the table's order
    made.shared["cpg_nodes"]        # the same of what belongs to the repository as a whole

Nothing here knows a kind by name: which list it is made of, which fields become which columns and
properties, and to which profiles it belongs is declared. Tests: `tests/test_graph_rows.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, EdgeKind, NodeKind, Profile
from codeanatomy.graph.context import Context
from codeanatomy.graph.facts import Lists, facts_of, shared_facts_of
from codeanatomy.graph.files import Columns, File
from codeanatomy.ids import ids_within

NODES, EDGES, PROPS, PROPS_MAP = "cpg_nodes", "cpg_edges", "cpg_props", "cpg_props_map"
TABLES = (NODES, EDGES, PROPS, PROPS_MAP)
Batches: TypeAlias = list[pa.RecordBatch]
# Entity, kind of node or null, key, type, value.
Property: TypeAlias = tuple[str, str | None, str, str, Any]
VALUES = ("string", "int", "float", "bool", "json")
# Columns that are the same in all rows of a batch.
SAME = frozenset({"node_kind", "edge_kind", "file_id", "path"})


class Made(NamedTuple):
    """The rows of a file: its own, and what it says of the repository."""

    tables: dict[str, Batches]
    shared: dict[str, Batches]


class Place(NamedTuple):
    """Where rows belong to: a file, or the repository as a whole."""

    repo_id: str
    file_id: str | None
    path: str | None


@cache
def kinds_of(profile: Profile) -> tuple[tuple[NodeKind, ...], tuple[EdgeKind, ...]]:
    """The kinds of a profile."""
    nodes = tuple(each for each in NODE_KINDS.values() if profile in each.profiles)
    return nodes, tuple(each for each in EDGE_KINDS.values() if profile in each.profiles)


def file_rows(file: File, profile: Profile) -> Made:
    """The rows of a file."""
    context = Context(file)
    nodes, edges = kinds_of(profile)
    lists = {node.made_of.of for node in nodes} | {edge.made_of.of for edge in edges}
    own = facts_of(context, lists)
    shared = shared_facts_of(context)
    return Made(
        _rows(own, nodes, edges, Place(file.repo_id, file.file_id, file.path)),
        _rows(shared, nodes, edges, Place(file.repo_id, None, None)),
    )


def _rows(
    facts: Lists, nodes: Sequence[NodeKind], edges: Sequence[EdgeKind], place: Place
) -> dict[str, Batches]:
    properties: dict[tuple[str, str], Property] = {}
    made: dict[str, Batches] = {NODES: [], EDGES: []}
    for node in nodes:
        made[NODES] += _node_batch(node, _fields(node, facts), place, properties)
    for edge in edges:
        made[EDGES] += _edge_batch(edge, _fields(edge, facts), place, properties)
    return {**made, **property_rows(list(properties.values()), place)}


def _fields(kind: NodeKind | EdgeKind, facts: Lists) -> Columns:
    """The kind's list, its fields under the names of columns and properties."""
    found = facts.get(kind.made_of.of) or {}
    return {**found, **{name: found[field] for name, field in kind.made_of.fields.items() if found}}


def _node_batch(
    kind: NodeKind, facts: Columns, place: Place, properties: dict[tuple[str, str], Property]
) -> Iterator[pa.RecordBatch]:
    ids = facts.get("node_id", ())
    kept = _first(ids)
    if not kept:
        return
    constants = {
        "repo_id": place.repo_id,
        "node_kind": kind.name,
        "file_id": place.file_id,
        "path": place.path,
        "owner_file_id": place.file_id,
    }
    # A package has a folder for its path, and no file.
    found = {name: facts[name] for name in facts if place.path is None or name != "path"}
    _add_properties(kind, kind.name, ids, facts, kept, properties)
    yield _batch(NODES, found, kept, len(ids), constants)


def _edge_batch(
    kind: EdgeKind, facts: Columns, place: Place, properties: dict[tuple[str, str], Property]
) -> Iterator[pa.RecordBatch]:
    sources, targets = facts.get("src_id", ()), facts.get("dst_id", ())
    count = len(sources)
    parts = [facts.get(name) or repeat(None, count) for name in ("bstart", "bend", "role", "ordinal")]
    ids = list(map(ids_within("edge", kind.name), sources, targets, *parts))
    kept = [each for each in _first(ids) if sources[each] is not None and targets[each] is not None]
    if not kept:
        return
    constants: dict[str, Any] = {
        "repo_id": place.repo_id,
        "edge_kind": kind.name,
        "path": place.path,
        "owner_file_id": place.file_id,
    }
    if kind.rule:
        constants |= {"origin": kind.origin, "rule_name": kind.rule, "confidence": 1.0}
    found = {**facts, "edge_id": ids, "src_node_id": sources, "dst_node_id": targets}
    _add_properties(kind, None, ids, facts, kept, properties)
    yield _batch(EDGES, found, kept, count, constants)


def _first(ids: Sequence[str]) -> Sequence[int]:
    """The places of the ids, each where it comes first."""
    found = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
    return range(len(ids)) if len(found) == len(ids) else sorted(found.values())


def _add_properties(
    kind: NodeKind | EdgeKind,
    node_kind: str | None,
    ids: Sequence[str],
    facts: Columns,
    kept: Sequence[int],
    properties: dict[tuple[str, str], Property],
) -> None:
    for prop in kind.props:
        values = facts.get(prop.name) or ()
        for place in kept if values else ():
            if values[place] is not None:
                properties[ids[place], prop.name] = (
                    ids[place],
                    node_kind,
                    prop.name,
                    prop.type,
                    values[place],
                )


def _batch(
    name: str, facts: Columns, kept: Sequence[int], count: int, constants: Mapping[str, Any]
) -> pa.RecordBatch:
    """Rows of a table in its order; what is the same for all of them is given apart."""
    table, schema = catalog.table(name), _schema(name)
    arrays = []
    for column, field in zip(table.columns, schema, strict=True):
        value, values = constants.get(column.name), facts.get(column.name)
        if value is not None:
            arrays.append(pa.repeat(pa.scalar(value, field.type), len(kept)))
        elif column.name in constants or not values:
            arrays.append(pa.nulls(len(kept), field.type))
        else:
            arrays.append(array(column, values if len(kept) == count else [values[place] for place in kept]))
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return in_order(name, batch)


def whole(name: str, batches: Batches) -> pa.RecordBatch:
    """All rows of a file as one batch, kind by kind."""
    part = catalog.table(name).write.partition_by
    ordered = sorted(batches, key=lambda batch: batch.column(part[0])[0].as_py()) if part else batches
    return pa.concat_batches(ordered) if ordered else pa.RecordBatch.from_pylist([], _schema(name))


@cache
def _schema(name: str) -> pa.Schema:
    return arrow_schema(catalog.table(name))


def in_order(name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of one file and kind in the order of the table."""
    table = catalog.table(name)
    keys = dict.fromkeys(key for key in (*table.ordering, *table.primary_key) if key not in SAME)
    order = pc.sort_indices(rows, sort_keys=[(key, "ascending", "at_start") for key in keys])
    return rows.take(order)


def property_rows(properties: Sequence[Property], place: Place) -> dict[str, Batches]:
    """The properties, one by one and by entity."""
    shared = {"repo_id": place.repo_id, "owner_file_id": place.file_id}
    single: Batches = []
    for entity_kind in ("edge", "node"):
        rows = [row for row in properties if (row[1] is None) == (entity_kind == "edge")]
        if rows:
            single.append(
                _batch(
                    PROPS,
                    _property_columns(rows),
                    range(len(rows)),
                    len(rows),
                    {**shared, "entity_kind": entity_kind},
                )
            )
    by_entity: defaultdict[tuple[str, str | None, str], list[Property]] = defaultdict(list)
    for row in sorted(properties, key=itemgetter(0, 2)):
        by_entity["edge" if row[1] is None else "node", row[1], row[0]].append(row)
    together: dict[str, Sequence[Any]] = {
        "entity_kind": [entity_kind for entity_kind, _, _ in by_entity],
        "node_kind": [node_kind for _, node_kind, _ in by_entity],
        "entity_id": [entity for _, _, entity in by_entity],
        "props": [_inner(rows) for rows in by_entity.values()],
    }
    count = len(by_entity)
    whole = [_batch(PROPS_MAP, together, range(count), count, shared)] if count else []
    return {PROPS: single, PROPS_MAP: whole}


def _property_columns(rows: Sequence[Property]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {
        "entity_id": [row[0] for row in rows],
        "node_kind": [row[1] for row in rows],
        "prop_key": [row[2] for row in rows],
        "value_type": [row[3] for row in rows],
    }
    for kind in VALUES:
        found[f"value_{kind}"] = [row[4] if row[3] == kind else None for row in rows]
    return found


def _inner(rows: Sequence[Property]) -> dict[str, list[Any]]:
    columns = _property_columns(rows)
    return {name: values for name, values in columns.items() if name not in ("entity_id", "node_kind")}
