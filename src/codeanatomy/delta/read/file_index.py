"""The data files of a version of a table, and which of them may hold rows that meet a condition.

    index = FileIndex.of(catalog.table("cpg_nodes"), "/lake/graph/cpg_nodes", 23)
    index.total                                            # 400
    index.candidates(parse_predicate(table, "node_kind = 'CLASS' AND bstart < 400"))     # 3 LoggedFiles

What the log says of a file, the values of its partition and the statistics of its columns, becomes a `ColumnRange`
for each column that it says something of. Statistics and partition values are kept under the names that
columns have in the files, which are others than the table's where columns were renamed (column mapping). A
column whose stored type is not that of the contract is read through a cast, so nothing is known of it, and of
a column that a file lacks, neither: that it has no statistics may have other reasons.

Statistics that cannot be read, or are none, keep a file a candidate. Tests: `tests/unit/delta/test_pruning.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from msgspec import DecodeError, Struct, ValidationError, json

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.log.deletion_vectors import DeletionVector
from codeanatomy.delta.log.replay import Add, LogState, replay_log
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
# A text of such a column is not compared by its characters.
COLLATIONS = "__COLLATIONS"


class LoggedFile(Struct, frozen=True):
    """A Parquet file of a version of a table, as the log has it."""

    # Below the table's folder.
    path: str
    # Those that the vector removes are among them.
    rows: int | None
    partition: dict[str, str | None]
    # Of the columns that the log says something of.
    column_ranges: dict[str, ColumnRange] = {}
    # The rows of the file that are not rows of the table.
    vector: DeletionVector | None = None
    # The path as the log spells it.
    logged_path: str = ""
    size_bytes: int = 0

    def column_range(self, column: str) -> ColumnRange:
        """What a column may hold."""
        return self.column_ranges.get(column, ANY_VALUE)

    def may_hold(self, column: str, values: Collection[str]) -> bool:
        """Whether one of the values may be in the column, by what the log says; fast if they are in order."""
        return self.column_range(column).may_include(sorted(values))


class Statistics(Struct, frozen=True, rename="camel"):
    """What a writer has counted in a file, as far as it has."""

    num_records: Any = None
    min_values: dict[str, Any] = {}
    max_values: dict[str, Any] = {}
    null_count: dict[str, Any] = {}
    tight_bounds: Any = True


NO_STATISTICS = Statistics()
DECODER = json.Decoder(Statistics)


class FileIndex(Struct, frozen=True):
    """The files of a version."""

    version: int
    files: tuple[LoggedFile, ...]

    @classmethod
    def of(cls, table: Table, location: str, version: int) -> FileIndex:
        """Read the log of a local table."""
        return cls(version, logged_files(table, replay_log(location, version)))

    @property
    def total(self) -> int:
        """How many files there are."""
        return len(self.files)

    def candidates(self, predicate: Predicate) -> list[LoggedFile]:
        """The files that may hold rows which meet a condition."""
        return [file for file in self.files if predicate.may_match(file.column_range)]


class _Stored(Struct, frozen=True):
    """A column of the contract as files have it."""

    column: Column
    # Its name in the log's statistics and partition values.
    name: str


def logged_files(table: Table, state: LogState) -> tuple[LoggedFile, ...]:
    """The data files of a version, with what the log says of the contract's columns in them."""
    stored = tuple(_stored(table, state.metadata))
    keys = tuple(_partition_names(state.metadata))
    known = [each for each in stored if each.name not in {physical for _, physical in keys}]
    parted = [each for each in stored if each not in known]
    return tuple(_logged(add, keys, parted, known) for add in state.adds.values())


def _logged(
    add: Add, keys: Iterable[tuple[str, str]], parted: Iterable[_Stored], known: Iterable[_Stored]
) -> LoggedFile:
    values, told = add.partition_values, _statistics(add)
    shrunk = add.deletion_vector is not None or told.tight_bounds is not True
    column_ranges = {
        each.column.name: range_from_partition(each.column, values[each.name])
        for each in parted
        if each.name in values
    }
    for each in known:
        least, greatest = told.min_values.get(each.name), told.max_values.get(each.name)
        nulls = told.null_count.get(each.name)
        if least is not None or greatest is not None or nulls is not None:
            column_ranges[each.column.name] = range_from_statistics(
                each.column, least, greatest, nulls=nulls, rows=told.num_records, shrunk=shrunk
            )
    return LoggedFile(
        unquote(add.path),
        told.num_records if type(told.num_records) is int else None,
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
    """The columns of the stored schema: name, name in the files, and what the schema says."""
    mapped = (metadata.get("configuration") or {}).get(MAPPING, "none") != "none"
    for field in json.decode(metadata.get("schemaString") or '{"fields": []}')["fields"]:
        about = field.get("metadata") or {}
        yield field["name"], about.get(PHYSICAL, field["name"]) if mapped else field["name"], field


def _stored(table: Table, metadata: dict[str, Any]) -> Iterator[_Stored]:
    """The columns of the contract whose values are those of the files."""
    columns = {column.name.lower(): column for column in table.columns}
    for name, physical, field in _fields(metadata):
        column = columns.get(name.lower())
        is_same = column is not None and field["type"] in STORED_TYPES.get(column.ddl, ())
        if column is not None and is_same and COLLATIONS not in (field.get("metadata") or {}):
            yield _Stored(column, physical)


def _partition_names(metadata: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The partition columns: name, and name in the log's partition values."""
    keys = metadata.get("partitionColumns") or ()
    physical = {name: stored for name, stored, _ in _fields(metadata)}
    return ((key, physical.get(key, key)) for key in keys)
