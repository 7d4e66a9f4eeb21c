"""Read the input of the relate stage: the rows of all extractors about one file, side by side.

    for file in files_in(batch): compile_file(file)          # a batch with a row per file, from Spark
    compile_file(file_from_rows(repo_id, file_id, path, rows))   # from rows in memory, without Spark

Tests: `tests/spark/test_relate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from codeanatomy.arrow import to_python
from codeanatomy.definitions import FIELDS as DEFINITION_FIELDS
from codeanatomy.relate.compile.file_program import ExtractedFile
from codeanatomy.syntax_tree import FIELDS

# Fields that are read, by the list of an extractor.
AST: Mapping[str, tuple[str, ...]] = {
    "nodes": FIELDS,
    "definitions": DEFINITION_FIELDS,
    "imports": ("ast_id", "module", "name", "asname", "level"),
}
LIBCST: Mapping[str, tuple[str, ...]] = {
    "refs": ("text", "kind", "context", "expr_bstart", "expr_bend", "bstart", "bend", "line"),
    "defs": ("kind", "name", "def_bstart", "def_bend", "name_bstart", "name_bend", "line"),
    "params": ("owner_bstart", "owner_bend", "name", "bstart", "bend", "line"),
    "imports": ("kind", "name", "asname", "is_star", "stmt_bstart", "alias_bstart", "alias_bend", "line"),
    "callsites": ("call_bstart", "call_bend", "line"),
    "call_args": ("bstart", "bend"),
    "decorators": ("bstart", "bend"),
}
BLOCKS = ("scope_key", "parent_key", "type", "name", "lineno")
OCCURRENCES = ("bstart", "bend", "symbol", "symbol_roles")


def file_from_rows(
    repo_id: str, file_id: str, path: str, rows: Mapping[str, Sequence[pa.RecordBatch]]
) -> ExtractedFile:
    """Build the view of a file from the extract tables' rows about it."""

    def lists(table: str, names: Iterable[str]) -> dict[str, Any]:
        row = next((batch for batch in rows.get(table, ()) if batch.num_rows), None)
        return {} if row is None else {name: to_python(row.column(name))[0] for name in names}

    return ExtractedFile(
        repo_id,
        file_id,
        path,
        ast=lists("ast_files_v1", AST),
        symtable=lists("symtable_files_v1", ("blocks",)),
        libcst=lists("libcst_files_v1", LIBCST),
        scip=lists("scip_index_v1", ("occurrences",)),
        typed=lists("type_checker_files_v1", ("call_targets",)),
    )


def files_in(batch: pa.RecordBatch) -> Iterator[ExtractedFile]:
    """Yield the files of a batch: columns repo_id, file_id, path, then one per extractor."""
    columns = [to_python(column) for column in batch.columns]
    for repo_id, file_id, path, *extracted in zip(*columns, strict=True):
        yield ExtractedFile(repo_id, file_id, path, *(lists or {} for lists in extracted))
