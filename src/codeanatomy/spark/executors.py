"""Check the executors of a cluster before work starts.

    check_executors(spark, environment=None)
    # EnvironmentProblem: the executor on node7 lacks libcst, msgspec
    #   next: run `codeanatomy environment --output env.tar.gz` and ...

Without the check, a build would fail in its first task with a traceback of another machine. One job with the
default number of tasks, which is that of the cores, describes the machine of each: Python, packages, the code
of codeanatomy, and what probes find. `describe` is pickled by value and imports what it describes, so it also
runs where codeanatomy is missing; it runs on this machine, too, and what differs is an error. With other
versions, executors would write other rows under the same fingerprints. Only the public DataFrame API is used:
the check is the same for clusters of ours, for a caller's session and for Spark Connect
(`run.given_session`).

    Probe("scip-python", find_version, expected="0.6.6", hint="install ...")   # what executors have to find

Tests: `tests/unit/spark/test_executors.py`, `tests/spark/test_given_session.py`,
`tests/spark/test_scip_build.py`, `tests/system/test_cluster.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pyarrow as pa
from msgspec import Struct, json
from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from codeanatomy.config import SCIP_VARIABLE
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.extract.tools.external_tool import tool_version
from codeanatomy.extract.tools.scip_python import find_scip_python
from codeanatomy.spark.environment import code_digest

# A cluster that has run no task for this long is reported.
WAIT_SECONDS, POLL_SECONDS = 300.0, 0.2
# Extractors, and the type checker: with another version, rows would be others.
ROW_PACKAGES = ("libcst", "tree-sitter", "tree-sitter-python", "protobuf", "pyrefly")
# Other packages that tasks import.
TASK_PACKAGES = ("deltalake", "duckdb", "msgspec", "numpy", "obstore", "pyarrow", "pyroaring")
PACK = (
    "run `codeanatomy environment --output env.tar.gz` and add --set runtime.environment=env.tar.gz, "
    "or install the same version of codeanatomy on every host"
)
# More than any cluster has cores: no task is without a row.
ROWS = 100_000
MISSING = "missing"
# How Java begins the line of a cause.
CAUSE = "Caused by: "


class ExecutorReport(Struct, frozen=True):
    """What an executor runs; versions of packages that are installed, and values of probes by their name."""

    host: str
    python: str
    versions: dict[str, str]
    # None if codeanatomy, or a package that it needs, cannot be imported.
    version: str | None = None
    digest: str | None = None
    # The module that cannot be imported.
    missing: str | None = None
    values: dict[str, str] = {}


class Probe(Struct, frozen=True):
    """A value that every executor has to find."""

    name: str
    find: Callable[[], str]
    expected: str
    # What to do if one finds another.
    hint: str


def check_executors(
    spark: SparkSession,
    environment: str | None,
    seconds: float = WAIT_SECONDS,
    probes: Sequence[Probe] = (),
    packages: Sequence[str] = ROW_PACKAGES,
    fix: str = PACK,
) -> int:
    """Raise EnvironmentProblem if there are no executors, or if one differs from this machine.

    `packages` have to be of the same versions. Return the number of tasks of a job.
    """
    names = [*packages, *TASK_PACKAGES]
    expected = decode_report(describer(names, ())())
    explain = partial(explain_failure, environment=environment, fix=fix)
    reports = collect_reports(spark, describer(names, probes), seconds, explain)
    for report in reports:
        compare_reports(report, expected, packages, probes, fix)
    return len(reports)


def check_scip_python(spark: SparkSession, command: str | None, seconds: float = WAIT_SECONDS) -> None:
    """Raise EnvironmentProblem if executors do not have the scip-python of the driver, or none has it."""
    probe = scip_probe(command)
    explain = partial(explain_failure, environment=None)
    for report in collect_reports(spark, describer((), [probe]), seconds, explain):
        compare_values(report, [probe])


def scip_probe(command: str | None) -> Probe:
    """Return the probe of scip-python: the command that the user names, else the one on a machine's PATH.

    Raise EnvironmentProblem if this machine has none.
    """
    here = _scip_version(command)
    hint = (
        "install the same Node.js and scip-python on this machine and on every host, on the PATH or "
        f"at the path that {SCIP_VARIABLE} has here; or build without --scip auto"
    )
    if here == MISSING:
        raise EnvironmentProblem("scip-python is missing on this machine", hint)
    return Probe("scip-python", partial(_scip_version, command), here, hint)


def describer(packages: Sequence[str], probes: Sequence[Probe]) -> Callable[[], bytes]:
    """Return the function that describes the machine it runs on as an encoded ExecutorReport.

    It is a closure, which is pickled by value, and its parts are of Python alone until codeanatomy was
    imported.
    """
    names, encoded, digest = tuple(packages), encode_probes(probes), code_digest()

    def describe() -> bytes:
        import json
        import platform
        import socket
        from contextlib import suppress
        from importlib.metadata import PackageNotFoundError, version

        from pyspark import cloudpickle

        report: dict[str, Any] = {"host": socket.gethostname(), "python": platform.python_version()}
        report["versions"] = {}
        for name in names:
            with suppress(PackageNotFoundError):
                report["versions"][name] = version(name)
        try:
            from codeanatomy import __version__
            from codeanatomy.spark.environment import code_digest
        except ImportError as problem:
            report["missing"] = problem.name
        else:
            report |= {"version": __version__, "digest": code_digest()}
        if report.get("digest") == digest:
            # Functions of codeanatomy: of another version they may not exist.
            report["values"] = {probe.name: probe.find() for probe in cloudpickle.loads(encoded)}
        return json.dumps(report).encode()

    return describe


def encode_probes(probes: Sequence[Probe]) -> bytes:
    """Pickle probes apart: they are functions of codeanatomy, which executors may lack."""
    return bytes(cast("Any", cloudpickle).dumps(tuple(probes)))


def decode_report(encoded: bytes) -> ExecutorReport:
    return json.decode(encoded, type=ExecutorReport)


def collect_reports(
    spark: SparkSession,
    describe: Callable[[], bytes],
    seconds: float,
    explain: Callable[[str], EnvironmentProblem],
) -> list[ExecutorReport]:
    """Describe the executors by a job with the default number of tasks.

    If it takes longer than `seconds`, or is interrupted, the jobs of the session are cancelled.
    """

    def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"report": [describe()]})

    def run() -> pa.Table:
        return spark.range(ROWS).mapInArrow(report, "report binary").toArrow()

    pool = ThreadPoolExecutor(1)
    running: Future[pa.Table] = pool.submit(run)
    try:
        rows = running.result(seconds)
    except TimeoutError as problem:
        raise EnvironmentProblem(
            f"the cluster has run no task within {seconds:.0f} s",
            "check that it has free workers with runtime.executor_memory and the cores of an executor, "
            "and that they can reach this host (spark.driver.host); their logs have the reason",
        ) from problem
    except (Py4JError, PySparkException) as problem:
        raise explain(str(problem)) from problem
    finally:
        while not running.done():
            spark.interruptAll()
            with suppress(TimeoutError, Py4JError, PySparkException):
                running.result(POLL_SECONDS)
        pool.shutdown()
    return [decode_report(each) for each in rows.column("report").to_pylist()]


def compare_reports(
    report: ExecutorReport,
    expected: ExecutorReport,
    packages: Sequence[str],
    probes: Sequence[Probe],
    fix: str = PACK,
) -> None:
    """Raise EnvironmentProblem if an executor differs from this machine, by what is to be fixed first."""
    where = f"the executor on {report.host}"
    if report.python != expected.python:
        raise EnvironmentProblem(
            f"python of {where} is {report.python}, of this machine {expected.python}", fix
        )
    known = (*TASK_PACKAGES, *packages)
    lacking = [name for name in known if name in expected.versions and name not in report.versions]
    if lacking:
        raise EnvironmentProblem(f"{where} lacks {', '.join(lacking)}", fix)
    for name in packages:
        here, there = expected.versions.get(name, MISSING), report.versions.get(name, MISSING)
        if here != there:
            raise EnvironmentProblem(f"{name} of {where} is {there}, of this machine {here}", fix)
    if report.version is None:
        raise EnvironmentProblem(f"{where} cannot import {report.missing}", fix)
    if (report.version, report.digest) != (expected.version, expected.digest):
        raise EnvironmentProblem(
            f"{where} runs codeanatomy {report.version} ({report.digest}), "
            f"this is {expected.version} ({expected.digest})",
            fix,
        )
    compare_values(report, probes)


def compare_values(report: ExecutorReport, probes: Sequence[Probe]) -> None:
    """Raise EnvironmentProblem if a probe has found another value than expected."""
    for probe in probes:
        there = report.values.get(probe.name, MISSING)
        if there != probe.expected:
            raise EnvironmentProblem(
                f"{probe.name} is, for the executor on {report.host}, {there}; expected: {probe.expected}",
                probe.hint,
            )


def explain_failure(text: str, environment: str | None, fix: str = PACK) -> EnvironmentProblem:
    """Explain why executors could not run the check, given the text of Spark's error."""
    missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    if missing is not None:
        return EnvironmentProblem(f"the executors cannot import {missing[1]}", fix)
    other = re.search(r"Python in worker has different version.*", text) or re.search(
        r"\[PYTHON_VERSION_MISMATCH\].*", text
    )
    if other is not None:
        return EnvironmentProblem(f"the executors have another Python: {other[0]}", fix)
    program = re.search(r'Cannot run program "([^"]+)"[^\n]*', text)
    if program is not None and environment is None:
        return EnvironmentProblem(f"the executors have no Python at {program[1]}", fix)
    if re.search("stopped SparkContext|SparkContext was shut down", text):
        return EnvironmentProblem("the Spark session was stopped", "start another one")
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    # The first error may be without a cause.
    deepest = [line.removeprefix(CAUSE) for line in lines if line.startswith(CAUSE)][-1:]
    errors = [program[0]] if program else deepest or [each for each in lines if "Exception" in each]
    return EnvironmentProblem(
        f"the executors cannot run a task: {[*errors, text[:300]][0]}",
        "see the log of its driver: of a session of a build's own, set runtime.log_level=warn",
    )


def _scip_version(command: str | None) -> str:
    tool = find_scip_python(command)
    return MISSING if tool is None else tool_version(tool)
