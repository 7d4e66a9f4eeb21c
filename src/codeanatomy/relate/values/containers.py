"""Model the elements of containers, subscripts, iteration, unpacking and `await`.

Elements are fields of the container object, named by constant key:

    [*]      all elements                     [0], ['a']   the element at a constant key
    [?]      elements at unknown keys         [keys]       the keys of a dict

A read at a constant key gives its own element and those at unknown keys, a read at an unknown key gives all.
An instance is iterated by its special methods. Tests: `tests/unit/relate/test_callgraph_cases.py`.
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
# Fields of a container: all elements, those at unknown keys, the keys, and the factory of a defaultdict.
ALL_ELEMENTS = "[*]"
UNKNOWN_KEY = "[?]"
KEYS = "[keys]"
FACTORY = "[factory]"


class Containers(Attributes):
    """Container elements and iteration."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        # By container: list, dict...; qualified class if it is no builtin; number of elements if known.
        self._kinds: dict[Object, str] = {}
        self._types: dict[Object, str] = {}
        self._sizes: dict[Object, int] = {}

    def call_special_method(self, objects: Sequence[Object], names: Sequence[str], call: Call) -> None:
        """Call the first of these special methods that the class of each instance has."""
        raise NotImplementedError

    def call_node(self, node: int, call: Call, weak: int = 0) -> None:
        """Call all objects of a node."""
        raise NotImplementedError

    def container_kind(self, container: Object) -> str:
        """Return list, tuple, dict, set or generator."""
        return self._kinds.get(container & ~1, "list")

    def container_class(self, container: Object) -> str:
        """Return the qualified name of the class of a container."""
        return self._types.get(container & ~1) or f"builtins.{self.container_kind(container)}"

    def container_has(self, container: Object, name: str) -> bool:
        kind = self.container_kind(container)
        return (
            hasattr(Generator, name)
            if kind == "generator"
            else may_have(f"builtins.{kind}", name) or bool(self._types.get(container & ~1))
        )

    def new_container(self, kind: str, where: SiteKey, mark: str = "", cls: str = "") -> Object:
        """Return the container that a call creates; `mark` distinguishes several of one call."""
        obj = self.object(OBJ_CONTAINER, where[0], (where[1], mark or kind))
        self._kinds[obj] = kind
        if cls:
            self._types[obj] = cls
        return obj

    def as_container(self, instance: Object, method: str) -> Object | None:
        """Return the elements of an instance of a list or dict subclass; None if it overrides the method."""
        cls = self.objects[instance >> 1].first
        if self.is_repository_class(self.defining_class(cls, method)):
            return None
        kinds = [CONTAINERS[name] for name in self.external_bases(cls) if name in CONTAINERS]
        return self.instance_container(instance, kinds[0]) | instance & WEAK if kinds else None

    def instance_container(self, instance: Object, kind: str) -> Object:
        """Return the container object that holds the elements of an instance."""
        container = self.object(OBJ_CONTAINER, "instance", instance & ~1)
        self._kinds[container] = kind
        return container

    def put(self, container: Object, key: str | None, src: int) -> None:
        """Store an element at a constant key, or at an unknown key if None."""
        container &= ~1
        every = self.field(container, ALL_ELEMENTS)
        element = self.field(container, UNKNOWN_KEY if key is None else f"[{key}]")
        self.flow(src, element)
        self.flow(element, every)

    def element_nodes(self, container: Object, key: str | None) -> list[int]:
        """Return the nodes that an element at a key may be in."""
        container &= ~1
        if key is None or (key.startswith("-") and self.container_kind(container) != "dict"):
            return [self.field(container, ALL_ELEMENTS)]
        return [self.field(container, f"[{key}]"), self.field(container, UNKNOWN_KEY)]

    def forget_keys(self, container: Object) -> None:
        """Let every element be at any key from now on."""
        self.flow(self.field(container, ALL_ELEMENTS), self.field(container, UNKNOWN_KEY))

    def _put_into(self, objects: Sequence[Object], key: str | None, src: int, where: SiteKey) -> None:
        """Store an element in each object, by `__setitem__` if it is an instance."""
        for obj in objects:
            kind = self.objects[obj >> 1].kind
            container = obj if kind == OBJ_CONTAINER else None
            if kind == OBJ_INSTANCE:
                container = self.as_container(obj, "__setitem__")
            if container is not None:
                self.put(container, None if key == SLICE else key, src)
            elif where[1] >= 0:
                call = Call(where, [positional(-1), positional(src)], -1, role="subscript")
                self.call_special_method([obj], ["__setitem__"], call)

    def _put_key(self, objects: Sequence[Object], src: int) -> None:
        """Add keys to each object that is a container."""
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_CONTAINER:
                self.flow(src, self.field(obj, KEYS))

    def _merge_into(self, objects: Sequence[Object], src: int) -> None:
        """Add all elements of the containers in src to each object."""
        for obj in objects:
            self.subscribe(src, self.merge_from, obj & ~1)

    def merge_from(self, others: Sequence[Object], container: Object) -> None:
        """Add all elements of other containers, at their keys."""
        for other in others:
            if self.objects[other >> 1].kind != OBJ_CONTAINER:
                continue
            self.merge_container(other & ~1, container)

    def merge_container(self, other: Object, container: Object) -> None:
        """Add the elements at the keys that another container has now, and all others at an unknown key."""
        every = self.field(container, ALL_ELEMENTS)
        for name, node in list(self.fields.get(other, {}).items()) if other != container else ():
            if name.startswith("[") and name not in (ALL_ELEMENTS, UNKNOWN_KEY):
                element = self.field(container, name)
                self.flow(node, element)
                if name != KEYS:
                    self.flow(element, every)
        self.put(container, None, self.field(other, UNKNOWN_KEY))
        self.flow(self.field(other, ALL_ELEMENTS), every)

    def _load_items(self, objects: Sequence[Object], key: str | None, call: Call) -> None:
        """Subscript each object; the call has the node of the key as its argument."""
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
        factory = self.fields.get(container & ~1, {}).get(FACTORY)
        if factory is not None:
            default = self.new_node()
            self.call_node(factory, Call(where, [], default, role="subscript"))
            self.put(container, None, default)

    def _subscript_class(self, cls: Object, call: Call) -> None:
        """Subscript a class: a member of an Enum; of a generic class, the class itself."""
        if self.is_enum(cls & ~1):
            self.add(call.dst, self.object(OBJ_INSTANCE, cls & ~1) | cls & WEAK)
            return
        self.add(call.dst, cls)
        if self.defining_class(cls & ~1, "__class_getitem__") is not None:
            self.call_node(self.attribute_node(cls, "__class_getitem__"), call)

    def iterate(self, src: int, dst: int, where: SiteKey) -> None:
        """Put what iteration over the objects of a node yields into dst."""
        self.subscribe(src, self.iterate_objects, dst, where)

    def iterate_objects(self, objects: Sequence[Object], dst: int, where: SiteKey) -> None:
        """Put what iteration over objects yields into dst."""
        for obj in objects:
            kind, first, second, _ = self.objects[obj >> 1]
            weak = obj & WEAK
            if kind == OBJ_CONTAINER:
                is_dict = self.container_kind(obj) == "dict"
                self.flow(self.field(obj, KEYS if is_dict else ALL_ELEMENTS), dst, weak)
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
            self.flow(self.field(container, ALL_ELEMENTS), dst, weak)
        elif part == "keys":
            self.flow(self.field(container, KEYS), dst, weak)
        else:
            pair = self.object(OBJ_CONTAINER, "items", container)
            self._kinds[pair] = "tuple"
            self.put(pair, "0", self.field(container, KEYS))
            self.put(pair, "1", self.field(container, ALL_ELEMENTS))
            self.add(dst, pair | weak)

    def _iterate_class(self, cls: Object, dst: int, where: SiteKey) -> None:
        """Iterate over a class: the members of an Enum, else by its metaclass."""
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
        """Put what `__next__` or `__anext__` of iterators returns into dst."""
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

    def _unpack_objects(self, objects: Sequence[Object], position: str | None, dst: int) -> None:
        """Put the elements of objects at a position of OP_UNPACK into dst."""
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_CONTAINER and self.container_kind(obj) in ("tuple", "list"):
                for key in self._unpacked_keys(obj, position):
                    for node in self.element_nodes(obj, key):
                        self.flow(node, dst, obj & WEAK)
            else:
                # Special methods are recorded at the site of the assignment, by OP_ITERATE.
                self.iterate_objects([obj], dst, NOWHERE)

    def _unpacked_keys(self, container: Object, position: str | None) -> list[str | None]:
        """Return the keys at a position of OP_UNPACK: `-1` from the end, `1:1` all but first and last."""
        size = self._sizes.get(container & ~1, -1)
        if position is None or (size < 0 and not position.isdigit()):
            return [None]
        if ":" in position:
            start, end = position.split(":")
            return [str(number) for number in range(int(start), size - int(end))] or [None]
        return [str(size + int(position)) if position.startswith("-") else position]

    def _await_objects(self, objects: Sequence[Object], dst: int, where: SiteKey) -> None:
        """Put the results of awaiting objects into dst."""
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_COROUTINE:
                self.flow(self.function_node(first, self.function(first)[1].result), dst, obj & WEAK)
            elif kind == OBJ_INSTANCE and self.defining_class(first, "__await__") is not None:
                given = self.new_node()
                self.call_special_method([obj], ["__await__"], Call(where, [], given, role="await"))
                self.subscribe(given, self._generator_results, dst)
            elif kind in (OBJ_CONTAINER, OBJ_INSTANCE):
                # Results of `gather`, and objects awaited by external libraries.
                self.add(dst, obj)

    def _generator_results(self, objects: Sequence[Object], dst: int) -> None:
        """Put the return values of generators into dst."""
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_GENERATOR:
                self.flow(self.function_node(first, self.function(first)[1].result), dst, obj & WEAK)
