"""Containers and what iterates: elements by constant key, or anywhere.

    [*]      every element                    [0], ['a']   the one at a constant key
    [?]      those at unknown keys            [keys]       the keys of a dict

A constant key leads to its own elements and to those at unknown keys, an unknown one to all. An instance
iterates by its special methods. Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from codeanatomy.relate.program import (
    OBJ_CLASS,
    OBJ_CONTAINER,
    OBJ_COROUTINE,
    OBJ_DICT_VIEW,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_GENERATOR,
    OBJ_INSTANCE,
    OBJ_STRING,
    SLICE,
    Program,
)
from codeanatomy.relate.values.attributes import Attributes
from codeanatomy.relate.values.external_names import may_have
from codeanatomy.relate.values.pending_call import NOWHERE, Call, SiteKey, positional
from codeanatomy.relate.values.solver import WEAK, Object

# Builtin containers, and classes that behave like them.
CONTAINERS = {
    **{f"builtins.{kind}": kind for kind in ("list", "dict", "set", "tuple", "frozenset")},
    **dict.fromkeys(("collections.OrderedDict", "collections.defaultdict", "collections.UserDict"), "dict"),
    **dict.fromkeys(("collections.deque", "collections.UserList"), "list"),
}
STRING_TYPES = ("builtins.str", "builtins.bytes")


class Containers(Attributes):
    """Elements and iteration."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        self._kinds: dict[Object, str] = {}
        self._types: dict[Object, str] = {}
        self._sizes: dict[Object, int] = {}

    def call_special_method(self, objects: Sequence[Object], names: Sequence[str], call: Call) -> None:
        """Call the first of these special methods that the class of each instance has."""
        raise NotImplementedError

    def call_node(self, node: int, call: Call, weak: int = 0) -> None:
        """Call everything that is in a node."""
        raise NotImplementedError

    def container_kind(self, container: Object) -> str:
        """list, tuple, dict, set or generator."""
        return self._kinds.get(container & ~1, "list")

    def container_class(self, container: Object) -> str:
        """The class of a container."""
        return self._types.get(container & ~1) or f"builtins.{self.container_kind(container)}"

    def container_has(self, container: Object, name: str) -> bool:
        kind = self.container_kind(container)
        return (
            hasattr(Generator, name)
            if kind == "generator"
            else may_have(f"builtins.{kind}", name) or bool(self._types.get(container & ~1))
        )

    def new_container(self, kind: str, where: SiteKey, mark: str = "", cls: str = "") -> Object:
        """A container that a call makes."""
        obj = self.object(OBJ_CONTAINER, where[0], (where[1], mark or kind))
        self._kinds[obj] = kind
        if cls:
            self._types[obj] = cls
        return obj

    def as_container(self, instance: Object, method: str) -> Object | None:
        """What an instance of a class below list or dict holds, unless the class has this method itself."""
        cls = self.objects[instance >> 1].first
        if self.is_repository_class(self.defining_class(cls, method)):
            return None
        kinds = [CONTAINERS[name] for name in self.external_bases(cls) if name in CONTAINERS]
        return self.instance_container(instance, kinds[0]) | instance & WEAK if kinds else None

    def instance_container(self, instance: Object, kind: str) -> Object:
        """What an instance holds as a container."""
        container = self.object(OBJ_CONTAINER, "instance", instance & ~1)
        self._kinds[container] = kind
        return container

    def put(self, container: Object, key: str | None, src: int) -> None:
        """An element, at a constant key or anywhere."""
        container &= ~1
        every = self.field(container, "[*]")
        place = self.field(container, "[?]" if key is None else f"[{key}]")
        self.flow(src, place)
        self.flow(place, every)

    def element_nodes(self, container: Object, key: str | None) -> list[int]:
        """The nodes that an element may be in."""
        container &= ~1
        if key is None or (key.startswith("-") and self.container_kind(container) != "dict"):
            return [self.field(container, "[*]")]
        return [self.field(container, f"[{key}]"), self.field(container, "[?]")]

    def forget_keys(self, container: Object) -> None:
        """Elements may be at any place from now on."""
        self.flow(self.field(container, "[*]"), self.field(container, "[?]"))

    def _put_into(self, objects: Sequence[Object], key: str | None, src: int, where: SiteKey) -> None:
        for obj in objects:
            kind = self.objects[obj >> 1].kind
            inner = (
                obj
                if kind == OBJ_CONTAINER
                else self.as_container(obj, "__setitem__")
                if kind == OBJ_INSTANCE
                else None
            )
            if inner is not None:
                self.put(inner, None if key == SLICE else key, src)
            elif where[1] >= 0:
                call = Call(where, [positional(-1), positional(src)], -1, role="subscript")
                self.call_special_method([obj], ["__setitem__"], call)

    def _put_key(self, objects: Sequence[Object], src: int) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_CONTAINER:
                self.flow(src, self.field(obj, "[keys]"))

    def _merge_into(self, objects: Sequence[Object], src: int) -> None:
        for obj in objects:
            self.subscribe(src, self.merge_from, obj & ~1)

    def merge_from(self, others: Sequence[Object], container: Object) -> None:
        """All elements of other containers, at their keys."""
        for other in others:
            if self.objects[other >> 1].kind != OBJ_CONTAINER:
                continue
            self.merge_container(other & ~1, container)

    def merge_container(self, other: Object, container: Object) -> None:
        """What is known of the keys of a container when this runs, and everything at any place."""
        every = self.field(container, "[*]")
        for name, node in list(self.fields.get(other, {}).items()) if other != container else ():
            if name.startswith("[") and name not in ("[*]", "[?]"):
                place = self.field(container, name)
                self.flow(node, place)
                if name != "[keys]":
                    self.flow(place, every)
        self.put(container, None, self.field(other, "[?]"))
        self.flow(self.field(other, "[*]"), every)

    def _load_items(self, objects: Sequence[Object], key: str | None, call: Call) -> None:
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_CONTAINER:
                self._load_item(obj, key, call.dst, call.where)
                if key is None and self.container_kind(obj) in ("list", "tuple"):
                    self.subscribe(
                        call.argument(0),
                        self.call_special_method,
                        ("__index__",),
                        Call(call.where, [], -1, role="subscript"),
                    )
            elif kind == OBJ_CLASS:
                self._subscript_class(obj, call)
            elif kind == OBJ_EXTERNAL or (kind == OBJ_EXTERNAL_INSTANCE and first in STRING_TYPES):
                self.add(call.dst, obj)
            elif kind == OBJ_STRING:
                self.add(call.dst, self.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
            elif kind == OBJ_INSTANCE:
                inner = self.as_container(obj, "__getitem__")
                if inner is not None:
                    self._load_item(inner, key, call.dst, call.where)
                self.call_special_method([obj], ["__getitem__", "__missing__"], call)

    def _load_item(self, container: Object, key: str | None, dst: int, where: SiteKey) -> None:
        if key == SLICE:
            self.add(dst, container)
            return
        for node in self.element_nodes(container, key):
            self.flow(node, dst, container & WEAK)
        maker = self.fields.get(container & ~1, {}).get("[factory]")
        if maker is not None:
            made = self.new_node()
            self.call_node(maker, Call(where, [], made, role="subscript"))
            self.put(container, None, made)

    def _subscript_class(self, cls: Object, call: Call) -> None:
        """A member of an Enum by name; a generic class with its parameters is still the class."""
        if self.is_enum(cls & ~1):
            self.add(call.dst, self.object(OBJ_INSTANCE, cls & ~1) | cls & WEAK)
            return
        self.add(call.dst, cls)
        if self.defining_class(cls & ~1, "__class_getitem__") is not None:
            self.call_node(self.attribute_node(cls, "__class_getitem__"), call)

    def iterate(self, src: int, dst: int, where: SiteKey) -> None:
        """What iteration over the things of a node gives."""
        self.subscribe(src, self.iterate_objects, dst, where)

    def iterate_objects(self, objects: Sequence[Object], dst: int, where: SiteKey) -> None:
        """What iteration over things gives."""
        for obj in objects:
            kind, first, second, _ = self.objects[obj >> 1]
            weak = obj & WEAK
            if kind == OBJ_CONTAINER:
                keyed = self.container_kind(obj) == "dict"
                self.flow(self.field(obj, "[keys]" if keyed else "[*]"), dst, weak)
            elif kind == OBJ_DICT_VIEW:
                self._iterate_view(first, second, dst, weak)
            elif kind == OBJ_GENERATOR:
                self.flow(self.function_node(first, self.function(first)[1].yields), dst, weak)
            elif kind == OBJ_EXTERNAL_INSTANCE and first in STRING_TYPES:
                self.add(dst, obj)
            elif kind == OBJ_STRING or (kind == OBJ_EXTERNAL_INSTANCE and first == "io.TextIOWrapper"):
                self.add(dst, self.object(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
            elif kind == OBJ_CLASS:
                self._iterate_class(obj, dst, where)
            elif kind == OBJ_INSTANCE:
                inner = self.as_container(obj, "__iter__")
                if inner is not None:
                    self.iterate_objects([inner], dst, where)
                self._iterate_instance(obj, dst, where)

    def _iterate_view(self, container: Object, part: str, dst: int, weak: int) -> None:
        if part == "values":
            self.flow(self.field(container, "[*]"), dst, weak)
        elif part == "keys":
            self.flow(self.field(container, "[keys]"), dst, weak)
        else:
            pair = self.object(OBJ_CONTAINER, "items", container)
            self._kinds[pair] = "tuple"
            self.put(pair, "0", self.field(container, "[keys]"))
            self.put(pair, "1", self.field(container, "[*]"))
            self.add(dst, pair | weak)

    def _iterate_class(self, cls: Object, dst: int, where: SiteKey) -> None:
        """The members of an Enum, or what a metaclass iterates over."""
        if self.is_enum(cls & ~1):
            self.add(dst, self.object(OBJ_INSTANCE, cls & ~1) | cls & WEAK)
        else:
            self._iterate_by(cls, "__iter__", "__next__", dst, where)

    def _iterate_instance(self, obj: Object, dst: int, where: SiteKey) -> None:
        cls = self.objects[obj >> 1].first
        for name, next_name in (("__aiter__", "__anext__"), ("__iter__", "__next__")):
            if self.is_repository_class(self.defining_class(cls, name)):
                self._iterate_by(obj, name, next_name, dst, where)
                return
        call = Call(where, [positional(-1)], dst, role="iteration")
        self.call_special_method([obj], ["__getitem__"], call)

    def _iterate_by(self, obj: Object, name: str, next_name: str, dst: int, where: SiteKey) -> None:
        iterator = self.new_node()
        self.call_special_method([obj], [name], Call(where, [], iterator, role="iteration"))
        self.subscribe(iterator, self.call_next, next_name, dst, where)

    def call_next(self, objects: Sequence[Object], name: str, dst: int, where: SiteKey) -> None:
        """What `next` of iterators gives."""
        for obj in objects:
            if self.objects[obj >> 1].kind != OBJ_INSTANCE:
                self.iterate_objects([obj], dst, where)
                continue
            if name == "__anext__":
                given = self.new_node()
                self.call_special_method([obj], [name], Call(where, [], given, role="iteration"))
                self.subscribe(given, self._await_objects, dst, where)
            else:
                self.call_special_method([obj], [name], Call(where, [], dst, role="iteration"))

    def _unpack_objects(self, objects: Sequence[Object], place: str | None, dst: int) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_CONTAINER and self.container_kind(obj) in ("tuple", "list"):
                for key in self._unpacked_keys(obj, place):
                    for node in self.element_nodes(obj, key):
                        self.flow(node, dst, obj & WEAK)
            else:
                # What runs is told at the site of the assignment.
                self.iterate_objects([obj], dst, NOWHERE)

    def _unpacked_keys(self, container: Object, place: str | None) -> list[str | None]:
        """The keys that are unpacked: `-1` from the end, `1:1` all but the first and the last."""
        size = self._sizes.get(container & ~1, -1)
        if place is None or (size < 0 and not place.isdigit()):
            return [None]
        if ":" in place:
            start, end = place.split(":")
            return [str(number) for number in range(int(start), size - int(end))] or [None]
        return [str(size + int(place)) if place.startswith("-") else place]

    def _await_objects(self, objects: Sequence[Object], dst: int, where: SiteKey) -> None:
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_COROUTINE:
                self.flow(self.function_node(first, self.function(first)[1].result), dst, obj & WEAK)
            elif kind == OBJ_INSTANCE and self.defining_class(first, "__await__") is not None:
                given = self.new_node()
                self.call_special_method([obj], ["__await__"], Call(where, [], given, role="await"))
                self.subscribe(given, self._generator_results, dst)
            elif kind in (OBJ_CONTAINER, OBJ_INSTANCE):
                # What gathers results, and objects that other libraries await.
                self.add(dst, obj)

    def _generator_results(self, objects: Sequence[Object], dst: int) -> None:
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_GENERATOR:
                self.flow(self.function_node(first, self.function(first)[1].result), dst, obj & WEAK)
