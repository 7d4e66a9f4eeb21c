"""Commit a few rows without a JVM: the manifest, the lease, the cursors and the events of a run.

    append_small("lake", catalog.table("run_manifest"), [{"run_id": "run-7", ...}], Commit("run-7"), after=4)
    -> 5, or CommitConflict if another writer made version 5

The rows become a data file, which is committed like all others (`delta.write.file_commits`): with the rules
of the table, its gate and its transaction. With `after`, an attempt is for exactly the next version, so the
commit is a compare-and-set. The store must be able to create a file only if it does not exist (a local file
system, or an object store with conditional writes).

Tests: `tests/unit/delta/test_small_rows.py`, `tests/spark/test_small_rows.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa
from deltalake import Schema

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.log.versions import TableVersion
from codeanatomy.delta.read.open_table import UNREADABLE
from codeanatomy.delta.write.commit import PendingCommit, Retry, run_commit
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import FileWriter, Selection
from codeanatomy.delta.write.owner_rows import RemovedRows
from codeanatomy.errors import ContractError, UsageError

Rows = Sequence[Mapping[str, Any]]
# Concurrent appends take milliseconds.
RETRY = Retry(attempts=50, first_seconds=0.05, most_seconds=0.2)


def refuse_unwritable(root: str) -> None:
    """Raise UsageError if the path of a lake has characters that deltalake misinterprets."""
    odd = UNREADABLE.search(root) if "://" not in root else None
    if odd is not None:
        raise UsageError(
            f"the path of a lake must not contain {odd[0]!r}: {root}", "use a folder with another name"
        )


def append_small(root: str, table: Table, rows: Rows, commit: Commit, *, after: int | None = None) -> int:
    """Append rows, and return the version that contains them.

    `after` is the version the table must be at (-1: there is no table), else CommitConflict is raised; if it
    is None, conflicts are retried.
    """
    return _commit(root, table, rows, commit, "append", after, _no_rows)


def overwrite_small(root: str, table: Table, rows: Rows, commit: Commit, *, after: int) -> int:
    """Replace all rows if the table is at version `after`, and return the new version."""
    return _commit(root, table, rows, commit, "overwrite", after, _all_rows)


def _no_rows(version: TableVersion) -> list[RemovedRows]:
    return []


def _all_rows(version: TableVersion) -> list[RemovedRows]:
    return [RemovedRows(file, file.rows or 0, file.rows or 0, None) for file in version.files]


def _commit(
    root: str, table: Table, rows: Rows, commit: Commit, operation: str, after: int | None, select: Selection
) -> int:
    tables = LakeTables(root, (table,))
    writer = RowWriter(tables, table, _to_arrow(table, rows), select)
    with writer:
        return run_commit(PendingCommit(tables, table, operation, commit, writer, RETRY, after=after)).version


class RowWriter(FileWriter):
    """Commit rows that are at hand, as a data file; it is deleted if no entry of the log can name it."""

    def __init__(self, tables: LakeTables, table: Table, rows: pa.Table, select: Selection) -> None:
        super().__init__(tables, table, (), select)
        self._rows = rows
        self._folder = folder_of(tables.location(table.name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.may_be_logged:
            self._folder.delete(file.path for file in self._files)

    def check(self) -> None:
        """Write the file, and refuse rows that violate a rule."""
        self._files = write_files(self._folder.location, self._table, self._rows.to_batches())
        super().check()


def _to_arrow(table: Table, rows: Rows) -> pa.Table:
    """Convert rows to the contract's columns and order."""
    unknown = sorted({name for row in rows for name in row} - set(table.column_names))
    if unknown:
        raise ContractError(
            f"{table.name} has no column {', '.join(unknown)}", "write only columns of the catalogue"
        )
    full = [{column.name: row.get(column.name, column.default) for column in table.columns} for row in rows]
    try:
        data = pa.Table.from_pylist(full, _schema(table))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise ContractError(
            f"rows for {table.name} do not fit its columns: {problem}",
            "fix the code that produces the rows",
        ) from problem
    order = [(name, "ascending") for name in table.ordering]
    return data.sort_by(order) if order else data


def _schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of the table; nulls are found by the rules, with the row in the message."""
    stored = pa.schema(Schema.from_json(spark_schema(table).json()).to_arrow())
    return pa.schema([field.with_nullable(True).remove_metadata() for field in stored])
