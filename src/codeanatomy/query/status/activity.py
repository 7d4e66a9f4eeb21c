"""Summarize the last runs: slow steps, table growth, commit retries, pruning, questions, maintenance.

    observation = observe("lake", last=10)
    observation.steps[0]          # StepCost("relate", runs=10, ..., slowest_ms=4200, slowest_run="2026...")
    observe("lake", last=10, topic="pruning").pruning[0].pruned_files

Step times and row counts come from the manifest, which every run has; the other topics come from the tables
of `lake.observations` and of maintenance, and are empty in lakes that are older than those tables. No JVM.

Tests: `tests/unit/lake/test_observations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median_low
from typing import Any, Literal

from msgspec import Struct, structs

from codeanatomy.delta.read.light import TableFacts, light_table, table_facts
from codeanatomy.errors import StorageFailure, TableMissing
from codeanatomy.lake.snapshot import RecordedRun, recorded_runs

Topic = Literal["steps", "growth", "retries", "violations", "pruning", "questions", "maintenance"]
TOPICS: tuple[Topic, ...] = (
    "steps",
    "growth",
    "retries",
    "violations",
    "pruning",
    "questions",
    "maintenance",
)
# Suffix of the keys in the manifest that time a whole step.
STEP_SUFFIX = "_step"
Row = dict[str, Any]


class StepCost(Struct, frozen=True):
    """Duration and cost of a step over the runs that executed it."""

    step: str
    runs: int
    failed: int
    last_ms: int
    median_ms: int
    slowest_ms: int
    slowest_run: str
    # Maximum over the runs; None if not measured.
    skew: float | None
    spilled_bytes: int | None


class TableWrites(Struct, frozen=True):
    """What a run wrote to a table, and the table's row count after it."""

    run_id: str
    # None if the run published nothing, or the rows were not counted.
    rows: int | None
    commits: int
    rows_written: int
    files_written: int
    bytes_written: int


class TableGrowth(Struct, frozen=True):
    """The size of a table, and how the runs have changed it."""

    table: str
    # Of the published version.
    rows: int | None
    files: int | None
    bytes: int | None
    # Since the first of the runs; None if the table did not exist or was not counted.
    rows_added: int | None
    # By all of the runs.
    bytes_written: int
    runs: tuple[TableWrites, ...]


class RetriedCommit(Struct, frozen=True):
    """A commit that was retried, or given up because of a conflicting commit."""

    run_id: str
    table: str
    operation: str
    attempts: int
    conflicts: tuple[str, ...]
    # None if it was given up.
    version: int | None


class ViolatedConstraint(Struct, frozen=True):
    """A constraint that rows of a failed commit violated."""

    run_id: str
    table: str
    operation: str
    rule: str
    condition: str | None
    sample: str | None


class ScanPruning(Struct, frozen=True):
    """Files read and skipped by scans of a table for one purpose."""

    table: str
    purpose: str
    scans: int
    # Scans whose files were counted; the figures below are theirs.
    counted: int
    total_files: int
    candidate_files: int
    pruned_files: int


class QuestionCost(Struct, frozen=True):
    """Recorded questions by one verb; files and bytes are those of the last one."""

    verb: str
    questions: int
    median_ms: int
    slowest_ms: int
    files: int | None
    bytes: int | None
    rows: int


class MaintenanceOperation(Struct, frozen=True):
    """A maintenance operation."""

    run_id: str
    at: datetime
    table: str
    operation: str
    outcome: str
    reason: str
    files_added: int | None
    files_removed: int | None
    bytes_added: int | None
    bytes_removed: int | None
    milliseconds: int | None


class Observation(Struct, frozen=True, kw_only=True):
    """The lines of all topics, or of the requested one; the worst, or the newest, first."""

    # Ids of the summarized runs, the newest first.
    runs: tuple[str, ...]
    steps: tuple[StepCost, ...] = ()
    growth: tuple[TableGrowth, ...] = ()
    retries: tuple[RetriedCommit, ...] = ()
    violations: tuple[ViolatedConstraint, ...] = ()
    pruning: tuple[ScanPruning, ...] = ()
    questions: tuple[QuestionCost, ...] = ()
    maintenance: tuple[MaintenanceOperation, ...] = ()
    # Number of lines left out, by topic.
    cut: dict[str, int] = {}


def observe(root: str, last: int, topic: Topic | None = None, limit: int | None = None) -> Observation:
    """Summarize the last runs of a lake by all topics or by one, with at most `limit` lines per topic."""
    runs = recorded_runs(root)[::-1][:last]
    readers: dict[Topic, Callable[[], Sequence[Struct]]] = {
        "steps": lambda: _steps(root, runs),
        "growth": lambda: _growth(root, runs),
        "retries": lambda: _retries(root, runs),
        "violations": lambda: _violations(root, runs),
        "pruning": lambda: _pruning(root, runs),
        "questions": lambda: _questions(root, runs),
        "maintenance": lambda: _maintenance(root, last),
    }
    topics = {name: read() for name, read in readers.items() if topic in (None, name)}
    shown = {name: tuple(lines[:limit]) for name, lines in topics.items()}
    cut: dict[str, int] = {
        name: left for name, lines in topics.items() if (left := len(lines) - len(shown[name]))
    }
    return structs.replace(
        Observation(runs=tuple(run.run_id for run in runs), cut=cut),
        **shown,
    )


def _steps(root: str, runs: Sequence[RecordedRun]) -> list[StepCost]:
    """Return the costs of steps, the slowest first."""
    times: dict[str, list[tuple[int, str]]] = {}
    for run in runs:
        for name, milliseconds in run.rows[0].step_ms.items():
            if name.endswith(STEP_SUFFIX):
                times.setdefault(name.removesuffix(STEP_SUFFIX), []).append((milliseconds, run.run_id))
    columns = ["step_name", "frame_no", "status", "skew", "spilled_bytes"]
    recorded = _recorded(root, "plan_artifacts", columns, runs)
    costs: dict[str, list[Row]] = {}
    for row in (each for each in recorded if each["frame_no"] is None):
        costs.setdefault(row["step_name"], []).append(row)
    lines = []
    for step, durations in times.items():
        slowest, slowest_run = max(durations, key=lambda each: each[0])
        rows = costs.get(step, [])
        lines.append(
            StepCost(
                step,
                len(durations),
                sum(row["status"] == "failed" for row in rows),
                durations[0][0],
                median_low(milliseconds for milliseconds, _ in durations),
                slowest,
                slowest_run,
                max((row["skew"] for row in rows if row["skew"] is not None), default=None),
                max((row["spilled_bytes"] for row in rows if row["spilled_bytes"] is not None), default=None),
            )
        )
    return sorted(lines, key=lambda line: (-line.slowest_ms, line.step))


def _growth(root: str, runs: Sequence[RecordedRun]) -> list[TableGrowth]:
    """Return the growth of tables, the largest first."""
    columns = ["table_name", "delta_version", "rows", "files", "bytes"]
    commits: dict[tuple[str, str], list[Row]] = {}
    for row in _recorded(root, "delta_mutations", columns, runs):
        if row["delta_version"] is not None:
            commits.setdefault((row["run_id"], row["table_name"]), []).append(row)
    pinned = {
        run.run_id: {pin.table_name: pin for pin in run.succeeded[0].output_pins}
        for run in runs
        if run.succeeded
    }
    names = dict.fromkeys(
        [*(name for pins in pinned.values() for name in pins), *(name for _, name in commits)]
    )
    lines = []
    for name in names:
        written = []
        for run in runs:
            pin, of_run = pinned.get(run.run_id, {}).get(name), commits.get((run.run_id, name), [])
            if pin is not None or of_run:
                sums = (sum(row[column] or 0 for row in of_run) for column in ("rows", "files", "bytes"))
                written.append(TableWrites(run.run_id, None if pin is None else pin.rows, len(of_run), *sums))
        counts = [each.rows for each in written if each.run_id in pinned]
        now, first = (counts[0], counts[-1]) if counts else (None, None)
        newest = next((pins[name].version for pins in pinned.values() if name in pins), None)
        facts = None if newest is None else _version_facts(root, name, newest)
        lines.append(
            TableGrowth(
                name,
                now,
                None if facts is None else facts.files,
                None if facts is None else facts.size_bytes,
                None if now is None or first is None else now - first,
                sum(each.bytes_written for each in written),
                tuple(written),
            )
        )
    return sorted(lines, key=lambda line: (-(line.bytes or 0), line.table))


def _version_facts(root: str, name: str, version: int) -> TableFacts | None:
    """Return the facts of a table version from the log; None if the version was removed."""
    try:
        return table_facts(root, name, version)
    except (StorageFailure, TableMissing):
        return None


def _retries(root: str, runs: Sequence[RecordedRun]) -> list[RetriedCommit]:
    """Return retried commits, the newest first."""
    columns = ["table_name", "operation", "attempts", "conflicts", "delta_version", "event_time"]
    rows = _recorded(root, "delta_mutations", columns, runs)
    return [
        RetriedCommit(
            row["run_id"],
            row["table_name"],
            row["operation"],
            row["attempts"],
            tuple(row["conflicts"] or ()),
            row["delta_version"],
        )
        for row in _newest_first(rows)
        if row["attempts"] > 1 or row["conflicts"]
    ]


def _violations(root: str, runs: Sequence[RecordedRun]) -> list[ViolatedConstraint]:
    """Return constraint violations, the newest first."""
    columns = ["table_name", "operation", "constraint_violations", "event_time"]
    rows = _recorded(root, "delta_mutations", columns, runs)
    return [
        ViolatedConstraint(row["run_id"], row["table_name"], row["operation"], *_rule(each))
        for row in _newest_first(rows)
        for each in row["constraint_violations"] or ()
    ]


def _rule(broken: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    return broken["name"], broken["expression"], broken["sample"]


def _pruning(root: str, runs: Sequence[RecordedRun]) -> list[ScanPruning]:
    """Return scans by table and purpose, those that read most files first."""
    columns = ["table_name", "purpose", "total_files", "candidate_files", "scans"]
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in _recorded(root, "delta_scan_plans", columns, runs):
        groups.setdefault((row["table_name"], row["purpose"]), []).append(row)
    lines = []
    for (table, purpose), rows in groups.items():
        counted = [row for row in rows if row["total_files"] is not None]
        scans, known = (sum(row["scans"] or 1 for row in each) for each in (rows, counted))
        total, candidates = (
            sum(row[name] * (row["scans"] or 1) for row in counted)
            for name in ("total_files", "candidate_files")
        )
        lines.append(ScanPruning(table, purpose, scans, known, total, candidates, total - candidates))
    return sorted(lines, key=lambda line: (-line.candidate_files, line.table, line.purpose))


def _questions(root: str, runs: Sequence[RecordedRun]) -> list[QuestionCost]:
    """Return the costs of questions by verb, the slowest first."""
    groups: dict[str, list[Row]] = {}
    columns = ["verb", "seconds", "files", "bytes", "rows", "event_time"]
    for row in _newest_first(_recorded(root, "questions", columns, runs)):
        groups.setdefault(row["verb"], []).append(row)
    lines = []
    for verb, rows in groups.items():
        times = [round(1000 * row["seconds"]) for row in rows]
        figures = (rows[0][name] for name in ("files", "bytes", "rows"))
        lines.append(QuestionCost(verb, len(rows), median_low(times), max(times), *figures))
    return sorted(lines, key=lambda line: (-line.slowest_ms, line.verb))


def _maintenance(root: str, last: int) -> list[MaintenanceOperation]:
    """Return operations of the last maintenance runs, published or not, the newest first."""
    columns = (
        *("run_id", "event_time", "table_name", "operation", "outcome", "reason"),
        *("files_added", "files_removed", "bytes_added", "bytes_removed", "duration_ms"),
    )
    rows = _newest_first(_rows(root, "delta_maintenance", columns))
    runs = list(dict.fromkeys(row["run_id"] for row in rows))[:last]
    return [MaintenanceOperation(*(row[name] for name in columns)) for row in rows if row["run_id"] in runs]


def _newest_first(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["event_time"], reverse=True)


def _recorded(root: str, name: str, columns: Sequence[str], runs: Sequence[RecordedRun]) -> list[Row]:
    """Return the rows of a table that belong to the runs; empty in lakes that are older than the table."""
    return _rows(root, name, ["run_id", *columns], {"run_id": [run.run_id for run in runs]})


def _rows(
    root: str, name: str, columns: Sequence[str], where: Mapping[str, Collection[str]] | None = None
) -> list[Row]:
    try:
        rows: list[Row] = light_table(root, name, columns, where).to_pylist()
    except TableMissing:
        return []
    return rows
