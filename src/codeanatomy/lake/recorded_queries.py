"""Questions that were asked of a lake, kept until the next run records them: columns, never values.

    note("/data/lake", [Noted(at, "callers", "cpg_edges_by_dst", 7, filter_columns=("dst_node_id",))])
    # /data/lake/observe/_queries/4711-9f3c52aa.jsonl has a line more
    take("/data/lake")                  # what all processes have noted; the files are gone

A reader may have no right to write, and an answer must not wait for a commit. So a process that answers
questions appends lines to a file of its own, as far as it can, and a run, which has the lease, makes rows of
`delta_scan_plans` of them: one for all that differ in nothing but time. What lies in the folder is not
trusted: links are not followed, what is too large or too much is not read (the newest is), and a line that is
no note of ours is skipped. Of remote lakes nothing is noted: only Spark reads them.

Tests: `tests/unit/lake/test_recorded_queries.py`.
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
from typing import Annotated

from msgspec import DecodeError, Meta, Struct, json, structs

from codeanatomy import catalog
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import UnknownName

FOLDER = "observe/_queries"
# Of one process, and of all together: a run takes them, but perhaps none is made for months.
FILE_BYTES = 1024 * 1024
MOST_FILES = 2_000
# Of all files together, what a run reads, and how many notes that differ.
ALL_BYTES = 16 * FILE_BYTES
MOST_NOTES = 10_000
# Files that are written to, and those that somebody reads for the last time.
NOTES, TAKEN = ".jsonl", ".taken"

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Names = Annotated[tuple[Name, ...], Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=1_000)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class RecordedQuery(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A slice of a table that was read for an answer."""

    at: Annotated[datetime, Meta(tz=True)]
    # The verb, or sql.
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
    # So many of the same; then the time is that of the last.
    count: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


LINE = json.Decoder(RecordedQuery)
EPOCH = datetime.fromtimestamp(0, UTC)


def record_queries(root: str, notes: Iterable[RecordedQuery]) -> None:
    """Append lines to the file of this process; where that is not possible, nothing is kept."""
    lines = b"".join(json.encode(each) + b"\n" for each in notes)
    if not lines or not is_local(root):
        return
    with suppress(OSError):
        file = _spool(local_path(root), os.getpid())
        if file is None:
            return
        number = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            if os.fstat(number).st_size + len(lines) <= FILE_BYTES:
                os.write(number, lines)
        finally:
            os.close(number)


def read_queries(root: str) -> list[RecordedQuery]:
    """What all processes have noted, in the order of time; it stays there."""
    return _merged(_notes(_files(root)))


def take_queries(root: str) -> list[RecordedQuery]:
    """The same, and it is gone: whoever takes it records it."""
    taken: list[Path] = []
    for file in _files(root):
        # First, so that what is noted from now on goes into a new file.
        with suppress(OSError):
            taken.append(file.rename(file.with_suffix(TAKEN)))
    found = _merged(_notes(taken))
    for file in taken:
        with suppress(OSError):
            file.unlink()
    return found


def _merged(notes: Iterable[RecordedQuery]) -> list[RecordedQuery]:
    """Notes that differ in more than their time, in the order of time."""
    found: dict[RecordedQuery, RecordedQuery] = {}
    for each in notes:
        question = structs.replace(each, at=EPOCH, count=1)
        known = found.get(question)
        if known is not None:
            at = max(known.at, each.at)
            found[question] = structs.replace(each, at=at, count=known.count + each.count)
        elif len(found) < MOST_NOTES:
            found[question] = each
    return sorted(found.values(), key=lambda each: each.at)


@cache
def _spool(folder: str, process: int) -> Path | None:
    """The file of a process; none where there are too many already."""
    place = Path(folder, FOLDER)
    place.mkdir(parents=True, exist_ok=True)
    if sum(1 for _ in place.iterdir()) >= MOST_FILES:
        return None
    return place / f"{process}-{secrets.token_hex(4)}{NOTES}"


def _files(root: str) -> list[Path]:
    if not is_local(root):
        return []
    with suppress(OSError):
        # Some may have been taken by a run that died of it.
        found = [file for file in Path(local_path(root), FOLDER).iterdir() if file.suffix in (NOTES, TAKEN)]
        return sorted(found, key=lambda file: (-_changed_ns(file), file))[:MOST_FILES]
    return []


def _changed_ns(file: Path) -> int:
    try:
        return file.lstat().st_mtime_ns
    except OSError:
        # Somebody has taken it meanwhile.
        return 0


def _notes(files: Iterable[Path]) -> Iterator[RecordedQuery]:
    """The notes in some files, of which the newest come first."""
    left = ALL_BYTES
    for file in files:
        text = _read(file, min(left, FILE_BYTES))
        left -= len(text)
        yield from _decoded(text)


def _read(file: Path, most: int) -> bytes:
    """The beginning of a file; nothing of what is no file."""
    try:
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(number, most) if stat.S_ISREG(os.fstat(number).st_mode) else b""
    finally:
        os.close(number)


def _decoded(text: bytes) -> Iterator[RecordedQuery]:
    """The notes in a text, as far as they are any."""
    for line in text.splitlines():
        # What does not fit is a decode error, too; what is no Unicode is none.
        with suppress(DecodeError, UnicodeDecodeError, RecursionError, UnknownName):
            found = LINE.decode(line)
            catalog.table(found.table)
            if (found.candidate_files or 0) <= (found.total_files or 0):
                yield found
