"""CPython's syntax tree of a file, read back from `ast_files_v1`: nodes are numbers, fields are lists.

    tree = Tree(nodes)                       # columns of the nodes, in preorder
    tree.one(call, "func"), tree.many(call, "args")
    tree.kind[call], tree.bstart[call]       # "Call", 14

Numbers and not objects, because a repository has millions of nodes and most are looked at once. A field that
is a list in CPython's grammar keeps its gaps: the key of `**other` in a dictionary is None.

Tests: `tests/unit/relate/test_syntax_tree.py`.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import Any

FIELDS = ("parent_ast_id", "slot", "idx", "kind", "name", "value", "bstart", "bend", "line")


class Tree:
    """The tree of one file."""

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
        fields: list[dict[str, Any] | None] = [None] * len(self.kind)
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
                # A list has gaps where CPython has None.
                items.extend([None] * (idx - len(items)))
                items.append(node)
        self._fields = fields
        # After the last node below each: the nodes below a node are the numbers from it to there.
        self.end = list(range(1, len(fields) + 1))
        for node in range(len(fields) - 1, 0, -1):
            parent = self.parent[node]
            if parent is not None and self.end[node] > self.end[parent]:
                self.end[parent] = self.end[node]
        # Load, Store or Del of names, attributes, subscripts, lists, tuples and stars.
        self.context = contexts

    def __len__(self) -> int:
        return len(self.kind)

    def one(self, node: int, slot: str) -> int | None:
        """The node in a field, if there is one."""
        own = self._fields[node]
        return None if own is None else own.get(slot)

    def many(self, node: int, slot: str) -> Sequence[int]:
        """The nodes in a field that is a list; only `keys` and `kw_defaults` have gaps, see `gapped`."""
        own = self._fields[node]
        return () if own is None else own.get(slot, ())

    def gapped(self, node: int, slot: str, size: int) -> list[int | None]:
        """The nodes in a list of so many places, None where there is none."""
        found: list[int | None] = list(self.many(node, slot))
        return found + [None] * (size - len(found))

    def children(self, node: int) -> list[int]:
        """All nodes below one, in the order of CPython's fields, contexts left out."""
        own = self._fields[node]
        found: list[int] = []
        for field in (own or {}).values():
            if isinstance(field, list):
                found += (item for item in field if item is not None)
            else:
                found.append(field)
        return found

    def constant(self, node: int) -> object:
        """The value of a constant; Ellipsis if it is not known, as where its text was cut."""
        text = self.value[node]
        try:
            return ... if text is None else literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ...
