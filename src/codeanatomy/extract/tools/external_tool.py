"""Run an external tool on links to the sources of a repository, for a limited time.

    tree/requests/api.py -> the file          no pyproject.toml, no other file that could configure the tool
    exit = run_limited(command, environment, log, deadline)
    exit.code         # None if the time was up

The analysed code must not run, and nothing may be written beside it. The modules of the tools describe what
else that requires: `tools.scip_python`, `tools.pyrefly`. On Linux a tool ends with the process that runs it,
even if that is killed, as Spark does with the Python workers of a cancelled job.

Tests: `tests/unit/extract/test_scip_python.py`, `tests/unit/extract/test_pyrefly.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.sources.listing import Entry, decode_location
from codeanatomy.sources.reading import read_entries

SUFFIXES = frozenset({".py", ".pyi"})
LAST_LINES = 5
VERSION_SECONDS = 20.0
RUNNING: set[subprocess.Popen[bytes]] = set()
# Request SIGKILL for the death of the parent, then become the tool. This is a program, not a function between
# fork and exec, because the parent may have threads. Its arguments: process id of the parent, command.
END_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
# Python ignores these, and a command inherits that.
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(ignored, signal.SIG_DFL)
if os.getppid() == int(sys.argv[1]):
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as problem:
        problem.filename = sys.argv[2]
        print(problem)
sys.exit(127)
"""


class ToolExit(Struct, frozen=True):
    """Exit code (None if the time was up), output and duration of a tool."""

    code: int | None
    output: str
    seconds: float

    @property
    def last_lines(self) -> str:
        """The end of the output, which usually has the error."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return "\n".join(lines[-LAST_LINES:])


def is_source(path: str) -> bool:
    """Return whether the tools analyse a file with this path."""
    parts = PurePosixPath(path)
    return parts.suffix in SUFFIXES and not parts.is_absolute() and ".." not in parts.parts


def link_sources(folder: Path, paths: Iterable[str], tree: Path) -> list[str]:
    """Create links to the sources among the paths; return the paths that were linked.

    A file that is gone, or whose name is not the path because it cannot be decoded, is left out: a link to
    nothing ends the type checker.
    """
    tree.mkdir(parents=True)
    linked = [path for path in sorted(set(paths)) if is_source(path) and (folder / path).exists()]
    for path in linked:
        link = tree / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder / path)
    return linked


def import_roots(sources: Iterable[str]) -> list[str]:
    """Return the folders named `src` that are not packages: `src/pkg/a.py` is imported as `pkg.a`.

    >>> import_roots(["src/pkg/a.py", "lib/src/__init__.py", "lib/src/b.py"])
    ['src']
    """
    files = set(sources)
    folders = {parent for path in files for parent in PurePosixPath(path).parents if parent.name == "src"}
    return sorted(folder.as_posix() for folder in folders if str(folder / "__init__.py") not in files)


def sources_folder(
    root: RepositoryRoot, entries: Sequence[Entry], unpacked: Path, options: ExtractOptions
) -> Path:
    """Return a folder with the sources as files: the listed one, or that where others are unpacked."""
    if root.kind == "folder":
        return Path(decode_location(root.root))
    # Paths of a listing never lead out of its root.
    for reading in read_entries(root.kind, root.root, entries, options):
        if reading.raw is not None:
            path = unpacked / reading.entry.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(reading.raw)
    return unpacked


def run_limited(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    deadline: float,
    *,
    cwd: Path | None = None,
) -> ToolExit:
    """Run a tool in a session of its own, so that its child processes end with it."""
    started = time.monotonic()
    with log.open("wb") as log_file:
        try:
            process = subprocess.Popen(
                [*_start(), *command],
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as problem:
            return ToolExit(127, str(problem), 0)
        RUNNING.add(process)
        try:
            code: int | None = process.wait(max(0.0, deadline - started))
        except subprocess.TimeoutExpired:
            code = None
        finally:
            RUNNING.discard(process)
            _kill(process)
    output = log.read_text(encoding="utf-8", errors="replace")
    return ToolExit(code, output, time.monotonic() - started)


def _start() -> list[str]:
    """Return the start of a command line, such that the tool ends with this process, however that ends."""
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", "-c", END_WITH_PARENT, str(os.getpid())]


def kill_tools() -> None:
    """Kill the tools of this process that are still running when a run is cancelled."""
    for process in tuple(RUNNING):
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def tool_version(tool: Path) -> str:
    """Return the first line that a tool prints for `--version`; its name if that fails."""
    with tempfile.TemporaryDirectory(prefix="codeanatomy-tool-") as work:
        deadline = time.monotonic() + VERSION_SECONDS
        result = run_limited([str(tool), "--version"], os.environ, Path(work) / "log", deadline)
    version = result.output.strip().partition("\n")[0][:100] if result.code == 0 else ""
    return version or tool.name
