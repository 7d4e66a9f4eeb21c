"""Build the rows of a SCIP index: one for the index, one per document, and their failures.

An index is divided into partitions of documents, as files are (`extract.partitions`); each document is joined
with the file of its path, because the text of the file is needed to convert columns to byte offsets.

    index.scip of requests    -> row_kind index, path index.scip
      requests/api.py         -> row_kind document, path requests/api.py, file_id of that file

Tests: `tests/spark/test_scip_build.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import Cells, ExtractorResult, Problem, SkippedSteps
from codeanatomy.extract.file_rows import FAILURES, FILE, FailureRows, FileRows, Row, extractor_row
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.extract.scip.documents import VERSION, document_cells, index_cells
from codeanatomy.extract.scip.index_file import (
    Dialect,
    DocumentFrame,
    read_document,
    read_external_symbols,
    scan_index,
)
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import file_id
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import read_entries
from codeanatomy.sources.source_file import Source, decode

SCIP = "scip_index_v1"
# Bytes of documents per task, and per chunk of a task.
PARTITION_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
READ, DOCUMENT = 0, 1

# A document, and the file of its path, if the repository has it.
DocumentEntry: TypeAlias = tuple[DocumentFrame, Entry | None]
Symbols: TypeAlias = Mapping[str, bytes]


class ScipPartition(Struct, frozen=True, tag=True):
    """Documents of an index for one task."""

    root: RepositoryRoot
    # The path of the index, and its name in the rows.
    location: str
    index_path: str
    index_sha256: str
    dialect: Dialect
    external_symbols: tuple[int, int] | None
    files: list[DocumentEntry]
    # Cells of the row of the index itself; only in its first partition.
    index: Cells | None = None
    problems: tuple[Problem, ...] = ()


def partition_index(root: RepositoryRoot, files: Iterable[Entry], location: Path) -> list[ScipPartition]:
    """Divide the documents of an index into tasks; one task without documents if it cannot be read."""
    try:
        index = scan_index(location)
    except OSError as problem:
        return [failed_index(root, location.name, Problem("error", "read", "unreadable", str(problem)))]
    result = index_cells(index)
    entries = {entry.path: entry for entry in files if entry.skipped_reason is None}
    whole = ScipPartition(
        root,
        str(location.absolute()),
        location.name,
        index.index_sha256,
        index.dialect,
        index.external_symbols,
        [(frame, entries.get(frame.path)) for frame in index.documents],
    )
    first, *others = _split(whole, PARTITION_BYTES)
    return [structs.replace(first, index=result.cells, problems=result.problems), *others]


def failed_index(root: RepositoryRoot, index_path: str, *problems: Problem) -> ScipPartition:
    """Return the partition of an index that could not be made or read: it has only failures."""
    return ScipPartition(root, "", index_path, "", Dialect(), None, [], None, problems)


def document_chunks(partition: ScipPartition) -> Iterator[ScipPartition]:
    """Split a partition into chunks with rows that fit into memory; the first has the row of the index."""
    first, *others = _split(partition, CHUNK_BYTES)
    yield first
    yield from map(without_index, others)


def without_index(partition: ScipPartition) -> ScipPartition:
    """Return the partition without the row of the index and its problems, which are written once."""
    return structs.replace(partition, index=None, problems=())


def _split(partition: ScipPartition, size: int) -> list[ScipPartition]:
    parts: list[list[DocumentEntry]] = [[]]
    filled = 0
    for frame, entry in partition.files:
        if parts[-1] and filled + frame.length > size:
            parts.append([])
            filled = 0
        parts[-1].append((frame, entry))
        filled += frame.length
    return [structs.replace(partition, files=part) for part in parts]


def extract_documents(
    partition: ScipPartition,
    options: ExtractOptions,
    skipped_steps: SkippedSteps,
    enter: Callable[[int, int], None],
) -> Iterator[FileRows]:
    """Yield the rows of a chunk: of the index, and of each document."""
    repo_id = partition.root.repo_id
    index_id = stable_id("index", repo_id, partition.index_path)
    common = {
        "repo_id": repo_id,
        "index_id": index_id,
        "index_path": partition.index_path,
        "witness_version": VERSION,
    }
    if partition.index is not None or partition.problems:
        file = {"repo_id": repo_id, "path": partition.index_path}
        # Only here: rows of documents must not change with the digest of the index if their contents do not.
        of_index = {**common, "index_sha256": partition.index_sha256}
        result = ExtractorResult(partition.index or {}, partition.problems)
        yield _rows(file, of_index, "index", result, partition.index is not None)
    if partition.files:
        enter(0, READ)
        symbols = _external_symbols(partition, READ in skipped_steps.get(0, {}))
        contents = _read_files(partition, skipped_steps, options)
    for number, (frame, _) in enumerate(partition.files):
        skipped = skipped_steps.get(number, {})
        raw = contents.get(frame.path)
        file = _file_columns(repo_id, frame.path, raw)
        enter(number, DOCUMENT)
        if skipped:
            result = ExtractorResult({}, tuple(dict.fromkeys(skipped.values())))
        else:
            result = _extract_document(partition, frame, raw, symbols)
        yield _rows(file, common, "document", result, True)


def _extract_document(
    partition: ScipPartition, frame: DocumentFrame, raw: bytes | None, symbols: Symbols
) -> ExtractorResult:
    try:
        message = read_document(Path(partition.location), frame)
    except OSError as problem:
        return ExtractorResult({}, (Problem("error", "read", "unreadable", str(problem)),))
    return document_cells(message, _source(frame.path, raw), partition.dialect, symbols)


def _external_symbols(partition: ScipPartition, is_skipped: bool) -> Symbols:
    try:
        location = Path(partition.location)
        return {} if is_skipped else read_external_symbols(location, partition.external_symbols)
    except OSError:
        # Reading each document will fail, too, and is recorded.
        return {}


def _rows(file: Row, common: Row, row_kind: str, result: ExtractorResult, has_row: bool) -> FileRows:
    failures = FailureRows()
    failures.add(SCIP, result.problems)
    row = extractor_row(SCIP, {**file, **common, "row_kind": row_kind}, result) if has_row else None
    return {FILE: file, SCIP: row, FAILURES: failures.cells()}


def _read_files(
    partition: ScipPartition, skipped_steps: SkippedSteps, options: ExtractOptions
) -> dict[str, bytes]:
    """Read the bytes of the documents' files, by path."""
    numbered = enumerate(partition.files)
    wanted = [entry for number, (_, entry) in numbered if entry and READ not in skipped_steps.get(number, {})]
    readings = read_entries(partition.root.kind, partition.root.root, wanted, options)
    return {reading.entry.path: reading.raw for reading in readings if reading.raw is not None}


def _source(path: str, raw: bytes | None) -> Source | None:
    source = None if raw is None else decode(path, raw)
    return source if isinstance(source, Source) else None


def _file_columns(repo_id: str, path: str, raw: bytes | None) -> Row:
    columns: Row = {"repo_id": repo_id, "path": path}
    if raw is not None:
        columns |= {"file_id": file_id(repo_id, path), "file_sha256": sha256(raw).hexdigest()}
    return columns
