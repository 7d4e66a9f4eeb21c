"""Publish and read the runs of a lake: one manifest row per run and repository, with the table versions.

    read_manifest("lake")[-1].output_pins[0]       # OutputPin("ast_files_v1", 3, rows=18, ...)

The last commit of a run appends a row for each repository it has built. A repository that failed also has a
row, with the error and without pins; its older snapshot stays published.

Tests: `tests/unit/lake/test_manifest.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from msgspec import Struct, ValidationError, convert, to_builtins

from codeanatomy import catalog
from codeanatomy.config import Engine
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log.folder import forget_listings
from codeanatomy.delta.read.duck import lookup_connection, select_rows, translate_errors
from codeanatomy.delta.read.light import light_files, table_facts
from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.errors import ContractError, StorageFailure, StoreUnavailable, TableMissing
from codeanatomy.lake.engine_facts import EngineFacts, SessionKind

TABLE = "run_manifest"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What to do if the manifest is lost or damaged: without it no row counts as published.
LOST_MANIFEST = (
    "restore meta/run_manifest from a copy, or run `codeanatomy build --full` with all sources of the lake,"
    " which builds it anew"
)

Status = Literal["succeeded", "failed", "cancelled"]
# The kind of work that made the versions which a run pins.
Mode = Literal["full", "incremental", "maintenance", "restore"]


class InputPin(Struct, frozen=True):
    """A table version at the start of a run."""

    table_name: str
    version: int


class OutputPin(Struct, frozen=True):
    """A table version that readers of the run open."""

    table_name: str
    version: int
    # Of the whole table, all repositories together; None if unknown.
    rows: int | None = None
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    features: tuple[str, ...] = ()


class ChangeWindow(Struct, frozen=True):
    """The first and last version of a change feed that a run has consumed."""

    table_name: str
    from_version: int
    to_version: int


class RunManifest(Struct, frozen=True, kw_only=True):
    """A row of the manifest: a run and a repository that it has built."""

    run_id: str
    repo_id: str
    repo_root: str | None = None
    git_commit: str | None = None
    source_digest: str | None = None
    status: Status
    mode: Mode = "full"
    started_at: datetime
    finished_at: datetime
    error: str | None = None
    profile_hash: str
    settings_hash: str | None = None
    # Those that were set, without credentials.
    settings: dict[str, str] = {}
    catalog_hash: str | None = None
    # Version of the recipe of ids; the first one was not recorded.
    id_version: int = 1
    witness_versions: dict[str, str] = {}
    # By step; for a skipped step, those of the run that did it.
    plan_fingerprints: dict[str, str] = {}
    # The same without the sources: if they are equal, a step can be refreshed.
    rule_fingerprints: dict[str, str] = {}
    input_pins: tuple[InputPin, ...] = ()
    # All tables of the lake, also those written by earlier runs.
    output_pins: tuple[OutputPin, ...] = ()
    row_counts: dict[str, int] = {}
    change_windows: tuple[ChangeWindow, ...] = ()
    artifact_ids: dict[str, str] = {}
    error_counts: dict[str, int] = {}
    step_ms: dict[str, int] = {}
    trace_id: str | None = None
    # Where the run was computed (`EngineFacts`); not known of maintenance, restores and older runs.
    engine: Engine | None = None
    master: str | None = None
    session_kind: SessionKind | None = None
    spark_version: str | None = None
    delta_version: str | None = None

    @property
    def engine_facts(self) -> EngineFacts | None:
        """Return the facts of the engine; None if they were not recorded."""
        if self.engine is None:
            return None
        names = EngineFacts.__struct_fields__
        return EngineFacts(**{name: getattr(self, name) for name in names})

    @property
    def extract_run_id(self) -> str:
        """Return the run that extracted the files: this one, or an earlier one on which it builds."""
        run_id, _, _ = self.artifact_ids.get("extract", "").rpartition("/")
        return run_id or self.run_id


def read_manifest(root: str) -> list[RunManifest]:
    """Read all rows, ordered by the start of their run; empty if no run has ended.

    Tables are opened after the manifest is read, so what was listed of them before is not used.
    """
    forget_listings()
    try:
        records = _read_records(root)
    except TableMissing:
        return []
    except StoreUnavailable:
        raise
    except StorageFailure as problem:
        raise StorageFailure(f"{TABLE} of {root} is damaged: {problem.message}", LOST_MANIFEST) from problem
    try:
        rows = [convert(_drop_nulls(record), RunManifest) for record in records]
    except ValidationError as problem:
        raise ContractError(
            f"{TABLE} of {root} was written by another version of this program: {problem}",
            "build into a new lake",
        ) from problem
    return sorted(rows, key=lambda row: (row.started_at, row.run_id))


def _read_records(root: str) -> list[dict[str, Any]]:
    names = catalog.table(TABLE).column_names
    query = select_rows(root, TABLE, light_files(root, TABLE))
    # As numbers: for timestamps DuckDB imports pytz, which takes as long as the whole query.
    times = [column.name for column in catalog.table(TABLE).columns if column.type == "timestamp"]
    numbers = ", ".join(f"epoch_us({name}) AS {name}" for name in times)
    with translate_errors(), lookup_connection() as connection:
        result = connection.execute(f"SELECT * REPLACE ({numbers}) FROM ({query})")
        records = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    for record in records:
        for name in times:
            if record[name] is not None:
                record[name] = EPOCH + timedelta(microseconds=record[name])
    return records


def _drop_nulls(value: Any) -> Any:
    """Drop null fields at every depth: they have a default."""
    if isinstance(value, dict):
        return {name: _drop_nulls(part) for name, part in value.items() if part is not None}
    return [_drop_nulls(part) for part in value] if isinstance(value, list) else value


def output_pin(root: str, name: str, version: int) -> OutputPin:
    """Build the pin of a table version, with row count and protocol from its log."""
    facts = table_facts(root, name, version)
    return OutputPin(
        name, version, facts.rows, facts.min_reader_version, facts.min_writer_version, facts.features
    )


def manifest_version(root: str) -> int:
    """Return the version of the manifest table; -1 if no run has ended."""
    try:
        return newest_version(root, TABLE)
    except TableMissing:
        return -1


def append_manifest(root: str, rows: Sequence[RunManifest], commit: Commit, *, after: int | None) -> int:
    """Publish a run: append its rows if the manifest is still at version `after`."""
    # Imported here: readers of the manifest do not need the writer.
    from codeanatomy.delta.write.small_rows import append_small

    cells = [to_builtins(row, builtin_types=(datetime,)) for row in rows]
    return append_small(root, catalog.table(TABLE), cells, commit, after=after)
