"""A store that throttles, cuts connections, loses answers or refuses: repeated or explained, nothing lost."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.exceptions import AlreadyExistsError

from codeanatomy.delta import store_policy
from codeanatomy.delta.log.remote_folder import RemoteFolder, shared_listing
from codeanatomy.delta.object_store import object_store, storage_errors
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.errors import StorageFailure
from support.commands import LOCAL_BUILDS
from support.flaky_proxy import REPEATED, Choice, Fault, Proxy, Request, flaky_proxy
from support.folders import write_sources
from support.minio import Minio, option_flags, running_minio

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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_listing_is_repeated(proxy: Proxy, fault: Fault, request: pytest.FixtureRequest) -> None:
    uri = f"s3a://lakes/{request.node.name}"
    folder = RemoteFolder(f"{uri}/table")
    folder.create("_delta_log/0.json", b"entry")
    proxy.choose = first(fault, "GET", 2)
    assert [file.name for file in folder.list_files("_delta_log")] == ["0.json"]
    proxy.choose = first(fault, "GET", 2)
    assert [file.name for file in folder.list_tree()] == ["_delta_log/0.json"]
    proxy.choose = first(fault, "GET", 2)
    with shared_listing(uri):
        assert [file.name for file in folder.list_files("_delta_log")] == ["0.json"]
    assert len(proxy.faults) == 6


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


def options_of(minio: Minio, proxy: Proxy, **changed: str) -> dict[str, str]:
    return {**minio.storage_options, "fs.s3a.endpoint": proxy.endpoint, **changed}


def command(options: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    """Run a command as a process; return its code, its output and its errors, which must keep secrets.

    Builds run on local processes.
    """
    line = [sys.executable, "-m", "codeanatomy", *option_flags(options), *arguments]
    env = {**LOCAL_BUILDS, **os.environ}
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=False, timeout=300)
    secrets = [options[name] for name in ("fs.s3a.secret.key", "fs.s3a.session.token") if name in options]
    for secret in (*secrets, REPEATED):
        assert secret not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def failed_check(options: dict[str, str], lake: str) -> tuple[str, str, str]:
    """Return the first check of `doctor --lake` that fails: name, detail and what to do."""
    code, out, err = command(options, "doctor", "--lake", lake, "--format", "json")
    assert code != 0, err
    checks = json.loads(out)
    return next(
        (each["name"], each["detail"], each["next_step"])
        for each in checks
        if each["status"] == "fail" and each["name"] != "jars"
    )


@pytest.mark.parametrize(
    ("fault", "text", "hint"),
    [
        ("expired", "the credentials have expired (ExpiredToken)", "get new ones"),
        ("skewed", "the clock of this machine is wrong (RequestTimeTooSkewed)", "set the clock"),
    ],
)
def test_refused_requests_are_explained(
    proxy: Proxy, minio: Minio, tmp_path: Path, fault: Fault, text: str, hint: str
) -> None:
    options, lake = options_of(minio, proxy), f"s3a://lakes/{fault}"
    source = write_sources(tmp_path / "app", {"a.py": "def f():\n    return 1\n"})
    build = ("build", f"app={source}", "--types", "off", "--lake", lake)
    proxy.choose = lambda _: fault
    for arguments in (build, ("runs", "--lake", lake)):
        code, _, err = command(options, *arguments)
        assert code == 5
        assert text in err
        assert hint in err
    # Requests that cannot succeed are not repeated.
    assert len(proxy.requests) < 10
    name, detail, next_step = failed_check(options, lake)
    assert (name, detail) == ("credentials", text)
    assert hint in next_step
    # In the middle of a build: what was committed stays, and the next build goes on.
    seen = len(proxy.requests)
    proxy.choose = lambda _: fault if len(proxy.requests) > seen + 60 else None
    code, _, err = command(options, *build)
    assert code == 5, err
    assert text in err
    assert hint in err
    proxy.choose = lambda _: None
    assert command(options, *build)[0] == 0
    code, out, _ = command(options, "verify", "--lake", lake)
    assert code == 0, out


def test_a_wrong_session_token(proxy: Proxy, minio: Minio, tmp_path: Path) -> None:
    """The server itself refuses a token that it has not given."""
    given = minio.limited_options("s3:*")
    wrong = {**given, "fs.s3a.session.token": f"{given['fs.s3a.session.token'][:-9]}wrong-one"}
    source = write_sources(tmp_path / "app", {"a.py": "x = 1\n"})
    build = ("build", f"app={source}", "--types", "off", "--lake", "s3a://lakes/token")
    code, _, err = command(wrong, *build)
    assert code == 5
    assert "the store does not accept the credentials" in err
    assert "fs.s3a.access.key" in err
    assert failed_check(wrong, "s3a://lakes/token")[0] == "credentials"
    assert command(given, *build)[0] == 0


def test_credentials_that_only_read(proxy: Proxy, minio: Minio, tmp_path: Path) -> None:
    lake = "s3a://lakes/only-read"
    source = write_sources(tmp_path / "app", {"a.py": "def f():\n    return 1\n\n\nf()\n"})
    build = ("build", f"app={source}", "--types", "off", "--lake", lake)
    assert command(minio.storage_options, *build)[0] == 0
    reader = minio.limited_options("s3:GetObject", "s3:ListBucket")
    code, out, _ = command(reader, "callers", "a.f", "--lake", lake, "--format", "json")
    assert code == 0
    assert json.loads(out)["rows"]
    (source / "a.py").write_text("def g():\n    return 2\n")
    code, _, err = command(reader, *build)
    assert code == 5
    assert "the credentials do not permit this (AccessDenied)" in err
    assert "ask for permission to list, read, write and delete below this URI" in err
    name, detail, _ = failed_check(reader, lake)
    assert (name, detail) == ("write", "the credentials do not permit this (AccessDenied)")
    # Nothing was changed.
    assert command(minio.storage_options, *build)[0] == 0
