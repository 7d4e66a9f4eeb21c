"""Compile the extracted evidence of one file to its program, with the relation rows that need no other file.

    program = compile_file(ExtractedFile(repo_id, file_id, path, ast=..., symtable=..., libcst=...))

Lists are columns, as in Arrow. The program of a file that CPython cannot parse has only its calls, which stay
unresolved, and the reason. Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from codeanatomy.arrow import pack_rows
from codeanatomy.file_ids import DefinitionKeys, FileIds, PackedIds
from codeanatomy.relate.compile.bindings import add_binding_relations
from codeanatomy.relate.compile.scope_relations import add_scope_relations, class_names
from codeanatomy.relate.compile.scope_tree import build_scopes, name_scopes
from codeanatomy.relate.compile.statements import compile_module
from codeanatomy.relate.program import CALL_TARGETS, Program
from codeanatomy.relate.relation_rows import RelationRows
from codeanatomy.syntax_tree import Tree

# The lists of an extractor by name, each a dictionary of equally long columns.
Lists: TypeAlias = Mapping[str, Mapping[str, Sequence[Any]] | None]


class ExtractedFile(Struct, frozen=True):
    """A file with the rows that the extractors wrote about it."""

    repo_id: str
    file_id: str
    path: str
    ast: Lists
    symtable: Lists
    libcst: Lists
    # From tools that index whole repositories, which are optional: SCIP, and a type checker.
    scip: Lists = {}
    typed: Lists = {}


def compile_file(file: ExtractedFile) -> Program:
    """Compile a file to its program."""
    nodes, blocks = file.ast.get("nodes"), file.symtable.get("blocks")
    if not nodes or not blocks:
        return _failed_program(file, "no_syntax_tree")
    tree = Tree(nodes)
    packed = _packed_ids(file)
    ids = FileIds(packed)
    scopes = build_scopes(tree, blocks)
    definitions = file.ast.get("definitions") or {}
    name_scopes(scopes, ids, DefinitionKeys(file.repo_id, file.path, definitions).of_scopes(blocks))
    rows = RelationRows(file.repo_id, file.file_id, file.path)
    libcst = {name: columns for name, columns in file.libcst.items() if columns is not None}
    unbound_uses = add_binding_relations(rows, tree, scopes, libcst, ids)
    program = Program(file.repo_id, file.file_id, file.path, packed)
    if 0 not in scopes or scopes.unmatched:
        program = _failed_program(file, "scopes_not_matched")
    else:
        imports = file.ast.get("imports") or {}
        program = compile_module(program, tree, scopes, imports, identifier_places(file.libcst))
    if program.failure is not None:
        program = _failed_program(file, program.failure)
    # Last, because a scope learns of its cells when names are resolved.
    add_scope_relations(rows, tree, scopes, ids)
    program.scope_rows = pack_rows(rows.batch())
    program.scope_names = class_names(scopes)
    program.names = definition_identifiers(file.libcst)
    program.scip, program.checker_calls = scip_occurrences(file.scip), checker_calls(file.typed)
    program.unbound_uses = [((use.bstart, use.bend, use.line), use.name) for use in unbound_uses]
    return program


def _packed_ids(file: ExtractedFile) -> PackedIds:
    return PackedIds.of_file(
        file.repo_id,
        file.path,
        file.ast.get("definitions") or {},
        file.libcst,
        file.ast.get("nodes") or {},
    )


def _failed_program(file: ExtractedFile, reason: str) -> Program:
    """Return a program with only the calls of a file, which stay unresolved for this reason."""
    calls = file.libcst.get("callsites") or {}
    places = [calls[name] for name in ("call_bstart", "call_bend", "line")] if calls else []
    return Program(
        file.repo_id,
        file.file_id,
        file.path,
        _packed_ids(file),
        failure=reason,
        unresolved_calls=list(zip(*places, strict=True)),
    )


def identifier_places(libcst: Lists) -> dict[tuple[int, int], tuple[int, int]]:
    """Return spans of identifiers: of attributes by the whole span, of parameters by (start, start)."""
    refs = libcst.get("refs") or {}
    columns = ("kind", "expr_bstart", "expr_bend", "bstart", "bend")
    if not refs:
        return {}
    attributes = {
        (start, end): (inner_start, inner_end)
        for kind, start, end, inner_start, inner_end in zip(*(refs[name] for name in columns), strict=True)
        if kind == "attribute"
    }
    params = libcst.get("params") or {}
    places = zip(params["bstart"], params["bend"], strict=True) if params else ()
    return attributes | {(start, start): (start, end) for start, end in places}


def definition_identifiers(libcst: Lists) -> list[tuple[int, int, int, int]]:
    """Return the spans of the identifiers of functions and classes, each with the span of the whole."""
    defs = libcst.get("defs") or {}
    columns = ("name_bstart", "name_bend", "def_bstart", "def_bend")
    rows = zip(*(defs[name] for name in columns), strict=True) if defs else ()
    return [row for row in rows if row[0] is not None]


def scip_occurrences(scip: Lists) -> list[tuple[int, int, str, int]]:
    """Return the occurrences of a SCIP index whose symbols are not local to the file."""
    occurrences = scip.get("occurrences") or {}
    columns = ("bstart", "bend", "symbol", "symbol_roles")
    rows = zip(*(occurrences[name] for name in columns), strict=True) if occurrences else ()
    return [row for row in rows if row[0] is not None and not row[2].startswith("local ")]


def checker_calls(checker: Lists) -> list[tuple[Any, ...]]:
    """Return the call targets that a type checker reports."""
    targets = checker.get("call_targets") or {}
    return list(zip(*(targets[name] for name in CALL_TARGETS), strict=True)) if targets else []
