"""Tables without deletion vectors: rows leave them by rewriting data files, and every reader opens them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from msgspec import json

from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.protocol import VECTORS_ENABLED
from codeanatomy.delta.log.replay import read_actions, read_commit_info, replay_log
from support.owner_tables import (
    LINES,
    NODES,
    Counts,
    Lake,
    changed,
    counted,
    featured,
    filled,
    key_columns,
    lines_of,
    nodes_of,
    owner,
)

PLAIN, FED = featured(NODES), featured(NODES, "change_data_feed")


def lake_of(tmp_path: Path, table: Table, by: str = "owner_file_id") -> Lake:
    return Lake(LakeTables(str(tmp_path), (table,)), table, by)


def rows_of(lake: Lake) -> Counts:
    """The rows of the newest version as deltalake's dataset has them, which knows no deletion vectors."""
    rows = DeltaTable(lake.location).to_pyarrow_dataset().to_table(columns=key_columns(lake.table))
    return counted(lake.table, rows.to_pylist())


@pytest.fixture
def plain(tmp_path: Path) -> Lake:
    return lake_of(tmp_path, PLAIN)


def test_rows_that_stay_are_written_again(plain: Lake) -> None:
    filled(plain)
    done = plain.swap(*nodes_of(7, 3), owners=[owner(7)])
    assert (done.rows, done.rows_deleted, done.files, done.files_removed) == (6, 10, 2, 2)
    assert done.metrics["numCopiedRows"] == 190
    assert done.metrics["numCopiedFiles"] == 2
    plain.light(1)
    assert rows_of(plain) == plain.history[1]
    # Files that hold nothing else are removed, and nothing is copied.
    done = plain.swap(*nodes_of(7, 4), owners=[owner(7)])
    assert done.files_removed == 2
    assert "numCopiedRows" not in done.metrics
    done = plain.swap(owners=[owner(number) for number in range(20)])
    assert (done.rows, done.files_removed) == (0, 4)
    assert rows_of(plain) == Counter()
    for version in range(len(plain.history)):
        plain.light(version)
    assert not list(Path(plain.location).rglob("deletion_vector_*"))


def test_copies_have_order_statistics_and_policy(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, featured(LINES), "file_id")
    lake.swap(*(row for number in range(9) for row in lines_of(number, 4)))
    (old,) = replay_log(lake.location, 0).adds.values()
    before = pq.read_table(Path(lake.location, old.path)).to_pylist()
    lake.swap(owners=[owner(4)])
    (new,) = replay_log(lake.location, 1).adds.values()
    assert new.path != old.path
    copied = pq.ParquetFile(Path(lake.location, new.path))
    assert copied.read().to_pylist() == [row for row in before if row["path"] != "4.py"]
    assert copied.schema_arrow.names == list(LINES.column_names)
    was, stats = (json.decode(each.stats or "") for each in (old, new))
    assert stats["numRecords"] == 32
    assert stats.keys() == was.keys()
    assert stats["minValues"].keys() == was["minValues"].keys()


@pytest.mark.parametrize(
    ("features", "protocol"),
    [
        ((), (1, 2, set(), set())),
        (("change_data_feed",), (1, 4, set(), set())),
        (
            ("deletion_vectors",),
            (3, 7, {"deletionVectors"}, {"appendOnly", "invariants", "deletionVectors"}),
        ),
        (
            ("change_data_feed", "deletion_vectors"),
            (3, 7, {"deletionVectors"}, {"appendOnly", "invariants", "changeDataFeed", "deletionVectors"}),
        ),
    ],
)
def test_a_table_has_its_features_from_birth_and_keeps_them(
    tmp_path: Path, features: tuple[FeatureName, ...], protocol: tuple[Any, ...]
) -> None:
    lake = filled(lake_of(tmp_path, featured(NODES, *features)))
    # Other policies of later writers.
    others = [featured(NODES), NODES, featured(NODES, *features)]
    for number, table in enumerate(others):
        lake.tables = LakeTables(str(tmp_path), (table,))
        lake.swap(*nodes_of(number, 1), owners=[owner(number)])
        found = DeltaTable(lake.location).protocol()
        assert (
            found.min_reader_version,
            found.min_writer_version,
            set(found.reader_features or ()),
            set(found.writer_features or ()),
        ) == protocol
        assert not any(action.protocol for action in read_actions(lake.location, lake.version))
        lake.light(lake.version)
    assert bool(lake.vectors()) == ("deletion_vectors" in features)


def test_vectors_that_are_disabled_are_not_added(tmp_path: Path) -> None:
    """The feature in the protocol alone does not allow it; files that have vectors are rewritten."""
    lake = filled(lake_of(tmp_path, featured(NODES, "change_data_feed", "deletion_vectors")))
    lake.swap(owners=[owner(1)])
    assert lake.vectors()
    state = replay_log(lake.location, 1)
    disabled = {**state.metadata["configuration"], VECTORS_ENABLED: "false"}
    entries.write_entry(lake.location, 2, [{"metaData": {**state.metadata, "configuration": disabled}}])
    lake.history.append(lake.history[-1])
    lake.swap(owners=[owner(2)])
    assert not lake.vectors()
    lake.light(3)
    assert change_rows(lake, 3) == {("delete", "2.py"): 10}


def change_rows(lake: Lake, version: int) -> Counter[tuple[str, str]]:
    """The rows of the change files of a commit, by kind of change and path."""
    rows: Counter[tuple[str, str]] = Counter()
    for each in read_actions(lake.location, version):
        if each.cdc:
            found = pq.read_table(Path(lake.location, each.cdc.path), partitioning=None)
            stored = [name for name in lake.table.column_names if name not in each.cdc.partition_values]
            assert found.column_names == [*stored, "_change_type"]
            rows.update((row["_change_type"], row["path"]) for row in found.to_pylist())
    return rows


def test_the_change_feed_has_only_rows_that_changed(tmp_path: Path) -> None:
    lake = filled(lake_of(tmp_path, FED))
    done = lake.swap(*nodes_of(7, 3), owners=[owner(7), owner(8)])
    assert change_rows(lake, 1) == {("delete", "7.py"): 10, ("delete", "8.py"): 10, ("insert", "7.py"): 6}
    assert done.metrics["numAddedChangeFiles"] == 2
    assert changed(lake, 1, 1) == {7, 8}
    # Whole files removed beside rewritten ones are in the change files, too.
    lake.swap(*nodes_of(9, 1), owners=[owner(7), owner(9)])
    assert change_rows(lake, 2) == {("delete", "7.py"): 6, ("delete", "9.py"): 10, ("insert", "9.py"): 2}
    assert changed(lake, 2, 2) == {7, 9}
    # Whole files alone need no change files.
    lake.swap(*nodes_of(9, 2), owners=[owner(9)])
    assert change_rows(lake, 3) == {}
    assert changed(lake, 3, 3) == {9}
    assert changed(lake, 1, 3) == {7, 8, 9}
    lake.light(3)
    assert rows_of(lake) == lake.history[3]


def test_a_table_without_a_feed_has_no_change_files(plain: Lake) -> None:
    filled(plain)
    plain.swap(owners=[owner(1)])
    assert not Path(plain.location, "_change_data").exists()


def test_old_files_keep_their_columns(tmp_path: Path) -> None:
    """A file from before a column was added is copied without it, and its change rows have a null."""
    lake = lake_of(tmp_path, FED)
    filled(lake, files=4, rows=2)
    for add in replay_log(lake.location, 0).adds.values():
        path = Path(lake.location, add.path)
        older = pq.read_table(path, partitioning=None).drop_columns(["qualname"])
        pq.write_table(older, path)
    lake.swap(*nodes_of(1, 1), owners=[owner(1)])
    assert rows_of(lake) == lake.history[1]
    names = DeltaTable(lake.location).to_pyarrow_dataset().to_table(columns=["path", "qualname"]).to_pylist()
    assert {row["qualname"] for row in names if row["path"] != "1.py"} == {None}
    assert {row["qualname"] for row in names if row["path"] == "1.py"} == {"m.0"}
    assert change_rows(lake, 1) == {("delete", "1.py"): 4, ("insert", "1.py"): 2}


def test_a_lost_race_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(lake_of(tmp_path, FED))
    put = entries.write_entry

    def lose(*_: object) -> bool:
        monkeypatch.setattr(entries, "write_entry", put)
        return False

    monkeypatch.setattr(entries, "write_entry", lose)
    done = lake.swap(owners=[owner(3)])
    assert done.attempts == 2
    actions = read_actions(lake.location, 1)
    logged = {add.path for add in replay_log(lake.location, 0).adds.values()}
    logged |= {each.add.path for each in actions if each.add} | {
        each.cdc.path for each in actions if each.cdc
    }
    stored = {str(path.relative_to(lake.location)) for path in Path(lake.location).rglob("*.parquet")}
    assert stored == logged
    assert read_commit_info(lake.location, 1)["operationMetrics"]["numDeletedRows"] == "10"


@pytest.mark.parametrize("table", [PLAIN, NODES], ids=["all", "modern"])
def test_plain_duckdb_reads_the_files(tmp_path: Path, table: Table) -> None:
    """The files of a version are its rows; with vectors they also have deleted ones."""
    plain = filled(lake_of(tmp_path, table))
    plain.swap(*nodes_of(7, 3), owners=[owner(7)])
    files = [f"{plain.location}/{path}" for path in replay_log(plain.location, 1).adds]
    query = f"SELECT {', '.join(key_columns(NODES))} FROM read_parquet({files}, hive_partitioning = true)"
    with duckdb.connect() as database:
        found = database.execute(query).fetchall()
    assert (Counter(found) == plain.history[1]) == (table is PLAIN)
    assert Counter(found) >= plain.history[1]


def test_readers_that_know_no_vectors_refuse_them(tmp_path: Path) -> None:
    lake = filled(lake_of(tmp_path, NODES))
    with pytest.raises(Exception, match="deletionVectors"):
        DeltaTable(lake.location).to_pyarrow_dataset()
    with pytest.raises(Exception, match="deletionVectors"):
        DeltaTable(lake.location).to_pandas()
    lake.light(0)


def test_random_swaps(tmp_path: Path) -> None:
    chance = random.Random(11)
    lake = filled(lake_of(tmp_path, FED), files=30, rows=4)
    for _ in range(12):
        numbers = chance.sample(range(40), chance.randint(1, 6))
        rows = [row for number in numbers for row in nodes_of(number, chance.randint(0, 5))]
        shared = ["a"] if chance.random() < 0.3 else []
        rows += nodes_of(None, chance.randint(0, 3)) if shared else []
        before = lake.history[-1]
        lake.swap(*rows, owners=map(owner, numbers), shared_repos=shared)
        version = len(lake.history) - 1
        lake.light(version)
        assert rows_of(lake) == lake.history[version]
        kinds: Counter[str] = Counter()
        for (kind, _path), count in change_rows(lake, version).items():
            kinds[kind] += count
        if kinds:
            assert kinds["insert"] - kinds["delete"] == lake.history[version].total() - before.total()
