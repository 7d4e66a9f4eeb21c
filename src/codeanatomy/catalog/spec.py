"""Define the struct types that table literals are written in: columns, keys, constraints, policies.

A table is one literal of these types. DDL, write options, row checks, documentation and the run plan
are computed from it, so a column list is written down exactly once.

>>> policy = DeltaWritePolicy(zorder_by=("file_id",), target_file_size=64 * MB)
>>> Table("marks_v1", "extract", "One row per file.", (
...     Column("file_id", "string", "The owning file.", nullable=False, semantic_type="FileId"),
...     Column("marks", "struct", "Marks in the file.", array=True, fields=(
...         Column("bstart", "bigint", "First byte."), )),
... ), primary_key=("file_id",), write=policy).column("marks").ddl
'array<struct<bstart:bigint>>'

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, json

from codeanatomy.errors import UnknownName

MB = 1024 * 1024

ColumnType = Literal[
    "string",
    "int",
    "bigint",
    "double",
    "boolean",
    "binary",
    "timestamp",
    "struct",
    "map<string,string>",
    "map<string,bigint>",
]
# Types with min/max statistics in Delta, and therefore the only ones that Z-order accepts.
ORDERED_TYPES: tuple[ColumnType, ...] = ("string", "int", "bigint", "double", "timestamp")
Stage = Literal["extract", "normalize", "relate", "graph", "meta", "observe"]
StatsPolicy = Literal["off", "explicit", "auto"]
SchemaMode = Literal["merge"]
ColumnMappingMode = Literal["id", "name"]
ZOrderWhen = Literal["never", "periodic", "after_partition_complete"]
Compression = Literal["zstd", "snappy", "gzip", "uncompressed"]
FeatureName = Literal[
    "change_data_feed",
    "deletion_vectors",
    "row_tracking",
    "in_commit_timestamps",
    "column_mapping",
    "v2_checkpoints",
]


class Column(Struct, frozen=True, omit_defaults=True):
    """A column, or a field inside a nested one."""

    name: str
    type: ColumnType
    # Meaning of the value; a position names its unit and whether it counts from 0 or 1.
    doc: str
    nullable: bool = True
    # Name of an entry of SEMANTIC_TYPES; columns may be joined only if their semantic types agree.
    semantic_type: str | None = None
    # Value that readers get where the stored table or the written rows lack the column. For a column that
    # is not nullable it also replaces nulls in rows written before the column was added.
    default: str | int | float | bool | None = None
    # True if the column is a list of `type`.
    array: bool = False
    # Fields of a struct.
    fields: tuple[Column, ...] = ()

    @property
    def ddl(self) -> str:
        """Return the column's type in Spark's DDL syntax."""
        inner = ",".join(f"{field.name}:{field.ddl}" for field in self.fields)
        single = f"struct<{inner}>" if self.type == "struct" else self.type
        return f"array<{single}>" if self.array else single


class DerivedColumn(Struct, frozen=True):
    """A column that is in no data file: readers compute it from stored columns of the row.

    >>> id = Column("id", "string", "Kind and name.", nullable=False)
    >>> DerivedColumn(id, "kind || ';' || name", ("kind", "name")).sql
    "kind || ';' || name AS id"
    """

    column: Column
    # SQL over the inputs, which DuckDB and Spark evaluate to the same value.
    expression: str
    # Stored columns that the expression uses.
    inputs: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The column as an item of a SELECT list."""
        return f"{self.expression} AS {self.column.name}"


class SemanticType(Struct, frozen=True, omit_defaults=True):
    """The meaning of a value, beyond its physical type."""

    name: str
    type: ColumnType
    doc: str
    # SQL condition that every non-null value meets; `{c}` stands for the column.
    check: str | None = None
    # Supertypes: a FileId is also a NodeId, the id of its file's node.
    is_a: tuple[str, ...] = ()


class ForeignKey(Struct, frozen=True):
    """A foreign key: non-null values of `columns` are keys of `table`."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]


class Constraint(Struct, frozen=True):
    """A SQL condition that must be true for every row; null counts as a violation."""

    name: str
    expression: str
    doc: str


class BloomFilter(Struct, frozen=True):
    """A Parquet bloom filter on one column.

    `fpp` is the false-positive rate, `ndv` the largest number of distinct values expected in a row group.
    """

    column: str
    fpp: Annotated[float, Meta(gt=0, lt=1)] = 0.01
    ndv: Annotated[int, Meta(ge=1)] = 1_000_000


class WriterProperties(Struct, frozen=True, omit_defaults=True):
    """Parquet writer settings of a table."""

    bloom_filters: tuple[BloomFilter, ...] = ()
    dictionary: bool = True
    # Columns exempt from dictionary encoding: unique ids gain nothing from it.
    dictionary_off: tuple[str, ...] = ()
    compression: Compression = "zstd"
    # Upper bound of rows per row group. Small groups suit lookups by id, which read one group; None keeps the
    # writer's default, which suits scans.
    row_group_rows: Annotated[int, Meta(ge=1)] | None = None


class DeltaWritePolicy(Struct, frozen=True, omit_defaults=True):
    """Layout of a table: partitions, row order, file size, statistics and protocol features."""

    # Target size of a data file, in bytes.
    target_file_size: Annotated[int, Meta(ge=1)] = 128 * MB
    partition_by: tuple[str, ...] = ()
    # Cluster columns: a write sorts rows by partition columns and these, and so does maintenance.
    zorder_by: tuple[str, ...] = ()
    # Columns with statistics. off: none; explicit: `stats_columns`; auto: cluster columns.
    stats_policy: StatsPolicy = "auto"
    stats_columns: tuple[str, ...] = ()
    stats_max_columns: int = 32
    writer: WriterProperties = WriterProperties()
    # Protocol features, all opt-in.
    enable_features: tuple[FeatureName, ...] = ()


class DeltaSchemaPolicy(Struct, frozen=True, omit_defaults=True):
    """Schema changes that a commit may make where the stored schema differs from the contract."""

    # None: refuse the commit; merge: add missing columns, and replace all columns if no older row stays.
    schema_mode: SchemaMode | None = "merge"
    column_mapping_mode: ColumnMappingMode | None = None


# Capped at a hundred years.
Hours = Annotated[float, Meta(ge=0, le=876_000)]


class DeltaMaintenancePolicy(Struct, frozen=True, omit_defaults=True):
    """Maintenance thresholds of a table; target file size and cluster columns are in DeltaWritePolicy."""

    # Compact a partition that has at least this many files below half of the target size.
    compact_files: Annotated[int, Meta(ge=2)] = 4
    # Rewrite a partition when deletion vectors mark more than this share of its rows as removed.
    compact_deleted: Annotated[float, Meta(gt=0, le=1)] = 0.2
    # Columns of a Z-order of the rows of each repository; empty: maintenance sorts by the cluster columns
    # (`zorder_by`), as writes do.
    z_order_cols: tuple[str, ...] = ()
    # periodic: when `z_order_share` is out of order and `z_order_hours` have passed since the last time;
    # after_partition_complete: the same, but only partitions without a write in the last `complete_hours`.
    z_order_when: ZOrderWhen = "periodic"
    # Minimum size of a partition, in bytes: the order of rows in one small file saves a reader nothing.
    z_order_size: Annotated[int, Meta(ge=0)] = 8 * MB
    # Share of a partition's bytes that must have been written since the last sort or Z-order.
    z_order_share: Annotated[float, Meta(gt=0, le=1)] = 0.3
    z_order_hours: Hours = 24.0
    complete_hours: Hours = 1.0
    # Retention of data files that no current version references, and of log entries.
    vacuum_hours: Hours = 168.0
    log_hours: Hours = 720.0
    # Versions between two checkpoints.
    checkpoint_interval: Annotated[int, Meta(ge=1)] = 10
    # Features that may be enabled later by hand; others would change which engines can read or write.
    optional_features: tuple[FeatureName, ...] = ("deletion_vectors",)


class DeltaFeatureGate(Struct, frozen=True, omit_defaults=True):
    """Protocol versions and features that a table must have before it is read or written."""

    min_reader_version: int | None = None
    min_writer_version: int | None = None
    required_reader_features: tuple[str, ...] = ()
    required_writer_features: tuple[str, ...] = ()


class Table(Struct, frozen=True, omit_defaults=True):
    """Contract of a table: columns, keys, inputs, constraints and policies."""

    name: str
    # Folder in the lake, and package that derives the rows.
    stage: Stage
    doc: str
    columns: tuple[Column, ...]
    # Null is a value like any other in a key.
    primary_key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    # Column with the file whose change invalidates a row; one commit replaces all rows of a set of owners.
    owner: str | None = None
    # Tables it is derived from; they determine the order of the steps.
    inputs: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    write: DeltaWritePolicy = DeltaWritePolicy()
    schema: DeltaSchemaPolicy = DeltaSchemaPolicy()
    gate: DeltaFeatureGate = DeltaFeatureGate()
    upkeep: DeltaMaintenancePolicy = DeltaMaintenancePolicy()
    # Columns of readers only: writers neither store nor check them.
    derived: tuple[DerivedColumn, ...] = ()
    # Increased when the meaning of the rows changes and the columns do not.
    version: int = 1

    @property
    def ordering(self) -> tuple[str, ...]:
        """Sort order of the rows in a file: partition columns, then cluster columns."""
        return tuple(dict.fromkeys((*self.write.partition_by, *self.write.zorder_by)))

    @property
    def sort_keys(self) -> tuple[str, ...]:
        """Columns that order all rows: those of the sort order, then the primary key for ties."""
        return tuple(dict.fromkeys((*self.ordering, *self.primary_key)))

    @property
    def z_order(self) -> tuple[str, ...]:
        """Columns that maintenance sorts or Z-orders a partition by; empty if it does not."""
        chosen = self.upkeep.z_order_cols or self.write.zorder_by
        names = tuple(name for name in chosen if name not in self.write.partition_by)
        return () if self.upkeep.z_order_when == "never" else names

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def readable_columns(self) -> tuple[Column, ...]:
        """Columns that readers have: the stored ones, then the derived ones."""
        return (*self.columns, *(derived.column for derived in self.derived))

    def column(self, name: str) -> Column:
        """Return the stored column called `name`; raise UnknownName, which lists the known columns."""
        for column in self.columns:
            if column.name == name:
                return column
        raise UnknownName(f"column of {self.name}", name, self.column_names)

    @property
    def path(self) -> str:
        """Path of the table relative to the lake's root."""
        return f"{self.stage}/{self.name}"


def contract_json(table: Table) -> bytes:
    """Encode the table as canonical JSON: its contract, for comparison and hashing."""
    return json.encode(table, order="deterministic")
