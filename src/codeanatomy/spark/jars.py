"""The jars that Delta needs and PySpark does not bring: pinned, fetched once, verified, reused.

`spark.jars.packages` would run Ivy at every start: seconds each time, a page of text, and whatever
version a repository serves. Instead the jars are pinned here by SHA-256 and kept in a cache folder;
a session puts them on the driver's class path.

    cache = cache_folder()                   # $CODEANATOMY_CACHE, or <user cache>/codeanatomy
    paths = ensure_jars(cache, find_java())  # milliseconds, unless something has to be fetched

Of the 33 modules that Delta's own metadata names, PySpark has most in newer versions. These seven are
the ones that the classes of delta-spark refer to and that PySpark lacks (checked with `jdeps`).

Fetching is Ivy's work: PySpark carries it (`jars/ivy-*.jar`), and so the repository, proxies and mirrors
are configured the way Spark's own are. A mirror is an Ivy settings file named by
CODEANATOMY_IVY_SETTINGS. Ivy works in a temporary folder inside the cache; a jar is moved into place,
atomically, only after its hash was checked, so a killed download leaves nothing that looks like a jar.

On each start only size and modification time are compared with those noted in `verified.json` when the
hash was last computed; any difference means a new hash, and a wrong hash means a new fetch. `wrong_jars`
computes all hashes (that is what `codeanatomy doctor` does). A lock file lets one process fetch while
others wait.

Tests: `tests/unit/spark/test_jars.py`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

import msgspec
from msgspec import Struct

from codeanatomy.config import CACHE_VARIABLE, SETTINGS_VARIABLE
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.spark.java import Java

# A download that brings no byte for this long is given up: Ivy itself would wait for ever.
STALL_SECONDS = 60.0
STAMP = "verified.json"


class Jar(Struct, frozen=True):
    """A jar by its coordinate, and the hash of the one file that will do."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.artifact}-{self.version}.jar"


class Seen(Struct, frozen=True):
    """What a jar looked like when its hash was right."""

    sha256: str
    size: int
    mtime_ns: int


JARS = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
    Jar(
        "io.delta",
        "delta-kernel-api",
        "4.4.0",
        "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    ),
    Jar(
        "io.delta",
        "delta-kernel-defaults",
        "4.4.0",
        "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    ),
    Jar(
        "io.delta",
        "delta-kernel-unitycatalog",
        "4.4.0",
        "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    ),
    Jar(
        "io.unitycatalog",
        "unitycatalog-client",
        "0.6.0",
        "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    ),
    Jar(
        "io.unitycatalog",
        "unitycatalog-hadoop",
        "0.6.0",
        "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
    ),
)


def cache_folder() -> Path:
    """The folder for what is fetched or made once per machine; created if it is not there."""
    folder = _cache_path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise _not_writable(folder, problem) from problem
    return folder


def ensure_jars(cache: Path, java: Java, jars: tuple[Jar, ...] = JARS) -> tuple[Path, ...]:
    """The verified jars in class-path order; what is missing or damaged is fetched first."""
    folder = cache / "jars"
    paths = tuple(folder / jar.name for jar in jars)
    if _unchanged(folder, jars):
        return paths
    try:
        if wrong_jars(folder, jars):
            folder.mkdir(parents=True, exist_ok=True)
            with lock(folder):
                # Another process may have fetched them while this one waited.
                _fetch(folder, wrong_jars(folder, jars), java)
        _note_verified(folder, jars)
    except OSError as problem:
        raise _not_writable(folder, problem) from problem
    return paths


def wrong_jars(folder: Path, jars: Iterable[Jar] = JARS) -> tuple[Jar, ...]:
    """The jars that are missing from the folder or whose full hash is not the pinned one."""
    return tuple(jar for jar in jars if _hash(folder / jar.name) != jar.sha256)


def pyspark_folder() -> Path:
    """Where the installed PySpark lies, found without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EnvironmentProblem("PySpark is not installed", "run: make setup")
    return Path(spec.origin).parent


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder; the system drops the lock when its holder dies."""
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _cache_path() -> Path:
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():  # The XDG specification says to ignore a relative one.
        return shared / "codeanatomy"
    try:
        return Path.home() / ".cache" / "codeanatomy"
    except RuntimeError as problem:
        raise EnvironmentProblem(
            "no home folder to keep a cache in", f"set {CACHE_VARIABLE} to a folder that can be written"
        ) from problem


def _not_writable(folder: Path, problem: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"the cache folder {folder} cannot be used: {problem.strerror or problem}",
        f"make it writable, or set {CACHE_VARIABLE} to a folder that is",
    )


def _hash(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _look(path: Path, sha256: str) -> Seen:
    status = path.stat()
    return Seen(sha256, status.st_size, status.st_mtime_ns)


def _unchanged(folder: Path, jars: Iterable[Jar]) -> bool:
    """Whether every jar has the pin, size and time that it had when it was last verified."""
    try:
        noted = msgspec.json.decode((folder / STAMP).read_bytes(), type=dict[str, Seen])
        return all(noted.get(jar.name) == _look(folder / jar.name, jar.sha256) for jar in jars)
    except (OSError, msgspec.DecodeError):
        return False


def _note_verified(folder: Path, jars: Iterable[Jar]) -> None:
    seen = {jar.name: _look(folder / jar.name, jar.sha256) for jar in jars}
    with suppress(PermissionError):  # A read-only cache with the right jars is as good, a little slower.
        fresh = folder / f".{STAMP}-{os.getpid()}-{threading.get_ident()}"
        fresh.write_bytes(msgspec.json.encode(seen))
        fresh.replace(folder / STAMP)


def _fetch(folder: Path, jars: tuple[Jar, ...], java: Java) -> None:
    """Fetch into a temporary folder, verify, move into place."""
    for leftover in folder.glob(".fetch-*"):  # Of a process that was killed; nobody else holds the lock.
        shutil.rmtree(leftover, ignore_errors=True)
    if not jars:
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        work = Path(name)
        said = _run_ivy(work, jars, java)
        arrived = work / "jars"
        for jar in jars:
            actual = _hash(arrived / jar.name)
            if actual != jar.sha256:
                raise _not_fetched(folder, jar, actual, said)
            (arrived / jar.name).replace(folder / jar.name)


def _run_ivy(work: Path, jars: tuple[Jar, ...], java: Java) -> str:
    """Let Ivy fetch the jars into `work/jars`; what it said is returned, whether or not it succeeded."""
    ivy = next(iter(sorted((pyspark_folder() / "jars").glob("ivy-*.jar"))), None)
    if ivy is None:
        raise EnvironmentProblem("the installed PySpark lacks its Ivy jar", "remove .venv, then: make setup")
    (work / "ivy.xml").write_text(_ivy_module(jars), encoding="utf-8")
    settings = os.environ.get(SETTINGS_VARIABLE)
    if settings and not Path(settings).is_file():
        raise EnvironmentProblem(
            f"{SETTINGS_VARIABLE} names {settings}, which is not a file",
            "name an Ivy settings file (as for spark.jars.ivySettings), or unset it",
        )
    command = [
        str(java.path),
        f"-Divy.default.ivy.user.dir={work}",
        *("-cp", str(ivy), "org.apache.ivy.Main", "-warn"),
        *(("-settings", settings) if settings else ()),
        *("-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache")),
        *("-types", "jar", "bundle", "-retrieve", str(work / "jars" / "[artifact]-[revision].[ext]")),
    ]
    log = work / "ivy.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        finished = _wait_while_growing(process, work)
    said = log.read_text(encoding="utf-8", errors="replace")
    return said if finished else f"{said}\n(no answer within {STALL_SECONDS:.0f} s)"


def _wait_while_growing(process: subprocess.Popen[bytes], work: Path) -> bool:
    """Wait for the process as long as files keep growing; end it otherwise."""
    size, since = -1, time.monotonic()
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.25)
                return True
            now = _bytes_under(work)
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > STALL_SECONDS:
                return False
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _bytes_under(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # Ivy renames its partial files.
            total += path.stat().st_size
    return total


def _ivy_module(jars: Iterable[Jar]) -> str:
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)}"
        f' rev={quoteattr(jar.version)} transitive="false"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0">\n'
        '  <info organisation="codeanatomy" module="jars"/>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n"
        "</ivy-module>\n"
    )


def _not_fetched(folder: Path, jar: Jar, actual: str | None, said: str) -> EnvironmentProblem:
    coordinate = f"{jar.group}:{jar.artifact}:{jar.version}"
    if actual is not None:
        return EnvironmentProblem(
            f"{coordinate} came with SHA-256 {actual} instead of {jar.sha256} and was thrown away",
            f"a proxy or mirror changed it: name another in {SETTINGS_VARIABLE}, "
            f"or copy the right {jar.name} into {folder}",
        )
    # Ivy tells the cause at the end of a line: "Server access error at url ... (java.net.X: cause)".
    cause = re.search(r"(?:access error.*|^)\((?:[\w.]+: )?([^()]+)\)\s*$", said, re.MULTILINE)
    because = f" ({cause[1]})" if cause else ""
    return EnvironmentProblem(
        f"{coordinate} could not be fetched{because}",
        "check the network; behind a proxy set "
        "JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'; "
        f"for a mirror set {SETTINGS_VARIABLE} to an Ivy settings file; or copy {jar.name} into {folder}",
    )
