"""What this machine has and lacks for running CodeAnatomy, as data; no Spark session is started.

`examine` returns one `Check` per concern, always the same ones in the same order; none of them raises.

| status | meaning |
|---|---|
| ok | nothing to do |
| warn | works, but slower or with less: no class archive, little memory, no SCIP indexer |
| fail | a session will not start or will not work |

    for check in examine("4g"):
        print(f"{check.status:5} {check.name:8} {check.found}", check.next_step and f"-> {check.next_step}")

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
from codeanatomy.spark.jars import JARS, cache_folder, wrong_jars
from codeanatomy.spark.java import find_java

Status = Literal["ok", "warn", "fail"]

KB, MB, GB = 1024, 1024**2, 1024**3
# Delta's jars are compiled against one Spark; the packages must be the pair that they belong to.
PACKAGES = (("pyspark", "4.2.0"), ("delta-spark", "4.4.0"))
# Beside the driver's heap: Python workers, the JVM's own memory and Arrow's buffers.
BESIDE_HEAP = GB
LITTLE_DISK, NO_DISK = 2 * GB, 256 * MB
ANSWER_SECONDS = 60


class Check(Struct, frozen=True):
    """One concern: what was found, and what to do about it when that is not enough."""

    name: str
    status: Status
    found: str
    next_step: str = ""


def examine(driver_memory: str) -> tuple[Check, ...]:
    """Check everything that a session with this driver memory (such as `4g`) needs."""
    steps: tuple[tuple[str, Callable[[], Check]], ...] = (
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
    return tuple(_guarded(name, step) for name, step in steps)


def _guarded(name: str, step: Callable[[], Check]) -> Check:
    try:
        return step()
    except EnvironmentProblem as problem:
        return Check(name, "fail", problem.message, problem.hint)
    except OSError as problem:
        return Check(name, "fail", str(problem), "mend what the message names")


def _java() -> Check:
    java = find_java()
    return Check("java", "ok", f"Java {java.major} at {java.path}")


def _packages() -> Check:
    found, wrong = [], False
    for package, needed in PACKAGES:
        try:
            installed = version(package)
        except PackageNotFoundError:
            installed = "missing"
        found.append(
            f"{package} {installed}" if installed == needed else f"{package} {installed} ({needed} needed)"
        )
        wrong = wrong or installed != needed
    wanted = " ".join(f"{package}=={needed}" for package, needed in PACKAGES)
    return Check(
        "packages", "fail" if wrong else "ok", ", ".join(found), f"pip install {wanted}" if wrong else ""
    )


def _cache() -> Check:
    folder = cache_folder()
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check("cache", "ok", str(folder))
    except OSError as problem:
        return Check(
            "cache",
            "fail",
            f"{folder} cannot be written: {problem.strerror}",
            f"make it writable, or set {CACHE_VARIABLE} to a folder that is",
        )


def _jars() -> Check:
    folder = cache_folder() / "jars"
    wrong = wrong_jars(folder)
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
        ready = False  # What is missing has a check of its own.
    if ready:
        return Check("archive", "ok", f"class archive in {cache / 'archives'}")
    return Check("archive", "warn", "none: a session starts some seconds slower", "codeanatomy setup")


def _worker() -> Check:
    """The Python that executes on workers must be of the driver's minor version and have Arrow."""
    python = os.environ.get("PYSPARK_PYTHON") or sys.executable
    script = "import sys, pyarrow; print('%d.%d' % sys.version_info[:2], pyarrow.__version__)"
    fix = "set PYSPARK_PYTHON to a Python {}.{} that has pyarrow, or unset it".format(*sys.version_info[:2])
    done = _ask([python, "-c", script])
    if done is None:
        return Check("worker", "fail", f"{python} does not run", fix)
    if done.returncode:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        return Check("worker", "fail", f"{python}: {last}", fix)
    minor, arrow = (done.stdout.split() or ["of unknown version", ""])[-2:]
    driver = "{}.{}".format(*sys.version_info[:2])
    if minor != driver:
        return Check("worker", "fail", f"{python} is Python {minor}, the driver's is {driver}", fix)
    return Check("worker", "ok", f"Python {minor} with pyarrow {arrow} at {python}")


def _memory(driver_memory: str) -> Check:
    wanted = parse_memory(driver_memory)
    free = available_memory()
    if free is None:
        return Check(
            "memory", "warn", "this system does not tell its memory", f"make sure of {driver_memory}"
        )
    found = f"{free / GB:.1f} GiB available, {driver_memory} for the driver"
    if wanted > free:
        return Check("memory", "fail", found, "choose a smaller driver memory, or free some")
    if wanted + BESIDE_HEAP > free:
        return Check("memory", "warn", f"{found}: little is left for Python workers", "choose a smaller one")
    return Check("memory", "ok", found)


def parse_memory(text: str) -> int:
    """Bytes of a memory setting as Spark writes it; without a unit it means MiB.

    >>> parse_memory("4g") // MB, parse_memory("512m") // MB, parse_memory("512") // MB
    (4096, 512, 512)
    """
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    if found is None:
        raise EnvironmentProblem(f"{text!r} is not an amount of memory", "write it like 4g or 512m")
    unit = {"k": KB, "m": MB, "": MB, "g": GB, "t": 1024 * GB}[found[2]]
    return int(found[1]) * unit


def available_memory() -> int | None:
    """Bytes that a new process may use, within the container's limit if there is one."""
    known = [size for size in (_system_memory(), _container_memory()) if size is not None]
    return min(known, default=None)


def _system_memory() -> int | None:
    meminfo = _read(Path("/proc/meminfo"))
    found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    if found:
        return int(found[1]) * KB
    try:  # macOS tells only what is built in.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _container_memory() -> int | None:
    limit, used = (_read(Path("/sys/fs/cgroup", name)).strip() for name in ("memory.max", "memory.current"))
    if not (limit.isdigit() and used.isdigit()):
        return None
    # Cached files count as used, but give way.
    cached = re.search(r"^inactive_file (\d+)", _read(Path("/sys/fs/cgroup/memory.stat")), re.MULTILINE)
    return int(limit) - int(used) + (int(cached[1]) if cached else 0)


def _disk() -> Check:
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    folders = (cache_folder(), Path(local))
    room = [(shutil.disk_usage(folder).free, folder) for folder in folders if folder.is_dir()]
    free, folder = min(room)
    found = f"{free / GB:.1f} GiB free at {folder}"
    if free < LITTLE_DISK:
        status: Status = "fail" if free < NO_DISK else "warn"
        return Check("disk", status, found, f"free some, or set {CACHE_VARIABLE} and SPARK_LOCAL_DIRS")
    return Check("disk", "ok", found)


def _scip() -> Check:
    """SCIP is one witness of several: without its indexer the others still speak."""
    tools = (("node", "--version"), ("scip-python", "--version"))
    answers = {tool: _first_line(_ask([tool, flag])) for tool, flag in tools}
    missing = [tool for tool, answer in answers.items() if answer is None]
    if not missing:
        return Check("scip", "ok", ", ".join(f"{tool} {answer}" for tool, answer in answers.items()))
    steps = {"node": "install Node.js 16 or newer", "scip-python": "npm install -g @sourcegraph/scip-python"}
    return Check(
        "scip",
        "warn",
        f"no {' and no '.join(missing)}: SCIP evidence will be left out",
        "; then ".join(steps[tool] for tool in missing),
    )


def _types() -> Check:
    """So is the type checker."""
    from codeanatomy.extract.tools.pyrefly import find_pyrefly

    tool = find_pyrefly()
    answer = None if tool is None else _first_line(_ask([str(tool), "--version"]))
    if answer is not None:
        return Check("types", "ok", answer)
    found = "no pyrefly: what a type checker knows will be left out"
    return Check("types", "warn", found, "pip install 'codeanatomy[types]'")


def _ask(command: Iterable[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            list(command),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=ANSWER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _first_line(done: subprocess.CompletedProcess[str] | None) -> str | None:
    if done is None or done.returncode or not done.stdout.strip():
        return None
    return done.stdout.strip().splitlines()[0]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
