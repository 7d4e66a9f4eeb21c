"""Rewrite the files of a table with Spark without changing rows: compaction, sorting and Z-order.

    done = optimize(store, "cpg_nodes", Commit("run-9"), partitions=[{"node_kind": "CALLSITE"}])
    done.version, done.metrics["numRemovedFiles"]       # 12, 96
    sort_files(store, "cpg_nodes", Commit("run-9", 1), partitions=[{"node_kind": "CALLSITE"}])
    optimize(store, "cpg_nodes", Commit("run-9", 2), order=("file_id", "bstart", "node_id"))

Files are written as the table's policy has them, sorted or by Delta's OPTIMIZE. A Z-order gives all of its
columns the same weight: with the repository and the file as columns, every repository of a lake of twelve is
in every file, where sorted it is in two or three. The commits are marked as not changing data, so the change
feed skips them. Rows that deletion vectors remove are not written.

Tests: `tests/spark/test_optimize.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, decode_stamp, encode_stamp
from codeanatomy.delta.contract import quote_identifier
from codeanatomy.delta.layout import RANGES, arrange_rows
from codeanatomy.delta.log.replay import read_actions
from codeanatomy.delta.store import Store
from codeanatomy.errors import CommitConflict, StorageFailure
from codeanatomy.maintain.table_state import SMALL_FILE_SHARE
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, spark_literal
from codeanatomy.spark.session import clone_session

# Values of the partition columns, as in the log.
Partition = Mapping[str, str | None]


class Optimized(Struct, frozen=True):
    """The result of a rewrite."""

    # The newest version; the previous one if there was nothing to do.
    version: int
    # The operation metrics of Delta.
    metrics: dict[str, int]


def optimize(
    store: Store,
    name: str,
    commit: Commit,
    *,
    partitions: Sequence[Partition] = (),
    order: Sequence[str] = (),
    deleted_share: float = 0.05,
) -> Optimized:
    """Compact the files of the given partitions, or of all; with `order`, Z-order their rows."""
    table, before = store.table(name), store.log(name).snapshot().version
    size = table.write.target_file_size
    settings = {
        **_settings(table, commit, "zorder" if order else "optimize"),
        "spark.databricks.delta.optimize.maxFileSize": str(size),
        "spark.databricks.delta.optimize.minFileSize": str(int(size * SMALL_FILE_SHARE)),
        "spark.databricks.delta.optimize.maxDeletedRowsRatio": str(deleted_share),
        # The rows of a bin are written by one task, without a shuffle.
        "spark.databricks.delta.optimize.repartition.enabled": "false",
    }
    statement = f"OPTIMIZE delta.{quote_identifier(store.location(name))}"
    if partitions:
        statement += f" WHERE {' OR '.join(map(_partition_condition, partitions))}"
    if order:
        statement += f" ZORDER BY ({', '.join(map(quote_identifier, order))})"
    try:
        clone_session(store.spark, settings).sql(statement).collect()
    except ENGINE_ERRORS as error:
        raise _failure(name, error) from error
    metrics = _commit_metrics(store, name, commit, before)
    return Optimized(store.log(name).snapshot().version, metrics)


def sort_files(store: Store, name: str, commit: Commit, *, partitions: Sequence[Partition] = ()) -> Optimized:
    """Rewrite the files of the given partitions, or of all, in the table's order."""
    table, before = store.table(name), store.log(name).snapshot().version
    settings = {
        **_settings(table, commit, "zorder"),
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(RANGES),
    }
    session, location = clone_session(store.spark, settings), store.location(name)
    condition = " OR ".join(map(_partition_condition, partitions))
    try:
        rows = session.read.format("delta").option("versionAsOf", before).load(location)
        sorted_rows = arrange_rows(session, table, rows.where(condition) if condition else rows)
        writer = sorted_rows.write.format("delta").mode("overwrite").option("dataChange", "false")
        (writer.option("replaceWhere", condition) if condition else writer).save(location)
    except ENGINE_ERRORS as error:
        raise _failure(name, error) from error
    metrics = _commit_metrics(store, name, commit, before)
    return Optimized(before + 1, metrics | _file_metrics(location, before + 1))


def _settings(table: Table, commit: Commit, operation: str) -> dict[str, str]:
    return {
        "spark.sql.parquet.compression.codec": table.write.writer.compression,
        "spark.databricks.delta.commitInfo.userMetadata": encode_stamp(commit, operation),
    }


def _failure(name: str, error: Exception) -> StorageFailure:
    return StorageFailure(
        f"{name} cannot be optimized: {cause_of(error)}",
        "no rows were changed; check the free disk space and run the command again",
    )


def _commit_metrics(store: Store, name: str, commit: Commit, before: int) -> dict[str, int]:
    """Return Delta's metrics of the commit after a version; none if there is no new version."""
    log = store.log(name)
    version = log.snapshot().version
    if version == before:
        return {}
    entry = log.commit(version)
    stamp = decode_stamp(entry.user_metadata)
    if version != before + 1 or stamp is None or stamp.run_id != commit.run_id:
        raise CommitConflict(
            f"another process has written to {name} while it was optimized",
            "run the command again when the other writer has finished",
        )
    return {key: int(value) for key, value in entry.metrics.items() if value.lstrip("-").isdigit()}


def _file_metrics(location: str, version: int) -> dict[str, int]:
    """Count the files of a commit, under the names that an OPTIMIZE has for them."""
    actions = read_actions(location, version)
    added = [each.add for each in actions if each.add]
    removed = [each.remove for each in actions if each.remove]
    return {
        "numAddedFiles": len(added),
        "numAddedBytes": sum(file.size for file in added),
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(file.size or 0 for file in removed),
    }


def _partition_condition(partition: Partition) -> str:
    """Return the SQL condition of a partition."""
    parts = (
        f"{quote_identifier(column)} IS NULL"
        if value is None
        else f"{quote_identifier(column)} = {spark_literal(value)}"
        for column, value in partition.items()
    )
    return f"({' AND '.join(parts)})"
