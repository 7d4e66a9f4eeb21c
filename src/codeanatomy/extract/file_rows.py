"""Build the rows of one file in every table of the extract step, and Arrow batches of the rows of several.

One pass over a file feeds all tables: `extract_file` decodes `a.py` once and returns its row of
`repo_files_v1`, of `repo_file_blobs_v1` and of every extractor, and the rows of its lines and failures.
`table_batches` converts the rows of several files to one Arrow batch per table, with the table's columns
except the run id, which does not depend on the file.

Tests: `tests/unit/extract/test_worker.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from itertools import chain, repeat
from typing import Any, TypeAlias

import pyarrow as pa
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.arrow import array, arrow_field
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.spec import Column
from codeanatomy.catalog.tables.columns import ERROR_FIELDS, FILE_COLUMNS_WITH_DIGEST, RUN_ID
from codeanatomy.catalog.tables.extract import DELIBERATE_SKIPS
from codeanatomy.extract.evidence import Extractor, ExtractorResult, Problem, run_extractor
from codeanatomy.node_ids import file_id
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import Reading
from codeanatomy.sources.source_file import Source, Unreadable, decode

SOURCES = ("repo_files_v1", "repo_file_blobs_v1")
LINES = "file_line_index_v1"
FAILURES = "extract_error_artifacts"
# Columns that the rows of lines and failures take from their file.
FILE_COLUMN_NAMES = tuple(column.name for column in FILE_COLUMNS_WITH_DIGEST)
# Key of the columns that identify the file, among the rows by table.
FILE = "file"

Row: TypeAlias = dict[str, Any]
# By table: a row, lists by column for lines and failures, or None. And `FILE`.
FileRows: TypeAlias = dict[str, Any]
# Called before each step of a file: 0 is reading, then the extractors in order.
EnterStep: TypeAlias = Callable[[int], None]


@cache
def table_columns(name: str) -> tuple[Column, ...]:
    """Return the columns of a table without the run id, which is added when it is written."""
    return tuple(column for column in catalog.table(name).columns if column != RUN_ID)


@cache
def _schema(name: str) -> pa.Schema:
    return pa.schema(map(arrow_field, table_columns(name)))


def count_rows(files: Sequence[FileRows]) -> dict[str, dict[str, int]]:
    """Count rows by table and failures by extractor, for each repository."""
    counts: dict[str, Counter[str]] = {}
    for file in files:
        tally = counts.setdefault(file[FILE]["repo_id"], Counter())
        for name, rows in file.items():
            if name in (LINES, FAILURES) and rows is not None:
                tally[name] += len(next(iter(rows.values())))
            elif name != FILE:
                tally[name] += rows is not None
        tally.update(f"{FAILURES}/{name}" for name in file[FAILURES]["extractor_name"])
    return {repo_id: dict(tally) for repo_id, tally in counts.items()}


def failures_by_extractor(counts: Mapping[str, int]) -> dict[str, int]:
    """Select the failures among the counts of a repository."""
    prefix = f"{FAILURES}/"
    return {
        name.removeprefix(prefix): count for name, count in sorted(counts.items()) if name.startswith(prefix)
    }


def table_batches(tables: Sequence[str], files: Sequence[FileRows]) -> dict[str, pa.RecordBatch]:
    """Convert the rows of several files to one Arrow batch per table."""
    return {name: _batch(name, [file for file in files if file.get(name) is not None]) for name in tables}


def _batch(name: str, files: Sequence[FileRows]) -> pa.RecordBatch:
    columns = table_columns(name)
    if name in (LINES, FAILURES):
        counts = [len(next(iter(file[name].values()))) for file in files]
        arrays = [_joined_lists(column, name, files, counts) for column in columns]
    else:
        arrays = [array(column, [file[name].get(column.name) for file in files]) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=_schema(name))


def _joined_lists(column: Column, name: str, files: Sequence[FileRows], counts: Sequence[int]) -> pa.Array:
    """Join the lists of a column; the columns that identify a file are repeated for each of its rows."""
    if column.name in FILE_COLUMN_NAMES:
        values = (repeat(file[FILE].get(column.name), n) for file, n in zip(files, counts, strict=True))
    else:
        values = (file[name][column.name] for file in files)
    return array(column, list(chain.from_iterable(values)))


def extract_file(
    repo_id: str,
    reading: Reading,
    extractors: Sequence[Extractor],
    options: ExtractOptions,
    skipped_steps: Mapping[int, Problem],
    enter: EnterStep,
) -> FileRows:
    """Return the rows of a file; steps that have killed a process before are skipped, with the reason."""
    entry = reading.entry
    file: Row = {"repo_id": repo_id, "file_id": file_id(repo_id, entry.path), "path": entry.path}
    enter(0)
    source: Source | Unreadable | None = None
    if entry.skipped_reason is None:
        source = _decode(reading, skipped_steps.get(0))
    if reading.raw is not None:
        file["file_sha256"] = sha256(reading.raw).hexdigest()
    rows: FileRows = {FILE: file}
    rows["repo_files_v1"] = _repo_file(file, reading, source)
    rows["repo_file_blobs_v1"] = _blob(file, reading, source)
    rows[LINES] = _lines(source) if isinstance(source, Source) else None
    failures = FailureRows()
    failures.add_unread(entry, source)
    if isinstance(source, Source):
        for step, extractor in enumerate(extractors, start=1):
            enter(step)
            skip = skipped_steps.get(step)
            result = ExtractorResult({}, (skip,)) if skip else run_extractor(extractor, source, options)
            rows[extractor.table] = extractor_row(
                extractor.table, {**file, "witness_version": extractor.version}, result
            )
            failures.add(extractor.table, result.problems)
    rows[FAILURES] = failures.cells()
    return rows


def _decode(reading: Reading, skip: Problem | None) -> Source | Unreadable:
    if skip is not None:
        return Unreadable(skip.error_type, skip.message)
    if reading.raw is None:
        return reading.failure or Unreadable("unreadable", "no bytes were read")
    return decode(reading.entry.path, reading.raw)


def _repo_file(file: Row, reading: Reading, source: Source | Unreadable | None) -> Row:
    entry, size = reading.entry, reading.entry.size_bytes
    decoded = source if isinstance(source, Source) else None
    return {
        **file,
        "size_bytes": size if reading.raw is None else len(reading.raw),
        "mtime_ns": _bigint(entry.mtime_ns if reading.mtime_ns is None else reading.mtime_ns),
        "encoding": decoded.encoding if decoded else None,
        "has_bom": decoded.has_bom if decoded else None,
        "newline": decoded.newline if decoded else None,
        "is_stub": entry.is_stub,
        "skipped_reason": source.reason if isinstance(source, Unreadable) else entry.skipped_reason,
    }


def _blob(file: Row, reading: Reading, source: Source | Unreadable | None) -> Row | None:
    if reading.raw is None:
        return None
    decoded = source if isinstance(source, Source) else None
    return {
        **file,
        "size_bytes": len(reading.raw),
        "mtime_ns": _bigint(reading.mtime_ns),
        "encoding": decoded.encoding if decoded else None,
        "text": decoded.text if decoded else None,
        "bytes": reading.raw,
    }


def _bigint(value: int | None) -> int | None:
    """Return the value, or None if the column cannot hold it: a file may be dated beyond 2262."""
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _lines(source: Source) -> Row:
    starts, ends, kinds = [], [], []
    for start, end, kind in source.lines():
        starts.append(start)
        ends.append(end)
        kinds.append(kind)
    return {
        "line_no": range(len(starts)),
        "line_start_byte": starts,
        "line_end_byte": ends,
        "newline_kind": kinds,
    }


def extractor_row(name: str, file: Row, result: ExtractorResult) -> Row:
    """Build the row of an extractor from the columns of the file, the cells and the problems."""
    table = catalog.table(name)
    unknown = result.cells.keys() - set(table.column_names)
    if unknown:
        raise ValueError(f"{name} has no columns {sorted(unknown)}")
    errors = (column.name for column in table.columns if column.fields == ERROR_FIELDS)
    return {**file, **result.cells, **{column: problem_cells(result.problems) for column in errors}}


def problem_cells(problems: Sequence[Problem]) -> Row:
    """Convert problems to the cells of an errors column."""
    return {field.name: [getattr(each, field.name) for each in problems] for field in ERROR_FIELDS}


class FailureRows:
    """The failures of a file, numbered by extractor."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, Problem]] = []

    def add(self, extractor: str, problems: Sequence[Problem]) -> None:
        self.problems += [(extractor, problem) for problem in problems if problem.severity == "error"]

    def add_unread(self, entry: Entry, source: Source | Unreadable | None) -> None:
        """Add a failure for a file that could not be read, unless it was skipped deliberately."""
        if isinstance(source, Unreadable):
            self.add("repo_files_v1", [Problem("error", "read", source.reason, source.message)])
        elif entry.skipped_reason is not None and entry.skipped_reason not in DELIBERATE_SKIPS:
            message = f"not read: {entry.skipped_reason}"
            self.add("repo_files_v1", [Problem("error", "list", entry.skipped_reason, message)])

    def cells(self) -> Row:
        """Return the rows as lists by column."""
        counts: Counter[str] = Counter()
        names = (column.name for column in table_columns(FAILURES))
        cells: Row = {name: [] for name in names if name not in FILE_COLUMN_NAMES}
        for extractor, problem in self.problems:
            row = {**structs.asdict(problem), "extractor_name": extractor, "error_index": counts[extractor]}
            counts[extractor] += 1
            for name, values in cells.items():
                values.append(row[name])
        return cells
