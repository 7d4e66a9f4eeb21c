"""Inspect the state of a table: its files, its log, and files that no version reads.

    state = inspect_table("/lake/graph/cpg_nodes", catalog.table("cpg_nodes"))
    state.parts[0].small_files                 # 96 files that are far below the target size
    state.since_checkpoint, state.log_entries  # 7 versions since the last checkpoint, 57 entries
    state.dead_bytes                           # of files that are not in the newest version

Reads only the log and the names, sizes and times of files, no rows.
Tests: `tests/unit/maintain/test_table_state.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct, json

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.deletion_vectors import DeletionVector, vector_path
from codeanatomy.delta.log.folder import StoredFile, folder_of
from codeanatomy.delta.log.replay import CHANGE_FOLDER, LOG, Add, list_log, replay_log

# A file below this share of the target size is small.
SMALL_FILE_SHARE = 0.5


class PartitionState(Struct, frozen=True):
    """The data files of one partition in the newest version."""

    values: tuple[tuple[str, str | None], ...]
    files: int
    small_files: int
    bytes: int
    # Rows in the files, and those of them that deletion vectors remove; 0 if there are no statistics.
    rows: int
    deleted_rows: int
    # Time of the last sort or Z-order, in milliseconds since 1970; and the bytes of files written after it.
    ordered_ms: int | None
    unordered_bytes: int
    # Time of the newest file, in milliseconds since the epoch.
    newest_ms: int

    @property
    def deleted_share(self) -> float:
        """The share of its rows that deletion vectors remove."""
        return self.deleted_rows / self.rows if self.rows else 0.0

    @property
    def unordered_share(self) -> float:
        """The share of its bytes that were written after the last sort or Z-order."""
        return self.unordered_bytes / self.bytes if self.bytes else 0.0


class TableState(Struct, frozen=True):
    """A table as maintenance sees it."""

    table: str
    version: int
    parts: tuple[PartitionState, ...]
    log_entries: int
    log_bytes: int
    # Versions after the newest checkpoint, and the version of the oldest log entry.
    since_checkpoint: int
    first_entry: int
    # Files in the folder that are not in the newest version: of older versions, or of none.
    dead_files: int
    dead_bytes: int
    properties: dict[str, str]
    features: tuple[str, ...]

    @property
    def files(self) -> int:
        """The number of data files of the newest version."""
        return sum(part.files for part in self.parts)

    @property
    def bytes(self) -> int:
        """The size of the newest version."""
        return sum(part.bytes for part in self.parts)


def inspect_table(location: str, table: Table, ordered: Mapping[str, int] = {}) -> TableState | None:
    """Read the state of the table at a path or URI; None if there is no table.

    `ordered` has the time of the last sort or Z-order by partition, in milliseconds since the epoch.
    """
    listing = list_log(location)
    entries = list(listing.entries)
    if not entries:
        return None
    version = entries[-1]
    state = replay_log(location, version, listing)
    current = {
        path
        for add in state.adds.values()
        for path in referenced_paths(location, add.path, add.deletion_vector)
    }
    dead = [file for file in list_table_files(location) if file.name not in current]
    return TableState(
        table=table.name,
        version=version,
        parts=_partition_states(table, state.adds.values(), ordered),
        log_entries=len(entries),
        log_bytes=sum(file.size_bytes for file in folder_of(location).list_files(LOG)),
        since_checkpoint=version - listing.checkpoint_before(version),
        first_entry=entries[0],
        dead_files=len(dead),
        dead_bytes=sum(file.size_bytes for file in dead),
        properties=dict(state.metadata.get("configuration", {})),
        features=tuple(
            sorted({*state.protocol.get("readerFeatures", ()), *state.protocol.get("writerFeatures", ())})
        ),
    )


def referenced_paths(location: str, path: str, vector: DeletionVector | None) -> Iterator[str]:
    """Yield the paths of an action's data file and deletion vector, relative to the table's folder.

    A log may have a path in any form: relative or absolute, as a URI, through a link.
    """
    yield unquote(path)
    yield path
    if ":" in path or path.startswith("/"):
        yield from _relative_paths(location, Path(unquote(urlsplit(path).path)))
    file = None if vector is None else vector_path(vector)
    if file is not None:
        yield from _relative_paths(location, Path(location, file))


def _relative_paths(location: str, path: Path) -> Iterator[str]:
    """Yield a path relative to the table's folder, if it is below it."""
    for folder in (Path(location), Path(location).resolve()):
        if path.is_relative_to(folder):
            yield str(path.relative_to(folder))


def list_table_files(location: str) -> Iterator[StoredFile]:
    """List the data files in a table's folder, whether a version reads them or not.

    Other names that start with `_` or `.` are not data files, by Delta's rule.
    """
    for file in folder_of(location).list_tree():
        *folders, name = file.name.split("/")
        if folders[:1] == [CHANGE_FOLDER]:
            folders = folders[1:]
        if not any(part.startswith(("_", ".")) for part in (*folders, name)):
            yield file


def _partition_states(
    table: Table, adds: Iterable[Add], ordered: Mapping[str, int]
) -> tuple[PartitionState, ...]:
    by_values: dict[tuple[tuple[str, str | None], ...], list[Add]] = {}
    for add in adds:
        by_values.setdefault(tuple(sorted(add.partition_values.items())), []).append(add)
    small = table.write.target_file_size * SMALL_FILE_SHARE
    return tuple(
        PartitionState(
            values,
            len(files),
            sum(add.size < small for add in files),
            sum(add.size for add in files),
            sum(_rows(add) for add in files),
            sum(add.deletion_vector.cardinality for add in files if add.deletion_vector),
            ordered.get(partition_folder(values)),
            sum(
                add.size for add in files if add.modification_time > ordered.get(partition_folder(values), -1)
            ),
            max(add.modification_time for add in files),
        )
        for values, files in sorted(by_values.items(), key=lambda item: str(item[0]))
    )


def partition_folder(values: Iterable[tuple[str, str | None]]) -> str:
    """Return the folder name of a partition; empty without partition columns.

    >>> partition_folder((("node_kind", "CLASS"),))
    'node_kind=CLASS'
    """
    return "/".join(f"{column}={value}" for column, value in values)


def _rows(add: Add) -> int:
    return int(json.decode(add.stats).get("numRecords", 0)) if add.stats else 0
