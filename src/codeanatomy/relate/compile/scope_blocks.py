"""Scopes of the syntax tree paired with blocks of the symbol tables.

    f(lambda a: 0, lambda b=(lambda c: 0): 0)       tree: a, b, c; blocks: lambda@1#0, #1, #2

A block is known by its type, name and line. What is alone with these is paired; what is not, as the three
lambdas above, is paired in the order in which the compiler comes by: a, c, b. For it looks at defaults before
annotations and at both before the function, at what a comprehension iterates over before the comprehension,
and at a dictionary's value before its key. Only expressions can share a line with their like, so the order of
statements and decorators, which versions see differently, does not matter.

A scope whose line is not known (in an f-string before 3.12; type variables, whose line differs by version) is
paired with what the others leave, if there are as many of its name. What does not come out even stays alone.

Tests: `tests/unit/relate/test_scopes.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from codeanatomy.relate.compile.scope import COMPREHENSIONS, FUNCTIONS, TYPE_VARIABLES, Label, Scope
from codeanatomy.relate.compile.syntax_tree import Tree

# What the versions call the types of the newer scopes.
TYPES = {
    "type parameter": "type_parameters",
    "type parameters": "type_parameters",
    "TypeVar bound": "type_variable",
    "type variable": "type_variable",
    "type alias": "type_alias",
}
# The scopes directly inside of a scope, in the order of the tree.
Inner: TypeAlias = Mapping[Scope, Sequence[Scope]]
MAKERS = FUNCTIONS | TYPE_VARIABLES | {"Lambda", "ClassDef", "TypeAlias"}


def _label(blocks: Mapping[str, Sequence[Any]], at: int) -> Label:
    kind, name = blocks["type"][at], blocks["name"][at]
    if kind == "function" and ".0" in blocks["symbols"][at]["name"]:
        kind = "comprehension"
    return TYPES.get(kind, kind), name, blocks["lineno"][at]


def pair_all(
    tree: Tree, top: Scope, inner: Inner, blocks: Mapping[str, Sequence[Any]]
) -> list[tuple[Scope, Scope]]:
    """Give the scopes their blocks; the comprehensions that have none, with the scope they were put into."""
    keys, symbols = blocks["scope_key"], blocks["symbols"]
    offers: defaultdict[str | None, list[int]] = defaultdict(list)
    for at, parent_key in enumerate(blocks["parent_key"]):
        offers[parent_key].append(at)
    rank = _Ranks(tree)
    inlined: list[tuple[Scope, Scope]] = []
    waiting = [(top, 0)]
    while waiting:
        scope, at = waiting.pop()
        scope.take(keys[at], symbols[at])
        offered = [(_label(blocks, child), child) for child in offers[keys[at]]]
        wanted = inner[scope]
        # It is all of them or none, but generators never.
        if not any(label[0] == "comprehension" and label[1] != "genexpr" for label, _ in offered):
            wanted = _without_inlined(inner, scope, inlined)
        if wanted:
            waiting += _pairs(wanted, offered, rank)
    return inlined


def _without_inlined(inner: Inner, host: Scope, inlined: list[tuple[Scope, Scope]]) -> list[Scope]:
    """What is in a scope or in the comprehensions that are put into it, in order."""
    found: list[Scope] = []
    waiting = [*reversed(inner[host])]
    while waiting:
        scope = waiting.pop()
        if scope.kind == "comprehension" and scope.label[1] != "genexpr":
            scope.state = "made_up"
            inlined.append((host, scope))
            waiting += reversed(inner[scope])
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
        self._waiting = [0]

    def __missing__(self, node: int) -> int:
        tree, waiting = self._tree, self._waiting
        if not waiting:
            # Not a definition; its place in the tree is as good as any.
            return node
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
