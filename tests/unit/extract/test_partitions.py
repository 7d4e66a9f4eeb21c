"""Shares: every file once, in even parts, the heaviest first."""

from __future__ import annotations

import pytest

from codeanatomy.extract.partitions import (
    CHUNK_BYTES,
    CHUNK_FILES,
    MIN_PARTITION_BYTES,
    FilePartition,
    RepositoryListing,
    file_cost,
    partition_files,
    split_chunks,
)
from codeanatomy.node_ids import file_id
from codeanatomy.sources.listing import Entry, Listing


def sourced(name: str, *sizes: int) -> RepositoryListing:
    entries = [Entry(f"{n}.py", f"/{name}/{n}.py", size, 0, False, None) for n, size in enumerate(sizes)]
    return RepositoryListing(name, Listing(f"/{name}", "folder", tuple(entries)))


def files(shares: list[FilePartition]) -> list[tuple[str, str]]:
    return sorted(
        (share.roots[place].repo_id, entry.path) for share in shares for place, entry in share.files
    )


def test_every_file_is_in_one_share_whatever_their_number() -> None:
    sources = [sourced("a", *range(0, 300_000, 1_000)), sourced("b", 5_000_000, 1, 0), sourced("c")]
    expected = sorted((each.repo_id, entry.path) for each in sources for entry in each.listing.entries)
    for tasks in (1, 2, 7, 1000):
        shares = partition_files(sources, tasks)
        assert len(shares) == tasks
        assert files(shares) == expected
    assert files(partition_files(sources, cores=2)) == expected


def test_shares_become_smaller_and_the_heaviest_comes_first() -> None:
    shares = partition_files([sourced("a", *[20_000] * 2_000)], cores=2)
    weights = [sum(file_cost(entry) for _, entry in share.files) for share in shares]
    # A quarter of what is left, each.
    assert weights[0] == pytest.approx(sum(weights) / 4, rel=0.1)
    assert weights[1] == pytest.approx(sum(weights[1:]) / 4, rel=0.1)
    assert weights[-1] < 2 * MIN_PARTITION_BYTES
    assert len(shares) < 24
    assert weights == sorted(weights, reverse=True)


def test_small_repositories_share_tasks() -> None:
    shares = partition_files([sourced(f"r{n}", 100) for n in range(100)], cores=8)
    assert len(shares) == 2
    assert sum(len(share.roots) for share in shares) == 100


def test_a_share_names_only_the_places_it_needs() -> None:
    shares = partition_files([sourced(f"r{n}", 200_000) for n in range(10)], tasks=10)
    assert all(len(share.roots) == len({place for place, _ in share.files}) for share in shares)


def test_chunks_are_bounded_and_complete() -> None:
    (share,) = partition_files([sourced("a", *[100_000] * 30, 3_000_000, *[10] * 300)], tasks=1)
    parts = list(split_chunks(share))
    assert [file for part in parts for file in part.files] == share.files
    for part in parts:
        assert len(part.files) <= CHUNK_FILES
        assert len(part.files) == 1 or sum(file_cost(entry) for _, entry in part.files) <= CHUNK_BYTES


def test_nothing_to_read_is_one_empty_share() -> None:
    assert [share.files for share in partition_files([sourced("a")], cores=4)] == [[]]


def test_a_chunk_has_files_of_one_repository_and_chunks_are_in_order() -> None:
    shares = partition_files([sourced(name, *[1_000] * 100) for name in "cab"], tasks=2)
    shares.sort(key=lambda share: share.roots[0].repo_id)
    chunks = [part for share in shares for part in split_chunks(share)]
    names = [{part.roots[number].repo_id for number, _ in part.files} for part in chunks]
    assert all(len(of_chunk) == 1 for of_chunk in names)
    keys = [
        (part.roots[number].repo_id, file_id(part.roots[number].repo_id, entry.path))
        for part in chunks
        for number, entry in part.files
    ]
    assert keys == sorted(keys)
