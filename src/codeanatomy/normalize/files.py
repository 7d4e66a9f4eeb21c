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
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
from msgspec import Struct
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy import catalog
from codeanatomy.catalog.columns import PLACE_NAMES

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
            *(_list(name, fields) for name, fields in reads.ast.items() if name != "nodes"),
        ).alias("ast"),
    )
    libcst = libcst_files_v1.select(
        "file_id", F.struct(*(_list(name, fields) for name, fields in reads.libcst.items())).alias("libcst")
    )
    # By hand, so that equal exchanges serve all joins and no adaptive rule makes one task of them.
    changed = repo_files_v1.select("file_id", "mtime_ns")
    by_file = (frame.repartition(partitions, "file_id") for frame in (bytecode, ast, libcst, changed))
    first, *others = by_file
    for other in others:
        first = first.join(other, "file_id", "left")
    return first.select(*PLACE_NAMES, "ast", "libcst", "bytecode", "mtime_ns")


def _fields(item: Column, names: Sequence[str]) -> Column:
    return F.struct(*(item[name].alias(name) for name in names))


def _list(name: str, fields: Sequence[str]) -> Column:
    """A list of structs as a struct of lists, which is read column by column."""
    lists = F.struct(*(F.col(f"{name}.{field}").alias(field) for field in fields))
    return F.when(F.col(name).isNotNull(), lists).alias(name)


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


def values(array: pa.Array) -> list[Any]:
    """The values of an array; lists of structs, at any depth, as dictionaries of lists.

    >>> values(pa.array([[{"a": 1, "b": ["x"]}, {"a": 2, "b": None}], None]))
    [{'a': [1, 2], 'b': [['x'], None]}, None]
    """
    kind = array.type
    if pa.types.is_list(kind):
        return _lists(array)
    if pa.types.is_struct(kind):
        rows = zip(*(values(array.field(place)) for place in range(kind.num_fields)), strict=True)
        names = [field.name for field in kind]
        found: list[Any] = [dict(zip(names, row, strict=True)) for row in rows]
        return _without(found, array)
    if pa.types.is_string(kind):
        # Opcodes, kinds and names repeat: one object for each of them, and one conversion.
        encoded = array.dictionary_encode()
        words = [*encoded.dictionary.to_pylist(), None]
        return [words[index] for index in encoded.indices.fill_null(-1).to_numpy().tolist()]
    if pa.types.is_integer(kind) and array.null_count:
        # Twice as fast as asking Arrow for each of them.
        return _without(array.fill_null(0).to_numpy().tolist(), array)
    plain: list[Any] = (
        array.to_pylist() if array.null_count else array.to_numpy(zero_copy_only=False).tolist()
    )
    return plain


def _lists(array: pa.ListArray) -> list[Any]:
    offsets = array.offsets.to_numpy()
    # A slice of a longer array holds the values of all of it.
    inner = array.values.slice(offsets[0], offsets[-1] - offsets[0])
    bounds = (offsets - offsets[0]).tolist()
    pieces = list(pairwise(bounds))
    if pa.types.is_struct(inner.type):
        names = [field.name for field in inner.type]
        columns = [values(inner.field(place)) for place in range(len(names))]
        found: list[Any] = [
            {name: column[start:end] for name, column in zip(names, columns, strict=True)}
            for start, end in pieces
        ]
    else:
        items = values(inner)
        found = [items[start:end] for start, end in pieces]
    return _without(found, array)


def _without(found: list[Any], array: pa.Array) -> list[Any]:
    """Null where the array is null."""
    if not array.null_count:
        return found
    present = array.is_valid().to_numpy(zero_copy_only=False).tolist()
    return [each if there else None for each, there in zip(found, present, strict=True)]
