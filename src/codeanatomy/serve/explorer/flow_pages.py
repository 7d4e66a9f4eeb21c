"""Show where the value of a variable comes from and goes, in the source.

    GET /r/shop/flow?symbol=shop.paths.values.give.amount&direction=both&depth=3
    GET /r/shop/flow?symbol=shop.paths.values.give          choose a parameter or variable of the function
    GET /r/shop/edge?id=PASSES_TO;argument:...              the evidence behind an edge
    GET /api/r/shop/edge?id=PASSES_TO;argument:...          the same as JSON

The page has the steps as a list, and the lines around them with highlighted spans; a script draws arrows
between the spans. The list is complete without them.

Tests: `tests/unit/serve/test_flow_pages.py`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

from starlette.responses import Response

from codeanatomy.errors import MAX_NAME_CHARS, UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, RepositoryReader, nodes
from codeanatomy.query.symbols import VARIABLES, resolve, with_binding_lines
from codeanatomy.query.verbs.explain import explain
from codeanatomy.query.verbs.flows import Direction
from codeanatomy.serve.explorer.flows.excerpts import excerpts
from codeanatomy.serve.explorer.flows.flow_steps import FlowLead, FlowSpan, VariableFlow, variable_flow
from codeanatomy.serve.explorer.visit import Page, Visit

DEPTH, MAX_DEPTH = 3, 20
# Parameters and variables of a function that are listed.
MAX_VARIABLES = 300
TEXTS: dict[tuple[str, str], str] = {
    ("to", "REACHES"): "the value of {} is used here",
    ("to", "REFERS_TO"): "{} is read here",
    ("to", "CALLS"): "the value that {} returns is used here",
    ("to", "COPIES"): "and assigned to {}",
    ("to", "PASSES_TO"): "and passed to the parameter {}",
    ("to", "RETURNED"): "and returned by {}",
    ("from", "REACHES"): "this is the value of {}",
    ("from", "REFERS_TO"): "this is the value of {}",
    ("from", "CALLS"): "this is what {} returns",
    ("from", "COPIES"): "{} is assigned here",
    ("from", "PASSES_TO"): "the parameter {} gets this argument",
    ("from", "RETURNED"): "{} returns this",
}


def flow_page(visit: Visit) -> Response:
    """Show the flow of a variable, or choose one of a function."""
    repo_id, typed = visit.repo_id, visit.text("symbol")
    direction, depth = _direction(visit), visit.number("depth", DEPTH, 1, MAX_DEPTH)
    chosen = {
        "repo_id": repo_id,
        "typed": typed,
        "direction": direction,
        "depth": depth,
        "max_depth": MAX_DEPTH,
    }
    if not typed.strip():
        return visit.page("flow.html", symbol=None, variables=[], flows=[], **chosen)
    reader = RepositoryReader(visit.lake.reader, (repo_id,))
    (symbol,) = with_binding_lines(reader, [resolve(reader, typed, repo_id)])
    if symbol.kind not in VARIABLES:
        variables = _variables(reader, symbol)
        if not variables:
            raise UsageError(
                f"{symbol.symbol} is not a variable and has none", "name one, such as pkg.mod.f.x"
            )
        rows = [
            {"name": name, "kind": kind, "link": _flow_link(visit, qualname, direction, depth)}
            for name, qualname, kind in variables
        ]
        return visit.page("flow.html", symbol=symbol, variables=rows, flows=[], **chosen)
    directions: tuple[Direction, ...] = ("from", "to") if direction == "both" else (direction,)
    with ThreadPoolExecutor(len(directions)) as pool:
        flows = list(pool.map(lambda each: variable_flow(reader, symbol, each, depth), directions))
    return visit.page(
        "flow.html", symbol=symbol, variables=[], **_arranged(visit, reader, symbol, flows, depth), **chosen
    )


def edge_page(visit: Visit) -> Response:
    """Show the evidence behind an edge."""
    return visit.page("edge.html", repo_id=visit.repo_id, edge=_explained(visit))


def edge_json(visit: Visit) -> Response:
    """Return the evidence behind an edge as JSON."""
    return visit.json({"edge": _explained(visit)})


def _explained(visit: Visit) -> dict[str, Any]:
    reader = RepositoryReader(visit.lake.reader, (visit.repo_id,))
    result = explain(reader, edge_id=visit.text("id")[: MAX_NAME_CHARS * 10])
    (row, *_) = reader.rows(result.query, 1)
    return dict(zip(result.columns, row, strict=False))


def _direction(visit: Visit) -> Any:
    typed = visit.text("direction", "both")
    if typed not in (*get_args(Direction), "both"):
        raise UsageError(
            f"direction must be to, from or both, got {typed[:MAX_NAME_CHARS]!r}", "use one of these"
        )
    return typed


def _flow_link(visit: Visit, symbol: str, direction: str, depth: int) -> str:
    return visit.repository_link(visit.repo_id, "flow", symbol=symbol, direction=direction, depth=depth)


def _variables(reader: Reader, symbol: Symbol) -> list[tuple[str, str, str]]:
    """Return name, qualified name and kind of the variables directly inside of a symbol."""
    query = Query(
        "SELECT n.name, n.qualname, max(CASE n.node_kind WHEN 'PARAMETER' THEN 'parameter' ELSE n.subkind"
        " END) AS kind, min(n.bstart) AS bstart FROM n WHERE n.qualname = concat(?, '.', n.name)"
        " AND coalesce(n.subkind, '') NOT IN ('import', 'free', 'global') GROUP BY 1, 2",
        {"n": nodes(VARIABLES, symbol.repo_id, path=(symbol.path or "",))},
        (symbol.symbol,),
        order=("kind DESC", "bstart", "name"),
        columns=("name", "qualname", "kind"),
    )
    return [(name, qualname, kind) for name, qualname, kind, _ in reader.rows(query, MAX_VARIABLES)]


def _arranged(
    visit: Visit, reader: Reader, symbol: Symbol, flows: list[VariableFlow], depth: int
) -> dict[str, Any]:
    """Return the values of the template: steps with the numbers of their spans, and excerpts."""
    numbers: dict[FlowSpan, int] = {}
    steps: dict[FlowSpan, list[int]] = {}

    def number(span: FlowSpan | None) -> int | None:
        return None if span is None else numbers.setdefault(span, len(numbers))

    starts = {start: number(start) for flow in flows for start in flow.starts}
    sections = []
    count = 0
    for flow in flows:
        rows: list[dict[str, Any]] = []
        for step in flow.steps:
            # Numbered through both directions.
            count += 1
            steps.setdefault(step.place, []).append(count)
            number(step.place)
            leads = [
                {
                    "lead": lead,
                    "name": short_name(lead.symbol),
                    "before": text[0],
                    "after": text[1],
                    "tail": number(lead.tail),
                    "head": number(lead.head),
                    "follow": _follow(visit, symbol, lead, flow.direction, depth),
                }
                for lead in step.leads
                if (text := TEXTS[flow.direction, lead.relation].split("{}"))
            ]
            rows.append(
                {
                    "step": step,
                    "number": count,
                    "inside": short_name(step.inside or ""),
                    "leads": leads,
                    "span": number(step.place),
                }
            )
        deeper = min(depth + 2, MAX_DEPTH)
        sections.append(
            {
                "flow": flow,
                "rows": rows,
                "more": flow.total - len(rows),
                "deeper": _flow_link(visit, symbol.symbol, flow.direction, deeper)
                if flow.deeper and deeper > depth
                else None,
            }
        )
    marks = {span: f"flow at-{at}{' start' if span in starts else ''}" for span, at in numbers.items()}
    return {"flows": sections, "excerpts": excerpts(reader, symbol.repo_id, marks, steps)}


def short_name(symbol: str) -> str:
    """Return the last two parts of a qualified name.

    >>> short_name("shop.paths.values.give.amount")
    'give.amount'
    """
    return ".".join(symbol.split(".")[-2:])[:200]


def _follow(visit: Visit, symbol: Symbol, lead: FlowLead, direction: str, depth: int) -> str | None:
    """Return the address of the flow of a variable that is not the one of this page."""
    return None if lead.symbol == symbol.symbol else _flow_link(visit, lead.symbol, direction, depth)


PAGES: tuple[tuple[str, Page], ...] = (
    ("/r/{repo}/flow", flow_page),
    ("/r/{repo}/edge", edge_page),
    ("/api/r/{repo}/edge", edge_json),
)
FORMS: tuple[tuple[str, Page], ...] = ()
