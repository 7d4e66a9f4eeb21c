"""Store and read the elements of containers.

Elements are fields of the container object, named by constant key:

    [*]      all elements                     [0], ['a']   the element at a constant key
    [?]      elements at unknown keys         [keys]       the keys of a dict

A read at a constant key gives its own element and those at unknown keys, a read at an unknown key gives all.
"""

from __future__ import annotations

from collections.abc import Generator

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node, call_node, call_special_method
from codeanatomy.relate.values.external_names import KNOWN, may_have
from codeanatomy.relate.values.hierarchy import defining_class, external_bases, is_defined, is_enum
from codeanatomy.relate.values.solver import Object, hint_like, is_hint, strong
from codeanatomy.relate.values.state import Call, Container, SiteKey, State, positional

# Builtin containers, and classes that behave like them.
CONTAINERS = KNOWN["container"]
STRING_TYPES = ("builtins.str", "builtins.bytes")
# Fields of a container: all elements, those at unknown keys, the keys, and the factory of a defaultdict.
ALL_ELEMENTS = "[*]"
UNKNOWN_KEY = "[?]"
KEYS = "[keys]"
FACTORY = "[factory]"


def container_kind(state: State, container: Object) -> str:
    """Return list, tuple, dict, set or generator."""
    return state.containers[strong(container)].kind


def container_class(state: State, container: Object) -> str:
    """Return the qualified name of the class of a container."""
    kind, cls, _ = state.containers[strong(container)]
    return cls or f"builtins.{kind}"


def container_has(state: State, container: Object, name: str) -> bool:
    """Whether a container may have an attribute, by its kind or by the class that made it."""
    kind = container_kind(state, container)
    if kind == "generator":
        return hasattr(Generator, name)
    return may_have(f"builtins.{kind}", name) or may_have(container_class(state, container), name)


def new_container(state: State, kind: str, where: SiteKey, mark: str = "", cls: str = "") -> Object:
    """Return the container that a call creates; `mark` distinguishes several of one call."""
    obj = state.object(ir.OBJ_CONTAINER, where[0], (where[1], mark or kind))
    state.containers[obj] = Container(kind, cls)
    return obj


def as_container(state: State, instance: Object, method: str) -> Object | None:
    """Return the elements of an instance of a list or dict subclass; None if it overrides the method."""
    cls = state.objects[instance].first
    if is_defined(state, cls, method):
        return None
    kinds = [CONTAINERS[name] for name in external_bases(state, cls) if name in CONTAINERS]
    return hint_like(instance_container(state, instance, kinds[0]), instance) if kinds else None


def instance_container(state: State, instance: Object, kind: str) -> Object:
    """Return the container object that holds the elements of an instance."""
    container = state.object(ir.OBJ_CONTAINER, "instance", strong(instance))
    state.containers[container] = Container(kind)
    return container


def put(state: State, container: Object, key: str | None, src: int) -> None:
    """Store an element at a constant key, or at an unknown key if None."""
    every = state.field(container, ALL_ELEMENTS)
    element = state.field(container, UNKNOWN_KEY if key is None else f"[{key}]")
    state.flow(src, element)
    state.flow(element, every)


def element_nodes(state: State, container: Object, key: str | None) -> list[int]:
    """Return the nodes that an element at a key may be in."""
    if key is None or (key.startswith("-") and container_kind(state, container) != "dict"):
        return [state.field(container, ALL_ELEMENTS)]
    return [state.field(container, f"[{key}]"), state.field(container, UNKNOWN_KEY)]


def forget_keys(state: State, container: Object) -> None:
    """Let every element be at any key from now on."""
    state.flow(state.field(container, ALL_ELEMENTS), state.field(container, UNKNOWN_KEY))


def merge_from(state: State, other: Object, container: Object) -> None:
    """Add the elements at the keys that another container has now, and all others at an unknown key."""
    if state.kind[other] != ir.OBJ_CONTAINER:
        return
    other, every = strong(other), state.field(container, ALL_ELEMENTS)
    for name, node in list(state.fields.get(other, {}).items()) if other != container else ():
        if name.startswith("[") and name not in (ALL_ELEMENTS, UNKNOWN_KEY):
            element = state.field(container, name)
            state.flow(node, element)
            if name != KEYS:
                state.flow(element, every)
    put(state, container, None, state.field(other, UNKNOWN_KEY))
    state.flow(state.field(other, ALL_ELEMENTS), every)


def merge_into(state: State, obj: Object, src: int) -> None:
    """Add all elements of the containers in src to an object."""
    state.subscribe(src, merge_from, strong(obj))


def put_into(state: State, obj: Object, key: str | None, src: int, where: SiteKey) -> None:
    """Store an element in an object, by `__setitem__` if it is an instance."""
    kind = state.kind[obj]
    container = obj if kind == ir.OBJ_CONTAINER else None
    if kind == ir.OBJ_INSTANCE:
        container = as_container(state, obj, "__setitem__")
    if container is not None:
        put(state, container, None if key == ir.SLICE else key, src)
    elif where[1] >= 0:
        call = Call(where, [positional(-1), positional(src)], -1, "subscript")
        call_special_method(state, obj, ("__setitem__",), call)


def put_key(state: State, obj: Object, src: int) -> None:
    """Add keys to an object that is a container."""
    if state.kind[obj] == ir.OBJ_CONTAINER:
        state.flow(src, state.field(obj, KEYS))


def load_item(
    state: State, obj: Object, key: str | None, dst: int, where: SiteKey, index: int = ir.NOTHING
) -> None:
    """Put the element of an object at a key into dst; `index` is the node of the key."""
    kind, first, _, _ = state.objects[obj]
    call = Call(where, [positional(index)], dst, "subscript")
    if kind == ir.OBJ_CONTAINER:
        _load_element(state, obj, key, dst, where)
        if key is None and container_kind(state, obj) in ("list", "tuple"):
            state.subscribe(index, call_special_method, ("__index__",), Call(where, [], -1, "subscript"))
    elif kind == ir.OBJ_CLASS and is_enum(state, strong(obj)):
        state.add(dst, hint_like(state.object(ir.OBJ_INSTANCE, strong(obj)), obj))
    elif kind == ir.OBJ_CLASS:
        # Of a generic class, the class itself.
        state.add(dst, obj)
        if defining_class(state, strong(obj), "__class_getitem__") is not None:
            call_node(state, attribute_node(state, obj, "__class_getitem__"), call)
    elif kind == ir.OBJ_EXTERNAL or (kind == ir.OBJ_EXTERNAL_INSTANCE and first in STRING_TYPES):
        state.add(dst, obj)
    elif kind == ir.OBJ_STRING:
        state.add(dst, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    elif kind == ir.OBJ_INSTANCE:
        inner = as_container(state, obj, "__getitem__")
        if inner is not None:
            _load_element(state, inner, key, dst, where)
        call_special_method(state, obj, ("__getitem__", "__missing__"), call)


def _load_element(state: State, container: Object, key: str | None, dst: int, where: SiteKey) -> None:
    if key == ir.SLICE:
        state.add(dst, container)
        return
    for node in element_nodes(state, container, key):
        state.flow(node, dst, is_hint(container))
    factory = state.fields.get(strong(container), {}).get(FACTORY)
    if factory is not None:
        default = state.new_node()
        call_node(state, factory, Call(where, [], default, "subscript"))
        put(state, container, None, default)
