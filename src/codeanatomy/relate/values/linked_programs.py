"""Link the programs of a repository: one node space, the module table and the table of abstract objects.

    linked = LinkedPrograms(programs)
    linked.objects[obj >> 1]        # ObjectKey(OBJ_FUNCTION, file, function): a function

A file is its index in `programs`, which are sorted by path. The kinds of objects (`OBJ_*`), and what
identifies an object of each kind, are listed in `relate.program`.

Tests: `tests/unit/relate/test_linked_programs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from codeanatomy.relate.program import (
    OBJ_FUNCTION,
    Class,
    Function,
    Program,
)
from codeanatomy.relate.values.modules import Modules, module_names
from codeanatomy.relate.values.solver import Object, Solver


class ObjectKey(NamedTuple):
    """The identity of an abstract object: its kind, and up to two operands listed with the kind."""

    kind: str
    first: Any = None
    second: Any = None
    # Of a function or container, the function copy it belongs to (`function_copies`); None if it is no copy.
    copy: int | None = None


def module_names_by_path(programs: Iterable[Program]) -> dict[str, str]:
    """Return the dotted module name of each path of a repository."""
    programs = list(programs)
    imported = (
        each.module if each.name is None else f"{each.module}.{each.name}"
        for program in programs
        for each in program.imports
        if each.level == 0
    )
    return module_names((program.path for program in programs), imported)


class LinkedPrograms(Solver):
    """The programs of a repository in one solver, before any rule runs."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(*(() if limit is None else (limit,)))
        self.programs = sorted(programs, key=lambda program: program.path)
        self.offsets = [self.reserve(program.nodes) for program in self.programs]
        self.files = {program.path: number for number, program in enumerate(self.programs)}
        self.modules = Modules(module_names_by_path(self.programs))
        self.names = [self.modules.names[program.path] for program in self.programs]
        self.objects: list[ObjectKey] = []
        # Of each function copy, its nodes by the local nodes of the file.
        self.copies: list[Mapping[int, int]] = []
        self._object_ids: dict[tuple[Any, ...], Object] = {}
        # The element of `copies` that operations apply to at the moment; empty if to no copy.
        self.active_copy: Mapping[int, int] = {}
        self.fields: dict[Object, dict[str, int]] = {}

    def object(self, kind: str, first: Any = None, second: Any = None, copy: int | None = None) -> Object:
        """Return the object with this identity; create it on first use."""
        # A plain tuple is the same key, and is made in a fraction of the time.
        number = self._object_ids.get((kind, first, second, copy))
        if number is None:
            key = ObjectKey(kind, first, second, copy)
            number = self._object_ids[key] = len(self.objects) * 2
            self.objects.append(key)
        return number

    def global_node(self, file: int, node: int) -> int:
        """Map a local node of a file to the solver's node, in the active function copy if it is in it."""
        if node < 0:
            return node
        return self.active_copy[node] if node in self.active_copy else self.offsets[file] + node

    def field(self, obj: Object, name: str) -> int:
        """Return the node of an attribute or element of an object; create it on first use."""
        own = self.fields.get(obj & ~1)
        if own is None:
            own = self.fields[obj & ~1] = {}
        elif name in own:
            return own[name]
        node = own[name] = self.new_node()
        return node

    def function(self, obj: Object) -> tuple[int, Function]:
        """Return the file and the definition of an OBJ_FUNCTION."""
        _, file, number, _ = self.objects[obj >> 1]
        return file, self.programs[file].functions[number]

    def function_node(self, obj: Object, node: int) -> int:
        """Map a local node to the solver's node for this function object, which may be a copy."""
        if node < 0:
            return node
        _, file, _, copy = self.objects[obj >> 1]
        shared = self.offsets[file] + node
        return shared if copy is None else self.copies[copy].get(node, shared)

    def cls(self, obj: Object) -> tuple[int, Class]:
        """Return the file and the definition of an OBJ_CLASS."""
        _, file, number, _ = self.objects[obj >> 1]
        return file, self.programs[file].classes[number]

    def qualified_name(self, obj: Object) -> str:
        """Return the qualified name of a function or class."""
        kind, file, number, _ = self.objects[obj >> 1]
        program = self.programs[file]
        own = program.functions[number].qualname if kind == OBJ_FUNCTION else program.classes[number].qualname
        return f"{self.names[file]}.{own}"
