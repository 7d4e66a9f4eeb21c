"""One file as the rules see it: what the witnesses said of it, nested lists as columns.

    file.libcst["type_exprs"]["text"]     # ["int", "str | None"]: the texts of all annotations
    file.ast["nodes"]["kind"]             # ["FunctionDef", "arg", "Name", ...]

A list of structs is a dictionary of equally long lists, one per field, never a list of dictionaries: making
an object per syntax node costs more than all that is done with it. A list the witness could not give is
None.

`witness_frames` reduces the rows of the witnesses to what the rules read; they come together by file as
bundles do (`pipeline.bundles`), and `file_of` makes a file of them. `heard_file` does the same to rows that are at
hand, without Spark. Tests: `tests/unit/normalize/test_file_view.py`,
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

# A list of structs, by field; also the rows of a table, by column.
Columns: TypeAlias = dict[str, list[Any]]
# What a witness said, by list.
Said: TypeAlias = dict[str, Any]
# Which fields of which lists are read.
Lists: TypeAlias = Mapping[str, Sequence[str]]


class Place(NamedTuple):
    """Where rows belong."""

    repo_id: str
    file_id: str
    path: str


class Lines:
    """The line index of a file, unpacked when somebody asks: most files have nothing to place."""

    def __init__(self, parts: Sequence[pa.RecordBatch] = ()) -> None:
        self._parts = parts

    @cached_property
    def _rows(self) -> list[tuple[int, int, int, str]]:
        names = ("line_no", "line_start_byte", "line_end_byte", "newline_kind")
        columns = [[value for part in self._parts for value in to_python(part.column(name))] for name in names]
        return sorted(zip(*columns, strict=True))

    @property
    def count(self) -> int | None:
        """How many lines there are; after the last newline begins one more. None of a file without text."""
        if not self._rows:
            return None
        number, _, _, newline = self._rows[-1]
        return number + (1 if newline == "none" else 2)

    def span(self, number: int | None) -> tuple[int | None, int | None]:
        """The bytes of a line, counted from 0; none if there is no such line."""
        if number is None or not 0 <= number < len(self._rows):
            return None, None
        _, begin, end, _ = self._rows[number]
        return begin, end

    def at(self, byte: int) -> tuple[int, int]:
        """Number, counted from 1, and first byte of the line of a place."""
        place = bisect_right(self._rows, byte, key=lambda row: row[1]) - 1
        if place < 0 or byte > self._rows[place][2]:
            # A file without text has no lines in the index.
            return 1, 0
        number, begin, end, newline = self._rows[place]
        return (number + 2, end) if byte == end and newline != "none" else (number + 1, begin)


class File(Struct, frozen=True):
    """A file and its witnesses; a witness without a row for the file has said nothing."""

    repo_id: str
    file_id: str
    path: str
    ast: Said
    libcst: Said
    bytecode: Said
    tree_sitter: Said = {}
    symtable: Said = {}
    # Its documents in SCIP indexes.
    scip: tuple[Said, ...] = ()
    # As the listing has it; nothing, if the repository has no such file.
    listed: Said = {}
    lines: Lines = Lines()

    @property
    def place(self) -> Place:
        """Where its rows belong."""
        return Place(self.repo_id, self.file_id, self.path)

    def said(self, table: str) -> Any:
        """What a table says of it."""
        names = {"repo_files_v1": "listed", "file_line_index_v1": "lines", "scip_index_v1": "scip"}
        return getattr(self, names.get(table, table.removesuffix("_files_v1")))


class Reads(Struct, frozen=True):
    """What the rules read of the witnesses."""

    # Nodes of these kinds only.
    ast_kinds: Sequence[str]
    ast_nodes: Sequence[str]
    ast: Lists
    libcst: Lists
    unit: Sequence[str]
    instructions: Sequence[str]
    exception_table: Sequence[str]
    bytecode: Lists
    symtable: Lists
    tree_sitter: Lists
    # Captures of these packs only.
    packs: Sequence[str]
    captures: Sequence[str]
    # Occurrences without a span only.
    occurrences: Sequence[str]
    scip: Lists


def file_of(file_id: str, parts: Mapping[str, Sequence[pa.RecordBatch]]) -> File:
    """A file from the rows of `witness_frames` that are about it."""
    told = {
        table: [
            dict(zip(part.schema.names, row, strict=True))
            for part in found
            for row in zip(*map(to_python, part.columns), strict=True)
        ]
        for table, found in parts.items()
        if table != "file_line_index_v1"
    }
    return _file(file_id, told, Lines(parts.get("file_line_index_v1", ())))


def heard_file(file_id: str, rows: Mapping[str, Sequence[pa.RecordBatch]], reads: Reads) -> File:
    """A file from whole rows of the witnesses that are about it."""
    columns = {
        "repo_files_v1": ("repo_id", "path", "skipped_reason", "encoding", "mtime_ns"),
        "ast_files_v1": ("nodes", *reads.ast),
        "libcst_files_v1": tuple(reads.libcst),
        "tree_sitter_files_v1": ("stats", "captures", *reads.tree_sitter),
        "bytecode_files_v1": ("python_version", "code_objects", *reads.bytecode),
        "symtable_files_v1": tuple(reads.symtable),
        "scip_index_v1": ("repo_id", "path", "file_id", "position_encoding", "occurrences", *reads.scip),
    }
    told: dict[str, list[Said]] = {
        table: [
            dict(zip(names, row, strict=True))
            for part in rows.get(table, ())
            for row in zip(*(to_python(part.column(name)) for name in names), strict=True)
        ]
        for table, names in columns.items()
    }
    for said in told["tree_sitter_files_v1"]:
        said["captures"] = _where(said["captures"], lambda each: each["pack"] in reads.packs)
    for said in told["scip_index_v1"]:
        said["is_missing"] = said.pop("file_id") is None
        said["occurrences"] = _where(said["occurrences"], _is_unplaced)
    return _file(file_id, told, Lines(rows.get("file_line_index_v1", ())))


def _is_unplaced(occurrence: Said) -> bool:
    is_lost = occurrence["enclosing_bstart"] is None and occurrence["enclosing_start_line"] is not None
    return occurrence["bstart"] is None or is_lost


def _where(columns: Columns | None, is_kept: Callable[[Said], bool]) -> Columns | None:
    """The rows of a list that are wanted."""
    if columns is None:
        return None
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kept = [row for row in rows if is_kept(row)]
    return {name: [row[name] for row in kept] for name in columns}


def _file(file_id: str, told: Mapping[str, Sequence[Said]], lines: Lines) -> File:
    def one(table: str) -> Said:
        return next(iter(told.get(table, ())), {})

    listed, documents = one("repo_files_v1"), told.get("scip_index_v1", ())
    known = listed or documents[0]
    return File(
        known["repo_id"],
        file_id,
        known["path"],
        ast=one("ast_files_v1"),
        libcst=one("libcst_files_v1"),
        bytecode=one("bytecode_files_v1"),
        tree_sitter=one("tree_sitter_files_v1"),
        symtable=one("symtable_files_v1"),
        scip=tuple(documents),
        listed=listed,
        lines=lines,
    )


def each(columns: Mapping[str, Sequence[Any]] | None, *names: str) -> Iterator[tuple[Any, ...]]:
    """Rows of some columns; none of a list that is not there.

    >>> list(each({"a": [1, 2], "b": [3, 4]}, "b", "a")), list(each(None, "a"))
    ([(3, 1), (4, 2)], [])
    """
    return zip(*(columns[name] for name in names), strict=True) if columns is not None else iter(())


def columns_of(table: str, rows: Sequence[tuple[Any, ...]]) -> Columns:
    """Rows of a table, given in the order of its columns without those of the place, by column."""
    names = catalog.table(table).column_names[len(FILE_COLUMN_NAMES) :]
    lists = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, lists, strict=True))
