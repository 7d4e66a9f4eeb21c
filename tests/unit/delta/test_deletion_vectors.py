"""Deletion vectors: the format, and commits that every reader without a JVM sees alike."""

from __future__ import annotations

import random
from base64 import b85encode
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs
from pyroaring import BitMap64

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import (
    MAGIC,
    TO_DELTA,
    DeletionVector,
    PositionBits,
    read_vector,
    removed_bits,
    write_vectors,
)
from codeanatomy.delta.log.replay import replay_log
from codeanatomy.delta.read.light import light_table, logged_paths
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import commit_files
from codeanatomy.errors import StorageFailure
from support.log_files import entry_path, vector_file
from support.owner_tables import NODES, Lake, counted, filled, nodes_of, owner


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
    place = vector_file(str(tmp_path), vector)
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
    assert vector_file("t", vector) == Path("t/deletion_vector_98348596-ced6-4cc8-a753-998bac16d5eb.bin")


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


# Commits.


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
        done = commit_files(aside.tables, NODES.name, [], [owner(2)], Commit("other"), by="owner_file_id")
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
        done = commit_files(aside.tables, NODES.name, files, [owner(1)], Commit("x"), by="owner_file_id")
        assert (done.version, done.repeated, done.committed) == (1, repeated, not repeated)


def test_conditions_and_columns_of_rows_that_are_left(aside: Lake) -> None:
    filled(aside, files=4)
    aside.swap(*nodes_of(2, 2), owners=[owner(2)])
    root = aside.tables.root
    found = light_table(root, NODES.name, ["path"], {"path": ["2.py", "3.py", "9.py"]})
    assert Counter(found["path"].to_pylist()) == {"2.py": 4, "3.py": 10}
    both = {"node_kind": ["CLASS"], "path": ["2.py"]}
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
        aside.swap(*rows, owners=map(owner, numbers), shared_repos=shared)
        aside.light(len(aside.history) - 1)
