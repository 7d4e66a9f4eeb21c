"""Sources in object stores, on a store in memory: what is fetched, from where it is read, and refusals."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.config import CACHE_VARIABLE, RuntimeProfile, load_settings
from codeanatomy.delta import object_store as object_store_module
from codeanatomy.delta import store_policy
from codeanatomy.delta.store_policy import StorePolicy, policy_for
from codeanatomy.errors import RemotePathRefused, UsageError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan import stored_sources
from codeanatomy.plan.build_request import BuildRequest, ScipChoice, refuse_unshared_sources
from codeanatomy.plan.repositories import Repository, parse_repositories
from codeanatomy.plan.stored_sources import StoredSources, copies_folder, list_stored, register_sources
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.status.freshness import source_state
from codeanatomy.run.clean_build import build_requests
from codeanatomy.sources.digest import file_states
from codeanatomy.sources.listing import Listing
from codeanatomy.sources.reading import read_entries
from support.light_builds import clean_lake, refreshed, worker_code

URI = "s3a://bucket/src"
DEFAULT = ExtractOptions()


class CountedStore:
    """A store in memory, as seen from a folder, that notes which objects were fetched."""

    def __init__(self) -> None:
        self.memory = MemoryStore()
        self.fetched: list[str] = []

    def get(self, path: str) -> Any:
        self.fetched.append(path)
        return self.memory.get(path or "(archive)")

    def head(self, path: str) -> Any:
        return self.memory.head(path or "(archive)")

    def get_range(self, path: str, *, start: int, end: int) -> Any:
        return self.memory.get_range(path, start=start, end=end)

    def list(self) -> Any:
        # The object of the URI itself is not below it.
        return [[each for each in batch if each["path"] != "(archive)"] for batch in self.memory.list()]

    def put(self, path: str, content: bytes) -> None:
        self.memory.put(path or "(archive)", content)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountedStore:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    counted = CountedStore()
    monkeypatch.setattr(object_store_module, "object_store", lambda uri: counted)
    return counted


def contents(listing: Listing) -> dict[str, bytes | None]:
    readings = read_entries(listing.kind, listing.root, listing.entries, DEFAULT)
    return {reading.entry.path: reading.raw for reading in readings}


def archive(**files: bytes) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{name}.py")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def test_only_changed_files_are_fetched_again(store: CountedStore) -> None:
    for key, content in {"a.py": b"A = 1\n", "pkg/b.py": b"", "data.json": b"{}", "LICENSE": b"MIT"}.items():
        store.put(key, content)
    first = list_stored(URI, DEFAULT)
    assert contents(first) == {"a.py": b"A = 1\n", "pkg/b.py": b"", "LICENSE": None}
    assert sorted(store.fetched) == ["a.py", "pkg/b.py"]
    store.fetched.clear()
    assert contents(list_stored(URI, DEFAULT)) == contents(first)
    assert store.fetched == []
    store.put("a.py", b"A = 2\n")
    second = list_stored(URI, DEFAULT)
    assert store.fetched == ["a.py"]
    assert contents(second)["a.py"] == b"A = 2\n"
    assert file_states(second, DEFAULT)["a.py"] != file_states(first, DEFAULT)["a.py"]


def test_a_damaged_copy_is_fetched_again(store: CountedStore) -> None:
    store.put("a.py", b"A = 1\n")
    listing = list_stored(URI, DEFAULT)
    copy = Path(listing.root, listing.entries[0].location.partition("/")[0])
    copy.write_bytes(b"A")
    assert contents(list_stored(URI, DEFAULT)) == {"a.py": b"A = 1\n"}


def test_an_archive_is_fetched_once(store: CountedStore) -> None:
    store.put("", archive(a=b"A = 1\n"))
    listing = list_stored(URI, DEFAULT)
    assert (listing.kind, listing.uri, contents(listing)) == ("tar", URI, {"a.py": b"A = 1\n"})
    list_stored(URI, DEFAULT)
    assert store.fetched == [""]
    store.put("", archive(a=b"A = 2\n", b=b""))
    assert contents(list_stored(URI, DEFAULT)) == {"a.py": b"A = 2\n", "b.py": b""}


def test_refusals(store: CountedStore) -> None:
    with pytest.raises(UsageError, match="there is no object at s3a://bucket/src, and none below it"):
        list_stored(URI, DEFAULT)
    with pytest.raises(UsageError, match="there is no object at s3a://bucket, and"):
        list_stored("s3a://bucket", DEFAULT)
    store.put("", b"some text")
    with pytest.raises(UsageError, match="s3a://bucket/src is neither a folder nor an archive"):
        list_stored(URI, DEFAULT)
    store.put("", archive(a=b"A")[:-20])
    with pytest.raises(UsageError, match="s3a://bucket/src is damaged or not a supported archive"):
        list_stored(URI, DEFAULT)
    store.put("", archive(a=b"A"))
    with pytest.raises(UsageError, match=r"more than extract\.max_archive_size"):
        list_stored(URI, ExtractOptions(max_archive_size=10))


@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_an_object_that_changes_after_the_listing_is_recorded_as_vanished(
    store: CountedStore, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    store.put("a.py", b"A = 1\n")
    store.put("b.py", b"B = 1\n")
    listed = stored_sources._objects

    def and_changed(uri: str) -> Any:
        objects = listed(uri)
        if change == "deleted":
            store.memory.delete("a.py")
        else:
            store.put("a.py", b"A = 2\n")
        return objects

    monkeypatch.setattr(stored_sources, "_objects", and_changed)
    states = file_states(list_stored(URI, DEFAULT), DEFAULT)
    assert (states["a.py"][2], len(states["b.py"][2])) == ("vanished", 64)


@pytest.mark.parametrize("make", [lambda s: s.put("a.py", b"A\n"), lambda s: s.put("", archive(a=b"A\n"))])
def test_a_task_on_another_host_fetches_its_files_there(
    store: CountedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[CountedStore], None]
) -> None:
    make(store)
    listing = list_stored(URI, DEFAULT)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "executor"))
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    policy = StorePolicy({"fs.s3a.access.key": "AK"})
    sources = StoredSources(policy, {"demo": URI})
    root = sources.fetch("demo", listing.kind, listing.root, listing.entries)
    assert root.startswith(str(tmp_path / "executor"))
    (reading,) = read_entries(listing.kind, root, listing.entries, DEFAULT)
    assert reading.raw == b"A\n"
    assert policy_for(URI) == policy
    assert sources.fetch("local", "folder", "/src", ()) == "/src"
    # What exists needs no store: local processes may not use one.
    monkeypatch.delattr(object_store_module, "object_store")
    assert sources.fetch("demo", listing.kind, listing.root, listing.entries) == root


def test_the_cache_keeps_what_was_used_lately(store: CountedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_sources, "CACHE_BYTES", 10)
    old = copies_folder("s3a://bucket/old")
    old.mkdir(parents=True)
    for name, days in (("oldest", 3), ("older", 2), ("new", 0)):
        (old / name).write_bytes(b"12345678")
        then = time.time() - days * 24 * 3600
        os.utime(old / name, (then, then))
    store.put("a.py", b"A\n")
    list_stored(URI, DEFAULT)
    assert [path.name for path in old.iterdir()] == ["new"]


def test_the_options_of_the_settings_are_used(store: CountedStore) -> None:
    options = {"fs.s3a.endpoint": "http://minio:9000"}
    register_sources([URI, Path("local")], RuntimeProfile(storage_options=options))
    assert policy_for(f"{URI}/pkg").storage_options == options
    assert policy_for("local") == StorePolicy()
    with pytest.raises(RemotePathRefused, match="require_local_paths"):
        register_sources([URI], RuntimeProfile(require_local_paths=True))


def test_credentials_in_a_uri_are_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="contains credentials") as refused:
        register_sources(["s3a://AKIA:hush@bucket/src"], RuntimeProfile())
    assert "hush" not in str(refused.value)


def test_uris_are_parsed(tmp_path: Path) -> None:
    assert parse_repositories(["s3a://bucket/src/demo/", f"two=file:{tmp_path}/my%20src"]) == [
        Repository("demo", "s3a://bucket/src/demo"),
        Repository("two", tmp_path / "my src"),
    ]
    lines = tmp_path / "repos"
    lines.write_text(
        "demo=abfss://c@account.dfs.core.windows.net/demo.zip\ngs://bucket/x=1/flask-3.1.tar.gz\n"
    )
    first, second = parse_repositories([], None, lines)
    assert (first.root, second.repo_id) == ("abfss://c@account.dfs.core.windows.net/demo.zip", "flask-3.1")


def test_a_build_and_a_refresh_have_the_rows_of_a_local_folder(store: CountedStore, tmp_path: Path) -> None:
    folder, files = tmp_path / "src", {"pkg/__init__.py": b"", "pkg/a.py": b"def f():\n    return 1\n"}
    files |= {"pkg/b.py": b"from pkg.a import f\n\nf()\n", "README": b"text", ".gitignore": b"/out/\n"}

    def write(changed: dict[str, bytes]) -> None:
        for key, content in changed.items():
            store.put(key, content)
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    write({**files, "out/c.py": b"pass\n"})
    stored: Any = {"demo": URI}
    # The process of the builds has been started with another cache.
    with worker_code(f"import os; os.environ[{CACHE_VARIABLE!r}] = {str(tmp_path / 'cache')!r}"):
        clean_lake(tmp_path / "there", stored)
        write({"pkg/a.py": b"def f():\n    return g()\n\n\ndef g():\n    return 2\n"})
        store.fetched.clear()
        assert refreshed(tmp_path / "there", stored).status == "succeeded"
        assert store.fetched == ["pkg/a.py"]
        assert refreshed(tmp_path / "there", stored).status == "unchanged"
    clean_lake(tmp_path / "here", {"demo": folder})
    compared = compare_lakes(str(tmp_path / "there"), str(tmp_path / "here"))
    assert (compared.total, compared.differences) == (0, ())
    assert compared.rows["cpg_nodes"] > 10
    row = Snapshot.open(str(tmp_path / "there")).repositories["demo"]
    assert (row.repo_root, row.mode, row.git_commit) == (URI, "incremental", None)
    settings = load_settings(env={}, start=None)
    (again,) = build_requests({"demo": row}, settings, str(tmp_path / "clean"), Progress(io.StringIO()))
    assert again.repositories == (Repository("demo", URI),)
    states = [
        source_state(row, DEFAULT),
        source_state(row, DEFAULT, settings.runtime),
        source_state(row, ExtractOptions(exclude=("pkg/b.py",)), settings.runtime),
    ]
    assert states == ["unknown", "unchanged", "changed"]


def order(
    *settings: str, sources: tuple[Path | str, ...], lake: str = "s3a://bucket/lake", **options: Any
) -> BuildRequest:
    effective = load_settings(settings, env={}, start=None)
    repositories = tuple(Repository(f"r{number}", path) for number, path in enumerate(sources))
    return BuildRequest(lake, effective, repositories, **options)


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:6443"])
def test_sources_of_the_driver_are_refused_on_a_cluster(master: str) -> None:
    remote = f"runtime.master={master}"
    request = order(remote, sources=(Path("here"), URI))
    with pytest.raises(UsageError, match=f"the executors of {master} cannot read here, which") as refused:
        refuse_unshared_sources(request)
    assert "runtime.shared_sources=true" in str(refused.value)
    refuse_unshared_sources(order(remote, "runtime.engine=local", sources=(Path("here"), URI)))
    refuse_unshared_sources(order(remote, sources=(URI,)))
    refuse_unshared_sources(order(remote, "runtime.shared_sources=true", sources=(Path("here"),)))
    index = ScipChoice(given={"r0": Path("index.scip")})
    with pytest.raises(UsageError, match=r"cannot read index\.scip"):
        refuse_unshared_sources(order(remote, sources=(URI,), scip=index))
    by_full_name = order(f"runtime.spark.spark.master={master}", sources=(Path("here"),))
    with pytest.raises(UsageError, match=f"the executors of {master} cannot read here"):
        refuse_unshared_sources(by_full_name)


def test_a_lake_of_the_driver_is_refused_on_a_cluster() -> None:
    """Executors would write its files to their own disks, and a commit would name files that are missing."""
    for lake in ("lake", "file:/data/lake"):
        request = order("runtime.master=yarn", sources=(URI,), lake=lake)
        with pytest.raises(UsageError, match=f"the executors of yarn cannot write the lake {lake}, which"):
            refuse_unshared_sources(request)
        local = order("runtime.master=yarn", "runtime.engine=local", sources=(URI,), lake=lake)
        refuse_unshared_sources(local)
    refuse_unshared_sources(
        order("runtime.master=yarn", "runtime.shared_sources=true", sources=(URI,), lake="lake")
    )


@pytest.mark.parametrize("master", ["local", "local[2]", "local-cluster[2,1,1024]"])
def test_executors_of_this_machine_read_its_files(master: str) -> None:
    refuse_unshared_sources(order(f"runtime.master={master}", sources=(Path("here"),)))
