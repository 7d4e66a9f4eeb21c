"""Turn the identifiers of a file into links, and describe one for its card.

    GET /r/shop/name?path=shop/cart.py&at=214       what the name at byte 214 refers to
    GET /r/shop/name?id=function:3f9c...            the same for a definition
    GET /api/r/shop/name?...                        as JSON, for the card that opens beside a name

A name leads to the line of its definition; one that may refer to several definitions, or could not be
resolved, to a page that lists the candidates or the reason.

Tests: `tests/unit/serve/test_source_pages.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from codeanatomy.errors import UsageError
from codeanatomy.query.pictures.drawing import CERTAIN
from codeanatomy.query.symbols import symbols_named
from codeanatomy.query.walks.docstrings import docstrings
from codeanatomy.query.walks.identifiers import (
    FileDefinition,
    FileNames,
    NameTarget,
    NameUse,
    annotated_types,
    checked_type,
    name_at,
    unresolved_reason,
)
from codeanatomy.serve.explorer import links
from codeanatomy.serve.explorer.source_text import Identifier, lexed
from codeanatomy.serve.explorer.visit import Page, Visit, percent

# Where a definition has its name.
DEFINED_NAME = re.compile(rb"(?:async\s+)?(?:def|class)\s+([\w\x80-\xff]+)")
DOTTED_NAME = re.compile(rb"[\w\x80-\xff]+(?:\s*\.\s*[\w\x80-\xff]+)*")
FROM_MODULE = re.compile(rb"\bfrom[ \t]+([.\w\x80-\xff]+)[ \t]+import\b")
LABELS = {
    "BINDING": "variable",
    "QUALIFIED_NAME": "external name",
    "EXTERNAL_MODULE": "external module",
    "TYPE_ALIAS": "type alias",
}
# Candidates in a title, and in a card.
MAX_IN_TITLE = 3
MAX_IN_CARD = 20
DOC_CHARS = 300
MAX_BYTE = 2**40


def kind_label(kind: str, subkind: str | None = None) -> str:
    """Return the kind of a node as people call it.

    >>> kind_label("FUNCTION", "async_method"), kind_label("BINDING", "local"), kind_label("CLASS")
    ('async method', 'variable', 'class')
    """
    if kind == "FUNCTION" and subkind is not None:
        return subkind.replace("_", " ")
    return LABELS.get(kind, kind.lower())


def linked_names(
    visit: Visit, repo_id: str, path: str, text: str, names: FileNames, first: int, last: int
) -> list[Identifier]:
    """Return the identifiers of some lines of a file as links."""
    source = lexed(text)
    start, end = source.span(first)[0], source.span(last)[1]
    maker = _Links(visit, repo_id, path, first, last)
    made = [maker.definition(each, source.data) for each in names.definitions if start <= each.bstart < end]
    made += [maker.use(use, source.data) for use in names.uses]
    made += maker.modules(names, source.data)
    return [each for each in made if each is not None]


class _Links:
    """Makes the links of one page."""

    def __init__(self, visit: Visit, repo_id: str, path: str, first: int, last: int) -> None:
        self._visit = visit
        self._repo_id = repo_id
        self._path = path
        self._lines = range(first, last + 1)

    def definition(self, each: FileDefinition, data: bytes) -> Identifier | None:
        """Return the name of a definition, which leads to its own page."""
        start, end = each.bstart, each.bend
        if each.kind != "PARAMETER":
            match = DEFINED_NAME.match(data, start, end)
            if match is None:
                return None
            start, end = match.span(1)
        link = self._visit.symbol_link(self._repo_id, each.symbol)
        title = f"{kind_label(each.kind, each.subkind)} {each.symbol}"
        return Identifier(start, end, link, title, "i", (("data-id", each.node_id),))

    def use(self, use: NameUse, data: bytes) -> Identifier:
        """Return a name, which leads to what it refers to."""
        end = use.bend
        if use.kind == "IMPORT_ALIAS":
            match = DOTTED_NAME.match(data, use.bstart, use.bend)
            end = match.end() if match is not None else end
        return self._identifier(use.bstart, end, use.targets, use.bstart)

    def modules(self, names: FileNames, data: bytes) -> Iterator[Identifier]:
        """Return the names of modules after `from`."""
        matches = list(FROM_MODULE.finditer(data))
        ends = [match.end() for match in matches]
        done = set[int]()
        for use in names.uses:
            before = bisect_right(ends, use.bstart) - 1 if use.modules and use.subkind == "from" else -1
            if before >= 0 and before not in done:
                done.add(before)
                yield self._identifier(*matches[before].span(1), use.modules, use.bstart)

    def _identifier(self, start: int, end: int, targets: tuple[NameTarget, ...], at: int) -> Identifier:
        attributes = (("data-at", str(at)),)
        if len(targets) == 1:
            (target,) = targets
            sure = "" if target.confidence >= CERTAIN else f", {percent(target.confidence)} sure"
            css = "i" if not sure else "i guess"
            title = f"{kind_label(target.kind, target.subkind)} {target.symbol}{sure}"
            return Identifier(start, end, self._place(target), title, css, attributes)
        link = self._visit.repository_link(self._repo_id, "name", path=self._path, at=at)
        if not targets:
            return Identifier(start, end, link, "not resolved", "i none", attributes)
        several = ", ".join(target.symbol for target in targets[:MAX_IN_TITLE])
        more = f" and {len(targets) - MAX_IN_TITLE} more" if len(targets) > MAX_IN_TITLE else ""
        return Identifier(start, end, link, f"one of {several}{more}", "i guess", attributes)

    def _place(self, target: NameTarget) -> str:
        if target.path == self._path and target.line in self._lines:
            return f"#L{target.line}"
        return place_link(self._visit, self._repo_id, target)


def place_link(visit: Visit, repo_id: str, target: NameTarget) -> str:
    """Return the address of the line that defines something, else that of its page."""
    if target.path is not None and target.line is not None:
        return visit.file_link(repo_id, target.path, target.line)
    return visit.symbol_link(repo_id, target.symbol)


def name_page(visit: Visit) -> Response:
    """Show what a name refers to: candidates, or why it could not be resolved."""
    return visit.page("name.html", **_facts(visit))


def name_card(visit: Visit) -> Response:
    """Return what a name refers to as JSON."""
    return visit.json(_facts(visit))


def _facts(visit: Visit) -> dict[str, Any]:
    repo_id, path, node_id = visit.repo_id, visit.text("path"), visit.text("id")
    reader = visit.lake.reader
    if node_id:
        symbols = symbols_named(reader, node_id, repo_id)
        targets = [
            NameTarget(node_id, each.kind, each.subkind, each.symbol, each.path, each.line, "", 1.0, None)
            for each in symbols[:1]
        ]
        known = {"repo_id": repo_id, "name": "", "path": "", "reason": None, "type": None}
        return known | _rows(visit, repo_id, targets)
    at = visit.number("at", 0, 0, MAX_BYTE)
    use = name_at(reader, repo_id, path, at)
    if use is None:
        raise UsageError(
            f"there is no name at byte {at} of {path[:200]!r}", "follow a link of the file's page"
        )
    reason = unresolved_reason(reader, use.node_id) if not use.targets else None
    inferred = checked_type(reader, repo_id, path, use)
    known = {"repo_id": repo_id, "name": use.name or "", "path": path, "reason": reason, "type": inferred}
    return known | _rows(visit, repo_id, list(use.targets))


def _rows(visit: Visit, repo_id: str, targets: list[NameTarget]) -> dict[str, Any]:
    """Return candidates with their links, types and the beginning of their docstrings."""
    shown = targets[:MAX_IN_CARD]
    ids = [each.node_id for each in shown]
    types = annotated_types(visit.lake.reader, ids)
    docs = docstrings(visit.lake.reader, ids)
    rows = [
        {
            "kind": kind_label(each.kind, each.subkind),
            "symbol": each.symbol,
            "place": f"{each.path}:{each.line}" if each.path and each.line else (each.path or ""),
            "link": place_link(visit, repo_id, each),
            "page": visit.symbol_link(repo_id, each.symbol),
            "type": types.get(each.node_id),
            "doc": docs.get(each.node_id, "").partition("\n\n")[0][:DOC_CHARS],
            "confidence": each.confidence,
            "sure": percent(each.confidence),
            "method": each.method,
            "actions": [
                *_callers_link(visit, repo_id, each),
                *actions(visit, repo_id, each.kind, each.symbol),
            ],
        }
        for each in shown
    ]
    return {"rows": rows, "total": len(targets)}


def _callers_link(visit: Visit, repo_id: str, target: NameTarget) -> list[dict[str, str]]:
    page = links.symbol_link(repo_id, target.symbol)
    is_called = target.kind in ("FUNCTION", "CLASS")
    return [{"text": "callers", "link": visit.page_link(page, list="callers")}] if is_called else []


def flow_link(visit: Visit, repo_id: str, symbol: str) -> str:
    """Return the address of the flow of a variable's value."""
    return visit.repository_link(repo_id, "flow", symbol=symbol)


def actions(visit: Visit, repo_id: str, kind: str, symbol: str) -> list[dict[str, str]]:
    """Return links to what else can be seen of a symbol."""

    def picture(kind: str) -> str:
        return visit.repository_link(repo_id, f"picture/{kind}", symbol=symbol)

    made = []
    if kind in ("FUNCTION", "CLASS", "MODULE", "QUALIFIED_NAME"):
        made.append(("calls", picture("calls")))
    if kind == "CLASS":
        made.append(("class diagram", picture("classes")))
    if kind == "FUNCTION":
        made.append(("control flow", picture("control-flow")))
    if kind in ("MODULE", "PACKAGE"):
        made.append(("imports", picture("imports")))
    if kind in ("PARAMETER", "BINDING", "FUNCTION"):
        made.append(("value flow", flow_link(visit, repo_id, symbol)))
    if kind not in ("QUALIFIED_NAME", "EXTERNAL_MODULE"):
        made.append(("impact", visit.page_link("/impact", symbols=symbol, repo=repo_id)))
    return [{"text": text, "link": link} for text, link in made]


PAGES: tuple[tuple[str, Page], ...] = (
    ("/r/{repo}/name", name_page),
    ("/api/r/{repo}/name", name_card),
)
