"""Builds in Spark Connect: a real server whose Python has the packages of codeanatomy, but not codeanatomy.

All tables have the rows of local processes, for a first build and a refresh, and the session stays as it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import codeanatomy
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from codeanatomy.run.given_session import GivenSession, SessionFacts
from support import corpus, two_repositories
from support.connect import DELTA_SETTINGS, remote_session, running_server
from support.given import make_request
from support.interpreters import interpreter_without

CHANGED = "spark.sql.shuffle.partitions"


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("server")
    python = interpreter_without(folder, "codeanatomy")
    with running_server(folder, python=python) as url, remote_session(url) as session:
        yield session


def assert_equal_rows(lake: Path, clean: Path) -> None:
    compared = compare_lakes(str(lake), str(clean))
    assert (compared.total, compared.differences) == (0, ())
    assert compared.rows["cpg_edges"] > 0
    assert not verify(str(lake)).findings


def test_a_build_and_a_refresh_have_the_rows_of_local_processes(remote: SparkSession, tmp_path: Path) -> None:
    sources = {name: two_repositories.put(tmp_path, name) for name in ("a", "b")}
    lake = tmp_path / "lake"
    remote.conf.set(CHANGED, "3")
    remote.range(3).createOrReplaceTempView("view_of_the_caller")

    def state() -> tuple[dict[str, str | None], set[str], set[str]]:
        return (
            remote.conf.getAll,
            {table.name for table in remote.catalog.listTables()},
            remote.getTags(),
        )

    before = state()
    for number in range(2):
        if number:
            (sources["a"] / "added.py").write_text("def added():\n    return 1\n")
        report = codeanatomy.build(sources, lake, spark=remote, types="off")
        assert report.status == "succeeded"
        clean = tmp_path / f"clean{number}"
        codeanatomy.build(sources, clean, engine="local", types="off")
        assert_equal_rows(lake, clean)
        assert state() == before
    # How many jobs there were is not known, which is not zero.
    steps = light_table(str(lake), "plan_artifacts", ["jobs", "frame_no"]).to_pylist()
    assert steps
    assert {row["jobs"] for row in steps} == {None}
    assert remote.table("view_of_the_caller").count() == 3


def test_facts_of_a_session(remote: SparkSession, tmp_path: Path) -> None:
    given = GivenSession(remote, make_request(tmp_path / "lake", {"a": two_repositories.put(tmp_path, "a")}))
    assert given.facts == SessionFacts("connect", "4.2.0", "4.4.0", "local[2]", 2)
    given.close()
    assert remote.range(3).count() == 3


@pytest.mark.system
def test_whole_packages_built_and_refreshed(remote: SparkSession, tmp_path: Path) -> None:
    names = ("requests", "flask", "click")
    sources = {name: Path(shutil.copytree(corpus.package(name), tmp_path / name)) for name in names}
    lake = tmp_path / "lake"
    for number in range(2):
        if number:
            with (sources["requests"] / "requests/utils.py").open("a") as file:
                file.write("\n\ndef added(value: int) -> str:\n    return str(value)\n")
        report = codeanatomy.build(sources, lake, spark=remote)
        assert (report.status, bool(report.redone)) == ("succeeded", bool(number))
        clean = tmp_path / f"clean{number}"
        codeanatomy.build(sources, clean, engine="local")
        assert_equal_rows(lake, clean)


@pytest.mark.system
@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("delta", "the given Spark session does not support Delta: its spark.sql.extensions is not set"),
        ("pyarrow", "the executors cannot import pyarrow"),
        ("msgspec", "lacks msgspec"),
    ],
)
def test_what_a_server_lacks_is_named(tmp_path: Path, lacking: str, message: str) -> None:
    source = two_repositories.put(tmp_path, "a")
    settings = {} if lacking == "delta" else DELTA_SETTINGS
    python = interpreter_without(tmp_path, lacking)
    with running_server(tmp_path, settings, python=python) as url, remote_session(url) as session:
        with pytest.raises(EnvironmentProblem) as caught:
            codeanatomy.build({"a": source}, tmp_path / "lake", spark=session)
        assert message in caught.value.message
        assert session.range(3).count() == 3
    assert not (tmp_path / "lake").exists()
