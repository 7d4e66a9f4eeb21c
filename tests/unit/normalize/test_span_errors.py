"""Positions that could not be placed: each reason, the nearest place, and silence on healthy input."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from codeanatomy import catalog
from codeanatomy.extract.ast_files import FSTRINGS_ARE_PARSED_SEPARATELY
from codeanatomy.extract.scip.documents import document_cells
from codeanatomy.extract.scip.index_file import Dialect
from codeanatomy.extract.scip.schema import Document, Occurrence
from codeanatomy.node_ids import file_id
from codeanatomy.normalize.span_errors import MESSAGES, span_errors_v1
from codeanatomy.sources.source_file import Source, decode
from support.file_evidence import FSTRING, Rows, derived_rows, document, files_of, witnessed

TABLE = catalog.table("span_errors_v1")
TEXT = "é = 1\nprint(é)\n"
SOURCES = {
    "a.py": TEXT.encode(),
    "unended.py": TEXT.rstrip("\n").encode(),
    "healthy.py": b"import os\nx = f'{os}'\nprint(x)\n",
    "latin.py": "# coding: latin-1\nname = 'é'\n".encode("latin-1"),
    "bad.py": b"x = '\xff'\n",
    "empty.py": b"",
    "fstring.py": FSTRING.encode(),
    "refused.py": b"print 1\n",
    "misplaced.py": b"x = 1\n",
    "unknown.py": TEXT.encode(),
}


def seen(path: str, *occurrences: Any, dialect: Dialect | None = None, **cells: Any) -> dict[str, Any]:
    """A document row as the extract stage makes it of what an indexer saw."""
    source = decode(path, SOURCES[path]) if path in SOURCES else None
    message = Document(occurrences=occurrences).SerializeToString()
    read = source if isinstance(source, Source) else None
    said = document_cells(message, read, dialect or Dialect("utf16"), {}).cells
    told = {name: rows_of(said[name]) for name in ("occurrences", "diagnostics")}
    return document(path, **(told | {"position_encoding": said["position_encoding"]} | cells))


def rows_of(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def at(*numbers: int, **fields: Any) -> Any:
    return Occurrence(range=numbers, symbol="local 0", **fields)


def edited(rows: Rows) -> Rows:
    libcst = {row["path"]: row for row in rows["libcst_files_v1"]}
    error = {"severity": "error", "stage": "parse", "error_type": "ParserSyntaxError"}
    said = "parser error: error at {}: expected one of NAME"
    libcst["refused.py"]["parse_errors"] = [
        error | {"message": said.format("9:0")},
        error | {"message": said.format("1:99"), "line": 1},
        error | {"message": said.format("1:6"), "line": 1, "col": 6, "bstart": 6, "bend": 6},
        error | {"message": "tokenizer error: unterminated string literal"},
    ]
    broken = {"severity": "error", "stage": "extract", "error_type": "Misplaced", "message": "ends at byte 3"}
    libcst["misplaced.py"]["parse_errors"] = [broken]
    complaint = {"message": "unused", "severity": 2}
    rows["scip_index_v1"] = [
        seen(
            "a.py",
            at(1, 6, 7),
            at(2, 0, 0),
            at(0, 0, 2, 0),
            at(9, 0, 1),
            at(9, 0, 1),
            at(1, 0, 3, 0),
            at(0, 9, 10, diagnostics=[complaint]),
            at(1, 0, 5, enclosing_range=[1, 0, 7, 1]),
            at(2, 5, 6),
            at(1, 5, 2),
        ),
        seen("unended.py", at(1, 0, 5), at(1, 0, 2, 0)),
        seen("healthy.py", at(0, 7, 9), at(2, 0, 5)),
        seen("latin.py", at(0, 0, 3), at(1, 0, 4)),
        seen("bad.py", at(0, 0, 1)),
        seen("empty.py", at(0, 0, 0), at(0, 0, 1), at(1, 0, 1)),
        seen("elsewhere.py", at(0, 0, 1), file_id=None),
        seen("unknown.py", at(1, 0, 5), at(0, 0, 1), dialect=Dialect()),
        document("damaged.py", file_id=None, occurrences=None, diagnostics=None, position_encoding=None),
        document("index.scip", row_kind="index", file_id=None, occurrences=None, diagnostics=None),
    ]
    return rows


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return derived_rows(files_of(edited(witnessed(SOURCES))), TABLE, span_errors_v1)


def errors(found: list[dict[str, Any]], path: str) -> list[tuple[str, str, str, str, tuple[Any, Any]]]:
    """Kind, witness, subject, position as given and span."""
    return sorted(
        (
            row["span_error_kind"],
            row["witness"],
            row["subject"],
            "{start_line}:{start_col}-{end_line}:{end_col} {col_unit}".format_map(row),
            (row["bstart"], row["bend"]),
        )
        for row in found
        if row["path"] == path
    )


def test_the_function_is_what_the_catalogue_says(found: list[dict[str, Any]]) -> None:
    assert tuple(signature(span_errors_v1).parameters) == ("file", *TABLE.inputs)
    assert tuple(found[0]) == TABLE.column_names


def test_positions_that_are_not_in_the_file(found: list[dict[str, Any]]) -> None:
    first, second, nowhere = (0, 7), (7, 17), (None, None)
    assert errors(found, "a.py") == [
        ("column_out_of_range", "scip", "diagnostic", "0:9-0:10 utf16", first),
        ("column_out_of_range", "scip", "occurrence", "0:9-0:10 utf16", first),
        ("column_out_of_range", "scip", "occurrence", "2:5-2:6 utf16", nowhere),
        ("line_out_of_range", "scip", "enclosing_range", "1:0-7:1 utf16", second),
        ("line_out_of_range", "scip", "occurrence", "1:0-3:0 utf16", second),
        ("line_out_of_range", "scip", "occurrence", "9:0-9:1 utf16", nowhere),
        ("malformed_range", "scip", "occurrence", "None:None-None:None utf16", nowhere),
    ]


def test_after_the_last_newline_begins_a_line(found: list[dict[str, Any]]) -> None:
    assert errors(found, "unended.py") == [
        ("line_out_of_range", "scip", "occurrence", "1:0-2:0 utf16", (7, 16))
    ]
    assert errors(found, "empty.py") == [
        ("column_out_of_range", "scip", "occurrence", "0:0-0:1 utf16", (None, None)),
        ("line_out_of_range", "scip", "occurrence", "1:0-1:1 utf16", (None, None)),
    ]


def test_a_file_that_the_repository_lacks_has_the_id_it_would_have(found: list[dict[str, Any]]) -> None:
    assert errors(found, "elsewhere.py") == [
        ("missing_file", "scip", "occurrence", "0:0-0:1 utf16", (None, None))
    ]
    assert {row["file_id"] for row in found if row["path"] == "elsewhere.py"} == {
        file_id("r", "elsewhere.py")
    }


@pytest.mark.parametrize(
    ("path", "kind", "position", "span"),
    [
        ("bad.py", "unreadable_file", "0:0-0:1 utf16", (None, None)),
        ("latin.py", "foreign_encoding", "1:0-1:4 utf16", (18, 30)),
        ("unknown.py", "unknown_encoding", "0:0-0:1 None", (0, 7)),
    ],
)
def test_files_whose_columns_are_not_known(
    found: list[dict[str, Any]], path: str, kind: str, position: str, span: tuple[Any, Any]
) -> None:
    expected = [(kind, "scip", "occurrence", position, span)]
    assert [row for row in errors(found, path) if row[0] == kind][:1] == expected


def test_libcst_points_beyond_the_file(found: list[dict[str, Any]]) -> None:
    assert errors(found, "refused.py") == [
        ("column_out_of_range", "libcst", "error", "0:99-None:None utf32", (0, 8)),
        ("line_out_of_range", "libcst", "error", "8:0-None:None utf32", (None, None)),
    ]


def test_trees_that_do_not_fit_the_text(found: list[dict[str, Any]]) -> None:
    position = "None:None-None:None None"
    assert errors(found, "misplaced.py") == [("misplaced", "libcst", "tree", position, (None, None))]
    misplaced = ("misplaced", "ast", "expression", position, (4, len(FSTRING) - 1))
    assert errors(found, "fstring.py") == ([misplaced] if FSTRINGS_ARE_PARSED_SEPARATELY else [])


def test_none_on_healthy_input(found: list[dict[str, Any]]) -> None:
    healthy = {"healthy.py", "damaged.py", "index.scip"}
    assert healthy.isdisjoint(row["path"] for row in found)


def test_ids_are_unique_and_rows_complete(found: list[dict[str, Any]]) -> None:
    assert len({row["span_error_id"] for row in found}) == len(found)
    required = [column.name for column in TABLE.columns if not column.nullable]
    assert all(row[name] is not None for row in found for name in required)
    assert {row["span_error_kind"] for row in found} >= MESSAGES.keys()
