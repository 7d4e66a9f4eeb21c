"""Facts about types: annotations, the types they mean, aliases and type parameters.

    T = TypeVar("T")                   type parameter T
    class Box(Generic[T]):             T is a type parameter of Box
        item: list[T]                  annotation of item; types list[T] and T, its argument
    Pair: TypeAlias = tuple[T, T]      alias Pair

Tests: `tests/unit/graph/test_types.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codeanatomy.graph.context import NAMED_KIND, Context
from codeanatomy.graph.definitions import NAMED, TEXT_CHARS
from codeanatomy.graph.file_view import SPAN, Columns, columns_of, each

EXPRS = "type_exprs_norm_v1"
NODES = "type_nodes_v1"
TARGETS = {"param": "PARAMETER", "variable": "NAME_REF", "attribute": "ATTRIBUTE_REF"}
MODULES = ("typing", "typing_extensions")
ALIAS = frozenset(f"{module}.TypeAlias" for module in MODULES)
TYPE_VARIABLES = ("TypeVar", "ParamSpec", "TypeVarTuple")
MAKERS = {f"{module}.{kind}": kind for module in MODULES for kind in TYPE_VARIABLES}
GENERIC = frozenset(f"{module}.{name}" for module in MODULES for name in ("Generic", "Protocol"))


def type_exprs(context: Context) -> Columns:
    """Annotations, by what they are about."""
    syntax, rows = context.syntax, []
    for node, role, owner_start, owner_end, name, text, type_id, start, end, line in each(
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
        about = _annotated(context, role, name, (start, end), (owner_start, owner_end))
        written = next(
            (n for n in syntax.at(start, end) if syntax.slot[n] in ("annotation", "returns")), None
        )
        rows.append((node, text[:TEXT_CHARS], None, start, end, line, written, role, about, type_id))
    return columns_of(rows, *NAMED, "subkind", "target_id", "type_id")


def _annotated(
    context: Context, role: str, name: str | None, place: tuple[Any, Any], owner: tuple[Any, Any]
) -> str | None:
    """What an annotation is about: what stands at the target, the function, or a parameter by name."""
    if role in ("return", "signature"):
        return context.owner_id(*owner)
    target = context.once(_targets).get((*place, role))
    if target is not None:
        return context.id_at(TARGETS[role], *target)
    # In a comment about all parameters together.
    return context.once(_parameters).get((*owner, name)) if role == "param" else None


def _parameters(context: Context) -> dict[tuple[Any, Any, str | None], str]:
    """Parameters by place of the function and name."""
    columns = ("owner_bstart", "owner_bend", "name", "bstart", "bend")
    return {
        (first, last, name): context.id_at("PARAMETER", start, end)
        for first, last, name, start, end in each(context.libcst("params"), *columns)
    }


def _targets(context: Context) -> dict[tuple[int, int, str], tuple[int, int]]:
    """Places of what is annotated, by place and role of the annotation."""
    found = context.libcst("type_exprs")
    columns = ("bstart", "bend", "role", "target_bstart", "target_bend")
    return {
        (start, end, role): (first, last)
        for start, end, role, first, last in each(found, *columns)
        if first is not None
    }


def types(context: Context) -> Columns:
    """Types and their parts; of the repository."""
    found: dict[str, tuple[Any, ...]] = {}
    for node, kind, name, text in each(
        context.file.rows(NODES), "type_id", "type_kind", "type_name", "type_repr"
    ):
        found[node] = (node, text, name or None, kind)
    return columns_of(list(found.values()), "node_id", "name", "qualname", "subkind")


def type_arguments(context: Context) -> Columns:
    """Types and their arguments; of the repository."""
    rows = context.file.rows(NODES)
    columns = ("expr_id", "node_index", "type_id", "type_kind")
    by_place = {(expr, index): (node, kind) for expr, index, node, kind in each(rows, *columns)}
    found: dict[tuple[str, str, int | None], None] = {}
    for expr, parent, ordinal, node in each(rows, "expr_id", "parent_index", "arg_index", "type_id"):
        if parent is not None:
            outer, kind = by_place[expr, parent]
            # The members of a union have no order: `int | str` is `str | int`.
            found[outer, node, None if kind == "union" else ordinal] = None
    return columns_of(list(found), "src_id", "dst_id", "ordinal")


def type_aliases(context: Context) -> Columns:
    """Names for types: the statement, or an assignment annotated as an alias."""
    syntax, rows = context.syntax, []
    for node, kind in enumerate(syntax.kind):
        if kind == "TypeAlias":
            name = next((syntax.name[inner] for inner in syntax.children(node, "name")), None)
            rows.append(_alias(context, node, name, "statement"))
    for text, name, start, end in each(
        context.file.rows(EXPRS), "type_repr", "target_name", "bstart", "bend"
    ):
        written = syntax.first(start, end, ("Name", "Attribute", "Constant")) if text in ALIAS else None
        statement = syntax.parent[written] if written is not None else None
        if statement is not None and syntax.kind[statement] == "AnnAssign":
            rows.append(_alias(context, statement, name, "annotated"))
    return columns_of(rows, *NAMED, "subkind", "container_id")


def _alias(context: Context, node: int, name: str | None, subkind: str) -> tuple[Any, ...]:
    syntax = context.syntax
    start, end = syntax.bstart[node], syntax.bend[node]
    outer = syntax.container(node)
    owner = context.definitions.get((syntax.bstart[outer], syntax.bend[outer])) if outer else None
    qualname = f"{owner.qualname if owner else context.module_name}.{name}"
    found = context.id_at("TYPE_ALIAS", start, end)
    around = owner.node_id if owner else context.module_id
    return found, name, qualname, start, end, syntax.line[node], node, subkind, around


def type_params(context: Context) -> Columns:
    """Type parameters: in brackets, or made by a call."""
    rows = [
        (context.id_at("TYPE_PARAM", start, end), name, None, start, end, line, node, kind)
        for name, kind, (start, end, line), node in context.once(_type_params)
    ]
    return columns_of(rows, *NAMED, "subkind")


def _type_params(
    context: Context,
) -> list[tuple[str, str, tuple[int | None, int | None, int | None], int]]:
    """Name, kind, place of the name, and syntax node of each."""
    syntax = context.syntax
    found: list[tuple[str, str, tuple[int | None, int | None, int | None], int]] = []
    refs = {
        (text, end): (start, end, line)
        for text, start, end, line in each(context.libcst("refs"), "text", *SPAN)
    }
    for node, kind in enumerate(syntax.kind):
        name, start = syntax.name[node], syntax.bstart[node]
        if kind in TYPE_VARIABLES and name is not None and start is not None:
            # Stars may stand before the name, a bound after it.
            stars = {"ParamSpec": 2, "TypeVarTuple": 1}.get(kind, 0)
            first = start + stars
            end = first + len(name.encode())
            found.append((name, kind, refs.get((name, end), (first, end, syntax.line[node])), node))
    columns = ("call_bstart", "call_bend", "qualified_names")
    for start, end, names in each(context.libcst("callsites"), *columns):
        kind = next((MAKERS[name] for name in names["name"] if name in MAKERS), "")
        call = syntax.first(start, end, ("Call",)) if kind else None
        statement = syntax.parent[call] if call is not None else None
        if statement is None or syntax.kind[statement] != "Assign" or syntax.slot[call or 0] != "value":
            continue
        targets = syntax.children(statement, "targets")
        if len(targets) == 1 and syntax.kind[targets[0]] == "Name":
            node = targets[0]
            place = (syntax.bstart[node], syntax.bend[node], syntax.line[node])
            found.append((syntax.name[node] or "", kind, place, node))
    return found


def type_param_uses(context: Context) -> Columns:
    """Type parameters and what they are parameters of; variables of other files are left out."""
    syntax = context.syntax
    rows: list[tuple[Any, ...]] = []
    written, read = _bindings(context, "WRITES"), _bindings(context, "READS")
    made: dict[str, str] = {}
    for _, _, (start, end, _), node in context.once(_type_params):
        found, owner = context.id_at("TYPE_PARAM", start, end), syntax.parent[node]
        if syntax.slot[node] == "type_params" and owner is not None:
            rows.append((found, _parametrised(context, owner), None, start, end))
        elif (binding := written.get(context.id_at("NAME_REF", start, end))) is not None:
            made[binding] = found
    for cls, ordinal, start, end in _generic_arguments(context):
        variable = made.get(read.get(context.id_at("NAME_REF", start, end), ""))
        if variable is not None:
            rows.append((variable, cls, ordinal, start, end))
    return columns_of(rows, "src_id", "dst_id", "ordinal", "bstart", "bend")


def _bindings(context: Context, kind: str) -> dict[str, str]:
    """The bindings that names read or write."""
    return dict(each(context.listed(kind), "src_id", "dst_id"))


def _parametrised(context: Context, node: int) -> str | None:
    syntax = context.syntax
    start, end = syntax.bstart[node], syntax.bend[node]
    if syntax.kind[node] == "TypeAlias":
        return context.id_at("TYPE_ALIAS", start, end)
    return context.owner_id(start, end)


def _generic_arguments(context: Context) -> Iterator[tuple[str | None, int, int | None, int | None]]:
    """The names in `Generic[...]` and `Protocol[...]` among bases: class, place among them, span."""
    syntax = context.syntax
    generic = {
        src for src, name in each(context.listed(NAMED_KIND), "src_id", "dst_qname") if name in GENERIC
    }
    if not generic:
        return
    for node, kind in enumerate(syntax.kind):
        parent = syntax.parent[node]
        if kind != "Subscript" or syntax.slot[node] != "bases" or parent is None:
            continue
        (value,), (inner,) = syntax.children(node, "value"), syntax.children(node, "slice")
        if not _reference_of(context, value) & generic:
            continue
        cls = context.owner_id(syntax.bstart[parent], syntax.bend[parent])
        names = [inner] if syntax.kind[inner] == "Name" else syntax.children(inner, "elts")
        for ordinal, one in enumerate(names):
            yield cls, ordinal, syntax.bstart[one], syntax.bend[one]


def _reference_of(context: Context, node: int) -> set[str]:
    """The reference that a name or attribute is."""
    syntax = context.syntax
    start, end, name = syntax.bstart[node], syntax.bend[node], syntax.name[node]
    if start is None or end is None or name is None:
        return set()
    if syntax.kind[node] == "Name":
        return {context.id_at("NAME_REF", start, end)}
    return {context.id_at("ATTRIBUTE_REF", end - len(name.encode()), end)}
