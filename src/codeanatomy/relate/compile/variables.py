"""Variables while a file is walked: which versions of a name are seen where.

    x = A()          version 1 of x
    if c:
        x = B()      version 2
    x.m()            reads 1 and 2
    x = C()          version 3; 1 and 2 are seen by functions only if something was called in between

A frame is a run of statements with one scope. Function bodies are walked later than what is around them, and
see through a cell all versions that stood while other code could run. Comprehensions and class bodies run on
the spot, so they see the versions of the frame around.

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from codeanatomy.relate.compile.scope_tree import Scope
from codeanatomy.relate.program import NOTHING, Node


class Version:
    """A value that a name has for a while."""

    __slots__ = ("born", "definitions", "node")

    def __init__(self, node: Node, definitions: list[int], born: int) -> None:
        self.node = node
        # Numbers of the definitions it comes from; of a loop's they are added when its end is known.
        self.definitions = definitions
        # How many calls there had been.
        self.born = born


Versions: TypeAlias = tuple[Version, ...]
Env: TypeAlias = dict[str, Versions]


class Cell:
    """What code that runs at another time sees of a name."""

    __slots__ = ("definitions", "node", "nodes")

    def __init__(self) -> None:
        self.node = NOTHING
        self.nodes: dict[Node, None] = {}
        self.definitions: dict[int, None] = {}

    def show(self, node: Node, definitions: Iterable[int]) -> None:
        """A version becomes visible."""
        self.nodes[node] = None
        self.definitions.update(dict.fromkeys(definitions))


class Loop:
    """Where `break` and `continue` lead."""

    __slots__ = ("breaks", "continues")

    def __init__(self) -> None:
        self.breaks: list[Env] = []
        self.continues: list[Env] = []


class Frame:
    """The state of a walk through the statements of one scope."""

    def __init__(
        self, scope: Scope, function: int, *, qualname: str, owner: int = -1, inline: Frame | None = None
    ) -> None:
        self.scope = scope
        # Who calls what is called here; -1 for the module.
        self.function = function
        # The class whose body this is.
        self.owner = owner
        self.qualname = qualname
        # The frame that this one runs in the middle of.
        self.inline = inline
        self.env: Env = {}
        # False behind `return` and the like.
        self.live = True
        self.loops: list[Loop] = []
        # Versions made in the `try` blocks around, by name: what handlers may find.
        self.caught: list[dict[str, list[Version]]] = []

    def named(self, name: str) -> str:
        """The qualified name, inside of the module, of a definition in this frame."""
        return f"{self.qualname}.{name}" if self.qualname else name

    def holder(self, scope: Scope) -> Frame | None:
        """The frame of a scope, if this one runs in the middle of it."""
        frame: Frame | None = self
        while frame is not None and frame.scope is not scope:
            frame = frame.inline
        return frame


def merged(envs: Iterable[Env]) -> Env:
    """The versions that any of the environments has."""
    found: Env = {}
    for env in envs:
        if not found:
            found = dict(env)
            continue
        for name, versions in env.items():
            own = found.get(name, ())
            if own is not versions:
                found[name] = tuple(dict.fromkeys((*own, *versions)))
    return found
