"""List what may break if symbols change, nearest first, and the tests that reach them (`impact SYMBOL`).

    impact(reader, [resolve(reader, "Price.with_tax")])
    # shop.cart.sell                  CALL_GRAPH     depth 1   shop/cart.py:47
    # tests.test_cart.test_sell       CALL_GRAPH     depth 2   tests/test_cart.py:5     test

The search goes from a definition to its users: definitions that call, instantiate, refer to, import, inherit
from or override it. A class, module or package stands for all of its contents. A module that is reached is
not expanded: names that it re-exports are edges to the original definition, through any number of imports.
The location of a row is that of the use.

Tests: `tests/unit/query/test_verb_impact.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.verbs.result import VerbResult, rows_result
from codeanatomy.query.walks.enclosing import DefinitionUse, contents, find_users
from codeanatomy.query.walks.reachability import CALL_GRAPH, MAX_REACHED
from codeanatomy.query.walks.test_code import is_test

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "depth",
    "via",
    "relation",
    "test",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
# Kinds of edges that start at a definition, and those that start at a node inside of one. Of several edges
# between the same definitions the first kind is reported.
FROM_DEFINITIONS = (*CALL_GRAPH, "OVERRIDES", "INHERITS")
FROM_PLACES = ("INSTANTIATES", "REFERS_TO", "READS", "IMPORTS_NAME", "IMPORTS_MODULE")
EDGE_ORDER = (*FROM_DEFINITIONS, *FROM_PLACES)
WITH_CONTENTS = ("CLASS", "MODULE", "PACKAGE")


def impact(
    reader: Reader, symbols: Sequence[Symbol], *, depth: int = 5, notes: Iterable[str] = ()
) -> VerbResult:
    """List the definitions that use the symbols, up to `depth` uses away."""
    names = {node: each.symbol for each in symbols for node in each.ids}
    for each in symbols:
        if each.kind in WITH_CONTENTS:
            names |= contents(reader, each)
    confidences = dict.fromkeys(names, 1.0)
    level, rows, complete = list(names), list[dict[str, Any]](), True
    for distance in range(1, depth + 1):
        uses = find_users(reader, level, FROM_PLACES, FROM_DEFINITIONS)
        new_users = _new_users(uses, confidences)
        if len(rows) + len(new_users) > MAX_REACHED:
            complete = False
            break
        rows += [_row(use, distance, names, confidence) for use, confidence in new_users]
        confidences.update({use.hop.node_id: confidence for use, confidence in new_users})
        names.update({use.hop.node_id: use.name for use, _ in new_users})
        level = [use.hop.node_id for use, _ in new_users if use.kind != "MODULE"]
    rows.sort(key=_order)
    return rows_result(COLUMNS, rows, (*notes, *(_notes(rows, complete) if symbols else ())))


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["depth"], row["test"], row["symbol"], row["path"] or "", row["line"] or 0, row["symbol_id"]


def _new_users(
    uses: Iterable[DefinitionUse], confidences: dict[str, float]
) -> list[tuple[DefinitionUse, float]]:
    """Keep one use per user that was not reached before, with its confidence.

    By the kind of the edge, then by confidence, then by location.
    """
    kept: dict[str, tuple[tuple[int, float, str, int], DefinitionUse]] = {}
    for use in uses:
        hop = use.hop
        if hop.node_id not in confidences:
            confidence = min(hop.confidence, confidences[hop.via])
            rank = (EDGE_ORDER.index(hop.edge_kind), -confidence, hop.path or "", hop.line or 0)
            if hop.node_id not in kept or rank < kept[hop.node_id][0]:
                kept[hop.node_id] = rank, use
    return [(use, -rank[1]) for rank, use in kept.values()]


def _row(use: DefinitionUse, depth: int, names: dict[str, str], confidence: float) -> dict[str, Any]:
    hop = use.hop
    return {
        "symbol": use.name,
        "kind": use.kind,
        "subkind": use.subkind,
        "path": hop.path,
        "line": hop.line,
        "depth": depth,
        "via": names[hop.via],
        "relation": hop.edge_kind,
        "test": is_test(hop.path or "", use.name),
        "confidence": confidence,
        "method": hop.method,
        "repo_id": use.repo_id,
        "symbol_id": hop.node_id,
    }


def _notes(rows: Sequence[dict[str, Any]], complete: bool) -> list[str]:
    tests = sum(
        row["test"] and row["kind"] == "FUNCTION" and row["symbol"].rpartition(".")[2].startswith("test")
        for row in rows
    )
    reached = f"tests that reach it: {tests:,}" if tests else "no test reaches it"
    cut = () if complete else (f"stopped after {MAX_REACHED:,} symbols: use a smaller --depth",)
    return [reached, *cut]
