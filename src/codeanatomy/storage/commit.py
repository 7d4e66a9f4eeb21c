"""The commit boundary: the only way rows are written.

Each verb makes at most one data commit, and every commit goes the same way:

    align     the rows become the contract's columns (storage.contract)
    evolve    a table that is there is brought to its policy (storage.evolve); one that is not is
              born with its first rows, whatever the verb (storage.transaction)
    check     meaning, NOT NULL, constraints, in the writing pass itself (storage.checks)
    arrange   rows are exchanged and sorted by partition + cluster columns (storage.layout)
    write     in a clone of the session that carries the transaction id, the commit metadata and
              the compression, so the caller's session is never touched
    find      the commit is looked up in the log by its metadata and its own metrics are returned

    done = replace_by_owner(store, "cpg_nodes", rows, owners=["file:..."], commit=Commit("run-7"))
    done.version, done.rows, done.attempts

The same `Commit` (run id and sequence) twice is one commit. Conflicts with other writers are retried
with backoff. So is a commit that is not found in the log after Delta reported success: on a local
file system the rename that publishes a commit is not atomic between processes, and the loser of that
race is told nothing. MERGE and DELETE rewrite files in the engine's own order; maintenance restores
the clustering. Tests: `tests/test_commit.py`, `tests/test_concurrency.py`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
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
from msgspec import DecodeError, Struct, ValidationError, json
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalog.spec import Table
from codeanatomy.errors import (
    CodeAnatomyError,
    CommitConflict,
    ConstraintViolation,
    ContractError,
    StorageFailure,
    TableMissing,
    UsageError,
)
from codeanatomy.storage.checks import BROKEN, Rules, check_meaning, guarded, rules_for, violation
from codeanatomy.storage.contract import MISFIT, plan_projection, project, quoted, text
from codeanatomy.storage.deltalog import CommitRecord, DeltaLog, SnapshotInfo
from codeanatomy.storage.events import CommitRefused, Committed
from codeanatomy.storage.evolve import evolve, finish_birth, has_drifted, new_table
from codeanatomy.storage.layout import RANGES, arranged
from codeanatomy.storage.session import isolated
from codeanatomy.storage.store import Store
from codeanatomy.storage.transaction import NewTable, add_rows

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


class Commit(Struct, frozen=True, omit_defaults=True):
    """Who commits and from what; run id and sequence together are the transaction."""

    run_id: str
    # Grows with every commit of a run to the same table.
    sequence: int = 0
    plan_fingerprint: str | None = None
    # Versions of the tables the rows were computed from.
    inputs: dict[str, int] = {}


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
class _Change:
    """One commit to be made; `write` does it in a session prepared for it, and says if rows changed."""

    store: Store
    table: Table
    operation: str
    commit: Commit
    retry: Retry
    write: Callable[[SparkSession], bool]
    # The error that shows the rows which break a rule.
    broken: Callable[[], ConstraintViolation] | None = None
    dropped: tuple[str, ...] = ()


def overwrite(
    store: Store,
    name: str,
    rows: DataFrame,
    commit: Commit,
    *,
    lineage: Sequence[str] | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Replace all rows of a table. `lineage` names columns that consumers filter and join by."""
    table = store.table(name)

    def write(session: SparkSession, ready: DataFrame, found: SnapshotInfo) -> None:
        writer = ready.write.format("delta").mode("overwrite")
        if has_drifted(table, found) and table.schema.schema_mode == "overwrite":
            writer = writer.option("overwriteSchema", "true")
        writer.save(store.location(name))

    return _write_rows(store, table, "overwrite", rows, commit, retry, write, lineage=lineage)


def append(
    store: Store,
    name: str,
    rows: DataFrame,
    commit: Commit,
    *,
    lineage: Sequence[str] | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Add rows to a table."""

    def write(session: SparkSession, ready: DataFrame, found: SnapshotInfo) -> None:
        _add(session, store.location(name), ready, commit, None)

    return _write_rows(store, store.table(name), "append", rows, commit, retry, write, lineage=lineage)


def replace_by_owner(
    store: Store,
    name: str,
    rows: DataFrame,
    owners: Sequence[str],
    commit: Commit,
    *,
    by: str | None = None,
    lineage: Sequence[str] | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Swap the rows of a set of owners for new ones, in one atomic commit.

    `by` names the owner column where it is not the table's own: `by="repo_id"` swaps a repository.
    An owner without new rows loses its rows; rows of an owner that is not named are refused.
    """
    table = store.table(name)
    column = by or table.owner
    if column is None:
        raise UsageError(f"{name} has no owner column", "say which column with by=...")
    table.column(column)
    if not owners:
        raise UsageError(f"no owners to replace in {name}", "name at least one owner")
    owned = f"{quoted(column)} IN ({', '.join(text(owner) for owner in sorted(set(owners)))})"

    def write(session: SparkSession, ready: DataFrame, found: SnapshotInfo) -> None:
        writer = ready.write.format("delta").mode("overwrite").option("replaceWhere", owned)
        writer.save(store.location(name))

    return _write_rows(
        store, table, "replace_by_owner", rows, commit, retry, write, lineage=lineage, extra={"owned": owned}
    )


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
    same = " AND ".join(f"old.{quoted(key)} <=> new.{quoted(key)}" for key in keys)

    def write(session: SparkSession, ready: DataFrame, found: SnapshotInfo) -> bool:
        target = DeltaTable.forPath(session, store.location(name)).alias("old")
        builder = target.merge(ready.alias("new"), same)
        builder = builder.whenMatchedUpdateAll(update_when).whenNotMatchedInsertAll()
        if delete_unmatched is not None:
            builder = builder.whenNotMatchedBySourceDelete(delete_unmatched)
        return _affected(builder.execute())

    return _write_rows(store, table, "merge", rows, commit, retry, write)


def delete(store: Store, name: str, predicate: str, commit: Commit, *, retry: Retry = Retry()) -> Committed:
    """Delete the rows that meet a condition; an empty condition is refused."""
    if not predicate.strip():
        raise UsageError(f"delete from {name} without a predicate", "to empty a table, overwrite it")
    try:
        store.spark._jsparkSession.sessionState().sqlParser().parseExpression(predicate)
    except ParseException as problem:
        raise UsageError(f"{predicate!r} is not a condition", "write one SQL expression") from problem
    table = store.table(name)
    if not store.log(name).exists():
        raise TableMissing(f"{name} was never written at {store.location(name)}", "nothing to delete")

    def write(session: SparkSession) -> bool:
        address = f"delta.{quoted(store.location(name))}"
        return _affected(session.sql(f"DELETE FROM {address} WHERE ({predicate}\n)"))

    evolve(store, table)
    return _recorded(_Change(store, table, "delete", commit, retry, write))


def _write_rows(
    store: Store,
    table: Table,
    operation: str,
    rows: DataFrame,
    commit: Commit,
    retry: Retry,
    write: Callable[[SparkSession, DataFrame, SnapshotInfo], bool | None],
    *,
    lineage: Sequence[str] | None = None,
    extra: Rules = MappingProxyType({}),
) -> Committed:
    """Align, check and arrange rows, and hand them to `write`."""
    check_meaning(table, rows.schema)
    projection = plan_projection(table, rows.schema)
    aligned = project(table, rows, projection)
    log = store.log(table.name)

    def rules() -> Rules:
        properties = log.snapshot().properties if log.exists() else {}
        return {**rules_for(table, properties), **extra}

    def attempt(session: SparkSession) -> bool:
        if not log.exists():
            ready = arranged(session, table, guarded(table, aligned, rules()))
            _add(session, log.location, ready, commit, new_table(store, table, lineage))
            finish_birth(store, table, lineage)
            return True
        found = evolve(store, table, lineage, replacing=operation == "overwrite")
        ready = arranged(session, table, guarded(table, aligned, rules()))
        return write(session, ready, found) is not False

    def broken() -> ConstraintViolation:
        return violation(table, aligned, rules())

    return _recorded(_Change(store, table, operation, commit, retry, attempt, broken, projection.dropped))


def _add(session: SparkSession, location: str, rows: DataFrame, commit: Commit, new: NewTable | None) -> None:
    add_rows(session, location, rows, (commit.run_id, commit.sequence), _encoded(commit), new)


def _recorded(change: _Change) -> Committed:
    """Make the change, tell the recorder, and turn the engine's failures into ours."""
    try:
        done = _retried(change)
    except (PySparkException, Py4JJavaError) as problem:
        refused = _explained(change, problem)
        _refuse(change, refused)
        raise refused from problem
    except CodeAnatomyError as refused:
        _refuse(change, refused)
        raise
    change.store.record(done)
    return done


def _retried(change: _Change) -> Committed:
    log = change.store.log(change.table.name)
    started = time.monotonic()
    conflicts: list[str] = []
    for attempt in range(change.retry.attempts):
        repeated = _already(log, change.commit)
        if repeated is not None:
            return _result(change, repeated, started, attempt, conflicts, repeated=True)
        before = log.snapshot().version if log.exists() else -1
        try:
            changed = change.write(isolated(change.store.spark, _settings(change)))
        except CONFLICTS as conflict:
            conflicts.append(type(conflict).__name__)
        else:
            record = _own_commit(log, change.commit, after=before)
            if record is not None:
                return _result(change, record, started, attempt + 1, conflicts)
            if not changed:
                return _result(change, None, started, attempt + 1, conflicts)
            conflicts.append(LOST)
        time.sleep(change.retry.pause(attempt))
    raise CommitConflict(
        f"{change.operation} of {change.table.name} lost against other writers "
        f"{change.retry.attempts} times ({', '.join(dict.fromkeys(conflicts))})",
        "repeat it when the other writer is done",
    )


def _settings(change: _Change) -> dict[str, str]:
    """What the clone of the session carries into the commit."""
    return {
        "spark.databricks.delta.write.txnAppId": change.commit.run_id,
        "spark.databricks.delta.write.txnVersion": str(change.commit.sequence),
        "spark.databricks.delta.commitInfo.userMetadata": _encoded(change.commit),
        "spark.sql.parquet.compression.codec": change.table.write.writer.compression,
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(RANGES),
    }


def _encoded(commit: Commit) -> str:
    """The commit's metadata as Delta's history shows it."""
    return json.encode(commit, order="deterministic").decode()


def _already(log: DeltaLog, commit: Commit) -> CommitRecord | None:
    """The commit of this transaction, if it was made before."""
    known = log.transaction(commit.run_id) if log.exists() else None
    if known is None or known < commit.sequence:
        return None
    record = _own_commit(log, commit, after=log.versions().start - 1)
    if record is None:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {log.location}, "
            f"so its sequence {commit.sequence} can no longer be",
            "give every commit of a run to the same table a larger sequence",
        )
    return record


def _own_commit(log: DeltaLog, commit: Commit, after: int) -> CommitRecord | None:
    """The newest commit after a version that carries this transaction's metadata."""
    for version in range(log.snapshot().version, after, -1):
        record = log.commit(version)
        try:
            found = json.decode(record.user_metadata or "", type=Commit)
        except (DecodeError, ValidationError):
            continue
        if (found.run_id, found.sequence) == (commit.run_id, commit.sequence):
            return record
    return None


def _result(
    change: _Change,
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

    inserted = count("numTargetRowsInserted", "numTargetRowsUpdated")
    written = inserted if change.operation == "merge" else count("numOutputRows") - count("numCopiedRows")
    name = change.table.name
    return Committed(
        table=name,
        operation=change.operation,
        version=change.store.log(name).snapshot().version if record is None else record.version,
        committed=record is not None and not repeated,
        repeated=repeated,
        created=record is not None and record.version == 0,
        run_id=change.commit.run_id,
        rows=max(written, 0),
        rows_deleted=count("numDeletedRows", "numTargetRowsDeleted"),
        files=count("numFiles", "numAddedFiles", "numTargetFilesAdded"),
        files_removed=count("numRemovedFiles", "numTargetFilesRemoved"),
        size_bytes=count("numOutputBytes", "numAddedBytes", "numTargetBytesAdded"),
        attempts=attempts,
        conflicts=tuple(conflicts),
        seconds=time.monotonic() - started,
        dropped_columns=change.dropped,
    )


def _affected(report: DataFrame) -> bool:
    """Whether a MERGE or DELETE changed rows; it makes no commit where it did not."""
    row = report.first()
    return row is not None and int(row["num_affected_rows"]) > 0


def _explained(change: _Change, problem: Exception) -> CodeAnatomyError:
    """The engine's failure as one of ours."""
    said = str(problem)
    if BROKEN in said and change.broken is not None:
        return change.broken()
    if MISFIT in said:
        detail = said[said.index(MISFIT) + len(MISFIT) :].splitlines()[0].strip()
        return ContractError(detail.removesuffix("SQLSTATE: P0001").strip(), "mend what produces the column")
    first = next((line for line in said.splitlines() if line.strip(" :")), type(problem).__name__)
    return StorageFailure(
        f"{change.operation} of {change.table.name} failed: {first}",
        "the table is as it was before; repeat the commit when the cause is gone",
    )


def _refuse(change: _Change, problem: CodeAnatomyError) -> None:
    change.store.record(
        CommitRefused(
            table=change.table.name,
            operation=change.operation,
            run_id=change.commit.run_id,
            code=problem.code,
            message=problem.message,
        )
    )
