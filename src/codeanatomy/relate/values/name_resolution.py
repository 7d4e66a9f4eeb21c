"""Resolve names by scope and import rules alone, without the value analysis.

    from .models import User as U       U, through any number of re-exports: the class User
    import os.path                      os: the external module
    try: import a / except: a = None    both the module and the variable

A target is the id of a graph node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any, NamedTuple, TypeAlias

from codeanatomy.file_ids import FileIds
from codeanatomy.node_ids import binding_id, module_id, natural_id, scope_id
from codeanatomy.relate import program as ir
from codeanatomy.relate.program import Place
from codeanatomy.relate.values.rules.imports import star_source, submodule
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.values.state import State

# A step of the search through imports:
# ("definition", file, number, name), ("import", file, number) or ("name", module, name).
ResolutionStep: TypeAlias = tuple[Any, ...]


class Target(NamedTuple):
    """A graph node that a name, import or attribute refers to."""

    kind: str
    node: str
    qname: str | None = None


def split_text(text: str) -> tuple[str, str]:
    """Return the label, if there is one, and the qualified name that a string is.

    >>> split_text("web = shop.web:run"), split_text("shop.web.run")
    (('web', 'shop.web.run'), ('', 'shop.web.run'))
    """
    label, _, name = text.rpartition("=")
    return label.strip(), name.strip().replace(":", ".")


class NameResolver:
    """Resolver of names, imports and class attributes of a repository."""

    def __init__(self, values: State) -> None:
        self.values = values
        self.repo_id = values.programs[0].repo_id if values.programs else ""
        # Targets by object and attribute, shared by all files.
        self.attribute_targets: dict[tuple[Object, str], Sequence[Target]] = {}
        # Classes by the nodes of their targets; classes below a class.
        self._classes: dict[str, Object] = {}
        self._below: dict[Object, Sequence[Object]] = {}
        # Targets of sets of objects, by attribute name, kind of access, enclosing class and objects.
        self.targets_by_use: dict[tuple[Any, ...], Sequence[Target]] = {}
        # Further classes that define an attribute, by its name and the classes of receivers that were cut.
        self.cut_classes: dict[tuple[Any, ...], Sequence[Object]] = {}
        # Computed once each: the ids of a file; the targets of a function, a class, an external name, a name
        # bound in a scope (in a class, an attribute); the id of a parameter; all targets reached from a step.
        self.ids = cache(lambda file: FileIds(values.programs[file].ids))
        self.function = cache(partial(self._define, "FUNCTION"))
        self.cls = cache(partial(self._define, "CLASS"))
        self.external, self.binding = cache(self._external), cache(self._binding)
        self.parameter, self.search = cache(partial(self.node_id_at, "PARAMETER")), cache(self._search)
        # What a step leads to, by its kind: its targets, and further steps.
        self._follow: Mapping[str, Callable[..., Iterator[Target | ResolutionStep]]] = {
            "definition": self._follow_definition,
            "import": self._follow_import,
            "name": self._follow_name,
        }

    # -- graph nodes

    def node_id_at(self, kind: str, file: int, place: Place) -> str:
        """Return the id of the graph node of this kind at a place of a file."""
        return self.ids(file).at(kind, place[0], place[1])

    def _define(self, kind: str, file: int, number: int) -> Target:
        program, is_class = self.values.programs[file], kind == "CLASS"
        place = program.classes[number].place if is_class else program.functions[number].place
        node = self.node_id_at(kind, file, place)
        obj = self.values.object(ir.OBJ_CLASS if is_class else ir.OBJ_FUNCTION, file, number)
        if is_class:
            self._classes[node] = obj
        return Target(kind, node, self.values.qualified_name(obj))

    @cached_property
    def named_in_texts(self) -> dict[str, list[Target]]:
        """The functions and classes whose qualified names are strings of the repository."""
        programs = self.values.programs
        wanted = {split_text(text)[1] for program in programs for _, _, text, _ in program.dotted_texts}
        named: dict[str, list[Target]] = {}
        for file, program in enumerate(programs if wanted else ()):
            functions = [(each.qualname, self.function) for each in program.functions]
            classes = [(each.qualname, self.cls) for each in program.classes]
            for own in (functions, classes):
                for number, (qualname, find) in enumerate(own):
                    name = f"{self.values.names[file]}.{qualname}"
                    if name in wanted:
                        named.setdefault(name, []).append(find(file, number))
        # A name may also be re-exported: `from .web import run` in `shop/__init__.py`.
        for name in sorted(wanted - named.keys()):
            module, _, attribute = name.rpartition(".")
            if module in self.values.modules.paths:
                targets = self.search(("name", module, attribute))
                named[name] = [target for target in targets if target.kind in ("FUNCTION", "CLASS")]
        return named

    def _external(self, name: str) -> Target:
        return Target("QUALIFIED_NAME", natural_id("QUALIFIED_NAME", self.repo_id, name), name)

    def _binding(self, scope: str, name: str, owner: str) -> Target:
        return Target("BINDING", binding_id(scope, name), f"{owner}.{name}" if owner else name)

    def module(self, name: str) -> Target:
        """Return the target of a module of the repository, a namespace package or an external module."""
        values = self.values
        file = values.file_of(name)
        if file is not None:
            return Target("MODULE", module_id(values.programs[file].file_id), name)
        kind = "PACKAGE" if name in values.modules.namespaces else "EXTERNAL_MODULE"
        return Target(kind, natural_id(kind, self.repo_id, name), name)

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
            return self.search(("definition", file, numbers[0], name))
        every = (self.search(("definition", file, number, name)) for number in numbers)
        return tuple(dict.fromkeys(target for targets in every for target in targets))

    def _search(self, start: ResolutionStep) -> tuple[Target, ...]:
        reached: dict[Target, None] = {}
        seen: set[ResolutionStep] = {start}
        todo = [start]
        while todo:
            kind, *operands = todo.pop()
            results = list(self._follow[kind](*operands))
            reached |= {each: None for each in results if isinstance(each, Target)}
            steps = [each for each in results if not isinstance(each, Target) and each not in seen]
            todo += reversed(steps)
            seen.update(steps)
        return tuple(reached)

    def _follow_definition(self, file: int, number: int, name: str) -> Iterator[Target | ResolutionStep]:
        program = self.values.programs[file]
        definition = program.definitions[number]
        if definition.kind == ir.FUNCTION:
            yield self.function(file, definition.index)
        elif definition.kind == ir.CLASS:
            yield self.cls(file, definition.index)
        elif definition.kind == ir.PARAMETER:
            function = self.function(file, definition.index)
            parameter = program.functions[definition.index].parameters[int(definition.name)].name
            node = self.parameter(file, definition.place)
            yield Target("PARAMETER", node, f"{function.qname}.{parameter}")
        elif definition.kind == ir.IMPORT:
            yield ("import", file, definition.index)
        elif name in program.variables:
            yield self.module_binding(file, name)

    def _follow_import(self, file: int, number: int) -> Iterator[Target | ResolutionStep]:
        program = self.values.programs[file]
        each = program.imports[number]
        name = self.values.modules.absolute(program.path, each.module, each.level)
        inner = f"{name}.{each.name}"
        if name is None:
            return
        if each.name is None:
            yield self.module(name.partition(".")[0] if each.binds_first else name)
        elif name == self.values.names[file] and self.values.modules.has(inner):
            # `from . import part` in the package itself.
            yield self.module(inner)
        else:
            yield ("name", name, each.name)

    def _follow_name(self, module: str, name: str) -> Iterator[Target | ResolutionStep]:
        values, inner = self.values, f"{module}.{name}"
        files = [values.files[path] for path in values.modules.paths.get(module, ())]
        own = next((file for file in files if name in values.programs[file].variables), None)
        star = star_source(values, files[0], name) if files and own is None else None
        if own is not None:
            for number in values.programs[own].variables[name][2]:
                yield ("definition", own, number, name)
        elif star is not None:
            yield ("name", star, name)
        elif values.modules.has(inner):
            yield self.module(inner)
        elif not files and module not in values.modules.namespaces:
            yield self.external(inner)

    def targets_of_unbound(self, file: int, name: str) -> tuple[Target, ...]:
        """Return the targets of a name that its file does not bind; empty for builtins."""
        star = star_source(self.values, file, name)
        if star is not None:
            return self.search(("name", star, name))
        inner = submodule(self.values, file, name)
        return () if inner is None else (self.module(inner),)

    def targets_in_class(self, cls: Object, name: str) -> tuple[Target, ...]:
        """Return the targets of an attribute defined by a class itself."""
        values = self.values
        file, declared = values.cls(cls)
        if name not in declared.attrs:
            return (self.attribute(cls, name),)
        numbers = declared.attrs[name][1]
        kinds = {values.programs[file].definitions[number].kind for number in numbers}
        if kinds <= {ir.FUNCTION, ir.CLASS, ir.IMPORT}:
            return self.targets_of_definitions(file, numbers, name)
        return (self.attribute(cls, name),)

    def classes_below(self, cls: Object) -> Sequence[Object]:
        """Return all classes that inherit from a class, directly or not."""
        known = self._below.get(cls)
        if known is None:
            below: dict[Object, None] = {}
            todo = [cls]
            while todo:
                more = [
                    each for each in self.values.classes.subclasses.get(todo.pop(), ()) if each not in below
                ]
                below.update(dict.fromkeys(more))
                todo += more
            known = self._below[cls] = list(below)
        return known

    def members(self, target: Target, name: str) -> Sequence[Target]:
        """Return the targets of a name in a module, an external name or a class, by its own definitions."""
        kind, node, qname = target
        if qname is not None and kind in ("MODULE", "PACKAGE", "EXTERNAL_MODULE"):
            return self.search(("name", qname, name))
        if kind == "QUALIFIED_NAME":
            return (self.external(f"{qname}.{name}"),)
        cls = self._classes.get(node)
        if cls is None or name not in self.values.cls(cls)[1].attrs:
            return ()
        return self.targets_in_class(cls, name)
