"""Read and write deletion vectors, which mark the deleted rows of a data file in Delta's protocol.

    vectors = write_vectors("/lake/graph/cpg_nodes", {"part-0e6f.parquet": BitMap64([3, 4, 5])})
    vectors["part-0e6f.parquet"]       # DeletionVector("u", "M]6I.=ELXgR=f1wTqovL", 34, 3, 1), for the log
    read_vector("/lake/graph/cpg_nodes", vector)     # BitMap64([3, 4, 5]), row positions from 0

The vectors of a commit are in one file, `deletion_vector_<uuid>.bin`: a byte with the format version, then
for each vector its size, a magic number, a 64-bit roaring bitmap in the portable format, and a checksum. A
vector is immutable: a commit that deletes more rows of the file writes another vector.

Tests: `tests/unit/delta/test_deletion_vectors.py`, `tests/spark/test_deletion_vectors.py`.
"""

from __future__ import annotations

import struct
from base64 import b64encode, b85decode, b85encode
from binascii import crc32
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from msgspec import Struct

from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.store_policy import path_of
from codeanatomy.errors import StorageFailure

if TYPE_CHECKING:
    from pyroaring import BitMap64

VERSION = b"\x01"
MAGIC = struct.pack("<I", 1681511377)
SIZE = struct.Struct(">I")
# Length of a base-85 UUID at the end of `path_or_inline`; a folder may precede it.
ENCODED_UUID = 20
# Number of vectors whose bits are cached.
CACHED_VECTORS = 256
# The base-85 alphabets of Delta (ZeroMQ's) and of Python.
DELTA_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
PYTHON_ALPHABET = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
TO_DELTA = bytes.maketrans(PYTHON_ALPHABET, DELTA_ALPHABET)
FROM_DELTA = bytes.maketrans(DELTA_ALPHABET, PYTHON_ALPHABET)


class DeletionVector(
    Struct,
    frozen=True,
    omit_defaults=True,
    rename={"storage_type": "storageType", "path_or_inline": "pathOrInlineDv", "size_bytes": "sizeInBytes"},
):
    """The descriptor of a deletion vector in the log: where the positions of deleted rows are stored."""

    # u: in a file of the table's folder, p: in a file with an absolute path, i: inline in the log.
    storage_type: str
    # The encoded UUID of the file, its absolute path, or the bitmap itself.
    path_or_inline: str
    # Bytes of the magic number and the bitmap.
    size_bytes: int
    # Number of deleted rows.
    cardinality: int
    # Position in the file; None for an inline bitmap.
    offset: int | None = None


def write_vectors(location: str, bitmaps: Mapping[str, BitMap64]) -> dict[str, DeletionVector]:
    """Write bitmaps to a new file in a table's folder; it is unused until a commit refers to it."""
    if not bitmaps:
        return {}
    name = uuid4()
    encoded = b85encode(name.bytes).translate(TO_DELTA).decode()
    content, vectors = bytearray(VERSION), {}
    for path, bitmap in bitmaps.items():
        data = MAGIC + bitmap.serialize()
        vectors[path] = DeletionVector("u", encoded, len(data), len(bitmap), len(content))
        content += SIZE.pack(len(data)) + data + SIZE.pack(crc32(data))
    folder_of(location).create(f"deletion_vector_{name}.bin", bytes(content))
    return vectors


def vector_path(vector: DeletionVector) -> str | None:
    """Return the file that contains a vector, relative to the table's folder; None if it is in the log.

    The vectors of a shallow clone are in the folder of another table: their paths are absolute.
    """
    if vector.storage_type == "i":
        return None
    if vector.storage_type == "p":
        return path_of(vector.path_or_inline)
    folder, encoded = vector.path_or_inline[:-ENCODED_UUID], vector.path_or_inline[-ENCODED_UUID:]
    name = UUID(bytes=b85decode(encoded.encode().translate(FROM_DELTA)))
    return f"{folder}/deletion_vector_{name}.bin" if folder else f"deletion_vector_{name}.bin"


def read_vector(location: str, vector: DeletionVector | None) -> BitMap64:
    """Read the positions of the rows that a vector deletes; an empty bitmap for None."""
    # Imported here: most tables have no vectors.
    from pyroaring import BitMap64

    if vector is None:
        return BitMap64()
    try:
        data = _read_bytes(location, vector)
        positions = BitMap64.deserialize(data[len(MAGIC) :]) if data.startswith(MAGIC) else None
    except (OSError, ValueError, struct.error) as problem:
        raise _damaged(location, vector, str(problem)) from problem
    if positions is None or len(positions) != vector.cardinality:
        raise _damaged(location, vector, "its content does not match the log")
    return positions


def _read_bytes(location: str, vector: DeletionVector) -> bytes:
    path = vector_path(vector)
    if path is None:
        return b85decode(vector.path_or_inline.encode().translate(FROM_DELTA))[: vector.size_bytes]
    start = vector.offset or 0
    least = start + SIZE.size + vector.size_bytes + SIZE.size
    with Path(folder_of(location).local_path(path, least=least)).open("rb") as file:
        file.seek(start)
        (size,) = SIZE.unpack(file.read(SIZE.size))
        data, checksum = file.read(size), file.read(SIZE.size)
    if size != vector.size_bytes or checksum != SIZE.pack(crc32(data)):
        raise ValueError("its size or checksum does not match")
    return data


class PositionBits(Struct, frozen=True):
    """Row positions as a bit string for DuckDB: a bit per row up to the last position, and a 0 at the end."""

    # The bits in base 64.
    encoded: str
    # Number of bits.
    count: int


def encode_bits(positions: BitMap64) -> PositionBits:
    """Encode row positions as a bit string."""
    count = positions.max() + 2 if positions else 1
    bits = bytearray((count + 7) // 8)
    for position in positions:
        bits[position >> 3] |= 128 >> (position & 7)
    return PositionBits(b64encode(bits).decode(), count)


@lru_cache(CACHED_VECTORS)
def removed_bits(location: str, vector: DeletionVector) -> PositionBits:
    """Return the bits of a vector; cached, since every query of a table needs them and they never change."""
    return encode_bits(read_vector(location, vector))


def _damaged(location: str, vector: DeletionVector, why: str) -> StorageFailure:
    path = vector_path(vector) or "in the log"
    return StorageFailure(
        f"a deletion vector of {location} cannot be read ({path}): {why}",
        "run `codeanatomy build` with all sources of the lake, which builds what cannot be read again",
    )
