"""Show a symbol: its signature, docstring and source, and how it is used.

    GET /r/shop/s/shop.cart.Cart.total                      the symbol, with the first rows of each list
    GET /r/shop/s/shop.cart.Cart.total?list=callers         all rows of a list
    GET /api/r/shop/tests?symbol=shop.cart.Cart.total       tests that reach it, which take longer

A name that is not the qualified name of one symbol leads to it (the end of a name, a re-export, `path:line`,
the id of a node), or to the candidates. All definitions of one name are shown, such as overloads.

Tests: `tests/unit/serve/test_symbol_pages.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from markupsafe import Markup
from msgspec import Struct, structs
from starlette.responses import RedirectResponse, Response

from codeanatomy.errors import UnknownName
from codeanatomy.query.answers import Symbol
from codeanatomy.query.ask import with_graph
from codeanatomy.query.engines.statements import Query, RepositoryReader, Slice, nodes
from codeanatomy.query.pictures.drawing import CERTAIN
from codeanatomy.query.source_lines import with_source_lines
from codeanatomy.query.symbols import (
    EXTERNAL_KINDS,
    KINDS,
    VARIABLES,
    resolve,
    symbols_ending,
    with_binding_lines,
)
from codeanatomy.query.verbs.calls import callees, callers
from codeanatomy.query.verbs.impact import impact
from codeanatomy.query.verbs.refs import DISTINCT_SQL, RELATIONS, refs
from codeanatomy.query.verbs.result import VerbResult
from codeanatomy.query.verbs.show import signature
from codeanatomy.query.walks.docstrings import docstrings
from codeanatomy.query.walks.identifiers import annotated_types, file_names
from codeanatomy.query.walks.relatives import GROUPS, relatives
from codeanatomy.serve.explorer import links
from codeanatomy.serve.explorer.source_names import actions, flow_link, kind_label, linked_names
from codeanatomy.serve.explorer.source_text import (
    FIELD,
    SourceLine,
    lexed,
    render_lines,
    source_file,
    visible,
)
from codeanatomy.serve.explorer.visit import Page, Visit, percent

# Rows of each list on the page of a symbol, and of a list on its own.
SHORT_LIST = 15
LONG_LIST = 1_000
MAX_ROWS = 100_000
# Definitions of one symbol that are shown, and lines of each; around a variable, lines before and after it.
MAX_DEFINITIONS = 10
EXCERPT_LINES = 120
CONTEXT_LINES = 3
DOC_CHARS = 20_000
TEST_DEPTH = 5
THREADS = 4

# Lists on the page of a symbol, and the kinds of symbols that have them.
CALLED = ("FUNCTION", "CLASS", "MODULE", "QUALIFIED_NAME")
USES = {"callers": CALLED, "callees": ("FUNCTION", "CLASS", "MODULE"), "references": KINDS}

CONTAINERS = ("CLASS", "MODULE", "PACKAGE")

ListRow: TypeAlias = dict[str, Any]


class SymbolList(Struct, frozen=True):
    """Rows of one list of a symbol, and the number without the limit."""

    name: str
    rows: list[ListRow]
    total: int


class ShownDefinition(Struct, frozen=True):
    """A definition of a symbol in the source."""

    path: str
    line: int | None
    link: str
    signature: Markup | None
    docstring: Markup | None
    type: str | None
    lines: list[SourceLine]
    more_lines: int


def symbol_page(visit: Visit) -> Response:
    """Show a symbol and how it is used."""
    repo_id, typed = visit.repo_id, str(visit.request.path_params["symbol"])
    symbol = _named(visit, typed, repo_id)
    if symbol.symbol != typed:
        return RedirectResponse(list_link(visit, repo_id, symbol.symbol, visit.text("list") or None), 302)
    if chosen := visit.text("list"):
        return _list_page(visit, symbol, chosen)
    reader = RepositoryReader(visit.lake.reader, (repo_id,))
    # At the same time: they wait for files, and for DuckDB, which uses several cores.
    with ThreadPoolExecutor(THREADS) as pool:
        definitions = pool.submit(_definitions, visit, reader, symbol)
        related = pool.submit(relatives, reader, symbol)
        uses = [
            pool.submit(LISTS[name], visit, reader, symbol, SHORT_LIST)
            for name, kinds in USES.items()
            if symbol.kind in kinds
        ]
        lists = [_relative_list(visit, name, rows) for name, rows in related.result().items()]
        of_uses = _with_sources(visit, [each.result() for each in uses])
        # The members of a class or module come first, the uses of others.
        lists = [*lists, *of_uses] if symbol.kind in CONTAINERS else [*of_uses, *lists]
        shown = definitions.result()
    return visit.page(
        "symbol.html",
        repo_id=repo_id,
        symbol=symbol,
        kind=kind_label(symbol.kind, symbol.subkind),
        crumbs=_crumbs(visit, symbol),
        definitions=shown,
        lists=[each for each in lists if each.total],
        actions=actions(visit, repo_id, symbol.kind, symbol.symbol),
        has_tests=symbol.kind not in EXTERNAL_KINDS,
        tests=f"/api{links.repository_link(repo_id, 'tests', symbol=symbol.symbol)}",
        list_link=lambda name: list_link(visit, repo_id, symbol.symbol, name),
    )


def tests_list(visit: Visit) -> Response:
    """Return the tests that reach a symbol as JSON."""
    symbol = resolve(visit.lake.reader, visit.text("symbol"), visit.repo_id)
    made = _tests(visit, RepositoryReader(visit.lake.reader, (symbol.repo_id,)), symbol, SHORT_LIST)
    return visit.json({"rows": made.rows, "total": made.total})


def list_link(visit: Visit, repo_id: str, symbol: str, name: str | None, after: int | None = None) -> str:
    """Return the address of a list of a symbol; without a name, that of the symbol."""
    return visit.page_link(links.symbol_link(repo_id, symbol), list=name, after=after)


def _named(visit: Visit, typed: str, repo_id: str) -> Symbol:
    """Return the symbol in the address. Links of pages lead to `types` of the standard library by this name.

    Other names are resolved as by the query commands, where `types` may also be the end of a longer name.
    """
    if "." not in typed and ":" not in typed:
        whole = [each for each in symbols_ending(visit.lake.reader, typed, repo_id) if each.symbol == typed]
        if whole and all(each.kind in EXTERNAL_KINDS for each in whole):
            return whole[0]
    return resolve(visit.lake.reader, typed, repo_id)


def _list_page(visit: Visit, symbol: Symbol, name: str) -> Response:
    """Show all rows of one list, a page of them at a time."""
    if name not in (*LISTS, *GROUPS):
        raise UnknownName("list", name, (*LISTS, *GROUPS))
    after = visit.number("after", 0, 0, MAX_ROWS)
    reader = RepositoryReader(visit.lake.reader, (symbol.repo_id,))
    if name in LISTS:
        (made,) = _with_sources(visit, [LISTS[name](visit, reader, symbol, after + LONG_LIST)])
    else:
        made = _relative_list(visit, name, relatives(reader, symbol).get(name, []), after + LONG_LIST)
    return visit.page(
        "symbol_list.html",
        repo_id=symbol.repo_id,
        symbol=symbol,
        crumbs=_crumbs(visit, symbol),
        name=name,
        rows=made.rows[after:],
        total=made.total,
        after=after,
        following=list_link(visit, symbol.repo_id, symbol.symbol, name, after + LONG_LIST)
        if made.total > after + LONG_LIST
        else None,
    )


def _crumbs(visit: Visit, symbol: Symbol) -> list[tuple[str, str]]:
    """Return the packages, modules and classes around a symbol, from the outermost to itself."""
    parts = symbol.symbol.split(".")
    names = [".".join(parts[: at + 1]) for at in range(len(parts))]
    # What is around an external name may have no page; lambdas and comprehensions have none.
    known = names[-1:] if symbol.kind in EXTERNAL_KINDS else [name for name in names if name[-1] != ">"]
    return [
        (part, visit.symbol_link(symbol.repo_id, name) if name in known else "")
        for part, name in zip(parts, names, strict=True)
    ]


def _definitions(visit: Visit, reader: RepositoryReader, symbol: Symbol) -> list[ShownDefinition]:
    """Return the definitions of a symbol with their text."""
    query = Query(
        "SELECT n.node_id, n.path, n.line, n.bstart, n.bend FROM n WHERE n.path IS NOT NULL",
        {"n": nodes((symbol.kind,), symbol.repo_id, node_id=symbol.ids)},
        order=("path", "line", "node_id"),
    )
    rows = reader.rows(query)[:MAX_DEFINITIONS]
    ids = [row[0] for row in rows]
    # The type that a function returns is in its signature.
    is_variable = symbol.kind in VARIABLES
    docs = docstrings(reader, ids) if not is_variable else {}
    types = annotated_types(reader, ids) if is_variable else {}
    if symbol.kind == "BINDING" and rows:
        (symbol,) = with_binding_lines(reader, [symbol])
        rows = [(*rows[0][:2], symbol.line, None, None)]
    return [_definition(visit, reader, symbol, row, docs.get(row[0]), types.get(row[0])) for row in rows]


def _definition(
    visit: Visit,
    reader: RepositoryReader,
    symbol: Symbol,
    row: tuple[Any, ...],
    docstring: str | None,
    annotated: str | None,
) -> ShownDefinition:
    _, path, line, bstart, bend = row
    link = visit.file_link(symbol.repo_id, path, line)
    doc = visible(docstring[:DOC_CHARS]) if docstring else None
    file = source_file(reader, symbol.repo_id, path) if line is not None else None
    if file is None or file.text is None:
        return ShownDefinition(path, line, link, None, doc, annotated, [], 0)
    source = lexed(file.text)
    first, last = max(1, line - CONTEXT_LINES), min(source.line_count, line + CONTEXT_LINES)
    head, marks = None, []
    if symbol.kind == "MODULE":
        first, last = 1, source.line_count
    elif symbol.kind == "PARAMETER":
        marks = [(bstart, bend, "chosen")]
    elif symbol.kind in ("CLASS", "FUNCTION", "TYPE_ALIAS"):
        first, last = source.line_of(bstart), source.line_of(max(bstart, bend - 1))
        while first > 1 and source.data[slice(*source.span(first - 1))].lstrip().startswith(b"@"):
            first -= 1
        head = _signature(source.data, bstart, bend)
    end = min(last, first + EXCERPT_LINES - 1)
    names = file_names(reader, symbol.repo_id, path, (source.span(first)[0], source.span(end)[1]))
    lines = render_lines(
        file.text,
        first,
        end,
        names=linked_names(visit, symbol.repo_id, path, file.text, names, first, end),
        marks=marks,
    )
    return ShownDefinition(path, line, link, head, doc, annotated, lines, last - end)


def _signature(data: bytes, bstart: int, bend: int) -> Markup | None:
    """Return the signature of a definition; only its head is parsed, since a class may be long."""
    depth = 0
    head = data[bstart:bend]
    for match in FIELD.finditer(data, bstart, bend):
        mark = match.group() if match.lastgroup == "bracket" else b""
        if mark == b":" and depth == 0:
            head = data[bstart : match.end()] + b" pass"
            break
        depth += (mark in (b"(", b"[", b"{")) - (mark in (b")", b"]", b"}"))
    text = signature(head, 0, len(head))
    return None if text is None else visible(text)


def _listed(visit: Visit, row: Mapping[str, Any]) -> ListRow:
    """Return a row of a verb with its links."""
    repo_id, path, line = row["repo_id"], row.get("path"), row.get("line")
    symbol = row.get("inside") or row["symbol"]
    return {
        "repo_id": repo_id,
        "path": path,
        "line": line,
        "source": None,
        "symbol": symbol,
        "kind": kind_label(row["kind"], row.get("subkind")) if "inside" not in row else "",
        "page": visit.symbol_link(repo_id, symbol) if symbol else None,
        "place": f"{path}:{line}" if path and line else (path or ""),
        "link": visit.file_link(repo_id, path, line) if path else None,
        "guess": percent(row["confidence"]) if (row["confidence"] or 0) < CERTAIN else None,
        "method": row.get("method"),
        "note": (row.get("relation") or "").lower().replace("_", " "),
        "flow": flow_link(visit, repo_id, symbol) if row["kind"] == "PARAMETER" else None,
    }


def _with_sources(visit: Visit, lists: Sequence[SymbolList]) -> list[SymbolList]:
    """Add the text of its line to each row, with one look-up for all lists."""
    rows = with_source_lines(
        visit.lake.reader,
        [row for each in lists for row in each.rows],
        with_graph(visit.lake.snapshot.repositories.values()),
    )
    following = iter(rows)
    return [structs.replace(each, rows=[next(following) for _ in each.rows]) for each in lists]


def _of_verb(name: str, visit: Visit, reader: RepositoryReader, result: VerbResult, limit: int) -> SymbolList:
    rows = reader.rows(result.query, limit)
    records = [dict(zip(result.columns, row, strict=False)) for row in rows]
    return SymbolList(name, [_listed(visit, each) for each in records], rows[0][-1] if rows else 0)


def _callers(visit: Visit, reader: RepositoryReader, symbol: Symbol, limit: int) -> SymbolList:
    return _of_verb("callers", visit, reader, callers(reader, symbol), limit)


def _callees(visit: Visit, reader: RepositoryReader, symbol: Symbol, limit: int) -> SymbolList:
    """Return what a symbol calls: definitions of the repository first."""
    result = callees(reader, symbol)
    rows = reader.rows(result.query)
    records = [dict(zip(result.columns, row, strict=True)) for row in rows]
    records.sort(key=lambda each: each["kind"] in EXTERNAL_KINDS)
    return SymbolList("callees", [_listed(visit, each) for each in records[:limit]], len(records))


def _references(visit: Visit, reader: RepositoryReader, symbol: Symbol, limit: int) -> SymbolList:
    """Return references: on the symbol's page their places only, which takes a quarter of the time."""
    if limit > SHORT_LIST:
        return _of_verb("references", visit, reader, refs(reader, symbol), limit)
    query = Query(
        "SELECT e.path, e.bstart, e.bend, min(e.line) AS line, min(e.edge_kind) AS relation,"
        " max(e.confidence) AS confidence, min(e.resolution_method) AS method"
        f" FROM ({DISTINCT_SQL}) AS e GROUP BY 1, 2, 3",
        {"e": Slice("cpg_edges_by_dst", dst_node_id=symbol.ids, edge_kind=RELATIONS)},
        order=("path", "bstart", "bend"),
    )
    rows = reader.rows(query, limit)
    records = [
        {
            "repo_id": symbol.repo_id,
            "symbol": "",
            "kind": "",
            "inside": "",
            "path": path,
            "line": line,
            "relation": relation,
            "confidence": confidence,
            "method": method,
        }
        for path, _, _, line, relation, confidence, method, _ in rows
    ]
    return SymbolList("references", [_listed(visit, each) for each in records], rows[0][-1] if rows else 0)


def _tests(visit: Visit, reader: RepositoryReader, symbol: Symbol, limit: int) -> SymbolList:
    result = impact(reader, [symbol], depth=TEST_DEPTH)
    records = [dict(zip(result.columns, row, strict=True)) for row in reader.rows(result.query)]
    tests = [each for each in records if each["test"] and each["kind"] == "FUNCTION"]
    return SymbolList("tests", [_listed(visit, each) for each in tests[:limit]], len(tests))


def _relative_list(visit: Visit, name: str, rows: list[Any], limit: int = SHORT_LIST) -> SymbolList:
    """Return a list of relatives; members are listed in full up to the limit of a long list."""
    repo_id = visit.repo_id
    shown = rows[: max(limit, LONG_LIST // 5) if name in ("members", "parameters") else limit]
    made = [
        _listed(
            visit,
            {
                "repo_id": repo_id,
                "symbol": each.symbol,
                "kind": each.kind,
                "subkind": each.subkind,
                "path": each.path,
                "line": each.line,
                "confidence": each.confidence,
                "method": each.method,
            },
        )
        for each in shown
    ]
    return SymbolList(name, made, len(rows))


LISTS: dict[str, Callable[[Visit, RepositoryReader, Symbol, int], SymbolList]] = {
    "callers": _callers,
    "callees": _callees,
    "references": _references,
    "tests": _tests,
}

PAGES: tuple[tuple[str, Page], ...] = (
    ("/r/{repo}/s/{symbol:name}", symbol_page),
    ("/api/r/{repo}/tests", tests_list),
)
FORMS: tuple[tuple[str, Page], ...] = ()
