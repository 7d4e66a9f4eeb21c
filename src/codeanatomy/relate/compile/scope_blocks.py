"""Match scopes of the syntax tree with blocks of the symbol table.

    f(lambda a: 0, lambda b=(lambda c: 0): 0)       tree: a, b, c; blocks: lambda@1#0, #1, #2

A block is identified by type, name and line. Scopes that are unique by these are matched directly. Those that
are not, as the three lambdas above, are matched in the order in which the compiler visits them: a, c, b. It
visits defaults before annotations and both before the function, the iterable of a comprehension before the
comprehension, and a dict's value before its key. Only expressions can share type, name and line, so the order
of statements and decorators, which differs between versions, does not matter.

A scope whose line is not known (in an f-string before 3.12; type variables, whose line differs by version) is
matched with the blocks that the others leave, if as many have its name. If the counts differ, the scopes stay
unmatched.

Tests: `tests/unit/relate/test_scopes.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from codeanatomy.relate.compile.scope import Label, Scope
from codeanatomy.syntax_tree import Tree, VisitOrder

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


def _label(blocks: Mapping[str, Sequence[Any]], at: int) -> Label:
    kind, name = blocks["type"][at], blocks["name"][at]
    if kind == "function" and ".0" in blocks["symbols"][at]["name"]:
        kind = "comprehension"
    return TYPES.get(kind, kind), name, blocks["lineno"][at]


def match_blocks(
    tree: Tree, top: Scope, inner: Inner, blocks: Mapping[str, Sequence[Any]]
) -> list[tuple[Scope, Scope]]:
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
    """Yield matching scopes and blocks: by label first, the rest by type and name if a line is not known."""
    scopes_by_label: defaultdict[Label, list[Scope]] = defaultdict(list)
    blocks_by_label: defaultdict[Label, list[int]] = defaultdict(list)
    for scope in scopes:
        scopes_by_label[scope.label].append(scope)
    for label, at in blocks:
        blocks_by_label[label].append(at)
    rest: defaultdict[tuple[str, str], list[Scope]] = defaultdict(list)
    for label, same in scopes_by_label.items():
        if label[2] is not None and len(same) == len(blocks_by_label[label]):
            yield from _pair_in_order(same, blocks_by_label.pop(label), order)
        else:
            rest[label[:2]] += same
    if not rest:
        return
    lines = {at: label[2] for label, places in blocks_by_label.items() for at in places}
    blocks_by_name: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for label, at in blocks:
        if at in lines:
            blocks_by_name[label[:2]].append(at)
    for name, same in rest.items():
        pairs = list(_pair_in_order(same, blocks_by_name[name], order))
        if all(scope.label[2] in {None, lines[at]} for scope, at in pairs):
            yield from pairs


def _pair_in_order(
    scopes: list[Scope], blocks: Sequence[int], order: VisitOrder
) -> Iterator[tuple[Scope, int]]:
    """Yield scopes and blocks of one label in the compiler's order; none if the counts differ."""
    if len(scopes) != len(blocks):
        return
    if len(scopes) > 1:
        scopes = sorted(scopes, key=lambda scope: order[scope.ast_id])
    yield from zip(scopes, blocks, strict=True)
