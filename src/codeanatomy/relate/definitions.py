"""What a name means by scope and import rules alone, without looking at values.

    from .models import User as U       U, through any number of hops: the class User
    import os.path                      os: the module outside
    try: import a / except: a = None    both the module and the variable

Every target is a node of the graph. Tests: `tests/test_relate_definitions.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codeanatomy.ids import stable_id
from codeanatomy.nodes import (
    PREFIXES,
    binding_id,
    external_module_id,
    module_id,
    node_id,
    qualified_name_id,
    scope_id,
)
from codeanatomy.relate.program import CLASS, FUNCTION, IMPORT, PARAMETER, Place
from codeanatomy.relate.solver import Object
from codeanatomy.relate.values import Values

MODULE_KEY = "module:top@0#0"


class Target(NamedTuple):
    """A node that something refers to."""

    kind: str
    node: str
    qname: str | None = None


class Definitions:
    """Names and imports of a repository."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._imports: dict[tuple[int, int], tuple[Target, ...]] = {}
        self._names: dict[tuple[int, str], tuple[Target, ...]] = {}

    # -- nodes

    def at(self, kind: str, file: int, place: Place) -> str:
        """The id of what stands at a place of a file."""
        start, end, _ = place
        file_id = self.values.programs[file].file_id
        if start is None or end is None:
            return stable_id(PREFIXES[kind], file_id, start, end, "unplaced")
        return node_id(kind, file_id, start, end)

    def function(self, file: int, number: int) -> Target:
        """A function."""
        values = self.values
        place = values.programs[file].functions[number].place
        qname = values.qualified(values.thing("F", file, number))
        return Target("FUNCTION", self.at("FUNCTION", file, place), qname)

    def cls(self, file: int, number: int) -> Target:
        """A class."""
        values = self.values
        place = values.programs[file].classes[number].place
        return Target("CLASS", self.at("CLASS", file, place), values.qualified(values.thing("C", file, number)))

    def module(self, name: str) -> Target:
        """A module of the repository, a namespace package, or one outside."""
        values = self.values
        paths = values.modules.paths.get(name)
        if paths:
            program = values.programs[values.files[paths[0]]]
            return Target("MODULE", module_id(program.file_id), name)
        return Target("EXTERNAL_MODULE", external_module_id(self.repo_id, name), name)

    @property
    def repo_id(self) -> str:
        """The repository."""
        return self.values.programs[0].repo_id if self.values.programs else ""

    def outside(self, name: str) -> Target:
        """A name outside of the repository."""
        return Target("QUALIFIED_NAME", qualified_name_id(self.repo_id, name), name)

    def binding(self, file: int, scope_key: str, name: str, owner: str) -> Target:
        """A name of a scope; in a class, an attribute."""
        scope = scope_id(self.values.programs[file].file_id, scope_key)
        return Target("BINDING", binding_id(scope, name), f"{owner}.{name}" if owner else name)

    def attribute(self, cls: Object, name: str) -> Target:
        """An attribute of a class or of its instances."""
        values = self.values
        file, declared = values.cls(cls)
        return self.binding(file, declared.scope_key, name, values.qualified(cls))

    # -- names

    def of(self, file: int, numbers: Iterable[int], name: str, seen: frozenset[object] = frozenset()) -> tuple[Target, ...]:
        """What definitions of a file mean; a variable is a binding of the module, if it is one."""
        program = self.values.programs[file]
        found: dict[Target, None] = {}
        for number in numbers:
            definition = program.definitions[number]
            if definition.kind == FUNCTION:
                found[self.function(file, definition.index)] = None
            elif definition.kind == CLASS:
                found[self.cls(file, definition.index)] = None
            elif definition.kind == PARAMETER:
                function = self.function(file, definition.index)
                word = program.functions[definition.index].parameters[int(definition.name)].name
                found[Target("PARAMETER", self.at("PARAMETER", file, definition.place), f"{function.qname}.{word}")] = None
            elif definition.kind == IMPORT:
                found.update(dict.fromkeys(self.imported(file, definition.index, seen)))
            elif name in program.variables:
                found[self.binding(file, MODULE_KEY, name, self.values.names[file])] = None
        return tuple(found)

    def imported(self, file: int, number: int, seen: frozenset[object] = frozenset()) -> tuple[Target, ...]:
        """What an import binds."""
        key = (file, number)
        if key in self._imports:
            return self._imports[key]
        if key in seen:
            return ()
        values, program = self.values, self.values.programs[file]
        each = program.imports[number]
        name = values.modules.absolute(program.path, each.module, each.level)
        found: tuple[Target, ...] = ()
        if name is not None and each.name is None:
            found = (self.module(name.partition(".")[0] if each.binds_first else name),)
        elif name is not None and each.name is not None:
            found = self.name_of(name, each.name, seen | {key})
        if not seen:
            self._imports[key] = found
        return found

    def name_of(self, module: str, name: str, seen: frozenset[object] = frozenset()) -> tuple[Target, ...]:
        """What a name of a module means."""
        values = self.values
        paths = values.modules.paths.get(module)
        if not paths:
            inner = f"{module}.{name}"
            if values.modules.has(inner):
                return (self.module(inner),)
            return () if module in values.modules.namespaces else (self.outside(inner),)
        for path in paths:
            file = values.files[path]
            variables = values.programs[file].variables
            if name in variables:
                return self.of(file, variables[name][2], name, seen)
        file = values.files[paths[0]]
        if ("star", file, name) not in seen:
            for star in reversed(values.stars(file)):
                if star in values.modules.paths:
                    other = values.files[values.modules.paths[star][0]]
                    if other != file and values.exports(other, name):
                        return self.name_of(star, name, seen | {("star", file, name)})
        if values.modules.has(f"{module}.{name}"):
            return (self.module(f"{module}.{name}"),)
        return ()

    def unbound(self, file: int, name: str) -> tuple[Target, ...]:
        """What a name means that nothing in its file binds."""
        values = self.values
        for star in reversed(values.stars(file)):
            if star in values.modules.paths:
                other = values.files[values.modules.paths[star][0]]
                if values.exports(other, name):
                    return self.name_of(star, name)
        return ()

    def in_class(self, cls: Object, name: str) -> tuple[Target, ...]:
        """What an attribute of a class itself means."""
        values = self.values
        file, declared = values.cls(cls)
        if name not in declared.attrs:
            return (self.attribute(cls, name),)
        numbers = declared.attrs[name][1]
        kinds = {values.programs[file].definitions[number].kind for number in numbers}
        if kinds <= {FUNCTION, CLASS, IMPORT}:
            return self.of(file, numbers, name)
        return (self.attribute(cls, name),)


def single(targets: Sequence[Target]) -> bool:
    """Whether there is no choice."""
    return len(targets) == 1
