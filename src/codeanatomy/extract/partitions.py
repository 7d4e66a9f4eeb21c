"""The files of many repositories, cut into shares of about equal cost: one share is one task.

>>> from codeanatomy.sources.listing import Entry, Listing
>>> entries = tuple(Entry(f"{n}.py", f"/r/{n}.py", 400_000, 0, False, None) for n in range(4))
>>> found = [RepositoryListing("r", Listing("/r", "folder", entries))]
>>> [len(share.files) for share in spread(found, tasks=2)]
[2, 2]

Files are ordered by their id, which is a hash, so that a share is a fair sample; shares with the most bytes
come first, so that no long one is left for the end. How files are cut never changes their rows.

Tests: `tests/unit/extract/test_partitions.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from codeanatomy.extract.file_rows import file_id
from codeanatomy.sources.listing import Entry, Listing

# What a file costs besides its bytes, in bytes.
FILE_OVERHEAD = 2_000
SMALLEST_SHARE = 128 * 1024
LARGEST_SHARE = 16 * 1024 * 1024
SHARES_PER_CORE = 16
# Rows of so many source bytes travel together; Arrow needs some forty times as much.
CHUNK_BYTES = 1024 * 1024
CHUNK_FILES = 64
TAR_SCALE = 4


class RepositoryListing(Struct, frozen=True):
    """A repository and what was found in it."""

    repo_id: str
    listing: Listing


class RepositoryRoot(Struct, frozen=True, array_like=True):
    """Where the files of a repository are read from."""

    repo_id: str
    kind: str
    root: str


class FilePartition(Struct, frozen=True, tag=True):
    """Files of one task: each with the number of its place."""

    places: list[RepositoryRoot]
    files: list[tuple[int, Entry]]


def partition_files(sources: Sequence[RepositoryListing], tasks: int | None = None, cores: int = 1) -> list[FilePartition]:
    """Shares for so many tasks, or for as many as pay on so many cores."""
    places = [RepositoryRoot(each.repo_id, each.listing.kind, each.listing.root) for each in sources]
    files = sorted(
        ((number, entry) for number, each in enumerate(sources) for entry in each.listing.entries),
        key=lambda file: file_id(places[file[0]].repo_id, file[1].path),
    )
    total = sum(file_cost(entry) for _, entry in files)
    budget = min(max(total / (cores * SHARES_PER_CORE), SMALLEST_SHARE), LARGEST_SHARE)
    count = tasks or max(1, math.ceil(total / budget))
    parts: list[list[tuple[int, Entry]]] = [[] for _ in range(count)]
    done = 0
    for file in files:
        parts[min(done * count // max(total, 1), count - 1)].append(file)
        done += file_cost(file[1])
    parts.sort(key=lambda part: -sum(file_cost(entry) for _, entry in part))
    return [_share(places, part) for part in parts]


def split_chunks(share: FilePartition) -> Iterator[FilePartition]:
    """The share in pieces whose rows fit into memory; larger ones where each is a pass over a tar."""
    scale = TAR_SCALE if any(place.kind == "tar" for place in share.places) else 1
    files: list[tuple[int, Entry]] = []
    size = 0
    for file in share.files:
        if files and (size + file_cost(file[1]) > scale * CHUNK_BYTES or len(files) == scale * CHUNK_FILES):
            yield FilePartition(share.places, files)
            files, size = [], 0
        files.append(file)
        size += file_cost(file[1])
    if files:
        yield FilePartition(share.places, files)


def file_cost(entry: Entry) -> int:
    """About what a file costs, in bytes of source."""
    return FILE_OVERHEAD + (0 if entry.skipped_reason else entry.size_bytes or 0)


def _share(places: Sequence[RepositoryRoot], files: Sequence[tuple[int, Entry]]) -> FilePartition:
    """Only the places that are needed travel."""
    used = sorted({number for number, _ in files})
    renumbered = {number: new for new, number in enumerate(used)}
    return FilePartition(
        [places[number] for number in used], [(renumbered[number], entry) for number, entry in files]
    )
