r"""List the definitions of a file: what ids are made of.

A definition is what CPython gives a code object or scope: the module, a class, function, lambda or
comprehension. Its qualified path names it in its file, whatever its position:

    def f(): ...                 f
    def f(x=lambda: 0):          f#1, the second of its name; f#1.<lambda>#0, in its header
        return [y for y in x]    f#1.<listcomp>#0

>>> nodes = {"parent_ast_id": [None, 0, 1, 1], "kind": ["Module", "FunctionDef", "arguments", "Pass"],
...     "name": [None, "f", None, None], "slot": [None, "body", "args", "body"], "idx": [None, 0, None, 0],
...     "bstart": [0, 0, None, 9], "bend": [14, 13, None, 13], "line": [1, 1, None, 1], "value": [None] * 4}
>>> found = definitions_of(nodes)
>>> found["path"], found["ast_id"], found["ast_end"]
(['', 'f'], [0, 1], [4, 4])

Everything below a definition in the syntax tree belongs to it, decorators, defaults, annotations and base
classes included. So whitespace, comments and edits of other definitions do not change a path. Names repeated
in one parent are numbered in the order of the tree, the first without a number. The descendants of a
definition are the nodes from `ast_id` to `ast_end`.

Tests: `tests/unit/test_definitions.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from codeanatomy.syntax_tree import (
    COMPREHENSIONS,
    Tree,
    VisitOrder,
    has_string_annotations,
    is_in_annotation,
)

Columns: TypeAlias = Mapping[str, Sequence[Any]]

# Kinds of nodes that are definitions; the name of those without a name of their own.
ANONYMOUS = {"Lambda": "<lambda>", **{kind: f"<{name}>" for kind, name in COMPREHENSIONS.items()}}
NAMED = frozenset({"FunctionDef", "AsyncFunctionDef", "ClassDef"})
DEFINITION_KINDS = frozenset({"Module", *NAMED, *ANONYMOUS})
FIELDS = ("ast_id", "ast_end", "kind", "name", "path", "bstart", "bend", "outer_bstart", "line", "entered")


def definitions_of(nodes: Columns) -> dict[str, list[Any]]:
    """Return the definitions of a file in the order of its tree, as columns; the module comes first."""
    kinds, parents, names = nodes["kind"], nodes["parent_ast_id"], nodes["name"]
    ids = [node for node, kind in enumerate(kinds) if kind in DEFINITION_KINDS]
    ends = _ends(ids, parents)
    labels = [_label(kinds[node], names[node]) for node in ids]
    starts: list[int | None] = [nodes["bstart"][node] for node in ids]
    lines = [nodes["line"][node] for node in ids]
    return {
        "ast_id": ids,
        "ast_end": ends,
        "kind": [kinds[node] for node in ids],
        "name": labels,
        "path": _paths(ids, ends, labels),
        "bstart": starts,
        "bend": [nodes["bend"][node] for node in ids],
        "outer_bstart": _outer_starts(nodes, ids, starts),
        "line": lines,
        "entered": _entered(nodes, ids, list(zip(labels, lines, strict=True))),
    }


def _label(kind: str, name: str | None) -> str:
    return name or "" if kind in NAMED else ANONYMOUS.get(kind, "")


def _ends(ids: Sequence[int], parents: Sequence[int | None]) -> list[int]:
    """Return for each definition the number after its last descendant."""
    ends = {}
    open_ids: list[int] = []
    wanted = set(ids)
    for node, parent in enumerate(parents):
        # Descendants follow in preorder: a node whose parent is before a definition is not in it.
        while open_ids and (parent is None or parent < open_ids[-1]):
            ends[open_ids.pop()] = node
        if node in wanted:
            open_ids.append(node)
    return [ends.get(node, len(parents)) for node in ids]


def _paths(ids: Sequence[int], ends: Sequence[int], labels: Sequence[str]) -> list[str]:
    """Return the qualified paths; the module's is empty."""
    paths: list[str] = []
    # Of the definitions around the next one: path, end, and how often each name was seen in it.
    around: list[tuple[str, int, Counter[str]]] = []
    for node, end, label in zip(ids, ends, labels, strict=True):
        while around and around[-1][1] <= node:
            around.pop()
        path = ""
        if around:
            outer, _, seen = around[-1]
            path = numbered_path(outer, label, seen[label])
            seen[label] += 1
        paths.append(path)
        around.append((path, end, Counter()))
    return paths


def numbered_path(outer: str, label: str, number: int) -> str:
    """Return the path of a definition in another one; names have a number from the second on.

    >>> numbered_path("A", "f", 0), numbered_path("A", "f", 1), numbered_path("", "<lambda>", 0)
    ('A.f', 'A.f#1', '<lambda>#0')
    """
    own = f"{label}#{number}" if number or label.startswith("<") else label
    return f"{outer}.{own}" if outer else own


def _outer_starts(nodes: Columns, ids: Sequence[int], starts: list[int | None]) -> list[int | None]:
    """Return where the definitions begin, with their decorators."""
    outer = dict(zip(ids, starts, strict=True))
    for parent, slot, start in zip(nodes["parent_ast_id"], nodes["slot"], nodes["bstart"], strict=True):
        if slot == "decorator_list":
            first = outer[parent]
            if first is not None and start is not None and start < first:
                outer[parent] = start
    return list(outer.values())


def _entered(nodes: Columns, ids: Sequence[int], labels: Sequence[tuple[str, int | None]]) -> list[int]:
    """Return a number per definition by which those of one name and line are in the compiler's order.

    The compiler does not enter those in annotations that are never evaluated: they come last.
    """
    numbers = list(range(len(ids)))
    same: defaultdict[tuple[str, int | None], list[int]] = defaultdict(list)
    for number, label in enumerate(labels):
        same[label].append(number)
    groups = [group for group in same.values() if len(group) > 1]
    if groups:
        tree = Tree(nodes)
        order, skips_annotations = VisitOrder(tree), has_string_annotations(tree)

        def rank(number: int) -> tuple[bool, int]:
            return skips_annotations and is_in_annotation(tree, ids[number]), order[ids[number]]

        for group in groups:
            for number, entered in zip(sorted(group, key=rank), group, strict=True):
                numbers[number] = entered
    return numbers
