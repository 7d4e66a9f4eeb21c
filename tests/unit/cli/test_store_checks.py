"""What `doctor --lake` says of folders and of stores that misbehave; the real server is in tests/system."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from obstore.exceptions import GenericError, PermissionDeniedError
from obstore.store import MemoryStore

from codeanatomy.cli import store_checks
from codeanatomy.cli.doctor import Check
from codeanatomy.cli.main import cli
from codeanatomy.cli.reference import setup
from codeanatomy.cli.store_checks import ACCESS, USE, examine_store
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta import store_policy
from codeanatomy.errors import RemotePathRefused
from codeanatomy.spark import jars
from codeanatomy.spark.jars import CONNECTORS

LOCAL = ("folder", *USE)
REMOTE = ("jars", *ACCESS, *USE)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a test says of a lake is forgotten after it; the cache has no jars."""
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    monkeypatch.setattr(jars, "_IN_USE", set())
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


def statuses(checks: tuple[Check, ...]) -> dict[str, str]:
    assert all(check.next_step for check in checks if check.status in ("warn", "fail"))
    return {check.name: check.status for check in checks}


def test_a_folder(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for root in (str(lake), f"file:{lake}"):
        assert statuses(examine_store(root, RuntimeProfile())) == dict.fromkeys(LOCAL, "ok")
    assert list(lake.iterdir()) == []


def test_a_folder_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    checks = examine_store(str(tmp_path / "a" / "lake"), RuntimeProfile())
    assert statuses(checks) == dict.fromkeys(LOCAL, "ok")
    assert "does not exist yet" in checks[0].detail
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    checks = examine_store(str(tmp_path / "file" / "lake"), RuntimeProfile())
    assert statuses(checks) == {"folder": "fail", **dict.fromkeys(USE, "skip")}


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    checks = {check.name: check for check in examine_store(str(tmp_path), RuntimeProfile())}
    assert (checks["write"].status, checks["write"].detail) == ("fail", "Permission denied")
    assert checks["read"].status == "skip"


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    checks = {check.name: check for check in examine_store(str(tmp_path), RuntimeProfile())}
    assert checks["conditional put"].status == "fail"
    assert "hard links" in checks["conditional put"].next_step
    assert checks["delete"].status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_remote_lake_is_refused_if_paths_must_be_local() -> None:
    with pytest.raises(RemotePathRefused):
        examine_store("s3a://bucket/lake", RuntimeProfile(require_local_paths=True))


class Store:
    """A store in memory whose operations may fail."""

    def __init__(self, **replaced: Any) -> None:
        self.memory = MemoryStore()
        self.replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self.replaced.get(name, getattr(self.memory, name))


def refusing(problem: Exception) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise problem

    return refuse


def examined(monkeypatch: pytest.MonkeyPatch, store: Store) -> dict[str, Check]:
    monkeypatch.setattr(store_checks, "object_store", lambda _: store)
    checks = examine_store("s3a://bucket/lake", RuntimeProfile())
    assert tuple(statuses(checks)) == REMOTE
    return {check.name: check for check in checks}


def test_a_store_that_works_and_no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    checks = examined(monkeypatch, store)
    assert checks.pop("jars") == Check(
        "jars", "fail", "Spark has no jars for s3a://", "codeanatomy setup --with s3"
    )
    assert {check.status for check in checks.values()} == {"ok"}
    assert store.memory.list().collect() == []


def test_a_store_without_conditional_puts(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    store.replaced["put"] = lambda name, content, mode="overwrite": store.memory.put(name, content)
    checks = examined(monkeypatch, store)
    assert checks["conditional put"].status == "fail"
    assert "overwrites" in checks["conditional put"].detail
    assert checks["delete"].status == "ok"
    assert store.memory.list().collect() == []


def test_a_store_that_can_only_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(put=refusing(PermissionDeniedError("status code: 403 <Code>AccessDenied</Code>")))
    store.memory.put("graph/a", b"x")
    checks = examined(monkeypatch, store)
    assert checks["write"].status == "fail"
    assert "permission" in checks["write"].next_step
    assert checks["read"].status == "ok"
    assert (checks["conditional put"].status, checks["delete"].status) == ("skip", "skip")


def test_what_cannot_be_deleted_is_said_to_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = examined(monkeypatch, Store(delete=refusing(GenericError("(code: AccessDenied)"))))
    assert checks["delete"].status == "fail"
    assert "_doctor/ is left" in checks["delete"].detail


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        ("kind: ConnectionRefused", "endpoint"),
        ("<Code>AuthorizationHeaderMalformed</Code>", "region"),
        ("<Code>ExpiredToken</Code>", "credentials"),
        ("<Code>NoSuchBucket</Code>", "bucket"),
    ],
)
def test_the_first_request_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, problem: str, name: str
) -> None:
    checks = examined(monkeypatch, Store(list=refusing(GenericError(problem))))
    place = REMOTE.index(name)
    assert [checks[each].status for each in REMOTE[1:]] == [
        *["ok"] * (place - 1),
        "fail",
        *["skip"] * (len(REMOTE) - place - 1),
    ]


def test_other_stores_need_a_connector_of_your_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_checks, "object_store", lambda _: MemoryStore())
    jars = examine_store("gs://bucket/lake", RuntimeProfile())[0]
    assert (jars.name, jars.status) == ("jars", "warn")
    jars = examine_store("gs://bucket/lake2", RuntimeProfile(spark={"spark.jars": "gcs.jar"}))[0]
    assert jars.status == "ok"
    jars = examine_store("s3://bucket/lake", RuntimeProfile())[0]
    assert (jars.status, jars.next_step) == ("fail", "write the URI with s3a://")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["doctor", "--lake", "lake", "--format", "json"])
    assert done.exit_code == 0
    checks = msgspec.json.decode(done.stdout, type=tuple[Check, ...])
    assert [check.name for check in checks] == list(LOCAL)
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(cli, ["doctor", "--lake", "file/lake"])
    assert done.exit_code == 4
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:3]] == [
        ["folder", "fail"],
        ["list", "skip"],
    ]


def test_setup_offers_every_connector() -> None:
    option = next(each for each in setup.params if each.name == "connectors")
    assert list(getattr(option.type, "choices", ())) == sorted(CONNECTORS)
