"""Collect facts from the nodes of a LibCST tree, in source order.

    @cached                    ref cached; decorator cached
    def f(x: int = N):         def f; param x with annotation and default; refs int, N; type expression int
        g(*x)                  callsite g with one argument; refs g, x

`libcst.spans` gives the nodes with their spans, an outer node before its inner ones; so a statement can mark
the names in it as assigned (`_contexts`), and a definition can register where its scope begins and ends. Rows
are tuples in the order of the catalogue's fields, without the line; instead of the qualified names they have
a function and its argument, because names can be resolved only when all bindings are known.

Refs are every name and attribute that is read, assigned or deleted, and as `declare` the names in `global`
and `nonlocal`. Not refs are the names of functions, classes and parameters (`defs`, `params`), names in an
import (`imports`), keywords of calls and of class patterns, and None, True and False. Contexts are those of
CPython, which are also those of LibCST's `ExpressionContextProvider`, except for captures of patterns, type
parameters and names of `type` statements, which are loads there.

The scope of a definition is its body. So defaults, decorators, annotations and bases are in the scope around
it, and `container` and `owner` follow: a lambda that is a default has the same container as the function.

Tests: `tests/unit/extract/test_libcst_files.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from sys import maxsize
from typing import Any, TypeAlias

import libcst as cst

from codeanatomy.extract.libcst.light_tree import LIGHT
from codeanatomy.extract.libcst.qualified_names import NameScope, ScopeKind, normalize_name
from codeanatomy.extract.libcst.spans import NodeSpans
from codeanatomy.extract.libcst.texts import (
    NO_SPAN,
    Span,
    TypeComments,
    annotation_target,
    docstring_of,
    evaluate_string,
)

Row: TypeAlias = tuple[Any, ...]

CONSTANTS = frozenset({"None", "True", "False"})
LIGHT_NAME, LIGHT_ATTRIBUTE = LIGHT[cst.Name], LIGHT[cst.Attribute]
SHAPES: dict[type, str] = {
    cst.Name: "name",
    cst.Attribute: "attribute",
    cst.Subscript: "subscript",
    cst.Call: "call",
}
SHAPES.update([(LIGHT[kind], shape) for kind, shape in SHAPES.items() if kind in LIGHT])
STRINGS = (cst.SimpleString, cst.ConcatenatedString)
# Longer chains of attributes have no dotted text: the total size would be quadratic.
MAX_PARTS = 64


def dotted(node: Any, max_parts: int = MAX_PARTS) -> str | None:
    """Return the text of an expression that is names joined by dots, else None."""
    parts: list[str] = []
    while (shape := SHAPES.get(node.__class__)) == "attribute" and len(parts) < max_parts:
        parts.append(node.attr.value)
        node = node.value
    if shape != "name":
        return None
    return ".".join((node.value, *parts[::-1])) if parts else node.value


def byte_length(text: str) -> int:
    return len(text.encode())


def _start(row: Row) -> int:
    return row[-2]  # type: ignore[no-any-return]


class LibcstFacts:
    """The rows of one file, by column of the catalogue."""

    def __init__(self, utf8: bytes, text: str, module: cst.Module, spans: NodeSpans) -> None:
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        self.future_imports: list[str] = []
        self._utf8 = utf8
        self._span = spans.span
        self._spans = spans
        # Contexts of the names and attributes that are not read; empty for those that are not refs.
        self._contexts: dict[int, str] = {}
        # The current scope and its end, the scopes around it, and those that begin later, the next one last.
        self._scope, self._end = NameScope(), len(utf8) + 1
        self._outer_scopes: list[tuple[NameScope, int]] = []
        self._upcoming: list[tuple[int, int, NameScope]] = []
        self._comments = TypeComments(text, spans)
        self._docstring(NO_SPAN, "module", module.body)
        self._collect(spans)
        if self._comments.rows:
            self.rows["type_exprs"] = sorted([*self.rows["type_exprs"], *self._comments.rows], key=_start)

    def _collect(self, spans: NodeSpans) -> None:
        """Collect names and attributes here, because they are many; other nodes by their handlers."""
        add_ref, context_of = self.rows["refs"].append, self._contexts.get
        node: Any
        for node, start, end in zip(spans.nodes, spans.starts, spans.ends, strict=True):
            kind = node.__class__
            if kind is LIGHT_NAME or kind is cst.Name:
                context, text = context_of(id(node), "load"), node.value
                if context and text not in CONSTANTS:
                    add_ref((text, "name", context, text, start, end, start, end))
            elif kind is LIGHT_ATTRIBUTE or kind is cst.Attribute:
                context, text = context_of(id(node), "load"), node.attr.value
                add_ref((text, "attribute", context, dotted(node), start, end, end - byte_length(text), end))
            elif kind in HANDLERS:
                HANDLERS[kind](self, node, start, end)

    def _text(self, span: tuple[int, int]) -> str:
        return self._utf8[span[0] : span[1]].decode()

    # Scopes.

    def _scope_at(self, start: int) -> NameScope:
        """Return the scope of a node that begins at an offset; nodes come in the order of their starts."""
        while start >= self._end:
            self._scope, self._end = self._outer_scopes.pop()
        while self._upcoming and self._upcoming[-1][0] <= start:
            _, end, scope = self._upcoming.pop()
            if start < end:
                self._enter(scope, end)
        return self._scope

    def _enter(self, scope: NameScope, end: int) -> None:
        self._outer_scopes.append((self._scope, self._end))
        self._scope, self._end = scope, end

    def _add_scope(self, kind: ScopeKind, node: Any, name: str | None, span: tuple[int, int]) -> NameScope:
        """Add the scope of a definition, which is its body, and one around it for type parameters."""
        outer = self._scope_at(span[0])
        types = getattr(node, "type_parameters", None)
        inner = NameScope(kind, NameScope("types", outer) if types else outer, name, span)
        self._upcoming.append((*self._span(node.body), inner))
        if types and inner.parent:
            self._upcoming.append((self._span(types)[0], span[1], inner.parent))
        return inner

    def comprehension(self, node: Any, start: int, end: int) -> None:
        """Enter the scope of a comprehension, which excludes its first iterable."""
        outer = self._scope_at(start)
        self._enter(NameScope("comprehension", outer), end)
        self._upcoming.append((*self._span(node.for_in.iter), outer))

    # Definitions.

    def _definition(self, scope: NameScope, node: Any, start: int, end: int) -> None:
        """Add the rows that functions and classes have in common."""
        outer, name, span = self._scope_at(start), node.name.value, (start, end)
        outer.bind(name)
        self._contexts[id(node.name)] = ""
        decorators = []
        for index, decorator in enumerate(node.decorators):
            decorator_span = self._span(decorator.decorator)
            decorators.append(self._text(decorator_span))
            self.rows["decorators"].append((*span, index, decorators[-1], *decorator_span))
        container = outer.definition
        head = (scope.kind, name, getattr(node, "asynchronous", None) is not None)
        spans = (*(container.span or NO_SPAN), *span, *self._span(node.name), *self._span(node.body))
        self.rows["defs"].append((*head, container.kind, *spans, (outer.defined, name), decorators))
        self._docstring(span, scope.kind, node.body)

    def function(self, node: cst.FunctionDef, start: int, end: int) -> None:
        scope = self._add_scope("function", node, node.name.value, (start, end))
        self._definition(scope, node, start, end)
        self._params(node.params, scope, (start, end))
        if node.returns:
            self._annotation((start, end), "return", None, NO_SPAN, node.returns)
        if self._comments.present:
            self._comments.add_function(node, (start, end))

    def class_(self, node: cst.ClassDef, start: int, end: int) -> None:
        scope = self._add_scope("class", node, node.name.value, (start, end))
        self._definition(scope, node, start, end)

    def lambda_(self, node: cst.Lambda, start: int, end: int) -> None:
        scope = self._add_scope("lambda", node, None, (start, end))
        container = self._scope.definition
        spans = (*(container.span or NO_SPAN), start, end, *NO_SPAN, *self._span(node.body))
        self.rows["defs"].append(("lambda", None, False, container.kind, *spans, (scope.resolve, None), []))
        self._params(node.params, scope, (start, end))

    def _params(self, params: cst.Parameters, scope: NameScope, owner: tuple[int, int]) -> None:
        kinds = (
            ("positional_only", params.posonly_params),
            ("positional", params.params),
            ("vararg", [params.star_arg]),
            ("keyword_only", params.kwonly_params),
            ("kwarg", [params.star_kwarg]),
        )
        named = [(kind, param) for kind, group in kinds for param in group if isinstance(param, cst.Param)]
        for index, (kind, param) in enumerate(named):
            name, span = param.name.value, self._span(param)
            scope.bind(name)
            default = self._span(param.default) if param.default else NO_SPAN
            annotation = NO_SPAN
            if param.annotation:
                annotation = self._annotation(owner, "param", name, span, param.annotation)
            self.rows["params"].append((*owner, name, kind, index, *default, *annotation, *span))
            if self._comments.present:
                self._comments.add_param(param, owner)

    def _docstring(self, owner: Span, kind: str, body: Any) -> None:
        literal = docstring_of(body)
        if literal is not None:
            span = self._span(literal)
            self.rows["docstrings"].append((*owner, kind, evaluate_string(self._text(span)), *span))

    def _annotation(
        self, owner: Span, role: str, name: str | None, target: Span, node: cst.Annotation
    ) -> tuple[int, int]:
        span = self._span(node.annotation)
        kind = "string_annotation" if isinstance(node.annotation, STRINGS) else "annotation"
        self.rows["type_exprs"].append((*owner, kind, role, name, self._text(span), *target, *span))
        return span

    # Calls.

    def call(self, node: cst.Call, start: int, end: int) -> None:
        callee, name = node.func, dotted(node.func)
        shape = SHAPES.get(callee.__class__, "other")
        qualified_names = (self._scope_at(start).resolve, name)
        row = (start, end, *self._span(callee), shape, name, len(node.args), qualified_names)
        self.rows["callsites"].append(row)
        add = self.rows["call_args"].append
        for index, arg in enumerate(node.args):
            keyword = arg.keyword.value if arg.keyword else None
            add((start, end, index, keyword, arg.star, *self._span(arg.value)))

    # Imports.

    def import_(self, node: cst.Import, start: int, end: int) -> None:
        scope = self._scope_at(start)
        for index, alias in enumerate(node.names):
            name, asname, span, bound = self._alias(alias)
            if asname:
                scope.bind_import(asname, name)
            else:
                parts = name.split(".")
                for count in range(1, min(len(parts), MAX_PARTS) + 1):
                    prefix = ".".join(parts[:count])
                    scope.bind_import(prefix, prefix)
                bound = (span[0], span[0] + byte_length(parts[0]))
            row = ("import", None, name, asname, index, 0, False, start, end, *span, *bound)
            self.rows["imports"].append(row)

    def import_from(self, node: cst.ImportFrom, start: int, end: int) -> None:
        module, level = dotted(node.module, maxsize) if node.module else None, len(node.relative)
        head, stmt = ("from", module), (start, end)
        if isinstance(node.names, cst.ImportStar):
            span = self._span(node.names)
            self.rows["imports"].append((*head, "*", None, 0, level, True, *stmt, *span, *NO_SPAN))
            return
        scope = self._scope_at(start)
        package = "." * level + (f"{module}." if module else "")
        for index, alias in enumerate(node.names):
            name, asname, span, bound = self._alias(alias)
            scope.bind_import(asname or name, f"{package}{name}")
            self.rows["imports"].append((*head, name, asname, index, level, False, *stmt, *span, *bound))
            if package == "__future__.":
                self.future_imports.append(name)

    def _alias(self, alias: cst.ImportAlias) -> tuple[str, str | None, tuple[int, int], tuple[int, int]]:
        """Return name, name after `as`, span, and span of the last identifier."""
        name, span = dotted(alias.name, maxsize) or "", self._span(alias)
        asname = dotted(alias.asname.name) if alias.asname else None
        return name, asname, span, (span[1] - byte_length(asname or name), span[1])

    # Bindings.

    def _store(self, target: cst.CSTNode | None, scope: NameScope, context: str = "store") -> None:
        """Set the context of names and attributes in a target, and bind the names."""
        targets: list[Any] = [target]
        while targets:
            node = targets.pop()
            if isinstance(node, cst.Name | cst.Attribute):
                self._contexts[id(node)] = context
                if isinstance(node, cst.Name) and context == "store":
                    scope.bind(node.value)
            elif isinstance(node, cst.Tuple | cst.List):
                targets += (element.value for element in reversed(node.elements))
            elif isinstance(node, cst.StarredElement):
                targets.append(node.value)

    def assign(self, node: cst.Assign, start: int, _end: int) -> None:
        scope = self._scope_at(start)
        for target in node.targets:
            self._store(target.target, scope)

    def target(self, node: Any, start: int, _end: int) -> None:
        """Bind the target of `x += 1` and of `for x in y`, also in a comprehension."""
        self._store(node.target, self._scope_at(start))

    def name(self, node: Any, start: int, _end: int) -> None:
        """Bind the name in `with a as x`, `except A as x`, `case x`, `type x = a`, `def f[x]()`."""
        self._store(node.name, self._scope_at(start))

    def loop(self, node: Any, start: int, end: int) -> None:
        if isinstance(node, cst.For):
            self.target(node, start, end)
        if self._comments.present:
            self._comments.add_loop(node, self._scope_at(start).definition.span or NO_SPAN)

    def rest(self, node: cst.MatchMapping, start: int, _end: int) -> None:
        self._store(node.rest, self._scope_at(start))

    def walrus(self, node: cst.NamedExpr, start: int, _end: int) -> None:
        self._store(node.target, self._scope_at(start).without_comprehensions)

    def delete(self, node: cst.Del, start: int, _end: int) -> None:
        self._store(node.target, self._scope_at(start), "del")

    def annotated(self, node: cst.AnnAssign, start: int, _end: int) -> None:
        scope = self._scope_at(start)
        self._store(node.target, scope)
        role, name, span = annotation_target(node.target, self._spans)
        self._annotation(scope.definition.span or NO_SPAN, role, name, span, node.annotation)

    def declare(self, node: Any, start: int, _end: int) -> None:
        scope = self._scope_at(start)
        for item in node.names:
            self._store(item.name, scope, "declare")
            (scope.globals if isinstance(node, cst.Global) else scope.nonlocals).add(
                normalize_name(item.name.value)
            )

    def type_alias(self, node: cst.TypeAlias, start: int, end: int) -> None:
        outer = self._scope_at(start)
        self._store(node.name, outer)
        if node.type_parameters:
            self._upcoming.append((self._span(node.type_parameters)[0], end, NameScope("types", outer)))

    # Comments.

    def comment(self, node: cst.Comment, start: int, end: int) -> None:
        self.rows["comments"].append((node.value, start, end))

    def line(self, node: cst.SimpleStatementLine, start: int, _end: int) -> None:
        if self._comments.present:
            self._comments.add_line(node, self._scope_at(start).definition.span or NO_SPAN)


HANDLERS: dict[type, Callable[[LibcstFacts, Any, int, int], None]] = {
    cst.Call: LibcstFacts.call,
    cst.Comment: LibcstFacts.comment,
    cst.SimpleStatementLine: LibcstFacts.line,
    cst.Assign: LibcstFacts.assign,
    cst.AnnAssign: LibcstFacts.annotated,
    cst.AugAssign: LibcstFacts.target,
    cst.NamedExpr: LibcstFacts.walrus,
    cst.Del: LibcstFacts.delete,
    cst.Global: LibcstFacts.declare,
    cst.Nonlocal: LibcstFacts.declare,
    cst.For: LibcstFacts.loop,
    cst.With: LibcstFacts.loop,
    cst.AsName: LibcstFacts.name,
    cst.FunctionDef: LibcstFacts.function,
    cst.ClassDef: LibcstFacts.class_,
    cst.Lambda: LibcstFacts.lambda_,
    cst.ListComp: LibcstFacts.comprehension,
    cst.SetComp: LibcstFacts.comprehension,
    cst.DictComp: LibcstFacts.comprehension,
    cst.StarredDictComp: LibcstFacts.comprehension,
    cst.GeneratorExp: LibcstFacts.comprehension,
    cst.CompFor: LibcstFacts.target,
    cst.Import: LibcstFacts.import_,
    cst.ImportFrom: LibcstFacts.import_from,
    cst.LazyImport: LibcstFacts.import_,
    cst.LazyImportFrom: LibcstFacts.import_from,
    cst.MatchAs: LibcstFacts.name,
    cst.MatchStar: LibcstFacts.name,
    cst.MatchMapping: LibcstFacts.rest,
    cst.TypeAlias: LibcstFacts.type_alias,
    cst.TypeVar: LibcstFacts.name,
    cst.TypeVarTuple: LibcstFacts.name,
    cst.ParamSpec: LibcstFacts.name,
}
HANDLERS.update([(LIGHT[kind], handler) for kind, handler in HANDLERS.items() if kind in LIGHT])
