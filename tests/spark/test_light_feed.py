"""Changed owners read without a JVM, compared with the change feed of Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.feed import Window, read_feed
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.light_feed import changed_rows
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.restore import restore_table
from support.owner_tables import NODES, Lake, Row, changed, entry, fed, filled, nodes_of, owner

Changes = Counter[tuple[int, str, str, str | None]]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    table = fed(NODES)
    return Lake(LakeTables(str(tmp_path / "lake"), tables=(table,)), table, "owner_file_id")


def change_rows(rows: list[Row], version: int, kind: str) -> Changes:
    return Counter((version, kind, row["node_id"], row["owner_file_id"]) for row in rows)


@pytest.mark.system
def test_spark_reads_the_same_feed(make_store: Callable[..., Store], lake: Lake) -> None:
    store = make_store(lake.table)
    assert store.root == lake.tables.root
    filled(lake, files=6, rows=3)
    lake.swap(*nodes_of(2, 2), owners=[owner(2)])
    lake.swap(*nodes_of(2, 1), *nodes_of(4, 1), owners=[owner(2), owner(3), owner(4)])
    lake.swap(*nodes_of(None, 2), shared_repos=["a"])
    rows = read_feed(store, NODES.name, Window(starting_version=1)).collect()
    names = ("_commit_version", "_change_type", "node_id", "owner_file_id")
    # Rows of these owners and no others, each once.
    assert Counter(tuple(row[name] for name in names) for row in rows) == (
        change_rows(nodes_of(2, 3), 1, "delete")
        + change_rows(nodes_of(2, 2), 1, "insert")
        + change_rows([*nodes_of(2, 2), *nodes_of(3, 3), *nodes_of(4, 3)], 2, "delete")
        + change_rows([*nodes_of(2, 1), *nodes_of(4, 1)], 2, "insert")
        + change_rows(nodes_of(None, 2), 3, "insert")
    )
    assert [changed(lake, version, version) for version in range(4)] == [
        set(range(6)),
        {2},
        {2, 3, 4},
        set(),
    ]
    assert changed(lake, 1, 3) == {2, 3, 4}
    # Spark's own deletion, with a vector, and its update, with change files.
    address = f"delta.`{lake.location}`"
    store.spark.sql(f"DELETE FROM {address} WHERE owner_file_id = '{owner(5)}' AND bstart > 0")
    assert changed(lake, 4, 4) == {5}
    store.spark.sql(f"UPDATE {address} SET line = 2 WHERE owner_file_id = '{owner(0)}'")
    assert changed(lake, 5, 5) == {0}
    assert any("cdc" in line for line in entry(lake, 5).read_text().splitlines())
    # Moves rows, and changes none.
    store.spark.sql(f"OPTIMIZE {address}")
    assert lake.version == 6
    assert changed(lake, 6, 6) == set()
    restore_table(store.root, NODES.name, 3, Commit("undo", sequence=-1))
    since = read_feed(store, NODES.name, Window(starting_version=7)).select("owner_file_id").distinct()
    assert {row[0] for row in since.collect() if row[0]} == {owner(number) for number in changed(lake, 7, 7)}
    assert changed(lake, 7, 7) >= {0, 5}
    # All columns, of inserted and deleted files, vectors, change files and the restore.
    for window in ((0, 7), (2, 5), (5, 7)):
        in_spark = read_feed(store, NODES.name, Window(starting_version=window[0], ending_version=window[1]))
        light = changed_rows(store.root, NODES.name, *window)
        assert in_spark.columns == light.column_names
        rows = in_spark.withColumn("_commit_timestamp", F.unix_millis("_commit_timestamp")).collect()
        moments = pc.cast(light["_commit_timestamp"], pa.timestamp("ms", "UTC")).cast(pa.int64())
        at = light.schema.get_field_index("_commit_timestamp")
        expected = light.set_column(at, "_commit_timestamp", moments).to_pylist()
        assert Counter(repr(row.asDict()) for row in rows) == Counter(map(repr, expected))
        assert {row["_change_type"] for row in expected} >= {"insert", "delete", "update_preimage"}
