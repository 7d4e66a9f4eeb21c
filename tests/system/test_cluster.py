"""Builds on a standalone cluster whose executors share only the network and the object store with the driver.

The workers are those of `support.cluster`: other users, other folders, no checkout. The environment is
shipped with the job, sources and lake are on MinIO. All tables have the rows of a local clean build, with and
without executors that are killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codeanatomy.delta import store_policy
from codeanatomy.delta.object_store import object_store
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.spark.environment import pack_environment
from codeanatomy.spark.jars import cache_folder, has_connector
from support import corpus
from support.cluster import Cluster, running_cluster
from support.minio import Minio, running_minio

pytestmark = pytest.mark.system

BUILD_SECONDS = 1200
# A line of progress by which each pass has started.
PASSES = {"first pass": "extract", "solve": "relate", "second pass": "graph"}


@dataclass(frozen=True)
class Place:
    """A cluster, a store, and the environment for executors."""

    cluster: Cluster
    minio: Minio
    environment: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of a command that uses the cluster."""
        return (*self.bare_flags, "--set", f"runtime.environment={self.environment}")

    @property
    def bare_flags(self) -> tuple[str, ...]:
        """The same without an environment."""
        settings = {"runtime.master": self.cluster.url, "runtime.executor_memory": "1g"}
        return (*self.minio.flags, *(part for pair in settings.items() for part in ("--set", "=".join(pair))))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if not has_connector(cache_folder() / "jars", "s3"):
        pytest.skip("Spark needs the jars for S3: codeanatomy setup --with s3")
    environment = tmp_path_factory.mktemp("environment") / "env.tar.gz"
    folder = tmp_path_factory.mktemp("minio")
    with running_cluster() as cluster, running_minio(folder, ("lakes", "sources")) as minio:
        pack_environment(environment, force=False)
        yield Place(cluster, minio, environment)


@pytest.fixture(autouse=True)
def opened(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process use the server."""
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for bucket in ("s3a://lakes", "s3a://sources"):
        register_policy(bucket, StorePolicy(place.minio.storage_options))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "requests"
    shutil.copytree(corpus.package("requests"), folder)
    return folder


def upload(folder: Path, uri: str) -> str:
    store = object_store(uri)
    for path in folder.rglob("*"):
        if path.is_file():
            store.put(path.relative_to(folder).as_posix(), path)
    return uri


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "codeanatomy", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_SECONDS,
    )


def built(*arguments: str) -> None:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr


def has_rows_of_a_local_build(lake: str, source: Path) -> None:
    clean = source.parent / "clean"
    shutil.rmtree(clean, ignore_errors=True)
    built("build", f"requests={source}", "--lake", str(clean), "--engine", "local")
    comparison = compare_lakes(lake, str(clean), ["requests"])
    assert (comparison.total, comparison.differences) == (0, ())
    assert comparison.rows["type_checker_files_v1"] > 0
    assert comparison.rows["cpg_edges"] > 10_000


def test_executors_without_the_environment_are_reported(place: Place, source: Path) -> None:
    uri = upload(source, "s3a://sources/none")
    build = ("build", f"requests={uri}", "--lake", "s3a://lakes/none", "--engine", "spark")
    done = run(*place.bare_flags, *build)
    assert done.returncode == 4, done.stderr
    assert "the executors have no Python at" in done.stderr
    assert "codeanatomy environment --output env.tar.gz" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cluster_builds_and_refreshes_the_rows_of_a_local_build(place: Place, source: Path) -> None:
    uri, lake = upload(source, "s3a://sources/requests"), "s3a://lakes/requests"
    command = (*place.flags, "build", f"requests={uri}", "--lake", lake, "--engine", "spark")
    built(*command)
    has_rows_of_a_local_build(lake, source)
    edited = source / "requests" / "added.py"
    edited.write_text(
        "from requests.api import get\n\n\ndef fetch(url: str) -> str:\n    return get(url).text\n"
    )
    upload(source, "s3a://sources/requests")
    built(*command)
    has_rows_of_a_local_build(lake, source)
    callers = run(*place.minio.flags, "callers", "requests.api.get", "--lake", lake, "--format", "csv")
    assert "requests.added.fetch" in callers.stdout, callers.stderr


def test_lost_executors_cost_time_only(place: Place, source: Path) -> None:
    """In each pass an executor is killed, once it has started to work."""
    uri, lake = upload(source, "s3a://sources/lost"), "s3a://lakes/lost"
    command = (*place.flags, "build", f"requests={uri}", "--lake", lake, "--engine", "spark")
    lines: list[str] = []
    killed: dict[str, int] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "codeanatomy", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        limit = threading.Timer(BUILD_SECONDS, process.kill)
        limit.start()
        for line in process.stderr or ():
            lines.append(line)
            step = line.partition(" ")[0]
            if step in PASSES.values() and step not in killed:
                killed[step] = place.cluster.kill_executor()
        limit.cancel()
    assert process.returncode == 0, "".join(lines)
    assert set(killed) == set(PASSES.values())
    assert len(set(killed.values())) == len(PASSES)
    has_rows_of_a_local_build(lake, source)
