"""Find the expressions whose value is what a function returns, or the value of one of their parts.

    returned_values(reader, function_ids)       # total = price(item)  ->  the span of `price(item)`
    returning_calls(reader, spans, paths, ...)  # the opposite: which functions return the value of a span
    whole_expressions(reader, spans, paths)     # `x` -> `3 if y is None else x`
    value_parts(reader, spans, paths)           # the opposite: `3 if y is None else x` -> `3` and `x`

Such an expression is a plain call, an attribute that is a property, or a subscript. The call of an async
function is only its value where it is awaited: the expression is then the `await`. What a generator returns
is not the value of its call, so generators have none; neither have implicit calls by operators or decorators.
A conditional has the value of a branch, `or` and `and` that of an operand, `(x := value)` that of `value`;
each may be a part of another.

Tests: `tests/unit/query/test_value_origin.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from codeanatomy.catalog.spec import Column
from codeanatomy.query.engines.statements import InlineRows, Query, Reader, Row, Slice, edges, nodes
from codeanatomy.query.walks.enclosing import CALLER_KINDS, innermost_sql
from codeanatomy.query.walks.reachability import edges_at

# Roles of calls whose value is what the function returns; "" is a plain call.
ROLES = ("", "attribute", "subscript")
CALLS = ("CALLS",)
SPAN_COLUMNS = (
    Column("n", "bigint", "Number of the span.", nullable=False),
    Column("file_id", "string", "File."),
    Column("bstart", "bigint", "First byte."),
    Column("bend", "bigint", "Byte after the last."),
)
# Kinds of syntax nodes, and the roles of their parts; the condition of a conditional is no such part.
WHOLES = ("IfExp", "BoolOp", "NamedExpr")
PARTS = ("body", "orelse", "values", "value")
VALUE_OF = f"coalesce(e.role, '') IN ({', '.join(repr(role) for role in ROLES)})"


def returned_values(reader: Reader, function_ids: Collection[str]) -> list[Row]:
    """Return the expressions that have the values returned by functions.

    A row is the function, repository, file, path, first byte, end, line, confidence, method and edge.
    """
    returning, awaited = _functions(reader, function_ids)
    called = edges_at(sorted(returning | awaited), CALLS, "dst")
    query = Query(
        "SELECT e.dst_node_id, e.repo_id, e.owner_file_id, e.path, e.bstart, e.bend, e.line, e.confidence,"
        f" e.resolution_method, e.edge_id FROM e WHERE {VALUE_OF}",
        {"e": called},
        order=("edge_id",),
    )
    rows = reader.rows(query) if returning or awaited else []
    values = [row for row in rows if row[0] in returning]
    in_await = [row for row in rows if row[0] in awaited]
    spans = [(at, row[2], row[4], row[5]) for at, row in enumerate(in_await)]
    paths = sorted({row[3] for row in in_await})
    around = Query(
        "SELECT h.n, k.bstart, k.bend FROM h JOIN v ON v.owner_file_id = h.file_id AND v.bstart = h.bstart"
        " AND v.bend = h.bend JOIN k ON k.node_id = v.src_node_id",
        {"h": InlineRows(SPAN_COLUMNS, spans), **_awaits(paths)},
        order=("n",),
    )
    for at, bstart, bend in reader.rows(around) if spans else ():
        row = in_await[at]
        values.append((*row[:4], bstart, bend, *row[6:]))
    return values


def returning_calls(reader: Reader, spans: InlineRows, paths: Sequence[str], *, has_await: bool) -> list[Row]:
    """Return the functions whose returned value a span has; `has_await` if there is an `await` among them.

    The spans have the columns `SPAN_COLUMNS`. A row is the number of the span, the function's id and name,
    and confidence, method and id of the edge.
    """
    inner = Query(
        "SELECT h.n, h.file_id, v.bstart, v.bend FROM h JOIN k ON k.file_id = h.file_id"
        " AND k.bstart = h.bstart AND k.bend = h.bend JOIN v ON v.src_node_id = k.node_id",
        {"h": spans, **_awaits(paths)},
        order=("n",),
    )
    in_await = reader.rows(inner) if has_await else []
    # The calls inside of `await` have the numbers -1, -2, ...
    calls = [*spans.rows, *((-1 - at, *row[1:]) for at, row in enumerate(in_await))]
    query = Query(
        "SELECT h.n, e.dst_node_id, e.confidence, e.resolution_method, e.edge_id FROM h JOIN e"
        " ON e.owner_file_id = h.file_id AND e.bstart = h.bstart AND e.bend = h.bend"
        f" WHERE {VALUE_OF}",
        {"h": InlineRows(SPAN_COLUMNS, calls), "e": edges(CALLS, path=paths)},
        order=("n", "edge_id"),
    )
    rows = reader.rows(query) if calls else []
    functions = sorted({row[1] for row in rows})
    named = Query("SELECT f.node_id, f.qualname FROM f", {"f": nodes(("FUNCTION",), node_id=functions)})
    names: dict[str, str] = dict(reader.rows(named)) if functions else {}
    returning, awaited = _functions(reader, functions)
    return [
        (at if at >= 0 else in_await[-1 - at][0], function, names[function], *edge)
        for at, function, *edge in rows
        if function in (returning if at >= 0 else awaited)
    ]


def _awaits(paths: Sequence[str]) -> dict[str, Slice]:
    return {
        "k": nodes(("AST_NODE",), subkind=("Await",), path=paths),
        "v": edges(("AST_PARENT_OF",), role=("value",), path=paths),
    }


def _functions(reader: Reader, ids: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the functions whose calls have their values, and those whose awaited calls have them."""
    functions = nodes(("FUNCTION",), node_id=sorted(ids))
    paths = (
        [row[0] for row in reader.rows(Query("SELECT DISTINCT f.path FROM f", {"f": functions}))]
        if ids
        else []
    )
    if not paths:
        return set(), set()
    syntax = Query(
        "SELECT f.node_id, a.subkind FROM f JOIN a ON a.file_id = f.file_id AND a.bstart = f.bstart"
        " AND a.bend = f.bend",
        {
            "f": functions,
            "a": nodes(("AST_NODE",), subkind=("FunctionDef", "AsyncFunctionDef"), path=paths),
        },
    )
    kinds: dict[str, str] = dict(reader.rows(syntax))
    yields = Query(
        innermost_sql("y", "node_id", file="file_id"),
        {
            "y": nodes(("AST_NODE",), subkind=("Yield", "YieldFrom"), path=paths),
            "d": nodes(CALLER_KINDS, path=paths),
        },
    )
    generators = {inner for _, inner in reader.rows(yields)}
    plain = {node for node, kind in kinds.items() if kind == "FunctionDef"}
    return plain - generators, kinds.keys() - plain - generators


def whole_expressions(reader: Reader, spans: Sequence[Row], paths: Collection[str]) -> list[Row]:
    """Return the spans and, under the same numbers, those of the expressions that have their values."""
    expressions, level = list(spans), list(spans)
    while level:
        query = Query(
            "SELECT h.n, h.file_id, k.bstart, k.bend FROM h JOIN v ON v.owner_file_id = h.file_id"
            " AND v.bstart = h.bstart AND v.bend = h.bend JOIN k ON k.node_id = v.src_node_id",
            {"h": InlineRows(SPAN_COLUMNS, level), **_syntax(paths)},
            order=("n", "bstart", "bend"),
        )
        level = list(reader.rows(query))
        expressions += level
    return expressions


def value_parts(reader: Reader, spans: Sequence[Row], paths: Collection[str]) -> dict[int, list[Row]]:
    """Return the first byte, end and line of the parts whose values expressions have, by number."""
    parts: dict[int, list[Row]] = {}
    level = list(spans)
    while level:
        query = Query(
            "SELECT h.n, h.file_id, h.bstart AS begins, h.bend AS ends, v.bstart, v.bend, v.line FROM h"
            " JOIN k ON k.file_id = h.file_id AND k.bstart = h.bstart AND k.bend = h.bend"
            " JOIN v ON v.src_node_id = k.node_id",
            {"h": InlineRows(SPAN_COLUMNS, level), **_syntax(paths)},
            order=("n", "bstart", "bend"),
        )
        rows = reader.rows(query)
        for number, _, begins, ends, *_ in rows:
            parts[number] = [part for part in parts.get(number, ()) if tuple(part[:2]) != (begins, ends)]
        for number, _, _, _, *part in rows:
            parts[number].append(tuple(part))
        level = [(number, file_id, bstart, bend) for number, file_id, _, _, bstart, bend, _ in rows]
    return parts


def _syntax(paths: Collection[str]) -> dict[str, Slice]:
    return {
        "k": nodes(("AST_NODE",), subkind=WHOLES, path=paths),
        "v": edges(("AST_PARENT_OF",), role=PARTS, path=paths),
    }
