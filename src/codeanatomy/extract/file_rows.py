"""The rows of one file in every table of the stage, and of several files as Arrow, table by table.

One pass over a file feeds all tables: `examine` reads `a.py` once and gives its row of `repo_files_v1`, of
`repo_file_blobs_v1` and of every witness, the rows of its lines and of its failures, and counts of them.
`batches` turns the rows of several files into one Arrow batch per table, in the table's own columns (but for
the run id, which is no business of a file).

Tests: `tests/unit/extract/test_worker.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from codeanatomy.ids import stable_id
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import Reading
from codeanatomy.sources.source_file import Source, Unreadable, decode

SOURCES = ("repo_files_v1", "repo_file_blobs_v1")
LINES = "file_line_index_v1"
FAILURES = "extract_error_artifacts"
# Columns that the rows of lines and failures take from their file.
FILE_COLUMN_NAMES = tuple(column.name for column in FILE_COLUMNS_WITH_DIGEST)

# By table: a row, lists by column for lines and failures, or none. And "place": what names the file.
Rows: TypeAlias = dict[str, Any]
# Called before each step of a file: 0 is reading, then the witnesses in order.
Enter: TypeAlias = Callable[[int], None]


def file_id(repo_id: str, path: str) -> str:
    """The id of a file.

    >>> file_id("requests", "requests/api.py")
    'file:aamgHupZCFkFBklrJ5jCSw'
    """
    return stable_id("file", repo_id, path)


def table_columns(name: str) -> tuple[Column, ...]:
    """The columns of a table that the files themselves can fill."""
    return tuple(column for column in catalog.table(name).columns if column != RUN_ID)


def count_rows(files: Sequence[Rows]) -> dict[str, dict[str, int]]:
    """By repository: rows by table, and failures by extractor."""
    counts: dict[str, Counter[str]] = {}
    for file in files:
        tally = counts.setdefault(file["place"]["repo_id"], Counter())
        for name, rows in file.items():
            if name in (LINES, FAILURES) and rows is not None:
                tally[name] += len(next(iter(rows.values())))
            elif name != "place":
                tally[name] += rows is not None
        tally.update(f"{FAILURES}/{name}" for name in file[FAILURES]["extractor_name"])
    return {repo_id: dict(tally) for repo_id, tally in counts.items()}


def failures_by_extractor(counts: Mapping[str, int]) -> dict[str, int]:
    """Of the counts of a repository, the failures."""
    lead = f"{FAILURES}/"
    return {name.removeprefix(lead): count for name, count in sorted(counts.items()) if name.startswith(lead)}


def table_batches(tables: Sequence[str], files: Sequence[Rows]) -> dict[str, pa.RecordBatch]:
    """The rows of several files, by table."""
    return {name: _batch(name, [file for file in files if file.get(name) is not None]) for name in tables}


def _batch(name: str, files: Sequence[Rows]) -> pa.RecordBatch:
    columns = table_columns(name)
    if name in (LINES, FAILURES):
        counts = [len(next(iter(file[name].values()))) for file in files]
        arrays = [_of_lists(column, name, files, counts) for column in columns]
    else:
        arrays = [array(column, [file[name].get(column.name) for file in files]) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(map(arrow_field, columns)))


def _of_lists(column: Column, name: str, files: Sequence[Rows], counts: Sequence[int]) -> pa.Array:
    """A column of rows that stand in lists by file; what names the file is repeated for each."""
    if column.name in FILE_COLUMN_NAMES:
        values = (repeat(file["place"].get(column.name), n) for file, n in zip(files, counts, strict=True))
    else:
        values = (file[name][column.name] for file in files)
    return array(column, list(chain.from_iterable(values)))


def extract_file(
    repo_id: str,
    reading: Reading,
    witnesses: Sequence[Extractor],
    options: ExtractOptions,
    silenced: Mapping[int, Problem],
    enter: Enter,
) -> Rows:
    """The rows of a file; steps that have killed a process before are `silenced` by their number."""
    entry = reading.entry
    place: Rows = {"repo_id": repo_id, "file_id": file_id(repo_id, entry.path), "path": entry.path}
    enter(0)
    source: Source | Unreadable | None = None
    if entry.skipped_reason is None:
        source = _opened(reading, silenced.get(0))
    if reading.raw is not None:
        place["file_sha256"] = sha256(reading.raw).hexdigest()
    rows: Rows = {"place": place}
    rows["repo_files_v1"] = _repo_file(place, reading, source)
    rows["repo_file_blobs_v1"] = _blob(place, reading, source)
    rows[LINES] = _lines(source) if isinstance(source, Source) else None
    failures = FailureRows()
    failures.failure(entry, source)
    if isinstance(source, Source):
        for step, witness in enumerate(witnesses, start=1):
            enter(step)
            silence = silenced.get(step)
            said = ExtractorResult({}, (silence,)) if silence else run_extractor(witness, source, options)
            rows[witness.table] = extractor_row(
                witness.table, {**place, "witness_version": witness.version}, said
            )
            failures.add(witness.table, said.problems)
    rows[FAILURES] = failures.cells()
    return rows


def _opened(reading: Reading, silence: Problem | None) -> Source | Unreadable:
    if silence is not None:
        return Unreadable(silence.error_type, silence.message)
    if reading.raw is None:
        return reading.failure or Unreadable("unreadable", "no bytes were read")
    return decode(reading.entry.path, reading.raw)


def _repo_file(place: Rows, reading: Reading, source: Source | Unreadable | None) -> Rows:
    entry, size = reading.entry, reading.entry.size_bytes
    read = source if isinstance(source, Source) else None
    return {
        **place,
        "size_bytes": size if reading.raw is None else len(reading.raw),
        "mtime_ns": _bigint(entry.mtime_ns if reading.mtime_ns is None else reading.mtime_ns),
        "encoding": read.encoding if read else None,
        "has_bom": read.has_bom if read else None,
        "newline": read.newline if read else None,
        "is_stub": entry.is_stub,
        "skipped_reason": source.reason if isinstance(source, Unreadable) else entry.skipped_reason,
    }


def _blob(place: Rows, reading: Reading, source: Source | Unreadable | None) -> Rows | None:
    if reading.raw is None:
        return None
    read = source if isinstance(source, Source) else None
    return {
        **place,
        "size_bytes": len(reading.raw),
        "mtime_ns": _bigint(reading.mtime_ns),
        "encoding": read.encoding if read else None,
        "text": read.text if read else None,
        "bytes": reading.raw,
    }


def _bigint(value: int | None) -> int | None:
    """The value, if the column can hold it: a file may be dated beyond 2262."""
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _lines(source: Source) -> Rows:
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


def extractor_row(name: str, known: Rows, said: ExtractorResult) -> Rows:
    """The row of a witness: what is known of the file, what it says, and its problems."""
    table = catalog.table(name)
    unknown = said.cells.keys() - set(table.column_names)
    if unknown:
        raise ValueError(f"{name} has no columns {sorted(unknown)}")
    errors = (column.name for column in table.columns if column.fields == ERROR_FIELDS)
    return {**known, **said.cells, **{column: problem_cells(said.problems) for column in errors}}


def problem_cells(problems: Sequence[Problem]) -> Rows:
    """Problems as the cells of an errors column."""
    return {field.name: [getattr(each, field.name) for each in problems] for field in ERROR_FIELDS}


class FailureRows:
    """The failures of a file, numbered by extractor."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Problem]] = []

    def add(self, extractor: str, problems: Sequence[Problem]) -> None:
        self.found += [(extractor, problem) for problem in problems if problem.severity == "error"]

    def failure(self, entry: Entry, source: Source | Unreadable | None) -> None:
        """Not to read a file is a failure unless somebody chose so."""
        if isinstance(source, Unreadable):
            self.add("repo_files_v1", [Problem("error", "read", source.reason, source.message)])
        elif entry.skipped_reason is not None and entry.skipped_reason not in DELIBERATE_SKIPS:
            said = f"not read: {entry.skipped_reason}"
            self.add("repo_files_v1", [Problem("error", "list", entry.skipped_reason, said)])

    def cells(self) -> Rows:
        seen: Counter[str] = Counter()
        own = (column.name for column in table_columns(FAILURES))
        cells: Rows = {name: [] for name in own if name not in FILE_COLUMN_NAMES}
        for extractor, problem in self.found:
            row = {**structs.asdict(problem), "extractor_name": extractor, "error_index": seen[extractor]}
            seen[extractor] += 1
            for name, values in cells.items():
                values.append(row[name])
        return cells
