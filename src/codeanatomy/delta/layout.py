"""Translate a table's write policy to Delta and Parquet: properties, statistics, features, row order.

Every policy ends up in the table itself as table properties, because Delta passes them to the Parquet writer
of every later write, by any writer: that is how bloom filters reach the files (write options do not).
`delta.targetFileSize` is unknown to open-source Delta, so the size is stored under a property of our own and
applied in the exchange before rows are written.

    DeltaWritePolicy(zorder_by=("file_id",), writer=WriterProperties(bloom_filters=(BloomFilter("node_id"),)))
    -> delta.dataSkippingStatsColumns = file_id
       parquet.bloom.filter.enabled#node_id = true
       codeanatomy.ordering = file_id

Tests: `tests/spark/test_layout.py` (from the files), `tests/unit/delta/test_policy.py` (no JVM).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

from msgspec import json
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalog.readers import VECTORS
from codeanatomy.catalog.spec import ORDERED_TYPES, BloomFilter, Table
from codeanatomy.delta.log.protocol import FEATURES
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.errors import FeatureError
from codeanatomy.spark.jvm import some_long

OWN = "codeanatomy."
# We own the properties with these prefixes: those no longer in the policy are removed.
MANAGED = (
    OWN,
    "parquet.",
    "delta.dataSkipping",
    "delta.setTransactionRetentionDuration",
    "delta.enableExpiredLogCleanup",
    "delta.checkpointInterval",
    "delta.logRetentionDuration",
    "delta.deletedFileRetentionDuration",
)
# How long the log keeps the identifiers of committed transactions.
TRANSACTION_RETENTION = "interval 30 days"
# Shuffle bytes (lz4, row format) that make one byte of sorted zstd Parquet, measured on rows of ids,
# paths and positions.
SHUFFLE_BYTES_PER_FILE_BYTE = 1.75
# Ranges the rows are split into before adaptive execution coalesces them up to the file size; a range larger
# than a file is split without regard to order, so there should be enough of them.
RANGES = 64


def resolve_stats_columns(table: Table) -> tuple[str, ...]:
    """Return the columns that get statistics, up to the limit of the policy.

    Partition columns have no statistics in the files: Delta has their values in the log.
    """
    policy = table.write
    if policy.stats_policy == "off":
        return ()
    names = policy.stats_columns if policy.stats_policy == "explicit" else policy.zorder_by
    return _with_stats(table, names)[: policy.stats_max_columns]


def _with_stats(table: Table, names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns among `names` that can have statistics in a file, each once."""
    partitions = table.write.partition_by
    ordered = {c.name for c in table.columns if c.type in ORDERED_TYPES and not c.array}
    return tuple(dict.fromkeys(name for name in names if name in ordered and name not in partitions))


def table_properties(table: Table) -> dict[str, str]:
    """Return the managed properties of a table, without feature properties."""
    policy, writer = table.write, table.write.writer
    stats = resolve_stats_columns(table)
    properties = {
        f"{OWN}table": table.name,
        f"{OWN}contract": contract_hash(table),
        f"{OWN}contractVersion": str(table.version),
        f"{OWN}ordering": ",".join(table.ordering),
        f"{OWN}primaryKey": ",".join(table.primary_key),
        f"{OWN}targetFileSize": str(policy.target_file_size),
        "delta.setTransactionRetentionDuration": TRANSACTION_RETENTION,
        # Otherwise a commit may delete log entries of a version published a month ago that is still read.
        "delta.enableExpiredLogCleanup": "false",
        # Our maintenance reads the policy; these are for other tools that maintain the table.
        "delta.checkpointInterval": str(table.upkeep.checkpoint_interval),
        "delta.logRetentionDuration": f"interval {math.ceil(table.upkeep.log_hours)} hours",
        "delta.deletedFileRetentionDuration": f"interval {math.ceil(table.upkeep.vacuum_hours)} hours",
        "parquet.enable.dictionary": str(writer.dictionary).lower(),
    }
    if table.foreign_keys:
        properties[f"{OWN}foreignKeys"] = json.encode(table.foreign_keys).decode()
    if stats:
        properties["delta.dataSkippingStatsColumns"] = ",".join(stats)
    else:
        properties["delta.dataSkippingNumIndexedCols"] = "0"
    if writer.row_group_rows:
        properties["parquet.block.row.count.limit"] = str(writer.row_group_rows)
    if writer.bloom_filters:
        # Sized by the actual values, up to the expected number: a filter of the expected size would add a
        # megabyte to the smallest file.
        properties["parquet.bloom.filter.adaptive.enabled"] = "true"
        properties["parquet.bloom.filter.max.bytes"] = str(max(map(bloom_bytes, writer.bloom_filters)))
    for bloom in writer.bloom_filters:
        properties[f"parquet.bloom.filter.enabled#{bloom.column}"] = "true"
        properties[f"parquet.bloom.filter.candidates.number#{bloom.column}"] = "16"
        properties[f"parquet.bloom.filter.fpp#{bloom.column}"] = str(bloom.fpp)
    # Parquet writes no bloom filter for a fully dictionary-encoded column, so the dictionary is off for them.
    for column in dict.fromkeys((*writer.dictionary_off, *(b.column for b in writer.bloom_filters))):
        properties[f"parquet.enable.dictionary#{column}"] = "false"
    return properties


def bloom_bytes(bloom: BloomFilter) -> int:
    """Return the size of a bloom filter for the expected values: a power of two, as Parquet requires.

    >>> bloom_bytes(BloomFilter("node_id", fpp=0.01, ndv=1_000_000))
    2097152
    """
    bits = -bloom.ndv * math.log(bloom.fpp) / math.log(2) ** 2
    return 1 << math.ceil(math.log2(max(bits / 8, 32)))


def contract_hash(table: Table) -> str:
    """Hash what a reader relies on: columns, types, NOT NULL and semantic types, in any order."""
    columns = sorted(f"{c.name} {c.ddl} {c.nullable} {c.semantic_type}" for c in table.columns)
    return hashlib.sha256("\n".join(columns).encode()).hexdigest()[:16]


def feature_properties(table: Table, current: SnapshotInfo | None) -> dict[str, str]:
    """Return the properties that enable the features of the policy which the table does not have yet.

    A stored table does not get deletion vectors: a commit must not change which readers open a table.
    """
    names = [name for name in table.write.enable_features if current is None or name != VECTORS]
    features = [FEATURES[name] for name in names]
    mode = table.schema.column_mapping_mode
    properties = {feature.property: feature.value for feature in features}
    if mode is not None:
        properties[FEATURES["column_mapping"].property] = mode
    have = {} if current is None else current.properties
    missing = {key: value for key, value in properties.items() if have.get(key) != value}
    legacy = [feature.legacy for feature in features]
    without_features = current is None or not current.writer_features
    # Legacy protocol versions where they suffice, so that old readers and writers still work.
    if missing and without_features and legacy and all(legacy):
        versions = [(1, 2) if current is None else (current.min_reader_version, current.min_writer_version)]
        versions += [pair for pair in legacy if pair is not None]
        missing["delta.minReaderVersion"] = str(max(reader for reader, _ in versions))
        missing["delta.minWriterVersion"] = str(max(writer for _, writer in versions))
    return missing


def require_engine_support(spark: SparkSession, table: Table) -> None:
    """Raise FeatureError if the Delta library of this session does not support a feature of the policy."""
    jvm: Any = spark._jvm
    known = jvm.org.apache.spark.sql.delta.TableFeature.allSupportedFeaturesMap()
    for name in table.write.enable_features:
        if not known.contains(FEATURES[name].delta_name.lower()):
            raise FeatureError(
                f"{table.name} enables {name}, which this Delta library does not support",
                "remove it from enable_features, or use the pinned Delta version",
            )


def arrange_rows(
    spark: SparkSession, table: Table, rows: DataFrame, file_bytes: int | None = None
) -> DataFrame:
    """Exchange and sort the rows, in the session `spark`, as their files shall be laid out.

    One exchange by range of the ordering columns: files do not overlap, so their statistics prune, and
    adaptive execution sizes them. Built as a plan node because SQL's REBALANCE hint has neither ranges nor a
    size of its own, and a session-wide size would also coarsen every earlier stage.

    Rows known to fit one file need no ranges: one task reads them all. That saves the exchange and the pass
    that samples it (for the nested rows of extractors as much as the write itself).
    """
    if not table.ordering:
        return rebind_session(spark, rows)
    order = tuple(dict.fromkeys((*table.ordering, *table.primary_key)))
    one_file = file_bytes is not None and file_bytes <= table.write.target_file_size
    if one_file and not table.write.partition_by:
        return rebind_session(spark, rows.coalesce(1)).sortWithinPartitions(*order)
    jvm: Any = spark._jvm
    sort = rows.sortWithinPartitions(*table.ordering)._jdf.queryExecution().analyzed()
    size = int(table.write.target_file_size * SHUFFLE_BYTES_PER_FILE_BYTE)
    exchange = jvm.org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions(
        sort.order(),
        sort.child(),
        jvm.scala.Option.empty(),
        some_long(jvm, size),
    )
    # The primary key breaks ties, so that the same rows give the same file.
    return _frame(spark, exchange).sortWithinPartitions(*order)


def rebind_session(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Return the same rows in another session."""
    return _frame(spark, rows._jdf.queryExecution().analyzed())


def _frame(spark: SparkSession, plan: Any) -> DataFrame:
    jvm: Any = spark._jvm
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)
