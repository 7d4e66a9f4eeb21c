"""Commit rows of a Spark DataFrame to a table: append, replace_by_owner.

    done = replace_by_owner(store, "cpg_nodes", rows, owners=["file:..."], commit=Commit("run-7"))
    done.version, done.rows, done.attempts

Spark's Delta writer serves every store and every table feature. The steps within `delta.write.commit`:

    align     project the rows onto the contract's columns (`delta.contract`)
    evolve    update an existing table to its policy (`delta.write.evolve`); a new table is created together
              with its first rows, whatever the verb (`delta.log.transaction`)
    check     semantic types, NOT NULL, constraints, in the writing pass itself (`delta.write.checks`)
    arrange   exchange and sort the rows by partition and cluster columns (`delta.layout`)
    write     in a clone of the session with the transaction id, the commit metadata and the compression,
              so that the caller's session is never modified

Tests: `tests/spark/test_commit.py`, `tests/system/test_concurrency.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

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
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import MISFIT, plan_projection, project, quote_identifier
from codeanatomy.delta.events import Committed
from codeanatomy.delta.layout import RANGES, arrange_rows
from codeanatomy.delta.log.transaction import add_rows
from codeanatomy.delta.log.versions import TableVersion, open_version
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.checks import (
    BROKEN,
    Rules,
    check_semantic_types,
    find_violation,
    guard_rows,
    rules_for,
)
from codeanatomy.delta.write.commit import Conflict, PendingCommit, Retry, record_refusals, run_commit
from codeanatomy.delta.write.evolve import evolve, new_table
from codeanatomy.errors import CodeAnatomyError, ConstraintViolation, ContractError, UsageError
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
    writer = SparkRows(store, table, aligned, replaced, file_bytes)
    return run_commit(
        PendingCommit(store, table, operation, commit, writer, retry, dropped=projection.dropped)
    )


class SparkRows:
    """Write aligned rows with Spark; `replaced` is the condition of the rows that they replace."""

    errors: tuple[type[Exception], ...] = ENGINE_ERRORS
    # A rename of Spark's may have been overwritten.
    made = None

    def __init__(
        self, store: Store, table: Table, rows: DataFrame, replaced: str | None, file_bytes: int | None
    ) -> None:
        self._store = store
        self._table = table
        self._rows = rows
        self._replaced = replaced
        self._file_bytes = file_bytes

    def check(self) -> None:
        """Do nothing: rows are checked while they are written."""

    def write(self, change: PendingCommit, current: TableVersion | None) -> bool:
        """Write the rows in a session that has the transaction and the stamp of the commit."""
        session = clone_session(self._store.spark, _settings(self._store, change))
        try:
            with activate_session(session):
                self._write(session, change, current)
        except CONFLICTS as conflict:
            raise Conflict(type(conflict).__name__) from conflict
        return True

    def _write(self, session: SparkSession, change: PendingCommit, current: TableVersion | None) -> None:
        table, location = self._table, change.location
        if current is not None:
            evolve(self._store, table, before=self._refuse_broken)
        rows = arrange_rows(session, table, guard_rows(table, self._rows, self._rules()), self._file_bytes)
        if current is None or self._replaced is None:
            new = new_table(self._store, table) if current is None else None
            transaction = (change.commit.run_id, change.commit.sequence)
            add_rows(session, location, rows, transaction, change.stamp, new)
        else:
            writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", self._replaced)
            writer.save(location)

    def settle(self, change: PendingCommit) -> None:
        """Apply the rest of the policy to a new table."""
        for attempt in range(change.retry.attempts):
            try:
                evolve(self._store, self._table)
            except CONFLICTS:
                time.sleep(change.retry.pause(attempt))
            else:
                return

    def explain(self, problem: Exception) -> CodeAnatomyError | str:
        """Recognize broken rules and columns that do not fit."""
        if not isinstance(problem, ENGINE_ERRORS):
            return str(problem)
        message = str(problem)
        if BROKEN in message:
            try:
                # None if the rows are not deterministic and no longer violate a rule when computed again.
                return self._violation() or ConstraintViolation(self._table.name, {}, ())
            except ENGINE_ERRORS as another:
                problem, message = another, str(another)
        if MISFIT in message:
            detail = message[message.index(MISFIT) + len(MISFIT) :].splitlines()[0].strip()
            return ContractError(
                detail.removesuffix("SQLSTATE: P0001").strip(), "fix the code that produces the column"
            )
        return cause_of(problem)

    def _rules(self) -> Rules:
        """Return the rules of the catalogue, of the stored table, and that new rows are of the owners."""
        stored = open_version(self._table, self._store.location(self._table.name))
        properties = {} if stored is None else stored.info.properties
        owned = {} if self._replaced is None else {"owned": self._replaced}
        return {**rules_for(self._table, properties), **owned}

    def _violation(self) -> ConstraintViolation | None:
        return find_violation(self._table, self._rows, self._rules())

    def _refuse_broken(self) -> None:
        """Raise before the table is altered if the rows would be refused later."""
        violation = self._violation()
        if violation is not None:
            raise violation


def _settings(store: Store, change: PendingCommit) -> dict[str, str]:
    """Return the settings of the cloned session in which the commit is made."""
    partitions = int(store.spark.conf.get("spark.sql.shuffle.partitions") or RANGES)
    return {
        "spark.databricks.delta.write.txnAppId": change.commit.run_id,
        "spark.databricks.delta.write.txnVersion": str(change.commit.sequence),
        "spark.databricks.delta.commitInfo.userMetadata": change.stamp,
        "spark.sql.parquet.compression.codec": change.table.write.writer.compression,
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(max(RANGES, partitions)),
    }
