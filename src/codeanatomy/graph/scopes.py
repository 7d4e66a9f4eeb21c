"""List facts about scopes and their bindings, from the compiler's symbol tables.

    def f(a):                scopes module and f; bindings f of the module, a and b of f
        b = a

Relations add what the tables lack: scopes that the compiler inlines into the enclosing code, names that only
a `global` elsewhere binds, attributes of instances. Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any, NamedTuple

from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.context import Context
from codeanatomy.graph.reads import SPAN
from codeanatomy.node_ids import binding_id, scope_id

SYMTABLE = "symtable_files_v1"
BLOCK = ("scope_key", "parent_key", "type", "name", "symbols")
# Columns on the origin of a binding, and their values for bindings of the symbol tables.
PROVENANCE = ("origin", "rule_name", "resolution_method", "confidence")
SYMTABLE_PROVENANCE = ("symtable", "scope", None, 1.0)
NO_OWNER = (None, None, None, None)
# The type of comprehensions that the compiler inlines, which have no scope in the tables.
INLINED = "comprehension"
# The subkind of a binding: that of the first flag that is set.
FLAGS = {
    "is_declared_global": "global",
    "is_nonlocal": "nonlocal",
    "is_free": "free",
    "is_parameter": "parameter",
    "is_imported": "import",
    "is_local": "local",
}
# A name of the module is local to it, even if a function declares it global.
MODULE_FLAGS = {"is_imported": "import", "is_local": "local", "is_declared_global": "local"}


class GraphScope(NamedTuple):
    """A scope; its span is that of the node that creates it."""

    node_id: str
    parent_id: str | None
    subkind: str
    name: str
    qualname: str
    bstart: int | None
    bend: int | None
    line: int | None
    # How its parent was resolved.
    resolution_method: str | None


def scopes_of(context: Context) -> dict[str, GraphScope]:
    """Return the scopes by id, outer ones first."""
    relations = iter_rows(context.relations_of("OWNS_SCOPE"), "src_id", "dst_id", *SPAN)
    owners = {dst: (src, start, end, line) for src, dst, start, end, line in relations}
    qualnames = {each.node_id: each.qualname for each in context.definitions.values()}
    qualnames[context.module_id] = ""
    by_id: dict[str, GraphScope] = {}
    for node, parent, kind, name, method in _scope_keys(context):
        src, start, end, line = owners.get(node, NO_OWNER)
        outer = by_id[parent].qualname if parent in by_id else ""
        qualname = qualnames.get(src or "", outer if parent is None else f"{outer}.<{name}>")
        by_id[node] = GraphScope(node, parent, kind, name, qualname, start, end, line, method)
    return by_id


def _scope_keys(context: Context) -> Iterator[tuple[str, str | None, str, str, str | None]]:
    """Yield id, parent, type, name and resolution method of each scope, those of the tables first."""
    keys = context.scope_keys
    blocks = context.file.list(SYMTABLE, "blocks")
    for key, parent, kind, name, _ in iter_rows(blocks, *BLOCK):
        yield scope_id(keys[key]), scope_id(keys[parent]) if parent else None, kind, name, None
    parents = context.relations_of("SCOPE_PARENT")
    waiting = list(iter_rows(parents, "src_id", "dst_id", "role", "src_qname", "resolution_method"))
    inner = {src for src, *_ in waiting}
    while waiting:
        ready = [row for row in waiting if row[1] not in inner] or waiting
        yield from ready
        inner -= {row[0] for row in ready}
        waiting = [row for row in waiting if row[0] in inner]


def scopes(context: Context) -> Columns:
    """List the scopes."""
    return columns_of(list(context.cached(scopes_of).values()), *GraphScope._fields)


def bindings(context: Context) -> Columns:
    """List the names that scopes bind or take from others."""
    rows: list[tuple[Any, ...]] = []
    known, inlined = context.cached(scopes_of), _names_of_inlined(context)
    blocks = context.file.list(SYMTABLE, "blocks")
    for key, _, _, _, symbols in iter_rows(blocks, *BLOCK):
        scope = scope_id(context.scope_keys[key])
        qualname = known[scope].qualname
        subkinds = FLAGS if known[scope].parent_id else MODULE_FLAGS
        for name, *flags in iter_rows(symbols, "name", *subkinds):
            subkind = next(compress(subkinds.values(), flags), None)
            # Names that are only read and bound nowhere in the file have no binding.
            if subkind is not None and (scope, name) not in inlined:
                binding = (binding_id(scope, name), scope, name, f"{qualname}.{name}", subkind)
                rows.append((*binding, *SYMTABLE_PROVENANCE))
    relations = context.relations_of("SCOPE_BINDS")
    for scope, node, name, *provenance in iter_rows(relations, "src_id", "dst_id", "role", *PROVENANCE):
        subkind = "attribute" if "attribute" in provenance else "local"
        owner = known[scope].qualname if scope in known else ""
        rows.append((node, scope, name, f"{owner}.{name}", subkind, *provenance))
    return columns_of(rows, "node_id", "scope_id", "name", "qualname", "subkind", *PROVENANCE)


def _names_of_inlined(context: Context) -> set[tuple[str, str]]:
    """Return names that a scope has in the tables only because a comprehension is inlined into it.

    The compiler lists the variables of such a comprehension among those of the enclosing scope. If that scope
    binds the name itself, some relation leads to its binding.
    """
    known = context.cached(scopes_of)
    candidates = set()
    for inner, name in iter_rows(context.relations_of("SCOPE_BINDS"), "src_id", "role"):
        scope = known.get(inner)
        while scope is not None and scope.subkind == INLINED:
            scope = known.get(scope.parent_id or "")
        if scope is not None and scope.node_id != inner:
            candidates.add((scope.node_id, name))
    if not candidates:
        return candidates
    targets = {target for rows in context.relations.values() for target in rows["dst_id"]}
    return {(scope, name) for scope, name in candidates if binding_id(scope, name) not in targets}
