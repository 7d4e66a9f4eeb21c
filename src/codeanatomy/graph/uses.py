"""Facts about what a file uses: names, attributes, calls, arguments, constants; and its syntax tree.

    a.b(1, key=c)      names a, c; attribute b; one call with two arguments; literal 1

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from typing import Any

from codeanatomy.graph.context import Context
from codeanatomy.graph.definitions import TEXT_CHARS
from codeanatomy.graph.file_view import SPAN, Columns, columns_of, each

STARS = {"*": "star", "**": "double_star"}
REF = ("node_id", "name", "subkind", *SPAN, "ast_id")
REF_FIELDS = ("kind", "text", "context", "expr_bstart", "expr_bend", *SPAN)
# Nodes that are nothing but a name.
NAMING = frozenset({"Name", "MatchAs"})
WORDS = {"True": "bool", "False": "bool", "None": "NoneType", "Ellipsis": "ellipsis", "...": "ellipsis"}


def names(context: Context) -> Columns:
    """Names, where they are read, bound, deleted or declared."""
    rows = [
        (
            context.id_at("NAME_REF", start, end),
            text,
            how,
            start,
            end,
            line,
            context.syntax.first(start, end, NAMING),
        )
        for kind, text, how, _, _, start, end, line in each(context.libcst("refs"), *REF_FIELDS)
        if kind == "name"
    ]
    return context.with_askers("NAME_REF", rows, *REF)


def attributes(context: Context) -> Columns:
    """Attributes, by their identifiers."""
    rows = [
        (
            context.id_at("ATTRIBUTE_REF", start, end),
            text,
            how,
            start,
            end,
            line,
            context.syntax.first(first, last, ("Attribute",)),
        )
        for kind, text, how, first, last, start, end, line in each(context.libcst("refs"), *REF_FIELDS)
        if kind == "attribute"
    ]
    return context.with_askers("ATTRIBUTE_REF", rows, *REF)


def calls(context: Context) -> Columns:
    """Call expressions."""
    rows = [
        (
            context.id_at("CALLSITE", start, end),
            dotted,
            shape,
            start,
            end,
            line,
            context.syntax.first(start, end, ("Call",)),
        )
        for start, end, shape, dotted, line in each(
            context.libcst("callsites"), "call_bstart", "call_bend", "shape", "dotted", "line"
        )
    ]
    return context.with_askers("CALLSITE", rows, *REF)


def arguments(context: Context) -> Columns:
    """Arguments, by the call they are given to."""
    rows = []
    generators = _bare_generators(context)
    for call_start, call_end, index, keyword, star, *place in each(
        context.libcst("call_args"), "call_bstart", "call_bend", "index", "keyword", "star", *SPAN
    ):
        subkind = STARS.get(star) or ("keyword" if keyword else "positional")
        start, end, line = generators.get((call_start, call_end), place)
        node = _argument_node(context, start, end)
        found = context.id_at("ARGUMENT", start, end)
        call = context.id_at("CALLSITE", call_start, call_end)
        rows.append((found, keyword, subkind, start, end, line, node, call, index))
    return columns_of(rows, *REF, "call_id", "index")


def _bare_generators(context: Context) -> dict[tuple[Any, Any], list[Any]]:
    """Of `f(x for x in y)` the place of the generator, by that of the call: the parentheses are of both."""
    syntax, found = context.syntax, {}
    for node, kind in enumerate(syntax.kind):
        call = syntax.parent[node]
        if kind != "GeneratorExp" or syntax.slot[node] != "args" or call is None:
            continue
        if syntax.bend[node] == syntax.bend[call]:
            place = [syntax.bstart[node], syntax.bend[node], syntax.line[node]]
            found[syntax.bstart[call], syntax.bend[call]] = place
    return found


def _argument_node(context: Context, start: int, end: int) -> int | None:
    syntax = context.syntax
    found = syntax.at(start, end)
    given = (node for node in found if syntax.slot[node] in ("args", "value"))
    return next(given, found[0] if found else None)


def literals(context: Context) -> Columns:
    """Constants; texts inside of f-strings are not constants of their own."""
    syntax, rows = context.syntax, []
    for node, (kind, start) in enumerate(zip(syntax.kind, syntax.bstart, strict=True)):
        parent = syntax.parent[node]
        if kind != "Constant" or start is None or parent is None or syntax.kind[parent] == "JoinedStr":
            continue
        end, value = syntax.bend[node], syntax.value[node]
        found = context.id_at("LITERAL", start, end)
        name = None if value is None else value[:TEXT_CHARS]
        rows.append((found, name, constant_type(value), start, end, syntax.line[node], node))
    return columns_of(rows, *REF)


def constant_type(value: str | None) -> str | None:
    """The type of a constant by the way Python spells it.

    >>> [constant_type(text) for text in ("'a'", "b'a'", "1", "1.5", "2j", "1e+16", "inf", "None", "...")]
    ['str', 'bytes', 'int', 'float', 'complex', 'float', 'float', 'NoneType', 'ellipsis']
    """
    if not value:
        return None
    if value in WORDS:
        return WORDS[value]
    if value[0] in "'\"":
        return "str"
    if value[:2] in ("b'", 'b"'):
        return "bytes"
    if value.endswith("j"):
        return "complex"
    return "int" if value.isdigit() else "float"


def ast(context: Context) -> Columns:
    """The syntax tree."""
    syntax = context.syntax
    if not len(syntax):
        return {}
    ids = syntax.ids
    return {
        "node_id": ids,
        "parent_id": [None if parent is None else ids[parent] for parent in syntax.parent],
        "subkind": syntax.kind,
        "slot": syntax.slot,
        "idx": syntax.columns["idx"],
        "name": syntax.name,
        "bstart": syntax.bstart,
        "bend": syntax.bend,
        "line": syntax.line,
    }
