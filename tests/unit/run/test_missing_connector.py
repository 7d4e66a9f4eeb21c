"""Builds on Spark into an object store, without the jars for it: refused before anything starts."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeanatomy.config import RuntimeProfile, load_settings
from codeanatomy.delta import store_policy
from codeanatomy.delta.object_store import object_store
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.plan.repositories import Repository
from codeanatomy.progress import Progress
from codeanatomy.run.build import build, plan
from codeanatomy.spark import jars
from codeanatomy.spark.session import refuse_missing_connector
from support.minio import Minio, running_minio
from support.sessions import no_session

LAKE = "s3a://lakes/lake"


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    with running_minio(tmp_path_factory.mktemp("minio"), ("lakes",), build=False) as server:
        yield server


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "_IN_USE", set())
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


def test_a_build_is_refused_before_a_session_starts(minio: Minio, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "m.py").write_text("def f(): pass\n")
    flags = [f"runtime.storage_options.{name}={value}" for name, value in minio.storage_options.items()]
    settings, log = load_settings(tuple(flags), env={}, start=None), io.StringIO()
    request = BuildRequest(LAKE, settings, (Repository("app", tmp_path / "app"),))
    with pytest.raises(EnvironmentProblem, match="Spark needs jars for s3a://lakes/lake") as caught:
        build(request, Progress(log), no_session)
    assert caught.value.hint == (
        "codeanatomy setup --with s3; or build with --engine local, which needs none"
    )
    # A plan needs no session.
    assert plan(request, Progress(io.StringIO())).engine == "spark"
    assert "extract" not in log.getvalue()
    assert object_store(LAKE).list().collect() == []


def test_jars_of_the_user_are_checked_in_the_session() -> None:
    with pytest.raises(EnvironmentProblem):
        refuse_missing_connector(RuntimeProfile(), LAKE)
    refuse_missing_connector(RuntimeProfile(spark={"spark.jars": "hadoop-aws.jar"}), LAKE)
    refuse_missing_connector(RuntimeProfile(), "/data/lake")
