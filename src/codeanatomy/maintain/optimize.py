"""Rewrite the files of a table with Spark without changing rows: compaction, sorting and Z-order.

    done = compact(store, "cpg_nodes", Commit("run-9"), partitions=[{"node_kind": "CALLSITE"}])
    done.version, done.metrics["numRemovedFiles"]       # 12, 96
    sort_files(store, "ast_files_v1", Commit("run-9"))
    sort_files(store, "cpg_nodes", Commit("run-9", 1), z_order=("file_id", "node_id"))

Compaction is Delta's OPTIMIZE, which joins files as they are. Sorting writes them as a build does. With a
Z-order, the rows of each repository are in files that are narrow in several columns. Delta's own Z-order
gives less weight to columns with few values: it has every repository of a lake of twelve in every file. The
commits are marked as not changing data, so the change feed skips them. Rows that deletion vectors remove are
not written.

Tests: `tests/spark/test_optimize.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, decode_stamp, encode_stamp
from codeanatomy.delta.contract import quote_identifier
from codeanatomy.delta.log.replay import newest_logged, read_actions, read_commit_info, replay_log
from codeanatomy.delta.store import Store
from codeanatomy.errors import CommitConflict, StorageFailure
from codeanatomy.maintain.table_state import SMALL_FILE_SHARE
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, spark_literal
from codeanatomy.spark.session import clone_session

REPOSITORY = "repo_id"
# Ranges that the values of each column of a Z-order are cut into, as Delta does.
Z_RANGES = 1000
# Temporary column with the place of a row in the Z-order.
PLACE = "_place"
# Values of the partition columns, as in the log.
Partition = Mapping[str, str | None]


class Optimized(Struct, frozen=True):
    """The result of a rewrite."""

    # The newest version; the previous one if there was nothing to do.
    version: int
    # The operation metrics of Delta.
    metrics: dict[str, int]


def compact(
    store: Store,
    name: str,
    commit: Commit,
    *,
    partitions: Sequence[Partition] = (),
    deleted_share: float = 0.05,
) -> Optimized:
    """Compact the files of the given partitions, or of all."""
    table, before = store.table(name), newest_logged(store.location(name))
    size = table.write.target_file_size
    settings = {
        **_settings(table, commit, "optimize"),
        "spark.databricks.delta.optimize.maxFileSize": str(size),
        "spark.databricks.delta.optimize.minFileSize": str(int(size * SMALL_FILE_SHARE)),
        "spark.databricks.delta.optimize.maxDeletedRowsRatio": str(deleted_share),
        # The rows of a bin are written by one task, without a shuffle.
        "spark.databricks.delta.optimize.repartition.enabled": "false",
    }
    statement = f"OPTIMIZE delta.{quote_identifier(store.location(name))}"
    if partitions:
        statement += f" WHERE {' OR '.join(map(_partition_condition, partitions))}"
    try:
        clone_session(store.spark, settings).sql(statement).collect()
    except ENGINE_ERRORS as error:
        raise _failure(name, error) from error
    metrics = _commit_metrics(store, name, commit, before)
    return Optimized(newest_logged(store.location(name)), metrics)


def sort_files(
    store: Store,
    name: str,
    commit: Commit,
    *,
    partitions: Sequence[Partition] = (),
    z_order: Sequence[str] = (),
) -> Optimized:
    """Rewrite the files of the given partitions, or of all, in the table's order.

    With `z_order`, the files of a repository are ranges of a Z-order of these columns; in a file, rows are in
    the table's order.
    """
    table, before = store.table(name), newest_logged(store.location(name))
    session = clone_session(store.spark, _settings(table, commit, "zorder"))
    location = store.location(name)
    condition = " OR ".join(map(_partition_condition, partitions))
    files = math.ceil(_size_of(location, before, partitions) / table.write.target_file_size)
    try:
        stored = session.read.format("delta").option("versionAsOf", before).load(location)
        rows = stored.where(condition) if condition else stored
        arranged = _arranged(table, rows, files, z_order)
        writer = arranged.write.format("delta").mode("overwrite").option("dataChange", "false")
        (writer.option("replaceWhere", condition) if condition else writer).save(location)
    except ENGINE_ERRORS as error:
        raise _failure(name, error) from error
    metrics = _commit_metrics(store, name, commit, before)
    return Optimized(before + 1, metrics | _file_metrics(location, before + 1))


def _size_of(location: str, version: int, partitions: Sequence[Partition]) -> int:
    """Return the bytes of the data files of the given partitions, or of all."""
    adds = replay_log(location, version).adds.values()
    return sum(add.size for add in adds if not partitions or add.partition_values in partitions)


def _arranged(table: Table, rows: DataFrame, files: int, z_order: Sequence[str]) -> DataFrame:
    """Exchange and sort the rows for a number of files: ranges of the table's order, or of a Z-order."""
    # The primary key breaks ties, so that the same rows give the same files.
    order = tuple(dict.fromkeys((*table.ordering, *table.primary_key)))
    if files <= 1:
        return rows.coalesce(1).sortWithinPartitions(*order)
    if not z_order:
        return rows.repartitionByRange(files, *table.ordering).sortWithinPartitions(*order)
    ranges = (*table.write.partition_by, *(name for name in table.ordering if name == REPOSITORY), PLACE)
    placed = rows.withColumn(PLACE, _place(rows.sparkSession, z_order))
    return placed.repartitionByRange(files, *ranges).sortWithinPartitions(*order).drop(PLACE)


def _place(session: SparkSession, columns: Sequence[str]) -> Column:
    """Return the place of a row in a Z-order."""
    jvm: Any = session._jvm
    functions = jvm.org.apache.spark.sql.delta.skipping.MultiDimClusteringFunctions
    numbers = [functions.range_partition_id(F.col(name)._jc, Z_RANGES) for name in columns]
    return Column(functions.interleave_bits(jvm.PythonUtils.toSeq(numbers)))


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
    location = store.location(name)
    version = newest_logged(location)
    if version == before:
        return {}
    info = read_commit_info(location, version)
    stamp = decode_stamp(info.get("userMetadata"))
    if version != before + 1 or stamp is None or stamp.run_id != commit.run_id:
        raise CommitConflict(
            f"another process has written to {name} while it was optimized",
            "run the command again when the other writer has finished",
        )
    return {
        key: int(value)
        for key, value in info.get("operationMetrics", {}).items()
        if value.lstrip("-").isdigit()
    }


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
