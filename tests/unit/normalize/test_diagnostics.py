"""Complaints of witnesses about files: each source, each kind of disagreement, and where they point."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

from codeanatomy import catalog
from codeanatomy.file_view import FileView
from codeanatomy.node_ids import definition_key, file_id
from codeanatomy.normalize.diagnostics import diagnostics_norm_v1
from codeanatomy.normalize.rules import file_rows
from codeanatomy.sources.source_file import Source, decode
from support.file_evidence import FSTRING, Rows, derived_rows, document, files_of, witnessed

TABLE = catalog.table("diagnostics_norm_v1")

HEALTHY = '''\
"""Doc."""
from __future__ import annotations
import os.path as p, sys
from . import x
from ..a . b import (c as d, e)
from ﬁ import ﬀ
from os import *

@d(1)
@e
async def f(a, /, b: int = 1, *args: str, c, **kw) -> None:
    try:
        return await g(lambda y, *z: [y for _ in z], key=(q)(1)[0])
    finally:
        def again(one): return one
    # The end.

class ª(Base, metaclass=meta()):
    def __private(self, __x): return {k: v for k, v in __x}, f"{h(k)!r:>{w()}}" "é" f'{(lambda: 1)()}'

def ﬁ(ﬀ): return ﬁ(ﬀ)
if 0:
    def dead(one, two): pass
print(x); exec(y); match(1); type(x).y(); [*f()]; a @ b(); not (yield_())
'''
SMALL = "import os as o\ndef f(a, b): return g(a)\n"
EDGES = "é\r\nab\n\nc\rd é"
LONG = "#" * 3000 + "\nx = 1\n"

SOURCES: dict[str, bytes] = {
    "healthy.py": HEALTHY.encode(),
    "empty.py": b"",
    "bom.py": b"\xef\xbb\xbf" + SMALL.encode(),
    "print.py": "é = 1\nprint 1\n".encode(),
    "crlf.py": b"x = 1\r\ny = (\r\n",
    "accents.py": "é = 'é' 5\n".encode(),
    "latin.py": "# coding: latin-1\nname = 'é' $\n".encode("latin-1"),
    "indent.py": b"if x:\npass\n",
    "warned.py": b"x = 1\nx is 1\nx is 1\n",
    "outside.py": b"return 1\n",
    "gap.py": b"def f(:\n  pass\n",
    "nul.py": b"a\0b",
    "bad.py": b"x = '\xff'\n",
    "fstring.py": FSTRING.encode(),
    "edges.py": EDGES.encode(),
    "long.py": LONG.encode(),
    "scip.py": SMALL.encode(),
    **{
        f"{name}.py": SMALL.encode()
        for name in (
            "lost_def",
            "renamed",
            "lost_import",
            "other_import",
            "moved_call",
            "other_params",
            "no_code",
            "lost_scope",
            "newer",
            "twice",
            "silent",
            "cut",
        )
    },
}


def scip_range(*numbers: int | None, bstart: int | None = None, bend: int | None = None) -> dict[str, Any]:
    names = ("start_line", "start_col", "end_line", "end_col")
    return dict(zip(names, numbers or (None,) * 4, strict=True)) | {"bstart": bstart, "bend": bend}


# Edits of rows, each of one witness of one file.


def _row(rows: Rows, witness: str, path: str) -> dict[str, Any]:
    return next(row for row in rows[f"{witness}_files_v1"] if row["path"] == path)


def _without_defs(captures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [capture for capture in captures if capture["pack"] != "defs"]


def edited(rows: Rows) -> Rows:
    lost = _row(rows, "tree_sitter", "lost_def.py")
    lost["captures"] = _without_defs(lost["captures"])
    _row(rows, "ast", "renamed.py")["defs"][0]["name"] = "h"
    _row(rows, "libcst", "lost_import.py")["imports"] = []
    _row(rows, "ast", "other_import.py")["imports"][0]["asname"] = "p"
    _row(rows, "ast", "moved_call.py")["calls"][0]["bend"] -= 1
    _row(rows, "symtable", "other_params.py")["blocks"][1]["parameters"] = ["b", "a"]
    _row(rows, "bytecode", "no_code.py")["code_objects"][1:] = []
    _row(rows, "symtable", "lost_scope.py")["blocks"][1:] = []
    _row(rows, "bytecode", "newer.py")["python_version"] = "3.99.1"
    _row(rows, "bytecode", "nul.py")["python_version"] = "3.99.1"
    error = {"severity": "error", "stage": "parse", "error_type": "too_large", "message": "much"}
    twice = _row(rows, "libcst", "twice.py")
    twice |= dict.fromkeys(("defs", "imports", "callsites"))
    twice["parse_errors"] = [error, error]
    for witness in ("ast", "libcst", "symtable"):
        _row(rows, witness, "silent.py").update(
            dict.fromkeys(("nodes", "defs", "imports", "calls", "blocks"))
        )
    cut = _row(rows, "tree_sitter", "cut.py")
    for capture in cut["captures"]:
        capture["text"] = ""
    _row(rows, "tree_sitter", "edges.py")["errors"] = _all_spans(len(EDGES.encode()))
    ends = (0, 1, 999, 1000, 3000, 3001, len(LONG) - 1, len(LONG))
    _row(rows, "tree_sitter", "long.py")["errors"] = [
        _error_node(start, end) for start in ends for end in ends if start <= end
    ]
    rows["scip_index_v1"] = _scip_rows()
    return rows


def _all_spans(size: int) -> list[dict[str, Any]]:
    return [_error_node(start, end) for start in range(size + 1) for end in range(start, size + 1)]


def _error_node(start: int, end: int) -> dict[str, Any]:
    return {"ts_id": 1, "parent_kind": "module", "text": "?", "bstart": start, "bend": end, "line": 1}


def _scip_rows() -> list[dict[str, Any]]:
    told = {
        "severity": "warning",
        "code": "W1",
        "message": "unused",
        "source": "pyright",
        "tags": ["Unnecessary"],
    }
    bare = {"severity": "7", "code": None, "message": None, "source": None, "tags": []}
    broken = {"severity": "error", "stage": "read", "error_type": "corrupt_document", "message": "bad"}
    placed = scip_range(1, 4, 1, 5, bstart=19, bend=20)
    diagnostics = [told | placed, told | placed | {"source": "other"}, bare | scip_range(9, 0, 9, 1)]
    return [
        document("scip.py", diagnostics=diagnostics, errors=[broken]),
        document("elsewhere.py", file_id=None, diagnostics=diagnostics, errors=[broken]),
        document("index.scip", row_kind="index", file_id=None, diagnostics=None, errors=[broken]),
    ]


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return derived_rows(files_of(edited(witnessed(SOURCES))), TABLE, diagnostics_norm_v1)


@pytest.fixture
def about(found: list[dict[str, Any]]) -> Callable[..., list[tuple[Any, ...]]]:
    """Kind, code, severity and `line:col-line:col` of the complaints about a file."""

    def complaints(path: str, *columns: str) -> list[tuple[Any, ...]]:
        own = [row for row in found if row["path"] == path]
        cells = columns or ("diag_kind", "diag_code", "diag_severity")
        return sorted((*(row[name] for name in cells), _where(row)) for row in own)

    return complaints


def _where(row: dict[str, Any]) -> str:
    return "{diag_line_start}:{diag_col_start}-{diag_line_end}:{diag_col_end}".format_map(row)


def details(found: list[dict[str, Any]], path: str, code: str) -> dict[str, str]:
    (row,) = (row for row in found if (row["path"], row["diag_code"]) == (path, code))
    told: dict[str, str] = row["details"]
    return told


def test_the_function_is_what_the_catalogue_says(found: list[dict[str, Any]]) -> None:
    assert tuple(signature(diagnostics_norm_v1).parameters) == ("file", *TABLE.inputs)
    # Ids are made by `rules`, of these and of what the rules themselves report.
    assert tuple(found[0]) == tuple(name for name in TABLE.column_names if name != "diag_id")


def test_ids_are_unique_and_say_definition_kind_and_code(found: list[dict[str, Any]]) -> None:
    rows = [row for file in files_of(edited(witnessed(SOURCES))) for row in _with_ids(file)]
    assert len({row["diag_id"] for row in rows}) == len(rows) == len(found) > 100
    for row in rows:
        head, _, number = row["diag_id"].rpartition(".")
        key = head.partition(":")[2].partition(".")[0]
        assert head == f"diag:{key}.{row['diag_kind']}.{row['diag_code'] or ''}", row
        assert number.isdigit(), row


def _with_ids(file: FileView) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = file_rows(file)[TABLE.name].to_pylist()
    return rows


def test_ids_are_numbered_by_kind_and_code_within_a_definition() -> None:
    text = b"def f(x):\n    one()\n    two()\nthree()\nclass A:\n    four()\n"
    names = (b"two", b"one", b"one()", b"three", b"four")
    for moved in (text, b"# Moved.\n\n" + text):
        rows = witnessed({"a.py": moved})
        starts = [(moved.index(name), moved.index(name) + len(name)) for name in names]
        _row(rows, "tree_sitter", "a.py")["errors"] = [_error_node(*span) for span in starts]
        (file,) = files_of(rows)
        told = {moved[row["bstart"] : row["bend"]]: row["diag_id"] for row in _with_ids(file)}
        module, f, cls = (definition_key("r", "a.py", name) for name in ("", "f", "A"))
        # What contains another comes first.
        assert told == {
            b"one()": f"diag:{f}.tree_sitter.error_node.000000",
            b"one": f"diag:{f}.tree_sitter.error_node.000001",
            b"two": f"diag:{f}.tree_sitter.error_node.000002",
            b"three": f"diag:{module}.tree_sitter.error_node.000000",
            b"four": f"diag:{cls}.tree_sitter.error_node.000000",
        }


def test_every_file_is_listed(found: list[dict[str, Any]]) -> None:
    assert {row["file_id"] for row in found} <= {file_id("r", path) for path in SOURCES}
    required = [column.name for column in TABLE.columns if not column.nullable and column.name != "diag_id"]
    assert all(row[name] is not None for row in found for name in required)
    assert all(row["diag_line_end"] >= row["diag_line_start"] for row in found if row["diag_line_start"])


@pytest.mark.parametrize("path", ["healthy.py", "empty.py", "bom.py", "fstring.py"])
def test_a_healthy_file_has_no_complaint(about: Callable[..., Any], path: str) -> None:
    assert about(path) == []


def test_what_three_witnesses_of_cpython_say_is_one_complaint(
    about: Callable[..., Any], found: list[dict[str, Any]]
) -> None:
    assert about("print.py") == [
        ("cpython", "syntax_error", "error", "2:0-2:0"),
        ("disagreement", "parse_outcome", "info", "None:None-None:None"),
        ("libcst", "parser_syntax_error", "error", "2:7-2:7"),
    ]
    assert details(found, "print.py", "syntax_error") == {
        "ast": "parse",
        "bytecode": "compile",
        "symtable": "symtable",
        "error_type": "SyntaxError",
    }
    assert details(found, "print.py", "parse_outcome") == {
        "ast": "rejects",
        "libcst": "rejects",
        "tree_sitter": "accepts",
    }


def test_what_only_the_compiler_refuses_is_parsed_by_all(
    about: Callable[..., Any], found: list[dict[str, Any]]
) -> None:
    assert about("outside.py", "diag_code", "message") == [
        ("syntax_error", "'return' outside function", "1:0-1:0")
    ]
    assert details(found, "outside.py", "syntax_error") == {
        "bytecode": "compile",
        "error_type": "SyntaxError",
    }


def test_warnings_keep_their_line(about: Callable[..., Any]) -> None:
    # 3.12 and 3.13 name the type.
    kind = "a literal" if sys.version_info < (3, 12) else "'int' literal"
    said = f'"is" with {kind}. Did you mean "=="?'
    assert about("warned.py", "diag_severity", "diag_code", "message") == [
        ("warning", "syntax_warning", said, "2:None-2:None"),
        ("warning", "syntax_warning", said, "3:None-3:None"),
    ]


def test_the_code_is_the_class_in_snake_case(about: Callable[..., Any]) -> None:
    assert ("cpython", "indentation_error", "error", "2:0-2:0") in about("indent.py")


def test_lines_end_with_carriage_returns_too(about: Callable[..., Any]) -> None:
    assert about("crlf.py") == [
        ("cpython", "syntax_error", "error", "2:4-2:4"),
        ("libcst", "parser_syntax_error", "error", "3:0-3:0"),
        ("tree_sitter", "error_node", "error", "2:0-2:5"),
    ]


def test_columns_are_bytes_of_the_canonical_text(about: Callable[..., Any]) -> None:
    assert ("cpython", "syntax_error", "error", "1:10-1:10") in about("accents.py")
    assert ("cpython", "syntax_error", "error", "2:12-2:12") in about("latin.py")


def test_tree_sitter_names_what_does_not_fit(about: Callable[..., Any]) -> None:
    assert ("error_node", "fits no rule: y = (", "2:0-2:5") in about("crlf.py", "diag_code", "message")
    assert ("missing_node", "missing: )", "1:6-1:6") in about("gap.py", "diag_code", "message")


def test_a_file_that_cannot_be_read(about: Callable[..., Any]) -> None:
    said = "the file could not be read: undecodable"
    assert about("bad.py", "diag_kind", "diag_code", "message") == [
        ("cpython", "undecodable", said, "None:None-None:None")
    ]


def test_bytecode_of_an_unknown_interpreter(about: Callable[..., Any]) -> None:
    said = "the bytecode of Python 3.99.1 is not known: control and data flow of the file are missing"
    assert about("newer.py", "diag_severity", "diag_code", "message") == [
        ("error", "unknown_bytecode", said, "None:None-None:None")
    ]
    # There is none of a file that does not compile.
    assert "unknown_bytecode" not in {code for _, code, *_ in about("nul.py")}


def test_what_a_witness_says_twice_is_one_complaint(about: Callable[..., Any]) -> None:
    assert about("twice.py") == [("libcst", "too_large", "error", "None:None-None:None")]


def test_scip_complains_about_files_of_the_repository(
    about: Callable[..., Any], found: list[dict[str, Any]]
) -> None:
    assert about("scip.py", "diag_code", "diag_severity", "message") == [
        ("W1", "warning", "unused", "2:4-2:5"),
        ("corrupt_document", "error", "bad", "None:None-None:None"),
        ("scip", "info", "the indexer gave no message", "10:None-10:None"),
    ]
    assert details(found, "scip.py", "W1") == {"source": "other, pyright", "tags": "Unnecessary"}
    assert about("elsewhere.py") == about("index.scip") == []


@pytest.mark.parametrize(
    ("path", "code", "bstart", "told"),
    [
        (
            "lost_def.py",
            "defs",
            15,
            {"ast": "function f", "libcst": "function f", "tree_sitter": "nothing"},
        ),
        (
            "renamed.py",
            "defs",
            15,
            {"ast": "function h", "libcst": "function f", "tree_sitter": "function f"},
        ),
        (
            "lost_import.py",
            "imports",
            7,
            {"ast": "import os as o", "libcst": "nothing", "tree_sitter": "import os as o"},
        ),
        (
            "other_import.py",
            "imports",
            7,
            {"ast": "import os as p", "libcst": "import os as o", "tree_sitter": "import os as o"},
        ),
        ("other_params.py", "parameters", None, {"bytecode": "(a, b)", "symtable": "(b, a)"}),
        ("lost_scope.py", "scopes", None, {"ast": "1", "symtable": "0"}),
    ],
)
def test_witnesses_disagree(
    found: list[dict[str, Any]], path: str, code: str, bstart: int | None, told: dict[str, str]
) -> None:
    rows = [row for row in found if row["path"] == path]
    assert {(row["diag_kind"], row["diag_severity"]) for row in rows} == {("disagreement", "warning")}
    mine = [row for row in rows if row["diag_code"] == code]
    assert [(row["bstart"], row["details"]) for row in mine] == [(bstart, told)]
    # A function without a scope has no parameters to compare either.
    assert {row["diag_code"] for row in rows} - {code} == (
        {"parameters"} if path == "lost_scope.py" else set()
    )


def test_a_call_that_ends_elsewhere_is_two_calls(found: list[dict[str, Any]]) -> None:
    rows = [row for row in found if row["path"] == "moved_call.py"]
    assert [(row["diag_code"], row["bstart"], row["bend"], row["details"]) for row in rows] == [
        ("calls", 35, 38, {"ast": "call", "libcst": "nothing"}),
        ("calls", 35, 39, {"ast": "nothing", "libcst": "call"}),
    ]
    assert rows[0]["message"] == "the witnesses differ about calls: ast: call; libcst: nothing"


@pytest.mark.parametrize("path", ["no_code.py", "silent.py", "cut.py"])
def test_dead_code_silence_and_cut_names_are_no_disagreement(about: Callable[..., Any], path: str) -> None:
    assert about(path) == []


def test_lines_and_columns_are_those_of_the_source(found: list[dict[str, Any]]) -> None:
    sources = {path: decode(path, raw) for path, raw in SOURCES.items()}
    checked = set()
    for row in found:
        source, start, end = sources[row["path"]], row["bstart"], row["bend"]
        if start is not None and isinstance(source, Source):
            first, last = source.line_of(start), source.line_of(max(start, end - 1))
            columns = start - source.line_starts[first - 1], end - source.line_starts[last - 1]
            assert _where(row) == f"{first}:{columns[0]}-{last}:{columns[1]}", row
            checked.add((row["path"], start, end))
    size = len(EDGES.encode())
    assert len(checked) > (size + 1) * (size + 2) // 2 + 30
