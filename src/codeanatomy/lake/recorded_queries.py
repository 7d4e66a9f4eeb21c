"""Keep questions, and the columns (never the values) that they read, until the next run records them.

    question = RecordedQuestion(at, "callers", "20260501T12...", seconds=0.02, files=4, bytes=81_920, rows=3)
    query = RecordedQuery(at, "callers", "cpg_edges_by_dst", 7, filter_columns=("dst_node_id",))
    record_queries("/data/lake", [question, query])    # in /data/lake/observe/_queries/4711-9f3c52aa.jsonl
    take_records("/data/lake")                  # those of all processes; deletes the files

A reader may not have write permission for the tables, and an answer must not wait for a commit. So a process
that answers queries appends lines to a file of its own, if it can, and a run, which has the lease, turns them
into rows of `questions`, and of `delta_scan_plans`: one row for all queries that differ only in time. The
folder is not trusted:
links are not followed, sizes and counts are limited (the newest files are read), and invalid lines are
skipped. Queries of remote lakes are not kept here, since only Spark reads them.

Tests: `tests/unit/query/test_recording.py`.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import DecodeError, Meta, Struct, json, structs

from codeanatomy import catalog
from codeanatomy.delta.store_policy import is_local, local_path
from codeanatomy.errors import UnknownName
from codeanatomy.sources.listing import closing_fd

FOLDER = "observe/_queries"
# Limits of the file of one process and of the number of files: there may be no run for months.
FILE_BYTES = 1024 * 1024
MAX_FILES = 2_000
# Limits of what a run reads: bytes of all files, distinct queries, and questions.
ALL_BYTES = 16 * FILE_BYTES
MAX_QUERIES = 10_000
MAX_QUESTIONS = 50_000
# Suffixes of files being written, and of files taken by a run.
WRITTEN, TAKEN = ".jsonl", ".taken"

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Names = Annotated[tuple[Name, ...], Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=1_000)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class RecordedQuery(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A read of a table for a query."""

    at: Annotated[datetime, Meta(tz=True)]
    # The command that was run, such as `callers` or `sql`.
    purpose: Name
    table: Name
    version: Count
    total_files: Count | None = None
    candidate_files: Count | None = None
    # Conditions, with ? for each value.
    pushed_filters: Annotated[tuple[Text, ...], Meta(max_length=50)] = ()
    filter_columns: Names = ()
    join_columns: Names = ()
    projected_columns: Names = ()
    # Number of equal queries; `at` is the time of the last one.
    count: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


class RecordedQuestion(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A question that was answered, and what its answer cost."""

    at: Annotated[datetime, Meta(tz=True)]
    # The command that was run, such as `callers` or `sql`.
    verb: Name
    # The published run whose state was read.
    run_id: Name
    seconds: Annotated[float, Meta(ge=0, le=1_000_000)]
    # Data files that were opened, each counted once, and their size; None if unknown.
    files: Count | None = None
    bytes: Count | None = None
    # Rows that were returned.
    rows: Count = 0


class TakenRecords(NamedTuple):
    """What processes have recorded, each ordered by time."""

    queries: list[RecordedQuery]
    questions: list[RecordedQuestion]


Record: TypeAlias = RecordedQuery | RecordedQuestion
# No line fits both: each requires fields that the other does not have.
LINES: tuple[json.Decoder[RecordedQuery] | json.Decoder[RecordedQuestion], ...] = (
    json.Decoder(RecordedQuery),
    json.Decoder(RecordedQuestion),
)
EPOCH = datetime.fromtimestamp(0, UTC)


def record_queries(root: str, records: Iterable[Record]) -> None:
    """Append records to the file of this process; ignore them if that is not possible."""
    lines = b"".join(json.encode(each) + b"\n" for each in records)
    if not lines or not is_local(root):
        return
    with suppress(OSError):
        file = _spool_file(local_path(root), os.getpid())
        if file is None:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        with closing_fd(os.open(file, flags, 0o666)) as descriptor:
            if os.fstat(descriptor).st_size + len(lines) <= FILE_BYTES:
                os.write(descriptor, lines)


def take_records(root: str) -> TakenRecords:
    """Return the records of all processes, and delete the files: the caller records them."""
    taken: list[Path] = []
    for file in _files(root):
        # Rename first, so that later queries go to a new file.
        with suppress(OSError):
            taken.append(file.rename(file.with_suffix(TAKEN)))
    records = _sort(_read_files(taken))
    for file in taken:
        with suppress(OSError):
            file.unlink()
    return records


def _sort(records: Iterable[Record]) -> TakenRecords:
    """Separate queries, which are merged if they differ only in time, and questions; limit both."""
    queries: dict[RecordedQuery, RecordedQuery] = {}
    questions: list[RecordedQuestion] = []
    for each in records:
        if isinstance(each, RecordedQuestion):
            if len(questions) < MAX_QUESTIONS:
                questions.append(each)
            continue
        key = structs.replace(each, at=EPOCH, count=1)
        if known := queries.get(key):
            at = max(known.at, each.at)
            queries[key] = structs.replace(each, at=at, count=known.count + each.count)
        elif len(queries) < MAX_QUERIES:
            queries[key] = each
    return TakenRecords(
        sorted(queries.values(), key=lambda each: each.at), sorted(questions, key=lambda each: each.at)
    )


@cache
def _spool_file(lake: str, process: int) -> Path | None:
    """Return the file of a process; None if there are too many files."""
    folder = Path(lake, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    if sum(1 for _ in folder.iterdir()) >= MAX_FILES:
        return None
    return folder / f"{process}-{secrets.token_hex(4)}{WRITTEN}"


def _files(root: str) -> list[Path]:
    if not is_local(root):
        return []
    with suppress(OSError):
        # Also taken files: the run that took them may have died.
        folder = Path(local_path(root), FOLDER)
        files = [file for file in folder.iterdir() if file.suffix in (WRITTEN, TAKEN)]
        return sorted(files, key=lambda file: (-_modified_ns(file), file))[:MAX_FILES]
    return []


def _modified_ns(file: Path) -> int:
    try:
        return file.lstat().st_mtime_ns
    except OSError:
        # Taken by a run in the meantime.
        return 0


def _read_files(files: Iterable[Path]) -> Iterator[Record]:
    """Yield the valid records in files, in their order, up to the limit of bytes."""
    left = ALL_BYTES
    for file in files:
        text = _read(file, min(left, FILE_BYTES))
        left -= len(text)
        for line in text.splitlines():
            for decoder in LINES:
                # DecodeError covers invalid values; invalid UTF-8 is an error of its own.
                with suppress(DecodeError, UnicodeDecodeError, RecursionError, UnknownName):
                    record = decoder.decode(line)
                    if isinstance(record, RecordedQuestion) or _is_possible(record):
                        yield record


def _is_possible(query: RecordedQuery) -> bool:
    """Return whether the values of a query fit together; raise UnknownName for an unknown table."""
    catalog.table(query.table)
    return (query.candidate_files or 0) <= (query.total_files or 0)


def _read(file: Path, limit: int) -> bytes:
    """Read the beginning of a regular file; nothing from a link, pipe or folder."""
    try:
        with closing_fd(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as descriptor:
            return os.read(descriptor, limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
