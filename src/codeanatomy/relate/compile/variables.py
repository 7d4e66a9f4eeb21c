"""Track the versions of variables while a file is compiled: which assignments a read may see.

    x = A()          version 1 of x
    if c:
        x = B()      version 2
    x.m()            reads 1 and 2
    x = C()          version 3; functions see 1 and 2 only if something was called in between

A frame is the statements of one scope. Function bodies are compiled after the code that encloses them, and
see through a cell every version that was current while other code could run. Comprehensions and class bodies
run in place, so they see the current versions of the enclosing frame.

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.program import NOTHING, Node


class Version:
    """A value that a name has from one assignment to the next."""

    __slots__ = ("calls_before", "definitions", "node")

    def __init__(self, node: Node, definitions: list[int], calls_before: int) -> None:
        self.node = node
        # Numbers of the definitions it comes from; at the head of a loop some are added at its end.
        self.definitions = definitions
        # Number of calls before the assignment.
        self.calls_before = calls_before


Versions: TypeAlias = tuple[Version, ...]
Env: TypeAlias = dict[str, Versions]


class Cell:
    """The versions of a name that code which runs at another time may see."""

    __slots__ = ("definitions", "node", "nodes")

    def __init__(self) -> None:
        self.node = NOTHING
        self.nodes: dict[Node, None] = {}
        self.definitions: dict[int, None] = {}

    def add(self, node: Node, definitions: Iterable[int]) -> None:
        """Add a version."""
        self.nodes[node] = None
        self.definitions.update(dict.fromkeys(definitions))


class Loop:
    """The variables at each `break` and `continue` of a loop."""

    __slots__ = ("breaks", "continues")

    def __init__(self) -> None:
        self.breaks: list[Env] = []
        self.continues: list[Env] = []


class Frame:
    """The state while the statements of one scope are compiled."""

    def __init__(
        self, scope: Scope, function: int, *, qualname: str, owner: int = -1, inline: Frame | None = None
    ) -> None:
        self.scope = scope
        # The function that the code belongs to; -1 for the module.
        self.function = function
        # The class whose body this is; -1 for none.
        self.owner = owner
        self.qualname = qualname
        # The enclosing frame, if this one runs in place within it.
        self.inline = inline
        self.env: Env = {}
        # False after `return` and the like.
        self.live = True
        self.loops: list[Loop] = []
        # Versions assigned in the enclosing `try` blocks, by name: what handlers may see.
        self.caught: list[dict[str, list[Version]]] = []

    def qualify(self, name: str) -> str:
        """Return the qualified name, within the module, of a definition in this frame."""
        return f"{self.qualname}.{name}" if self.qualname else name

    def frame_of(self, scope: Scope) -> Frame | None:
        """Return the frame of a scope if this frame is it or runs in place within it, else None."""
        frame: Frame | None = self
        while frame is not None and frame.scope is not scope:
            frame = frame.inline
        return frame


def merge_envs(envs: Iterable[Env]) -> Env:
    """Return the versions that any of the environments has."""
    merged: Env = {}
    for env in envs:
        if not merged:
            merged = dict(env)
            continue
        for name, versions in env.items():
            own = merged.get(name, ())
            if own is not versions:
                merged[name] = tuple(dict.fromkeys((*own, *versions)))
    return merged
