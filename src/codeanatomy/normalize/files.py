"""One file as the rules see it: what the witnesses said of it, nested lists as columns.

    file.libcst["type_exprs"]["text"]     # ["int", "str | None"]: the texts of all annotations
    file.ast["nodes"]["kind"]             # ["FunctionDef", "arg", "Name", ...]

A list of structs is a dictionary of equally long lists, one per field, never a list of dictionaries: making
an object per syntax node costs more than all that is done with it. A list the witness could not give is
None.

`witness_files` joins the rows of the witnesses by file, reduced to what the rules read; `files_in` turns its
Arrow batches into files. Tests: `tests/test_normalize_files.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from msgspec import Struct
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy import catalog
from codeanatomy.arrow import values
from codeanatomy.catalog.columns import PLACE_NAMES
from codeanatomy.functions import joined_by, lists_of

# A list of structs, by field; also the rows of a table, by column.
Columns: TypeAlias = dict[str, list[Any]]
# What a witness said, by list.
Said: TypeAlias = Mapping[str, Any]
# Which fields of which lists are read.
Lists: TypeAlias = Mapping[str, Sequence[str]]


class File(Struct, frozen=True):
    """A file and its witnesses; a witness without a row for the file has said nothing."""

    repo_id: str
    file_id: str
    path: str
    ast: Said
    libcst: Said
    bytecode: Said
    # Its last change, nanoseconds since 1970 UTC.
    mtime_ns: int | None = None


class Reads(Struct, frozen=True):
    """What the rules read of the witnesses."""

    # Nodes of these kinds only.
    ast_kinds: Sequence[str]
    ast: Lists
    libcst: Lists
    unit: Sequence[str]
    instructions: Sequence[str]
    exception_table: Sequence[str]


def witness_files(
    *,
    repo_files_v1: DataFrame,
    bytecode_files_v1: DataFrame,
    ast_files_v1: DataFrame,
    libcst_files_v1: DataFrame,
    reads: Reads,
    partitions: int,
) -> DataFrame:
    """One row per file with a column per witness: a struct of what is read of it."""
    units = F.transform("code_objects", lambda unit: _unit(unit, reads))
    bytecode = bytecode_files_v1.select(
        *PLACE_NAMES,
        F.struct("python_version", units.alias("code_objects")).alias("bytecode"),
    )
    wanted = F.filter("nodes", lambda node: node["kind"].isin(list(reads.ast_kinds)))
    ast = ast_files_v1.select(
        "file_id",
        F.struct(
            F.transform(wanted, lambda node: _fields(node, reads.ast["nodes"])).alias("nodes"),
            *(lists_of(name, fields) for name, fields in reads.ast.items() if name != "nodes"),
        ).alias("ast"),
    )
    libcst = libcst_files_v1.select(
        "file_id",
        F.struct(*(lists_of(name, fields) for name, fields in reads.libcst.items())).alias("libcst"),
    )
    changed = repo_files_v1.select("file_id", "mtime_ns")
    joined = joined_by("file_id", partitions, bytecode, ast, libcst, changed)
    return joined.select(*PLACE_NAMES, "ast", "libcst", "bytecode", "mtime_ns")


def _fields(item: Column, names: Sequence[str]) -> Column:
    return F.struct(*(item[name].alias(name) for name in names))


def _unit(unit: Column, reads: Reads) -> Column:
    return F.struct(
        *(unit[name].alias(name) for name in reads.unit),
        _fields(unit["instructions"], reads.instructions).alias("instructions"),
        _fields(unit["exception_table"], reads.exception_table).alias("exception_table"),
    )


def files_in(batch: pa.RecordBatch) -> Iterator[File]:
    """The files of a batch of `witness_files`."""
    columns = [values(column) for column in batch.columns]
    for repo_id, file_id, path, ast, libcst, bytecode, mtime_ns in zip(*columns, strict=True):
        yield File(repo_id, file_id, path, ast or {}, libcst or {}, bytecode or {}, mtime_ns)


def columns_of(table: str, rows: Sequence[tuple[Any, ...]]) -> Columns:
    """Rows of a table, given in the order of its columns without those of the place, by column."""
    names = catalog.table(table).column_names[len(PLACE_NAMES) :]
    lists = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, lists, strict=True))
