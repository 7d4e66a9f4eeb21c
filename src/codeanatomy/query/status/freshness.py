"""Whether a source is still what was built, found out in a few milliseconds.

    source_freshness(reader, snapshot.repositories["requests"])     # "changed"

Every file that was read is looked up: one that is gone has changed, one of another size or time is read and
its digest compared. A folder that was written to since may have new files: if it has entries that the lake
does not know, the source is listed as a build would list it (`source_state`), which takes longer and is
exact. What this misses: a file that was changed and given back its old size and time.

Tests: `tests/unit/query/test_freshness.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import ConfigError, UsageError
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.query.answers import SourceState
from codeanatomy.query.engines.statements import Query, Reader, Slice

# Folders that hold nothing a build reads, made by tools all the time.
PASSED = ("__pycache__",)


def source_freshness(reader: Reader, row: RunManifest) -> SourceState:
    """Whether the source of a repository is still what its rows were made from."""
    if row.source_digest is None or not row.repo_root:
        return "unknown"
    root = row.repo_root.rstrip("/")
    if not Path(root).is_dir():
        # An archive, or gone: rare, and then not large.
        return _exactly(row)
    query = Query(
        "SELECT f.path, f.size_bytes, f.mtime_ns, f.file_sha256 FROM f",
        {"f": Slice("repo_files_v1", repo_id=(row.repo_id,))},
    )
    files = reader.rows(query)
    known = {f"{root}/{path}" for path, *_ in files}
    try:
        if any(_is_other(f"{root}/{path}", *facts) for path, *facts in files):
            return "changed"
        if not _has_more(_folders(root, known), known, row.started_at):
            return "unchanged"
    except OSError:
        # Something is gone, cannot be read, or has a name that is no text.
        pass
    return _exactly(row)


# Paths are texts here: to make a Path of each takes longer than to ask the system about it.
# ruff: noqa: PTH116


def _is_other(file: str, size: int | None, time_ns: int | None, digest: str | None) -> bool:
    """Whether a file is not what was read."""
    # One that was not read may be anything.
    facts = os.lstat(file) if digest is not None else None
    if facts is None or (facts.st_size == size and facts.st_mtime_ns == time_ns):
        return False
    return facts.st_size != size or sha256(Path(file).read_bytes()).hexdigest() != digest


def _folders(root: str, files: Iterable[str]) -> set[str]:
    """The folders from the root to the files."""
    found, level = {root}, {file.rpartition("/")[0] for file in files}
    while level - found:
        found |= level
        level = {folder.rpartition("/")[0] for folder in level if len(folder) > len(root)}
    return found


def _has_more(folders: set[str], known: set[str], since: datetime) -> bool:
    """Whether a folder that was written to since has entries that may be read and are not known."""
    for folder in folders:
        # A clock of a file system may be a little behind.
        if os.stat(folder).st_mtime < since.timestamp() - 2:
            continue
        with os.scandir(folder) as entries:
            if any(_is_new(entry, folders, known) for entry in entries):
                return True
    return False


def _is_new(entry: os.DirEntry[str], folders: set[str], known: set[str]) -> bool:
    from codeanatomy.sources.listing import may_be_python

    if entry.is_dir(follow_symlinks=False):
        return entry.path not in folders and entry.name not in PASSED and not entry.name.startswith(".")
    return entry.path not in known and may_be_python(entry.name)


def source_state(row: RunManifest, options: ExtractOptions) -> SourceState:
    """The same by its bytes: the source is listed and read as a build would."""
    from codeanatomy.sources.detect import list_source
    from codeanatomy.sources.digest import source_digest

    if row.source_digest is None or not row.repo_root:
        return "unknown"
    path = Path(row.repo_root)
    try:
        digest = source_digest(list_source(path, options), options)
    except UsageError as problem:
        # A relative path may be right in another folder; what cannot be opened may still be there.
        missing = isinstance(problem.__cause__, FileNotFoundError | NotADirectoryError)
        return "gone" if missing and path.is_absolute() else "unknown"
    return "unchanged" if digest == row.source_digest else "changed"


def _exactly(row: RunManifest) -> SourceState:
    from codeanatomy.config import load_settings

    try:
        return source_state(row, load_settings(()).extract)
    except ConfigError:
        # Of the settings of this folder; a question does not need them.
        return "unknown"
