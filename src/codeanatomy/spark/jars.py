"""Fetch, verify and cache the jars that Delta needs and PySpark does not include.

`spark.jars.packages` would run Ivy at every start: seconds each time, a page of output, and whatever
version a repository serves. Instead the jars are pinned here by SHA-256 and kept in a cache folder;
a session puts them on the driver's class path.

    cache = cache_folder()                   # $CODEANATOMY_CACHE, or <user cache>/codeanatomy
    paths = ensure_jars(cache, find_java())  # milliseconds, unless something has to be fetched

Of the 33 modules that Delta's own metadata names, PySpark has most in newer versions. These seven are
the ones that the classes of delta-spark refer to and that PySpark lacks (checked with `jdeps`).

Ivy, which PySpark includes (`jars/ivy-*.jar`), does the download, so repositories, proxies and mirrors are
configured the same way as for Spark. A mirror is an Ivy settings file named by
CODEANATOMY_IVY_SETTINGS. Ivy works in a temporary folder inside the cache; a jar is moved into place,
atomically, only after its hash was checked, so a killed download leaves nothing that looks like a jar.

On each start only size and modification time are compared with those recorded in `verified.json` when the
hash was last computed; if they differ, the hash is computed again, and if it is wrong, the jar is fetched
again. `invalid_jars` computes all hashes (that is what `codeanatomy doctor` does). A lock file lets one
process fetch while others wait.

Connectors to object stores are large, so they are fetched only by `codeanatomy setup --with s3`, and a
session gets them only if its process has opened such a lake:

    use_store("s3a://bucket/lake")           # by `delta.store_policy`, when a lake is opened
    connector_jars(cache)                    # by `spark.session`
    require_connector("s3a://bucket/lake")   # an error if they were not fetched

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

# A download without progress for this long is cancelled: Ivy itself would wait for ever.
STALL_SECONDS = 60.0
# Sizes and modification times of verified jars.
VERIFIED_FILE = "verified.json"


class Jar(Struct, frozen=True):
    """A jar: its Maven coordinate and the pinned hash of its content."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The file name."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinate(self) -> str:
        """What `spark.jars.packages` names it by."""
        return f"{self.group}:{self.artifact}:{self.version}"


class VerifiedJar(Struct, frozen=True):
    """Size and modification time of a jar when its hash was verified."""

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

# Hadoop's connector to S3, of the version of PySpark's Hadoop, with the SDK and the reader that it loads.
S3_JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-aws",
        "3.5.0",
        "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa",
    ),
    Jar(
        "software.amazon.awssdk",
        "bundle",
        "2.35.4",
        "db4b55f24ad1b4e70f17eb1717a4de76a8dadc5a27d764be7c44ff67b2c1c677",
    ),
    Jar(
        "software.amazon.s3.analyticsaccelerator",
        "analyticsaccelerator-s3",
        "1.3.1",
        "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
    ),
)
# Connectors by the name that `codeanatomy setup --with` takes, and by the scheme of the URIs that need them.
CONNECTORS = {"s3": S3_JARS}
CONNECTOR_OF_SCHEME = {"s3a": "s3"}
# Connectors that the sessions of this process get.
_IN_USE: set[str] = set()


def cache_folder() -> Path:
    """Return the folder for files that are fetched or built once per machine; create it if missing."""
    folder = _cache_path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise _not_writable(folder, problem) from problem
    return folder


def ensure_jars(cache: Path, java: Java, jars: tuple[Jar, ...] = JARS) -> tuple[Path, ...]:
    """Return the paths of the verified jars in class-path order; fetch missing or damaged ones first."""
    folder = cache / "jars"
    paths = tuple(folder / jar.name for jar in jars)
    if _are_unchanged(folder, jars):
        return paths
    try:
        if invalid_jars(folder, jars):
            folder.mkdir(parents=True, exist_ok=True)
            with lock(folder):
                # Another process may have fetched them meanwhile.
                _fetch(folder, invalid_jars(folder, jars), java)
        _record_verified(folder, jars)
    except OSError as problem:
        raise _not_writable(folder, problem) from problem
    return paths


def use_store(uri: str) -> None:
    """Give sessions that this process starts from now on the connector of a URI's store, if it needs one."""
    connector = CONNECTOR_OF_SCHEME.get(uri.partition(":")[0].lower())
    if connector is not None:
        _IN_USE.add(connector)


def connector_jars(cache: Path) -> tuple[Path, ...]:
    """Return the verified jars of the connectors in use, without connectors that were not fetched.

    `session.require_file_system` reports those, and only if a lake needs them in that session.
    """
    folder = cache / "jars"
    return tuple(
        folder / jar.name
        for name in sorted(_IN_USE)
        if has_connector(folder, name)
        for jar in CONNECTORS[name]
    )


def has_connector(folder: Path, name: str) -> bool:
    """Return whether all jars of a connector are in the folder, with the pinned hashes."""
    jars = CONNECTORS[name]
    if _are_unchanged(folder, jars):
        return True
    if invalid_jars(folder, jars):
        return False
    _record_verified(folder, jars)
    return True


def require_connector(uri: str) -> None:
    """Raise EnvironmentProblem if the jars that Spark needs for a URI were not fetched."""
    name = CONNECTOR_OF_SCHEME.get(uri.partition(":")[0].lower())
    if name is not None and not has_connector(_cache_path() / "jars", name):
        raise EnvironmentProblem(
            f"Spark needs jars for {uri} that are missing or damaged in the cache",
            f"codeanatomy setup --with {name}",
        )


def invalid_jars(folder: Path, jars: Iterable[Jar] = JARS) -> tuple[Jar, ...]:
    """Return the jars that are missing from the folder or differ from the pinned hash."""
    return tuple(jar for jar in jars if _hash(folder / jar.name) != jar.sha256)


def pyspark_folder() -> Path:
    """Return the folder of the installed PySpark, without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EnvironmentProblem("PySpark is not installed", "run: make setup")
    return Path(spec.origin).parent


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; the system releases the lock if the process dies."""
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _cache_path() -> Path:
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():  # The XDG specification requires ignoring a relative path.
        return shared / "codeanatomy"
    try:
        return Path.home() / ".cache" / "codeanatomy"
    except RuntimeError as problem:
        raise EnvironmentProblem(
            "there is no home folder for the cache", f"set {CACHE_VARIABLE} to a writable folder"
        ) from problem


def _not_writable(folder: Path, problem: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"the cache folder {folder} cannot be used: {problem.strerror or problem}",
        f"make it writable, or set {CACHE_VARIABLE} to a writable folder",
    )


def _hash(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _verified_jar(path: Path, sha256: str) -> VerifiedJar:
    status = path.stat()
    return VerifiedJar(sha256, status.st_size, status.st_mtime_ns)


def _are_unchanged(folder: Path, jars: Iterable[Jar]) -> bool:
    """Whether every jar has the pinned hash, size and time that were recorded when it was last verified."""
    recorded = _recorded(folder)
    try:
        return all(recorded.get(jar.name) == _verified_jar(folder / jar.name, jar.sha256) for jar in jars)
    except OSError:
        return False


def _recorded(folder: Path) -> dict[str, VerifiedJar]:
    try:
        return msgspec.json.decode((folder / VERIFIED_FILE).read_bytes(), type=dict[str, VerifiedJar])
    except (OSError, msgspec.DecodeError):
        return {}


def _record_verified(folder: Path, jars: Iterable[Jar]) -> None:
    verified = _recorded(folder)
    verified |= {jar.name: _verified_jar(folder / jar.name, jar.sha256) for jar in jars}
    with suppress(PermissionError):  # A read-only cache works too, a little slower.
        fresh = folder / f".{VERIFIED_FILE}-{os.getpid()}-{threading.get_ident()}"
        fresh.write_bytes(msgspec.json.encode(verified))
        fresh.replace(folder / VERIFIED_FILE)


def _fetch(folder: Path, jars: tuple[Jar, ...], java: Java) -> None:
    """Fetch jars into a temporary folder, verify them, and move them into place."""
    for leftover in folder.glob(".fetch-*"):  # Left by a killed process.
        shutil.rmtree(leftover, ignore_errors=True)
    if not jars:
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        work = Path(name)
        output = _run_ivy(work, jars, java)
        fetched = work / "jars"
        for jar in jars:
            actual = _hash(fetched / jar.name)
            if actual != jar.sha256:
                raise _not_fetched(folder, jar, actual, output)
            (fetched / jar.name).replace(folder / jar.name)


def _run_ivy(work: Path, jars: tuple[Jar, ...], java: Java) -> str:
    """Let Ivy fetch the jars into `work/jars`; return its output, even if it failed."""
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
    with log.open("wb") as log_file:
        process = subprocess.Popen(
            command, stdout=log_file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        finished = _wait_while_growing(process, work)
    output = log.read_text(encoding="utf-8", errors="replace")
    return output if finished else f"{output}\n(no answer within {STALL_SECONDS:.0f} s)"


def _wait_while_growing(process: subprocess.Popen[bytes], work: Path) -> bool:
    """Wait for the process while files keep growing, kill it otherwise; return whether it ended itself."""
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


def _not_fetched(folder: Path, jar: Jar, actual: str | None, output: str) -> EnvironmentProblem:
    if actual is not None:
        return EnvironmentProblem(
            f"{jar.coordinate} has SHA-256 {actual} instead of {jar.sha256} and was discarded",
            f"a proxy or mirror changed it: configure another one in {SETTINGS_VARIABLE}, "
            f"or copy the correct {jar.name} into {folder}",
        )
    # Ivy writes the cause at the end of a line: "Server access error at url ... (java.net.X: cause)".
    cause = re.search(r"(?:access error.*|^)\((?:[\w.]+: )?([^()]+)\)\s*$", output, re.MULTILINE)
    because = f" ({cause[1]})" if cause else ""
    return EnvironmentProblem(
        f"{jar.coordinate} could not be fetched{because}",
        "check the network; behind a proxy set "
        "JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'; "
        f"for a mirror set {SETTINGS_VARIABLE} to an Ivy settings file; or copy {jar.name} into {folder}",
    )
