"""Declare the layout of each LibCST node: its children, its whitespace and its own tokens, in source order.

A layout converts a node to a tuple of pieces. A string is text in the source, a node is expanded further,
`None` and LibCST's `MaybeSentinel.DEFAULT` are empty. So `f(x)`, a `Call`, has the pieces

    (n.func, n.whitespace_after_func, "(", n.whitespace_before_args, *n.args, ")")

Three tables, by how the span of a node is computed from its pieces:

| table | span | the rest |
|---|---|---|
| `EXPRESSIONS` | all pieces | parentheses around it (`lpar`, `rpar`) |
| `STATEMENTS`, the small ones | all pieces | the semicolon after it |
| `OTHERS` | between `BEGIN, n` and an end, if it has one | lines before it, commas after it |

Identifiers that are not uses of a name are given as text, not as `Name` nodes: attributes, keywords,
parameters and names in an import. `libcst.spans` expands the layouts and checks each text against the source,
so a wrong layout is detected by the first file that has the node.

Tests: `tests/unit/extract/test_libcst_spans.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, TypeAlias

import libcst as cst

from codeanatomy.extract.libcst.light_tree import LIGHT

Layout: TypeAlias = Callable[[Any], tuple[object, ...]]


class Mark(Enum):
    """Markers in a layout; `BEGIN`, `BLOCK` and `INDENT` apply to the piece that follows."""

    BEGIN = "the span of the next piece, a node, begins here"
    END = "the innermost open span ends here"
    BLOCK = "the span of the next piece, a block, begins with its first statement"
    LAST = "the innermost open span ends where the last small statement ended"
    MARGIN = "white space in the source, mainly the indentation of a statement"
    PADDING = "the indentation of the block"
    INDENT = "the next piece is added to the indentation"
    DEDENT = "the last addition to the indentation ends"


BEGIN, END, BLOCK, LAST = Mark.BEGIN, Mark.END, Mark.BLOCK, Mark.LAST
MARGIN, PADDING, INDENT, DEDENT = Mark.MARGIN, Mark.PADDING, Mark.INDENT, Mark.DEDENT


class Elif:
    """An `If` in the `orelse` of another."""

    __slots__ = ("node",)

    def __init__(self, node: cst.If) -> None:
        self.node = node


def dotted(name: cst.BaseExpression | None) -> tuple[object, ...]:
    """Return the pieces of a dotted name in an import, none of which is a use of a name."""
    pieces: list[object] = []
    while isinstance(name, cst.Attribute):
        pieces += (name.attr.value, name.dot)
        name = name.value
    if isinstance(name, cst.Name):
        pieces.append(name.value)
    return tuple(reversed(pieces))


def _annotation(sign: str, node: cst.Annotation | None) -> tuple[object, ...]:
    if node is None:
        return ()
    return (node.whitespace_before_indicator, sign, node.whitespace_after_indicator, node.annotation)


def _if(n: cst.If) -> tuple[object, ...]:
    orelse = Elif(n.orelse) if isinstance(n.orelse, cst.If) else n.orelse
    return (n.whitespace_before_test, n.test, n.whitespace_after_test, ":", n.body, orelse)


def _try(n: Any) -> tuple[object, ...]:
    after = (*n.handlers, n.orelse, n.finalbody)
    return (*n.leading_lines, MARGIN, "try", n.whitespace_before_colon, ":", n.body, *after)


def _except(n: Any, *star: object) -> tuple[object, ...]:
    head = (*n.leading_lines, MARGIN, "except", n.whitespace_after_except, *star, n.type, n.name)
    # LibCST loses the white space between a type and the colon.
    return (*head, MARGIN, ":", n.body)


def _function(n: cst.FunctionDef) -> tuple[object, ...]:
    lead = (*n.leading_lines, *n.decorators, *n.lines_after_decorators, MARGIN, BEGIN, n, n.asynchronous)
    name = ("def", n.whitespace_after_def, n.name, n.whitespace_after_name)
    types = (n.type_parameters, n.whitespace_after_type_parameters)
    params = ("(", n.whitespace_before_params, n.params, ")", *_annotation("->", n.returns))
    return (*lead, *name, *types, *params, n.whitespace_before_colon, ":", n.body, LAST)


def _class(n: cst.ClassDef) -> tuple[object, ...]:
    lead = (*n.leading_lines, *n.decorators, *n.lines_after_decorators, MARGIN, BEGIN, n)
    name = ("class", n.whitespace_after_class, n.name, n.whitespace_after_name)
    types = (n.type_parameters, n.whitespace_after_type_parameters)
    bases = (n.lpar, *n.bases, *n.keywords, n.rpar)
    return (*lead, *name, *types, *bases, n.whitespace_before_colon, ":", n.body, LAST)


def _for(n: cst.For) -> tuple[object, ...]:
    lead = (*n.leading_lines, MARGIN, BEGIN, n, n.asynchronous, "for", n.whitespace_after_for, n.target)
    head = (n.whitespace_before_in, "in", n.whitespace_after_in, n.iter, n.whitespace_before_colon, ":")
    return (*lead, *head, n.body, n.orelse, LAST)


def _while(n: cst.While) -> tuple[object, ...]:
    lead = (*n.leading_lines, MARGIN, "while", n.whitespace_after_while, n.test)
    return (*lead, n.whitespace_before_colon, ":", n.body, n.orelse)


def _with(n: cst.With) -> tuple[object, ...]:
    lead = (*n.leading_lines, MARGIN, BEGIN, n, n.asynchronous, "with", n.whitespace_after_with)
    return (*lead, n.lpar, *n.items, n.rpar, n.whitespace_before_colon, ":", n.body, LAST)


def _match(n: cst.Match) -> tuple[object, ...]:
    lead = (*n.leading_lines, MARGIN, "match", n.whitespace_after_match, n.subject)
    head = (n.whitespace_before_colon, ":", n.whitespace_after_colon)
    return (*lead, *head, INDENT, n.indent, *n.cases, *n.footer, DEDENT)


def _case(n: cst.MatchCase) -> tuple[object, ...]:
    lead = (*n.leading_lines, MARGIN, "case", n.whitespace_after_case, n.pattern, n.whitespace_before_if)
    guard = (n.guard and "if", n.whitespace_after_if, n.guard)
    return (*lead, *guard, n.whitespace_before_colon, ":", n.body)


def _comp_for(n: cst.CompFor) -> tuple[object, ...]:
    lead = (n.whitespace_before, BEGIN, n, n.asynchronous, "for", n.whitespace_after_for, n.target)
    source = (n.whitespace_before_in, "in", n.whitespace_after_in, n.iter)
    return (*lead, *source, *n.ifs, n.inner_for_in, END)


def _param(n: cst.Param) -> tuple[object, ...]:
    """The span of a parameter is that of its name."""
    name = (n.star, n.whitespace_after_star, BEGIN, n, n.name.value, END)
    return (*name, *_annotation(":", n.annotation), n.equal, n.default, n.comma, n.whitespace_after_param)


def _arg(n: cst.Arg) -> tuple[object, ...]:
    keyword = n.keyword and n.keyword.value
    lead = (n.star, n.whitespace_after_star, keyword, n.equal)
    return (*lead, n.value, n.comma, n.whitespace_after_arg)


def _alias(n: cst.ImportAlias) -> tuple[object, ...]:
    asname = n.asname
    if asname is None:
        return (BEGIN, n, *dotted(n.name), END, n.comma)
    renamed = (asname.whitespace_before_as, "as", asname.whitespace_after_as, *dotted(asname.name))
    return (BEGIN, n, *dotted(n.name), *renamed, END, n.comma)


def _import(n: Any) -> tuple[object, ...]:
    return ("import", n.whitespace_after_import, *n.names)


def _import_from(n: Any) -> tuple[object, ...]:
    names = (n.names,) if isinstance(n.names, cst.ImportStar) else n.names
    module = ("from", n.whitespace_after_from, *n.relative, *dotted(n.module), n.whitespace_before_import)
    return (*module, "import", n.whitespace_after_import, n.lpar, *names, n.rpar)


def _field(n: Any) -> tuple[object, ...]:
    """A replacement field of an f-string."""
    value = ("{", n.whitespace_before_expression, n.expression, n.equal, n.whitespace_after_expression)
    # LibCST forgets space around the conversion, which CPython accepts after it from 3.12 on.
    conversion = () if n.conversion is None else ("!", MARGIN, n.conversion, MARGIN)
    spec = () if n.format_spec is None else (":", *n.format_spec)
    return (*value, *conversion, *spec, "}")


def _match_as(n: cst.MatchAs) -> tuple[object, ...]:
    pattern = () if n.pattern is None else (n.pattern, n.whitespace_before_as, "as", n.whitespace_after_as)
    return (*pattern, n.name or "_")


def _match_mapping(n: cst.MatchMapping) -> tuple[object, ...]:
    rest = () if n.rest is None else ("**", n.whitespace_before_rest, n.rest, n.trailing_comma)
    return (n.lbrace, *n.elements, *rest, n.rbrace)


def _match_class(n: cst.MatchClass) -> tuple[object, ...]:
    args = (n.whitespace_before_patterns, *n.patterns, *n.kwds, n.whitespace_after_kwds)
    return (n.cls, n.whitespace_after_cls, "(", *args, ")")


def _if_exp(n: cst.IfExp) -> tuple[object, ...]:
    test = (n.whitespace_before_if, "if", n.whitespace_after_if, n.test)
    return (n.body, *test, n.whitespace_before_else, "else", n.whitespace_after_else, n.orelse)


def _dict_comp(n: cst.DictComp) -> tuple[object, ...]:
    item = (n.key, n.whitespace_before_colon, ":", n.whitespace_after_colon, n.value)
    return (n.lbrace, *item, n.for_in, n.rbrace)


def _type_alias(n: cst.TypeAlias) -> tuple[object, ...]:
    types = (n.type_parameters, n.whitespace_after_type_parameters)
    name = ("type", n.whitespace_after_type, n.name, n.whitespace_after_name, *types)
    return (*name, "=", n.whitespace_after_equals, n.value)


def _value(n: Any) -> tuple[object, ...]:
    return (n.value,)


def _binary(n: Any) -> tuple[object, ...]:
    return (n.left, n.operator, n.right)


def _string(n: Any) -> tuple[object, ...]:
    return (n.start, *n.parts, n.end)


EXPRESSIONS: dict[type, Layout] = {
    cst.Name: _value,
    cst.Integer: _value,
    cst.Float: _value,
    cst.Imaginary: _value,
    cst.SimpleString: _value,
    cst.Ellipsis: lambda _: ("...",),
    cst.FormattedString: _string,
    cst.TemplatedString: _string,
    cst.ConcatenatedString: lambda n: (n.left, n.whitespace_between, n.right),
    cst.Comparison: lambda n: (n.left, *n.comparisons),
    cst.UnaryOperation: lambda n: (n.operator, n.expression),
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _binary,
    cst.Attribute: lambda n: (n.value, n.dot, n.attr.value),
    cst.Subscript: lambda n: (n.value, n.whitespace_after_value, n.lbracket, *n.slice, n.rbracket),
    cst.Lambda: lambda n: ("lambda", n.whitespace_after_lambda, n.params, n.colon, n.body),
    cst.Call: lambda n: (n.func, n.whitespace_after_func, "(", n.whitespace_before_args, *n.args, ")"),
    cst.Await: lambda n: ("await", n.whitespace_after_await, n.expression),
    cst.IfExp: _if_exp,
    cst.Yield: lambda n: ("yield", n.whitespace_after_yield, n.value),
    cst.Tuple: lambda n: tuple(n.elements),
    cst.List: lambda n: (n.lbracket, *n.elements, n.rbracket),
    cst.Set: lambda n: (n.lbrace, *n.elements, n.rbrace),
    cst.Dict: lambda n: (n.lbrace, *n.elements, n.rbrace),
    cst.GeneratorExp: lambda n: (n.elt, n.for_in),
    cst.ListComp: lambda n: (n.lbracket, n.elt, n.for_in, n.rbracket),
    cst.SetComp: lambda n: (n.lbrace, n.elt, n.for_in, n.rbrace),
    cst.DictComp: _dict_comp,
    cst.StarredDictComp: lambda n: (n.lbrace, "**", n.whitespace_before_value, n.value, n.for_in, n.rbrace),
    cst.NamedExpr: lambda n: (n.target, n.whitespace_before_walrus, ":=", n.whitespace_after_walrus, n.value),
    # Patterns have parentheses too.
    cst.MatchList: lambda n: (n.lbracket, *n.patterns, n.rbracket),
    cst.MatchTuple: lambda n: tuple(n.patterns),
    cst.MatchMapping: _match_mapping,
    cst.MatchClass: _match_class,
    cst.MatchAs: _match_as,
    cst.MatchOr: lambda n: tuple(n.patterns),
}

STATEMENTS: dict[type, Layout] = {
    cst.Pass: lambda _: ("pass",),
    cst.Break: lambda _: ("break",),
    cst.Continue: lambda _: ("continue",),
    cst.Expr: _value,
    cst.Del: lambda n: ("del", n.whitespace_after_del, n.target),
    cst.Return: lambda n: ("return", n.whitespace_after_return, n.value),
    cst.Raise: lambda n: ("raise", n.whitespace_after_raise, n.exc, n.cause),
    cst.Assert: lambda n: ("assert", n.whitespace_after_assert, n.test, n.comma, n.msg),
    cst.Assign: lambda n: (*n.targets, n.value),
    cst.AnnAssign: lambda n: (n.target, *_annotation(":", n.annotation), n.equal, n.value),
    cst.AugAssign: lambda n: (n.target, n.operator, n.value),
    cst.Import: _import,
    cst.ImportFrom: _import_from,
    cst.LazyImport: lambda n: ("lazy", n.whitespace_after_lazy, *_import(n)),
    cst.LazyImportFrom: lambda n: ("lazy", n.whitespace_after_lazy, *_import_from(n)),
    cst.Global: lambda n: ("global", n.whitespace_after_global, *n.names),
    cst.Nonlocal: lambda n: ("nonlocal", n.whitespace_after_nonlocal, *n.names),
    cst.TypeAlias: _type_alias,
}

OTHERS: dict[type, Layout] = {
    cst.Module: lambda n: (*n.header, *n.body, *n.footer),
    # Whitespace.
    cst.TrailingWhitespace: lambda n: (n.whitespace, n.comment, n.newline),
    cst.EmptyLine: lambda n: (PADDING if n.indent else None, n.whitespace, n.comment, n.newline),
    cst.ParenthesizedWhitespace: lambda n: (
        (n.first_line, *n.empty_lines, PADDING if n.indent else None, n.last_line)
    ),
    # Punctuation.
    cst.LeftParen: lambda n: ("(", n.whitespace_after),
    cst.RightParen: lambda n: (n.whitespace_before, ")"),
    cst.LeftSquareBracket: lambda n: ("[", n.whitespace_after),
    cst.RightSquareBracket: lambda n: (n.whitespace_before, "]"),
    cst.LeftCurlyBrace: lambda n: ("{", n.whitespace_after),
    cst.RightCurlyBrace: lambda n: (n.whitespace_before, "}"),
    cst.Asynchronous: lambda n: ("async", n.whitespace_after),
    cst.NotEqual: lambda n: (n.whitespace_before, n.value, n.whitespace_after),
    cst.NotIn: lambda n: (n.whitespace_before, "not", n.whitespace_between, "in", n.whitespace_after),
    cst.IsNot: lambda n: (n.whitespace_before, "is", n.whitespace_between, "not", n.whitespace_after),
    # Parts of expressions.
    cst.FormattedStringText: _value,
    cst.TemplatedStringText: _value,
    cst.FormattedStringExpression: _field,
    cst.TemplatedStringExpression: _field,
    cst.ComparisonTarget: lambda n: (n.operator, n.comparator),
    cst.SubscriptElement: lambda n: (n.slice, n.comma),
    cst.Index: lambda n: (n.star, n.whitespace_after_star, n.value),
    cst.Slice: lambda n: (n.lower, n.first_colon, n.upper, n.second_colon, n.step),
    cst.Parameters: lambda n: (
        (*n.posonly_params, n.posonly_ind, *n.params, n.star_arg, *n.kwonly_params, n.star_kwarg)
    ),
    cst.Param: _param,
    cst.ParamStar: lambda n: ("*", n.comma),
    cst.ParamSlash: lambda n: ("/", n.whitespace_after, n.comma),
    cst.Arg: _arg,
    cst.From: lambda n: (n.whitespace_before_from, "from", n.whitespace_after_from, n.item),
    cst.Element: lambda n: (n.value, n.comma),
    cst.DictElement: lambda n: (
        (n.key, n.whitespace_before_colon, ":", n.whitespace_after_colon, n.value, n.comma)
    ),
    cst.StarredElement: lambda n: (
        (*n.lpar, BEGIN, n, "*", n.whitespace_before_value, n.value, END, *n.rpar, n.comma)
    ),
    cst.StarredDictElement: lambda n: ("**", n.whitespace_before_value, n.value, n.comma),
    cst.CompFor: _comp_for,
    cst.CompIf: lambda n: (n.whitespace_before, "if", n.whitespace_before_test, n.test),
    # Parts of statements.
    cst.AssignTarget: lambda n: (n.target, n.whitespace_before_equal, "=", n.whitespace_after_equal),
    cst.AsName: lambda n: (BEGIN, n, n.whitespace_before_as, "as", n.whitespace_after_as, n.name, END),
    cst.WithItem: lambda n: (n.item, n.asname, n.comma),
    cst.NameItem: lambda n: (n.name, n.comma),
    cst.ImportAlias: _alias,
    cst.ImportStar: lambda n: (BEGIN, n, "*", END),
    cst.Decorator: lambda n: (
        (*n.leading_lines, MARGIN, "@", n.whitespace_after_at, n.decorator, n.trailing_whitespace)
    ),
    cst.TypeParameters: lambda n: (BEGIN, n, n.lbracket, *n.params, n.rbracket, END),
    cst.TypeParam: lambda n: (n.param, n.equal, n.star, n.whitespace_after_star, n.default, n.comma),
    cst.TypeVar: lambda n: (BEGIN, n, n.name, n.colon, n.bound, END),
    cst.TypeVarTuple: lambda n: (BEGIN, n, "*", n.whitespace_after_star, n.name, END),
    cst.ParamSpec: lambda n: (BEGIN, n, "**", n.whitespace_after_star, n.name, END),
    # Lines and blocks.
    cst.SimpleStatementLine: lambda n: (
        (*n.leading_lines, MARGIN, BEGIN, n, *n.body, LAST, n.trailing_whitespace)
    ),
    cst.SimpleStatementSuite: lambda n: (
        (n.leading_whitespace, BEGIN, n, *n.body, LAST, n.trailing_whitespace)
    ),
    cst.IndentedBlock: lambda n: (n.header, INDENT, n.indent, BLOCK, n, *n.body, LAST, *n.footer, DEDENT),
    # Compound statements.
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
    cst.For: _for,
    cst.With: _with,
    cst.While: _while,
    cst.If: lambda n: (*n.leading_lines, MARGIN, "if", *_if(n)),
    Elif: lambda n: (*n.node.leading_lines, MARGIN, "elif", *_if(n.node)),
    cst.Else: lambda n: (*n.leading_lines, MARGIN, "else", n.whitespace_before_colon, ":", n.body),
    cst.Try: _try,
    cst.TryStar: _try,
    cst.ExceptHandler: _except,
    cst.ExceptStarHandler: lambda n: _except(n, "*", n.whitespace_after_star),
    cst.Finally: lambda n: (*n.leading_lines, MARGIN, "finally", n.whitespace_before_colon, ":", n.body),
    cst.Match: _match,
    cst.MatchCase: _case,
    # Parts of patterns.
    cst.MatchValue: _value,
    cst.MatchSingleton: _value,
    cst.MatchSequenceElement: lambda n: (n.value, n.comma),
    cst.MatchStar: lambda n: (BEGIN, n, "*", n.whitespace_before_name, n.name or "_", END, n.comma),
    cst.MatchMappingElement: lambda n: (
        (n.key, n.whitespace_before_colon, ":", n.whitespace_after_colon, n.pattern, n.comma)
    ),
    cst.MatchKeywordElement: lambda n: (
        (n.key.value, n.whitespace_before_equal, "=", n.whitespace_after_equal, n.pattern, n.comma)
    ),
    cst.MatchOrElement: lambda n: (n.pattern, n.separator),
}


def _operator(kind: type[cst.CSTNode]) -> Layout:
    """Return the layout of an operator that is one token, which LibCST generates."""
    token = cst.Module([]).code_for_node(kind()).strip()
    if issubclass(kind, cst.BaseUnaryOp):
        return lambda n: (token, n.whitespace_after)
    return lambda n: (n.whitespace_before, token, n.whitespace_after)


def _operators() -> Iterator[type[cst.CSTNode]]:
    yield from (cst.Comma, cst.Semicolon, cst.Colon, cst.Dot, cst.AssignEqual)
    bases = (cst.BaseUnaryOp, cst.BaseBinaryOp, cst.BaseBooleanOp, cst.BaseCompOp, cst.BaseAugOp)
    for kind in vars(cst).values():
        if isinstance(kind, type) and issubclass(kind, bases) and kind not in {*bases, *OTHERS}:
            yield kind


OTHERS.update([(kind, _operator(kind)) for kind in _operators()])
for _table in (EXPRESSIONS, STATEMENTS, OTHERS):
    _table.update([(LIGHT[kind], layout) for kind, layout in _table.items() if kind in LIGHT])
