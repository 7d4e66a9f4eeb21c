"""Create tables and append rows in one Delta transaction over py4j, without reading the table's state.

Delta's DataFrame writer looks up the application transaction in the table's full state, a Spark job of its
own (half of a small commit, and seconds in a cold JVM), and can create a table only with nullable columns or
in a separate commit. Here the same parts of Delta are combined directly:

    start, [metadata of a new table], write files, commit (files + application transaction)

so a new table and its first rows are one commit with NOT NULL, comments and properties, and an append costs
one job. Conflicts are detected as usual: a concurrent commit of the same application transaction, or a change
of the table's metadata, makes this one fail.

Tests: `tests/spark/test_commit.py`, `tests/system/test_concurrency.py`.
"""

from __future__ import annotations

import time
from typing import Any, cast
from uuid import uuid4

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.spark.jvm import some_long


class NewTable(Struct, frozen=True):
    """The metadata of a table to be created."""

    # Spark's JSON of the schema.
    schema_json: str
    partition_by: tuple[str, ...]
    properties: dict[str, str]
    doc: str


def add_rows(
    spark: SparkSession,
    location: str,
    rows: DataFrame,
    transaction: tuple[str, int],
    user_metadata: str,
    new: NewTable | None,
) -> None:
    """Commit rows to an existing table, or as the first rows of a `new` one."""
    jvm, running = _start(spark, location, new)
    files = running.writeFiles(rows._jdf)
    _commit(jvm, running, files, transaction, user_metadata)


def _start(spark: SparkSession, location: str, new: NewTable | None) -> tuple[Any, Any]:
    jvm = cast("Any", spark._jvm)
    option = jvm.scala.Option
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)
    running = log.startTransaction(option.empty(), option.empty())
    if new is not None:
        running.updateMetadataForNewTable(_metadata(jvm, new))
    return jvm, running


def _commit(
    jvm: Any,
    running: Any,
    files: Any,
    transaction: tuple[str, int],
    user_metadata: str,
) -> None:
    delta, option = jvm.org.apache.spark.sql.delta, jvm.scala.Option
    app_id, version = transaction
    # Without this, a concurrent commit of the same transaction would not be detected as a conflict.
    running.readTxn().addOne(app_id)
    operation = delta.DeltaOperations.Write(
        jvm.org.apache.spark.sql.SaveMode.Append,
        option.empty(),
        option.empty(),
        option.apply(user_metadata),
        *(option.empty() for _ in range(5)),
    )
    now = some_long(jvm, int(time.time() * 1000))
    running.commit(files.appended(delta.actions.SetTransaction(app_id, version, now)), operation)


def _metadata(jvm: Any, new: NewTable) -> Any:
    actions, convert = jvm.org.apache.spark.sql.delta.actions, jvm.org.apache.spark.api.python.PythonUtils
    return actions.Metadata(
        str(uuid4()),
        None,
        new.doc,
        actions.Format("parquet", convert.toScalaMap({})),
        new.schema_json,
        convert.toSeq(list(new.partition_by)),
        convert.toScalaMap(new.properties),
        some_long(jvm, int(time.time() * 1000)),
    )
