"""What a run has done to its tables: the events of its storage, and at its end their rows.

    observed = Observed()
    store = Tables("lake", settings.tables, record=observed)        # whatever is done with it is kept
    ...
    record_observed(store, "run-7", observed, settings.runtime)     # {"delta_mutations": 31, ...}

Every commit that was attempted is a row of `delta_mutations`, each scan one of `delta_scan_plans`, each
version that was opened or made one of `delta_snapshots`, and the last choice of a table's statistics one of
`stats_decisions`. A table that gets no rows gets no commit. The commits of the record itself, of the manifest
and of the lease are not recorded: they hold no data.

A snapshot is what somebody has read already; what a commit has made of it is in the entries since. No text
holds the value of an option of the storage (`lake.redaction`).

Tests: `tests/unit/lake/test_observations.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from deltalake.exceptions import DeltaError
from msgspec import Struct, structs

from codeanatomy.catalog.spec import Table
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.events import (
    CommitRefused,
    Committed,
    Event,
    GateChecked,
    Scanned,
    StatsDecided,
    TableAltered,
)
from codeanatomy.delta.log.entries import advance_snapshot_info, read_snapshot_info
from codeanatomy.delta.log.jvm_log import SnapshotInfo
from codeanatomy.delta.store import LakeTables
from codeanatomy.delta.store_policy import StorePolicy
from codeanatomy.delta.write.restore import OPERATION as RESTORE
from codeanatomy.delta.write.small import append_small
from codeanatomy.errors import NeedsSpark
from codeanatomy.lake.recorded_queries import RecordedQuery
from codeanatomy.lake.redaction import redactor

SNAPSHOTS, MUTATIONS, SCANS, STATS = (
    "delta_snapshots",
    "delta_mutations",
    "delta_scan_plans",
    "stats_decisions",
)
BUILD = "build"
# Tables that are written at the same time.
WRITERS = 4
# Characters of a row that broke a rule.
SAMPLE = 500

Row = dict[str, Any]


class LoggedEvent(Struct, frozen=True):
    """An event, and when it was told."""

    at: datetime
    event: Event
    # What it was done for.
    purpose: str
    # The run has done it itself.
    is_own: bool = True


class EventLog:
    """The recorder of a run: keeps what it is told, by whichever thread."""

    def __init__(self, purpose: str = BUILD) -> None:
        self._purpose = purpose
        self._seen: list[LoggedEvent] = []
        self._adding = Lock()

    def __call__(self, event: Event) -> None:
        """Keep an event of this run."""
        self.add(event)

    def add(self, event: Event, purpose: str | None = None, at: datetime | None = None) -> None:
        """Keep an event that was for something else, or told before."""
        seen = LoggedEvent(at or datetime.now(UTC), event, purpose or self._purpose, purpose is None)
        with self._adding:
            self._seen.append(seen)

    def refine(self, table: str, version: int, filters: Collection[str], joins: Collection[str]) -> None:
        """The plan that a version was scanned for filters and joins by these columns, besides those told."""
        with self._adding:
            for number, each in enumerate(self._seen):
                event = each.event
                if isinstance(event, Scanned) and (event.table, event.version) == (table, version):
                    self._seen[number] = structs.replace(each, event=_refined(event, filters, joins))

    def seen(self) -> list[LoggedEvent]:
        """All that was told, in its order."""
        with self._adding:
            return list(self._seen)


def _refined(event: Scanned, filters: Collection[str], joins: Collection[str]) -> Scanned:
    return structs.replace(
        event,
        filter_columns=tuple(sorted({*event.filter_columns, *filters})),
        join_columns=tuple(sorted({*event.join_columns, *joins})),
    )


def scan_event(asked: RecordedQuery) -> Scanned:
    """A question that was recorded, as a scan."""
    return Scanned(
        table=asked.table,
        version=asked.version,
        projection=(),
        total_files=asked.total_files,
        candidate_files=asked.candidate_files,
        pushed_filters=asked.pushed_filters,
        filter_columns=asked.filter_columns,
        join_columns=asked.join_columns,
        projected_columns=asked.projected_columns,
        count=asked.count,
    )


def record_events(
    store: LakeTables, run_id: str, observed: EventLog, profile: RuntimeProfile
) -> dict[str, int]:
    """Append what a run has told, and return the rows by table."""
    seen = observed.seen()
    rows = {
        SNAPSHOTS: _snapshots(store, seen, StorePolicy.from_profile(profile).option_hashes()),
        MUTATIONS: _mutations(store, seen),
        SCANS: _scans(store, seen),
        STATS: _stats(seen),
    }
    redact = redactor(profile)
    return append_rows(store, run_id, {name: [redact(row) for row in each] for name, each in rows.items()})


def append_rows(store: LakeTables, run_id: str, rows: Mapping[str, Sequence[Row]]) -> dict[str, int]:
    """Append the events of a run, several tables at a time, and return how many there are of each."""

    def append(name: str) -> None:
        numbered = [{"run_id": run_id, "event_no": number, **row} for number, row in enumerate(rows[name])]
        append_small(store.root, store.table(name), numbered, Commit(run_id))

    names = [name for name, each in rows.items() if each]
    with ThreadPoolExecutor(WRITERS) as pool:
        # One that fails does not keep the others from being written.
        for done in [pool.submit(append, name) for name in names]:
            done.result()
    return {name: len(rows[name]) for name in names}


def _mutations(store: LakeTables, seen: Iterable[LoggedEvent]) -> list[Row]:
    """The commits that were attempted."""
    found: list[Row] = []
    for each in seen:
        event = each.event
        if isinstance(event, Committed) and event.committed:
            found.append(_row(each) | _committed(event))
        elif isinstance(event, CommitRefused) and event.code != NeedsSpark.code:
            found.append(_row(each) | _refused(event))
        elif isinstance(event, TableAltered):
            altered = {"operation": "alter", "constraint_status": "skipped", "attempts": 1}
            found += [_row(each) | altered | {"delta_version": version} for version in _made(event)]
    modes = {table.name: table.schema.schema_mode for table in store.tables}
    return [{**row, "mode": modes[row["table_name"]]} for row in found]


def _committed(event: Committed) -> Row:
    if event.operation == RESTORE:
        # No rows are written, and it is no transaction.
        return {
            "delta_version": event.version,
            "operation": RESTORE,
            "constraint_status": "skipped",
            "attempts": event.attempts,
            "commit_metadata": _metadata(event.metadata),
            "duration_ms": round(1000 * event.seconds),
        }
    return {
        "delta_version": event.version,
        "operation": event.operation,
        "constraint_status": "passed",
        "app_id": event.run_id,
        "app_version": event.sequence,
        "attempts": event.attempts,
        "conflicts": list(event.conflicts),
        "commit_metadata": _metadata(event.metadata),
        "rows": event.rows,
        "files": event.files,
        "bytes": event.size_bytes,
        "metrics": event.metrics,
        "duration_ms": round(1000 * event.seconds),
    }


def _refused(event: CommitRefused) -> Row:
    # Samples begin with the names of the rules that they break.
    samples = {
        name: next((each[:SAMPLE] for each in event.samples if name in each.partition(": ")[0]), None)
        for name in event.violated
    }
    return {
        "operation": event.operation,
        "constraint_status": "violated" if event.violated else "skipped",
        "constraint_violations": [
            {"name": name, "expression": expression, "sample": samples[name]}
            for name, expression in event.violated.items()
        ],
        "error": f"[{event.code}] {event.message}",
        "app_id": event.run_id,
        "app_version": event.sequence,
        "attempts": max(1, len(event.conflicts)),
        "conflicts": list(event.conflicts),
        "duration_ms": round(1000 * event.seconds),
    }


def _metadata(text: str | None) -> dict[str, str]:
    """What a commit says of itself, as texts."""
    made = decode_stamp(text)
    if made is None:
        return {}
    known = {
        "run_id": made.run_id,
        "sequence": str(made.sequence),
        "operation": made.operation,
        "plan_fingerprint": made.plan_fingerprint,
        **{f"inputs.{name}": str(version) for name, version in made.inputs.items()},
    }
    return {name: value for name, value in known.items() if value is not None}


def _scans(store: LakeTables, seen: Iterable[LoggedEvent]) -> list[Row]:
    """The scans, of builds and of others."""
    found = []
    for each in seen:
        event = each.event
        if isinstance(event, Scanned):
            total, candidates = event.total_files, event.candidate_files
            counted = total is not None and candidates is not None
            found.append(
                _row(each)
                | {
                    "delta_version": event.version,
                    "total_files": total if counted else None,
                    "candidate_files": candidates if counted else None,
                    "pruned_files": total - candidates
                    if total is not None and candidates is not None
                    else None,
                    "purpose": each.purpose,
                    "pushed_filters": list(event.pushed_filters),
                    "filter_columns": list(event.filter_columns),
                    "join_columns": list(event.join_columns),
                    "projected_columns": list(event.projected_columns),
                    "projection": _projection(store.table(event.table), event.projection),
                    "scans": event.count,
                }
            )
    return found


def _projection(table: Table, expressions: Sequence[str]) -> dict[str, str]:
    """The expression of each column; none where rows were not projected onto the contract."""
    return dict(zip(table.column_names, expressions, strict=True)) if expressions else {}


def _stats(seen: Iterable[LoggedEvent]) -> list[Row]:
    """The last choice for each table."""
    last: dict[str, Row] = {}
    for each in seen:
        event = each.event
        if isinstance(event, StatsDecided):
            last[event.table] = _row(each) | {
                "policy": event.stats_policy,
                "stats_columns": list(event.stats_columns),
                "lineage_columns": list(event.lineage_columns),
                "reasons": event.reasons,
                "dropped_columns": list(event.dropped_columns),
            }
    return list(last.values())


def _snapshots(store: LakeTables, seen: Iterable[LoggedEvent], options: dict[str, str]) -> list[Row]:
    """The versions that were opened or made, each once; what others say they have read need not be there."""
    first: dict[tuple[str, int], LoggedEvent] = {}
    known: dict[tuple[str, int], SnapshotInfo] = {}
    for each in (one for one in seen if one.is_own):
        for version in _versions(each.event):
            first.setdefault((each.event.table, version), each)
        if isinstance(each.event, GateChecked) and each.event.snapshot is not None:
            known[each.event.table, each.event.version] = each.event.snapshot
    rows = []
    for (name, version), each in sorted(first.items(), key=lambda item: item[1].at):
        info = _described(store, name, version, known)
        if info is not None:
            known[name, version] = info
            rows.append(_row(each) | _snapshot(info) | {"storage_options": options})
    return rows


def _versions(event: Event) -> Iterable[int]:
    """The versions that an event has opened or made."""
    if isinstance(event, TableAltered):
        return _made(event)
    if isinstance(event, GateChecked | Scanned) or (isinstance(event, Committed) and event.committed):
        return (event.version,)
    return ()


def _made(event: TableAltered) -> range:
    return range(event.from_version + 1, event.version + 1)


def _described(
    store: LakeTables, name: str, version: int, known: Mapping[tuple[str, int], SnapshotInfo]
) -> SnapshotInfo | None:
    """A version as somebody has read it, as the entries since have made it, or as the log says."""
    if (name, version) in known:
        return known[name, version]
    before = max((number for table, number in known if table == name and number < version), default=None)
    if before is not None:
        # Entries may be gone, or not be files at all.
        with suppress(OSError):
            return advance_snapshot_info(known[name, before], version)
    # Nobody can open it any more: there is nothing to say of it.
    with suppress(DeltaError, OSError, ValueError):
        return read_snapshot_info(store.location(name), version)
    return None


def _snapshot(info: SnapshotInfo) -> Row:
    return {
        "delta_version": info.version,
        "committed_at": datetime.fromtimestamp(info.timestamp_ms / 1000, UTC) if info.timestamp_ms else None,
        "min_reader_version": info.min_reader_version,
        "min_writer_version": info.min_writer_version,
        "reader_features": list(info.reader_features),
        "writer_features": list(info.writer_features),
        "partition_columns": list(info.partition_columns),
        "properties": info.properties,
        "schema_json": info.schema_json,
    }


def _row(each: LoggedEvent) -> Row:
    """What all rows begin with."""
    return {"event_time": each.at, "table_name": each.event.table}
