"""Show the state of a lake: what failed by file, and the tables with the maintenance that they need.

    GET /errors?repo=shop&severity=error        failures of extractors, and diagnostics of witnesses
    GET /tables                                 files, bytes, versions and due operations of each table

The inspection of tables lists their files, which takes long in an object store: a page waits for it for a few
seconds, and its result is kept for a short time (`shared_work`).

Tests: `tests/unit/serve/test_run_pages.py`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from codeanatomy.catalog.views import DIAGNOSTICS
from codeanatomy.config import load_settings
from codeanatomy.maintain.choose import Task
from codeanatomy.maintain.inspection import LakeInspection, MaintenanceRequest, Outcome
from codeanatomy.maintain.table_state import TableState
from codeanatomy.query.engines.statements import Query
from codeanatomy.query.engines.views import view_query
from codeanatomy.query.lake import Lake
from codeanatomy.query.status.activity import MaintenanceOperation, observe
from codeanatomy.query.verbs.errors import errors
from codeanatomy.serve.explorer.runs.plots import bar
from codeanatomy.serve.explorer.runs.shared_work import SharedWork
from codeanatomy.serve.explorer.visit import Page, Visit

# Rows of a page by default, and at most.
LISTED = 500
MAX_LISTED = 10_000
SEVERITIES = ("error", "warning", "info", "hint")
# Characters of a message.
MESSAGE_CHARS = 1000
# Seconds that a page waits for the inspection of tables, and that a result is kept.
WAIT_SECONDS = 8.0
KEEP_SECONDS = 10.0
# Maintenance runs that are read for the last operation of each table, and operations that are listed.
LAST_RUNS = 50
LISTED_OPERATIONS = 50


class FileProblem(Struct, frozen=True):
    """A failure of an extractor or a diagnostic of a witness."""

    line: int | None
    # "failure", or the severity of a diagnostic.
    severity: str
    # The extractor or witness.
    origin: str
    # Class of the error, or code of the diagnostic.
    code: str
    message: str


class TablesState(Struct, frozen=True):
    """The result of an inspection."""

    states: dict[str, TableState]
    tasks: dict[str, list[Task]]
    # Why a table must wait, by name.
    left_alone: dict[str, str]
    unreadable: list[Outcome]


def errors_page(visit: Visit) -> Response:
    """List failures and diagnostics by file."""
    repo_id, severity = visit.text("repo") or None, visit.text("severity") or None
    limit = visit.number("limit", LISTED, 1, MAX_LISTED)
    visit.lake.snapshot.select_repositories(repo_id)
    files: dict[tuple[str, str], list[FileProblem]] = {}
    reader = visit.lake.reader
    # A failure has no severity.
    failures = [] if severity else reader.rows(errors(reader, repo_id=repo_id).query, limit)
    total = failures[0][-1] if failures else 0
    for _, extractor, path, line, _, error_type, message, owner, *_ in failures:
        problem = FileProblem(line, "failure", extractor, error_type, _cut(message))
        files.setdefault((owner, path or ""), []).append(problem)
    diagnostics = _diagnostics(visit.lake, repo_id, severity, limit)
    total += diagnostics[0][-1] if diagnostics else 0
    for owner, path, line, witness, code, level, message, _ in diagnostics:
        problem = FileProblem(line, level or "info", witness or "", code or "", _cut(message))
        files.setdefault((owner, path or ""), []).append(problem)
    listed = sum(map(len, files.values()))
    return visit.page(
        "errors.html",
        files=[(*place, sorted(rows, key=_order)) for place, rows in sorted(files.items())],
        repo_id=repo_id,
        severity=severity,
        severities=SEVERITIES,
        repositories=sorted(visit.lake.snapshot.repositories),
        total=total,
        cut=total - listed,
        limit=limit,
        max_limit=MAX_LISTED,
    )


def _diagnostics(lake: Lake, repo_id: str | None, severity: str | None, limit: int) -> list[Any]:
    """Return the diagnostics of the snapshot, in order; each row ends with the total."""
    view = view_query(DIAGNOSTICS, lake.snapshot)
    query = Query(
        "SELECT repo_id, path, line, witness, code, severity, message"
        f" FROM ({view.sql}) WHERE (? IS NULL OR repo_id = ?) AND (? IS NULL OR severity = ?)",
        view.relations,
        args=(repo_id, repo_id, severity, severity),
        order=("repo_id", "path", "line", "witness", "code"),
    )
    return lake.reader.rows(query, limit)


def _cut(message: str | None) -> str:
    text = message or ""
    return text if len(text) <= MESSAGE_CHARS else f"{text[:MESSAGE_CHARS]}..."


def _order(problem: FileProblem) -> tuple[int, bool, str]:
    return problem.line or 0, problem.severity != "failure", problem.origin


def tables_page(visit: Visit) -> Response:
    """Show the state of all tables and the operations that their policies require."""
    root = visit.lake.snapshot.root
    state = INSPECTIONS.result(root, WAIT_SECONDS)
    operations = observe(root, LAST_RUNS, "maintenance").maintenance
    last: dict[tuple[str, str], MaintenanceOperation] = {}
    for each in operations:
        if each.outcome == "done":
            last.setdefault((each.table, each.operation), each)
    return visit.page(
        "tables.html",
        bar=bar,
        state=state,
        tables=sorted(state.states.values(), key=lambda each: -each.bytes) if state else (),
        pins=visit.lake.snapshot.pins,
        last=lambda table, *names: max(
            (last[table, name].at for name in names if (table, name) in last), default=None
        ),
        operations=operations[:LISTED_OPERATIONS],
        cut=len(operations) - LISTED_OPERATIONS,
        seconds=WAIT_SECONDS,
    )


def inspect_tables(root: str) -> TablesState:
    """Inspect all tables, and list the operations that are due by the settings of this process."""
    inspection = LakeInspection(MaintenanceRequest(root, load_settings(), dry_run=True))
    tasks: dict[str, list[Task]] = {}
    for task in inspection.tasks():
        tasks.setdefault(task.table, []).append(task)
    return TablesState(inspection.states, tasks, inspection.left_alone, inspection.unreadable)


INSPECTIONS = SharedWork(inspect_tables, KEEP_SECONDS)

PAGES: tuple[tuple[str, Page], ...] = (("/errors", errors_page), ("/tables", tables_page))
FORMS: tuple[tuple[str, Page], ...] = ()
