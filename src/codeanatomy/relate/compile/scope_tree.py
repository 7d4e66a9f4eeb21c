r"""What a name means where it stands: CPython's symbol tables laid over its syntax tree.

    n = 0                         module: n, outer
    def outer(a):                 outer: a is a cell, for the lambda uses it
        return lambda: a + n      lambda: a is free, n is global

    scopes = build_scopes(tree, blocks)
    scopes[lambda_].find("a")     Found("deref", scopes[outer], "a")
    scopes[lambda_].find("n")     Found("global", scopes[0], "n")
    scopes.around[node]           the scope in which a node is evaluated

`Scopes` has a scope under the node that makes it. A definition with type parameters makes a second one, under
`~node`. The bound of a type variable is under the variable, its default under `~variable`; where Python
evaluates annotations late (3.14), those of a function are under its `arguments` and those of variables under
the first AnnAssign.

The tables name a scope by type, name and line only. So the scopes that the tree has inside of a scope are
paired with the blocks inside of its block by these three, and those that share them (`lambda: 0, lambda: 1`)
by the order in which the compiler comes by: defaults before annotations, what a comprehension iterates over
before the comprehension, a dictionary's value before its key. What does not come out even is not paired:
`Scopes.unmatched` has its nodes, and nothing in it has a home.

Two sorts of scopes have no block though all is well, and bind what the tree says: comprehensions that the
compiler puts into the code around them (3.12), and what stands in annotations that are never evaluated
(`from __future__ import annotations`). Their key is that of the block around them and their own label.

Tests: `tests/unit/relate/test_scopes.py`; against the compiler's instructions by `tests/oracles/scope_oracle.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from codeanatomy.relate.compile.scope import (
    COMPREHENSIONS,
    FUNCTIONS,
    TYPE_VARIABLES,
    Found,
    Kind,
    Label,
    Scope,
)
from codeanatomy.relate.compile.scope_blocks import pair_all
from codeanatomy.relate.compile.syntax_tree import Tree

__all__ = ["Found", "Scope", "Scopes", "build_scopes"]

# Nodes whose name is bound in the scope around them, a Name unless it is read.
NAMING = frozenset(
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
    """The scopes of a file by the node that makes them, and the scope around every node."""

    def __init__(self) -> None:
        super().__init__()
        self.around: list[Scope] = []
        # Nodes whose scopes could not be told apart, in order.
        self.unmatched: tuple[int, ...] = ()


def build_scopes(tree: Tree, blocks: Mapping[str, Sequence[Any]] | None) -> Scopes:
    """The scopes of a file; none if one of the two witnesses is silent."""
    if not len(tree) or not blocks or not blocks["scope_key"]:
        return Scopes()
    plan = _Plan(tree, is_late="annotation" in blocks["type"])
    inlined = pair_all(tree, plan.scopes[0], plan.inner, blocks)
    made_up = [*_of_annotations(plan), *(inner for _, inner in inlined)]
    scopes = plan.scopes
    if made_up:
        written = _written(tree, scopes.around)
        for scope in made_up:
            scope.bound = written[scope]
        for host, inner in inlined:
            # The compiler has put the variables of the comprehension among those of the code around it.
            host.bound -= inner.bound - written[host] - host.imported()
    _settle(scopes)
    return scopes


def _settle(scopes: Scopes) -> None:
    """What can be said only when all scopes have their blocks."""
    top, lost = scopes[0], []
    for scope in scopes.values():
        if scope.state == "lost":
            lost.append(scope.ast_id)
        if scope.state != "listed":
            kind, name, line = scope.label
            # The number of the node, because equal ones are not counted here.
            scope.key = f"{scope.parent.key if scope.parent else ''}/{kind}:{name}@{line}~{scope.ast_id}"
        top.bound |= scope.assigned_globals()
    scopes.unmatched = tuple(sorted(lost))
    for scope in scopes.values():
        scope.find_cells()


class _Plan:
    """The scopes that the tree asks for, not yet paired with blocks."""

    def __init__(self, tree: Tree, *, is_late: bool) -> None:
        self.tree = tree
        self.scopes = Scopes()
        self.inner: defaultdict[Scope, list[Scope]] = defaultdict(list)
        # Annotations of later Pythons are scopes of their own; those of `__future__` are texts.
        self._is_late = is_late
        self._is_text = _has_future_annotations(tree)
        self._annotated: dict[Scope, Scope] = {}
        self.annotations: list[Scope] = []
        self._lay()

    def _lay(self) -> None:
        """A walk in preorder: what a node does not say differently is evaluated where its parent is."""
        tree, around = self.tree, self.scopes.around
        kinds, parents = tree.kind, tree.parent
        around.append(self._scope("module", 0, ("module", "top", 0), None, None))
        self.scopes[0] = around[0]
        add = around.append
        for node in range(1, len(tree)):
            parent = parents[node] or 0
            kind = kinds[parent]
            scope = PLACES[kind](self, parent, node) if kind in PLACES else around[parent]
            add(scope)
            if kinds[node] in MAKERS:
                MAKERS[kinds[node]](self, node, scope)

    def _scope(self, kind: Kind, node: int, label: Label, parent: Scope | None, private: str | None) -> Scope:
        scope = Scope(kind, node, label, parent, private)
        if kind == "annotation":
            self.annotations.append(scope)
        if parent is not None:
            self.inner[parent].append(scope)
        return scope

    # Nodes that make scopes.

    def _type_parameters(self, node: int, outer: Scope, private: str | None) -> Scope:
        if not self.tree.many(node, "type_params"):
            return outer
        label = ("type_parameters", self._name(node), self.tree.line[node])
        scope = self.scopes[~node] = self._scope("type_parameters", node, label, outer, private)
        return scope

    def _name(self, node: int) -> str:
        name = self.tree.name[node]
        if name is None:
            # A type alias has its name in a node.
            named = self.tree.one(node, "name")
            name = None if named is None else self.tree.name[named]
        return name or ""

    def function(self, node: int, outer: Scope) -> None:
        around = self._type_parameters(node, outer, outer.private)
        line = self.tree.line[node]
        arguments = self.tree.one(node, "args")
        if self._is_late and not self._is_text and arguments is not None:
            label = ("annotation", "__annotate__", line)
            notes = self._scope("annotation", arguments, label, around, outer.private)
            self.scopes[arguments] = notes
        label = ("function", self._name(node), line)
        self.scopes[node] = self._scope("function", node, label, around, outer.private)

    def lambda_(self, node: int, outer: Scope) -> None:
        label = ("function", "lambda", self.tree.line[node])
        self.scopes[node] = self._scope("lambda", node, label, outer, outer.private)

    def class_(self, node: int, outer: Scope) -> None:
        name = self._name(node)
        around = self._type_parameters(node, outer, name)
        self.scopes[node] = self._scope("class", node, ("class", name, self.tree.line[node]), around, name)

    def comprehension(self, node: int, outer: Scope) -> None:
        label = ("comprehension", COMPREHENSIONS[self.tree.kind[node]], self.tree.line[node])
        self.scopes[node] = self._scope("comprehension", node, label, outer, outer.private)

    def type_alias(self, node: int, outer: Scope) -> None:
        around = self._type_parameters(node, outer, outer.private)
        label = ("type_alias", self._name(node), None)
        self.scopes[node] = self._scope("type_alias", node, label, around, outer.private)

    def type_variable(self, node: int, outer: Scope) -> None:
        for slot, key in (("bound", node), ("default_value", ~node)):
            if self.tree.one(node, slot) is not None:
                label = ("type_variable", self._name(node), None)
                self.scopes[key] = self._scope("type_variable", node, label, outer, outer.private)

    # Where the fields of a node are evaluated.

    def in_function(self, parent: int, node: int) -> Scope:
        slot, scopes = self.tree.slot[node], self.scopes
        if slot == "body":
            return scopes[parent]
        if slot == "type_params":
            return scopes[~parent]
        return self._annotation(parent) if slot == "returns" else scopes.around[parent]

    def in_lambda(self, parent: int, node: int) -> Scope:
        return self.scopes[parent] if self.tree.slot[node] == "body" else self.scopes.around[parent]

    def in_arguments(self, parent: int, node: int) -> Scope:
        if self.tree.slot[node] in {"defaults", "kw_defaults"}:
            return self.scopes.around[parent]
        return self.scopes[self.tree.parent[parent] or 0]

    def in_arg(self, parent: int, _node: int) -> Scope:
        arguments = self.tree.parent[parent] or 0
        return self._annotation(self.tree.parent[arguments] or 0)

    def _annotation(self, function: int) -> Scope:
        around = self.scopes.get(~function, self.scopes.around[function])
        if self._is_text:
            return self._unevaluated(around)
        return self.scopes.get(self.tree.one(function, "args") or 0, around) if self._is_late else around

    def _unevaluated(self, outer: Scope) -> Scope:
        found = self._annotated.get(outer)
        if found is None:
            found = Scope("annotation", outer.ast_id, ("annotation", "", None), outer, outer.private)
            self._annotated[outer] = found
            self.annotations.append(found)
        return found

    def in_class(self, parent: int, node: int) -> Scope:
        slot = self.tree.slot[node]
        if slot == "body":
            return self.scopes[parent]
        outer = self.scopes.around[parent]
        return outer if slot == "decorator_list" else self.scopes.get(~parent, outer)

    def in_comprehension(self, parent: int, _node: int) -> Scope:
        return self.scopes[parent]

    def in_generator(self, parent: int, node: int) -> Scope:
        if self.tree.slot[node] == "iter":
            owner = self.tree.parent[parent] or 0
            if self.tree.many(owner, "generators")[0] == parent:
                return self.scopes.around[owner]
        return self.scopes.around[parent]

    def in_type_alias(self, parent: int, node: int) -> Scope:
        slot = self.tree.slot[node]
        if slot == "type_params":
            return self.scopes[~parent]
        return self.scopes[parent] if slot == "value" else self.scopes.around[parent]

    def in_type_variable(self, parent: int, node: int) -> Scope:
        return self.scopes[parent if self.tree.slot[node] == "bound" else ~parent]

    def in_annotated(self, parent: int, node: int) -> Scope:
        outer = self.scopes.around[parent]
        if self.tree.slot[node] != "annotation":
            return outer
        if self._is_text:
            return self._unevaluated(outer)
        if not self._is_late:
            return outer
        found = self._annotated.get(outer)
        if found is None:
            label = ("annotation", "__annotate__", self.tree.line[node])
            found = self._scope("annotation", parent, label, outer, outer.private)
            self._annotated[outer] = self.scopes[parent] = found
        return found


MAKERS = {
    **dict.fromkeys(FUNCTIONS, _Plan.function),
    "Lambda": _Plan.lambda_,
    "ClassDef": _Plan.class_,
    **dict.fromkeys(COMPREHENSIONS, _Plan.comprehension),
    "TypeAlias": _Plan.type_alias,
    **dict.fromkeys(TYPE_VARIABLES, _Plan.type_variable),
}
PLACES = {
    **dict.fromkeys(FUNCTIONS, _Plan.in_function),
    "Lambda": _Plan.in_lambda,
    "arguments": _Plan.in_arguments,
    "arg": _Plan.in_arg,
    "ClassDef": _Plan.in_class,
    **dict.fromkeys(COMPREHENSIONS, _Plan.in_comprehension),
    "comprehension": _Plan.in_generator,
    "TypeAlias": _Plan.in_type_alias,
    **dict.fromkeys(TYPE_VARIABLES, _Plan.in_type_variable),
    "AnnAssign": _Plan.in_annotated,
}


def _has_future_annotations(tree: Tree) -> bool:
    for node in tree.many(0, "body"):
        if tree.kind[node] == "ImportFrom" and tree.name[node] == "__future__":
            if any(tree.name[alias] == "annotations" for alias in tree.many(node, "names")):
                return True
        elif tree.kind[node] != "Expr":
            # Only a docstring and other future imports may be before one.
            return False
    return False


# Scopes that the compiler has no block for.


def _of_annotations(plan: _Plan) -> list[Scope]:
    """Annotations without a block and all that is in them."""
    waiting = [
        scope
        for scope in plan.annotations
        if scope.state != "listed" and scope.parent is not None and scope.parent.state != "lost"
    ]
    found: list[Scope] = []
    while waiting:
        scope = waiting.pop()
        scope.state = "made_up"
        if scope.parent is not None:
            # It binds nothing, and what it means is what the scope around it means.
            scope.key = scope.parent.key
        found.append(scope)
        waiting += plan.inner[scope]
    return found


def _written(tree: Tree, around: Sequence[Scope]) -> defaultdict[Scope, set[str]]:
    """The names that the nodes of each scope bind, imports left out: the tree does not say `as` what."""
    found: defaultdict[Scope, set[str]] = defaultdict(set)
    for node, name in enumerate(tree.name):
        kind = tree.kind[node]
        if name is None or (kind == "Name" and tree.context.get(node, "Load") == "Load"):
            continue
        if kind not in NAMING:
            continue
        scope = around[node]
        if kind == "Name" and tree.kind[tree.parent[node] or 0] == "NamedExpr":
            while scope.kind == "comprehension" and scope.parent is not None:
                scope = scope.parent
        found[scope].add(scope.mangled(name))
    return found
