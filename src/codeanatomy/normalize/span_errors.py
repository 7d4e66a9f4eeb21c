"""Positions that could not be placed: `span_errors_v1`, one row per position; none on healthy input.

A SCIP index that is older than the sources says that `x` stands in line 10, columns 0 to 1, of a file that
has two lines:

    line_out_of_range    scip    occurrence    9:0-9:1 utf16    the file has no such line

| kind | what is wrong |
|---|---|
| `missing_file` | the repository has no file of the document's path; its id is the one it would have |
| `unreadable_file` | it has, but no text could be read from it |
| `malformed_range` | there is no range, or it ends before it begins |
| `line_out_of_range` | the file has no such line |
| `unknown_encoding` | nobody tells what the columns count |
| `foreign_encoding` | the tool read the file as UTF-8, which it is not |
| `column_out_of_range` | the line has no such column, or it is inside of a character |
| `misplaced` | the tree does not fit the text: LibCST's, or CPython's of an f-string before 3.12 |

The span is the nearest place known: the line where a range should begin, the f-string of an expression.
Equal positions of one witness and subject are one row. LibCST writes the place of a syntax error into its
message; if the file has no such place, that is a row too.

What cannot be told is left out: instructions with a line and no span, since CPython also writes such
positions for code it made up; and places of CPython's errors, of which only those that exist are kept.

Tests: `tests/test_span_errors.py`.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy.catalog.columns import PLACE_NAMES
from codeanatomy.functions import stable_id

POSITION = ("start_line", "start_col", "end_line", "end_col", "col_unit")
IDENTITY = (*PLACE_NAMES, "span_error_kind", "witness", "subject", *POSITION, "bstart", "bend", "message")
MESSAGES = {
    "missing_file": "the repository has no such file",
    "unreadable_file": "no text could be read from the file",
    "malformed_range": "the range is absent, has too few numbers or ends before it begins",
    "line_out_of_range": "the file has no such line",
    "unknown_encoding": "nobody tells in which unit the columns count",
    "foreign_encoding": "the file was read as UTF-8, which it is not",
    "column_out_of_range": "the line has no such column, or it is inside of a character",
}
# How LibCST's messages tell a place: line from 1, column from 0 in characters.
LIBCST_PLACE = r"error at (\d{1,9}):(\d{1,9}): "


def span_errors_v1(
    *,
    repo_files_v1: DataFrame,
    file_line_index_v1: DataFrame,
    ast_files_v1: DataFrame,
    libcst_files_v1: DataFrame,
    scip_index_v1: DataFrame,
) -> DataFrame:
    """The positions of all witnesses that could not be placed."""
    unplaced = _scip_positions(scip_index_v1).unionByName(_libcst_positions(libcst_files_v1))
    found = (
        _explained(unplaced, repo_files_v1, file_line_index_v1),
        _misplaced(ast_files_v1, "errors", "ast", "expression"),
        _misplaced(libcst_files_v1, "parse_errors", "libcst", "tree"),
    )
    rows = reduce(DataFrame.unionByName, found).select(*IDENTITY).distinct()
    return rows.select(
        *PLACE_NAMES,
        stable_id("span_error", *(F.col(name) for name in IDENTITY if name != "path")).alias("span_error_id"),
        *(name for name in IDENTITY if name not in PLACE_NAMES),
    )


def _scip_positions(scip_index_v1: DataFrame) -> DataFrame:
    """Ranges without a span; only what a definition encloses may lack a range."""
    lists = (
        _ranges("occurrences", "", "occurrence", is_optional=False),
        _ranges("occurrences", "enclosing_", "enclosing_range", is_optional=True),
        _ranges("diagnostics", "", "diagnostic", is_optional=False),
    )
    return scip_index_v1.filter(F.col("row_kind") == "document").select(
        "repo_id",
        F.coalesce("file_id", stable_id("file", F.col("repo_id"), F.col("path"))).alias("file_id"),
        "path",
        F.col("file_id").isNull().alias("is_missing"),
        F.lit("scip").alias("witness"),
        F.col("position_encoding").alias("col_unit"),
        # A damaged document has no lists.
        F.inline(F.flatten(F.array_compact(F.array(*lists)))),
    )


def _ranges(column: str, prefix: str, subject: str, *, is_optional: bool) -> Column:
    numbers = ("start_line", "start_col", "end_line", "end_col")
    fields = (F.col(f"{column}.{prefix}{name}").alias(name) for name in (*numbers, "bstart"))
    return F.transform(
        F.filter(
            F.arrays_zip(*fields),
            lambda each: each.bstart.isNull() & (each.start_line.isNotNull() | F.lit(not is_optional)),
        ),
        lambda each: F.struct(F.lit(subject).alias("subject"), *(each[name].alias(name) for name in numbers)),
    )


def _libcst_positions(libcst_files_v1: DataFrame) -> DataFrame:
    """Places in messages that are not in the file."""
    line, col = (F.regexp_extract("each.message", LIBCST_PLACE, group) for group in (1, 2))
    problems = libcst_files_v1.select(*PLACE_NAMES, F.explode("parse_errors").alias("each"))
    return problems.filter(F.col("each.bstart").isNull() & (line != "")).select(
        *PLACE_NAMES,
        F.lit(False).alias("is_missing"),
        F.lit("libcst").alias("witness"),
        F.lit("utf32").alias("col_unit"),
        F.lit("error").alias("subject"),
        (line.cast("int") - 1).alias("start_line"),
        col.cast("int").alias("start_col"),
        F.lit(None).cast("int").alias("end_line"),
        F.lit(None).cast("int").alias("end_col"),
    )


def _explained(unplaced: DataFrame, repo_files_v1: DataFrame, file_line_index_v1: DataFrame) -> DataFrame:
    """Positions with what is wrong with them, and the line where they should begin."""
    files = repo_files_v1.select("file_id", "skipped_reason", "encoding")
    # Few files have such positions, if any, and all have lines.
    wanted = F.broadcast(unplaced.select("file_id").distinct())
    index = file_line_index_v1.join(wanted, "file_id", "semi")
    # After the last newline begins one more line.
    count = F.col("line_no") + F.when(F.col("newline_kind") == "none", 1).otherwise(2)
    counts = index.groupBy("file_id").agg(F.max(count).alias("line_count"))
    lines = index.select(
        "file_id",
        F.col("line_no").alias("start_line"),
        F.col("line_start_byte").alias("bstart"),
        F.col("line_end_byte").alias("bend"),
    )
    last_line = F.greatest("start_line", "end_line")
    kind = (
        F.when(F.col("is_missing"), "missing_file")
        .when(F.col("skipped_reason").isNotNull(), "unreadable_file")
        .when(last_line.isNull(), "malformed_range")
        # A file without text has no lines in the index, and one to a parser.
        .when(last_line >= F.coalesce("line_count", F.lit(1)), "line_out_of_range")
        .when(F.col("col_unit").isNull(), "unknown_encoding")
        .when((F.col("witness") == "scip") & (F.col("encoding") != "utf-8"), "foreign_encoding")
        .otherwise("column_out_of_range")
    )
    messages = F.create_map(*(F.lit(text) for pair in MESSAGES.items() for text in pair))
    return (
        unplaced.join(files, "file_id", "left")
        .join(counts, "file_id", "left")
        .join(lines, ["file_id", "start_line"], "left")
        .select(
            *PLACE_NAMES,
            kind.alias("span_error_kind"),
            "witness",
            "subject",
            *POSITION,
            "bstart",
            "bend",
            messages[kind].alias("message"),
        )
    )


def _misplaced(files: DataFrame, column: str, witness: str, subject: str) -> DataFrame:
    """Problems of a witness whose own positions do not fit the text; what those were is not kept."""
    problems = files.select(*PLACE_NAMES, F.explode(column).alias("each"))
    is_misplaced = (F.col("each.stage") == "position") | (F.col("each.error_type") == "Misplaced")
    return problems.filter(is_misplaced).select(
        *PLACE_NAMES,
        F.lit("misplaced").alias("span_error_kind"),
        F.lit(witness).alias("witness"),
        F.lit(subject).alias("subject"),
        *(F.lit(None).cast("int").alias(name) for name in POSITION[:-1]),
        F.lit(None).cast("string").alias("col_unit"),
        "each.bstart",
        "each.bend",
        "each.message",
    )
