"""Define a small table for tests: every kind of column, one partition column, two cluster columns."""

from __future__ import annotations

from typing import Any

from msgspec import structs
from pyspark.sql import DataFrame, SparkSession

from codeanatomy import node_ids
from codeanatomy.catalog.spec import (
    MB,
    BloomFilter,
    Column,
    Constraint,
    DeltaWritePolicy,
    Table,
    WriterProperties,
)
from codeanatomy.delta.contract import spark_schema
from codeanatomy.ids import stable_id

ITEMS = Table(
    "items",
    "graph",
    "One row per item.",
    (
        Column("item_id", "string", "The item.", False, "NodeId"),
        Column("kind", "string", "Its kind.", nullable=False),
        Column("file_id", "string", "Its file.", False, "FileId"),
        Column("bstart", "bigint", "First byte.", semantic_type="BytePos"),
        Column("bend", "bigint", "Byte after the last.", semantic_type="BytePos"),
        Column("weight", "double", "How much.", default=1.0),
        Column(
            "marks",
            "struct",
            "What was seen.",
            array=True,
            fields=(Column("line", "int", "1-based."), Column("word", "string", "As written.")),
        ),
    ),
    primary_key=("item_id",),
    owner="file_id",
    constraints=(
        Constraint(
            "span_ordered", "bstart IS NULL OR bend >= bstart", "A span does not end before it starts."
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=64 * MB,
        partition_by=("kind",),
        zorder_by=("file_id", "bstart"),
        stats_policy="explicit",
        stats_columns=("file_id", "bstart"),
        writer=WriterProperties(bloom_filters=(BloomFilter("item_id"),)),
    ),
)


def changed(**fields: Any) -> Table:
    """Return ITEMS with other fields."""
    return structs.replace(ITEMS, **fields)


def with_policy(**fields: Any) -> Table:
    """Return ITEMS with another write policy."""
    return changed(write=structs.replace(ITEMS.write, **fields))


def file_id(number: int) -> str:
    return node_ids.file_id("repo", f"f{number}.py")


def item(number: int, **fields: Any) -> dict[str, Any]:
    """Return the row of an item; ten items share a file."""
    row = {
        "item_id": stable_id("item", number),
        "kind": f"K{number % 2}",
        "file_id": file_id(number // 10),
        "bstart": number,
        "bend": number + 1,
        "weight": 0.5,
        "marks": [{"line": number, "word": f"w{number}"}],
    }
    return {**row, **fields}


def frame(spark: SparkSession, *rows: dict[str, Any], table: Table = ITEMS) -> DataFrame:
    """Return rows as a DataFrame of nullable columns without semantic types, like computed columns."""
    schema = spark_schema(table)
    plain = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)
    return spark.createDataFrame([{name: row.get(name) for name in schema.names} for row in rows], plain)
