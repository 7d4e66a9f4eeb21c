"""The JVM class-data archive: the classes of Spark and Delta, parsed once instead of at every start.

Most of the first seconds of a session are the JVM reading, verifying and linking some 15,000 classes. The
JVM can dump what a run has loaded (`-XX:ArchiveClassesAtExit`) and map that file the next time
(`-XX:SharedArchiveFile`). `train_archive` makes the dump with a short run over what every session
does: create, write, merge, replace, read, and a Python worker.

    java_options(cache, java, jars)   # ('"-XX:SharedArchiveFile=..."', ...), or () without an archive

An archive fits one Java, one set of jars at one place and one PySpark, so the file's name is a hash of
those: anything that changes gives another name, and a session then starts without until the next
`codeanatomy setup`. The JVM checks by itself as well that the class path is the one of the dump (the jars
first, in this order, on `spark.driver.extraClassPath`) and else ignores the file; the log options keep
it quiet about that. No archive is never an error: it costs seconds, nothing else. (Java 17 leaves out the
classes of a jar whose path has a space in it, so an archive made there works but gains little.)

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

# What the training runs; another package, because it writes tables.
WORKLOAD = Path(codeanatomy.__file__).parent / "delta" / "archive_workload.py"
TRAINING_SECONDS = 300
# One per Java and virtual environment in use; each is some 200 MB.
KEPT = 3


def archive_path(cache: Path, java: Java, jars: tuple[Path, ...]) -> Path:
    """Where the archive for this Java, these jars and the installed PySpark is, or would be."""
    spark = pyspark_folder()
    parts = [WORKLOAD.read_text(encoding="utf-8"), str(java.path.resolve()), java.text, version("pyspark")]
    parts += [_identity(path) for path in (*jars, spark / "jars")]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    return cache / "archives" / f"{key}.jsa"


def java_options(cache: Path, java: Java, jars: tuple[Path, ...]) -> tuple[str, ...]:
    """Options for the driver's JVM, quoted as Spark's option strings want it; none without an archive."""
    archive = archive_path(cache, java, jars)
    if not _whole(archive):
        return ()
    return (f'"-XX:SharedArchiveFile={archive}"', "-Xshare:auto", *_quiet(java))


def train_archive(cache: Path, java: Java, jars: tuple[Path, ...]) -> Path | None:
    """Make the archive unless it is there already; None when it cannot be made."""
    archive = archive_path(cache, java, jars)
    if _whole(archive):
        return archive
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with lock(archive.parent):
            if not _whole(archive):  # Another process may have made it while this one waited.
                _make(archive, java, cache)
                _forget_old(archive)
    except (OSError, subprocess.SubprocessError):
        return None
    return archive


def _make(archive: Path, java: Java, cache: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".train-") as name:
        fresh = Path(name, archive.name)
        _train(fresh, java, cache)
        size = fresh.stat().st_size
        fresh.replace(archive)
        archive.with_suffix(".size").write_text(str(size), encoding="ascii")


def _whole(archive: Path) -> bool:
    """Whether the archive has the size it was made with: a JVM that maps a truncated one crashes."""
    try:
        return archive.with_suffix(".size").read_text(encoding="ascii") == str(archive.stat().st_size)
    except OSError:
        return False


def _identity(path: Path) -> str:
    # The JVM compares time and size of every jar with those at the dump, so they belong to the name.
    status = path.stat()
    return f"{path.absolute()} {status.st_size} {status.st_mtime_ns}"


def _quiet(java: Java) -> tuple[str, ...]:
    # Java 25 also has the tag `aot`; an older Java does not start with a tag that it does not know.
    tags = ("cds", "cds+dynamic", "aot") if java.major >= 25 else ("cds", "cds+dynamic")
    return tuple(f"-Xlog:{tag}=off" for tag in tags)


def _train(fresh: Path, java: Java, cache: Path) -> None:
    """Run the workload as a program, which starts a session of its own and dumps the archive at its end."""
    options = " ".join((f'"-XX:ArchiveClassesAtExit={fresh}"', *_quiet(java)))
    subprocess.run(
        [sys.executable, "-m", "codeanatomy.delta.archive_workload", options, str(fresh.parent)],
        check=True,
        env={**os.environ, CACHE_VARIABLE: str(cache)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=TRAINING_SECONDS,
    )


def _forget_old(newest: Path) -> None:
    """Remove all but the newest archives, and what killed trainings left behind."""
    with suppress(OSError):
        archives = sorted(newest.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in archives[KEPT:]:
            path.unlink()
            path.with_suffix(".size").unlink(missing_ok=True)
        for path in newest.parent.glob(".train-*"):  # Nobody else trains while the lock is held.
            shutil.rmtree(path, ignore_errors=True)
