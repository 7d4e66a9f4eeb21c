"""View one file as the graph stage reads it: its rows in all tables, lists as columns.

    file.list("libcst_files_v1", "refs")["text"]        # a list of a nested row
    file.rows("relations_v1")["src_id"]                 # the rows of a flat table

What an extractor could not produce is an empty dictionary. `READS` declares the columns and fields that are
read of each table; a run reads nothing else. `file_from_rows` builds a file from Arrow rows.
Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from msgspec import Struct

from codeanatomy.arrow import to_python
from codeanatomy.definitions import FIELDS as DEFINITION_FIELDS

# Equally long lists, by name: the fields of a list of structs, or the columns of rows.
Columns: TypeAlias = Mapping[str, Sequence[Any]]

SPAN = ("bstart", "bend", "line")
SYMBOL = ("symbol", "display_name", "kind", "documentation", "signature")
# The columns read of each table, with the fields of nested columns.
READS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "repo_files_v1": dict.fromkeys(
        ("file_sha256", "size_bytes", "encoding", "newline", "is_stub", "skipped_reason"), ()
    ),
    "ast_files_v1": {
        "nodes": ("parent_ast_id", "slot", "idx", "kind", "name", "value", *SPAN),
        "definitions": DEFINITION_FIELDS,
        "imports": ("kind", "module", "name", "asname", "level", *SPAN),
        "docstrings": ("owner_ast_id", "text", *SPAN),
    },
    "libcst_files_v1": {
        "refs": ("text", "kind", "context", "expr_bstart", "expr_bend", *SPAN),
        "defs": (
            "kind",
            "name",
            "is_async",
            "container_bstart",
            "container_bend",
            "def_bstart",
            "def_bend",
            "name_bstart",
            "name_bend",
            "line",
        ),
        "params": ("owner_bstart", "owner_bend", "name", "kind", "index", "default_bstart", *SPAN),
        "imports": (
            "kind",
            "module",
            "name",
            "asname",
            "level",
            "is_star",
            "alias_bstart",
            "alias_bend",
            "bound_bstart",
            "bound_bend",
            "line",
        ),
        "callsites": ("call_bstart", "call_bend", "shape", "dotted", "qualified_names", "line"),
        "call_args": ("call_bstart", "call_bend", "index", "keyword", "star", *SPAN),
        "decorators": ("owner_bstart", "owner_bend", "index", "text", *SPAN),
        "docstrings": ("owner_bstart", "owner_bend", "text", *SPAN),
        "type_exprs": ("role", "target_bstart", "target_bend", "bstart", "bend"),
        "comments": ("text", *SPAN),
    },
    "tree_sitter_files_v1": {
        "errors": ("ts_id", "parent_kind", "text", *SPAN),
        "missing": ("ts_id", "parent_kind", "kind", *SPAN),
    },
    "bytecode_files_v1": {
        "code_objects": (
            "code_unit_key",
            "parent_key",
            "qualname",
            "name",
            "flags",
            "bstart",
            "bend",
            "instructions",
        ),
    },
    "symtable_files_v1": {"blocks": ("scope_key", "parent_key", "type", "name", "lineno", "symbols")},
    "scip_index_v1": {
        "occurrences": (
            "symbol",
            "symbol_roles",
            "is_definition",
            "is_import",
            "is_write",
            "is_read",
            "bstart",
            "bend",
            "start_line",
        ),
        "symbols": SYMBOL,
        "external_symbols": SYMBOL,
        "relationships": (
            "symbol",
            "related_symbol",
            "is_reference",
            "is_implementation",
            "is_type_definition",
            "is_definition",
        ),
    },
    "type_exprs_norm_v1": dict.fromkeys(
        (
            "expr_id",
            "expr_role",
            "owner_bstart",
            "owner_bend",
            "target_name",
            "expr_text",
            "type_id",
            "type_repr",
            *SPAN,
        ),
        (),
    ),
    "type_nodes_v1": dict.fromkeys(
        (
            "expr_id",
            "node_index",
            "parent_index",
            "arg_index",
            "type_id",
            "type_kind",
            "type_name",
            "type_repr",
        ),
        (),
    ),
    "py_bc_blocks_norm_v1": dict.fromkeys(
        ("code_unit_id", "bc_block_id", "bc_block_kind", "bc_offset_start", *SPAN), ()
    ),
    "py_bc_cfg_edges_norm_v1": dict.fromkeys(
        (
            "code_unit_id",
            "bc_edge_kind",
            "bc_src_block_id",
            "bc_dst_block_id",
            "bc_branch_offset",
            "bstart",
            "bend",
        ),
        (),
    ),
    "py_bc_def_use_events_v1": dict.fromkeys(
        (
            "code_unit_id",
            "bc_block_id",
            "bc_event_id",
            "bc_event_kind",
            "bc_event_offset",
            "bc_var_name",
            "bc_var_kind",
            "bc_may_be_unbound",
            *SPAN,
        ),
        (),
    ),
    "py_bc_reaches_v1": dict.fromkeys(
        ("bc_reach_kind", "bc_use_event_id", "bc_def_event_id", "bstart", "bend"), ()
    ),
    "diagnostics_norm_v1": dict.fromkeys(
        (
            "diag_id",
            "diag_kind",
            "diag_severity",
            "diag_code",
            "diag_line_start",
            "bstart",
            "bend",
            "message",
        ),
        (),
    ),
    "relations_v1": dict.fromkeys(
        (
            "relation_kind",
            "src_id",
            "src_kind",
            "src_qname",
            "dst_id",
            "dst_kind",
            "dst_qname",
            "role",
            "ordinal",
            *SPAN,
            "origin",
            "resolution_method",
            "confidence",
            "score",
            "symbol_roles",
            "ambiguity_group_id",
            "rule_name",
            "reason",
        ),
        (),
    ),
}
# Tables with one row per file.
NESTED = frozenset(name for name, columns in READS.items() if any(columns.values())) | {"repo_files_v1"}
# The fields read of lists inside of lists.
INNER: Mapping[str, tuple[str, ...]] = {
    "symbols": (
        "name",
        "is_parameter",
        "is_imported",
        "is_local",
        "is_free",
        "is_declared_global",
        "is_nonlocal",
    ),
    "instructions": ("offset", "opname", "argval", *SPAN),
    "qualified_names": ("name",),
}


class GraphFile(Struct, frozen=True):
    """A file and its rows in the tables that the graph stage reads."""

    repo_id: str
    file_id: str
    path: str
    tables: Mapping[str, Mapping[str, Any]]

    def list(self, table: str, name: str) -> Columns:
        """Return a list of the file's row in a nested table."""
        return self.tables.get(table, {}).get(name) or {}

    def rows(self, table: str) -> Columns:
        """Return the file's rows in a flat table by column; of a nested table the row itself."""
        return self.tables.get(table, {})


def file_from_rows(
    repo_id: str, file_id: str, path: str, rows: Mapping[str, Sequence[pa.RecordBatch]], *, instructions: bool
) -> GraphFile:
    """Build a file from its whole rows in all tables; its instructions only if requested."""
    tables: dict[str, Mapping[str, Any]] = {}
    for table, columns in READS.items():
        parts = [part for part in rows.get(table, ()) if part.num_rows]
        if parts and table in NESTED:
            tables[table] = {name: to_python(parts[0].column(name))[0] for name in columns}
        elif parts:
            tables[table] = {
                name: [value for part in parts for value in to_python(part.column(name))] for name in columns
            }
    units = tables.get("bytecode_files_v1", {}).get("code_objects")
    if units and not instructions:
        del units["instructions"]
    return GraphFile(repo_id, file_id, path, tables)


def iter_rows(columns: Columns, *names: str) -> Iterator[tuple[Any, ...]]:
    """Iterate over rows of the named columns.

    >>> list(iter_rows({"a": [1, 2], "b": [3, 4]}, "b", "a"))
    [(3, 1), (4, 2)]
    """
    return zip(*(columns[name] for name in names), strict=True) if columns else iter(())


def columns_of(rows: Sequence[tuple[Any, ...]], *names: str) -> dict[str, Sequence[Any]]:
    """Return rows as columns of these names.

    >>> columns_of([(1, "x"), (2, "y")], "number", "name")
    {'number': (1, 2), 'name': ('x', 'y')}
    """
    lists: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return dict(zip(names, lists, strict=True))
