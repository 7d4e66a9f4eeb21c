"""Facts about what is outside of the repository: modules that are imported, names that are used.

    import os                 external module os, of the standard library
    os.getcwd()               qualified name os.getcwd

They are of the repository as a whole: every file tells those it meets. Tests: `tests/unit/graph/test_facts.py`.
"""

from __future__ import annotations

from codeanatomy.graph.context import RELATIONS, Context
from codeanatomy.graph.file_view import Columns, columns_of, each


def external_modules(context: Context) -> Columns:
    """Modules outside."""
    found: dict[str, tuple[str, str | None]] = {}
    for kind, relation, node, name, role in each(
        context.file.rows(RELATIONS), "dst_kind", "relation_kind", "dst_id", "dst_qname", "role"
    ):
        if kind == "EXTERNAL_MODULE":
            origin = role if relation == "IMPORTS_MODULE" else None
            found[node] = (name, origin or found.get(node, (name, None))[1])
    rows = [(node, name.rpartition(".")[2], name, origin) for node, (name, origin) in found.items()]
    return columns_of(rows, "node_id", "name", "qualname", "subkind")


def qualified_names(context: Context) -> Columns:
    """Names outside."""
    found = {
        node: name
        for kind, node, name in each(context.file.rows(RELATIONS), "dst_kind", "dst_id", "dst_qname")
        if kind == "QUALIFIED_NAME"
    }
    rows = [(node, name.rpartition(".")[2] or name, name) for node, name in found.items()]
    return columns_of(rows, "node_id", "name", "qualname")
