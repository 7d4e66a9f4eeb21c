"""What may use a definition without an edge that says so.

    around = surroundings(reader, definitions)  # `query.walks.usage_facts`
    around.unresolved_place(definitions[0])     # "shop/a.py:7": an attribute of its name, of who knows what
    around.base_outside(definitions[0])         # "threading.Thread", which may call the methods of its heirs

The facts were read before; here they are put together. Names are compared as they are written. Tests:
`tests/unit/query/test_verb_unused.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from codeanatomy.query.answers import place
from codeanatomy.query.walks.test_code import is_test

# Bases that know nothing of the names below them.
QUIET = (
    "abc.ABC",
    "typing.Generic",
    "typing.Protocol",
    "typing_extensions.Generic",
    "typing_extensions.Protocol",
)
# Path, first byte, line.
Place: TypeAlias = tuple[str, int, int]
# Repository and name, or repository and path.
Key: TypeAlias = tuple[str, str]


class Definition(Struct, frozen=True):
    """A function or class."""

    node_id: str
    kind: str
    subkind: str | None
    name: str
    qualname: str
    repo_id: str
    path: str
    line: int | None
    bstart: int
    bend: int

    @property
    def key(self) -> Key:
        """What it is called, in its repository."""
        return self.repo_id, self.name

    def holds(self, path: str, bstart: int) -> bool:
        """Whether a place of its repository is inside of its own text."""
        return path == self.path and self.bstart <= bstart < self.bend

    @property
    def is_test(self) -> bool:
        """Whether it is test code, by its path and name."""
        return is_test(self.path, self.qualname)


class Surroundings(Struct, frozen=True):
    """What may use definitions without an edge that says so."""

    # The definitions that no edge uses, by node.
    unused: Mapping[str, Definition]
    # What a definition is directly inside of.
    parents: Mapping[str, str]
    # Methods and those they override, and the other way round.
    overrides: Mapping[str, Sequence[str]]
    overridden: Mapping[str, Sequence[str]]
    # Qualified names of methods that override others.
    names: Mapping[str, str]
    # Classes and their bases in the repository, and the other way round.
    bases: Mapping[str, Sequence[str]]
    heirs: Mapping[str, Sequence[str]]
    # Names of bases outside, or that are not known.
    outside: Mapping[str, Sequence[str]]
    # Files of classes.
    files: Mapping[str, Key]
    decorators: Mapping[str, str]
    # Classes and what is told of them when they are made.
    hooks: Mapping[str, str]
    # By name: attributes that could not be resolved, or not for sure, texts, what `__all__` lists.
    unresolved: Mapping[Key, Sequence[Place]]
    uncertain: Mapping[Key, Sequence[Place]]
    texts: Mapping[Key, Sequence[Place]]
    exported: frozenset[Key]
    # By repository: texts that computed names may begin with.
    beginnings: Mapping[str, Sequence[tuple[str, str, int]]]
    # Where the name of a private definition is said of something else.
    namesakes: Mapping[str, str]
    # By file: where names of attributes are computed; and of those of `self`.
    computed: Mapping[Key, int]
    of_self: Mapping[Key, int]

    def is_private(self, each: Definition) -> bool:
        """Whether only its own repository can mean it, by its name or by being inside of a function."""
        return is_private_name(each.qualname) or any(
            parent.startswith("function:") for parent in self._around(each.node_id)
        )

    def is_exported(self, each: Definition) -> bool:
        """Whether an `__all__` of the repository lists it."""
        at_top = self.parents.get(each.node_id, "").startswith("module:")
        return at_top and each.key in self.exported

    def overrides_used(self, each: Definition) -> bool:
        """Whether it overrides a method that is used."""
        return any(base not in self.unused for base in reachable([each.node_id], self.overrides)[1:])

    def overrides_weak(self, each: Definition, is_weak: Callable[[Definition], bool]) -> str | None:
        """A method that it overrides and that may be used."""
        found = (self.unused[base] for base in self.overrides.get(each.node_id, ()) if base in self.unused)
        return next((base.qualname for base in found if is_weak(base)), None)

    def overridden_by_used(self, each: Definition) -> str | None:
        """A method that is used and overrides it."""
        for other in reachable([each.node_id], self.overridden)[1:]:
            if other not in self.unused:
                return self.names[other]
        return None

    def base_outside(self, each: Definition) -> str | None:
        """A base outside of the repository, of its class or of one beside it, that may know its name."""
        for related in self._family(each):
            for base in self.outside.get(related, ()):
                if may_know(base, each.name if each.kind == "FUNCTION" else None):
                    return base
        return None

    def computes_names(self, each: Definition) -> str | None:
        """Where names of attributes are computed in its file, or in those of its class's family."""
        return _first_of([(each.repo_id, each.path), *self._files(each)], self.computed)

    def computes_own_names(self, each: Definition) -> str | None:
        """Where its class's family computes names of attributes of `self`."""
        return _first_of(self._files(each), self.of_self) if each.kind == "FUNCTION" else None

    def unresolved_place(self, each: Definition) -> str | None:
        """Where its name is an attribute of something that is not known."""
        return self._first(each, self.unresolved.get(each.key, ()))

    def uncertain_place(self, each: Definition) -> str | None:
        """Where its name is an attribute that means something else, if what is known there is all."""
        return self._first(each, self.uncertain.get(each.key, ()))

    def made_in(self, each: Definition) -> str | None:
        """A text that its name begins with, where names of attributes are computed."""
        texts = self.beginnings.get(each.repo_id, ())
        return next((place(path, line) for text, path, line in texts if each.name.startswith(text)), None)

    def text_place(self, each: Definition) -> str | None:
        """Where its name stands in a text."""
        return self._first(each, self.texts.get(each.key, ()))

    def hook(self, each: Definition) -> str | None:
        """What is told of a class, or of the class that it is directly inside of, when that is made."""
        if each.kind != "CLASS":
            return None
        return self.hooks.get(each.node_id) or self.hooks.get(self.parents.get(each.node_id, ""))

    def _first(self, each: Definition, places: Iterable[Place]) -> str | None:
        """The first place outside of a definition's own text, if it can be meant there."""
        # A variable of a function is no attribute of anything.
        if self.parents.get(each.node_id, "").startswith("function:"):
            return None
        found = (place(path, line) for path, at, line in places if not each.holds(path, at))
        return next(found, None)

    def _around(self, node_id: str) -> list[str]:
        found = []
        while parent := self.parents.get(node_id):
            found.append(parent)
            node_id = parent
        return found

    def _files(self, each: Definition) -> list[Key]:
        return [self.files[related] for related in self._family(each)]

    def _family(self, each: Definition) -> list[str]:
        """The class of a method, or the class itself; those below it, and all of their bases."""
        own = each.node_id if each.kind == "CLASS" else self.parents.get(each.node_id, "")
        if not own.startswith("class:"):
            return []
        return [found for found in reachable(reachable([own], self.heirs), self.bases) if found in self.files]


def _first_of(files: Iterable[Key], lines: Mapping[Key, int]) -> str | None:
    return next((place(file[1], lines[file]) for file in files if file in lines), None)


def reachable(start: Iterable[str], steps: Mapping[str, Sequence[str]]) -> list[str]:
    """What is reached from some nodes, they first.

    >>> reachable(["a"], {"a": ["b"], "b": ["a", "c"]})
    ['a', 'b', 'c']
    """
    found = dict.fromkeys(start)
    level = list(found)
    while level:
        level = list(dict.fromkeys(to for node in level for to in steps.get(node, ()) if to not in found))
        found.update(dict.fromkeys(level))
    return list(found)


def may_know(base: str, method: str | None) -> bool:
    """Whether a base outside may call a method of this name, or know of the class itself.

    >>> may_know("builtins.dict", "update"), may_know("builtins.dict", "sorted_keys")
    (True, False)
    >>> may_know("threading.Thread", "run"), may_know("builtins.Exception", None)
    (True, False)
    """
    module, _, name = base.rpartition(".")
    if module == "builtins" and hasattr(builtins, name):
        return method is not None and hasattr(getattr(builtins, name), method)
    return base not in QUIET


def is_private_name(qualname: str) -> bool:
    """Whether a part of a name begins with an underscore.

    >>> is_private_name("pkg._mod.f"), is_private_name("pkg.A.__init__"), is_private_name("pkg.__main__.f")
    (True, False, False)
    """
    parts = qualname.split(".")
    return any(part.startswith("_") and not part.endswith("__") for part in parts)
