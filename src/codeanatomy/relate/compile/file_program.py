"""Compile the extracted evidence of one file to its program, with the relation rows that need no other file.

    program = compile_file(view)                                     # a view with the columns of READS
    program = with_witnesses(program, view.documents, checker_row)   # claims of SCIP and the type checker

Lists are columns, as in Arrow. The program of a file that CPython cannot parse has only its calls, which stay
unresolved, and the reason. Tools that index whole repositories may finish later than the extractors: what
they claim about a file is added to its program before the repository is solved.
Tests: `tests/unit/relate/test_statements.py`, `tests/unit/test_file_view.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import structs

from codeanatomy.arrow import pack_rows
from codeanatomy.definitions import FIELDS as DEFINITION_FIELDS
from codeanatomy.file_ids import DefinitionKeys, FileIds, PackedIds
from codeanatomy.file_view import (
    AST,
    LIBCST,
    SCIP,
    SYMTABLE,
    TYPE_CHECKER,
    Columns,
    FileView,
    Reads,
    Row,
    TableReads,
    iter_rows,
)
from codeanatomy.relate.compile.bindings import add_binding_relations
from codeanatomy.relate.compile.scope_relations import add_scope_relations, class_names
from codeanatomy.relate.compile.scope_tree import build_scopes, name_scopes
from codeanatomy.relate.compile.statements import compile_module
from codeanatomy.relate.program import CALL_TARGETS, Program
from codeanatomy.relate.relation_rows import RelationRows
from codeanatomy.syntax_tree import FIELDS, Tree

LIBCST_LISTS: TableReads = {
    "refs": ("text", "kind", "context", "expr_bstart", "expr_bend", "bstart", "bend", "line"),
    "defs": ("kind", "name", "def_bstart", "def_bend", "name_bstart", "name_bend", "line"),
    "params": ("owner_bstart", "owner_bend", "name", "bstart", "bend", "line"),
    "imports": ("kind", "name", "asname", "is_star", "stmt_bstart", "alias_bstart", "alias_bend", "line"),
    "callsites": ("call_bstart", "call_bend", "line"),
    "call_args": ("bstart", "bend"),
    "decorators": ("bstart", "bend"),
}
OCCURRENCES = ("bstart", "bend", "symbol", "symbol_roles")
# What `compile_file` reads.
READS: Reads = {
    AST: {
        "nodes": FIELDS,
        "definitions": DEFINITION_FIELDS,
        "imports": ("ast_id", "module", "name", "asname", "level"),
    },
    SYMTABLE: {"blocks": ("scope_key", "parent_key", "type", "name", "lineno", "symbols")},
    LIBCST: LIBCST_LISTS,
}
# What `with_witnesses` reads.
WITNESS_READS: Reads = {
    SCIP: {"occurrences": OCCURRENCES},
    TYPE_CHECKER: {"call_targets": CALL_TARGETS},
}
NO_TREE = "no_syntax_tree"
# LibCST's lists by name, without those that it could not produce.
Lists: TypeAlias = Mapping[str, Columns]


def compile_file(file: FileView, failure: str | None = None) -> Program:
    """Compile a file to its program; `failure` is why one that killed a process before is not compiled."""
    nodes, blocks = file.list(AST, "nodes"), file.list(SYMTABLE, "blocks")
    libcst = {name: columns for name in LIBCST_LISTS if (columns := file.row(LIBCST).get(name)) is not None}
    definitions = file.list(AST, "definitions")
    packed = PackedIds.of_file(file.repo_id, file.path, definitions, libcst, nodes)
    if failure is not None or not nodes or not blocks:
        return _failed_program(file, packed, libcst, failure or NO_TREE)
    tree = Tree(nodes)
    ids = FileIds(packed)
    scopes = build_scopes(tree, blocks)
    name_scopes(scopes, ids, DefinitionKeys(file.repo_id, file.path, definitions).of_scopes(blocks))
    rows = RelationRows(file.repo_id, file.file_id, file.path)
    unbound_uses = add_binding_relations(rows, tree, scopes, libcst, ids)
    program = Program(file.repo_id, file.file_id, file.path, packed)
    if 0 not in scopes or scopes.unmatched:
        program = _failed_program(file, packed, libcst, "scopes_not_matched")
    else:
        program = compile_module(program, tree, scopes, file.list(AST, "imports"), identifier_places(libcst))
    if program.failure is not None:
        program = _failed_program(file, packed, libcst, program.failure)
    # Last, because a scope learns of its cells when names are resolved.
    add_scope_relations(rows, tree, scopes, ids)
    program.scope_rows = pack_rows(rows.batch())
    program.scope_names = class_names(scopes)
    program.names = definition_identifiers(libcst)
    program.unbound_uses = [((use.bstart, use.bend, use.line), use.name) for use in unbound_uses]
    return program


def _failed_program(file: FileView, packed: PackedIds, libcst: Lists, reason: str) -> Program:
    """Return a program with only the calls of a file, which stay unresolved for this reason."""
    calls = list(iter_rows(libcst.get("callsites"), "call_bstart", "call_bend", "line"))
    return Program(file.repo_id, file.file_id, file.path, packed, failure=reason, unresolved_calls=calls)


def with_witnesses(program: Program, documents: Sequence[Row], checker_row: Row | None) -> Program:
    """Return a program with the claims of SCIP and of the type checker about its file, and no earlier ones.

    Of several documents the first by `index_id` counts. Claims about a file without a syntax tree are not
    used: none of its nodes is known.
    """
    if program.failure == NO_TREE:
        return program
    present = [document for document in documents if not document.get("is_missing")]
    document = min(present, key=lambda each: each.get("index_id") or "", default={})
    return structs.replace(
        program, scip=scip_occurrences(document), checker_calls=checker_calls(checker_row or {})
    )


def identifier_places(libcst: Lists) -> dict[tuple[int, int], tuple[int, int]]:
    """Return spans of identifiers: of attributes by the whole span, of parameters by (start, start)."""
    refs = libcst.get("refs")
    if not refs:
        return {}
    attributes = {
        (start, end): (inner_start, inner_end)
        for kind, start, end, inner_start, inner_end in iter_rows(
            refs, "kind", "expr_bstart", "expr_bend", "bstart", "bend"
        )
        if kind == "attribute"
    }
    places = iter_rows(libcst.get("params"), "bstart", "bend")
    return attributes | {(start, start): (start, end) for start, end in places}


def definition_identifiers(libcst: Lists) -> list[tuple[int, int, int, int]]:
    """Return the spans of the identifiers of functions and classes, each with the span of the whole."""
    rows = iter_rows(libcst.get("defs"), "name_bstart", "name_bend", "def_bstart", "def_bend")
    return [(start, end, outer, last) for start, end, outer, last in rows if start is not None]


def scip_occurrences(document: Row) -> list[tuple[int, int, str, int]]:
    """Return the occurrences of a SCIP document whose symbols are not local to the file."""
    return [
        (start, end, symbol, roles)
        for start, end, symbol, roles in iter_rows(document.get("occurrences"), *OCCURRENCES)
        if start is not None and not symbol.startswith("local ")
    ]


def checker_calls(checker_row: Row) -> list[tuple[Any, ...]]:
    """Return the call targets that a type checker reports."""
    return list(iter_rows(checker_row.get("call_targets"), *CALL_TARGETS))
