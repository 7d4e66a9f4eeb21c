r"""What a name means where it stands: CPython's symbol tables laid over its syntax tree.

    n = 0                         module: n, outer
    def outer(a):                 outer: a is a cell, for the lambda uses it
        return lambda: a + n      lambda: a is free, n is global

    scopes = scopes_of(tree, blocks)
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
`Scopes.lost` has its nodes, and nothing in it has a home.

Two sorts of scopes have no block though all is well, and bind what the tree says: comprehensions that the
compiler puts into the code around them (3.12), and what stands in annotations that are never evaluated
(`from __future__ import annotations`). Their key is that of the block around them and their own label.

Tests: `tests/test_relate_scopes.py`; against the compiler's instructions by `tests/scope_oracle.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, count
from typing import Any, Literal, NamedTuple, TypeAlias

from codeanatomy.relate.tree import Tree

Family: TypeAlias = Literal["fast", "deref", "global", "name"]
Kind: TypeAlias = Literal[
    "module",
    "class",
    "function",
    "lambda",
    "comprehension",
    "type_parameters",
    "type_variable",
    "type_alias",
    "annotation",
]
# The compiler's type, name and line of a scope; null where it is not known which line the compiler takes.
Label: TypeAlias = tuple[str, str, int | None]

COMPREHENSIONS = {
    "ListComp": "listcomp",
    "SetComp": "setcomp",
    "DictComp": "dictcomp",
    "GeneratorExp": "genexpr",
}
FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef"})
TYPE_VARIABLES = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple"})
# What the versions call the types of the newer scopes.
TYPES = {
    "type parameter": "type_parameters",
    "type parameters": "type_parameters",
    "TypeVar bound": "type_variable",
    "type variable": "type_variable",
    "type alias": "type_alias",
}
# Scopes that see the names of a class directly around them.
SEES_CLASS = frozenset({"type_parameters", "type_variable", "type_alias", "annotation"})
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
# Cells that a class has for its methods, and no symbol of.
CLASS_CELLS = frozenset({"__class__", "__classdict__", "__conditional_annotations__"})


class Found(NamedTuple):
    """How the compiler reaches a name, the scope that binds it, and its name there.

    Without a home it is a global that nothing in the file binds: a builtin, of a star import, or unknown.
    """

    family: Family
    home: Scope | None
    name: str


class Scope:
    """A scope of one file."""

    __slots__ = (
        "_found",
        "_places",
        "_symbols",
        "ast_id",
        "bound",
        "cells",
        "key",
        "kind",
        "label",
        "parent",
        "private",
        "state",
    )

    def __init__(
        self, kind: Kind, ast_id: int, label: Label, parent: Scope | None, private: str | None
    ) -> None:
        self.kind = kind
        # The node that makes it; for type parameters the definition that has them.
        self.ast_id = ast_id
        self.label = label
        self.parent = parent
        # Name of the innermost class around, with which private names are mangled.
        self.private = private
        self.key = ""
        # `listed` has a block, `made_up` binds what the tree says, of `lost` nothing is known.
        self.state: Literal["listed", "made_up", "lost"] = "lost"
        # Names it binds, mangled; of the module also those that are only assigned below a `global`.
        self.bound: set[str] = set()
        # Those of them that inner functions use.
        self.cells: set[str] = set()
        self._symbols: Mapping[str, Sequence[Any]] = {}
        self._places: dict[str, int] = {}
        self._found: dict[str, Found] = {}

    def __repr__(self) -> str:
        return f"<{self.kind} {self.key or self.label}>"

    def find(self, name: str) -> Found:
        """What a name, as written, means here."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._resolved(name)
        return found

    def mangled(self, name: str) -> str:
        """The name as the compiler spells it here."""
        if not name.startswith("__") or name.endswith("__") or not self.private:
            return name
        prefix = self.private.lstrip("_")
        spelled = f"_{prefix}{name}" if prefix else name
        # From 3.13 on bases beside type parameters are not mangled; what is in the table is right.
        return spelled if spelled in self._places or name not in self._places else name

    def declares(self, name: str) -> Literal["global", "nonlocal", "free"] | None:
        """Why a name that is used here has its home elsewhere in the file; null if it is plainly global."""
        at = self._places.get(self.mangled(name))
        if at is None:
            return None
        if self._symbols["is_declared_global"][at]:
            return "global"
        if self._symbols["is_nonlocal"][at]:
            return "nonlocal"
        return "free" if self._symbols["is_free"][at] else None

    def imported(self) -> set[str]:
        """Names that an import binds here."""
        return set(self._those("is_imported"))

    def assigned_globals(self) -> set[str]:
        """Names that a `global` makes the module's, and that are bound here."""
        declared = set(self._those("is_declared_global"))
        return declared and declared.intersection([*self._those("is_assigned"), *self._those("is_imported")])

    def find_cells(self) -> None:
        """Note in the scopes around what this one uses of them; outer scopes must come first."""
        for name in self._those("is_free"):
            home = self._function_around(name)
            if home is not None:
                home.cells.add(name)
            self._found[name] = Found("deref", self._class_around(name) or home, name)

    def _those(self, flag: str) -> Iterable[str]:
        return compress(self._symbols["name"], self._symbols[flag]) if self._symbols else ()

    def take(self, key: str, symbols: Mapping[str, Sequence[Any]]) -> None:
        """Become the compiler's block of this key."""
        self.key, self.state = key, "listed"
        self._symbols = symbols
        self._places = dict(zip(symbols["name"], count()))
        self.bound = set(self._those("is_local"))

    def _resolved(self, written: str) -> Found:
        name = self.mangled(written)
        if self.state == "lost":
            return Found("name", None, name)
        at = self._places.get(name)
        if at is None:
            return self._by_rule(name)
        if self._symbols["is_declared_global"][at]:
            return Found("global", _module(self, name), name)
        if name in self.bound:
            return Found(self._local(name), self, name)
        seen = self._class_around(name)
        if self._symbols["is_free"][at]:
            return Found("deref", seen or self._function_around(name), name)
        plain = self.kind in {"module", "class"}
        return Found("name" if plain else "global", seen or _module(self, name), name)

    def _by_rule(self, name: str) -> Found:
        """Of a name without a symbol here: the code is put into that around it, or never evaluated."""
        if name in self.bound:
            return Found(self._local(name), self, name)
        parent = self.parent
        # A comprehension does not see the names of a class, an annotation does.
        is_seeing = self.kind == "annotation" or (
            self.kind == "comprehension" and parent and parent.kind != "class"
        )
        if parent is not None and self.state == "made_up" and is_seeing:
            return parent.find(name)
        home = self._class_around(name) or self._function_around(name)
        if home is not None:
            return Found("deref", home, name)
        plain = self.kind in {"module", "class"}
        return Found("name" if plain else "global", _module(self, name), name)

    def _local(self, name: str) -> Family:
        if self.kind in {"module", "class"}:
            return "name"
        return "deref" if name in self.cells else "fast"

    def _class_around(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and scope.kind in SEES_CLASS:
            scope = scope.parent
        if scope is self or scope is None or scope.kind != "class" or name not in scope.bound:
            return None
        return scope

    def _function_around(self, name: str) -> Scope | None:
        """The nearest function around that binds the name, as far as it is not overruled on the way."""
        scope = self.parent
        while scope is not None and scope.kind != "module":
            if scope.kind == "class":
                if name in CLASS_CELLS:
                    return scope
            elif name in scope.bound:
                return scope
            else:
                known = scope._found.get(name)  # noqa: SLF001  # One of us.
                if known is not None and known.family == "deref" and known.name == name:
                    return known.home
                at = scope._places.get(name)  # noqa: SLF001
                if at is not None and scope._symbols["is_declared_global"][at]:  # noqa: SLF001
                    return None
            scope = scope.parent
        return None


def _module(scope: Scope, name: str) -> Scope | None:
    """The module, if it binds the name."""
    top = scope
    while top.parent is not None:
        top = top.parent
    return top if name in top.bound else None


class Scopes(dict[int, Scope]):
    """The scopes of a file by the node that makes them, and the scope around every node."""

    def __init__(self) -> None:
        super().__init__()
        self.around: list[Scope] = []
        # Nodes whose scopes could not be told apart, in order.
        self.lost: tuple[int, ...] = ()


def scopes_of(tree: Tree, blocks: Mapping[str, Sequence[Any]] | None) -> Scopes:
    """The scopes of a file; none if one of the two witnesses is silent."""
    if not len(tree) or not blocks or not blocks["scope_key"]:
        return Scopes()
    plan = _Plan(tree, is_late="annotation" in blocks["type"])
    inlined = _pair_all(plan, blocks)
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
    scopes.lost = tuple(sorted(lost))
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


# Pairing.


def _label(blocks: Mapping[str, Sequence[Any]], at: int) -> Label:
    kind, name = blocks["type"][at], blocks["name"][at]
    if kind == "function" and ".0" in blocks["symbols"][at]["name"]:
        kind = "comprehension"
    return TYPES.get(kind, kind), name, blocks["lineno"][at]


def _pair_all(plan: _Plan, blocks: Mapping[str, Sequence[Any]]) -> list[tuple[Scope, Scope]]:
    """Give the scopes their blocks; the comprehensions that have none, with the scope they were put into."""
    keys, symbols = blocks["scope_key"], blocks["symbols"]
    offers: defaultdict[str | None, list[int]] = defaultdict(list)
    for at, parent_key in enumerate(blocks["parent_key"]):
        offers[parent_key].append(at)
    rank = _Ranks(plan.tree)
    inlined: list[tuple[Scope, Scope]] = []
    waiting = [(plan.scopes[0], 0)]
    while waiting:
        scope, at = waiting.pop()
        scope.take(keys[at], symbols[at])
        offered = [(_label(blocks, child), child) for child in offers[keys[at]]]
        wanted = plan.inner[scope]
        # It is all of them or none, but generators never.
        if not any(label[0] == "comprehension" and label[1] != "genexpr" for label, _ in offered):
            wanted = _without_inlined(plan, scope, inlined)
        if wanted:
            waiting += _pairs(wanted, offered, rank)
    return inlined


def _without_inlined(plan: _Plan, host: Scope, inlined: list[tuple[Scope, Scope]]) -> list[Scope]:
    """What is in a scope or in the comprehensions that are put into it, in order."""
    found: list[Scope] = []
    waiting = plan.inner[host][::-1]
    while waiting:
        scope = waiting.pop()
        if scope.kind == "comprehension" and scope.label[1] != "genexpr":
            scope.state = "made_up"
            inlined.append((host, scope))
            waiting += plan.inner[scope][::-1]
        else:
            found.append(scope)
    return found


def _pairs(
    wanted: Sequence[Scope], offered: Sequence[tuple[Label, int]], rank: _Ranks
) -> Iterator[tuple[Scope, int]]:
    """Scopes and blocks that belong together: by label; what is left then by name, if a line is not known."""
    asking: defaultdict[Label, list[Scope]] = defaultdict(list)
    asked: defaultdict[Label, list[int]] = defaultdict(list)
    for scope in wanted:
        asking[scope.label].append(scope)
    for label, at in offered:
        asked[label].append(at)
    left: defaultdict[tuple[str, str], list[Scope]] = defaultdict(list)
    for label, scopes in asking.items():
        if label[2] is not None and len(scopes) == len(asked[label]):
            yield from _even(scopes, asked.pop(label), rank)
        else:
            left[label[:2]] += scopes
    if not left:
        return
    lines = {at: label[2] for label, places in asked.items() for at in places}
    named: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for label, at in offered:
        if at in lines:
            named[label[:2]].append(at)
    for name, scopes in left.items():
        pairs = list(_even(scopes, named[name], rank))
        if all(scope.label[2] in {None, lines[at]} for scope, at in pairs):
            yield from pairs


def _even(scopes: list[Scope], places: Sequence[int], rank: _Ranks) -> Iterator[tuple[Scope, int]]:
    if len(scopes) != len(places):
        return
    if len(scopes) > 1:
        scopes = sorted(scopes, key=lambda scope: rank[scope.ast_id])
    yield from zip(scopes, places, strict=True)


class _Ranks(dict[int, int]):
    """When the compiler's symbol pass enters the scope of a node; found out when first asked.

    Only expressions can share a line with their like, so only their order is the compiler's.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree

    def __missing__(self, node: int) -> int:
        tree = self._tree
        if self:
            raise KeyError(node)
        waiting = [0]
        while waiting:
            at = waiting.pop()
            if at < 0:
                self[~at] = len(self)
                continue
            kind = tree.kind[at]
            if kind in FUNCTIONS or kind == "Lambda":
                parts = _parts_of_function(tree, at)
            elif kind in COMPREHENSIONS:
                parts = _parts_of_comprehension(tree, at)
            else:
                parts = [~at, *tree.children(at)] if kind in MAKERS else tree.children(at)
            parts.reverse()
            waiting += parts
        return self[node]


def _parts_of_function(tree: Tree, node: int) -> list[int]:
    """In the order of the symbol pass, with the entry of the scope itself as `~node`."""
    parts = [*tree.many(node, "decorator_list"), *tree.many(node, "type_params")]
    arguments = tree.one(node, "args")
    if arguments is not None:
        parts += tree.many(arguments, "defaults")
        parts += filter(None, tree.many(arguments, "kw_defaults"))
        for slot in ("posonlyargs", "args"):
            parts += tree.many(arguments, slot)
        parts += (arg for slot in ("vararg", "kwarg") if (arg := tree.one(arguments, slot)) is not None)
        parts += tree.many(arguments, "kwonlyargs")
    returns = tree.one(node, "returns")
    if returns is not None:
        parts.append(returns)
    parts.append(~node)
    if tree.kind[node] != "Lambda":
        return [*parts, *tree.many(node, "body")]
    body = tree.one(node, "body")
    return parts if body is None else [*parts, body]


def _parts_of_comprehension(tree: Tree, node: int) -> list[int]:
    first, *others = tree.many(node, "generators")
    iterated = tree.one(first, "iter")
    parts = [] if iterated is None else [iterated]
    parts.append(~node)
    parts += (child for child in tree.children(first) if child != iterated)
    parts += others
    return parts + [part for slot in ("value", "key", "elt") if (part := tree.one(node, slot)) is not None]


# Scopes that the compiler has no block for.


def _of_annotations(plan: _Plan) -> list[Scope]:
    """Annotations without a block and all that is in them."""
    waiting = [scope for scope in plan.annotations if scope.state != "listed"]
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
