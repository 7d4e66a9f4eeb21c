"""Define columns, constraints and policies that several tables share.

>>> [column.name for column in (*FILE_COLUMNS_WITH_DIGEST, *span("name", "the name"))]
['repo_id', 'file_id', 'path', 'file_sha256', 'name_bstart', 'name_bend']
>>> one_of("status", "succeeded", "failed").expression
"status IN ('succeeded', 'failed')"

Line numbers have two bases: `line_no` counts from 0 and is used in joins, `line` counts from 1 and is
shown to users. Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import (
    MB,
    Column,
    Constraint,
    DeltaFeatureGate,
    DeltaMaintenancePolicy,
    DeltaWritePolicy,
    FeatureName,
    ForeignKey,
    Stage,
    Table,
    WriterProperties,
)

REPO_ID = Column("repo_id", "string", "Repository of the row.", False, "RepoId")
FILE_ID = Column("file_id", "string", "File the row is derived from, and its owner.", False, "FileId")
PATH = Column("path", "string", "Path of that file, relative to the repository's root.", False, "Path")
FILE_SHA256 = Column("file_sha256", "string", "SHA-256 of the file's raw bytes.", False, "Sha256")
# Columns that identify the file of a row; tables derived from bytes add the digest, others do not.
FILE_COLUMNS = (REPO_ID, FILE_ID, PATH)
FILE_COLUMN_NAMES = tuple(column.name for column in FILE_COLUMNS)
FILE_COLUMNS_WITH_DIGEST = (*FILE_COLUMNS, FILE_SHA256)

WITNESS_VERSION = Column(
    "witness_version",
    "string",
    "Versions of library, grammar and Python that produced the row; a change makes it stale.",
    False,
)
RUN_ID = Column("run_id", "string", "Run or command that wrote the row.", False, "RunId")
LINE = Column("line", "int", "Line of the first byte, counted from 1.", semantic_type="LineNo1")

# Features of tables whose rows are replaced by owner: a refresh marks rows as deleted, and rewrites no file.
BY_OWNER: tuple[FeatureName, ...] = ("deletion_vectors",)
# The same for tables whose change feed a step reads, and what they must therefore have.
FOLLOWED: tuple[FeatureName, ...] = ("change_data_feed", "deletion_vectors")
FEED_GATE = DeltaFeatureGate(required_writer_features=("changeDataFeed",))
# Files per row group: small, because a refresh reads the rows of single files.
ROW_GROUP_FILES = 32
# Layout of the tables of extractors, with one row per file.
ONE_ROW_PER_FILE = DeltaWritePolicy(
    target_file_size=128 * MB,
    zorder_by=("repo_id", "file_id", "path"),
    stats_policy="explicit",
    stats_columns=("repo_id", "file_id", "path"),
    writer=WriterProperties(row_group_rows=ROW_GROUP_FILES),
    enable_features=BY_OWNER,
)

# For large nested tables that are read by file: sort partitions that are no longer written to.
ZORDER_WHEN_IDLE = DeltaMaintenancePolicy(z_order_when="after_partition_complete")

# Layout of per-file state that the next build reads as a whole.
STATE_BY_FILE = DeltaWritePolicy(
    target_file_size=128 * MB,
    zorder_by=("repo_id", "file_id"),
    stats_policy="explicit",
    stats_columns=("repo_id", "file_id"),
    enable_features=BY_OWNER,
)

# For tables that are read as a whole, or whose rows arrive in order of time.
NO_ZORDER = DeltaMaintenancePolicy(z_order_when="never")

FILE_KEY = ForeignKey(("file_id",), "repo_files_v1", ("file_id",))
OWNER_KEY = ForeignKey(("owner_file_id",), "repo_files_v1", ("file_id",))

SPAN_ORDERED = Constraint(
    "span_ordered",
    "(bstart IS NULL AND bend IS NULL) OR (bstart >= 0 AND bend >= bstart)",
    "A span has both ends or none, and does not end before it begins.",
)


def span(
    prefix: str = "", of: str = "the row's source range", *, nullable: bool = True
) -> tuple[Column, Column]:
    """Declare the two columns of a half-open byte range `[bstart, bend)`."""
    lead = f"{prefix}_" if prefix else ""
    first = f"Byte offset of the start of {of}, in the canonical UTF-8 text."
    last = f"Byte offset after the end of {of}."
    return (
        Column(f"{lead}bstart", "bigint", first, nullable, "BytePos"),
        Column(f"{lead}bend", "bigint", last, nullable, "BytePos"),
    )


def strings(name: str, doc: str) -> Column:
    """Declare a column with a list of strings."""
    return Column(name, "string", doc, array=True)


def structs(name: str, doc: str, *fields: Column) -> Column:
    """Declare a column with a list of structs, such as the nested rows of a file."""
    return Column(name, "struct", doc, array=True, fields=fields)


def one_of(column: str, *values: str, nullable: bool = False) -> Constraint:
    """Declare the constraint that a column holds one of a closed set of values."""
    listed = ", ".join(f"'{value}'" for value in values)
    absent = f"{column} IS NULL OR " if nullable else ""
    return Constraint(
        f"{column}_known", f"{absent}{column} IN ({listed})", f"`{column}` has one of the listed values."
    )


SEVERITIES = ("error", "warning", "info", "hint")
ERROR_FIELDS = (
    Column("severity", "string", "error, warning, info or hint."),
    Column("stage", "string", "Phase of extraction, such as parse, compile or convert."),
    Column("error_type", "string", "Exception class or error code, such as SyntaxError."),
    Column("message", "string", "Error message."),
    Column("col", "int", "Column in bytes from the start of the line, counted from 0."),
    *span(of="the error location"),
    LINE,
)
ERRORS = structs("errors", "Errors and warnings of this extractor.", *ERROR_FIELDS)


def diagnostics_table(
    name: str, stage: Stage, doc: str, kinds: tuple[str, ...], inputs: tuple[str, ...]
) -> Table:
    """Declare the table of the diagnostics of a stage; the graph has nodes of all of them."""
    return Table(
        name,
        stage,
        doc,
        (
            *FILE_COLUMNS,
            Column("diag_id", "string", "Id of the diagnostic.", False, "DiagId"),
            Column("diag_kind", "string", f"{', '.join(kinds[:-1])} or {kinds[-1]}.", nullable=False),
            Column("diag_severity", "string", "error, warning, info or hint.", nullable=False),
            Column("diag_code", "string", "Code of the diagnostic, stable across releases.", nullable=False),
            Column("diag_line_start", "int", "First line, counted from 1.", semantic_type="LineNo1"),
            Column("diag_col_start", "int", "Column in bytes of the canonical text, from 0."),
            Column("diag_line_end", "int", "Last line, counted from 1.", semantic_type="LineNo1"),
            Column("diag_col_end", "int", "Column after the end, in bytes of the canonical text."),
            *span(of="the range it is about; null for the whole file"),
            Column("message", "string", "Text of the diagnostic.", nullable=False),
            Column("details", "map<string,string>", "Report of each witness, and further details."),
        ),
        primary_key=("diag_id",),
        foreign_keys=(FILE_KEY,),
        owner="file_id",
        inputs=inputs,
        constraints=(
            SPAN_ORDERED,
            one_of("diag_kind", *kinds),
            one_of("diag_severity", *SEVERITIES),
            Constraint(
                "lines_ordered",
                "(diag_line_start IS NULL AND diag_line_end IS NULL) OR diag_line_end >= diag_line_start",
                "It does not end on a line before the one it begins on.",
            ),
        ),
        write=DeltaWritePolicy(
            target_file_size=128 * MB,
            zorder_by=("repo_id", "file_id", "diag_line_start", "diag_col_start", "diag_id"),
            stats_policy="explicit",
            stats_columns=(
                *("repo_id", "file_id", "diag_id", "diag_kind", "diag_severity", "diag_code"),
                *("diag_line_start", "diag_line_end"),
            ),
            enable_features=FOLLOWED,
        ),
        gate=FEED_GATE,
    )
