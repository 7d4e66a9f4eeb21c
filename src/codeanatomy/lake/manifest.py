"""The manifest: what every run of a lake has done, and so what a reader opens.

    read_manifest("lake")[-1].output_pins[0]       # OutputPin("ast_files_v1", 3, rows=18, ...)

The last commit of a run appends a row for each repository it has built. A repository that failed has a row
too, with the reason and without pins; its older snapshot stays the published one.

Tests: `tests/unit/lake/test_manifest.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from msgspec import Struct, ValidationError, convert, to_builtins

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.duck import local_path, lookup_connection, select_rows, translate_errors
from codeanatomy.delta.read.light import light_files, light_table, newest_version, table_facts
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import ContractError, TableMissing

TABLE = "run_manifest"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Status = Literal["succeeded", "failed", "cancelled"]
# What kind of work has made the versions that a run pins.
Mode = Literal["full", "incremental", "maintenance", "restore"]


class InputPin(Struct, frozen=True):
    """A version of a table that a run began with."""

    table_name: str
    version: int


class OutputPin(Struct, frozen=True):
    """A version of a table that a reader of the run opens."""

    table_name: str
    version: int
    # Of the whole table, all repositories together.
    rows: int | None = None
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    features: tuple[str, ...] = ()


class ChangeWindow(Struct, frozen=True):
    """Versions of a change feed that a run has consumed, first and last."""

    table_name: str
    from_version: int
    to_version: int


class RunManifest(Struct, frozen=True, kw_only=True):
    """A run and a repository that it has built, as the row of the manifest."""

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
    catalog_hash: str | None = None
    witness_versions: dict[str, str] = {}
    # By step; of a step that was skipped, those of the run that did it.
    plan_fingerprints: dict[str, str] = {}
    # The same without the source: where they are equal, a step can be refreshed.
    rule_fingerprints: dict[str, str] = {}
    input_pins: tuple[InputPin, ...] = ()
    # Of every table of the lake, whoever wrote it.
    output_pins: tuple[OutputPin, ...] = ()
    row_counts: dict[str, int] = {}
    change_windows: tuple[ChangeWindow, ...] = ()
    artifact_ids: dict[str, str] = {}
    error_counts: dict[str, int] = {}
    step_ms: dict[str, int] = {}
    trace_id: str | None = None

    @property
    def extract_run_id(self) -> str:
        """The run that has read the files: this one, or one before that it builds on."""
        run_id, _, _ = self.artifact_ids.get("extract", "").rpartition("/")
        return run_id or self.run_id


def read_manifest(root: str) -> list[RunManifest]:
    """All rows, in the order in which the runs began; none where no run has ended."""
    try:
        rows = _rows(root)
    except TableMissing:
        return []
    try:
        found = [convert(_present(row), RunManifest) for row in rows]
    except ValidationError as problem:
        raise ContractError(
            f"{TABLE} of {root} is of another version of this program: {problem}", "build into a new lake"
        ) from problem
    return sorted(found, key=lambda row: (row.started_at, row.run_id))


def _rows(root: str) -> list[dict[str, Any]]:
    names = catalog.table(TABLE).column_names
    if not is_local(root):
        far: list[dict[str, Any]] = light_table(root, TABLE, names).to_pylist(maps_as_pydicts="strict")
        return far
    files = light_files(root, TABLE)
    # As numbers, since for times DuckDB imports pytz, which takes as long as all of this.
    times = [column.name for column in catalog.table(TABLE).columns if column.type == "timestamp"]
    numbers = ", ".join(f"epoch_us({name}) AS {name}" for name in times)
    with translate_errors(), lookup_connection() as found:
        answer = found.execute(f"SELECT * REPLACE ({numbers}) FROM ({select_rows(local_path(root), TABLE, files)})")
        rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    for row in rows:
        row |= {name: EPOCH + timedelta(microseconds=row[name]) for name in times if row[name] is not None}
    return rows


def _present(value: Any) -> Any:
    """Without what is null, at every depth: it has a default."""
    if isinstance(value, dict):
        return {name: _present(part) for name, part in value.items() if part is not None}
    return [_present(part) for part in value] if isinstance(value, list) else value


def output_pin(root: str, name: str, version: int) -> OutputPin:
    """A version of a table, with what its log says of it."""
    facts = table_facts(root, name, version)
    return OutputPin(
        name, version, facts.rows, facts.min_reader_version, facts.min_writer_version, facts.features
    )


def manifest_version(root: str) -> int:
    """The version of the manifest; -1 where no run has ended."""
    try:
        return newest_version(root, TABLE)
    except TableMissing:
        return -1


def append_manifest(root: str, rows: Sequence[RunManifest], commit: Commit, *, after: int | None) -> int:
    """Add the rows of a run if the manifest is at version `after` still: this publishes the run."""
    # Here, since readers of the manifest do without what writes it.
    from codeanatomy.delta.write.small import append_small

    cells = [to_builtins(row, builtin_types=(datetime,)) for row in rows]
    return append_small(root, catalog.table(TABLE), cells, commit, after=after)
