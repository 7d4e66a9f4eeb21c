"""A call on its way to what it calls.

    Call((file, site), [(POSITIONAL, None, node)], dst)      what `f(x)` passes, and where its result goes

One call may stand for others: of a partial the function behind it, of a class its constructors, of `map`
the function it is given. They keep the site, so that everything is told of the place where it happens.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from codeanatomy.relate.program import NOTHING, POSITIONAL, Arg

# A site: file and number; below zero of attributes that run code, which have many.
SiteKey: TypeAlias = tuple[int, int]
NOWHERE: SiteKey = (-1, -1)


class Call:
    """A call that waits for what it calls."""

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
        # Nodes among all.
        self.args = args
        self.dst = dst
        self.is_decorator = is_decorator
        self.role = role
        # How many calls it stands for: of a partial of a partial, of a class that is its own constructor.
        self.depth = depth

    def with_args(self, args: Sequence[Arg], dst: int | None = None, role: str = "") -> Call:
        """The same call with other arguments: of a partial, or of a callback."""
        to = self.dst if dst is None else dst
        return Call(self.where, args, to, role=role or self.role, depth=self.depth + 1)

    def argument(self, place: int, keyword: str | None = None) -> int:
        """The node of an argument by place or keyword; -1 if it is not given."""
        given = [arg for arg in self.args if arg[0] == POSITIONAL]
        if keyword is not None:
            for _, name, node in self.args:
                if name == keyword:
                    return node
        return given[place][2] if 0 <= place < len(given) else NOTHING


def positional(node: int) -> Arg:
    """An argument by position."""
    return (POSITIONAL, None, node)
