r"""Where the nodes of a LibCST tree stand: one pass over the tree, in source order.

LibCST keeps no positions. Its providers print the module again to find them, which takes longer than to parse
it; here the recipes of `libcst_recipes` are followed with a stack of pieces and a byte offset, and nothing
is printed. Each text piece must be what the source has at the offset, so a place is never wrong: what does
not fit raises `Misplaced`.

>>> import libcst
>>> places = Places(libcst.parse_module("é = (f)(x)\n"), "é = (f)(x)\n".encode())
>>> [(type(node).__name__, *span) for node, *span in zip(places.nodes, places.starts, places.ends)][1:]
[('Assign', 0, 11), ('Name', 0, 2), ('Call', 5, 11), ('Name', 6, 7), ('Name', 9, 10)]

Listed in source order, an outer node before what is in it, are all expressions, small statements, comments
and the nodes whose recipes say `BEGIN`. Spans are those of LibCST's `ByteSpanPositionProvider`, but for two
things: a tuple or generator expression includes its own parentheses, as in CPython (LibCST takes `()` for
nothing at all); a block whose first statement is decorated begins at the decorator.

The walk does not recurse: its depth is that of the input. LibCST forgets a form feed in the indentation of a
statement, so there all white space is skipped.

Tests: `tests/unit/extract/test_libcst_spans.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import libcst as cst
from libcst import Comment, Newline, SimpleWhitespace

from codeanatomy.extract.libcst.node_layout import (
    BEGIN,
    BLOCK,
    DEDENT,
    END,
    EXPRESSIONS,
    INDENT,
    LAST,
    MARGIN,
    OTHERS,
    PADDING,
    STATEMENTS,
)

# With lines continued by a backslash.
SPACE = re.compile(rb"(?:[ \t\f]|\\(?:\r\n?|\n))*")


class Misplaced(Exception):
    """The tree and the source do not fit together."""


class NodeSpans:
    """Nodes of a module with their spans; `starts` and `ends` are parallel to `nodes`."""

    def __init__(self, module: cst.Module, utf8: bytes) -> None:
        self.nodes: list[cst.CSTNode] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._walk(module, utf8)
        # The tree is alive, so an id is a node's own.
        self._index = dict(zip(map(id, self.nodes), count()))

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        index = self._index[id(node)]
        return self.starts[index], self.ends[index]

    # The loop runs some twenty times per line of source; calls would double its cost.
    def _walk(self, module: cst.Module, utf8: bytes) -> None:  # noqa: C901, PLR0912, PLR0915
        nodes, starts, ends = self.nodes, self.starts, self.ends
        newline, indent = module.default_newline, module.default_indent
        # It matches anywhere, if only nothing.
        space: Callable[[bytes, int], re.Match[bytes]] = SPACE.match  # type: ignore[assignment]
        margins = [0]
        # Indices of the nodes whose spans are open, and of the block that waits for its first statement.
        opened: list[int] = []
        block: int | None = None
        # Where the text followed so far ends, and where the last expression or statement in it did.
        at = last = 0
        stack: list[Any] = [module]
        pop, extend = stack.pop, stack.extend
        while stack:
            piece = pop()
            kind = piece.__class__
            if kind is SimpleWhitespace:
                at += len(piece.value)
            elif kind is str:
                text = piece.encode()
                if not utf8.startswith(text, at):
                    raise Misplaced(f"expected {piece[:40]!r} at byte {at}")
                at += len(text)
            elif kind in OTHERS:
                extend(OTHERS[kind](piece)[::-1])
            elif piece is END:
                ends[opened.pop()] = last = at
            elif kind in EXPRESSIONS:
                if piece.lpar:
                    extend(_parenthesized(piece)[::-1])
                    continue
                stack.append(END)
                extend(EXPRESSIONS[kind](piece)[::-1])
                opened.append(len(nodes))
                nodes.append(piece)
                starts.append(at)
                ends.append(at)
            elif kind is Newline:
                at += len(piece.value or newline)
            elif kind in STATEMENTS:
                extend((piece.semicolon, END))
                extend(STATEMENTS[kind](piece)[::-1])
                opened.append(len(nodes))
                nodes.append(piece)
                starts.append(at)
                ends.append(at)
            elif piece is MARGIN:
                at = space(utf8, at).end()
                if block is not None:
                    starts[block], block = at, None
            elif piece is PADDING:
                at += margins[-1]
            elif piece is BEGIN or piece is BLOCK:
                block = len(nodes) if piece is BLOCK else block
                opened.append(len(nodes))
                nodes.append(pop())
                starts.append(at)
                ends.append(at)
            elif piece is LAST:
                ends[opened.pop()] = last
            elif piece is INDENT:
                further = pop()
                margins.append(margins[-1] + len(indent if further is None else further))
            elif piece is DEDENT:
                margins.pop()
            elif kind is Comment:
                # No END: a block ends with its last statement, not with a comment.
                stack.append(piece.value)
                nodes.append(piece)
                starts.append(at)
                ends.append(at + len(piece.value.encode()))
            else:
                raise Misplaced(f"{kind.__name__} has no recipe")
        # Where the file ends without a newline, LibCST has one nevertheless.
        if len(utf8) not in {at, at - len(newline)}:
            raise Misplaced(f"the tree ends at byte {at} of {len(utf8)}")


def _parenthesized(node: Any) -> tuple[object, ...]:
    """An expression in parentheses; the innermost pair is part of a tuple and of a generator expression."""
    inner, own = EXPRESSIONS[node.__class__](node), isinstance(node, cst.Tuple | cst.GeneratorExp)
    if own:
        inner = (node.lpar[-1], *inner, node.rpar[0])
    lpar, rpar = (node.lpar[:-1], node.rpar[1:]) if own else (node.lpar, node.rpar)
    return (*lpar, BEGIN, node, *inner, END, *rpar)
