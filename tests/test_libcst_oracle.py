"""The witness against LibCST's own metadata providers, which are slow and know nothing of our walk.

`Expected` visits the tree as LibCST means it to be visited and asks the providers for every span, context and
qualified name; the rows must be the same. Where we differ on purpose, the difference is written here.
"""

from __future__ import annotations

import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import libcst as cst
import pytest
from libcst.helpers import get_full_name_for_node
from libcst.metadata import (
    ByteSpanPositionProvider,
    ExpressionContextProvider,
    MetadataWrapper,
    ParentNodeProvider,
    QualifiedNameProvider,
)

from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.extract.options import ExtractOptions
from codeanatomy.extract.source import Source, decode

NOT_REFS = (cst.Param, cst.FunctionDef, cst.ClassDef, cst.ImportAlias, cst.ImportFrom, cst.MatchKeywordElement)
# The provider has them as loads.
STORES = (cst.MatchAs, cst.MatchStar, cst.MatchMapping, cst.TypeVar, cst.TypeVarTuple, cst.ParamSpec)
NULLS = (None, None)


class Expected(cst.CSTVisitor):
    """Rows by the providers, as counters of tuples."""

    METADATA_DEPENDENCIES = (
        ByteSpanPositionProvider,
        ExpressionContextProvider,
        ParentNodeProvider,
        QualifiedNameProvider,
    )

    def __init__(self) -> None:
        super().__init__()
        self.rows: defaultdict[str, Counter[Any]] = defaultdict(Counter)
        self.owners: list[tuple[int | None, int | None]] = [NULLS]

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        found = self.get_metadata(ByteSpanPositionProvider, node)
        return found.start, found.start + found.length

    def whole(self, node: Any) -> tuple[int, int]:
        """The span; of a tuple or generator expression with its own parentheses, unlike the provider."""
        if isinstance(node, cst.Tuple | cst.GeneratorExp) and node.lpar:
            return self.span(node.lpar[-1])[0], self.span(node.rpar[0])[1]
        return self.span(node)

    def optional(self, node: cst.CSTNode | None) -> tuple[int | None, int | None]:
        return NULLS if node is None else self.whole(node)

    def add(self, table: str, *row: Any) -> None:
        self.rows[table][row] += 1

    def context(self, node: cst.CSTNode, parent: cst.CSTNode) -> str:
        if isinstance(parent, cst.NameItem):
            return "declare"
        if isinstance(parent, STORES) or (isinstance(parent, cst.TypeAlias) and parent.name is node):
            return "store"
        return self.get_metadata(ExpressionContextProvider, node).name.lower()

    def visit_Name(self, node: cst.Name) -> None:
        parent = self.get_metadata(ParentNodeProvider, node)
        inner = isinstance(parent, cst.Attribute) and parent.attr is node
        keyword = isinstance(parent, cst.Arg) and parent.keyword is node
        own = isinstance(parent, NOT_REFS) and not (isinstance(parent, cst.Param) and parent.default is node)
        in_import = isinstance(parent, cst.AsName) and self.is_alias(parent)
        if inner or keyword or own or in_import or self.in_import(node) or node.value in {"None", "True", "False"}:
            return
        span = self.span(node)
        self.add("refs", node.value, "name", self.context(node, parent), node.value, *span, *span)

    def is_alias(self, node: cst.AsName) -> bool:
        return isinstance(self.get_metadata(ParentNodeProvider, node), cst.ImportAlias)

    def in_import(self, node: cst.CSTNode) -> bool:
        while isinstance(node, cst.Name | cst.Attribute):
            node = self.get_metadata(ParentNodeProvider, node)
        return isinstance(node, cst.ImportAlias | cst.ImportFrom)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        if not self.in_import(node):
            context = self.get_metadata(ExpressionContextProvider, node).name.lower()
            text = cst.Module([]).code_for_node(node.attr)
            self.add("refs", text, "attribute", context, dotted(node), *self.span(node), *self.span(node.attr))

    def visit_Call(self, node: cst.Call) -> None:
        call = self.span(node)
        self.add("callsites", *call, *self.whole(node.func), dotted(node.func), len(node.args))
        self.rows["names"][call] = self.names(node) if dotted(node.func) else frozenset()  # type: ignore[assignment]
        for index, arg in enumerate(node.args):
            keyword = arg.keyword and arg.keyword.value
            self.add("call_args", *call, index, keyword, arg.star, *self.whole(arg.value))

    def names(self, node: cst.CSTNode) -> frozenset[tuple[str, str]]:
        found = self.get_metadata(QualifiedNameProvider, node)
        return frozenset((name.name, name.source.name.lower()) for name in found)

    def definition(self, node: cst.FunctionDef | cst.ClassDef, kind: str) -> None:
        span, (start, end) = self.span(node), self.span(node.body)
        # Unlike the provider, a block begins with the decorators of its first statement.
        first = node.body.body[0]
        if isinstance(first, cst.FunctionDef | cst.ClassDef) and first.decorators:
            start = self.span(first.decorators[0])[0]
        self.add("defs", kind, node.name.value, *span, *self.span(node.name), start, end)
        self.rows["names"][span] = self.names(node)  # type: ignore[assignment]
        for index, decorator in enumerate(node.decorators):
            self.add("decorators", *span, index, *self.whole(decorator.decorator))
        self.docstring(node, span)

    def docstring(self, node: Any, owner: tuple[int | None, int | None]) -> None:
        text = node.get_docstring(clean=False)
        if text is not None:
            inner: Any = node
            while not isinstance(inner, cst.Expr):
                inner = inner.body[0] if isinstance(inner.body, list | tuple) else inner.body
            self.add("docstrings", *owner, text, *self.span(inner.value))

    def visit_Module(self, node: cst.Module) -> None:
        self.docstring(node, NULLS)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.definition(node, "function")
        self.owners.append(self.span(node))
        if node.returns:
            self.add("type_exprs", *self.span(node), "return", None, *self.whole(node.returns.annotation))

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self.owners.pop()

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.definition(node, "class")
        self.owners.append(self.span(node))

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self.owners.pop()

    def visit_Lambda(self, node: cst.Lambda) -> None:
        self.add("defs", "lambda", None, *self.span(node), *NULLS, *self.whole(node.body))
        self.owners.append(self.span(node))

    def leave_Lambda(self, original_node: cst.Lambda) -> None:
        self.owners.pop()

    def visit_Param(self, node: cst.Param) -> None:
        annotation = node.annotation and node.annotation.annotation
        spans = (*self.optional(node.default), *self.optional(annotation), *self.span(node.name))
        self.add("params", *self.owners[-1], node.name.value, *spans)
        if annotation:
            self.add("type_exprs", *self.owners[-1], "param", node.name.value, *self.whole(annotation))

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        target, annotation = node.target, self.whole(node.annotation.annotation)
        role = "attribute" if isinstance(target, cst.Attribute) else "variable"
        name = {cst.Attribute: lambda: target.attr.value, cst.Name: lambda: target.value}.get(type(target))
        self.add("type_exprs", *self.owners[-1], role, name and name(), *annotation)

    def imported(self, node: Any, module: str | None, level: int) -> None:
        names = [node.names] if isinstance(node.names, cst.ImportStar) else node.names
        for index, alias in enumerate(names):
            star = isinstance(alias, cst.ImportStar)
            bound: Any = NULLS if star else self.span(alias.asname.name if alias.asname else first(alias.name))
            name, asname = ("*", None) if star else (dotted(alias.name), alias.evaluated_alias)
            row = (module, name, asname, index, level, *self.span(node), *self.span(alias), *bound)
            self.add("imports", *row)

    def visit_Import(self, node: cst.Import) -> None:
        self.imported(node, None, 0)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        self.imported(node, node.module and dotted(node.module), len(node.relative))

    def visit_Comment(self, node: cst.Comment) -> None:
        self.add("comments", node.value, *self.span(node))


def first(name: Any) -> cst.CSTNode:
    while isinstance(name, cst.Attribute):
        name = name.value
    return name  # type: ignore[no-any-return]


def dotted(node: cst.CSTNode) -> str | None:
    name = get_full_name_for_node(node)
    inner: Any = node
    while isinstance(inner, cst.Attribute):
        inner = inner.value
    return name if isinstance(inner, cst.Name) else None
