"""Define the routes of the explorer, and the responses to errors.

    app = create_app("lake", hosts=("127.0.0.1:8765",))

A page runs in a thread, because reading waits for files; its errors become a page with what happened and the
next step, or JSON below `/api/`. Only `GET` and `HEAD` are served, and `POST` by forms that may be long (a
statement, a diff); nothing writes to the lake.

Tests: `tests/unit/serve/test_pages.py`, `tests/unit/serve/test_guard.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from codeanatomy.errors import (
    AmbiguousSymbol,
    CodeAnatomyError,
    EnvironmentProblem,
    StorageFailure,
    TableMissing,
    UnknownName,
    UnknownSymbol,
    UsageError,
    VersionGone,
)
from codeanatomy.serve.explorer import (
    flow_pages,
    home,
    impact_page,
    picture_pages,
    source_pages,
    sql_page,
    symbol_pages,
)
from codeanatomy.serve.explorer.guard import MAX_BODY_BYTES, Guard
from codeanatomy.serve.explorer.lakes import OpenLakes
from codeanatomy.serve.explorer.links import symbol_link
from codeanatomy.serve.explorer.runs import diff_page, report_pages, run_pages, state_pages
from codeanatomy.serve.explorer.visit import Page, Visit, render

LOG = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"
# A client that sends its request more slowly is disconnected.
BODY_SECONDS = 10.0
# HTTP status of each class of errors; the first that fits.
STATUS: tuple[tuple[type[CodeAnatomyError], int], ...] = (
    (AmbiguousSymbol, 300),
    (UnknownSymbol, 404),
    (UnknownName, 404),
    (UsageError, 400),
    (VersionGone, 410),
    (TableMissing, 404),
    (StorageFailure, 503),
    (EnvironmentProblem, 503),
)
# Modules with pages: each declares them as `PAGES`, and those with a form that is sent by POST as `FORMS`.
MODULES = (
    home,
    source_pages,
    symbol_pages,
    picture_pages,
    flow_pages,
    impact_page,
    report_pages,
    run_pages,
    diff_page,
    state_pages,
    sql_page,
)


class NameConvertor(PathConvertor):
    """Match the rest of an address, as `path` does, also with line breaks, which file names may have."""

    regex = "(?s:.*)"


register_url_convertor("name", NameConvertor())


def create_app(root: str, hosts: Collection[str] = (), token: str | None = None) -> ASGIApp:
    """Return the application for one lake, for requests to some hosts or with a token."""
    lakes = OpenLakes(root)
    routes: list[Route | Mount] = [Mount("/static", StaticFiles(directory=STATIC))]
    for module in MODULES:
        routes += [Route(path, _endpoint(page, lakes)) for path, page in module.PAGES]
        routes += [
            Route(path, _endpoint(page, lakes), methods=["GET", "POST"]) for path, page in module.FORMS
        ]
    pages = Starlette(routes=routes, exception_handlers={HTTPException: _http_problem, Exception: _bug})
    # Not as `middleware`: Starlette reports bugs outside of it, so these pages would have no headers.
    return Guard(pages, hosts=hosts, token=token)


def _endpoint(page: Page, lakes: OpenLakes) -> Callable[[Request], Any]:
    """Return the endpoint of a page: it reads the request, runs the page in a thread, and reports errors."""

    async def endpoint(request: Request) -> Response:
        try:
            try:
                body = await asyncio.wait_for(_body(request), BODY_SECONDS)
            except (TimeoutError, ClientDisconnect):
                return _problem_page(request, 408, "the request took too long to arrive", "send it again")
            return await run_in_threadpool(_answer, page, request, lakes, body)
        except CodeAnatomyError as problem:
            status = next((code for kind, code in STATUS if isinstance(problem, kind)), 500)
            return _problem_page(
                request, status, problem.message, problem.hint, getattr(problem, "candidates", ())
            )

    return endpoint


def _answer(page: Page, request: Request, lakes: OpenLakes, body: bytes) -> Response:
    return page(Visit(request, lakes, body))


async def _body(request: Request) -> bytes:
    """Read the body of a request. Raise UsageError if it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise UsageError("the request is too large", f"send at most {MAX_BODY_BYTES:,} bytes")
    return bytes(body)


async def _http_problem(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    texts = {404: "there is no such page", 405: "this page only answers GET"}
    return _problem_page(
        request, status, texts.get(status, "the request is not valid"), "go to the first page: /"
    )


async def _bug(request: Request, problem: Exception) -> Response:
    """Report an unexpected error; what it was is in the server's log only."""
    LOG.error("%s failed", request.url.path, exc_info=problem)
    return _problem_page(
        request, 500, "this is a bug in codeanatomy", "see the server's output, and report it"
    )


def _problem_page(
    request: Request, status: int, message: str, hint: str, candidates: Collection[Any] = ()
) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": message, "next": hint}, status)
    text = render(
        "problem.html",
        status=status,
        message=message,
        hint=hint,
        candidates=candidates,
        symbol_link=symbol_link,
        as_of=request.query_params.get("as-of"),
    )
    return HTMLResponse(text, status)
