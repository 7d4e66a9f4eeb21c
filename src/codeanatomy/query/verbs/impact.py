"""`impact SYMBOL`: what may break if it changes, nearest first, and the tests that reach it.

    impact(reader, [resolve(reader, "Price.with_tax")])
    # shop.cart.sell                  CALL_GRAPH     depth 1   shop/cart.py:47
    # tests.test_cart.test_sell       CALL_GRAPH     depth 2   tests/test_cart.py:5     test

Steps go from what is used to its user: who calls it, makes an instance of it, names or imports it, inherits
from it or overrides it. A class, module or package stands for all that is inside of it. A module that is
reached is not gone on from: what it hands on to others is a use of the thing itself, through any number of
imports. The place of a row is where the use stands. Tests: `tests/unit/query/test_verb_impact.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.verbs.result import Found, held
from codeanatomy.query.walks.enclosing import Use, contents, users
from codeanatomy.query.walks.reachability import CALL_GRAPH, REACHED
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
# Of several reasons the first is told.
FROM_DEFINITIONS = (*CALL_GRAPH, "OVERRIDES", "INHERITS")
FROM_PLACES = ("INSTANTIATES", "REFERS_TO", "READS", "IMPORTS_NAME", "IMPORTS_MODULE")
REASONS = (*FROM_DEFINITIONS, *FROM_PLACES)
WITH_CONTENTS = ("CLASS", "MODULE", "PACKAGE")


def impact(reader: Reader, symbols: Sequence[Symbol], *, depth: int = 5, notes: Iterable[str] = ()) -> Found:
    """What may break if these change, up to so many steps away."""
    names = {node: each.symbol for each in symbols for node in each.ids}
    for each in symbols:
        if each.kind in WITH_CONTENTS:
            names |= contents(reader, each)
    trust = dict.fromkeys(names, 1.0)
    level, rows, whole = list(names), list[dict[str, Any]](), True
    for distance in range(1, depth + 1):
        nearest = _nearest(users(reader, level, FROM_PLACES, FROM_DEFINITIONS), trust)
        if len(rows) + len(nearest) > REACHED:
            whole = False
            break
        rows += [_row(use, distance, names, trusted) for use, trusted in nearest]
        trust.update({use.step.node_id: trusted for use, trusted in nearest})
        names.update({use.step.node_id: use.name for use, _ in nearest})
        level = [use.step.node_id for use, _ in nearest if use.kind != "MODULE"]
    rows.sort(key=_order)
    return held(COLUMNS, rows, (*notes, *(_notes(rows, whole) if symbols else ())))


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["depth"], row["test"], row["symbol"], row["path"] or "", row["line"] or 0, row["symbol_id"]


def _nearest(uses: Iterable[Use], trust: dict[str, float]) -> list[tuple[Use, float]]:
    """Each new user once, by the reason that tells most, and that is trusted most: as much as is told."""
    kept: dict[str, tuple[tuple[int, float, str, int], Use]] = {}
    for use in uses:
        step = use.step
        if step.node_id not in trust:
            trusted = min(step.confidence, trust[step.via])
            rank = (REASONS.index(step.edge_kind), -trusted, step.path or "", step.line or 0)
            if step.node_id not in kept or rank < kept[step.node_id][0]:
                kept[step.node_id] = rank, use
    return [(use, -rank[1]) for rank, use in kept.values()]


def _row(use: Use, depth: int, names: dict[str, str], trusted: float) -> dict[str, Any]:
    step = use.step
    return {
        "symbol": use.name,
        "kind": use.kind,
        "subkind": use.subkind,
        "path": step.path,
        "line": step.line,
        "depth": depth,
        "via": names[step.via],
        "relation": step.edge_kind,
        "test": is_test(step.path or "", use.name),
        "confidence": trusted,
        "method": step.method,
        "repo_id": use.repo_id,
        "symbol_id": step.node_id,
    }


def _notes(rows: Sequence[dict[str, Any]], whole: bool) -> list[str]:
    tests = sum(
        row["test"] and row["kind"] == "FUNCTION" and row["symbol"].rpartition(".")[2].startswith("test")
        for row in rows
    )
    reached = f"tests that reach it: {tests:,}" if tests else "no test reaches it"
    cut = () if whole else (f"stopped after {REACHED:,} symbols: ask with a smaller --depth",)
    return [reached, *cut]
