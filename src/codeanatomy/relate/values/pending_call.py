"""Represent a pending call: call site, arguments, result node.

    Call((file, site), [(POSITIONAL, None, node)], dst)      arguments of `f(x)` and the node of its result

A pending call waits for the objects of its callee. One call may lead to others: a partial calls its function,
a class its constructors, `map` its argument. These keep the site, so that callees are recorded at the call in
the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from codeanatomy.relate.program import NOTHING, POSITIONAL, Arg

# File and index in its `sites`; negative for calls by attribute access, which are recorded elsewhere.
SiteKey: TypeAlias = tuple[int, int]
NOWHERE: SiteKey = (-1, -1)
# Role of a callee that is a member of an external object.
EXTERNAL_MEMBER = "member"
# Roles of callees that the source calls itself, rather than an external function on its behalf.
DIRECT_ROLES = frozenset({"call", "decorator"})


class Call(Struct, eq=False):
    """A call whose callees are not all known yet."""

    where: SiteKey
    # Nodes are the solver's, not local to the file.
    args: Sequence[Arg]
    dst: int
    is_decorator: bool = False
    role: str = ""
    # Calls between the call in the source and this one (partial of a partial), to bound recursion.
    depth: int = 0

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
