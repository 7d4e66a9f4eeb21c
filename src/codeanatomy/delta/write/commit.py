"""Commit rows of a Spark DataFrame to a table: append, replace_by_owner.

`delta` lists the other ways of writing. Each verb makes at most one data commit, in these steps:

    align     project the rows onto the contract's columns (`delta.contract`)
    evolve    update an existing table to its policy (`delta.write.evolve`); a new table is created together
              with its first rows, whatever the verb (`delta.log.transaction`)
    check     semantic types, NOT NULL, constraints, in the writing pass itself (`delta.write.checks`)
    arrange   exchange and sort the rows by partition and cluster columns (`delta.layout`)
    write     in a clone of the session with the transaction id, the commit metadata and the compression,
              so that the caller's session is never modified
    find      look up the commit in the log by its metadata, and return its metrics

    done = replace_by_owner(store, "cpg_nodes", rows, owners=["file:..."], commit=Commit("run-7"))
    done.version, done.rows, done.attempts

Committing the same `Commit` (run id and sequence) twice has no effect. Conflicts with other writers are
retried with backoff. So is a commit that is not in the log after Delta reported success: on a local file
system the rename that publishes a commit is not atomic between processes, and the loser of that race gets no
error.

Tests: `tests/spark/test_commit.py`, `tests/system/test_concurrency.py`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, decode_stamp, encode_stamp
from codeanatomy.delta.contract import MISFIT, plan_projection, project, quote_identifier
from codeanatomy.delta.events import CommitRefused, Committed
from codeanatomy.delta.layout import RANGES, arrange_rows
from codeanatomy.delta.log.jvm_log import CommitRecord, DeltaLog
from codeanatomy.delta.log.transaction import add_rows
from codeanatomy.delta.store import LakeTables, Store
from codeanatomy.delta.write.checks import (
    BROKEN,
    Rules,
    check_semantic_types,
    find_violation,
    guard_rows,
    rules_for,
)
from codeanatomy.delta.write.evolve import evolve, new_table
from codeanatomy.errors import (
    CodeAnatomyError,
    CommitConflict,
    ConstraintViolation,
    ContractError,
    StorageFailure,
    UsageError,
)
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, spark_literal
from codeanatomy.spark.session import activate_session, clone_session

CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
LOST = "LostCommit"


class Retry(Struct, frozen=True):
    """How often, and with which pauses, a commit is retried after a conflict."""

    # Many, because a slow commit among quick ones wins only when they happen to pause.
    attempts: int = 30
    first_seconds: float = 0.1
    most_seconds: float = 2.0

    def pause(self, attempt: int) -> float:
        """Return the seconds to wait after a failed attempt: exponential backoff with full jitter."""
        return random.uniform(0, min(self.most_seconds, self.first_seconds * 2**attempt))


@dataclass(frozen=True)
class PendingCommit:
    """A commit to be made."""

    store: Store
    table: Table
    operation: str
    commit: Commit
    retry: Retry
    # Writes the rows in a prepared session.
    write: Callable[[SparkSession], None]
    # Returns the error with samples of the rows that violate a rule.
    find_broken: Callable[[], ConstraintViolation | None] | None = None
    dropped: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """Return the user metadata by which the commit is found in the log."""
        return encode_stamp(self.commit, self.operation)


def append(
    store: Store,
    name: str,
    rows: DataFrame,
    commit: Commit,
    *,
    file_bytes: int | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Add rows to a table."""
    table = store.table(name)
    return _write_rows(store, table, "append", rows, commit, retry, file_bytes=file_bytes)


def replace_by_owner(
    store: Store,
    name: str,
    rows: DataFrame,
    owners: Sequence[str],
    commit: Commit,
    *,
    by: str | None = None,
    repos: Sequence[str] = (),
    shared_repos: Sequence[str] = (),
    file_bytes: int | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Replace the rows of a set of owners by new ones, in one atomic commit.

    `by` overrides the table's owner column: `by="repo_id"` replaces repositories. `repos` lists the
    repositories of the owners, if they are known: rows of others are not read. `shared_repos` lists the
    repositories for which rows without an owner are replaced too. An owner without new rows loses its rows;
    new rows of an owner that is not listed are refused.
    """
    table = store.table(name)
    column = by or table.owner
    if column is None:
        raise UsageError(f"{name} has no owner column", "pass the column as by=...")
    table.column(column)
    if not owners and not shared_repos:
        raise UsageError(f"no owners to replace in {name}", "pass at least one owner")
    of_repos = f"{_in_list('repo_id', repos)} AND " if repos else ""
    parts = [f"({of_repos}{_in_list(column, owners)})"] if owners else []
    if shared_repos:
        parts.append(f"({quote_identifier(column)} IS NULL AND {_in_list('repo_id', shared_repos)})")
    owned = " OR ".join(parts)

    return _write_rows(
        store,
        table,
        "replace_by_owner",
        rows,
        commit,
        retry,
        owned,
        file_bytes=file_bytes,
    )


def _in_list(column: str, values: Sequence[str]) -> str:
    literals = ", ".join(map(spark_literal, sorted(set(values))))
    return f"{quote_identifier(column)} IN ({literals})"


def _write_rows(
    store: Store,
    table: Table,
    operation: str,
    rows: DataFrame,
    commit: Commit,
    retry: Retry,
    replaced: str | None = None,
    *,
    file_bytes: int | None = None,
) -> Committed:
    """Align, check and arrange rows, and commit them; they replace the rows for which a condition holds."""
    with record_refusals(store, table, operation, commit):
        check_semantic_types(table, rows.schema)
        projection = plan_projection(table, rows.schema)
        aligned = project(table, rows, projection)
    log = store.log(table.name)
    extra = {} if replaced is None else {"owned": replaced}

    def rules() -> Rules:
        properties = log.snapshot().properties if log.exists() else {}
        return {**rules_for(table, properties), **extra}

    def find_broken() -> ConstraintViolation | None:
        return find_violation(table, aligned, rules())

    def refuse_broken() -> None:
        """Raise before the table is altered if the rows would be refused later."""
        violation = find_broken()
        if violation is not None:
            raise violation

    def write(session: SparkSession) -> None:
        is_new = not log.exists()
        new = new_table(store, table) if is_new else None
        if not is_new:
            evolve(store, table, before=refuse_broken)
        ready = arrange_rows(session, table, guard_rows(table, aligned, rules()), file_bytes)
        if is_new or replaced is None:
            add_rows(session, log.location, ready, (commit.run_id, commit.sequence), change.stamp, new)
        else:
            writer = ready.write.format("delta").mode("overwrite").option("replaceWhere", replaced)
            writer.save(log.location)

    change = PendingCommit(store, table, operation, commit, retry, write, find_broken, projection.dropped)
    return run_commit(change)


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


def run_commit(change: PendingCommit) -> Committed:
    """Make the commit, record it, and translate the engine's errors."""
    with record_refusals(change.store, change.table, change.operation, change.commit):
        try:
            done = _commit_with_retries(change)
        except ENGINE_ERRORS as problem:
            raise _translate_error(change, problem) from problem
        change.store.record(done)
        if done.created:
            _settle(change)
        return done


def _commit_with_retries(change: PendingCommit) -> Committed:
    log = change.store.log(change.table.name)
    started = time.monotonic()
    conflicts: list[str] = []
    for attempt in range(change.retry.attempts):
        earlier = _find_repeated(log, change)
        if earlier is not None:
            # After a supposed loss it is the commit of this call; otherwise it was made before.
            repeated = LOST not in conflicts
            return _result(change, earlier, started, max(attempt, 1), conflicts, repeated=repeated)
        before = log.snapshot().version if log.exists() else -1
        session = clone_session(change.store.spark, _settings(change))
        try:
            with activate_session(session):
                change.write(session)
        except CONFLICTS as conflict:
            conflicts.append(type(conflict).__name__)
        else:
            record = _own_commit(log, change.commit, after=before)
            if record is not None:
                return _result(change, record, started, attempt + 1, conflicts)
            conflicts.append(LOST)
        time.sleep(change.retry.pause(attempt))
    lost = CommitConflict(
        f"{change.operation} of {change.table.name} conflicted with other writers "
        f"{change.retry.attempts} times ({', '.join(dict.fromkeys(conflicts))})",
        "run the command again when the other writer has finished",
    )
    lost.conflicts = tuple(conflicts)
    raise lost


def _settle(change: PendingCommit) -> None:
    """Apply the rest of the policy that had to wait for the rows: for a new table, or with a new schema."""
    for attempt in range(change.retry.attempts):
        try:
            evolve(change.store, change.table)
        except CONFLICTS:
            time.sleep(change.retry.pause(attempt))
        else:
            return


def _settings(change: PendingCommit) -> dict[str, str]:
    """Return the settings of the cloned session in which the commit is made."""
    partitions = int(change.store.spark.conf.get("spark.sql.shuffle.partitions") or RANGES)
    return {
        "spark.databricks.delta.write.txnAppId": change.commit.run_id,
        "spark.databricks.delta.write.txnVersion": str(change.commit.sequence),
        "spark.databricks.delta.commitInfo.userMetadata": change.stamp,
        "spark.sql.parquet.compression.codec": change.table.write.writer.compression,
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(max(RANGES, partitions)),
    }


def _find_repeated(log: DeltaLog, change: PendingCommit) -> CommitRecord | None:
    """Return the commit of this transaction if it was made before.

    Raise UsageError if the sequence was used for another commit.
    """
    commit = change.commit
    known = log.transaction(commit.run_id) if log.exists() else None
    if known is None or known < commit.sequence:
        return None
    record = _own_commit(log, commit, after=log.versions().start - 1)
    if record is None:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {change.table.name}, but "
            f"sequence {commit.sequence} is not in its log",
            "use a larger sequence for a new commit; a repeated one older than the log cannot be found",
        )
    stamp = decode_stamp(record.user_metadata)
    expected = (change.operation, commit.plan_fingerprint)
    if stamp is None or (stamp.operation, stamp.plan_fingerprint) != expected:
        used = f"{stamp.operation}, " if stamp is not None else ""
        raise UsageError(
            f"run {commit.run_id} has used sequence {commit.sequence} of {change.table.name} for another "
            f"commit ({used}version {record.version})",
            "give every commit of a run to the same table a sequence of its own",
        )
    return record


def _own_commit(log: DeltaLog, commit: Commit, after: int) -> CommitRecord | None:
    """Return the newest commit after a version that has this transaction's metadata."""
    for version in range(log.snapshot().version, after, -1):
        record = log.commit(version)
        stamp = decode_stamp(record.user_metadata)
        if stamp is not None and (stamp.run_id, stamp.sequence) == (commit.run_id, commit.sequence):
            return record
    return None


def _result(
    change: PendingCommit,
    record: CommitRecord | None,
    started: float,
    attempts: int,
    conflicts: Sequence[str],
    *,
    repeated: bool = False,
) -> Committed:
    metrics = {} if record is None else record.metrics

    def count(*names: str) -> int:
        return sum(int(metrics.get(name, 0)) for name in names)

    written = count("numOutputRows") - count("numCopiedRows")
    name = change.table.name
    return Committed(
        table=name,
        operation=change.operation,
        version=change.store.log(name).snapshot().version if record is None else record.version,
        committed=record is not None and not repeated,
        repeated=repeated,
        created=record is not None and record.version == 0,
        run_id=change.commit.run_id,
        sequence=change.commit.sequence,
        metadata=None if record is None else record.user_metadata,
        rows=max(written, 0),
        rows_deleted=count("numDeletedRows"),
        files=count("numFiles", "numAddedFiles"),
        files_removed=count("numRemovedFiles"),
        size_bytes=count("numOutputBytes", "numAddedBytes"),
        attempts=attempts,
        conflicts=tuple(conflicts),
        seconds=time.monotonic() - started,
        metrics={name: int(value) for name, value in metrics.items() if value.isdigit()},
        dropped_columns=change.dropped,
    )


def _translate_error(change: PendingCommit, problem: Exception) -> CodeAnatomyError:
    """Translate an error of the engine to one of the CodeAnatomyError family."""
    message = str(problem)
    if BROKEN in message and change.find_broken is not None:
        try:
            violation = change.find_broken()
        except ENGINE_ERRORS as another:
            problem, message = another, str(another)
        else:
            # None if the rows are not deterministic and no longer violate a rule when computed again.
            return violation or ConstraintViolation(change.table.name, {}, ())
    if MISFIT in message:
        detail = message[message.index(MISFIT) + len(MISFIT) :].splitlines()[0].strip()
        return ContractError(
            detail.removesuffix("SQLSTATE: P0001").strip(), "fix the code that produces the column"
        )
    what = f"{change.operation} of {change.table.name} failed: {cause_of(problem)}"
    return StorageFailure(what, _commit_status(change))


def _commit_status(change: PendingCommit) -> str:
    """Describe whether a failed commit is in the log: the engine may fail after it wrote the entry."""
    log = change.store.log(change.table.name)
    try:
        record = _own_commit(log, change.commit, log.versions().start - 1) if log.exists() else None
    except CodeAnatomyError:
        return "the log cannot be read, so it is unknown whether the rows were committed"
    if record is not None:
        return f"the rows were committed as version {record.version}; a repeated commit has no effect"
    return "no rows were committed; remove the cause and run the command again"
