"""Deletion vectors that Python writes, read and continued by Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.deletion_vectors import DeletionVector
from codeanatomy.delta.log.protocol import has_simple_protocol
from codeanatomy.delta.log.replay import Add, read_actions, replay_log
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.restore import restore_table
from codeanatomy.errors import StorageFailure
from support.delta_log import delta_log
from support.owner_tables import LINES, NODES, Lake, counted, filled, key_columns, lines_of, nodes_of, owner


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()


@pytest.fixture
def nodes(store: Store) -> Lake:
    return Lake(LakeTables(store.root), NODES, "owner_file_id")


def test_owners_are_swapped_for_all_readers(store: Store, nodes: Lake) -> None:
    filled(nodes)
    nodes.light(0)
    assert not nodes.vectors()
    done = nodes.swap(*nodes_of(7, 3), owners=[owner(7)])
    assert (done.rows, done.rows_deleted, done.files, done.files_removed) == (6, 10, 2, 0)
    assert [vector.cardinality for vector in nodes.vectors()] == [5, 5]
    nodes.light(1)
    # The same once more: its files hold nothing else, and go.
    done = nodes.swap(*nodes_of(7, 4), owners=[owner(7)])
    assert (done.rows_deleted, done.files_removed) == (6, 2)
    nodes.light(2)
    # Others in the same files.
    done = nodes.swap(*nodes_of(3, 1), owners=[owner(3), owner(11), owner(99)])
    assert (done.rows_deleted, done.files_removed) == (20, 0)
    assert sorted(vector.cardinality for vector in nodes.vectors()) == [15, 15]
    found = scan(store, NODES.name).rows.select(*key_columns(NODES)).collect()
    assert Counter(map(tuple, found)) == nodes.history[3]
    done = nodes.swap(owners=[owner(number) for number in range(20)])
    assert (done.rows, done.files_removed) == (0, 6)
    assert not nodes.vectors()
    nodes.swap(*nodes_of(1, 2), owners=[owner(1)])
    nodes.all_see(store, 0, 1, 3, 5)


def test_a_table_without_partitions(store: Store) -> None:
    lake = Lake(LakeTables(store.root), LINES, "file_id")
    lake.swap(*(row for number in range(9) for row in lines_of(number, 4)))
    lake.swap(*lines_of(4, 6), owners=[owner(4)])
    lake.swap(*lines_of(5, 1), *lines_of(4, 2), owners=[owner(4), owner(5)])
    assert [vector.cardinality for vector in lake.vectors()] == [8]
    lake.all_see(store)


def test_rows_without_an_owner(store: Store, nodes: Lake) -> None:
    nodes.swap(*nodes_of(1, 3), *nodes_of(None, 4), *nodes_of(None, 2, repo_id="b"), *nodes_of(2, 3))
    done = nodes.swap(*nodes_of(None, 1), *nodes_of(2, 1), owners=[owner(2)], shared_repos=["a"])
    assert done.rows_deleted == 14
    nodes.light(1)
    done = nodes.swap(shared_repos=["b"])
    assert done.rows_deleted == 4
    nodes.all_see(store)
    assert not nodes.swap(shared_repos=["b", "c"]).committed


def test_the_protocol_is_that_of_the_first_version(store: Store, nodes: Lake) -> None:
    filled(nodes)
    info = delta_log(store, NODES.name).snapshot()
    assert (info.min_reader_version, info.min_writer_version) == (3, 7)
    assert info.reader_features == ("deletionVectors",)
    assert info.writer_features == ("appendOnly", "deletionVectors", "invariants")
    assert info.properties["delta.enableDeletionVectors"] == "true"
    assert has_simple_protocol(info)
    nodes.swap(*nodes_of(30, 2), owners=[owner(30)])
    nodes.swap(owners=[owner(1)])
    assert nodes.vectors()
    after = delta_log(store, NODES.name).snapshot()
    assert (after.properties, after.schema_json) == (info.properties, info.schema_json)
    for version in (1, 2):
        assert not any(
            action.protocol or action.meta_data for action in read_actions(nodes.location, version)
        )


@pytest.mark.system
def test_many_commits_have_checkpoints_with_vectors(store: Store, nodes: Lake) -> None:
    filled(nodes, files=8, rows=3)
    chance = random.Random(5)
    for _ in range(25):
        numbers = chance.sample(range(8), chance.randint(1, 3))
        rows = [row for number in numbers for row in nodes_of(number, chance.randint(0, 4))]
        nodes.swap(*rows, owners=map(owner, numbers))
    assert len(nodes.history) == 26
    assert len(list(Path(nodes.location, "_delta_log").glob("*.checkpoint.parquet"))) == 2
    for version in range(26):
        nodes.light(version)
    nodes.all_see(store, 11)
    # From the checkpoint alone, as where older entries were cleaned up.
    whole = replay_log(nodes.location, 25)
    for version in range(20):
        Path(nodes.location, "_delta_log", f"{version:020}.json").unlink()
    assert replay_log(nodes.location, 25) == whole
    nodes.all_see(store, 25)


@pytest.mark.system
def test_checkpoints_of_spark_are_read(store: Store, nodes: Lake) -> None:
    filled(nodes, files=4)
    nodes.swap(*nodes_of(2, 2), owners=[owner(2)])
    delta_log(store, nodes.table.name)._log.checkpoint()
    assert list(Path(nodes.location, "_delta_log").glob("*1.checkpoint*.parquet"))
    nodes.light(1)
    nodes.swap(owners=[owner(2), owner(3)])
    nodes.all_see(store)


@pytest.mark.system
def test_spark_goes_on_with_such_a_table(store: Store, nodes: Lake) -> None:
    filled(nodes)
    nodes.swap(*nodes_of(7, 3), owners=[owner(7)])
    address = f"delta.`{nodes.location}`"

    def follow(statement: str, *gone: int) -> None:
        store.spark.sql(statement)
        for number in gone:
            del nodes.rows["a", owner(number)]
        nodes.history += [counted(NODES, [row for rows in nodes.rows.values() for row in rows])] * (
            nodes.version + 1 - len(nodes.history)
        )
        nodes.all_see(store)

    follow(f"DELETE FROM {address} WHERE owner_file_id = '{owner(8)}'", 8)
    assert len(nodes.vectors()) == 2
    nodes.swap(*nodes_of(9, 1), owners=[owner(9)])
    nodes.light(nodes.version)
    follow(f"OPTIMIZE {address}")
    nodes.swap(*nodes_of(10, 1), owners=[owner(10)])
    nodes.light(nodes.version)
    follow(f"REORG TABLE {address} APPLY (PURGE)")
    assert not nodes.vectors()
    nodes.swap(*nodes_of(11, 1), owners=[owner(11)])
    nodes.all_see(store)


@pytest.mark.system
def test_versions_are_brought_back_with_their_vectors(store: Store, nodes: Lake) -> None:
    filled(nodes)
    nodes.swap(*nodes_of(7, 3), owners=[owner(7)])
    nodes.swap(*nodes_of(8, 3), owners=[owner(7), owner(8)])
    states = [replay_log(nodes.location, version).adds for version in range(3)]

    def restored(version: int | None) -> None:
        commit = Commit("undo", sequence=-len(nodes.history))
        assert restore_table(store.root, NODES.name, version, commit) == len(nodes.history)
        nodes.history.append(Counter() if version is None else nodes.history[version])
        found = replay_log(nodes.location, nodes.version).adds
        assert key_facts(found) == ({} if version is None else key_facts(states[version]))

    for version in (0, 1, 2, None, 1, 0, 2):
        restored(version)
        nodes.light(nodes.version)
    nodes.all_see(store)
    # A version of before the first vector says nothing of them, and yet the next swap may make some.
    restored(0)
    nodes.rows = {("a", owner(number)): nodes_of(number, 5) for number in range(20)}
    nodes.swap(*nodes_of(1, 1), owners=[owner(1)])
    assert delta_log(store, NODES.name).snapshot().properties["delta.enableDeletionVectors"] == "true"
    nodes.all_see(store)
    for file in Path(nodes.location).glob("*.bin"):
        file.unlink()
    with pytest.raises(StorageFailure, match=r"cannot be restored to version 2: .*bin is gone"):
        restored(2)
    restored(0)
    nodes.all_see(store)


def key_facts(adds: dict[str, Add]) -> dict[str, tuple[int, DeletionVector | None]]:
    return {path: (add.size, add.deletion_vector) for path, add in adds.items()}


@pytest.mark.system
def test_spark_swaps_where_the_table_asks_for_more(store: Store) -> None:
    lake = Lake(store, NODES, "owner_file_id")
    lake.swap(*nodes_of(1, 3), *nodes_of(None, 4), *nodes_of(None, 2, repo_id="b"), *nodes_of(2, 3))
    store.spark.sql(f"ALTER TABLE delta.`{lake.location}` ADD CONSTRAINT plain CHECK (repo_id <> 'x')")
    lake.history.append(lake.history[0])
    done = lake.swap(*nodes_of(None, 1), *nodes_of(2, 1), owners=[owner(2)], shared_repos=["a"])
    assert done.operation == "replace_by_owner"
    lake.all_see(store)
