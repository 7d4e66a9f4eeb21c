"""Build the rows of nodes, edges and properties from facts, as the catalogue of kinds declares them.

    graph = file_rows(file, "default")
    graph.tables["cpg_nodes"]       # the rows of all kinds, in the table's order
    graph.shared["cpg_nodes"]       # rows that belong to the repository as a whole

No kind is named here: the catalogue declares the list of facts that a kind is made from, the fields that
become columns and properties, and the profiles it belongs to.

An edge is identified by its kind, its ends and `repeat`, which counts the few edges that share these:

>>> calls = {"src_id": ["a", "a", "a"], "dst_id": ["f", "f", "g"], "role": ["init", None, None]}
>>> number_edges(calls["src_id"], calls["dst_id"], calls)
(range(0, 3), [1, 0, 0])

Tests: `tests/unit/graph/test_rows.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_schema
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, EdgeKind, NodeKind, Profile
from codeanatomy.file_view import Columns, FileView
from codeanatomy.graph.context import Context
from codeanatomy.graph.facts import Lists, facts_of, shared_facts_of
from codeanatomy.node_ids import edge_id

NODES, EDGES, PROPS, PROPS_MAP = "cpg_nodes", "cpg_edges", "cpg_props", "cpg_props_map"
TABLES = (NODES, EDGES, PROPS, PROPS_MAP)
# Entity id, node kind (None for an edge), key, type, value.
Property: TypeAlias = tuple[str, str | None, str, str, Any]
VALUES = ("string", "int", "float", "bool", "json")
# The fields that distinguish edges of the same kind and ends, in the order that they are numbered by.
REPEAT_KEY = ("role", "ordinal", "bstart", "bend")


class GraphRows(NamedTuple):
    """Graph rows by table: the file's own, and those it contributes to the repository."""

    tables: dict[str, pa.RecordBatch]
    shared: dict[str, pa.RecordBatch]
    # Definition keys of the file by qualified path.
    keys: dict[str, str]


class RowOwner(NamedTuple):
    """The owner of rows: a file, or the repository as a whole (file_id and path are None)."""

    repo_id: str
    file_id: str | None
    path: str | None


@cache
def kinds_of(profile: Profile) -> tuple[tuple[NodeKind, ...], tuple[EdgeKind, ...]]:
    """Return the node kinds and edge kinds of a profile."""
    nodes = tuple(kind for kind in NODE_KINDS.values() if profile in kind.profiles)
    return nodes, tuple(kind for kind in EDGE_KINDS.values() if profile in kind.profiles)


def file_rows(file: FileView, profile: Profile) -> GraphRows:
    """Return the graph rows of a file."""
    context = Context(file)
    nodes, edges = kinds_of(profile)
    lists = {node.made_of.of for node in nodes} | {edge.made_of.of for edge in edges}
    # First, since the file's own facts include diagnostics about lists that failed.
    shared = shared_facts_of(context)
    own = facts_of(context, lists)
    return GraphRows(
        _rows(own, nodes, edges, RowOwner(file.repo_id, file.file_id, file.path)),
        _rows(shared, nodes, edges, RowOwner(file.repo_id, None, None)),
        context.keys,
    )


def _rows(
    facts: Lists, nodes: Sequence[NodeKind], edges: Sequence[EdgeKind], owner: RowOwner
) -> dict[str, pa.RecordBatch]:
    properties: dict[tuple[str, str], Property] = {}
    constants = {"repo_id": owner.repo_id, "owner_file_id": owner.file_id}
    path = {} if owner.path is None else {"path": owner.path}
    node_rows = TableRows(NODES, {**constants, **path, "file_id": owner.file_id})
    for node in nodes:
        _add_nodes(node, _fields(node, facts), node_rows, properties)
    edge_rows = TableRows(EDGES, {**constants, **path})
    lines = node_rows.lines()
    for edge in edges:
        _add_edges(edge, _fields(edge, facts), lines, edge_rows, properties)
    return {
        NODES: node_rows.batch(),
        EDGES: edge_rows.batch(),
        **property_rows(list(properties.values()), owner),
    }


def _fields(kind: NodeKind | EdgeKind, facts: Lists) -> Columns:
    """Return the kind's list of facts, with its fields under the names of columns and properties."""
    rows = facts.get(kind.made_of.of) or {}
    return {**rows, **{name: rows[field] for name, field in kind.made_of.fields.items() if rows}}


class TableRows:
    """Collect the rows of a table in lists, kind by kind, and convert them to Arrow at once.

    One array per column and file instead of one per kind: there are fifty kinds.
    """

    def __init__(self, name: str, constants: Mapping[str, Any]) -> None:
        self._table = catalog.table(name)
        # Columns with one value for all rows.
        self._constants = constants
        # Values of the other columns; those after the last one are null.
        self._lists: dict[str, list[Any]] = {
            column: [] for column in self._table.column_names if column not in constants
        }
        self._count = 0

    def add(self, facts: Columns, kept: Sequence[int], count: int, constants: Mapping[str, Any]) -> None:
        """Add the `kept` rows of a list of `count` rows; `constants` are columns with one value for all."""
        for name, column in self._lists.items():
            values = facts.get(name)
            if name not in constants and not values:
                continue
            if len(column) < self._count:
                column.extend(repeat(None, self._count - len(column)))
            if name in constants:
                column.extend(repeat(constants[name], len(kept)))
            elif len(kept) == count:
                column.extend(values or ())
            else:
                column.extend([values[index] for index in kept] if values else ())
        self._count += len(kept)

    def lines(self) -> dict[int, int]:
        """Return the lines of the rows by their first byte."""
        starts = zip(self._lists["bstart"], self._lists["line"], strict=False)
        return {start: line for start, line in starts if start is not None and line is not None}

    def batch(self) -> pa.RecordBatch:
        """Return the rows as a batch in the table's order."""
        schema = SCHEMAS[self._table.name]
        if not self._count:
            return NO_ROWS[self._table.name]
        arrays = {name: self._array(name, values) for name, values in self._lists.items() if values}
        rows = sort_rows(self._table.name, pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays)))
        ordered = dict(zip(arrays, rows.columns, strict=True))
        columns = [
            ordered[field.name]
            if field.name in ordered
            else pa.repeat(pa.scalar(self._constants.get(field.name), field.type), self._count)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _array(self, name: str, values: list[Any]) -> pa.Array:
        values.extend(repeat(None, self._count - len(values)))
        return array(self._table.column(name), values)


SCHEMAS = {name: arrow_schema(catalog.table(name)) for name in TABLES}
NO_ROWS = {name: pa.RecordBatch.from_pylist([], schema) for name, schema in SCHEMAS.items()}


@cache
def _sort_keys(name: str) -> tuple[str, ...]:
    table = catalog.table(name)
    return tuple(dict.fromkeys((*table.ordering, *table.primary_key)))


def sort_rows(name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in a table's order; columns that are missing have the same value in all rows."""
    known = set(rows.schema.names)
    keys = [(key, "ascending", "at_start") for key in _sort_keys(name) if key in known]
    return rows.take(pc.sort_indices(rows, sort_keys=keys))


def _add_nodes(
    kind: NodeKind, facts: Columns, rows: TableRows, properties: dict[tuple[str, str], Property]
) -> None:
    ids = facts.get("node_id", ())
    kept = _first_indexes(ids)
    if kept:
        rows.add(facts, kept, len(ids), {"node_kind": kind.name})
        _add_properties(kind, kind.name, ids.__getitem__, facts, kept, properties)


def _first_indexes(ids: Sequence[str]) -> Sequence[int]:
    """Return the index of the first occurrence of each id."""
    if len(set(ids)) == len(ids):
        return range(len(ids))
    return sorted(dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True)).values())


def _add_edges(
    kind: EdgeKind,
    facts: Columns,
    lines: Mapping[int, int],
    rows: TableRows,
    properties: dict[tuple[str, str], Property],
) -> None:
    sources, targets = facts.get("src_id", ()), facts.get("dst_id", ())
    if not sources:
        return
    kept, repeats = number_edges(sources, targets, facts)
    constants: dict[str, Any] = {"edge_kind": kind.name}
    if repeats is None:
        constants["repeat"] = 0
    if "rule_name" not in facts:
        constants |= {"origin": kind.origin, "rule_name": kind.rule, "confidence": 1.0}
    columns = {
        **facts,
        "src_node_id": sources,
        "dst_node_id": targets,
        "repeat": repeats or (),
        "line": _lines_of(facts, lines),
    }
    rows.add(columns, kept, len(sources), constants)

    def id_of(index: int) -> str:
        return edge_id(kind.name, sources[index], targets[index], repeats[index] if repeats else 0)

    _add_properties(kind, None, id_of, facts, kept, properties)


def number_edges(
    sources: Sequence[str | None], targets: Sequence[str | None], facts: Columns
) -> tuple[Sequence[int], list[int] | None]:
    """Return the indexes of the edges of a kind, each edge once, and the value of `repeat` by index.

    Edges have both ends. Those of the same ends are numbered by role, ordinal and span, null first; they are
    one edge if these are equal, too. None: `repeat` is 0 in all, as in most lists.
    """
    size, starts, ends = len(sources), set(sources), set(targets)
    whole = None not in starts and None not in ends
    one_each = size in (len(starts), len(ends)) or len(set(zip(sources, targets, strict=True))) == size
    if whole and one_each:
        return range(size), None
    first: dict[tuple[str | None, str | None], int] = {}
    shared: defaultdict[int, list[int]] = defaultdict(list)
    dropped: set[int] = set()
    for index, pair in enumerate(zip(sources, targets, strict=True)):
        if None in pair:
            dropped.add(index)
        elif (known := first.setdefault(pair, index)) != index:
            shared[known].append(index)
    repeats = [0] * size
    keys = [facts.get(name) or (None,) * size for name in REPEAT_KEY] if shared else ()
    for known, others in shared.items():
        by_key: dict[tuple[tuple[bool, Any], ...], int] = {}
        for index in (known, *others):
            key = tuple((values[index] is not None, values[index]) for values in keys)
            if by_key.setdefault(key, index) != index:
                dropped.add(index)
        for number, key in enumerate(sorted(by_key)):
            repeats[by_key[key]] = number
    kept = [index for index in range(size) if index not in dropped] if dropped else range(size)
    return kept, repeats if any(repeats) else None


def _lines_of(facts: Columns, lines: Mapping[int, int]) -> list[int | None]:
    """Return the lines of edges: as in the facts, else those of nodes that start at the same byte."""
    starts = facts.get("bstart", ())
    known = facts.get("line") or map(lines.get, starts)
    return [None if start is None else line for start, line in zip(starts, known, strict=True)]


def _add_properties(
    kind: NodeKind | EdgeKind,
    node_kind: str | None,
    id_of: Callable[[int], str],
    facts: Columns,
    kept: Sequence[int],
    properties: dict[tuple[str, str], Property],
) -> None:
    for prop in kind.props:
        values = facts.get(prop.name) or ()
        for index in kept if values else ():
            value = values[index]
            if value is not None:
                entity = id_of(index)
                properties[entity, prop.name] = (entity, node_kind, prop.name, prop.type, value)


def property_rows(properties: Sequence[Property], owner: RowOwner) -> dict[str, pa.RecordBatch]:
    """Return the rows of both property tables: one per property, and one per entity."""
    constants = {"repo_id": owner.repo_id, "owner_file_id": owner.file_id}
    single = TableRows(PROPS, constants)
    kinds = ["edge" if row[1] is None else "node" for row in properties]
    single.add({"entity_kind": kinds, **_property_columns(properties)}, range(len(kinds)), len(kinds), {})
    by_entity: defaultdict[tuple[str, str | None, str], list[Property]] = defaultdict(list)
    for row in sorted(properties, key=itemgetter(0, 2)):
        by_entity["edge" if row[1] is None else "node", row[1], row[0]].append(row)
    maps: dict[str, Sequence[Any]] = {
        "entity_kind": [entity_kind for entity_kind, _, _ in by_entity],
        "node_kind": [node_kind for _, node_kind, _ in by_entity],
        "entity_id": [entity for _, _, entity in by_entity],
        "props": [_property_structs(rows) for rows in by_entity.values()],
    }
    grouped = TableRows(PROPS_MAP, constants)
    grouped.add(maps, range(len(by_entity)), len(by_entity), {})
    return {PROPS: single.batch(), PROPS_MAP: grouped.batch()}


def _property_columns(rows: Sequence[Property]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "entity_id": [row[0] for row in rows],
        "node_kind": [row[1] for row in rows],
        "prop_key": [row[2] for row in rows],
        "value_type": [row[3] for row in rows],
    }
    for kind in VALUES:
        columns[f"value_{kind}"] = [row[4] if row[3] == kind else None for row in rows]
    return columns


def _property_structs(rows: Sequence[Property]) -> dict[str, list[Any]]:
    columns = _property_columns(rows)
    return {name: values for name, values in columns.items() if name not in ("entity_id", "node_kind")}
