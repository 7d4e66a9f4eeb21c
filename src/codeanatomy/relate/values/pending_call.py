"""Represent a pending call: call site, arguments, result node.

    Call((file, site), [(POSITIONAL, None, node)], dst)      arguments of `f(x)` and the node of its result

A pending call waits for the objects of its callee. One call may lead to others: a partial calls its function,
a class its constructors, `map` its argument. These keep the site, so that callees are recorded at the call in
the source.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from codeanatomy.relate.program import NOTHING, POSITIONAL, Arg

# File and index in its `sites`; negative for calls by attribute access, which are recorded elsewhere.
SiteKey: TypeAlias = tuple[int, int]
NOWHERE: SiteKey = (-1, -1)


class Call:
    """A call whose callees are not all known yet."""

    __slots__ = ("args", "depth", "dst", "is_decorator", "role", "where")

    def __init__(
        self,
        where: SiteKey,
        args: Sequence[Arg],
        dst: int,
        *,
        is_decorator: bool = False,
        role: str = "",
        depth: int = 0,
    ) -> None:
        self.where = where
        # Nodes are the solver's, not local to the file.
        self.args = args
        self.dst = dst
        self.is_decorator = is_decorator
        self.role = role
        # Calls between the call in the source and this one (partial of a partial), to bound recursion.
        self.depth = depth

    def with_args(self, args: Sequence[Arg], dst: int | None = None, role: str = "") -> Call:
        """Derive the call of a partial's function, constructor or callback, at the same site."""
        to = self.dst if dst is None else dst
        return Call(self.where, args, to, role=role or self.role, depth=self.depth + 1)

    def argument(self, position: int, keyword: str | None = None) -> int:
        """Return the node of an argument by keyword or position; NOTHING if it is not passed."""
        given = [arg for arg in self.args if arg[0] == POSITIONAL]
        if keyword is not None:
            for _, name, node in self.args:
                if name == keyword:
                    return node
        return given[position][2] if 0 <= position < len(given) else NOTHING


def positional(node: int) -> Arg:
    """Make a positional argument."""
    return (POSITIONAL, None, node)
