"""Start a Spark session from a RuntimeProfile, or check the caller's own.

    spark = open_session(RuntimeProfile(cores=2))       # own session: close it with close_session(spark)
    require_delta(callers_session)                      # the caller's: checked, never changed or stopped

Startup is most of the cost of a short command, so: the jars come from a cache and go straight on the class
path (no Ivy at start), the JVM maps an archive of loaded classes, Delta reads small logs in one task, and
there is no UI. `bench/startup.py` measures it. Tests: `tests/spark/test_session.py`.

On a cluster, executors share nothing with the driver but the network: jars and the packed environment
(`runtime.environment`) are fetched from the driver, the cache of files is in the executor's working folder,
and before any work a small job checks that they run the same code (`spark.executors`).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from socketserver import BaseServer
from typing import Any, cast
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from codeanatomy.config import RuntimeProfile
from codeanatomy.errors import EnvironmentProblem, UsageError
from codeanatomy.spark.executors import check_executors
from codeanatomy.spark.gateway import StartingJvm, jvm_settings
from codeanatomy.spark.jars import CONNECTOR_OF_SCHEME, JARS, require_connector
from codeanatomy.spark.settings import (
    CLASS_PATHS,
    DELTA_CATALOG,
    DELTA_EXTENSION,
    HADOOP,
    IN_FULL,
    REQUIRED,
    is_local_master,
)

# How py4j begins the text of each error of the JVM.
PY4J_CALL = "An error occurred while calling "


def open_session(profile: RuntimeProfile = RuntimeProfile(), jvm: StartingJvm | None = None) -> SparkSession:
    """Start a session, in a JVM that is starting already if one is given.

    Raise UsageError if the process already has a session.

    A process has one JVM: after `spark.stop()` a new session starts in it, with the memory and the class path
    of the first.
    """
    if SparkContext._active_spark_context is not None:
        if jvm is not None:
            jvm.stop()
        raise UsageError(
            "this process already has a Spark session, which cannot be reconfigured",
            "pass it as spark=..., or stop it first",
        )
    # PySpark keeps the first JVM of a process, and later sessions use it.
    kept = SparkContext._gateway
    given = jvm_settings(profile) if jvm is None else jvm.given
    jvm = jvm or (StartingJvm(given) if kept is None else None)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False).setAll([*given.shown.items()])
    spark = _connect(profile, jvm, conf)
    for key, value in given.secrets.items():
        # Not in the settings above: they are on the command line of the JVM, which all users can read.
        spark._jsc.hadoopConfiguration().set(key.removeprefix(HADOOP), value)
    if is_local_master(profile.session_master):
        # Whatever PYSPARK_PYTHON is: another Python lacks this package, or has another version of it.
        spark.sparkContext.pythonExec = sys.executable
    else:
        # A session that was not started by spark-submit ignores the setting.
        spark.sparkContext.pythonExec = given.settings.get(
            "spark.pyspark.python", spark.sparkContext.pythonExec
        )
        try:
            check_executors(spark, profile.environment)
        except BaseException:
            close_session(spark)
            raise
    return spark


def close_session(spark: SparkSession) -> None:
    """Stop a session; ignore a JVM that is gone already."""
    with suppress(Py4JError, OSError):
        spark.stop()


def leave_session(spark: SparkSession) -> None:
    """Let a session of ours end by itself: its JVM stops it when its input is closed.

    Stopping it takes a second, in which a command would only wait. The process can open another session.
    """
    context = cast("Any", spark.sparkContext)
    gateway = context._gateway
    if not is_local_master(str(context.master)) or getattr(gateway, "proc", None) is None:
        close_session(spark)
        return
    gateway.proc.stdin.close()
    gateway.shutdown()
    # What PySpark remembers of the JVM.
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    cast("Any", SparkSession)._instantiatedSession = None


def _connect(profile: RuntimeProfile, jvm: StartingJvm | None, conf: SparkConf) -> SparkSession:
    """Wait for the JVM and make the session; the JVM's output is in the error message."""
    logging.getLogger().addFilter(_is_no_cut_call)
    try:
        gateway = SparkContext._gateway if jvm is None else jvm.connect()
        context = SparkContext(conf=conf, gateway=gateway)
        ignore_cut_connections(getattr(context, "_accumulatorServer", None))
        return SparkSession(context)
    except (PySparkException, Py4JError, RuntimeError, OSError) as problem:
        text, printed = _error_text(problem, jvm), [] if jvm is None else jvm.lines()
        if jvm is not None:
            jvm.stop()
        lines = [line.strip() for line in (*printed, *text.splitlines()) if line.strip()]
        # py4j begins with a line of its own.
        errors = [
            line.removeprefix(": ")
            for line in lines
            if ("Exception" in line or "rror" in line) and not line.startswith(PY4J_CALL)
        ]
        cause = (*errors, *reversed(lines), type(problem).__name__)[0]
        raise EnvironmentProblem(
            f"Spark did not start on {profile.session_master}: {cause}",
            "run `codeanatomy doctor`; set runtime.log_level=warn to see the log of Spark",
        ) from problem
    except BaseException:
        if jvm is not None:
            jvm.stop()
        raise


def _error_text(problem: Exception, jvm: StartingJvm | None) -> str:
    """Return the text of an error, which py4j fetches from a JVM that may have ended."""
    try:
        text = str(problem)
    except (Py4JError, OSError) as cut:
        problem, text = cut, str(cut)
    is_cut = isinstance(problem, OSError | Py4JNetworkError)
    return (jvm.end_text() if jvm is not None and is_cut else "") or text


def ignore_cut_connections(server: BaseServer | None) -> None:
    """Have PySpark's server of accumulators print no traceback if the JVM ends: the build reports that."""
    if server is None:
        return
    report = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            report(request, client_address)

    server.handle_error = handle_error  # type: ignore[method-assign]


def _is_no_cut_call(record: logging.LogRecord) -> bool:
    """Whether a record is not that of py4j about a call to a JVM that has ended: it is raised, too."""
    return (record.module, record.msg) != ("java_gateway", "Exception while sending command.")


# Settings that a commit must not inherit from a caller's session, because they change what is written: these
# are overridden, those with the prefixes in UNSET removed.
NEUTRAL = {
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
}
UNSET = (
    "spark.databricks.delta.properties.defaults.",
    "spark.databricks.delta.write.txn",
    "spark.databricks.delta.commitInfo.userMetadata",
)


CATALOG = "spark.sql.catalog.spark_catalog"
DELTA_HINT = (
    f"start it with spark.jars.packages={JARS[0].coordinate}, "
    f"spark.sql.extensions={DELTA_EXTENSION} and {CATALOG}={DELTA_CATALOG}"
)


def require_delta(spark: SparkSession) -> None:
    """Raise EnvironmentProblem if a caller's session was not started with Delta."""
    expected = {"spark.sql.extensions": DELTA_EXTENSION, CATALOG: DELTA_CATALOG}
    for key, needed in expected.items():
        value = str(spark.conf.get(key, ""))
        if needed not in value.split(","):
            raise EnvironmentProblem(
                f"the given Spark session does not support Delta: its {key} is {value or 'not set'}",
                DELTA_HINT,
            )


def require_settings(spark: SparkSession) -> None:
    """Raise EnvironmentProblem if a caller's session has settings that change what our SQL means."""
    for key, value in REQUIRED.items():
        if str(spark.conf.get(key, value)).lower() != value:
            raise EnvironmentProblem(f"the given Spark session has a different {key}", f"set {key}={value}")


def refuse_missing_connector(profile: RuntimeProfile, uri: str) -> None:
    """Raise EnvironmentProblem if a session that is started from a profile could not open a lake.

    One that the process has already, or that gets jars of the user's, is checked by `require_file_system`.
    """
    if SparkContext._active_spark_context is None and not CLASS_PATHS & profile.spark.keys():
        require_connector(uri)


def require_file_system(spark: SparkSession, uri: str) -> None:
    """Raise EnvironmentProblem if a session cannot open the URIs of a remote lake's scheme."""
    scheme = urlsplit(uri).scheme.lower()
    jvm = cast("Any", spark._jvm)
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
            scheme, cast("Any", spark._jsparkSession).sessionState().newHadoopConf()
        )
    except Py4JError as problem:
        connector = CONNECTOR_OF_SCHEME.get(scheme)
        if connector is not None:
            hint = (
                f"codeanatomy setup --with {connector}, then start a new session; "
                "a session of your own needs hadoop-aws of its Hadoop version"
            )
        elif scheme == "s3":
            hint = "write the URI with s3a://"
        else:
            hint = (
                f"start the session with the Hadoop connector for {scheme}:// on its class path (spark.jars)"
            )
        raise EnvironmentProblem(f"the Spark session has no file system for {scheme}://", hint) from problem


# Settings of the session in which the passes of a build run. Their frames carry a few large binary values, so
# what makes Spark fast on millions of rows costs more than it gives: in a build of `requests` (0.2 MB),
# compiling code for them was a sixth of the processor time of the JVM, and every exchange was planned twice.
PASS_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 * 1024 * 1024),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    **IN_FULL,
}


def set_pass_settings(spark: SparkSession) -> SparkSession:
    """Give a session of ours the settings of the passes, and return it."""
    for key, value in PASS_SETTINGS.items():
        spark.conf.set(key, value)
    return spark


def default_parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that a session of ours runs at a time."""
    return int(spark.sparkContext.defaultParallelism)


def clone_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Clone a session, with other settings.

    So a commit never changes the caller's session, does not depend on its settings, and commits of several
    threads do not see each other's transaction ids.
    """
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    # One call: each step of an iteration over a map of the JVM would be a call of its own.
    keys = str(clone._jsparkSession.conf().getAll().keys().mkString("\n"))
    for key in keys.splitlines():
        if key.startswith(UNSET):
            clone.conf.unset(key)
    for key, value in {**NEUTRAL, **settings}.items():
        clone.conf.set(key, value)
    return clone


def restore_active_session(spark: SparkSession | None) -> None:
    """Make a session the one of `SparkSession.getActiveSession` again, which `createDataFrame` changes."""
    cast("Any", SparkSession)._activeSession = spark


@contextmanager
def activate_session(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread, which Delta's classes look up, for a `with` block."""
    sessions = cast("Any", spark._jvm).org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
