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
from codeanatomy.relate.values.pending_call import NOWHERE, Call, Where, plain
from codeanatomy.relate.values.solver import WEAK, Object

# Builtin containers, and classes that behave like them.
CONTAINERS = {
    **{f"builtins.{kind}": kind for kind in ("list", "dict", "set", "tuple", "frozenset")},
    **dict.fromkeys(("collections.OrderedDict", "collections.defaultdict", "collections.UserDict"), "dict"),
    **dict.fromkeys(("collections.deque", "collections.UserList"), "list"),
}
TEXTS = ("builtins.str", "builtins.bytes")


class Containers(Attributes):
    """Elements and iteration."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        self._kinds: dict[Object, str] = {}
        self._types: dict[Object, str] = {}
        self._sizes: dict[Object, int] = {}

    def special(self, things: Sequence[Object], names: Sequence[str], call: Call) -> None:
        """Call the first of these special methods that the class of each instance has."""
        raise NotImplementedError

    def wait_call(self, node: int, call: Call, weak: int = 0) -> None:
        """Call everything that is in a node."""
        raise NotImplementedError

    def kind_of(self, container: Object) -> str:
        """list, tuple, dict, set or generator."""
        return self._kinds.get(container & ~1, "list")

    def type_of(self, container: Object) -> str:
        """The class of a container."""
        return self._types.get(container & ~1) or f"builtins.{self.kind_of(container)}"

    def container_has(self, container: Object, name: str) -> bool:
        kind = self.kind_of(container)
        return (
            hasattr(Generator, name)
            if kind == "generator"
            else may_have(f"builtins.{kind}", name) or bool(self._types.get(container & ~1))
        )

    def make_container(self, kind: str, where: Where, mark: str = "", cls: str = "") -> Object:
        """A container that a call makes."""
        thing = self.thing(OBJ_CONTAINER, where[0], (where[1], mark or kind))
        self._kinds[thing] = kind
        if cls:
            self._types[thing] = cls
        return thing

    def as_container(self, instance: Object, method: str) -> Object | None:
        """What an instance of a class below list or dict holds, unless the class has this method itself."""
        cls = self.things[instance >> 1].one
        if self.is_own(self.find(cls, method)):
            return None
        kinds = [CONTAINERS[name] for name in self.outside_bases(cls) if name in CONTAINERS]
        return self.contents(instance, kinds[0]) | instance & WEAK if kinds else None

    def contents(self, instance: Object, kind: str) -> Object:
        """What an instance holds as a container."""
        container = self.thing(OBJ_CONTAINER, "instance", instance & ~1)
        self._kinds[container] = kind
        return container

    def put(self, container: Object, key: str | None, src: int) -> None:
        """An element, at a constant key or anywhere."""
        container &= ~1
        every = self.field(container, "[*]")
        place = self.field(container, "[?]" if key is None else f"[{key}]")
        self.flow(src, place)
        self.flow(place, every)

    def element(self, container: Object, key: str | None) -> list[int]:
        """The nodes that an element may be in."""
        container &= ~1
        if key is None or (key.startswith("-") and self.kind_of(container) != "dict"):
            return [self.field(container, "[*]")]
        return [self.field(container, f"[{key}]"), self.field(container, "[?]")]

    def shuffle(self, container: Object) -> None:
        """Elements may be at any place from now on."""
        self.flow(self.field(container, "[*]"), self.field(container, "[?]"))

    def _put_all(self, things: Sequence[Object], key: str | None, src: int, where: Where) -> None:
        for thing in things:
            kind = self.things[thing >> 1].kind
            inner = (
                thing
                if kind == OBJ_CONTAINER
                else self.as_container(thing, "__setitem__")
                if kind == OBJ_INSTANCE
                else None
            )
            if inner is not None:
                self.put(inner, None if key == SLICE else key, src)
            elif where[1] >= 0:
                call = Call(where, [plain(-1), plain(src)], -1, role="subscript")
                self.special([thing], ["__setitem__"], call)

    def _put_key(self, things: Sequence[Object], src: int) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_CONTAINER:
                self.flow(src, self.field(thing, "[keys]"))

    def _merge_all(self, things: Sequence[Object], src: int) -> None:
        for thing in things:
            self.wait(src, self.merge_from, thing & ~1)

    def merge_from(self, others: Sequence[Object], container: Object) -> None:
        """All elements of other containers, at their keys."""
        for other in others:
            if self.things[other >> 1].kind != OBJ_CONTAINER:
                continue
            self.wait_fields(other & ~1, container)

    def wait_fields(self, other: Object, container: Object) -> None:
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

    def _items(self, things: Sequence[Object], key: str | None, call: Call) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_CONTAINER:
                self._items_of(thing, key, call.dst, call.where)
                if key is None and self.kind_of(thing) in ("list", "tuple"):
                    self.wait(
                        call.argument(0),
                        self.special,
                        ("__index__",),
                        Call(call.where, [], -1, role="subscript"),
                    )
            elif kind == OBJ_CLASS:
                self._of_generic(thing, call)
            elif kind == OBJ_EXTERNAL or (kind == OBJ_EXTERNAL_INSTANCE and one in TEXTS):
                self.add(call.dst, thing)
            elif kind == OBJ_STRING:
                self.add(call.dst, self.thing(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
            elif kind == OBJ_INSTANCE:
                inner = self.as_container(thing, "__getitem__")
                if inner is not None:
                    self._items_of(inner, key, call.dst, call.where)
                self.special([thing], ["__getitem__", "__missing__"], call)

    def _items_of(self, container: Object, key: str | None, dst: int, where: Where) -> None:
        if key == SLICE:
            self.add(dst, container)
            return
        for node in self.element(container, key):
            self.flow(node, dst, container & WEAK)
        maker = self.fields.get(container & ~1, {}).get("[factory]")
        if maker is not None:
            made = self.node()
            self.wait_call(maker, Call(where, [], made, role="subscript"))
            self.put(container, None, made)

    def _of_generic(self, cls: Object, call: Call) -> None:
        """A member of an Enum by name; a generic class with its parameters is still the class."""
        if self.is_enum(cls & ~1):
            self.add(call.dst, self.thing(OBJ_INSTANCE, cls & ~1) | cls & WEAK)
            return
        self.add(call.dst, cls)
        if self.find(cls & ~1, "__class_getitem__") is not None:
            self.wait_call(self.attr(cls, "__class_getitem__"), call)

    def elements(self, src: int, dst: int, where: Where) -> None:
        """What iteration over the things of a node gives."""
        self.wait(src, self.each, dst, where)

    def each(self, things: Sequence[Object], dst: int, where: Where) -> None:
        """What iteration over things gives."""
        for thing in things:
            kind, one, two, _ = self.things[thing >> 1]
            weak = thing & WEAK
            if kind == OBJ_CONTAINER:
                keyed = self.kind_of(thing) == "dict"
                self.flow(self.field(thing, "[keys]" if keyed else "[*]"), dst, weak)
            elif kind == OBJ_DICT_VIEW:
                self._view(one, two, dst, weak)
            elif kind == OBJ_GENERATOR:
                self.flow(self.node_of(one, self.function(one)[1].yields), dst, weak)
            elif kind == OBJ_EXTERNAL_INSTANCE and one in TEXTS:
                self.add(dst, thing)
            elif kind == OBJ_STRING or (kind == OBJ_EXTERNAL_INSTANCE and one == "io.TextIOWrapper"):
                self.add(dst, self.thing(OBJ_EXTERNAL_INSTANCE, "builtins.str"))
            elif kind == OBJ_CLASS:
                self._each_of_class(thing, dst, where)
            elif kind == OBJ_INSTANCE:
                inner = self.as_container(thing, "__iter__")
                if inner is not None:
                    self.each([inner], dst, where)
                self._each_of_instance(thing, dst, where)

    def _view(self, container: Object, part: str, dst: int, weak: int) -> None:
        if part == "values":
            self.flow(self.field(container, "[*]"), dst, weak)
        elif part == "keys":
            self.flow(self.field(container, "[keys]"), dst, weak)
        else:
            pair = self.thing(OBJ_CONTAINER, "items", container)
            self._kinds[pair] = "tuple"
            self.put(pair, "0", self.field(container, "[keys]"))
            self.put(pair, "1", self.field(container, "[*]"))
            self.add(dst, pair | weak)

    def _each_of_class(self, cls: Object, dst: int, where: Where) -> None:
        """The members of an Enum, or what a metaclass iterates over."""
        if self.is_enum(cls & ~1):
            self.add(dst, self.thing(OBJ_INSTANCE, cls & ~1) | cls & WEAK)
        else:
            self._each_by(cls, "__iter__", "__next__", dst, where)

    def _each_of_instance(self, thing: Object, dst: int, where: Where) -> None:
        cls = self.things[thing >> 1].one
        for name, next_name in (("__aiter__", "__anext__"), ("__iter__", "__next__")):
            if self.is_own(self.find(cls, name)):
                self._each_by(thing, name, next_name, dst, where)
                return
        call = Call(where, [plain(-1)], dst, role="iteration")
        self.special([thing], ["__getitem__"], call)

    def _each_by(self, thing: Object, name: str, next_name: str, dst: int, where: Where) -> None:
        iterator = self.node()
        self.special([thing], [name], Call(where, [], iterator, role="iteration"))
        self.wait(iterator, self.next_of, next_name, dst, where)

    def next_of(self, things: Sequence[Object], name: str, dst: int, where: Where) -> None:
        """What `next` of iterators gives."""
        for thing in things:
            if self.things[thing >> 1].kind != OBJ_INSTANCE:
                self.each([thing], dst, where)
                continue
            if name == "__anext__":
                given = self.node()
                self.special([thing], [name], Call(where, [], given, role="iteration"))
                self.wait(given, self._awaited, dst, where)
            else:
                self.special([thing], [name], Call(where, [], dst, role="iteration"))

    def _unpacked(self, things: Sequence[Object], place: str | None, dst: int) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_CONTAINER and self.kind_of(thing) in ("tuple", "list"):
                for key in self._places(thing, place):
                    for node in self.element(thing, key):
                        self.flow(node, dst, thing & WEAK)
            else:
                # What runs is told at the site of the assignment.
                self.each([thing], dst, NOWHERE)

    def _places(self, container: Object, place: str | None) -> list[str | None]:
        """The keys that are unpacked: `-1` from the end, `1:1` all but the first and the last."""
        size = self._sizes.get(container & ~1, -1)
        if place is None or (size < 0 and not place.isdigit()):
            return [None]
        if ":" in place:
            start, end = place.split(":")
            return [str(number) for number in range(int(start), size - int(end))] or [None]
        return [str(size + int(place)) if place.startswith("-") else place]

    def _awaited(self, things: Sequence[Object], dst: int, where: Where) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_COROUTINE:
                self.flow(self.node_of(one, self.function(one)[1].result), dst, thing & WEAK)
            elif kind == OBJ_INSTANCE and self.find(one, "__await__") is not None:
                given = self.node()
                self.special([thing], ["__await__"], Call(where, [], given, role="await"))
                self.wait(given, self._returned_by, dst)
            elif kind in (OBJ_CONTAINER, OBJ_INSTANCE):
                # What gathers results, and objects that other libraries await.
                self.add(dst, thing)

    def _returned_by(self, things: Sequence[Object], dst: int) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_GENERATOR:
                self.flow(self.node_of(one, self.function(one)[1].result), dst, thing & WEAK)
