"""Detect in a few milliseconds whether a source has changed since it was built.

    source_freshness(reader, snapshot.repositories["requests"])     # "changed"

Every file that was read is checked with `lstat`: a missing file is a change; one of another size or time is
read, and its digest compared. A folder modified after the build started may have new files: if it has entries
that are not in the lake, the source is listed as a build would list it (`source_state`), which is exact but
slower. Not detected: a file that was changed but has its old size and modification time.

Tests: `tests/unit/query/test_freshness.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import ConfigError, StorageFailure, UsageError
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.query.answers import SourceState
from codeanatomy.query.engines.statements import Query, Reader, Slice

if TYPE_CHECKING:
    from codeanatomy.config import RuntimeProfile

# Folders that tools create all the time and that no build reads.
IGNORED_FOLDERS = ("__pycache__",)


def source_freshness(reader: Reader, row: RunManifest) -> SourceState:
    """Return whether the source of a repository has changed since it was built."""
    # An object store takes too long to be checked for every answer; `status` does it.
    if row.source_digest is None or not row.repo_root or not is_local(row.repo_root):
        return "unknown"
    root = row.repo_root.rstrip("/")
    if not Path(root).is_dir():
        # An archive, or missing: rare, and usually not large.
        return _exact_state(row)
    query = Query(
        "SELECT f.path, f.size_bytes, f.mtime_ns, f.file_sha256 FROM f",
        {"f": Slice("repo_files_v1", repo_id=(row.repo_id,))},
    )
    files = reader.rows(query)
    known = {f"{root}/{path}" for path, *_ in files}
    try:
        if any(_has_changed(f"{root}/{path}", *facts) for path, *facts in files):
            return "changed"
        if not _has_new_entries(_folders(root, known), known, row.started_at):
            return "unchanged"
    except OSError:
        # A file is missing, cannot be read, or has a name that cannot be decoded.
        pass
    return _exact_state(row)


# Paths are strings here: creating a Path takes longer than the system call.
# ruff: noqa: PTH116


def _has_changed(file: str, size: int | None, time_ns: int | None, digest: str | None) -> bool:
    """Whether a file differs from the one that was read."""
    # A file that was skipped has no digest, and its content does not matter.
    facts = os.lstat(file) if digest is not None else None
    if facts is None or (facts.st_size == size and facts.st_mtime_ns == time_ns):
        return False
    return facts.st_size != size or sha256(Path(file).read_bytes()).hexdigest() != digest


def _folders(root: str, files: Iterable[str]) -> set[str]:
    """Return all folders from the root down to the files."""
    folders, level = {root}, {file.rpartition("/")[0] for file in files}
    while level - folders:
        folders |= level
        level = {folder.rpartition("/")[0] for folder in level if len(folder) > len(root)}
    return folders


def _has_new_entries(folders: set[str], known: set[str], since: datetime) -> bool:
    """Whether a folder modified after `since` has entries that a build may read and the lake lacks."""
    for folder in folders:
        # The clock of a file system may be a little behind.
        if os.stat(folder).st_mtime < since.timestamp() - 2:
            continue
        with os.scandir(folder) as entries:
            if any(_is_new(entry, folders, known) for entry in entries):
                return True
    return False


def _is_new(entry: os.DirEntry[str], folders: set[str], known: set[str]) -> bool:
    from codeanatomy.sources.listing import may_be_source

    if entry.is_dir(follow_symlinks=False):
        return (
            entry.path not in folders and entry.name not in IGNORED_FOLDERS and not entry.name.startswith(".")
        )
    return entry.path not in known and may_be_source(entry.path)


def source_state(
    row: RunManifest, options: ExtractOptions, profile: RuntimeProfile | None = None
) -> SourceState:
    """Return whether a source has changed, exactly: list it and read its files as a build would.

    One in an object store is opened with the storage options of the profile; unknown without a profile.
    """
    from codeanatomy.plan.repositories import list_repository
    from codeanatomy.plan.stored_sources import register_sources
    from codeanatomy.sources.digest import source_digest

    if row.source_digest is None or not row.repo_root:
        return "unknown"
    path = Path(row.repo_root)
    if not is_local(row.repo_root):
        if profile is None:
            return "unknown"
        register_sources([row.repo_root], profile)
    try:
        digest = source_digest(list_repository(row.repo_root, options), options)
    except (UsageError, StorageFailure) as problem:
        # A relative path may be valid in another folder; a source that cannot be opened may still exist.
        missing = isinstance(problem.__cause__, FileNotFoundError | NotADirectoryError)
        return "gone" if missing and path.is_absolute() else "unknown"
    return "unchanged" if digest == row.source_digest else "changed"


def _exact_state(row: RunManifest) -> SourceState:
    from codeanatomy.config import load_settings

    try:
        return source_state(row, load_settings(()).extract)
    except ConfigError:
        # The settings file of the current folder is invalid; a query must work without it.
        return "unknown"
