"""Make a commit: the part that is the same whatever writes the files.

    pending = PendingCommit(store, table, "append", Commit("run-7"), SparkRows(...))
    done = run_commit(pending)
    done.version, done.rows, done.attempts

A writer (`VersionWriter`) makes one version after another: Spark's Delta writer (`delta.write.spark_rows`),
or data files that are there already and a log entry of our own (`delta.write.file_commits`). Around it, here
and only here:

    repeated    a transaction (run id and sequence) that is in the log already is not made again
    expected    `after` makes the commit a compare-and-set on the version of the table
    conflict    another writer was faster: pause, open the newest version, write again
    lost        so is a commit that is not in the log although the writer reported success: on a local file
                system Delta's rename of an entry is not atomic between processes, and the loser of that
                race gets no error
    result      version and metrics as the log has them, also of a commit that was made before
    event       a commit is recorded, and so is one that was refused, with the rules and samples
    errors      of the system, of Arrow and of Spark become ours, with what the log has of the commit

Tests: `tests/unit/delta/test_commit.py`, `tests/spark/test_commit.py`, `tests/system/test_concurrency.py`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import MsgspecError, Struct

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, CommitStamp, decode_stamp, encode_stamp
from codeanatomy.delta.events import CommitRefused, Committed
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.replay import list_log, read_commit_info
from codeanatomy.delta.log.versions import TableVersion, open_version
from codeanatomy.errors import (
    CodeAnatomyError,
    CommitConflict,
    ConstraintViolation,
    StorageFailure,
    UsageError,
)

LOST = "LostCommit"
# Error messages of the operating system when a write fails, with the hint for each.
CAUSES: Mapping[str, str] = {
    "No space left on device": "free disk space and run the command again",
    "Disk quota exceeded": "free space within the quota and run the command again",
    "Read-only file system": "mount the file system of the lake writable, or use another lake",
    "Permission denied": "get write permission for the lake, or use another lake",
    "Operation not permitted": "get write permission for the lake, or use another lake",
}


def system_cause(message: str) -> str | None:
    """Return which of CAUSES a message names.

    >>> system_cause("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device")
    'No space left on device'
    """
    return next((cause for cause in CAUSES if cause.lower() in message.lower()), None)


class Retry(Struct, frozen=True):
    """How often, and with which pauses, a commit is retried after a conflict."""

    # Many, because a slow commit among quick ones wins only when they happen to pause.
    attempts: int = 30
    first_seconds: float = 0.1
    most_seconds: float = 2.0

    def pause(self, attempt: int) -> float:
        """Return the seconds to wait after a failed attempt: exponential backoff with full jitter."""
        return random.uniform(0, min(self.most_seconds, self.first_seconds * 2**attempt))


class Conflict(Exception):
    """Another writer has made the version; the message is the name of the conflict."""


class VersionWriter(Protocol):
    """What writes a version of a table."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Return the errors of its libraries, which `explain` understands."""

    @property
    def made(self) -> tuple[int, Mapping[str, Any]] | None:
        """Return the version that `write` made and its commitInfo, if it is certain; None: see the log."""

    def check(self) -> None:
        """Raise if the columns or rows break the contract, before anything is written."""

    def write(self, change: PendingCommit, current: TableVersion | None) -> bool:
        """Write the version after `current`, None for a new table; return False if nothing would change.

        Raise Conflict if another writer was faster.
        """

    def settle(self, change: PendingCommit) -> None:
        """Apply what has to wait until a new table exists."""

    def explain(self, problem: Exception) -> CodeAnatomyError | str:
        """Translate an error of its libraries, or return its cause."""


@dataclass(frozen=True)
class PendingCommit:
    """A commit to be made."""

    store: LakeTables
    table: Table
    operation: str
    commit: Commit
    writer: VersionWriter
    retry: Retry = Retry()
    # The newest version, if it was just opened.
    opened: TableVersion | None = None
    # Whether there was no table when it was just opened.
    is_new: bool = False
    # The version that the table must have (-1: there is no table); None: any.
    after: int | None = None
    # Whether the same transaction may be made several times.
    is_repeatable: bool = False
    # Given columns that the contract does not have.
    dropped: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """Return the user metadata by which the commit is found in the log."""
        return encode_stamp(self.commit, self.operation)

    @property
    def location(self) -> str:
        """Return the path or URI of the table."""
        return self.store.location(self.table.name)

    @property
    def what(self) -> str:
        """Name the commit in an error message."""
        return f"{self.operation} of {self.table.name} at {self.location}"


def run_commit(change: PendingCommit) -> Committed:
    """Make the commit and record it; raise one of our errors if it cannot be made."""
    with record_refusals(change.store, change.table, change.operation, change.commit):
        with _translate_errors(change):
            change.writer.check()
            done = _commit_with_retries(change)
            if done.created:
                change.writer.settle(change)
        change.store.record(done)
        return done


@contextmanager
def record_refusals(store: LakeTables, table: Table, operation: str, commit: Commit) -> Iterator[None]:
    """Record a refused commit, then re-raise."""
    started = time.monotonic()
    try:
        yield
    except CodeAnatomyError as refused:
        violation = refused if isinstance(refused, ConstraintViolation) else None
        store.record(
            CommitRefused(
                table=table.name,
                operation=operation,
                run_id=commit.run_id,
                sequence=commit.sequence,
                code=refused.code,
                message=refused.message,
                violated={} if violation is None else violation.violated,
                samples=() if violation is None else violation.samples,
                conflicts=refused.conflicts if isinstance(refused, CommitConflict) else (),
                seconds=time.monotonic() - started,
            )
        )
        raise


def _commit_with_retries(change: PendingCommit) -> Committed:
    started = time.monotonic()
    conflicts: list[str] = []
    for attempt in range(change.retry.attempts):
        current = change.opened
        if attempt or (current is None and not change.is_new):
            current = open_version(change.table, change.location)
        earlier = _find_repeated(change, current)
        if earlier is not None:
            # After a supposed loss it is the commit of this call; otherwise it was made before.
            repeated = LOST not in conflicts
            return _result(change, earlier, started, max(attempt, 1), conflicts, repeated=repeated)
        version = -1 if current is None else current.info.version
        if change.after is not None and version != change.after:
            raise _other_version(change, version)
        try:
            is_changed = change.writer.write(change, current)
        except Conflict as conflict:
            if change.after is not None:
                raise _other_version(change, list_log(change.location).newest) from conflict
            conflicts.append(str(conflict))
        else:
            if not is_changed:
                return _result(change, (version, {}), started, attempt + 1, conflicts, committed=False)
            made = change.writer.made or _find_commit(change, after=version)
            if made is not None:
                return _result(change, made, started, attempt + 1, conflicts)
            conflicts.append(LOST)
        time.sleep(change.retry.pause(attempt))
    lost = CommitConflict(
        f"{change.operation} of {change.table.name} conflicted with other writers "
        f"{change.retry.attempts} times ({', '.join(dict.fromkeys(conflicts))})",
        "run the command again when the other writer has finished",
    )
    lost.conflicts = tuple(conflicts)
    raise lost


def _other_version(change: PendingCommit, version: int) -> CommitConflict:
    return CommitConflict(
        f"{change.table.name} is at version {version}, not {change.after}: "
        "another writer has committed to it",
        "run the command again",
    )


def _find_repeated(
    change: PendingCommit, current: TableVersion | None
) -> tuple[int, Mapping[str, Any]] | None:
    """Return the version and the commitInfo of this transaction if it was made before.

    Raise UsageError if the sequence was used for another commit.
    """
    commit = change.commit
    known = None if current is None else current.state.transactions.get(commit.run_id)
    if known is None or known < commit.sequence or change.is_repeatable:
        return None
    made = _find_commit(change, after=-1)
    if made is None:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {change.table.name}, but "
            f"sequence {commit.sequence} is not in its log",
            "use a larger sequence for a new commit; a repeated one older than the log cannot be found",
        )
    version, info = made
    stamp = decode_stamp(info.get("userMetadata")) or CommitStamp(commit.run_id)
    if (stamp.operation, stamp.plan_fingerprint) != (change.operation, commit.plan_fingerprint):
        raise UsageError(
            f"run {commit.run_id} has used sequence {commit.sequence} of {change.table.name} for another "
            f"commit ({stamp.operation}, version {version})",
            "give every commit of a run to the same table a sequence of its own",
        )
    return made


def _find_commit(change: PendingCommit, after: int) -> tuple[int, Mapping[str, Any]] | None:
    """Return the newest version after one that has this transaction, and its commitInfo."""
    for version in reversed(list_log(change.location).entries):
        if version <= after:
            return None
        info = read_commit_info(change.location, version)
        stamp = decode_stamp(info.get("userMetadata"))
        if stamp is not None and (stamp.run_id, stamp.sequence) == (
            change.commit.run_id,
            change.commit.sequence,
        ):
            return version, info
    return None


def _result(
    change: PendingCommit,
    made: tuple[int, Mapping[str, Any]],
    started: float,
    attempts: int,
    conflicts: Sequence[str],
    *,
    committed: bool = True,
    repeated: bool = False,
) -> Committed:
    version, info = made
    logged = info.get("operationMetrics") or {}
    metrics = {name: int(value) for name, value in logged.items() if str(value).isdigit()}

    def count(*names: str) -> int:
        return sum(metrics.get(name, 0) for name in names)

    return Committed(
        table=change.table.name,
        operation=change.operation,
        version=version,
        committed=committed and not repeated,
        repeated=repeated,
        created=committed and version == 0,
        run_id=change.commit.run_id,
        sequence=change.commit.sequence,
        metadata=info.get("userMetadata"),
        rows=max(count("numOutputRows") - count("numCopiedRows"), 0),
        rows_deleted=count("numDeletedRows"),
        files=count("numFiles", "numAddedFiles"),
        files_removed=count("numRemovedFiles"),
        size_bytes=count("numOutputBytes", "numAddedBytes"),
        attempts=attempts,
        conflicts=tuple(conflicts),
        seconds=time.monotonic() - started,
        metrics=metrics,
        dropped_columns=change.dropped,
    )


@contextmanager
def _translate_errors(change: PendingCommit) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        if not isinstance(problem, (OSError, MsgspecError, *change.writer.errors)):
            raise
        explained = change.writer.explain(problem)
        if isinstance(explained, CodeAnatomyError):
            raise explained from problem
        cause = system_cause(explained)
        hint = _commit_status(change) if cause is None else CAUSES[cause]
        raise StorageFailure(f"{change.what} failed: {cause or explained}", hint) from problem


def _commit_status(change: PendingCommit) -> str:
    """Describe whether a failed commit is in the log: a writer may fail after it wrote the entry."""
    try:
        made = _find_commit(change, after=-1)
    except (CodeAnatomyError, OSError, MsgspecError):
        return "the log cannot be read, so it is unknown whether the rows were committed"
    if made is not None:
        return f"the rows were committed as version {made[0]}; a repeated commit has no effect"
    return "no rows were committed; remove the cause and run the command again"
