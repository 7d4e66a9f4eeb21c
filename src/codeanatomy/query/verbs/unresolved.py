"""`unresolved [SYMBOL]`: what the lake could not find the meaning of, and why.

    unresolved(reader, symbol=resolve(reader, "shop.waste"), reason="unknown_receiver")
    # thing.sweep  CALLSITE       shop/waste.py:9  CALLS      unknown_receiver  inside shop.waste.clean
    # sweep        ATTRIBUTE_REF  shop/waste.py:9  REFERS_TO  unknown_receiver  inside shop.waste.clean

A row is a call, name, attribute, import, base or decorator, as it is written; `method` is the reason. A call
of an attribute is two: the attribute and the call. Inside of a package is what is below its folder. Tests:
`tests/unit/query/test_verb_unresolved.py`.
"""

from __future__ import annotations

from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Slice, nodes, of_repository
from codeanatomy.query.verbs.result import Found, found
from codeanatomy.query.walks.enclosing import AROUND, folders_of, innermost, is_below, spans

COLUMNS = (
    "symbol",
    "kind",
    "path",
    "line",
    "relation",
    "inside",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
# What may be unresolved, but for what the compiler makes of operators, which has no text of its own.
PLACES = ("CALLSITE", "NAME_REF", "ATTRIBUTE_REF", "IMPORT_ALIAS", "CLASS", "DECORATOR")
NOTE = "calls of which some targets are known and others were cut (`too_many_candidates`) are not listed"
# What has no place of its own is at the beginning of its file.
BEGINS, ENDS = "coalesce(r.bstart, 0)", "coalesce(r.bend, 0)"
ROWS = (
    "SELECT r.relation_id, r.src_id, r.src_kind, r.relation_kind, r.reason, r.path, r.line, r.repo_id,"
    f" r.owner_file_id, {BEGINS} AS bstart, {ENDS} AS bend FROM r"
)


def unresolved(
    reader: Reader, *, symbol: Symbol | None = None, reason: str | None = None, repo_id: str | None = None
) -> Found:
    """What could not be resolved, everywhere or inside of a symbol, for any reason or for one."""
    if symbol is not None and symbol.kind not in (*AROUND, "PACKAGE"):
        raise UsageError(f"{symbol.symbol} has nothing inside", "name a function, class, module or package")
    of_one = symbol.repo_id if symbol is not None else repo_id
    relations = {
        "r": of_repository("relations_v1", of_one),
        "n": nodes(PLACES, of_one),
        "d": nodes(AROUND, of_one),
    }
    conditions, args = ["r.dst_id IS NULL"], list[str | int]()
    if reason is not None:
        _refuse_unknown(reader, reason)
        conditions.append("r.reason = ?")
        args.append(reason)
    inside = ""
    if symbol is not None:
        folders = folders_of(reader, symbol)
        if folders:
            below, paths = is_below("r.path", folders)
            conditions.append(below)
            args += paths
        else:
            inside = (
                f" JOIN ({spans('s')}) AS o ON o.file_id = r.owner_file_id"
                f" AND o.begins <= {BEGINS} AND o.ends >= {ENDS}"
            )
            relations["s"] = nodes(AROUND, of_one, node_id=symbol.ids)
    # The base of a class is outside of it.
    inner = innermost("u", "relation_id", but="src_id")
    return found(
        COLUMNS,
        f"WITH u AS ({ROWS}{inside} WHERE {' AND '.join(conditions)})"
        " SELECT CASE WHEN n.node_kind = 'IMPORT_ALIAS' THEN n.qualname ELSE n.name END AS symbol,"
        " u.src_kind AS kind, u.path, u.line, u.relation_kind AS relation, d.qualname AS inside,"
        " CAST(NULL AS DOUBLE) AS confidence, u.reason AS method, u.repo_id, u.src_id AS symbol_id, u.bstart,"
        f" u.relation_id FROM u LEFT JOIN ({inner}) AS i ON i.relation_id = u.relation_id"
        " LEFT JOIN d ON d.node_id = i.inner_id LEFT JOIN n ON n.node_id = u.src_id",
        relations,
        tuple(args),
        order=("repo_id", "path", "line", "bstart", "relation", "relation_id"),
        notes=(NOTE,),
    )


def _refuse_unknown(reader: Reader, reason: str) -> None:
    """A reason that nothing in the lake has is a slip of the pen."""
    known = Query(
        "SELECT DISTINCT r.reason FROM r WHERE r.dst_id IS NULL AND r.reason IS NOT NULL",
        {"r": Slice("relations_v1")},
    )
    reasons = [row[0] for row in reader.rows(known)]
    if reason not in reasons:
        raise UnknownName("reason", reason, reasons)
