"""Compute method resolution orders (C3), and look up which class defines an attribute.

    values.mro(cls)                        # the class and its ancestors, external classes included
    values.defining_class(cls, "run")      # first class of the repository that has it, else an external one

Bases are the objects of expressions, so they become known during the analysis. When the bases of a class
change, or an attribute is stored on a class, all lookups in the class and its subclasses are repeated. An
external base may have any attribute that no class of the repository has.

Tests: `tests/unit/relate/test_attributes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeGuard

from codeanatomy.relate.program import (
    OBJ_CLASS,
    OBJ_EXTERNAL,
    OP_STORE_ATTRIBUTE,
    Program,
)
from codeanatomy.relate.values.external_names import may_have
from codeanatomy.relate.values.linked_programs import LinkedPrograms
from codeanatomy.relate.values.solver import Object, prefer_strong

ENUMS = frozenset(f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum"))
# Classes of one MRO.
MAX_MRO = 5000


class Hierarchy(LinkedPrograms):
    """Bases, MROs and attribute lookup."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        self._mros: dict[Object, list[Object]] = {}
        # Defining classes by class and attribute name, valid until the MRO changes.
        self._lookups: dict[Object, dict[str, Object | None]] = {}
        # Lookups to repeat, by class: attribute name, function to call, its arguments.
        self._watchers: dict[Object, list[tuple[str, Callable[..., None], tuple[Any, ...]]]] = {}
        self._subclasses: dict[Object, dict[Object, None]] = {}
        self._added_class_fields: set[tuple[Object, str]] = set()
        self.inconsistent: dict[Object, None] = {}

    def watch_bases(self, file: int, number: int) -> None:
        """Repeat the lookups in a class when its bases become known."""
        obj = self.object(OBJ_CLASS, file, number)
        for node, _, _ in self.programs[file].classes[number].bases:
            self.subscribe(self.global_node(file, node), self._new_bases, obj)

    def _new_bases(self, objects: Sequence[Object], cls: Object) -> None:
        for obj in objects:
            self._subclasses.setdefault(obj & ~1, {})[cls] = None
        self.repeat_lookups(cls)

    def repeat_lookups(self, cls: Object) -> None:
        """Repeat the lookups in a class and its subclasses."""
        affected: dict[Object, None] = {cls: None}
        todo = [cls]
        while todo:
            for each in self._subclasses.get(todo.pop(), ()):
                if each not in affected:
                    affected[each] = None
                    todo.append(each)
        for each in affected:
            self._mros.pop(each, None)
            self._lookups.pop(each, None)
        for each in affected:
            for name, then, data in list(self._watchers.get(each, ())):
                then(self.defining_class(each, name), *data)

    def bases(self, cls: Object) -> list[Object]:
        """Return the base classes; of alternatives the first one, preferably of the repository."""
        file, declared = self.cls(cls)
        bases: list[Object] = []
        for node, _, _ in declared.bases:
            objects = prefer_strong(self.points_to[self.global_node(file, node)] or ()) if node >= 0 else []
            kinds = [(obj & ~1, self.objects[obj >> 1].kind) for obj in objects]
            own = [obj for obj, kind in kinds if kind == OBJ_CLASS and obj != cls]
            external = [obj for obj, kind in kinds if kind == OBJ_EXTERNAL]
            bases += (own or external)[:1]
        return bases

    def mro(self, cls: Object) -> list[Object]:
        """Return the MRO of a class, the class itself first, external classes included."""
        known = self._mros.get(cls)
        if known is not None:
            return known
        todo = [cls]
        # Not recursive: a chain of classes may be longer than the stack is deep.
        visited: set[Object] = set()
        while todo:
            each = todo[-1]
            bases = [base for base in self.bases(each) if self.objects[base >> 1].kind == OBJ_CLASS]
            missing = [base for base in bases if base not in self._mros and base not in visited]
            visited.add(each)
            if missing:
                todo += missing
            else:
                todo.pop()
                if each not in self._mros:
                    self._mros[each] = self._linearize(each)
        return self._mros[cls]

    def _linearize(self, cls: Object) -> list[Object]:
        bases = list(dict.fromkeys(self.bases(cls)))
        # A class that is its own ancestor has no MRO yet.
        chains = [self._mros.get(base, [base]) for base in bases]
        if len(chains) == 1 and cls not in chains[0]:
            return [cls, *chains[0]][:MAX_MRO]
        order = merge_c3([*map(list, chains), list(bases)])
        if order is None or cls in order:
            self.inconsistent[cls] = None
            order = [
                each for each in dict.fromkeys(base for chain in chains for base in chain) if each != cls
            ]
        return [cls, *order][:MAX_MRO]

    def defining_class(self, cls: Object, name: str, after: Object | None = None) -> Object | None:
        """Return the class that defines an attribute: one of the repository, else an external one, else None.

        With `after`, search only the part of the MRO behind that class, as `super()` does.
        """
        if after is not None:
            order = self.mro(cls)
            return self._first_defining(order[order.index(after) + 1 :], name) if after in order else None
        known = self._lookups.get(cls)
        if known is None:
            known = self._lookups[cls] = {}
        if name not in known:
            known[name] = self._first_defining(self.mro(cls), name)
        return known[name]

    def _first_defining(self, order: Sequence[Object], name: str) -> Object | None:
        objects, programs, added = self.objects, self.programs, self._added_class_fields
        external = None
        for each in order:
            kind, first, second, _ = objects[each >> 1]
            if kind == OBJ_CLASS:
                if name in programs[first].classes[second].attrs or (each, name) in added:
                    return each
            elif external is None and may_have(first, name):
                external = each
        return external

    def is_repository_class(self, holder: Object | None) -> TypeGuard[Object]:
        """Whether the result of a lookup is a class of the repository."""
        return holder is not None and self.objects[holder >> 1].kind == OBJ_CLASS

    def watch_attribute(self, cls: Object, name: str, then: Callable[..., None], *data: Any) -> None:
        """Call then(defining class, *data) now and whenever the lookup is repeated."""
        watchers = self._watchers.get(cls)
        if watchers is None:
            watchers = self._watchers[cls] = []
        watchers.append((name, then, data))
        then(self.defining_class(cls, name), *data)

    def class_field(self, cls: Object, name: str) -> int:
        """Return the node of an attribute defined by a class itself."""
        is_new = name not in self.fields.get(cls, ())
        node = self.field(cls, name)
        if is_new:
            file, declared = self.cls(cls)
            if name in declared.attrs:
                self.flow(self.global_node(file, declared.attrs[name][0]), node)
        return node

    def external_bases(self, cls: Object) -> list[str]:
        """Return the names of the external classes in the MRO of a class."""
        return [
            self.objects[each >> 1].first
            for each in self.mro(cls)
            if self.objects[each >> 1].kind == OBJ_EXTERNAL
        ]

    def is_enum(self, cls: Object) -> bool:
        """Whether the attributes of a class are its instances."""
        return any(name in ENUMS for name in self.external_bases(cls))

    def metaclass_nodes(self, cls: Object) -> list[int]:
        """Return the nodes of the `metaclass` keywords of a class and its ancestors."""
        nodes = []
        for each in self.mro(cls & ~1):
            kind, file, number, _ = self.objects[each >> 1]
            keywords = self.programs[file].classes[number].keywords if kind == OBJ_CLASS else ()
            for keyword, value in keywords:
                if keyword == "metaclass" and value >= 0:
                    nodes.append(self.global_node(file, value))
        return nodes

    @cached_property
    def _assigned_attributes(self) -> dict[Object, set[str]]:
        """Names of the attributes that methods assign on their first parameter, by class of the method."""
        assigned: dict[Object, set[str]] = {}
        for file, program in enumerate(self.programs):
            selves = {
                function.parameters[0].node: function.owner
                for function in program.functions
                if function.owner >= 0 and function.parameters
            }
            for op in program.ops:
                if op[0] == OP_STORE_ATTRIBUTE and op[1] in selves:
                    assigned.setdefault(self.object(OBJ_CLASS, file, selves[op[1]]), set()).add(op[2])
        return assigned

    def _is_assigned(self, cls: Object, name: str) -> bool:
        """Whether a method of the class or of an ancestor assigns the attribute on its first parameter."""
        return self.objects[cls >> 1].kind == OBJ_CLASS and any(
            name in self._assigned_attributes.get(each, ()) for each in self.mro(cls)
        )

    def _add_class_field(self, cls: Object, name: str) -> None:
        """Record that an attribute is stored on a class whose body does not define it."""
        if name not in self.cls(cls)[1].attrs and (cls, name) not in self._added_class_fields:
            self._added_class_fields.add((cls, name))
            self._lookups.clear()
            self.repeat_lookups(cls)


def merge_c3(chains: list[list[Object]]) -> list[Object] | None:
    """Merge chains by C3 into one that keeps the order of each; None if there is none.

    >>> merge_c3([[1, 3], [2, 3], [1, 2]])
    [1, 2, 3]
    >>> merge_c3([[1, 2], [2, 1]])
    """
    order: list[Object] = []
    chains = [chain for chain in chains if chain]
    while chains:
        later = {each for chain in chains for each in chain[1:]}
        head = next((chain[0] for chain in chains if chain[0] not in later), None)
        if head is None:
            return None
        order.append(head)
        chains = [rest for chain in chains if (rest := chain[1:] if chain[0] == head else chain)]
    return order
