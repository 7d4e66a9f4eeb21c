"""Index the data files of a table version by partition and statistics, and prune them by a predicate.

    index = open_version(catalog.table("cpg_nodes"), "/lake/graph/cpg_nodes", 23).index
    index.total                                            # 400
    index.candidates(parse_predicate(table, "node_kind = 'CLASS' AND bstart < 400"))     # 3 LoggedFiles

The partition values and column statistics of a file become a `ColumnRange` for each column they cover. They
are stored under the physical column names, which differ from the table's names where columns were renamed
(column mapping). Nothing is known of a column whose stored type differs from the contract, since it is read
through a cast, nor of a column without statistics: that the file lacks the column is only one of the possible
reasons.

A file with missing or unreadable statistics stays a candidate. Tests: `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from msgspec import DecodeError, Struct, ValidationError, json

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.log.deletion_vectors import DeletionVector
from codeanatomy.delta.log.replay import Add, LogState
from codeanatomy.delta.read.column_ranges import (
    ANY_VALUE,
    STORED_TYPES,
    ColumnRange,
    range_from_partition,
    range_from_statistics,
)
from codeanatomy.delta.read.predicate import Predicate

MAPPING = "delta.columnMapping.mode"
PHYSICAL = "delta.columnMapping.physicalName"
# Strings of a column with a collation are not ordered by their characters.
COLLATIONS = "__COLLATIONS"


class LoggedFile(Struct, frozen=True):
    """A Parquet file of a table version, as described in the log."""

    # Relative to the table's folder.
    path: str
    # Includes the rows deleted by the vector.
    rows: int | None
    partition: dict[str, str | None]
    # Only columns with partition values or statistics.
    column_ranges: dict[str, ColumnRange] = {}
    # The deleted rows of the file.
    vector: DeletionVector | None = None
    # The path as spelled in the log.
    logged_path: str = ""
    size_bytes: int = 0

    @property
    def deleted_rows(self) -> int:
        """Return the number of rows deleted by the vector."""
        return 0 if self.vector is None else self.vector.cardinality

    def column_range(self, column: str) -> ColumnRange:
        """Return the range of values of a column."""
        return self.column_ranges.get(column, ANY_VALUE)

    def may_hold(self, column: str, values: Collection[str]) -> bool:
        """Return whether a column may contain one of the values; fast if they are sorted."""
        return self.column_range(column).may_include(sorted(values))


class Statistics(Struct, frozen=True, rename="camel"):
    """The statistics of a file in the log, as far as its writer has recorded them."""

    num_records: Any = None
    min_values: dict[str, Any] = {}
    max_values: dict[str, Any] = {}
    null_count: dict[str, Any] = {}
    tight_bounds: Any = True


NO_STATISTICS = Statistics()
DECODER = json.Decoder(Statistics)


class FileIndex(Struct, frozen=True):
    """The data files of a table version."""

    version: int
    files: tuple[LoggedFile, ...]

    @property
    def total(self) -> int:
        """Return the number of files."""
        return len(self.files)

    def candidates(self, predicate: Predicate) -> list[LoggedFile]:
        """Return the files that may contain rows matching a predicate."""
        return [file for file in self.files if predicate.may_match(file.column_range)]


class _StoredColumn(Struct, frozen=True):
    """A column of the contract and its physical name."""

    column: Column
    # Its name in statistics and partition values.
    name: str


def logged_files(table: Table, state: LogState) -> tuple[LoggedFile, ...]:
    """Return the data files of a version, with the ranges of the contract's columns in them."""
    stored = tuple(_stored_columns(table, state.metadata))
    keys = tuple(_partition_names(state.metadata))
    data = [each for each in stored if each.name not in {physical for _, physical in keys}]
    partition = [each for each in stored if each not in data]
    return tuple(_logged_file(add, keys, partition, data) for add in state.adds.values())


def _logged_file(
    add: Add,
    keys: Iterable[tuple[str, str]],
    partition_columns: Iterable[_StoredColumn],
    data_columns: Iterable[_StoredColumn],
) -> LoggedFile:
    values, stats = add.partition_values, _statistics(add)
    shrunk = add.deletion_vector is not None or stats.tight_bounds is not True
    column_ranges = {
        each.column.name: range_from_partition(each.column, values[each.name])
        for each in partition_columns
        if each.name in values
    }
    for each in data_columns:
        least, greatest = stats.min_values.get(each.name), stats.max_values.get(each.name)
        nulls = stats.null_count.get(each.name)
        if least is not None or greatest is not None or nulls is not None:
            column_ranges[each.column.name] = range_from_statistics(
                each.column, least, greatest, nulls=nulls, rows=stats.num_records, shrunk=shrunk
            )
    return LoggedFile(
        unquote(add.path),
        stats.num_records if type(stats.num_records) is int else None,
        {name: values.get(physical) for name, physical in keys},
        column_ranges,
        add.deletion_vector,
        add.path,
        add.size,
    )


def _statistics(add: Add) -> Statistics:
    try:
        return DECODER.decode(add.stats) if add.stats else NO_STATISTICS
    except (DecodeError, ValidationError):
        return NO_STATISTICS


def _fields(metadata: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the columns of the stored schema: name, physical name, and field definition."""
    mapped = (metadata.get("configuration") or {}).get(MAPPING, "none") != "none"
    for field in json.decode(metadata.get("schemaString") or '{"fields": []}')["fields"]:
        field_metadata = field.get("metadata") or {}
        yield field["name"], field_metadata.get(PHYSICAL, field["name"]) if mapped else field["name"], field


def _stored_columns(table: Table, metadata: dict[str, Any]) -> Iterator[_StoredColumn]:
    """Yield the columns of the contract that are read from the files without a cast."""
    columns = {column.name.lower(): column for column in table.columns}
    for name, physical, field in _fields(metadata):
        column = columns.get(name.lower())
        is_same = column is not None and field["type"] in STORED_TYPES.get(column.ddl, ())
        if column is not None and is_same and COLLATIONS not in (field.get("metadata") or {}):
            yield _StoredColumn(column, physical)


def _partition_names(metadata: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the partition columns: name, and physical name."""
    keys = metadata.get("partitionColumns") or ()
    physical = {name: stored for name, stored, _ in _fields(metadata)}
    return ((key, physical.get(key, key)) for key in keys)
