"""What state a local table is in: its files, its log, and what lies in its folder that nobody reads.

    found = condition_of("/lake/graph/cpg_nodes", catalog.table("cpg_nodes"))
    found.parts[0].small_files                 # 96 files that are far below the target size
    found.since_checkpoint, found.log_entries  # 7 versions since the last checkpoint, 57 entries
    found.dead_bytes                           # of files that the newest version does not name

All of it is read from the log and from the names, sizes and times of files; no row is looked at.
Tests: `tests/unit/maintain/test_table_state.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct, json

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.deletion_vectors import DeletionVector, vector_path
from codeanatomy.delta.log.replay import Add, complete_checkpoints, logged_versions, replay_log

LOG = "_delta_log"
# The only folder with such a name that holds what a table has written.
CHANGES = "_change_data"
# A file below this part of the target size is small.
SMALL = 0.5


class Part(Struct, frozen=True):
    """The data files of one partition of a version."""

    values: tuple[tuple[str, str | None], ...]
    files: int
    small_files: int
    bytes: int
    # Rows in the files, and those of them that deletion vectors remove; 0 where nobody has counted.
    rows: int
    deleted_rows: int
    # When it was last Z-ordered, in milliseconds since the epoch; and the bytes of files that are newer.
    ordered_ms: int | None
    unordered_bytes: int
    # When the newest of them was written, in milliseconds since the epoch.
    newest_ms: int

    @property
    def deleted_share(self) -> float:
        """Of the rows in its files those that are removed."""
        return self.deleted_rows / self.rows if self.rows else 0.0

    @property
    def unordered_share(self) -> float:
        """Of its bytes those that came after the last Z-order."""
        return self.unordered_bytes / self.bytes if self.bytes else 0.0


class Condition(Struct, frozen=True):
    """A table, as maintenance sees it."""

    table: str
    version: int
    parts: tuple[Part, ...]
    log_entries: int
    log_bytes: int
    # Versions after the newest checkpoint, and the first version that there is an entry of.
    since_checkpoint: int
    first_entry: int
    # What is in the folder and not in the newest version: of older versions, or of nobody.
    dead_files: int
    dead_bytes: int
    properties: dict[str, str]
    features: tuple[str, ...]

    @property
    def files(self) -> int:
        """Data files of the newest version."""
        return sum(part.files for part in self.parts)

    @property
    def bytes(self) -> int:
        """Bytes of the newest version."""
        return sum(part.bytes for part in self.parts)


class FoundFile(Struct, frozen=True):
    """A file in the folder of a table."""

    # Below that folder.
    path: str
    size_bytes: int
    written_ms: int


def condition_of(location: str, table: Table, ordered: Mapping[str, int] = {}) -> Condition | None:
    """The state of a table at a local path, whose partitions were Z-ordered at times; none: no table."""
    entries = logged_versions(location)
    if not entries:
        return None
    version = entries[-1]
    state = replay_log(location, version)
    read = {
        path for add in state.adds.values() for path in named_files(location, add.path, add.deletion_vector)
    }
    dead = [file for file in files_below(location) if file.path not in read]
    return Condition(
        table=table.name,
        version=version,
        parts=_parts(table, state.adds.values(), ordered),
        log_entries=len(entries),
        log_bytes=sum(map(_size, Path(location, LOG).iterdir())),
        since_checkpoint=version - max(complete_checkpoints(location), default=-1),
        first_entry=entries[0],
        dead_files=len(dead),
        dead_bytes=sum(file.size_bytes for file in dead),
        properties=dict(state.metadata.get("configuration", {})),
        features=tuple(
            sorted({*state.protocol.get("readerFeatures", ()), *state.protocol.get("writerFeatures", ())})
        ),
    )


def named_files(location: str, path: str, vector: DeletionVector | None) -> Iterator[str]:
    """The files that an action names, its data and its deletion vector, below the table's folder.

    A log may spell a path as it likes: relative or absolute, as a URI, through a link.
    """
    yield unquote(path)
    yield path
    if ":" in path or path.startswith("/"):
        yield from _below(location, Path(unquote(urlsplit(path).path)))
    file = None if vector is None else vector_path(location, vector)
    if file is not None:
        yield from _below(location, file)


def _below(location: str, path: Path) -> Iterator[str]:
    """A path as one below the table's folder, if it is."""
    for folder in (Path(location), Path(location).resolve()):
        if path.is_relative_to(folder):
            yield str(path.relative_to(folder))


def files_below(location: str) -> Iterator[FoundFile]:
    """The files that writers of a table have left in its folder, read by some version or by none.

    What has another name with `_` or `.` in front is not theirs, as Delta has it.
    """
    for folder, folders, names in os.walk(location):
        folders[:] = [name for name in folders if not name.startswith(("_", ".")) or name == CHANGES]
        for name in names:
            path = Path(folder, name)
            if name.startswith(("_", ".")) or path.is_symlink():
                continue
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            yield FoundFile(str(path.relative_to(location)), found.st_size, int(found.st_mtime * 1000))


def _parts(table: Table, adds: Iterable[Add], ordered: Mapping[str, int]) -> tuple[Part, ...]:
    by_values: dict[tuple[tuple[str, str | None], ...], list[Add]] = {}
    for add in adds:
        by_values.setdefault(tuple(sorted(add.partition_values.items())), []).append(add)
    small = table.write.target_file_size * SMALL
    return tuple(
        Part(
            values,
            len(found),
            sum(add.size < small for add in found),
            sum(add.size for add in found),
            sum(_rows(add) for add in found),
            sum(add.deletion_vector.cardinality for add in found if add.deletion_vector),
            ordered.get(label(values)),
            sum(add.size for add in found if add.modification_time > ordered.get(label(values), -1)),
            max(add.modification_time for add in found),
        )
        for values, found in sorted(by_values.items(), key=lambda item: str(item[0]))
    )


def label(values: Iterable[tuple[str, str | None]]) -> str:
    """A partition as its folder is called; empty where there are none.

    >>> label((("node_kind", "CLASS"),))
    'node_kind=CLASS'
    """
    return "/".join(f"{column}={value}" for column, value in values)


def _rows(add: Add) -> int:
    return int(json.decode(add.stats).get("numRecords", 0)) if add.stats else 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        # A checkpoint that somebody has just replaced.
        return 0
