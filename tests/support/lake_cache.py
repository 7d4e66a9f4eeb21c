"""Build what several test processes read once, and keep it under `build/lakes` until the code changes.

    lake = cached("ask", build_ask_lake)          # build/lakes/ask-1f0c.../lake

The folder's name ends in a hash of the sources of the product and of everything below `tests/support` and
`tests/cases/ask`. A folder is complete when it contains `result.txt`; a second process waits for the first.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from support.folders import CASES, ROOT, TESTS

LAKES = ROOT / "build" / "lakes"


def cached(name: str, build: Callable[[Path], Path]) -> Path:
    """Return what `build` makes in a folder of its own; it must lie below that folder."""
    folder = LAKES / f"{name}-{code_hash()}"
    result = folder / "result.txt"
    LAKES.mkdir(parents=True, exist_ok=True)
    with (LAKES / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.is_file():
            for old in LAKES.glob(f"{name}-*"):
                shutil.rmtree(old, ignore_errors=True)
            folder.mkdir(parents=True)
            made = build(folder)
            result.write_text(made.relative_to(folder).as_posix(), encoding="utf-8")
    return folder / result.read_text(encoding="utf-8")


@cache
def code_hash() -> str:
    """Hash everything that a lake follows from."""
    digest = hashlib.sha256(sys.version.encode())
    for path in _sources():
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    for folder in (ROOT / "src", TESTS / "support", CASES / "ask"):
        yield from sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
