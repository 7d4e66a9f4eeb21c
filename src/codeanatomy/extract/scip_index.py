"""The rows of a SCIP index: one for the index, one per document, and their failures.

An index is cut into shares of documents, as files are (`shares`); each document is joined with the file of
its path, whose text gives its columns their byte offsets.

    index.scip of requests    -> row_kind index, path index.scip
      requests/api.py         -> row_kind document, path requests/api.py, file_id of that file

Tests: `tests/spark/test_scip_build.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import Cells, ExtractorResult, Problem, SkippedSteps
from codeanatomy.extract.file_rows import FAILURES, FailureRows, Rows, extractor_row, file_id
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.extract.scip.documents import VERSION, document_cells, index_cells
from codeanatomy.extract.scip.index_file import (
    Dialect,
    DocumentFrame,
    read_document,
    read_external_symbols,
    read_frames,
)
from codeanatomy.ids import stable_id
from codeanatomy.sources.listing import Entry, Listing
from codeanatomy.sources.reading import read_entries
from codeanatomy.sources.source_file import Source, decode

SCIP = "scip_index_v1"
# Bytes of documents that one task, and one chunk of it, reads.
SHARE_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
READ, DOCUMENT = 0, 1

Found: TypeAlias = tuple[DocumentFrame, Entry | None]
Symbols: TypeAlias = Mapping[str, bytes]


class ScipPartition(Struct, frozen=True, tag=True):
    """Documents of an index, each with the file of its path, if the repository has it."""

    place: RepositoryRoot
    # Where the index is, and the name it has in the rows.
    location: str
    index_path: str
    index_sha256: str
    dialect: Dialect
    external_symbols: tuple[int, int] | None
    files: list[Found]
    # The row of the index itself; only in its first share.
    index: Cells | None = None
    problems: tuple[Problem, ...] = ()


def partition_index(repo_id: str, listing: Listing, location: Path) -> list[ScipPartition]:
    """The shares of an index; one without documents where it cannot be read."""
    place = RepositoryRoot(repo_id, listing.kind, listing.root)
    try:
        frames = read_frames(location)
    except OSError as problem:
        return [failed_index(place, location.name, Problem("error", "read", "unreadable", str(problem)))]
    said = index_cells(frames)
    entries = {entry.path: entry for entry in listing.entries if entry.skipped_reason is None}
    whole = ScipPartition(
        place,
        str(location.absolute()),
        location.name,
        frames.index_sha256,
        frames.dialect,
        frames.external_symbols,
        [(frame, entries.get(frame.path)) for frame in frames.documents],
    )
    first, *others = _cut(whole, SHARE_BYTES)
    return [structs.replace(first, index=said.cells, problems=said.problems), *others]


def failed_index(place: RepositoryRoot, index_path: str, *problems: Problem) -> ScipPartition:
    """The share of an index that could not be had: only its failures."""
    return ScipPartition(place, "", index_path, "", Dialect(), None, [], None, problems)


def document_chunks(share: ScipPartition) -> Iterator[ScipPartition]:
    """The share in pieces whose rows fit into memory; the first tells of the index."""
    first, *others = _cut(share, CHUNK_BYTES)
    yield first
    yield from map(without_index, others)


def without_index(share: ScipPartition) -> ScipPartition:
    """The share with its documents alone: what is told of the index is told once."""
    return structs.replace(share, index=None, problems=())


def _cut(share: ScipPartition, size: int) -> list[ScipPartition]:
    parts: list[list[Found]] = [[]]
    filled = 0
    for frame, entry in share.files:
        if parts[-1] and filled + frame.length > size:
            parts.append([])
            filled = 0
        parts[-1].append((frame, entry))
        filled += frame.length
    return [structs.replace(share, files=part) for part in parts]


def extract_documents(
    share: ScipPartition, options: ExtractOptions, silenced: SkippedSteps, enter: Callable[[int, int], None]
) -> Iterator[Rows]:
    """The rows of a chunk: of the index, and of each document."""
    repo_id = share.place.repo_id
    index_id = stable_id("index", repo_id, share.index_path)
    known = {
        "repo_id": repo_id,
        "index_id": index_id,
        "index_path": share.index_path,
        "witness_version": VERSION,
    }
    if share.index is not None or share.problems:
        place = {"repo_id": repo_id, "path": share.index_path}
        # Documents of another index that say the same are the same rows.
        of_index = {**known, "index_sha256": share.index_sha256}
        yield _rows(
            place, of_index, "index", ExtractorResult(share.index or {}, share.problems), share.index is not None
        )
    if share.files:
        enter(0, READ)
        symbols = _external_symbols(share, READ in silenced.get(0, {}))
        read = _readings(share, silenced, options)
    for number, (frame, _) in enumerate(share.files):
        dead = silenced.get(number, {})
        raw = read.get(frame.path)
        place = _file_place(repo_id, frame.path, raw)
        enter(number, DOCUMENT)
        if dead:
            said = ExtractorResult({}, tuple(dict.fromkeys(dead.values())))
        else:
            said = _document(share, frame, raw, symbols)
        yield _rows(place, known, "document", said, True)


def _document(share: ScipPartition, frame: DocumentFrame, raw: bytes | None, symbols: Symbols) -> ExtractorResult:
    try:
        message = read_document(Path(share.location), frame)
    except OSError as problem:
        return ExtractorResult({}, (Problem("error", "read", "unreadable", str(problem)),))
    return document_cells(message, _source(frame.path, raw), share.dialect, symbols)


def _external_symbols(share: ScipPartition, silenced: bool) -> Symbols:
    try:
        return {} if silenced else read_external_symbols(Path(share.location), share.external_symbols)
    except OSError:
        # Each document will say so.
        return {}


def _rows(place: Rows, known: Rows, row_kind: str, said: ExtractorResult, has_row: bool) -> Rows:
    failures = FailureRows()
    failures.add(SCIP, said.problems)
    row = extractor_row(SCIP, {**place, **known, "row_kind": row_kind}, said) if has_row else None
    return {"place": place, SCIP: row, FAILURES: failures.cells()}


def _readings(share: ScipPartition, silenced: SkippedSteps, options: ExtractOptions) -> dict[str, bytes]:
    """The bytes of the documents' files, by path."""
    numbered = enumerate(share.files)
    wanted = [entry for number, (_, entry) in numbered if entry and READ not in silenced.get(number, {})]
    found = read_entries(share.place.kind, share.place.root, wanted, options)
    return {reading.entry.path: reading.raw for reading in found if reading.raw is not None}


def _source(path: str, raw: bytes | None) -> Source | None:
    source = None if raw is None else decode(path, raw)
    return source if isinstance(source, Source) else None


def _file_place(repo_id: str, path: str, raw: bytes | None) -> Rows:
    place: Rows = {"repo_id": repo_id, "path": path}
    if raw is not None:
        place |= {"file_id": file_id(repo_id, path), "file_sha256": sha256(raw).hexdigest()}
    return place
