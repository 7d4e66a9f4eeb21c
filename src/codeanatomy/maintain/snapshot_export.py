"""Copy a published run to a folder that works without the lake. No JVM.

    report = export_snapshot("lake", Path("/backup/lake"), as_of="20260501T12", form="delta")
    Snapshot.open("/backup/lake").run_id       # the same run: every query has the same answer there

As `delta` the copy is a lake: its tables at version 0, and a manifest with the rows of that state. Any
Delta reader opens the tables, and a build can continue from it. As `parquet` it is a folder of Parquet
files for each table, with all columns, and a `manifest.json` that describes them.

All versions are checked first. Data files never change once written, so a build may run meanwhile; if
maintenance deletes one of them, the copy fails. The copy is written beside the target and moved there when
it is complete. Tests: `tests/unit/maintain/test_snapshot_export.py`, `tests/spark/test_snapshot_export.py`.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa
from msgspec import Struct, json, structs

from codeanatomy import catalog
from codeanatomy.atomic_output import atomic_folder
from codeanatomy.catalog.spec import MB
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.readable import require_readable
from codeanatomy.delta.store_policy import is_local, path_of
from codeanatomy.delta.write.small_rows import refuse_unwritable
from codeanatomy.errors import CodeAnatomyError, StorageFailure, UsageError
from codeanatomy.lake.cursors import Cursors, StepCursor, append_cursors, read_cursors
from codeanatomy.lake.manifest import RunManifest, append_manifest, output_pin
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain.table_copies import CopiedTable, copied_bytes, copy_table, write_parquet
from codeanatomy.plan.feeds import has_changes

CopyForm: TypeAlias = Literal["delta", "parquet"]
# Name and version of the description of a folder of Parquet files.
MANIFEST, VERSION = "manifest.json", 1


class CopyReport(Struct, frozen=True):
    """The result of a copy."""

    lake: str
    target: str
    form: CopyForm
    run_id: str
    repositories: tuple[str, ...]
    tables: tuple[CopiedTable, ...]
    size_bytes: int
    seconds: float


class CopiedRepository(Struct, frozen=True):
    """A repository in `manifest.json`."""

    repo_id: str
    # The run that built it.
    run_id: str
    git_commit: str | None
    source_digest: str | None


class CopiedColumn(Struct, frozen=True):
    """A column of a table in `manifest.json`; the type is Arrow's."""

    name: str
    type: str
    nullable: bool


class CopiedFiles(Struct, frozen=True):
    """A table in `manifest.json`."""

    table: str
    folder: str
    # The version of the table in the lake.
    version: int
    rows: int | None
    files: int
    columns: tuple[CopiedColumn, ...]


class CopyManifest(Struct, frozen=True):
    """The content of `manifest.json`: the origin and the tables of a folder of Parquet files."""

    format_version: int
    run_id: str
    published_at: datetime
    repositories: tuple[CopiedRepository, ...]
    tables: tuple[CopiedFiles, ...]


class _CopyProgress:
    """Report how much is copied."""

    def __init__(self, report: Callable[[str], None], tables: int, size: int) -> None:
        self._report, self._tables, self._size = report, tables, size
        self.done = 0
        self._bytes = 0

    def __call__(self, files: int, size: int) -> None:
        self._bytes += size
        counts = f"{self.done:,}/{self._tables:,} tables, {files:,} files of the next"
        self._report(f"{counts}, {self._bytes / MB:,.1f}/{self._size / MB:,.1f} MB")


def export_snapshot(
    root: str,
    target: Path,
    *,
    as_of: str | None = None,
    form: CopyForm = "delta",
    repo_id: str | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> CopyReport:
    """Copy a published state, of all repositories or of one, into a new or empty folder."""
    began = time.monotonic()
    lake = Snapshot.open(root, as_of)
    rows = lake.select_repositories(repo_id)
    _refuse_target(lake.root, target)
    # Tables that left the catalogue are ignored.
    known = {table.name for table in catalog.TABLES}
    pins = {name: pin.version for name, pin in sorted(lake.pins.items()) if name in known}
    for name, version in pins.items():
        require_readable(lake.root, name, version)
    size = sum(copied_bytes(lake.root, name, version) for name, version in pins.items())
    with atomic_folder(target) as folder:
        if repo_id is None:
            _refuse_small_disk(folder, size)
        progress = _CopyProgress(report, len(pins), size)
        copied = (_copy_as_delta if form == "delta" else _copy_as_parquet)(
            lake, pins, rows, folder, repo_id, progress
        )
    return CopyReport(
        root,
        str(target),
        form,
        lake.run_id,
        tuple(rows),
        tuple(copied),
        sum(each.size_bytes for each in copied),
        round(time.monotonic() - began, 3),
    )


def _copy_as_delta(
    lake: Snapshot,
    pins: dict[str, int],
    rows: dict[str, RunManifest],
    folder: Path,
    repo_id: str | None,
    progress: _CopyProgress,
) -> list[CopiedTable]:
    copied = []
    for name, version in pins.items():
        with _explain_missing_file(lake.root, name, version):
            copied.append(
                copy_table(
                    lake.root,
                    str(folder),
                    catalog.table(name),
                    version,
                    Commit(lake.run_id),
                    repo_id=repo_id,
                    report=progress,
                )
            )
        progress.done += 1
    pinned = tuple(output_pin(str(folder), each.table, 0) for each in copied)
    # The input versions of the runs are versions of the other lake.
    copies = [
        structs.replace(row, output_pins=pinned, input_pins=(), change_windows=()) for row in rows.values()
    ]
    cursors = _copied_cursors(lake, rows, pins)
    for run_id in sorted({row.run_id for row in rows.values()}):
        own = {name: each for name, each in cursors.items() if rows[name].run_id == run_id}
        append_cursors(str(folder), own, Commit(run_id))
    append_manifest(str(folder), copies, Commit(lake.run_id), after=-1)
    return copied


def _copied_cursors(lake: Snapshot, rows: dict[str, RunManifest], pins: dict[str, int]) -> dict[str, Cursors]:
    """Return the cursors of the copy, whose tables are at version 0; not those that were behind."""
    known = read_cursors(lake.root, {name: row.run_id for name, row in rows.items()})
    return {
        name: {
            step: StepCursor(cursor.rules, dict.fromkeys(cursor.versions, 0))
            for step, cursor in cursors.items()
            if _is_up_to_date(lake, name, cursor, pins)
        }
        for name, cursors in known.items()
    }


def _is_up_to_date(lake: Snapshot, repo_id: str, cursor: StepCursor, pins: dict[str, int]) -> bool:
    """Return whether nothing of a repository changed after a cursor."""
    try:
        return not any(has_changes(lake.root, table, repo_id, cursor, pins) for table in cursor.versions)
    except CodeAnatomyError:
        return False


def _copy_as_parquet(
    lake: Snapshot,
    pins: dict[str, int],
    rows: dict[str, RunManifest],
    folder: Path,
    repo_id: str | None,
    progress: _CopyProgress,
) -> list[CopiedTable]:
    copied, described = [], []
    for name, version in pins.items():
        with _explain_missing_file(lake.root, name, version):
            written, schema = write_parquet(
                lake.root, folder / name, catalog.table(name), version, repo_id=repo_id, report=progress
            )
        copied.append(written)
        described.append(CopiedFiles(name, name, version, written.rows, written.files, _columns(schema)))
        progress.done += 1
    manifest = CopyManifest(
        VERSION,
        lake.run_id,
        lake.published_at,
        tuple(
            CopiedRepository(row.repo_id, row.run_id, row.git_commit, row.source_digest)
            for row in rows.values()
        ),
        tuple(described),
    )
    (folder / MANIFEST).write_bytes(json.format(json.encode(manifest), indent=2))
    return copied


def _columns(schema: pa.Schema) -> tuple[CopiedColumn, ...]:
    return tuple(CopiedColumn(field.name, str(field.type), field.nullable) for field in schema)


@contextmanager
def _explain_missing_file(root: str, name: str, version: int) -> Iterator[None]:
    """Raise VersionGone if a data file of the version was deleted meanwhile."""
    try:
        yield
    except FileNotFoundError:
        require_readable(root, name, version)
        raise


def _refuse_target(root: str, target: Path) -> None:
    refuse_unwritable(str(target))
    if is_local(root) and target.resolve().is_relative_to(Path(path_of(root)).resolve()):
        raise UsageError(f"{target} is inside the lake", "give a folder outside of it with --to")


def _refuse_small_disk(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StorageFailure(
            f"the copy takes {size / MB:,.1f} MB, and {free / MB:,.1f} MB are free",
            "give a folder on a disk with more space with --to",
        )
