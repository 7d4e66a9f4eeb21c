"""Find and delete data files and log entries that no reader needs, without a JVM.

    removal = removable_files(RetentionGuard("lake"), "cpg_nodes", hours=168)
    removal.files, removal.kept     # files to delete; readers of files that are old enough to be deleted
    remove(removal)
    remove(removable_entries(RetentionGuard("lake"), "cpg_nodes", hours=720))

A file may be deleted if it is older than the retention and in no version that was current within it. If a
published run or a change-feed cursor still reads it (`maintain.retention`), it is kept and the reader is
reported. Log entries may be deleted if a checkpoint replaces them and no reader needs a version before it.

Delta's own VACUUM knows neither runs nor cursors, and starts from the newest version only: it would delete
files that a run which died has replaced, although they are published. The caller holds the lease of the lake.

Tests: `tests/unit/maintain/test_removal.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path, PurePosixPath

from msgspec import Struct, structs

from codeanatomy.delta.log.folder import StoredFile, folder_of
from codeanatomy.delta.log.replay import LOG, list_log
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import StorageFailure
from codeanatomy.maintain.retention import RetentionGuard
from codeanatomy.maintain.table_state import list_table_files

# A shorter retention may delete files that running readers and writers need.
SAFE_HOURS = 168.0
# Names of entries, checkpoints and checksums start with their version.
VERSION_PREFIX = re.compile(r"\.?(\d{20})\.")


class Removal(Struct, frozen=True):
    """Files of a table to delete, and files that are kept although they are old enough."""

    # The folder that the paths are relative to.
    folder: str
    files: tuple[StoredFile, ...]
    # Number of kept files by reader.
    kept: dict[str, int]

    @property
    def size_bytes(self) -> int:
        """The space that the deletion frees."""
        return sum(file.size_bytes for file in self.files)


def removable_files(guard: RetentionGuard, name: str, hours: float) -> Removal:
    """Find data files, deletion vectors and change files of a table that are not needed."""
    folder, needed = guard.folder(name), guard.retained_files(name, hours)
    cutoff = (guard.now - timedelta(hours=hours)).timestamp() * 1000
    old = [
        file
        for file in list_table_files(folder)
        if file.modified_ms < cutoff and file.name not in needed.recent
    ]
    kept = Counter(needed.files[file.name] for file in old if file.name in needed.files)
    return Removal(folder, tuple(file for file in old if file.name not in needed.files), dict(kept))


def removable_entries(guard: RetentionGuard, name: str, hours: float) -> Removal:
    """Find log entries and checkpoints before the newest checkpoint that all readers can start from."""
    folder, needed = guard.folder(name), guard.retained_files(name, hours)
    listing = list_log(folder)
    floor, free = (max(listing.checkpoint_before(least), 0) for least in (needed.first_version, needed.start))
    kept = sum(floor <= version < free for version in listing.entries)
    return Removal(folder, tuple(_log_files(folder, floor)), {needed.first_by: kept} if kept else {})


def _log_files(folder: str, floor: int) -> Iterator[StoredFile]:
    """Yield the files of a log for versions before `floor`."""
    for file in sorted(folder_of(folder).list_files(LOG), key=lambda file: file.name):
        version = VERSION_PREFIX.match(file.name)
        if version and int(version[1]) < floor:
            yield structs.replace(file, name=f"{LOG}/{file.name}")


def remove(removal: Removal) -> None:
    """Delete the files, with the checksums that Hadoop writes beside them, and folders that become empty."""
    folder = folder_of(removal.folder)
    paths = [PurePosixPath(file.name) for file in removal.files]
    try:
        folder.delete(str(path) for path in paths)
        if is_local(removal.folder):
            folder.delete(str(path.with_name(f".{path.name}.crc")) for path in paths)
            _remove_empty(Path(folder.local_root), {path.parent for path in paths})
    except OSError as error:
        raise StorageFailure(
            f"files of {removal.folder} cannot be removed: {error.strerror}: {error.filename}",
            "get write permission for its folder and run the command again",
        ) from error


def _remove_empty(root: Path, folders: Iterable[PurePosixPath]) -> None:
    """Remove the folders of partitions that are empty."""
    for each in sorted(folders, reverse=True):
        folder = root / each
        if folder != root and folder.name != LOG and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
