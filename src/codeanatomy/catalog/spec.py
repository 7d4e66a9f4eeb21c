"""What a table of the system is: frozen structs, and nothing that runs.

A table is one literal of these types. DDL, write options, checks, documentation and the run plan
are computed from it, so a column list is written down exactly once.

>>> policy = DeltaWritePolicy(zorder_by=("file_id",), target_file_size=64 * MB)
>>> Table("things", "extract", "One row per thing.", (
...     Column("file_id", "string", "The owning file.", nullable=False, semantic_type="FileId"),
...     Column("marks", "struct", "What was seen.", array=True, fields=(
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
# Delta keeps minima and maxima of these only, and Z-order needs an order.
ORDERED_TYPES: tuple[ColumnType, ...] = ("string", "int", "bigint", "double", "timestamp")
Stage = Literal["extract", "normalize", "relate", "graph", "meta", "observe"]
StatsPolicy = Literal["off", "explicit", "auto"]
SchemaMode = Literal["merge", "overwrite"]
ColumnMappingMode = Literal["id", "name"]
CachePolicy = Literal["none", "memory", "delta_staging"]
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
    # What the value means, with unit and base where it is a position.
    doc: str
    nullable: bool = True
    # Name of an entry of SEMANTIC_TYPES; two columns may be joined only if theirs agree.
    semantic_type: str | None = None
    # What a reader sees where the stored table or the written rows lack the column; where the column
    # may not be null, also in rows from before it was added.
    default: str | int | float | bool | None = None
    # True: the column is a list of `type`.
    array: bool = False
    # Fields of a struct.
    fields: tuple[Column, ...] = ()

    @property
    def ddl(self) -> str:
        """The column's type as Spark spells it."""
        inner = ",".join(f"{field.name}:{field.ddl}" for field in self.fields)
        single = f"struct<{inner}>" if self.type == "struct" else self.type
        return f"array<{single}>" if self.array else single


class SemanticType(Struct, frozen=True, omit_defaults=True):
    """The meaning of a value, beyond its physical type."""

    name: str
    type: ColumnType
    doc: str
    # SQL condition that every non-null value meets; `{c}` stands for the column.
    check: str | None = None
    # Types that a value of this one also is: a FileId is the NodeId of its file node.
    is_a: tuple[str, ...] = ()


class ForeignKey(Struct, frozen=True):
    """Columns whose values, where not null, are keys of another table."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]


class Constraint(Struct, frozen=True):
    """A SQL condition that must be true of every row; null counts as broken."""

    name: str
    expression: str
    doc: str


class BloomFilter(Struct, frozen=True):
    """A Parquet bloom filter on one column.

    `fpp` is the rate of false positives, `ndv` the most distinct values a row group is expected to have.
    """

    column: str
    fpp: Annotated[float, Meta(gt=0, lt=1)] = 0.01
    ndv: Annotated[int, Meta(ge=1)] = 1_000_000


class WriterProperties(Struct, frozen=True, omit_defaults=True):
    """How the Parquet files of a table are written."""

    bloom_filters: tuple[BloomFilter, ...] = ()
    dictionary: bool = True
    # Columns without a dictionary although the others have one: unique ids gain nothing from it.
    dictionary_off: tuple[str, ...] = ()
    compression: Compression = "zstd"
    # Rows of a row group at most: who looks up an id reads one. Else they are as large as is good for scans.
    row_group_rows: Annotated[int, Meta(ge=1)] | None = None


class DeltaWritePolicy(Struct, frozen=True, omit_defaults=True):
    """Layout of a table: where rows go, in which order, with which statistics and features."""

    # Bytes a data file should have.
    target_file_size: Annotated[int, Meta(ge=1)] = 128 * MB
    partition_by: tuple[str, ...] = ()
    # Cluster columns: rows are sorted by partition + these on write, Z-ordered in maintenance.
    zorder_by: tuple[str, ...] = ()
    # off: none; explicit: `stats_columns`; auto: partition + cluster + lineage columns.
    stats_policy: StatsPolicy = "auto"
    stats_columns: tuple[str, ...] = ()
    stats_max_columns: int = 32
    writer: WriterProperties = WriterProperties()
    # Protocol features, all opt-in.
    enable_features: tuple[FeatureName, ...] = ()


class DeltaSchemaPolicy(Struct, frozen=True, omit_defaults=True):
    """What a commit may do to a stored schema that differs from the contract."""

    # None: refuse; merge: add missing columns; overwrite: an overwrite replaces the schema.
    schema_mode: SchemaMode | None = "merge"
    column_mapping_mode: ColumnMappingMode | None = None


# At most a hundred years.
Hours = Annotated[float, Meta(ge=0, le=876_000)]


class DeltaMaintenancePolicy(Struct, frozen=True, omit_defaults=True):
    """How a table is kept small, ordered and readable; file size and cluster columns are the layout's."""

    # Files of a partition that are below half of the target size, from which on they are made into one.
    compact_files: Annotated[int, Meta(ge=2)] = 4
    # Of the rows of a partition the share that deletion vectors may remove before it is written anew.
    compact_deleted: Annotated[float, Meta(gt=0, le=1)] = 0.2
    # Columns of the Z-order; none are those the rows are clustered by.
    z_order_cols: tuple[str, ...] = ()
    # periodic: when enough is out of order, and the last time is long enough ago; after_partition_complete:
    # the same of partitions that nobody has written to for a while.
    z_order_when: ZOrderWhen = "periodic"
    # A partition below this size is one small file, whose order spares a reader nothing.
    z_order_size: Annotated[int, Meta(ge=0)] = 8 * MB
    # Of the bytes of a partition the share that was written since, which is enough.
    z_order_share: Annotated[float, Meta(gt=0, le=1)] = 0.3
    z_order_hours: Hours = 24.0
    complete_hours: Hours = 1.0
    # Data files that no version needs any more, and the log before it, are kept for so long.
    vacuum_hours: Hours = 168.0
    log_hours: Hours = 720.0
    # Versions between two checkpoints.
    checkpoint_interval: Annotated[int, Meta(ge=1)] = 10
    # Features that the table may be given by hand; others change what reads or writes it.
    optional_features: tuple[FeatureName, ...] = ("deletion_vectors",)


class DeltaFeatureGate(Struct, frozen=True, omit_defaults=True):
    """What a table's protocol must offer before it is read or written."""

    min_reader_version: int | None = None
    min_writer_version: int | None = None
    required_reader_features: tuple[str, ...] = ()
    required_writer_features: tuple[str, ...] = ()


class UsedColumn(Struct, frozen=True):
    """A column that plans or questions filter or join by."""

    name: str
    # Who does, in words.
    reason: str


class Table(Struct, frozen=True, omit_defaults=True):
    """Everything the system knows about one table."""

    name: str
    # The folder of the lake it lives in, and the package that derives it.
    stage: Stage
    doc: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    # The file whose change invalidates a row; rows of a set of owners are replaced in one commit.
    owner: str | None = None
    # Tables it is derived from: they give the order of a run.
    inputs: tuple[str, ...] = ()
    # Tables of other stages that get rows on the way, after their own have been written.
    adds_to: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    write: DeltaWritePolicy = DeltaWritePolicy()
    schema: DeltaSchemaPolicy = DeltaSchemaPolicy()
    gate: DeltaFeatureGate = DeltaFeatureGate()
    upkeep: DeltaMaintenancePolicy = DeltaMaintenancePolicy()
    # How the frame that its rows come from is kept while they are committed; of a stage the strongest counts.
    cache: CachePolicy = "none"
    # Raised when the meaning of the rows changes although the columns do not.
    version: int = 1
    # What a run has found out of its lake, the most useful first: for statistics whose policy is auto. None:
    # nobody has looked, so those count that the stored table names.
    lineage: tuple[UsedColumn, ...] | None = None

    @property
    def ordering(self) -> tuple[str, ...]:
        """Order of the rows inside a file: partition columns, then cluster columns."""
        return tuple(dict.fromkeys((*self.write.partition_by, *self.write.zorder_by)))

    @property
    def z_order(self) -> tuple[str, ...]:
        """The columns that maintenance orders the rows of a partition by; none where it does not."""
        wanted = self.upkeep.z_order_cols or self.write.zorder_by
        named = tuple(name for name in wanted if name not in self.write.partition_by)
        return () if self.upkeep.z_order_when == "never" else named

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of that name, or an error that lists what exists."""
        for column in self.columns:
            if column.name == name:
                return column
        raise UnknownName(f"column of {self.name}", name, self.column_names)

    @property
    def path(self) -> str:
        """Where the table is below the lake's root."""
        return f"{self.stage}/{self.name}"


def contract_json(table: Table) -> bytes:
    """The table as canonical JSON: its contract, to be compared and hashed."""
    return json.encode(table, order="deterministic")
