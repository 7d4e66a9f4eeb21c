"""Pieces that several tables share: columns, spans, and the constraints that go with them.

>>> [column.name for column in (*FILE, *span("name", "the name"))]
['repo_id', 'file_id', 'path', 'file_sha256', 'name_bstart', 'name_bend']
>>> one_of("status", "succeeded", "failed").expression
"status IN ('succeeded', 'failed')"

Two bases of lines exist, told apart by name: `line_no` counts from 0 and is for joins, `line` counts from
1 and is for people. Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import (
    MB,
    Column,
    Constraint,
    DeltaMaintenancePolicy,
    DeltaWritePolicy,
    ForeignKey,
    WriterProperties,
)

REPO_ID = Column("repo_id", "string", "The repository the row belongs to.", False, "RepoId")
FILE_ID = Column("file_id", "string", "The file the row is about, and its owner.", False, "FileId")
PATH = Column("path", "string", "Path of that file below the repository's root.", False, "Path")
FILE_SHA256 = Column("file_sha256", "string", "Digest of the raw bytes it was made from.", False, "Sha256")
# Where a row comes from: with the digest in tables made from bytes, without it in those made from tables.
PLACE = (REPO_ID, FILE_ID, PATH)
PLACE_NAMES = tuple(column.name for column in PLACE)
FILE = (*PLACE, FILE_SHA256)

WITNESS_VERSION = Column(
    "witness_version",
    "string",
    "Library, grammar and Python that spoke; another value makes the row stale.",
    False,
)
RUN_ID = Column("run_id", "string", "The run or command that wrote the row.", False, "RunId")
LINE = Column("line", "int", "Line of the first byte, counted from 1.", semantic_type="LineNo1")

# Files of a row group: a refresh reads what the witnesses said of single files.
FILE_ROWS = 32
# Layout of a witness that writes one row per file.
PER_FILE = DeltaWritePolicy(
    target_file_size=128 * MB,
    zorder_by=("file_id", "path"),
    stats_policy="explicit",
    stats_columns=("file_id", "path"),
    writer=WriterProperties(row_group_rows=FILE_ROWS),
)

# It is large, nested, and read by file: put in order again when nobody writes to it.
WHEN_QUIET = DeltaMaintenancePolicy(z_order_when="after_partition_complete")

# Layout of what is kept of each file for the next build, and read as a whole.
KEPT_BY_FILE = DeltaWritePolicy(
    target_file_size=128 * MB,
    zorder_by=("file_id",),
    stats_policy="explicit",
    stats_columns=("file_id",),
)

# Of tables that are read as a whole, or whose rows come in the order of time and stay in it.
NO_ZORDER = DeltaMaintenancePolicy(z_order_when="never")

FILE_KEY = ForeignKey(("file_id",), "repo_files_v1", ("file_id",))
OWNER_KEY = ForeignKey(("owner_file_id",), "repo_files_v1", ("file_id",))

SPAN_ORDERED = Constraint(
    "span_ordered",
    "(bstart IS NULL AND bend IS NULL) OR (bstart >= 0 AND bend >= bstart)",
    "A span is whole or absent, and does not end before it begins.",
)


def span(prefix: str = "", of: str = "the row's place", *, nullable: bool = True) -> tuple[Column, Column]:
    """The two columns of a half-open byte range `[bstart, bend)`."""
    lead = f"{prefix}_" if prefix else ""
    first = f"First byte of {of}, as offset in the canonical UTF-8 text."
    last = f"Offset after the last byte of {of}."
    return (
        Column(f"{lead}bstart", "bigint", first, nullable, "BytePos"),
        Column(f"{lead}bend", "bigint", last, nullable, "BytePos"),
    )


def strings(name: str, doc: str) -> Column:
    """A list of strings."""
    return Column(name, "string", doc, array=True)


def structs(name: str, doc: str, *fields: Column) -> Column:
    """A list of structs: the nested rows of a file."""
    return Column(name, "struct", doc, array=True, fields=fields)


def one_of(column: str, *values: str, nullable: bool = False) -> Constraint:
    """The column holds one of a closed list of values."""
    listed = ", ".join(f"'{value}'" for value in values)
    absent = f"{column} IS NULL OR " if nullable else ""
    return Constraint(
        f"{column}_known", f"{absent}{column} IN ({listed})", f"`{column}` is from a closed list."
    )


SEVERITIES = ("error", "warning", "info", "hint")
ERROR_FIELDS = (
    Column("severity", "string", "error, warning, info or hint."),
    Column("stage", "string", "What the witness was doing, such as parse, compile or convert."),
    Column("error_type", "string", "Class or code of the problem, such as SyntaxError."),
    Column("message", "string", "What the witness said."),
    Column("col", "int", "Bytes between the start of the line and the place, counted from 0."),
    *span(of="the place it points at"),
    LINE,
)
ERRORS = structs("errors", "Errors and warnings of this witness.", *ERROR_FIELDS)
