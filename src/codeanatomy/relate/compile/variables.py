"""Track the versions of variables while a file is compiled: which assignments a read may see.

    x = A()          version 1 of x
    if c:
        x = B()      version 2
    x.m()            reads 1 and 2
    x = C()          version 3; functions see 1 and 2 only if something was called in between

A frame is the statements of one scope. Function bodies are compiled after the code that encloses them, and
see through a cell every version that was current while other code could run. Comprehensions and class bodies
run in place, so they see the current versions of the enclosing frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.program import NOTHING, Node


class Version(Struct, eq=False):
    """A value that a name has from one assignment to the next."""

    node: Node
    # Numbers of the definitions it comes from; at the head of a loop some are added at its end.
    definitions: list[int]
    # Number of calls before the assignment.
    calls_before: int


Versions: TypeAlias = tuple[Version, ...]
Env: TypeAlias = dict[str, Versions]


class Cell(Struct, eq=False):
    """The versions of a name that code which runs at another time may see."""

    node: Node = NOTHING
    nodes: dict[Node, None] = {}
    definitions: dict[int, None] = {}

    def add(self, node: Node, definitions: Iterable[int]) -> None:
        """Add a version."""
        self.nodes[node] = None
        self.definitions.update(dict.fromkeys(definitions))


class Loop(NamedTuple):
    """The variables at each `break` and `continue` of a loop."""

    breaks: list[Env]
    continues: list[Env]


class Frame(Struct, eq=False):
    """The state while the statements of one scope are compiled."""

    scope: Scope
    # The function that the code belongs to; -1 for the module.
    function: int
    qualname: str
    # The class whose body this is; -1 for none.
    owner: int = -1
    # The enclosing frame, if this one runs in place within it.
    inline: Frame | None = None
    env: Env = {}
    # False after `return` and the like.
    live: bool = True
    loops: list[Loop] = []
    # Versions assigned in the enclosing `try` blocks, by name: what handlers may see.
    caught: list[dict[str, list[Version]]] = []

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
