r"""Extract tree-sitter's tree, which exists also for invalid files, and the captures of our query packs.

>>> from codeanatomy.sources.source_file import decode
>>> cells = tree_sitter_files_v1(decode("a.py", b"def f(: g()"), ExtractOptions()).cells
>>> nodes, missing, captures = cells["nodes"], cells["missing"], cells["captures"]
>>> dict(zip(nodes["ts_id"], nodes["kind"]))  # doctest: +NORMALIZE_WHITESPACE
{0: 'module', 1: 'function_definition', 3: 'identifier', 4: 'parameters',
 8: 'block', 9: 'expression_statement', 10: 'call', 11: 'identifier', 12: 'argument_list'}
>>> missing["ts_id"], missing["kind"], missing["parent_kind"], missing["bstart"]
([6], [')'], ['parameters'], [6])
>>> list(zip(captures["pack"], captures["capture"], captures["text"]))  # doctest: +NORMALIZE_WHITESPACE
[('defs', 'def', 'def f(: g()'), ('defs', 'name', 'f'),
 ('calls', 'call', 'g()'), ('calls', 'callee', 'g')]

A node's `ts_id` is its number in a preorder walk, so it is the same in every process. The walk counts all
nodes and emits the named ones: the bracket above is number 5, the missing one number 6. tree-sitter's own ids
are addresses; they only map a captured node of this one tree to its number, and are not stored.

The packs are `queries/*.scm`; the last item of their first line is their version. They run as one query, in
one pass.

Limits. Error recovery may take quadratic time, so a large file is given to the parser in pieces, and after
the time limit no more are given. The limits of the packs depend on the tree alone, so that the same file
always gives the same rows: the query engine counts depth in 16 bits, and from every node it searches for the
next named sibling again, which takes quadratic time in `((((((((`.

Bugs of tree-sitter 0.26.0 that are avoided here: the parser's `progress_callback` crashes the process, so
does a Python exception in that of a query, and so does reading `row` or `column` of a point; the pieces of a
text are never freed; a predicate in Python never frees the tree.

Tests: `tests/unit/extract/test_tree_sitter_files.py`; `tests/unit/extract/test_tree_sitter_oracle.py` lists
the valid files that tree-sitter parses differently than CPython.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from itertools import pairwise
from time import monotonic
from typing import Any, TypeAlias

import numpy as np
import tree_sitter_python
from msgspec import Struct
from tree_sitter import Language, Node, Parser, Point, Query, QueryCursor, Tree

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.tables.extract_trees import TREE_SITTER_FILES_V1
from codeanatomy.extract.evidence import ExtractorResult, Problem
from codeanatomy.extract.positions import lines_of
from codeanatomy.sources.source_file import Source

Columns: TypeAlias = dict[str, list[Any]]
# Pattern, and nodes by capture.
Match: TypeAlias = tuple[int, dict[str, list[Node]]]

STATS = tuple(field.name for field in TREE_SITTER_FILES_V1.column("stats").fields)

LANGUAGE = Language(tree_sitter_python.language())
NODE_KINDS = {number: str(LANGUAGE.node_kind_for_id(number)) for number in range(LANGUAGE.node_kind_count)}
# Built into tree-sitter; the grammar does not list it.
NODE_KINDS[0xFFFF] = "ERROR"
FIELDS = (None, *(LANGUAGE.field_name_for_id(number + 1) for number in range(LANGUAGE.field_count)))

# Larger texts are parsed in pieces of this many bytes; the parser can be stopped between two.
LARGE_BYTES = 128 * 1024
PIECE_BYTES = 4096
# Matches that the query engine may have in progress at once; the standard library needs less than 4.
MATCH_LIMIT = 10_000
# Deepest node at which a match may begin. Deeper than 65,535 the engine loses matches and never drops states.
MATCH_DEPTH = 65_000
# Sum of the squares of the lengths of runs of anonymous nodes: 10**9 takes the engine 2 s.
MATCH_STEPS = 10**9

LONE_CR = re.compile(rb"\r(?!\n)")
# The beginning of a string that is neither bytes nor formatted.
PLAIN_STRING = re.compile(rb"[rRuU]*['\"]")


class QueryPack(Struct, frozen=True):
    """A file of query patterns."""

    name: str
    version: str
    source: str


def _read_pack(name: str) -> QueryPack:
    source = files("codeanatomy.extract").joinpath("queries", f"{name}.scm").read_text(encoding="utf-8")
    return QueryPack(name, source.partition("\n")[0].split()[-1], source)


PACKS = tuple(map(_read_pack, ("defs", "calls", "imports", "docstrings")))
QUERY = Query(LANGUAGE, "".join(pack.source for pack in PACKS))


def _patterns() -> list[tuple[QueryPack, int]]:
    """Return for each pattern of the query its pack and its index there."""
    patterns: list[tuple[QueryPack, int]] = []
    end = 0
    for pack in PACKS:
        end += len(pack.source.encode())
        first = len(patterns)
        while len(patterns) < QUERY.pattern_count and QUERY.start_byte_for_pattern(len(patterns)) < end:
            patterns.append((pack, len(patterns) - first))
    return patterns


PATTERNS = _patterns()
VERSION = (
    f"tree-sitter {version('tree-sitter')}, tree-sitter-python {version('tree-sitter-python')}, "
    f"python {sys.version_info.major}.{sys.version_info.minor}, rules 1, "
    f"packs {sha256(''.join(pack.source for pack in PACKS).encode()).hexdigest()[:8]}"
)


def tree_sitter_files_v1(source: Source, options: ExtractOptions) -> ExtractorResult:
    """Extract the tree of a file, its errors, and the captures of the packs."""
    stats: dict[str, Any] = dict.fromkeys(STATS) | {"match_limit_exceeded": False, "timed_out": False}
    # Half of the time limit, after which the worker kills the process: the walk and the packs need time, too.
    # In the grammar a lone carriage return does not end a line; replaced by a newline it does.
    tree = _parse(LONE_CR.sub(b"\n", source.utf8), options.file_seconds / 2)
    if tree is None:
        message = f"the parser took longer than half of extract.file_seconds = {options.file_seconds:g}"
        problem = Problem("error", "parse", "time_limit", message)
        return ExtractorResult({"stats": stats | {"timed_out": True}}, (problem,))
    nodes, missing, numbers = _walk(tree)
    errors = _errors(source.utf8, nodes, options.max_value_chars)
    cells = {"nodes": nodes, "errors": errors, "missing": missing}
    stats["node_count"] = len(numbers)
    for name, columns in (("named_count", nodes), ("error_count", errors), ("missing_count", missing)):
        stats[name] = len(columns["ts_id"])
    matches, lost = _matches(source.utf8, tree, nodes, len(numbers))
    if matches is not None:
        cells["captures"] = _captures(source.utf8, matches, numbers, options.max_value_chars)
        stats |= {"match_count": len(matches), "capture_count": len(cells["captures"]["ts_id"])}
    stats["match_limit_exceeded"] = lost is not None
    starts = np.array(source.line_starts)
    for columns in cells.values():
        columns["line"] = lines_of(starts, columns["bstart"])
    problems = () if lost is None else (Problem("warning", "query", "match_limit", lost),)
    return ExtractorResult(cells | {"stats": stats}, problems)


def _parse(utf8: bytes, seconds: float) -> Tree | None:
    """Parse a text; None if the time was up before its end."""
    if len(utf8) <= LARGE_BYTES:
        return Parser(LANGUAGE).parse(utf8)
    end = monotonic() + seconds
    timed_out = False

    def read(offset: int, _: Point) -> bytes:
        nonlocal timed_out
        timed_out = timed_out or monotonic() > end
        return b"" if timed_out else utf8[offset : offset + PIECE_BYTES]

    tree = Parser(LANGUAGE).parse(read)
    return None if timed_out else tree


def _walk(tree: Tree) -> tuple[Columns, Columns, dict[int, int]]:
    """Return the named nodes, the missing nodes, and the number of every node by its address."""
    cursor, is_broken = tree.walk(), tree.root_node.has_error
    down, along, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    names = ("ts_id", "parent_ts_id", "kind", "field", "has_error", "is_error", "is_missing", "is_extra")
    nodes: Columns = {name: [] for name in (*names, "bstart", "bend")}
    ids, parents, kinds, fields, has_errors, is_errors, is_missing, is_extra, starts, ends = nodes.values()
    missing: list[tuple[int, int | None, Node]] = []
    numbers: dict[int, int] = {}
    # For each node from the root down to the current one: its nearest named ancestor.
    named_ancestors: list[int | None] = [None]
    while True:
        # Seven million times for the standard library: no calls except tree-sitter's, and none for errors in
        # a tree without any.
        node: Node = cursor.node  # type: ignore[assignment]  # None only in a cursor without a tree
        number = len(numbers)
        numbers[node.id] = number
        parent = named_ancestors[-1]
        is_named = node.is_named
        if is_named:
            ids.append(number)
            parents.append(parent)
            kinds.append(NODE_KINDS[node.kind_id])
            fields.append(FIELDS[cursor.field_id or 0])
            is_extra.append(node.is_extra)
            starts.append(node.start_byte)
            ends.append(node.end_byte)
            if is_broken:
                has_errors.append(node.has_error)
                is_errors.append(node.is_error)
                is_missing.append(node.is_missing)
        if is_broken and node.is_missing:
            missing.append((number, parent, node))
        if down():
            named_ancestors.append(number if is_named else parent)
            continue
        while not along():
            if not up():
                if not is_broken:
                    none = [False] * len(ids)
                    nodes |= {"has_error": none, "is_error": none, "is_missing": none}
                return nodes, _missing_columns(missing, nodes), numbers
            named_ancestors.pop()


def _kind_of(number: int | None, nodes: Columns) -> str | None:
    return None if number is None else nodes["kind"][bisect_left(nodes["ts_id"], number)]


def _missing_columns(missing: list[tuple[int, int | None, Node]], nodes: Columns) -> Columns:
    return {
        "ts_id": [number for number, _, _ in missing],
        "kind": [NODE_KINDS[node.kind_id] for _, _, node in missing],
        "parent_kind": [_kind_of(parent, nodes) for _, parent, _ in missing],
        "bstart": [node.start_byte for _, _, node in missing],
        "bend": [node.end_byte for _, _, node in missing],
    }


def _errors(utf8: bytes, nodes: Columns, chars: int) -> Columns:
    indexes = [index for index, is_error in enumerate(nodes["is_error"]) if is_error]
    starts, ends = ([nodes[name][index] for index in indexes] for name in ("bstart", "bend"))
    return {
        "ts_id": [nodes["ts_id"][index] for index in indexes],
        "parent_kind": [_kind_of(nodes["parent_ts_id"][index], nodes) for index in indexes],
        "text": [_text(utf8, start, end, chars) for start, end in zip(starts, ends, strict=True)],
        "bstart": starts,
        "bend": ends,
    }


def _matches(utf8: bytes, tree: Tree, nodes: Columns, count: int) -> tuple[list[Match] | None, str | None]:
    """Return the matches of all packs, None if the search is skipped; and why some are missing, or None."""
    if _sibling_steps(nodes["ts_id"], count) > MATCH_STEPS:
        return None, "runs of tokens with no named node among them are too long to be searched"
    cursor = QueryCursor(QUERY, match_limit=MATCH_LIMIT)
    cursor.set_max_start_depth(MATCH_DEPTH)
    candidates = cursor.matches(tree.root_node)
    matches = [match for match in candidates if "doc" not in match[1] or _is_docstring(utf8, match[1])]
    if cursor.did_exceed_match_limit:
        return matches, f"more than {MATCH_LIMIT} matches were under way at once"
    if _is_deeper(nodes, MATCH_DEPTH):
        return matches, f"nodes deeper than {MATCH_DEPTH} are not searched"
    return matches, None


def _sibling_steps(ids: list[int], count: int) -> int:
    """Return the maximal cost of searching next named siblings: the squares of runs between named nodes."""
    if (count - len(ids)) ** 2 <= MATCH_STEPS:
        return 0
    return sum((after - before - 1) ** 2 for before, after in pairwise([*ids, count]))


def _is_deeper(nodes: Columns, limit: int) -> bool:
    """Return whether a named node has more named ancestors than the limit."""
    if len(nodes["ts_id"]) <= limit:
        return False
    depths: dict[int | None, int] = {None: -1}
    for number, parent in zip(nodes["ts_id"], nodes["parent_ts_id"], strict=True):
        depths[number] = depths[parent] + 1
    return max(depths.values()) > limit


def _is_docstring(utf8: bytes, captures: dict[str, list[Node]]) -> bool:
    """Check the conditions for a docstring that a pattern cannot express, see `queries/docstrings.scm`."""
    (doc,), (value,), (statement,) = captures["doc"], captures["_value"], captures["_statement"]
    parts = [doc] if doc.type == "string" else doc.named_children
    plain = all(PLAIN_STRING.match(utf8, part.start_byte) for part in parts if part.type == "string")
    return plain and value.byte_range == statement.byte_range


def _captures(utf8: bytes, matches: list[Match], numbers: dict[int, int], chars: int) -> Columns:
    names = ("pack", "pack_version", "pattern_index", "match_index", "capture", "ts_id", "kind", "text")
    columns: Columns = {name: [] for name in (*names, "bstart", "bend")}
    packs, versions, patterns, indexes, captures, ids, kinds, texts, starts, ends = columns.values()
    matched = dict.fromkeys(PACKS, 0)
    for pattern, by_name in matches:
        pack, number = PATTERNS[pattern]
        for name, captured in by_name.items():
            if name.startswith("_"):
                continue
            for node in captured:
                start, end = node.byte_range
                packs.append(pack.name)
                versions.append(pack.version)
                patterns.append(number)
                indexes.append(matched[pack])
                captures.append(name)
                ids.append(numbers[node.id])
                kinds.append(NODE_KINDS[node.kind_id])
                texts.append(_text(utf8, start, end, chars))
                starts.append(start)
                ends.append(end)
        matched[pack] += 1
    return columns


def _text(utf8: bytes, start: int, end: int, chars: int) -> str:
    """Return the first characters between two offsets; no character has more than four bytes."""
    return utf8[start : min(end, start + 4 * chars)].decode("utf-8", "ignore")[:chars]
