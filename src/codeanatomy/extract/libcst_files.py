r"""The witness LibCST: a lossless tree, reduced to refs, definitions, imports, calls, comments and types.

>>> from codeanatomy.catalog.settings import ExtractOptions
>>> from codeanatomy.sources.source_file import Source
>>> source = Source("a.py", b"", "from os import path\npath.join(x)\n", "utf-8", False)
>>> said = libcst_files_v1(source, ExtractOptions()).cells
>>> said["refs"]["text"], said["refs"]["bstart"], said["callsites"]["qualified_names"]
(['join', 'path', 'x'], [25, 20, 30], [{'name': ['os.path.join'], 'source': ['import']}])

The parser is LibCST's, and so is the tree. Its metadata providers are not used: they cost eight times the
parse, all of this a third of it.

    text -> parse -> libcst_walk (spans; libcst_recipes says what a node is made of)
                  -> libcst_facts (rows; libcst_names for scopes, libcst_texts for docstrings, type comments)

Where the tree does not give the text back, the row has a problem and no lists. LibCST reads syntax newer than
the Python it runs on, and some that no Python accepts; each witness speaks for itself.

A syntax error is placed where LibCST's message says, which is the token after the one it does not accept; the
error's attributes `raw_line` and `raw_column` are often wrong, and its tokenizer says no place at all.

Tests: `tests/unit/extract/test_libcst_files.py`; against LibCST's own providers in `tests/unit/extract/test_libcst_oracle.py`.
"""

from __future__ import annotations

import gc
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import libcst as cst

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.spec import Column
from codeanatomy.catalog.tables.extract_trees import LIBCST_FILES_V1
from codeanatomy.extract.evidence import MESSAGE_CHARS, ExtractorResult, Problem, problem_from
from codeanatomy.extract.libcst.facts import Facts, Row
from codeanatomy.extract.libcst.spans import NodeSpans
from codeanatomy.sources.source_file import Source
from codeanatomy.spans import col_to_byte

# The last number is that of our own rules: another one makes all rows stale.
VERSION = f"libcst {version('libcst')}, python {sys.version_info[0]}.{sys.version_info[1]}, rules 1"
PLACED = re.compile(r"error at (\d+):(\d+): ")
# The fields that say where a row is; elsewhere it is bstart.
PLACE = {"defs": "def_bstart", "imports": "alias_bstart", "callsites": "call_bstart"}
LISTS = tuple(c for c in LIBCST_FILES_V1.columns if c.fields and c.array and c.name != "parse_errors")


def libcst_files_v1(source: Source, options: ExtractOptions) -> ExtractorResult:
    """What LibCST says of a file."""
    with uncollected():
        parsed = _parsed(source)
        if isinstance(parsed, Problem):
            return ExtractorResult({}, (parsed,))
        try:
            return ExtractorResult(_cells(source, parsed))
        # `Misplaced`, or a tree that is not as we think.
        except Exception as problem:  # noqa: BLE001
            return ExtractorResult({}, (problem_from(source, "extract", problem),))


def _parsed(source: Source) -> cst.Module | Problem:
    try:
        return cst.parse_module(source.text, cst.PartialParserConfig(encoding=source.encoding))
    except cst.ParserSyntaxError as problem:
        return _syntax_error(source, problem)
    except (KeyboardInterrupt, SystemExit):
        raise
    # A panic of the parser is no Exception.
    except BaseException as problem:  # noqa: BLE001
        return problem_from(source, "parse", problem)


def _cells(source: Source, module: cst.Module) -> dict[str, Any]:
    facts = Facts(source.utf8, source.text, module, NodeSpans(module, source.utf8))
    cells: dict[str, Any] = {
        column.name: _columns(column, facts.rows[column.name], source.line_starts) for column in LISTS
    }
    cells["parse_manifest"] = {
        "encoding": module.encoding,
        "default_indent": module.default_indent,
        "default_newline": module.default_newline,
        # LibCST misses a lone carriage return.
        "has_trailing_newline": source.text.endswith(("\n", "\r")),
        "future_imports": facts.future_imports,
    }
    return cells


def _columns(column: Column, rows: Sequence[Row], line_starts: Sequence[int]) -> dict[str, list[Any]]:
    """Rows as one list per field, with their lines."""
    names = [field.name for field in column.fields if field.name != "line"]
    lists = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    cell = dict(zip(names, lists, strict=True))
    if "qualified_names" in cell:
        cell["qualified_names"] = [ask(name) for ask, name in cell["qualified_names"]]
    cell["line"] = [bisect_right(line_starts, at) for at in cell[PLACE.get(column.name, "bstart")]]
    return cell


def _syntax_error(source: Source, error: cst.ParserSyntaxError) -> Problem:
    placed = PLACED.search(error.message)
    line, chars = map(int, placed.groups()) if placed else (0, 0)
    text = source.line_text(line)
    col = None if text is None else col_to_byte(text, chars, "utf32")
    at = None if col is None else source.offset_at(line, col)
    known = line if text is not None else None
    return Problem("error", "parse", "ParserSyntaxError", error.message[:MESSAGE_CHARS], col, at, at, known)


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection: a tree is many objects without cycles, and to look for some takes longer."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
