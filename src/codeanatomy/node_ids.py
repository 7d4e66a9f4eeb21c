"""Ids of the graph's nodes: which prefix a kind has, and what identifies a node of it.

>>> node_id("CALLSITE", "file:a", 4, 9) == stable_id("callsite", "file:a", 4, 9)
True
>>> binding_id(scope_id("file:a", "module:top@0#0"), "x").partition(":")[0]
'binding'

What has a place is identified by its file and span; nodes of the syntax tree, of which several may have one
span, by their number too. Everything else has a natural key: a scope its key, a binding its scope and name, a
name outside of the repository the name itself. Tests: `tests/unit/test_node_ids.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codeanatomy.catalog.kinds import NODE_KINDS
from codeanatomy.ids import ids_within, stable_id

PREFIXES: Mapping[str, str] = {name: kind.prefix for name, kind in NODE_KINDS.items()}


def node_id(kind: str, file_id: str, bstart: int | None, bend: int | None) -> str:
    """The node of a kind that stands at a place: a definition, a name, a call.

    Those of a file that have lost their place are one.
    """
    if bstart is None or bend is None:
        return stable_id(PREFIXES[kind], file_id, bstart, bend, "unplaced")
    return stable_id(PREFIXES[kind], file_id, bstart, bend)


def node_ids(kind: str, file_id: str) -> Callable[[int, int], str]:
    """Makes the ids of a file's nodes of a kind that have a place: for many of them, in half the time.

    >>> node_ids("CALLSITE", "file:a")(4, 9) == node_id("CALLSITE", "file:a", 4, 9)
    True
    """
    return ids_within(PREFIXES[kind], file_id)


def ast_node_id(file_id: str, bstart: int | None, bend: int | None, ast_id: int) -> str:
    """A node of the syntax tree."""
    return stable_id(PREFIXES["AST_NODE"], file_id, bstart, bend, ast_id)


def module_id(file_id: str) -> str:
    """The module that a file is."""
    return stable_id(PREFIXES["MODULE"], file_id)


def package_id(repo_id: str, qname: str) -> str:
    """A package of the repository, with or without an `__init__.py`."""
    return stable_id(PREFIXES["PACKAGE"], repo_id, qname)


def scope_id(file_id: str, scope_key: str) -> str:
    """A scope of the compiler's symbol tables."""
    return stable_id(PREFIXES["SCOPE"], file_id, scope_key)


def binding_id(scope: str, name: str) -> str:
    """A name in the scope with this id, mangled as the compiler does; in a class also an attribute."""
    return stable_id(PREFIXES["BINDING"], scope, name)


def qualified_name_id(repo_id: str, qname: str) -> str:
    """A name outside of the repository."""
    return stable_id(PREFIXES["QUALIFIED_NAME"], repo_id, qname)


def external_module_id(repo_id: str, qname: str) -> str:
    """A module outside of the repository."""
    return stable_id(PREFIXES["EXTERNAL_MODULE"], repo_id, qname)
