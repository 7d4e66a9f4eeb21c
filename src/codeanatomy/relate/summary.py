"""What a file contributes to its repository: its program, and the rows that need no other file.

    program = summary(Witnessed(repo_id, file_id, path, ast=..., symtable=..., libcst=...))

The lists are columns, as Arrow has them. A file that CPython cannot parse has a program without anything in
it but a reason. Tests: `tests/test_relate_walk.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from codeanatomy.relate.program import Program
from codeanatomy.relate.scopes import scopes_of
from codeanatomy.relate.tree import Tree
from codeanatomy.relate.walk import program_of

# The lists of a witness by name, each a dictionary of equally long columns.
Lists: TypeAlias = Mapping[str, Mapping[str, Sequence[Any]] | None]


class Witnessed(Struct, frozen=True):
    """A file and what the witnesses said of it."""

    repo_id: str
    file_id: str
    path: str
    ast: Lists
    symtable: Lists
    libcst: Lists


def summary(file: Witnessed) -> Program:
    """The program of a file."""
    program = Program(file.repo_id, file.file_id, file.path, ops=[], functions=[], classes=[], imports=[])
    nodes, blocks = file.ast.get("nodes"), file.symtable.get("blocks")
    if not nodes or not blocks:
        program.failure = "no_syntax_tree"
        return program
    tree = Tree(nodes)
    scopes = scopes_of(tree, blocks)
    if 0 not in scopes:
        program.failure = "no_scopes"
        return program
    return program_of(program, tree, scopes, file.ast.get("imports") or {}, identifiers(file.libcst))


def identifiers(libcst: Lists) -> dict[tuple[int, int], tuple[int, int]]:
    """The place of the identifier of an attribute, by the place of the whole."""
    refs = libcst.get("refs") or {}
    columns = ("kind", "expr_bstart", "expr_bend", "bstart", "bend")
    if not refs:
        return {}
    return {
        (start, end): (inner_start, inner_end)
        for kind, start, end, inner_start, inner_end in zip(*(refs[name] for name in columns), strict=True)
        if kind == "attribute"
    }
