"""List what may break if symbols change, nearest first, and the tests that reach them (`impact SYMBOL`).

    impact(reader, [resolve(reader, "Price.with_tax")])
    # shop.cart.sell                  CALL_GRAPH     depth 1   shop/cart.py:47
    # tests.test_cart.test_sell       CALL_GRAPH     depth 2   tests/test_cart.py:5     test

The search goes from a definition to its users: definitions that call, instantiate, refer to, import, inherit
from or override it. A class, module or package stands for all of its contents. A module that is reached is
not expanded: names that it re-exports are edges to the original definition, through any number of imports.
The location of a row is that of the use. A row that a framework calls has its `entry`: the route, command or
test in which the change is seen. Notes have the nearest tests, how much lies beyond the depth, and whether
there may be more users, because uses of the same name could not be resolved.

Tests: `tests/unit/query/test_verb_impact.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Reader
from codeanatomy.query.unresolved_uses import unresolved_notes
from codeanatomy.query.verbs.result import VerbResult, rows_result
from codeanatomy.query.walks.enclosing import DefinitionUse, contents, find_users
from codeanatomy.query.walks.entry_points import by_definition, read_entry_points
from codeanatomy.query.walks.reachability import CALL_GRAPH, MAX_REACHED
from codeanatomy.query.walks.test_code import is_test

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "source",
    "defined",
    "depth",
    "via",
    "relation",
    "test",
    "entry",
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
# Definitions beyond the depth that are counted, and tests that are named in a note.
MAX_BEYOND = 2_000
MAX_NAMED = 3


def impact(
    reader: Reader, symbols: Sequence[Symbol], *, depth: int = 5, notes: Iterable[str] = ()
) -> VerbResult:
    """List the definitions that use the symbols, up to `depth` uses away."""
    names = {node: each.symbol for each in symbols for node in each.ids}
    for each in symbols:
        if each.kind in WITH_CONTENTS:
            names |= contents(reader, each)
    confidences = dict.fromkeys(names, 1.0)
    level, reached, distance, limit = list(names), list[dict[str, Any]](), 1, MAX_REACHED
    while level:
        uses = find_users(reader, level, FROM_PLACES, FROM_DEFINITIONS)
        new_users = _new_users(uses, confidences)
        is_cut = len(reached) + len(new_users) > limit
        if is_cut and distance <= depth:
            break
        reached += [_row(use, distance, names, confidence) for use, confidence in new_users]
        if is_cut:
            break
        confidences.update({use.hop.node_id: confidence for use, confidence in new_users})
        names.update({use.hop.node_id: use.name for use, _ in new_users})
        level = [use.hop.node_id for use, _ in new_users if use.kind != "MODULE"]
        if distance == depth:
            # What is beyond is counted, and not listed.
            limit = min(MAX_REACHED, len(reached) + MAX_BEYOND)
        distance += 1
    rows = sorted((row for row in reached if row["depth"] <= depth), key=_order)
    ends = _add_entry_points(reader, rows, [node for each in symbols for node in each.ids])
    unknown = unresolved_notes(reader, symbols)
    counts = _notes(reached, depth, complete=not level, unknown=bool(unknown)) if symbols else ()
    return rows_result(COLUMNS, rows, (*notes, *counts, *ends, *unknown), unknown=bool(unknown))


def _add_entry_points(reader: Reader, rows: Sequence[dict[str, Any]], starts: Sequence[str]) -> list[str]:
    """Add the entry points that rows are, and return a note that counts them by kind."""
    ids = {*starts, *(row["symbol_id"] for row in rows)}
    entries = (
        by_definition(each for each in read_entry_points(reader, ids=ids) if each.is_root) if ids else {}
    )
    for row in rows:
        each = entries.get(row["symbol_id"])
        row["entry"] = each and f"{each.kind} {each.name}"
    # Tests are counted by name and path, in a note of their own.
    kinds = Counter(each.kind for each in entries.values() if each.kind not in ("test", "fixture"))
    listed = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    return [f"entry points that reach it: {listed}"] if listed else []


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
        "defined": use.defined,
        "depth": depth,
        "via": names[hop.via],
        "relation": hop.edge_kind,
        "test": is_test(hop.path or "", use.name),
        "confidence": confidence,
        "method": hop.method,
        "repo_id": use.repo_id,
        "symbol_id": hop.node_id,
    }


def _notes(reached: Sequence[dict[str, Any]], depth: int, *, complete: bool, unknown: bool) -> list[str]:
    """Return what is reached within the depth and beyond it; `reached` is in the order of distance."""
    tests = sorted((row for row in reached if _is_test_function(row)), key=_order)
    beyond = sum(row["depth"] > depth for row in reached)
    near = [row for row in tests if row["depth"] <= depth]
    notes = ["no test is known to reach it" if unknown else "no test reaches it"]
    if near:
        named = ", ".join(f"{row['symbol']} (depth {row['depth']})" for row in near[:MAX_NAMED])
        notes = [f"tests that reach it: {len(near):,}, the nearest: {named}"]
    elif beyond or not complete:
        notes = [f"no test reaches it within depth {depth}"]
    if beyond:
        farthest = max(row["depth"] for row in reached)
        count = f"{'' if complete else 'at least '}{beyond:,} more definition{'s' if beyond > 1 else ''}"
        among = f"tests among them: {len(tests) - len(near):,}"
        notes.append(f"beyond depth {depth}: {count}, {among}; use --depth {farthest} to list them")
    elif not complete:
        notes.append(f"stopped after {MAX_REACHED:,} symbols: use a smaller --depth")
    return notes


def _is_test_function(row: dict[str, Any]) -> bool:
    name = row["symbol"].rpartition(".")[2]
    return bool(row["test"]) and row["kind"] == "FUNCTION" and name.startswith("test")
