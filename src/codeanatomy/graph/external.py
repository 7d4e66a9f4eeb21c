"""List facts about code outside of the repository: imported modules and used names.

    import os                 external module os, of the standard library
    os.getcwd()               qualified name os.getcwd

They belong to the repository as a whole: every file lists those it refers to.
Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.context import RELATIONS, Context


def external_modules(context: Context) -> Columns:
    """List the modules outside of the repository."""
    modules: dict[str, tuple[str, str | None]] = {}
    for kind, relation, node, name, role in iter_rows(
        context.file.rows(RELATIONS), "dst_kind", "relation_kind", "dst_id", "dst_qname", "role"
    ):
        if kind == "EXTERNAL_MODULE":
            origin = role if relation == "IMPORTS_MODULE" else None
            modules[node] = (name, origin or modules.get(node, (name, None))[1])
    rows = [(node, name.rpartition(".")[2], name, origin) for node, (name, origin) in modules.items()]
    return columns_of(rows, "node_id", "name", "qualname", "subkind")


def qualified_names(context: Context) -> Columns:
    """List the qualified names outside of the repository."""
    names = {
        node: name
        for kind, node, name in iter_rows(context.file.rows(RELATIONS), "dst_kind", "dst_id", "dst_qname")
        if kind == "QUALIFIED_NAME"
    }
    rows = [(node, name.rpartition(".")[2] or name, name) for node, name in names.items()]
    return columns_of(rows, "node_id", "name", "qualname")
