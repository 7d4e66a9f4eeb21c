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
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import libcst as cst
import numpy as np
from libcst import MaybeSentinel

from codeanatomy.extract.libcst.light_tree import LIGHT
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
SPACE = re.compile(r"(?:[ \t\f]|\\(?:\r\n?|\n))*")
LIGHT_SPACE = LIGHT[cst.SimpleWhitespace]
NEWLINES = frozenset({cst.Newline, LIGHT[cst.Newline]})
COMMENTS = frozenset({cst.Comment, LIGHT[cst.Comment]})
# Expressions that are one token, if they are not in parentheses.
LEAVES = frozenset({cst.Name, *map(LIGHT.__getitem__, (cst.Name, cst.SimpleString, cst.Integer))})


class Misplaced(Exception):
    """Raised if the tree and the source do not match."""


class NodeSpans:
    """Nodes of a module with their spans; `starts` and `ends` are parallel to `nodes`."""

    def __init__(self, module: cst.Module, utf8: bytes) -> None:
        self.nodes: list[cst.CSTNode] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        text = utf8.decode()
        self._walk(module, text)
        if len(text) < len(utf8):
            offsets = _byte_offsets(utf8)
            self.starts = [offsets[start] for start in self.starts]
            self.ends = [offsets[end] for end in self.ends]
        # The tree is kept alive, so ids are unique.
        self._index = dict(zip(map(id, self.nodes), count()))

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        index = self._index[id(node)]
        return self.starts[index], self.ends[index]

    # The loop runs some twenty times per line of source; calls would double its cost.
    def _walk(self, module: cst.Module, text: str) -> None:  # noqa: C901, PLR0912, PLR0915
        """Compute spans in characters."""
        nodes, starts, ends = self.nodes, self.starts, self.ends
        newline, indent = module.default_newline, module.default_indent
        # Always matches, possibly an empty text.
        space: Callable[[str, int], re.Match[str]] = SPACE.match  # type: ignore[assignment]
        margins = [0]
        # Indexes of the nodes whose spans are open, and of the block before its first statement.
        opened: list[int] = []
        block: int | None = None
        # End of the text so far, and of the last expression or statement in it.
        at = last = 0
        # The pieces of the current node that remain, and those of the nodes around it. None: a span ends.
        pieces: Iterator[Any] = iter((module,))
        outer: list[Iterator[Any] | None] = []
        push, startswith = outer.append, text.startswith
        other, expression, statement = OTHERS.get, EXPRESSIONS.get, STATEMENTS.get
        while True:
            for piece in pieces:
                kind = piece.__class__
                if kind is LIGHT_SPACE:
                    at += len(piece.value)
                elif kind is str:
                    if not startswith(piece, at):
                        raise _misplaced(piece, text, at)
                    at += len(piece)
                elif piece is None or kind is MaybeSentinel:
                    continue
                elif kind in LEAVES and not piece.lpar:
                    value = piece.value
                    if not startswith(value, at):
                        raise _misplaced(value, text, at)
                    nodes.append(piece)
                    starts.append(at)
                    at = last = at + len(value)
                    ends.append(at)
                elif (layout := other(kind)) is not None:
                    push(pieces)
                    pieces = iter(layout(piece))
                    break
                elif (layout := expression(kind)) is not None:
                    push(pieces)
                    if piece.lpar:
                        pieces = iter(_parenthesized(piece))
                        break
                    push(None)
                    pieces = iter(layout(piece))
                    opened.append(len(nodes))
                    nodes.append(piece)
                    starts.append(at)
                    ends.append(at)
                    break
                elif kind in NEWLINES:
                    at += len(piece.value or newline)
                elif (layout := statement(kind)) is not None:
                    push(pieces)
                    push(iter((piece.semicolon,)))
                    push(None)
                    pieces = iter(layout(piece))
                    opened.append(len(nodes))
                    nodes.append(piece)
                    starts.append(at)
                    ends.append(at)
                    break
                elif piece is END:
                    ends[opened.pop()] = last = at
                elif piece is MARGIN:
                    at = space(text, at).end()
                    if block is not None:
                        starts[block], block = at, None
                elif piece is PADDING:
                    at += margins[-1]
                elif piece is BEGIN or piece is BLOCK:
                    block = len(nodes) if piece is BLOCK else block
                    opened.append(len(nodes))
                    nodes.append(next(pieces))
                    starts.append(at)
                    ends.append(at)
                elif piece is LAST:
                    ends[opened.pop()] = last
                elif piece is INDENT:
                    further = next(pieces)
                    margins.append(margins[-1] + len(indent if further is None else further))
                elif piece is DEDENT:
                    margins.pop()
                elif kind in COMMENTS:
                    # `last` stays: a block ends with its last statement, not with a comment.
                    if not startswith(piece.value, at):
                        raise _misplaced(piece.value, text, at)
                    nodes.append(piece)
                    starts.append(at)
                    at += len(piece.value)
                    ends.append(at)
                elif kind is cst.SimpleWhitespace:
                    at += len(piece.value)
                else:
                    raise Misplaced(f"{kind.__name__} has no recipe")
            else:
                if not outer:
                    break
                remaining = outer.pop()
                while remaining is None:
                    ends[opened.pop()] = last = at
                    remaining = outer.pop()
                pieces = remaining
        # If the file ends without a newline, LibCST adds one.
        if len(text) not in {at, at - len(newline)}:
            size = len(text.encode())
            raise Misplaced(f"the tree ends at byte {_byte_offset(text, at)} of {size}")


def _misplaced(expected: str, text: str, at: int) -> Misplaced:
    return Misplaced(f"expected {expected[:40]!r} at byte {_byte_offset(text, at)}")


def _byte_offset(text: str, at: int) -> int:
    """Convert an offset in characters; LibCST may add a newline at the end."""
    return len(text[:at].encode()) + max(0, at - len(text))


def _byte_offsets(utf8: bytes) -> list[int]:
    """Return the byte offset of each character, of the end and of a newline added by LibCST.

    >>> _byte_offsets("é=1".encode())
    [0, 2, 3, 4, 5, 6]
    """
    # The bytes after the first one of a character begin with the bits 10.
    starts: list[int] = np.flatnonzero(np.frombuffer(utf8, np.uint8) & 0xC0 != 0x80).tolist()
    return [*starts, len(utf8), len(utf8) + 1, len(utf8) + 2]


def _parenthesized(node: Any) -> tuple[object, ...]:
    """Return the pieces of an expression in parentheses; a tuple or generator includes the innermost pair."""
    inner, includes_pair = EXPRESSIONS[node.__class__](node), isinstance(node, cst.Tuple | cst.GeneratorExp)
    if includes_pair:
        inner = (node.lpar[-1], *inner, node.rpar[0])
    lpar, rpar = (node.lpar[:-1], node.rpar[1:]) if includes_pair else (node.lpar, node.rpar)
    return (*lpar, BEGIN, node, *inner, END, *rpar)
