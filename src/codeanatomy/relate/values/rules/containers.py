"""Store and read the elements of containers.

Elements are fields of the container object, named by constant key:

    [*]      all elements                     [0], ['a']   the element at a constant key
    [?]      elements at unknown keys         [keys]       the keys of a dict

A read at a constant key gives its own element and those at unknown keys, a read at an unknown key gives all.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node, call_node
from codeanatomy.relate.values.external_names import may_have
from codeanatomy.relate.values.hierarchy import defining_class, external_bases, is_enum
from codeanatomy.relate.values.pending_call import Call, SiteKey, positional
from codeanatomy.relate.values.rules.special_methods import call_special_method
from codeanatomy.relate.values.solver import Object, hint_like, is_hint, strong
from codeanatomy.relate.values.state import State

# Builtin containers, and classes that behave like them.
CONTAINERS = {
    **{f"builtins.{kind}": kind for kind in ("list", "dict", "set", "tuple", "frozenset")},
    **dict.fromkeys(("collections.OrderedDict", "collections.defaultdict", "collections.UserDict"), "dict"),
    **dict.fromkeys(("collections.deque", "collections.UserList"), "list"),
    **dict.fromkeys(("typing.NamedTuple", "collections.namedtuple"), "tuple"),
}
STRING_TYPES = ("builtins.str", "builtins.bytes")
# Fields of a container: all elements, those at unknown keys, the keys, and the factory of a defaultdict.
ALL_ELEMENTS = "[*]"
UNKNOWN_KEY = "[?]"
KEYS = "[keys]"
FACTORY = "[factory]"


def container_kind(state: State, container: Object) -> str:
    """Return list, tuple, dict, set or generator."""
    return state.containers.kinds.get(strong(container), "list")


def container_class(state: State, container: Object) -> str:
    """Return the qualified name of the class of a container."""
    return state.containers.types.get(strong(container)) or f"builtins.{container_kind(state, container)}"


def container_has(state: State, container: Object, name: str) -> bool:
    """Whether a container may have an attribute, by its kind or by the class that made it."""
    kind = container_kind(state, container)
    if kind == "generator":
        return hasattr(Generator, name)
    return may_have(f"builtins.{kind}", name) or may_have(container_class(state, container), name)


def new_container(state: State, kind: str, where: SiteKey, mark: str = "", cls: str = "") -> Object:
    """Return the container that a call creates; `mark` distinguishes several of one call."""
    obj = state.object(ir.OBJ_CONTAINER, where[0], (where[1], mark or kind))
    state.containers.kinds[obj] = kind
    if cls:
        state.containers.types[obj] = cls
    return obj


def as_container(state: State, instance: Object, method: str) -> Object | None:
    """Return the elements of an instance of a list or dict subclass; None if it overrides the method."""
    cls = state.objects[instance].first
    if state.is_repository_class(defining_class(state, cls, method)):
        return None
    kinds = [CONTAINERS[name] for name in external_bases(state, cls) if name in CONTAINERS]
    return hint_like(instance_container(state, instance, kinds[0]), instance) if kinds else None


def instance_container(state: State, instance: Object, kind: str) -> Object:
    """Return the container object that holds the elements of an instance."""
    container = state.object(ir.OBJ_CONTAINER, "instance", strong(instance))
    state.containers.kinds[container] = kind
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


def merge_from(state: State, others: Sequence[Object], container: Object) -> None:
    """Add all elements of other containers, at their keys."""
    for other in others:
        if state.kind[other] != ir.OBJ_CONTAINER:
            continue
        merge_container(state, strong(other), container)


def merge_container(state: State, other: Object, container: Object) -> None:
    """Add the elements at the keys that another container has now, and all others at an unknown key."""
    every = state.field(container, ALL_ELEMENTS)
    for name, node in list(state.fields.get(other, {}).items()) if other != container else ():
        if name.startswith("[") and name not in (ALL_ELEMENTS, UNKNOWN_KEY):
            element = state.field(container, name)
            state.flow(node, element)
            if name != KEYS:
                state.flow(element, every)
    put(state, container, None, state.field(other, UNKNOWN_KEY))
    state.flow(state.field(other, ALL_ELEMENTS), every)


def put_into(state: State, objects: Sequence[Object], key: str | None, src: int, where: SiteKey) -> None:
    """Store an element in each object, by `__setitem__` if it is an instance."""
    for obj in objects:
        kind = state.kind[obj]
        container = obj if kind == ir.OBJ_CONTAINER else None
        if kind == ir.OBJ_INSTANCE:
            container = as_container(state, obj, "__setitem__")
        if container is not None:
            put(state, container, None if key == ir.SLICE else key, src)
        elif where[1] >= 0:
            call = Call(where, [positional(-1), positional(src)], -1, role="subscript")
            call_special_method(state, [obj], ["__setitem__"], call)


def put_key(state: State, objects: Sequence[Object], src: int) -> None:
    """Add keys to each object that is a container."""
    for obj in objects:
        if state.kind[obj] == ir.OBJ_CONTAINER:
            state.flow(src, state.field(obj, KEYS))


def merge_into(state: State, objects: Sequence[Object], src: int) -> None:
    """Add all elements of the containers in src to each object."""
    for obj in objects:
        state.subscribe(src, merge_from, strong(obj))


def load_items(state: State, objects: Sequence[Object], key: str | None, call: Call) -> None:
    """Subscript each object; the call has the node of the key as its argument."""
    for obj in objects:
        kind, first, _, _ = state.objects[obj]
        if kind == ir.OBJ_CONTAINER:
            _load_item(state, obj, key, call.dst, call.where)
            if key is None and container_kind(state, obj) in ("list", "tuple"):
                state.subscribe(
                    call.argument(0),
                    call_special_method,
                    ("__index__",),
                    Call(call.where, [], -1, role="subscript"),
                )
        elif kind == ir.OBJ_CLASS:
            _subscript_class(state, obj, call)
        elif kind == ir.OBJ_EXTERNAL or (kind == ir.OBJ_EXTERNAL_INSTANCE and first in STRING_TYPES):
            state.add(call.dst, obj)
        elif kind == ir.OBJ_STRING:
            state.add(call.dst, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
        elif kind == ir.OBJ_INSTANCE:
            inner = as_container(state, obj, "__getitem__")
            if inner is not None:
                _load_item(state, inner, key, call.dst, call.where)
            call_special_method(state, [obj], ["__getitem__", "__missing__"], call)


def _load_item(state: State, container: Object, key: str | None, dst: int, where: SiteKey) -> None:
    if key == ir.SLICE:
        state.add(dst, container)
        return
    for node in element_nodes(state, container, key):
        state.flow(node, dst, is_hint(container))
    factory = state.fields.get(strong(container), {}).get(FACTORY)
    if factory is not None:
        default = state.new_node()
        call_node(state, factory, Call(where, [], default, role="subscript"))
        put(state, container, None, default)


def _subscript_class(state: State, cls: Object, call: Call) -> None:
    """Subscript a class: a member of an Enum; of a generic class, the class itself."""
    if is_enum(state, strong(cls)):
        state.add(call.dst, hint_like(state.object(ir.OBJ_INSTANCE, strong(cls)), cls))
        return
    state.add(call.dst, cls)
    if defining_class(state, strong(cls), "__class_getitem__") is not None:
        call_node(state, attribute_node(state, cls, "__class_getitem__"), call)


def _apply_store_item(state: State, file: int, op: ir.Op) -> None:
    _, receiver, key, src, site = op
    state.subscribe(state.node(file, receiver), put_into, key, state.node(file, src), (file, site))


def _apply_store_key(state: State, file: int, op: ir.Op) -> None:
    state.subscribe(state.node(file, op[1]), put_key, state.node(file, op[2]))


def _apply_update(state: State, file: int, op: ir.Op) -> None:
    state.subscribe(state.node(file, op[1]), merge_into, state.node(file, op[2]))


def _apply_load_item(state: State, file: int, op: ir.Op) -> None:
    _, receiver, key, dst, site, key_value = op
    call = Call(
        (file, site),
        [positional(state.node(file, key_value))],
        state.node(file, dst),
        role="subscript",
    )
    state.subscribe(state.node(file, receiver), load_items, key, call)


OPERATIONS = {
    ir.OP_LOAD_ITEM: _apply_load_item,
    ir.OP_STORE_ITEM: _apply_store_item,
    ir.OP_STORE_KEY: _apply_store_key,
    ir.OP_UPDATE: _apply_update,
}
