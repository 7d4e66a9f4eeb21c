"""Judge whether a definition without incoming edges may still be used dynamically.

    context = read_usage_context(reader, candidates)  # `query.walks.usage_facts`
    context.unresolved_place(candidates[0])     # "shop/a.py:7": an unresolved attribute of the same name
    context.external_base(candidates[0])        # "threading.Thread", which may call overridden methods

`usage_facts` reads the facts from the graph; this module combines them and needs no reader. Names are
compared as written.

Tests: `tests/unit/query/test_verb_unused.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from codeanatomy.query.answers import place
from codeanatomy.query.walks.test_code import is_test

# External bases that never call methods of their subclasses.
INERT_BASES = (
    "abc.ABC",
    "typing.Generic",
    "typing.Protocol",
    "typing_extensions.Generic",
    "typing_extensions.Protocol",
)
# Folders with copies of libraries.
VENDORED = frozenset({"vendor", "_vendor", "vendored", "_vendored", "third_party", "thirdparty", "extern"})
# Least confidence that a listed definition is dead.
DEFAULT_CONFIDENCE = 0.7
# Path, first byte, line.
Place: TypeAlias = tuple[str, int, int]
# Repository and name, or repository and path.
Key: TypeAlias = tuple[str, str]


class Definition(Struct, frozen=True):
    """A function or class of the repository."""

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
        """Repository and name."""
        return self.repo_id, self.name

    def contains(self, path: str, bstart: int) -> bool:
        """Whether a place of its repository is inside of its own text."""
        return path == self.path and self.bstart <= bstart < self.bend

    @property
    def is_test(self) -> bool:
        """Whether it is test code, by its path and name."""
        return is_test(self.path, self.qualname)


class UsageContext(Struct, frozen=True):
    """Facts by which a candidate may be used although no edge arrives at it."""

    # Definitions that no edge arrives at, and all definitions, by node id.
    unused: Mapping[str, Definition]
    definitions: Mapping[str, Definition]
    # Node ids of definitions and of the definitions directly around them.
    parents: Mapping[str, str]
    # Methods and those they override, and the reverse.
    overrides: Mapping[str, Sequence[str]]
    overridden: Mapping[str, Sequence[str]]
    # Qualified names of methods that override others.
    names: Mapping[str, str]
    # Classes and their bases in the repository, and the reverse.
    bases: Mapping[str, Sequence[str]]
    subclasses: Mapping[str, Sequence[str]]
    # Classes and the names of their external or unresolved bases.
    external_bases: Mapping[str, Sequence[str]]
    # Definitions that another module re-exports under a public name.
    reexported: frozenset[str]
    # Repositories and top packages that are programs: they answer requests, and export no names.
    applications: frozenset[Key]
    # By repository: what computed names of modules begin with, and where; and files that statements import,
    # and that no string names.
    loaders: Mapping[str, Sequence[tuple[str, str, int]]]
    imported: frozenset[Key]
    # Files that list the names of a module: `globals()`, `inspect.getmembers(...)`; the first such line.
    listed_names: Mapping[Key, int]
    decorators: Mapping[str, str]
    # Classes and a metaclass method or `__init_subclass__` that runs when they are created.
    hooks: Mapping[str, str]
    # By name: unresolved attributes, attributes of low confidence, attributes of objects from outside, string
    # literals, entries of `__all__`.
    unresolved: Mapping[Key, Sequence[Place]]
    uncertain: Mapping[Key, Sequence[Place]]
    outside: Mapping[Key, Sequence[Place]]
    texts: Mapping[Key, Sequence[Place]]
    exported: frozenset[Key]
    # Files that could not be parsed, of which few uses are known; and names in their texts.
    unparsed: frozenset[Key]
    unparsed_names: Mapping[Key, Sequence[Place]]
    # By repository: string literals that computed names may begin with.
    prefixes: Mapping[str, Sequence[tuple[str, str, int]]]
    # Where the name of a private candidate refers to another definition.
    namesakes: Mapping[str, str]
    # By file: the first line that computes attribute names; and the first that does so for `self`.
    computed: Mapping[Key, int]
    computed_on_self: Mapping[Key, int]

    def is_private(self, each: Definition) -> bool:
        """Whether only its own repository can name it: by its name, or because it is inside of a function."""
        if each.node_id in self.reexported:
            return False
        if is_private_name(each.name):
            return True
        parent = self.parents.get(each.node_id, "")
        if parent.startswith("class:") and parent in self.definitions:
            heirs = reachable([parent], self.subclasses)
            return all(self.is_private(self.definitions[heir]) for heir in heirs if heir in self.definitions)
        return not parent.startswith("module:") or is_private_name(each.qualname.rpartition(".")[0])

    def is_public_member(self, each: Definition) -> bool:
        """Whether it is a method with a public name, of a class that is used."""
        parent = self.parents.get(each.node_id, "")
        return parent.startswith("class:") and parent not in self.unused and not each.name.startswith("_")

    def is_program_part(self, each: Definition) -> bool:
        """Whether it is a function or class of a program, which no other code imports."""
        package = each.qualname.partition(".")[0]
        return (
            (each.repo_id, package) in self.applications
            and self.parents.get(each.node_id, "").startswith("module:")
            and VENDORED.isdisjoint(each.path.split("/"))
        )

    def loading_place(self, each: Definition) -> str | None:
        """Return where its module, or all names of it, may be looked up by a computed name."""
        if not self.parents.get(each.node_id, "").startswith("module:"):
            return None
        file = (each.repo_id, each.path)
        if line := _first_line([file], self.listed_names):
            return line
        places = () if file in self.imported else self.loaders.get(each.repo_id, ())
        name = f".{each.qualname}"
        return next(
            (place(path, line) for text, path, line in places if not text or f".{text}." in name), None
        )

    def is_exported(self, each: Definition) -> bool:
        """Whether an `__all__` of the repository lists it."""
        at_top = self.parents.get(each.node_id, "").startswith("module:")
        return at_top and each.key in self.exported

    def overrides_used(self, each: Definition) -> bool:
        """Whether it overrides a method that is used."""
        return any(base not in self.unused for base in reachable([each.node_id], self.overrides)[1:])

    def overrides_maybe_used(self, each: Definition, maybe_used: Callable[[Definition], bool]) -> str | None:
        """Return a method that it overrides and that may be used."""
        bases = (self.unused[base] for base in self.overrides.get(each.node_id, ()) if base in self.unused)
        return next((base.qualname for base in bases if maybe_used(base)), None)

    def overridden_by_used(self, each: Definition) -> str | None:
        """Return a method that is used and overrides it."""
        for other in reachable([each.node_id], self.overridden)[1:]:
            if other not in self.unused:
                return self.names[other]
        return None

    def external_base(self, each: Definition) -> str | None:
        """Return an external base of its class, or of a class of the same hierarchy, that may use it."""
        for related in self._hierarchy(each):
            for base in self.external_bases.get(related, ()):
                if may_use(base, each.name if each.kind == "FUNCTION" else None):
                    return base
        return None

    def computed_names_place(self, each: Definition) -> str | None:
        """Return where its file, or one of its class hierarchy, computes attribute names."""
        return _first_line([(each.repo_id, each.path), *self._files(each)], self.computed)

    def computed_on_self_place(self, each: Definition) -> str | None:
        """Return where its class hierarchy computes attribute names of `self`."""
        return _first_line(self._files(each), self.computed_on_self) if each.kind == "FUNCTION" else None

    def unparsed_place(self, each: Definition) -> str | None:
        """Return a file that could not be parsed and has its name: its own, or another."""
        if (each.repo_id, each.path) in self.unparsed:
            return each.path
        return self._first_place(each, self.unparsed_names.get(each.key, ()))

    def unresolved_place(self, each: Definition) -> str | None:
        """Return where its name is an attribute of an unknown object."""
        return self._first_place(each, self.unresolved.get(each.key, ()))

    def uncertain_place(self, each: Definition) -> str | None:
        """Return where an attribute of its name was resolved to another definition with low confidence."""
        return self._first_place(each, self.uncertain.get(each.key, ()))

    def outside_place(self, each: Definition) -> str | None:
        """Return where its name is an attribute of an object of a library, for methods."""
        is_method = self.parents.get(each.node_id, "").startswith("class:")
        return self._first_place(each, self.outside.get(each.key, ())) if is_method else None

    def prefix_place(self, each: Definition) -> str | None:
        """Return where a file that computes attribute names has a string that its name begins with."""
        texts = self.prefixes.get(each.repo_id, ())
        return next((place(path, line) for text, path, line in texts if each.name.startswith(text)), None)

    def text_place(self, each: Definition) -> str | None:
        """Return where its name is a string literal."""
        return self._first_place(each, self.texts.get(each.key, ()))

    def hook(self, each: Definition) -> str | None:
        """Return the hook that runs when the class, or the class directly around it, is created."""
        if each.kind != "CLASS":
            return None
        return self.hooks.get(each.node_id) or self.hooks.get(self.parents.get(each.node_id, ""))

    def _first_place(self, each: Definition, places: Iterable[Place]) -> str | None:
        """Return the first place outside of the candidate's own text; None for local definitions."""
        # A definition inside of a function is not an attribute of any object.
        if self.parents.get(each.node_id, "").startswith("function:"):
            return None
        outside = (place(path, line) for path, bstart, line in places if not each.contains(path, bstart))
        return next(outside, None)

    def _files(self, each: Definition) -> list[Key]:
        related = (self.definitions[node] for node in self._hierarchy(each))
        return [(other.repo_id, other.path) for other in related]

    def _hierarchy(self, each: Definition) -> list[str]:
        """Return the class (of a method, or itself), its subclasses, and all of their bases."""
        own = each.node_id if each.kind == "CLASS" else self.parents.get(each.node_id, "")
        if not own.startswith("class:"):
            return []
        related = reachable(reachable([own], self.subclasses), self.bases)
        return [node for node in related if node in self.definitions]


def _first_line(files: Iterable[Key], lines: Mapping[Key, int]) -> str | None:
    return next((place(file[1], lines[file]) for file in files if file in lines), None)


def reachable(start: Iterable[str], steps: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the start nodes and all nodes reachable from them, breadth first.

    >>> reachable(["a"], {"a": ["b"], "b": ["a", "c"]})
    ['a', 'b', 'c']
    """
    reached = dict.fromkeys(start)
    level = list(reached)
    while level:
        level = list(dict.fromkeys(to for node in level for to in steps.get(node, ()) if to not in reached))
        reached.update(dict.fromkeys(level))
    return list(reached)


def may_use(base: str, method: str | None) -> bool:
    """Whether an external base may call a method of this name or, with None, register its subclasses.

    >>> may_use("builtins.dict", "update"), may_use("builtins.dict", "sorted_keys")
    (True, False)
    >>> may_use("threading.Thread", "run"), may_use("builtins.Exception", None)
    (True, False)
    """
    module, _, name = base.rpartition(".")
    if module == "builtins" and hasattr(builtins, name):
        return method is not None and hasattr(getattr(builtins, name), method)
    return base not in INERT_BASES


def is_private_name(qualname: str) -> bool:
    """Whether a part of a qualified name begins with an underscore and is not a dunder name.

    >>> is_private_name("pkg._mod.f"), is_private_name("pkg.A.__init__"), is_private_name("pkg.__main__.f")
    (True, False, False)
    """
    parts = qualname.split(".")
    return any(part.startswith("_") and not part.endswith("__") for part in parts)
