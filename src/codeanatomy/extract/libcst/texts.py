r"""Read docstrings and type comments from a LibCST tree.

A docstring is defined as in CPython: a string alone as the first statement, also in parentheses or made of
several, not bytes and not an f-string.

A type comment is defined as in CPython's tokenizer (`# type:` and then anything but `ignore`), at the
positions where PEP 484 gives it a meaning:

    x = []  # type: list[int]           role variable; attribute for `self.x = ...`
    for a, b in rows:  # type: int, str  ... also after `with`; several targets have no name
    def f(a,  # type: int               role param
          b):
        # type: (...) -> str            role signature; also at the end of the line with `def`

Elsewhere it is an ordinary comment.

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

NO_SPAN: Span = (None, None)
TYPE_COMMENT = re.compile(r"#[ \t]*type:[ \t]*+(?!ignore(?![0-9A-Za-z\x80-\U0010ffff]))(.*[^ \t])")
PLAIN_QUOTES = re.compile(r"""[uU]?(\"""|'''|"|')([^\\]*)\1""")


def docstring_of(body: cst.BaseSuite | Sequence[cst.CSTNode]) -> cst.BaseExpression | None:
    """Return the expression that is the docstring of a body, or None."""
    first: Any = body
    while not isinstance(first, cst.Expr):
        statements = first if isinstance(first, Sequence) else getattr(first, "body", None)
        # Other statements than blocks and lines, such as `if`, have bodies too, but no docstring.
        if not statements or not isinstance(first, Sequence | cst.BaseSuite | cst.SimpleStatementLine):
            return None
        first = statements[0]
    return first.value if is_string(first.value) else None


def is_string(node: cst.BaseExpression) -> bool:
    """Return whether an expression is a literal that evaluates to text."""
    while isinstance(node, cst.ConcatenatedString):
        if not isinstance(node.left, cst.SimpleString) or "b" in node.left.prefix:
            return False
        node = node.right
    return isinstance(node, cst.SimpleString) and "b" not in node.prefix


def evaluate_string(literal: str) -> str | None:
    """Evaluate a string literal, or several adjacent ones; None if that is not possible."""
    match = PLAIN_QUOTES.fullmatch(literal)
    if match and match.group(1) not in match.group(2):
        return match.group(2).replace("\r\n", "\n").replace("\r", "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = literal_eval(f"({literal}\n)")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None
    return value if isinstance(value, str) else None


class TypeComments:
    """Collect rows of `type_exprs` for the type comments of a file."""

    def __init__(self, text: str, spans: NodeSpans) -> None:
        self.rows: list[tuple[object, ...]] = []
        # Most files have none; then no node is checked.
        self.present = TYPE_COMMENT.search(text) is not None
        self._spans = spans

    def add_line(self, node: cst.SimpleStatementLine, owner: Span) -> None:
        """Add a comment at the end of an assignment."""
        last = node.body[-1]
        if isinstance(last, cst.Assign):
            target = last.targets[0].target if len(last.targets) == 1 else None
            self._variable(node.trailing_whitespace.comment, owner, target)

    def add_loop(self, node: cst.For | cst.With, owner: Span) -> None:
        """Add a comment at the end of the line with `for` or `with`."""
        if isinstance(node.body, cst.IndentedBlock):
            names = [node.target] if isinstance(node, cst.For) else [item.asname for item in node.items]
            target = names[0] if len(names) == 1 else None
            name = target.name if isinstance(target, cst.AsName) else target
            self._variable(node.body.header.comment, owner, name)

    def add_function(self, node: cst.FunctionDef, owner: Span) -> None:
        """Add a comment after the colon, or above the first statement."""
        if isinstance(node.body, cst.IndentedBlock):
            # Every statement except a line of `SimpleStatementSuite` has `leading_lines`.
            first: Any = node.body.body[0]
            comments = [node.body.header.comment, *(line.comment for line in first.leading_lines)]
            for comment in comments:
                if self._add(comment, owner, "signature", None, NO_SPAN):
                    return

    def add_param(self, node: cst.Param, owner: Span) -> None:
        """Add a comment after the comma, or after the last parameter."""
        comma = node.comma
        spaces = (
            comma.whitespace_after if isinstance(comma, cst.Comma) else None,
            node.whitespace_after_param,
        )
        for space in spaces:
            if isinstance(space, cst.ParenthesizedWhitespace):
                span = self._spans.span(node)
                self._add(space.first_line.comment, owner, "param", node.name.value, span)

    def _variable(self, comment: cst.Comment | None, owner: Span, target: cst.CSTNode | None) -> None:
        self._add(comment, owner, *annotation_target(target, self._spans))

    def _add(
        self, comment: cst.Comment | None, owner: Span, role: str, name: str | None, target: Span
    ) -> bool:
        match = TYPE_COMMENT.fullmatch(comment.value.rstrip(" \t")) if comment else None
        if comment is None or match is None:
            return False
        start = self._spans.span(comment)[0] + len(comment.value[: match.start(1)].encode())
        text = match.group(1)
        span = (start, start + len(text.encode()))
        self.rows.append((*owner, "type_comment", role, name, text, *target, *span))
        return True


def annotation_target(target: cst.CSTNode | None, spans: NodeSpans) -> tuple[str, str | None, Span]:
    """Return role, name and span of the identifier of an annotated target; no name for other targets."""
    if isinstance(target, cst.Name):
        return "variable", target.value, spans.span(target)
    if isinstance(target, cst.Attribute):
        name, end = target.attr.value, spans.span(target)[1]
        return "attribute", name, (end - len(name.encode()), end)
    return "variable", None, NO_SPAN
