"""List facts from a SCIP index: its symbols, their occurrences, and the graph nodes at them.

    def f(): ...          the symbol of f; defined by the function f, whose name has the occurrence
    f()                   referenced by the name f

Symbols that are `local` to a document belong to its file, the others to the repository.
Tests: `tests/unit/graph/test_scip.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.context import Context
from codeanatomy.graph.reads import SYMBOL
from codeanatomy.node_ids import key_of, node_id

SCIP = "scip_index_v1"
LOCAL = "local "
# The role of an occurrence: that of the first flag that is set.
ROLES = {"is_definition": "definition", "is_import": "import", "is_write": "write", "is_read": "read"}
RELATIONSHIPS = {
    "is_reference": "reference",
    "is_implementation": "implementation",
    "is_type_definition": "type_definition",
    "is_definition": "definition",
}


def symbol_id(context: Context, symbol: str) -> str:
    """Return the id of the node of a symbol."""
    if symbol.startswith(LOCAL):
        return node_id("SCIP_SYMBOL", key_of(context.file.file_id), symbol)
    return context.shared_id("SCIP_SYMBOL", symbol)


def local_symbols(context: Context) -> Columns:
    """List the symbols that are local to the document."""
    return _symbols(context, is_local=True)


def global_symbols(context: Context) -> Columns:
    """List the symbols of the repository and of other packages."""
    return _symbols(context, is_local=False)


def _symbols(context: Context, *, is_local: bool) -> Columns:
    described: dict[str, tuple[Any, ...]] = {}
    for name in ("external_symbols", "symbols"):
        for symbol, *rest in iter_rows(context.file.list(SCIP, name), *SYMBOL):
            described[symbol] = tuple(rest)
    mentioned = (symbol for symbol in _mentioned(context) if symbol)
    rows = []
    for symbol in dict.fromkeys((*described, *mentioned)):
        if symbol.startswith(LOCAL) != is_local:
            continue
        shown, kind, documentation, signature = described.get(symbol, (None, None, None, None))
        text = "\n\n".join(documentation) if documentation else None
        rows.append(
            (symbol_id(context, symbol), shown or _last_part(symbol), symbol, kind, signature or None, text)
        )
    return columns_of(rows, "node_id", "name", "qualname", "subkind", "signature", "documentation")


def _mentioned(context: Context) -> Iterator[str]:
    yield from context.file.list(SCIP, "occurrences").get("symbol", ())
    related = context.file.list(SCIP, "relationships")
    yield from related.get("symbol", ())
    yield from related.get("related_symbol", ())


def _last_part(symbol: str) -> str:
    """Return the name at the end of a symbol.

    >>> _last_part("scip-python python pkg 1 `pkg.mod`/A#run().(x)"), _last_part("local 3")
    ('x', '3')
    """
    name = symbol.rstrip(".#/:)(").replace("`", "")
    for separator in ("/", "#", ".", "(", " ", "["):
        name = name.rpartition(separator)[2] or name
    return name


def occurrences(context: Context) -> Columns:
    """List occurrences of symbols; those without a span are left out."""
    rows = {}
    for symbol, _, *flags, start, end, line in _occurrences(context):
        role = next((name for name, is_set in zip(ROLES.values(), flags, strict=True) if is_set), "reference")
        row = (_last_part(symbol), role, start, end, line + 1, symbol_id(context, symbol))
        rows[start, end, symbol] = row
    # By symbol where several have one span.
    ordered = [rows[key] for key in sorted(rows)]
    columns = columns_of(ordered, "name", "subkind", "bstart", "bend", "line", "symbol_id")
    ids = context.ids.numbered("SCIP_OCCURRENCE", [row[2:4] for row in ordered])
    return {"node_id": ids, **columns, "file_id": [context.file.file_id] * len(rows)}


def _occurrences(context: Context) -> Iterator[tuple[Any, ...]]:
    columns = ("symbol", "symbol_roles", *ROLES, "bstart", "bend", "start_line")
    for row in iter_rows(context.file.list(SCIP, "occurrences"), *columns):
        if row[0] and row[-3] is not None:
            yield row


def definitions(context: Context) -> Columns:
    """List the nodes at definitions of symbols."""
    return _nodes_at_occurrences(context, is_definition=True)


def references(context: Context) -> Columns:
    """List the nodes at references to symbols."""
    return _nodes_at_occurrences(context, is_definition=False)


def _nodes_at_occurrences(context: Context, *, is_definition: bool) -> Columns:
    defined, used = context.cached(_definitions_by_name), context.cached(_references)
    first, second = (defined, used) if is_definition else (used, defined)
    rows = {}
    for symbol, roles, defines, _, _, _, start, end, line in _occurrences(context):
        if bool(defines) != is_definition:
            continue
        node = first.get((start, end)) or second.get((start, end))
        if node is None and is_definition and start == 0 and symbol.endswith("/__init__:"):
            node = context.module_id
        if node is not None:
            dst = symbol_id(context, symbol)
            rows[node, dst, start, end] = (node, dst, roles, start, end, line + 1)
    return columns_of(list(rows.values()), "src_id", "dst_id", "symbol_roles", "bstart", "bend", "line")


def _definitions_by_name(context: Context) -> dict[tuple[int, int], str]:
    """Return definitions, parameters and imports by the spans of their names."""
    nodes: dict[tuple[int, int], str] = {}
    for start, end in iter_rows(context.libcst("params"), "bstart", "bend"):
        nodes[start, end] = context.id_at("PARAMETER", start, end)
    columns = ("name", "alias_bstart", "alias_bend", "bound_bstart", "bound_bend")
    for name, first, last, start, end in iter_rows(context.libcst("imports"), *columns):
        alias = context.id_at("IMPORT_ALIAS", first, last)
        if start is not None:
            nodes[start, end] = alias
        # The name before `as`, and all of it.
        nodes.setdefault((first, first + len(name.encode())), alias)
        nodes.setdefault((first, last), alias)
    for start, end, first, last in iter_rows(
        context.libcst("defs"), "name_bstart", "name_bend", "def_bstart", "def_bend"
    ):
        owner = context.owner_id(first, last)
        if start is not None and owner is not None:
            nodes[start, end] = owner
    return nodes


def _references(context: Context) -> dict[tuple[int, int], str]:
    """Return names and attributes by span."""
    kinds = {"name": "NAME_REF", "attribute": "ATTRIBUTE_REF"}
    return {
        (start, end): context.id_at(kinds[kind], start, end)
        for kind, start, end in iter_rows(context.libcst("refs"), "kind", "bstart", "bend")
    }


def relationships(context: Context) -> Columns:
    """List relationships of symbols, one row for each role."""
    rows = []
    related = context.file.list(SCIP, "relationships")
    for symbol, other, *flags in iter_rows(related, "symbol", "related_symbol", *RELATIONSHIPS):
        for role, is_set in zip(RELATIONSHIPS.values(), flags, strict=True):
            if is_set:
                rows.append((symbol_id(context, symbol), symbol_id(context, other), role))
    return columns_of(rows, "src_id", "dst_id", "role")
