"""Resolve names by scope and import rules alone, without the value analysis.

    from .models import User as U       U, through any number of re-exports: the class User
    import os.path                      os: the external module
    try: import a / except: a = None    both the module and the variable

A target is the id of a graph node. Tests: `tests/unit/relate/test_name_resolution.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from codeanatomy.file_ids import FileIds
from codeanatomy.node_ids import binding_id, module_id, natural_id, scope_id
from codeanatomy.relate.program import (
    CLASS,
    FUNCTION,
    IMPORT,
    OBJ_CLASS,
    OBJ_FUNCTION,
    PARAMETER,
    Place,
)
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.solver import Object

# A step of the search through imports:
# ("definition", file, number, name), ("import", file, number) or ("name", module, name).
ResolutionStep: TypeAlias = tuple[Any, ...]


class Target(NamedTuple):
    """A graph node that a name, import or attribute refers to."""

    kind: str
    node: str
    qname: str | None = None


class NameResolver:
    """Resolver of names, imports and class attributes of a repository."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._target_cache: dict[tuple[Any, ...], Target] = {}
        self._parameter_ids: dict[tuple[int, Place], str] = {}
        self._ids: dict[int, FileIds] = {}
        # Targets by object and attribute, shared by all files.
        self.attribute_targets: dict[tuple[Object, str], Sequence[Target]] = {}
        # Targets of sets of objects, by attribute name, kind of access, enclosing class and objects.
        self.targets_by_use: dict[tuple[Any, ...], Sequence[Target]] = {}
        self._resolved: dict[ResolutionStep, tuple[Target, ...]] = {}

    # -- graph nodes

    def ids(self, file: int) -> FileIds:
        """Return the ids of a file."""
        known = self._ids.get(file)
        if known is None:
            known = self._ids[file] = FileIds(self.values.programs[file].ids)
        return known

    def node_id_at(self, kind: str, file: int, place: Place) -> str:
        """Return the id of the graph node of this kind at a place of a file."""
        return self.ids(file).at(kind, place[0], place[1])

    def function(self, file: int, number: int) -> Target:
        """Return the target of a function."""
        key = ("function", file, number)
        target = self._target_cache.get(key)
        if target is None:
            values = self.values
            place = values.programs[file].functions[number].place
            qname = values.qualified_name(values.object(OBJ_FUNCTION, file, number))
            target = self._target_cache[key] = Target(
                "FUNCTION", self.node_id_at("FUNCTION", file, place), qname
            )
        return target

    def parameter(self, file: int, place: Place) -> str:
        """Return the id of a parameter; cached, because many calls pass arguments to it."""
        key = (file, place)
        parameter_id = self._parameter_ids.get(key)
        if parameter_id is None:
            parameter_id = self._parameter_ids[key] = self.node_id_at("PARAMETER", file, place)
        return parameter_id

    def cls(self, file: int, number: int) -> Target:
        """Return the target of a class."""
        key = ("class", file, number)
        if key not in self._target_cache:
            values = self.values
            place = values.programs[file].classes[number].place
            qname = values.qualified_name(values.object(OBJ_CLASS, file, number))
            self._target_cache[key] = Target("CLASS", self.node_id_at("CLASS", file, place), qname)
        return self._target_cache[key]

    def module(self, name: str) -> Target:
        """Return the target of a module of the repository, a namespace package or an external module."""
        values = self.values
        paths = values.modules.paths.get(name)
        if paths:
            program = values.programs[values.files[paths[0]]]
            return Target("MODULE", module_id(program.file_id), name)
        if name in values.modules.namespaces:
            return Target("PACKAGE", natural_id("PACKAGE", self.repo_id, name), name)
        return Target("EXTERNAL_MODULE", natural_id("EXTERNAL_MODULE", self.repo_id, name), name)

    @property
    def repo_id(self) -> str:
        """The repository id; empty without programs."""
        return self.values.programs[0].repo_id if self.values.programs else ""

    def external(self, name: str) -> Target:
        """Return the target of an external qualified name."""
        key = ("external", name)
        if key not in self._target_cache:
            node = natural_id("QUALIFIED_NAME", self.repo_id, name)
            self._target_cache[key] = Target("QUALIFIED_NAME", node, name)
        return self._target_cache[key]

    def binding(self, scope: str, name: str, owner: str) -> Target:
        """Return the target of a name bound in a scope; in a class, of an attribute."""
        key = ("binding", scope, name)
        if key not in self._target_cache:
            qname = f"{owner}.{name}" if owner else name
            self._target_cache[key] = Target("BINDING", binding_id(scope, name), qname)
        return self._target_cache[key]

    def module_binding(self, file: int, name: str) -> Target:
        """Return the target of a variable of a module."""
        scope = scope_id(self.values.programs[file].ids.keys[0])
        return self.binding(scope, name, self.values.names[file])

    def attribute(self, cls: Object, name: str) -> Target:
        """Return the target of an attribute of a class or of its instances."""
        values = self.values
        return self.binding(values.cls(cls)[1].scope_id, name, values.qualified_name(cls))

    # -- name resolution

    def targets_of_definitions(self, file: int, numbers: Sequence[int], name: str) -> tuple[Target, ...]:
        """Return the targets of definitions; of variables only those of the module have one."""
        if len(numbers) == 1:
            return self._search(("definition", file, numbers[0], name))
        targets: dict[Target, None] = {}
        for number in numbers:
            targets.update(dict.fromkeys(self._search(("definition", file, number, name))))
        return tuple(targets)

    def targets_of_import(self, file: int, number: int) -> tuple[Target, ...]:
        """Return the targets of an import."""
        return self._search(("import", file, number))

    def targets_of_name(self, module: str, name: str) -> tuple[Target, ...]:
        """Return the targets of a name of a module."""
        return self._search(("name", module, name))

    def _search(self, start: ResolutionStep) -> tuple[Target, ...]:
        """Return all targets reached from a step, through any number of imports."""
        known = self._resolved.get(start)
        if known is None:
            reached: dict[Target, None] = {}
            seen: set[ResolutionStep] = {start}
            todo = [start]
            while todo:
                targets, steps = self._next(todo.pop())
                reached.update(dict.fromkeys(targets))
                todo += reversed([step for step in steps if step not in seen])
                seen.update(steps)
            known = self._resolved[start] = tuple(reached)
        return known

    def _next(self, step: ResolutionStep) -> tuple[Sequence[Target], Sequence[ResolutionStep]]:
        """Return the targets of a step, and the further steps to follow."""
        if step[0] == "definition":
            return self._follow_definition(*step[1:])
        return self._follow_import(*step[1:]) if step[0] == "import" else self._follow_name(*step[1:])

    def _follow_definition(
        self, file: int, number: int, name: str
    ) -> tuple[Sequence[Target], Sequence[ResolutionStep]]:
        program = self.values.programs[file]
        definition = program.definitions[number]
        if definition.kind == FUNCTION:
            return [self.function(file, definition.index)], ()
        if definition.kind == CLASS:
            return [self.cls(file, definition.index)], ()
        if definition.kind == PARAMETER:
            function = self.function(file, definition.index)
            parameter = program.functions[definition.index].parameters[int(definition.name)].name
            node = self.parameter(file, definition.place)
            return [Target("PARAMETER", node, f"{function.qname}.{parameter}")], ()
        if definition.kind == IMPORT:
            return (), [("import", file, definition.index)]
        if name in program.variables:
            return [self.module_binding(file, name)], ()
        return (), ()

    def _follow_import(self, file: int, number: int) -> tuple[Sequence[Target], Sequence[ResolutionStep]]:
        program = self.values.programs[file]
        each = program.imports[number]
        name = self.values.modules.absolute(program.path, each.module, each.level)
        if name is None:
            return (), ()
        if each.name is None:
            return [self.module(name.partition(".")[0] if each.binds_first else name)], ()
        inner = f"{name}.{each.name}"
        if name == self.values.names[file] and self.values.modules.has(inner):
            # `from . import part` in the package itself.
            return [self.module(inner)], ()
        return (), [("name", name, each.name)]

    def _follow_name(self, module: str, name: str) -> tuple[Sequence[Target], Sequence[ResolutionStep]]:
        values = self.values
        inner = f"{module}.{name}"
        paths = values.modules.paths.get(module)
        if not paths:
            if values.modules.has(inner):
                return [self.module(inner)], ()
            return ([] if module in values.modules.namespaces else [self.external(inner)]), ()
        for path in paths:
            file = values.files[path]
            variables = values.programs[file].variables
            if name in variables:
                return (), [("definition", file, number, name) for number in variables[name][2]]
        star = self._star_source(values.files[paths[0]], name)
        if star is not None:
            return (), [("name", star, name)]
        return ([self.module(inner)] if values.modules.has(inner) else []), ()

    def _star_source(self, file: int, name: str) -> str | None:
        """Return the last star-imported module that exports a name."""
        values = self.values
        for star in reversed(values.star_imports(file)):
            if star in values.modules.paths:
                other = values.files[values.modules.paths[star][0]]
                if other != file and values.exports(other, name):
                    return star
        return None

    def targets_of_unbound(self, file: int, name: str) -> tuple[Target, ...]:
        """Return the targets of a name that its file does not bind; empty for builtins."""
        star = self._star_source(file, name)
        if star is not None:
            return self.targets_of_name(star, name)
        submodule = self.values.submodule(file, name)
        return () if submodule is None else (self.module(submodule),)

    def targets_in_class(self, cls: Object, name: str) -> tuple[Target, ...]:
        """Return the targets of an attribute defined by a class itself."""
        values = self.values
        file, declared = values.cls(cls)
        if name not in declared.attrs:
            return (self.attribute(cls, name),)
        numbers = declared.attrs[name][1]
        kinds = {values.programs[file].definitions[number].kind for number in numbers}
        if kinds <= {FUNCTION, CLASS, IMPORT}:
            return self.targets_of_definitions(file, numbers, name)
        return (self.attribute(cls, name),)
