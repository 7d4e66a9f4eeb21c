"""Files and folders that are whole or not there.

    with atomic_file(Path("graph.dot"), force=False) as stream: ...     # written beside it, then renamed
    with atomic_files(Path("graph"), ("nodes.csv", "edges.csv"), force=True) as folder: ...
    with atomic_folder(Path("copy")) as folder: ...                    # with whatever is put into it

Nothing that exists is written over, unless that is asked for, and then only files: of a folder those of the
same names, while what else is in it stays. Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from codeanatomy.errors import StorageFailure, UsageError

NAME_CHARS = 200


@contextmanager
def atomic_file(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """A file to write; it has its name once all of it is there."""
    with _failing(path):
        # Through a link, to the file that it means.
        path = path.resolve() if path.is_symlink() else path
        _check_parent(path)
        if path.exists():
            if not path.is_file():
                raise UsageError(f"{path} is not a file", "name a file that is not there yet")
            if not force:
                raise _exists(path)
        partial = _beside(path)
        try:
            with partial.open("xb", buffering=1 << 20) as stream:
                yield stream
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_files(path: Path, names: Collection[str], *, force: bool) -> Iterator[Path]:
    """A folder to write files of these names into."""
    with _failing(path):
        _check_parent(path)
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file", "name a folder, which need not be there yet")
        if not force and any((path / name).exists() for name in names):
            raise _exists(path)
        if any((path / name).is_dir() for name in names):
            raise UsageError(f"in {path}, one of {', '.join(names)} is a folder", "name another folder")
        partial = _beside(path)
        partial.mkdir()
        try:
            yield partial
            if path.exists():
                for name in names:
                    (partial / name).replace(path / name)
            else:
                partial.rename(path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to write anything into; where there is one already, it must be empty."""
    with _failing(path):
        # Through a link, to the folder that it means.
        path = path.resolve()
        _check_parent(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(
                f"{_shown(path)} is there and not an empty folder", "name one that is not there yet"
            )
        partial = _beside(path)
        partial.mkdir()
        try:
            yield partial
            partial.rename(path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _failing(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise StorageFailure(
            f"{_shown(path)} cannot be written: {problem.strerror or problem}",
            "name a place with enough room that you may write to",
        ) from problem


def _check_parent(path: Path) -> None:
    if not path.name:
        raise UsageError(f"{path} has no name", "name a file or folder to write")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {_shown(path.parent)}", "make it first, or name another")


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:NAME_CHARS]}.{secrets.token_hex(4)}.partial")


def _exists(path: Path) -> UsageError:
    return UsageError(f"{_shown(path)} exists", "name another, or say --force to replace it")


def _shown(path: Path) -> str:
    return str(path)[-NAME_CHARS:]
