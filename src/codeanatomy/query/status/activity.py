"""What the last runs of a lake did to its tables, in short: what was slow, what grew, what was repeated.

    found = observe("lake", last=10)
    found.steps[0]                # StepCost("relate", runs=10, ..., slowest_ms=4200, slowest_run="2026...")
    observe("lake", last=10, topic="pruning").pruning[0].pruned_files

Times of steps and rows of tables are from the manifest, so they are known of every run; what was recorded by
`lake.observations` and by maintenance is empty where a lake is older than that. No JVM.

Tests: `tests/unit/lake/test_observations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median_low
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from codeanatomy.delta.read.light import TableFacts, light_table, table_facts
from codeanatomy.errors import StorageFailure, TableMissing
from codeanatomy.lake.snapshot import RecordedRun, recorded_runs

if TYPE_CHECKING:
    import pyarrow.compute as pc

Topic = Literal["steps", "growth", "retries", "violations", "pruning", "caches", "maintenance"]
TOPICS: tuple[Topic, ...] = (
    "steps",
    "growth",
    "retries",
    "violations",
    "pruning",
    "caches",
    "maintenance",
)
# How the manifest names the time of a whole step.
WHOLE = "_step"
Row = dict[str, Any]


class StepCost(Struct, frozen=True):
    """What a step took in the runs that did it."""

    step: str
    runs: int
    failed: int
    last_ms: int
    median_ms: int
    slowest_ms: int
    slowest_run: str
    # The worst of the runs; none where nobody has measured.
    skew: float | None
    spilled_bytes: int | None


class Written(Struct, frozen=True):
    """What a run has written to a table, and how many rows that has since."""

    run_id: str
    # None if the run has published nothing, or nobody has counted.
    rows: int | None
    commits: int
    rows_written: int
    files_written: int
    bytes_written: int


class TableGrowth(Struct, frozen=True):
    """A table, and how the runs have changed it."""

    table: str
    # Published now.
    rows: int | None
    files: int | None
    bytes: int | None
    # Since the first of the runs; none where it was not there, or not counted.
    rows_added: int | None
    # Of all runs together.
    bytes_written: int
    runs: tuple[Written, ...]


class Retried(Struct, frozen=True):
    """A commit that had to be tried again, or was given up for another's."""

    run_id: str
    table: str
    operation: str
    attempts: int
    conflicts: tuple[str, ...]
    # None: it was given up.
    version: int | None


class Violated(Struct, frozen=True):
    """A rule that rows broke, so that they were refused."""

    run_id: str
    table: str
    operation: str
    rule: str
    condition: str | None
    sample: str | None


class Pruned(Struct, frozen=True):
    """What scans of a table for one purpose had to read."""

    table: str
    purpose: str
    scans: int
    # Of them, those of which the files were counted; the figures are theirs.
    counted: int
    total_files: int
    candidate_files: int
    pruned_files: int


class CacheUsed(Struct, frozen=True):
    """Uses of a cache boundary."""

    table: str
    policy: str
    uses: int
    hits: int
    # Of the newest.
    size_bytes: int | None


class Maintained(Struct, frozen=True):
    """An operation of maintenance."""

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
    """All topics, or the one that was asked for; the worst, or the newest, first."""

    # That are looked at, the newest first.
    runs: tuple[str, ...]
    steps: tuple[StepCost, ...] = ()
    growth: tuple[TableGrowth, ...] = ()
    retries: tuple[Retried, ...] = ()
    violations: tuple[Violated, ...] = ()
    pruning: tuple[Pruned, ...] = ()
    caches: tuple[CacheUsed, ...] = ()
    maintenance: tuple[Maintained, ...] = ()
    # Lines of a topic that were left out.
    cut: dict[str, int] = {}


def observe(root: str, last: int, topic: Topic | None = None, limit: int | None = None) -> Observation:
    """The last runs of a lake, by all topics or by one, of each so many lines at most."""
    runs = recorded_runs(root)[::-1][:last]
    makers: dict[Topic, Callable[[], Sequence[Struct]]] = {
        "steps": lambda: _steps(root, runs),
        "growth": lambda: _growth(root, runs),
        "retries": lambda: _retries(root, runs),
        "violations": lambda: _violations(root, runs),
        "pruning": lambda: _pruning(root, runs),
        "caches": lambda: _caches(root, runs),
        "maintenance": lambda: _maintenance(root, last),
    }
    found = {name: make() for name, make in makers.items() if topic in (None, name)}
    shown = {name: tuple(lines[:limit]) for name, lines in found.items()}
    cut: dict[str, int] = {
        name: left for name, lines in found.items() if (left := len(lines) - len(shown[name]))
    }
    return structs.replace(
        Observation(runs=tuple(run.run_id for run in runs), cut=cut),
        **shown,
    )


def _steps(root: str, runs: Sequence[RecordedRun]) -> list[StepCost]:
    """The slowest step first."""
    times: dict[str, list[tuple[int, str]]] = {}
    for run in runs:
        for name, milliseconds in run.rows[0].step_ms.items():
            if name.endswith(WHOLE):
                times.setdefault(name.removesuffix(WHOLE), []).append((milliseconds, run.run_id))
    recorded = _recorded(root, "plan_artifacts", ["step_name", "status", "skew", "spilled_bytes"], runs)
    costs: dict[str, list[Row]] = {}
    for row in recorded:
        costs.setdefault(row["step_name"], []).append(row)
    found = []
    for step, taken in times.items():
        slowest, by = max(taken, key=lambda each: each[0])
        rows = costs.get(step, [])
        found.append(
            StepCost(
                step,
                len(taken),
                sum(row["status"] == "failed" for row in rows),
                taken[0][0],
                median_low(milliseconds for milliseconds, _ in taken),
                slowest,
                by,
                max((row["skew"] for row in rows if row["skew"] is not None), default=None),
                max((row["spilled_bytes"] for row in rows if row["spilled_bytes"] is not None), default=None),
            )
        )
    return sorted(found, key=lambda line: (-line.slowest_ms, line.step))


def _growth(root: str, runs: Sequence[RecordedRun]) -> list[TableGrowth]:
    """The largest table first."""
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
    found = []
    for name in names:
        written = []
        for run in runs:
            pin, made = pinned.get(run.run_id, {}).get(name), commits.get((run.run_id, name), [])
            if pin is not None or made:
                sums = (sum(row[what] or 0 for row in made) for what in ("rows", "files", "bytes"))
                written.append(Written(run.run_id, None if pin is None else pin.rows, len(made), *sums))
        counts = [each.rows for each in written if each.run_id in pinned]
        now, first = (counts[0], counts[-1]) if counts else (None, None)
        newest = next((pins[name].version for pins in pinned.values() if name in pins), None)
        facts = None if newest is None else _facts(root, name, newest)
        found.append(
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
    return sorted(found, key=lambda line: (-(line.bytes or 0), line.table))


def _facts(root: str, name: str, version: int) -> TableFacts | None:
    """What the log says of a version, if it is there still."""
    try:
        return table_facts(root, name, version)
    except (StorageFailure, TableMissing):
        return None


def _retries(root: str, runs: Sequence[RecordedRun]) -> list[Retried]:
    """The newest first."""
    columns = ["table_name", "operation", "attempts", "conflicts", "delta_version", "event_time"]
    rows = _recorded(root, "delta_mutations", columns, runs)
    return [
        Retried(
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


def _violations(root: str, runs: Sequence[RecordedRun]) -> list[Violated]:
    """The newest first."""
    columns = ["table_name", "operation", "constraint_violations", "event_time"]
    rows = _recorded(root, "delta_mutations", columns, runs)
    return [
        Violated(row["run_id"], row["table_name"], row["operation"], *_rule(each))
        for row in _newest_first(rows)
        for each in row["constraint_violations"] or ()
    ]


def _rule(broken: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    return broken["name"], broken["expression"], broken["sample"]


def _pruning(root: str, runs: Sequence[RecordedRun]) -> list[Pruned]:
    """Where most is read first."""
    columns = ["table_name", "purpose", "total_files", "candidate_files", "scans"]
    found: dict[tuple[str, str], list[Row]] = {}
    for row in _recorded(root, "delta_scan_plans", columns, runs):
        found.setdefault((row["table_name"], row["purpose"]), []).append(row)
    lines = []
    for (table, purpose), rows in found.items():
        counted = [row for row in rows if row["total_files"] is not None]
        scans, known = (sum(row["scans"] or 1 for row in each) for each in (rows, counted))
        total, candidates = (
            sum(row[name] * (row["scans"] or 1) for row in counted)
            for name in ("total_files", "candidate_files")
        )
        lines.append(Pruned(table, purpose, scans, known, total, candidates, total - candidates))
    return sorted(lines, key=lambda line: (-line.candidate_files, line.table, line.purpose))


def _caches(root: str, runs: Sequence[RecordedRun]) -> list[CacheUsed]:
    """Those that are used most first."""
    columns = ["table_name", "policy", "hit", "size_bytes", "event_time"]
    found: dict[tuple[str, str], list[Row]] = {}
    for row in _newest_first(_recorded(root, "view_cache", columns, runs)):
        found.setdefault((row["table_name"], row["policy"]), []).append(row)
    lines = [
        CacheUsed(*key, len(rows), sum(row["hit"] for row in rows), rows[0]["size_bytes"])
        for key, rows in found.items()
    ]
    return sorted(lines, key=lambda line: (-line.uses, line.table))


def _maintenance(root: str, last: int) -> list[Maintained]:
    """What the last runs of maintenance did, which need not have published anything; the newest first."""
    columns = (
        *("run_id", "event_time", "table_name", "operation", "outcome", "reason"),
        *("files_added", "files_removed", "bytes_added", "bytes_removed", "duration_ms"),
    )
    rows = _newest_first(_rows(root, "delta_maintenance", columns))
    runs = list(dict.fromkeys(row["run_id"] for row in rows))[:last]
    return [Maintained(*(row[name] for name in columns)) for row in rows if row["run_id"] in runs]


def _newest_first(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["event_time"], reverse=True)


def _recorded(root: str, name: str, columns: Sequence[str], runs: Sequence[RecordedRun]) -> list[Row]:
    """What is recorded of some runs; nothing in lakes that are older than the table."""
    # Here: the names of the topics are wanted without it.
    import pyarrow.compute as pc

    wanted = pc.field("run_id").isin([run.run_id for run in runs])
    return _rows(root, name, ["run_id", *columns], wanted)


def _rows(root: str, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> list[Row]:
    try:
        found: list[Row] = light_table(root, name, columns, where).to_pylist()
    except TableMissing:
        return []
    return found
