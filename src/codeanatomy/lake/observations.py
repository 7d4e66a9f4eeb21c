"""Collect the storage events of a run, and append them to the observation tables at its end.

    log = EventLog()
    store = LakeTables("lake", settings.tables, record=log)         # reads and writes add events to the log
    ...
    record_events(store, "run-7", log, settings.runtime)            # {"delta_mutations": 31, ...}

Every attempted commit is a row of `delta_mutations`, each scan a row of `delta_scan_plans`, and each version
that was opened or made a row of `delta_snapshots`. Tables without new rows get no commit. Commits of these
tables, of the manifest and of the lease are not recorded.

Snapshots come from the gate checks; versions after them are derived from the log entries in between. No text
contains the value of a storage option (`redactor`).

Tests: `tests/unit/lake/test_observations.py`, `tests/spark/test_observations.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, structs

from codeanatomy.config import SECRET, SECRET_INSIDE, RuntimeProfile
from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.events import (
    CommitRefused,
    Committed,
    Event,
    GateChecked,
    Scanned,
    TableAltered,
)
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.log.versions import read_snapshot_info
from codeanatomy.delta.store_policy import StorePolicy
from codeanatomy.delta.write.restore import OPERATION as RESTORE
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import CodeAnatomyError, NeedsSpark
from codeanatomy.lake.recorded_queries import RecordedQuery, RecordedQuestion

SNAPSHOTS, MUTATIONS, SCANS = "delta_snapshots", "delta_mutations", "delta_scan_plans"
QUESTIONS = "questions"
BUILD = "build"
# Tables that are written concurrently.
WRITERS = 4
# Characters kept of a sample row.
SAMPLE_CHARS = 500

HIDDEN = "***"
# Values of at least this length do not occur in other texts by chance.
LONG = 8
# Credentials inside a longer value: after a `=`, or before the `@` of a URL.
INSIDE = re.compile(r"=([^\s=;,&]+)|://([^/\s@]+)@")

Row = dict[str, Any]


class LoggedEvent(Struct, frozen=True):
    """An event with its time and purpose."""

    at: datetime
    event: Event
    # Such as `build`, or the command of a recorded query.
    purpose: str
    # False: an event of another process, such as a recorded query.
    is_own: bool = True


class EventLog:
    """The recorder of a run: collects events from all threads."""

    def __init__(self) -> None:
        # In order; threads append, which needs no lock.
        self.events: list[LoggedEvent] = []

    def __call__(self, event: Event) -> None:
        """Add an event of this run."""
        self.events.append(LoggedEvent(datetime.now(UTC), event, BUILD))

    def add(self, query: RecordedQuery) -> None:
        """Add the scan of a query that another process has recorded."""
        fields = {name: each for name, each in structs.asdict(query).items() if name not in ("at", "purpose")}
        scan = Scanned(projection=(), **fields)
        self.events.append(LoggedEvent(query.at, scan, query.purpose, is_own=False))


def record_events(
    store: LakeTables,
    run_id: str,
    event_log: EventLog,
    profile: RuntimeProfile,
    questions: Sequence[RecordedQuestion] = (),
) -> dict[str, int]:
    """Append the events of a run, and questions of readers, and return the number of rows by table."""
    events = list(event_log.events)
    rows = {
        SNAPSHOTS: _snapshots(store, events, StorePolicy.from_profile(profile).option_hashes()),
        MUTATIONS: _mutations(store, events),
        SCANS: _scans(store, events),
        QUESTIONS: [
            {"event_time": each.at, "read_run_id": each.run_id}
            | _fields(each, "verb", "seconds", "files", "bytes", "rows")
            for each in questions
        ],
    }
    redact = redactor(profile)
    return append_rows(store, run_id, {name: [redact(row) for row in each] for name, each in rows.items()})


def append_rows(store: LakeTables, run_id: str, rows: Mapping[str, Sequence[Row]]) -> dict[str, int]:
    """Append rows to several tables concurrently, and return the number of rows by table."""

    def append(name: str) -> None:
        numbered = [{"run_id": run_id, "event_no": number, **row} for number, row in enumerate(rows[name])]
        append_small(store.root, store.table(name), numbered, Commit(run_id))

    names = [name for name, each in rows.items() if each]
    with ThreadPoolExecutor(WRITERS) as pool:
        # All are submitted first: a failure does not prevent the other appends.
        for done in [pool.submit(append, name) for name in names]:
            done.result()
    return {name: len(rows[name]) for name in names}


def _common_columns(each: LoggedEvent) -> Row:
    return {"event_time": each.at, "table_name": each.event.table}


def _fields(value: Struct, *names: str) -> Row:
    """Return fields that are columns of the same name."""
    fields = {name: getattr(value, name) for name in names}
    return {name: list(each) if isinstance(each, tuple) else each for name, each in fields.items()}


def _mutations(store: LakeTables, events: Iterable[LoggedEvent]) -> list[Row]:
    """Return a row per attempted commit."""
    modes = {table.name: table.schema.schema_mode for table in store.tables}
    rows: list[Row] = []
    for each in events:
        event, made = each.event, list[Row]()
        if isinstance(event, Committed) and event.committed:
            made = [_committed(event)]
        elif isinstance(event, CommitRefused) and event.code != NeedsSpark.code:
            made = [_refused(event)]
        elif isinstance(event, TableAltered):
            altered = {"operation": "alter", "constraint_status": "skipped", "attempts": 1}
            made = [altered | {"delta_version": version} for version in _versions(event)]
        rows += [_common_columns(each) | row | {"mode": modes[event.table]} for row in made]
    return rows


def _committed(event: Committed) -> Row:
    row = {
        **_fields(event, "operation", "attempts"),
        "delta_version": event.version,
        "constraint_status": "skipped",
        "commit_metadata": _metadata(event.metadata),
        "duration_ms": round(1000 * event.seconds),
    }
    if event.operation == RESTORE:
        # A restore writes no rows and is not a transaction.
        return row
    return row | {
        **_fields(event, "conflicts", "rows", "files", "metrics"),
        "constraint_status": "passed",
        "app_id": event.run_id,
        "app_version": event.sequence,
        "bytes": event.size_bytes,
    }


def _refused(event: CommitRefused) -> Row:
    # Samples begin with the names of the rules that they violate.
    samples = {
        name: next((each[:SAMPLE_CHARS] for each in event.samples if name in each.partition(": ")[0]), None)
        for name in event.violated
    }
    return {
        **_fields(event, "operation", "conflicts"),
        "constraint_status": "violated" if event.violated else "skipped",
        "constraint_violations": [
            {"name": name, "expression": expression, "sample": samples[name]}
            for name, expression in event.violated.items()
        ],
        "error": f"[{event.code}] {event.message}",
        "app_id": event.run_id,
        "app_version": event.sequence,
        "attempts": max(1, len(event.conflicts)),
        "duration_ms": round(1000 * event.seconds),
    }


def _metadata(text: str | None) -> dict[str, str]:
    """Return the user metadata of a commit as a map of strings."""
    stamp = decode_stamp(text)
    if stamp is None:
        return {}
    fields = structs.asdict(stamp)
    fields |= {f"inputs.{name}": version for name, version in fields.pop("inputs").items()}
    return {name: str(value) for name, value in fields.items() if value is not None}


def _scans(store: LakeTables, events: Iterable[LoggedEvent]) -> list[Row]:
    """Return a row per scan, of the run and of recorded queries."""
    rows = []
    lists = ("pushed_filters", "filter_columns", "join_columns", "projected_columns")
    for each in events:
        event = each.event
        if not isinstance(event, Scanned):
            continue
        row = _common_columns(each) | _fields(event, *lists)
        row |= {"delta_version": event.version, "purpose": each.purpose, "scans": event.count}
        if event.total_files is not None and event.candidate_files is not None:
            row |= _fields(event, "total_files", "candidate_files")
            row["pruned_files"] = event.total_files - event.candidate_files
        # The expression of each column, if the rows were projected onto the contract.
        names = store.table(event.table).column_names if event.projection else ()
        row["projection"] = dict(zip(names, event.projection, strict=True))
        rows.append(row)
    return rows


def _snapshots(store: LakeTables, events: Iterable[LoggedEvent], options: dict[str, str]) -> list[Row]:
    """Return a row per version that the run opened or made; versions of other processes may not exist."""
    first: dict[tuple[str, int], LoggedEvent] = {}
    known: dict[tuple[str, int], SnapshotInfo] = {}
    for each in (one for one in events if one.is_own):
        for version in _versions(each.event):
            first.setdefault((each.event.table, version), each)
        if isinstance(each.event, GateChecked) and each.event.snapshot is not None:
            known[each.event.table, each.event.version] = each.event.snapshot
    rows = []
    for (name, version), each in sorted(first.items(), key=lambda item: item[1].at):
        info = known.get((name, version))
        # No row if the version cannot be opened any more.
        with suppress(CodeAnatomyError, OSError, ValueError):
            info = info or read_snapshot_info(store.location(name), version)
        if info is not None:
            rows.append(_common_columns(each) | _snapshot(info) | {"storage_options": options})
    return rows


def _versions(event: Event) -> Iterable[int]:
    """Return the versions that an event has opened or made."""
    if isinstance(event, TableAltered):
        return range(event.from_version + 1, event.version + 1)
    if isinstance(event, GateChecked | Scanned) or (isinstance(event, Committed) and event.committed):
        return (event.version,)
    return ()


def _snapshot(info: SnapshotInfo) -> Row:
    committed = datetime.fromtimestamp(info.timestamp_ms / 1000, UTC) if info.timestamp_ms else None
    features = ("min_reader_version", "min_writer_version", "reader_features", "writer_features")
    return {
        "delta_version": info.version,
        "committed_at": committed,
        **_fields(info, *features, "partition_columns", "properties", "schema_json"),
    }


def redactor(profile: RuntimeProfile) -> Callable[[Any], Any]:
    """Return a function that hides storage options and secrets in all strings of a nested value.

    Secrets are hidden whatever their length, and also the parts of them after a `=` or before the `@` of a
    URL. Of other storage options only long values are hidden: otherwise every `true` would be.

    >>> options = {"fs.s3a.secret.key": "hush", "fs.s3a.path.style.access": "true"}
    >>> redactor(RuntimeProfile(storage_options=options))({"error": "403 for hush", "path style": "true"})
    {'error': '403 for ***', 'path style': 'true'}
    """
    # The longest first: one may contain another.
    hidden = sorted({value for value in _values(profile) if value}, key=lambda value: (-len(value), value))
    if not hidden:
        return lambda value: value
    pattern = re.compile("|".join(map(re.escape, hidden)))

    def redact(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(HIDDEN, value)
        if isinstance(value, dict):
            return {redact(name): redact(part) for name, part in value.items()}
        return [redact(part) for part in value] if isinstance(value, list | tuple) else value

    return redact


def _values(profile: RuntimeProfile) -> Iterator[str]:
    """Yield the values that must not be recorded."""
    policy = StorePolicy.from_profile(profile)
    stored = {**policy.storage_options, **policy.log_store_options}
    yield from (value for value in stored.values() if len(value) >= LONG)
    for name, value in {**profile.spark, **profile.delta, **stored}.items():
        if SECRET.search(name):
            yield value
        if SECRET_INSIDE.search(value):
            yield value
            yield from (part for groups in INSIDE.findall(value) for part in groups)
