"""A foreign tool on a repository: it sees links to the sources and no more, for a limited time.

    tree/requests/api.py -> the file          no pyproject.toml, no other file that could steer the tool
    ended = run_limited(command, environment, log, deadline)
    ended.code        # none if the time was up

The analysed code must not run, and nothing may be written beside it. What else that takes is told with each
tool: `scip_python`, `pyrefly`.

Tests: `tests/unit/extract/test_scip_python.py`, `tests/unit/extract/test_pyrefly.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.listing import Entry, Listing, decode_location
from codeanatomy.sources.reading import read_entries

SUFFIXES = frozenset({".py", ".pyi"})
LAST_LINES = 5
VERSION_SECONDS = 20.0
RUNNING: set[subprocess.Popen[bytes]] = set()


class Ended(Struct, frozen=True):
    """How a tool ended; no code if the time was up."""

    code: int | None
    said: str
    seconds: float

    @property
    def last_lines(self) -> str:
        """The end of what it said, which tells most."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        return "\n".join(lines[-LAST_LINES:])


def is_source(path: str) -> bool:
    """Whether the tools look at such a file."""
    parts = PurePosixPath(path)
    return parts.suffix in SUFFIXES and not parts.is_absolute() and ".." not in parts.parts


def link_sources(folder: Path, paths: Iterable[str], tree: Path) -> list[str]:
    """Links to the sources among the paths; others are of no use to the tools."""
    tree.mkdir()
    linked = [path for path in sorted(set(paths)) if is_source(path)]
    for path in linked:
        link = tree / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder / path)
    return linked


def import_roots(sources: Iterable[str]) -> list[str]:
    """The folders named `src` that are no packages: `src/pkg/a.py` is `pkg.a`.

    >>> import_roots(["src/pkg/a.py", "lib/src/__init__.py", "lib/src/b.py"])
    ['src']
    """
    files = set(sources)
    folders = {parent for path in files for parent in PurePosixPath(path).parents if parent.name == "src"}
    return sorted(folder.as_posix() for folder in folders if str(folder / "__init__.py") not in files)


def sources_folder(
    listing: Listing, entries: Sequence[Entry], unpacked: Path, options: ExtractOptions
) -> Path:
    """Where the sources are files: the folder itself, or where an archive's were unpacked to."""
    if listing.kind == "folder":
        return Path(decode_location(listing.root))
    # Paths of a listing never lead out.
    for reading in read_entries(listing.kind, listing.root, entries, options):
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
) -> Ended:
    """Run a tool in a session of its own, so that nothing of it outlives its time."""
    begun = time.monotonic()
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as problem:
            return Ended(127, str(problem), 0)
        RUNNING.add(process)
        try:
            code: int | None = process.wait(max(0.0, deadline - begun))
        except subprocess.TimeoutExpired:
            code = None
        finally:
            RUNNING.discard(process)
            _end(process)
    said = log.read_text(encoding="utf-8", errors="replace")
    return Ended(code, said, time.monotonic() - begun)


def end_tools() -> None:
    """End the tools that are running: nobody waits for them any more."""
    for process in tuple(RUNNING):
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def tool_version(tool: Path) -> str:
    """What a tool says of its version, in its own words; its name if it says nothing."""
    with tempfile.TemporaryDirectory(prefix="codeanatomy-tool-") as work:
        deadline = time.monotonic() + VERSION_SECONDS
        ended = run_limited([str(tool), "--version"], os.environ, Path(work) / "said", deadline)
    said = ended.said.strip().partition("\n")[0][:100] if ended.code == 0 else ""
    return said or tool.name
