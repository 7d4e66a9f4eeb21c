"""`impact SYMBOL`: what may break if it changes, nearest first, and the tests that reach it.

    impact(reader, [resolve(reader, "Price.with_tax")])
    # shop.cart.sell                  CALL_GRAPH     depth 1   shop/cart.py:47
    # tests.test_cart.test_sell       CALL_GRAPH     depth 2   tests/test_cart.py:5     test

Steps go from what is used to its user: who calls it, makes an instance of it, names or imports it, inherits
from it or overrides it. A class or module stands for all that is inside of it. A module that is reached is
not gone on from: what it hands on to others is a use of the thing itself, through any number of imports. The
place of a row is where the use stands. Tests: `tests/test_verb_impact.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec import structs

from codeanatomy.query.answers import Symbol
from codeanatomy.query.lanes.reading import Reader
from codeanatomy.query.verbs.found import Found, held
from codeanatomy.query.walks.enclosing import Use, contents, users
from codeanatomy.query.walks.reaching import REACHED

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
FROM_DEFINITIONS = ("CALL_GRAPH", "OVERRIDES", "INHERITS")
FROM_PLACES = ("INSTANTIATES", "REFERS_TO", "READS", "IMPORTS_NAME", "IMPORTS_MODULE")
REASONS = (*FROM_DEFINITIONS, *FROM_PLACES)
TEST_FOLDERS = frozenset({"test", "tests"})
TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
TEST_NAME = re.compile(r"(^|\.)(test_|Test)")


def impact(reader: Reader, symbols: Sequence[Symbol], *, depth: int = 5, notes: Iterable[str] = ()) -> Found:
    """What may break if these change, up to so many steps away."""
    names = {node: each.symbol for each in symbols for node in each.ids}
    for each in symbols:
        if each.kind in ("CLASS", "MODULE"):
            names |= contents(reader, each)
    trust = dict.fromkeys(names, 1.0)
    level, rows, whole = list(names), list[dict[str, Any]](), True
    for distance in range(1, depth + 1):
        nearest = _nearest(users(reader, level, FROM_PLACES, FROM_DEFINITIONS), trust)
        if len(rows) + len(nearest) > REACHED:
            whole = False
            break
        rows += [_row(each, distance, names) for each in nearest]
        trust.update({each.node_id: each.confidence for each in nearest})
        names.update({each.node_id: each.name for each in nearest})
        level = [each.node_id for each in nearest if each.kind != "MODULE"]
    rows.sort(key=lambda row: (row["depth"], row["test"], row["symbol"], row["path"], row["line"] or 0))
    return held(COLUMNS, rows, (*notes, *(_notes(rows, whole) if symbols else ())))


def _nearest(uses: Iterable[Use], trust: dict[str, float]) -> list[Use]:
    """Each new user once, by the reason that tells most, and that is trusted most."""
    kept: dict[str, tuple[tuple[int, float, str, int], Use]] = {}
    for use in uses:
        if use.node_id not in trust:
            trusted = min(use.confidence, trust[use.via])
            rank = (REASONS.index(use.edge_kind), -trusted, use.path or "", use.line or 0)
            if use.node_id not in kept or rank < kept[use.node_id][0]:
                kept[use.node_id] = rank, structs.replace(use, confidence=trusted)
    return [use for _, use in kept.values()]


def _row(use: Use, depth: int, names: dict[str, str]) -> dict[str, Any]:
    return {
        "symbol": use.name,
        "kind": use.kind,
        "subkind": use.subkind,
        "path": use.path,
        "line": use.line,
        "depth": depth,
        "via": names[use.via],
        "relation": use.edge_kind,
        "test": is_test(use.path or "", use.name),
        "confidence": use.confidence,
        "method": use.method,
        "repo_id": use.repo_id,
        "symbol_id": use.node_id,
    }


def is_test(path: str, name: str) -> bool:
    """Whether something is test code, by its path and name.

    >>> is_test("tests/data.py", "tests.data.make"), is_test("pkg/a.py", "pkg.a.TestA.run")
    (True, True)
    >>> is_test("pkg/latest.py", "pkg.latest.contest")
    False
    """
    parts = PurePosixPath(path).parts
    in_folder = not TEST_FOLDERS.isdisjoint(parts[:-1])
    return in_folder or bool(parts and TEST_FILE.fullmatch(parts[-1])) or bool(TEST_NAME.search(name))


def _notes(rows: Sequence[dict[str, Any]], whole: bool) -> list[str]:
    tests = sum(
        row["test"] and row["kind"] == "FUNCTION" and row["symbol"].rpartition(".")[2].startswith("test")
        for row in rows
    )
    reached = f"tests that reach it: {tests:,}" if tests else "no test reaches it"
    cut = () if whole else (f"stopped after {REACHED:,} symbols: ask with a smaller --depth",)
    return [reached, *cut]
