"""Read CPython's syntax tree of a file back from `ast_files_v1`: nodes are numbers, fields are lists.

    tree = Tree(nodes)                       # columns of the nodes, in preorder
    tree.one(call, "func"), tree.many(call, "args")
    tree.kind[call], tree.bstart[call]       # "Call", 14

Numbers instead of objects, because a repository has millions of nodes and most are visited once. A list field
keeps the gaps of CPython's grammar: the key of `**other` in a dict display is None.

Tests: `tests/unit/test_syntax_tree.py`.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import Any

# Kinds of nodes that open scopes, comprehensions with the names of their scopes.
COMPREHENSIONS = {
    "ListComp": "listcomp",
    "SetComp": "setcomp",
    "DictComp": "dictcomp",
    "GeneratorExp": "genexpr",
}
FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef"})
TYPE_VARIABLES = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple"})
SCOPE_NODES = FUNCTIONS | TYPE_VARIABLES | {"Lambda", "ClassDef", "TypeAlias"}
ANNOTATION_SLOTS = frozenset({"annotation", "returns"})
FIELDS = ("parent_ast_id", "slot", "idx", "kind", "name", "value", "bstart", "bend", "line")
# Cells that the compiler adds to a class, for `super()` and annotations, without a symbol: no members of it.
CLASS_CELLS = ("__class__", "__classdict__", "__conditional_annotations__")
# Constants by their `repr`.
CONSTANTS = {
    "True": "bool",
    "False": "bool",
    "None": "NoneType",
    "Ellipsis": "ellipsis",
    "...": "ellipsis",
}


class Tree:
    """The syntax tree of one file."""

    __slots__ = (
        "_fields",
        "bend",
        "bstart",
        "context",
        "end",
        "kind",
        "line",
        "name",
        "parent",
        "slot",
        "value",
    )

    def __init__(self, nodes: Mapping[str, Sequence[Any]]) -> None:
        self.parent: Sequence[int | None] = nodes["parent_ast_id"]
        self.slot: Sequence[str | None] = nodes["slot"]
        self.kind: Sequence[str] = nodes["kind"]
        self.name: Sequence[str | None] = nodes["name"]
        self.value: Sequence[str | None] = nodes["value"]
        self.bstart: Sequence[int | None] = nodes["bstart"]
        self.bend: Sequence[int | None] = nodes["bend"]
        self.line: Sequence[int | None] = nodes["line"]
        fields: list[Any] = [None] * len(self.kind)
        contexts: dict[int, str] = {}
        for node, (parent, slot, idx) in enumerate(zip(self.parent, self.slot, nodes["idx"], strict=True)):
            if parent is None or slot is None:
                continue
            if slot == "ctx":
                contexts[parent] = self.kind[node]
                continue
            own = fields[parent]
            if own is None:
                own = fields[parent] = {}
            if idx is None:
                own[slot] = node
            else:
                items = own.setdefault(slot, [])
                if idx > len(items):
                    # CPython has None in these places.
                    items.extend([None] * (idx - len(items)))
                items.append(node)
        self._fields = fields
        # By node: the number after its last descendant. Descendants are the numbers in between.
        ends = self.end = list(range(1, len(fields) + 1))
        for node, parent in zip(range(len(fields) - 1, 0, -1), reversed(self.parent), strict=False):
            if parent is not None and ends[node] > ends[parent]:
                ends[parent] = ends[node]
        # Load, Store or Del of names, attributes, subscripts, lists, tuples and starred expressions.
        self.context = contexts

    def __len__(self) -> int:
        return len(self.kind)

    def one(self, node: int, slot: str) -> int | None:
        """Return the node in a field, or None."""
        own = self._fields[node]
        return None if own is None else own.get(slot)

    def child(self, node: int, slot: str) -> int:
        """Return the node in a field that the grammar requires."""
        child: int = self._fields[node][slot]
        return child

    def many(self, node: int, slot: str) -> Sequence[int]:
        """Return the nodes in a list field; only `keys` and `kw_defaults` have gaps, see `gapped`."""
        own = self._fields[node]
        return () if own is None else own.get(slot, ())

    def gapped(self, node: int, slot: str, size: int) -> list[int | None]:
        """Return the nodes in a list field of this size, with None for gaps."""
        nodes: list[int | None] = list(self.many(node, slot))
        return nodes + [None] * (size - len(nodes))

    def children(self, node: int) -> list[int]:
        """Return the direct children of a node in the order of CPython's fields, without contexts."""
        own = self._fields[node]
        nodes: list[int] = []
        for field in (own or {}).values():
            if isinstance(field, list):
                nodes += (item for item in field if item is not None)
            else:
                nodes.append(field)
        return nodes

    def constant(self, node: int) -> object:
        """Return the value of a constant; Ellipsis if it is not known, as for a text that was cut."""
        text = self.value[node]
        try:
            return ... if text is None else literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ...


def has_string_annotations(tree: Tree) -> bool:
    """Whether annotations are never evaluated: the file has `from __future__ import annotations`."""
    for node in tree.many(0, "body"):
        if tree.kind[node] == "ImportFrom" and tree.name[node] == "__future__":
            if any(tree.name[alias] == "annotations" for alias in tree.many(node, "names")):
                return True
        elif tree.kind[node] != "Expr":
            # Only a docstring and other future imports may precede it.
            return False
    return False


def is_in_annotation(tree: Tree, node: int) -> bool:
    """Whether a node is part of the annotation of a parameter, result or variable."""
    at: int | None = node
    while at is not None:
        if tree.slot[at] in ANNOTATION_SLOTS:
            return True
        at = tree.parent[at]
    return False


class VisitOrder(dict[int, int]):
    """The order in which the compiler's symbol pass enters the scopes of nodes; computed on first access.

    Only expressions can share type, name and line, so only their order follows the compiler.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree
        self._pending = [0]

    def __missing__(self, node: int) -> int:
        tree, pending = self._tree, self._pending
        if not pending:
            # Not a node that opens a scope: its position in the tree serves as well.
            return node
        while pending:
            at = pending.pop()
            if at < 0:
                self[~at] = len(self)
                continue
            kind = tree.kind[at]
            if kind in FUNCTIONS or kind == "Lambda":
                parts = _function_parts(tree, at)
            elif kind in COMPREHENSIONS:
                parts = _comprehension_parts(tree, at)
            else:
                parts = [~at, *tree.children(at)] if kind in SCOPE_NODES else tree.children(at)
            parts.reverse()
            pending += parts
        return self[node]


def _function_parts(tree: Tree, node: int) -> list[int]:
    """Return the children in the order of the symbol pass; `~node` marks where it enters the scope."""
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


def _comprehension_parts(tree: Tree, node: int) -> list[int]:
    """Return the children in the order of the symbol pass; `~node` marks where it enters the scope."""
    first, *others = tree.many(node, "generators")
    iterated = tree.one(first, "iter")
    parts = [] if iterated is None else [iterated]
    parts.append(~node)
    parts += (child for child in tree.children(first) if child != iterated)
    parts += others
    return parts + [part for slot in ("value", "key", "elt") if (part := tree.one(node, slot)) is not None]


def constant_type(value: str | None) -> str | None:
    """Return the type of a constant from its `repr`; very long integers are hexadecimal.

    >>> [constant_type(text) for text in ("'a'", "b'a'", "1", "0x1e", "1.5", "2j", "1e+16", "inf", "None")]
    ['str', 'bytes', 'int', 'int', 'float', 'complex', 'float', 'float', 'NoneType']
    """
    if not value or value in CONSTANTS:
        return CONSTANTS.get(value or "")
    if value[0] in "'\"":
        return "str"
    if value[:2] in ("b'", 'b"'):
        return "bytes"
    if value.endswith("j"):
        return "complex"
    return "int" if value.isdigit() or value.startswith("0x") else "float"
