"""Builds in a session that somebody else has made: equal rows, an unchanged session, what it lacks is named.

Sessions that lack something are those of `spark-submit`, in processes of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

import codeanatomy
from codeanatomy.errors import EXIT_ENVIRONMENT, EnvironmentProblem, UsageError
from codeanatomy.lake.engine_facts import EngineFacts
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.pipeline.build_session import SessionFacts
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from codeanatomy.run import given_session
from codeanatomy.run.given_session import (
    READABLE,
    UNREADABLE,
    WRITABLE,
    GivenSession,
    fix_of,
    lake_probe,
    source_probes,
    summarize_path,
    try_store,
    try_to_write,
)
from codeanatomy.spark.session import require_delta
from codeanatomy.spark.settings import DELTA_CATALOG, DELTA_EXTENSION
from codeanatomy.spark.versions import ALLOW_UNTESTED, Versions
from support import two_repositories
from support.given import make_request
from support.interpreters import interpreter_without, other_interpreter
from support.submit import submit_build

VIEW, MADE, CACHED = "view_of_the_caller", "made_by_the_caller", "cached_by_the_caller"
CHANGED = "spark.sql.shuffle.partitions"


class State(NamedTuple):
    """What of a session a build must leave as it is."""

    settings: dict[str, str]
    jobs: dict[str, str | None]
    views: set[str]
    cached: bool
    files: set[str]
    python_files: list[str]
    tags: set[str]
    is_active: bool


def state(spark: SparkSession) -> State:
    context = spark.sparkContext
    names = ("spark.job.description", "spark.scheduler.pool", "spark.job.tags")
    return State(
        {key: str(value) for key, value in spark.conf.getAll.items()},
        {name: context.getLocalProperty(name) for name in names},
        {table.name for table in spark.catalog.listTables()},
        spark.catalog.isCached(CACHED),
        set(context.listFiles),
        list(context._python_includes),
        spark.getTags(),
        SparkSession.getActiveSession() is spark,
    )


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    return {name: two_repositories.put(tmp_path, name) for name in ("a", "b")}


def test_a_build_leaves_the_session_as_it_is(
    spark: SparkSession, sources: dict[str, Path], tmp_path: Path
) -> None:
    """Its rows are those of local processes, also after an edit, and the session goes on."""
    before_setting = spark.conf.get(CHANGED)
    file = tmp_path / "of the caller.txt"
    file.write_text("text")
    spark.conf.set(CHANGED, "3")
    spark.conf.set("spark.sql.caseSensitive", "true")
    spark.range(3).createOrReplaceTempView(VIEW)
    spark.range(5).createOrReplaceTempView(CACHED)
    spark.catalog.cacheTable(CACHED)
    spark.sparkContext.addFile(str(file))
    lake, clean = tmp_path / "lake", tmp_path / "clean"
    try:
        before = state(spark)
        for number in range(2):
            if number:
                (sources["a"] / "added.py").write_text("def added():\n    return 1\n")
            report = codeanatomy.build(sources, lake, spark=spark, types="off")
            assert report.status == "succeeded"
            engines = {row.engine_facts for row in read_manifest(str(lake)) if row.run_id == report.run_id}
            assert engines == {EngineFacts("spark", "local[2]", "given", "4.2.0", "4.4.0")}
            assert state(spark) == before
        codeanatomy.build(sources, clean, engine="local", types="off")
        compared = compare_lakes(str(lake), str(clean))
        assert (compared.total, compared.differences) == (0, ())
        assert compared.rows["cpg_edges"] > 0
        assert not verify(str(lake)).findings
        assert codeanatomy.build(sources, lake, spark=spark, types="off").status == "unchanged"
        assert [spark.table(name).count() for name in (VIEW, CACHED)] == [3, 5]
    finally:
        spark.catalog.uncacheTable(CACHED)
        for name in (VIEW, CACHED):
            spark.catalog.dropTempView(name)
        spark.conf.set(CHANGED, str(before_setting))
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "local"}, "runs on Spark, not on the engine local"),
        ({"settings": {"runtime.engine": "local"}}, "runs on it, not on what runtime.engine names"),
        ({"settings": {"runtime.master": "spark://h:7077"}}, "runs on it, not on what runtime.master names"),
    ],
)
def test_an_engine_or_master_beside_a_session_is_refused(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        codeanatomy.build(tmp_path, tmp_path / "lake", spark=spark, **options)


def test_facts_of_a_session(spark: SparkSession, sources: dict[str, Path], tmp_path: Path) -> None:
    given = GivenSession(spark, make_request(tmp_path / "lake", sources))
    assert given.facts == SessionFacts("given", "4.2.0", "4.4.0", "local[2]", 2)
    assert given() is given() is not spark
    given.close()
    assert not (tmp_path / "lake").exists()
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".codeanatomy-")]


def test_untested_versions_are_named(
    spark: SparkSession, sources: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given_session, "TESTED", (Versions("4.2.0", "4.5.0"),))
    with pytest.raises(EnvironmentProblem) as caught:
        codeanatomy.build(sources, tmp_path / "lake", spark=spark)
    assert caught.value.message == (
        "Spark 4.2.0 with Delta 4.4.0 of the given Spark session was not tested"
        " (tested: Spark 4.2.0 with Delta 4.5.0)"
    )
    assert ALLOW_UNTESTED in caught.value.hint
    # Nothing was written, not even a failed run.
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "its spark.sql.extensions is not set"),
        ({"spark.sql.extensions": "org.other.Extension"}, "its spark.sql.extensions is org.other.Extension"),
        (
            {"spark.sql.extensions": DELTA_EXTENSION},
            "its spark.sql.catalog.spark_catalog is not set",
        ),
    ],
)
def test_settings_of_delta_that_are_missing_are_named(settings: dict[str, str], message: str) -> None:
    session: Any = SimpleNamespace(conf=settings)
    with pytest.raises(EnvironmentProblem) as caught:
        require_delta(session)
    assert caught.value.message == f"the given Spark session does not support Delta: {message}"
    assert f"spark.sql.extensions={DELTA_EXTENSION}" in caught.value.hint
    assert f"spark.sql.catalog.spark_catalog={DELTA_CATALOG}" in caught.value.hint


def test_an_error_of_spark_is_explained_before_a_session_is_opened(
    spark: SparkSession, sources: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as where functions of the JVM are forbidden: the versions are read first, in that session."""
    opened: list[object] = []
    monkeypatch.setattr(given_session, "open_own", opened.append)
    monkeypatch.setattr(given_session, "VERSIONS", "SELECT forbidden_function()")
    with pytest.raises(EnvironmentProblem, match=r"session cannot be used: .*forbidden_function"):
        codeanatomy.build(sources, tmp_path / "lake", spark=spark)
    assert not opened
    assert not (tmp_path / "lake").exists()


def test_a_session_that_is_stopped_while_it_is_checked_is_named(
    spark: SparkSession, sources: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StoppedSession(SparkSession):
        sparkContext = SimpleNamespace(_jsc=None)  # type: ignore[assignment]  # noqa: N815

    def check(*_: object) -> None:
        given._spark = object.__new__(StoppedSession)
        raise EnvironmentProblem("the executors cannot run a task: awaitResult", "see the log")

    given = GivenSession(spark, make_request(tmp_path / "lake", sources))
    monkeypatch.setattr(given_session, "check_session", check)
    with pytest.raises(EnvironmentProblem, match="the given Spark session was stopped"):
        given.start()


def test_another_python_of_a_local_session_is_fixed_by_a_variable() -> None:
    assert fix_of("given", "local[2]").startswith(f"set the variable PYSPARK_PYTHON={sys.executable} ")
    assert "--archives" in fix_of("given", "spark://host:7077")
    assert "PYSPARK_PYTHON as that Python" in fix_of("connect", "local[2]")


def test_probes_of_local_paths(sources: dict[str, Path], tmp_path: Path) -> None:
    request = make_request(tmp_path / "new" / "lake", sources, scip=ScipChoice(given={"a": tmp_path / "i"}))
    (tmp_path / "i").write_bytes(b"12")
    names = [probe.name for probe in source_probes(request)]
    assert names == [f"the source {path}" for path in (*sources.values(), tmp_path / "i")]
    assert all(probe.find() == probe.expected != UNREADABLE for probe in source_probes(request))
    assert summarize_path(str(tmp_path / "i")) == "a file of 2 bytes"
    assert summarize_path(str(tmp_path / "none")) == UNREADABLE
    with lake_probe(request) as probe:
        assert probe.find() == probe.expected == WRITABLE
        (common,) = tmp_path.glob(".codeanatomy-*")
        assert len(list(common.iterdir())) == 1
    assert not list(tmp_path.glob(".codeanatomy-*"))
    # As on a host that does not have the folder.
    assert try_to_write(str(common)) == "No such file or directory"


def test_a_store_that_cannot_be_read_says_why() -> None:
    policy = make_request("lake", {}).settings.runtime
    found = try_store("unknown://bucket/lake", given_session.StorePolicy.from_profile(policy))
    assert found == "there is no object store for unknown:// (unknown://bucket/lake)"
    assert found != READABLE


@pytest.mark.system
@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("delta", "the given Spark session does not support Delta: its spark.sql.extensions is not set"),
        ("jar", "the given Spark session has the settings of Delta, but not its jar"),
        ("python", "[PYTHON_VERSION_MISMATCH] Python in worker has different version"),
        ("pyarrow", "the executors cannot import pyarrow"),
        ("codeanatomy", "cannot import codeanatomy"),
        ("msgspec", "lacks msgspec"),
        ("pyrefly", "the type checker pyrefly is, for the executor on"),
    ],
)
def test_a_job_says_what_its_session_lacks(
    sources: dict[str, Path], tmp_path: Path, lacking: str, message: str
) -> None:
    options: dict[str, Any] = {}
    if lacking == "delta":
        options["delta"] = {}
    elif lacking == "jar":
        options["with_jars"] = False
    else:
        python = other_interpreter() if lacking == "python" else interpreter_without(tmp_path, lacking)
        options["settings"] = {"spark.pyspark.python": str(python)}
    done = submit_build(tmp_path / "lake", *sources.values(), **options)
    assert done.returncode == EXIT_ENVIRONMENT, done.stderr
    assert "[CA020]" in done.stdout + done.stderr
    assert message in done.stdout + done.stderr
    assert "  next: " in done.stdout + done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.system
def test_a_job_builds_the_rows_of_local_processes(sources: dict[str, Path], tmp_path: Path) -> None:
    done = submit_build(tmp_path / "lake", *(f"{name}={path}" for name, path in sources.items()))
    assert done.returncode == 0, done.stderr
    codeanatomy.build(sources, tmp_path / "clean", engine="local")
    compared = compare_lakes(str(tmp_path / "lake"), str(tmp_path / "clean"))
    assert (compared.total, compared.differences) == (0, ())
