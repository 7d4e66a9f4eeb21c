"""Write files and folders atomically: an output is complete or does not exist.

    with atomic_file(Path("graph.dot"), force=False) as stream: ...     # written beside it, then renamed
    with atomic_files(Path("graph"), ("nodes.csv", "edges.csv"), force=True) as folder: ...
    with atomic_folder(Path("copy")) as folder: ...                    # with any content

Existing files are replaced only with `force=True`; in an existing folder only the files of the given names
are replaced, and other files stay. Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from codeanatomy.errors import StorageFailure, UsageError

# Longer names are truncated in names of partial files and in messages.
NAME_CHARS = 200


@contextmanager
def atomic_file(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open a temporary file that gets its name when the `with` block succeeds."""
    with _wrap_os_errors(path):
        # Replace the target of a symbolic link, not the link.
        path = path.resolve() if path.is_symlink() else path
        _check_parent(path)
        if path.exists():
            if not path.is_file():
                raise UsageError(f"{path} is not a file", "choose a path that does not exist yet")
            if not force:
                raise _exists(path)
        partial = _partial_path(path)
        try:
            with partial.open("xb", buffering=1 << 20) as stream:
                yield stream
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_files(path: Path, names: Collection[str], *, force: bool) -> Iterator[Path]:
    """Open a temporary folder for files of these names; move them to `path` when the block succeeds."""
    with _wrap_os_errors(path):
        _check_parent(path)
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file", "choose a folder; it need not exist yet")
        if not force and any((path / name).exists() for name in names):
            raise _exists(path)
        if any((path / name).is_dir() for name in names):
            raise UsageError(f"one of {', '.join(names)} in {path} is a folder", "choose another folder")
        partial = _partial_path(path)
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
    """Open a temporary folder for any content; rename it to `path`, which must be empty or not exist."""
    with _wrap_os_errors(path):
        # Replace the target of a symbolic link, not the link.
        path = path.resolve()
        _check_parent(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(
                f"{_shown(path)} exists and is not an empty folder", "choose a path that does not exist yet"
            )
        partial = _partial_path(path)
        partial.mkdir()
        try:
            yield partial
            partial.rename(path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _wrap_os_errors(path: Path) -> Iterator[None]:
    """Raise StorageFailure instead of an OSError, except for a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise StorageFailure(
            f"{_shown(path)} cannot be written: {problem.strerror or problem}",
            "choose a path that you may write to, on a disk with enough space",
        ) from problem


def _check_parent(path: Path) -> None:
    if not path.name:
        raise UsageError(f"{path} has no file name", "give the path of a file or folder")
    if not path.parent.is_dir():
        raise UsageError(
            f"the folder {_shown(path.parent)} does not exist", "create it first, or choose another"
        )


def _partial_path(path: Path) -> Path:
    return path.with_name(f".{path.name[:NAME_CHARS]}.{secrets.token_hex(4)}.partial")


def _exists(path: Path) -> UsageError:
    return UsageError(f"{_shown(path)} exists", "choose another path, or use --force to replace it")


def _shown(path: Path) -> str:
    return str(path)[-NAME_CHARS:]
