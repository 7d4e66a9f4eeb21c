"""Tables of the normalize stage: flat facts, each by one function of the table's name.

`def f(x): return x` gives one entry block, one exit block and an edge between them, a def event of `x` at
entry, a use event of `x` at `return x`, and the row of `py_bc_reaches_v1` that joins the two events.
Offsets named `bc_*` count bytes of bytecode, `bstart` and `bend` count bytes of source text.

The functions are in `codeanatomy.normalize`: of the `py_bc` tables in `flow_tables`, of the types in
`type_tables`, of the others in `span_errors`, `diagnostics` and `evidence`.

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
    FILE_KEY,
    LINE,
    PLACE,
    SEVERITIES,
    SPAN_ORDERED,
    one_of,
    span,
)

TYPE_ID = Column("type_id", "string", "The type; equal types of a repository share it.", False, "TypeId")
TYPE_REPR = Column("type_repr", "string", "Normal form of the type, case kept.", nullable=False)
EXPR_ID = Column("expr_id", "string", "The type expression.", False, "ExprId")

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
    "One row per annotation or type comment, with the type it means.",
    (
        *PLACE,
        EXPR_ID,
        Column("expr_kind", "string", "Its form: annotation, string_annotation or type_comment.", False),
        Column(
            "expr_role",
            "string",
            "What it annotates: param, return, variable or attribute; signature for the type comment of a "
            "function that could not be taken apart.",
            nullable=False,
        ),
        *span("owner", "the definition it belongs to; null in the module"),
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
        zorder_by=("file_id", "bstart", "bend", "expr_id"),
        stats_policy="explicit",
        stats_columns=("file_id", "path", "expr_id", "expr_kind", "bstart", "bend"),
        writer=WriterProperties(dictionary_off=("expr_id",)),
    ),
)

TYPE_NODES_V1 = Table(
    "type_nodes_v1",
    "normalize",
    "One row per part of a type expression: the structure of the type, nested parts included.",
    (
        *PLACE,
        EXPR_ID,
        Column("node_index", "int", "Place in a preorder walk of the type; 0 is the whole.", False),
        Column("parent_index", "int", "Part it is an argument of; null for the whole."),
        Column("arg_index", "int", "Which argument, from 0; null for the whole."),
        TYPE_ID,
        Column("type_kind", "string", "Form of the part, such as name, generic, union or literal.", False),
        Column(
            "type_name",
            "string",
            "Name at its head, qualified through the file's imports; `typing.Union` for every union, empty "
            "for what has no name.",
            nullable=False,
        ),
        Column("is_qualified", "boolean", "That name was found; else it is as written.", nullable=False),
        TYPE_REPR,
        *span(of="the part without quotes; null where a string hides its place, or nothing is written"),
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
            "Only the whole has no parent, and parts follow theirs.",
        ),
        one_of("type_kind", *TYPE_KINDS),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("file_id", "bstart", "bend", "type_id"),
        stats_policy="explicit",
        stats_columns=("file_id", "path", "type_id", "type_kind", "type_name"),
    ),
)

CODE_UNIT_ID = Column("code_unit_id", "string", "The code object.", False, "CodeUnitId")
BC_BLOCK_ID = Column("bc_block_id", "string", "The basic block.", False, "BlockId")

PY_BC_BLOCKS_NORM_V1 = Table(
    "py_bc_blocks_norm_v1",
    "normalize",
    "One row per basic block of a code object, and one for its exit.",
    (
        *PLACE,
        CODE_UNIT_ID,
        BC_BLOCK_ID,
        Column("bc_block_kind", "string", "entry, normal, handler or exit.", nullable=False),
        Column("bc_offset_start", "int", "First offset; of the exit the code's length.", False, "BcOffset"),
        Column("bc_offset_end", "int", "Offset after it; of the exit the code's length.", False, "BcOffset"),
        *span(of="the source its instructions come from; null if they have none"),
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
            "Only the exit holds no instruction.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=256 * MB,
        zorder_by=("file_id", "code_unit_id", "bc_offset_start", "bc_block_id"),
        stats_policy="explicit",
        stats_columns=("file_id", "code_unit_id", "bc_block_id", "bc_offset_start", "bc_offset_end"),
        writer=WriterProperties(dictionary_off=("bc_block_id",)),
    ),
    cache="memory",
)

PY_BC_CFG_EDGES_NORM_V1 = Table(
    "py_bc_cfg_edges_norm_v1",
    "normalize",
    "One row per way control may go from one basic block to another.",
    (
        *PLACE,
        CODE_UNIT_ID,
        Column("bc_edge_id", "string", "The control-flow edge.", False, "CfgEdgeId"),
        Column(
            "bc_edge_kind",
            "string",
            "next, jump, branch_true, branch_false, loop_body, loop_exit or exception.",
            nullable=False,
        ),
        Column("bc_src_block_id", "string", "Block control leaves.", False, "BlockId"),
        Column("bc_dst_block_id", "string", "Block control enters.", False, "BlockId"),
        Column("bc_branch_offset", "int", "Instruction that decides, if one does.", True, "BcOffset"),
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
        zorder_by=("file_id", "code_unit_id", "bc_src_block_id", "bc_dst_block_id"),
        stats_policy="explicit",
        stats_columns=(
            "file_id",
            "code_unit_id",
            "bc_edge_id",
            "bc_edge_kind",
            "bc_src_block_id",
            "bc_dst_block_id",
        ),
        writer=WriterProperties(dictionary_off=("bc_edge_id",)),
    ),
)

BC_VAR_NAME = Column("bc_var_name", "string", "The variable, as the compiler names it.", nullable=False)

PY_BC_DEF_USE_EVENTS_V1 = Table(
    "py_bc_def_use_events_v1",
    "normalize",
    "One row per definition, use or deletion of a variable; never of constants, attributes or subscripts.",
    (
        *PLACE,
        CODE_UNIT_ID,
        BC_BLOCK_ID,
        Column("bc_event_id", "string", "The event.", False, "EventId"),
        Column("bc_event_kind", "string", "def, use or del.", nullable=False),
        Column("bc_event_offset", "int", "Its instruction; of a parameter 0.", False, "BcOffset"),
        BC_VAR_NAME,
        Column("bc_var_kind", "string", "Where the variable lives: fast, cell, free, global or name.", False),
        Column("bc_opname", "string", "Operation that does it; null for a parameter."),
        Column("bc_is_parameter", "boolean", "A parameter's definition at entry.", nullable=False),
        Column(
            "bc_may_be_unbound",
            "boolean",
            "Some path comes here without a definition, or another unit may have deleted it; a name is then "
            "looked up further out. Null for a def, and for free and global variables.",
        ),
        *span(of="the syntax node that names the variable; null where the compiler made the event up"),
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
        zorder_by=("file_id", "code_unit_id", "bc_block_id", "bc_event_offset"),
        stats_policy="explicit",
        stats_columns=(
            "file_id",
            "code_unit_id",
            "bc_event_id",
            "bc_event_kind",
            "bc_block_id",
            "bc_var_name",
        ),
        writer=WriterProperties(dictionary_off=("bc_event_id",)),
    ),
)

PY_BC_REACHES_V1 = Table(
    "py_bc_reaches_v1",
    "normalize",
    "One row per definition and use of a variable such that the value may flow from one to the other.",
    (
        *PLACE,
        Column("code_unit_id", "string", "Code object of the use.", False, "CodeUnitId"),
        Column("bc_reach_id", "string", "The pair.", False, "ReachId"),
        Column(
            "bc_reach_kind",
            "string",
            "local along control flow, closure through a cell, global through the module.",
            nullable=False,
        ),
        Column("bc_use_event_id", "string", "The use.", False, "EventId"),
        Column("bc_def_event_id", "string", "The definition.", False, "EventId"),
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
        zorder_by=("file_id", "code_unit_id", "bc_use_event_id", "bc_def_event_id"),
        stats_policy="explicit",
        stats_columns=(
            "file_id",
            "code_unit_id",
            "bc_reach_id",
            "bc_reach_kind",
            "bc_use_event_id",
            "bc_def_event_id",
        ),
        writer=WriterProperties(dictionary_off=("bc_reach_id",)),
    ),
)

SPAN_ERRORS_V1 = Table(
    "span_errors_v1",
    "normalize",
    "One row per position of a witness that could not be placed in its file; none on healthy input.",
    (
        *PLACE,
        Column("span_error_id", "string", "The failure.", False, "SpanErrorId"),
        Column("span_error_kind", "string", "Why, such as missing_file or line_out_of_range.", False),
        Column("witness", "string", "Who gave the position.", nullable=False),
        Column("subject", "string", "What it was the position of, such as occurrence or diagnostic.", False),
        Column("start_line", "int", "First line as given, counted from 0."),
        Column("start_col", "int", "First column as given, in units of `col_unit`, from 0."),
        Column("end_line", "int", "Last line as given, counted from 0."),
        Column("end_col", "int", "Column after the end as given, in units of `col_unit`."),
        Column("col_unit", "string", "Unit of the columns: utf8, utf16 or utf32."),
        *span(of="the nearest place known, such as the line; null without one"),
        Column("message", "string", "The failure in words.", nullable=False),
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
        zorder_by=("file_id", "bstart", "bend", "span_error_kind"),
        stats_policy="explicit",
        stats_columns=("file_id", "span_error_id", "span_error_kind", "bstart", "bend"),
    ),
)

DIAGNOSTICS_NORM_V1 = Table(
    "diagnostics_norm_v1",
    "normalize",
    "One row per complaint of a witness, or disagreement between witnesses, about a file.",
    (
        *PLACE,
        Column("diag_id", "string", "The diagnostic.", False, "DiagId"),
        Column("diag_kind", "string", "cpython, libcst, tree_sitter, scip, disagreement or relate.", False),
        Column("diag_severity", "string", "error, warning, info or hint.", nullable=False),
        Column("diag_code", "string", "Which complaint, stable over releases.", nullable=False),
        Column("diag_line_start", "int", "First line, counted from 1.", semantic_type="LineNo1"),
        Column("diag_col_start", "int", "Bytes of canonical text before it in that line."),
        Column("diag_line_end", "int", "Last line, counted from 1.", semantic_type="LineNo1"),
        Column("diag_col_end", "int", "Bytes of canonical text before the end in that line."),
        *span(of="what the complaint is about; null for the whole file"),
        Column("message", "string", "The complaint in words.", nullable=False),
        Column("details", "map<string,string>", "What each witness said, and other particulars."),
    ),
    primary_key=("diag_id",),
    foreign_keys=(FILE_KEY,),
    owner="file_id",
    inputs=(
        "repo_files_v1",
        "file_line_index_v1",
        "ast_files_v1",
        "libcst_files_v1",
        "tree_sitter_files_v1",
        "bytecode_files_v1",
        "symtable_files_v1",
        "scip_index_v1",
    ),
    constraints=(
        SPAN_ORDERED,
        one_of("diag_kind", "cpython", "libcst", "tree_sitter", "scip", "disagreement", "relate"),
        one_of("diag_severity", *SEVERITIES),
        Constraint(
            "lines_ordered",
            "(diag_line_start IS NULL AND diag_line_end IS NULL) OR diag_line_end >= diag_line_start",
            "It does not end on a line before it begins.",
        ),
    ),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("file_id", "diag_line_start", "diag_col_start", "diag_id"),
        stats_policy="explicit",
        stats_columns=(
            "file_id",
            "diag_id",
            "diag_kind",
            "diag_severity",
            "diag_code",
            "diag_line_start",
            "diag_line_end",
        ),
    ),
)

NORMALIZE_EVIDENCE_V1 = Table(
    "normalize_evidence_v1",
    "normalize",
    "One row per witness that stands behind a normalized row: who said what about which place.",
    (
        *PLACE,
        Column("dataset_name", "string", "Table of the normalized row.", nullable=False),
        Column(
            "evidence_key",
            "string",
            "Id of the normalized row; the parts of a type share the id of their expression.",
            False,
            "EvidenceKey",
        ),
        Column("evidence_family", "string", "type, control_flow, data_flow, diagnostic or span.", False),
        Column("witness", "string", "Who said it.", nullable=False),
        Column("role", "string", "What it contributed, such as the row's kind or a confirmation.", False),
        Column("confidence", "double", "Trust in this contribution.", False, "Confidence"),
        *span(of="the place it spoke about"),
        Column(
            "timestamp_ms",
            "bigint",
            "The file's last change, milliseconds since 1970 UTC; never the time of the build.",
        ),
    ),
    primary_key=("dataset_name", "evidence_key", "witness", "role"),
    # None: what is said of a file that the repository lacks has evidence too.
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
        Constraint("confidence_scale", "confidence >= 0 AND confidence <= 1", "It is between 0 and 1."),
    ),
    write=DeltaWritePolicy(
        target_file_size=128 * MB,
        zorder_by=("file_id", "dataset_name", "evidence_key"),
        stats_policy="explicit",
        stats_columns=("file_id", "dataset_name", "evidence_family", "evidence_key", "timestamp_ms"),
        writer=WriterProperties(dictionary_off=("evidence_key",)),
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
