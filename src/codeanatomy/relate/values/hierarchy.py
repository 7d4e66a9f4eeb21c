"""Classes above and below each other: C3 MROs of what bases are found to be, and where an attribute is found.

    values.mro(cls)              # the class, those above it, classes outside included
    values.find(cls, "run")      # the first class of the repository that has it, else one outside that may

When the bases of a class become known later, or a class gets an attribute from outside, all that looked there
looks again. A base outside of the repository has whatever no class of the repository has.

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
MAX_MRO = 5000


class Hierarchy(LinkedPrograms):
    """Bases, MROs and lookups."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        self._mros: dict[Object, list[Object]] = {}
        # What was found in a class, by name, while its MRO stays as it is.
        self._lookups: dict[Object, dict[str, Object | None]] = {}
        # Who looked up which name in a class: what to call, and with what.
        self._watchers: dict[Object, list[tuple[str, Callable[..., None], tuple[Any, ...]]]] = {}
        self._subclasses: dict[Object, dict[Object, None]] = {}
        self._added_class_fields: set[tuple[Object, str]] = set()
        self.inconsistent: dict[Object, None] = {}

    def watch_bases(self, file: int, number: int) -> None:
        """Look again at a class when its bases become known."""
        obj = self.object(OBJ_CLASS, file, number)
        for node, _, _ in self.programs[file].classes[number].bases:
            self.subscribe(self.global_node(file, node), self._new_bases, obj)

    def _new_bases(self, objects: Sequence[Object], cls: Object) -> None:
        for obj in objects:
            self._subclasses.setdefault(obj & ~1, {})[cls] = None
        self.repeat_lookups(cls)

    def repeat_lookups(self, cls: Object) -> None:
        """Repeat what was looked up in a class and in those below it."""
        below: dict[Object, None] = {cls: None}
        todo = [cls]
        while todo:
            for each in self._subclasses.get(todo.pop(), ()):
                if each not in below:
                    below[each] = None
                    todo.append(each)
        for each in below:
            self._mros.pop(each, None)
            self._lookups.pop(each, None)
        for each in below:
            for name, then, data in list(self._watchers.get(each, ())):
                then(self.defining_class(each, name), *data)

    def bases(self, cls: Object) -> list[Object]:
        """The base classes, of alternatives the first of the repository."""
        file, declared = self.cls(cls)
        found = []
        for node, _, _ in declared.bases:
            objects = prefer_strong(self.points_to[self.global_node(file, node)] or ()) if node >= 0 else []
            kinds = [(obj & ~1, self.objects[obj >> 1].kind) for obj in objects]
            own = [obj for obj, kind in kinds if kind == OBJ_CLASS and obj != cls]
            outside = [obj for obj, kind in kinds if kind == OBJ_EXTERNAL]
            found += (own or outside)[:1]
        return found

    def mro(self, cls: Object) -> list[Object]:
        """The classes that attributes are looked up in, first the class itself; classes outside included."""
        known = self._mros.get(cls)
        if known is not None:
            return known
        todo = [cls]
        # By hand: a chain of classes may be longer than the stack is deep.
        open_ones: set[Object] = set()
        while todo:
            each = todo[-1]
            bases = [base for base in self.bases(each) if self.objects[base >> 1].kind == OBJ_CLASS]
            missing = [base for base in bases if base not in self._mros and base not in open_ones]
            open_ones.add(each)
            if missing:
                todo += missing
            else:
                todo.pop()
                if each not in self._mros:
                    self._mros[each] = self._linearized(each)
        return self._mros[cls]

    def _linearized(self, cls: Object) -> list[Object]:
        bases = list(dict.fromkeys(self.bases(cls)))
        # One that is its own ancestor has none yet.
        chains = [self._mros.get(base, [base]) for base in bases]
        if len(chains) == 1 and cls not in chains[0]:
            return [cls, *chains[0]][:MAX_MRO]
        order = merge_c3([*map(list, chains), list(bases)])
        if order is None or cls in order:
            self.inconsistent[cls] = None
            order = [
                each for each in dict.fromkeys(first for chain in chains for first in chain) if each != cls
            ]
        return [cls, *order][:MAX_MRO]

    def defining_class(self, cls: Object, name: str, after: Object | None = None) -> Object | None:
        """The class that has an attribute: the first of the repository, else one outside, else None."""
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
        objects, programs, stored = self.objects, self.programs, self._added_class_fields
        outside = None
        for each in order:
            kind, first, second, _ = objects[each >> 1]
            if kind == OBJ_CLASS:
                if name in programs[first].classes[second].attrs or (each, name) in stored:
                    return each
            elif outside is None and may_have(first, name):
                outside = each
        return outside

    def is_repository_class(self, holder: Object | None) -> TypeGuard[Object]:
        """Whether a class that was found is one of the repository."""
        return holder is not None and self.objects[holder >> 1].kind == OBJ_CLASS

    def watch_attribute(self, cls: Object, name: str, then: Callable[..., None], *data: Any) -> None:
        """Tell where an attribute is found, now and when that changes."""
        watchers = self._watchers.get(cls)
        if watchers is None:
            watchers = self._watchers[cls] = []
        watchers.append((name, then, data))
        then(self.defining_class(cls, name), *data)

    def class_field(self, cls: Object, name: str) -> int:
        """What an attribute of a class itself holds."""
        is_new = name not in self.fields.get(cls, ())
        node = self.field(cls, name)
        if is_new:
            file, declared = self.cls(cls)
            if name in declared.attrs:
                self.flow(self.global_node(file, declared.attrs[name][0]), node)
        return node

    def external_bases(self, cls: Object) -> list[str]:
        """Names of the classes outside of the repository that a class has."""
        return [
            self.objects[each >> 1].first
            for each in self.mro(cls)
            if self.objects[each >> 1].kind == OBJ_EXTERNAL
        ]

    def is_enum(self, cls: Object) -> bool:
        """Whether the attributes of a class are its instances."""
        return any(name in ENUMS for name in self.external_bases(cls))

    def metaclass_nodes(self, cls: Object) -> list[int]:
        """Nodes of the metaclasses that a class and those above it name."""
        found = []
        for each in self.mro(cls & ~1):
            kind, file, number, _ = self.objects[each >> 1]
            keywords = self.programs[file].classes[number].keywords if kind == OBJ_CLASS else ()
            for word, value in keywords:
                if word == "metaclass" and value >= 0:
                    found.append(self.global_node(file, value))
        return found

    @cached_property
    def _assigned_attributes(self) -> dict[Object, set[str]]:
        """Names of the attributes that methods assign on their first parameter, by class."""
        found: dict[Object, set[str]] = {}
        for file, program in enumerate(self.programs):
            selves = {
                function.parameters[0].node: function.owner
                for function in program.functions
                if function.owner >= 0 and function.parameters
            }
            for op in program.ops:
                if op[0] == OP_STORE_ATTRIBUTE and op[1] in selves:
                    found.setdefault(self.object(OBJ_CLASS, file, selves[op[1]]), set()).add(op[2])
        return found

    def _is_assigned(self, cls: Object, name: str) -> bool:
        """Whether a method of the class assigns the attribute."""
        return self.objects[cls >> 1].kind == OBJ_CLASS and any(
            name in self._assigned_attributes.get(each, ()) for each in self.mro(cls)
        )

    def _add_class_field(self, cls: Object, name: str) -> None:
        if name not in self.cls(cls)[1].attrs and (cls, name) not in self._added_class_fields:
            self._added_class_fields.add((cls, name))
            self._lookups.clear()
            self.repeat_lookups(cls)


def merge_c3(chains: list[list[Object]]) -> list[Object] | None:
    """C3: the chains as one in which each keeps its order; None if there is none.

    >>> merge([[1, 3], [2, 3], [1, 2]])
    [1, 2, 3]
    >>> merge([[1, 2], [2, 1]])
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
