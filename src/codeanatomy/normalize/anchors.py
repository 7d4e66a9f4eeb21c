"""Find where a variable is named in the source: the syntax node behind a definition or use.

CPython gives every instruction a span, but not always that of the variable: a definition has the span of the
whole `def` statement, an import that of the whole statement, a captured name of a pattern that of its
neighbour, and code that the compiler generates whatever came before. So the span of an event is that of the
syntax node that names the variable there, and null where no node does:

| event | node |
|---|---|
| use, assignment, loop target, del, walrus | Name |
| parameter | arg, its annotation included |
| definition of a function or class | the definition, without decorators |
| import | alias |
| `except E as e` | ExceptHandler |
| capture of a pattern | MatchAs, MatchStar, MatchMapping; MatchOr where the alternatives bind it |
| type parameter | TypeVar, ParamSpec, TypeVarTuple |
| second variable of an instruction of 3.13 | Name on the same line, the one that is evaluated next |
| `e = None; del e` after a handler, `__module__` of a class, `.0` | none |

Names are compared as the compiler mangles them: `__x` in class C is `_C__x`.

Tests: `tests/unit/normalize/test_anchors.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from codeanatomy.file_view import Columns, Row

Span: TypeAlias = tuple[int, int]
Value = TypeVar("Value")
FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef", "Lambda"})
BINDERS = frozenset(
    {
        "Name",
        "FunctionDef",
        "AsyncFunctionDef",
        "ClassDef",
        "ExceptHandler",
        "TypeVar",
        "ParamSpec",
        "TypeVarTuple",
    }
)
CAPTURES = frozenset({"MatchAs", "MatchStar", "MatchMapping"})
PATTERNS = CAPTURES | {"MatchValue", "MatchSingleton", "MatchSequence", "MatchClass", "MatchOr"}
# The kinds of nodes and the fields of `ast_files_v1` that are read.
KINDS = BINDERS | FUNCTIONS | PATTERNS | {"arg"}
AST_LISTS = {
    "nodes": ("kind", "name", "bstart", "bend", "line"),
    "imports": ("name", "asname", "stmt_bstart", "stmt_bend", "bstart", "bend", "line"),
}


class _Pattern(NamedTuple):
    """The whole pattern of a case."""

    span: Span
    # Spans of each captured name, and of the alternatives.
    captures: dict[str, list[Span]]
    alternatives: list[Span]


class Anchors:
    """The spans of all names in a file that variables may be bound or used by."""

    def __init__(self, ast: Row) -> None:
        self.names: dict[Span, list[str]] = defaultdict(list)
        self.parameters: dict[Span, dict[str, Span]] = defaultdict(dict)
        self.imports: dict[Span, dict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
        self.patterns: list[_Pattern] = []
        # Line by first byte of a span, and spans by line, name and whether it is bound.
        self.lines: dict[int, int] = {}
        self.on_line: dict[tuple[int, str, bool], list[Span]] = defaultdict(list)
        if ast.get("nodes") is not None:
            self._read_nodes(ast["nodes"])
        if ast.get("imports") is not None:
            self._read_imports(ast["imports"])

    def _read_nodes(self, nodes: Columns) -> None:
        functions: list[Span] = []
        rows = zip(*(nodes[name] for name in AST_LISTS["nodes"]), strict=True)
        kinds = nodes["kind"]
        for node, (kind, name, start, end, line) in enumerate(rows):
            if start is None or kind not in KINDS:
                continue
            span = start, end
            self.lines[start] = line
            if kind in BINDERS and name is not None:
                self.names[span].append(name)
                # The context of a Name follows it.
                self.on_line[line, name, kind != "Name" or kinds[node + 1] == "Store"].append(span)
            if kind in FUNCTIONS:
                functions.append(span)
            elif kind == "arg":
                while functions and not _inside(span, functions[-1]):
                    functions.pop()
                if functions:
                    self.parameters[functions[-1]][name] = span
            elif kind in PATTERNS:
                self._read_pattern(kind, name, span)

    def _read_pattern(self, kind: str, name: str | None, span: Span) -> None:
        """Add a pattern node; nodes come in preorder, so the parts of a pattern follow it."""
        if not self.patterns or not _inside(span, self.patterns[-1].span):
            self.patterns.append(_Pattern(span, defaultdict(list), []))
        pattern = self.patterns[-1]
        if kind in CAPTURES and name is not None:
            pattern.captures[name].append(span)
        if kind == "MatchOr":
            pattern.alternatives.append(span)

    def _read_imports(self, imports: Columns) -> None:
        rows = zip(*(imports[name] for name in AST_LISTS["imports"]), strict=True)
        for name, asname, stmt_start, stmt_end, start, end, line in rows:
            if start is not None:
                bound = self.imports[stmt_start, stmt_end]
                bound[asname or name.partition(".")[0]].append((start, end))
                self.lines[start] = line

    def parameter(self, function: Span, variable: str) -> Span | None:
        """Return the span of a parameter of the function at a span."""
        return _named(self.parameters.get(function, {}), variable)

    def use(self, span: Span, variable: str) -> Span | None:
        """Return the span of a use or del, given the span of its instruction."""
        names = self.names.get(span)
        if names is None:
            return None
        is_named = variable in names or any(name in names for name in _spellings(variable))
        return span if is_named else None

    def definition(self, span: Span, variable: str, ordinal: int) -> Span | None:
        """Return the span of a store; `ordinal` counts the stores of that variable with the same span."""
        if span in self.imports:
            aliases = _named(self.imports[span], variable)
            return aliases[ordinal % len(aliases)] if aliases else None
        pattern = self._pattern_at(span)
        if pattern is not None:
            return _captured(pattern, variable)
        return self.use(span, variable)

    def fused_definition(self, line: int | None, first: Span, variable: str) -> Span | None:
        """Return the span of the second of two stores, given that of the first: the next one on the line."""
        return min(
            self._others(line, first, variable, True), key=lambda span: abs(span[0] - first[0]), default=None
        )

    def fused_use(self, line: int | None, first: Span, variable: str, consumer: Span | None) -> Span | None:
        """Return the span of the second variable, given those of the first and of the consuming instruction.

        Of several names in the latter it is the next one on the line; in a comprehension, where the target
        may be the first variable, it may be before it.
        """
        others = self._others(line, first, variable, False) or self._others(line, first, variable, True)
        if consumer is not None:
            others = [span for span in others if _inside(span, consumer)] or others
        return next((span for span in others if span[0] >= first[1]), others[0] if others else None)

    def _others(self, line: int | None, first: Span, variable: str, is_bound: bool) -> list[Span]:
        named = (self.on_line.get((line or 0, name, is_bound), ()) for name in _spellings(variable))
        return sorted(span for spans in named for span in spans if span != first)

    def _pattern_at(self, span: Span) -> _Pattern | None:
        before = bisect_right(self.patterns, span[0], key=lambda pattern: pattern.span[0])
        pattern = self.patterns[before - 1] if before else None
        return pattern if pattern is not None and _inside(span, pattern.span) else None


def _captured(pattern: _Pattern, variable: str) -> Span | None:
    spans = _named(pattern.captures, variable)
    if spans is None:
        return None
    if len(spans) == 1:
        return spans[0]
    return _smallest_enclosing(spans, pattern.alternatives)


def _smallest_enclosing(spans: Iterable[Span], outer: Iterable[Span]) -> Span | None:
    inner = list(spans)
    enclosing = [span for span in outer if all(_inside(each, span) for each in inner)]
    return min(enclosing, key=lambda span: span[1] - span[0], default=None)


def _inside(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _named(by_name: Mapping[str, Value], variable: str) -> Value | None:
    return next((by_name[name] for name in _spellings(variable) if name in by_name), None)


def _spellings(variable: str) -> Iterator[str]:
    """Yield the spellings in the source of a compiled name; a class may have underscores in its name.

    >>> [*_spellings("x")], [*_spellings("_C__x")], [*_spellings("_C__x__")]
    (['x'], ['_C__x', '__x'], ['_C__x__'])
    """
    yield variable
    if variable.startswith("_") and not variable.endswith("__"):
        start = variable.find("__", 1)
        while start > 0:
            yield variable[start:]
            start = variable.find("__", start + 1)
