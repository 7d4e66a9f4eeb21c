"""The files of a table, in a folder and in an object store: one winner, and a bounded cache."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from codeanatomy.delta.log import remote_folder
from codeanatomy.delta.log.folder import Folder, LocalFolder, NewFiles, folder_of, forget_listings
from codeanatomy.delta.log.remote_folder import RemoteFolder, shared_listing
from codeanatomy.errors import EnvironmentProblem, StorageFailure

LOG = "_delta_log"


@pytest.fixture(params=["local", "remote"])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Folder]:
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "cache"))
    if request.param == "local":
        yield LocalFolder(str(tmp_path / "table"))
        return
    store = MemoryStore()
    monkeypatch.setattr(remote_folder, "object_store", lambda uri: store)
    yield RemoteFolder("s3a://bucket/lake/graph/cpg_nodes")


def in_memory(monkeypatch: pytest.MonkeyPatch, cache: Path) -> MemoryStore:
    """Make all object stores one in memory, with a cache of its own."""
    store = MemoryStore()
    monkeypatch.setenv("CODEANATOMY_CACHE", str(cache))
    monkeypatch.setattr(remote_folder, "object_store", lambda uri: store)
    return store


def test_files_are_created_once(folder: Folder) -> None:
    assert folder.list_files(LOG) == []
    assert folder.missing([f"{LOG}/0.json"]) == [f"{LOG}/0.json"]
    assert folder.create(f"{LOG}/0.json", b"one")
    assert not folder.create(f"{LOG}/0.json", b"two")
    assert folder.read(f"{LOG}/0.json") == b"one"
    assert folder.create(f"{LOG}/_sidecars/a.parquet", b"further")
    (file,) = folder.list_files(LOG)
    assert (file.name, file.size_bytes) == ("0.json", 3)
    assert folder.missing([f"{LOG}/0.json"]) == []
    assert folder.known_files(LOG) == [file]
    assert folder.modified_ms(f"{LOG}/0.json") == file.modified_ms > 0
    assert folder.modified_ms(f"{LOG}/1.json") == 0
    assert folder.read_all([f"{LOG}/0.json", f"{LOG}/_sidecars/a.parquet"]) == [b"one", b"further"]
    with pytest.raises(FileNotFoundError):
        folder.read(f"{LOG}/1.json")


def test_of_many_that_create_a_file_one_wins(folder: Folder) -> None:
    for turn in range(20):
        won: list[bytes] = []
        gate = threading.Barrier(4)

        def attempt(
            content: bytes, turn: int = turn, won: list[bytes] = won, gate: threading.Barrier = gate
        ) -> None:
            gate.wait()
            if folder.create(f"{LOG}/{turn}.json", content):
                won.append(content)

        threads = [threading.Thread(target=attempt, args=(b"%d" % number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [folder.read(f"{LOG}/{turn}.json")]


@pytest.mark.parametrize("content", [b"", b"PAR1 rows", b"rows PAR1", bytes(40)])
def test_a_data_file_that_is_cut_off_is_damaged(tmp_path: Path, content: bytes) -> None:
    folder = LocalFolder(str(tmp_path))
    (tmp_path / "whole.parquet").write_bytes(b"PAR1 rows PAR1")
    (tmp_path / "cut.parquet").write_bytes(content)
    assert folder.damaged(["whole.parquet", "cut.parquet"]) == ["cut.parquet"]
    assert folder.missing(["whole.parquet", "cut.parquet"]) == []


def test_new_files_are_published_and_deleted(folder: Folder) -> None:
    path = "node_kind=CLASS/part-1.parquet"
    new = Path(folder.new_files, path)
    new.parent.mkdir(parents=True)
    new.write_bytes(b"rows")
    # Files of other machines are there already.
    folder.create("elsewhere/part-2.parquet", b"more")
    folder.publish([path, "elsewhere/part-2.parquet"])
    assert folder.read(path) == b"rows"
    assert Path(folder.local_path(path)).read_bytes() == b"rows"
    assert [Path(each).read_bytes() for each in folder.local_paths([path])] == [b"rows"]
    folder.delete([path, "node_kind=CLASS/none.parquet"])
    assert folder.missing([path]) == [path]
    many = [f"{number}.parquet" for number in range(10)]
    assert folder.create(many[3], b"rows")
    assert folder.missing(many) == [each for each in many if each != many[3]]
    assert not Path(folder.new_files, path).exists()


def test_a_file_that_was_deleted_before_its_upload(counted: CountedStore) -> None:
    folder = RemoteFolder("s3a://bucket/lake")
    for name in ("a", "b"):
        Path(folder.new_files).mkdir(parents=True, exist_ok=True)
        Path(folder.new_files, name).write_bytes(b"rows")
    folder.publish(["a"])
    folder.publish(["a", "b"])
    assert counted.counts == {"put": 2}
    with pytest.raises(StorageFailure, match=r"c of s3a://bucket/lake was deleted from .* before"):
        folder.publish(["a", "c"])


def test_a_repeated_request_that_has_won_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store may answer the second attempt of a request that the object exists."""
    store = MemoryStore()
    monkeypatch.setattr(remote_folder, "object_store", lambda uri: store)
    folder = RemoteFolder("s3a://bucket/lake")
    store.put("0.json", b"mine")
    assert folder.create("0.json", b"mine")
    assert not folder.create("0.json", b"other")


def test_an_entry_of_an_earlier_table_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has deleted the table, and created it again with fewer versions."""
    store = in_memory(monkeypatch, tmp_path)
    folder = RemoteFolder("s3a://bucket/lake")
    for number in range(2):
        assert folder.create(f"{LOG}/{number}.json", b"old")
    store.delete([f"{LOG}/0.json", f"{LOG}/1.json"])
    store.put(f"{LOG}/0.json", b"new")
    assert [file.name for file in folder.list_files(LOG)] == ["0.json"]
    assert folder.read(f"{LOG}/0.json") == b"new"
    with pytest.raises(FileNotFoundError):
        folder.read(f"{LOG}/1.json")


def test_a_fetched_file_is_read_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = in_memory(monkeypatch, tmp_path)
    store.put("a.parquet", b"rows")
    folder = RemoteFolder("s3a://bucket/lake")
    copy = Path(folder.local_path("a.parquet"))
    assert copy.is_relative_to(tmp_path)
    store.delete("a.parquet")
    assert Path(folder.local_path("a.parquet")).read_bytes() == b"rows"
    with pytest.raises(StorageFailure, match=r"s3a://bucket/lake/b\.parquet does not exist"):
        folder.local_path("b.parquet")
    # Another lake has other files.
    with pytest.raises(StorageFailure):
        RemoteFolder("s3a://bucket/other").local_path("a.parquet")


def test_a_damaged_copy_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = in_memory(monkeypatch, tmp_path)
    store.put("a.parquet", b"rows")
    folder = RemoteFolder("s3a://bucket/lake")
    copy = Path(folder.local_path("a.parquet"))
    copy.write_bytes(b"ro")
    (again,) = folder.local_paths(["a.parquet"], [4])
    assert Path(again).read_bytes() == b"rows"
    for tag in ("", "tag"):
        copy = Path(folder.local_path("a.parquet", tag))
        copy.write_bytes(b"r")
        assert Path(folder.local_path("a.parquet", tag, least=4)).read_bytes() == b"rows"


def test_a_full_disk_is_no_damage_of_the_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory(monkeypatch, tmp_path).put("a.parquet", b"rows")

    def full(*_: object, **__: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        RemoteFolder("s3a://bucket/lake").local_path("a.parquet")


def test_the_cache_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path))
    monkeypatch.setattr(remote_folder, "CACHE_BYTES", 2500)
    monkeypatch.setattr(remote_folder, "MEASURED_BYTES", 1)
    monkeypatch.setattr(remote_folder, "RECENT_SECONDS", -1)
    store = MemoryStore()
    monkeypatch.setattr(remote_folder, "object_store", lambda uri: store)
    folder = RemoteFolder("s3a://bucket/lake")
    waiting = Path(folder.new_files, "new.parquet")
    waiting.parent.mkdir(parents=True)
    waiting.write_bytes(bytes(9000))
    for number in range(4):
        store.put(f"{number}.parquet", bytes(1000))
        folder.local_path(f"{number}.parquet")
    kept = {path.name for path in tmp_path.rglob("*.parquet")}
    assert kept == {"2.parquet", "3.parquet", "new.parquet"}
    # Files that were just used stay, whatever their size, and those of a build that died go.
    monkeypatch.setattr(remote_folder, "RECENT_SECONDS", 60)
    monkeypatch.setattr(remote_folder, "ABANDONED_SECONDS", -1)
    paths = folder.local_paths([f"{number}.parquet" for number in range(4)])
    assert all(Path(path).stat().st_size == 1000 for path in paths)
    assert not waiting.exists()


def test_an_entry_that_goes_while_it_is_listed(tmp_path: Path) -> None:
    """Writers make and remove temporary files in the folder of the log."""
    folder = LocalFolder(str(tmp_path))
    folder.create(f"{LOG}/0.json", b"one")
    done = threading.Event()

    def lose() -> None:
        while not done.is_set():
            folder.create(f"{LOG}/0.json", b"two")

    writer = threading.Thread(target=lose)
    writer.start()
    try:
        for _ in range(300):
            assert any(file.name == "0.json" for file in folder.list_files(LOG))
    finally:
        done.set()
        writer.join()


def test_the_folder_of_a_location(tmp_path: Path) -> None:
    assert isinstance(folder_of("s3a://bucket/lake"), RemoteFolder)
    for location in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}"):
        assert folder_of(location).new_files == str(tmp_path)
    assert NewFiles(str(tmp_path)).open().new_files == str(tmp_path)


def test_a_checkpoint_is_cached_with_its_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lake that was deleted and built again has checkpoints of the same names."""
    store = in_memory(monkeypatch, tmp_path)
    folder = RemoteFolder("s3a://bucket/lake")
    for content in (b"one", b"two"):
        store.put("_delta_log/1.checkpoint.parquet", content)
        (file,) = folder.list_files("_delta_log")
        path = Path(folder.local_path("_delta_log/1.checkpoint.parquet", file.tag))
        assert path.read_bytes() == content


class CountedStore:
    """Count the requests to a store by method."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.counts: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.counts[name] += 1
        return getattr(self._store, name)


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountedStore:
    store = CountedStore(MemoryStore())
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path))
    monkeypatch.setattr(remote_folder, "object_store", lambda uri: store)
    return store


def test_entries_are_fetched_once(counted: CountedStore) -> None:
    paths = [f"{LOG}/{number}.json" for number in range(5)]
    writer = RemoteFolder("s3a://bucket/lake")
    for path in paths:
        writer.create(path, path.encode())
    counted.counts.clear()
    reader = RemoteFolder("s3a://bucket/lake")
    assert len(reader.list_files(LOG)) == 5
    assert reader.read_all(paths) == [path.encode() for path in paths]
    assert len(reader.known_files(LOG)) == 5
    assert counted.counts == {"list_with_delimiter": 1}


def test_entries_of_others_and_of_a_new_table_are_seen(counted: CountedStore) -> None:
    path = f"{LOG}/0.json"
    folder, other = RemoteFolder("s3a://bucket/lake"), counted._store
    for content in (b"one", b"two", b"longer than before"):
        other.put(path, content)
        folder.list_files(LOG)
        assert folder.read(path) == content
    other.put(f"{LOG}/1.json", b"next")
    assert [file.name for file in folder.known_files(LOG)] == ["0.json"]
    assert [file.name for file in folder.list_files(LOG)] == ["0.json", "1.json"]
    assert not folder.create(f"{LOG}/1.json", b"mine")
    # A lake that is opened again may be another one.
    other.delete([f"{LOG}/0.json", f"{LOG}/1.json"])
    other.put(path, b"new table")
    assert len(folder.known_files(LOG)) == 2
    forget_listings()
    assert [file.name for file in folder.known_files(LOG)] == ["0.json"]
    assert folder.read(path) == b"new table"


def test_a_damaged_copy_of_an_entry_is_fetched_again(counted: CountedStore, tmp_path: Path) -> None:
    folder = RemoteFolder("s3a://bucket/lake")
    folder.create(f"{LOG}/0.json", b"one")
    (copy,) = tmp_path.rglob("0.json.*")
    copy.write_bytes(b"")
    folder.list_files(LOG)
    assert folder.read(f"{LOG}/0.json") == b"one"
    assert copy.read_bytes() == b"one"


def test_a_lake_is_listed_once(counted: CountedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    root = "s3a://bucket"
    for table in ("graph/cpg_nodes", "graph/cpg_nodes_by_name", "meta/run_lease"):
        for name in (f"{LOG}/0.json", f"{LOG}/_sidecars/a.parquet", "part-1.parquet"):
            counted._store.put(f"{table}/{name}", b"rows")
    nodes = RemoteFolder(f"{root}/graph/cpg_nodes")
    with shared_listing(root):
        assert [file.name for file in nodes.list_files(LOG)] == ["0.json"]
        assert nodes.missing(["part-1.parquet", "part-2.parquet"]) == ["part-2.parquet"]
        assert {file.name for file in RemoteFolder(f"{root}/meta/run_lease").list_tree()} == {
            f"{LOG}/0.json",
            f"{LOG}/_sidecars/a.parquet",
            "part-1.parquet",
        }
        assert counted.counts == {"list": 1}
        # What is written in the block is seen.
        assert RemoteFolder(f"{root}/graph/cpg_nodes").create(f"{LOG}/1.json", b"next")
        RemoteFolder(f"{root}/graph/cpg_nodes").list_files(LOG)
        assert counted.counts["list_with_delimiter"] == 1
    monkeypatch.setattr(remote_folder, "MAX_LISTED", 3)
    with shared_listing(root):
        nodes.list_files(LOG)
    assert counted.counts["list_with_delimiter"] == 2
