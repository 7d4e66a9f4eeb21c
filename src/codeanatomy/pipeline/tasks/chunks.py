"""Divide the files of a repository into chunks by their ids, so that rows about a file meet without a search.

>>> [chunk_name(each, chunks=3) for each in ("file:-xyz", "file:Fxyz", "file:zxyz")]
['0000', '0000', '0002']

An id is a hash, so chunks have about equally many files, and every process finds the chunk of a row by
itself. Chunks are in the order of the ids, which is the order of most tables.

Tests: `tests/unit/pipeline/test_chunks.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import decode_texts
from codeanatomy.catalog.spec import Table
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.node_ids import PREFIXES, file_id

# Files of a chunk, and bytes of their sources, about: as Python objects they are some hundred times that.
CHUNK_FILES = 16
CHUNK_BYTES = 256 * 1024
# Characters of an id in the order of texts; two of them number the chunks.
ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
RANKS = {character: rank for rank, character in enumerate(ALPHABET)}
START = len(PREFIXES["FILE"]) + 1
MOST_CHUNKS = len(ALPHABET) ** 2


def chunk_count(files: int, size: int) -> int:
    """Return the number of chunks of a repository, given its number of files and their bytes."""
    return min(MOST_CHUNKS, max(1, math.ceil(files / CHUNK_FILES), math.ceil(size / CHUNK_BYTES)))


def chunk_name(of_file: str, chunks: int) -> str:
    """Return the chunk of a file in a repository that is divided into this many."""
    first, second = of_file[START], of_file[START + 1]
    rank = RANKS.get(first, 0) * len(ALPHABET) + RANKS.get(second, 0)
    return f"{rank * chunks // MOST_CHUNKS:04d}"


def owner_column(table: Table) -> str:
    """Return the column with the file that a row belongs to."""
    if table.owner is None:
        raise ValueError(f"rows of {table.name} have no owner")
    return table.owner


def file_ids_of(name: str, rows: pa.RecordBatch) -> pa.Array:
    """Return the file of each row of a table."""
    owners = rows.column(owner_column(catalog.table(name)))
    if name == SCIP and owners.null_count:
        # A document of a file that the repository lacks belongs to the file it would be.
        cells = zip(*(rows.column(each).to_pylist() for each in ("repo_id", "path", "file_id")), strict=True)
        owners = pa.array([own or file_id(repo_id, path) for repo_id, path, own in cells], pa.string())
    return owners


def rows_by_chunk(name: str, rows: pa.RecordBatch, chunks: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Divide rows of a repository by the chunk of their file; rows of no file have the chunk ''."""
    encoded = file_ids_of(name, rows).dictionary_encode()
    names = [chunk_name(owner, chunks) for owner in encoded.dictionary.to_pylist()]
    own = pa.array([*names, ""]).take(pc.fill_null(encoded.indices, len(names)))
    present = pc.unique(own).to_pylist()
    for chunk in present:
        yield chunk, rows if len(present) == 1 else rows.filter(pc.equal(own, chunk))


def rows_by_owner(rows: pa.Table, column: str) -> dict[str | None, pa.Table]:
    """Group rows by the file that owns them; None for rows of no file."""
    if not rows.num_rows:
        return {}
    keys = decode_texts(rows.column(column).combine_chunks())
    order = pc.sort_indices(keys)
    ordered, runs = rows.take(order), pc.run_end_encode(keys.take(order))
    groups: dict[str | None, pa.Table] = {}
    start = 0
    for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        groups[value] = ordered.slice(start, end - start)
        start = end
    return groups
