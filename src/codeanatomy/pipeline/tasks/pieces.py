"""Carry rows from one pass of a build to the next, in pieces of a few megabytes.

    repo_id   chunk           key             name            part  parts  data
    requests  0012            0012            ast_files_v1    0     1      <Arrow stream: rows of its files>
    requests  0012            0012            program         0     1      <Arrow stream: their programs>
    requests                                  counts          0     1      {"ast_files_v1": 18, ...}

A chunk is a group of files that a pass works on together; all pieces of a chunk meet in one call. `name` is
the table of the rows, or one of the other contents below. A stream longer than `PIECE_BYTES` is cut into
parts, and rows are divided into streams of that size, so no value that an executor carries depends on the
size of a file; only a single row of a table is never cut. `key` orders the pieces of a table:

>>> [piece.part for piece in cut("requests", "file:a", "program", bytes(9 * MB))]
[0, 1, 2]
>>> [(name, len(data)) for name, data in joined(cut("requests", "file:a", "program", bytes(9 * MB)))]
[('program', 9437184)]

Tests: `tests/unit/pipeline/test_pieces.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias
from uuid import uuid4

import pyarrow as pa
from msgspec import json

from codeanatomy.arrow import encode_texts, pack_rows, unpack_rows
from codeanatomy.costs import costs_in, without_costs
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.graph.table_rows import CODED

MB = 1024 * 1024
PIECE_BYTES = 4 * MB
# Rows of a piece of a flat table: about two megabytes.
PIECE_ROWS = 64 * 1024
# Contents of pieces that are no rows of a table; programs are those that the stage of files has compiled.
PROGRAM, COUNTS, DATA_FILE, OUTCOME = "program", "counts", "data_file", "outcome"
# Before the name of a table: its stored rows.
STORED = "stored "
# What files contribute to rows of no file.
CONTRIBUTIONS = "contributions"
# Digests of what files contribute to rows of no file, by file.
SHARED_DIGESTS = "shared_digests"
# Why files are redone.
IMPACT = "impact"
# Definition keys of files, and the definitions that have them.
KEYS, KEY_OWNERS = "definition_keys", "key_owners"
# Keys of some rows of the table in `key`, by which its rows are divided into ranges.
SAMPLE = "sample"

# Bytes of a task's pieces by name, and some of their keys.
SIZES = "sizes"
# Small results, which come back to the driver with the job that makes them.
SMALL = (COUNTS, DATA_FILE, OUTCOME, IMPACT, KEYS, SAMPLE, SHARED_DIGESTS, SIZES)

# By repository: rows by table, and other counters.
Counts: TypeAlias = dict[str, dict[str, int]]


class Piece(NamedTuple):
    """A part of the rows, or of another result, of a chunk of files."""

    repo_id: str
    # Empty for results of a repository or of a task.
    chunk: str
    key: str
    name: str
    part: int
    parts: int
    data: bytes


DDL = "repo_id string, chunk string, key string, name string, part int, parts int, data binary"
ARROW = {"string": pa.string(), "int": pa.int32(), "binary": pa.binary()}
SCHEMA = pa.schema([(name, ARROW[kind]) for name, kind in map(str.split, DDL.split(", "))])
Pieces: TypeAlias = Iterator[Piece]


def cut(repo_id: str, chunk: str, name: str, data: bytes, key: str | None = None) -> Pieces:
    """Yield the pieces of a stream."""
    parts = max(1, -(-len(data) // PIECE_BYTES))
    for part in range(parts):
        piece = data[part * PIECE_BYTES : (part + 1) * PIECE_BYTES] if parts > 1 else data
        yield Piece(repo_id, chunk, chunk if key is None else key, name, part, parts, piece)


def row_pieces(repo_id: str, chunk: str, name: str, rows: pa.RecordBatch, key: str | None = None) -> Pieces:
    """Yield rows as streams that can be read one by one, numbered in their keys; a row is never cut."""
    lead, encoded = chunk if key is None else key, CODED.get(name, ())
    slices = (rows.slice(start, PIECE_ROWS) for start in range(0, rows.num_rows, PIECE_ROWS))
    streams = (data for part in slices for data in _streams(encode_texts(part, encoded)))
    for number, data in enumerate(streams):
        yield Piece(repo_id, chunk, f"{lead}\t{number:06d}", name, 0, 1, data)


def _streams(rows: pa.RecordBatch) -> Iterator[bytes]:
    """Pack rows into as few streams as fit, each of at least one row."""
    data = pack_rows(rows)
    if len(data) <= PIECE_BYTES or rows.num_rows <= 1:
        yield data
        return
    half = rows.num_rows // 2
    yield from _streams(rows.slice(0, half))
    yield from _streams(rows.slice(half))


def task_pieces(repo_id: str, chunk: str, name: str, rows: pa.RecordBatch) -> Pieces:
    """Yield rows like `row_pieces`, where several tasks have rows of a chunk."""
    return row_pieces(repo_id, chunk, name, rows, f"{chunk}\t{uuid4().hex}")


def sample_piece(name: str, rows: pa.RecordBatch) -> Piece:
    """Return keys of some rows of a table."""
    return Piece("", "", name, SAMPLE, 0, 1, pack_rows(rows))


def joined(pieces: Iterable[Piece]) -> Iterator[tuple[str, bytes]]:
    """Yield name and whole stream of pieces of one chunk; raise if a part of a stream is missing."""
    parts: list[Piece] = []
    for piece in pieces:
        parts.append(piece)
        if piece.part != len(parts) - 1 or piece[:4] != parts[0][:4]:
            break
        if len(parts) == piece.parts:
            yield piece.name, b"".join(each.data for each in parts) if piece.parts > 1 else piece.data
            parts = []
    if parts:
        repo_id, chunk, key, name, part, of, _ = parts[-1]
        raise ValueError(
            f"{name} {key!r} of chunk {chunk!r} in {repo_id}: parts are missing around {part + 1} of {of}"
        )


def batches_of(pieces: Iterable[Piece]) -> dict[str, list[pa.RecordBatch]]:
    """Return the rows in pieces of one chunk, by table."""
    batches: dict[str, list[pa.RecordBatch]] = {}
    for name, data in joined(pieces):
        batches.setdefault(name, []).extend(unpack_rows(data))
    return batches


def counts_piece(counts: Mapping[str, Mapping[str, int]]) -> Piece:
    """Return the counts of a task: rows by table, failures by extractor, costs (`costs`), and others."""
    return Piece("", "", "", COUNTS, 0, 1, json.encode(counts))


def sum_counts(pieces: Iterable[Piece]) -> dict[str, Counter[str]]:
    """Add up the counts of tasks, by repository; without their costs."""
    totals: dict[str, Counter[str]] = {}
    for piece in pieces:
        for repo_id, counts in json.decode(piece.data, type=Counts).items():
            own = without_costs(counts)
            if own or not counts:
                totals.setdefault(repo_id, Counter()).update(own)
    return totals


def sum_costs(pieces: Iterable[Piece]) -> Counter[tuple[str, str]]:
    """Add up the costs among the counts of tasks: microseconds by step and name."""
    totals: Counter[tuple[str, str]] = Counter()
    for piece in pieces:
        for counts in json.decode(piece.data, type=Counts).values():
            totals.update(costs_in(counts))
    return totals


def file_piece(table: str, file: DataFile) -> Piece:
    """Return the description of a data file that was written, for the commit of its table."""
    return Piece("", "", table, DATA_FILE, 0, 1, json.encode(file))


def data_files(pieces: Iterable[Piece]) -> dict[str, list[DataFile]]:
    """Return the data files that tasks have written, by table."""
    files: dict[str, list[DataFile]] = {}
    for piece in pieces:
        files.setdefault(piece.key, []).append(json.decode(piece.data, type=DataFile))
    return files


def to_batch(pieces: Iterable[Piece]) -> pa.RecordBatch:
    """Return pieces as rows of a frame."""
    columns = list(zip(*pieces, strict=True)) or [()] * len(SCHEMA)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def in_batches(batches: Iterable[pa.RecordBatch]) -> Pieces:
    """Yield the pieces in rows of a frame."""
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Piece(*row)
