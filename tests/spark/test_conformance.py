"""The log entries that Python writes are Delta's: the same actions, and the same rows for every reader.

Every kind of version that `delta.write` makes without Spark is made once, with deletion vectors and without
any reader feature. Spark, delta-rs (its query engine and, where the protocol allows it, its Arrow dataset)
and DuckDB on the data files read each version with equal rows; the statistics in the log are those of the
files. The same changes made by Delta itself give the same actions.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pytest
from deltalake import DeltaTable
from msgspec import structs

from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.entries import write_checkpoint
from codeanatomy.delta.log.replay import replay_log
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.restore import restore_table
from codeanatomy.delta.write.spark_rows import append
from support.owner_tables import NODES, Lake, Row, counted, key_columns, nodes_of, owner

MODES: dict[str, tuple[FeatureName, ...]] = {
    "modern": ("change_data_feed", "deletion_vectors"),
    "all": ("change_data_feed",),
}
# What differs between two commits of the same change.
VOLATILE = ("size", "modificationTime", "deletionTimestamp", "lastUpdated", "id", "createdTime")
FILES = 6


def table_of(mode: str) -> Table:
    return structs.replace(NODES, write=structs.replace(NODES.write, enable_features=MODES[mode]))


def lake_at(root: Path, mode: str) -> Lake:
    table = table_of(mode)
    return Lake(LakeTables(str(root), tables=(table,)), table, "owner_file_id")


def filled(lake: Lake) -> None:
    lake.swap(*(row for number in range(FILES) for row in nodes_of(number, 3)))


def restored(lake: Lake, version: int) -> None:
    restore_table(lake.tables.root, lake.table.name, version, Commit(f"undo-{len(lake.history)}"))
    lake.history.append(lake.history[version])
    lake.rows = rows_of(lake)


def kinds_of_versions(lake: Lake) -> Iterator[str]:
    """Make one version of each kind, and say which."""
    filled(lake)
    yield "a table is created with its rows"
    lake.swap(*nodes_of(FILES, 2))
    yield "files are added"
    lake.swap(*nodes_of(1, 2), owners=[owner(1)])
    yield "rows of an owner are replaced in files that stay"
    lake.swap(*nodes_of(2, 1), owners=[owner(2), owner(3)])
    yield "more rows leave the same files"
    lake.swap(*nodes_of(FILES, 1), owners=[owner(FILES)])
    yield "whole files are replaced"
    lake.swap(owners=[owner(0)])
    yield "rows are only removed"
    restored(lake, 3)
    yield "an earlier version is restored"
    lake.swap(*nodes_of(None, 2), shared_repos=["a"])
    yield "rows of no owner are replaced"
    write_checkpoint(lake.location)
    lake.swap(*nodes_of(0, 4), owners=[owner(0)])
    yield "the log has a checkpoint"


@pytest.mark.parametrize("mode", MODES)
def test_every_kind_of_version_has_the_same_rows_for_every_reader(
    make_store: Callable[..., Store], mode: str
) -> None:
    store = make_store(table_of(mode))
    lake = lake_at(Path(store.root), mode)
    for version, kind in enumerate(kinds_of_versions(lake)):
        lake.light(version)
        assert expect_dataset(lake, version) == (mode == "all"), kind
        expect_true_statistics(lake, version)
    lake.all_see(store, *range(len(lake.history)))


def expect_dataset(lake: Lake, version: int) -> bool:
    """Whether delta-rs opens a version as an Arrow dataset, as Polars and pandas do; with its rows then."""
    opened = DeltaTable(lake.location, version=version)
    if opened.protocol().reader_features:
        return False
    rows = opened.to_pyarrow_dataset().to_table(columns=key_columns(lake.table)).to_pylist()
    assert counted(lake.table, rows) == lake.history[version]
    return True


def expect_true_statistics(lake: Lake, version: int) -> None:
    """The log has the number of rows, bounds and null counts of each data file."""
    for path, add in replay_log(lake.location, version).adds.items():
        told = json.loads(add.stats or "{}")
        names = list(told["nullCount"])
        assert names
        listed = ", ".join(f"min({name}), max({name}), count(*) - count({name})" for name in names)
        file = f"{lake.location}/{unquote(path)}"
        [found] = duckdb.execute(f"SELECT count(*), {listed} FROM read_parquet(?)", [file]).fetchall()
        assert told["numRecords"] == found[0]
        for number, name in enumerate(names):
            low, high, nulls = found[1 + 3 * number : 4 + 3 * number]
            assert (told["minValues"].get(name), told["maxValues"].get(name)) == (low, high)
            assert told["nullCount"][name] == nulls


def actions_of(location: str, version: int) -> dict[str, list[Any]]:
    """The actions of a log entry by kind, without what differs from commit to commit."""
    lines = Path(location, "_delta_log", f"{version:020}.json").read_text().splitlines()
    found: dict[str, list[Any]] = {}
    for line in lines:
        [(kind, fields)] = json.loads(line).items()
        if kind != "commitInfo":
            found.setdefault(kind, []).append(comparable(fields))
    return {kind: sorted(each, key=json.dumps) for kind, each in found.items()}


def comparable(fields: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fields.items() if name not in VOLATILE}
    if "path" in kept:
        kept["path"] = kept["path"].rpartition("/")[0]
    for name in ("stats", "schemaString"):
        if name in kept:
            kept[name] = json.loads(kept[name])
    if "minValues" in kept.get("stats", {}):
        # Bounds are tight if nothing is said.
        kept["stats"].setdefault("tightBounds", True)
    for name in ("readerFeatures", "writerFeatures"):
        if name in kept:
            kept[name] = sorted(kept[name])
    if "deletionVector" in kept:
        vector = kept["deletionVector"]
        kept["deletionVector"] = {name: vector[name] for name in ("storageType", "cardinality")}
    return kept


@pytest.mark.parametrize("mode", MODES)
def test_a_change_has_the_actions_that_delta_writes_for_it(
    make_store: Callable[..., Store], tmp_path: Path, mode: str
) -> None:
    table = table_of(mode)
    store, ours = make_store(table), lake_at(tmp_path / "ours", mode)
    rows: list[Row] = [row for number in range(3) for row in nodes_of(number, 2)]
    ours.swap(*rows)
    cells = [tuple(row.get(name) for name in table.column_names) for row in rows]
    append(store, table.name, store.spark.createDataFrame(cells, spark_schema(table)), Commit("run-0"))
    theirs = store.location(table.name)
    assert actions_of(ours.location, 0) == actions_of(theirs, 0)
    ours.swap(owners=[owner(1)])
    store.spark.sql(f"DELETE FROM delta.`{theirs}` WHERE owner_file_id = '{owner(1)}'")
    made, expected = actions_of(ours.location, 1), actions_of(theirs, 1)
    # Delta's own DELETE is no transaction of an application.
    assert made.pop("txn") == [{"appId": "run-1", "version": 0}]
    assert made == expected
    if mode == "all":
        assert {each["path"] for each in made["cdc"]} <= {
            f"_change_data/node_kind={kind}" for kind in ("CLASS", "FUNCTION")
        }


@pytest.mark.system
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_random_versions(make_store: Callable[..., Store], mode: str, seed: int) -> None:
    """Any sequence of commits, restores and checkpoints; vacuum keeps what the newest version needs."""
    store, chance = make_store(table_of(mode)), random.Random(seed)
    lake = lake_at(Path(store.root), mode)
    filled(lake)
    for _ in range(30):
        kinds = ["swap", "swap", "swap", "add", "remove", "checkpoint"]
        # To an earlier version than the newest.
        what = chance.choice([*kinds, "restore"] if len(lake.history) > 1 else kinds)
        numbers = chance.sample(range(2 * FILES), chance.randint(1, 4))
        if what == "restore":
            restored(lake, chance.randrange(len(lake.history) - 1))
        elif what == "checkpoint":
            write_checkpoint(lake.location)
        else:
            new = [row for each in numbers for row in nodes_of(each, chance.randint(1, 3))]
            lake.swap(*(() if what == "remove" else new), owners=[owner(each) for each in numbers])
        lake.light(len(lake.history) - 1)
        expect_dataset(lake, len(lake.history) - 1)
        expect_true_statistics(lake, len(lake.history) - 1)
    lake.all_see(store, *chance.sample(range(len(lake.history)), 6))
    DeltaTable(lake.location).vacuum(0, dry_run=False, enforce_retention_duration=False)
    lake.all_see(store)


def rows_of(lake: Lake) -> dict[tuple[str, str | None], list[Row]]:
    """The rows of the newest version, as a lake keeps them in mind."""
    made = [row for number in (None, *range(2 * FILES)) for row in nodes_of(number, 4)]
    found: dict[tuple[str, str | None], list[Row]] = {}
    for row in made:
        if counted(lake.table, [row]) <= lake.history[-1]:
            found.setdefault((row["repo_id"], row["owner_file_id"]), []).append(row)
    assert sum(map(len, found.values())) == lake.history[-1].total()
    return found
