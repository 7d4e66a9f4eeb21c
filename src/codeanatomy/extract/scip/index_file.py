"""A SCIP index from above: where its documents lie, who made it, what is wrong with it.

An index may have hundreds of megabytes, so it is never held whole. A protobuf message is a row of fields,
each with a tag and a length: `read_frames` goes from field to field by seeking, and looks at the metadata and
at the path of each document.

    offset   0  metadata, 47 bytes              {tool_info: scip-python 0.6.6}
            49  document, 61,204 bytes          "requests/__init__.py" ...
        61,257  document, ...
       724,051  outside symbol, 112 bytes ...

Whatever is wrong becomes a problem, and the documents before the damage stay usable. Damage is found where a
field is none of an index, or has a length beyond the end. An index that was cut between two documents looks
whole: that is how protobuf is.

Documents have paths below the root of the repository; one that escapes from it (`../x`, `/x`) is left out,
and so is a second document of the same path. The version of a project in its symbols is often a commit
hash. Which symbols are the project's own is known for scip-python only, all of whose definitions are of one
package; it is part of the `Dialect`.

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

# Protobuf brings no types.
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
# Of an index; a file that is no index at all may have one for every few bytes.
MAX_PROBLEMS = 100

METADATA, DOCUMENT, EXTERNAL_SYMBOL = 1, 2, 3
RELATIVE_PATH = 1
# Fields of an index, and of a document, that are messages or strings.
INDEX_FIELDS = frozenset({METADATA, DOCUMENT, EXTERNAL_SYMBOL})
DOCUMENT_FIELDS = frozenset({RELATIVE_PATH, 2, 3, 4, 5})
# Wire types: how the end of a value is found.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Two varints of ten bytes.
LONGEST_HEAD = 20
# No more is read of what a damaged file calls its metadata or a path.
LARGEST_METADATA = 16 * 1024 * 1024
LONGEST_PATH = 32 * 1024
# Documents that are asked for the project's package; the first one knows it.
ASKED_DOCUMENTS = 100

DEFINITION = 1
# Scheme, manager and name of a package, then its version. A space in a part is doubled.
PART = r"(?:[^ ]|  )+"
OWN_PACKAGE = re.compile(rf"({SCIP_PYTHON} python {PART} )({PART}) ")


class Dialect(Struct, frozen=True):
    """What an indexer does without saying so."""

    # Unit of columns where a document names none.
    position_encoding: PositionEncoding | None = None
    # Columns that a byte order mark takes; none if that is not known.
    bom_columns: int | None = None
    # The project's package in its symbols, up to the version ("scip-python python requests "), and from it.
    package: str | None = None
    package_version: str | None = None


class DocumentFrame(Struct, frozen=True, array_like=True):
    """Where a document lies in the index."""

    path: str
    offset: int
    length: int


class Frames(Struct, frozen=True):
    """An index from above: everything but the contents of its documents."""

    index_sha256: str
    # Fields of the column `metadata`, without the count of documents.
    metadata: dict[str, Any]
    dialect: Dialect
    documents: tuple[DocumentFrame, ...]
    # First byte of the first outside symbol and the byte after the last.
    external_symbols: tuple[int, int] | None
    problems: tuple[Problem, ...]


class _Field(NamedTuple):
    """A value of a message: the field's number, where it begins with its tag, and where its bytes are."""

    number: int
    tag: int
    offset: int
    length: int


class _Found(Struct):
    """What a scan has found so far."""

    metadata: Any
    documents: dict[str, DocumentFrame]
    external_symbols: tuple[int, int] | None
    problems: list[Problem]


def read_frames(path: Path) -> Frames:
    """Look through an index. Raises only where the file cannot be read at all (OSError)."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.seek(0, os.SEEK_END)
        found = _scan(file, size)
        documents = tuple(found.documents.values())
        dialect = _dialect(file, found.metadata, documents)
    if found.metadata is None and not found.problems:
        said = "no metadata, with which an index begins" if size else "the file is empty"
        found.problems.append(Problem("error", "read", "no_metadata", said))
    metadata = _metadata_cells(found.metadata)
    return Frames(digest, metadata, dialect, documents, found.external_symbols, _bounded(found.problems))


def read_document(path: Path, frame: DocumentFrame) -> bytes:
    """The message of a document."""
    with path.open("rb") as file:
        return _slice(file, frame.offset, frame.length)


def read_external_symbols(path: Path, place: tuple[int, int] | None) -> Mapping[str, bytes]:
    """What the index tells of symbols of other packages, by symbol; the last answer is remembered.

    scip-python also puts symbols of documents there (`local 3`), without saying of which document.
    """
    if place is None:
        return {}
    status = path.stat()
    return _external_symbols(path, place, (status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=1)
def _external_symbols(path: Path, place: tuple[int, int], _version: tuple[int, int]) -> Mapping[str, bytes]:
    symbols: dict[str, bytes] = {}
    with path.open("rb") as file:
        for field in _fields(file, *place, INDEX_FIELDS):
            if isinstance(field, Problem) or field.number != EXTERNAL_SYMBOL:
                continue
            message = _slice(file, field.offset, field.length)
            information = _parsed(SymbolInformation, message)
            if information is not None and not information.symbol.startswith("local "):
                symbols.setdefault(information.symbol, message)
    return symbols


def copy_without_root(index: Path, target: Path) -> None:
    """A copy that does not tell in which folder it was made; it is in its place once it is whole."""
    fresh = target.with_name(f".{target.name}-{os.getpid()}")
    with index.open("rb") as file, fresh.open("wb") as copy:
        first = next(_fields(file, 0, file.seek(0, os.SEEK_END), INDEX_FIELDS), None)
        place = 0
        if isinstance(first, _Field) and first.number == METADATA:
            whole = _parsed(Index, _slice(file, 0, first.offset + first.length))
            if whole is not None:
                whole.metadata.ClearField("project_root")
                copy.write(whole.SerializeToString())
                place = first.offset + first.length
        file.seek(place)
        shutil.copyfileobj(file, copy)
    fresh.replace(target)


def _scan(file: BinaryIO, size: int) -> _Found:
    found = _Found(None, {}, None, [])
    for field in _fields(file, 0, size, INDEX_FIELDS):
        if isinstance(field, Problem):
            found.problems.append(field)
        elif field.number == METADATA and found.metadata is None:
            found.metadata = _parsed(
                Metadata, _slice(file, field.offset, min(field.length, LARGEST_METADATA))
            )
            if found.metadata is None:
                found.problems.append(_corrupt(field.tag, "metadata that cannot be decoded"))
                break
        elif field.number == DOCUMENT:
            _add_document(file, field, found)
        elif field.number == EXTERNAL_SYMBOL:
            first = found.external_symbols[0] if found.external_symbols else field.tag
            found.external_symbols = first, field.offset + field.length
    return found


def _add_document(file: BinaryIO, field: _Field, found: _Found) -> None:
    path = _relative_path(file, field)
    if isinstance(path, Problem):
        found.problems.append(path)
    elif path in found.documents:
        said = f"byte {field.tag}: a second document for {path[: MESSAGE_CHARS // 2]}, left out"
        found.problems.append(Problem("warning", "read", "duplicate_document", said))
    else:
        found.documents[path] = DocumentFrame(path, field.offset, field.length)


def _relative_path(file: BinaryIO, document: _Field) -> str | Problem:
    """The path of a document, which usually is its first field."""
    raw = b""
    for field in _fields(file, document.offset, document.offset + document.length, DOCUMENT_FIELDS):
        if isinstance(field, Problem):
            return field
        if field.number == RELATIVE_PATH:
            raw = _slice(file, field.offset, field.length) if field.length <= LONGEST_PATH else b""
            break
    path = raw.decode("utf-8", "replace")
    if "\ufffd" in path or "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
        said = f"byte {document.tag}: a document whose path is not below the root: {path!r}"
        return Problem("error", "read", "document_path", said[:MESSAGE_CHARS])
    return path


def _fields(file: BinaryIO, begin: int, end: int, lengthy: frozenset[int]) -> Iterator[_Field | Problem]:
    """The fields between two offsets; a problem, and no more, where they end before the end.

    Fields of the numbers in `lengthy` must carry their length: anything else is no message of this kind.
    """
    place = begin
    while place < end:
        file.seek(place)
        head = file.read(min(LONGEST_HEAD, end - place))
        tag, after_tag = _varint(head, 0)
        number, wire = tag >> 3, tag & 7
        offset, length = _extent(head, after_tag, wire)
        if number < 1 or length < 0 or (number in lengthy and wire != BYTES):
            yield _corrupt(place, "no field of a SCIP index")
            return
        if place + offset + length > end:
            missing = place + offset + length - end
            yield _corrupt(place, f"a field of {length} bytes of which {missing} are missing")
            return
        yield _Field(number, place, place + offset, length)
        place += offset + length


def _extent(head: bytes, at: int, wire: int) -> tuple[int, int]:
    """Where the value of a field begins, and its length; negative if there is none."""
    if wire == BYTES:
        length, offset = _varint(head, at)
        return offset, length
    if wire == VARINT:
        value, after = _varint(head, at)
        return at, after - at if value >= 0 else -1
    return at, {FIXED64: 8, FIXED32: 4}.get(wire, -1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of at most ten bytes, and the place after it; -1 if it does not end."""
    value = shift = 0
    for place in range(at, min(at + 10, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    return -1, at


def _slice(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def _corrupt(place: int, what: str) -> Problem:
    return Problem("error", "read", "corrupt_index", f"byte {place}: {what}")


def _parsed(kind: Any, message: bytes) -> Any:
    try:
        return kind.FromString(message)
    except DecodeError:
        return None


def _metadata_cells(metadata: Any) -> dict[str, Any]:
    said = metadata or Metadata()
    return {
        "protocol_version": said.version if metadata else None,
        "tool_name": said.tool_info.name or None,
        "tool_version": said.tool_info.version or None,
        "tool_arguments": list(said.tool_info.arguments) if metadata else None,
        "text_document_encoding": name_of(TEXT_ENCODINGS, said.text_document_encoding),
    }


def _dialect(file: BinaryIO, metadata: Any, frames: Sequence[DocumentFrame]) -> Dialect:
    if metadata is None or metadata.tool_info.name != SCIP_PYTHON:
        return Dialect()
    for frame in frames[:ASKED_DOCUMENTS]:
        document = _parsed(Document, _slice(file, frame.offset, frame.length))
        for occurrence in document.occurrences if document else ():
            own = OWN_PACKAGE.match(occurrence.symbol) if occurrence.symbol_roles & DEFINITION else None
            if own:
                return Dialect("utf16", 1, own[1], own[2])
    return Dialect("utf16", 1)


def _bounded(problems: list[Problem]) -> tuple[Problem, ...]:
    left_out = len(problems) - MAX_PROBLEMS
    if left_out <= 0:
        return tuple(problems)
    more = Problem("error", "read", "more_problems", f"{left_out} more problems are not listed")
    return (*problems[:MAX_PROBLEMS], more)
