"""Declare the tables of the extract stage: source files, and one nested row per file and extractor.

The file `a.py` is one row of `repo_files_v1`, one of `repo_file_blobs_v1`, one of each extractor's table, and
as many rows of `file_line_index_v1` as it has lines. The extractors' tables are in `extract_cpython`,
`extract_trees` and `extract_program`. In their rows a list is null if the extractor could not parse the file
(`errors` has the reason), and empty if it parsed the file and there are no entries. Every entry that becomes
a node of the graph has its line, so that no later stage has to look it up.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import MB, Column, Constraint, DeltaWritePolicy, Table, WriterProperties
from codeanatomy.catalog.tables.columns import (
    BY_OWNER,
    FEED_GATE,
    FILE_COLUMNS_WITH_DIGEST,
    FILE_ID,
    FILE_KEY,
    FOLLOWED,
    PATH,
    REPO_ID,
    one_of,
)
from codeanatomy.catalog.tables.extract_cpython import AST_FILES_V1, BYTECODE_FILES_V1, SYMTABLE_FILES_V1
from codeanatomy.catalog.tables.extract_program import SCIP_INDEX_V1, TYPE_CHECKER_FILES_V1
from codeanatomy.catalog.tables.extract_trees import LIBCST_FILES_V1, TREE_SITTER_FILES_V1

SIZE_BYTES = Column("size_bytes", "bigint", "Size of the raw bytes.")
MTIME_NS = Column(
    "mtime_ns", "bigint", "Modification time in nanoseconds since 1970 UTC; not used to detect changes."
)
ENCODING = Column("encoding", "string", "Python's name of the encoding, by BOM and PEP 263.")
# Values of `skipped_reason` that are intended and not a failure.
DELIBERATE_SKIPS = (
    "excluded",
    "ignored",
    "junk_folder",
    "not_a_file",
    "not_included",
    "not_python",
    "symlink",
    "virtual_environment",
)
SIZE_COUNTED = Constraint("size_counted", "size_bytes IS NULL OR size_bytes >= 0", "A size is not negative.")

REPO_FILES_V1 = Table(
    "repo_files_v1",
    "extract",
    "One row per path of the source listing, including skipped paths.",
    (
        REPO_ID,
        FILE_ID,
        PATH,
        Column("file_sha256", "string", "SHA-256 of the raw bytes; null if unread.", semantic_type="Sha256"),
        SIZE_BYTES,
        MTIME_NS,
        ENCODING,
        Column("has_bom", "boolean", "The bytes begin with a byte order mark."),
        Column("newline", "string", "Line endings: lf, crlf, cr, mixed or none."),
        Column("is_stub", "boolean", "A `.pyi` file."),
        Column("skipped_reason", "string", "Why the file was not read; null if it was."),
    ),
    primary_key=("file_id",),
    owner="file_id",
    constraints=(
        SIZE_COUNTED,
        one_of("newline", "lf", "crlf", "cr", "mixed", "none", nullable=True),
        Constraint(
            "read_or_skipped",
            "file_sha256 IS NOT NULL OR skipped_reason IS NOT NULL",
            "A file without a digest has a reason.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "file_id", "path"),
        stats_policy="explicit",
        stats_columns=("repo_id", "file_id", "path", "file_sha256", "size_bytes", "mtime_ns"),
        writer=WriterProperties(dictionary_off=("file_id", "path", "file_sha256")),
        enable_features=FOLLOWED,
    ),
    gate=FEED_GATE,
)

REPO_FILE_BLOBS_V1 = Table(
    "repo_file_blobs_v1",
    "extract",
    "One row per file that was read: its raw bytes, and the canonical text that all spans refer to.",
    (
        *FILE_COLUMNS_WITH_DIGEST,
        SIZE_BYTES,
        MTIME_NS,
        ENCODING,
        Column(
            "text",
            "string",
            "Canonical text: decoded, without BOM, newlines kept, of packaging files as Python; or null.",
        ),
        Column("bytes", "binary", "Raw bytes of the file.", nullable=False),
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_files_v1",),
    constraints=(SIZE_COUNTED,),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "file_id", "path"),
        stats_policy="explicit",
        stats_columns=("repo_id", "file_id", "path", "file_sha256", "size_bytes", "mtime_ns"),
        writer=WriterProperties(dictionary_off=("text", "bytes")),
        enable_features=BY_OWNER,
    ),
)

FILE_LINE_INDEX_V1 = Table(
    "file_line_index_v1",
    "extract",
    "One row per line of a file, with lines as CPython counts them.",
    (
        *FILE_COLUMNS_WITH_DIGEST,
        Column("line_no", "int", "Line number, counted from 0.", False, "LineNo0"),
        Column(
            "line_start_byte", "bigint", "Byte offset of its start in the canonical text.", False, "BytePos"
        ),
        Column(
            "line_end_byte", "bigint", "Byte offset after its end, including the newline.", False, "BytePos"
        ),
        Column("newline_kind", "string", "Line ending: lf, crlf, cr or none.", nullable=False),
    ),
    primary_key=("file_id", "line_no"),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_file_blobs_v1",),
    constraints=(
        Constraint("line_ordered", "line_end_byte >= line_start_byte", "A line ends after it begins."),
        one_of("newline_kind", "lf", "crlf", "cr", "none"),
    ),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "file_id", "line_no"),
        stats_policy="explicit",
        stats_columns=("repo_id", "file_id", "path", "line_no", "line_start_byte", "line_end_byte"),
        enable_features=BY_OWNER,
    ),
)

TABLES = (
    REPO_FILES_V1,
    REPO_FILE_BLOBS_V1,
    FILE_LINE_INDEX_V1,
    AST_FILES_V1,
    LIBCST_FILES_V1,
    TREE_SITTER_FILES_V1,
    BYTECODE_FILES_V1,
    SYMTABLE_FILES_V1,
    SCIP_INDEX_V1,
    TYPE_CHECKER_FILES_V1,
)
