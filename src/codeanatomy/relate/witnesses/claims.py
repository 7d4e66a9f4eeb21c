"""What another witness claims, in nodes of our graph.

    os.path.join(a, b)       pyrefly: posixpath.join       Claim("pyrefly", key, (os.path.join,))
    Child()                  pyrefly: Base.__init__        Claim("pyrefly", key, (Child, Base.__init__))
    f()                      SCIP: `main`/f().             Claim("scip", key, (f,))

Witnesses speak of definitions by the place of their identifier, or by a qualified name. `Landmarks` finds the
definition at a place; a place where nothing is defined is not believed. A name outside is only believed if it
could be written in Python, and gets the name by which programs import it.

Tests: `tests/unit/relate/test_witnesses.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from codeanatomy.ids import stable_id
from codeanatomy.relate.program import FUNCTION
from codeanatomy.relate.values.models.builtins import DECLARATIONS
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.solver import Object

SCIP, PYREFLY = "scip", "pyrefly"
CONSTRUCTORS = ("__new__", "__init__")
# Modules that implement what is imported by another name; some differ by platform.
PUBLIC = {
    "posixpath": "os.path",
    "ntpath": "os.path",
    "posix": "os",
    "nt": "os",
    "_io": "io",
    "_collections_abc": "collections.abc",
    "_operator": "operator",
    "_functools": "functools",
    "_thread": "threading",
}
# Longer names are nobody's.
MAX_NAME = 1000


class Claim(NamedTuple):
    """What a witness says is meant: one thing, with all the nodes that it has or that run with it."""

    witness: str
    # Of the place that it speaks of.
    key: str
    targets: tuple[Target, ...]
    # Whether what overrides it may be meant too.
    is_open: bool = False
    # Bits of SCIP.
    roles: int | None = None
    # How it runs, where that differs from the call itself.
    role: str | None = None


def span_key(file_id: str, bstart: int, bend: int) -> str:
    """The evidence key of a place."""
    return stable_id("span", file_id, bstart, bend)


def public_name(name: str) -> str | None:
    """The name by which programs know something outside; None if no program can name it.

    >>> public_name("posixpath.join"), public_name("_io.TextIOWrapper"), public_name("a.b c")
    ('os.path.join', 'io.TextIOWrapper', None)
    """
    if len(name) > MAX_NAME or not all(part.isidentifier() for part in name.split(".")):
        return None
    first, dot, rest = name.partition(".")
    return PUBLIC.get(first, first) + dot + rest


def last_part(target: Target) -> str:
    """The last part of a qualified name; empty if there is none."""
    return (target.qname or "").rpartition(".")[2]


class Landmarks:
    """The definitions of a repository by their places and names."""

    def __init__(self, definitions: NameResolver, attributes: Mapping[tuple[Object, str], None]) -> None:
        self.definitions = definitions
        self.values = definitions.values
        self.attributes = attributes
        self._places: dict[int, dict[tuple[int | None, int | None], Object | Target]] = {}
        self._classes: dict[str, Object] | None = None
        self._functions: dict[str, Object] | None = None
        self._decorators: dict[str, bool] | None = None

    def at(self, file: int, bstart: int, bend: int) -> Object | Target | None:
        """The function or class whose identifier stands at a place, or the parameter."""
        if file not in self._places:
            self._places[file] = dict(self._of_file(file))
        return self._places[file].get((bstart, bend))

    def _of_file(self, file: int) -> Iterable[tuple[tuple[int | None, int | None], Object | Target]]:
        values, program = self.values, self.values.programs[file]
        wholes: dict[tuple[int | None, int | None], Object] = {}
        for number, function in enumerate(program.functions):
            wholes[function.place[:2]] = values.object("F", file, number)
            owner = f"{values.names[file]}.{function.qualname}"
            for each in function.parameters:
                node = self.definitions.node_id_at("PARAMETER", file, each.place)
                yield each.place[:2], Target("PARAMETER", node, f"{owner}.{each.name}")
        for number, cls in enumerate(program.classes):
            wholes[cls.place[:2]] = values.object("C", file, number)
        for start, end, whole_start, whole_end in program.names:
            if (whole_start, whole_end) in wholes:
                yield (start, end), wholes[whole_start, whole_end]

    def target(self, thing: Object) -> Target:
        """The node of a function or class."""
        kind, file, number, _ = self.values.objects[thing >> 1]
        return self.definitions.function(file, number) if kind == "F" else self.definitions.cls(file, number)

    def function(self, target: Target) -> Object | None:
        """The function that is a target, if it is one of the repository."""
        if self._functions is None:
            self._functions = {}
            for file, program in enumerate(self.values.programs):
                for number in range(len(program.functions)):
                    node = self.definitions.function(file, number).node
                    self._functions[node] = self.values.object("F", file, number)
        return self._functions.get(target.node)

    def cls(self, qname: str | None) -> Object | None:
        """The class with a qualified name."""
        if self._classes is None:
            self._classes = {}
            for file, program in enumerate(self.values.programs):
                for number, declared in enumerate(program.classes):
                    name = f"{self.values.names[file]}.{declared.qualname}"
                    self._classes.setdefault(name, self.values.object("C", file, number))
        return None if qname is None else self._classes.get(qname)

    def called(self, cls: Object) -> tuple[Target, ...]:
        """What a call of a class means: the class, and the constructors of the repository that run."""
        found = [self.target(cls)]
        for name in CONSTRUCTORS:
            holder = self.values.defining_class(cls, name)
            if self.values.is_repository_class(holder):
                found += (one for one in self.definitions.targets_in_class(holder, name) if one.kind == "FUNCTION")
        return tuple(found)

    def member(self, cls: Object, name: str) -> tuple[Target, ...]:
        """An attribute that a class itself has, or its instances."""
        _, declared = self.values.cls(cls)
        for word in (name, f"_{declared.name.lstrip('_')}{name}"):
            if word in declared.attrs:
                return self.definitions.targets_in_class(cls, word)
            if (cls, word) in self.attributes or word in declared.fields:
                return (self.definitions.attribute(cls, word),)
        return ()

    def outside(self, name: str) -> tuple[Target, ...]:
        """A name outside, if it can be one."""
        public = public_name(name)
        return () if public is None else (self.definitions.external(public),)

    def is_decorated(self, target: Target) -> bool:
        """Whether a decorator may have put something else in place of a function."""
        return target.node in self._decorated()

    def is_property(self, target: Target) -> bool:
        """Whether a function runs when an attribute is read: then a call is of what it returns."""
        return self._decorated().get(target.node, False)

    def _decorated(self) -> Mapping[str, bool]:
        """The functions with decorators, and whether one makes a property of them."""
        if self._decorators is None:
            self._decorators = {}
            for file, program in enumerate(self.values.programs):
                for _, kind, number, node in program.decorators:
                    if kind == FUNCTION:
                        found = self.definitions.function(file, number).node
                        is_property = self._decorators.get(found, False) or self._makes_property(file, node)
                        self._decorators[found] = is_property
        return self._decorators

    def _makes_property(self, file: int, node: int) -> bool:
        things = self.values.program_objects(file, node)
        told = [self.values.objects[thing >> 1] for thing in things]
        return any(each.kind == "Q" or (each.kind == "X" and each.first.endswith("property")) for each in told)


def is_declaration(target: Target) -> bool:
    """Whether a decorator outside only declares: `property`, and its `setter`."""
    name = target.qname or ""
    return name in DECLARATIONS or name.rpartition(".")[0] in DECLARATIONS
