"""What is wrong with a file, by whom: `diagnostics_norm_v1`, one row per complaint.

`print 1` in a file of its own is refused by CPython and LibCST, while tree-sitter knows Python 2:

    cpython       syntax_error         1:0  Missing parentheses in call to 'print'. ...
                                            ast: parse, bytecode: compile, symtable: symtable
    libcst        parser_syntax_error  1:6  parser error: error at 1:6: expected one of ...
    disagreement  parse_outcome             ast: rejects, libcst: rejects, tree_sitter: accepts

Five sources, told apart by `diag_kind`:

- `cpython`: errors and warnings of ast, symtable and bytecode; files that could not be read at all, which
  CPython would refuse first; and bytecode of an interpreter that `opcodes` does not know.
- `libcst`: why it did not read the file.
- `tree_sitter`: text that fits no rule, tokens that are missing, parses and searches that were given up.
- `scip`: what the indexer complained about, and what went wrong with reading its document.
- `disagreement`: see `disagreements`.

The code is the witness' own word in snake case: `SyntaxError` is `syntax_error`, `too_large` stays; codes of
an indexer are as it gives them. What several witnesses say, or one says twice, is one row; its details tell
who said it, and at which stage.
Positions that could not be placed are rows of `span_errors_v1`, and complaints only where they cost more: the
whole tree of LibCST, a part of a SCIP document. `rules` adds what the rules of single files have to say.

Lines count from 1 and columns are bytes, both found from the span; where there is none, they are the
witness' own. A span that ends with a newline ends in the line of that newline. Tests:
`tests/test_diagnostics.py`.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy.catalog.columns import PLACE_NAMES, SEVERITIES
from codeanatomy.catalog.extract import CHOSEN_REASONS
from codeanatomy.functions import stable_id
from codeanatomy.normalize.disagreements import disagreements
from codeanatomy.normalize.opcodes import KNOWN_VERSIONS

# Of a text that fits no rule, what the message quotes.
QUOTED_CHARS = 60
# Complaints that are equal in these are one.
IDENTITY = (*PLACE_NAMES, "kind", "code", "bstart", "bend", "line", "message")
# Bytes of text whose lines are looked through for a place.
BLOCK = 1024


def diagnostics_norm_v1(
    *,
    repo_files_v1: DataFrame,
    file_line_index_v1: DataFrame,
    ast_files_v1: DataFrame,
    libcst_files_v1: DataFrame,
    tree_sitter_files_v1: DataFrame,
    bytecode_files_v1: DataFrame,
    symtable_files_v1: DataFrame,
    scip_index_v1: DataFrame,
) -> DataFrame:
    """The complaints of all witnesses, and those of the witnesses about each other."""
    differences = disagreements(
        ast_files_v1=ast_files_v1,
        libcst_files_v1=libcst_files_v1,
        tree_sitter_files_v1=tree_sitter_files_v1,
        bytecode_files_v1=bytecode_files_v1,
        symtable_files_v1=symtable_files_v1,
    )
    complaints = (
        _complaints(repo_files_v1, _unread_file()),
        _complaints(ast_files_v1, _errors("errors", "cpython", "ast")),
        _complaints(symtable_files_v1, _errors("errors", "cpython", "symtable")),
        _complaints(bytecode_files_v1, _errors("errors", "cpython", "bytecode"), _unknown_bytecode()),
        _complaints(libcst_files_v1, _errors("parse_errors", "libcst", "libcst")),
        _complaints(
            tree_sitter_files_v1,
            _errors("parse_errors", "tree_sitter", "tree_sitter"),
            _error_nodes(),
            _missing_nodes(),
        ),
        # Of the index itself, and of files that the repository lacks, there is no file to complain about.
        _complaints(
            scip_index_v1.filter(F.col("file_id").isNotNull()),
            _errors("errors", "scip", "scip"),
            _scip_diagnostics(),
        ),
        _complaints(differences, _disagreement()),
    )
    return _rows(_merged(_placed(reduce(DataFrame.unionByName, complaints), file_line_index_v1)))


# The sources: lists of complaints in the row of a file.


def _unread_file() -> Column:
    reason = F.col("skipped_reason")
    complaint = _complaint(
        kind="cpython",
        severity=F.lit("error"),
        code=_code(reason),
        message=F.concat(F.lit("the file could not be read: "), reason),
        said=_said(stage=F.lit("read")),
    )
    return F.when(reason.isNotNull() & ~reason.isin(*CHOSEN_REASONS), F.array(complaint))


def _errors(column: str, kind: str, witness: str) -> Column:
    """The errors that a witness wrote down itself."""

    def complaint(each: Column) -> Column:
        return _complaint(
            kind=kind,
            severity=each.severity,
            code=_code(each.error_type),
            bstart=each.bstart,
            bend=each.bend,
            line=each.line,
            col=each.col,
            message=each.message,
            said=_said(**{witness: each.stage, "error_type": each.error_type}),
        )

    return F.transform(F.filter(column, lambda each: each.stage != "position"), complaint)


def _unknown_bytecode() -> Column:
    version = F.col("python_version")
    complaint = _complaint(
        kind="cpython",
        severity=F.lit("error"),
        code=F.lit("unknown_bytecode"),
        message=F.concat(
            F.lit("the bytecode of Python "),
            version,
            F.lit(" is not known: control and data flow of the file are missing"),
        ),
        said=_said(python_version=version),
    )
    is_known = F.substring_index(version, ".", 2).isin(*KNOWN_VERSIONS)
    # Any field will do; the whole column would be read with all instructions.
    return F.when(F.col("code_objects.flags").isNotNull() & ~is_known, F.array(complaint))


def _error_nodes() -> Column:
    return F.transform(
        "errors",
        lambda each: _complaint(
            kind="tree_sitter",
            severity=F.lit("error"),
            code=F.lit("error_node"),
            bstart=each.bstart,
            bend=each.bend,
            message=F.concat(
                F.lit("fits no rule: "),
                F.substring(F.regexp_replace(each.text, r"\s+", " "), 1, QUOTED_CHARS),
            ),
            said=_said(parent_kind=each.parent_kind),
        ),
    )


def _missing_nodes() -> Column:
    return F.transform(
        "missing",
        lambda each: _complaint(
            kind="tree_sitter",
            severity=F.lit("error"),
            code=F.lit("missing_node"),
            bstart=each.bstart,
            bend=each.bend,
            message=F.concat(F.lit("missing: "), each.kind),
            said=_said(parent_kind=each.parent_kind),
        ),
    )


def _scip_diagnostics() -> Column:
    return F.transform(
        "diagnostics",
        lambda each: _complaint(
            kind="scip",
            # The protocol may learn more severities than we know.
            severity=F.when(each.severity.isin(*SEVERITIES), each.severity).otherwise("info"),
            code=F.coalesce(each.code, F.lit("scip")),
            bstart=each.bstart,
            bend=each.bend,
            line=each.start_line + 1,
            message=F.coalesce(each.message, each.code, F.lit("the indexer gave no message")),
            said=_said(source=each.source, tags=F.nullif(F.array_join(each.tags, ", "), F.lit(""))),
        ),
    )


def _disagreement() -> Column:
    return F.array(
        _complaint(
            kind="disagreement",
            severity=F.col("severity"),
            code=F.col("code"),
            bstart=F.col("bstart"),
            bend=F.col("bend"),
            message=F.col("message"),
            said=F.map_entries("details"),
        )
    )


def _complaint(
    *,
    kind: str,
    severity: Column,
    code: Column,
    message: Column,
    said: Column,
    bstart: Column | None = None,
    bend: Column | None = None,
    line: Column | None = None,
    col: Column | None = None,
) -> Column:
    """The shape that all complaints share; line and column of a witness count only without a span."""
    absent = F.lit(None)
    begin = (absent if bstart is None else bstart).cast("bigint")
    return F.struct(
        F.lit(kind).alias("kind"),
        F.array_position(_severities(), severity).alias("rank"),
        code.alias("code"),
        begin.alias("bstart"),
        (absent if bend is None else bend).cast("bigint").alias("bend"),
        F.when(begin.isNull(), absent if line is None else line).cast("int").alias("line"),
        F.when(begin.isNull(), absent if col is None else col).cast("int").alias("col"),
        message.alias("message"),
        said.alias("said"),
    )


def _severities() -> Column:
    """The severities, the worst first."""
    return F.array(*map(F.lit, SEVERITIES))


def _code(word: Column) -> Column:
    """The class or reason that a witness names, in snake case."""
    return F.lower(F.regexp_replace(word, "(?<=[a-z0-9])(?=[A-Z])", "_"))


def _said(**particulars: Column) -> Column:
    """Entries of the details."""
    entries = (F.struct(F.lit(key).alias("key"), value.alias("value")) for key, value in particulars.items())
    return F.filter(F.array(*entries), lambda each: each.value.isNotNull())


# From complaints to rows.


def _complaints(files: DataFrame, *lists: Column) -> DataFrame:
    return files.select(*PLACE_NAMES, F.inline(F.flatten(F.array_compact(F.array(*lists)))))


def _placed(complaints: DataFrame, file_line_index_v1: DataFrame) -> DataFrame:
    """Two rows per complaint, with the lines of its first and of its last byte.

    Lines are looked up by the block of text they touch: by file alone, each place would meet all lines.
    """
    first, last = F.col("bstart"), F.greatest("bstart", F.col("bend") - 1)
    places = complaints.select(
        "*",
        F.inline(
            F.array(
                F.struct(F.lit(True).alias("is_first"), first.alias("at")),
                F.struct(F.lit(False).alias("is_first"), last.alias("at")),
            )
        ),
    ).select("*", _block(F.col("at")).alias("block"))
    begin, end = F.col("line_start_byte"), F.col("line_end_byte")
    lines = file_line_index_v1.select(
        "file_id",
        F.struct("line_no", "line_start_byte", "line_end_byte", "newline_kind").alias("text_line"),
        F.explode(F.sequence(_block(begin), _block(end))).alias("block"),
    )
    # A line that ends at the place is its line if no other begins there.
    is_around = F.col("at").between(F.col("text_line.line_start_byte"), F.col("text_line.line_end_byte"))
    same_block = (places.file_id == lines.file_id) & (places.block == lines.block)
    # The index is so small on disk that Spark would collect its millions of rows to broadcast them.
    found = places.join(lines.hint("shuffle_hash"), same_block & is_around, "left")
    return found.drop(lines.file_id, lines.block)


def _block(place: Column) -> Column:
    return F.floor(place / BLOCK)


def _merged(places: DataFrame) -> DataFrame:
    """One row per complaint, whoever made it and how often."""
    return places.groupBy(*IDENTITY).agg(
        F.element_at(_severities(), F.min("rank").cast("int")).alias("severity"),
        F.min("col").alias("col"),
        F.max(F.when(F.col("is_first"), F.col("text_line"))).alias("first"),
        F.max(F.when(~F.col("is_first"), F.col("text_line"))).alias("last"),
        _details(F.flatten(F.collect_set("said"))).alias("details"),
    )


def _details(said: Column) -> Column:
    """Entries as a map; several values of a key are joined."""
    keys = F.array_sort(F.array_distinct(F.transform(said, lambda each: each.key)))

    def values(key: Column) -> Column:
        own = F.transform(F.filter(said, lambda each: each.key == key), lambda each: each.value)
        return F.array_join(F.array_sort(F.array_distinct(own)), ", ")

    return F.map_from_arrays(keys, F.transform(keys, values))


def _rows(merged: DataFrame) -> DataFrame:
    """The columns of the table."""
    bstart, bend = F.col("bstart"), F.col("bend")
    first_line, first_byte = _line_and_byte("first", bstart)
    last_line, last_byte = _line_and_byte("last", F.greatest(bstart, bend - 1))
    is_placed = bstart.isNotNull()
    return merged.select(
        *PLACE_NAMES,
        stable_id("diag", *(F.col(name) for name in IDENTITY if name != "path")).alias("diag_id"),
        F.col("kind").alias("diag_kind"),
        F.col("severity").alias("diag_severity"),
        F.col("code").alias("diag_code"),
        F.when(is_placed, first_line).otherwise(F.col("line")).alias("diag_line_start"),
        F.when(is_placed, bstart - first_byte).otherwise(F.col("col")).cast("int").alias("diag_col_start"),
        F.when(is_placed, last_line).otherwise(F.col("line")).alias("diag_line_end"),
        F.when(is_placed, bend - last_byte).otherwise(F.col("col")).cast("int").alias("diag_col_end"),
        "bstart",
        "bend",
        "message",
        "details",
    )


def _line_and_byte(found: str, at: Column) -> tuple[Column, Column]:
    """Number (from 1) and first byte of the line of a place; after the last newline begins one more."""
    begin, end = F.col(f"{found}.line_start_byte"), F.col(f"{found}.line_end_byte")
    is_after = (at == end) & (F.col(f"{found}.newline_kind") != "none")
    line = F.col(f"{found}.line_no") + F.when(is_after, 2).otherwise(1)
    # A file without text has no lines in the index.
    return F.coalesce(line, F.lit(1)), F.coalesce(F.when(is_after, end).otherwise(begin), F.lit(0))
