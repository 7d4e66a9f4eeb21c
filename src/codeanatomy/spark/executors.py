"""Check the executors of a cluster before work starts, and size their memory.

    check_executors(spark, environment=None)
    # EnvironmentProblem: the executors cannot import codeanatomy
    #   next: run `codeanatomy environment --output env.tar.gz` and ...

Without the check, a build would fail in its first task with a traceback of another machine. The check waits
for executors, and runs a task per core that returns the hash of its code and the versions of extractors: with
others, it would write other rows under the same fingerprints. A build that makes SCIP indexes needs
scip-python on every host, too: it runs in a task beside those that read files (`check_scip_python`).

Tests: `tests/unit/spark/test_executors.py`, `tests/spark/test_scip_build.py`, `tests/system/test_cluster.py`.
"""

from __future__ import annotations

import platform
import re
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from msgspec import Struct
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from codeanatomy import __version__
from codeanatomy.config import SCIP_VARIABLE
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.extract.tools.external_tool import tool_version
from codeanatomy.extract.tools.scip_python import find_scip_python
from codeanatomy.spark.environment import code_digest

# The cache of files, in the working folder of an executor: it goes with the application.
CACHE = "codeanatomy-cache"
# A cluster that has no free executor for this long is reported.
WAIT_SECONDS, POLL_SECONDS = 300.0, 0.2
# Memory of an executor beside its heap: so much for the JVM itself, and so much per core for Python. Measured
# on a cluster of two executors with a core each: the Python processes of an executor (worker, its child that
# extracts, and the type checker) took 0.4 GB together in a build of requests (18 files, 0.2 MB), the JVM with
# a heap of 1 GB 0.5 GB. A task that solves a repository takes more: 0.7 GB for django (885 files), 3 GB for
# the standard library (1,790 files). `spark.executor.pyspark.memory` is not set: it limits the address space,
# of which Arrow reserves much more than it uses.
PYTHON_MB = 1024
JVM_MB = 512
# Extractors, and the type checker.
ROW_PACKAGES = ("libcst", "tree-sitter", "tree-sitter-python", "protobuf", "pyrefly")
PACK = (
    "run `codeanatomy environment --output env.tar.gz` and add --set runtime.environment=env.tar.gz, "
    "or install the same version of codeanatomy on every host"
)


class ExecutorReport(Struct, frozen=True):
    """What an executor runs."""

    host: str
    version: str
    digest: str
    # Python and packages on which rows depend, with their versions.
    versions: dict[str, str]


def memory_overhead(cores: int) -> str:
    """Return the memory that an executor of so many cores needs beside its heap, for Spark's setting."""
    return f"{JVM_MB + cores * PYTHON_MB}m"


def check_executors(spark: SparkSession, environment: str | None, seconds: float = WAIT_SECONDS) -> None:
    """Raise EnvironmentProblem if there are no executors, or if they do not run the code of the driver."""
    _await_executor(spark, seconds)
    context = spark.sparkContext
    tasks = max(1, context.defaultParallelism)
    try:
        reports = context.parallelize(range(tasks), tasks).mapPartitions(_report).collect()
    except (Py4JError, PySparkException) as problem:
        raise explain_failure(str(problem), environment) from problem
    expected = row_versions()
    for report in reports:
        if (report.version, report.digest) != (__version__, code_digest()):
            raise EnvironmentProblem(
                f"the executor on {report.host} runs codeanatomy {report.version} ({report.digest}), "
                f"this is {__version__} ({code_digest()})",
                PACK,
            )
        for name in sorted(expected.keys() | report.versions.keys()):
            here, there = expected.get(name, "missing"), report.versions.get(name, "missing")
            if here != there:
                raise EnvironmentProblem(
                    f"{name} of the executor on {report.host} is {there}, of this machine {here}", PACK
                )


def check_scip_python(spark: SparkSession, command: str | None) -> None:
    """Raise EnvironmentProblem if executors do not have the scip-python of the driver, or none has it.

    The command is the one that the user names; without one it is looked up on the PATH of each machine.
    """
    expected = _scip_version(command)
    context = spark.sparkContext
    tasks = max(1, context.defaultParallelism)

    def report(_: Iterable[int]) -> Iterator[tuple[str, str | None]]:
        yield socket.gethostname(), _scip_version(command)

    for host, actual in context.parallelize(range(tasks), tasks).mapPartitions(report).collect():
        if actual is None or actual != expected:
            raise EnvironmentProblem(
                f"scip-python of the executor on {host} is {actual or 'missing'}, "
                f"of this machine {expected or 'missing'}",
                "install the same Node.js and scip-python on this machine and on every host, on the PATH or "
                f"at the path that {SCIP_VARIABLE} has here; or build without --scip auto",
            )


def row_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that rows depend on; some are optional."""
    versions = {"python": platform.python_version()}
    for name in ROW_PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def explain_failure(text: str, environment: str | None) -> EnvironmentProblem:
    """Explain why executors could not run the check, given the text of Spark's error."""
    missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    if missing is not None:
        return EnvironmentProblem(f"the executors cannot import {missing[1]}", PACK)
    other = re.search(r"Python in worker has different version.*", text) or re.search(
        r"\[PYTHON_VERSION_MISMATCH\].*", text
    )
    if other is not None:
        return EnvironmentProblem(f"the executors have another Python: {other[0]}", PACK)
    program = re.search(r'Cannot run program "([^"]+)"[^\n]*', text)
    if program is not None and environment is None:
        return EnvironmentProblem(f"the executors have no Python at {program[1]}", PACK)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = program[0] if program else next((each for each in lines if "Exception" in each), text[:300])
    return EnvironmentProblem(
        f"the executors cannot run a task: {cause}", "set runtime.log_level=warn to see the log of Spark"
    )


def _await_executor(spark: SparkSession, seconds: float) -> None:
    context = cast("Any", spark.sparkContext._jsc).sc()
    end = time.monotonic() + seconds
    # The driver is one of them.
    while context.getExecutorMemoryStatus().size() < 2:
        if time.monotonic() > end:
            raise EnvironmentProblem(
                f"the cluster started no executor within {seconds:.0f} s",
                "check that it has free workers with runtime.executor_memory and the cores of an executor, "
                "and that they can reach this host (spark.driver.host); their logs have the reason",
            )
        time.sleep(POLL_SECONDS)


def _scip_version(command: str | None) -> str | None:
    tool = find_scip_python(command)
    return None if tool is None else tool_version(tool)


def _report(_: Iterable[int]) -> Iterator[ExecutorReport]:
    """Run on an executor."""
    yield ExecutorReport(socket.gethostname(), __version__, code_digest(), row_versions())
