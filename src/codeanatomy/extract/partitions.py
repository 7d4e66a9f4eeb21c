"""Divide the files of many repositories into partitions of known cost: one partition is one task.

>>> from codeanatomy.sources.listing import Entry, Listing
>>> entries = tuple(Entry(f"{n}.py", f"/r/{n}.py", 400_000, 0, False, None) for n in range(4))
>>> repositories = [RepositoryListing("r", Listing("/r", "folder", entries))]
>>> [len(partition.files) for partition in partition_files(repositories, tasks=2)]
[2, 2]

Files are ordered by repository and by their id, which is a hash, so that a partition is a fair sample of its
repositories; partitions with the most bytes come first, and each is a share of what is left. A chunk has
files of one repository, so that chunks can be put in the order of the tables. The division never changes the
rows of a file.

Tests: `tests/unit/extract/test_partitions.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from codeanatomy.node_ids import file_id
from codeanatomy.sources.listing import Entry, Listing

# Fixed cost of a file, in bytes of source.
FILE_OVERHEAD = 2_000
MIN_PARTITION_BYTES = 128 * 1024
MAX_PARTITION_BYTES = 16 * 1024 * 1024
# What is left is divided by this many for each core: a task writes a data file of each table, so tasks are
# few, and the last ones are small, so that no core waits long for another.
SHARES_PER_CORE = 2
# Bytes of source whose rows are sent together; as Arrow they need some forty times as much.
CHUNK_BYTES = 1024 * 1024
CHUNK_FILES = 64
# Larger chunks for a tar, because each chunk is a pass over the archive.
TAR_SCALE = 4


class RepositoryListing(Struct, frozen=True):
    """A repository and the listing of its files."""

    repo_id: str
    listing: Listing


class RepositoryRoot(Struct, frozen=True, array_like=True):
    """The folder or archive that the files of a repository are read from."""

    repo_id: str
    kind: str
    root: str
    # Import name of the package that the root is; empty if it is none.
    package: str = ""


class FilePartition(Struct, frozen=True, tag=True):
    """Files of one task: each with the index of its root."""

    roots: list[RepositoryRoot]
    files: list[tuple[int, Entry]]


def partition_files(
    repositories: Sequence[RepositoryListing], tasks: int | None = None, cores: int = 1
) -> list[FilePartition]:
    """Divide files into a given number of tasks, or into as many as are worthwhile on a number of cores."""
    roots = [RepositoryRoot(each.repo_id, each.listing.kind, each.listing.root) for each in repositories]
    files = sorted(
        ((number, entry) for number, each in enumerate(repositories) for entry in each.listing.entries),
        key=lambda file: (roots[file[0]].repo_id, file_id(roots[file[0]].repo_id, file[1].path)),
    )
    sizes = _partition_sizes(sum(file_cost(entry) for _, entry in files), tasks, cores)
    parts: list[list[tuple[int, Entry]]] = [[] for _ in sizes]
    ends, done, number = list(accumulate(sizes)), 0, 0
    for file in files:
        while done >= ends[number] and number + 1 < len(parts):
            number += 1
        parts[number].append(file)
        done += file_cost(file[1])
    parts.sort(key=lambda part: -sum(file_cost(entry) for _, entry in part))
    return [_with_used_roots(roots, part) for part in parts]


def _partition_sizes(total: int, tasks: int | None, cores: int) -> list[float]:
    """Return the cost of each partition, each a share of what is left: the last ones are small.

    >>> [round(size / 1e6, 1) for size in _partition_sizes(8_000_000, None, 2)][:6]
    [2.0, 1.5, 1.1, 0.8, 0.6, 0.5]
    """
    if tasks is not None:
        return [total / tasks] * tasks
    sizes: list[float] = []
    left = float(total)
    while left > 0 or not sizes:
        share = min(max(left / (SHARES_PER_CORE * cores), MIN_PARTITION_BYTES), MAX_PARTITION_BYTES, left)
        sizes.append(share)
        left -= share
    return sizes


def split_chunks(partition: FilePartition) -> Iterator[FilePartition]:
    """Split a partition into chunks of one repository, with rows that fit into memory."""
    scale = TAR_SCALE if any(root.kind == "tar" for root in partition.roots) else 1
    files: list[tuple[int, Entry]] = []
    size = 0
    for file in partition.files:
        full = size + file_cost(file[1]) > scale * CHUNK_BYTES or len(files) == scale * CHUNK_FILES
        if files and (full or files[-1][0] != file[0]):
            yield FilePartition(partition.roots, files)
            files, size = [], 0
        files.append(file)
        size += file_cost(file[1])
    if files:
        yield FilePartition(partition.roots, files)


def file_cost(entry: Entry) -> int:
    """Estimate the cost of a file, in bytes of source."""
    return FILE_OVERHEAD + (0 if entry.skipped_reason else entry.size_bytes or 0)


def _with_used_roots(roots: Sequence[RepositoryRoot], files: Sequence[tuple[int, Entry]]) -> FilePartition:
    """Build a partition with only the roots that its files need."""
    used = sorted({number for number, _ in files})
    renumbered = {number: new for new, number in enumerate(used)}
    return FilePartition(
        [roots[number] for number in used], [(renumbered[number], entry) for number, entry in files]
    )
