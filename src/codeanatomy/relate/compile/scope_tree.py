r"""Match CPython's symbol tables with its syntax tree: the scope of every node.

    n = 0                         module: n, outer
    def outer(a):                 outer: a is a cell, because the lambda uses it
        return lambda: a + n      lambda: a is free, n is global

    scopes = build_scopes(tree, blocks)
    scopes[lambda_].resolve("a")  NameBinding("deref", scopes[outer], "a")
    scopes[lambda_].resolve("n")  NameBinding("global", scopes[0], "n")
    scopes.of_node[node]          the scope in which a node is evaluated

`Scopes` maps the node that opens a scope to the scope. A definition with type parameters opens a second one,
under `~node`. The bound of a type variable is under the variable, its default under `~variable`; where Python
evaluates annotations lazily (3.14), those of a function are under its `arguments` and those of variables
under the first AnnAssign.

The symbol tables identify a scope by type, name and line only. So the scopes directly inside a scope are
matched with the blocks inside its block by these three; those that share them (`lambda: 0, lambda: 1`) by the
order in which the compiler visits them: defaults before annotations, the iterable of a comprehension before
the comprehension, a dict's value before its key. If the counts differ nothing is matched: `Scopes.unmatched`
has the nodes, and names inside them are not resolved.

Two sorts of scopes rightly have no block, and bind what the tree binds in them: comprehensions that the
compiler inlines into the enclosing code (3.12), and annotations that are never evaluated (`from __future__
import annotations`).

Tests: `tests/unit/relate/test_scopes.py`; against compiled instructions: `tests/oracles/scope_oracle.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from codeanatomy.file_ids import FileIds
from codeanatomy.node_ids import scope_id
from codeanatomy.relate.compile.scope import Kind, Label, Scope
from codeanatomy.relate.compile.scope_blocks import match_blocks
from codeanatomy.syntax_tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    TYPE_VARIABLES,
    Tree,
    has_string_annotations,
)

# Nodes that bind their name in the enclosing scope; a Name only unless it is read.
BINDING_NODES = frozenset(
    {
        *FUNCTIONS,
        *TYPE_VARIABLES,
        "Name",
        "ClassDef",
        "arg",
        "ExceptHandler",
        "MatchAs",
        "MatchStar",
        "MatchMapping",
    }
)


class Scopes(dict[int, Scope]):
    """The scopes of a file by the node that opens them, and the scope of every node."""

    def __init__(self) -> None:
        super().__init__()
        self.of_node: list[Scope] = []
        # Nodes of the scopes that could not be matched with a block, in order.
        self.unmatched: tuple[int, ...] = ()


def build_scopes(tree: Tree, blocks: Mapping[str, Sequence[Any]] | None) -> Scopes:
    """Return the scopes of a file; none if the syntax tree or the symbol table is missing."""
    if not len(tree) or not blocks or not blocks["scope_key"]:
        return Scopes()
    builder = _TreeScopes(tree, has_lazy_annotations="annotation" in blocks["type"])
    inlined = match_blocks(tree, builder.scopes[0], builder.inner, blocks)
    synthetic = [*_unevaluated_annotations(builder), *(inner for _, inner in inlined)]
    scopes = builder.scopes
    if synthetic:
        bound = _bound_names(tree, scopes.of_node)
        for scope in synthetic:
            scope.bound = bound[scope]
        for host, inner in inlined:
            # The compiler lists the variables of an inlined comprehension among those of the enclosing code.
            host.bound -= inner.bound - bound[host] - host.imported()
    _complete(scopes)
    return scopes


def _complete(scopes: Scopes) -> None:
    """Set what depends on all scopes having their blocks: globals and cells, and which have none."""
    top, unmatched = scopes[0], []
    for scope in scopes.values():
        if scope.state == "unmatched":
            unmatched.append(scope.ast_id)
        top.bound |= scope.assigned_globals()
    scopes.unmatched = tuple(sorted(unmatched))
    for scope in scopes.values():
        scope.find_cells()


def name_scopes(scopes: Scopes, ids: FileIds, block_keys: Mapping[str, str]) -> None:
    """Set the keys of scopes to the ids of their nodes, from the definition keys of their blocks.

    An inlined comprehension has no block, but is a definition. An annotation that is never evaluated binds
    nothing, and names in it resolve as in its parent.
    """
    pending = list(dict.fromkeys((*scopes.values(), *scopes.of_node)))[::-1]
    named: set[Scope] = set()
    while pending:
        scope = pending[-1]
        if scope in named:
            pending.pop()
        elif scope.state == "matched":
            scope.key = scope_id(block_keys[scope.key])
            named.add(scope)
        elif scope.kind == "annotation" and scope.parent is not None:
            if scope.parent in named:
                scope.key = scope.parent.key
                named.add(scope)
            else:
                pending.append(scope.parent)
        else:
            scope.key = scope_id(ids.key_of_syntax(scope.ast_id, scope.label[1]))
            named.add(scope)


class _TreeScopes:
    """The scopes that the syntax tree opens, not yet matched with blocks."""

    def __init__(self, tree: Tree, *, has_lazy_annotations: bool) -> None:
        self.tree = tree
        self.scopes = Scopes()
        self.inner: defaultdict[Scope, list[Scope]] = defaultdict(list)
        # Since 3.14 annotations have scopes of their own; with the `__future__` import they are strings.
        self._has_lazy_annotations = has_lazy_annotations
        self._has_string_annotations = has_string_annotations(tree)
        self._annotation_scopes: dict[Scope, Scope] = {}
        self.annotations: list[Scope] = []
        self._visit_nodes()

    def _visit_nodes(self) -> None:
        """Visit all nodes in preorder; most are evaluated in the scope of their parent."""
        tree, of_node = self.tree, self.scopes.of_node
        kinds, parents = tree.kind, tree.parent
        of_node.append(self._open("module", 0, ("module", "top", 0), None, None))
        self.scopes[0] = of_node[0]
        add = of_node.append
        for node in range(1, len(tree)):
            parent = parents[node] or 0
            kind = kinds[parent]
            scope = CHILD_SCOPES[kind](self, parent, node) if kind in CHILD_SCOPES else of_node[parent]
            add(scope)
            if kinds[node] in OPENERS:
                OPENERS[kinds[node]](self, node, scope)

    def _open(self, kind: Kind, node: int, label: Label, parent: Scope | None, private: str | None) -> Scope:
        scope = Scope(kind, node, label, parent, private)
        if kind == "annotation":
            self.annotations.append(scope)
        if parent is not None:
            self.inner[parent].append(scope)
        return scope

    # Nodes that open scopes.

    def _type_parameters(self, node: int, outer: Scope, private: str | None) -> Scope:
        if not self.tree.many(node, "type_params"):
            return outer
        label = ("type_parameters", self._name(node), self.tree.line[node])
        scope = self.scopes[~node] = self._open("type_parameters", node, label, outer, private)
        return scope

    def _name(self, node: int) -> str:
        name = self.tree.name[node]
        if name is None:
            # A type alias has its name in a child node.
            child = self.tree.one(node, "name")
            name = None if child is None else self.tree.name[child]
        return name or ""

    def function(self, node: int, outer: Scope) -> None:
        parent = self._type_parameters(node, outer, outer.private)
        line = self.tree.line[node]
        arguments = self.tree.one(node, "args")
        if self._has_lazy_annotations and not self._has_string_annotations and arguments is not None:
            label = ("annotation", "__annotate__", line)
            annotations = self._open("annotation", arguments, label, parent, outer.private)
            self.scopes[arguments] = annotations
        label = ("function", self._name(node), line)
        self.scopes[node] = self._open("function", node, label, parent, outer.private)

    def lambda_(self, node: int, outer: Scope) -> None:
        label = ("function", "lambda", self.tree.line[node])
        self.scopes[node] = self._open("lambda", node, label, outer, outer.private)

    def class_(self, node: int, outer: Scope) -> None:
        name = self._name(node)
        parent = self._type_parameters(node, outer, name)
        self.scopes[node] = self._open("class", node, ("class", name, self.tree.line[node]), parent, name)

    def comprehension(self, node: int, outer: Scope) -> None:
        label = ("comprehension", COMPREHENSIONS[self.tree.kind[node]], self.tree.line[node])
        self.scopes[node] = self._open("comprehension", node, label, outer, outer.private)

    def type_alias(self, node: int, outer: Scope) -> None:
        parent = self._type_parameters(node, outer, outer.private)
        label = ("type_alias", self._name(node), None)
        self.scopes[node] = self._open("type_alias", node, label, parent, outer.private)

    def type_variable(self, node: int, outer: Scope) -> None:
        for slot, key in (("bound", node), ("default_value", ~node)):
            if self.tree.one(node, slot) is not None:
                label = ("type_variable", self._name(node), None)
                self.scopes[key] = self._open("type_variable", node, label, outer, outer.private)

    # Scopes in which the children of a node are evaluated.

    def in_function(self, parent: int, node: int) -> Scope:
        slot, scopes = self.tree.slot[node], self.scopes
        if slot == "body":
            return scopes[parent]
        if slot == "type_params":
            return scopes[~parent]
        return self._annotation(parent) if slot == "returns" else scopes.of_node[parent]

    def in_lambda(self, parent: int, node: int) -> Scope:
        return self.scopes[parent] if self.tree.slot[node] == "body" else self.scopes.of_node[parent]

    def in_arguments(self, parent: int, node: int) -> Scope:
        if self.tree.slot[node] in {"defaults", "kw_defaults"}:
            return self.scopes.of_node[parent]
        return self.scopes[self.tree.parent[parent] or 0]

    def in_arg(self, parent: int, _node: int) -> Scope:
        arguments = self.tree.parent[parent] or 0
        return self._annotation(self.tree.parent[arguments] or 0)

    def _annotation(self, function: int) -> Scope:
        outer = self.scopes.get(~function, self.scopes.of_node[function])
        if self._has_string_annotations:
            return self._unevaluated(outer)
        if self._has_lazy_annotations:
            return self.scopes.get(self.tree.one(function, "args") or 0, outer)
        return outer

    def _unevaluated(self, outer: Scope) -> Scope:
        scope = self._annotation_scopes.get(outer)
        if scope is None:
            scope = Scope("annotation", outer.ast_id, ("annotation", "", None), outer, outer.private)
            self._annotation_scopes[outer] = scope
            self.annotations.append(scope)
        return scope

    def in_class(self, parent: int, node: int) -> Scope:
        slot = self.tree.slot[node]
        if slot == "body":
            return self.scopes[parent]
        outer = self.scopes.of_node[parent]
        return outer if slot == "decorator_list" else self.scopes.get(~parent, outer)

    def in_comprehension(self, parent: int, _node: int) -> Scope:
        return self.scopes[parent]

    def in_generator(self, parent: int, node: int) -> Scope:
        if self.tree.slot[node] == "iter":
            owner = self.tree.parent[parent] or 0
            if self.tree.many(owner, "generators")[0] == parent:
                return self.scopes.of_node[owner]
        return self.scopes.of_node[parent]

    def in_type_alias(self, parent: int, node: int) -> Scope:
        slot = self.tree.slot[node]
        if slot == "type_params":
            return self.scopes[~parent]
        return self.scopes[parent] if slot == "value" else self.scopes.of_node[parent]

    def in_type_variable(self, parent: int, node: int) -> Scope:
        return self.scopes[parent if self.tree.slot[node] == "bound" else ~parent]

    def in_annotated(self, parent: int, node: int) -> Scope:
        outer = self.scopes.of_node[parent]
        if self.tree.slot[node] != "annotation":
            return outer
        if self._has_string_annotations:
            return self._unevaluated(outer)
        if not self._has_lazy_annotations:
            return outer
        scope = self._annotation_scopes.get(outer)
        if scope is None:
            label = ("annotation", "__annotate__", self.tree.line[node])
            scope = self._open("annotation", parent, label, outer, outer.private)
            self._annotation_scopes[outer] = self.scopes[parent] = scope
        return scope


# By kind of a node: opens its scope.
OPENERS = {
    **dict.fromkeys(FUNCTIONS, _TreeScopes.function),
    "Lambda": _TreeScopes.lambda_,
    "ClassDef": _TreeScopes.class_,
    **dict.fromkeys(COMPREHENSIONS, _TreeScopes.comprehension),
    "TypeAlias": _TreeScopes.type_alias,
    **dict.fromkeys(TYPE_VARIABLES, _TreeScopes.type_variable),
}
# By kind of a parent: returns the scope of a child.
CHILD_SCOPES = {
    **dict.fromkeys(FUNCTIONS, _TreeScopes.in_function),
    "Lambda": _TreeScopes.in_lambda,
    "arguments": _TreeScopes.in_arguments,
    "arg": _TreeScopes.in_arg,
    "ClassDef": _TreeScopes.in_class,
    **dict.fromkeys(COMPREHENSIONS, _TreeScopes.in_comprehension),
    "comprehension": _TreeScopes.in_generator,
    "TypeAlias": _TreeScopes.in_type_alias,
    **dict.fromkeys(TYPE_VARIABLES, _TreeScopes.in_type_variable),
    "AnnAssign": _TreeScopes.in_annotated,
}


def _unevaluated_annotations(builder: _TreeScopes) -> list[Scope]:
    """Return the annotation scopes without a block, and all scopes inside them, now marked synthetic."""
    pending = [
        scope
        for scope in builder.annotations
        if scope.state != "matched" and scope.parent is not None and scope.parent.state != "unmatched"
    ]
    scopes: list[Scope] = []
    while pending:
        scope = pending.pop()
        scope.state = "synthetic"
        scopes.append(scope)
        pending += builder.inner[scope]
    return scopes


def _bound_names(tree: Tree, of_node: Sequence[Scope]) -> defaultdict[Scope, set[str]]:
    """Return the names that the nodes of each scope bind; without imports, whose `as` names it lacks."""
    bound: defaultdict[Scope, set[str]] = defaultdict(set)
    for node, name in enumerate(tree.name):
        kind = tree.kind[node]
        if name is None or (kind == "Name" and tree.context.get(node, "Load") == "Load"):
            continue
        if kind not in BINDING_NODES:
            continue
        scope = of_node[node]
        if kind == "Name" and tree.kind[tree.parent[node] or 0] == "NamedExpr":
            while scope.kind == "comprehension" and scope.parent is not None:
                scope = scope.parent
        bound[scope].add(scope.mangled(name))
    return bound
