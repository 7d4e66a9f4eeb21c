from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codeanatomy import __version__
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.spark.environment import code_digest
from codeanatomy.spark.executors import (
    ExecutorReport,
    check_executors,
    check_scip_python,
    explain_failure,
    memory_overhead,
    row_versions,
)


class Session:
    """A session of a cluster with some executors, whose tasks return the given reports."""

    def __init__(self, executors: int, *reports: ExecutorReport) -> None:
        status = SimpleNamespace(size=lambda: executors + 1)
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorMemoryStatus=lambda: status))
        self.reports = list(reports)
        self.sparkContext: Any = self
        self.defaultParallelism = 2

    def parallelize(self, *_: object) -> Any:
        return self

    def mapPartitions(self, _: object) -> Any:  # noqa: N802
        return self

    def collect(self) -> list[ExecutorReport]:
        return self.reports


def check(session: Any, seconds: float = 0) -> None:
    check_executors(session, None, seconds)


def test_executors_of_the_same_code_pass() -> None:
    check(Session(2, ExecutorReport("one", __version__, code_digest(), row_versions())))


def test_another_indexer_of_an_executor_is_named(tmp_path: Path) -> None:
    tool = tmp_path / "scip-python"
    tool.write_text("#!/bin/sh\necho 0.6.6\n")
    tool.chmod(0o755)
    check_scip_python(reporting(("one", "0.6.6"), ("two", "0.6.6")), str(tool))
    with pytest.raises(EnvironmentProblem, match=r"executor on two is 0\.6\.5, of this machine 0\.6\.6"):
        check_scip_python(reporting(("one", "0.6.6"), ("two", "0.6.5")), str(tool))
    with pytest.raises(EnvironmentProblem, match=r"executor on one is missing, of this machine 0\.6\.6"):
        check_scip_python(reporting(("one", None)), str(tool))
    with pytest.raises(EnvironmentProblem, match="executor on one is missing, of this machine missing"):
        check_scip_python(reporting(("one", None)), str(tmp_path / "none"))


def reporting(*reports: tuple[str, str | None]) -> Any:
    """A session whose tasks return these reports."""
    session: Any = Session(len(reports))
    session.reports = list(reports)
    return session


def test_executors_of_other_code_are_named() -> None:
    with pytest.raises(EnvironmentProblem, match=r"executor on two runs codeanatomy 0\.0\.1") as error:
        check(Session(2, ExecutorReport("two", "0.0.1", code_digest(), row_versions())))
    assert "codeanatomy environment" in str(error.value)
    with pytest.raises(EnvironmentProblem, match="abcdef"):
        check(Session(2, ExecutorReport("two", __version__, "abcdef", row_versions())))
    other = {**row_versions(), "libcst": "0.1"}
    with pytest.raises(EnvironmentProblem, match=r"libcst of the executor on two is 0\.1, of this machine"):
        check(Session(2, ExecutorReport("two", __version__, code_digest(), other)))
    del other["libcst"]
    with pytest.raises(EnvironmentProblem, match="libcst of the executor on two is missing"):
        check(Session(2, ExecutorReport("two", __version__, code_digest(), other)))


def test_a_cluster_without_executors_is_reported() -> None:
    with pytest.raises(EnvironmentProblem, match="no executor within 0 s"):
        check(Session(0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\nModuleNotFoundError: No module named 'codeanatomy'\n", "cannot import codeanatomy"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12", "another Python"),
        ('IOException: Cannot run program "/opt/python": error=2', "no Python at /opt/python"),
        ("a\norg.apache.spark.SparkException: no disk", "no disk"),
    ],
)
def test_failures_of_the_check_are_explained(text: str, message: str) -> None:
    problem = explain_failure(text, None)
    assert message in str(problem)
    assert "codeanatomy environment" in str(problem) or "log_level" in str(problem)


def test_memory_grows_with_the_cores() -> None:
    assert (memory_overhead(1), memory_overhead(4)) == ("1536m", "4608m")
