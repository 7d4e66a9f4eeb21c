"""Check that this machine can run CodeAnatomy, without starting a Spark session.

`examine` returns one `Check` per requirement, always the same ones in the same order; none of them raises.

| status | meaning |
|---|---|
| ok | nothing to do |
| warn | works, but slower or with less: no class archive, little memory, no SCIP indexer |
| fail | a session will not start or will not work |
| skip | not checked, because an earlier check failed (`cli.store_checks`) |

    for check in examine("4g"):
        print(f"{check.status:5} {check.name:8} {check.detail}", check.next_step and f"-> {check.next_step}")

    ok    java     Java 17 at /usr/bin/java
    warn  archive  none: a session starts some seconds slower -> codeanatomy setup

Tests: `tests/unit/cli/test_doctor.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeanatomy.config import CACHE_VARIABLE
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.spark.class_archive import java_options
from codeanatomy.spark.jars import JARS, cache_folder, invalid_jars
from codeanatomy.spark.java import find_java

Status = Literal["ok", "warn", "fail", "skip"]

KB, MB, GB = 1024, 1024**2, 1024**3
# Delta's jars are compiled against one Spark; the packages must be the pair that they belong to.
PACKAGES = (("pyspark", "4.2.0"), ("delta-spark", "4.4.0"))
# Beside the driver's heap: Python workers, the JVM's own memory and Arrow's buffers.
BESIDE_HEAP = GB
LITTLE_DISK, NO_DISK = 2 * GB, 256 * MB
TIMEOUT_SECONDS = 60


class Check(Struct, frozen=True):
    """One requirement: its state on this machine, and what to do if that is not enough."""

    name: str
    status: Status
    detail: str
    next_step: str = ""


def examine(driver_memory: str) -> tuple[Check, ...]:
    """Check all requirements of a session with this driver memory (such as `4g`)."""
    checks: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("python", _python),
        ("java", _java),
        ("packages", _packages),
        ("cache", _cache),
        ("jars", _jars),
        ("archive", _archive),
        ("worker", _worker),
        ("memory", partial(_memory, driver_memory)),
        ("disk", _disk),
        ("scip", _scip),
        ("types", _types),
    )
    return tuple(_run_check(name, check) for name, check in checks)


def _run_check(name: str, check: Callable[[], Check]) -> Check:
    """Run a check; an error is a failed check."""
    try:
        return check()
    except EnvironmentProblem as error:
        return Check(name, "fail", error.message, error.hint)
    except OSError as error:
        return Check(name, "fail", str(error), "fix this problem and run doctor again")


def _java() -> Check:
    java = find_java()
    return Check("java", "ok", f"Java {java.major} at {java.path}")


def _packages() -> Check:
    states, wrong = [], False
    for package, needed in PACKAGES:
        try:
            installed = version(package)
        except PackageNotFoundError:
            installed = "missing"
        states.append(
            f"{package} {installed}" if installed == needed else f"{package} {installed} ({needed} needed)"
        )
        wrong = wrong or installed != needed
    pinned = " ".join(f"{package}=={needed}" for package, needed in PACKAGES)
    return Check(
        "packages", "fail" if wrong else "ok", ", ".join(states), f"pip install {pinned}" if wrong else ""
    )


def _cache() -> Check:
    folder = cache_folder()
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check("cache", "ok", str(folder))
    except OSError as error:
        return Check(
            "cache",
            "fail",
            f"{folder} cannot be written: {error.strerror}",
            f"make it writable, or set {CACHE_VARIABLE} to a writable folder",
        )


def _jars() -> Check:
    folder = cache_folder() / "jars"
    wrong = invalid_jars(folder)
    if wrong:
        names = ", ".join(jar.name for jar in wrong)
        return Check("jars", "fail", f"missing or damaged in {folder}: {names}", "codeanatomy setup")
    return Check("jars", "ok", f"{len(JARS)} jars in {folder}, every SHA-256 as pinned")


def _archive() -> Check:
    cache = cache_folder()
    jars = tuple(cache / "jars" / jar.name for jar in JARS)
    try:
        ready = bool(java_options(cache, find_java(), jars))
    except (EnvironmentProblem, OSError):
        ready = False  # Java and the jars have checks of their own.
    if ready:
        return Check("archive", "ok", f"class archive in {cache / 'archives'}")
    return Check("archive", "warn", "none: a session starts some seconds slower", "codeanatomy setup")


def _worker() -> Check:
    """Check that the workers' Python has the driver's minor version and pyarrow."""
    python = os.environ.get("PYSPARK_PYTHON") or sys.executable
    script = "import sys, pyarrow; print('%d.%d' % sys.version_info[:2], pyarrow.__version__)"
    fix = "set PYSPARK_PYTHON to a Python {}.{} that has pyarrow, or unset it".format(*sys.version_info[:2])
    process = _run([python, "-c", script])
    if process is None:
        return Check("worker", "fail", f"{python} does not run", fix)
    if process.returncode:
        last = (process.stderr.strip() or "no output").splitlines()[-1]
        return Check("worker", "fail", f"{python}: {last}", fix)
    minor, arrow = (process.stdout.split() or ["of unknown version", ""])[-2:]
    driver = "{}.{}".format(*sys.version_info[:2])
    if minor != driver:
        return Check("worker", "fail", f"{python} is Python {minor}, the driver's is {driver}", fix)
    return Check("worker", "ok", f"Python {minor} with pyarrow {arrow} at {python}")


def _memory(driver_memory: str) -> Check:
    needed = parse_memory(driver_memory)
    free = available_memory()
    if free is None:
        return Check(
            "memory",
            "warn",
            "the available memory of this system is not known",
            f"make sure that {driver_memory} are free",
        )
    state = f"{free / GB:.1f} GiB available, {driver_memory} for the driver"
    if needed > free:
        return Check("memory", "fail", state, "set a smaller runtime.driver_memory, or free some memory")
    if needed + BESIDE_HEAP > free:
        return Check(
            "memory",
            "warn",
            f"{state}: little is left for Python workers",
            "set a smaller runtime.driver_memory",
        )
    return Check("memory", "ok", state)


def parse_memory(text: str) -> int:
    """Parse a memory setting of Spark into bytes; without a unit it means MiB.

    >>> parse_memory("4g") // MB, parse_memory("512m") // MB, parse_memory("512") // MB
    (4096, 512, 512)
    """
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    if match is None:
        raise EnvironmentProblem(f"{text!r} is not an amount of memory", "write it like 4g or 512m")
    unit = {"k": KB, "m": MB, "": MB, "g": GB, "t": 1024 * GB}[match[2]]
    return int(match[1]) * unit


def available_memory() -> int | None:
    """Return the bytes that a new process may use, within the container's limit; None if not known."""
    known = [size for size in (_system_memory(), _container_memory()) if size is not None]
    return min(known, default=None)


def _system_memory() -> int | None:
    meminfo = _read(Path("/proc/meminfo"))
    available = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    if available:
        return int(available[1]) * KB
    try:  # macOS reports only the installed memory.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _container_memory() -> int | None:
    limit, used = (_read(Path("/sys/fs/cgroup", name)).strip() for name in ("memory.max", "memory.current"))
    if not (limit.isdigit() and used.isdigit()):
        return None
    # Cached files count as used, but are freed on demand.
    cached = re.search(r"^inactive_file (\d+)", _read(Path("/sys/fs/cgroup/memory.stat")), re.MULTILINE)
    return int(limit) - int(used) + (int(cached[1]) if cached else 0)


def _disk() -> Check:
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    folders = (cache_folder(), Path(local))
    room = [(shutil.disk_usage(folder).free, folder) for folder in folders if folder.is_dir()]
    free, folder = min(room)
    state = f"{free / GB:.1f} GiB free at {folder}"
    if free < LITTLE_DISK:
        status: Status = "fail" if free < NO_DISK else "warn"
        return Check("disk", status, state, f"free some space, or set {CACHE_VARIABLE} and SPARK_LOCAL_DIRS")
    return Check("disk", "ok", state)


def _python() -> Check:
    """Name the interpreter, which is the parser of the sources."""
    running = ".".join(map(str, sys.version_info[:3]))
    return Check("python", "ok", f"Python {running}: it parses the sources, with the syntax of its version")


def _scip() -> Check:
    """Check the SCIP indexer; it is optional."""
    tools = (("node", "--version"), ("scip-python", "--version"))
    versions = {tool: _first_line(_run([tool, flag])) for tool, flag in tools}
    missing = [tool for tool, answer in versions.items() if answer is None]
    if not missing:
        return Check("scip", "ok", ", ".join(f"{tool} {answer}" for tool, answer in versions.items()))
    steps = {"node": "install Node.js 16 or newer", "scip-python": "npm install -g @sourcegraph/scip-python"}
    return Check(
        "scip",
        "warn",
        f"no {' and no '.join(missing)}: SCIP evidence will be left out",
        "; then ".join(steps[tool] for tool in missing),
    )


def _types() -> Check:
    """Check the type checker; it is optional."""
    from codeanatomy.extract.tools.pyrefly import find_pyrefly

    tool = find_pyrefly()
    answer = None if tool is None else _first_line(_run([str(tool), "--version"]))
    if answer is not None:
        return Check("types", "ok", answer)
    state = "no pyrefly: evidence of the type checker will be left out"
    return Check("types", "warn", state, "pip install 'codeanatomy[types]'")


def _run(command: Iterable[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            list(command),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _first_line(process: subprocess.CompletedProcess[str] | None) -> str | None:
    if process is None or process.returncode or not process.stdout.strip():
        return None
    return process.stdout.strip().splitlines()[0]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
