"""Build the JVM class-data archive: parse the classes of Spark and Delta once instead of at every start.

Most of the first seconds of a session are the JVM reading, verifying and linking some 15,000 classes. The
JVM can dump what a run has loaded (`-XX:ArchiveClassesAtExit`) and map that file the next time
(`-XX:SharedArchiveFile`). `train_archive` makes the dump with a short run of what every session does:
create, write, merge, replace, read, and a Python worker.

    java_options(cache, java, jars)   # ('"-XX:SharedArchiveFile=..."', ...), or () without an archive

An archive is valid for one Java, one set of jars at fixed paths and one PySpark, so its file name is a hash
of those: any change gives another name, and sessions start without one until the next `codeanatomy setup`.
The JVM also checks that the class path is the one of the dump (the jars first, in this order, on
`spark.driver.extraClassPath`) and otherwise ignores the file; the log options suppress its warning. A missing
archive is never an error, it only costs seconds. (Java 17 leaves out the classes of a jar with a space in its
path, so an archive made there works but gains little.)

Tests: `tests/unit/spark/test_class_archive.py`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import codeanatomy
from codeanatomy.config import CACHE_VARIABLE
from codeanatomy.spark.jars import lock, pyspark_folder
from codeanatomy.spark.java import Java

# Program that loads the classes; in another package, because it writes tables.
WORKLOAD = Path(codeanatomy.__file__).parent / "delta" / "archive_workload.py"
TRAINING_SECONDS = 300
# Archives kept: one per Java and virtual environment in use; each is some 200 MB.
KEPT = 3


def archive_path(cache: Path, java: Java, jars: tuple[Path, ...]) -> Path:
    """Return the path of the archive for this Java, these jars and the installed PySpark."""
    spark = pyspark_folder()
    parts = [WORKLOAD.read_text(encoding="utf-8"), str(java.path.resolve()), java.text, version("pyspark")]
    parts += [_identity(path) for path in (*jars, spark / "jars")]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    return cache / "archives" / f"{key}.jsa"


def java_options(cache: Path, java: Java, jars: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the options of the driver's JVM, quoted for Spark's option strings; empty without an archive."""
    archive = archive_path(cache, java, jars)
    if not _is_complete(archive):
        return ()
    return (f'"-XX:SharedArchiveFile={archive}"', "-Xshare:auto", *_silent_log_options(java))


def train_archive(cache: Path, java: Java, jars: tuple[Path, ...]) -> Path | None:
    """Create the archive unless it exists; return its path, or None if it cannot be created."""
    archive = archive_path(cache, java, jars)
    if _is_complete(archive):
        return archive
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with lock(archive.parent):
            if not _is_complete(archive):  # Another process may have created it meanwhile.
                _create(archive, java, cache)
                _remove_old(archive)
    except (OSError, subprocess.SubprocessError):
        return None
    return archive


def _create(archive: Path, java: Java, cache: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".train-") as name:
        fresh = Path(name, archive.name)
        _train(fresh, java, cache)
        size = fresh.stat().st_size
        fresh.replace(archive)
        archive.with_suffix(".size").write_text(str(size), encoding="ascii")


def _is_complete(archive: Path) -> bool:
    """Whether the archive has its original size: a JVM that maps a truncated one crashes."""
    try:
        return archive.with_suffix(".size").read_text(encoding="ascii") == str(archive.stat().st_size)
    except OSError:
        return False


def _identity(path: Path) -> str:
    # The JVM compares time and size of every jar with those at the dump, so they enter the hash.
    status = path.stat()
    return f"{path.absolute()} {status.st_size} {status.st_mtime_ns}"


def _silent_log_options(java: Java) -> tuple[str, ...]:
    # Java 25 also has the tag `aot`; an older Java does not start with an unknown tag.
    tags = ("cds", "cds+dynamic", "aot") if java.major >= 25 else ("cds", "cds+dynamic")
    return tuple(f"-Xlog:{tag}=off" for tag in tags)


def _train(fresh: Path, java: Java, cache: Path) -> None:
    """Run the workload in a process with its own session, which dumps the archive at exit."""
    options = " ".join((f'"-XX:ArchiveClassesAtExit={fresh}"', *_silent_log_options(java)))
    subprocess.run(
        [sys.executable, "-P", "-m", "codeanatomy.delta.archive_workload", options, str(fresh.parent)],
        check=True,
        env={**os.environ, CACHE_VARIABLE: str(cache)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=TRAINING_SECONDS,
    )


def _remove_old(newest: Path) -> None:
    """Remove all but the newest archives, and leftovers of killed runs."""
    with suppress(OSError):
        archives = sorted(newest.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in archives[KEPT:]:
            path.unlink()
            path.with_suffix(".size").unlink(missing_ok=True)
        for path in newest.parent.glob(".train-*"):  # The lock excludes other runs.
            shutil.rmtree(path, ignore_errors=True)
