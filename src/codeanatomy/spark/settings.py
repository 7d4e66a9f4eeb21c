"""Compute the Spark settings of a session from a RuntimeProfile; no Spark is needed for that.

    session_settings(RuntimeProfile(cores=2), jars, jvm_options)["spark.master"]      # local[2]

Jars of a connector to an object store come after Spark's own, as `spark.jars`: in front of them, each class
of Spark would be looked up in 700 MB first, and the archive of classes would not fit the class path.

Tests: `tests/spark/test_session.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from codeanatomy.config import CACHE_VARIABLE, SECRET, RuntimeProfile
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.spark.environment import FOLDER, PYTHON
from codeanatomy.spark.worker_daemon import MODULE as DAEMON

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
HADOOP = "spark.hadoop."
LOG_CONFIG = Path(__file__).with_name("log4j2.properties")

# Fields of a struct and columns of a list that plans write: all.
ALL_FIELDS = 1_000_000
IN_FULL = {"spark.sql.debug.maxToStringFields": str(ALL_FIELDS)}

# Settings that the SQL of this package requires.
REQUIRED = {"spark.sql.parser.escapedStringLiterals": "false", "spark.sql.caseSensitive": "false"}

# Settings of every session started here, also where Spark's own defaults file has others.
FIXED = {
    **REQUIRED,
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
    # What a build exchanges is compressed already.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    # Independent tables are written at the same time and share the cores.
    "spark.scheduler.mode": "FAIR",
}


# The cache of files, in the working folder of an executor: it goes with the application.
CACHE = "codeanatomy-cache"
# Memory of an executor beside its heap: so much for the JVM itself, and so much per core for Python. Measured
# on a cluster of two executors with a core each: the Python processes of an executor (worker, its child that
# extracts, and the type checker) took 0.4 GB together in a build of requests (18 files, 0.2 MB), the JVM with
# a heap of 1 GB 0.5 GB. A task that solves a repository takes more: 0.7 GB for django (885 files), 3 GB for
# the standard library (1,790 files). `spark.executor.pyspark.memory` is not set: it limits the address space,
# of which Arrow reserves much more than it uses.
PYTHON_MB = 1024
JVM_MB = 512


def is_local_master(master: str) -> bool:
    """Return whether tasks run in the driver's process: `local`, `local[4]`, but not `local-cluster[...]`."""
    return master.partition("[")[0] == "local"


# For a build: its JVM moves bytes, so the optimizing compiler costs more than it gives. Without it, the JVM
# would take a small cache for its code.
BUILD_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
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
    local = is_local_master(profile.session_master)
    settings = {
        **FIXED,
        "spark.app.name": "codeanatomy",
        "spark.master": profile.session_master,
        "spark.driver.memory": profile.driver_memory,
        "spark.executor.memory": profile.executor_memory,
        "spark.sql.shuffle.partitions": str(profile.shuffle_partitions),
        "spark.driver.extraClassPath": class_path,
        "spark.driver.defaultJavaOptions": " ".join((log_options, *RETURN_MEMORY, *jvm_options)),
    }
    if local:
        # On a cluster the module may be that of an archive that executors unpack, or missing.
        settings["spark.python.daemon.module"] = DAEMON
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


def memory_overhead(cores: int) -> str:
    """Return the memory that an executor of so many cores needs beside its heap, for Spark's setting."""
    return f"{JVM_MB + cores * PYTHON_MB}m"


def secret_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials of object stores."""
    return {key: value for key, value in settings.items() if key.startswith(HADOOP) and SECRET.search(key)}
