"""Files and log entries that nobody needs any more, found and removed. Local tables, no JVM.

    found = removable_files(Guard("lake"), "cpg_nodes", hours=168)
    found.files, found.kept     # what would go; and who else needs files that are old enough to go
    remove(found)
    remove(removable_entries(Guard("lake"), "cpg_nodes", hours=720))

A file may go if no version that was current within the retention names it, and it is older than that.
If a published run or a change-feed cursor reads it nevertheless (`maintain.retention`), it stays, and it is told
for whom. Entries may go if a checkpoint has all that they say, and nobody needs a version before it.

Delta's own VACUUM knows neither runs nor cursors, and looks at the newest version only: what a run that died
has replaced would go although it is what is published. Whoever removes holds the lease of the lake.

Tests: `tests/unit/maintain/test_removal.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from msgspec import Struct

from codeanatomy.delta.log.replay import complete_checkpoints, logged_versions
from codeanatomy.errors import StorageFailure
from codeanatomy.maintain.retention import Guard
from codeanatomy.maintain.table_state import LOG, FoundFile, files_below

# A shorter retention may take files from readers and writers that are at work.
SAFE_HOURS = 168.0
# Entries, checkpoints and checksums begin with the version that they are about.
ABOUT = re.compile(r"\.?(\d{20})\.")


class Removal(Struct, frozen=True):
    """What would go of a table, and what stays although it is old enough."""

    # The folder that the paths are below.
    folder: str
    files: tuple[FoundFile, ...]
    # How many files stay for whom.
    kept: dict[str, int]

    @property
    def size_bytes(self) -> int:
        """What would be free."""
        return sum(file.size_bytes for file in self.files)


def removable_files(guard: Guard, name: str, hours: float) -> Removal:
    """Data files, deletion vectors and change files of a table that are not needed any more."""
    place, needed = guard.place(name), guard.needs(name, hours)
    cutoff = (guard.now - timedelta(hours=hours)).timestamp() * 1000
    old = [file for file in files_below(place) if file.written_ms < cutoff and file.path not in needed.recent]
    kept = Counter(needed.files[file.path] for file in old if file.path in needed.files)
    return Removal(place, tuple(file for file in old if file.path not in needed.files), dict(kept))


def removable_entries(guard: Guard, name: str, hours: float) -> Removal:
    """Entries and checkpoints of a table's log that are before the newest checkpoint nobody looks behind."""
    place, needed = guard.place(name), guard.needs(name, hours)
    floor, free = (
        max((version for version in complete_checkpoints(place) if version <= least), default=0)
        for least in (needed.first_version, needed.start)
    )
    kept = sum(floor <= version < free for version in logged_versions(place))
    return Removal(place, tuple(_log_files(place, floor)), {needed.first_by: kept} if kept else {})


def _log_files(place: str, floor: int) -> Iterator[FoundFile]:
    """The files of a log that are about versions before one."""
    for path in sorted(Path(place, LOG).iterdir()):
        found = ABOUT.match(path.name)
        if found and int(found[1]) < floor and path.is_file():
            told = path.stat()
            yield FoundFile(f"{LOG}/{path.name}", told.st_size, int(told.st_mtime * 1000))


def remove(removal: Removal) -> None:
    """Delete the files, each of which nobody will ask for; empty folders of partitions go with them."""
    folders: set[Path] = set()
    for file in removal.files:
        path = Path(removal.folder, file.path)
        try:
            path.unlink(missing_ok=True)
            # Hadoop writes one beside each file.
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        except OSError as problem:
            raise StorageFailure(
                f"{path} cannot be removed: {problem.strerror}", "get the right to write there, and repeat"
            ) from problem
        folders.add(path.parent)
    for folder in sorted(folders, reverse=True):
        if folder != Path(removal.folder) and folder.name != LOG and not any(folder.iterdir()):
            folder.rmdir()
