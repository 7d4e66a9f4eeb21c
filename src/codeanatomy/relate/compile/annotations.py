"""Compile annotations to hints about the objects of an expression.

    Foo                         (HINT_INSTANCE, node of Foo)
    Optional[Foo], Foo | None   the same
    type[Foo]                   (HINT_CLASS, node of Foo)
    list[Foo]                   (HINT_CONTAINER, "list", hint of Foo)
    dict[str, Foo]              (HINT_DICT, hint of str, hint of Foo)
    Callable[[], Foo]           (HINT_CALLABLE, hint of Foo)
    tuple[A, B]                 (HINT_TUPLE, [hint of A, hint of B])
    A | B                       (HINT_UNION, [hint of A, hint of B])

A hint is weaker than a value, because nothing enforces it. A quoted annotation is parsed, never evaluated;
its names are references, like those of one without quotes.

    def f(a: "shop.Cart"): ...  `shop` and `shop.Cart`, at the spans of `shop` and `Cart` in the string
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

from codeanatomy.relate import program as ir
from codeanatomy.relate.compile.builder import Builder
from codeanatomy.relate.compile.names import read_cell
from codeanatomy.relate.program import NOTHING, Node
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
# Syntax that joins types to types.
JOINS = frozenset({"BinOp", "List", "Starred", "Tuple"})
# Names whose subscripts are types wherever they occur, as in `Handler = Callable[["Event"], None]`.
TYPING_FORMS = frozenset({"Callable", "Optional", "Type", "Union", "Awaitable", "Coroutine"})
# Names that state nothing about objects; Callable is handled apart.
OPAQUE = frozenset({"Callable", "Literal", "TypeGuard", "TypeIs", "Any", "None", "Awaitable", "Coroutine"})


def read_hint(b: Builder, annotation: int | None) -> Hint | None:
    """Compile an annotation to a hint; its names are read in the current frame."""
    if annotation is None:
        return None
    calls = b.call_count
    b.value(annotation)
    # Subscripts such as `List[int]` run no code of the repository.
    b.call_count = calls
    use_quoted_names(b, annotation)
    return compile_hint(b.tree, annotation, partial(_name_node, b))


def use_quoted_names(b: Builder, annotation: int) -> None:
    """Note the names in the strings of a type; they are read in the current frame."""
    for string, dotted, span in quoted_names(b.tree, annotation):
        place = b.place(string)
        resolved = b.frame.scope.resolve(dotted.partition(".")[0])
        quoted = (place if span is None else (*span, place[2]), string, dotted)
        b.quoted_uses[quoted] = (resolved.binding_scope, resolved.name)


def _name_node(b: Builder, dotted: str) -> Node:
    """Return the node of a dotted name in an annotation."""
    first, *rest = dotted.split(".")
    resolved = b.frame.scope.resolve(first)
    if resolved.binding_scope is not None:
        # Through the cell: it may be defined only later in the file.
        node, _ = read_cell(b, resolved.binding_scope, resolved.name)
    else:
        node = b.unbound(first)
    for attr in rest:
        node = b.load_attribute(node, attr, NOTHING)
    return node


def compile_hint(tree: Tree, node: int, resolve: Resolve, depth: int = 0) -> Hint | None:
    """Return the hint of an annotation; None if it states nothing useful."""
    if depth > MAX_DEPTH:
        return None
    kind = tree.kind[node]
    if kind in ("Name", "Attribute"):
        dotted = dotted_name(tree, node)
        value = NOTHING if dotted is None or dotted in OPAQUE else resolve(dotted)
        return None if value == NOTHING else (ir.HINT_INSTANCE, value)
    if kind == "Constant":
        inner = parse_expression(tree.constant(node))
        return None if inner is None else compile_hint(inner, 0, resolve, depth + 1)
    if kind == "BinOp":
        return _union([compile_hint(tree, side, resolve, depth + 1) for side in _alternatives(tree, node)])
    if kind == "Subscript":
        return _subscript(tree, node, resolve, depth)
    return None


def _subscript(tree: Tree, node: int, resolve: Resolve, depth: int) -> Hint | None:
    base, index = tree.child(node, "value"), tree.child(node, "slice")
    dotted = dotted_name(tree, base)
    if dotted is None:
        return None
    last = dotted.rpartition(".")[2]
    items = tree.many(index, "elts") if tree.kind[index] == "Tuple" else [index]

    def inner(number: int) -> Hint | None:
        return compile_hint(tree, items[number], resolve, depth + 1) if number < len(items) else None

    if last in TRANSPARENT:
        return inner(0)
    if last == "Union":
        return _union([inner(number) for number in range(len(items))])
    if last in CLASSES:
        instance = inner(0)
        return (ir.HINT_CLASS, instance[1]) if instance and instance[0] == ir.HINT_INSTANCE else None
    if last in LISTS:
        return (ir.HINT_CONTAINER, LISTS[last], inner(0))
    if last in DICTS:
        return (ir.HINT_DICT, inner(0), inner(1))
    if last in ("Tuple", "tuple"):
        return (ir.HINT_TUPLE, [inner(number) for number in range(len(items))])
    if last in OPAQUE:
        return (ir.HINT_CALLABLE, inner(1)) if last == "Callable" else None
    return compile_hint(tree, base, resolve, depth + 1)


def _alternatives(tree: Tree, node: int) -> list[int]:
    """Return the parts of `A | B | C`, which is nested to the left."""
    parts: list[int] = []
    while tree.kind[node] == "BinOp":
        parts.append(tree.child(node, "right"))
        node = tree.child(node, "left")
    return [node, *reversed(parts)]


def _union(hints: list[Hint | None]) -> Hint | None:
    known = [hint for hint in hints if hint is not None]
    return known[0] if len(known) == 1 else (ir.HINT_UNION, known) if known else None


def quoted_names(tree: Tree, annotation: int) -> Iterator[tuple[int, str, tuple[int, int] | None]]:
    """Yield the names in the strings of an annotation: node of the string, dotted name up to it, its span.

    The span is None if escapes, a prefix or other quotes hide where a name of the text is in the source.
    """
    # Parts of a type: tree, node, the string it is in, and where the text of its tree begins in the source.
    pending: list[tuple[Tree, int, int | None, int | None]] = [(tree, annotation, None, 0)]
    while pending:
        part, node, string, base = pending.pop()
        kind, below = part.kind[node], list[int]()
        if kind == "Constant":
            text = part.constant(node)
            inner = parse_expression(text)
            if isinstance(text, str) and inner is not None:
                outer = node if string is None else string
                pending.append((inner, 0, outer, _text_start(part, node, text, base)))
        elif kind in ("Name", "Attribute"):
            dotted, end = dotted_name(part, node), part.bend[node]
            if string is not None and dotted is not None and dotted.count(".") < MAX_DEPTH:
                size = len(part.name[node] or "")
                span = None if base is None or end is None else (base + end - size, base + end)
                yield string, dotted, span
                below = part.children(node)
        elif kind == "Subscript":
            base_name, index = part.child(node, "value"), part.child(node, "slice")
            if part.name[base_name] == "Annotated" and part.kind[index] == "Tuple":
                index = next(iter(part.many(index, "elts")), index)
            below = [base_name] if part.name[base_name] == "Literal" else [base_name, index]
        elif kind in JOINS:
            below = part.children(node)
        pending += ((part, each, string, base) for each in reversed(below))


def _text_start(tree: Tree, string: int, text: str, base: int | None) -> int | None:
    """Return where the expression in a string begins in the source; None if the source is not the text."""
    start, end = tree.bstart[string], tree.bend[string]
    # Prefixes, escapes and longer quotes make the source of an ASCII text longer.
    if base is None or start is None or end is None or not text.isascii() or end - start != len(text) + 2:
        return None
    return base + start + 1 + len(text) - len(text.lstrip())


def dotted_name(tree: Tree, node: int) -> str | None:
    """Return the dotted name of an expression; None if it is not only names and dots."""
    parts: list[str] = []
    while tree.kind[node] == "Attribute":
        parts.append(tree.name[node] or "")
        node = tree.child(node, "value")
    return ".".join([tree.name[node] or "", *reversed(parts)]) if tree.kind[node] == "Name" else None


def parse_expression(text: object) -> Tree | None:
    """Parse a quoted expression to a tree, with spans in its line; None if that fails."""
    if not isinstance(text, str) or len(text) > MAX_CHARS:
        return None
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    rows: list[tuple[Any, ...]] = []
    # Nodes with the number of their parent, their slot, and their index in it.
    pending: list[tuple[ast.AST, int | None, str | None, int | None]] = [(body, None, None, None)]
    while pending:
        node, *where = pending.pop()
        name = getattr(node, "id", None) or getattr(node, "attr", None)
        value = repr(node.value) if isinstance(node, ast.Constant) else None
        span = (getattr(node, "col_offset", None), getattr(node, "end_col_offset", None))
        below: list[tuple[ast.AST, int | None, str | None, int | None]] = []
        for field, child in ast.iter_fields(node):
            items = enumerate(child) if isinstance(child, list) else [(None, child)]
            below += [(item, len(rows), field, at) for at, item in items if isinstance(item, ast.AST)]
        # In the order of FIELDS; nothing in quotes has a line.
        rows.append((*where, type(node).__name__, name, value, *span, None))
        pending += reversed(below)
    return Tree(dict(zip(FIELDS, map(list, zip(*rows, strict=True)), strict=True)))
