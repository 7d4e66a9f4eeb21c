"""Extract texts with the tree-sitter extractor, and check what must hold for any text."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

from tree_sitter import Node, Parser

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import ExtractorResult
from codeanatomy.extract.tree_sitter_files import LANGUAGE, PACKS, tree_sitter_files_v1
from codeanatomy.sources.source_file import Source, decode

# Whole texts, so that they can be compared with the source.
WHOLE = ExtractOptions(max_value_chars=10**9)
PLACE = ("bstart", "bend", "line")
Row = dict[str, Any]


def with_newlines(source: Source) -> bytes:
    """The text with a line feed where a lone carriage return ends a line."""
    return source.utf8.replace(b"\r\n", b"\0\0").replace(b"\r", b"\n").replace(b"\0\0", b"\r\n")


def source_of(text: str | bytes) -> Source:
    source = decode("a.py", text.encode() if isinstance(text, str) else text)
    assert isinstance(source, Source)
    return source


def extract_tree_sitter(text: str | bytes, options: ExtractOptions = WHOLE) -> ExtractorResult:
    return tree_sitter_files_v1(source_of(text), options)


def rows(columns: dict[str, list[Any]]) -> list[Row]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def matches(cells: Any, pack: str) -> list[dict[str, Row]]:
    """The matches of a pack: rows by the name of the capture."""
    found: dict[int, dict[str, Row]] = {}
    for row in rows(cells["captures"]):
        if row["pack"] == pack:
            found.setdefault(row["match_index"], {})[row["capture"]] = row
    assert list(found) == list(range(len(found)))
    return list(found.values())


def texts(cells: Any, pack: str) -> list[dict[str, str]]:
    return [{name: row["text"] for name, row in match.items()} for match in matches(cells, pack)]


def plain_walk(source: Source) -> tuple[list[Row], list[Row]]:
    """Named and missing nodes of a tree that is parsed in one piece and walked by recursion."""
    numbers = count()
    named: list[Row] = []
    missing: list[Row] = []

    def visit(node: Node, field: str | None, above: Row | None) -> None:
        row = {
            "ts_id": next(numbers),
            "parent_ts_id": above and above["ts_id"],
            "kind": node.type,
            "field": field,
            "has_error": node.has_error,
            "is_error": node.is_error,
            "is_missing": node.is_missing,
            "is_extra": node.is_extra,
            "bstart": node.start_byte,
            "bend": node.end_byte,
            "line": line_of(source, node),
        }
        if node.is_named:
            named.append(row)
        if node.is_missing:
            missing.append({"parent_kind": above and above["kind"], **row})
        for index, child in enumerate(node.children):
            visit(child, node.field_name_for_child(index), row if node.is_named else above)

    visit(Parser(LANGUAGE).parse(with_newlines(source)).root_node, None, None)
    return named, [{name: row[name] for name in ("ts_id", "kind", "parent_kind", *PLACE)} for row in missing]


def line_of(source: Source, node: Node) -> int:
    """Lines as CPython counts them: a lone carriage return ends one, too."""
    if b"\r" not in source.utf8:
        # Not by its name: reading `row` of a point frees an int too early in tree-sitter 0.26.0.
        return node.start_point[0] + 1
    return len(re.sub(rb"\r\n?", b"\n", source.utf8[: node.start_byte]).split(b"\n"))


def check_tree(source: Source, cells: Any) -> None:
    """Check that everything but the captures follows from the plain walk."""
    named, missing = plain_walk(source)
    nodes = rows(cells["nodes"])
    assert nodes == named
    assert rows(cells["missing"]) == missing
    by_id = {node["ts_id"]: node for node in nodes}
    for node in nodes[1:]:
        parent = by_id[node["parent_ts_id"]]
        assert parent["bstart"] <= node["bstart"] <= node["bend"] <= parent["bend"]
    errors = [node for node in nodes if node["is_error"]]
    assert [error["ts_id"] for error in rows(cells["errors"])] == [node["ts_id"] for node in errors]
    for error, node in zip(rows(cells["errors"]), errors, strict=True):
        assert error["parent_kind"] == (by_id[node["parent_ts_id"]]["kind"] if node["ts_id"] else None)
        assert error["text"].encode() == source.utf8[node["bstart"] : node["bend"]]
        assert [error[name] for name in PLACE] == [node[name] for name in PLACE]
    stats = cells["stats"]
    assert stats["node_count"] == Parser(LANGUAGE).parse(with_newlines(source)).root_node.descendant_count
    assert stats["named_count"] == len(nodes)
    assert (stats["error_count"], stats["missing_count"]) == (len(errors), len(missing))


def check_captures(source: Source, cells: Any) -> None:
    """Check that a capture is a node of the tree and has its text."""
    by_id = {node["ts_id"]: node for node in rows(cells["nodes"])}
    for row in rows(cells["captures"]):
        assert row["text"].encode() == source.utf8[row["bstart"] : row["bend"]]
        if row["kind"] != "__future__":  # A keyword to tree-sitter, hence no named node.
            node = by_id[row["ts_id"]]
            assert all(row[name] == node[name] for name in ("kind", *PLACE))
    found = [match for pack in PACKS for match in matches(cells, pack.name)]
    assert cells["stats"]["match_count"] == len(found)
    assert cells["stats"]["capture_count"] == sum(map(len, found))
