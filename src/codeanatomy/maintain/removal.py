"""Find and delete data files and log entries that no reader needs. Local tables, no JVM.

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
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from msgspec import Struct

from codeanatomy.delta.log.replay import list_log
from codeanatomy.errors import StorageFailure
from codeanatomy.maintain.retention import RetentionGuard
from codeanatomy.maintain.table_state import LOG_FOLDER, TableFile, list_table_files

# A shorter retention may delete files that running readers and writers need.
SAFE_HOURS = 168.0
# Names of entries, checkpoints and checksums start with their version.
VERSION_PREFIX = re.compile(r"\.?(\d{20})\.")


class Removal(Struct, frozen=True):
    """Files of a table to delete, and files that are kept although they are old enough."""

    # The folder that the paths are relative to.
    folder: str
    files: tuple[TableFile, ...]
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
        if file.written_ms < cutoff and file.path not in needed.recent
    ]
    kept = Counter(needed.files[file.path] for file in old if file.path in needed.files)
    return Removal(folder, tuple(file for file in old if file.path not in needed.files), dict(kept))


def removable_entries(guard: RetentionGuard, name: str, hours: float) -> Removal:
    """Find log entries and checkpoints before the newest checkpoint that all readers can start from."""
    folder, needed = guard.folder(name), guard.retained_files(name, hours)
    listing = list_log(folder)
    floor, free = (max(listing.checkpoint_before(least), 0) for least in (needed.first_version, needed.start))
    kept = sum(floor <= version < free for version in listing.entries)
    return Removal(folder, tuple(_log_files(folder, floor)), {needed.first_by: kept} if kept else {})


def _log_files(folder: str, floor: int) -> Iterator[TableFile]:
    """Yield the files of a log for versions before `floor`."""
    for path in sorted(Path(folder, LOG_FOLDER).iterdir()):
        version = VERSION_PREFIX.match(path.name)
        if version and int(version[1]) < floor and path.is_file():
            stat = path.stat()
            yield TableFile(f"{LOG_FOLDER}/{path.name}", stat.st_size, int(stat.st_mtime * 1000))


def remove(removal: Removal) -> None:
    """Delete the files, and the folders of partitions that become empty."""
    folders: set[Path] = set()
    for file in removal.files:
        path = Path(removal.folder, file.path)
        try:
            path.unlink(missing_ok=True)
            # The checksum that Hadoop writes beside each file.
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        except OSError as error:
            raise StorageFailure(
                f"{path} cannot be removed: {error.strerror}",
                "get write permission for its folder and run the command again",
            ) from error
        folders.add(path.parent)
    for folder in sorted(folders, reverse=True):
        if folder != Path(removal.folder) and folder.name != LOG_FOLDER and not any(folder.iterdir()):
            folder.rmdir()
