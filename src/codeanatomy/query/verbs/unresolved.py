"""`unresolved [SYMBOL]`: what the lake could not find the meaning of, and why.

    unresolved(reader, symbol=resolve(reader, "shop.waste"), reason="unknown_receiver")
    # thing.sweep  CALLSITE       shop/waste.py:9  CALLS      unknown_receiver  inside shop.waste.clean
    # sweep        ATTRIBUTE_REF  shop/waste.py:9  REFERS_TO  unknown_receiver  inside shop.waste.clean

A row is a call, name, attribute, import, base or decorator, as it is written; `method` is the reason. A call
of an attribute is two: the attribute and the call. Inside of a package is what is below its folder. Tests:
`tests/test_verb_unresolved.py`.
"""

from __future__ import annotations

from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.lanes.reading import Query, Reader, Slice
from codeanatomy.query.symbols import nodes
from codeanatomy.query.verbs.found import Found, found

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
AROUND = ("FUNCTION", "CLASS", "MODULE")
NOTE = "calls of which some targets are known and others were cut (`too_many_candidates`) are not listed"
# After every place of a file.
END = 9223372036854775807


def unresolved(
    reader: Reader, *, symbol: Symbol | None = None, reason: str | None = None, repo_id: str | None = None
) -> Found:
    """What could not be resolved, everywhere or inside of a symbol, for any reason or for one."""
    if symbol is not None and symbol.kind not in (*AROUND, "PACKAGE"):
        raise UsageError(f"{symbol.symbol} has nothing inside", "name a function, class, module or package")
    of_one = symbol.repo_id if symbol is not None else repo_id
    wanted = {"repo_id": (of_one,)} if of_one is not None else {}
    relations = {
        "r": Slice("relations_v1", **wanted),
        "n": nodes(PLACES, of_one),
        "d": nodes(AROUND, of_one),
    }
    conditions, args = ["r.dst_id IS NULL"], list[str | int]()
    if reason is not None:
        _refuse_unknown(reader, reason)
        conditions.append("r.reason = ?")
        args.append(reason)
    inside = ""
    if symbol is not None and any(each.startswith("package:") for each in symbol.ids):
        folder = _folder(symbol)
        conditions.append("left(r.path, ?) = ?")
        args += [len(folder), folder]
    elif symbol is not None:
        inside = (
            " JOIN s ON s.file_id = r.owner_file_id AND coalesce(s.bstart, 0) <= coalesce(r.bstart, 0)"
            f" AND coalesce(s.bend, {END}) >= coalesce(r.bend, 0)"
        )
        relations["s"] = nodes(AROUND, of_one, node_id=symbol.ids)
    return found(
        COLUMNS,
        "SELECT CASE WHEN n.node_kind = 'IMPORT_ALIAS' THEN n.qualname ELSE n.name END AS symbol,"
        " u.src_kind AS kind, u.path, u.line, u.relation_kind AS relation, u.around AS inside,"
        " CAST(NULL AS DOUBLE) AS confidence, u.reason AS method, u.repo_id, u.src_id AS symbol_id, u.bstart,"
        " u.relation_id FROM ("
        "SELECT r.relation_id, r.src_id, r.src_kind, r.path, r.line, r.bstart, r.relation_kind, r.reason,"
        f" r.repo_id, min_by(d.qualname, coalesce(d.bend - d.bstart, {END})) AS around FROM r{inside}"
        f" LEFT JOIN d ON d.file_id = r.owner_file_id AND d.node_id <> r.src_id"
        " AND coalesce(d.bstart, 0) <= coalesce(r.bstart, 0)"
        f" AND coalesce(d.bend, {END}) >= coalesce(r.bend, 0)"
        f" WHERE {' AND '.join(conditions)} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"
        ") AS u LEFT JOIN n ON n.node_id = u.src_id",
        relations,
        tuple(args),
        order=("repo_id", "path", "line", "bstart", "relation", "relation_id"),
        notes=(NOTE,),
    )


def _folder(package: Symbol) -> str:
    """The beginning of the paths of a package."""
    path = package.path or ""
    folder = path if package.kind == "PACKAGE" else path.rpartition("/")[0]
    return f"{folder}/" if folder else ""


def _refuse_unknown(reader: Reader, reason: str) -> None:
    """A reason that nothing in the lake has is a slip of the pen."""
    known = Query(
        "SELECT DISTINCT r.reason FROM r WHERE r.dst_id IS NULL AND r.reason IS NOT NULL",
        {"r": Slice("relations_v1")},
    )
    reasons = [row[0] for row in reader.rows(known)]
    if reason not in reasons:
        raise UnknownName("reason", reason, reasons)
