"""The inputs of the relate stage: what the witnesses said of a file, side by side.

    frame = witnessed_files(ast_files_v1=..., ..., partitions=8)      # a row per file
    for file in files_in(batch): summary(file)
    summary(heard_file(place, rows))                   # of rows that are at hand, without Spark

Tests: `tests/test_relate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy.arrow import values
from codeanatomy.catalog.columns import PLACE_NAMES
from codeanatomy.functions import joined_by, lists_of
from codeanatomy.relate.program import CALL_TARGETS
from codeanatomy.relate.scope import SYMBOL_FIELDS
from codeanatomy.relate.summary import Witnessed
from codeanatomy.relate.tree import FIELDS

# Fields that are read, by witness and list.
AST: Mapping[str, tuple[str, ...]] = {
    "nodes": FIELDS,
    "imports": ("ast_id", "module", "name", "asname", "level"),
}
LIBCST: Mapping[str, tuple[str, ...]] = {
    "refs": ("text", "kind", "context", "expr_bstart", "expr_bend", "bstart", "bend", "line"),
    "defs": ("kind", "name", "def_bstart", "def_bend", "name_bstart", "name_bend", "line"),
    "params": ("name", "bstart", "bend", "line"),
    "imports": ("kind", "name", "asname", "is_star", "stmt_bstart", "alias_bstart", "alias_bend", "line"),
    "callsites": ("call_bstart", "call_bend", "line"),
}
BLOCKS = ("scope_key", "parent_key", "type", "name", "lineno")
OCCURRENCES = ("bstart", "bend", "symbol", "symbol_roles")


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
    libcst = libcst_files_v1.select(*PLACE_NAMES, _lists("libcst", LIBCST))
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
    return joined.select(*PLACE_NAMES, "ast", "symtable", "libcst", "scip", "typed")


def _lists(witness: str, lists: Mapping[str, tuple[str, ...]]) -> Column:
    return F.struct(*(lists_of(name, fields) for name, fields in lists.items())).alias(witness)


def heard_file(
    repo_id: str, file_id: str, path: str, rows: Mapping[str, Sequence[pa.RecordBatch]]
) -> Witnessed:
    """A file from whole rows of the witnesses that are about it."""

    def said(table: str, lists: Iterable[str]) -> dict[str, Any]:
        found = next((part for part in rows.get(table, ()) if part.num_rows), None)
        return {} if found is None else {name: values(found.column(name))[0] for name in lists}

    return Witnessed(
        repo_id,
        file_id,
        path,
        ast=said("ast_files_v1", AST),
        symtable=said("symtable_files_v1", ("blocks",)),
        libcst=said("libcst_files_v1", LIBCST),
        scip=said("scip_index_v1", ("occurrences",)),
        typed=said("type_checker_files_v1", ("call_targets",)),
    )


def files_in(batch: pa.RecordBatch) -> Iterator[Witnessed]:
    """The files of a batch."""
    columns = [values(column) for column in batch.columns]
    for repo_id, file_id, path, *witnesses in zip(*columns, strict=True):
        yield Witnessed(repo_id, file_id, path, *(said or {} for said in witnesses))
