r"""Extract references, definitions, imports, calls, comments and types from LibCST's lossless tree.

>>> from codeanatomy.catalog.settings import ExtractOptions
>>> from codeanatomy.sources.source_file import Source
>>> source = Source("a.py", b"", "from os import path\npath.join(x)\n", "utf-8", False)
>>> cells = libcst_files_v1(source, ExtractOptions()).cells
>>> cells["refs"]["text"], cells["refs"]["bstart"], cells["callsites"]["qualified_names"]
(['join', 'path', 'x'], [25, 20, 30], [{'name': ['os.path.join'], 'source': ['import']}])

The parser and the tree are LibCST's. Its metadata providers are not used: they cost eight times the parse,
all of this a third of it.

    text -> parse (libcst.light_tree) -> libcst.spans (spans, computed from libcst.node_layout)
         -> libcst.facts (rows; libcst.qualified_names for scopes, libcst.texts for docstrings)

If the tree does not reproduce the text, the row has a problem and no lists. LibCST accepts syntax newer than
the Python it runs on, and some that no Python accepts; each extractor reports its own view.

A syntax error has the position in LibCST's message, which is the token after the one it does not accept; the
error's attributes `raw_line` and `raw_column` are often wrong, and errors of its tokenizer have no position.

Tests: `tests/unit/extract/test_libcst_files.py`; against LibCST's own providers in
`tests/unit/extract/test_libcst_oracle.py`.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import libcst as cst
import numpy as np

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.spec import Column
from codeanatomy.catalog.tables.extract_trees import LIBCST_FILES_V1
from codeanatomy.extract.evidence import MESSAGE_CHARS, ExtractorResult, Problem, problem_from
from codeanatomy.extract.libcst.facts import LibcstFacts, Row
from codeanatomy.extract.libcst.light_tree import parse_light
from codeanatomy.extract.libcst.spans import NodeSpans
from codeanatomy.extract.positions import lines_of
from codeanatomy.sources.source_file import Source
from codeanatomy.spans import col_to_byte

# The last number is the version of our own rules: changing it makes all rows stale.
VERSION = f"libcst {version('libcst')}, python {sys.version_info[0]}.{sys.version_info[1]}, rules 1"
ERROR_POSITION = re.compile(r"error at (\d+):(\d+): ")
# The field with the start of a row, by list; bstart in the others.
START_FIELD = {"defs": "def_bstart", "imports": "alias_bstart", "callsites": "call_bstart"}
LISTS = tuple(c for c in LIBCST_FILES_V1.columns if c.fields and c.array and c.name != "parse_errors")


def libcst_files_v1(source: Source, options: ExtractOptions) -> ExtractorResult:
    """Extract the facts of a file from its LibCST tree; only a problem if it cannot be parsed."""
    with without_collection():
        module = _parse(source)
        if isinstance(module, Problem):
            return ExtractorResult({}, (module,))
        try:
            return ExtractorResult(_cells(source, module))
        # `Misplaced`, or a tree with an unexpected structure.
        except Exception as error:  # noqa: BLE001
            return ExtractorResult({}, (problem_from(source, "extract", error),))


def _parse(source: Source) -> cst.Module | Problem:
    module = parse_light(source.text, source.encoding)
    if module is not None:
        return module
    try:
        return cst.parse_module(source.text, cst.PartialParserConfig(encoding=source.encoding))
    except cst.ParserSyntaxError as error:
        return _syntax_error(source, error)
    except (KeyboardInterrupt, SystemExit):
        raise
    # A panic of the Rust parser is not an Exception.
    except BaseException as error:  # noqa: BLE001
        return problem_from(source, "parse", error)


def _cells(source: Source, module: cst.Module) -> dict[str, Any]:
    facts = LibcstFacts(source.utf8, source.text, module, NodeSpans(module, source.utf8))
    line_starts = np.array(source.line_starts)
    cells: dict[str, Any] = {
        column.name: _columns(column, facts.rows[column.name], line_starts) for column in LISTS
    }
    cells["parse_manifest"] = {
        "encoding": module.encoding,
        "default_indent": module.default_indent,
        "default_newline": module.default_newline,
        # LibCST's own flag ignores a lone carriage return.
        "has_trailing_newline": source.text.endswith(("\n", "\r")),
        "future_imports": facts.future_imports,
    }
    return cells


def _columns(column: Column, rows: Sequence[Row], line_starts: np.ndarray[Any, Any]) -> dict[str, list[Any]]:
    """Convert rows to one list per field, and add their lines."""
    names = [field.name for field in column.fields if field.name != "line"]
    lists = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    cell = dict(zip(names, lists, strict=True))
    if "qualified_names" in cell:
        cell["qualified_names"] = [resolve(name) for resolve, name in cell["qualified_names"]]
    starts = cell[START_FIELD.get(column.name, "bstart")]
    cell["line"] = lines_of(line_starts, starts)
    return cell


def _syntax_error(source: Source, error: cst.ParserSyntaxError) -> Problem:
    position = ERROR_POSITION.search(error.message)
    line, chars = map(int, position.groups()) if position else (0, 0)
    text = source.line_text(line)
    col = None if text is None else col_to_byte(text, chars, "utf32")
    bstart = None if col is None else source.offset_at(line, col)
    message, line_no = error.message[:MESSAGE_CHARS], line if text is not None else None
    return Problem("error", "parse", "ParserSyntaxError", message, col, bstart, bstart, line_no)


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection: a tree has many objects without cycles, and searching them takes longer."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
