"""Facts from a SCIP index: its symbols, where they stand, and what stands there in the graph.

    def f(): ...          the symbol of f; defined by the function f, whose name has the occurrence
    f()                   referenced by the name f

Symbols that are `local` to a document are of its file, the others of the repository.
Tests: `tests/unit/graph/test_scip.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codeanatomy.graph.context import Context
from codeanatomy.graph.file_view import SYMBOL, Columns, columns_of, each
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import PREFIXES

SCIP = "scip_index_v1"
LOCAL = "local "
# By flag of an occurrence, the first that is set.
ROLES = {"is_definition": "definition", "is_import": "import", "is_write": "write", "is_read": "read"}
RELATIONSHIPS = {
    "is_reference": "reference",
    "is_implementation": "implementation",
    "is_type_definition": "type_definition",
    "is_definition": "definition",
}


def symbol_id(context: Context, symbol: str) -> str:
    """The node of a symbol."""
    owner = (context.file.file_id,) if symbol.startswith(LOCAL) else ()
    return stable_id(PREFIXES["SCIP_SYMBOL"], context.file.repo_id, *owner, symbol)


def local_symbols(context: Context) -> Columns:
    """Symbols of the document alone."""
    return _symbols(context, is_local=True)


def global_symbols(context: Context) -> Columns:
    """Symbols of the repository and of others."""
    return _symbols(context, is_local=False)


def _symbols(context: Context, *, is_local: bool) -> Columns:
    told: dict[str, tuple[Any, ...]] = {}
    for name in ("external_symbols", "symbols"):
        for symbol, *rest in each(context.file.list(SCIP, name), *SYMBOL):
            told[symbol] = tuple(rest)
    mentioned = (symbol for symbol in _mentioned(context) if symbol)
    rows = []
    for symbol in dict.fromkeys((*told, *mentioned)):
        if symbol.startswith(LOCAL) != is_local:
            continue
        shown, kind, documentation, signature = told.get(symbol, (None, None, None, None))
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
    """The name at the end of a symbol.

    >>> _last_part("scip-python python pkg 1 `pkg.mod`/A#run().(x)"), _last_part("local 3")
    ('x', '3')
    """
    word = symbol.rstrip(".#/:)(").replace("`", "")
    for mark in ("/", "#", ".", "(", " ", "["):
        word = word.rpartition(mark)[2] or word
    return word


def occurrences(context: Context) -> Columns:
    """Places of symbols; those that could not be placed have none and are left out."""
    rows = {}
    for symbol, _, *flags, start, end, line in _occurrences(context):
        role = next((word for word, is_set in zip(ROLES.values(), flags, strict=True) if is_set), "reference")
        node = stable_id(PREFIXES["SCIP_OCCURRENCE"], context.file.file_id, start, end, symbol)
        rows[node] = (node, _last_part(symbol), role, start, end, line + 1, symbol_id(context, symbol))
    found = columns_of(
        list(rows.values()), "node_id", "name", "subkind", "bstart", "bend", "line", "symbol_id"
    )
    return {**found, "file_id": [context.file.file_id] * len(rows)}


def _occurrences(context: Context) -> Iterator[tuple[Any, ...]]:
    columns = ("symbol", "symbol_roles", *ROLES, "bstart", "bend", "start_line")
    for row in each(context.file.list(SCIP, "occurrences"), *columns):
        if row[0] and row[-3] is not None:
            yield row


def definitions(context: Context) -> Columns:
    """What stands where symbols are defined."""
    return _standing(context, is_definition=True)


def references(context: Context) -> Columns:
    """What stands where symbols are referred to."""
    return _standing(context, is_definition=False)


def _standing(context: Context, *, is_definition: bool) -> Columns:
    named, used = context.once(_named), context.once(_used)
    first, second = (named, used) if is_definition else (used, named)
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


def _named(context: Context) -> dict[tuple[int, int], str]:
    """Definitions, parameters and imports by the places of their names."""
    found: dict[tuple[int, int], str] = {}
    for start, end in each(context.libcst("params"), "bstart", "bend"):
        found[start, end] = context.id_at("PARAMETER", start, end)
    columns = ("name", "alias_bstart", "alias_bend", "bound_bstart", "bound_bend")
    for name, first, last, start, end in each(context.libcst("imports"), *columns):
        alias = context.id_at("IMPORT_ALIAS", first, last)
        if start is not None:
            found[start, end] = alias
        # The name before `as`, and all of it.
        found.setdefault((first, first + len(name.encode())), alias)
        found.setdefault((first, last), alias)
    for start, end, first, last in each(
        context.libcst("defs"), "name_bstart", "name_bend", "def_bstart", "def_bend"
    ):
        owner = context.owner_id(first, last)
        if start is not None and owner is not None:
            found[start, end] = owner
    return found


def _used(context: Context) -> dict[tuple[int, int], str]:
    """Names and attributes by their places."""
    kinds = {"name": "NAME_REF", "attribute": "ATTRIBUTE_REF"}
    return {
        (start, end): context.id_at(kinds[kind], start, end)
        for kind, start, end in each(context.libcst("refs"), "kind", "bstart", "bend")
    }


def relationships(context: Context) -> Columns:
    """How symbols are related, one row for each way."""
    rows = []
    found = context.file.list(SCIP, "relationships")
    for symbol, other, *flags in each(found, "symbol", "related_symbol", *RELATIONSHIPS):
        for role, is_set in zip(RELATIONSHIPS.values(), flags, strict=True):
            if is_set:
                rows.append((symbol_id(context, symbol), symbol_id(context, other), role))
    return columns_of(rows, "src_id", "dst_id", "role")
