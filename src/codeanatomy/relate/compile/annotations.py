"""Compile annotations to hints about the objects of an expression.

    Foo                         (HINT_INSTANCE, node of Foo)
    Optional[Foo], Foo | None   the same
    type[Foo]                   (HINT_CLASS, node of Foo)
    list[Foo]                   (HINT_CONTAINER, "list", hint of Foo)
    dict[str, Foo]              (HINT_DICT, hint of str, hint of Foo)
    Callable[[], Foo]           (HINT_CALLABLE, hint of Foo)
    tuple[A, B]                 (HINT_TUPLE, [hint of A, hint of B])
    A | B                       (HINT_UNION, [hint of A, hint of B])

A hint is weaker than a value, because nothing enforces it. A quoted annotation is parsed, never evaluated.

Tests: `tests/unit/relate/test_annotations.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeAlias

from codeanatomy.relate.program import (
    HINT_CALLABLE,
    HINT_CLASS,
    HINT_CONTAINER,
    HINT_DICT,
    HINT_INSTANCE,
    HINT_TUPLE,
    HINT_UNION,
    NOTHING,
    Node,
)
from codeanatomy.syntax_tree import FIELDS, Tree

Hint: TypeAlias = tuple[Any, ...]
Resolve: TypeAlias = Callable[[str], Node]

MAX_CHARS = 1000
MAX_DEPTH = 20
# Names whose first argument is the hint.
TRANSPARENT = frozenset(
    {"Optional", "Annotated", "ClassVar", "Final", "Required", "NotRequired", "InitVar", "ReadOnly"}
)
CLASSES = frozenset({"Type", "type"})
LISTS = {
    **dict.fromkeys(("List", "list", "Sequence", "MutableSequence", "Collection", "deque", "Deque"), "list"),
    **dict.fromkeys(("Iterable", "Iterator", "Generator", "AsyncIterable", "AsyncIterator"), "generator"),
    **dict.fromkeys(("AsyncGenerator", "Reversible"), "generator"),
    **dict.fromkeys(("Set", "set", "FrozenSet", "frozenset", "AbstractSet", "MutableSet"), "set"),
}
DICTS = frozenset(
    {"Dict", "dict", "Mapping", "MutableMapping", "DefaultDict", "defaultdict", "OrderedDict", "ChainMap"}
)
# Names that state nothing about objects; Callable is handled apart.
OPAQUE = frozenset({"Callable", "Literal", "TypeGuard", "TypeIs", "Any", "None", "Awaitable", "Coroutine"})


def compile_hint(tree: Tree, node: int, resolve: Resolve, depth: int = 0) -> Hint | None:
    """Return the hint of an annotation; None if it states nothing useful."""
    if depth > MAX_DEPTH:
        return None
    kind = tree.kind[node]
    if kind in ("Name", "Attribute"):
        dotted = dotted_name(tree, node)
        value = NOTHING if dotted is None or dotted in OPAQUE else resolve(dotted)
        return None if value == NOTHING else (HINT_INSTANCE, value)
    if kind == "Constant":
        text = tree.constant(node)
        inner = parse_expression(text) if isinstance(text, str) else None
        return None if inner is None else compile_hint(inner, 0, resolve, depth + 1)
    if kind == "BinOp":
        return _union([compile_hint(tree, side, resolve, depth + 1) for side in _alternatives(tree, node)])
    if kind == "Subscript":
        return _subscript(tree, node, resolve, depth)
    return None


def _subscript(tree: Tree, node: int, resolve: Resolve, depth: int) -> Hint | None:
    base, index = tree.one(node, "value"), tree.one(node, "slice")
    dotted = None if base is None else dotted_name(tree, base)
    if dotted is None or base is None or index is None:
        return None
    last = dotted.rpartition(".")[2]
    items = tree.many(index, "elts") if tree.kind[index] == "Tuple" else [index]

    def inner(number: int) -> Hint | None:
        return (
            compile_hint(tree, items[number], resolve, depth + 1)
            if -len(items) <= number < len(items)
            else None
        )

    if last in TRANSPARENT:
        return inner(0)
    if last == "Union":
        return _union([inner(number) for number in range(len(items))])
    if last in CLASSES:
        instance = inner(0)
        return (HINT_CLASS, instance[1]) if instance and instance[0] == HINT_INSTANCE else None
    if last in LISTS:
        return (HINT_CONTAINER, LISTS[last], inner(0))
    if last in DICTS:
        return (HINT_DICT, inner(0), inner(1))
    if last in ("Tuple", "tuple"):
        return (HINT_TUPLE, [inner(number) for number in range(len(items))])
    if last in OPAQUE:
        return (HINT_CALLABLE, inner(1)) if last == "Callable" else None
    return compile_hint(tree, base, resolve, depth + 1)


def _alternatives(tree: Tree, node: int) -> list[int]:
    """Return the parts of `A | B | C`, which is nested to the left."""
    parts: list[int] = []
    current: int | None = node
    while current is not None and tree.kind[current] == "BinOp":
        right = tree.one(current, "right")
        parts += [] if right is None else [right]
        current = tree.one(current, "left")
    return [*([] if current is None else [current]), *reversed(parts)]


def _union(hints: list[Hint | None]) -> Hint | None:
    known = [hint for hint in hints if hint is not None]
    return known[0] if len(known) == 1 else (HINT_UNION, known) if known else None


def dotted_name(tree: Tree, node: int) -> str | None:
    """Return the dotted name of an expression; None if it is not only names and dots."""
    parts: list[str] = []
    current: int | None = node
    while current is not None and tree.kind[current] == "Attribute":
        parts.append(tree.name[current] or "")
        current = tree.one(current, "value")
    if current is None or tree.kind[current] != "Name":
        return None
    return ".".join([tree.name[current] or "", *reversed(parts)])


def parse_expression(text: str) -> Tree | None:
    """Parse a quoted expression to a tree; return None if it does not parse."""
    if len(text) > MAX_CHARS:
        return None
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    rows: list[tuple[Any, ...]] = []
    pending: list[tuple[ast.AST, int | None, str | None, int | None]] = [(body, None, None, None)]
    while pending:
        node, parent, slot, idx = pending.pop()
        name = getattr(node, "id", None) or getattr(node, "attr", None)
        value = repr(node.value) if isinstance(node, ast.Constant) else None
        number = len(rows)
        # In the order of FIELDS; nothing in quotes has a place.
        rows.append((parent, slot, idx, type(node).__name__, name, value, None, None, None))
        below: list[tuple[ast.AST, int | None, str | None, int | None]] = []
        for field, child in ast.iter_fields(node):
            if isinstance(child, ast.AST):
                below.append((child, number, field, None))
            elif isinstance(child, list):
                below += [
                    (item, number, field, at) for at, item in enumerate(child) if isinstance(item, ast.AST)
                ]
        pending += reversed(below)
    return Tree(dict(zip(FIELDS, map(list, zip(*rows, strict=True)), strict=True)))
