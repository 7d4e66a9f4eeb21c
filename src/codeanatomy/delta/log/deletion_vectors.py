"""Deletion vectors: which rows of a data file are part of a table no longer, as Delta's protocol stores them.

    vectors = write_vectors("/lake/graph/cpg_nodes", {"part-0e6f.parquet": BitMap64([3, 4, 5])})
    vectors["part-0e6f.parquet"]       # Vector("u", "M]6I.=ELXgR=f1wTqovL", 1, 34, 3): goes into the log
    read_vector("/lake/graph/cpg_nodes", vector)     # BitMap64([3, 4, 5]), positions from 0

The vectors of a commit are in one file, `deletion_vector_<uuid>.bin`: a byte with the version of the format,
and for each vector its size, the number that says how it is coded, a roaring bitmap of 64 bits in portable
form, and a checksum. A vector is never changed: a commit that takes more rows out writes another.

Tests: `tests/unit/delta/test_deletion_vectors.py`.
"""

from __future__ import annotations

import struct
from base64 import b64encode, b85decode, b85encode
from binascii import crc32
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

from msgspec import Struct

from codeanatomy.errors import StorageFailure

if TYPE_CHECKING:
    from pyroaring import BitMap64

VERSION = b"\x01"
MAGIC = struct.pack("<I", 1681511377)
SIZE = struct.Struct(">I")
# Characters of a UUID, which end the name of a file; before them stands a folder, if there is one.
ENCODED = 20
# Vectors whose bits are kept.
KEPT = 256
# Delta's alphabet for 85 digits (ZeroMQ's), and Python's.
DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
PYTHONS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
TO_DELTA, FROM_DELTA = bytes.maketrans(PYTHONS, DIGITS), bytes.maketrans(DIGITS, PYTHONS)


class DeletionVector(
    Struct,
    frozen=True,
    omit_defaults=True,
    rename={"storage_type": "storageType", "place": "pathOrInlineDv", "size_bytes": "sizeInBytes"},
):
    """Where the positions of removed rows are, as the log tells it."""

    # u: in a file of the table's folder, p: in a file with an absolute path, i: in the log itself.
    storage_type: str
    # The file's name, coded, its path, or the bitmap.
    place: str
    # Bytes of the bitmap, with the number before it.
    size_bytes: int
    # How many rows are removed.
    cardinality: int
    # In the file; of a bitmap in the log none.
    offset: int | None = None


def write_vectors(location: str, bitmaps: Mapping[str, BitMap64]) -> dict[str, DeletionVector]:
    """Store bitmaps in a new file of a local table's folder; nobody reads it before a commit tells of it."""
    if not bitmaps:
        return {}
    name = uuid4()
    place = b85encode(name.bytes).translate(TO_DELTA).decode()
    content, vectors = bytearray(VERSION), {}
    for path, bitmap in bitmaps.items():
        data = MAGIC + bitmap.serialize()
        vectors[path] = DeletionVector("u", place, len(data), len(bitmap), len(content))
        content += SIZE.pack(len(data)) + data + SIZE.pack(crc32(data))
    Path(location, f"deletion_vector_{name}.bin").write_bytes(content)
    return vectors


def vector_path(location: str, vector: DeletionVector) -> Path | None:
    """The file that a vector is in; none if it is in the log."""
    if vector.storage_type == "i":
        return None
    if vector.storage_type == "p":
        # A URI or a path.
        return Path(unquote(urlsplit(vector.place).path) if ":" in vector.place else vector.place)
    folder, coded = vector.place[:-ENCODED], vector.place[-ENCODED:]
    name = UUID(bytes=b85decode(coded.encode().translate(FROM_DELTA)))
    return Path(location, folder, f"deletion_vector_{name}.bin")


def read_vector(location: str, vector: DeletionVector | None) -> BitMap64:
    """The positions of the rows that a vector removes; without one, none."""
    # Here: most tables have no vectors.
    from pyroaring import BitMap64

    if vector is None:
        return BitMap64()
    try:
        data = _stored(location, vector)
        found = BitMap64.deserialize(data[len(MAGIC) :]) if data.startswith(MAGIC) else None
    except (OSError, ValueError, struct.error) as problem:
        raise _damaged(location, vector, str(problem)) from problem
    if found is None or len(found) != vector.cardinality:
        raise _damaged(location, vector, "it is not what the log says")
    return found


def _stored(location: str, vector: DeletionVector) -> bytes:
    path = vector_path(location, vector)
    if path is None:
        return b85decode(vector.place.encode().translate(FROM_DELTA))[: vector.size_bytes]
    with path.open("rb") as file:
        file.seek(vector.offset or 0)
        (size,) = SIZE.unpack(file.read(SIZE.size))
        data, checksum = file.read(size), file.read(SIZE.size)
    if size != vector.size_bytes or checksum != SIZE.pack(crc32(data)):
        raise ValueError("its size or its checksum differs")
    return data


class PositionBits(Struct, frozen=True):
    """Positions as DuckDB looks them up: a bit for each up to the last and one more, which is 0."""

    # In base 64.
    coded: str
    count: int


def encode_bits(positions: BitMap64) -> PositionBits:
    count = positions.max() + 2 if positions else 1
    bits = bytearray((count + 7) // 8)
    for position in positions:
        bits[position >> 3] |= 128 >> (position & 7)
    return PositionBits(b64encode(bits).decode(), count)


@lru_cache(KEPT)
def removed_bits(location: str, vector: DeletionVector) -> PositionBits:
    """Those of a vector, which is asked for with every question to a table, and never changes."""
    return encode_bits(read_vector(location, vector))


def _damaged(location: str, vector: DeletionVector, why: str) -> StorageFailure:
    path = vector_path(location, vector) or "in the log"
    return StorageFailure(
        f"a deletion vector of {location} cannot be read ({path}): {why}",
        "restore it from a copy, or build into a new lake",
    )
