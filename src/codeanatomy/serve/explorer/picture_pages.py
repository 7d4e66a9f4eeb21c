"""Show pictures: calls, classes, imports, control flow.

    GET /r/flask/picture/calls?symbol=flask.app.Flask.full_dispatch_request
    GET /r/flask/picture/calls.svg?symbol=...           # the same as a file

Pictures are SVG elements of the page: boxes and their plus signs are links, so that everything works without
JavaScript; `static/picture.js` replaces the picture without a reload, zooms and pans.

Tests: `tests/unit/serve/test_pictures.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from markupsafe import Markup
from starlette.responses import Response

from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import RepositoryReader
from codeanatomy.query.pictures.diagram import Diagram
from codeanatomy.query.pictures.drawing import draw, draw_file, draw_legend
from codeanatomy.query.pictures.layered import arrange
from codeanatomy.query.symbols import resolve
from codeanatomy.serve.explorer.pictures.address import MAX_CHOICES, PictureAddress
from codeanatomy.serve.explorer.pictures.columns import ListedDiagram
from codeanatomy.serve.explorer.pictures.control_flow import FlowDiagram, control_flow_diagram
from codeanatomy.serve.explorer.pictures.imports import imports_diagram
from codeanatomy.serve.explorer.pictures.neighbours import calls_diagram, classes_diagram
from codeanatomy.serve.explorer.visit import Page, Visit

KINDS = ("calls", "classes", "imports", "control-flow")
TITLES = {"calls": "Calls", "classes": "Classes", "imports": "Imports", "control-flow": "Control flow"}
# Kinds of symbols that a picture is about.
SUBJECTS = {
    "calls": ("FUNCTION", "CLASS", "MODULE", "QUALIFIED_NAME"),
    "classes": ("CLASS", "QUALIFIED_NAME"),
    "imports": ("FUNCTION", "CLASS", "MODULE", "PACKAGE"),
    "control-flow": ("FUNCTION", "CLASS", "MODULE"),
}


def picture_page(visit: Visit) -> Response:
    """Show a picture of a symbol, or of the imports of a repository; `.svg` sends it as a file."""
    name = str(visit.request.path_params["kind"])
    kind = name.removesuffix(".svg")
    if kind not in KINDS:
        raise UnknownName("picture", kind, KINDS)
    address = _address(visit, kind)
    symbol = _symbol(visit, address)
    picture = _picture(visit, symbol, address)
    diagram = picture.diagram
    if name.endswith(".svg"):
        return _file(visit, diagram, address)
    drawing = draw(diagram, arrange(diagram)) if diagram.boxes else ""
    return visit.page(
        "picture.html",
        repo_id=address.repo_id,
        kind=kind,
        titles=TITLES,
        symbol=symbol,
        address=address,
        others=_others(symbol, address),
        # Both are made by `drawing`, which escapes every text.
        drawing=Markup(drawing),  # noqa: S704
        legend=[Markup(sample) for sample in draw_legend(diagram)],  # noqa: S704
        diagram=diagram,
        picture=picture,
    )


def _address(visit: Visit, kind: str) -> PictureAddress:
    values = visit.request.query_params

    def several(name: str) -> tuple[str, ...]:
        chosen = tuple(dict.fromkeys(values.getlist(name)))
        if len(chosen) > MAX_CHOICES:
            raise UsageError(f"{name} occurs {len(chosen):,} times", f"use it at most {MAX_CHOICES} times")
        return chosen

    return PictureAddress(
        visit.repo_id,
        kind,
        visit.text("symbol"),
        visit.as_of,
        several("expand"),
        several("open"),
        several("close"),
        several("more"),
        "hide" if visit.text("exceptions") == "hide" else "",
    )


def _symbol(visit: Visit, address: PictureAddress) -> Symbol | None:
    """Return the symbol in the address. Raise UsageError if there is no such picture of it."""
    if not address.symbol:
        if address.kind == "imports":
            return None
        raise UsageError("a picture needs a symbol", "search a symbol, and open its pictures")
    symbol = resolve(visit.lake.reader, address.symbol, address.repo_id)
    if symbol.kind not in SUBJECTS[address.kind]:
        kinds = ", ".join(each.lower().replace("_", " ") for each in SUBJECTS[address.kind])
        wrong = symbol.kind.lower().replace("_", " ")
        raise UsageError(
            f"there is no picture of {TITLES[address.kind].lower()} of a {wrong}", f"choose one of: {kinds}"
        )
    return symbol


def _picture(visit: Visit, symbol: Symbol | None, address: PictureAddress) -> ListedDiagram | FlowDiagram:
    reader = RepositoryReader(visit.lake.reader, (address.repo_id,))
    if address.kind == "imports" or symbol is None:
        return imports_diagram(reader, symbol, address)
    drawn: dict[str, Callable[..., ListedDiagram | FlowDiagram]] = {
        "calls": calls_diagram,
        "classes": classes_diagram,
        "control-flow": control_flow_diagram,
    }
    return drawn[address.kind](reader, symbol, address)


def _others(symbol: Symbol | None, address: PictureAddress) -> list[tuple[str, str, bool]]:
    """Return the other pictures of the symbol: title, address, and whether it is this one."""
    if symbol is None:
        return []
    return [
        (
            TITLES[kind],
            PictureAddress(address.repo_id, kind, symbol.symbol, address.as_of).link(),
            kind == address.kind,
        )
        for kind in KINDS
        if symbol.kind in SUBJECTS[kind]
    ]


def _file(visit: Visit, diagram: Diagram, address: PictureAddress) -> Response:
    facts = (f"{address.repo_id}, run {visit.run_id}",)
    text = draw_file(diagram, arrange(diagram), facts)
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", address.symbol or address.repo_id)[-80:].strip("-.") or "picture"
    return Response(
        text,
        media_type="image/svg+xml",
        headers={"content-disposition": f'attachment; filename="{address.kind}-{safe}.svg"'},
    )


PAGES: tuple[tuple[str, Page], ...] = (("/r/{repo}/picture/{kind}", picture_page),)
FORMS: tuple[tuple[str, Page], ...] = ()
