"""Build what several test processes read once, and keep it under `build/lakes` until the code changes.

    lake = cached("ask", build_ask_lake)          # build/lakes/ask-1f0c.../lake

The folder's name ends in a hash of the code that writes lakes (not of `READERS`), of the module that builds
this one, and of `tests/cases/ask`. A folder is complete when it contains `result.txt`; a second process waits
for the first. The last few folders stay, because another process may still read them.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from support.folders import CASES, ROOT, TESTS

LAKES = ROOT / "build" / "lakes"
SOURCE = ROOT / "src" / "codeanatomy"
# Packages that only read lakes.
READERS = ("cli", "query", "serve")
# Modules of `tests/support` that build lakes for others.
BUILDERS = ("corpus", "light_builds", "spark_builds")
KEPT = 3


def cached(name: str, build: Callable[[Path], Path]) -> Path:
    """Return what `build` makes in a folder of its own; it must lie below that folder."""
    folder = LAKES / f"{name}-{code_hash(build.__module__)}"
    result = folder / "result.txt"
    LAKES.mkdir(parents=True, exist_ok=True)
    with (LAKES / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.is_file():
            others = sorted(LAKES.glob(f"{name}-*"), key=lambda old: old.stat().st_mtime)
            for old in (folder, *others[: -KEPT + 1]):
                shutil.rmtree(old, ignore_errors=True)
            folder.mkdir(parents=True)
            made = build(folder)
            result.write_text(made.relative_to(folder).as_posix(), encoding="utf-8")
    return folder / result.read_text(encoding="utf-8")


@cache
def code_hash(builder: str) -> str:
    """Hash everything that a lake follows from, if a module builds it."""
    digest = hashlib.sha256(sys.version.encode())
    for path in _sources(builder.rpartition(".")[2]):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(builder: str) -> Iterator[Path]:
    yield from (TESTS / "support" / f"{name}.py" for name in sorted({builder, *BUILDERS}))
    for folder in (SOURCE, CASES / "ask"):
        readers = [folder / name for name in READERS]
        yield from sorted(path for path in folder.rglob("*.py") if not _is_below(path, readers))


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return not set(folders).isdisjoint(path.parents)
