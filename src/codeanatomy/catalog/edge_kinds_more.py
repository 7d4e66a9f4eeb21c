"""The kinds of edges, continued: SCIP's symbols, types, control and data flow, evidence.

Tests: `tests/test_kinds.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.kind_spec import FULL, EdgeKind, Ends, Facts

DEFINED = ("CLASS", "FUNCTION")
REFERENCES = ("NAME_REF", "ATTRIBUTE_REF")
EVENTS = ("DEF_EVENT", "USE_EVENT", "DEL_EVENT")
CFG = ("py_bc_cfg_edges_norm_v1",)


def _control(name: str, doc: str, example: str, role: str = "") -> EdgeKind:
    """A way that control may go."""
    ends = (Ends(("CFG_BLOCK",), ("CFG_BLOCK",)),)
    return EdgeKind(
        name, "flow", doc, example, CFG, ends, Facts(f"cfg.{name}"), "bytecode", "control_flow", role=role
    )


SCIP_SOURCES = ("scip_index_v1",)
SCIP = (
    EdgeKind(
        "HAS_OCCURRENCE",
        "SCIP",
        "A file and a place in it where a SCIP index has a symbol.",
        "f()",
        SCIP_SOURCES,
        (Ends(("FILE",), ("SCIP_OCCURRENCE",)),),
        Facts("scip_occurrences", {"src_id": "file_id", "dst_id": "node_id"}),
        "scip",
        "occurrence",
        per_dst="one",
        profiles=FULL,
    ),
    EdgeKind(
        "OCCURRENCE_OF",
        "SCIP",
        "A place and the symbol that a SCIP index has there.",
        "f()",
        SCIP_SOURCES,
        (Ends(("SCIP_OCCURRENCE",), ("SCIP_SYMBOL",)),),
        Facts("scip_occurrences", {"src_id": "node_id", "dst_id": "symbol_id", "role": "subkind"}),
        "scip",
        "occurrence",
        per_src="one",
        role="definition, import, write, read or reference",
        profiles=FULL,
    ),
    EdgeKind(
        "DEFINES_SYMBOL",
        "SCIP",
        "What stands where a SCIP index defines a symbol.",
        "def f(): ...   # function f -> its symbol",
        SCIP_SOURCES,
        (
            Ends(
                (
                    "MODULE",
                    "CLASS",
                    "FUNCTION",
                    "PARAMETER",
                    "IMPORT_ALIAS",
                    "NAME_REF",
                    "ATTRIBUTE_REF",
                    "TYPE_PARAM",
                ),
                ("SCIP_SYMBOL",),
            ),
        ),
        Facts("scip_definitions"),
        "scip",
        "occurrence",
    ),
    EdgeKind(
        "REFERENCES_SYMBOL",
        "SCIP",
        "What stands where a SCIP index refers to a symbol.",
        "f()   # name f -> its symbol",
        SCIP_SOURCES,
        (Ends(("IMPORT_ALIAS", "PARAMETER", *DEFINED, *REFERENCES), ("SCIP_SYMBOL",)),),
        Facts("scip_references"),
        "scip",
        "occurrence",
    ),
    EdgeKind(
        "SYMBOL_RELATION",
        "SCIP",
        "How a SCIP index relates two symbols.",
        "class A(Base):\n    def run(self): ...   # implements Base.run",
        SCIP_SOURCES,
        (Ends(("SCIP_SYMBOL",), ("SCIP_SYMBOL",)),),
        Facts("scip_relations"),
        "scip",
        "relationship",
        role="reference, implementation, type_definition or definition",
    ),
)

TYPE = (
    EdgeKind(
        "HAS_ANNOTATION",
        "type",
        "What an annotation is about; of a return type the function.",
        "def f(x: int) -> str: ...",
        ("type_exprs_norm_v1",),
        (
            Ends(
                ("PARAMETER", "FUNCTION", "NAME_REF", "ATTRIBUTE_REF"),
                ("TYPE_EXPR",),
            ),
        ),
        Facts("type_exprs", {"src_id": "target_id", "dst_id": "node_id", "role": "subkind"}),
        "libcst",
        "annotation",
        per_dst="at most one",
        role="param, return, variable, attribute or signature",
    ),
    EdgeKind(
        "HAS_TYPE",
        "type",
        "An annotation and the type it means.",
        "x: int",
        ("type_exprs_norm_v1",),
        (Ends(("TYPE_EXPR",), ("TYPE",)),),
        Facts("type_exprs", {"src_id": "node_id", "dst_id": "type_id"}),
        "libcst",
        "annotation",
        per_src="one",
    ),
    EdgeKind(
        "TYPE_ARGUMENT",
        "type",
        "A type and an argument of it.",
        "x: dict[str, int]   # dict[str, int] -> str, -> int",
        ("type_nodes_v1",),
        (Ends(("TYPE",), ("TYPE",)),),
        Facts("type_arguments"),
        "libcst",
        "annotation",
        ordinal="place among the arguments",
        owner="repository",
    ),
)

FLOW = (
    EdgeKind(
        "HAS_CODE_UNIT",
        "flow",
        "What a code object was compiled from.",
        "def f(): ...",
        ("bytecode_files_v1", "ast_files_v1"),
        (Ends(("MODULE", "CLASS", "FUNCTION", "AST_NODE"), ("CODE_UNIT",)),),
        Facts("units", {"src_id": "owner_id", "dst_id": "node_id"}),
        "bytecode",
        "same_place",
        per_dst="at most one",
    ),
    EdgeKind(
        "HAS_BLOCK",
        "flow",
        "A code unit and a basic block of it.",
        "if a: b()",
        ("py_bc_blocks_norm_v1",),
        (Ends(("CODE_UNIT",), ("CFG_BLOCK",)),),
        Facts("blocks", {"src_id": "code_unit_id", "dst_id": "node_id", "role": "subkind"}),
        "bytecode",
        "control_flow",
        per_dst="one",
        role="kind of the block",
        ordinal="place in the unit",
    ),
    EdgeKind(
        "HAS_INSTRUCTION",
        "flow",
        "A basic block and an instruction of it.",
        "x = 1",
        ("bytecode_files_v1", "py_bc_blocks_norm_v1"),
        (Ends(("CFG_BLOCK",), ("INSTRUCTION",)),),
        Facts("instructions", {"src_id": "block_id", "dst_id": "node_id"}),
        "bytecode",
        "control_flow",
        per_dst="at most one",
        ordinal="place in the block",
        profiles=FULL,
    ),
    _control("CFG_NEXT", "Control falls through.", "x = 1"),
    _control("CFG_JUMP", "Control jumps, whatever happens.", "while a: ...   # back to the test"),
    _control(
        "CFG_BRANCH_TRUE",
        "A test is true, or an iterator has another element.",
        "if a: b()",
        "loop_body of an iterator, else null",
    ),
    _control(
        "CFG_BRANCH_FALSE",
        "A test is false, or an iterator is exhausted.",
        "if a: b()",
        "loop_exit of an iterator, else null",
    ),
    _control("CFG_EXCEPTION", "An exception goes to its handler.", "try: f()\nexcept E: ..."),
    EdgeKind(
        "STEP_DEF",
        "flow",
        "A basic block and a definition in it.",
        "x = 1",
        ("py_bc_def_use_events_v1",),
        (Ends(("CFG_BLOCK",), ("DEF_EVENT",)),),
        Facts("events.def", {"src_id": "block_id", "dst_id": "node_id", "ordinal": "bc_event_offset"}),
        "bytecode",
        "data_flow",
        per_dst="one",
        ordinal="offset in the bytecode",
    ),
    EdgeKind(
        "STEP_USE",
        "flow",
        "A basic block and a use in it.",
        "print(x)",
        ("py_bc_def_use_events_v1",),
        (Ends(("CFG_BLOCK",), ("USE_EVENT",)),),
        Facts("events.use", {"src_id": "block_id", "dst_id": "node_id", "ordinal": "bc_event_offset"}),
        "bytecode",
        "data_flow",
        per_dst="one",
        ordinal="offset in the bytecode",
    ),
    EdgeKind(
        "STEP_DEL",
        "flow",
        "A basic block and a deletion in it.",
        "del x",
        ("py_bc_def_use_events_v1",),
        (Ends(("CFG_BLOCK",), ("DEL_EVENT",)),),
        Facts("events.del", {"src_id": "block_id", "dst_id": "node_id", "ordinal": "bc_event_offset"}),
        "bytecode",
        "data_flow",
        per_dst="one",
        ordinal="offset in the bytecode",
    ),
    EdgeKind(
        "REACHES",
        "flow",
        "A definition and a use that may get its value.",
        "x = 1\nprint(x)",
        ("py_bc_reaches_v1",),
        (Ends(("DEF_EVENT",), ("USE_EVENT",)),),
        Facts("reaches"),
        "bytecode",
        "data_flow",
        role="local along control flow, closure through a cell, global through the module",
    ),
    EdgeKind(
        "EVENT_OF",
        "flow",
        "A definition, use or deletion and the binding it is of; builtins have none.",
        "x = 1   # def of x -> x of the module",
        ("py_bc_def_use_events_v1", "symtable_files_v1", "relations_v1"),
        (Ends(EVENTS, ("BINDING",)),),
        Facts("event_bindings"),
        "symtable",
        "scope",
        per_src="at most one",
    ),
    EdgeKind(
        "CONTROL_DEPENDS",
        "flow",
        "A block and one that decides whether it runs, by post-dominators.",
        "if a: b()   # b() depends on the test, as branch_true",
        ("py_bc_blocks_norm_v1", "py_bc_cfg_edges_norm_v1"),
        (Ends(("CFG_BLOCK",), ("CFG_BLOCK",)),),
        Facts("control"),
        "bytecode",
        "control_dependence",
        role="way out of the deciding block: branch_true, branch_false, loop_body, exception, ...",
    ),
    EdgeKind(
        "ANCHORED_AT",
        "flow",
        "An instruction or event and the syntax node it was compiled from.",
        "x = 1   # def of x -> Name",
        ("py_bc_def_use_events_v1", "bytecode_files_v1", "ast_files_v1"),
        (Ends((*EVENTS, "INSTRUCTION"), ("AST_NODE",)),),
        Facts("anchors"),
        "bytecode",
        "same_place",
        per_src="at most one",
    ),
)

EVIDENCE = (
    EdgeKind(
        "HAS_DIAGNOSTIC",
        "evidence",
        "A file and what there is to complain about.",
        "def f(:",
        ("diagnostics_norm_v1", "tree_sitter_files_v1"),
        (Ends(("FILE",), ("DIAGNOSTIC", "TS_ERROR", "TS_MISSING")),),
        Facts("complaints"),
        "diagnostics",
        "diagnostic",
        per_dst="one",
    ),
)
