"""Emit the relations of a file's scopes, and of names that no symbol table lists.

    class A:
        def m(self): self.x = [i for i in "ab"]

    OWNS_SCOPE         module, class A, function m, node of the comprehension -> their scopes
    SCOPE_PARENT       scope of the comprehension -> that of m, where the compiler has no block for it (3.12)
    SCOPE_BINDS        scope of the comprehension -> i, if it has no block

A name with a symbol in the block of its scope needs no SCOPE_BINDS row, and a scope with a block no
SCOPE_PARENT row: both are in `symtable_files_v1`. The others get one here: cells of classes (`__class__`),
and variables of scopes without a block. Attributes assigned on instances get theirs in `emit.file_relations`.

Tests: `tests/unit/relate/test_scope_relations.py`.
"""

from __future__ import annotations

from codeanatomy.file_ids import FileIds
from codeanatomy.node_ids import binding_id, module_id
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.scope_tree import Scopes
from codeanatomy.relate.program import Place
from codeanatomy.relate.relation_rows import NOWHERE, Evidence, RelationRows
from codeanatomy.syntax_tree import Tree

# Kinds of owners by kind of scope; other scopes are owned by their syntax node.
OWNERS = {"class": "CLASS", "function": "FUNCTION", "lambda": "FUNCTION"}


def add_scope_relations(rows: RelationRows, tree: Tree, scopes: Scopes, ids: FileIds) -> None:
    """Add the rows of a file's scopes."""
    for scope in scopes.values():
        if scope.state == "unmatched":
            continue
        own = scope.key
        node = scope.ast_id
        place = tree.bstart[node], tree.bend[node], tree.line[node]
        owner = _owner(ids, rows.file_id, scope, place)
        _add(rows, "OWNS_SCOPE", *owner, "SCOPE", own, own, scope.kind, place)
        if scope.state == "synthetic" and scope.parent is not None:
            name = scope.label[1]
            _add(rows, "SCOPE_PARENT", "SCOPE", own, "SCOPE", scope.parent.key, own, scope.kind, place, name)
        for name in sorted(scope.names_without_symbol()):
            _add(rows, "SCOPE_BINDS", "SCOPE", own, "BINDING", binding_id(own, name), own, name)


def _owner(ids: FileIds, file_id: str, scope: Scope, place: Place) -> tuple[str, str]:
    """Return kind and id of the node that owns a scope."""
    if scope.kind == "module":
        return "MODULE", module_id(file_id)
    kind = OWNERS.get(scope.kind)
    if kind is None:
        return "AST_NODE", ids.ast(scope.ast_id)
    return kind, ids.at(kind, place[0], place[1])


def _add(
    rows: RelationRows,
    kind: str,
    src_kind: str,
    src: str,
    dst_kind: str,
    dst: str,
    key: str,
    role: str,
    place: Place = NOWHERE,
    src_qname: str | None = None,
) -> None:
    rows.add(
        kind,
        src_kind,
        src,
        dst_kind,
        dst,
        place=place,
        origin="symtable",
        rule="scope",
        method="scope",
        confidence=1.0,
        role=role,
        src_qname=src_qname,
        evidence=[Evidence("symtable", key)],
    )


def class_names(scopes: Scopes) -> dict[str, list[str]]:
    """Return the names that symbol tables or SCOPE_BINDS rows list for class scopes, by scope."""
    return {
        scope.key: sorted(scope.symbol_names() | scope.names_without_symbol())
        for scope in scopes.values()
        if scope.kind == "class"
    }
