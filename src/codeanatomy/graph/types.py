"""List facts about types: annotations, the types they denote, aliases and type parameters.

    T = TypeVar("T")                   type parameter T
    class Box(Generic[T]):             T is a type parameter of Box
        item: list[T]                  annotation of item; types list[T] and T, its argument
    Pair: TypeAlias = tuple[T, T]      alias Pair

Tests: `tests/unit/graph/test_types.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.context import Context
from codeanatomy.graph.definitions import NAMED, TEXT_CHARS
from codeanatomy.graph.reads import SPAN
from codeanatomy.graph.syntax import CALL

EXPRS = "type_exprs_norm_v1"
NODES = "type_nodes_v1"
TARGETS = {"param": "PARAMETER", "variable": "NAME_REF", "attribute": "ATTRIBUTE_REF"}
MODULES = ("typing", "typing_extensions")
ALIAS = frozenset(f"{module}.TypeAlias" for module in MODULES)
ALIAS_NODES = frozenset({"Name", "Attribute", "Constant"})
TYPE_VARIABLES = ("TypeVar", "ParamSpec", "TypeVarTuple")
TYPE_VARIABLE_CALLS = {f"{module}.{kind}": kind for module in MODULES for kind in TYPE_VARIABLES}
GENERIC = frozenset(f"{module}.{name}" for module in MODULES for name in ("Generic", "Protocol"))


def type_exprs(context: Context) -> Columns:
    """List annotations with their targets."""
    nodes, rows = context.syntax.firsts_in(frozenset({"annotation", "returns"})), []
    for node, role, owner_start, owner_end, name, text, type_id, start, end, line in iter_rows(
        context.file.rows(EXPRS),
        "expr_id",
        "expr_role",
        "owner_bstart",
        "owner_bend",
        "target_name",
        "expr_text",
        "type_id",
        *SPAN,
    ):
        target = _annotation_target(context, role, name, (start, end), (owner_start, owner_end))
        written = nodes.get((start, end))
        rows.append((node, text[:TEXT_CHARS], None, start, end, line, written, role, target, type_id))
    return columns_of(rows, *NAMED, "subkind", "target_id", "type_id")


def _annotation_target(
    context: Context, role: str, name: str | None, span: tuple[Any, Any], owner: tuple[Any, Any]
) -> str | None:
    """Return the target of an annotation: a name or parameter by span, a function, or a parameter by name."""
    if role in ("return", "signature"):
        return context.owner_id(*owner)
    target = context.cached(_targets).get((*span, role))
    if target is not None:
        return context.id_at(TARGETS[role], *target)
    # The type is in a comment for the whole signature.
    return context.cached(_parameters).get((*owner, name)) if role == "param" else None


def _parameters(context: Context) -> dict[tuple[Any, Any, str | None], str]:
    """Return the parameters by span of the function and name."""
    columns = ("owner_bstart", "owner_bend", "name", "bstart", "bend")
    return {
        (first, last, name): context.id_at("PARAMETER", start, end)
        for first, last, name, start, end in iter_rows(context.libcst("params"), *columns)
    }


def _targets(context: Context) -> dict[tuple[int, int, str], tuple[int, int]]:
    """Return the spans of annotated targets, by span and role of the annotation."""
    annotations = context.libcst("type_exprs")
    columns = ("bstart", "bend", "role", "target_bstart", "target_bend")
    return {
        (start, end, role): (first, last)
        for start, end, role, first, last in iter_rows(annotations, *columns)
        if first is not None
    }


def types(context: Context) -> Columns:
    """List types and their parts; they belong to the repository."""
    by_id: dict[str, tuple[Any, ...]] = {}
    for node, kind, name, text in iter_rows(
        context.file.rows(NODES), "type_id", "type_kind", "type_name", "type_repr"
    ):
        by_id[node] = (node, text, name or None, kind)
    return columns_of(list(by_id.values()), "node_id", "name", "qualname", "subkind")


def type_arguments(context: Context) -> Columns:
    """List types with their arguments; they belong to the repository."""
    rows = context.file.rows(NODES)
    columns = ("expr_id", "node_index", "type_id", "type_kind")
    by_index = {(expr, index): (node, kind) for expr, index, node, kind in iter_rows(rows, *columns)}
    arguments: dict[tuple[str, str, int | None], None] = {}
    for expr, parent, ordinal, node in iter_rows(rows, "expr_id", "parent_index", "arg_index", "type_id"):
        if parent is not None:
            outer, kind = by_index[expr, parent]
            # The members of a union have no order: `int | str` is `str | int`.
            arguments[outer, node, None if kind == "union" else ordinal] = None
    return columns_of(list(arguments), "src_id", "dst_id", "ordinal")


def type_aliases(context: Context) -> Columns:
    """List type aliases: `type` statements, and assignments annotated as an alias."""
    syntax, rows = context.syntax, []
    for node in syntax.of_kinds("TypeAlias"):
        name = next((syntax.name[inner] for inner in syntax.children(node, "name")), None)
        rows.append(_alias(context, node, name, "statement"))
    for text, name, start, end in iter_rows(
        context.file.rows(EXPRS), "type_repr", "target_name", "bstart", "bend"
    ):
        written = syntax.first(start, end, ALIAS_NODES) if text in ALIAS else None
        statement = syntax.parent[written] if written is not None else None
        if statement is not None and syntax.kind[statement] == "AnnAssign":
            rows.append(_alias(context, statement, name, "annotated"))
    return columns_of(rows, *NAMED, "subkind", "container_id")


def _alias(context: Context, node: int, name: str | None, subkind: str) -> tuple[Any, ...]:
    syntax = context.syntax
    start, end = syntax.bstart[node], syntax.bend[node]
    outer = syntax.container(node)
    owner = context.definitions.get((syntax.bstart[outer], syntax.bend[outer])) if outer else None
    qualname = f"{owner.qualname if owner else ''}.{name}"
    alias = context.id_of_syntax("TYPE_ALIAS", node)
    container = owner.node_id if owner else context.module_id
    return alias, name, qualname, start, end, syntax.line[node], node, subkind, container


def type_params(context: Context) -> Columns:
    """List type parameters: in brackets, or created by a call."""
    rows = [
        (context.id_at("TYPE_PARAM", start, end), name, None, start, end, line, node, kind)
        for name, kind, (start, end, line), node in context.cached(_type_params)
    ]
    return columns_of(rows, *NAMED, "subkind")


def _type_params(
    context: Context,
) -> list[tuple[str, str, tuple[int | None, int | None, int | None], int]]:
    """Return name, kind, span of the name, and syntax node of each type parameter."""
    syntax = context.syntax
    params: list[tuple[str, str, tuple[int | None, int | None, int | None], int]] = []
    written = syntax.of_kinds(*TYPE_VARIABLES)
    # Few files have any.
    listed = context.libcst("refs") if written else {}
    refs = {(text, end): (start, end, line) for text, start, end, line in iter_rows(listed, "text", *SPAN)}
    for node in written:
        kind, name, start = syntax.kind[node], syntax.name[node], syntax.bstart[node]
        if name is not None and start is not None:
            # Stars may precede the name, a bound may follow it.
            stars = {"ParamSpec": 2, "TypeVarTuple": 1}.get(kind, 0)
            first = start + stars
            end = first + len(name.encode())
            params.append((name, kind, refs.get((name, end), (first, end, syntax.line[node])), node))
    columns = ("call_bstart", "call_bend", "qualified_names")
    for start, end, names in iter_rows(context.libcst("callsites"), *columns):
        kind = next((TYPE_VARIABLE_CALLS[name] for name in names["name"] if name in TYPE_VARIABLE_CALLS), "")
        call = syntax.first(start, end, CALL) if kind else None
        statement = syntax.parent[call] if call is not None else None
        if statement is None or syntax.kind[statement] != "Assign" or syntax.slot[call or 0] != "value":
            continue
        targets = syntax.children(statement, "targets")
        if len(targets) == 1 and syntax.kind[targets[0]] == "Name":
            node = targets[0]
            span = (syntax.bstart[node], syntax.bend[node], syntax.line[node])
            params.append((syntax.name[node] or "", kind, span, node))
    return params


def type_param_uses(context: Context) -> Columns:
    """List type parameters in brackets after the name of their definition."""
    syntax = context.syntax
    rows = [
        (context.id_at("TYPE_PARAM", start, end), _parametrised(context, owner), None, start, end)
        for _, _, (start, end, _), node in context.cached(_type_params)
        if syntax.slot[node] == "type_params" and (owner := syntax.parent[node]) is not None
    ]
    return columns_of(rows, "src_id", "dst_id", "ordinal", "bstart", "bend")


def generic_arguments(context: Context) -> Iterator[tuple[Any, ...]]:
    """Yield type variables of the file in brackets after a base class, which may be `Generic`.

    A row is the reference to the base, the variable, the class, the index in the brackets, and the place.
    """
    syntax, written = context.syntax, _bindings(context, "WRITES")
    by_binding = {
        written.get(context.id_at("NAME_REF", start, end)): context.id_at("TYPE_PARAM", start, end)
        for _, _, (start, end, _), node in context.cached(_type_params)
        if syntax.slot[node] != "type_params" or syntax.parent[node] is None
    }
    by_binding.pop(None, None)
    if not by_binding:
        return
    read = _bindings(context, "READS")
    for node in syntax.of_kinds("Subscript"):
        parent = syntax.parent[node]
        if syntax.slot[node] != "bases" or parent is None:
            continue
        (value,), (inner,) = syntax.children(node, "value"), syntax.children(node, "slice")
        base = _reference_of(context, value)
        names = [inner] if syntax.kind[inner] == "Name" else syntax.children(inner, "elts")
        cls = context.owner_id(syntax.bstart[parent], syntax.bend[parent])
        for ordinal, name in enumerate(names if base else ()):
            place = syntax.bstart[name], syntax.bend[name]
            variable = by_binding.get(read.get(context.id_at("NAME_REF", *place), ""))
            if variable is not None:
                yield base, variable, cls, ordinal, *place, syntax.line[name]


def _bindings(context: Context, kind: str) -> dict[str, str]:
    """Return the bindings that names read or write."""
    return dict(iter_rows(context.relations_of(kind), "src_id", "dst_id"))


def _parametrised(context: Context, node: int) -> str | None:
    syntax = context.syntax
    if syntax.kind[node] == "TypeAlias":
        return context.id_of_syntax("TYPE_ALIAS", node)
    return context.owner_id(syntax.bstart[node], syntax.bend[node])


def _reference_of(context: Context, node: int) -> str | None:
    """Return the reference node of a name or attribute."""
    syntax = context.syntax
    start, end, name = syntax.bstart[node], syntax.bend[node], syntax.name[node]
    if start is None or end is None or name is None:
        return None
    if syntax.kind[node] == "Name":
        return context.id_at("NAME_REF", start, end)
    return context.id_at("ATTRIBUTE_REF", end - len(name.encode()), end)
