"""What an annotation says about values: whose instances they are.

    Foo                     ("n", node of Foo)              an instance
    Optional[Foo], Foo | None                               the same
    type[Foo]               ("c", node of Foo)              the class itself
    list[Foo]               ("l", "list", hint of Foo)      a container
    dict[str, Foo]          ("d", hint of str, hint of Foo)
    Callable[[], Foo]       ("f", hint of Foo)              something to call
    tuple[A, B]             ("t", [hint of A, hint of B])
    A | B                   ("u", [hint of A, hint of B])

A hint is weaker than a value: nobody checks it. An annotation in quotes is parsed, never evaluated.

Tests: `tests/unit/relate/test_annotations.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeAlias

from codeanatomy.relate.compile.syntax_tree import FIELDS, Tree
from codeanatomy.relate.program import NOTHING, Node

Hint: TypeAlias = tuple[Any, ...]
Resolve: TypeAlias = Callable[[str], Node]

MAX_CHARS = 1000
MAX_DEPTH = 20
FIRST = frozenset(
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
SILENT = frozenset({"Callable", "Literal", "TypeGuard", "TypeIs", "Any", "None", "Awaitable", "Coroutine"})


def hint_of(tree: Tree, node: int, resolve: Resolve, depth: int = 0) -> Hint | None:
    """What an annotation says; nothing if it says nothing that is of use here."""
    if depth > MAX_DEPTH:
        return None
    kind = tree.kind[node]
    if kind in ("Name", "Attribute"):
        dotted = dotted_name(tree, node)
        found = NOTHING if dotted is None or dotted in SILENT else resolve(dotted)
        return None if found == NOTHING else ("n", found)
    if kind == "Constant":
        text = tree.constant(node)
        inner = parsed(text) if isinstance(text, str) else None
        return None if inner is None else hint_of(inner, 0, resolve, depth + 1)
    if kind == "BinOp":
        return _union([hint_of(tree, side, resolve, depth + 1) for side in _alternatives(tree, node)])
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
            hint_of(tree, items[number], resolve, depth + 1) if -len(items) <= number < len(items) else None
        )

    if last in FIRST:
        return inner(0)
    if last == "Union":
        return _union([inner(number) for number in range(len(items))])
    if last in CLASSES:
        found = inner(0)
        return ("c", found[1]) if found and found[0] == "n" else None
    if last in LISTS:
        return ("l", LISTS[last], inner(0))
    if last in DICTS:
        return ("d", inner(0), inner(1))
    if last in ("Tuple", "tuple"):
        return ("t", [inner(number) for number in range(len(items))])
    if last in SILENT:
        return ("f", inner(1)) if last == "Callable" else None
    return hint_of(tree, base, resolve, depth + 1)


def _alternatives(tree: Tree, node: int) -> list[int]:
    """The parts of `A | B | C`, which is nested to the left."""
    found: list[int] = []
    current: int | None = node
    while current is not None and tree.kind[current] == "BinOp":
        right = tree.one(current, "right")
        found += [] if right is None else [right]
        current = tree.one(current, "left")
    return [*([] if current is None else [current]), *reversed(found)]


def _union(hints: list[Hint | None]) -> Hint | None:
    found = [hint for hint in hints if hint is not None]
    return found[0] if len(found) == 1 else ("u", found) if found else None


def dotted_name(tree: Tree, node: int) -> str | None:
    """Names joined by dots, if the expression is nothing else."""
    parts: list[str] = []
    current: int | None = node
    while current is not None and tree.kind[current] == "Attribute":
        parts.append(tree.name[current] or "")
        current = tree.one(current, "value")
    if current is None or tree.kind[current] != "Name":
        return None
    return ".".join([tree.name[current] or "", *reversed(parts)])


def parsed(text: str) -> Tree | None:
    """An expression in quotes as a tree; None if it is none."""
    if len(text) > MAX_CHARS:
        return None
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    rows: list[tuple[Any, ...]] = []
    todo: list[tuple[ast.AST, int | None, str | None, int | None]] = [(body, None, None, None)]
    while todo:
        node, parent, slot, idx = todo.pop()
        name = getattr(node, "id", None) or getattr(node, "attr", None)
        value = repr(node.value) if isinstance(node, ast.Constant) else None
        number = len(rows)
        # As FIELDS are; nothing in quotes has a place.
        rows.append((parent, slot, idx, type(node).__name__, name, value, None, None, None))
        below: list[tuple[ast.AST, int | None, str | None, int | None]] = []
        for field, child in ast.iter_fields(node):
            if isinstance(child, ast.AST):
                below.append((child, number, field, None))
            elif isinstance(child, list):
                below += [
                    (item, number, field, at) for at, item in enumerate(child) if isinstance(item, ast.AST)
                ]
        todo += reversed(below)
    return Tree(dict(zip(FIELDS, map(list, zip(*rows, strict=True)), strict=True)))
