r"""A document of a SCIP index as cells: what a type-aware indexer saw in a file.

    frames = read_frames(path)                       # on the driver: place of each document, see scip_frames
    outside = read_external_symbols(path, frames.external_symbols)   # on an executor
    for frame in frames.documents:
        document_cells(read_document(path, frame), source, frames.dialect, outside)

>>> from codeanatomy.extract.scip.schema import Document, Occurrence
>>> from codeanatomy.sources.source_file import decode
>>> seen = Document(occurrences=[Occurrence(range=[0, 8, 9], symbol="local 0", symbol_roles=1)])
>>> source = decode("a.py", 'e="😀"; é = e\n'.encode())
>>> said = document_cells(seen.SerializeToString(), source, Dialect("utf16"), {})
>>> said.cells["occurrences"]["bstart"], said.cells["occurrences"]["bend"], source.utf8[10:12].decode()
([10], [12], 'é')

What the protocol leaves open is told by the `Dialect` of the indexer. scip-python says nothing of its
position encoding; its columns are UTF-16 units, its lines end where CPython's do, and a byte order mark is a
column. Of an unknown tool that says nothing, only positions on ASCII lines are placed, which are the same in
every unit. The tools read files as UTF-8: in a file of another encoding, too, only such lines are. Spans are
the tool's: scip-python counts the parentheses of `(name)` to the name, and `a as b` is one occurrence of `a`.

Symbols lose the version of the project that was indexed, where it is known: `requests 2.34.2` becomes
`requests 0`. With it every symbol would be new with every release, or even commit. Symbols of documents
(`local 12`) stay as they are: with the path they are unique. An index tells of outside symbols once; here
each document has those that it mentions, so that no row grows with the repository.

A document that is damaged has null cells. A range that is malformed, or is not in the file, has a null span.

Tests: `tests/unit/extract/test_scip_index.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias, cast

# Protobuf brings no types.
import google.protobuf  # type: ignore[import-untyped]

from codeanatomy.extract.evidence import MESSAGE_CHARS, ExtractorResult, Problem
from codeanatomy.extract.positions import PositionConverter
from codeanatomy.extract.scip.index_file import Dialect, Frames
from codeanatomy.extract.scip.schema import (
    DIAGNOSTIC_TAGS,
    KINDS,
    SEVERITIES,
    SYNTAX_KINDS,
    Document,
    SymbolInformation,
    name_of,
)
from codeanatomy.sources.source_file import Source
from codeanatomy.spans import position_encoding_norm

VERSION = f"protobuf {google.protobuf.__version__}, rules 1"
# Stands in symbols for whatever version the project had.
PROJECT_VERSION = "0"

# Names of the role bits, lowest first.
ROLES = ("definition", "import", "write", "read", "generated", "test", "forward_definition")
RANGE = ("start_line", "start_col", "end_line", "end_col", "bstart", "bend")

Columns: TypeAlias = dict[str, list[Any]]
Row: TypeAlias = tuple[int | None, ...]
Stable: TypeAlias = Callable[[str], str | None]
NO_RANGE: Row = (None,) * len(RANGE)


def index_cells(frames: Frames) -> ExtractorResult:
    """The cells of the row of the index itself."""
    metadata = frames.metadata | {"document_count": len(frames.documents)}
    return ExtractorResult({"metadata": metadata}, frames.problems)


def document_cells(
    message: bytes, source: Source | None, dialect: Dialect, outside: Mapping[str, bytes]
) -> ExtractorResult:
    """The cells of a document's row; spans are null where the repository has no such file."""
    try:
        return _document(message, source, dialect, outside)
    # Never raising is the contract of every witness, and the bytes may be anything.
    except Exception as problem:  # noqa: BLE001
        said = f"{type(problem).__name__}: {problem}"
        return ExtractorResult({}, (Problem("error", "read", "corrupt_document", said[:MESSAGE_CHARS]),))


def _document(
    message: bytes, source: Source | None, dialect: Dialect, outside: Mapping[str, bytes]
) -> ExtractorResult:
    document = Document.FromString(message)
    encoding = position_encoding_norm(document.position_encoding) or dialect.position_encoding
    places = PositionConverter(source, encoding, dialect.bom_columns)
    stable = _stable_symbols(dialect)
    # Each access would make the objects anew.
    occurrences, symbols = list(document.occurrences), list(document.symbols)
    ranges = _Ranges(places)
    for occurrence in occurrences:
        ranges.add(_range(occurrence))
    told = (
        SymbolInformation.FromString(outside[each])
        for each in _mentioned(occurrences, symbols)
        if each in outside
    )
    cells = {
        "language": document.language or None,
        "position_encoding": encoding,
        "occurrences": _occurrences(occurrences, ranges, stable),
        "symbols": _symbols(symbols, stable),
        "external_symbols": _symbols(list(told), stable),
        "relationships": _relationships(symbols, stable),
        "diagnostics": _diagnostics(occurrences, ranges),
    }
    return ExtractorResult(cells, places.problems())


def _mentioned(occurrences: Sequence[Any], symbols: Sequence[Any]) -> dict[str, None]:
    """The symbols that are used or related to, in the order they are met."""
    used = (occurrence.symbol for occurrence in occurrences)
    related = (related.symbol for each in symbols for related in each.relationships)
    return dict.fromkeys(chain(used, related))


def _stable_symbols(dialect: Dialect) -> Stable:
    """A function that takes the project's version out of a symbol; the empty symbol is null."""
    if dialect.package is None or dialect.package_version == PROJECT_VERSION:
        return lambda symbol: symbol or None
    old, new = f"{dialect.package}{dialect.package_version} ", f"{dialect.package}{PROJECT_VERSION} "
    size = len(old)
    return lambda symbol: new + symbol[size:] if symbol.startswith(old) else symbol or None


def _occurrences(occurrences: Sequence[Any], ranges: _Ranges, stable: Stable) -> Columns:
    roles = [occurrence.symbol_roles for occurrence in occurrences]
    enclosing = _Ranges(ranges.places)
    for occurrence in occurrences:
        enclosing.add(_enclosing_range(occurrence), optional=True)
    return {
        "symbol": [stable(occurrence.symbol) for occurrence in occurrences],
        "symbol_roles": roles,
        **{f"is_{role}": [bits >> place & 1 == 1 for bits in roles] for place, role in enumerate(ROLES)},
        "syntax_kind": [name_of(SYNTAX_KINDS, occurrence.syntax_kind) for occurrence in occurrences],
        **_columns("", ranges.rows),
        **_columns("enclosing_", enclosing.rows),
    }


def _symbols(symbols: Sequence[Any], stable: Stable) -> Columns:
    return {
        "symbol": [stable(each.symbol) for each in symbols],
        "display_name": [each.display_name or None for each in symbols],
        "kind": [name_of(KINDS, each.kind) for each in symbols],
        "enclosing_symbol": [stable(each.enclosing_symbol) for each in symbols],
        "documentation": [list(each.documentation) for each in symbols],
        "signature": [each.signature_documentation.text or None for each in symbols],
    }


def _relationships(symbols: Sequence[Any], stable: Stable) -> Columns:
    pairs = [(stable(each.symbol), related) for each in symbols for related in each.relationships]
    return {
        "symbol": [symbol for symbol, _ in pairs],
        "related_symbol": [stable(related.symbol) for _, related in pairs],
        "is_reference": [related.is_reference for _, related in pairs],
        "is_implementation": [related.is_implementation for _, related in pairs],
        "is_type_definition": [related.is_type_definition for _, related in pairs],
        "is_definition": [related.is_definition for _, related in pairs],
    }


def _diagnostics(occurrences: Sequence[Any], ranges: _Ranges) -> Columns:
    """Diagnostics have the range of the occurrence they are about."""
    found = [
        (each, row)
        for occurrence, row in zip(occurrences, ranges.rows, strict=True)
        for each in occurrence.diagnostics
    ]
    return {
        "severity": [name_of(SEVERITIES, each.severity) for each, _ in found],
        "code": [each.code or None for each, _ in found],
        "message": [each.message or None for each, _ in found],
        "source": [each.source or None for each, _ in found],
        "tags": [[name_of(DIAGNOSTIC_TAGS, tag) for tag in each.tags if tag] for each, _ in found],
        **_columns("", [row for _, row in found]),
    }


# The ranges


def _range(occurrence: Any) -> Sequence[int]:
    """The three or four numbers of its range."""
    if occurrence.range:
        return cast(Sequence[int], occurrence.range)
    if occurrence.HasField("single_line_range"):
        return _single(occurrence.single_line_range)
    return _multi(occurrence.multi_line_range) if occurrence.HasField("multi_line_range") else ()


def _enclosing_range(occurrence: Any) -> Sequence[int]:
    """The same of what its target extends over, where that is told."""
    if occurrence.enclosing_range:
        return cast(Sequence[int], occurrence.enclosing_range)
    if occurrence.HasField("single_line_enclosing_range"):
        return _single(occurrence.single_line_enclosing_range)
    if occurrence.HasField("multi_line_enclosing_range"):
        return _multi(occurrence.multi_line_enclosing_range)
    return ()


def _single(place: Any) -> Sequence[int]:
    return place.line, place.start_character, place.end_character


def _multi(place: Any) -> Sequence[int]:
    return place.start_line, place.start_character, place.end_line, place.end_character


class _Ranges:
    """Ranges as rows of `RANGE` as they are added."""

    def __init__(self, places: PositionConverter) -> None:
        self.places = places
        self.rows: list[Row] = []

    def add(self, numbers: Sequence[int], *, optional: bool = False) -> None:
        if len(numbers) == 3:
            line, col, end_col = numbers
            end_line = line
        elif len(numbers) == 4:
            line, col, end_line, end_col = numbers
        else:
            line = col = end_line = end_col = -1
        if min(line, col, end_col) < 0 or (end_line, end_col) < (line, col):
            self.rows.append(NO_RANGE)
            if numbers or not optional:
                self.places.malformed.append(list(numbers[:5]))
            return
        bstart, bend = self.places.at(line, col), self.places.at(end_line, end_col)
        if bstart is None or bend is None:
            bstart = bend = None
            self.places.unplaced.append((line, col, end_line, end_col))
        self.rows.append((line, col, end_line, end_col, bstart, bend))


def _columns(prefix: str, rows: Sequence[Row]) -> Columns:
    return {f"{prefix}{name}": [row[place] for row in rows] for place, name in enumerate(RANGE)}
