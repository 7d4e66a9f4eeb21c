"""Build the rows of nodes, edges and properties from facts, as the catalogue of kinds declares them.

    [graph] = rows_of_files([file], "default")        # what needs no other file
    graph.tables["cpg_nodes"]       # in the table's order
    [rest] = resolution_rows([ResolvedFile(graph.facts, relations)], "default")
    rest.shared["cpg_nodes"]        # rows that belong to the repository as a whole

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
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import array, decode_texts
from codeanatomy.catalog.entry_points import RULES, Rule, rule_set
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, EdgeKind, NodeKind, Profile
from codeanatomy.file_view import Cells, Columns, FileView
from codeanatomy.graph.context import Context
from codeanatomy.graph.facts import KeptFacts, Lists, collect_facts, facts_of, shared_facts_of
from codeanatomy.graph.resolution import IN_MODULE, Property, ResolvedFile
from codeanatomy.graph.table_rows import (
    FILE_NUMBER,
    Indexes,
    TableRows,
    no_rows,
    repeated,
    schema_of,
    sort_order,
    split,
)
from codeanatomy.node_ids import edge_id

NODES, EDGES, PROPS, PROPS_MAP = "cpg_nodes", "cpg_edges", "cpg_props", "cpg_props_map"
# Nodes that lack the name of their module.
NAMED = "named nodes"
TABLES = (NODES, EDGES, PROPS, PROPS_MAP)
# The fields that distinguish edges of the same kind and ends, in the order that they are numbered by.
REPEAT_KEY = ("role", "ordinal", "bstart", "bend")

# Columns with one value for all rows of a file, in its own rows and in those of the repository.
OWN = ("repo_id", "file_id", "path", "owner_file_id")
SHARED = ("repo_id", "file_id", "owner_file_id")
# Nodes and edges that are converted to Arrow together, about: files are, until they have so many.
BATCH_ROWS = 50_000
# In place of null.
NO_NUMBER = -1


class FileGraph(NamedTuple):
    """The part of a file's graph that needs no other file."""

    # Rows by table.
    tables: dict[str, pa.RecordBatch]
    # Nodes whose qualified names lack the name of the module.
    named: pa.RecordBatch
    facts: KeptFacts
    # Definition keys of the file by qualified path.
    keys: dict[str, str]


class ResolutionRows(NamedTuple):
    """The part of a file's graph that other files decide, by table: its own rows, and those of no file."""

    tables: dict[str, pa.RecordBatch]
    shared: dict[str, pa.RecordBatch]


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


class GraphBuilder:
    """Make the rows of files that need no other file; some files are converted to Arrow together."""

    def __init__(self, profile: Profile) -> None:
        self._kinds = kinds_of(profile)
        self._lists = {kind.made_of.of for of_table in self._kinds for kind in of_table}
        self._rows = FactRows(*self._kinds, OWN, IN_MODULE)
        self._read: list[tuple[KeptFacts, dict[str, str]]] = []

    def add(self, file: FileView, failure: str | None = None) -> Sequence[FileGraph]:
        """Add a file; return the graphs of the files so far if they have enough rows, else none.

        Of a file that has killed a process here there is only a diagnostic with this reason, `failure`.
        """
        context = Context(file)
        context.failures += [] if failure is None else [failure]
        # First, since the file's own facts include diagnostics about lists that failed.
        shared = shared_facts_of(context)
        facts = facts_of(context, self._lists)
        kept = collect_facts(context, facts, shared)
        # Properties of classes are complete only when their bases are resolved.
        own = {**facts, "classes": {**facts["classes"], "base_count": ()}}
        self._rows.add(own, RowOwner(kept.repo_id, kept.file_id, kept.path))
        self._read.append((kept, context.keys))
        return self.finish() if self._rows.count >= BATCH_ROWS else ()

    def finish(self) -> Sequence[FileGraph]:
        """Return the graphs of the files that were not returned yet."""
        graphs = [
            FileGraph(tables, tables.pop(NAMED), *read)
            for tables, read in zip(self._rows.batches(), self._read, strict=True)
        ]
        self._rows, self._read = FactRows(*self._kinds, OWN, IN_MODULE), []
        return graphs


def rows_of_files(files: Iterable[FileView], profile: Profile) -> Iterator[FileGraph]:
    """Yield the rows of files that need no other file, in their order."""
    builder = GraphBuilder(profile)
    for file in files:
        yield from builder.add(file)
    yield from builder.finish()


def resolution_rows(
    files: Iterable[ResolvedFile], profile: Profile, rules: tuple[Rule, ...] = RULES
) -> Iterator[ResolutionRows]:
    """Yield the rows of files that other files decide, in their order, but for nodes that lack names."""
    kinds, matching = kinds_of(profile), rule_set(rules)
    own, shared = FactRows(*kinds, OWN), FactRows(*kinds, SHARED)
    for file in files:
        facts = file.facts
        # First, since the file's own facts include diagnostics about lists that failed.
        shared.add(file.shared_lists(), RowOwner(facts.repo_id, None, None))
        own.add(file.lists(matching), RowOwner(facts.repo_id, facts.file_id, facts.path), file.properties())
        if own.count >= BATCH_ROWS:
            yield from map(ResolutionRows, own.batches(), shared.batches())
            own, shared = FactRows(*kinds, OWN), FactRows(*kinds, SHARED)
    yield from map(ResolutionRows, own.batches(), shared.batches())


class FactRows:
    """Make the rows of nodes, edges and properties from the facts of files."""

    def __init__(
        self,
        nodes: Sequence[NodeKind],
        edges: Sequence[EdgeKind],
        of_files: Sequence[str],
        named: Collection[str] = (),
    ) -> None:
        self._kinds = nodes, edges
        # Kinds of the nodes that are apart from the others.
        self._named_kinds = named
        self._nodes, self._named = TableRows(NODES, of_files), TableRows(NODES, of_files)
        self._edges = TableRows(EDGES, [each for each in of_files if each != "file_id"])
        self._properties: list[list[Property]] = []
        self._owners: list[RowOwner] = []

    @property
    def count(self) -> int:
        """The number of nodes and edges so far."""
        return self._nodes.count + self._named.count + self._edges.count

    def add(self, facts: Lists, owner: RowOwner, more: Iterable[Property] = ()) -> None:
        """Add the rows of a file, with further properties."""
        nodes, edges = self._kinds
        properties = list(more)
        for node in nodes:
            if facts.get(node.made_of.of):
                rows = self._named if node.name in self._named_kinds else self._nodes
                _add_nodes(node, _fields(node, facts), rows, properties)
        for edge in edges:
            if facts.get(edge.made_of.of):
                _add_edges(edge, _fields(edge, facts), self._edges, properties)
        constants = {**owner._asdict(), "owner_file_id": owner.file_id}
        for table in (self._nodes, self._named, self._edges):
            table.end_file(constants)
        self._properties.append(properties)
        self._owners.append(owner)

    def batches(self) -> list[dict[str, pa.RecordBatch]]:
        """Return the rows of each file by table, in the order of tables."""
        nodes, named = self._nodes.ordered(), self._named.ordered()
        placed = [(nodes, self._nodes.counts), (named, self._named.counts)]
        edges = _with_lines(self._edges.ordered(), self._edges.counts, placed)
        rows = zip(
            split(nodes, self._nodes.counts),
            split(named, self._named.counts),
            split(edges, self._edges.counts),
            property_rows(self._properties, self._owners),
            strict=True,
        )
        return [
            {NODES: own, EDGES: own_edges, **properties, **({NAMED: apart} if self._named_kinds else {})}
            for own, apart, own_edges, properties in rows
        ]


def _fields(kind: NodeKind | EdgeKind, facts: Lists) -> Columns:
    """Return the kind's list of facts, with its fields under the names of columns and properties."""
    rows, fields = facts[kind.made_of.of], kind.made_of.fields
    return {**rows, **{name: rows[field] for name, field in fields.items()}} if fields else rows


def _add_nodes(kind: NodeKind, facts: Columns, rows: TableRows, properties: list[Property]) -> None:
    ids = facts.get("node_id", ())
    if not len(ids):
        return
    kept = _first_indexes(ids)
    rows.add(facts, kept, len(ids), {"node_kind": kind.name})
    for prop in kind.props:
        cells = _cells(facts.get(prop.name), kept, len(ids))
        properties += [
            (ids[index], kind.name, prop.name, prop.type, cell) for index, cell in cells if cell is not None
        ]


def _first_indexes(ids: Cells) -> Sequence[int]:
    """Return the index of the first occurrence of each id."""
    if _are_distinct(ids):
        return range(len(ids))
    return sorted(dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True)).values())


def _are_distinct(ids: Cells) -> bool:
    """Return whether no two ids are equal; an array that has no codes is that of nodes, each with its own."""
    if isinstance(ids, pa.DictionaryArray):
        count: int = pc.count_distinct(ids.indices).as_py()
        return count == len(ids)
    return isinstance(ids, pa.Array) or len(set(ids)) == len(ids)


def _cells(values: Sequence[Any] | None, kept: Sequence[int], count: int) -> Iterable[tuple[int, Any]]:
    """Return the kept ones of `count` values with their indexes."""
    if not values:
        return ()
    return enumerate(values) if len(kept) == count else [(index, values[index]) for index in kept]


def _add_edges(kind: EdgeKind, facts: Columns, rows: TableRows, properties: list[Property]) -> None:
    sources, targets = facts.get("src_id", ()), facts.get("dst_id", ())
    if not len(sources):
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
    }
    if len(kept):
        rows.add(columns, kept, len(sources), constants)
    for prop in kind.props:
        cells = _cells(facts.get(prop.name), kept, len(sources))
        for index, cell in cells:
            if cell is not None:
                number = repeats[index] if repeats else 0
                entity = edge_id(kind.name, sources[index], targets[index], number)
                properties.append((entity, None, prop.name, prop.type, cell))


def number_edges(sources: Cells, targets: Cells, facts: Columns) -> tuple[Sequence[int], list[int] | None]:
    """Return the indexes of the edges of a kind, each edge once, and the value of `repeat` by index.

    Edges have both ends. Those of the same ends are numbered by role, ordinal and span, null first; they are
    one edge if these are equal, too. None: `repeat` is 0 in all, as in most lists.
    """
    size = len(sources)
    if isinstance(targets, pa.StringArray) or _are_distinct(sources) or _are_distinct(targets):
        return _with_both(sources, targets), None
    sources, targets = list(_texts(sources)), list(_texts(targets))
    if len(set(zip(sources, targets, strict=True))) == size:
        return _with_both(sources, targets), None
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


def _with_both(sources: Cells, targets: Cells) -> Sequence[int]:
    """Return the indexes of the edges that have both ends."""
    lacking = sorted({index for ends in (sources, targets) for index in _nulls(ends)})
    if not lacking:
        return range(len(sources))
    kept: list[int] = np.delete(np.arange(len(sources)), lacking).tolist()
    return kept


def _nulls(ends: Cells) -> Sequence[int]:
    """Return the indexes of the values that are null."""
    if isinstance(ends, pa.Array):
        return np.flatnonzero(ends.is_null()).tolist() if ends.null_count else ()
    return [index for index, end in enumerate(ends) if end is None] if None in ends else ()


def _texts(ends: Cells) -> Sequence[str | None]:
    return ends.to_pylist() if isinstance(ends, pa.Array) else ends


def _with_lines(
    edges: pa.RecordBatch, counts: Sequence[int], nodes: Iterable[tuple[pa.RecordBatch, Sequence[int]]]
) -> pa.RecordBatch:
    """Give edges that have a span and no line that of the nodes of the file which start at the same byte.

    Both are rows of several files, with the number of rows of each.
    """
    if not edges.num_rows:
        return edges
    files, starts, lines = _places(edges, counts)
    of, at, known = map(np.concatenate, zip(*(_places(*rows) for rows in nodes), strict=True))
    # The bytes of each file up to its last node, one file after the other.
    sizes = np.zeros(len(counts), np.int64)
    np.maximum.at(sizes, of, at + 1)
    firsts = sizes.cumsum() - sizes
    by_byte = np.full(sizes.sum() + 1, NO_NUMBER, np.int32)
    is_known = (at >= 0) & (known >= 0)
    by_byte[(firsts[of] + at)[is_known]] = known[is_known]
    lacking = np.flatnonzero((lines < 0) & (starts >= 0) & (starts < sizes[files]))
    lines = np.where(starts < 0, NO_NUMBER, lines)
    lines[lacking] = by_byte[firsts[files[lacking]] + starts[lacking]]
    number = edges.schema.get_field_index("line")
    return edges.set_column(number, edges.schema.field(number), pa.array(lines, mask=lines < 0))


def _places(rows: pa.RecordBatch, counts: Sequence[int]) -> tuple[Indexes, Indexes, Indexes]:
    """Return the number of the file, the first byte and the line of rows of several files."""
    starts, lines = (rows.column(name).fill_null(NO_NUMBER).to_numpy() for name in ("bstart", "line"))
    return np.arange(len(counts)).repeat(counts), starts, lines


def property_rows(
    properties: Sequence[Iterable[Property]], owners: Sequence[RowOwner]
) -> list[dict[str, pa.RecordBatch]]:
    """Return the rows of both property tables by file: one per property, and one per entity."""
    rows: list[Property] = []
    counts: list[int] = []
    for of_file in properties:
        ordered = sorted(of_file, key=itemgetter(0, 2))
        # Those of edges first.
        ordered.sort(key=lambda row: row[1] is not None)
        rows += ordered
        counts.append(len(ordered))
    if not rows:
        return [{PROPS: no_rows(PROPS), PROPS_MAP: no_rows(PROPS_MAP)}] * len(counts)
    flat = _property_batch(rows, counts, owners)
    files = np.repeat(np.arange(len(counts)), counts)
    keys = {FILE_NUMBER: pa.array(files), **{key: flat.column(key) for key in catalog.table(PROPS).sort_keys}}
    # The properties of an entity follow each other; a name outside of a file is an entity of several files.
    entities = list(zip(files.tolist(), map(itemgetter(0), rows), strict=True))
    firsts = [at for at, entity in enumerate(entities) if not at or entities[at - 1] != entity]
    entity_counts = np.bincount(files[firsts], minlength=len(counts)).tolist()
    single = split(flat.take(sort_order(keys)), counts)
    grouped = split(_property_maps(flat, firsts), entity_counts)
    return [{PROPS: one, PROPS_MAP: other} for one, other in zip(single, grouped, strict=True)]


def _property_batch(
    rows: Sequence[Property], counts: Sequence[int], owners: Sequence[RowOwner]
) -> pa.RecordBatch:
    entities, node_kinds, keys, types, values = zip(*rows, strict=True)
    cells: dict[str, Sequence[Any]] = {
        "entity_kind": ["edge" if kind is None else "node" for kind in node_kinds],
        "entity_id": entities,
        "node_kind": node_kinds,
        "prop_key": keys,
        "value_type": types,
    }
    for value_type in set(types):
        cells[f"value_{value_type}"] = [
            value if each == value_type else None for each, value in zip(types, values, strict=True)
        ]
    table, schema = catalog.table(PROPS), schema_of(PROPS)
    columns = {name: array(table.column(name), values) for name, values in cells.items()}
    columns["repo_id"] = repeated([each.repo_id for each in owners], table.column("repo_id"), counts)
    owner_column = table.column("owner_file_id")
    columns["owner_file_id"] = repeated([each.file_id for each in owners], owner_column, counts)
    return pa.RecordBatch.from_arrays(
        [
            columns[field.name] if field.name in columns else pa.nulls(len(rows), field.type)
            for field in schema
        ],
        schema=schema,
    )


def _property_maps(rows: pa.RecordBatch, firsts: Sequence[int]) -> pa.RecordBatch:
    """Return one row per entity, from rows in the order of entities and the index of the first of each."""
    schema = schema_of(PROPS_MAP)
    fields = list(schema.field("props").type.value_type)
    cells = [decode_texts(rows.column(field.name)) for field in fields]
    structs = pa.StructArray.from_arrays(cells, fields=fields)
    offsets = pa.array([*firsts, rows.num_rows], pa.int32())
    at = pa.array(firsts, pa.int64())
    columns = [
        pa.ListArray.from_arrays(offsets, structs, type=field.type)
        if field.name == "props"
        else rows.column(field.name).take(at)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
