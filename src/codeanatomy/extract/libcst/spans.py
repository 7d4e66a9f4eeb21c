r"""Compute the byte spans of the nodes of a LibCST tree in one pass, in source order.

LibCST stores no positions. Its providers generate the code again to compute them, which takes longer than the
parse; here the layouts of `libcst.node_layout` are followed with a stack of pieces and a byte offset, and no
code is generated. Each text piece must equal the source at the offset, so a span is never wrong: a difference
raises `Misplaced`.

>>> import libcst
>>> spans = NodeSpans(libcst.parse_module("é = (f)(x)\n"), "é = (f)(x)\n".encode())
>>> [(type(node).__name__, *span) for node, *span in zip(spans.nodes, spans.starts, spans.ends)][1:]
[('Assign', 0, 11), ('Name', 0, 2), ('Call', 5, 11), ('Name', 6, 7), ('Name', 9, 10)]

All expressions, small statements, comments and the nodes with `BEGIN` in their layout are listed in source
order, an outer node before its inner ones. Spans are those of LibCST's `ByteSpanPositionProvider`, with two
exceptions: a tuple or generator expression includes its own parentheses, as in CPython (LibCST gives `()` an
empty span); a block whose first statement is decorated begins at the decorator.

The walk is not recursive, because its depth is that of the input. LibCST loses a form feed in the indentation
of a statement, so all white space is skipped there.

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
    """Raised if the tree and the source do not match."""


class NodeSpans:
    """Nodes of a module with their spans; `starts` and `ends` are parallel to `nodes`."""

    def __init__(self, module: cst.Module, utf8: bytes) -> None:
        self.nodes: list[cst.CSTNode] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._walk(module, utf8)
        # The tree is kept alive, so ids are unique.
        self._index = dict(zip(map(id, self.nodes), count()))

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        index = self._index[id(node)]
        return self.starts[index], self.ends[index]

    # The loop runs some twenty times per line of source; calls would double its cost.
    def _walk(self, module: cst.Module, utf8: bytes) -> None:  # noqa: C901, PLR0912, PLR0915
        nodes, starts, ends = self.nodes, self.starts, self.ends
        newline, indent = module.default_newline, module.default_indent
        # Always matches, possibly an empty text.
        space: Callable[[bytes, int], re.Match[bytes]] = SPACE.match  # type: ignore[assignment]
        margins = [0]
        # Indexes of the nodes whose spans are open, and of the block before its first statement.
        opened: list[int] = []
        block: int | None = None
        # End of the text so far, and of the last expression or statement in it.
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
        # If the file ends without a newline, LibCST adds one.
        if len(utf8) not in {at, at - len(newline)}:
            raise Misplaced(f"the tree ends at byte {at} of {len(utf8)}")


def _parenthesized(node: Any) -> tuple[object, ...]:
    """Return the pieces of an expression in parentheses; a tuple or generator includes the innermost pair."""
    inner, includes_pair = EXPRESSIONS[node.__class__](node), isinstance(node, cst.Tuple | cst.GeneratorExp)
    if includes_pair:
        inner = (node.lpar[-1], *inner, node.rpar[0])
    lpar, rpar = (node.lpar[:-1], node.rpar[1:]) if includes_pair else (node.lpar, node.rpar)
    return (*lpar, BEGIN, node, *inner, END, *rpar)
