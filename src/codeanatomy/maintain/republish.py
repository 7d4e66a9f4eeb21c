"""Publish an earlier state again with its tables at other versions, after maintenance or a restore.

    run = RepublishingRun("run-9", "maintenance", started, {"cpg_nodes": 12})
    republish(root, lake, run, after=7)

The rows of the manifest are copies of those of the snapshot, so the next build sees the steps as done, and an
answer finds the failures of the run that read the files. The versions are new, and with them the cursors of
the steps; those of steps that the next build repeats are left out.

Tests: `tests/unit/maintain/test_maintenance.py`, `tests/unit/maintain/test_restore.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct, structs

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.lake.cursors import append_cursors, moved_cursors, read_cursors
from codeanatomy.lake.manifest import InputPin, Mode, OutputPin, RunManifest, append_manifest, output_pin
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan.steps import EXTRACT


class RepublishingRun(Struct, frozen=True):
    """A run that publishes an earlier state again."""

    run_id: str
    mode: Mode
    started: datetime
    # New versions by table.
    versions: Mapping[str, int]
    # Time of the publication that it replaces, if that is not the republished state.
    published_at: datetime | None = None
    step_ms: Mapping[str, int] = {}
    # Steps that the next build repeats: their tables are not what they have made.
    repeated: tuple[str, ...] = ()


def republish(root: str, lake: Snapshot, run: RepublishingRun, *, after: int) -> None:
    """Append the rows of a snapshot to the manifest; fails unless it is at version `after`."""
    # Runs are ordered by time, and clocks may be set back.
    earliest = max(run.started, (run.published_at or lake.published_at) + timedelta(microseconds=1))
    finished = max(datetime.now(UTC), earliest)
    pins = {name: _pin(root, pin, run.versions.get(name)) for name, pin in lake.pins.items()}
    rows = [_row(row, run, finished, lake, pins) for row in lake.repositories.values()]
    known = read_cursors(root, {name: row.run_id for name, row in lake.repositories.items()})
    before = {name: pin.version for name, pin in lake.pins.items()}
    cursors = {
        name: moved_cursors(
            {step: each for step, each in steps.items() if step not in run.repeated}, before, run.versions
        )
        for name, steps in known.items()
    }
    append_cursors(root, cursors, Commit(run.run_id))
    append_manifest(root, rows, Commit(run.run_id), after=after)


def _pin(root: str, known: OutputPin, version: int | None) -> OutputPin:
    if version is None or version == known.version:
        return known
    return output_pin(root, known.table_name, version)


def _row(
    row: RunManifest, run: RepublishingRun, finished: datetime, lake: Snapshot, pins: Mapping[str, OutputPin]
) -> RunManifest:
    return structs.replace(
        row,
        run_id=run.run_id,
        mode=run.mode,
        started_at=run.started,
        finished_at=finished,
        input_pins=tuple(InputPin(name, pin.version) for name, pin in sorted(lake.pins.items())),
        output_pins=tuple(pins[name] for name in sorted(pins)),
        change_windows=(),
        # Keep the run that read the files: else this run would be taken for it.
        artifact_ids={EXTRACT: f"{row.extract_run_id}/{EXTRACT}", **row.artifact_ids},
        step_ms=dict(run.step_ms),
        trace_id=None,
        # Those of the build that made the rows are in its own row.
        engine=None,
        master=None,
        session_kind=None,
        spark_version=None,
        delta_version=None,
    )
