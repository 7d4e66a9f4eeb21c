"""Deletion vectors: what Python writes every reader sees alike, whatever was done to the table before."""

from __future__ import annotations

import random
from base64 import b85encode
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec import json, structs
from pyroaring import BitMap64

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import (
    MAGIC,
    TO_DELTA,
    DeletionVector,
    PositionBits,
    read_vector,
    removed_bits,
    vector_path,
    write_vectors,
)
from codeanatomy.delta.log.replay import Add, entry_path, read_actions, replay_log
from codeanatomy.delta.read.light import light_table, logged_paths, table_facts
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import LakeTables, Store
from codeanatomy.delta.write.adopt import adopt_files
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.owner_rows import PickedRows
from codeanatomy.delta.write.restore import restore_table
from codeanatomy.errors import StorageFailure
from codeanatomy.ids import stable_id
from support.owner_tables import LINES, NODES, Lake, counted, filled, key_columns, lines_of, nodes_of, owner


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()


@pytest.fixture
def nodes(store: Store) -> Lake:
    return Lake(LakeTables(store.root), NODES, "owner_file_id")


@pytest.fixture
def aside(tmp_path: Path) -> Lake:
    """A lake without a session."""
    return Lake(LakeTables(str(tmp_path)), NODES, "owner_file_id")


# The format.


def test_a_vector_is_read_as_it_was_written(tmp_path: Path) -> None:
    chance = random.Random(3)
    bitmaps = {
        "few": BitMap64([0, 7, 4_294_967_295]),
        "run": BitMap64(range(10, 100_000)),
        "many": BitMap64(chance.sample(range(1_000_000), 100_000)),
    }
    vectors = write_vectors(str(tmp_path), bitmaps)
    assert len(list(tmp_path.glob("deletion_vector_*.bin"))) == 1
    assert {name: read_vector(str(tmp_path), vector) for name, vector in vectors.items()} == bitmaps
    assert read_vector(str(tmp_path), None) == BitMap64()
    assert write_vectors(str(tmp_path / "none"), {}) == {}
    told = json.decode(json.encode(vectors["few"]))
    assert (told["storageType"], told["cardinality"]) == ("u", 3)
    assert set(told) == {"storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"}


def test_vectors_in_the_log_and_in_files_elsewhere(tmp_path: Path) -> None:
    positions = BitMap64([1, 5])
    data = MAGIC + positions.serialize()
    padded = data + bytes(-len(data) % 4)
    inline = DeletionVector("i", b85encode(padded).translate(TO_DELTA).decode(), len(data), 2)
    assert read_vector("nowhere", inline) == positions
    vector = write_vectors(str(tmp_path), {"x": positions})["x"]
    place = vector_path(str(tmp_path), vector)
    for path in (str(place), f"file://{place}"):
        assert (
            read_vector("nowhere", structs.replace(vector, storage_type="p", path_or_inline=path))
            == positions
        )
    folder = tmp_path / "ab"
    folder.mkdir()
    assert place is not None
    place.rename(folder / place.name)
    assert (
        read_vector(str(tmp_path), structs.replace(vector, path_or_inline=f"ab{vector.path_or_inline}"))
        == positions
    )


def test_names_are_coded_as_delta_does_it() -> None:
    # From a table that Spark has written.
    vector = DeletionVector("u", "M]6I.=ELXgR=f1wTqovL", 318, 143, 1)
    assert vector_path("t", vector) == Path("t/deletion_vector_98348596-ced6-4cc8-a753-998bac16d5eb.bin")


@pytest.mark.parametrize("harm", ["cut", "flipped", "gone", "other"])
def test_a_damaged_vector_is_no_vector(tmp_path: Path, harm: str) -> None:
    vector = write_vectors(str(tmp_path), {"x": BitMap64([1, 2, 9])})["x"]
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    if harm == "other":
        vector = structs.replace(vector, cardinality=4)
    elif harm == "gone":
        file.unlink()
    else:
        content[-6] ^= 1
        file.write_bytes(content[:-6] if harm == "cut" else content)
    with pytest.raises(StorageFailure, match="deletion vector"):
        read_vector(str(tmp_path), vector)


def test_bits_end_after_the_last_removed_row(tmp_path: Path) -> None:
    vector = write_vectors(str(tmp_path), {"x": BitMap64([0, 2, 8])})["x"]
    assert removed_bits(str(tmp_path), vector) == PositionBits("oIA=", 10)


# Commits, seen by everybody.


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
    for version in (0, 1, 3, 5):
        nodes.all_see(store, version)


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


def test_the_protocol_is_asked_for_with_the_first_vector(store: Store, nodes: Lake) -> None:
    filled(nodes)
    before = table_facts(nodes.tables.root, NODES.name, 0)
    assert (before.min_reader_version, before.min_writer_version, before.features) == (1, 2, ())
    # Whole files come and go without it.
    nodes.swap(*nodes_of(30, 2), owners=[owner(30)])
    nodes.swap(*nodes_of(30, 1), owners=[owner(30)])
    after = table_facts(nodes.tables.root, NODES.name, 2)
    assert after == structs.replace(before, rows=202, files=after.files, size_bytes=after.size_bytes)
    nodes.swap(owners=[owner(1)])
    info = store.log(NODES.name).snapshot()
    assert (info.min_reader_version, info.min_writer_version) == (3, 7)
    assert info.reader_features == ("deletionVectors",)
    assert info.writer_features == ("appendOnly", "deletionVectors", "invariants")
    assert info.properties["delta.enableDeletionVectors"] == "true"
    older = store.log(NODES.name).snapshot(2)
    assert info.properties == {**older.properties, "delta.enableDeletionVectors": "true"}
    assert info.schema_json == older.schema_json
    assert entries.has_simple_protocol(info)
    # Once: later vectors say nothing more of it.
    nodes.swap(owners=[owner(2)])
    assert not any(action.protocol or action.meta_data for action in read_actions(nodes.location, 4))


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


def test_checkpoints_of_spark_are_read(store: Store, nodes: Lake) -> None:
    filled(nodes, files=4)
    nodes.swap(*nodes_of(2, 2), owners=[owner(2)])
    store.log(nodes.table.name)._log.checkpoint()
    assert list(Path(nodes.location, "_delta_log").glob("*1.checkpoint*.parquet"))
    nodes.light(1)
    nodes.swap(owners=[owner(2), owner(3)])
    nodes.all_see(store)


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
    assert store.log(NODES.name).snapshot().properties["delta.enableDeletionVectors"] == "true"
    nodes.all_see(store)
    for file in Path(nodes.location).glob("*.bin"):
        file.unlink()
    with pytest.raises(StorageFailure, match=r"cannot be restored to version 2: .*bin is gone"):
        restored(2)
    restored(0)
    nodes.all_see(store)


def key_facts(adds: dict[str, Add]) -> dict[str, tuple[int, DeletionVector | None]]:
    return {path: (add.size, add.deletion_vector) for path, add in adds.items()}


def test_spark_swaps_where_the_table_asks_for_more(store: Store) -> None:
    lake = Lake(store, NODES, "owner_file_id")
    lake.swap(*nodes_of(1, 3), *nodes_of(None, 4), *nodes_of(None, 2, repo_id="b"), *nodes_of(2, 3))
    store.spark.sql(f"ALTER TABLE delta.`{lake.location}` ADD CONSTRAINT plain CHECK (repo_id <> 'x')")
    lake.history.append(lake.history[0])
    done = lake.swap(*nodes_of(None, 1), *nodes_of(2, 1), owners=[owner(2)], shared_repos=["a"])
    assert done.operation == "replace_by_owner"
    lake.all_see(store)


def test_files_of_a_version_are_data_and_vectors(aside: Lake) -> None:
    filled(aside)
    root = aside.tables.root
    assert len(logged_paths(root, NODES.name, 0)) == 2
    aside.swap(owners=[owner(1)])
    paths = logged_paths(root, NODES.name, 1)
    assert [Path(path).suffix for path in paths] == [".parquet", ".parquet", ".bin"]
    assert all(Path(aside.location, path).is_file() for path in paths)


def test_a_vector_without_a_commit_is_harmless(aside: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(aside)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(entries, "write_entry", killed)
        with pytest.raises(KeyboardInterrupt):
            aside.swap(owners=[owner(1)])
    assert len(list(Path(aside.location).glob("*.bin"))) == 1
    aside.light(0)
    aside.swap(owners=[owner(1)])
    aside.light(1)


def test_a_lost_race_leaves_no_vector(aside: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(aside)
    put = entries.write_entry

    def late(location: str, version: int, said: Iterable[Any], interval: int) -> bool:
        monkeypatch.setattr(entries, "write_entry", put)
        done = adopt_files(aside.tables, NODES.name, [], [owner(2)], Commit("other"), by="owner_file_id")
        del aside.rows["a", owner(2)]
        aside.history.append(counted(NODES, [row for rows in aside.rows.values() for row in rows]))
        assert done.committed
        return put(location, version, said, interval)

    monkeypatch.setattr(entries, "write_entry", late)
    done = aside.swap(owners=[owner(1)])
    assert (done.version, done.attempts, done.rows_deleted) == (2, 2, 10)
    assert len(list(Path(aside.location).glob("*.bin"))) == 2
    aside.light(2)


def test_the_same_commit_twice_is_one(aside: Lake) -> None:
    filled(aside)
    files = write_files(aside.location, NODES, [])
    for repeated in (False, True):
        done = adopt_files(aside.tables, NODES.name, files, [owner(1)], Commit("x"), by="owner_file_id")
        assert (done.version, done.repeated, done.committed) == (1, repeated, not repeated)


def test_conditions_and_columns_of_rows_that_are_left(aside: Lake) -> None:
    filled(aside, files=4)
    aside.swap(*nodes_of(2, 2), owners=[owner(2)])
    root = aside.tables.root
    found = light_table(root, NODES.name, ["path"], pc.field("bstart") >= 3)
    assert sorted(found["path"].to_pylist()) == ["0.py"] * 4 + ["1.py"] * 4 + ["3.py"] * 4
    both = (pc.field("node_kind") == "CLASS") & (pc.field("path") == "2.py")
    assert light_table(root, NODES.name, ["node_kind", "bstart"], both).to_pylist() == [
        {"node_kind": "CLASS", "bstart": place} for place in range(2)
    ]


@pytest.mark.parametrize("folder", ["la*ke", "la?ke", "la'ke", "lä ke#", "{la}ke"])
def test_a_path_is_no_pattern(tmp_path: Path, folder: str) -> None:
    lake = filled(Lake(LakeTables(str(tmp_path / folder)), NODES, "owner_file_id"), files=3)
    lake.swap(*nodes_of(1, 2), owners=[owner(1)])
    lake.light(1)
    assert len(lake.vectors()) == 2


def test_bounds_that_were_cut(tmp_path: Path) -> None:
    """Of a text of 32 characters nobody knows whether it is the greatest value or the beginning of it."""
    long = f"{'a' * 40}.py"
    lake = Lake(LakeTables(str(tmp_path)), NODES, "path")
    rows = [{**row, "path": long} for row in nodes_of(1, 3)]
    lake.swap(*rows)
    log = entry_path(lake.location, 0)
    lines = [json.decode(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "add" in line:
            told = json.decode(line["add"]["stats"])
            assert told["maxValues"]["path"] >= long[:32]
            for bound in ("minValues", "maxValues"):
                told[bound]["path"] = long[:32]
            line["add"]["stats"] = json.encode(told).decode()
    log.write_bytes(b"".join(json.encode(line) + b"\n" for line in lines))
    assert lake.swap(*rows[:2], owners=[long]).rows_deleted == 6
    lake.light(1)


def test_files_without_a_count_of_rows(aside: Lake) -> None:
    """Statistics are a writer's choice."""
    filled(aside, files=3)
    first = Path(aside.location, "_delta_log", f"{0:020}.json")
    told = [json.decode(line) for line in first.read_bytes().splitlines()]
    for action in told:
        action.get("add", {}).pop("stats", None)
    first.write_bytes(b"\n".join(map(json.encode, told)))
    aside.swap(*nodes_of(1, 1), owners=[owner(1)])
    aside.light(1)
    stats = [json.decode(add.stats or "{}") for add in replay_log(aside.location, 1).adds.values()]
    assert [each["numRecords"] for each in stats if not each.get("tightBounds", True)] == [15, 15]


def test_random_swaps(aside: Lake) -> None:
    chance = random.Random(11)
    filled(aside, files=30, rows=4)
    for _ in range(15):
        numbers = chance.sample(range(40), chance.randint(1, 6))
        rows = [row for number in numbers for row in nodes_of(number, chance.randint(0, 5))]
        shared = ["a"] if chance.random() < 0.3 else []
        rows += nodes_of(None, chance.randint(0, 3)) if shared else []
        others = chance.sample([number for number in range(40) if number not in numbers], 5)
        single = [row for number in others for row in nodes_of(number, 6) if chance.random() < 0.3]
        ids = pa.array([row["node_id"] for row in single], pa.string())
        # Some of them come back, and some were not there.
        rows += [row for row in single if chance.random() < 0.5]
        picked = PickedRows("node_id", ids, frozenset(map(owner, others)))
        aside.swap(*rows, owners=map(owner, numbers), shared_repos=shared, picked=picked)
        aside.light(len(aside.history) - 1)


def test_single_rows_are_picked_of_their_owners_only(aside: Lake) -> None:
    filled(aside)
    ids = [row["node_id"] for row in (*nodes_of(3, 2), *nodes_of(4, 1))]
    picked = PickedRows("node_id", pa.array(ids, pa.string()), frozenset({owner(3)}))
    done = aside.swap(picked=picked)
    assert (done.rows, done.rows_deleted, done.files_removed) == (0, 4, 0)
    aside.light(1)
    # They are gone, so nothing is left to do.
    assert not aside.swap(picked=picked).committed


def test_spark_swaps_single_rows_where_the_table_asks_for_more(store: Store) -> None:
    lake = Lake(store, NODES, "owner_file_id")
    lake.swap(*nodes_of(1, 3), *nodes_of(2, 3), *nodes_of(3, 2))
    store.spark.sql(f"ALTER TABLE delta.`{lake.location}` ADD CONSTRAINT plain CHECK (repo_id <> 'x')")
    lake.history.append(lake.history[0])
    [row, *_] = nodes_of(1, 1)
    new = {**row, "node_id": stable_id("node", "new"), "bstart": 77, "bend": 78}
    picked = PickedRows("node_id", pa.array([row["node_id"]]), frozenset({owner(1)}))
    done = lake.swap(new, *nodes_of(3, 1), owners=[owner(3)], picked=picked)
    assert done.operation == "replace_by_owner"
    lake.all_see(store)
