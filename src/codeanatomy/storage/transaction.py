"""A Delta transaction that adds rows without reading the table: how tables are born and appended to.

Delta's DataFrame writer looks up the application transaction in the table's full state, a Spark job
of its own (half of a small commit, and seconds in a cold JVM), and can create a table only with
nullable columns or in a commit apart. Here the same parts of Delta are put together directly:

    start, [metadata of a new table], write files (or take those that are there), commit (files +
    application transaction)

so a new table and its first rows are one commit with NOT NULL, comments and properties, and an
append costs one job. Conflicts are detected as ever: a concurrent commit of the same application
transaction, or a change of the table's metadata, fails this one.

Tests: `tests/test_commit.py`, `tests/test_concurrency.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import quote
from uuid import uuid4

from msgspec import Struct, json
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.storage.deltalog import some_long


class NewTable(Struct, frozen=True):
    """What a table is born with."""

    # Spark's JSON of the schema.
    schema_json: str
    partition_by: tuple[str, ...]
    properties: dict[str, str]
    doc: str


class DataFile(Struct, frozen=True):
    """A Parquet file in the folder of a table, as Delta's log tells of it."""

    # Below the table's folder.
    path: str
    size_bytes: int
    rows: int
    # Delta's statistics: minima, maxima and counts of nulls, by column.
    stats: str
    # Values of the partition columns, which are in the path and not in the file.
    partition: dict[str, str] = {}


def add_rows(
    spark: SparkSession,
    location: str,
    rows: DataFrame,
    transaction: tuple[str, int],
    user_metadata: str,
    new: NewTable | None,
) -> None:
    """Commit rows, as the first ones of a `new` table or to one that is there."""
    jvm, running = _started(spark, location, new)
    files = running.writeFiles(rows._jdf)
    _commit(jvm, running, files, transaction, user_metadata, overwriting=False)


def add_files(
    spark: SparkSession,
    location: str,
    files: Sequence[DataFile],
    transaction: tuple[str, int],
    user_metadata: str,
    new: NewTable | None,
    *,
    overwriting: bool = False,
) -> None:
    """Commit data files that are there already; `overwriting` takes the place of all other files."""
    jvm, running = _started(spark, location, new)
    convert = jvm.org.apache.spark.api.python.PythonUtils
    action = jvm.org.apache.spark.sql.delta.actions.Action
    actions = [action.fromJson(_add_action(file)) for file in files]
    if overwriting:
        # Asking the transaction for them also makes a concurrent append a conflict.
        old = jvm.scala.jdk.javaapi.CollectionConverters.asJava(running.filterFiles())
        actions += [file.remove() for file in old]
    totals = {
        "numFiles": len(files),
        "numOutputRows": sum(file.rows for file in files),
        "numOutputBytes": sum(file.size_bytes for file in files),
    }
    metrics = {}
    for name, value in totals.items():
        metric = jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(
            spark._jsparkSession.sparkContext(), name
        )
        metric.set(value)
        metrics[name] = metric
    running.registerSQLMetrics(spark._jsparkSession, convert.toScalaMap(metrics))
    _commit(jvm, running, convert.toSeq(actions), transaction, user_metadata, overwriting=overwriting)


def _started(spark: SparkSession, location: str, new: NewTable | None) -> tuple[Any, Any]:
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
    *,
    overwriting: bool,
) -> None:
    delta, option = jvm.org.apache.spark.sql.delta, jvm.scala.Option
    modes = jvm.org.apache.spark.sql.SaveMode
    app_id, version = transaction
    # Without this a concurrent commit of the same transaction would be no conflict.
    running.readTxn().addOne(app_id)
    operation = delta.DeltaOperations.Write(
        modes.Overwrite if overwriting else modes.Append,
        option.empty(),
        option.empty(),
        option.apply(user_metadata),
        *(option.empty() for _ in range(5)),
    )
    now = some_long(jvm, int(time.time() * 1000))
    running.commit(files.appended(delta.actions.SetTransaction(app_id, version, now)), operation)


def _add_action(file: DataFile) -> str:
    add = {
        # As Spark writes the folders of partitions.
        "path": quote(file.path, safe="/="),
        "partitionValues": file.partition,
        "size": file.size_bytes,
        "modificationTime": int(time.time() * 1000),
        "dataChange": True,
        "stats": file.stats,
    }
    return json.encode({"add": add}).decode()


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
