"""View one file as normalize, relate and graph read it: its rows in all tables, lists as columns.

    view = fresh_view(extract_file(...))                    # from the extractors, without Arrow
    views = load_views(batches, READS)                      # from Arrow rows of many files, by file id
    view.list("libcst_files_v1", "refs")["text"]            # a list of a table with one row per file
    view.rows("relations_v1")["src_id"]                     # the rows of a flat table

A list of structs is a dictionary of equally long lists, one per field, never a list of dictionaries: making
an object per syntax node costs more than all the work done with it. What an extractor could not produce is
None or absent.

Each package declares what it reads, by table, column and field of a list (`Reads`); nothing else is
converted. Both views of a file give equal rows. The lists of a fresh view are those of the extractors, which
may be tuples or ranges; text that UTF-8 cannot encode occurs only in evaluated docstrings and in messages,
which no rule looks into, and is escaped when rows are written (`arrow.array`), as it is in a loaded view.

Tests: `tests/unit/test_file_view.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.arrow import to_python
from codeanatomy.file_ids import LIBCST_FIELDS, DefinitionKeys, FileIds, PackedIds
from codeanatomy.node_ids import file_id as id_of_file

# Equally long lists by name: the fields of a list of structs, or the columns of rows.
Columns: TypeAlias = Mapping[str, Sequence[Any]]
# The values of a column of facts: a list, or an Arrow array of values that nothing but rows need.
Cells: TypeAlias = Sequence[Any] | pa.Array
# The row of a file in a table with one row per file, by column.
Row: TypeAlias = Mapping[str, Any]
# What is read of a table: by column the fields of its list of structs; of () the whole column.
TableReads: TypeAlias = Mapping[str, tuple[str, ...]]
Reads: TypeAlias = Mapping[str, TableReads]

FILES, LINES = "repo_files_v1", "file_line_index_v1"
AST, LIBCST, SYMTABLE = "ast_files_v1", "libcst_files_v1", "symtable_files_v1"
BYTECODE, TREE_SITTER = "bytecode_files_v1", "tree_sitter_files_v1"
SCIP, TYPE_CHECKER = "scip_index_v1", "type_checker_files_v1"

# The fields that are read of lists inside of lists.
INNER: Mapping[str, tuple[str, ...]] = {
    "symbols": (
        "name",
        "is_parameter",
        "is_imported",
        "is_local",
        "is_free",
        "is_declared_global",
        "is_nonlocal",
        "is_assigned",
    ),
    "instructions": ("offset", "opname", "argval", "jump_target", "bstart", "bend", "line"),
    "exception_table": ("start_offset", "end_offset", "target_offset"),
    "qualified_names": ("name",),
}
# Tables with one row per file; a SCIP index has several.
NESTED = frozenset(
    table.name for table in catalog.TABLES if table.owner is not None and table.primary_key == (table.owner,)
)
# Key of the columns that identify the file, among the rows that the extractors return.
FILE = "file"
LINE_COLUMNS = ("line_no", "line_start_byte", "line_end_byte", "newline_kind")


class FileKey(NamedTuple):
    """Repository, id and path of a file: the first columns of every row about it."""

    repo_id: str
    file_id: str
    path: str


class Lines:
    """The line index of a file, decoded on first use: most files have no position to convert."""

    def __init__(self, rows: Columns | Sequence[pa.RecordBatch] = ()) -> None:
        self._given = rows

    @cached_property
    def _rows(self) -> list[tuple[int, int, int, str]]:
        return sorted(iter_rows(_columns(self._given), *LINE_COLUMNS))

    @property
    def count(self) -> int | None:
        """Number of lines, with the empty one after a final newline; None for a file without text."""
        if not self._rows:
            return None
        number, _, _, newline = self._rows[-1]
        return number + (1 if newline == "none" else 2)

    def span(self, number: int | None) -> tuple[int | None, int | None]:
        """Return the byte span of a line, counted from 0; (None, None) if there is no such line."""
        if number is None or not 0 <= number < len(self._rows):
            return None, None
        _, begin, end, _ = self._rows[number]
        return begin, end

    def at(self, byte: int) -> tuple[int, int]:
        """Return the number, counted from 1, and the first byte of the line that contains a byte."""
        index = bisect_right(self._rows, byte, key=lambda row: row[1]) - 1
        if index < 0 or byte > self._rows[index][2]:
            # A file without text has no lines in the index.
            return 1, 0
        number, begin, end, newline = self._rows[index]
        return (number + 2, end) if byte == end and newline != "none" else (number + 1, begin)


class FileView(Struct, frozen=True, dict=True):
    """A file and its rows.

    `tables` has by name the row of a nested table, the rows of a flat table as lists by column, and the
    documents of SCIP indexes, ordered by index, each with `is_missing`.
    """

    repo_id: str
    file_id: str
    path: str
    tables: Mapping[str, Any]

    def with_tables(self, added: Mapping[str, Any]) -> FileView:
        """Return the file with further tables, and the ids that are known already."""
        view = FileView(self.repo_id, self.file_id, self.path, {**self.tables, **added})
        view.__dict__.update(self.__dict__)
        return view

    def without_evidence(self) -> FileView:
        """Return the file as a module without content."""
        return FileView(self.repo_id, self.file_id, self.path, {FILES: self.row(FILES), LIBCST: {"refs": {}}})

    def row(self, table: str) -> Row:
        """Return the file's row in a nested table; of SCIP its first document; empty if there is none."""
        row: Row | None = self._document if table == SCIP else self.tables.get(table)
        return row or {}

    def list(self, table: str, name: str) -> Columns:
        """Return a list of the file's row in a nested table; empty if there is none."""
        return self.row(table).get(name) or {}

    def rows(self, table: str) -> Columns:
        """Return the file's rows in a flat table by column; of a nested table the row itself."""
        return _columns(self.tables.get(table) or {}) if table == LINES else self.row(table)

    @property
    def documents(self) -> tuple[Row, ...]:
        """The documents about the file in SCIP indexes, ordered by index."""
        return tuple(self.tables.get(SCIP) or ())

    @property
    def _document(self) -> Row | None:
        """The first document of a SCIP index that found the file in the repository."""
        return next((each for each in self.documents if not each.get("is_missing")), None)

    @cached_property
    def lines(self) -> Lines:
        """The line index."""
        return Lines(self.tables.get(LINES) or ())

    @property
    def key(self) -> FileKey:
        """The columns that identify the file in its rows."""
        return FileKey(self.repo_id, self.file_id, self.path)

    @cached_property
    def packed_ids(self) -> PackedIds:
        """What the ids of the file are made of."""
        libcst = {name: self.list(LIBCST, name) for name in LIBCST_FIELDS}
        nodes, definitions = self.list(AST, "nodes"), self.list(AST, "definitions")
        return PackedIds.of_file(self.repo_id, self.path, definitions, libcst, nodes)

    @cached_property
    def ids(self) -> FileIds:
        """The ids of the file."""
        return FileIds(self.packed_ids)

    @cached_property
    def definition_keys(self) -> DefinitionKeys:
        """The keys of its scopes and code objects."""
        return DefinitionKeys(self.repo_id, self.path, self.list(AST, "definitions"))

    def evidence_in(self, table: str) -> Any:
        """Return what a table has about the file: a row, the line index, or the documents of SCIP."""
        if table == LINES:
            return self.lines
        return self.documents if table == SCIP else self.row(table)


def fresh_view(rows: Mapping[str, Any]) -> FileView:
    """View a file that was just extracted: rows by table, as `extract.file_rows` returns them."""
    file = rows[FILE]
    tables = {name: cells for name, cells in rows.items() if name != FILE and cells is not None}
    return FileView(file["repo_id"], file["file_id"], file["path"], tables)


def load_views(batches: Mapping[str, Iterable[pa.RecordBatch]], reads: Reads) -> dict[str, FileView]:
    """View the files of Arrow rows, by file id; rows have the columns of their tables or some of them.

    A document of SCIP about a file that the repository lacks belongs to the file it would be.
    """
    loading = _Loading()
    for table, fields in reads.items():
        for batch in batches.get(table, ()):
            if batch.num_rows:
                loading.add(table, project(table, batch, fields), fields)
    return loading.views()


class _Loading:
    """Collect the rows of files, table by table."""

    def __init__(self) -> None:
        self._keys: dict[str, FileKey] = {}
        self._tables: dict[str, dict[str, Any]] = {}

    def views(self) -> dict[str, FileView]:
        """Return the files with the rows collected so far."""
        for tables in self._tables.values():
            if SCIP in tables:
                tables[SCIP].sort(key=lambda document: document.get("index_id") or "")
        return {file_id: FileView(*key, self._tables[file_id]) for file_id, key in self._keys.items()}

    def add(self, table: str, batch: pa.RecordBatch, fields: TableReads) -> None:
        """Add the rows of a table."""
        if table == SCIP:
            self._add_documents(batch, fields)
        elif table in NESTED:
            self._add_nested(table, batch, fields)
        else:
            self._add_flat(table, batch, fields)

    def _tables_of(self, file_id: str, batch: pa.RecordBatch, index: int) -> dict[str, Any]:
        tables = self._tables.get(file_id)
        if tables is None:
            tables = self._tables[file_id] = {}
            repo_id, path = (batch.column(name)[index].as_py() for name in ("repo_id", "path"))
            self._keys[file_id] = FileKey(repo_id, file_id, path)
        return tables

    def _add_nested(self, table: str, batch: pa.RecordBatch, fields: TableReads) -> None:
        file_ids = to_python(batch.column(_owner(table)))
        for index, (file_id, row) in enumerate(zip(file_ids, _dictionaries(batch, fields), strict=True)):
            self._tables_of(file_id, batch, index).setdefault(table, row)

    def _add_documents(self, batch: pa.RecordBatch, fields: TableReads) -> None:
        rows = _dictionaries(batch, key_columns(SCIP))
        for index, (known, document) in enumerate(zip(rows, _dictionaries(batch, fields), strict=True)):
            if known.get("row_kind", "document") != "document":
                continue
            document["index_id"] = known.get("index_id")
            document["is_missing"] = known["file_id"] is None
            file_id = known["file_id"] or id_of_file(known["repo_id"], known["path"])
            self._tables_of(file_id, batch, index).setdefault(SCIP, []).append(document)

    def _add_flat(self, table: str, batch: pa.RecordBatch, fields: TableReads) -> None:
        file_ids = to_python(batch.column(_owner(table)))
        known = set(batch.schema.names)
        # The line index is decoded on first use.
        is_lazy = table == LINES
        columns = {} if is_lazy else {name: to_python(batch.column(name)) for name in fields if name in known}
        start = 0
        for file_id, same in groupby(file_ids):
            end = start + sum(1 for _ in same)
            if file_id is not None:
                tables = self._tables_of(file_id, batch, start)
                if is_lazy:
                    tables.setdefault(table, []).append(batch.slice(start, end - start))
                elif table in tables:
                    for name, values in columns.items():
                        tables[table][name] += values[start:end]
                else:
                    tables[table] = {name: values[start:end] for name, values in columns.items()}
            start = end


def _owner(table: str) -> str:
    return catalog.table(table).owner or "file_id"


def _dictionaries(batch: pa.RecordBatch, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch; columns that it lacks are left out."""
    known = set(batch.schema.names)
    read = [name for name in names if name in known]
    columns = [to_python(batch.column(name)) for name in read]
    rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=True) if columns else [()] * batch.num_rows
    return (dict(zip(read, row, strict=True)) for row in rows)


def _columns(rows: Columns | Sequence[pa.RecordBatch]) -> Columns:
    """Return rows by column."""
    if isinstance(rows, Mapping):
        return rows
    names = rows[0].schema.names if rows else ()
    return {name: [value for part in rows for value in to_python(part.column(name))] for name in names}


def key_columns(table: str) -> tuple[str, ...]:
    """Return the columns that identify a row's file; a table may lack some of them."""
    return "repo_id", _owner(table), "path", "index_id", "row_kind"


def project(table: str, batch: pa.RecordBatch, reads: TableReads) -> pa.RecordBatch:
    """Return the columns of a batch that identify its files, and those that are read; nothing is copied."""
    wanted = {**dict.fromkeys(key_columns(table), ()), **reads}
    known = set(batch.schema.names)
    columns = {name: _read(batch.column(name), fields) for name, fields in wanted.items() if name in known}
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _read(values: pa.Array, fields: tuple[str, ...]) -> pa.Array:
    """Return lists of structs with these fields only; all fields for ()."""
    kind = values.type
    if not fields or not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return values
    # All structs of the array that this may be a slice of: offsets count from its beginning.
    structs = values.values
    names = [name for name in fields if structs.type.get_field_index(name) >= 0]
    children = [_read(structs.field(name), INNER.get(name, ())) for name in names]
    if not children:
        return values
    mask = structs.is_null() if structs.null_count else None
    parts = [pa.field(name, child.type) for name, child in zip(names, children, strict=True)]
    inner = pa.StructArray.from_arrays(children, fields=parts, mask=mask)
    if not len(values):
        return pa.array([], pa.list_(inner.type))
    validity, offsets = values.buffers()[:2]
    return pa.ListArray.from_buffers(
        pa.list_(inner.type), len(values), [validity, offsets], offset=values.offset, children=[inner]
    )


def iter_rows(columns: Columns | None, *names: str) -> Iterator[tuple[Any, ...]]:
    """Iterate over rows of the named columns; over nothing if there is no list.

    >>> list(iter_rows({"a": [1, 2], "b": [3, 4]}, "b", "a")), list(iter_rows(None, "a"))
    ([(3, 1), (4, 2)], [])
    """
    return zip(*(columns[name] for name in names), strict=True) if columns else iter(())


def columns_of(rows: Sequence[tuple[Any, ...]], *names: str) -> dict[str, Sequence[Any]]:
    """Return rows as columns of these names.

    >>> columns_of([(1, "x"), (2, "y")], "number", "name")
    {'number': (1, 2), 'name': ('x', 'y')}
    """
    lists: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return dict(zip(names, lists, strict=True))


def union_reads(*reads: Reads) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return what several packages read together.

    >>> union_reads({"t": {"a": ("x",), "b": ()}}, {"t": {"a": ("y", "x")}})
    {'t': {'a': ('x', 'y'), 'b': ()}}
    """
    union: dict[str, dict[str, tuple[str, ...]]] = {}
    for each in reads:
        for table, columns in each.items():
            known = union.setdefault(table, {})
            for name, fields in columns.items():
                # A whole column has all fields.
                is_whole = not fields or (name in known and not known[name])
                known[name] = () if is_whole else tuple(dict.fromkeys((*known.get(name, ()), *fields)))
    return union
