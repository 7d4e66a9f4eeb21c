"""Files of a table written anew by Spark, without a change of rows: compacted, Z-ordered, checkpointed.

    done = optimize(store, "cpg_nodes", Commit("run-9"), partitions=[{"node_kind": "CALLSITE"}])
    done.version, done.metrics["numRemovedFiles"]       # 12, 96
    optimize(store, "cpg_nodes", Commit("run-9", 1), order=("file_id", "bstart", "node_id"))

Delta's OPTIMIZE does it, with the sizes of the table's policy. Its commits say that no row has changed, so
a change feed tells nothing of them. Rows that deletion vectors remove are left out of what is written.

Tests: `tests/spark/test_optimize.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from codeanatomy.delta.commit_stamp import Commit, decode_stamp, encode_stamp
from codeanatomy.delta.contract import quote_identifier
from codeanatomy.delta.store import Store
from codeanatomy.errors import CommitConflict, StorageFailure
from codeanatomy.maintain.table_state import SMALL
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, sql_text
from codeanatomy.spark.session import isolated

# Values of the partition columns, as the log has them.
Partition = Mapping[str, str | None]


class Optimized(Struct, frozen=True):
    """What was made of a table."""

    # The newest version; the one from before, if there was nothing to do.
    version: int
    # As Delta counts them.
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
    """Compact the files of some partitions, else of all; with an order, Z-order all rows of them."""
    table, log = store.table(name), store.log(name)
    before = log.snapshot().version
    size = table.write.target_file_size
    settings = {
        "spark.sql.parquet.compression.codec": table.write.writer.compression,
        "spark.databricks.delta.commitInfo.userMetadata": encode_stamp(commit, "zorder" if order else "optimize"),
        "spark.databricks.delta.optimize.maxFileSize": str(size),
        "spark.databricks.delta.optimize.minFileSize": str(int(size * SMALL)),
        "spark.databricks.delta.optimize.maxDeletedRowsRatio": str(deleted_share),
        # Rows of a bin in one task, without an exchange of all of them.
        "spark.databricks.delta.optimize.repartition.enabled": "false",
    }
    statement = f"OPTIMIZE delta.{quote_identifier(store.location(name))}"
    if partitions:
        statement += f" WHERE {' OR '.join(map(_is, partitions))}"
    if order:
        statement += f" ZORDER BY ({', '.join(map(quote_identifier, order))})"
    try:
        isolated(store.spark, settings).sql(statement).collect()
    except ENGINE_ERRORS as problem:
        raise StorageFailure(
            f"{name} cannot be optimized: {cause_of(problem)}",
            "no rows were changed; see that there is room on the disk, and repeat",
        ) from problem
    version = log.snapshot().version
    if version == before:
        return Optimized(version, {})
    made = log.commit(version)
    own = decode_stamp(made.user_metadata)
    if version != before + 1 or own is None or own.run_id != commit.run_id:
        raise CommitConflict(
            f"somebody else has written to {name} while it was optimized", "repeat it when they are done"
        )
    told = made.metrics
    return Optimized(version, {key: int(value) for key, value in told.items() if value.lstrip("-").isdigit()})


def _is(partition: Partition) -> str:
    """The condition that rows are of a partition."""
    parts = (
        f"{quote_identifier(column)} IS NULL" if value is None else f"{quote_identifier(column)} = {sql_text(value)}"
        for column, value in partition.items()
    )
    return f"({' AND '.join(parts)})"
