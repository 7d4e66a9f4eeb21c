"""Facts about scopes and the names they have, from the compiler's symbol tables.

    def f(a):                scopes module and f; bindings f of the module, a and b of f
        b = a

What the tables leave out is told by relations: scopes that the compiler puts into the code around them, names
that only a `global` elsewhere binds, attributes of instances. Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any, NamedTuple

from codeanatomy.graph.context import Context
from codeanatomy.graph.file_view import SPAN, Columns, columns_of, each
from codeanatomy.node_ids import binding_id, scope_id

SYMTABLE = "symtable_files_v1"
BLOCK = ("scope_key", "parent_key", "type", "name", "symbols")
# Who says that a scope has a name, and what of those that the symbol tables list.
TRUST = ("origin", "rule_name", "resolution_method", "confidence")
LISTED = ("symtable", "scope", None, 1.0)
NOWHERE = (None, None, None, None)
# By flag of a symbol, the first that is set.
FLAGS = {
    "is_declared_global": "global",
    "is_nonlocal": "nonlocal",
    "is_free": "free",
    "is_parameter": "parameter",
    "is_imported": "import",
    "is_local": "local",
}
# A name of the module is its own, though a function declares it global.
MODULE_FLAGS = {"is_imported": "import", "is_local": "local", "is_declared_global": "local"}


class Scope(NamedTuple):
    """A scope; its place is that of the node that makes it."""

    node_id: str
    parent_id: str | None
    subkind: str
    name: str
    qualname: str
    bstart: int | None
    bend: int | None
    line: int | None
    # Of the edge to its parent.
    resolution_method: str | None


def scopes_of(context: Context) -> dict[str, Scope]:
    """The scopes by their ids, outer ones first."""
    owned = each(context.listed("OWNS_SCOPE"), "src_id", "dst_id", *SPAN)
    owners = {dst: (src, start, end, line) for src, dst, start, end, line in owned}
    named = {one.node_id: one.qualname for one in context.definitions.values()}
    named[context.module_id] = context.module_name
    found: dict[str, Scope] = {}
    for node, parent, kind, name, method in _known(context):
        src, start, end, line = owners.get(node, NOWHERE)
        outer = found[parent].qualname if parent in found else context.module_name
        qualname = named.get(src or "", outer if parent is None else f"{outer}.<{name}>")
        found[node] = Scope(node, parent, kind, name, qualname, start, end, line, method)
    return found


def _known(context: Context) -> Iterator[tuple[str, str | None, str, str, str | None]]:
    """Id, parent, type and name of every scope, and how its parent was found: first those of the tables."""
    file_id = context.file.file_id
    blocks = context.file.list(SYMTABLE, "blocks")
    for key, parent, kind, name, _ in each(blocks, *BLOCK):
        yield scope_id(file_id, key), scope_id(file_id, parent) if parent else None, kind, name, None
    told = context.listed("SCOPE_PARENT")
    waiting = list(each(told, "src_id", "dst_id", "role", "src_qname", "resolution_method"))
    inner = {src for src, *_ in waiting}
    while waiting:
        ready = [row for row in waiting if row[1] not in inner] or waiting
        yield from ready
        inner -= {row[0] for row in ready}
        waiting = [row for row in waiting if row[0] in inner]


def scopes(context: Context) -> Columns:
    """The scopes."""
    return columns_of(list(context.once(scopes_of).values()), *Scope._fields)


def bindings(context: Context) -> Columns:
    """The names that scopes bind, or have from others."""
    rows: list[tuple[Any, ...]] = []
    known = context.once(scopes_of)
    blocks = context.file.list(SYMTABLE, "blocks")
    for key, _, _, _, symbols in each(blocks, *BLOCK):
        scope = scope_id(context.file.file_id, key)
        qualname = known[scope].qualname
        meanings = FLAGS if known[scope].parent_id else MODULE_FLAGS
        for name, *flags in each(symbols, "name", *meanings):
            subkind = next(compress(meanings.values(), flags), None)
            # Names that are only read, and nowhere in the file bound, are nobody's.
            if subkind is not None:
                rows.append((binding_id(scope, name), scope, name, f"{qualname}.{name}", subkind, *LISTED))
    told = context.listed("SCOPE_BINDS")
    for scope, node, name, *trust in each(told, "src_id", "dst_id", "role", *TRUST):
        subkind = "attribute" if "attribute" in trust else "local"
        owner = known[scope].qualname if scope in known else context.module_name
        rows.append((node, scope, name, f"{owner}.{name}", subkind, *trust))
    return columns_of(rows, "node_id", "scope_id", "name", "qualname", "subkind", *TRUST)
