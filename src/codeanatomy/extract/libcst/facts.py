"""What a LibCST tree says of a file, gathered from its nodes in source order.

    @cached                    ref cached; decorator cached
    def f(x: int = N):         def f; param x with annotation and default; refs int, N; type expression int
        g(*x)                  callsite g with one argument; refs g, x

Nodes come from `libcst_walk` with their spans, an outer node before what is in it; so a statement can say of
the names below it that they are assigned (`_roles`), and a definition where its scope begins and ends.
Rows are tuples in the order of the catalogue's fields, without the line; in the place of the qualified names
stands a question and its argument, for they are known when all bindings are.

What is a ref: every name and attribute that is read, assigned or deleted, and as `declare` the names in
`global` and `nonlocal`. Not refs are the names of functions, classes and parameters (`defs`, `params`), what
stands in an import (`imports`), keywords of calls and of class patterns, and None, True and False.
Contexts are those of CPython, which are also those of LibCST's `ExpressionContextProvider`, but for captures
of patterns, type parameters and names of `type` statements, which that provider takes for loads.

The scope of a definition is its body. So defaults, decorators, annotations and bases lie in the scope around
it, and `container` and `owner` follow: a lambda that is a default belongs to what the function belongs to.

Tests: `tests/unit/extract/test_libcst_files.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from sys import maxsize
from typing import Any, TypeAlias

import libcst as cst

from codeanatomy.extract.libcst.qualified_names import Scope, ScopeKind, plain
from codeanatomy.extract.libcst.spans import NodeSpans
from codeanatomy.extract.libcst.texts import (
    NOWHERE,
    Span,
    TypeComments,
    annotated,
    docstring_of,
    evaluated,
)

Row: TypeAlias = tuple[Any, ...]

CONSTANTS = frozenset({"None", "True", "False"})
SHAPES = {cst.Name: "name", cst.Attribute: "attribute", cst.Subscript: "subscript", cst.Call: "call"}
STRINGS = (cst.SimpleString, cst.ConcatenatedString)
# Longer chains of attributes are not written out: each of them holds all that are in it.
MAX_PARTS = 64


def dotted(node: Any, most: int = MAX_PARTS) -> str | None:
    """The expression, if it is names joined by dots."""
    parts: list[str] = []
    while node.__class__ is cst.Attribute and len(parts) < most:
        parts.append(node.attr.value)
        node = node.value
    if node.__class__ is not cst.Name:
        return None
    return ".".join((node.value, *parts[::-1])) if parts else node.value


def size(text: str) -> int:
    return len(text.encode())


def _start(row: Row) -> int:
    return row[-2]  # type: ignore[no-any-return]


class Facts:
    """The rows of one file, by column of the catalogue."""

    def __init__(self, utf8: bytes, text: str, module: cst.Module, places: NodeSpans) -> None:
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        self.future_imports: list[str] = []
        self._utf8 = utf8
        self._span = places.span
        self._places = places
        # Contexts of the names and attributes that are not read; empty for what is no ref.
        self._roles: dict[int, str] = {}
        # The scope of this place and its end, those around it, and those that begin later, the next one last.
        self._scope, self._end = Scope(), len(utf8) + 1
        self._around: list[tuple[Scope, int]] = []
        self._later: list[tuple[int, int, Scope]] = []
        self._comments = TypeComments(text, places)
        self._docstring(NOWHERE, "module", module.body)
        self._gather(places)
        if self._comments.rows:
            self.rows["type_exprs"] = sorted([*self.rows["type_exprs"], *self._comments.rows], key=_start)

    def _gather(self, places: NodeSpans) -> None:
        """Names and attributes here, because they are many; other nodes by their handlers."""
        add_ref, context_of = self.rows["refs"].append, self._roles.get
        node: Any
        for node, start, end in zip(places.nodes, places.starts, places.ends, strict=True):
            kind = node.__class__
            if kind is cst.Name:
                context, text = context_of(id(node), "load"), node.value
                if context and text not in CONSTANTS:
                    add_ref((text, "name", context, text, start, end, start, end))
            elif kind is cst.Attribute:
                context, text = context_of(id(node), "load"), node.attr.value
                add_ref((text, "attribute", context, dotted(node), start, end, end - size(text), end))
            elif kind in HANDLERS:
                HANDLERS[kind](self, node, start, end)

    def _text(self, span: tuple[int, int]) -> str:
        return self._utf8[span[0] : span[1]].decode()

    # Scopes.

    def _at(self, start: int) -> Scope:
        """The scope of a node that begins here; nodes come in the order of their beginnings."""
        while start >= self._end:
            self._scope, self._end = self._around.pop()
        while self._later and self._later[-1][0] <= start:
            _, end, scope = self._later.pop()
            if start < end:
                self._enter(scope, end)
        return self._scope

    def _enter(self, scope: Scope, end: int) -> None:
        self._around.append((self._scope, self._end))
        self._scope, self._end = scope, end

    def _scopes(self, kind: ScopeKind, node: Any, name: str | None, span: tuple[int, int]) -> Scope:
        """The scope of a definition, which begins with its body, in one that begins with type parameters."""
        outer = self._at(span[0])
        types = getattr(node, "type_parameters", None)
        inner = Scope(kind, Scope("types", outer) if types else outer, name, span)
        self._later.append((*self._span(node.body), inner))
        if types and inner.parent:
            self._later.append((self._span(types)[0], span[1], inner.parent))
        return inner

    def comprehension(self, node: Any, start: int, end: int) -> None:
        """A scope of its own, except for the first thing iterated over."""
        outer = self._at(start)
        self._enter(Scope("comprehension", outer), end)
        self._later.append((*self._span(node.for_in.iter), outer))

    # Definitions.

    def _definition(self, scope: Scope, node: Any, start: int, end: int) -> None:
        """Rows that functions and classes have in common."""
        outer, name, span = self._at(start), node.name.value, (start, end)
        outer.bind(name)
        self._roles[id(node.name)] = ""
        decorators = []
        for index, decorator in enumerate(node.decorators):
            place = self._span(decorator.decorator)
            decorators.append(self._text(place))
            self.rows["decorators"].append((*span, index, decorators[-1], *place))
        home = outer.definition
        head = (scope.kind, name, getattr(node, "asynchronous", None) is not None)
        spans = (*(home.span or NOWHERE), *span, *self._span(node.name), *self._span(node.body))
        self.rows["defs"].append((*head, home.kind, *spans, (outer.defined, name), decorators))
        self._docstring(span, scope.kind, node.body)

    def function(self, node: cst.FunctionDef, start: int, end: int) -> None:
        scope = self._scopes("function", node, node.name.value, (start, end))
        self._definition(scope, node, start, end)
        self._params(node.params, scope, (start, end))
        if node.returns:
            self._annotation((start, end), "return", None, NOWHERE, node.returns)
        if self._comments.present:
            self._comments.function(node, (start, end))

    def klass(self, node: cst.ClassDef, start: int, end: int) -> None:
        scope = self._scopes("class", node, node.name.value, (start, end))
        self._definition(scope, node, start, end)

    def lambda_(self, node: cst.Lambda, start: int, end: int) -> None:
        scope = self._scopes("lambda", node, None, (start, end))
        home = self._scope.definition
        spans = (*(home.span or NOWHERE), start, end, *NOWHERE, *self._span(node.body))
        self.rows["defs"].append(("lambda", None, False, home.kind, *spans, (scope.resolve, None), []))
        self._params(node.params, scope, (start, end))

    def _params(self, params: cst.Parameters, scope: Scope, owner: tuple[int, int]) -> None:
        kinds = (
            ("positional_only", params.posonly_params),
            ("positional", params.params),
            ("vararg", [params.star_arg]),
            ("keyword_only", params.kwonly_params),
            ("kwarg", [params.star_kwarg]),
        )
        named = [(kind, param) for kind, group in kinds for param in group if isinstance(param, cst.Param)]
        for index, (kind, param) in enumerate(named):
            name, place = param.name.value, self._span(param)
            scope.bind(name)
            default = self._span(param.default) if param.default else NOWHERE
            annotation = NOWHERE
            if param.annotation:
                annotation = self._annotation(owner, "param", name, place, param.annotation)
            self.rows["params"].append((*owner, name, kind, index, *default, *annotation, *place))
            if self._comments.present:
                self._comments.param(param, owner)

    def _docstring(self, owner: Span, kind: str, body: Any) -> None:
        literal = docstring_of(body)
        if literal is not None:
            place = self._span(literal)
            self.rows["docstrings"].append((*owner, kind, evaluated(self._text(place)), *place))

    def _annotation(
        self, owner: Span, role: str, name: str | None, target: Span, node: cst.Annotation
    ) -> tuple[int, int]:
        place = self._span(node.annotation)
        kind = "string_annotation" if isinstance(node.annotation, STRINGS) else "annotation"
        self.rows["type_exprs"].append((*owner, kind, role, name, self._text(place), *target, *place))
        return place

    # Calls.

    def call(self, node: cst.Call, start: int, end: int) -> None:
        callee, name = node.func, dotted(node.func)
        shape = SHAPES.get(callee.__class__, "other")
        question = (self._at(start).resolve, name)
        row = (start, end, *self._span(callee), shape, name, len(node.args), question)
        self.rows["callsites"].append(row)
        add = self.rows["call_args"].append
        for index, arg in enumerate(node.args):
            keyword = arg.keyword.value if arg.keyword else None
            add((start, end, index, keyword, arg.star, *self._span(arg.value)))

    # Imports.

    def import_(self, node: cst.Import, start: int, end: int) -> None:
        scope = self._at(start)
        for index, alias in enumerate(node.names):
            name, asname, place, bound = self._alias(alias)
            if asname:
                scope.bind_import(asname, name)
            else:
                parts = name.split(".")
                for count in range(1, min(len(parts), MAX_PARTS) + 1):
                    prefix = ".".join(parts[:count])
                    scope.bind_import(prefix, prefix)
                bound = (place[0], place[0] + size(parts[0]))
            row = ("import", None, name, asname, index, 0, False, start, end, *place, *bound)
            self.rows["imports"].append(row)

    def import_from(self, node: cst.ImportFrom, start: int, end: int) -> None:
        module, level = dotted(node.module, maxsize) if node.module else None, len(node.relative)
        head, stmt = ("from", module), (start, end)
        if isinstance(node.names, cst.ImportStar):
            place = self._span(node.names)
            self.rows["imports"].append((*head, "*", None, 0, level, True, *stmt, *place, *NOWHERE))
            return
        scope = self._at(start)
        package = "." * level + (f"{module}." if module else "")
        for index, alias in enumerate(node.names):
            name, asname, place, bound = self._alias(alias)
            scope.bind_import(asname or name, f"{package}{name}")
            self.rows["imports"].append((*head, name, asname, index, level, False, *stmt, *place, *bound))
            if package == "__future__.":
                self.future_imports.append(name)

    def _alias(self, alias: cst.ImportAlias) -> tuple[str, str | None, tuple[int, int], tuple[int, int]]:
        """Name, name after `as`, place, and place of the last identifier."""
        name, place = dotted(alias.name, maxsize) or "", self._span(alias)
        asname = dotted(alias.asname.name) if alias.asname else None
        return name, asname, place, (place[1] - size(asname or name), place[1])

    # What binds names.

    def _store(self, target: cst.CSTNode | None, scope: Scope, context: str = "store") -> None:
        """Names and attributes in a target get their context, and names are bound."""
        targets: list[Any] = [target]
        while targets:
            node = targets.pop()
            if isinstance(node, cst.Name | cst.Attribute):
                self._roles[id(node)] = context
                if isinstance(node, cst.Name) and context == "store":
                    scope.bind(node.value)
            elif isinstance(node, cst.Tuple | cst.List):
                targets += (element.value for element in reversed(node.elements))
            elif isinstance(node, cst.StarredElement):
                targets.append(node.value)

    def assign(self, node: cst.Assign, start: int, _end: int) -> None:
        scope = self._at(start)
        for target in node.targets:
            self._store(target.target, scope)

    def target(self, node: Any, start: int, _end: int) -> None:
        """`x += 1`, `for x in y` and, in a comprehension, the same."""
        self._store(node.target, self._at(start))

    def name(self, node: Any, start: int, _end: int) -> None:
        """`with a as x`, `except A as x`, `case x`, `type x = a`, `def f[x]()`."""
        self._store(node.name, self._at(start))

    def loop(self, node: Any, start: int, end: int) -> None:
        if isinstance(node, cst.For):
            self.target(node, start, end)
        if self._comments.present:
            self._comments.loop(node, self._at(start).definition.span or NOWHERE)

    def rest(self, node: cst.MatchMapping, start: int, _end: int) -> None:
        self._store(node.rest, self._at(start))

    def walrus(self, node: cst.NamedExpr, start: int, _end: int) -> None:
        self._store(node.target, self._at(start).without_comprehensions)

    def delete(self, node: cst.Del, start: int, _end: int) -> None:
        self._store(node.target, self._at(start), "del")

    def annotated(self, node: cst.AnnAssign, start: int, _end: int) -> None:
        scope = self._at(start)
        self._store(node.target, scope)
        role, name, place = annotated(node.target, self._places)
        self._annotation(scope.definition.span or NOWHERE, role, name, place, node.annotation)

    def declare(self, node: Any, start: int, _end: int) -> None:
        scope = self._at(start)
        for item in node.names:
            self._store(item.name, scope, "declare")
            (scope.globals if isinstance(node, cst.Global) else scope.nonlocals).add(plain(item.name.value))

    def type_alias(self, node: cst.TypeAlias, start: int, end: int) -> None:
        outer = self._at(start)
        self._store(node.name, outer)
        if node.type_parameters:
            self._later.append((self._span(node.type_parameters)[0], end, Scope("types", outer)))

    # Comments.

    def comment(self, node: cst.Comment, start: int, end: int) -> None:
        self.rows["comments"].append((node.value, start, end))

    def line(self, node: cst.SimpleStatementLine, start: int, _end: int) -> None:
        if self._comments.present:
            self._comments.line(node, self._at(start).definition.span or NOWHERE)


HANDLERS: Mapping[type, Callable[[Facts, Any, int, int], None]] = {
    cst.Call: Facts.call,
    cst.Comment: Facts.comment,
    cst.SimpleStatementLine: Facts.line,
    cst.Assign: Facts.assign,
    cst.AnnAssign: Facts.annotated,
    cst.AugAssign: Facts.target,
    cst.NamedExpr: Facts.walrus,
    cst.Del: Facts.delete,
    cst.Global: Facts.declare,
    cst.Nonlocal: Facts.declare,
    cst.For: Facts.loop,
    cst.With: Facts.loop,
    cst.AsName: Facts.name,
    cst.FunctionDef: Facts.function,
    cst.ClassDef: Facts.klass,
    cst.Lambda: Facts.lambda_,
    cst.ListComp: Facts.comprehension,
    cst.SetComp: Facts.comprehension,
    cst.DictComp: Facts.comprehension,
    cst.StarredDictComp: Facts.comprehension,
    cst.GeneratorExp: Facts.comprehension,
    cst.CompFor: Facts.target,
    cst.Import: Facts.import_,
    cst.ImportFrom: Facts.import_from,
    cst.LazyImport: Facts.import_,
    cst.LazyImportFrom: Facts.import_from,
    cst.MatchAs: Facts.name,
    cst.MatchStar: Facts.name,
    cst.MatchMapping: Facts.rest,
    cst.TypeAlias: Facts.type_alias,
    cst.TypeVar: Facts.name,
    cst.TypeVarTuple: Facts.name,
    cst.ParamSpec: Facts.name,
}
