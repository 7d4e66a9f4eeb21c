"""From facts to rows: nodes, edges and properties by the catalogue of kinds, as Arrow.

    made = file_rows(file, "default")
    made.tables["cpg_nodes"]        # the rows of all kinds, in the table's order
    made.shared["cpg_nodes"]        # the same of what belongs to the repository as a whole
    link_rows(file, "default")      # only the edges that its relations become

Nothing here knows a kind by name: which list it is made of, which fields become which columns and
properties, and to which profiles it belongs is declared. Tests: `tests/unit/graph/test_rows.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
from codeanatomy.graph.facts import Lists, facts_of, related, shared_facts_of
from codeanatomy.graph.file_view import Columns, File
from codeanatomy.ids import FrameCache, stable_ids

NODES, EDGES, PROPS, PROPS_MAP = "cpg_nodes", "cpg_edges", "cpg_props", "cpg_props_map"
TABLES = (NODES, EDGES, PROPS, PROPS_MAP)
# Entity, kind of node or null, key, type, value.
Property: TypeAlias = tuple[str, str | None, str, str, Any]
VALUES = ("string", "int", "float", "bool", "json")
# Columns that are the same in all rows of a file.
SAME = frozenset({"file_id", "path"})
# Lists that are relations by kind.
FAMILY = "relations"
# What makes an edge beside its kind and ends.
EDGE_KEY = ("bstart", "bend", "role", "ordinal")


class Made(NamedTuple):
    """The rows of a file by table: its own, and what it says of the repository."""

    tables: dict[str, pa.RecordBatch]
    shared: dict[str, pa.RecordBatch]


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
    # First, since the file's own facts tell of lists that could not be made.
    shared = shared_facts_of(context)
    own = facts_of(context, lists)
    return Made(
        _rows(own, nodes, edges, Place(file.repo_id, file.file_id, file.path)),
        _rows(shared, nodes, edges, Place(file.repo_id, None, None)),
    )


def link_rows(file: File, profile: Profile) -> dict[str, pa.RecordBatch]:
    """The rows of a file that are made of its relations and of nothing else: edges and their properties."""
    found = {f"{FAMILY}.{kind}": rows for kind, rows in related(Context(file)).items()}
    kinds = [edge for edge in kinds_of(profile)[1] if edge.made_of.of.partition(".")[0] == FAMILY]
    return _rows(found, (), kinds, Place(file.repo_id, file.file_id, file.path))


def _rows(
    facts: Lists, nodes: Sequence[NodeKind], edges: Sequence[EdgeKind], place: Place
) -> dict[str, pa.RecordBatch]:
    properties: dict[tuple[str, str], Property] = {}
    owner = {"repo_id": place.repo_id, "owner_file_id": place.file_id}
    of_file = {} if place.path is None else {"path": place.path}
    found = TableRows(NODES, {**owner, **of_file, "file_id": place.file_id})
    for node in nodes:
        _add_nodes(node, _fields(node, facts), found, properties)
    joined = TableRows(EDGES, {**owner, **of_file})
    lines = found.lines()
    for edge in edges:
        _add_edges(edge, _fields(edge, facts), lines, joined, properties)
    return {
        NODES: found.batch(),
        EDGES: joined.batch(),
        **property_rows(list(properties.values()), place),
    }


def _fields(kind: NodeKind | EdgeKind, facts: Lists) -> Columns:
    """The kind's list, its fields under the names of columns and properties."""
    found = facts.get(kind.made_of.of) or {}
    return {**found, **{name: found[field] for name, field in kind.made_of.fields.items() if found}}


class TableRows:
    """Rows of a table on their way into Arrow: lists that grow kind by kind.

    One array for a column of a file, not one for each kind: there are fifty of them.
    """

    def __init__(self, name: str, same: Mapping[str, Any]) -> None:
        self._table = catalog.table(name)
        # What is the same in all rows.
        self._same = same
        self._lists: dict[str, list[Any]] = {
            each: [] for each in self._table.column_names if each not in same
        }
        self._count = 0
        # What ids of the rows are made of.
        self.frames = FrameCache()

    def add(self, facts: Columns, kept: Sequence[int], count: int, constants: Mapping[str, Any]) -> None:
        """Some rows of a list of so many; what is the same in all of them is given apart."""
        self._count += len(kept)
        for name, found in self._lists.items():
            values = facts.get(name)
            if name in constants or not values:
                found.extend(repeat(constants.get(name), len(kept)))
            elif len(kept) == count:
                found.extend(values)
            else:
                found.extend([values[place] for place in kept])

    def lines(self) -> dict[int, int]:
        """The lines of the bytes that rows start at."""
        places = zip(self._lists["bstart"], self._lists["line"], strict=True)
        return {start: line for start, line in places if start is not None and line is not None}

    def batch(self) -> pa.RecordBatch:
        """The rows in the order of the table."""
        arrays = [
            pa.array([self._same[column.name]], SCHEMAS[self._table.name].field(column.name).type).take(
                pa.array([0] * self._count, pa.int32())
            )
            if column.name in self._same
            else array(column, self._lists[column.name])
            for column in self._table.columns
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMAS[self._table.name])
        return in_order(self._table.name, batch)


SCHEMAS = {name: arrow_schema(catalog.table(name)) for name in TABLES}


def in_order(name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of one file in the order of the table."""
    table = catalog.table(name)
    keys = dict.fromkeys(key for key in (*table.ordering, *table.primary_key) if key not in SAME)
    order = pc.sort_indices(rows, sort_keys=[(key, "ascending", "at_start") for key in keys])
    return rows.take(order)


def _add_nodes(
    kind: NodeKind, facts: Columns, found: TableRows, properties: dict[tuple[str, str], Property]
) -> None:
    ids = facts.get("node_id", ())
    kept = _first(ids)
    if kept:
        found.add(facts, kept, len(ids), {"node_kind": kind.name})
        _add_properties(kind, kind.name, ids, facts, kept, properties)


def _add_edges(
    kind: EdgeKind,
    facts: Columns,
    lines: Mapping[int, int],
    found: TableRows,
    properties: dict[tuple[str, str], Property],
) -> None:
    sources, targets = facts.get("src_id", ()), facts.get("dst_id", ())
    if not sources:
        return
    ids = stable_ids(found.frames, "edge", kind.name, sources, targets, *(facts.get(name) for name in EDGE_KEY))
    kept = _first(ids)
    if None in sources or None in targets:
        kept = [each for each in kept if sources[each] is not None and targets[each] is not None]
    constants: dict[str, Any] = {"edge_kind": kind.name}
    if "rule_name" not in facts:
        constants |= {"origin": kind.origin, "rule_name": kind.rule, "confidence": 1.0}
    rows = {
        **facts,
        "edge_id": ids,
        "src_node_id": sources,
        "dst_node_id": targets,
        "line": _lines_of(facts, lines),
    }
    found.add(rows, kept, len(ids), constants)
    _add_properties(kind, None, ids, facts, kept, properties)


def _lines_of(facts: Columns, lines: Mapping[int, int]) -> list[int | None]:
    """The lines of the places of edges: as the facts have them, else those of nodes that start there."""
    starts = facts.get("bstart", ())
    told = facts.get("line") or map(lines.get, starts)
    return [None if start is None else line for start, line in zip(starts, told, strict=True)]


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


def property_rows(properties: Sequence[Property], place: Place) -> dict[str, pa.RecordBatch]:
    """The properties, one by one and by entity."""
    shared = {"repo_id": place.repo_id, "owner_file_id": place.file_id}
    single = TableRows(PROPS, shared)
    kinds = ["edge" if row[1] is None else "node" for row in properties]
    single.add({"entity_kind": kinds, **_property_columns(properties)}, range(len(kinds)), len(kinds), {})
    by_entity: defaultdict[tuple[str, str | None, str], list[Property]] = defaultdict(list)
    for row in sorted(properties, key=itemgetter(0, 2)):
        by_entity["edge" if row[1] is None else "node", row[1], row[0]].append(row)
    together: dict[str, Sequence[Any]] = {
        "entity_kind": [entity_kind for entity_kind, _, _ in by_entity],
        "node_kind": [node_kind for _, node_kind, _ in by_entity],
        "entity_id": [entity for _, _, entity in by_entity],
        "props": [_inner(rows) for rows in by_entity.values()],
    }
    by_all = TableRows(PROPS_MAP, shared)
    by_all.add(together, range(len(by_entity)), len(by_entity), {})
    return {PROPS: single.batch(), PROPS_MAP: by_all.batch()}


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
