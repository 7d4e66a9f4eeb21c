r"""Convert a document of a SCIP index to cells: occurrences, symbols, relationships and diagnostics.

    index = scan_index(path)                         # on the driver: offset of each document, see
    `scip.index_file` external = read_external_symbols(path, index.external_symbols)   # on an executor for
    frame in index.documents:
        document_cells(read_document(path, frame), source, index.dialect, external)

>>> from codeanatomy.extract.scip.schema import Document, Occurrence
>>> from codeanatomy.sources.source_file import decode
>>> document = Document(occurrences=[Occurrence(range=[0, 8, 9], symbol="local 0", symbol_roles=1)])
>>> source = decode("a.py", 'e="😀"; é = e\n'.encode())
>>> cells = document_cells(document.SerializeToString(), source, Dialect("utf16"), {}).cells
>>> cells["occurrences"]["bstart"], cells["occurrences"]["bend"], source.utf8[10:12].decode()
([10], [12], 'é')

The `Dialect` of the indexer decides what the protocol leaves open. scip-python does not declare its position
encoding; its columns are UTF-16 units, its lines end where CPython's do, and a byte order mark is a column.
Of an unknown tool without a declaration, only positions on ASCII lines are converted, which are the same in
every unit. The tools read files as UTF-8: in a file of another encoding, too, only such lines are. Spans are
the tool's: scip-python includes the parentheses of `(name)`, and `a as b` is one occurrence of `a`.

The version of the indexed project is removed from symbols, where it is known: `requests 2.34.2` becomes
`requests 0`. With it every symbol would be new with every release, or even commit. Symbols of documents
(`local 12`) stay as they are: with the path they are unique. An index lists external symbols once; here
each document has those that it mentions, so that no row grows with the repository.

A damaged document has null cells. A range that is malformed, or is not in the file, has a null span.

Tests: `tests/unit/extract/test_scip_index.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias, cast

# Protobuf has no type hints.
import google.protobuf  # type: ignore[import-untyped]

from codeanatomy.extract.evidence import MESSAGE_CHARS, ExtractorResult, Problem
from codeanatomy.extract.positions import PositionConverter
from codeanatomy.extract.scip.index_file import Dialect, IndexScan
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
# Replaces the version of the project in symbols.
PROJECT_VERSION = "0"

# Names of the role bits, lowest first.
ROLES = ("definition", "import", "write", "read", "generated", "test", "forward_definition")
RANGE = ("start_line", "start_col", "end_line", "end_col", "bstart", "bend")

Columns: TypeAlias = dict[str, list[Any]]
Row: TypeAlias = tuple[int | None, ...]
Stable: TypeAlias = Callable[[str], str | None]
NO_RANGE: Row = (None,) * len(RANGE)


def index_cells(index: IndexScan) -> ExtractorResult:
    """Return the cells of the row of the index itself."""
    metadata = index.metadata | {"document_count": len(index.documents)}
    return ExtractorResult({"metadata": metadata}, index.problems)


def document_cells(
    message: bytes, source: Source | None, dialect: Dialect, external: Mapping[str, bytes]
) -> ExtractorResult:
    """Return the cells of a document's row; spans are null if the repository has no such file."""
    try:
        return _document(message, source, dialect, external)
    # Never raising is the contract of every extractor, and the bytes may be anything.
    except Exception as error:  # noqa: BLE001
        reason = f"{type(error).__name__}: {error}"
        return ExtractorResult({}, (Problem("error", "read", "corrupt_document", reason[:MESSAGE_CHARS]),))


def _document(
    message: bytes, source: Source | None, dialect: Dialect, external: Mapping[str, bytes]
) -> ExtractorResult:
    document = Document.FromString(message)
    encoding = position_encoding_norm(document.position_encoding) or dialect.position_encoding
    positions = PositionConverter(source, encoding, dialect.bom_columns)
    stable = _stable_symbols(dialect)
    # Each access to a repeated field creates the objects again.
    occurrences, symbols = list(document.occurrences), list(document.symbols)
    ranges = _Ranges(positions)
    for occurrence in occurrences:
        ranges.add(_range(occurrence))
    external_symbols = [
        SymbolInformation.FromString(external[each])
        for each in _mentioned(occurrences, symbols)
        if each in external
    ]
    cells = {
        "language": document.language or None,
        "position_encoding": encoding,
        "occurrences": _occurrences(occurrences, ranges, stable),
        "symbols": _symbols(symbols, stable),
        "external_symbols": _symbols(external_symbols, stable),
        "relationships": _relationships(symbols, stable),
        "diagnostics": _diagnostics(occurrences, ranges),
    }
    return ExtractorResult(cells, positions.problems())


def _mentioned(occurrences: Sequence[Any], symbols: Sequence[Any]) -> dict[str, None]:
    """Return the symbols in occurrences and relationships, in order of appearance."""
    used = (occurrence.symbol for occurrence in occurrences)
    related = (related.symbol for each in symbols for related in each.relationships)
    return dict.fromkeys(chain(used, related))


def _stable_symbols(dialect: Dialect) -> Stable:
    """Return a function that removes the project's version from a symbol; the empty symbol becomes None."""
    if dialect.package is None or dialect.package_version == PROJECT_VERSION:
        return lambda symbol: symbol or None
    old, new = f"{dialect.package}{dialect.package_version} ", f"{dialect.package}{PROJECT_VERSION} "
    size = len(old)
    return lambda symbol: new + symbol[size:] if symbol.startswith(old) else symbol or None


def _occurrences(occurrences: Sequence[Any], ranges: _Ranges, stable: Stable) -> Columns:
    roles = [occurrence.symbol_roles for occurrence in occurrences]
    enclosing = _Ranges(ranges.positions)
    for occurrence in occurrences:
        enclosing.add(_enclosing_range(occurrence), optional=True)
    return {
        "symbol": [stable(occurrence.symbol) for occurrence in occurrences],
        "symbol_roles": roles,
        **{f"is_{role}": [bits >> bit & 1 == 1 for bits in roles] for bit, role in enumerate(ROLES)},
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
    """Return the diagnostics with the range of their occurrence."""
    pairs = [
        (each, row)
        for occurrence, row in zip(occurrences, ranges.rows, strict=True)
        for each in occurrence.diagnostics
    ]
    return {
        "severity": [name_of(SEVERITIES, each.severity) for each, _ in pairs],
        "code": [each.code or None for each, _ in pairs],
        "message": [each.message or None for each, _ in pairs],
        "source": [each.source or None for each, _ in pairs],
        "tags": [[name_of(DIAGNOSTIC_TAGS, tag) for tag in each.tags if tag] for each, _ in pairs],
        **_columns("", [row for _, row in pairs]),
    }


# The ranges


def _range(occurrence: Any) -> Sequence[int]:
    """Return the three or four numbers of the range of an occurrence."""
    if occurrence.range:
        return cast(Sequence[int], occurrence.range)
    if occurrence.HasField("single_line_range"):
        return _single(occurrence.single_line_range)
    return _multi(occurrence.multi_line_range) if occurrence.HasField("multi_line_range") else ()


def _enclosing_range(occurrence: Any) -> Sequence[int]:
    """Return the numbers of the enclosing range of an occurrence, if it has one."""
    if occurrence.enclosing_range:
        return cast(Sequence[int], occurrence.enclosing_range)
    if occurrence.HasField("single_line_enclosing_range"):
        return _single(occurrence.single_line_enclosing_range)
    if occurrence.HasField("multi_line_enclosing_range"):
        return _multi(occurrence.multi_line_enclosing_range)
    return ()


def _single(message: Any) -> Sequence[int]:
    return message.line, message.start_character, message.end_character


def _multi(message: Any) -> Sequence[int]:
    return message.start_line, message.start_character, message.end_line, message.end_character


class _Ranges:
    """Collect ranges as rows with the columns of `RANGE`."""

    def __init__(self, positions: PositionConverter) -> None:
        self.positions = positions
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
                self.positions.malformed.append(list(numbers[:5]))
            return
        bstart, bend = self.positions.offset_at(line, col), self.positions.offset_at(end_line, end_col)
        if bstart is None or bend is None:
            bstart = bend = None
            self.positions.unplaced.append((line, col, end_line, end_col))
        self.rows.append((line, col, end_line, end_col, bstart, bend))


def _columns(prefix: str, rows: Sequence[Row]) -> Columns:
    return {f"{prefix}{name}": [row[index] for row in rows] for index, name in enumerate(RANGE)}
