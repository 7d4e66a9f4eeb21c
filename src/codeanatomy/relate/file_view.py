"""The inputs of the relate stage: what the witnesses said of a file, side by side.

    frame = witnessed_files(ast_files_v1=..., ..., partitions=8)      # a row per file
    for file in files_in(batch): summary(file)
    summary(heard_file(place, rows))                   # of rows that are at hand, without Spark

Tests: `tests/spark/test_relate.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from codeanatomy.arrow import to_python
from codeanatomy.relate.compile.file_summary import Witnessed
from codeanatomy.relate.compile.syntax_tree import FIELDS

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


def heard_file(
    repo_id: str, file_id: str, path: str, rows: Mapping[str, Sequence[pa.RecordBatch]]
) -> Witnessed:
    """A file from whole rows of the witnesses that are about it."""

    def said(table: str, lists: Iterable[str]) -> dict[str, Any]:
        found = next((part for part in rows.get(table, ()) if part.num_rows), None)
        return {} if found is None else {name: to_python(found.column(name))[0] for name in lists}

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
    columns = [to_python(column) for column in batch.columns]
    for repo_id, file_id, path, *witnesses in zip(*columns, strict=True):
        yield Witnessed(repo_id, file_id, path, *(said or {} for said in witnesses))
