"""Declare the columns that the graph stage reads of each table, with the fields of nested columns.

    load_views(batches, reads("default"))        # files as `graph.rows.rows_of_files` takes them

Instructions are nodes only in the profile "full": they are not read for another one.
Tests: `tests/unit/graph/test_facts.py`, `tests/unit/test_file_view.py`.
"""

from __future__ import annotations

from functools import cache

from codeanatomy.catalog.kinds import Profile
from codeanatomy.definitions import FIELDS as DEFINITION_FIELDS
from codeanatomy.file_view import BYTECODE, Reads, TableReads

SPAN = ("bstart", "bend", "line")
SYMBOL = ("symbol", "display_name", "kind", "documentation", "signature")
DIAGNOSTIC: TableReads = dict.fromkeys(
    (
        *("diag_id", "diag_kind", "diag_severity", "diag_code", "diag_line_start"),
        *("bstart", "bend", "message"),
    ),
    (),
)
# All that is read, by table.
READS: Reads = {
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
    "diagnostics_norm_v1": DIAGNOSTIC,
    "relate_diagnostics_v1": DIAGNOSTIC,
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


@cache
def reads(profile: Profile) -> Reads:
    """Return what is read for a profile."""
    if profile == "full":
        return READS
    units = READS[BYTECODE]["code_objects"]
    without = tuple(field for field in units if field != "instructions")
    return {**READS, BYTECODE: {**READS[BYTECODE], "code_objects": without}}
