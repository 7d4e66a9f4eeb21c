"""Files written anew, sorted or by Delta's OPTIMIZE: the same rows in fewer files, by the table's policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec import json
from pyspark.sql import SparkSession

from codeanatomy.catalog.spec import MB, Column, DeltaWritePolicy, Table
from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.feed import Window, read_feed
from codeanatomy.delta.light_feed import changed_owners
from codeanatomy.delta.log.replay import read_actions, replay_log
from codeanatomy.delta.log.versions import open_version
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.errors import StorageFailure
from codeanatomy.maintain.optimize import Optimized, compact, sort_files
from codeanatomy.maintain.table_state import TableState, inspect_table
from codeanatomy.spark.session import clone_session
from support.delta_log import delta_log
from support.owner_tables import NODES, Lake, fed, filled, nodes_of, owner

ORDER = ("file_id", "bstart", "node_id")


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store(fed(NODES))


@pytest.fixture
def lake(store: Store) -> Lake:
    """A table of two partitions, whose rows have changed by vectors and new files."""
    made = Lake(store, fed(NODES), "owner_file_id")
    filled(made, files=6, rows=3)
    for number in range(4):
        made.swap(*nodes_of(number, 4), owners=[owner(number)])
    return made


def looked_at(lake: Lake) -> TableState:
    found = inspect_table(lake.location, lake.table)
    assert found is not None
    return found


def test_a_partition_becomes_one_file(store: Store, lake: Lake) -> None:
    before = looked_at(lake)
    done = compact(store, NODES.name, Commit("run-x"), partitions=[{"node_kind": "CLASS"}])
    after = looked_at(lake)
    assert done.version == before.version + 1
    assert done.metrics["numAddedFiles"] == 1
    assert {dict(part.values)["node_kind"]: part.files for part in after.parts} == {
        "CLASS": 1,
        "FUNCTION": next(part.files for part in before.parts if part.values == (("node_kind", "FUNCTION"),)),
    }
    assert sum(part.deleted_rows for part in after.parts if ("node_kind", "CLASS") in part.values) == 0
    lake.history.append(lake.history[-1])
    lake.all_see(store, done.version)
    # What was read is read still.
    lake.all_see(store, before.version)


def test_a_partition_is_sorted(store: Store, lake: Lake) -> None:
    before = looked_at(lake)
    done = sort_files(store, NODES.name, Commit("run-x"), partitions=[{"node_kind": "CLASS"}])
    assert done.version == before.version + 1
    files = {str(part.values): part.files for part in before.parts}
    assert done.metrics["numAddedFiles"] == 1
    assert done.metrics["numRemovedFiles"] == files["(('node_kind', 'CLASS'),)"] > 1
    assert done.metrics["numRemovedBytes"] > done.metrics["numAddedBytes"] > 0
    adds = replay_log(lake.location, done.version).adds.values()
    assert len(adds) == 1 + files["(('node_kind', 'FUNCTION'),)"]
    (add,) = [add for add in adds if add.partition_values["node_kind"] == "CLASS"]
    rows = pq.ParquetFile(Path(lake.location, add.path)).read(["repo_id", *ORDER]).to_pylist()
    keys = [tuple(row.values()) for row in rows]
    assert keys == sorted(keys)
    lake.history.append(lake.history[-1])
    lake.all_see(store, done.version)
    lake.all_see(store, before.version)


def z_ordered(store: Store) -> Optimized:
    return sort_files(store, NODES.name, Commit("run-x"), z_order=ORDER)


def all_sorted(store: Store) -> Optimized:
    return sort_files(store, NODES.name, Commit("run-x"))


@pytest.mark.system
@pytest.mark.parametrize("rewrite", [z_ordered, all_sorted])
def test_an_order_is_made_and_no_row_changes(
    store: Store, lake: Lake, rewrite: Callable[[Store], Optimized]
) -> None:
    version = looked_at(lake).version
    done = rewrite(store)
    lake.history.append(lake.history[-1])
    lake.all_see(store, done.version)
    told = read_actions(lake.location, done.version)
    assert not any(each.add.data_change for each in told if each.add)
    assert not any(each.remove.data_change for each in told if each.remove)
    # Nobody who follows changes sees one.
    assert read_feed(store, NODES.name, Window(starting_version=done.version)).count() == 0
    owners = changed_owners(store.root, NODES.name, version + 1, done.version, "owner_file_id", "a")
    assert owners == frozenset()
    commit = delta_log(store, NODES.name).commit(done.version)
    made = decode_stamp(commit.user_metadata)
    assert made is not None
    assert (commit.operation, made.run_id, made.operation) == ("WRITE", "run-x", "zorder")


@pytest.mark.system
@pytest.mark.parametrize("rewrite", [z_ordered, all_sorted])
def test_files_are_written_by_the_policy(
    store: Store, lake: Lake, rewrite: Callable[[Store], Optimized]
) -> None:
    rewrite(store)
    adds = replay_log(lake.location, lake.version).adds.values()
    (add,) = [add for add in adds if add.partition_values["node_kind"] == "CLASS"]
    columns = pq.ParquetFile(Path(lake.location, add.path)).metadata.row_group(0)
    by_name = {columns.column(n).path_in_schema: columns.column(n) for n in range(columns.num_columns)}
    assert by_name["node_id"].compression == "ZSTD"
    assert "node_id" in {bloom.column for bloom in NODES.write.writer.bloom_filters}
    assert by_name["node_id"].to_dict()["has_dictionary_page"] is False
    stats = json.decode(add.stats or "")
    assert set(stats["minValues"]) == {*NODES.write.stats_columns} - {"node_kind"}


@pytest.mark.system
def test_nothing_to_do_makes_no_version(store: Store, lake: Lake) -> None:
    first = compact(store, NODES.name, Commit("run-x"))
    again = compact(store, NODES.name, Commit("run-x", 1))
    assert again.version == first.version
    assert again.metrics == {}


@pytest.mark.system
def test_a_partition_that_is_not_there(store: Store, lake: Lake) -> None:
    version = looked_at(lake).version
    assert compact(store, NODES.name, Commit("r"), partitions=[{"node_kind": "NO'NE"}]).version == version
    assert compact(store, NODES.name, Commit("r"), partitions=[{"node_kind": None}]).version == version


def test_what_delta_refuses_is_an_error(store: Store, lake: Lake) -> None:
    with pytest.raises(StorageFailure, match=r"cannot be optimized: .*no_kind"):
        sort_files(store, NODES.name, Commit("r"), partitions=[{"no_kind": "CLASS"}])


THINGS = Table(
    "things",
    "graph",
    "One row per thing of a file.",
    (
        Column("repo_id", "string", "Its repository.", nullable=False),
        Column("file_id", "string", "Its file.", nullable=False),
        Column("text", "string", "Something long."),
    ),
    primary_key=("file_id", "text"),
    owner="file_id",
    write=DeltaWritePolicy(
        target_file_size=MB,
        zorder_by=("repo_id", "file_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "file_id", "text"),
    ),
)


@pytest.mark.system
def test_sorting_keeps_repositories_together(spark: SparkSession, make_store: Callable[..., Store]) -> None:
    store = make_store(THINGS)
    rows = spark.range(0, 120_000, 1, 4).selectExpr(
        "concat('r', id div 10 % 12) AS repo_id",
        "md5(string(id div 10)) AS file_id",
        "sha2(string(id), 256) AS text",
    )
    append(store, "things", rows, Commit("first"))

    def spread(version: int) -> tuple[int, int]:
        """Data files: all, and those that may hold rows of a repository."""
        opened = open_version(THINGS, store.location("things"), version)
        assert opened is not None
        index = opened.index
        return index.total, sum(file.may_hold("repo_id", ("r7",)) for file in index.files)

    total, own = spread(delta_log(store, "things").snapshot().version)
    assert 2 * own < total
    # In Delta's Z-order ids of files decide, because they have more values.
    place = f"delta.`{store.location('things')}`"
    size = {"spark.databricks.delta.optimize.maxFileSize": str(MB)}
    clone_session(spark, size).sql(f"OPTIMIZE {place} ZORDER BY (repo_id, file_id)").collect()
    total, own = spread(delta_log(store, "things").snapshot().version)
    assert own == total > 3
    for number, z_order in enumerate([(), ("text", "file_id")]):
        done = sort_files(store, "things", Commit("sorted", number), z_order=z_order)
        total, own = spread(done.version)
        assert 2 * own < total
    assert store.spark.read.format("delta").load(store.location("things")).count() == 120_000
