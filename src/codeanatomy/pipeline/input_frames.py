"""Select from the extract tables what the per-file functions of later steps read, one row per file.

    witness_frames(ast_files_v1=..., ..., reads=READS)        # normalize: a frame for each table
    witnessed_files(ast_files_v1=..., ..., partitions=8)      # relate: one frame, a struct for each extractor

Only the declared fields of nested lists are read, so Parquet columns that no rule uses are not decoded.

Tests: `tests/spark/test_normalize.py`, `tests/spark/test_relate.py`, `tests/spark/test_plans.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy.catalog.tables.columns import FILE_COLUMN_NAMES
from codeanatomy.normalize.file_view import ListFields, Reads
from codeanatomy.relate.compile.scope import SYMBOL_FIELDS
from codeanatomy.relate.file_view import AST, BLOCKS, LIBCST, OCCURRENCES
from codeanatomy.relate.program import CALL_TARGETS
from codeanatomy.spark.functions import definition_key, node_id


def witness_frames(
    *,
    repo_files_v1: DataFrame,
    file_line_index_v1: DataFrame,
    ast_files_v1: DataFrame,
    libcst_files_v1: DataFrame,
    tree_sitter_files_v1: DataFrame,
    bytecode_files_v1: DataFrame,
    symtable_files_v1: DataFrame,
    scip_index_v1: DataFrame,
    reads: Reads,
) -> dict[str, DataFrame]:
    """What the rules read of each table: the file, and columns."""

    def lists(of: ListFields) -> list[Column]:
        return [lists_of(name, fields) for name, fields in of.items()]

    nodes = F.filter(zipped("nodes", *reads.ast_nodes), lambda each: each["kind"].isin(list(reads.ast_kinds)))
    units = F.transform("code_objects", lambda unit: _unit(unit, reads))
    packs = F.filter(zipped("captures", *reads.captures), lambda each: each["pack"].isin(list(reads.packs)))
    unplaced = F.filter(
        zipped("occurrences", *reads.occurrences),
        lambda each: (
            each.bstart.isNull() | (each.enclosing_bstart.isNull() & each.enclosing_start_line.isNotNull())
        ),
    )
    index = ("line_no", "line_start_byte", "line_end_byte", "newline_kind")
    # A document of a file that the repository lacks belongs to the file it would be.
    missing = node_id("FILE", definition_key(F.col("repo_id"), F.col("path")))
    meant = F.coalesce("file_id", missing).alias("file_id")
    return {
        "repo_files_v1": repo_files_v1.select(
            "file_id", "repo_id", "path", "skipped_reason", "encoding", "mtime_ns"
        ),
        "file_line_index_v1": file_line_index_v1.select("file_id", *index),
        "ast_files_v1": ast_files_v1.select("file_id", nodes.alias("nodes"), *lists(reads.ast)),
        "libcst_files_v1": libcst_files_v1.select("file_id", *lists(reads.libcst)),
        "tree_sitter_files_v1": tree_sitter_files_v1.select(
            "file_id", "stats", packs.alias("captures"), *lists(reads.tree_sitter)
        ),
        "bytecode_files_v1": bytecode_files_v1.select(
            "file_id", "python_version", units.alias("code_objects"), *lists(reads.bytecode)
        ),
        "symtable_files_v1": symtable_files_v1.select("file_id", *lists(reads.symtable)),
        "scip_index_v1": scip_index_v1.where("row_kind = 'document'").select(
            meant,
            "repo_id",
            "path",
            F.col("file_id").isNull().alias("is_missing"),
            "position_encoding",
            unplaced.alias("occurrences"),
            *lists(reads.scip),
        ),
    }


def zipped(column: str, *fields: str) -> Column:
    """A list of structs with these fields only: a lambda over the column itself would read all of them."""
    return F.arrays_zip(*(F.col(f"{column}.{field}").alias(field) for field in fields))


def _fields(item: Column, names: Sequence[str]) -> Column:
    return F.struct(*(item[name].alias(name) for name in names))


def _unit(unit: Column, reads: Reads) -> Column:
    return F.struct(
        *(unit[name].alias(name) for name in reads.unit),
        _fields(unit["instructions"], reads.instructions).alias("instructions"),
        _fields(unit["exception_table"], reads.exception_table).alias("exception_table"),
    )


def witnessed_files(
    *,
    ast_files_v1: DataFrame,
    libcst_files_v1: DataFrame,
    symtable_files_v1: DataFrame,
    scip_index_v1: DataFrame,
    type_checker_files_v1: DataFrame,
    partitions: int,
) -> DataFrame:
    """One row per file with a column per witness: a struct of what is read of it."""
    libcst = libcst_files_v1.select(*FILE_COLUMN_NAMES, _lists("libcst", LIBCST))
    ast = ast_files_v1.select("file_id", _lists("ast", AST))
    symbols = F.transform(
        "blocks.symbols",
        lambda each: F.transform(
            each, lambda one: F.struct(*(one[name].alias(name) for name in SYMBOL_FIELDS))
        ),
    )
    blocks = F.struct(*(F.col(f"blocks.{name}").alias(name) for name in BLOCKS), symbols.alias("symbols"))
    tables = F.when(F.col("blocks").isNotNull(), blocks).alias("blocks")
    symtable = symtable_files_v1.select("file_id", F.struct(tables).alias("symtable"))
    scip = scip_index_v1.where("row_kind = 'document' AND file_id IS NOT NULL").select(
        "file_id", _lists("scip", {"occurrences": OCCURRENCES})
    )
    typed = type_checker_files_v1.select("file_id", _lists("typed", {"call_targets": CALL_TARGETS}))
    joined = joined_by("file_id", partitions, libcst, ast, symtable, scip.dropDuplicates(["file_id"]), typed)
    return joined.select(*FILE_COLUMN_NAMES, "ast", "symtable", "libcst", "scip", "typed")


def _lists(witness: str, lists: Mapping[str, tuple[str, ...]]) -> Column:
    return F.struct(*(lists_of(name, fields) for name, fields in lists.items())).alias(witness)


def lists_of(name: str, fields: Sequence[str]) -> Column:
    """A list of structs as a struct of lists, which Python reads column by column; null stays null."""
    lists = F.struct(*(F.col(f"{name}.{field}").alias(field) for field in fields))
    return F.when(F.col(name).isNotNull(), lists).alias(name)


def joined_by(key: str, partitions: int, first: DataFrame, *others: DataFrame) -> DataFrame:
    """Frames side by side, all rows of the first."""
    # By hand, so that equal exchanges serve all joins and no adaptive rule makes one task of them.
    joined = first.repartition(partitions, key)
    for other in others:
        joined = joined.join(other.repartition(partitions, key), key, "left")
    return joined
