"""Run SQL over the views, with the guard of `codeanatomy sql` and lower limits.

    GET  /sql?q=SELECT...       the editor with a statement, not run: a link of another site starts no work
    POST /sql                   q, rows, seconds, format (page, csv or json): run it
    POST /api/sql/check         q: diagnostics with their places, while a visitor types

A statement is checked by `query.sql.check` and run by `query.sql.light`, which interrupts it when its time is
over. A few statements run at the same time, a few more wait, and others are refused (`Turns`). DuckDB does
not interrupt a window over long lists, so a page does not wait much longer than the time limit.

Cells with a path, a symbol, a run or `path:line` lead to its page. A spreadsheet would run a text that begins
with `=`, `+`, `-` or `@` as a formula, so such a text begins with an apostrophe in a CSV file.

Tests: `tests/unit/serve/test_sql_page.py`.
"""

from __future__ import annotations

import csv
import io
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotReady
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from codeanatomy.catalog.views import RECORD_VIEWS, VIEWS
from codeanatomy.errors import EnvironmentProblem, SqlRefused, UsageError
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.allowed import FUNCTIONS
from codeanatomy.query.sql.answer import SqlAnswer
from codeanatomy.query.sql.check import check
from codeanatomy.query.sql.diagnostics import Diagnostic
from codeanatomy.serve.explorer.visit import Page, Visit

# Rows of a page, and of a file that is downloaded; the first is the default.
ROW_CHOICES = (100, 1000)
DOWNLOAD_ROWS = 100_000
SECOND_CHOICES = (10, 2, 30)
FORMATS = ("page", "csv", "json")
# Characters of a statement that is run, and of one that is checked while it is typed: checking a long one
# takes seconds.
MAX_CHARS = 20_000
MAX_CHECKED_CHARS = 4_000
# Characters of a statement that is put into an address.
MAX_LINK_CHARS = 4_000
# Characters of a cell, and of all cells together.
CELL_CHARS = 500
PAGE_CHARS = 2_000_000
# Statements that run at the same time, that wait, and for how many seconds.
RUNNING = 2
WAITING = 6
WAIT_SECONDS = 10.0
# Seconds after which a page stops to wait for a statement that DuckDB does not interrupt, and for a check.
GRACE_SECONDS = 5
CHECK_SECONDS = 10

# Each begins with its title.
EXAMPLES = """\
Functions with most callers
SELECT repo_id, callee, count(DISTINCT caller) AS callers
FROM calls
WHERE NOT external
GROUP BY repo_id, callee
ORDER BY callers DESC
LIMIT 20

Modules with most definitions
SELECT repo_id, path, count(*) AS definitions
FROM symbols
WHERE kind IN ('CLASS', 'FUNCTION') AND NOT external
GROUP BY repo_id, path
ORDER BY definitions DESC, path
LIMIT 20

Classes of exceptions
SELECT repo_id, class_name, base, path, line, confidence
FROM inherits
WHERE base LIKE '%Exception' OR base LIKE '%Error'
ORDER BY class_name

Calls that are not certain
SELECT repo_id, caller, callee, method, confidence, path, line
FROM calls
WHERE confidence < 0.9 AND NOT external
ORDER BY confidence, caller
LIMIT 100

Other packages that are imported
SELECT repo_id, split_part(target, '.', 1) AS package, count(*) AS imports
FROM imports
WHERE external
GROUP BY repo_id, split_part(target, '.', 1)
ORDER BY imports DESC

Diagnostics by severity
SELECT repo_id, severity, witness, count(*) AS diagnostics
FROM diagnostics
GROUP BY repo_id, severity, witness
ORDER BY diagnostics DESC
"""
KEYWORDS = """
SELECT FROM WHERE GROUP BY HAVING QUALIFY ORDER LIMIT OFFSET WITH AS JOIN LEFT RIGHT FULL INNER CROSS ON USING
UNION INTERSECT EXCEPT ALL DISTINCT AND OR NOT IN IS NULL LIKE ILIKE RLIKE BETWEEN EXISTS CASE WHEN THEN ELSE
END CAST TRUE FALSE ASC DESC OVER PARTITION VALUES
"""
# Columns with qualified names, by name.
SYMBOL_COLUMNS = frozenset(
    column.name for view in VIEWS for column in view.columns if column.doc.startswith("Qualified name")
)
SYMBOL = re.compile(r"[^\W\d][\w.<>]{0,500}")
PLACE = re.compile(r"([^\s:][^:\n]{0,500}\.pyi?):(\d{1,9})")
# First characters of a text that a spreadsheet takes for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


Result = TypeVar("Result")


class SqlResult(Struct, frozen=True):
    """The rows of a statement as they are shown."""

    answer: SqlAnswer
    seconds: float
    # Cells as elements; fewer rows than in the answer if the page would become too large.
    rows: list[Markup]
    # Columns with numbers.
    numbers: frozenset[str]


class Turns:
    """Let a few functions run at the same time and a few wait; refuse the others."""

    def __init__(self, running: int, waiting: int, wait_seconds: float) -> None:
        self._workers = ThreadPoolExecutor(running)
        self._places = threading.BoundedSemaphore(running + waiting)
        self._wait_seconds = wait_seconds

    def run(self, function: Callable[[], Result], seconds: float) -> Result:
        """Run a function in a turn. Raise EnvironmentProblem if none is free in time.

        Raise SqlRefused if it takes longer than some seconds: it keeps its turn until it has ended.
        """
        if not self._places.acquire(blocking=False):
            raise _busy()
        has_begun = threading.Event()

        def work() -> Result:
            has_begun.set()
            return function()

        future = self._workers.submit(work)
        future.add_done_callback(lambda _: self._places.release())
        if not has_begun.wait(self._wait_seconds) and future.cancel():
            raise _busy()
        try:
            return future.result(seconds)
        except NotReady:
            if future.done():
                # It has ended since then, or has raised this error itself.
                return future.result()
        late = Diagnostic("time", f"it took longer than {seconds:g} seconds", suggestion="select less")
        raise SqlRefused([msgspec.to_builtins(late)])


def _busy() -> EnvironmentProblem:
    return EnvironmentProblem(
        "other statements are running", "wait a moment and run it again; at most a few run at the same time"
    )


# For all visitors of this process, which share its memory.
TURNS = Turns(RUNNING, WAITING, WAIT_SECONDS)


def sql_page(visit: Visit) -> Response:
    """Show the editor; run the statement of a form that was sent."""
    if visit.request.method != "POST":
        return _page(visit, visit.text("q")[:MAX_CHARS])
    fields = visit.fields()
    text = fields.get("q", "")
    form = _chosen(fields, "format", FORMATS)
    rows = int(_chosen(fields, "rows", tuple(map(str, ROW_CHOICES))))
    seconds = int(_chosen(fields, "seconds", tuple(map(str, SECOND_CHOICES))))
    limits = {"rows": rows, "seconds": seconds}
    started = time.monotonic()
    try:
        answer = _run(visit.lake, text, rows if form == "page" else DOWNLOAD_ROWS, seconds)
    except SqlRefused as refusal:
        # In a browser the page with the problems is what was wanted; a program needs the status.
        status = 200 if form == "page" else 400
        return _page(visit, text, limits, problems=refusal.diagnostics, status=status)
    except (EnvironmentProblem, UsageError) as problem:
        status = 400 if isinstance(problem, UsageError) else 503
        shown = Diagnostic("size" if status == 400 else "engine", problem.message, suggestion=problem.hint)
        return _page(visit, text[:MAX_CHARS], limits, problems=[shown], status=status)
    if form != "page":
        return _download(answer, form)
    return _page(visit, text, limits, result=_result(visit, answer, time.monotonic() - started))


def _run(lake: Lake, text: str, rows: int, seconds: int) -> SqlAnswer:
    """Run a statement in a turn."""
    if len(text) > MAX_CHARS:
        raise UsageError(
            f"the statement has {len(text):,} characters, more than {MAX_CHARS:,}",
            "run it with `codeanatomy sql`",
        )
    return TURNS.run(lambda: lake.sql(text, limit=rows, seconds=seconds), seconds + GRACE_SECONDS)


def _chosen(fields: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """Return a field of the form; the first choice if it is missing. Raise UsageError for another value."""
    value = fields.get(name, choices[0])
    if value not in choices:
        raise UsageError(f"{name} must be {', '.join(choices)}, got {value[:40]!r}", "use one of these")
    return value


def _page(
    visit: Visit,
    text: str,
    limits: Mapping[str, int] | None = None,
    problems: Any = (),
    result: SqlResult | None = None,
    status: int = 200,
) -> Response:
    return visit.page(
        "sql.html",
        status,
        text=text,
        limits=limits or {"rows": ROW_CHOICES[0], "seconds": SECOND_CHOICES[0]},
        row_choices=ROW_CHOICES,
        second_choices=sorted(SECOND_CHOICES),
        problems=problems,
        result=result,
        views=VIEWS,
        record_views=RECORD_VIEWS,
        examples=[(title, visit.page_link("/sql", q=text)) for title, text in examples()],
        functions=" ".join(FUNCTIONS),
        keywords=" ".join(KEYWORDS.split()),
        max_chars=MAX_CHARS,
        max_checked_chars=MAX_CHECKED_CHARS,
        download_rows=DOWNLOAD_ROWS,
        link=visit.page_link("/sql", q=text) if text and len(quote(text)) <= MAX_LINK_CHARS else None,
    )


def examples() -> list[tuple[str, str]]:
    """Return statements to begin with, each with its title."""
    parts = (each.partition("\n") for each in EXAMPLES.strip().split("\n\n"))
    return [(title, statement) for title, _, statement in parts]


def check_statement(visit: Visit) -> Response:
    """Return the problems of a statement as JSON; a long one is only checked when it is run."""
    text = visit.fields().get("q", "")
    problems: Any = ()
    if text.strip() and len(text) <= MAX_CHECKED_CHARS:
        try:
            TURNS.run(lambda: check(text), CHECK_SECONDS)
        except SqlRefused as refusal:
            problems = refusal.diagnostics
    return visit.json({"diagnostics": problems, "checked": len(text) <= MAX_CHECKED_CHARS})


def _result(visit: Visit, answer: SqlAnswer, seconds: float) -> SqlResult:
    """Make the cells of a result, until there are too many characters for a page."""
    rows: list[Markup] = []
    characters = 0
    names = list(visit.lake.snapshot.repositories)
    only = names[0] if len(names) == 1 else None
    for row in answer.rows:
        texts = {name: _text(value) for name, value in row.items()}
        characters += sum(min(len(text), CELL_CHARS) for text in texts.values())
        if characters > PAGE_CHARS:
            break
        cells = (_cell(visit, name, row, texts[name], only) for name in answer.columns)
        rows.append(Markup("").join(cells))
    numbers = frozenset(
        name for name in answer.columns if any(_is_number(row[name]) for row in answer.rows[: len(rows)])
    )
    return SqlResult(answer, seconds, rows, numbers)


def _text(value: Any) -> str:
    """Format a value as a text, as in JSON if it is no text itself.

    >>> _text("a"), _text(True), _text(1.5), _text(["a", 1]), _text(None)
    ('a', 'true', '1.5', '["a",1]', '')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    text = msgspec.json.encode(value).decode()
    # A time is a text in JSON.
    return text.strip('"') if not isinstance(value, list | dict) else text


def _cell(visit: Visit, name: str, row: Mapping[str, Any], text: str, only: str | None) -> Markup:
    value = row[name]
    if value is None:
        return Markup('<td class="null">null</td>')
    shown = text if len(text) <= CELL_CHARS else f"{text[:CELL_CHARS]}... ({len(text):,} characters)"
    number = Markup(' class="number"') if _is_number(value) else Markup("")
    link = _link(visit, name, row, only)
    inner = Markup('<a href="{}">{}</a>').format(link, shown) if link else shown
    return Markup("<td{}>{}</td>").format(number, inner)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _link(visit: Visit, name: str, row: Mapping[str, Any], only: str | None) -> str | None:
    """Return the page that a cell leads to: a file at a line, a symbol, a run or a repository."""
    value, repo_id = row[name], row.get("repo_id", only)
    if name == "run_id" and isinstance(value, str):
        return visit.run_link(value)
    if not isinstance(repo_id, str) or repo_id not in visit.lake.snapshot.repositories:
        return None
    path, line = row.get("path"), row.get("line")
    if name in ("path", "line") and isinstance(path, str) and path:
        return visit.file_link(repo_id, path, line if type(line) is int else None)
    if name == "repo_id":
        return visit.repository_link(repo_id)
    if not isinstance(value, str):
        return None
    place = PLACE.fullmatch(value)
    if place is not None:
        return visit.file_link(repo_id, place[1], int(place[2]))
    is_symbol = name in SYMBOL_COLUMNS and SYMBOL.fullmatch(value)
    return visit.symbol_link(repo_id, value) if is_symbol else None


def _download(answer: SqlAnswer, form: str) -> Response:
    """Return the rows as a file."""
    cut = f"-first-{len(answer.rows)}" if answer.more else ""
    headers = {"content-disposition": f'attachment; filename="codeanatomy-{answer.run_id}{cut}.{form}"'}
    if form == "csv":
        return Response(csv_text(answer), headers=headers, media_type="text/csv; charset=utf-8")
    body = msgspec.json.encode(
        {
            "run": answer.run_id,
            "statement": answer.subject[0],
            "columns": answer.columns,
            "total": answer.total,
            "cut": answer.cut,
            "rows": answer.rows,
        }
    )
    return Response(body, headers=headers, media_type="application/json")


def csv_text(answer: SqlAnswer) -> str:
    """Return the rows as CSV whose texts no spreadsheet takes for a formula."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(map(harmless, answer.columns))
    for row in answer.rows:
        writer.writerow(_csv_value(row[name]) for name in answer.columns)
    return text.getvalue()


def _csv_value(value: Any) -> str:
    return _text(value) if isinstance(value, int | float) else harmless(_text(value))


def harmless(text: str) -> str:
    """Put an apostrophe before a text that begins like a formula.

    >>> harmless("=1+2"), harmless("a=1")
    ("'=1+2", 'a=1')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


PAGES: tuple[tuple[str, Page], ...] = ()
FORMS: tuple[tuple[str, Page], ...] = (("/sql", sql_page), ("/api/sql/check", check_statement))
