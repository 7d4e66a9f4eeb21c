"""List names, calls and imports that could not be resolved, and why (`unresolved [SYMBOL]`).

    unresolved(reader, symbol=resolve(reader, "shop.waste"), reason="unknown_receiver")
    # bin.sweep    CALLSITE       shop/waste.py:9  CALLS      unknown_receiver  inside shop.waste.clean
    # sweep        ATTRIBUTE_REF  shop/waste.py:9  REFERS_TO  unknown_receiver  inside shop.waste.clean

A row is a call, name, attribute, import, base or decorator, as written in the source; `method` is the reason.
A call of an attribute has two rows: the attribute and the call. A package contains everything below its
folder.

Tests: `tests/unit/query/test_verb_unresolved.py`.
"""

from __future__ import annotations

from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Slice, nodes, of_repository
from codeanatomy.query.verbs.result import VerbResult, query_result
from codeanatomy.query.walks.enclosing import (
    ENCLOSING_KINDS,
    PLACE,
    below_folders_sql,
    equal_sql,
    innermost_sql,
    package_folders,
    spans_sql,
)

COLUMNS = (
    "symbol",
    "kind",
    "path",
    "line",
    "source",
    "relation",
    "inside",
    "confidence",
    "method",
    "repo_id",
    "symbol_id",
)
# Kinds of nodes whose name is shown; implicit calls of operators have no text of their own.
PLACES = ("CALLSITE", "NAME_REF", "ATTRIBUTE_REF", "IMPORT_ALIAS", "CLASS", "DECORATOR")
NOTE = "calls of which some targets are known and others were cut (`too_many_candidates`) are not listed"
# A relation without a span is placed at the beginning of its file.
BEGINS, ENDS = "coalesce(r.bstart, 0)", "coalesce(r.bend, 0)"
ROWS = (
    "SELECT r.src_id, r.src_kind, r.relation_kind, r.reason, r.path, r.line, r.repo_id,"
    f" r.owner_file_id, {BEGINS} AS bstart, {ENDS} AS bend FROM r"
)


def unresolved(
    reader: Reader, *, symbol: Symbol | None = None, reason: str | None = None, repo_id: str | None = None
) -> VerbResult:
    """List what could not be resolved, everywhere or inside of a symbol, for any reason or for one."""
    if symbol is not None and symbol.kind not in (*ENCLOSING_KINDS, "PACKAGE"):
        raise UsageError(
            f"{symbol.symbol} has no code inside of it", "name a function, class, module or package"
        )
    of_one = symbol.repo_id if symbol is not None else repo_id
    relations = {
        "r": of_repository("relations_v1", of_one),
        "n": nodes(PLACES, of_one),
        "d": nodes(ENCLOSING_KINDS, of_one),
    }
    conditions, args = ["r.dst_id IS NULL"], list[str | int]()
    if reason is not None:
        _check_reason(reader, reason)
        conditions.append("r.reason = ?")
        args.append(reason)
    inside = ""
    if symbol is not None:
        folders = package_folders(reader, symbol)
        if folders:
            below, paths = below_folders_sql("r.path", folders)
            conditions.append(below)
            args += paths
        else:
            inside = (
                f" JOIN ({spans_sql('s')}) AS o ON o.file_id = r.owner_file_id"
                f" AND o.begins <= {BEGINS} AND o.ends >= {ENDS}"
            )
            relations["s"] = nodes(ENCLOSING_KINDS, of_one, node_id=symbol.ids)
    # A base of a class is outside of the class itself.
    inner = innermost_sql("u", *PLACE, "src_id", exclude="src_id")
    return query_result(
        COLUMNS,
        f"WITH u AS ({ROWS}{inside} WHERE {' AND '.join(conditions)})"
        " SELECT CASE WHEN n.node_kind = 'IMPORT_ALIAS' THEN n.qualname ELSE n.name END AS symbol,"
        " u.src_kind AS kind, u.path, u.line, CAST(NULL AS STRING) AS source, u.relation_kind AS relation,"
        " d.qualname AS inside,"
        " CAST(NULL AS DOUBLE) AS confidence, u.reason AS method, u.repo_id, u.src_id AS symbol_id, u.bstart,"
        f" u.bend FROM u LEFT JOIN ({inner}) AS i ON {equal_sql('i', 'u', *PLACE, 'src_id')}"
        " LEFT JOIN d ON d.node_id = i.inner_id LEFT JOIN n ON n.node_id = u.src_id",
        relations,
        tuple(args),
        order=("repo_id", "path", "line", "bstart", "relation", "bend", "symbol_id", "method"),
        notes=(NOTE,),
    )


def _check_reason(reader: Reader, reason: str) -> None:
    """Raise UnknownName if no unresolved relation in the lake has the reason."""
    known = Query(
        "SELECT DISTINCT r.reason FROM r WHERE r.dst_id IS NULL AND r.reason IS NOT NULL",
        {"r": Slice("relations_v1")},
    )
    reasons = [row[0] for row in reader.rows(known)]
    if reason not in reasons:
        raise UnknownName("reason", reason, reasons)
