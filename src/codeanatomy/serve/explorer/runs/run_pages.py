"""Show runs: their time line, and what one run cost, read and wrote.

    GET /runs                   seconds by step, rows and bytes of the newest runs; `older=40` for older ones
    GET /runs/20260501T12       one run by its id or a prefix of it

Pages about runs read the manifest and the observation tables, which have rows of all runs: unlike other
pages they show the same whichever run a visitor has opened.

Tests: `tests/unit/serve/test_run_pages.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from starlette.responses import Response

from codeanatomy.lake.engine_facts import engine_text
from codeanatomy.query.status.run_costs import RunCost, TableCost, run_costs, table_costs
from codeanatomy.query.status.run_reports import (
    RunReport,
    StepReport,
    TableVersions,
    run_report,
    runs,
)
from codeanatomy.serve.explorer.runs.plots import (
    PlotColumn,
    bar,
    column_plot,
    count_text,
    seconds_text,
    share_bar,
)
from codeanatomy.serve.explorer.visit import Page, Visit, size

# Runs of one page of the time line.
PAGE_RUNS = 40
MAX_RUNS = 10**9
# Steps with a colour of their own; the rest of a run's time is shown as one.
COLOURED = ("extract", "normalize", "relate", "graph")
OTHER = "other"
# Repositories that a page about a run lists.
MAX_REPOSITORIES = 200


class TableRow(Struct, frozen=True):
    """A table in a run: its versions, and what was written to it."""

    versions: TableVersions
    cost: TableCost | None


def runs_page(visit: Visit) -> Response:
    """Show the costs of runs over time, the newest at the right and first in the list."""
    skip = visit.number("older", 0, 0, MAX_RUNS)
    costs = run_costs(visit.lake.snapshot.root, PAGE_RUNS, skip)
    in_order = costs.rows[::-1]
    plots = (
        ("Seconds by step", column_plot([_seconds(visit, each) for each in in_order], seconds_text)),
        ("Rows of the steps that ran", column_plot([_rows(visit, each) for each in in_order], count_text)),
        (
            "Bytes written",
            column_plot([_bytes(visit, each) for each in in_order], lambda value: size(int(value))),
        ),
    )
    return visit.page(
        "runs.html",
        costs=costs,
        skip=skip,
        steps=(*COLOURED, OTHER),
        rest=_rest,
        plots=plots if costs.rows else (),
        newer=max(0, skip - PAGE_RUNS) if skip else None,
        older=skip + PAGE_RUNS if skip + PAGE_RUNS < costs.total else None,
    )


def _rest(cost: RunCost) -> float:
    """Return the seconds of a run outside of its steps."""
    steps = sum(cost.step_ms.get(step, 0) for step in COLOURED)
    return max(0.0, round(cost.summary.seconds - steps / 1000, 3))


def _seconds(visit: Visit, cost: RunCost) -> PlotColumn:
    parts = [(step, cost.step_ms.get(step, 0) / 1000) for step in COLOURED]
    listed = ", ".join(f"{step} {ms / 1000:.1f} s" for step, ms in cost.step_ms.items())
    text = f"{cost.summary.seconds:.1f} s" + (f": {listed}" if listed else "")
    return _column(visit, cost, text, [*parts, (OTHER, _rest(cost))])


def _rows(visit: Visit, cost: RunCost) -> PlotColumn:
    return _column(visit, cost, f"{cost.summary.rows:,} rows", [("rows", cost.summary.rows)])


def _bytes(visit: Visit, cost: RunCost) -> PlotColumn:
    return _column(visit, cost, f"{size(cost.bytes)} written", [("bytes", cost.bytes or 0)])


def _column(visit: Visit, cost: RunCost, text: str, parts: Iterable[tuple[str, float]]) -> PlotColumn:
    summary = cost.summary
    return PlotColumn(
        f"{summary.run_id} ({summary.status}, {summary.mode}): {text}",
        visit.run_link(summary.run_id),
        tuple(parts),
        summary.status != "succeeded",
    )


def run_page(visit: Visit) -> Response:
    """Show one run."""
    root = visit.lake.snapshot.root
    report = run_report(root, str(visit.request.path_params["run"]))
    run_id = report.line.run_id
    tables = _table_rows(report, table_costs(root, run_id))
    times = [(step.step, (step.milliseconds or 0) / 1000) for step in report.steps if step.step in COLOURED]
    rest = max(0.0, report.line.seconds - sum(seconds for _, seconds in times))
    shares = [
        (fill, f"{name}: {seconds:.1f} s", seconds)
        for fill, name, seconds in [*((name, name, seconds) for name, seconds in times), (OTHER, OTHER, rest)]
        if seconds > 0
    ]
    before, after = _neighbours(root, run_id)
    return visit.page(
        "run.html",
        bar=bar,
        report=report,
        steps=[step for step in report.steps if step.step in COLOURED],
        parts=[step for step in report.steps if step.step not in COLOURED],
        greatest=_greatest_figures(report.steps),
        shares=share_bar(shares),
        written=[row for row in tables if row.cost is not None],
        untouched=[row for row in tables if row.cost is None],
        most={
            name: max((getattr(row.cost, name) for row in tables if row.cost), default=0)
            for name in ("milliseconds", "rows", "bytes")
        },
        repositories=report.repositories[:MAX_REPOSITORIES],
        before=before,
        after=after,
        engine=engine_text(report.line.engine_facts) if report.line.engine_facts else None,
    )


def _greatest_figures(steps: Iterable[StepReport]) -> dict[str, float]:
    """Return the greatest value of each figure over the steps, for the lengths of bars."""
    coloured = [step for step in steps if step.step in COLOURED]
    return {
        name: max((getattr(step, name) or 0 for step in coloured), default=0)
        for name in ("milliseconds", "rows", "bytes", "tasks", "skew")
    }


def _table_rows(report: RunReport, costs: Mapping[str, TableCost]) -> list[TableRow]:
    """Join the versions of tables with what was written, those with most bytes first."""
    versions = {each.table: each for each in report.pins}
    names = dict.fromkeys([*versions, *costs])
    rows = [
        TableRow(versions.get(name, TableVersions(name, None, None, None)), costs.get(name)) for name in names
    ]
    return sorted(rows, key=lambda row: (-(row.cost.bytes if row.cost else 0), row.versions.table))


def _neighbours(root: str, run_id: str) -> tuple[str | None, str | None]:
    """Return the published runs before and after a run."""
    listed = runs(root).rows
    place = next(number for number, each in enumerate(listed) if each.run_id == run_id)
    before = next((each.run_id for each in listed[place + 1 :] if each.succeeded), None)
    after = next((each.run_id for each in reversed(listed[:place]) if each.succeeded), None)
    return before, after


PAGES: tuple[tuple[str, Page], ...] = (("/runs", runs_page), ("/runs/{run}", run_page))
FORMS: tuple[tuple[str, Page], ...] = ()
