"""Index CPython's syntax tree of a file by span.

    syntax.at(4, 9)                          # indexes of the nodes with this span, outermost first
    syntax.first(4, 9, ("Call",))            # the first of these classes
    syntax.ids[7]                            # id of node 7 in the graph

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

from codeanatomy.file_ids import FileIds
from codeanatomy.file_view import Columns

DEFINITIONS = frozenset({"FunctionDef", "AsyncFunctionDef", "Lambda", "ClassDef"})


class Syntax:
    """The syntax tree of one file; empty if CPython could not parse it."""

    def __init__(self, nodes: Columns, ids: FileIds) -> None:
        self.columns = nodes
        empty: Sequence[Any] = ()
        self.kind: Sequence[str] = nodes.get("kind", empty)
        self.parent: Sequence[int | None] = nodes.get("parent_ast_id", empty)
        self.slot: Sequence[str | None] = nodes.get("slot", empty)
        self.name: Sequence[str | None] = nodes.get("name", empty)
        self.value: Sequence[str | None] = nodes.get("value", empty)
        self.bstart: Sequence[int | None] = nodes.get("bstart", empty)
        self.bend: Sequence[int | None] = nodes.get("bend", empty)
        self.line: Sequence[int | None] = nodes.get("line", empty)
        self.ids = ids.ast_ids(len(self.kind))
        self._at: dict[tuple[int | None, int | None], list[int]] = {}
        for node, span in enumerate(zip(self.bstart, self.bend, strict=True)):
            if span[0] is not None:
                self._at.setdefault(span, []).append(node)

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, bstart: int | None, bend: int | None) -> Sequence[int]:
        """Return the nodes with a span, outermost first."""
        return self._at.get((bstart, bend), ())

    def first(self, bstart: int | None, bend: int | None, kinds: Collection[str]) -> int | None:
        """Return the outermost node of these classes with a span."""
        for node in self._at.get((bstart, bend), ()):
            if self.kind[node] in kinds:
                return node
        return None

    def last(self, bstart: int | None, bend: int | None) -> int | None:
        """Return the innermost node with a span."""
        nodes = self.at(bstart, bend)
        return nodes[-1] if nodes else None

    def ending(self, bstart: int | None, bend: int | None) -> int | None:
        """Return the innermost node that ends at `bend` and begins at `bstart` or before."""
        nodes = [node for node in self._ends.get(bend, ()) if (self.bstart[node] or 0) <= (bstart or 0)]
        return max(nodes, key=lambda node: (self.bstart[node], node)) if nodes else None

    @cached_property
    def _ends(self) -> dict[int | None, list[int]]:
        nodes: dict[int | None, list[int]] = {}
        for node, (start, end) in enumerate(zip(self.bstart, self.bend, strict=True)):
            if start is not None:
                nodes.setdefault(end, []).append(node)
        return nodes

    def container(self, node: int) -> int:
        """Return the definition, or the module, of which the body contains a node."""
        child, parent = node, self.parent[node]
        while parent is not None and not (self.kind[parent] in DEFINITIONS and self.slot[child] == "body"):
            child, parent = parent, self.parent[parent]
        return parent or 0

    def children(self, node: int, slot: str) -> list[int]:
        """Return the children in a field of a node."""
        descendants = range(node + 1, self.end(node))
        return [each for each in descendants if self.parent[each] == node and self.slot[each] == slot]

    def end(self, node: int) -> int:
        """Return the number after that of the last descendant of a node: in preorder they follow it."""
        end = node + 1
        while end < len(self) and (self.parent[end] or 0) >= node:
            end += 1
        return end

    def id_of(self, node: int | None) -> str | None:
        """Return the id of a node; None for None."""
        return None if node is None else self.ids[node]
