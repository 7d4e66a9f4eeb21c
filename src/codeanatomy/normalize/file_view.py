"""View the evidence about one file as the normalize rules read it: nested lists as columns.

    file.libcst["type_exprs"]["text"]     # ["int", "str | None"]: the texts of all annotations
    file.ast["nodes"]["kind"]             # ["FunctionDef", "arg", "Name", ...]

A list of structs is a dictionary of equally long lists, one per field, never a list of dictionaries: making
an object per syntax node costs more than all the work done with it. A list that the extractor could not
produce is None.

On Spark, `pipeline.input_frames.witness_frames` reduces the rows of the extractors to the fields that the
rules read, `pipeline.bundles` groups them by file, and `file_from_parts` builds a `FileEvidence` of them.
`file_from_rows` builds it from whole rows, without Spark. Tests: `tests/unit/normalize/test_file_view.py`,
`tests/unit/normalize/test_diagnostics.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.arrow import to_python
from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.file_ids import FileIds, PackedIds, libcst_definitions

# A list of structs by field; also the rows of a table by column.
Columns: TypeAlias = dict[str, list[Any]]
# The row of one extractor about a file, by column.
EvidenceRow: TypeAlias = dict[str, Any]
# The fields that are read, by list.
ListFields: TypeAlias = Mapping[str, Sequence[str]]


class FileKey(NamedTuple):
    """Repository, id and path of a file: the first columns of every row about it."""

    repo_id: str
    file_id: str
    path: str


class Lines:
    """The line index of a file, decoded on first use: most files have no position to convert."""

    def __init__(self, parts: Sequence[pa.RecordBatch] = ()) -> None:
        self._parts = parts

    @cached_property
    def _rows(self) -> list[tuple[int, int, int, str]]:
        names = ("line_no", "line_start_byte", "line_end_byte", "newline_kind")
        columns = [
            [value for part in self._parts for value in to_python(part.column(name))] for name in names
        ]
        return sorted(zip(*columns, strict=True))

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


class FileEvidence(Struct, frozen=True, dict=True):
    """A file and the evidence of all extractors; empty for an extractor without a row about the file."""

    repo_id: str
    file_id: str
    path: str
    ast: EvidenceRow
    libcst: EvidenceRow
    bytecode: EvidenceRow
    tree_sitter: EvidenceRow = {}
    symtable: EvidenceRow = {}
    # The documents about it in SCIP indexes.
    scip: tuple[EvidenceRow, ...] = ()
    # Its row in `repo_files_v1`; empty if the repository has no such file.
    listed: EvidenceRow = {}
    lines: Lines = Lines()

    @cached_property
    def ids(self) -> FileIds:
        """The ids of its definitions, and of nodes that are numbered here."""
        definitions = self.ast.get("definitions") or libcst_definitions(self.libcst.get("defs") or {})
        return FileIds(PackedIds.of_definitions(self.repo_id, self.path, definitions))

    @property
    def key(self) -> FileKey:
        """The columns that identify the file in its rows."""
        return FileKey(self.repo_id, self.file_id, self.path)

    def evidence_in(self, table: str) -> Any:
        """Return the evidence about the file from a table, by the table's name."""
        names = {"repo_files_v1": "listed", "file_line_index_v1": "lines", "scip_index_v1": "scip"}
        return getattr(self, names.get(table, table.removesuffix("_files_v1")))


class Reads(Struct, frozen=True):
    """The lists and fields that the rules read of each extractor."""

    # Only nodes of these kinds are read.
    ast_kinds: Sequence[str]
    ast_nodes: Sequence[str]
    ast: ListFields
    libcst: ListFields
    unit: Sequence[str]
    instructions: Sequence[str]
    exception_table: Sequence[str]
    bytecode: ListFields
    symtable: ListFields
    tree_sitter: ListFields
    # Only captures of these query packs are read.
    packs: Sequence[str]
    captures: Sequence[str]
    # Only occurrences without a span are read.
    occurrences: Sequence[str]
    scip: ListFields


def file_from_parts(file_id: str, parts: Mapping[str, Sequence[pa.RecordBatch]]) -> FileEvidence:
    """Build the evidence about a file from its rows in the frames of `witness_frames`."""
    rows = {
        table: [
            dict(zip(part.schema.names, row, strict=True))
            for part in batches
            for row in zip(*map(to_python, part.columns), strict=True)
        ]
        for table, batches in parts.items()
        if table != "file_line_index_v1"
    }
    return _file(file_id, rows, Lines(parts.get("file_line_index_v1", ())))


def file_from_rows(
    file_id: str, batches: Mapping[str, Sequence[pa.RecordBatch]], reads: Reads
) -> FileEvidence:
    """Build the evidence about a file from the whole rows of the extractors."""
    columns = {
        "repo_files_v1": ("repo_id", "path", "skipped_reason", "encoding", "mtime_ns"),
        "ast_files_v1": ("nodes", *reads.ast),
        "libcst_files_v1": tuple(reads.libcst),
        "tree_sitter_files_v1": ("stats", "captures", *reads.tree_sitter),
        "bytecode_files_v1": ("python_version", "code_objects", *reads.bytecode),
        "symtable_files_v1": tuple(reads.symtable),
        "scip_index_v1": ("repo_id", "path", "file_id", "position_encoding", "occurrences", *reads.scip),
    }
    rows: dict[str, list[EvidenceRow]] = {
        table: [
            dict(zip(names, row, strict=True))
            for part in batches.get(table, ())
            for row in zip(*(to_python(part.column(name)) for name in names), strict=True)
        ]
        for table, names in columns.items()
    }
    for row in rows["tree_sitter_files_v1"]:
        row["captures"] = _filter(row["captures"], lambda capture: capture["pack"] in reads.packs)
    for document in rows["scip_index_v1"]:
        document["is_missing"] = document.pop("file_id") is None
        document["occurrences"] = _filter(document["occurrences"], _is_unplaced)
    return _file(file_id, rows, Lines(batches.get("file_line_index_v1", ())))


def _is_unplaced(occurrence: EvidenceRow) -> bool:
    lacks_enclosing = (
        occurrence["enclosing_bstart"] is None and occurrence["enclosing_start_line"] is not None
    )
    return occurrence["bstart"] is None or lacks_enclosing


def _filter(columns: Columns | None, is_kept: Callable[[EvidenceRow], bool]) -> Columns | None:
    """Keep the rows of a list that satisfy a predicate."""
    if columns is None:
        return None
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kept = [row for row in rows if is_kept(row)]
    return {name: [row[name] for row in kept] for name in columns}


def _file(file_id: str, rows: Mapping[str, Sequence[EvidenceRow]], lines: Lines) -> FileEvidence:
    def first_row(table: str) -> EvidenceRow:
        return next(iter(rows.get(table, ())), {})

    listed, documents = first_row("repo_files_v1"), rows.get("scip_index_v1", ())
    known = listed or documents[0]
    return FileEvidence(
        known["repo_id"],
        file_id,
        known["path"],
        ast=first_row("ast_files_v1"),
        libcst=first_row("libcst_files_v1"),
        bytecode=first_row("bytecode_files_v1"),
        tree_sitter=first_row("tree_sitter_files_v1"),
        symtable=first_row("symtable_files_v1"),
        scip=tuple(documents),
        listed=listed,
        lines=lines,
    )


def iter_rows(columns: Mapping[str, Sequence[Any]] | None, *names: str) -> Iterator[tuple[Any, ...]]:
    """Iterate over rows of the named columns; over nothing for a list that is None.

    >>> list(iter_rows({"a": [1, 2], "b": [3, 4]}, "b", "a")), list(iter_rows(None, "a"))
    ([(3, 1), (4, 2)], [])
    """
    return zip(*(columns[name] for name in names), strict=True) if columns is not None else iter(())


def columns_of(table: str, rows: Sequence[tuple[Any, ...]]) -> Columns:
    """Return rows of a table by column; the rows have its columns in order, without those of the file."""
    names = catalog.table(table).column_names[len(FILE_COLUMN_NAMES) :]
    lists = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, lists, strict=True))
