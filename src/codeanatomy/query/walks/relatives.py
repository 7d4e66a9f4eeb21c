"""List the symbols that belong to a symbol by structure: members, bases, overrides.

    relatives(reader, resolve(reader, "shop.cart.Cart"))["members"]     # [Relative(symbol="shop...", ...)]

A class, module or package has members (definitions and variables); a class has bases and subclasses; a
method overrides others and is overridden; a function has parameters. Variables are listed once, at their
first assignment, without imported names.

Tests: `tests/unit/query/test_relatives.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Row, Slice, edges, nodes
from codeanatomy.query.walks.identifiers import nodes_named
from codeanatomy.syntax_tree import CLASS_CELLS

# Groups: the kinds of symbols that have them, the end of the edges at which the symbol is, and their kind.
GROUPS = {
    "members": (("CLASS", "FUNCTION", "MODULE", "PACKAGE"), "src", "CONTAINS"),
    "parameters": (("FUNCTION",), "src", "HAS_PARAMETER"),
    "bases": (("CLASS",), "src", "INHERITS"),
    "subclasses": (("CLASS", "QUALIFIED_NAME"), "dst", "INHERITS"),
    "overrides": (("FUNCTION",), "src", "OVERRIDES"),
    "overridden by": (("FUNCTION",), "dst", "OVERRIDES"),
}


class Relative(Struct, frozen=True):
    """A symbol that belongs to another, and the certainty of that."""

    node_id: str
    kind: str
    subkind: str | None
    symbol: str
    path: str | None
    line: int | None
    confidence: float
    method: str | None


def relatives(reader: Reader, symbol: Symbol) -> dict[str, list[Relative]]:
    """Return the relatives of a symbol by group, in the order of the source; empty groups are left out."""
    hops: dict[str, dict[str, tuple[float, str | None, int]]] = {}
    for end, other in (("src", "dst"), ("dst", "src")):
        groups = {
            kind: name for name, (kinds, at, kind) in GROUPS.items() if at == end and symbol.kind in kinds
        }
        leading = Slice(
            f"cpg_edges_by_{end}",
            repo_id=(symbol.repo_id,),
            edge_kind=sorted(groups),
            **{f"{end}_node_id": symbol.ids},
        )
        query = Query(
            f"SELECT e.edge_kind, e.{other}_node_id, e.confidence, e.resolution_method, e.ordinal FROM e",
            {"e": leading},
        )
        for kind, node, confidence, method, ordinal in reader.rows(query) if groups else ():
            hops.setdefault(groups[kind], {})[node] = (confidence, method, ordinal or 0)
    ids = {node for group in hops.values() for node in group}
    named = nodes_named(reader, symbol.repo_id, ids)
    result = {
        group: [
            _relative(named[node][:3] + named[node][4:], confidence, method)
            for node, (confidence, method, _) in sorted(
                hops[group].items(), key=lambda item: (item[1][2] if group == "parameters" else 0, item[0])
            )
            if node in named
        ]
        for group in GROUPS
        if group in hops
    }
    for group, rows in result.items():
        if group != "parameters":
            rows.sort(key=_place)
    variables = _variables(reader, symbol, {each.symbol for each in result.get("members", ())})
    if variables:
        result["members"] = sorted([*result.get("members", ()), *variables], key=_place)
    return result


def _relative(row: Row, confidence: float, method: str | None) -> Relative:
    node_id, kind, subkind, symbol, path, line = row
    return Relative(node_id, kind, subkind, symbol, path, line, confidence, method)


def _place(each: Relative) -> tuple[str, int, str, str]:
    return each.path or "", each.line or 0, each.symbol, each.node_id


def _variables(reader: Reader, symbol: Symbol, known: Iterable[str]) -> list[Relative]:
    """Return the variables of a class or module, without those that are definitions."""
    if symbol.kind not in ("CLASS", "MODULE") or symbol.path is None:
        return []
    in_file = {"path": (symbol.path,)}
    query = Query(
        "SELECT b.node_id, b.node_kind, b.subkind, b.qualname, b.path, min(e.line)"
        " FROM b LEFT JOIN e ON e.dst_node_id = b.node_id WHERE b.qualname = concat(?, '.', b.name)"
        " AND b.subkind NOT IN ('import', 'free', 'global', 'nonlocal')"
        f" AND (b.name NOT IN {CLASS_CELLS} OR e.dst_node_id IS NOT NULL)"
        " GROUP BY b.node_id, b.node_kind, b.subkind, b.qualname, b.path",
        {
            "b": nodes(("BINDING",), symbol.repo_id, **in_file),
            "e": edges(("DEFINES_BINDING",), symbol.repo_id, **in_file),
        },
        (symbol.symbol,),
    )
    defined = set(known)
    return [_relative(row, 1.0, None) for row in reader.rows(query) if row[3] not in defined]
