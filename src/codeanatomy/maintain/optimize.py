"""Rewrite the files of a table with Spark without changing rows: compaction and Z-order.

    done = optimize(store, "cpg_nodes", Commit("run-9"), partitions=[{"node_kind": "CALLSITE"}])
    done.version, done.metrics["numRemovedFiles"]       # 12, 96
    optimize(store, "cpg_nodes", Commit("run-9", 1), order=("file_id", "bstart", "node_id"))

Uses Delta's OPTIMIZE with the file sizes of the table's policy. Its commits are marked as not changing data,
so the change feed skips them. Rows that deletion vectors remove are not written.

Tests: `tests/spark/test_optimize.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from codeanatomy.delta.commit_stamp import Commit, decode_stamp, encode_stamp
from codeanatomy.delta.contract import quote_identifier
from codeanatomy.delta.store import Store
from codeanatomy.errors import CommitConflict, StorageFailure
from codeanatomy.maintain.table_state import SMALL_FILE_SHARE
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, spark_literal
from codeanatomy.spark.session import clone_session

# Values of the partition columns, as in the log.
Partition = Mapping[str, str | None]


class Optimized(Struct, frozen=True):
    """The result of an OPTIMIZE."""

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
    table, log = store.table(name), store.log(name)
    before = log.snapshot().version
    size = table.write.target_file_size
    settings = {
        "spark.sql.parquet.compression.codec": table.write.writer.compression,
        "spark.databricks.delta.commitInfo.userMetadata": encode_stamp(
            commit, "zorder" if order else "optimize"
        ),
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
        raise StorageFailure(
            f"{name} cannot be optimized: {cause_of(error)}",
            "no rows were changed; check the free disk space and run the command again",
        ) from error
    version = log.snapshot().version
    if version == before:
        return Optimized(version, {})
    entry = log.commit(version)
    stamp = decode_stamp(entry.user_metadata)
    if version != before + 1 or stamp is None or stamp.run_id != commit.run_id:
        raise CommitConflict(
            f"another process has written to {name} while it was optimized",
            "run the command again when the other writer has finished",
        )
    metrics = {key: int(value) for key, value in entry.metrics.items() if value.lstrip("-").isdigit()}
    return Optimized(version, metrics)


def _partition_condition(partition: Partition) -> str:
    """Return the SQL condition of a partition."""
    parts = (
        f"{quote_identifier(column)} IS NULL"
        if value is None
        else f"{quote_identifier(column)} = {spark_literal(value)}"
        for column, value in partition.items()
    )
    return f"({' AND '.join(parts)})"
