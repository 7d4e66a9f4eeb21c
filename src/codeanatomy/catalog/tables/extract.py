"""Tables of the extract stage: the files, and what each witness said of them, one nested row per file.

The file `a.py` is one row of `repo_files_v1`, one of `repo_file_blobs_v1`, one of each witness, and as many
rows of `file_line_index_v1` as it has lines. The witnesses are in `extract_cpython`, `extract_trees` and
`extract_program`. In their rows a list is null where the witness could not read the file (its errors say
why), empty where it looked and found nothing. Whatever becomes a node of the graph carries its line, so that
no later stage has to look it up.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import MB, Column, Constraint, DeltaWritePolicy, Table, WriterProperties
from codeanatomy.catalog.tables.columns import FILE, FILE_ID, FILE_KEY, PATH, REPO_ID, one_of
from codeanatomy.catalog.tables.extract_cpython import AST_FILES_V1, BYTECODE_FILES_V1, SYMTABLE_FILES_V1
from codeanatomy.catalog.tables.extract_program import SCIP_INDEX_V1, TYPE_CHECKER_FILES_V1
from codeanatomy.catalog.tables.extract_trees import LIBCST_FILES_V1, TREE_SITTER_FILES_V1

SIZE_BYTES = Column("size_bytes", "bigint", "Size of the raw bytes.")
MTIME_NS = Column("mtime_ns", "bigint", "Time of last change, nanoseconds since 1970 UTC; never compared.")
ENCODING = Column("encoding", "string", "Python's name of the encoding found by BOM and PEP 263.")
# Values of `skipped_reason` that are a choice and no failure.
CHOSEN_REASONS = (
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
    "One row per path that was considered, also when it was skipped.",
    (
        REPO_ID,
        FILE_ID,
        PATH,
        Column("file_sha256", "string", "Digest of the raw bytes; null if unread.", semantic_type="Sha256"),
        SIZE_BYTES,
        MTIME_NS,
        ENCODING,
        Column("has_bom", "boolean", "The bytes begin with a byte order mark."),
        Column("newline", "string", "Line ends found: lf, crlf, cr, mixed or none."),
        Column("is_stub", "boolean", "A `.pyi` file."),
        Column("skipped_reason", "string", "Why no witness reads the file; null for a file that is read."),
    ),
    primary_key=("file_id",),
    owner="file_id",
    constraints=(
        SIZE_COUNTED,
        one_of("newline", "lf", "crlf", "cr", "mixed", "none", nullable=True),
        Constraint(
            "read_or_skipped",
            "file_sha256 IS NOT NULL OR skipped_reason IS NOT NULL",
            "A file without a digest says why.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("file_id", "path"),
        stats_policy="explicit",
        stats_columns=("file_id", "path", "file_sha256", "size_bytes", "mtime_ns"),
        writer=WriterProperties(dictionary_off=("file_id", "path", "file_sha256")),
        enable_features=("change_data_feed",),
    ),
    cache="memory",
)

REPO_FILE_BLOBS_V1 = Table(
    "repo_file_blobs_v1",
    "extract",
    "One row per file that was read: its bytes, and the text every span counts in.",
    (
        *FILE,
        SIZE_BYTES,
        MTIME_NS,
        ENCODING,
        Column("text", "string", "Canonical text: decoded, no BOM, newlines untouched; null if undecodable."),
        Column("bytes", "binary", "Raw bytes as found.", nullable=False),
    ),
    primary_key=("file_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("repo_files_v1",),
    constraints=(SIZE_COUNTED,),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("file_id", "path"),
        stats_policy="explicit",
        stats_columns=("file_id", "path", "file_sha256", "size_bytes", "mtime_ns"),
        writer=WriterProperties(dictionary_off=("text", "bytes")),
    ),
)

FILE_LINE_INDEX_V1 = Table(
    "file_line_index_v1",
    "extract",
    "One row per line of a file, lines as CPython sees them.",
    (
        *FILE,
        Column("line_no", "int", "Line, counted from 0.", False, "LineNo0"),
        Column("line_start_byte", "bigint", "Offset of the first byte in canonical text.", False, "BytePos"),
        Column("line_end_byte", "bigint", "Offset after the line's end, newline included.", False, "BytePos"),
        Column("newline_kind", "string", "How the line ends: lf, crlf, cr or none.", nullable=False),
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
        zorder_by=("file_id", "line_no"),
        stats_policy="explicit",
        stats_columns=("file_id", "path", "line_no", "line_start_byte", "line_end_byte"),
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
