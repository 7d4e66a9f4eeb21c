"""List facts about the uses in a file: names, attributes, calls, arguments, literals; and its syntax tree.

    a.b(1, key=c)      names a, c; attribute b; one call with two arguments; literal 1

Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.context import Context
from codeanatomy.graph.definitions import TEXT_CHARS
from codeanatomy.graph.reads import SPAN
from codeanatomy.graph.syntax import CALL
from codeanatomy.syntax_tree import constant_type

STARS = {"*": "star", "**": "double_star"}
REF = ("node_id", "name", "subkind", *SPAN, "ast_id")
REF_FIELDS = ("kind", "text", "context", "expr_bstart", "expr_bend", *SPAN)
# Syntax nodes that are nothing but a name.
NAME_NODES = frozenset({"Name", "MatchAs"})
ARGUMENT_SLOTS = frozenset({"args", "value"})
ATTRIBUTES = frozenset({"Attribute"})


def names(context: Context) -> Columns:
    """List names where they are read, bound, deleted or declared."""
    id_at, nodes = context.id_at, context.syntax.firsts(NAME_NODES)
    rows = [
        (id_at("NAME_REF", start, end), text, access, start, end, line, nodes.get((start, end)))
        for kind, text, access, _, _, start, end, line in iter_rows(context.libcst("refs"), *REF_FIELDS)
        if kind == "name"
    ]
    return context.with_relation_sources("NAME_REF", rows, *REF)


def attributes(context: Context) -> Columns:
    """List attributes, at the span of their identifiers."""
    id_at, nodes = context.id_at, context.syntax.firsts(ATTRIBUTES)
    rows = [
        (id_at("ATTRIBUTE_REF", start, end), text, access, start, end, line, nodes.get((first, last)))
        for kind, text, access, first, last, start, end, line in iter_rows(
            context.libcst("refs"), *REF_FIELDS
        )
        if kind == "attribute"
    ]
    return context.with_relation_sources("ATTRIBUTE_REF", rows, *REF)


def calls(context: Context) -> Columns:
    """List call expressions."""
    id_at, nodes = context.id_at, context.syntax.firsts(CALL)
    rows = [
        (id_at("CALLSITE", start, end), dotted, shape, start, end, line, nodes.get((start, end)))
        for start, end, shape, dotted, line in iter_rows(
            context.libcst("callsites"), "call_bstart", "call_bend", "shape", "dotted", "line"
        )
    ]
    return context.with_relation_sources("CALLSITE", rows, *REF)


def arguments(context: Context) -> Columns:
    """List arguments with the call they are passed to."""
    rows = []
    generators = _bare_generators(context)
    for call_start, call_end, index, keyword, star, *span in iter_rows(
        context.libcst("call_args"), "call_bstart", "call_bend", "index", "keyword", "star", *SPAN
    ):
        subkind = STARS.get(star) or ("keyword" if keyword else "positional")
        start, end, line = generators.get((call_start, call_end), span)
        node = _argument_node(context, start, end)
        argument = context.id_at("ARGUMENT", start, end)
        call = context.id_at("CALLSITE", call_start, call_end)
        rows.append((argument, keyword, subkind, start, end, line, node, call, index))
    return columns_of(rows, *REF, "call_id", "index")


def _bare_generators(context: Context) -> dict[tuple[Any, Any], list[Any]]:
    """Return the spans of generators as in `f(x for x in y)` by call: the parentheses belong to both."""
    syntax, generators = context.syntax, {}
    for node in syntax.of_kinds("GeneratorExp"):
        call = syntax.parent[node]
        if syntax.slot[node] != "args" or call is None:
            continue
        if syntax.bend[node] == syntax.bend[call]:
            span = [syntax.bstart[node], syntax.bend[node], syntax.line[node]]
            generators[syntax.bstart[call], syntax.bend[call]] = span
    return generators


def _argument_node(context: Context, start: int, end: int) -> int | None:
    node = context.syntax.firsts_in(ARGUMENT_SLOTS).get((start, end))
    return next(iter(context.syntax.at(start, end)), None) if node is None else node


def literals(context: Context) -> Columns:
    """List constants; texts inside of f-strings are not constants of their own."""
    syntax, rows = context.syntax, []
    for node in syntax.of_kinds("Constant"):
        start, parent = syntax.bstart[node], syntax.parent[node]
        if start is None or parent is None or syntax.kind[parent] == "JoinedStr":
            continue
        end, value = syntax.bend[node], syntax.value[node]
        name = None if value is None else value[:TEXT_CHARS]
        rows.append((name, constant_type(value), start, end, syntax.line[node], node))
    columns = columns_of(rows, *REF[1:])
    ids = context.ids.numbered("LITERAL", list(zip(columns["bstart"], columns["bend"], strict=True)))
    return {"node_id": ids, **columns}


def ast(context: Context) -> Columns:
    """List the nodes of the syntax tree."""
    syntax = context.syntax
    if not len(syntax):
        return {}
    # As Arrow what the nodes and the edges between them have in common.
    spans = zip(SPAN, (syntax.bstart, syntax.bend, syntax.line), strict=True)
    return {
        "node_id": syntax.ids,
        "parent_id": syntax.ids_of(syntax.parent),
        "subkind": syntax.kind,
        "slot": pa.array(syntax.slot, pa.string()),
        "idx": pa.array(syntax.columns["idx"], pa.int32()),
        "name": syntax.name,
        **{name: pa.array(cells, pa.int64()) for name, cells in spans},
    }
