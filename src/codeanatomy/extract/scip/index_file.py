"""Scan a SCIP index: the offsets of its documents, its metadata and its damage.

An index may have hundreds of megabytes, so it is never loaded as a whole. A protobuf message is a sequence of
fields, each with a tag and a length: `scan_index` seeks from field to field, and reads the metadata and the
path of each document.

    offset   0  metadata, 47 bytes              {tool_info: scip-python 0.6.6}
            49  document, 61,204 bytes          "requests/__init__.py" ...
        61,257  document, ...
       724,051  external symbol, 112 bytes ...

Damage becomes a problem, and the documents before it stay usable. It is detected by a field that does not
belong to an index, or by a length beyond the end. An index cut between two documents looks complete: the
protobuf format has no end marker.

Documents have paths relative to the root of the repository; one that leads out of it (`../x`, `/x`) is left
out, and so is a second document of the same path. The version of a project in its symbols is often a commit
hash. Which symbols are the project's own is known for scip-python only, which puts all definitions into one
package; the package is part of the `Dialect`.

Tests: `tests/unit/extract/test_scip_index.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

# Protobuf has no type hints.
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from msgspec import Struct

from codeanatomy.extract.evidence import MESSAGE_CHARS, Problem
from codeanatomy.extract.scip.schema import (
    TEXT_ENCODINGS,
    Document,
    Index,
    Metadata,
    SymbolInformation,
    name_of,
)
from codeanatomy.spans import PositionEncoding

SCIP_PYTHON = "scip-python"
# A file that is not an index may have a problem in every few bytes.
MAX_PROBLEMS = 100

METADATA, DOCUMENT, EXTERNAL_SYMBOL = 1, 2, 3
RELATIVE_PATH = 1
# Fields of an index, and of a document, that are messages or strings.
INDEX_FIELDS = frozenset({METADATA, DOCUMENT, EXTERNAL_SYMBOL})
DOCUMENT_FIELDS = frozenset({RELATIVE_PATH, 2, 3, 4, 5})
# Wire types: they determine the length of a value.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Two varints of ten bytes.
MAX_HEAD_BYTES = 20
# Limits for the metadata and a path in a damaged file.
MAX_METADATA_BYTES = 16 * 1024 * 1024
MAX_PATH_BYTES = 32 * 1024
# Documents that are searched for the project's package; usually the first one has it.
SEARCHED_DOCUMENTS = 100

DEFINITION = 1
# Scheme, manager and name of a package, then its version. A space in a part is doubled.
PART = r"(?:[^ ]|  )+"
OWN_PACKAGE = re.compile(rf"({SCIP_PYTHON} python {PART} )({PART}) ")


class Dialect(Struct, frozen=True):
    """Conventions of an indexer that the index does not state."""

    # Unit of columns in a document that does not declare it.
    position_encoding: PositionEncoding | None = None
    # Columns of a byte order mark; None if not known.
    bom_columns: int | None = None
    # The project's package in its symbols, up to the version ("scip-python python requests "), and the
    # version.
    package: str | None = None
    package_version: str | None = None


class DocumentFrame(Struct, frozen=True, array_like=True):
    """Path, offset and length of a document in the index."""

    path: str
    offset: int
    length: int


class IndexScan(Struct, frozen=True):
    """An index without the contents of its documents."""

    index_sha256: str
    # Fields of the column `metadata`, without the count of documents.
    metadata: dict[str, Any]
    dialect: Dialect
    documents: tuple[DocumentFrame, ...]
    # First byte of the first external symbol and the byte after the last.
    external_symbols: tuple[int, int] | None
    problems: tuple[Problem, ...]


class _Field(NamedTuple):
    """A value of a message: number of the field, offset of its tag, offset and length of the value."""

    number: int
    tag: int
    offset: int
    length: int


class _ScanState(Struct):
    """The result of a scan so far."""

    metadata: Any
    documents: dict[str, DocumentFrame]
    external_symbols: tuple[int, int] | None
    problems: list[Problem]


def scan_index(path: Path) -> IndexScan:
    """Scan an index. Raise OSError only if the file cannot be read at all."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.seek(0, os.SEEK_END)
        state = _scan(file, size)
        documents = tuple(state.documents.values())
        dialect = _detect_dialect(file, state.metadata, documents)
    if state.metadata is None and not state.problems:
        message = "no metadata, with which an index begins" if size else "the file is empty"
        state.problems.append(Problem("error", "read", "no_metadata", message))
    metadata = _metadata_cells(state.metadata)
    problems = _limited(state.problems)
    return IndexScan(digest, metadata, dialect, documents, state.external_symbols, problems)


def read_document(path: Path, frame: DocumentFrame) -> bytes:
    """Read the message of a document."""
    with path.open("rb") as file:
        return _slice(file, frame.offset, frame.length)


def read_external_symbols(path: Path, extent: tuple[int, int] | None) -> Mapping[str, bytes]:
    """Read the messages of symbols of other packages, by symbol; the last result is cached.

    scip-python also puts symbols of documents there (`local 3`), without their document.
    """
    if extent is None:
        return {}
    status = path.stat()
    return _external_symbols(path, extent, (status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=1)
def _external_symbols(path: Path, extent: tuple[int, int], _version: tuple[int, int]) -> Mapping[str, bytes]:
    symbols: dict[str, bytes] = {}
    with path.open("rb") as file:
        for field in _fields(file, *extent, INDEX_FIELDS):
            if isinstance(field, Problem) or field.number != EXTERNAL_SYMBOL:
                continue
            message = _slice(file, field.offset, field.length)
            information = _decode(SymbolInformation, message)
            if information is not None and not information.symbol.startswith("local "):
                symbols.setdefault(information.symbol, message)
    return symbols


def copy_without_root(index: Path, target: Path) -> None:
    """Copy an index without the folder it was made in; the copy appears only when it is complete."""
    temporary = target.with_name(f".{target.name}-{os.getpid()}")
    with index.open("rb") as file, temporary.open("wb") as copy:
        first = next(_fields(file, 0, file.seek(0, os.SEEK_END), INDEX_FIELDS), None)
        copied = 0
        if isinstance(first, _Field) and first.number == METADATA:
            head = _decode(Index, _slice(file, 0, first.offset + first.length))
            if head is not None:
                head.metadata.ClearField("project_root")
                copy.write(head.SerializeToString())
                copied = first.offset + first.length
        file.seek(copied)
        shutil.copyfileobj(file, copy)
    temporary.replace(target)


def _scan(file: BinaryIO, size: int) -> _ScanState:
    state = _ScanState(None, {}, None, [])
    for field in _fields(file, 0, size, INDEX_FIELDS):
        if isinstance(field, Problem):
            state.problems.append(field)
        elif field.number == METADATA and state.metadata is None:
            state.metadata = _decode(
                Metadata, _slice(file, field.offset, min(field.length, MAX_METADATA_BYTES))
            )
            if state.metadata is None:
                state.problems.append(_corrupt(field.tag, "metadata that cannot be decoded"))
                break
        elif field.number == DOCUMENT:
            _add_document(file, field, state)
        elif field.number == EXTERNAL_SYMBOL:
            first = state.external_symbols[0] if state.external_symbols else field.tag
            state.external_symbols = first, field.offset + field.length
    return state


def _add_document(file: BinaryIO, field: _Field, state: _ScanState) -> None:
    path = _relative_path(file, field)
    if isinstance(path, Problem):
        state.problems.append(path)
    elif path in state.documents:
        message = f"byte {field.tag}: a second document for {path[: MESSAGE_CHARS // 2]}, left out"
        state.problems.append(Problem("warning", "read", "duplicate_document", message))
    else:
        state.documents[path] = DocumentFrame(path, field.offset, field.length)


def _relative_path(file: BinaryIO, document: _Field) -> str | Problem:
    """Read the path of a document, which usually is its first field."""
    raw = b""
    for field in _fields(file, document.offset, document.offset + document.length, DOCUMENT_FIELDS):
        if isinstance(field, Problem):
            return field
        if field.number == RELATIVE_PATH:
            raw = _slice(file, field.offset, field.length) if field.length <= MAX_PATH_BYTES else b""
            break
    path = raw.decode("utf-8", "replace")
    if "\ufffd" in path or "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
        message = f"byte {document.tag}: a document whose path is not below the root: {path!r}"
        return Problem("error", "read", "document_path", message[:MESSAGE_CHARS])
    return path


def _fields(
    file: BinaryIO, begin: int, end: int, length_fields: frozenset[int]
) -> Iterator[_Field | Problem]:
    """Yield the fields between two offsets; where the bytes are not a field, yield a problem and stop.

    Fields with the numbers in `length_fields` must have a length: otherwise it is not a message of this kind.
    """
    position = begin
    while position < end:
        file.seek(position)
        head = file.read(min(MAX_HEAD_BYTES, end - position))
        tag, after_tag = _varint(head, 0)
        number, wire = tag >> 3, tag & 7
        offset, length = _value_extent(head, after_tag, wire)
        if number < 1 or length < 0 or (number in length_fields and wire != BYTES):
            yield _corrupt(position, "no field of a SCIP index")
            return
        if position + offset + length > end:
            missing = position + offset + length - end
            yield _corrupt(position, f"a field of {length} bytes of which {missing} are missing")
            return
        yield _Field(number, position, position + offset, length)
        position += offset + length


def _value_extent(head: bytes, start: int, wire: int) -> tuple[int, int]:
    """Return the offset of the value of a field and its length, which is negative if it is invalid."""
    if wire == BYTES:
        length, offset = _varint(head, start)
        return offset, length
    if wire == VARINT:
        value, after = _varint(head, start)
        return start, after - start if value >= 0 else -1
    return start, {FIXED64: 8, FIXED32: 4}.get(wire, -1)


def _varint(data: bytes, start: int) -> tuple[int, int]:
    """Decode a number of at most ten bytes; return it (-1 if it does not end) and the position after it."""
    value = shift = 0
    for position in range(start, min(start + 10, len(data))):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
    return -1, start


def _slice(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def _corrupt(position: int, what: str) -> Problem:
    return Problem("error", "read", "corrupt_index", f"byte {position}: {what}")


def _decode(kind: Any, message: bytes) -> Any:
    try:
        return kind.FromString(message)
    except DecodeError:
        return None


def _metadata_cells(metadata: Any) -> dict[str, Any]:
    declared = metadata or Metadata()
    return {
        "protocol_version": declared.version if metadata else None,
        "tool_name": declared.tool_info.name or None,
        "tool_version": declared.tool_info.version or None,
        "tool_arguments": list(declared.tool_info.arguments) if metadata else None,
        "text_document_encoding": name_of(TEXT_ENCODINGS, declared.text_document_encoding),
    }


def _detect_dialect(file: BinaryIO, metadata: Any, frames: Sequence[DocumentFrame]) -> Dialect:
    if metadata is None or metadata.tool_info.name != SCIP_PYTHON:
        return Dialect()
    for frame in frames[:SEARCHED_DOCUMENTS]:
        document = _decode(Document, _slice(file, frame.offset, frame.length))
        for occurrence in document.occurrences if document else ():
            own = OWN_PACKAGE.match(occurrence.symbol) if occurrence.symbol_roles & DEFINITION else None
            if own:
                return Dialect("utf16", 1, own[1], own[2])
    return Dialect("utf16", 1)


def _limited(problems: list[Problem]) -> tuple[Problem, ...]:
    left_out = len(problems) - MAX_PROBLEMS
    if left_out <= 0:
        return tuple(problems)
    more = Problem("error", "read", "more_problems", f"{left_out} more problems are not listed")
    return (*problems[:MAX_PROBLEMS], more)
