"""A store that throttles, drops connections and loses answers: requests are repeated, and nothing is lost."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.exceptions import AlreadyExistsError

from codeanatomy.delta import store_policy
from codeanatomy.delta.log.remote_folder import RemoteFolder
from codeanatomy.delta.object_store import object_store, storage_errors
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.errors import StorageFailure
from support.flaky_proxy import Choice, Fault, Proxy, Request, flaky_proxy
from support.minio import Minio, running_minio

FAULTS: tuple[Fault, ...] = ("throttle", "drop", "lose", "cut")
BIG = bytes(range(256)) * 40_000


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    with running_minio(tmp_path_factory.mktemp("minio"), ("lakes",)) as server:
        yield server


@pytest.fixture
def proxy(minio: Minio, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Proxy]:
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with flaky_proxy(minio.port) as running:
        options = {**minio.storage_options, "fs.s3a.endpoint": running.endpoint}
        register_policy("s3a://lakes", StorePolicy(options))
        yield running


def first(fault: Fault, method: str, times: int = 1) -> Choice:
    left = [fault] * times

    def choose(request: Request) -> Fault | None:
        return left.pop() if left and request.method == method else None

    return choose


@pytest.mark.parametrize("fault", FAULTS)
def test_a_read_is_repeated(proxy: Proxy, fault: Fault, request: pytest.FixtureRequest) -> None:
    uri = f"s3a://lakes/{request.node.name}"
    store = object_store(uri)
    store.put("a", BIG)
    proxy.choose = first(fault, "GET", 3)
    with storage_errors(uri):
        assert store.get("a").bytes() == BIG
    assert proxy.faults


@pytest.mark.parametrize("fault", ["throttle", "drop"])
def test_a_conditional_put_is_repeated(proxy: Proxy, fault: Fault, request: pytest.FixtureRequest) -> None:
    uri = f"s3a://lakes/{request.node.name}"
    proxy.choose = first(fault, "PUT", 2)
    with storage_errors(uri):
        object_store(uri).put("a", b"1", mode="create")
    assert len(proxy.faults) == 2
    assert object_store(uri).get("a").bytes() == b"1"


def test_a_lost_answer_to_a_conditional_put(proxy: Proxy) -> None:
    """The store has the object, and the repeated request is refused: a folder compares the content."""
    uri = "s3a://lakes/lost"
    proxy.choose = first("lose", "PUT")
    with pytest.raises(AlreadyExistsError), storage_errors(uri):
        object_store(uri).put("a", b"1", mode="create")
    assert object_store(uri).get("a").bytes() == b"1"
    proxy.choose = first("lose", "PUT")
    folder = RemoteFolder(uri)
    assert folder.create("b", b"mine")
    assert not folder.create("b", b"another")
    assert folder.read("b") == b"mine"


@pytest.mark.parametrize(("fault", "text"), [("throttle", "overloaded"), ("drop", "connection was cut")])
def test_a_store_that_stays_unusable_is_reported_soon(proxy: Proxy, fault: Fault, text: str) -> None:
    proxy.choose = lambda _: fault
    started = time.monotonic()
    with pytest.raises(StorageFailure, match=text), storage_errors("s3a://lakes/never"):
        object_store("s3a://lakes/never").get("a")
    assert time.monotonic() - started < 30
    assert len(proxy.requests) > 3


def test_a_dead_endpoint_is_reported_soon(proxy: Proxy, minio: Minio) -> None:
    options = {**minio.storage_options, "fs.s3a.endpoint": "http://127.0.0.1:9"}
    register_policy("s3a://dead/lake", StorePolicy(options))
    started = time.monotonic()
    with pytest.raises(StorageFailure, match="no server listens"), storage_errors("s3a://dead/lake"):
        object_store("s3a://dead/lake").get("a")
    assert time.monotonic() - started < 25


def test_files_are_complete_whatever_fails(proxy: Proxy, tmp_path: Path) -> None:
    choices = random.Random(7)
    proxy.choose = lambda _: choices.choice(FAULTS) if choices.random() < 0.2 else None
    folder = RemoteFolder("s3a://lakes/random")
    contents = {f"part-{number}.parquet": os.urandom(1 + number * 40_000) for number in range(40)}
    for name, content in contents.items():
        new = Path(folder.new_files, name)
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(content)
    folder.publish(contents)
    assert {each.name for each in folder.list_tree()} == set(contents)
    os.environ["CODEANATOMY_CACHE"] = str(tmp_path / "other")
    other = RemoteFolder("s3a://lakes/random")
    copies = other.local_paths(list(contents))
    assert [Path(copy).read_bytes() for copy in copies] == list(contents.values())
    assert len(proxy.faults) > 10
