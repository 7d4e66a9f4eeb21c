"""The Spark session: made from a RuntimeProfile, or the caller's own.

    spark = open_session(RuntimeProfile(cores=2))       # ours: close it with close_session(spark)
    require_delta(callers_session)                      # theirs: checked, never changed or stopped

Starting is most of the cost of a short command, so: the jars lie in a cache and go straight on the
class path (no Ivy at start), the JVM maps an archive of loaded classes, Delta reads small logs in one
task, and there is no UI. `bench/startup.py` holds this to account. Tests: `tests/spark/test_session.py`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from codeanatomy.config import RuntimeProfile
from codeanatomy.errors import EnvironmentProblem, UsageError
from codeanatomy.spark.class_archive import java_options
from codeanatomy.spark.jars import cache_folder, ensure_jars
from codeanatomy.spark.java import find_java

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
LOG_CONFIG = Path(__file__).with_name("log4j2.properties")

# What every session of ours has, and why.
FIXED = {
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
    # No Hive metastore: tables are addressed by path.
    "spark.sql.catalogImplementation": "in-memory",
    # Results must not depend on where the machine stands.
    "spark.sql.session.timeZone": "UTC",
    # The default of 50 tasks per snapshot makes every small table slow.
    "spark.databricks.delta.snapshotPartitions": "1",
    # Our progress is in files and rows, not in stages.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The driver looks at the files of a table itself: a job for it would take longer.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # Independent tables are written at the same time and share the cores.
    "spark.scheduler.mode": "FAIR",
}


def open_session(profile: RuntimeProfile = RuntimeProfile()) -> SparkSession:
    """Start a session; the process must not have one already.

    A process has one JVM: after `spark.stop()` a new session starts in it, with the memory and the
    class path of the first.
    """
    if SparkContext._active_spark_context is not None:
        raise UsageError(
            "this process has a Spark session already, and it is not ours to change",
            "pass it on as spark=..., or stop it first",
        )
    java = find_java()
    cache = cache_folder()
    jars = ensure_jars(cache, java)
    settings = session_settings(profile, jars, java_options(cache, java, jars))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return _launch(profile, SparkConf(loadDefaults=False).setAll(list(settings.items())))


def close_session(spark: SparkSession) -> None:
    """Stop a session of ours; one whose JVM was killed has nothing left to stop."""
    with suppress(Py4JError, OSError):
        spark.stop()


def _launch(profile: RuntimeProfile, conf: SparkConf) -> SparkSession:
    """Start the JVM and the session; what the JVM writes to stderr is kept for the error message."""
    quiet = profile.log_level == "off"
    with TemporaryFile("w+", errors="replace") as said:
        try:
            # The launcher's module warning cannot be switched off, so the JVM gets another stderr.
            streams = {"stderr": said, "stdout": said} if quiet else None
            # PySpark keeps the first JVM of a process: a later session of ours lives in it.
            with _signals_later():
                gateway = SparkContext._gateway or launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
        except (PySparkException, Py4JJavaError, RuntimeError, OSError) as problem:
            said.seek(0)
            lines = [line.strip() for line in (*said, *str(problem).splitlines()) if line.strip()]
            telling = [line for line in lines if "Exception" in line or "rror" in line]
            cause = (*telling, *reversed(lines), type(problem).__name__)[0]
            raise EnvironmentProblem(
                f"Spark did not start on {profile.master}: {cause}",
                "run `codeanatomy doctor`; set runtime.log_level=warn to see what Spark says",
            ) from problem


@contextmanager
def _signals_later() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM until the JVM is there; the second one is not held back.

    PySpark loses sight of a JVM that is only starting: it would wait for its driver for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def keep(number: int, frame: FrameType | None) -> None:
        if arrived:
            raise KeyboardInterrupt
        arrived.append(number)

    before = {number: signal.signal(number, keep) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for kept in arrived:
        signal.raise_signal(kept)


def session_settings(
    profile: RuntimeProfile, jars: tuple[Path, ...], jvm_options: tuple[str, ...]
) -> dict[str, str]:
    """The Spark settings of a profile; what the user sets by full name wins."""
    class_path = os.pathsep.join(str(jar) for jar in jars)
    logging = f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} -Dcodeanatomy.log={profile.log_level}"
    local = profile.master.startswith("local")
    settings = {
        **FIXED,
        "spark.app.name": "codeanatomy",
        "spark.master": _master(profile),
        "spark.driver.memory": profile.driver_memory,
        "spark.executor.memory": profile.executor_memory,
        "spark.sql.shuffle.partitions": str(profile.shuffle_partitions),
        "spark.driver.extraClassPath": class_path,
        "spark.driver.defaultJavaOptions": " ".join((logging, *jvm_options)),
    }
    if not local:
        settings["spark.jars"] = ",".join(jar.as_uri() for jar in jars)
        if profile.cores is not None:
            settings["spark.cores.max"] = str(profile.cores)
    settings.update({f"spark.databricks.delta.{key}": value for key, value in profile.delta.items()})
    settings.update({f"spark.hadoop.{key}": value for key, value in profile.storage_options.items()})
    log_store = profile.log_store_options
    settings.update({f"spark.delta.logStore.{key}": value for key, value in log_store.items()})
    return {**settings, **profile.spark}


# What a commit must not inherit from a caller's session, because it changes what is written.
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
# What the SQL of this package is written for.
REQUIRED = {"spark.sql.parser.escapedStringLiterals": "false", "spark.sql.caseSensitive": "false"}


def require_delta(spark: SparkSession) -> SparkSession:
    """A caller's own session, once it is known that it can speak Delta as we do."""
    for key, value in REQUIRED.items():
        if str(spark.conf.get(key, value)).lower() != value:
            raise EnvironmentProblem(f"the given Spark session has {key} changed", f"set it to {value}")
    if DELTA_EXTENSION not in str(spark.conf.get("spark.sql.extensions", "")):
        raise EnvironmentProblem(
            "the given Spark session does not speak Delta",
            f"start it with spark.sql.extensions={DELTA_EXTENSION} and "
            f"spark.sql.catalog.spark_catalog={DELTA_CATALOG}",
        )
    return spark


def isolated(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A clone of the session with settings of its own.

    So a commit never changes the caller's session, does not depend on what the caller has set there,
    and commits of several threads do not see each other's transaction ids.
    """
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    # In one call: every step through a map of the JVM would be a call of its own.
    keys = str(clone._jsparkSession.conf().getAll().keys().mkString("\n"))
    for key in keys.splitlines():
        if key.startswith(UNSET):
            clone.conf.unset(key)
    for key, value in {**NEUTRAL, **settings}.items():
        clone.conf.set(key, value)
    return clone


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make a session the one that Delta's own classes look up in this thread, for a while."""
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
