"""What a file contributes to its repository: its program, and the rows that need no other file.

    program = summary(Witnessed(repo_id, file_id, path, ast=..., symtable=..., libcst=...))

The lists are columns, as Arrow has them. A file that CPython cannot parse has a program without anything in
it but its calls, and a reason why nothing is known of them. Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from codeanatomy.arrow import pack_rows
from codeanatomy.relate.compile.bindings import binding_relations
from codeanatomy.relate.compile.scope_relations import listed_in_classes, scope_relations
from codeanatomy.relate.compile.scope_tree import scopes_of
from codeanatomy.relate.compile.statements import program_of
from codeanatomy.relate.compile.syntax_tree import Tree
from codeanatomy.relate.program import CALL_TARGETS, Program
from codeanatomy.relate.relation_rows import Rows

# The lists of a witness by name, each a dictionary of equally long columns.
Lists: TypeAlias = Mapping[str, Mapping[str, Sequence[Any]] | None]


class Witnessed(Struct, frozen=True):
    """A file and what the witnesses said of it."""

    repo_id: str
    file_id: str
    path: str
    ast: Lists
    symtable: Lists
    libcst: Lists
    # Of whole programs, where they were asked.
    scip: Lists = {}
    typed: Lists = {}


def summary(file: Witnessed) -> Program:
    """The program of a file."""
    nodes, blocks = file.ast.get("nodes"), file.symtable.get("blocks")
    if not nodes or not blocks:
        return _without(file, "no_syntax_tree")
    tree = Tree(nodes)
    scopes = scopes_of(tree, blocks)
    rows = Rows(file.repo_id, file.file_id, file.path)
    libcst = {name: found for name, found in file.libcst.items() if found is not None}
    open_uses = binding_relations(rows, tree, scopes, libcst)
    program = Program(file.repo_id, file.file_id, file.path)
    if 0 not in scopes or scopes.lost:
        program = _without(file, "scopes_not_matched")
    else:
        imports = file.ast.get("imports") or {}
        program = program_of(program, tree, scopes, imports, identifiers(file.libcst))
    if program.failure is not None:
        program = _without(file, program.failure)
    # Last, for a scope learns of its cells when somebody asks for them.
    scope_relations(rows, tree, scopes)
    program.scope_rows = pack_rows(rows.batch())
    program.listed = listed_in_classes(scopes)
    program.names = definition_names(file.libcst)
    program.scip, program.typed = occurrences(file.scip), call_targets(file.typed)
    program.open_uses = [((use.bstart, use.bend, use.line), use.name) for use in open_uses]
    return program


def _without(file: Witnessed, reason: str) -> Program:
    """The program of a file that nothing is known of but its calls, which nobody can resolve."""
    calls = file.libcst.get("callsites") or {}
    places = [calls[name] for name in ("call_bstart", "call_bend", "line")] if calls else []
    return Program(
        file.repo_id, file.file_id, file.path, failure=reason, unread_calls=list(zip(*places, strict=True))
    )


def identifiers(libcst: Lists) -> dict[tuple[int, int], tuple[int, int]]:
    """Places of identifiers: of attributes by those of the whole, of parameters by where they begin."""
    refs = libcst.get("refs") or {}
    columns = ("kind", "expr_bstart", "expr_bend", "bstart", "bend")
    if not refs:
        return {}
    found = {
        (start, end): (inner_start, inner_end)
        for kind, start, end, inner_start, inner_end in zip(*(refs[name] for name in columns), strict=True)
        if kind == "attribute"
    }
    params = libcst.get("params") or {}
    places = zip(params["bstart"], params["bend"], strict=True) if params else ()
    return found | {(start, start): (start, end) for start, end in places}


def definition_names(libcst: Lists) -> list[tuple[int, int, int, int]]:
    """Places of the identifiers of functions and classes, with those of the whole."""
    defs = libcst.get("defs") or {}
    columns = ("name_bstart", "name_bend", "def_bstart", "def_bend")
    rows = zip(*(defs[name] for name in columns), strict=True) if defs else ()
    return [row for row in rows if row[0] is not None]


def occurrences(scip: Lists) -> list[tuple[int, int, str, int]]:
    """Where a SCIP index has symbols that are not local to a file."""
    found = scip.get("occurrences") or {}
    columns = ("bstart", "bend", "symbol", "symbol_roles")
    rows = zip(*(found[name] for name in columns), strict=True) if found else ()
    return [row for row in rows if row[0] is not None and not row[2].startswith("local ")]


def call_targets(typed: Lists) -> list[tuple[Any, ...]]:
    """What a type checker says is called."""
    found = typed.get("call_targets") or {}
    return list(zip(*(found[name] for name in CALL_TARGETS), strict=True)) if found else []
