from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from msgspec import json, structs
from pyspark.errors import PySparkException

from codeanatomy.errors import EnvironmentProblem
from codeanatomy.spark.executors import (
    MISSING,
    ROW_PACKAGES,
    TASK_PACKAGES,
    ExecutorReport,
    Probe,
    check_executors,
    check_scip_python,
    decode_report,
    describer,
    explain_failure,
)
from codeanatomy.spark.settings import memory_overhead

HERE = decode_report(describer((*ROW_PACKAGES, *TASK_PACKAGES), ())())
# Imports what tasks run, and prints the installed packages of the modules that this needs.
IMPORTED = """
import sys
from importlib.metadata import packages_distributions
import codeanatomy.pipeline.executors.spark_executor, codeanatomy.pipeline.tasks.file_stage, obstore
import codeanatomy.pipeline.tasks.graph_stage, codeanatomy.pipeline.tasks.solve_stage
names = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
owners = packages_distributions()
print(*sorted({owner.lower() for name in names for owner in owners.get(name, ())}))
"""
# Packages that come with those that are checked, or with Spark.
OTHERS = {
    *(
        "googleapis-common-protos",
        "codeanatomy",
        "pyspark",
        "py4j",
        "pandas",
        "python-dateutil",
        "pytz",
        "six",
        "tzdata",
    ),
    *("arro3-core", "cython", "setuptools", "typing-extensions", "typing_extensions"),
}


class Session:
    """A session whose executors return the given reports; without any, its job waits for ever."""

    def __init__(self, *reports: ExecutorReport) -> None:
        self.reports = reports
        self.interrupted = Event()

    def range(self, _: int) -> Any:
        return self

    def mapInArrow(self, *_: object) -> Any:  # noqa: N802
        return self

    def toArrow(self) -> pa.Table:  # noqa: N802
        if not self.reports:
            assert self.interrupted.wait(60)
            raise PySparkException("cancelled")
        return pa.table({"report": [json.encode(each) for each in self.reports]})

    def interruptAll(self) -> None:  # noqa: N802
        self.interrupted.set()


def check(*reports: ExecutorReport, seconds: float = 10, **options: Any) -> int:
    session: Any = Session(*reports)
    return check_executors(session, None, seconds, **options)


def other(host: str, **changes: Any) -> ExecutorReport:
    return structs.replace(HERE, host=host, **changes)


def test_executors_of_the_same_code_pass_and_are_counted() -> None:
    assert check(HERE, other("two")) == 2


def test_a_machine_is_described_by_a_function_that_needs_no_codeanatomy() -> None:
    """As on a host without it: its own interpreter has nothing but PySpark's pickle."""
    from pyspark import cloudpickle

    encoded = cloudpickle.dumps(describer(("msgspec",), ()))  # type: ignore[no-untyped-call]
    script = f"""
import sys
sys.modules["codeanatomy"] = None
from pyspark import cloudpickle
sys.stdout.buffer.write(cloudpickle.loads({encoded!r})())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    report = decode_report(done.stdout)
    assert (report.version, report.digest, report.missing) == (None, None, "codeanatomy")
    assert (report.python, set(report.versions)) == (HERE.python, {"msgspec"})


def test_probes_run_only_where_the_code_is_this_one() -> None:
    probe = Probe("answer", lambda: "42", "42", "")
    assert decode_report(describer((), [probe])()).values == {"answer": "42"}


def test_packages_that_tasks_import_are_checked() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, check=True, text=True)
    imported = set(done.stdout.split()) - OTHERS
    assert imported == {*TASK_PACKAGES, *ROW_PACKAGES} - {"pyrefly"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"python": "3.9.1"}, f"python of the executor on two is 3.9.1, of this machine {HERE.python}"),
        ({"versions": {}}, "the executor on two lacks deltalake, duckdb, msgspec"),
        (
            {"versions": {**HERE.versions, "libcst": "0.1"}},
            f"libcst of the executor on two is 0.1, of this machine {HERE.versions['libcst']}",
        ),
        (
            {"version": None, "digest": None, "missing": "codeanatomy"},
            "the executor on two cannot import codeanatomy",
        ),
        ({"version": "0.0.1"}, "the executor on two runs codeanatomy 0.0.1"),
        ({"digest": "abcdef"}, "abcdef"),
    ],
)
def test_an_executor_that_differs_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        check(HERE, other("two", **changes))
    assert message in caught.value.message
    assert "codeanatomy environment" in caught.value.hint


def test_a_missing_package_of_rows_is_named() -> None:
    versions = {name: version for name, version in HERE.versions.items() if name != "libcst"}
    with pytest.raises(EnvironmentProblem, match="the executor on two lacks libcst"):
        check(other("two", versions=versions))
    assert check(other("two", versions=versions), packages=("protobuf",)) == 1


def test_a_probe_that_finds_another_value_is_named() -> None:
    probe = Probe("the lake", lambda: "writable", "writable", "use another folder")
    assert check(other("two", values={"the lake": "writable"}), probes=[probe]) == 1
    with pytest.raises(EnvironmentProblem) as caught:
        check(other("two", values={"the lake": "No such file"}), probes=[probe])
    assert caught.value.message == ("the lake is, for the executor on two, No such file; expected: writable")
    assert caught.value.hint == "use another folder"


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "scip-python"
    path.write_text("#!/bin/sh\necho 0.6.6\n")
    path.chmod(0o755)
    return path


def test_another_indexer_of_an_executor_is_named(tool: Path) -> None:
    def check_tool(*values: str, command: Path = tool) -> None:
        session: Any = Session(*(other("one", values={"scip-python": each}) for each in values))
        check_scip_python(session, str(command))

    check_tool("0.6.6", "0.6.6")
    with pytest.raises(EnvironmentProblem, match=r"executor on one, 0\.6\.5; expected: 0\.6\.6"):
        check_tool("0.6.6", "0.6.5")
    with pytest.raises(EnvironmentProblem, match=r"executor on one, missing; expected: 0\.6\.6"):
        check_tool(MISSING)
    with pytest.raises(EnvironmentProblem, match="scip-python is missing on this machine"):
        check_tool(MISSING, command=tool.with_name("none"))


def test_a_cluster_without_executors_is_reported_and_its_job_cancelled() -> None:
    session: Any = Session()
    with pytest.raises(EnvironmentProblem, match=r"no task within 0 s"):
        check_executors(session, None, 0.1)
    assert session.interrupted.is_set()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\nModuleNotFoundError: No module named 'codeanatomy'\n", "cannot import codeanatomy"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12", "another Python"),
        ('IOException: Cannot run program "/opt/python": error=2', "no Python at /opt/python"),
        ("a\n: org.apache.spark.SparkException: no disk", "run a task: org.apache.spark.SparkException: no"),
        ("E: Exception thrown in awaitResult:\n at x\nCaused by: java.io.IOException: no disk", ": no disk"),
        ("a\n: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.", "stopped"),
    ],
)
def test_failures_of_the_check_are_explained(text: str, message: str) -> None:
    problem = explain_failure(text, None)
    assert message in problem.message
    assert ": :" not in problem.message
    assert re.search("codeanatomy environment|log of its driver|start another one", problem.hint)


def test_memory_grows_with_the_cores() -> None:
    assert (memory_overhead(1), memory_overhead(4)) == ("1536m", "4608m")
