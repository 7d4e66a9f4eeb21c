"""A repository: its programs with their nodes side by side, its modules, and the objects that values are.

    world = World(programs)
    world.things[thing >> 1]        # Thing("F", file, function): a function

Kinds of things:

    F file number        function, method or lambda          C file number       class
    M file               module                              N name              namespace package
    I class              instance of a class (all as one)    L file number       container, by its place
    X name               anything outside, by its name       Y name              instance of a class outside
    H name receiver      member of such an instance          J text              string, perhaps a name
    R key                functools.singledispatch            K dispatcher        `f.register`
    j text               string that begins so
    O key                field of a dataclass                Z class             `type.__call__` of a class
    B function receiver  method bound to its receiver        S class receiver    what `super()` gives
    G function           generator                           A function          coroutine
    P key                property                            Q property part     `x.setter`
    T key                staticmethod or classmethod         U key call          functools.partial
    u key call           functools.partialmethod             w key               functools.wraps(f)
    c key                contextlib.closing
    f key                what `Callable[..., X]` hints at
    E container name     method of a builtin container       W function          @contextmanager
    V function           what a call of the former gives     D container part    view of a dict

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
    """An object, by what identifies it."""

    kind: str
    first: Any = None
    second: Any = None
    # Of a function, which of its copies (`copies`); None for the one that all share.
    copy: int | None = None


def module_names_by_path(programs: Iterable[Program]) -> dict[str, str]:
    """The names of the modules of a repository."""
    programs = list(programs)
    imported = (
        each.module if each.name is None else f"{each.module}.{each.name}"
        for program in programs
        for each in program.imports
        if each.level == 0
    )
    return module_names((program.path for program in programs), imported)


class LinkedPrograms(Solver):
    """What is known of a repository before any rule runs."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(*(() if limit is None else (limit,)))
        self.programs = sorted(programs, key=lambda program: program.path)
        self.offsets = [self.reserve(program.nodes) for program in self.programs]
        self.files = {program.path: number for number, program in enumerate(self.programs)}
        self.modules = Modules(module_names_by_path(self.programs))
        self.names = [self.modules.names[program.path] for program in self.programs]
        self.objects: list[ObjectKey] = []
        # Nodes of each copy of a function, by those of its file.
        self.copies: list[Mapping[int, int]] = []
        self._object_ids: dict[tuple[Any, ...], Object] = {}
        # Nodes of the copy that is being made, by those of its file.
        self.active_copy: Mapping[int, int] = {}
        self.fields: dict[Object, dict[str, int]] = {}

    def object(self, kind: str, first: Any = None, second: Any = None, copy: int | None = None) -> Object:
        """The number of a thing."""
        # A plain tuple is the same key, and is made in a fraction of the time.
        found = self._object_ids.get((kind, first, second, copy))
        if found is None:
            key = ObjectKey(kind, first, second, copy)
            found = self._object_ids[key] = len(self.objects) * 2
            self.objects.append(key)
        return found

    def global_node(self, file: int, node: int) -> int:
        """The node of a program, among all; in the copy of a function that is at work."""
        if node < 0:
            return node
        return self.active_copy[node] if node in self.active_copy else self.offsets[file] + node

    def field(self, obj: Object, name: str) -> int:
        """What an attribute or an element of a thing holds."""
        own = self.fields.get(obj & ~1)
        if own is None:
            own = self.fields[obj & ~1] = {}
        node = own.get(name)
        if node is None:
            node = own[name] = self.new_node()
        return node

    def function(self, obj: Object) -> tuple[int, Function]:
        """The file and the function of a function thing."""
        _, file, number, _ = self.objects[obj >> 1]
        return file, self.programs[file].functions[number]

    def function_node(self, obj: Object, node: int) -> int:
        """A node of a function, among all: that of its copy, or the one that all share."""
        if node < 0:
            return node
        _, file, _, copy = self.objects[obj >> 1]
        shared = self.offsets[file] + node
        return shared if copy is None else self.copies[copy].get(node, shared)

    def cls(self, obj: Object) -> tuple[int, Class]:
        """The file and the class of a class thing."""
        _, file, number, _ = self.objects[obj >> 1]
        return file, self.programs[file].classes[number]

    def qualified_name(self, obj: Object) -> str:
        """The qualified name of a function or class."""
        kind, file, number, _ = self.objects[obj >> 1]
        program = self.programs[file]
        own = program.functions[number].qualname if kind == OBJ_FUNCTION else program.classes[number].qualname
        return f"{self.names[file]}.{own}"
