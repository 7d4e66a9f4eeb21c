"""Index CPython's syntax tree of a file by span, and make LibCST's lists from it where LibCST has none.

    syntax.at(4, 9)                          # indexes of the nodes with this span, outermost first
    syntax.first(4, 9, CALL)                 # the first of these classes
    syntax.id_of(7)                          # id of node 7 in the graph
    lists_from_ast(syntax, file)["refs"]     # names and attributes, for files that LibCST could not read

Evidence that only LibCST has is left out of these lists: comments, and the positions of names in handlers,
patterns and `global` statements.

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from codeanatomy.file_ids import FileIds
from codeanatomy.file_view import Columns, FileView, columns_of, iter_rows
from codeanatomy.graph.reads import READS, SPAN

Span: TypeAlias = tuple[int | None, int | None]
NO_SPAN: Span = (None, None)
DEFINITIONS = frozenset({"FunctionDef", "AsyncFunctionDef", "Lambda", "ClassDef"})
CONTEXTS = {"Load": "load", "Store": "store", "Del": "del"}
SHAPES = {"Name": "name", "Attribute": "attribute", "Subscript": "subscript", "Call": "call"}
KINDS = {"ClassDef": "class", "Lambda": "lambda"}
CALL = frozenset({"Call"})
PARAMETERS = {
    "posonlyargs": "positional_only",
    "args": "positional",
    "vararg": "vararg",
    "kwonlyargs": "keyword_only",
    "kwarg": "kwarg",
}


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
        self._ids = ids
        self._spans = list(zip(self.bstart, self.bend, strict=True))
        self._firsts: dict[frozenset[str], Mapping[Span, int]] = {}
        self._firsts_in: dict[frozenset[str], Mapping[Span, int]] = {}

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, bstart: int | None, bend: int | None) -> Sequence[int]:
        """Return the nodes with a span, outermost first."""
        return self._at.get((bstart, bend), ())

    @cached_property
    def _at(self) -> dict[Span, list[int]]:
        nodes: dict[Span, list[int]] = {}
        for node, span in enumerate(self._spans):
            if span[0] is not None:
                nodes.setdefault(span, []).append(node)
        return nodes

    def of_kinds(self, *kinds: str) -> list[int]:
        """Return the nodes of some classes, in order."""
        return sorted(node for kind in kinds for node in self._by_kind.get(kind, ()))

    @cached_property
    def _by_kind(self) -> dict[str, list[int]]:
        # Once for all lists: in files of many nodes a pass over all of them is what a list of few rows costs.
        nodes: defaultdict[str, list[int]] = defaultdict(list)
        for node, kind in enumerate(self.kind):
            nodes[kind].append(node)
        return nodes

    def first(self, bstart: int | None, bend: int | None, kinds: frozenset[str]) -> int | None:
        """Return the outermost node of these classes with a span."""
        return self.firsts(kinds).get((bstart, bend))

    def firsts(self, kinds: frozenset[str]) -> Mapping[Span, int]:
        """Return the outermost node of these classes with each span."""
        if kinds not in self._firsts:
            self._firsts[kinds] = self._outermost(self.of_kinds(*kinds))
        return self._firsts[kinds]

    def firsts_in(self, slots: frozenset[str]) -> Mapping[Span, int]:
        """Return the outermost node in these fields of others with each span."""
        if slots not in self._firsts_in:
            nodes = sorted(node for slot in slots for node in self._by_slot.get(slot, ()))
            self._firsts_in[slots] = self._outermost(nodes)
        return self._firsts_in[slots]

    @cached_property
    def _by_slot(self) -> dict[str | None, list[int]]:
        nodes: defaultdict[str | None, list[int]] = defaultdict(list)
        for node, slot in enumerate(self.slot):
            nodes[slot].append(node)
        return nodes

    def _outermost(self, nodes: Sequence[int]) -> Mapping[Span, int]:
        first = {self._spans[node]: node for node in reversed(nodes)}
        first.pop(NO_SPAN, None)
        return first

    def last(self, bstart: int | None, bend: int | None) -> int | None:
        """Return the innermost node with a span."""
        return self.lasts.get((bstart, bend))

    @cached_property
    def lasts(self) -> Mapping[Span, int]:
        """The innermost node with each span."""
        nodes = dict(zip(self._spans, range(len(self)), strict=True))
        nodes.pop(NO_SPAN, None)
        return nodes

    def ending(self, bstart: int | None, bend: int | None) -> int | None:
        """Return the innermost node that ends at `bend` and begins at `bstart` or before."""
        nodes = [node for node in self._ends.get(bend, ()) if (self.bstart[node] or 0) <= (bstart or 0)]
        return max(nodes, key=lambda node: (self.bstart[node], node)) if nodes else None

    @cached_property
    def _ends(self) -> dict[int | None, list[int]]:
        nodes: dict[int | None, list[int]] = {}
        for node, (start, end) in enumerate(self._spans):
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
        return None if node is None else self._ids.ast(node)

    @cached_property
    def ids(self) -> pa.StringArray:
        """The ids of all nodes."""
        return self._ids.ast_ids(len(self))

    def ids_of(self, nodes: Sequence[int | None]) -> pa.DictionaryArray:
        """Return the ids of some nodes, as codes: null for None."""
        return pa.DictionaryArray.from_arrays(pa.array(nodes, pa.int32()), self.ids)


def lists_from_ast(syntax: Syntax, file: FileView) -> dict[str, Columns]:
    """Return the lists by name."""
    rows = {name: make(syntax) for name, make in LISTS.items()}
    rows["imports"] = _imports(file.list("ast_files_v1", "imports"))
    rows["docstrings"] = _docstrings(syntax, file.list("ast_files_v1", "docstrings"))
    return {name: columns_of(made, *READS["libcst_files_v1"][name]) for name, made in rows.items()}


def _children(syntax: Syntax, *slots: str) -> dict[int, list[int]]:
    """Return the nodes in some fields, by parent."""
    children: dict[int, list[int]] = {}
    for node, (parent, slot) in enumerate(zip(syntax.parent, syntax.slot, strict=True)):
        if parent is not None and slot in slots:
            children.setdefault(parent, []).append(node)
    return children


def _span(syntax: Syntax, node: int) -> tuple[int | None, int | None, int | None]:
    return syntax.bstart[node], syntax.bend[node], syntax.line[node]


def _refs(syntax: Syntax) -> list[tuple[Any, ...]]:
    contexts = {parent: nodes[0] for parent, nodes in _children(syntax, "ctx").items()}
    rows = []
    for node, kind in enumerate(syntax.kind):
        start, end, line = _span(syntax, node)
        name = syntax.name[node]
        if kind not in ("Name", "Attribute") or start is None or end is None or name is None:
            continue
        context = CONTEXTS.get(syntax.kind[contexts[node]], "load") if node in contexts else "load"
        # The identifier of an attribute is its last token.
        first = start if kind == "Name" else end - len(name.encode())
        rows.append((name, kind.lower(), context, start, end, first, end, line))
    return rows


def _defs(syntax: Syntax) -> list[tuple[Any, ...]]:
    rows = []
    for node, kind in enumerate(syntax.kind):
        start, end, line = _span(syntax, node)
        if kind not in DEFINITIONS or start is None:
            continue
        outer = syntax.container(node)
        outer_span = (syntax.bstart[outer], syntax.bend[outer]) if outer else (None, None)
        is_async = kind == "AsyncFunctionDef"
        own = KINDS.get(kind, "function")
        rows.append((own, syntax.name[node], is_async, *outer_span, start, end, None, None, line))
    return rows


def _params(syntax: Syntax) -> list[tuple[Any, ...]]:
    rows = []
    count: dict[int, int] = {}
    defaulted = _with_defaults(syntax)
    for node, kind in enumerate(syntax.kind):
        start, _, line = _span(syntax, node)
        arguments, name, slot = syntax.parent[node], syntax.name[node], syntax.slot[node] or ""
        if kind != "arg" or start is None or name is None or arguments is None:
            continue
        owner = syntax.parent[arguments] or 0
        index = count[arguments] = count.get(arguments, -1) + 1
        # Only whether there is one matters, not its position.
        default = start if node in defaulted else None
        owner_span = (syntax.bstart[owner], syntax.bend[owner])
        end = start + len(name.encode())
        rows.append((*owner_span, name, PARAMETERS[slot], index, default, start, end, line))
    return rows


def _with_defaults(syntax: Syntax) -> set[int]:
    """Return the parameters with a default: the last positional ones, and keyword-only ones by index."""
    defaulted: set[int] = set()
    positional, keyword = _children(syntax, "posonlyargs", "args"), _children(syntax, "kwonlyargs")
    for arguments, defaults in _children(syntax, "defaults").items():
        defaulted.update(positional[arguments][-len(defaults) :])
    for arguments, defaults in _children(syntax, "kw_defaults").items():
        defaulted.update(keyword[arguments][syntax.columns["idx"][default]] for default in defaults)
    return defaulted


def _imports(imports: Columns) -> list[tuple[Any, ...]]:
    return [
        (
            "from" if kind == "ImportFrom" else "import",
            module,
            name,
            asname,
            level,
            name == "*",
            start,
            end,
            None,
            None,
            line,
        )
        for kind, module, name, asname, level, start, end, line in iter_rows(
            imports, "kind", "module", "name", "asname", "level", *SPAN
        )
    ]


def _docstrings(syntax: Syntax, docstrings: Columns) -> list[tuple[Any, ...]]:
    rows = []
    for owner, text, *span in iter_rows(docstrings, "owner_ast_id", "text", *SPAN):
        owner_span = (syntax.bstart[owner], syntax.bend[owner]) if owner else (None, None)
        rows.append((*owner_span, text, *span))
    return rows


def _dotted(syntax: Syntax, node: int) -> str | None:
    """Return the dotted name, if the expression is nothing else."""
    parts: list[str] = []
    while syntax.kind[node] == "Attribute":
        parts.append(syntax.name[node] or "")
        (node,) = syntax.children(node, "value")
    return ".".join([syntax.name[node] or "", *reversed(parts)]) if syntax.kind[node] == "Name" else None


def _callsites(syntax: Syntax) -> list[tuple[Any, ...]]:
    functions = {parent: nodes[0] for parent, nodes in _children(syntax, "func").items()}
    rows: list[tuple[Any, ...]] = []
    for node, kind in enumerate(syntax.kind):
        start, end, line = _span(syntax, node)
        if kind == "Call" and start is not None:
            called = syntax.kind[functions[node]]
            dotted = _dotted(syntax, functions[node])
            rows.append((start, end, SHAPES.get(called, "other"), dotted, {"name": []}, line))
    return rows


def _call_args(syntax: Syntax) -> list[tuple[Any, ...]]:
    values = {parent: nodes[0] for parent, nodes in _children(syntax, "value").items()}
    rows = []
    for call, arguments in _children(syntax, "args", "keywords").items():
        if syntax.kind[call] != "Call" or syntax.bstart[call] is None:
            continue
        for index, node in enumerate(sorted(arguments, key=lambda arg: (syntax.bstart[arg] or 0, arg))):
            kind = syntax.kind[node]
            value = values[node] if kind in ("Starred", "keyword") else node
            keyword = syntax.name[node] if kind == "keyword" else None
            star = "*" if kind == "Starred" else "**" if kind == "keyword" and keyword is None else ""
            if syntax.bstart[value] is not None:
                call_span = (syntax.bstart[call], syntax.bend[call])
                rows.append((*call_span, index, keyword, star, *_span(syntax, value)))
    return rows


def _decorators(syntax: Syntax) -> list[tuple[Any, ...]]:
    return [
        (syntax.bstart[owner], syntax.bend[owner], index, _dotted(syntax, node), *_span(syntax, node))
        for owner, nodes in _children(syntax, "decorator_list").items()
        for index, node in enumerate(nodes)
    ]


LISTS: Mapping[str, Callable[[Syntax], list[tuple[Any, ...]]]] = {
    "refs": _refs,
    "defs": _defs,
    "params": _params,
    "callsites": _callsites,
    "call_args": _call_args,
    "decorators": _decorators,
}
