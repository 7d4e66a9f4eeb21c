"""Lakes on a real S3 server, built by local processes and by Spark: the rows of a local lake."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.spark.jars import cache_folder, has_connector
from support.commands import run_process
from support.folders import CASES
from support.minio import Minio, forget_stores, option_flags, running_minio
from support.published_rows import current

REPOSITORIES = ("shop", "depot")
BY_SPARK = ("--set", "runtime.engine=spark")


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    with running_minio(tmp_path_factory.mktemp("minio"), ("lakes",)) as server:
        yield server


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Copies of the repositories, which tests edit."""
    for name in REPOSITORIES:
        shutil.copytree(CASES / "ask" / name, tmp_path / name)
    return tmp_path


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_stores(monkeypatch)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_process(*arguments, cwd=folder)


def built(folder: Path, lake: str, *flags: str) -> None:
    done = run(folder, *flags, "build", *REPOSITORIES, "--lake", lake)
    assert done.returncode == 0, done.stderr


def answer(folder: Path, lake: str, *arguments: str) -> dict[str, Any]:
    done = run(folder, *arguments, "--lake", lake, "--format", "json")
    assert done.returncode == 0, done.stderr
    decoded: dict[str, Any] = json.loads(done.stdout)
    return decoded


def has_same_rows(minio: Minio, remote: str, local: Path) -> None:
    register_policy(remote, StorePolicy(minio.storage_options))
    assert current(remote) == current(local)


@pytest.mark.parametrize("flags", [(), BY_SPARK], ids=["local", "spark"])
def test_a_lake_has_the_rows_of_a_local_one(minio: Minio, sources: Path, flags: tuple[str, ...]) -> None:
    if flags and not has_connector(cache_folder() / "jars", "s3"):
        pytest.skip("Spark needs the jars for S3: codeanatomy setup --with s3")
    remote = f"s3a://lakes/{'spark' if flags else 'local'}"
    built(sources, remote, *minio.flags, *flags)
    built(sources, "lake")
    has_same_rows(minio, remote, sources / "lake")
    question = ("callers", "shop.money.Price", "--depth", "3")
    here = answer(sources, "lake", *question)
    there = answer(sources, remote, *minio.flags, *question)
    assert here["rows"]
    assert there["rows"] == here["rows"]


def edit(sources: Path) -> None:
    path = sources / "shop" / "shop" / "edited.py"
    path.write_text("from shop.money import TAX\n\n\ndef doubled() -> float:\n    return 2 * TAX\n")


@pytest.mark.parametrize("flags", [(), BY_SPARK], ids=["local", "spark"])
def test_a_refreshed_lake_has_the_rows_of_a_clean_local_one(
    minio: Minio, sources: Path, flags: tuple[str, ...]
) -> None:
    if flags and not has_connector(cache_folder() / "jars", "s3"):
        pytest.skip("Spark needs the jars for S3: codeanatomy setup --with s3")
    remote = f"s3a://lakes/refreshed-{'spark' if flags else 'local'}"
    built(sources, remote, *minio.flags, *flags)
    edit(sources)
    built(sources, remote, *minio.flags, *flags)
    built(sources, "clean")
    has_same_rows(minio, remote, sources / "clean")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"fs.s3a.access.key": "unknown-user"}, "InvalidAccessKeyId"),
        ({"fs.s3a.secret.key": "wrong-secret"}, "SignatureDoesNotMatch"),
        ({"fs.s3a.endpoint": "http://127.0.0.1:9"}, "no server listens at 127.0.0.1:9"),
    ],
)
def test_commands_without_access_explain_it(
    minio: Minio, sources: Path, changed: dict[str, str], text: str
) -> None:
    options = {**minio.storage_options, **changed}
    for command in (("build", *REPOSITORIES), ("callers", "shop.money.Price"), ("runs",)):
        done = run(sources, *option_flags(options), *command, "--lake", "s3a://lakes/none")
        assert done.returncode == 5, done.stderr
        assert text in done.stderr
        assert "fs.s3a." in done.stderr
        assert options["fs.s3a.secret.key"] not in done.stdout + done.stderr
