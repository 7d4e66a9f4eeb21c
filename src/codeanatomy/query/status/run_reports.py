"""List the runs of a lake, and report what a run did and what its steps cost.

    runs("lake", limit=3).rows[0].skipped              # {"extract": 2}: two repositories were not read again
    run_report("lake", "20260501T12").steps[0].skew    # 1.4: the slowest task of extract over the median

The manifest has the inputs and outputs of a run, `plan_artifacts` the costs of its steps. A run that was
killed has not written the latter: missing figures are None.

Tests: `tests/unit/query/test_runs.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import TableMissing
from codeanatomy.lake.engine_facts import EngineFacts
from codeanatomy.lake.lease import LeaseRow, is_stale, read_lease
from codeanatomy.lake.manifest import RunManifest, Status
from codeanatomy.lake.snapshot import RecordedRun, find_run, recorded_runs
from codeanatomy.query.status.failures import ERRORS

ARTIFACTS, IMPACT = "plan_artifacts", "refresh_impact"
STAGES = tuple(dict.fromkeys(table.stage for table in catalog.derivation_order()))
STEP_OF = {table.name: table.stage for table in catalog.TABLES} | {ERRORS: "extract"}
FIGURES = ("rows", "bytes", "jobs", "tasks", "skew", "spilled_bytes")


class RunSummary(Struct, frozen=True):
    """The summary of a run."""

    run_id: str
    # The worst status of its repositories; of a run that has not ended, whether its process is alive.
    status: Status | Literal["writing", "dead"]
    started_at: datetime
    seconds: float
    repositories: int
    # Number of repositories that were built; if 0, the run published nothing.
    succeeded: int
    # Rows of the built repositories in the tables of the steps that ran.
    rows: int
    # By step, the number of repositories for which it was skipped because its output was still valid.
    skipped: dict[str, int]
    # full, incremental, maintenance or restore; several, comma-separated, if repositories differ; empty
    # if the run has not ended.
    mode: str
    # None for maintenance and restores, and if it was not recorded.
    engine_facts: EngineFacts | None = None


class Runs(Struct, frozen=True):
    """The newest runs, newest first, and the total."""

    rows: tuple[RunSummary, ...]
    total: int


class StepReport(Struct, frozen=True, kw_only=True):
    """A step of a run and its cost; None is unknown."""

    step: str
    status: str | None = None
    milliseconds: int | None = None
    rows: int | None = None
    bytes: int | None = None
    jobs: int | None = None
    tasks: int | None = None
    # Duration of the longest task over the median.
    skew: float | None = None
    spilled_bytes: int | None = None
    # Fingerprints of the step's inputs, by repository.
    fingerprints: dict[str, str] = {}
    error: str | None = None


class FrameReport(Struct, frozen=True):
    """A frame that Spark computed for a step."""

    step: str
    frame: str
    milliseconds: int | None
    plan_hash: str | None
    # Number of operators of its physical plan.
    operators: int


class TableVersions(Struct, frozen=True):
    """A table before and after a run."""

    table: str
    # Version that the run read; None if it did not exist.
    before: int | None
    # Version that it published; None if it published none.
    after: int | None
    rows: int | None


class RunReport(Struct, frozen=True):
    """Everything that was recorded of a run."""

    line: RunSummary
    finished_at: datetime
    trace_id: str | None
    steps: tuple[StepReport, ...]
    pins: tuple[TableVersions, ...]
    repositories: tuple[RunManifest, ...]
    # Number of files that were processed again, by refreshed repository and reason.
    redone: dict[str, dict[str, int]] = {}
    # In the order of steps and frames.
    frames: tuple[FrameReport, ...] = ()


def runs(root: str, limit: int | None = None) -> Runs:
    """List the newest runs of a lake, first the one that writes to it or died doing so."""
    writer = read_lease(root)
    try:
        recorded = recorded_runs(root)
    except TableMissing:
        if writer is None or writer.state == "released":
            raise
        recorded = []
    newest = list(map(summarize_run, recorded[::-1]))
    if writer is not None and writer.state == "held" and all(run.run_id != writer.run_id for run in recorded):
        newest.insert(0, _summarize_writer(writer))
    return Runs(tuple(newest[:limit]), len(newest))


def _summarize_writer(row: LeaseRow) -> RunSummary:
    """Summarize a run that has recorded nothing yet, from its lease."""
    return RunSummary(
        row.run_id,
        "dead" if is_stale(row, datetime.now(UTC)) else "writing",
        row.acquired_at,
        round((row.heartbeat_at - row.acquired_at).total_seconds(), 3),
        len(row.repo_ids),
        0,
        sum(rows for step in row.done for tables in step.rows.values() for rows in tables.values()),
        {},
        "",
    )


def published_runs(root: str, limit: int) -> list[RunSummary]:
    """List the newest runs that have published a repository."""
    return [each for each in runs(root).rows if each.succeeded][:limit]


def run_report(root: str, run_id: str) -> RunReport:
    """Report a run, given its id or a prefix of it."""
    run = find_run(recorded_runs(root), run_id)
    return RunReport(
        summarize_run(run),
        run.finished_at,
        next((row.trace_id for row in run.rows if row.trace_id), None),
        tuple(_steps(run, _step_artifacts(root, run.run_id))),
        tuple(_pins(run)),
        run.rows,
        _redone(root, run.run_id),
        tuple(_frames(root, run.run_id)),
    )


def summarize_run(run: RecordedRun) -> RunSummary:
    """Summarize the manifest rows of a run."""
    statuses = {row.status for row in run.rows}
    worst: Iterable[Status] = ("failed", "cancelled", "succeeded")
    return RunSummary(
        run.run_id,
        next(status for status in worst if status in statuses),
        run.started_at,
        round((run.finished_at - run.started_at).total_seconds(), 3),
        len(run.rows),
        len(run.succeeded),
        sum(_written_rows(row) for row in run.succeeded),
        _in_step_order(
            Counter(step for row in run.succeeded for step in row.artifact_ids if _was_skipped(row, step))
        ),
        ", ".join(sorted({row.mode for row in run.rows})),
        next((row.engine_facts for row in run.rows if row.engine_facts), None),
    )


def _was_skipped(row: RunManifest, step: str) -> bool:
    """Whether the output of a step is that of an earlier run."""
    artifact_id = row.artifact_ids.get(step)
    return artifact_id is not None and artifact_id != f"{row.run_id}/{step}"


def _written_rows(row: RunManifest) -> int:
    return sum(rows for name, rows in row.row_counts.items() if not _was_skipped(row, STEP_OF.get(name, "")))


def _in_step_order(by_step: Mapping[str, int]) -> dict[str, int]:
    """Sort by the order of the steps; unknown steps come last."""
    known = [step for step in STAGES if step in by_step]
    return {step: by_step[step] for step in dict.fromkeys((*known, *by_step))}


def _step_artifacts(root: str, run_id: str) -> dict[str, dict[str, Any]]:
    """Return the recorded totals of a run's steps, by step."""
    columns = ["step_name", "frame_no", "status", "error", "fingerprints", "duration_ms", *FIGURES]
    try:
        table = light_table(root, ARTIFACTS, columns, {"run_id": [run_id]})
    except TableMissing:
        return {}
    rows = table.to_pylist(maps_as_pydicts="strict")
    return {row["step_name"]: row for row in rows if row["frame_no"] is None}


def _frames(root: str, run_id: str) -> Iterator[FrameReport]:
    """Return the frames of a run."""
    columns = ["step_name", "frame_no", "frame_name", "duration_ms", "plan_hash", "physical_plan"]
    try:
        rows = light_table(root, ARTIFACTS, columns, {"run_id": [run_id]}).to_pylist()
    except TableMissing:
        return
    by_step: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["frame_no"] is not None:
            by_step.setdefault(row["step_name"], []).append(row)
    for step in _in_step_order(dict.fromkeys(by_step, 0)):
        for row in sorted(by_step[step], key=lambda row: row["frame_no"]):
            operators = len((row["physical_plan"] or "").splitlines())
            yield FrameReport(step, row["frame_name"], row["duration_ms"], row["plan_hash"], operators)


def _redone(root: str, run_id: str) -> dict[str, dict[str, int]]:
    """Count the files that were processed again, by repository and reason."""
    try:
        table = light_table(root, IMPACT, ["repo_id", "reason"], {"run_id": [run_id]})
    except TableMissing:
        return {}
    reasons: dict[str, Counter[str]] = {}
    for row in table.to_pylist():
        reasons.setdefault(row["repo_id"], Counter())[row["reason"]] += 1
    return {repo_id: dict(sorted(counts.items())) for repo_id, counts in sorted(reasons.items())}


def _steps(run: RecordedRun, artifacts: Mapping[str, dict[str, Any]]) -> Iterator[StepReport]:
    """Combine the manifest and the artifacts of each step."""
    # Keys with the suffix time a whole step; the others time its parts.
    times = {step: ms for row in run.rows for step, ms in row.step_ms.items() if not step.endswith("_step")}
    planned = {step: 0 for row in run.rows for step in row.plan_fingerprints}
    for step in _in_step_order({**planned, **times, **dict.fromkeys(artifacts, 0)}):
        rows = [row for row in run.rows if step in row.plan_fingerprints]
        artifact = artifacts.get(step, {})
        skipped = "skipped" if rows and all(_was_skipped(row, step) for row in rows) else None
        yield StepReport(
            step=step,
            status=artifact.get("status", skipped),
            milliseconds=_first_known(artifact.get("duration_ms"), times.get(step)),
            fingerprints={row.repo_id: row.plan_fingerprints[step] for row in rows}
            | (artifact.get("fingerprints") or {}),
            error=artifact.get("error"),
            **{name: artifact.get(name) for name in FIGURES},
        )


def _first_known(*values: int | None) -> int | None:
    """Return the first value that is not None."""
    return next((value for value in values if value is not None), None)


def _pins(run: RecordedRun) -> Iterator[TableVersions]:
    """Return the table versions before and after a run; a failed run has none after it."""
    before = {pin.table_name: pin.version for row in run.rows for pin in row.input_pins}
    after = {pin.table_name: pin for row in run.succeeded for pin in row.output_pins}
    for name in sorted({*before, *after}):
        pin = after.get(name)
        yield TableVersions(name, before.get(name), pin.version if pin else None, pin.rows if pin else None)
