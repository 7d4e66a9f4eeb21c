"""A copy of what a run has published, that needs nothing of the lake it comes from. No JVM.

    report = export_snapshot("lake", Path("/backup/lake"), as_of="20260501T12", form="delta")
    Snapshot.open("/backup/lake").run_id       # the same run: every question has the same answer there

As `delta` the copy is a lake: its tables at version 0, and a manifest with the rows of that state. Any Delta
reader opens the tables, and a build goes on from there. As `parquet` it is a folder of Parquet files for each
table, all columns in them, and a `manifest.json` that tells what they are.

All versions are looked at first. Files are never changed once they are written, so a build may go on
meanwhile; if maintenance removes one of them, there is no copy. What is written is beside the target until
all of it is there. Tests: `tests/unit/maintain/test_snapshot_export.py`.
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
from codeanatomy.delta.read.duck import local_path
from codeanatomy.delta.read.readable import require_readable
from codeanatomy.delta.write.small import refuse_unwritable
from codeanatomy.errors import StorageFailure, UsageError
from codeanatomy.lake.manifest import RunManifest, append_manifest, output_pin
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain.table_copies import CopiedTable, copied_bytes, copy_table, write_parquet

CopyForm: TypeAlias = Literal["delta", "parquet"]
# Of what is in a folder of Parquet files.
MANIFEST, VERSION = "manifest.json", 1


class CopyReport(Struct, frozen=True):
    """What was copied."""

    lake: str
    target: str
    form: CopyForm
    run_id: str
    repositories: tuple[str, ...]
    tables: tuple[CopiedTable, ...]
    size_bytes: int
    seconds: float


class CopiedRepository(Struct, frozen=True):
    """A repository of a copy, as `manifest.json` has it."""

    repo_id: str
    # The run that has built it.
    run_id: str
    git_commit: str | None
    source_digest: str | None


class CopiedColumn(Struct, frozen=True):
    """A column of a table, as `manifest.json` has it; the type is Arrow's."""

    name: str
    type: str
    nullable: bool


class CopiedFiles(Struct, frozen=True):
    """A table, as `manifest.json` has it."""

    table: str
    folder: str
    # Of the table in the lake.
    version: int
    rows: int | None
    files: int
    columns: tuple[CopiedColumn, ...]


class CopyManifest(Struct, frozen=True):
    """What `manifest.json` tells of a folder of Parquet files."""

    format_version: int
    run_id: str
    published_at: datetime
    repositories: tuple[CopiedRepository, ...]
    tables: tuple[CopiedFiles, ...]


class _Teller:
    """Says how much of a copy there is."""

    def __init__(self, tell: Callable[[str], None], tables: int, size: int) -> None:
        self._tell, self._tables, self._size = tell, tables, size
        self.done = 0
        self._bytes = 0

    def __call__(self, files: int, size: int) -> None:
        self._bytes += size
        told = f"{self.done:,}/{self._tables:,} tables, {files:,} files of the next"
        self._tell(f"{told}, {self._bytes / MB:,.1f}/{self._size / MB:,.1f} MB")


def export_snapshot(
    root: str,
    target: Path,
    *,
    as_of: str | None = None,
    form: CopyForm = "delta",
    repo_id: str | None = None,
    tell: Callable[[str], None] = lambda said: None,
) -> CopyReport:
    """Copy a published state, of all repositories or of one, into a folder that is not there yet or empty."""
    began = time.monotonic()
    lake = Snapshot.open(local_path(root), as_of)
    rows = lake.select_repositories(repo_id)
    _refuse_target(lake.root, target)
    # A table that the catalogue had once is left alone.
    known = {table.name for table in catalog.TABLES}
    pins = {name: pin.version for name, pin in sorted(lake.pins.items()) if name in known}
    for name, version in pins.items():
        require_readable(lake.root, name, version)
    size = sum(copied_bytes(lake.root, name, version) for name, version in pins.items())
    with atomic_folder(target) as folder:
        if repo_id is None:
            _refuse_full(folder, size)
        teller = _Teller(tell, len(pins), size)
        made = (_as_delta if form == "delta" else _as_parquet)(lake, pins, rows, folder, repo_id, teller)
    return CopyReport(
        root,
        str(target),
        form,
        lake.run_id,
        tuple(rows),
        tuple(made),
        sum(each.size_bytes for each in made),
        round(time.monotonic() - began, 3),
    )


def _as_delta(
    lake: Snapshot,
    pins: dict[str, int],
    rows: dict[str, RunManifest],
    folder: Path,
    repo_id: str | None,
    teller: _Teller,
) -> list[CopiedTable]:
    made = []
    for name, version in pins.items():
        with _there(lake.root, name, version):
            made.append(
                copy_table(
                    lake.root,
                    str(folder),
                    catalog.table(name),
                    version,
                    Commit(lake.run_id),
                    repo_id=repo_id,
                    tell=teller,
                )
            )
        teller.done += 1
    fresh = tuple(output_pin(str(folder), each.table, 0) for each in made)
    # Where the runs began is in the other lake.
    copies = [
        structs.replace(row, output_pins=fresh, input_pins=(), change_windows=()) for row in rows.values()
    ]
    append_manifest(str(folder), copies, Commit(lake.run_id), after=-1)
    return made


def _as_parquet(
    lake: Snapshot,
    pins: dict[str, int],
    rows: dict[str, RunManifest],
    folder: Path,
    repo_id: str | None,
    teller: _Teller,
) -> list[CopiedTable]:
    made, told = [], []
    for name, version in pins.items():
        with _there(lake.root, name, version):
            found, schema = write_parquet(
                lake.root, folder / name, catalog.table(name), version, repo_id=repo_id, tell=teller
            )
        made.append(found)
        told.append(CopiedFiles(name, name, version, found.rows, found.files, _columns(schema)))
        teller.done += 1
    manifest = CopyManifest(
        VERSION,
        lake.run_id,
        lake.published_at,
        tuple(
            CopiedRepository(row.repo_id, row.run_id, row.git_commit, row.source_digest)
            for row in rows.values()
        ),
        tuple(told),
    )
    (folder / MANIFEST).write_bytes(json.format(json.encode(manifest), indent=2))
    return made


def _columns(schema: pa.Schema) -> tuple[CopiedColumn, ...]:
    return tuple(CopiedColumn(field.name, str(field.type), field.nullable) for field in schema)


@contextmanager
def _there(root: str, name: str, version: int) -> Iterator[None]:
    """A file that is gone by now makes the version one that cannot be read."""
    try:
        yield
    except FileNotFoundError:
        require_readable(root, name, version)
        raise


def _refuse_target(root: str, target: Path) -> None:
    refuse_unwritable(str(target))
    if target.resolve().is_relative_to(Path(root).resolve()):
        raise UsageError(f"{target} is in the lake that is copied", "name a folder outside of it")


def _refuse_full(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StorageFailure(
            f"the copy takes {size / MB:,.1f} MB, and {free / MB:,.1f} MB are free",
            "name a place with enough room",
        )
