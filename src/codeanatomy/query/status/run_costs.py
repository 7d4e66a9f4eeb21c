"""Measure what runs have cost: seconds by step, rows and bytes, by run and by table.

    costs = run_costs("lake", limit=40)
    costs.rows[0].step_ms                     # {"extract": 28005, "relate": 12272, "graph": 30906}
    table_costs("lake", costs.rows[0].summary.run_id)["cpg_edges"].bytes

Times of steps come from the manifest, which every run has; bytes come from `plan_artifacts` and the costs of
tables from `delta_mutations`, which a run that was killed has not written: such figures are None or missing.

Tests: `tests/unit/query/test_run_costs.py`.
"""

from __future__ import annotations

from msgspec import Struct

from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import TableMissing
from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.query.status.activity import STEP_SUFFIX
from codeanatomy.query.status.run_reports import ARTIFACTS, RunSummary, summarize_run

COMMITS = "delta_mutations"
COMMIT_COLUMNS = ("table_name", "delta_version", "attempts", "rows", "files", "bytes", "duration_ms")


class RunCost(Struct, frozen=True):
    """A run with the durations of its steps and the bytes that they wrote."""

    summary: RunSummary
    # By step, in execution order; the rest of its seconds is for starting, listing files and recording.
    step_ms: dict[str, int]
    # None if unknown.
    bytes: int | None


class RunCosts(Struct, frozen=True):
    """Some runs, newest first, and the total."""

    rows: tuple[RunCost, ...]
    total: int


class TableCost(Struct, frozen=True):
    """What the commits of a run to a table have written, and how long they took."""

    commits: int
    # More than the commits if some were repeated because of another writer.
    attempts: int
    rows: int
    files: int
    bytes: int
    milliseconds: int


def run_costs(root: str, limit: int, skip: int = 0) -> RunCosts:
    """Return the costs of at most `limit` runs, newest first, after the `skip` newest."""
    recorded = recorded_runs(root)
    shown = recorded[::-1][skip : skip + limit]
    written = _written_bytes(root, [run.run_id for run in shown])
    rows = []
    for run in shown:
        times = {
            name.removesuffix(STEP_SUFFIX): milliseconds
            for row in run.rows
            for name, milliseconds in row.step_ms.items()
            if name.endswith(STEP_SUFFIX)
        }
        rows.append(RunCost(summarize_run(run), times, written.get(run.run_id)))
    return RunCosts(tuple(rows), len(recorded))


def _written_bytes(root: str, run_ids: list[str]) -> dict[str, int]:
    try:
        table = light_table(root, ARTIFACTS, ["run_id", "bytes"], {"run_id": run_ids})
    except TableMissing:
        return {}
    totals: dict[str, int] = {}
    for row in table.to_pylist():
        if row["bytes"] is not None:
            totals[row["run_id"]] = totals.get(row["run_id"], 0) + row["bytes"]
    return totals


def table_costs(root: str, run_id: str) -> dict[str, TableCost]:
    """Return the costs of a run by table, without commits that failed."""
    try:
        table = light_table(root, COMMITS, ["run_id", *COMMIT_COLUMNS], {"run_id": [run_id]})
    except TableMissing:
        return {}
    commits: dict[str, list[dict[str, int | None]]] = {}
    for row in table.to_pylist():
        if row["delta_version"] is not None:
            commits.setdefault(row["table_name"], []).append(row)
    return {
        name: TableCost(
            len(rows),
            *(
                sum(row[column] or 0 for row in rows)
                for column in ("attempts", "rows", "files", "bytes", "duration_ms")
            ),
        )
        for name, rows in sorted(commits.items())
    }
