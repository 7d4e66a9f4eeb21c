"""Versions of Spark and Delta whose internals may be used, with sessions that need no JVM."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codeanatomy.errors import EnvironmentProblem, UsageError
from codeanatomy.spark.jars import JARS
from codeanatomy.spark.versions import (
    ALLOW_UNTESTED,
    TESTED,
    Versions,
    has_internals,
    is_connect,
    require_internals,
    require_session,
    session_versions,
)

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


class MissingClass:
    """What py4j returns for a class that is not on the class path: a package, which cannot be called."""

    def __getattr__(self, name: str) -> MissingClass:
        return MissingClass()


class FakeSession(SparkSession):
    """A classic session with a JVM of some versions."""

    def __init__(self, versions: Versions, **settings: str) -> None:
        spark = SimpleNamespace(package=SimpleNamespace(SPARK_VERSION=lambda: versions.spark))
        delta: Any = SimpleNamespace(package=SimpleNamespace(VERSION=lambda: versions.delta))
        jvm = SimpleNamespace(
            io=SimpleNamespace(delta=MissingClass() if versions.delta is None else delta),
            org=SimpleNamespace(apache=SimpleNamespace(spark=spark)),
        )
        self._sc = SimpleNamespace(_gateway=Gateway(jvm))  # type: ignore[assignment]
        self._settings = settings

    @property
    def sparkContext(self) -> Any:  # noqa: N802
        return self._sc

    @property
    def conf(self) -> Any:
        return SimpleNamespace(get=self._settings.get)


class Gateway:
    """The connection to a JVM."""

    def __init__(self, jvm: Any) -> None:
        self.jvm = jvm


def test_the_tested_versions_are_those_that_are_installed() -> None:
    wanted = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    pinned = dict(each.split("==") for each in wanted if re.fullmatch(r"(pyspark|delta-spark)==[\d.]+", each))
    assert TESTED[-1] == Versions(pinned["pyspark"], pinned["delta-spark"])
    assert {jar.version for jar in JARS if jar.group == "io.delta"} == {TESTED[-1].delta}


@pytest.mark.parametrize("versions", TESTED, ids=str)
def test_tested_versions_are_accepted(versions: Versions) -> None:
    session = FakeSession(versions)
    assert session_versions(session) == versions
    assert has_internals(session)
    require_internals(session)


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        (Versions("4.1.0", "4.4.0"), "Spark 4.1.0 with Delta 4.4.0"),
        (Versions("4.2.0", "4.5.1"), "Spark 4.2.0 with Delta 4.5.1"),
        (Versions("4.2.1", "4.4.0"), "Spark 4.2.1 with Delta 4.4.0"),
        (Versions("4.2.0", None), "Spark 4.2.0 without Delta"),
    ],
)
def test_other_versions_are_refused_by_name(versions: Versions, named: str) -> None:
    session = FakeSession(versions)
    assert not has_internals(session)
    with pytest.raises(EnvironmentProblem, match=re.escape(named)) as caught:
        require_internals(session)
    assert f"pip install pyspark=={TESTED[-1].spark} delta-spark=={TESTED[-1].delta}" in caught.value.hint
    assert f"{ALLOW_UNTESTED}=true" in caught.value.hint


def test_a_setting_of_the_session_accepts_the_risk() -> None:
    other = Versions("4.1.0", "4.3.0")
    require_internals(FakeSession(other, **{ALLOW_UNTESTED: "true"}))
    with pytest.raises(EnvironmentProblem):
        require_internals(FakeSession(other, **{ALLOW_UNTESTED: "false"}))


def test_a_session_that_is_not_classic_has_no_internals() -> None:
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: "true"))
    assert not has_internals(session)
    assert not is_connect(session)
    with pytest.raises(EnvironmentProblem, match="classic Spark session"):
        require_internals(session)


@pytest.mark.parametrize("given", ["local[2]", SparkSession, SparkSession.builder, SimpleNamespace()])
def test_what_is_no_session_is_wrong_use(given: Any) -> None:
    with pytest.raises(UsageError, match=f"spark is a {type(given).__name__}, not a Spark session"):
        require_session(given)


@pytest.mark.parametrize("jsc", [None, object()])
def test_a_session_that_was_stopped_is_refused(jsc: object) -> None:
    session = FakeSession(TESTED[-1])
    session.sparkContext._jsc = jsc
    if jsc is not None:
        require_session(session)
        return
    with pytest.raises(EnvironmentProblem, match="was stopped"):
        require_session(session)
