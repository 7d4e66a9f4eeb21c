"""Compile the extracted evidence of one file to its program, with the relation rows that need no other file.

    program = compile_file(view)                                     # a view with the columns of READS
    program = with_witnesses(program, view.documents, checker_row)   # claims of SCIP and the type checker

Lists are columns, as in Arrow. The program of a file that CPython cannot parse has only its calls, which stay
unresolved, and the reason. Tools that index whole repositories may finish later than the extractors: what
they claim about a file is added to its program before the repository is solved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import structs

from codeanatomy import file_view
from codeanatomy.arrow import pack_rows
from codeanatomy.definitions import FIELDS as DEFINITION_FIELDS
from codeanatomy.file_view import AST, LIBCST, SYMTABLE, Columns, FileView, Row, iter_rows
from codeanatomy.relate.compile.bindings import add_binding_relations, add_scope_relations, class_names
from codeanatomy.relate.compile.builder import IMPORT_FIELDS, Identifiers
from codeanatomy.relate.compile.scope_tree import build_scopes, name_scopes
from codeanatomy.relate.compile.statements import compile_module
from codeanatomy.relate.program import CALL_TARGETS, Place, Program
from codeanatomy.relate.relation_rows import RelationRows
from codeanatomy.syntax_tree import FIELDS, Tree

LIBCST_LISTS: file_view.TableReads = {
    "refs": ("text", "kind", "context", "expr_bstart", "expr_bend", "bstart", "bend", "line"),
    "defs": ("kind", "name", "def_bstart", "def_bend", "name_bstart", "name_bend", "line"),
    "params": ("owner_bstart", "owner_bend", "name", "bstart", "bend", "line"),
    "imports": ("kind", "name", "asname", "is_star", "stmt_bstart", "alias_bstart", "alias_bend", "line"),
    "callsites": ("call_bstart", "call_bend", "line"),
    "call_args": ("keyword", "bstart", "bend"),
    "decorators": ("bstart", "bend"),
}
OCCURRENCES = ("bstart", "bend", "symbol", "symbol_roles")
# What `compile_file` reads.
READS: file_view.Reads = {
    AST: {"nodes": FIELDS, "definitions": DEFINITION_FIELDS, "imports": IMPORT_FIELDS},
    SYMTABLE: {"blocks": ("scope_key", "parent_key", "type", "name", "lineno", "symbols")},
    LIBCST: LIBCST_LISTS,
}
# What `with_witnesses` reads.
WITNESS_READS: file_view.Reads = {
    file_view.SCIP: {"occurrences": OCCURRENCES},
    file_view.TYPE_CHECKER: {"call_targets": CALL_TARGETS},
}
NO_TREE = "no_syntax_tree"
# `'shop.web.items'`, `'shop.web:items'`, and in packaging `'web = shop.web:items'`, as Python literals.
DOTTED_TEXT = re.compile(r"(['\"])(?:[\w.-]+ *= *)?[^\W\d]\w*(?:[.:][^\W\d]\w*)+\1")
# `'console_scripts'`, the name of a group of entry points.
GROUP = re.compile(r"(['\"])[\w.-]{1,100}\1")
# LibCST's lists by name, without those that it could not produce.
Lists: TypeAlias = Mapping[str, Columns]


class CompiledFile(NamedTuple):
    """The program of a file, and the relations of its scopes, which the program has packed."""

    program: Program
    scopes: RelationRows


def compile_file(file: FileView, failure: str | None = None) -> Program:
    """Compile a file to its program; `failure` is why one that killed a process before is not compiled."""
    return compile_with_scopes(file, failure).program


def compile_with_scopes(file: FileView, failure: str | None = None) -> CompiledFile:
    """Compile a file; the relations of its scopes are part of the result."""
    nodes, blocks = file.list(AST, "nodes"), file.list(SYMTABLE, "blocks")
    libcst = {name: columns for name in LIBCST_LISTS if (columns := file.row(LIBCST).get(name)) is not None}
    rows = RelationRows(file.repo_id, file.file_id, file.path)
    if failure is not None or not nodes or not blocks:
        return CompiledFile(_failed_program(file, libcst, failure or NO_TREE), rows)
    tree, ids = Tree(nodes), file.ids
    scopes = build_scopes(tree, blocks)
    name_scopes(scopes, ids, file.definition_keys.of_scopes(blocks))
    unbound_uses = add_binding_relations(rows, tree, scopes, libcst, ids)
    program = Program(file.repo_id, file.file_id, file.path, file.packed_ids)
    reason = (
        "scopes_not_matched"
        if scopes.unmatched
        else compile_module(program, tree, scopes, file.list(AST, "imports"), identifier_places(libcst))
    )
    if reason is not None:
        program = _failed_program(file, libcst, reason)
    # Last, because a scope learns of its cells when names are resolved.
    add_scope_relations(rows, tree, scopes, ids)
    program.scope_rows = pack_rows(rows.batch())
    program.scope_names = class_names(scopes, rows)
    names = iter_rows(libcst.get("defs"), "name_bstart", "name_bend", "def_bstart", "def_bend")
    program.names = [(start, *rest) for start, *rest in names if start is not None]
    program.dotted_texts = dotted_texts(tree)
    program.unbound_uses = [((use.bstart, use.bend, use.line), use.name) for use in unbound_uses]
    for scope in scopes.values():
        scope.forget_names()
    return CompiledFile(program, rows)


def _failed_program(file: FileView, libcst: Lists, reason: str) -> Program:
    """Return a program with only the calls of a file, which stay unresolved for this reason."""
    calls = list(iter_rows(libcst.get("callsites"), "call_bstart", "call_bend", "line"))
    return Program(
        file.repo_id, file.file_id, file.path, file.packed_ids, failure=reason, unresolved_calls=calls
    )


def with_witnesses(program: Program, documents: Sequence[Row], checker_row: Row | None) -> Program:
    """Return a program with the claims of SCIP and of the type checker about its file, and no earlier ones.

    Of several documents the first by `index_id` counts. Claims about a file without a syntax tree are not
    used: none of its nodes is known.
    """
    if program.failure == NO_TREE:
        return program
    present = [document for document in documents if not document.get("is_missing")]
    document = min(present, key=lambda each: each.get("index_id") or "", default={})
    rows = iter_rows(document.get("occurrences"), *OCCURRENCES)
    # Without symbols that are local to the file.
    scip = [row for row in rows if row[0] is not None and not row[2].startswith("local ")]
    calls = list(iter_rows((checker_row or {}).get("call_targets"), *CALL_TARGETS))
    return structs.replace(program, scip=scip, checker_calls=calls)


def identifier_places(libcst: Lists) -> Identifiers:
    """Return spans of identifiers: of attributes by the whole span, of parameters by (start, start).

    Of keywords that are not ASCII only the length is known, by (start, start) of the value: (0, length).
    """
    refs = iter_rows(libcst.get("refs"), "kind", "expr_bstart", "expr_bend", "bstart", "bend")
    attributes = {(start, end): tuple(inner) for kind, start, end, *inner in refs if kind == "attribute"}
    places = iter_rows(libcst.get("params"), "bstart", "bend")
    keywords = {
        (start, start): (0, len(keyword.encode()))
        for keyword, start in iter_rows(libcst.get("call_args"), "keyword", "bstart")
        if keyword is not None and not keyword.isascii()
    }
    return attributes | keywords | {(start, start): (start, end) for start, end in places}


def dotted_texts(tree: Tree) -> list[tuple[Place, int, str, str]]:
    """Return the strings that may be qualified names of definitions, with the keys that they are below."""
    texts = [
        ((start, tree.bend[node], tree.line[node]), node, text[1:-1])
        for node, (text, start) in enumerate(zip(tree.value, tree.bstart, strict=True))
        if text is not None and start is not None and text[0] in "'\"" and DOTTED_TEXT.fullmatch(text)
    ]
    keys = _dict_keys(tree) if any("=" in text for _, _, text in texts) else {}
    # Of a string in a list, the key of the list.
    return [(*each, keys.get(each[1]) or keys.get(tree.parent[each[1]], "")) for each in texts]


def _dict_keys(tree: Tree) -> dict[int | None, str]:
    """Return the keys of the values in dict displays, where they are names."""
    keys: dict[int | None, str] = {}
    for node, kind in enumerate(tree.kind):
        values = tree.many(node, "values") if kind == "Dict" else ()
        for key, value in zip(tree.gapped(node, "keys", len(values)), values, strict=True):
            text = None if key is None else tree.value[key]
            if text is not None and GROUP.fullmatch(text):
                keys[value] = text[1:-1]
    return keys
