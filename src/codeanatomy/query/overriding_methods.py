"""Note the methods that override a symbol: what calls them is not listed with it, though it may be meant.

    class Key:                      `callers Key.sign` lists what calls this very method
        def sign(self): ...
    class RsaKey(Key):
        def sign(self): ...         not listed: 3 callers of the method that overrides it, app.RsaKey.sign

Tests: `tests/unit/query/test_overriding_methods.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import structs

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, nodes
from codeanatomy.query.verbs.result import VerbResult
from codeanatomy.query.walks.reachability import CALL_GRAPH, neighbours, reach

OVERRIDES = ("OVERRIDES",)
# Overrides of overrides of ...
MAX_DEPTH = 50


def note_callers_of_overrides(
    reader: Reader, result: VerbResult, symbol: Symbol, listed: Collection[str]
) -> VerbResult:
    """Note how many callers of overriding methods are not among the listed nodes."""
    methods = overriding_methods(reader, symbol)
    hops = neighbours(reader, sorted(methods), CALL_GRAPH, "dst") if methods else []
    further = {hop.node_id for hop in hops}.difference(listed, methods, symbol.ids)
    if not further:
        return result
    count = f"{len(further):,} caller{'s' if len(further) > 1 else ''}"
    called = min(methods[hop.via] for hop in hops if hop.node_id in further)
    return _with_note(result, f"not listed: {count} of {_shown(methods, called)}")


def note_overrides(reader: Reader, result: VerbResult, symbol: Symbol) -> VerbResult:
    """Note that references to overriding methods are not listed."""
    methods = overriding_methods(reader, symbol)
    if not methods:
        return result
    return _with_note(result, f"not listed: references to {_shown(methods, min(methods.values()))}")


def overriding_methods(reader: Reader, symbol: Symbol) -> dict[str, str]:
    """Return the methods that override a method, directly or not: node ids and qualified names."""
    name = symbol.symbol.rpartition(".")[2]
    if symbol.kind != "FUNCTION" or (name.startswith("__") and name.endswith("__")):
        return {}
    hops, _ = reach(reader, dict.fromkeys(symbol.ids, 1.0), OVERRIDES, "dst", MAX_DEPTH)
    ids = sorted({hop.node_id for hop in hops}.difference(symbol.ids))
    query = Query("SELECT n.node_id, n.qualname FROM n", {"n": nodes(("FUNCTION",), node_id=ids)})
    return dict(reader.rows(query)) if ids else {}


def _shown(methods: dict[str, str], example: str) -> str:
    if len(methods) == 1:
        return f"the method that overrides it, {example}"
    return f"the {len(methods):,} methods that override it, such as {example}"


def _with_note(result: VerbResult, note: str) -> VerbResult:
    return structs.replace(result, notes=(*result.notes, note))
