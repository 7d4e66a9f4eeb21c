"""Start a Spark session from a RuntimeProfile, or check the caller's own.

    spark = open_session(RuntimeProfile(cores=2))       # own session: close it with close_session(spark)
    require_delta(callers_session)                      # the caller's: checked, never changed or stopped

Startup is most of the cost of a short command, so: the jars come from a cache and go straight on the class
path (no Ivy at start), the JVM maps an archive of loaded classes, Delta reads small logs in one task, and
there is no UI. `bench/startup.py` measures it. Tests: `tests/spark/test_session.py`.

Jars of a connector to an object store come after Spark's own, as `spark.jars`: in front of them, each class
of Spark would be looked up in 700 MB first, and the archive of classes would not fit the class path.

On a cluster, executors share nothing with the driver but the network: jars and the packed environment
(`runtime.environment`) are fetched from the driver, the cache of files is in the executor's working folder,
and before any work a small job checks that they run the same code (`spark.executors`).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseServer
from tempfile import TemporaryFile
from types import FrameType
from typing import Any, cast
from urllib.parse import quote, urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from codeanatomy.config import CACHE_VARIABLE, SECRET, RuntimeProfile
from codeanatomy.errors import EnvironmentProblem, UsageError
from codeanatomy.spark.class_archive import java_options
from codeanatomy.spark.environment import FOLDER, PYTHON
from codeanatomy.spark.executors import CACHE, check_executors, memory_overhead
from codeanatomy.spark.jars import (
    CONNECTOR_OF_SCHEME,
    cache_folder,
    connector_jars,
    ensure_jars,
    require_connector,
)
from codeanatomy.spark.java import find_java

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
HADOOP = "spark.hadoop."
LOG_CONFIG = Path(__file__).with_name("log4j2.properties")

# Settings of every session started here.
FIXED = {
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
    # No Hive metastore: tables are addressed by path.
    "spark.sql.catalogImplementation": "in-memory",
    # Results must not depend on the time zone of the machine.
    "spark.sql.session.timeZone": "UTC",
    # The default of 50 tasks per snapshot makes every small table slow.
    "spark.databricks.delta.snapshotPartitions": "1",
    # Progress is reported in files and rows, not in stages.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The driver lists the files of a table itself: a Spark job would take longer.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # Independent tables are written at the same time and share the cores.
    "spark.scheduler.mode": "FAIR",
}


def open_session(profile: RuntimeProfile = RuntimeProfile()) -> SparkSession:
    """Start a session. Raise UsageError if the process already has one.

    A process has one JVM: after `spark.stop()` a new session starts in it, with the memory and the class path
    of the first.
    """
    if SparkContext._active_spark_context is not None:
        raise UsageError(
            "this process already has a Spark session, which cannot be reconfigured",
            "pass it as spark=..., or stop it first",
        )
    java = find_java()
    cache = cache_folder()
    jars = ensure_jars(cache, java)
    settings = session_settings(profile, jars, java_options(cache, java, jars), connector_jars(cache))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    secrets = _secrets(settings) if is_local_master(profile.master) else {}
    shown = [(key, value) for key, value in settings.items() if key not in secrets]
    spark = _launch(profile, SparkConf(loadDefaults=False).setAll(shown))
    for key, value in secrets.items():
        # Not in the settings above: they are on the command line of the JVM, which all users can read.
        spark._jsc.hadoopConfiguration().set(key.removeprefix(HADOOP), value)
    if not is_local_master(profile.master):
        # A session that was not started by spark-submit ignores the setting.
        spark.sparkContext.pythonExec = settings.get("spark.pyspark.python", spark.sparkContext.pythonExec)
        try:
            check_executors(spark, profile.environment)
        except BaseException:
            close_session(spark)
            raise
    return spark


def _secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials of object stores."""
    return {key: value for key, value in settings.items() if key.startswith(HADOOP) and SECRET.search(key)}


def is_local_master(master: str) -> bool:
    """Return whether tasks run in the driver's process: `local`, `local[4]`, but not `local-cluster[...]`."""
    return master.partition("[")[0] == "local"


def close_session(spark: SparkSession) -> None:
    """Stop a session; ignore a JVM that is gone already."""
    with suppress(Py4JError, OSError):
        spark.stop()


def _launch(profile: RuntimeProfile, conf: SparkConf) -> SparkSession:
    """Start the JVM and the session; keep the JVM's output for the error message."""
    quiet = profile.log_level == "off"
    logging.getLogger().addFilter(_is_no_cut_call)
    with TemporaryFile("w+", errors="replace") as output:
        try:
            # The launcher's module warning cannot be switched off, so the output is redirected.
            streams = {"stderr": output, "stdout": output} if quiet else None
            # PySpark keeps the first JVM of a process, and later sessions use it.
            with _delay_signals():
                gateway = SparkContext._gateway or launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
            context = SparkContext(conf=conf, gateway=gateway)
            ignore_cut_connections(context._accumulatorServer)
            return SparkSession(context)
        except (PySparkException, Py4JError, RuntimeError, OSError) as problem:
            output.seek(0)
            lines = [line.strip() for line in (*output, *str(problem).splitlines()) if line.strip()]
            errors = [line for line in lines if "Exception" in line or "rror" in line]
            cause = (*errors, *reversed(lines), type(problem).__name__)[0]
            raise EnvironmentProblem(
                f"Spark did not start on {profile.master}: {cause}",
                "run `codeanatomy doctor`; set runtime.log_level=warn to see the log of Spark",
            ) from problem


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


@contextmanager
def _delay_signals() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the JVM has started; a second signal interrupts at once.

    PySpark loses track of a JVM that is still starting, which then waits for its driver for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    delayed: list[int] = []

    def delay(number: int, frame: FrameType | None) -> None:
        if delayed:
            raise KeyboardInterrupt
        delayed.append(number)

    before = {number: signal.signal(number, delay) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for received in delayed:
        signal.raise_signal(received)


# While a repository is solved in Python, the JVM has nothing to do: it returns memory that it does not need.
RETURN_MEMORY = ("-XX:G1PeriodicGCInterval=5000",)


# Settings by which a user adds jars.
CLASS_PATHS = {"spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"}
# Settings that list files.
LISTS = {"spark.jars", "spark.archives"}


def session_settings(
    profile: RuntimeProfile,
    jars: tuple[Path, ...],
    jvm_options: tuple[str, ...],
    connectors: tuple[Path, ...] = (),
) -> dict[str, str]:
    """Return the Spark settings of a profile; settings that the user gives by full name override them.

    Lists of files are joined instead: a connector of the user's is needed in addition to Delta.
    """
    class_path = os.pathsep.join(str(jar) for jar in jars)
    log_options = f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} -Dcodeanatomy.log={profile.log_level}"
    local = is_local_master(profile.master)
    settings = {
        **FIXED,
        "spark.app.name": "codeanatomy",
        "spark.master": _master(profile),
        "spark.driver.memory": profile.driver_memory,
        "spark.executor.memory": profile.executor_memory,
        "spark.sql.shuffle.partitions": str(profile.shuffle_partitions),
        "spark.driver.extraClassPath": class_path,
        "spark.driver.defaultJavaOptions": " ".join((log_options, *RETURN_MEMORY, *jvm_options)),
    }
    if local and connectors:
        # `local:` is a file that need not be copied for the executor.
        settings["spark.jars"] = ",".join(f"local:{quote(str(jar))}" for jar in connectors)
    if not local:
        settings["spark.jars"] = ",".join(jar.as_uri() for jar in (*jars, *connectors))
        if profile.cores is not None:
            settings["spark.cores.max"] = str(profile.cores)
        settings |= _executor_settings(profile)
    settings.update({f"spark.databricks.delta.{key}": value for key, value in profile.delta.items()})
    settings.update({f"{HADOOP}{key}": value for key, value in profile.storage_options.items()})
    log_store = profile.log_store_options
    settings.update({f"spark.delta.logStore.{key}": value for key, value in log_store.items()})
    given = dict(profile.spark)
    for key in LISTS & settings.keys() & given.keys():
        given[key] = f"{settings[key]},{given[key]}"
    return {**settings, **given}


def _existing(archive: str) -> Path:
    if not Path(archive).is_file():
        raise EnvironmentProblem(
            f"runtime.environment: there is no {archive}", f"codeanatomy environment --output {archive}"
        )
    return Path(archive).absolute()


def _executor_settings(profile: RuntimeProfile) -> dict[str, str]:
    """Return what executors on other machines need: the environment, a cache folder, memory for Python."""
    given = profile.spark.get("spark.executor.cores", "1")
    # Spark reports what is no number.
    cores = int(given) if given.isdecimal() else 1
    settings = {
        f"spark.executorEnv.{CACHE_VARIABLE}": CACHE,
        "spark.executor.memoryOverhead": memory_overhead(cores),
    }
    if profile.environment is not None:
        archive = profile.environment
        if not urlsplit(archive).scheme:
            archive = _existing(archive).as_uri()
        settings |= {"spark.archives": f"{archive}#{FOLDER}", "spark.pyspark.python": PYTHON}
    return settings


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
# Settings that the SQL of this package requires.
REQUIRED = {"spark.sql.parser.escapedStringLiterals": "false", "spark.sql.caseSensitive": "false"}


def require_delta(spark: SparkSession) -> SparkSession:
    """Return a caller's session. Raise EnvironmentProblem if it lacks Delta or has incompatible settings."""
    for key, value in REQUIRED.items():
        if str(spark.conf.get(key, value)).lower() != value:
            raise EnvironmentProblem(f"the given Spark session has a different {key}", f"set {key}={value}")
    if DELTA_EXTENSION not in str(spark.conf.get("spark.sql.extensions", "")):
        raise EnvironmentProblem(
            "the given Spark session does not support Delta",
            f"start it with spark.sql.extensions={DELTA_EXTENSION} and "
            f"spark.sql.catalog.spark_catalog={DELTA_CATALOG}",
        )
    return spark


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


def _master(profile: RuntimeProfile) -> str:
    return (
        f"local[{profile.cores}]"
        if profile.master == "local[*]" and profile.cores is not None
        else profile.master
    )
