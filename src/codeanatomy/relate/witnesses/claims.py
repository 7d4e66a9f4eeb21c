"""Express the claims of other witnesses as nodes of our graph.

    os.path.join(a, b)       pyrefly: posixpath.join       Claim("pyrefly", key, (os.path.join,))
    Child()                  pyrefly: Base.__init__        Claim("pyrefly", key, (Child, Base.__init__))
    f()                      SCIP: `main`/f().             Claim("scip", key, (f,))

Witnesses name a definition by the place of its identifier, or by a qualified name. `DefinitionIndex` finds
the definition at a place; a claim of a place without a definition is dropped. An external name is accepted if
it is valid Python, and is replaced by the public name under which programs import it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import NamedTuple

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.hierarchy import defining_class
from codeanatomy.relate.values.models.builtins import DECLARATIONS
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.results import program_objects
from codeanatomy.relate.values.solver import MAX_OBJECTS, Object

SCIP, PYREFLY = "scip", "pyrefly"
CONSTRUCTORS = ("__new__", "__init__")
# Implementation modules by the public module that programs import; some differ by platform.
PUBLIC_MODULES = {
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
# Longer names are not accepted.
MAX_NAME = 1000


class Claim(NamedTuple):
    """The definition that a witness names, with all the nodes that it has or that run with it."""

    witness: str
    # Evidence key of the place that the claim is about.
    key: str
    targets: tuple[Target, ...]
    # Whether an override of the targets may run instead.
    is_open: bool = False
    # Symbol roles of SCIP, as bits.
    roles: int | None = None
    # How the targets run, if other than by the call itself.
    role: str | None = None
    # Methods of classes below that of the receiver, of which one may run instead.
    overrides: tuple[Target, ...] = ()


def public_name(name: str) -> str | None:
    """Return the name by which programs import an external definition; None if it is not valid Python.

    >>> public_name("posixpath.join"), public_name("_io.TextIOWrapper"), public_name("a.b c")
    ('os.path.join', 'io.TextIOWrapper', None)
    """
    if len(name) > MAX_NAME or not all(part.isidentifier() for part in name.split(".")):
        return None
    first, dot, rest = name.partition(".")
    return PUBLIC_MODULES.get(first, first) + dot + rest


def last_part(target: Target) -> str:
    """Return the last part of a target's qualified name, or an empty string."""
    return (target.qname or "").rpartition(".")[2]


class IndexedDefinitions(NamedTuple):
    """Definitions of a repository."""

    # Functions by node, classes by qualified name.
    functions: dict[str, Object]
    classes: dict[str, Object]
    # Nodes of decorated functions, and whether a decorator makes them a property.
    decorated: dict[str, bool]


class DefinitionIndex:
    """The definitions of a repository by place, node and qualified name."""

    def __init__(self, resolver: NameResolver, attributes: Mapping[tuple[Object, str], None]) -> None:
        self.resolver = resolver
        self.values = resolver.values
        self.attributes = attributes
        # By the spans of their identifiers.
        self._in_file = cache(lambda file: dict(self._definitions_in(file)))
        self.overrides = cache(self._overrides)

    @cached_property
    def definitions(self) -> IndexedDefinitions:
        """The definitions of the whole repository: processes that emit some files each share them."""
        index, values = IndexedDefinitions({}, {}, {}), self.values
        for file, program in enumerate(values.programs):
            nodes = [self.resolver.function(file, number).node for number in range(len(program.functions))]
            for number, function in enumerate(nodes):
                index.functions[function] = values.object(ir.OBJ_FUNCTION, file, number)
            for number, declared in enumerate(program.classes):
                name = f"{values.names[file]}.{declared.qualname}"
                index.classes.setdefault(name, values.object(ir.OBJ_CLASS, file, number))
            for _, kind, number, node in program.decorators:
                if kind == ir.FUNCTION:
                    known = index.decorated.get(nodes[number], False)
                    index.decorated[nodes[number]] = known or self._makes_property(file, node)
        return index

    def at(self, file: int, bstart: int, bend: int) -> Object | Target | None:
        """Return the function or class with its identifier at a place, the parameter there, or None."""
        return self._in_file(file).get((bstart, bend))

    def _definitions_in(self, file: int) -> Iterator[tuple[tuple[int | None, int | None], Object | Target]]:
        values, program = self.values, self.values.programs[file]
        definitions: dict[tuple[int | None, int | None], Object] = {}
        for number, function in enumerate(program.functions):
            definitions[function.place[:2]] = values.object(ir.OBJ_FUNCTION, file, number)
            owner = f"{values.names[file]}.{function.qualname}"
            for each in function.parameters:
                node = self.resolver.node_id_at("PARAMETER", file, each.place)
                yield each.place[:2], Target("PARAMETER", node, f"{owner}.{each.name}")
        for number, cls in enumerate(program.classes):
            definitions[cls.place[:2]] = values.object(ir.OBJ_CLASS, file, number)
        for start, end, whole_start, whole_end in program.names:
            if (whole_start, whole_end) in definitions:
                yield (start, end), definitions[whole_start, whole_end]

    def target(self, obj: Object) -> Target:
        kind, file, number, _ = self.values.objects[obj]
        return (self.resolver.function if kind == ir.OBJ_FUNCTION else self.resolver.cls)(file, number)

    def function(self, target: Target) -> Object | None:
        """Return the function of a target; None if it is not a function of the repository."""
        return self.definitions.functions.get(target.node)

    def cls(self, qname: str | None) -> Object | None:
        return None if qname is None else self.definitions.classes.get(qname)

    def owner(self, target: Target) -> Object | None:
        """Return the class of a method or attribute."""
        if target.kind not in ("FUNCTION", "BINDING") or target.qname is None:
            return None
        return self.cls(target.qname.rpartition(".")[0])

    def call_targets(self, obj: Object) -> tuple[Target, ...]:
        """Return what a call of a function or class runs: of a class also the repository's constructors."""
        targets = [self.target(obj)]
        for name in CONSTRUCTORS if self.values.kind[obj] == ir.OBJ_CLASS else ():
            holder = defining_class(self.values, obj, name)
            if self.values.is_repository_class(holder):
                members = self.resolver.targets_in_class(holder, name)
                targets += (member for member in members if member.kind == "FUNCTION")
        return tuple(targets)

    def _overrides(self, cls: Object, name: str) -> tuple[Target, ...]:
        """Return the methods of a name that classes below a class define."""
        below = [each for each in self.resolver.classes_below(cls) if name in self.values.cls(each)[1].attrs]
        members = [target for each in below for target in self.resolver.targets_in_class(each, name)]
        return tuple(dict.fromkeys(target for target in members if target.kind == "FUNCTION"))[:MAX_OBJECTS]

    def member(self, cls: Object, name: str) -> tuple[Target, ...]:
        """Return an attribute, possibly mangled, that a class or its instances have without inheritance."""
        _, declared = self.values.cls(cls)
        for spelling in (name, f"_{declared.name.lstrip('_')}{name}"):
            if spelling in declared.attrs:
                return self.resolver.targets_in_class(cls, spelling)
            if (cls, spelling) in self.attributes or spelling in [each.name for each in declared.fields]:
                return (self.resolver.attribute(cls, spelling),)
        return ()

    def external(self, name: str) -> tuple[Target, ...]:
        """Return the target of an external name; none if the name is not valid Python."""
        public = public_name(name)
        return () if public is None else (self.resolver.external(public),)

    def is_decorated(self, target: Target) -> bool:
        """Whether a target is a function with a decorator, which may have replaced it."""
        return target.node in self.definitions.decorated

    def is_property(self, target: Target) -> bool:
        """Whether a function is a property: a call of the attribute calls its result."""
        return self.definitions.decorated.get(target.node, False)

    def _makes_property(self, file: int, node: int) -> bool:
        kinds = (self.values.objects[obj][:2] for obj in program_objects(self.values, file, node))
        return any(
            kind == ir.OBJ_PROPERTY_DECORATOR or (kind == ir.OBJ_EXTERNAL and first.endswith("property"))
            for kind, first in kinds
        )


def is_declaration(target: Target) -> bool:
    """Whether a target is an external decorator that only declares: `property`, or its `setter`."""
    name = target.qname or ""
    return name in DECLARATIONS or name.rpartition(".")[0] in DECLARATIONS
