"""Compute the ids of graph nodes: a prefix per node kind and the key that identifies a node of that kind.

>>> node_id("CALLSITE", "file:a", 4, 9) == stable_id("callsite", "file:a", 4, 9)
True
>>> binding_id(scope_id("file:a", "module:top@0#0"), "x").partition(":")[0]
'binding'

A node with a span is identified by its file and span; a node of the syntax tree, where several may share a
span, also by its number. All other nodes have a natural key: a scope its key, a binding its scope and name, a
name outside of the repository the name itself. Tests: `tests/unit/test_node_ids.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codeanatomy.catalog.kinds import NODE_KINDS
from codeanatomy.ids import id_maker, stable_id

PREFIXES: Mapping[str, str] = {name: kind.prefix for name, kind in NODE_KINDS.items()}


def node_id(kind: str, file_id: str, bstart: int | None, bend: int | None) -> str:
    """Return the id of the node of a kind with a span: a definition, a name, a call.

    All nodes of the kind without a span share one id per file.
    """
    if bstart is None or bend is None:
        return stable_id(PREFIXES[kind], file_id, bstart, bend, "unplaced")
    return stable_id(PREFIXES[kind], file_id, bstart, bend)


def node_id_maker(kind: str, file_id: str) -> Callable[[int, int], str]:
    """Return a function that makes ids of a file's nodes of a kind from spans, in half the time of `node_id`.

    >>> node_id_maker("CALLSITE", "file:a")(4, 9) == node_id("CALLSITE", "file:a", 4, 9)
    True
    """
    return id_maker(PREFIXES[kind], file_id)


def ast_node_id(file_id: str, bstart: int | None, bend: int | None, ast_id: int) -> str:
    """Return the id of a node of the syntax tree."""
    return stable_id(PREFIXES["AST_NODE"], file_id, bstart, bend, ast_id)


def module_id(file_id: str) -> str:
    """Return the id of the module of a file."""
    return stable_id(PREFIXES["MODULE"], file_id)


def package_id(repo_id: str, qname: str) -> str:
    """Return the id of a package of the repository, with or without an `__init__.py`."""
    return stable_id(PREFIXES["PACKAGE"], repo_id, qname)


def scope_id(file_id: str, scope_key: str) -> str:
    """Return the id of a scope of the compiler's symbol tables."""
    return stable_id(PREFIXES["SCOPE"], file_id, scope_key)


def binding_id(scope: str, name: str) -> str:
    """Return the id of a name in a scope, mangled as the compiler does; in a class also of an attribute."""
    return stable_id(PREFIXES["BINDING"], scope, name)


def qualified_name_id(repo_id: str, qname: str) -> str:
    """Return the id of a qualified name outside of the repository."""
    return stable_id(PREFIXES["QUALIFIED_NAME"], repo_id, qname)


def external_module_id(repo_id: str, qname: str) -> str:
    """Return the id of a module outside of the repository."""
    return stable_id(PREFIXES["EXTERNAL_MODULE"], repo_id, qname)
