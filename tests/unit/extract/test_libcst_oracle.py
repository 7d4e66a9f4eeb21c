"""The witness against LibCST's own metadata providers, which are slow and know nothing of our walk.

`Expected` visits the tree as LibCST means it to be visited and asks the providers for every span, context and
qualified name; the rows must be the same. Where we differ on purpose, the difference is written here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, TypeAlias

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

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.sources.source_file import Source
from support.libcst_rows import PACKAGES, package, read, stdlib, table

Span: TypeAlias = tuple[int, int]
NULLS = (None, None)
# The fields of each table that the providers know.
FIELDS = {
    "refs": "text kind context dotted expr_bstart expr_bend bstart bend",
    "defs": "kind name def_bstart def_bend name_bstart name_bend body_bstart body_bend",
    "params": "owner_bstart owner_bend name default_bstart default_bend annotation_bstart annotation_bend "
    "bstart bend",
    "imports": "module name asname alias_index level stmt_bstart stmt_bend alias_bstart alias_bend "
    "bound_bstart bound_bend",
    "callsites": "call_bstart call_bend callee_bstart callee_bend dotted arg_count",
    "call_args": "call_bstart call_bend index keyword star bstart bend",
    "decorators": "owner_bstart owner_bend index text bstart bend",
    "docstrings": "owner_bstart owner_bend text bstart bend",
    "type_exprs": "kind role name text bstart bend",
    "comments": "text bstart bend",
}
DEFINITIONS = (cst.FunctionDef, cst.ClassDef, cst.Lambda)
# Identifiers that are no uses.
NOT_REFS = {
    cst.Attribute: "attr",
    cst.Arg: "keyword",
    cst.MatchKeywordElement: "key",
    cst.FunctionDef: "name",
    cst.ClassDef: "name",
    cst.Param: "name",
}
# Their names are stores; the provider has them as loads.
STORES = (cst.MatchAs, cst.MatchStar, cst.TypeVar, cst.TypeVarTuple, cst.ParamSpec, cst.TypeAlias)
IMPORTS = (cst.ImportAlias, cst.Import, cst.ImportFrom)


class Expected(cst.CSTVisitor):
    """Rows by the providers, as counters of tuples; and qualified names by span."""

    METADATA_DEPENDENCIES = (
        ByteSpanPositionProvider,
        ExpressionContextProvider,
        ParentNodeProvider,
        QualifiedNameProvider,
    )

    def __init__(self, utf8: bytes) -> None:
        super().__init__()
        self.utf8 = utf8
        self.rows: defaultdict[str, Counter[Any]] = defaultdict(Counter)
        self.names: dict[tuple[str, Span], frozenset[tuple[str, str]]] = {}
        self.owners: list[Span] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, DEFINITIONS):
            self.owners.append(self.span(node))
        handler = getattr(self, type(node).__name__.lower(), None)
        if handler:
            handler(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, DEFINITIONS):
            self.owners.pop()

    def add(self, name: str, *row: Any) -> None:
        self.rows[name][row] += 1

    def parent(self, node: cst.CSTNode) -> Any:
        return self.get_metadata(ParentNodeProvider, node)

    def text(self, node: cst.CSTNode) -> str:
        start, end = self.whole(node)
        return self.utf8[start:end].decode()

    def span(self, node: cst.CSTNode) -> Span:
        found = self.get_metadata(ByteSpanPositionProvider, node)
        return found.start, found.start + found.length

    def whole(self, node: Any) -> Span:
        """The span; of a tuple or generator expression with its own parentheses, unlike the provider."""
        if isinstance(node, cst.Tuple | cst.GeneratorExp) and node.lpar:
            return self.span(node.lpar[-1])[0], self.span(node.rpar[0])[1]
        return self.span(node)

    def optional(self, node: cst.CSTNode | None) -> tuple[int | None, int | None]:
        return NULLS if node is None else self.whole(node)

    def qualified(self, node: cst.CSTNode) -> frozenset[tuple[str, str]]:
        found = self.get_metadata(QualifiedNameProvider, node)
        return frozenset((name.name, name.source.name.lower()) for name in found)

    # Refs.

    def in_import(self, node: cst.CSTNode) -> bool:
        while isinstance(node, cst.Name | cst.Attribute | cst.AsName):
            node = self.parent(node)
        return isinstance(node, IMPORTS)

    def is_ref(self, node: cst.Name, parent: Any) -> bool:
        if type(parent) in NOT_REFS and getattr(parent, NOT_REFS[type(parent)]) is node:
            return False
        return node.value not in {"None", "True", "False"} and not self.in_import(node)

    def context(self, node: cst.CSTNode, parent: Any) -> str:
        if isinstance(parent, cst.NameItem):
            return "declare"
        if isinstance(parent, STORES) and parent.name is node:
            return "store"
        if isinstance(parent, cst.MatchMapping) and parent.rest is node:
            return "store"
        # It does not look into type parameters.
        found = self.get_metadata(ExpressionContextProvider, node, None)
        return found.name.lower() if found else "load"

    def name(self, node: cst.Name) -> None:
        parent = self.parent(node)
        if self.is_ref(node, parent):
            span = self.span(node)
            self.add("refs", node.value, "name", self.context(node, parent), node.value, *span, *span)

    def attribute(self, node: cst.Attribute) -> None:
        if not self.in_import(node):
            context, spans = self.context(node, None), (*self.span(node), *self.span(node.attr))
            self.add("refs", self.text(node.attr), "attribute", context, dotted(node), *spans)

    # Calls.

    def call(self, node: cst.Call) -> None:
        call, name = self.span(node), dotted(node.func)
        self.add("callsites", *call, *self.whole(node.func), name, len(node.args))
        # Unlike the provider, other callees have no names.
        self.names["callsites", call] = self.qualified(node) if name else frozenset()
        for index, arg in enumerate(node.args):
            keyword = arg.keyword and arg.keyword.value
            self.add("call_args", *call, index, keyword, arg.star, *self.whole(arg.value))

    # Definitions.

    def functiondef(self, node: cst.FunctionDef) -> None:
        self.definition(node, "function")
        if node.returns:
            self.typed(node.returns.annotation, "return", None)

    def classdef(self, node: cst.ClassDef) -> None:
        self.definition(node, "class")

    def lambda_(self, node: cst.Lambda) -> None:
        self.add("defs", "lambda", None, *self.span(node), *NULLS, *self.whole(node.body))

    def definition(self, node: cst.FunctionDef | cst.ClassDef, kind: str) -> None:
        span, (start, end) = self.span(node), self.span(node.body)
        # Unlike the provider, a block begins with the decorators of its first statement.
        first = node.body.body[0]
        if isinstance(first, cst.FunctionDef | cst.ClassDef) and first.decorators:
            start = self.span(first.decorators[0])[0]
        self.add("defs", kind, node.name.value, *span, *self.span(node.name), start, end)
        self.names["defs", span] = self.qualified(node)
        for index, decorator in enumerate(node.decorators):
            inner = decorator.decorator
            self.add("decorators", *span, index, self.text(inner), *self.whole(inner))
        self.docstring(node, span)

    def docstring(self, node: Any, owner: tuple[int | None, int | None]) -> None:
        text, inner = node.get_docstring(clean=False), node
        if text is not None:
            while not isinstance(inner, cst.Expr):
                inner = inner.body if isinstance(inner.body, cst.BaseSuite) else inner.body[0]
            self.add("docstrings", *owner, text, *self.span(inner.value))

    def module(self, node: cst.Module) -> None:
        self.docstring(node, NULLS)

    def param(self, node: cst.Param) -> None:
        annotation = node.annotation and node.annotation.annotation
        spans = (*self.optional(node.default), *self.optional(annotation), *self.span(node.name))
        self.add("params", *self.owners[-1], node.name.value, *spans)
        if annotation:
            self.typed(annotation, "param", node.name.value)

    def annassign(self, node: cst.AnnAssign) -> None:
        is_attribute = isinstance(node.target, cst.Attribute)
        name = node.target.attr if isinstance(node.target, cst.Attribute) else node.target
        known = name.value if isinstance(name, cst.Name) else None
        self.typed(node.annotation.annotation, "attribute" if is_attribute else "variable", known)

    def typed(self, node: cst.BaseExpression, role: str, name: str | None) -> None:
        is_string = isinstance(node, cst.SimpleString | cst.ConcatenatedString)
        kind = "string_annotation" if is_string else "annotation"
        self.add("type_exprs", kind, role, name, self.text(node), *self.whole(node))

    # Imports.

    def import_(self, node: cst.Import) -> None:
        self.imported(node, None, 0)

    def importfrom(self, node: cst.ImportFrom) -> None:
        self.imported(node, node.module and dotted(node.module), len(node.relative))

    def imported(self, node: Any, module: str | None, level: int) -> None:
        spans = self.span(node)
        if isinstance(node.names, cst.ImportStar):
            self.add("imports", module, "*", None, 0, level, *spans, *self.span(node.names), *NULLS)
            return
        for index, alias in enumerate(node.names):
            bound = alias.asname.name if alias.asname else first_name(alias.name)
            row = (module, dotted(alias.name), alias.evaluated_alias, index, level, *spans)
            self.add("imports", *row, *self.span(alias), *self.span(bound))

    def comment(self, node: cst.Comment) -> None:
        self.add("comments", node.value, *self.span(node))


# The names of these classes are keywords.
setattr(Expected, "lambda", Expected.lambda_)
setattr(Expected, "import", Expected.import_)


def first_name(node: Any) -> cst.CSTNode:
    while isinstance(node, cst.Attribute):
        node = node.value
    return node  # type: ignore[no-any-return]


def dotted(node: cst.CSTNode) -> str | None:
    return get_full_name_for_node(node) if isinstance(first_name(node), cst.Name) else None


def compare(source: Source) -> int:
    """Rows compared; none if LibCST does not read the file, does not give it back, or recurses too deep."""
    said = libcst_files_v1(source, ExtractOptions())
    if said.problems:
        assert {problem.stage for problem in said.problems} == {"parse"}, source.path
        return 0
    module = cst.parse_module(source.text)
    expected = Expected(source.utf8)
    try:
        if module.code != source.text:
            return 0
        MetadataWrapper(module, unsafe_skip_copy=True).visit(expected)
    except RecursionError:
        return 0
    count = 0
    for name, fields in FIELDS.items():
        rows = table(said, name, *fields.split())
        found = Counter(row for row in rows if (name, row[0]) != ("type_exprs", "type_comment"))
        assert found == expected.rows[name], (source.path, name)
        count += len(rows)
    for name, start, end in (("defs", "def_bstart", "def_bend"), ("callsites", "call_bstart", "call_bend")):
        for begin, stop, names in table(said, name, start, end, "qualified_names"):
            assert known(names) == expected.names.get((name, (begin, stop)), frozenset()), (
                source.path,
                begin,
            )
    return count


def known(names: dict[str, list[str]]) -> frozenset[tuple[str, str]]:
    """Qualified names; unlike us, the provider forgets what follows a builtin."""
    pairs = zip(names["name"], names["source"], strict=True)
    return frozenset((".".join(name.split(".")[:2]) if s == "builtin" else name, s) for name, s in pairs)


def compare_all(sources: Iterable[Source]) -> list[str]:
    """The files for which there was nothing to compare, of those that are not empty."""
    return [source.path for source in sources if not compare(source) and source.text.strip()]


def test_every_form_of_a_small_file() -> None:
    code = (
        "'''d'''\nfrom . import (a as b)\nimport c . d\nfrom e import *\n"
        "@b . x ( 1 )\n@(b)\nclass C(B, k=(1, 2)):\n"
        "    @p\n    def é(self, *, x: 'T' = (), **k) -> (int): 'd'\n"
        "    y: int = {k: v for k, v in z}\n    o.p[q]: r = lambda *a, b=1: a.b(b)\n"
        "match m:\n    case P(x=1, y=s) | {'k': t, **u} | [*w]: del s.a, t[0], (u)\n"
        "def f[T: B](): global g; g += (h := f((i for i in j)), f(i for i in j))\n"
        "type X[T] = T  # c\n{K: V for K, V in L}; {M: N}\nf'{a.b!r:{c}}'\n"
    )
    assert compare(read(code)) > 80


def test_some_real_files() -> None:
    """Few, for the providers take ten times as long as the witness."""
    assert compare_all([*package("requests")][::5]) == []
    assert compare_all(stdlib(step=600)) == []


@pytest.mark.system
@pytest.mark.parametrize("name", PACKAGES)
def test_packages(name: str) -> None:
    assert len(compare_all(package(name))) <= 1


@pytest.mark.system
def test_the_standard_library() -> None:
    # Files that are wrong on purpose, that LibCST does not give back, or that are too deep for its visitors.
    assert len(compare_all(stdlib())) < 20
