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

The scopes directly inside a scope are matched with the blocks inside its block. A block is identified by
type, name and line. Scopes that are unique by these are matched directly; the others in the order in which
the compiler visits them:

    f(lambda a: 0, lambda b=(lambda c: 0): 0)       tree: a, b, c; blocks: lambda@1#0, #1, #2; order: a, c, b

It visits defaults before annotations and both before the function, the iterable of a comprehension before the
comprehension, and a dict's value before its key. Only expressions can share type, name and line, so the order
of statements and decorators, which differs between versions, does not matter. A scope whose line is not
known (in an f-string before 3.12; type variables, whose line differs by version) is matched with the blocks
that the others leave, if as many have its name. If the counts differ, the scopes stay unmatched
(`Scopes.unmatched`), and names inside them are not resolved.

Two sorts of scopes rightly have no block, and bind what the tree binds in them: comprehensions that the
compiler inlines into the enclosing code (3.12), and annotations that are never evaluated (`from __future__
import annotations`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from codeanatomy.file_ids import FileIds
from codeanatomy.file_view import Columns
from codeanatomy.node_ids import scope_id
from codeanatomy.relate.compile.scope import Kind, Label, Scope
from codeanatomy.syntax_tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    TYPE_VARIABLES,
    Tree,
    VisitOrder,
    has_string_annotations,
)

# Nodes that bind their name in the enclosing scope; a Name only unless it is read.
BINDING_NODES = (
    FUNCTIONS
    | TYPE_VARIABLES
    | {*("Name", "ClassDef", "arg", "ExceptHandler", "MatchAs", "MatchStar", "MatchMapping")}
)
# Types of the newer scopes by their names in different Python versions.
TYPES = {
    "type parameter": "type_parameters",
    "type parameters": "type_parameters",
    "TypeVar bound": "type_variable",
    "type variable": "type_variable",
    "type alias": "type_alias",
}
# The scopes directly inside a scope, in the order of the tree.
Inner: TypeAlias = Mapping[Scope, Sequence[Scope]]


class Scopes(dict[int, Scope]):
    """The scopes of a file by the node that opens them, and the scope of every node."""

    def __init__(self) -> None:
        super().__init__()
        self.of_node: list[Scope] = []
        # Nodes of the scopes that could not be matched with a block, in order.
        self.unmatched: tuple[int, ...] = ()


def build_scopes(tree: Tree, blocks: Columns) -> Scopes:
    builder = _TreeScopes(tree, has_lazy_annotations="annotation" in blocks["type"])
    inlined = _match_blocks(tree, builder.scopes[0], builder.inner, blocks)
    synthetic = [*_unevaluated_annotations(builder), *(inner for _, inner in inlined)]
    scopes = builder.scopes
    if synthetic:
        bound = _bound_names(tree, scopes.of_node)
        for scope in synthetic:
            scope.bound = bound[scope]
        for host, inner in inlined:
            # The compiler lists the variables of an inlined comprehension among those of the enclosing code.
            host.inlined |= inner.bound
            host.bound -= inner.bound - bound[host] - set(host.names_with("is_imported"))
            # They have no assignment of a global variable by `:=` in it.
            scopes[0].bound |= bound[host].intersection(host.names_with("is_declared_global"))
    top = scopes[0]
    for scope in scopes.values():
        top.bound |= scope.assigned_globals()
    scopes.unmatched = tuple(sorted(each.ast_id for each in scopes.values() if each.state == "unmatched"))
    # Once all scopes have their blocks and globals.
    for scope in scopes.values():
        scope.find_cells()
    return scopes


def name_scopes(scopes: Scopes, ids: FileIds, block_keys: Mapping[str, str]) -> None:
    """Set the keys of scopes to the ids of their nodes, from the definition keys of their blocks.

    An inlined comprehension has no block, but is a definition. An annotation that is never evaluated binds
    nothing, and names in it resolve as in its parent.
    """
    # Outer scopes come first.
    for scope in dict.fromkeys((*scopes.values(), *scopes.of_node)):
        if scope.state == "matched":
            scope.key = scope_id(block_keys[scope.key])
        elif scope.kind == "annotation" and scope.parent is not None:
            scope.key = scope.parent.key
        else:
            scope.key = scope_id(ids.key_of_syntax(scope.ast_id, scope.label[1]))


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
        kinds, parents, slots = tree.kind, tree.parent, tree.slot
        of_node.append(self._open("module", 0, ("module", "top", 0), None, None))
        add = of_node.append
        for node in range(1, len(tree)):
            parent = parents[node] or 0
            finders = CHILD_SCOPES.get(kinds[parent])
            find = None if finders is None else finders.get(slots[node] or "")
            scope = of_node[parent] if find is None else find(self, parent, node)
            add(scope)
            if kinds[node] in OPENERS:
                OPENERS[kinds[node]](self, node, scope)

    def _open(self, kind: Kind, key: int, label: Label, parent: Scope | None, private: str | None) -> Scope:
        """Open the scope with a key: the node that opens it, or its complement."""
        scope = self.scopes[key] = Scope(kind, max(key, ~key), label, parent, private)
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
        return self._open("type_parameters", ~node, label, outer, private)

    def _name(self, node: int) -> str:
        # A type alias has its name in a child node.
        child = self.tree.one(node, "name")
        return self.tree.name[node] or (child is not None and self.tree.name[child]) or ""

    def function(self, node: int, outer: Scope) -> None:
        parent = self._type_parameters(node, outer, outer.private)
        line, arguments = self.tree.line[node], self.tree.one(node, "args")
        if self._has_lazy_annotations and not self._has_string_annotations and arguments is not None:
            self._open("annotation", arguments, ("annotation", "__annotate__", line), parent, outer.private)
        self._open("function", node, ("function", self._name(node), line), parent, outer.private)

    def lambda_(self, node: int, outer: Scope) -> None:
        self._open("lambda", node, ("function", "lambda", self.tree.line[node]), outer, outer.private)

    def class_(self, node: int, outer: Scope) -> None:
        name = self._name(node)
        parent = self._type_parameters(node, outer, name)
        self._open("class", node, ("class", name, self.tree.line[node]), parent, name)

    def comprehension(self, node: int, outer: Scope) -> None:
        label = ("comprehension", COMPREHENSIONS[self.tree.kind[node]], self.tree.line[node])
        self._open("comprehension", node, label, outer, outer.private)

    def type_alias(self, node: int, outer: Scope) -> None:
        parent = self._type_parameters(node, outer, outer.private)
        self._open("type_alias", node, ("type_alias", self._name(node), None), parent, outer.private)

    def type_variable(self, node: int, outer: Scope) -> None:
        for slot, key in (("bound", node), ("default_value", ~node)):
            if self.tree.one(node, slot) is not None:
                label = ("type_variable", self._name(node), None)
                self._open("type_variable", key, label, outer, outer.private)

    # Scopes in which a child of a node is evaluated.

    def own(self, parent: int, _node: int) -> Scope:
        return self.scopes[parent]

    def in_parameters(self, parent: int, _node: int) -> Scope:
        return self.scopes.get(~parent, self.scopes.of_node[parent])

    def in_signature(self, parent: int, _node: int) -> Scope:
        return self.scopes[self.tree.parent[parent] or 0]

    def in_parameter(self, parent: int, _node: int) -> Scope:
        arguments = self.tree.parent[parent] or 0
        return self.in_result(self.tree.parent[arguments] or 0, _node)

    def in_result(self, function: int, _node: int) -> Scope:
        outer = self.scopes.get(~function, self.scopes.of_node[function])
        if self._has_string_annotations:
            return self._unevaluated(outer)
        if self._has_lazy_annotations:
            return self.scopes.get(self.tree.one(function, "args") or 0, outer)
        return outer

    def _unevaluated(self, outer: Scope) -> Scope:
        if outer not in self._annotation_scopes:
            scope = Scope("annotation", outer.ast_id, ("annotation", "", None), outer, outer.private)
            self._annotation_scopes[outer] = scope
            self.annotations.append(scope)
        return self._annotation_scopes[outer]

    def in_iterable(self, parent: int, _node: int) -> Scope:
        owner = self.tree.parent[parent] or 0
        is_first = self.tree.many(owner, "generators")[0] == parent
        return self.scopes.of_node[owner if is_first else parent]

    def in_annotation(self, parent: int, node: int) -> Scope:
        outer = self.scopes.of_node[parent]
        if self._has_string_annotations:
            return self._unevaluated(outer)
        if not self._has_lazy_annotations:
            return outer
        if outer not in self._annotation_scopes:
            label = ("annotation", "__annotate__", self.tree.line[node])
            self._annotation_scopes[outer] = self._open("annotation", parent, label, outer, outer.private)
        return self._annotation_scopes[outer]


# By kind of a node: opens its scope.
OPENERS = {
    **dict.fromkeys(FUNCTIONS, _TreeScopes.function),
    "Lambda": _TreeScopes.lambda_,
    "ClassDef": _TreeScopes.class_,
    **dict.fromkeys(COMPREHENSIONS, _TreeScopes.comprehension),
    "TypeAlias": _TreeScopes.type_alias,
    **dict.fromkeys(TYPE_VARIABLES, _TreeScopes.type_variable),
}
# By kind of a parent and slot: returns the scope of the child; the others are evaluated in the parent's.
_IN_FUNCTION = {
    "body": _TreeScopes.own,
    "type_params": _TreeScopes.in_parameters,
    "returns": _TreeScopes.in_result,
}
_IN_CLASS = dict.fromkeys(("bases", "keywords", "type_params"), _TreeScopes.in_parameters)
_IN_TYPE_VARIABLE = {"bound": _TreeScopes.own, "default_value": _TreeScopes.in_parameters}
_PARAMETERS = ("posonlyargs", "args", "vararg", "kwonlyargs", "kwarg")
CHILD_SCOPES: Mapping[str, Mapping[str, Callable[[_TreeScopes, int, int], Scope]]] = {
    **dict.fromkeys(FUNCTIONS, _IN_FUNCTION),
    "Lambda": {"body": _TreeScopes.own},
    "arguments": dict.fromkeys(_PARAMETERS, _TreeScopes.in_signature),
    "arg": {"annotation": _TreeScopes.in_parameter},
    "ClassDef": {"body": _TreeScopes.own, **_IN_CLASS},
    **dict.fromkeys(COMPREHENSIONS, dict.fromkeys(("elt", "key", "value", "generators"), _TreeScopes.own)),
    "comprehension": {"iter": _TreeScopes.in_iterable},
    "TypeAlias": {"type_params": _TreeScopes.in_parameters, "value": _TreeScopes.own},
    **dict.fromkeys(TYPE_VARIABLES, _IN_TYPE_VARIABLE),
    "AnnAssign": {"annotation": _TreeScopes.in_annotation},
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


def _label(blocks: Columns, at: int) -> Label:
    kind: str = blocks["type"][at]
    if kind == "function" and ".0" in blocks["symbols"][at]["name"]:
        kind = "comprehension"
    return TYPES.get(kind, kind), blocks["name"][at], blocks["lineno"][at]


def _match_blocks(tree: Tree, top: Scope, inner: Inner, blocks: Columns) -> list[tuple[Scope, Scope]]:
    """Match scopes with blocks; return the inlined comprehensions, as (enclosing scope, comprehension)."""
    keys, symbols = blocks["scope_key"], blocks["symbols"]
    children: defaultdict[str | None, list[int]] = defaultdict(list)
    for at, parent_key in enumerate(blocks["parent_key"]):
        children[parent_key].append(at)
    order = VisitOrder(tree)
    inlined: list[tuple[Scope, Scope]] = []
    pending = [(top, 0)]
    while pending:
        scope, at = pending.pop()
        scope.match(keys[at], symbols[at])
        labelled = [(_label(blocks, child), child) for child in children[keys[at]]]
        scopes = inner[scope]
        # The compiler inlines all comprehensions or none; never generator expressions.
        if not any(label[0] == "comprehension" and label[1] != "genexpr" for label, _ in labelled):
            scopes = _without_inlined(inner, scope, inlined)
        if scopes:
            pending += _pairs(scopes, labelled, order)
    return inlined


def _without_inlined(inner: Inner, host: Scope, inlined: list[tuple[Scope, Scope]]) -> list[Scope]:
    """Return the scopes inside a scope and inside the comprehensions inlined into it, in order."""
    scopes: list[Scope] = []
    pending = [*reversed(inner[host])]
    while pending:
        scope = pending.pop()
        if scope.kind == "comprehension" and scope.label[1] != "genexpr":
            scope.state = "synthetic"
            inlined.append((host, scope))
            pending += reversed(inner[scope])
        else:
            scopes.append(scope)
    return scopes


def _pairs(
    scopes: Sequence[Scope], blocks: Sequence[tuple[Label, int]], order: VisitOrder
) -> Iterator[tuple[Scope, int]]:
    """Yield matching scopes and blocks, as many of each: by label, the rest by type and name."""
    scopes_by_label: defaultdict[Label, list[Scope]] = defaultdict(list)
    blocks_by_label: defaultdict[Label, list[int]] = defaultdict(list)
    for scope in scopes:
        scopes_by_label[scope.label].append(scope)
    for label, at in blocks:
        blocks_by_label[label].append(at)
    rest: defaultdict[tuple[str, str], list[Scope]] = defaultdict(list)
    for label, same in scopes_by_label.items():
        if label[2] is not None and len(same) == len(blocks_by_label[label]):
            yield from zip(_in_order(same, order), blocks_by_label.pop(label), strict=True)
        else:
            rest[label[:2]] += same
    lines = {at: label[2] for label, places in blocks_by_label.items() for at in places}
    left: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for label, at in blocks if rest else ():
        if at in lines:
            left[label[:2]].append(at)
    for name, same in rest.items():
        pairs = list(zip(_in_order(same, order), left[name], strict=False))
        if len(same) == len(left[name]) and all(scope.label[2] in {None, lines[at]} for scope, at in pairs):
            yield from pairs


def _in_order(scopes: list[Scope], order: VisitOrder) -> list[Scope]:
    """Return scopes of one label in the compiler's order, which is computed only where it matters."""
    return sorted(scopes, key=lambda scope: order[scope.ast_id]) if len(scopes) > 1 else scopes
