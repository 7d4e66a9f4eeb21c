r"""Texts in a LibCST tree that mean more than they are: docstrings and type comments.

A docstring is what CPython takes for one: a string alone as the first statement, also in parentheses or made
of several, not bytes and not an f-string.

A type comment is what CPython's tokenizer takes for one (`# type:` and then anything but `ignore`), where
PEP 484 gives it a meaning:

    x = []  # type: list[int]           role variable; attribute for `self.x = ...`
    for a, b in rows:  # type: int, str  ... also after `with`; several targets have no name
    def f(a,  # type: int               role param
          b):
        # type: (...) -> str            role signature; also at the end of the line with `def`

Elsewhere it is a comment and no more.

Tests: `tests/unit/extract/test_libcst_texts.py`.
"""

from __future__ import annotations

import re
import warnings
from ast import literal_eval
from collections.abc import Sequence
from typing import Any, TypeAlias

import libcst as cst

from codeanatomy.extract.libcst.spans import NodeSpans

Span: TypeAlias = tuple[int | None, int | None]

NOWHERE: Span = (None, None)
TYPE_COMMENT = re.compile(r"#[ \t]*type:[ \t]*+(?!ignore(?![0-9A-Za-z\x80-\U0010ffff]))(.*[^ \t])")
PLAIN_QUOTES = re.compile(r"""[uU]?(\"""|'''|"|')([^\\]*)\1""")


def docstring_of(body: cst.BaseSuite | Sequence[cst.CSTNode]) -> cst.BaseExpression | None:
    """The expression that is the docstring of this body."""
    first: Any = body
    while not isinstance(first, cst.Expr):
        inside = first if isinstance(first, Sequence) else getattr(first, "body", None)
        # The bodies of other statements than blocks and lines begin no body of ours.
        if not inside or not isinstance(first, Sequence | cst.BaseSuite | cst.SimpleStatementLine):
            return None
        first = inside[0]
    return first.value if is_string(first.value) else None


def is_string(node: cst.BaseExpression) -> bool:
    """A literal that evaluates to text."""
    while isinstance(node, cst.ConcatenatedString):
        if not isinstance(node.left, cst.SimpleString) or "b" in node.left.prefix:
            return False
        node = node.right
    return isinstance(node, cst.SimpleString) and "b" not in node.prefix


def evaluated(literal: str) -> str | None:
    """The value of a string literal, or of several that stand together; null if it has none."""
    found = PLAIN_QUOTES.fullmatch(literal)
    if found and found.group(1) not in found.group(2):
        return found.group(2).replace("\r\n", "\n").replace("\r", "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = literal_eval(f"({literal}\n)")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None
    return value if isinstance(value, str) else None


class TypeComments:
    """Rows of `type_exprs` for the type comments of a file."""

    def __init__(self, text: str, places: NodeSpans) -> None:
        self.rows: list[tuple[object, ...]] = []
        # Most files have none, and are not looked through.
        self.present = TYPE_COMMENT.search(text) is not None
        self._places = places

    def line(self, node: cst.SimpleStatementLine, owner: Span) -> None:
        """At the end of an assignment."""
        last = node.body[-1]
        if isinstance(last, cst.Assign):
            target = last.targets[0].target if len(last.targets) == 1 else None
            self._variable(node.trailing_whitespace.comment, owner, target)

    def loop(self, node: cst.For | cst.With, owner: Span) -> None:
        """At the end of the line with `for` or `with`."""
        if isinstance(node.body, cst.IndentedBlock):
            names = [node.target] if isinstance(node, cst.For) else [item.asname for item in node.items]
            target = names[0] if len(names) == 1 else None
            name = target.name if isinstance(target, cst.AsName) else target
            self._variable(node.body.header.comment, owner, name)

    def function(self, node: cst.FunctionDef, owner: Span) -> None:
        """After the colon, or above the first statement."""
        if isinstance(node.body, cst.IndentedBlock):
            # Every statement but a line of `SimpleStatementSuite` has them.
            first: Any = node.body.body[0]
            comments = [node.body.header.comment, *(line.comment for line in first.leading_lines)]
            for comment in comments:
                if self._add(comment, owner, "signature", None, NOWHERE):
                    return

    def param(self, node: cst.Param, owner: Span) -> None:
        """After the comma, or after the last parameter."""
        comma = node.comma
        spaces = (
            comma.whitespace_after if isinstance(comma, cst.Comma) else None,
            node.whitespace_after_param,
        )
        for space in spaces:
            if isinstance(space, cst.ParenthesizedWhitespace):
                span = self._places.span(node)
                self._add(space.first_line.comment, owner, "param", node.name.value, span)

    def _variable(self, comment: cst.Comment | None, owner: Span, target: cst.CSTNode | None) -> None:
        self._add(comment, owner, *annotated(target, self._places))

    def _add(
        self, comment: cst.Comment | None, owner: Span, role: str, name: str | None, target: Span
    ) -> bool:
        found = TYPE_COMMENT.fullmatch(comment.value.rstrip(" \t")) if comment else None
        if comment is None or found is None:
            return False
        start = self._places.span(comment)[0] + len(comment.value[: found.start(1)].encode())
        text = found.group(1)
        place = (start, start + len(text.encode()))
        self.rows.append((*owner, "type_comment", role, name, text, *target, *place))
        return True


def annotated(target: cst.CSTNode | None, places: NodeSpans) -> tuple[str, str | None, Span]:
    """Role, name and identifier of a variable or attribute with a type; no name for other targets."""
    if isinstance(target, cst.Name):
        return "variable", target.value, places.span(target)
    if isinstance(target, cst.Attribute):
        name, end = target.attr.value, places.span(target)[1]
        return "attribute", name, (end - len(name.encode()), end)
    return "variable", None, NOWHERE
