"""Declare the tables of the normalize stage: types, control flow, data flow and diagnostics as flat rows.

`def f(x): return x` gives one entry block, one exit block and an edge between them, a def event of `x` at
entry, a use event of `x` at `return x`, and the row of `py_bc_reaches_v1` that joins the two events.
Offsets named `bc_*` count bytes of bytecode, `bstart` and `bend` count bytes of source text.

Each table is derived by the function of its name in `codeanatomy.normalize`: the `py_bc` tables in
`flow.tables`, the type tables in `types.tables`, the others in `span_errors`, `diagnostics` and `evidence`.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import (
    MB,
    Column,
    Constraint,
    DeltaWritePolicy,
    ForeignKey,
    Table,
    WriterProperties,
)
from codeanatomy.catalog.tables.columns import (
    BY_OWNER,
    FILE_COLUMNS,
    FILE_KEY,
    LINE,
    SPAN_ORDERED,
    diagnostics_table,
    one_of,
    span,
)

TYPE_ID = Column(
    "type_id", "string", "Id of the type; equal types of a repository share it.", False, "TypeId"
)
TYPE_REPR = Column("type_repr", "string", "Normalized text of the type.", nullable=False)
EXPR_ID = Column("expr_id", "string", "Id of the type expression.", False, "ExprId")

TYPE_KINDS = (
    "name",
    "generic",
    "union",
    "literal",
    "annotated",
    "callable",
    "parameters",
    "tuple",
    "unpacked",
    "none",
    "ellipsis",
    "constant",
    "expression",
    "unparsed",
)

TYPE_EXPRS_NORM_V1 = Table(
    "type_exprs_norm_v1",
    "normalize",
    "One row per annotation or type comment, with its type.",
    (
        *FILE_COLUMNS,
        EXPR_ID,
        Column("expr_kind", "string", "Form: annotation, string_annotation or type_comment.", False),
        Column(
            "expr_role",
            "string",
            "Annotated target: param, return, variable or attribute; signature for the type comment of a "
            "function that could not be split into its parameters.",
            nullable=False,
        ),
        *span("owner", "the definition it belongs to; null at module level"),
        Column(
            "target_name",
            "string",
            "Name of the parameter, variable or attribute; null for a return and for other targets.",
        ),
        Column("expr_text", "string", "Source text of the type.", nullable=False),
        TYPE_ID,
        TYPE_REPR,
        *span(of="the type", nullable=False),
        LINE,
    ),
    primary_key=("expr_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("libcst_files_v1",),
    constraints=(
        SPAN_ORDERED,
        one_of("expr_kind", "annotation", "string_annotation", "type_comment"),
        one_of("expr_role", "param", "return", "variable", "attribute", "signature"),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("repo_id", "file_id", "bstart", "bend", "expr_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "file_id", "path", "expr_id", "expr_kind", "bstart", "bend"),
        writer=WriterProperties(dictionary_off=("expr_id",)),
        enable_features=BY_OWNER,
    ),
)

TYPE_NODES_V1 = Table(
    "type_nodes_v1",
    "normalize",
    "One row per part of a type expression, including nested parts: the structure of the type.",
    (
        *FILE_COLUMNS,
        EXPR_ID,
        Column("node_index", "int", "Index in a preorder traversal of the type; 0 is the whole type.", False),
        Column(
            "parent_index", "int", "`node_index` of the part it is an argument of; null for the whole type."
        ),
        Column("arg_index", "int", "Index among the arguments, from 0; null for the whole type."),
        TYPE_ID,
        Column("type_kind", "string", "Form of the part, such as name, generic, union or literal.", False),
        Column(
            "type_name",
            "string",
            "Name without arguments, qualified through the file's imports; `typing.Union` for every union; "
            "empty if it has no name.",
            nullable=False,
        ),
        Column(
            "is_qualified", "boolean", "`type_name` was resolved; if false, it is as written.", nullable=False
        ),
        TYPE_REPR,
        *span(of="the part without quotes; null if it is implicit, or its position in a string is unknown"),
    ),
    primary_key=("expr_id", "node_index"),
    foreign_keys=(FILE_KEY, ForeignKey(("expr_id",), "type_exprs_norm_v1", ("expr_id",))),
    owner="file_id",
    inputs=("libcst_files_v1", "type_exprs_norm_v1"),
    constraints=(
        SPAN_ORDERED,
        Constraint(
            "parent_before_child",
            "(node_index = 0 AND parent_index IS NULL) OR (parent_index >= 0 AND parent_index < node_index)",
            "Only the whole type has no parent, and parts follow their parents.",
        ),
        one_of("type_kind", *TYPE_KINDS),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("repo_id", "file_id", "bstart", "bend", "type_id"),
        stats_policy="explicit",
        stats_columns=("repo_id", "file_id", "path", "type_id", "type_kind", "type_name"),
        enable_features=BY_OWNER,
    ),
)

CODE_UNIT_ID = Column("code_unit_id", "string", "Id of the code object.", False, "CodeUnitId")
BC_BLOCK_ID = Column("bc_block_id", "string", "Id of the basic block.", False, "BlockId")

PY_BC_BLOCKS_NORM_V1 = Table(
    "py_bc_blocks_norm_v1",
    "normalize",
    "One row per basic block of a code object, and one for its exit.",
    (
        *FILE_COLUMNS,
        CODE_UNIT_ID,
        BC_BLOCK_ID,
        Column("bc_block_kind", "string", "entry, normal, handler or exit.", nullable=False),
        Column(
            "bc_offset_start", "int", "First offset; for the exit, the length of the code.", False, "BcOffset"
        ),
        Column(
            "bc_offset_end",
            "int",
            "Offset after the block; for the exit, the length of the code.",
            False,
            "BcOffset",
        ),
        *span(of="the source of its instructions; null if they have none"),
        LINE,
    ),
    primary_key=("bc_block_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=("bytecode_files_v1",),
    constraints=(
        SPAN_ORDERED,
        one_of("bc_block_kind", "entry", "normal", "handler", "exit"),
        Constraint(
            "block_not_empty",
            "bc_offset_end > bc_offset_start OR (bc_block_kind = 'exit' AND bc_offset_end = bc_offset_start)",
            "Only the exit block has no instruction.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("repo_id", "file_id", "code_unit_id", "bc_offset_start", "bc_block_id"),
        stats_policy="explicit",
        stats_columns=(
            "repo_id",
            "file_id",
            "code_unit_id",
            "bc_block_id",
            "bc_offset_start",
            "bc_offset_end",
        ),
        writer=WriterProperties(dictionary_off=("bc_block_id",)),
        enable_features=BY_OWNER,
    ),
)

PY_BC_CFG_EDGES_NORM_V1 = Table(
    "py_bc_cfg_edges_norm_v1",
    "normalize",
    "One row per control-flow edge between basic blocks.",
    (
        *FILE_COLUMNS,
        CODE_UNIT_ID,
        Column("bc_edge_id", "string", "Id of the control-flow edge.", False, "CfgEdgeId"),
        Column(
            "bc_edge_kind",
            "string",
            "next, jump, branch_true, branch_false, loop_body, loop_exit or exception.",
            nullable=False,
        ),
        Column("bc_src_block_id", "string", "Source block.", False, "BlockId"),
        Column("bc_dst_block_id", "string", "Target block.", False, "BlockId"),
        Column("bc_branch_offset", "int", "Offset of the branching instruction, if any.", True, "BcOffset"),
        *span(of="the source of that instruction"),
    ),
    primary_key=("bc_edge_id",),
    foreign_keys=(
        FILE_KEY,
        ForeignKey(("bc_src_block_id",), "py_bc_blocks_norm_v1", ("bc_block_id",)),
        ForeignKey(("bc_dst_block_id",), "py_bc_blocks_norm_v1", ("bc_block_id",)),
    ),
    owner="file_id",
    inputs=("bytecode_files_v1", "py_bc_blocks_norm_v1"),
    constraints=(
        SPAN_ORDERED,
        one_of(
            "bc_edge_kind",
            "next",
            "jump",
            "branch_true",
            "branch_false",
            "loop_body",
            "loop_exit",
            "exception",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("repo_id", "file_id", "code_unit_id", "bc_src_block_id", "bc_dst_block_id"),
        stats_policy="explicit",
        stats_columns=(
            "repo_id",
            "file_id",
            "code_unit_id",
            "bc_edge_id",
            "bc_edge_kind",
            "bc_src_block_id",
            "bc_dst_block_id",
        ),
        writer=WriterProperties(dictionary_off=("bc_edge_id",)),
        enable_features=BY_OWNER,
    ),
)

BC_VAR_NAME = Column("bc_var_name", "string", "Name of the variable, as in the bytecode.", nullable=False)

PY_BC_DEF_USE_EVENTS_V1 = Table(
    "py_bc_def_use_events_v1",
    "normalize",
    "One row per definition, use or deletion of a variable; not of constants, attributes or subscripts.",
    (
        *FILE_COLUMNS,
        CODE_UNIT_ID,
        BC_BLOCK_ID,
        Column("bc_event_id", "string", "Id of the event.", False, "EventId"),
        Column("bc_event_kind", "string", "def, use or del.", nullable=False),
        Column("bc_event_offset", "int", "Offset of its instruction; 0 for a parameter.", False, "BcOffset"),
        BC_VAR_NAME,
        Column("bc_var_kind", "string", "Storage of the variable: fast, cell, free, global or name.", False),
        Column("bc_opname", "string", "Operation name; null for a parameter."),
        Column("bc_is_parameter", "boolean", "Definition of a parameter at entry.", nullable=False),
        Column(
            "bc_may_be_unbound",
            "boolean",
            "Some path reaches the event without a definition, or another code object may have deleted the "
            "variable; a name is then looked up in outer scopes. Null for a def, and for free and global "
            "variables.",
        ),
        *span(of="the syntax node that names the variable; null if the compiler generated the event"),
        LINE,
    ),
    primary_key=("bc_event_id",),
    foreign_keys=(FILE_KEY, ForeignKey(("bc_block_id",), "py_bc_blocks_norm_v1", ("bc_block_id",))),
    owner="file_id",
    inputs=("bytecode_files_v1", "ast_files_v1", "py_bc_blocks_norm_v1", "py_bc_cfg_edges_norm_v1"),
    constraints=(
        SPAN_ORDERED,
        one_of("bc_event_kind", "def", "use", "del"),
        one_of("bc_var_kind", "fast", "cell", "free", "global", "name"),
        Constraint(
            "parameter_is_def",
            "NOT bc_is_parameter OR (bc_event_kind = 'def' AND bc_event_offset = 0)",
            "A parameter is defined at entry.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("repo_id", "file_id", "code_unit_id", "bc_block_id", "bc_event_offset"),
        stats_policy="explicit",
        stats_columns=(
            "repo_id",
            "file_id",
            "code_unit_id",
            "bc_event_id",
            "bc_event_kind",
            "bc_block_id",
            "bc_var_name",
        ),
        writer=WriterProperties(dictionary_off=("bc_event_id",)),
        enable_features=BY_OWNER,
    ),
)

PY_BC_REACHES_V1 = Table(
    "py_bc_reaches_v1",
    "normalize",
    "One row per definition of a variable and use that it may reach.",
    (
        *FILE_COLUMNS,
        Column("code_unit_id", "string", "Code object of the use.", False, "CodeUnitId"),
        Column("bc_reach_id", "string", "Id of the pair.", False, "ReachId"),
        Column(
            "bc_reach_kind",
            "string",
            "local: along control flow; closure: through a cell; global: through the module.",
            nullable=False,
        ),
        Column("bc_use_event_id", "string", "Id of the use event.", False, "EventId"),
        Column("bc_def_event_id", "string", "Id of the def event.", False, "EventId"),
        BC_VAR_NAME,
        *span(of="the use"),
        LINE,
    ),
    primary_key=("bc_reach_id",),
    foreign_keys=(
        FILE_KEY,
        ForeignKey(("bc_use_event_id",), "py_bc_def_use_events_v1", ("bc_event_id",)),
        ForeignKey(("bc_def_event_id",), "py_bc_def_use_events_v1", ("bc_event_id",)),
    ),
    owner="file_id",
    inputs=(
        "bytecode_files_v1",
        "py_bc_blocks_norm_v1",
        "py_bc_cfg_edges_norm_v1",
        "py_bc_def_use_events_v1",
    ),
    constraints=(SPAN_ORDERED, one_of("bc_reach_kind", "local", "closure", "global")),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("repo_id", "file_id", "code_unit_id", "bc_use_event_id", "bc_def_event_id"),
        stats_policy="explicit",
        stats_columns=(
            "repo_id",
            "file_id",
            "code_unit_id",
            "bc_reach_id",
            "bc_reach_kind",
            "bc_use_event_id",
            "bc_def_event_id",
        ),
        writer=WriterProperties(dictionary_off=("bc_reach_id",)),
        enable_features=BY_OWNER,
    ),
)

SPAN_ERRORS_V1 = Table(
    "span_errors_v1",
    "normalize",
    "One row per position that could not be converted to a byte span of its file.",
    (
        *FILE_COLUMNS,
        Column("span_error_id", "string", "Id of the failure.", False, "SpanErrorId"),
        Column("span_error_kind", "string", "Reason, such as missing_file or line_out_of_range.", False),
        Column("witness", "string", "Witness that gave the position.", nullable=False),
        Column("subject", "string", "Element at the position, such as occurrence or diagnostic.", False),
        Column("start_line", "int", "First line as reported, counted from 0."),
        Column("start_col", "int", "First column as reported, in units of `col_unit`, from 0."),
        Column("end_line", "int", "Last line as reported, counted from 0."),
        Column("end_col", "int", "Column after the end as reported, in units of `col_unit`."),
        Column("col_unit", "string", "Unit of the columns: utf8, utf16 or utf32."),
        *span(of="the nearest known range, such as the line; null if there is none"),
        Column("message", "string", "Text of the failure.", nullable=False),
    ),
    primary_key=("span_error_id",),
    owner="file_id",
    inputs=(
        "repo_files_v1",
        "file_line_index_v1",
        "ast_files_v1",
        "libcst_files_v1",
        "scip_index_v1",
    ),
    constraints=(SPAN_ORDERED, one_of("col_unit", "utf8", "utf16", "utf32", nullable=True)),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "file_id", "bstart", "bend", "span_error_kind"),
        stats_policy="explicit",
        stats_columns=("repo_id", "file_id", "span_error_id", "span_error_kind", "bstart", "bend"),
        enable_features=BY_OWNER,
    ),
)

DIAGNOSTICS_NORM_V1 = diagnostics_table(
    "diagnostics_norm_v1",
    "normalize",
    "One row per diagnostic of a witness about a file, or disagreement between witnesses.",
    ("cpython", "libcst", "tree_sitter", "scip", "disagreement"),
    (
        "repo_files_v1",
        "file_line_index_v1",
        "ast_files_v1",
        "libcst_files_v1",
        "tree_sitter_files_v1",
        "bytecode_files_v1",
        "symtable_files_v1",
        "scip_index_v1",
    ),
)

NORMALIZE_EVIDENCE_V1 = Table(
    "normalize_evidence_v1",
    "normalize",
    "One row per normalized row and witness that supports it.",
    (
        *FILE_COLUMNS,
        Column("dataset_name", "string", "Table of the normalized row.", nullable=False),
        Column(
            "evidence_key",
            "string",
            "Id of the normalized row; parts of a type have the id of their type expression.",
            False,
            "EvidenceKey",
        ),
        Column("evidence_family", "string", "type, control_flow, data_flow, diagnostic or span.", False),
        Column("witness", "string", "Witness that gave the evidence.", nullable=False),
        Column(
            "role", "string", "Contribution of the witness, such as the row's kind or a confirmation.", False
        ),
        Column("confidence", "double", "Confidence in this contribution.", False, "Confidence"),
        *span(of="the range that the evidence is about"),
        Column(
            "timestamp_ms",
            "bigint",
            "Modification time of the file, milliseconds since 1970 UTC; not the time of the build.",
        ),
    ),
    primary_key=("dataset_name", "evidence_key", "witness", "role"),
    # No foreign key to repo_files_v1: a SCIP index may describe files that are not in the repository.
    owner="file_id",
    inputs=(
        "repo_files_v1",
        "type_exprs_norm_v1",
        "type_nodes_v1",
        "py_bc_blocks_norm_v1",
        "py_bc_cfg_edges_norm_v1",
        "py_bc_def_use_events_v1",
        "py_bc_reaches_v1",
        "span_errors_v1",
        "diagnostics_norm_v1",
    ),
    constraints=(
        SPAN_ORDERED,
        one_of("evidence_family", "type", "control_flow", "data_flow", "diagnostic", "span"),
        Constraint(
            "confidence_scale", "confidence >= 0 AND confidence <= 1", "Confidence is between 0 and 1."
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("repo_id", "file_id", "dataset_name", "evidence_key"),
        stats_policy="explicit",
        stats_columns=(
            "repo_id",
            "file_id",
            "dataset_name",
            "evidence_family",
            "evidence_key",
            "timestamp_ms",
        ),
        writer=WriterProperties(dictionary_off=("evidence_key",)),
        enable_features=BY_OWNER,
    ),
)

TABLES = (
    TYPE_EXPRS_NORM_V1,
    TYPE_NODES_V1,
    PY_BC_BLOCKS_NORM_V1,
    PY_BC_CFG_EDGES_NORM_V1,
    PY_BC_DEF_USE_EVENTS_V1,
    PY_BC_REACHES_V1,
    SPAN_ERRORS_V1,
    DIAGNOSTICS_NORM_V1,
    NORMALIZE_EVIDENCE_V1,
)
