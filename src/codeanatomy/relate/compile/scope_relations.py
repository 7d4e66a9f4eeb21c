"""What a file is made of: its module, its scopes, and the names that no symbol table lists.

    class A:
        def m(self): self.x = [i for i in "ab"]

    DECLARES_MODULE    file -> module
    OWNS_SCOPE         module, class A, function m, node of the comprehension -> their scopes
    SCOPE_PARENT       scope of the comprehension -> that of m, where the compiler has no block for it (3.12)
    SCOPE_BINDS        scope of A -> x; scope of the comprehension -> i, if it has no block

A name that has a symbol in the block of its scope needs no row, nor does a scope with a block need one for
the scope around it: both are in `symtable_files_v1`. What has neither is told here, once, by the file of the
scope: the cells of classes (`__class__`), variables of scopes without a block, and attributes that are
assigned on instances, wherever that is done.

Tests: `tests/unit/relate/test_scope_relations.py`.
"""

from __future__ import annotations

from codeanatomy.node_ids import ast_node_id, binding_id, module_id, node_id, scope_id
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.scope_tree import Scopes
from codeanatomy.relate.compile.syntax_tree import Tree
from codeanatomy.relate.program import Place
from codeanatomy.relate.relation_rows import NOWHERE, Evidence, RelationRows

# By the kind of their scope; the scopes of other nodes are owned by the nodes.
OWNERS = {"class": "CLASS", "function": "FUNCTION", "lambda": "FUNCTION"}


def scope_relations(rows: RelationRows, tree: Tree, scopes: Scopes) -> None:
    """Add the rows of a file's scopes."""
    known: dict[Scope, str] = {}
    for scope in scopes.values():
        if scope.state == "lost":
            continue
        own = known[scope] = scope_id(rows.file_id, scope.key)
        node = scope.ast_id
        place = tree.bstart[node], tree.bend[node], tree.line[node]
        _add(rows, "OWNS_SCOPE", *_owner(rows.file_id, scope, place), "SCOPE", own, own, scope.kind, place)
        if scope.state == "made_up" and scope.parent is not None:
            around = scope_id(rows.file_id, scope.parent.key)
            name = scope.label[1]
            _add(rows, "SCOPE_PARENT", "SCOPE", own, "SCOPE", around, own, scope.kind, place, name)
        for name in sorted(scope.unlisted()):
            _add(rows, "SCOPE_BINDS", "SCOPE", own, "BINDING", binding_id(own, name), own, name)


def _owner(file_id: str, scope: Scope, place: Place) -> tuple[str, str]:
    """Kind and id of what a scope belongs to."""
    if scope.kind == "module":
        return "MODULE", module_id(file_id)
    kind = OWNERS.get(scope.kind)
    if kind is None:
        return "AST_NODE", ast_node_id(file_id, place[0], place[1], scope.ast_id)
    return kind, node_id(kind, file_id, place[0], place[1])


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
    """Names that the symbol tables or the rows above tell of, by the key of a class's scope."""
    return {
        scope.key: sorted(scope.listed() | scope.unlisted())
        for scope in scopes.values()
        if scope.kind == "class"
    }
