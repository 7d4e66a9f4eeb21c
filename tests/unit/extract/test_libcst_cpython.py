"""The witness against CPython's own parser: what is there, what it is called, and where it stands.

Places inside f-strings are not compared, for CPython before 3.12 has none that are right there.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from unicodedata import normalize

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import ExtractorResult
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.sources.source_file import Source
from support.libcst_rows import PACKAGES, package, read, stdlib, table

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DECORATED = (*FUNCTIONS, ast.ClassDef)
DEFS = {**dict.fromkeys(FUNCTIONS, "function"), ast.ClassDef: "class", ast.Lambda: "lambda"}
CONTEXTS = {ast.Load: "load", ast.Store: "store", ast.Del: "del"}


class Both:
    """What CPython and the witness say of a file."""

    def __init__(self, source: Source, said: ExtractorResult, root: ast.Module) -> None:
        self.source = source
        self.said = said
        # Nodes, and whether they are in an f-string.
        self.nodes: list[tuple[Any, bool]] = []
        todo: list[tuple[ast.AST, bool]] = [(root, False)]
        while todo:
            node, inside = todo.pop()
            self.nodes.append((node, inside))
            inside = inside or isinstance(node, ast.JoinedStr)
            todo += ((child, inside) for child in ast.iter_child_nodes(node))
        formatted = sorted(span for _, span in self.of(ast.JoinedStr))
        self.starts, self.ends = [start for start, _ in formatted], [end for _, end in formatted]

    def span(self, node: Any) -> tuple[int | None, int | None]:
        if node is None:
            return None, None
        # The semicolon of `if x: pass;` is CPython's alone.
        last = self.source.line_text(node.end_lineno) or ""
        semicolon = isinstance(node, ast.stmt) and last.encode()[node.end_col_offset - 1 :].startswith(b";")
        at = self.source.offset_at
        return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset - semicolon)

    def of(self, *kinds: type) -> Iterator[tuple[Any, tuple[int | None, int | None]]]:
        """CPython's nodes outside f-strings, with their spans."""
        nodes = (node for node, inside in self.nodes if isinstance(node, kinds) and not inside)
        return ((node, self.span(node)) for node in nodes)

    def rows(self, name: str, *fields: str) -> Counter[Any]:
        """Our rows outside f-strings; the last two fields say where."""
        return Counter(row for row in table(self.said, name, *fields) if not self.is_formatted(*row[-2:]))

    def is_formatted(self, start: int, end: int) -> bool:
        place = bisect_right(self.starts, start) - 1
        return place >= 0 and end <= self.ends[place]

    def strings(self) -> Iterator[tuple[str, str]]:
        """Names that are refs for us, and strings in CPython's tree."""
        for node, _ in self.nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                yield from ((name, "declare") for name in node.names)
            elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                yield node.name, "store"
            elif isinstance(node, ast.MatchMapping) and node.rest:
                yield node.rest, "store"


def refs(both: Both) -> None:
    rows = both.rows("refs", "kind", "text", "context", "expr_bstart", "expr_bend")
    ours = Counter((kind, normalize("NFKC", text), *rest) for kind, text, *rest in rows.elements())
    named = [("name", node.id, CONTEXTS[type(node.ctx)], *span) for node, span in both.of(ast.Name)]
    named += [
        ("attribute", node.attr, CONTEXTS[type(node.ctx)], *span) for node, span in both.of(ast.Attribute)
    ]
    theirs = Counter(named)
    assert not theirs - ours
    more = Counter((text, context) for _, text, context, *_ in (ours - theirs).elements())
    assert more == Counter(both.strings())
    # In f-strings, without places.
    every = [node.id if isinstance(node, ast.Name) else node.attr for node, _ in both.nodes if is_ref(node)]
    every += [text for text, _ in both.strings()]
    assert Counter(normalize("NFKC", text) for text in table(both.said, "refs", "text")) == Counter(every)


def is_ref(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def calls(both: Both) -> None:
    ours = both.rows("callsites", "callee_bstart", "callee_bend", "arg_count", "call_bstart", "call_bend")
    assert ours == Counter(
        (*both.span(node.func), len(node.args) + len(node.keywords), *span)
        for node, span in both.of(ast.Call)
    )
    assert len(table(both.said, "callsites", "line")) == sum(isinstance(n, ast.Call) for n, _ in both.nodes)


def arguments(both: Both) -> None:
    theirs: Counter[Any] = Counter()
    for node, call in both.of(ast.Call):
        values = [
            (arg.value, None, "*") if isinstance(arg, ast.Starred) else (arg, None, "") for arg in node.args
        ]
        values += [(arg.value, arg.arg, "" if arg.arg else "**") for arg in node.keywords]
        values.sort(key=lambda value: (value[0].lineno, value[0].col_offset))
        for index, (value, keyword, star) in enumerate(values):
            # If it is the only argument, CPython gives it the parentheses of the call.
            if not isinstance(value, ast.GeneratorExp) or len(values) > 1:
                theirs[index, keyword, star, *both.span(value), *call] += 1
    fields = ("index", "keyword", "star", "bstart", "bend", "call_bstart", "call_bend")
    ours = both.rows("call_args", *fields)
    assert not theirs - ours
    assert all(" for " in both.source.utf8[row[3] : row[4]].decode() for row in ours - theirs)


def definitions(both: Both) -> None:
    rows = both.rows("defs", "name", "kind", "is_async", "body_bend", "def_bstart", "def_bend")
    ours = Counter((name and normalize("NFKC", name), *rest) for name, *rest in rows.elements())
    theirs: Counter[Any] = Counter()
    for node, span in both.of(*DEFS):
        is_async = isinstance(node, ast.AsyncFunctionDef)
        last = node.body if isinstance(node, ast.Lambda) else node.body[-1]
        name = getattr(node, "name", None)
        theirs[name, DEFS[type(node)], is_async, both.span(last)[1], *span] += 1
    assert ours == theirs
    decorators = both.rows("decorators", "owner_bstart", "owner_bend", "index", "bstart", "bend")
    assert decorators == Counter(
        (*span, index, *both.span(decorator))
        for node, span in both.of(*DECORATED)
        for index, decorator in enumerate(node.decorator_list)
    )


def parameters(both: Both) -> None:
    theirs: Counter[Any] = Counter()
    for node, span in both.of(*FUNCTIONS, ast.Lambda):
        for index, (kind, param, default) in enumerate(signature(node.args)):
            spans = (*both.span(default), *both.span(param.annotation))
            theirs[kind, index, *spans, both.span(param)[0], *span] += 1
    fields = ("default_bstart", "default_bend", "annotation_bstart", "annotation_bend", "bstart")
    ours = both.rows("params", "kind", "index", *fields, "owner_bstart", "owner_bend")
    assert ours == theirs


def signature(args: ast.arguments) -> Iterator[tuple[str, ast.arg, ast.expr | None]]:
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    for index, (param, default) in enumerate(zip(positional, defaults, strict=True)):
        yield "positional_only" if index < len(args.posonlyargs) else "positional", param, default
    if args.vararg:
        yield "vararg", args.vararg, None
    for param, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield "keyword_only", param, default
    if args.kwarg:
        yield "kwarg", args.kwarg, None


def imports(both: Both) -> None:
    theirs: Counter[Any] = Counter()
    for node, span in both.of(ast.Import, ast.ImportFrom):
        module, level = getattr(node, "module", None), getattr(node, "level", 0)
        for index, alias in enumerate(node.names):
            theirs[*span, module, level, alias.name, alias.asname, index, *both.span(alias)] += 1
    fields = ("stmt_bstart", "stmt_bend", "module", "level", "name", "asname", "alias_index")
    assert both.rows("imports", *fields, "alias_bstart", "alias_bend") == theirs


def docstrings(both: Both) -> None:
    nodes = [node for node, _ in both.nodes if isinstance(node, (ast.Module, *DECORATED))]
    found = [(node.body[0], ast.get_docstring(node, clean=False)) for node in nodes if node.body]
    theirs = Counter((text, *both.span(first.value)) for first, text in found if text is not None)
    assert Counter(table(both.said, "docstrings", "text", "bstart", "bend")) == theirs


CHECKS = (refs, calls, arguments, definitions, parameters, imports, docstrings)


def compare(sources: Iterable[Source]) -> Counter[str]:
    """How many files both read, or one of them, or none."""
    readers: Counter[str] = Counter()
    for source in sources:
        said = libcst_files_v1(source, ExtractOptions())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                root = ast.parse(source.text)
        except (SyntaxError, ValueError, RecursionError):
            readers["none" if said.problems else "libcst"] += 1
            continue
        if said.problems:
            readers["cpython"] += 1
            continue
        readers["both"] += 1
        both = Both(source, said, root)
        for check in CHECKS:
            try:
                check(both)
            except AssertionError as problem:
                raise AssertionError(f"{source.path}: {check.__name__}: {problem}") from problem
    return readers


def test_a_small_file() -> None:
    code = (
        "'''é'''\nimport a . b as c, d\nfrom .e import f as g, h\nfrom . import *\n"
        "@c.x((1, 2), (i for i in j), *k, l=(), **m)\nasync def ﬁ(a, /, b: 'é' = (1,), *c, d=1, **e): pass\n"
        "class C(D, k=lambda x, *, y=1: x): 'doc'\n"
        "match n:\n    case [o, *p] | {'k': q, **r} | T(x=1): pass\n"
        "try: f(x for x in y)\nexcept E as s: global t, u; del (v), w.x[y]; z += s\n"
        "f'{a.b(c)!r:{d}}'; '😀'; é.é(é)\n"
    )
    assert compare([read(code), read(code.replace("\n", "\r\n")), read(code.replace("\n", "\r"))]) == {
        "both": 3
    }


def test_requests_and_flask() -> None:
    assert compare([*package("requests"), *package("flask")]).keys() == {"both"}


@pytest.mark.system
def test_a_slice_of_the_standard_library() -> None:
    assert compare(stdlib(step=60))["both"] >= 28


@pytest.mark.system
@pytest.mark.parametrize("name", PACKAGES)
def test_packages(name: str) -> None:
    readers = compare(package(name))
    assert readers["cpython"] == 0
    assert readers["both"] >= 15


@pytest.mark.system
def test_the_standard_library() -> None:
    readers = compare(stdlib())
    # Some syntax LibCST does not know; of lib2to3 and of the tests some files are wrong on purpose.
    assert readers["cpython"] <= 10
    assert readers["both"] > 1700
