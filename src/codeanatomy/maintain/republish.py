"""A published run again, with its tables at other versions: what maintenance and restores publish.

    publish_again(root, lake, Republished("run-9", "maintenance", started, {"cpg_nodes": 12}), after=7)

The rows of the manifest are copies of those that a snapshot stands on, so the next build finds the steps as
they were done, and an answer the failures of the run that has read the files. Only the versions are new.

Tests: `tests/unit/maintain/test_maintenance.py`, `tests/unit/maintain/test_restore.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct, structs

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.lake.manifest import InputPin, Mode, OutputPin, RunManifest, append_manifest, output_pin
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan.steps import EXTRACT


class Republished(Struct, frozen=True):
    """A run that publishes what was published before."""

    run_id: str
    mode: Mode
    started: datetime
    # The tables whose versions are new.
    versions: Mapping[str, int]
    # What was published when it began, if that is not what is published again.
    published_at: datetime | None = None
    step_ms: Mapping[str, int] = {}


def publish_again(root: str, lake: Snapshot, run: Republished, *, after: int) -> None:
    """Append the rows of a snapshot to the manifest, which must be at a version still."""
    # Runs are in the order of time, and clocks may be set back.
    earliest = max(run.started, (run.published_at or lake.published_at) + timedelta(microseconds=1))
    finished = max(datetime.now(UTC), earliest)
    pins = {name: _pin(root, pin, run.versions.get(name)) for name, pin in lake.pins.items()}
    rows = [_row(row, run, finished, lake, pins) for row in lake.repositories.values()]
    append_manifest(root, rows, Commit(run.run_id), after=after)


def _pin(root: str, known: OutputPin, version: int | None) -> OutputPin:
    if version is None or version == known.version:
        return known
    return output_pin(root, known.table_name, version)


def _row(
    row: RunManifest, run: Republished, finished: datetime, lake: Snapshot, pins: Mapping[str, OutputPin]
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
        # Else the run that has read the files would be taken for this one.
        artifact_ids={EXTRACT: f"{row.extract_run_id}/{EXTRACT}", **row.artifact_ids},
        step_ms=dict(run.step_ms),
        trace_id=None,
    )
