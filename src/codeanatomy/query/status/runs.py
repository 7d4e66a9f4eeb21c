"""The runs of a lake: what each has done, and what its steps took.

    runs("lake", limit=3).rows[0].skipped              # {"extract": 2}: two repositories were not read again
    run_report("lake", "20260501T12").steps[0].skew    # 1.4: the slowest task of extract over the median

The manifest says what a run was made from and what it left; `plan_artifacts` what its steps cost. A run that
was killed has not written the latter: where it is missing, a figure is null.

Tests: `tests/unit/query/test_runs.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow.compute as pc
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import TableMissing
from codeanatomy.lake.manifest import RunManifest, Status
from codeanatomy.lake.snapshot import RecordedRun, find_run, recorded_runs
from codeanatomy.query.status.failures import ERRORS

ARTIFACTS, IMPACT = "plan_artifacts", "refresh_impact"
STAGES = tuple(dict.fromkeys(table.stage for table in catalog.derivation_order()))
STEP_OF = {table.name: table.stage for table in catalog.TABLES} | {ERRORS: "extract"}
FIGURES = ("rows", "bytes", "jobs", "tasks", "skew", "spilled_bytes")


class RunLine(Struct, frozen=True):
    """A run in short."""

    run_id: str
    # The worst of its repositories.
    status: Status
    started_at: datetime
    seconds: float
    repositories: int
    # Of them, those that it has built; with none, the run has published nothing.
    succeeded: int
    # Of the repositories it has built, in the tables of the steps that ran.
    rows: int
    # How many repositories a step was skipped for: what was there was valid.
    skipped: dict[str, int]
    # What kind of work it was: full, incremental, maintenance or restore, and of some repositories another.
    mode: str


class Runs(Struct, frozen=True):
    """The newest runs, newest first, of so many."""

    rows: tuple[RunLine, ...]
    total: int


class StepLine(Struct, frozen=True, kw_only=True):
    """A step of a run, and what it cost; null is not known."""

    step: str
    status: str | None = None
    milliseconds: int | None = None
    rows: int | None = None
    bytes: int | None = None
    jobs: int | None = None
    tasks: int | None = None
    # Longest task over the median.
    skew: float | None = None
    spilled_bytes: int | None = None
    # What the step was made from, by repository.
    fingerprints: dict[str, str] = {}
    error: str | None = None


class PinLine(Struct, frozen=True):
    """A table before and after a run."""

    table: str
    # Version that the run began with; null if it has read none.
    before: int | None
    # Version that its readers open; null if it has published none.
    after: int | None
    rows: int | None


class RunReport(Struct, frozen=True):
    """A run, as far as it was recorded."""

    line: RunLine
    finished_at: datetime
    trace_id: str | None
    steps: tuple[StepLine, ...]
    pins: tuple[PinLine, ...]
    repositories: tuple[RunManifest, ...]
    # By repository that was refreshed: files that were redone, by reason.
    redone: dict[str, dict[str, int]] = {}


def runs(root: str, limit: int | None = None) -> Runs:
    """The newest runs of a lake."""
    found = recorded_runs(root)
    newest = found[::-1][:limit]
    return Runs(tuple(map(_line, newest)), len(found))


def run_report(root: str, run_id: str) -> RunReport:
    """What is known of a run; the first characters of its name are enough."""
    run = find_run(recorded_runs(root), run_id)
    return RunReport(
        _line(run),
        run.finished_at,
        next((row.trace_id for row in run.rows if row.trace_id), None),
        tuple(_steps(run, _artifacts(root, run.run_id))),
        tuple(_pins(run)),
        run.rows,
        _redone(root, run.run_id),
    )


def _line(run: RecordedRun) -> RunLine:
    statuses = {row.status for row in run.rows}
    worst: Iterable[Status] = ("failed", "cancelled", "succeeded")
    return RunLine(
        run.run_id,
        next(status for status in worst if status in statuses),
        run.started_at,
        round((run.finished_at - run.started_at).total_seconds(), 3),
        len(run.rows),
        len(run.succeeded),
        sum(_written(row) for row in run.succeeded),
        _ordered(Counter(step for row in run.succeeded for step in row.artifact_ids if _skipped(row, step))),
        ", ".join(sorted({row.mode for row in run.rows})),
    )


def _skipped(row: RunManifest, step: str) -> bool:
    """Whether another run has done the step."""
    done = row.artifact_ids.get(step)
    return done is not None and done != f"{row.run_id}/{step}"


def _written(row: RunManifest) -> int:
    return sum(rows for name, rows in row.row_counts.items() if not _skipped(row, STEP_OF.get(name, "")))


def _ordered(by_step: Mapping[str, int]) -> dict[str, int]:
    """In the order of the steps; what is no step of ours comes last."""
    known = [step for step in STAGES if step in by_step]
    return {step: by_step[step] for step in dict.fromkeys((*known, *by_step))}


def _artifacts(root: str, run_id: str) -> dict[str, dict[str, Any]]:
    """What was recorded of the steps of a run, by step."""
    columns = ["step_name", "status", "error", "fingerprints", "duration_ms", *FIGURES]
    try:
        table = light_table(root, ARTIFACTS, columns, pc.field("run_id") == run_id)
    except TableMissing:
        return {}
    return {row["step_name"]: row for row in table.to_pylist(maps_as_pydicts="strict")}


def _redone(root: str, run_id: str) -> dict[str, dict[str, int]]:
    """How many files of which repository were redone, by reason."""
    try:
        table = light_table(root, IMPACT, ["repo_id", "reason"], pc.field("run_id") == run_id)
    except TableMissing:
        return {}
    found: dict[str, Counter[str]] = {}
    for row in table.to_pylist():
        found.setdefault(row["repo_id"], Counter())[row["reason"]] += 1
    return {repo_id: dict(sorted(counts.items())) for repo_id, counts in sorted(found.items())}


def _steps(run: RecordedRun, artifacts: Mapping[str, dict[str, Any]]) -> Iterator[StepLine]:
    """What the manifest and the artifacts say of each step."""
    # A step as a whole is timed as such, and by its parts.
    times = {step: ms for row in run.rows for step, ms in row.step_ms.items() if not step.endswith("_step")}
    planned = {step: 0 for row in run.rows for step in row.plan_fingerprints}
    for step in _ordered({**planned, **times, **dict.fromkeys(artifacts, 0)}):
        rows = [row for row in run.rows if step in row.plan_fingerprints]
        found = artifacts.get(step, {})
        skipped = "skipped" if rows and all(_skipped(row, step) for row in rows) else None
        yield StepLine(
            step=step,
            status=found.get("status", skipped),
            milliseconds=_first(found.get("duration_ms"), times.get(step)),
            fingerprints={row.repo_id: row.plan_fingerprints[step] for row in rows}
            | (found.get("fingerprints") or {}),
            error=found.get("error"),
            **{name: found.get(name) for name in FIGURES},
        )


def _first(*values: int | None) -> int | None:
    """The first that is known; zero is."""
    return next((value for value in values if value is not None), None)


def _pins(run: RecordedRun) -> Iterator[PinLine]:
    """The same in every row of a run; one that has failed has none after it."""
    before = {pin.table_name: pin.version for row in run.rows for pin in row.input_pins}
    after = {pin.table_name: pin for row in run.succeeded for pin in row.output_pins}
    for name in sorted({*before, *after}):
        pin = after.get(name)
        yield PinLine(name, before.get(name), pin.version if pin else None, pin.rows if pin else None)
