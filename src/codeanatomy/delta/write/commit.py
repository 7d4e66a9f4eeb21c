"""The commit boundary: the only way rows are written.

Each verb makes at most one data commit, and every commit goes the same way:

    align     the rows become the contract's columns (delta.contract)
    evolve    a table that is there is brought to its policy (delta.write.evolve); one that is not is
              born with its first rows, whatever the verb (delta.log.transaction)
    check     meaning, NOT NULL, constraints, in the writing pass itself (delta.write.checks)
    arrange   rows are exchanged and sorted by partition + cluster columns (delta.layout)
    write     in a clone of the session that carries the transaction id, the commit metadata and
              the compression, so the caller's session is never touched
    find      the commit is looked up in the log by its metadata and its own metrics are returned

    done = replace_by_owner(store, "cpg_nodes", rows, owners=["file:..."], commit=Commit("run-7"))
    done.version, done.rows, done.attempts

The same `Commit` (run id and sequence) twice is one commit. Conflicts with other writers are retried
with backoff. So is a commit that is not found in the log after Delta reported success: on a local
file system the rename that publishes a commit is not atomic between processes, and the loser of that
race is told nothing. MERGE and DELETE rewrite files in the engine's own order; maintenance restores
the clustering. Tests: `tests/spark/test_commit.py`, `tests/system/test_concurrency.py`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from delta import DeltaTable
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
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, decode_stamp, encode_stamp
from codeanatomy.delta.contract import MISFIT, plan_projection, project, quote_identifier
from codeanatomy.delta.events import CommitRefused, Committed
from codeanatomy.delta.layout import RANGES, arrange_rows, rebind_session
from codeanatomy.delta.log.jvm_log import CommitRecord, DeltaLog, SnapshotInfo
from codeanatomy.delta.log.transaction import add_rows
from codeanatomy.delta.store import LakeTables, Store
from codeanatomy.delta.write.checks import (
    BROKEN,
    SAMPLE_ROWS,
    Rules,
    check_semantic_types,
    find_violation,
    guard_rows,
    rules_for,
)
from codeanatomy.delta.write.evolve import evolve, new_table, replaces_schema
from codeanatomy.errors import (
    CodeAnatomyError,
    CommitConflict,
    ConstraintViolation,
    ContractError,
    StorageFailure,
    TableMissing,
    UsageError,
)
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, sql_text
from codeanatomy.spark.session import active, isolated

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
    """How often and how patiently a conflict is tried again."""

    # Many, because a slow commit among quick ones wins only when they happen to pause.
    attempts: int = 30
    first_seconds: float = 0.1
    most_seconds: float = 2.0

    def pause(self, attempt: int) -> float:
        """Seconds to wait after a failed attempt: doubling, with full jitter."""
        return random.uniform(0, min(self.most_seconds, self.first_seconds * 2**attempt))


@dataclass(frozen=True)
class PendingCommit:
    """One commit to be made."""

    store: Store
    table: Table
    operation: str
    commit: Commit
    retry: Retry
    # Does it in a session prepared for it, and says whether there was anything to commit.
    write: Callable[[SparkSession], bool]
    # The error that shows the rows which break a rule.
    broken: Callable[[], ConstraintViolation | None] | None = None
    lineage: Sequence[str] | None = None
    dropped: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """What is written into the commit, to find it again."""
        return encode_stamp(self.commit, self.operation)


def overwrite(
    store: Store,
    name: str,
    rows: DataFrame,
    commit: Commit,
    *,
    lineage: Sequence[str] | None = None,
    file_bytes: int | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Replace all rows of a table.

    `lineage` names columns that consumers filter and join by; `file_bytes` is about what the rows will
    take on disk, where the caller knows: rows for a single file are written without an exchange.
    """
    table = store.table(name)

    def write(session: SparkSession, ready: DataFrame, found: SnapshotInfo) -> None:
        writer = ready.write.format("delta").mode("overwrite")
        if replaces_schema(table, found, replacing=True):
            writer = writer.option("overwriteSchema", "true").partitionBy(*table.write.partition_by)
        writer.save(store.location(name))

    return _write_rows(
        store, table, "overwrite", rows, commit, retry, write, lineage=lineage, file_bytes=file_bytes
    )


def append(
    store: Store,
    name: str,
    rows: DataFrame,
    commit: Commit,
    *,
    lineage: Sequence[str] | None = None,
    file_bytes: int | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Add rows to a table."""
    table = store.table(name)
    return _write_rows(
        store, table, "append", rows, commit, retry, None, lineage=lineage, file_bytes=file_bytes
    )


def replace_by_owner(
    store: Store,
    name: str,
    rows: DataFrame,
    owners: Sequence[str],
    commit: Commit,
    *,
    by: str | None = None,
    shared_repos: Sequence[str] = (),
    lineage: Sequence[str] | None = None,
    file_bytes: int | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Swap the rows of a set of owners for new ones, in one atomic commit.

    `by` names the owner column where it is not the table's own: `by="repo_id"` swaps a repository.
    `shared_repos` names repositories whose rows without an owner are swapped too. An owner without new rows
    loses its rows; rows of an owner that is not named are refused.
    """
    table = store.table(name)
    column = by or table.owner
    if column is None:
        raise UsageError(f"{name} has no owner column", "say which column with by=...")
    table.column(column)
    if not owners and not shared_repos:
        raise UsageError(f"no owners to replace in {name}", "name at least one owner")
    parts = [_is_one(column, owners)] if owners else []
    if shared_repos:
        parts.append(f"({quote_identifier(column)} IS NULL AND {_is_one('repo_id', shared_repos)})")
    owned = " OR ".join(parts)

    def write(session: SparkSession, ready: DataFrame, found: SnapshotInfo) -> None:
        writer = ready.write.format("delta").mode("overwrite").option("replaceWhere", owned)
        writer.save(store.location(name))

    return _write_rows(
        store,
        table,
        "replace_by_owner",
        rows,
        commit,
        retry,
        write,
        lineage=lineage,
        file_bytes=file_bytes,
        extra={"owned": owned},
    )


def _is_one(column: str, values: Sequence[str]) -> str:
    return f"{quote_identifier(column)} IN ({', '.join(sql_text(value) for value in sorted(set(values)))})"


def merge(
    store: Store,
    name: str,
    rows: DataFrame,
    commit: Commit,
    *,
    on: Sequence[str] = (),
    update_when: str | None = None,
    delete_unmatched: str | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Insert new rows and update those with the same key (`on`, else the primary key).

    `update_when` is a condition over `old` and `new`; `delete_unmatched` is a condition over `old`
    for stored rows without a new one, such as "old.repo_id = 'x'".
    """
    table = store.table(name)
    keys = [table.column(key).name for key in (on or table.primary_key)]
    same = " AND ".join(f"old.{quote_identifier(key)} <=> new.{quote_identifier(key)}" for key in keys)

    def write(session: SparkSession, ready: DataFrame, found: SnapshotInfo) -> bool:
        target = DeltaTable.forPath(session, store.location(name)).alias("old")
        builder = target.merge(ready.alias("new"), same)
        builder = builder.whenMatchedUpdateAll(update_when).whenNotMatchedInsertAll()
        if delete_unmatched is not None:
            builder = builder.whenNotMatchedBySourceDelete(delete_unmatched)
        return _affected(builder.execute())

    return _write_rows(store, table, "merge", rows, commit, retry, write, keys=keys)


def _refuse_repeated_keys(table: Table, rows: DataFrame, keys: Sequence[str]) -> None:
    """Two rows of one key have no order, so which one a merge would keep is chance."""
    twice = rows.groupBy(*keys).count().where("count > 1").limit(SAMPLE_ROWS).collect()
    if twice:
        samples = tuple(str({key: row[key] for key in keys}) for row in twice)
        raise ConstraintViolation(table.name, {"key_unique": f"one row per {', '.join(keys)}"}, samples)


def delete(store: Store, name: str, predicate: str, commit: Commit, *, retry: Retry = Retry()) -> Committed:
    """Delete the rows that meet a condition; an empty condition is refused."""
    if not predicate or not predicate.strip():
        raise UsageError(f"delete from {name} without a predicate", "to empty a table, overwrite it")
    try:
        store.spark._jsparkSession.sessionState().sqlParser().parseExpression(predicate)
    except ParseException as problem:
        raise UsageError(f"{predicate!r} is not a condition", "write one SQL expression") from problem
    table = store.table(name)
    if not store.log(name).exists():
        raise TableMissing(f"{name} was never written at {store.location(name)}", "nothing to delete")

    def write(session: SparkSession) -> bool:
        evolve(store, table)
        address = f"delta.{quote_identifier(store.location(name))}"
        return _affected(session.sql(f"DELETE FROM {address} WHERE ({predicate}\n)"))

    return run_commit(PendingCommit(store, table, "delete", commit, retry, write))


def _write_rows(
    store: Store,
    table: Table,
    operation: str,
    rows: DataFrame,
    commit: Commit,
    retry: Retry,
    write: Callable[[SparkSession, DataFrame, SnapshotInfo], bool | None] | None,
    *,
    lineage: Sequence[str] | None = None,
    file_bytes: int | None = None,
    extra: Rules = MappingProxyType({}),
    keys: Sequence[str] = (),
) -> Committed:
    """Align, check and arrange rows, and hand them to `write`; without one they are appended."""
    with record_refusals(store, table, operation, commit):
        check_semantic_types(table, rows.schema)
        projection = plan_projection(table, rows.schema)
        aligned = project(table, rows, projection)
    log = store.log(table.name)

    def rules() -> Rules:
        properties = log.snapshot().properties if log.exists() else {}
        return {**rules_for(table, properties), **extra}

    def refuse_broken() -> None:
        """Rows that will be refused must not have changed the table: look before, this once."""
        refused = broken()
        if refused is not None:
            raise refused

    def evolved() -> SnapshotInfo:
        replacing = operation == "overwrite"
        return evolve(store, table, lineage, replacing=replacing, before=refuse_broken)

    def attempt(session: SparkSession) -> bool:
        if keys:
            _refuse_repeated_keys(table, aligned, keys)
        born = not log.exists()
        new = new_table(store, table, lineage) if born else None
        found = None if born else evolved()
        checked = guard_rows(table, aligned, rules())
        # MERGE joins and writes in an order of its own, so arranging would be for nothing.
        merging = operation == "merge" and not born
        ready = rebind_session(session, checked) if merging else arrange_rows(session, table, checked, file_bytes)
        if found is None or write is None:
            add_rows(session, log.location, ready, (commit.run_id, commit.sequence), change.stamp, new)
            return True
        return write(session, ready, found) is not False

    def broken() -> ConstraintViolation | None:
        return find_violation(table, aligned, rules())

    change = PendingCommit(store, table, operation, commit, retry, attempt, broken, lineage, projection.dropped)
    return run_commit(change)


@contextmanager
def record_refusals(store: LakeTables, table: Table, operation: str, commit: Commit) -> Iterator[None]:
    """Tell the recorder of an error of ours on its way out."""
    started = time.monotonic()
    try:
        yield
    except CodeAnatomyError as refused:
        broken = refused if isinstance(refused, ConstraintViolation) else None
        store.record(
            CommitRefused(
                table=table.name,
                operation=operation,
                run_id=commit.run_id,
                sequence=commit.sequence,
                code=refused.code,
                message=refused.message,
                violated={} if broken is None else broken.violated,
                samples=() if broken is None else broken.samples,
                conflicts=refused.conflicts if isinstance(refused, CommitConflict) else (),
                seconds=time.monotonic() - started,
            )
        )
        raise


def run_commit(change: PendingCommit) -> Committed:
    """Make the change, tell the recorder, and turn the engine's failures into ours."""
    with record_refusals(change.store, change.table, change.operation, change.commit):
        try:
            done = _retried(change)
        except ENGINE_ERRORS as problem:
            raise _explained(change, problem) from problem
        change.store.record(done)
        if done.created or change.table.schema.schema_mode == "overwrite":
            _settle(change)
        return done


def _retried(change: PendingCommit) -> Committed:
    log = change.store.log(change.table.name)
    started = time.monotonic()
    conflicts: list[str] = []
    for attempt in range(change.retry.attempts):
        found = _already(log, change)
        if found is not None:
            # After a loss that was none it is our own commit; else somebody made it before us.
            return _result(change, found, started, max(attempt, 1), conflicts, repeated=LOST not in conflicts)
        before = log.snapshot().version if log.exists() else -1
        session = isolated(change.store.spark, _settings(change))
        try:
            with active(session):
                changed = change.write(session)
        except CONFLICTS as conflict:
            conflicts.append(type(conflict).__name__)
        else:
            record = _own_commit(log, change.commit, after=before)
            if record is not None or not changed:
                return _result(change, record, started, attempt + 1, conflicts)
            conflicts.append(LOST)
        time.sleep(change.retry.pause(attempt))
    lost = CommitConflict(
        f"{change.operation} of {change.table.name} lost against other writers "
        f"{change.retry.attempts} times ({', '.join(dict.fromkeys(conflicts))})",
        "repeat it when the other writer is done",
    )
    lost.conflicts = tuple(conflicts)
    raise lost


def _settle(change: PendingCommit) -> None:
    """Bring the table to its policy where that had to wait for the rows: at birth, or with a new schema."""
    for attempt in range(change.retry.attempts):
        try:
            evolve(change.store, change.table, change.lineage)
        except CONFLICTS:
            time.sleep(change.retry.pause(attempt))
        else:
            return


def _settings(change: PendingCommit) -> dict[str, str]:
    """What the clone of the session carries into the commit."""
    partitions = int(change.store.spark.conf.get("spark.sql.shuffle.partitions") or RANGES)
    return {
        "spark.databricks.delta.write.txnAppId": change.commit.run_id,
        "spark.databricks.delta.write.txnVersion": str(change.commit.sequence),
        "spark.databricks.delta.commitInfo.userMetadata": change.stamp,
        "spark.sql.parquet.compression.codec": change.table.write.writer.compression,
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(max(RANGES, partitions)),
    }


def _already(log: DeltaLog, change: PendingCommit) -> CommitRecord | None:
    """The commit of this transaction, if it was made before."""
    commit = change.commit
    known = log.transaction(commit.run_id) if log.exists() else None
    if known is None or known < commit.sequence:
        return None
    record = _own_commit(log, commit, after=log.versions().start - 1)
    if record is None:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {change.table.name}, and "
            f"sequence {commit.sequence} is not in its log",
            "a repeated commit older than the log cannot be found; a new one needs a larger sequence",
        )
    made = decode_stamp(record.user_metadata)
    if made is None or (made.operation, made.plan_fingerprint) != (change.operation, commit.plan_fingerprint):
        used = f"{made.operation}, " if made is not None else ""
        raise UsageError(
            f"run {commit.run_id} has used sequence {commit.sequence} of {change.table.name} for another "
            f"commit ({used}version {record.version})",
            "give every commit of a run to the same table a sequence of its own",
        )
    return record


def _own_commit(log: DeltaLog, commit: Commit, after: int) -> CommitRecord | None:
    """The newest commit after a version that carries this transaction's metadata."""
    for version in range(log.snapshot().version, after, -1):
        record = log.commit(version)
        found = decode_stamp(record.user_metadata)
        if found is not None and (found.run_id, found.sequence) == (commit.run_id, commit.sequence):
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

    merged = record is not None and record.operation == "MERGE"
    inserted = count("numTargetRowsInserted", "numTargetRowsUpdated")
    written = inserted if merged else count("numOutputRows") - count("numCopiedRows")
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
        rows_deleted=count("numDeletedRows", "numTargetRowsDeleted"),
        files=count("numFiles", "numAddedFiles", "numTargetFilesAdded"),
        files_removed=count("numRemovedFiles", "numTargetFilesRemoved"),
        size_bytes=count("numOutputBytes", "numAddedBytes", "numTargetBytesAdded"),
        attempts=attempts,
        conflicts=tuple(conflicts),
        seconds=time.monotonic() - started,
        metrics={name: int(value) for name, value in metrics.items() if value.isdigit()},
        dropped_columns=change.dropped,
    )


def _affected(report: DataFrame) -> bool:
    """Whether a MERGE or DELETE changed rows; it makes no commit where it did not."""
    row = report.first()
    return row is not None and int(row["num_affected_rows"]) > 0


def _explained(change: PendingCommit, problem: Exception) -> CodeAnatomyError:
    """The engine's failure as one of ours."""
    said = str(problem)
    if BROKEN in said and change.broken is not None:
        try:
            shown = change.broken()
        except ENGINE_ERRORS as another:
            problem, said = another, str(another)
        else:
            # A row that is computed anew may differ from the one that failed.
            return shown or ConstraintViolation(change.table.name, {"some rule": "see the catalogue"}, ())
    if MISFIT in said:
        detail = said[said.index(MISFIT) + len(MISFIT) :].splitlines()[0].strip()
        return ContractError(detail.removesuffix("SQLSTATE: P0001").strip(), "mend what produces the column")
    what = f"{change.operation} of {change.table.name} failed: {cause_of(problem)}"
    if isinstance(problem, AnalysisException) and change.operation in ("delete", "merge"):
        return UsageError(what, "mend the condition; no rows were committed")
    return StorageFailure(what, _where_it_stands(change))


def _where_it_stands(change: PendingCommit) -> str:
    """Whether a failed commit is in the log all the same: the engine may fail after it wrote the entry."""
    log = change.store.log(change.table.name)
    try:
        found = _own_commit(log, change.commit, log.versions().start - 1) if log.exists() else None
    except CodeAnatomyError:
        return "the log cannot be read, so it is not known if the rows were committed"
    if found is not None:
        return f"the rows were committed, as version {found.version}; repeating the commit will say so"
    return "no rows were committed; repeat it when the cause is gone"
