"""Iterate, unpack, await, and enter context managers.

for x in xs            elements of containers, values that generators yield, or what `__next__` returns
a, *b = xs             the elements at a position, as far as the number of elements is known
await x                results of coroutines, or of `__await__`
with x as y            what `__enter__` returns, what a `contextmanager` function yields, or x itself
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node, call_node, call_special_method
from codeanatomy.relate.values.hierarchy import defining_class, is_defined, is_enum
from codeanatomy.relate.values.rules import containers
from codeanatomy.relate.values.rules.containers import ALL_ELEMENTS, KEYS, container_kind, put
from codeanatomy.relate.values.solver import Object, as_hint, hint_like, is_hint, strong
from codeanatomy.relate.values.state import NOWHERE, Call, Container, SiteKey, State, positional


def iterate(state: State, obj: Object, dst: int, where: SiteKey) -> None:
    """Put what iteration over an object yields into dst."""
    kind, first, part, _ = state.objects[obj]
    weak = is_hint(obj)
    if kind == ir.OBJ_CONTAINER:
        is_dict = container_kind(state, obj) == "dict"
        state.flow(state.field(obj, KEYS if is_dict else ALL_ELEMENTS), dst, weak)
    elif kind == ir.OBJ_DICT_VIEW and part != "items":
        state.flow(state.field(first, KEYS if part == "keys" else ALL_ELEMENTS), dst, weak)
    elif kind == ir.OBJ_DICT_VIEW:
        pair = state.object(ir.OBJ_CONTAINER, "items", first)
        state.containers[pair] = Container("tuple")
        put(state, pair, "0", state.field(first, KEYS))
        put(state, pair, "1", state.field(first, ALL_ELEMENTS))
        state.add(dst, as_hint(pair, weak))
    elif kind == ir.OBJ_GENERATOR:
        state.flow(state.function_node(first, state.function(first)[1].yields), dst, weak)
    elif kind == ir.OBJ_EXTERNAL_INSTANCE and first in containers.STRING_TYPES:
        state.add(dst, obj)
    elif kind == ir.OBJ_STRING or (kind == ir.OBJ_EXTERNAL_INSTANCE and first == "io.TextIOWrapper"):
        state.add(dst, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    elif kind == ir.OBJ_CLASS and is_enum(state, strong(obj)):
        state.add(dst, hint_like(state.object(ir.OBJ_INSTANCE, strong(obj)), obj))
    elif kind == ir.OBJ_CLASS:
        # By the metaclass.
        _iterate_by(state, obj, "__iter__", "__next__", dst, where)
    elif kind == ir.OBJ_INSTANCE:
        _iterate_instance(state, obj, dst, where)


def _iterate_instance(state: State, obj: Object, dst: int, where: SiteKey) -> None:
    cls = state.objects[obj].first
    inner = containers.as_container(state, obj, "__iter__")
    if inner is not None:
        iterate(state, inner, dst, where)
    for name, next_name in (("__aiter__", "__anext__"), ("__iter__", "__next__")):
        if is_defined(state, cls, name):
            _iterate_by(state, obj, name, next_name, dst, where)
            return
    call_special_method(state, obj, ("__getitem__",), Call(where, [positional(-1)], dst, "iteration"))


def _iterate_by(state: State, obj: Object, name: str, next_name: str, dst: int, where: SiteKey) -> None:
    iterator = state.new_node()
    call_special_method(state, obj, (name,), Call(where, [], iterator, "iteration"))
    state.subscribe(iterator, call_next, next_name, dst, where)


def call_next(state: State, obj: Object, name: str, dst: int, where: SiteKey) -> None:
    """Put what `__next__` or `__anext__` of an iterator returns into dst."""
    if state.kind[obj] != ir.OBJ_INSTANCE:
        iterate(state, obj, dst, where)
        return
    given = state.new_node() if name == "__anext__" else dst
    call_special_method(state, obj, (name,), Call(where, [], given, "iteration"))
    if given != dst:
        state.subscribe(given, await_object, dst, where)


def unpack(state: State, obj: Object, position: str | None, dst: int) -> None:
    """Put the elements of an object at a position of ir.OP_UNPACK into dst."""
    kind = state.kind[obj]
    container = obj if kind == ir.OBJ_CONTAINER else None
    if kind == ir.OBJ_INSTANCE:
        container = containers.as_container(state, obj, "__iter__")
    if container is not None and container_kind(state, container) in ("tuple", "list"):
        for key in _unpacked_keys(state, container, position):
            for node in containers.element_nodes(state, container, key):
                state.flow(node, dst, is_hint(obj))
    else:
        # Special methods are recorded at the site of the assignment, by ir.OP_ITERATE.
        iterate(state, obj, dst, NOWHERE)


def _unpacked_keys(state: State, container: Object, position: str | None) -> list[str | None]:
    """Return the keys at a position of ir.OP_UNPACK: `-1` from the end, `1:1` all but first and last."""
    size = state.containers[strong(container)].size
    if position is None or (size < 0 and not position.isdigit()):
        return [None]
    if ":" in position:
        start, end = position.split(":")
        return [str(number) for number in range(int(start), size - int(end))] or [None]
    return [str(size + int(position)) if position.startswith("-") else position]


def await_object(state: State, obj: Object, dst: int, where: SiteKey) -> None:
    """Put the result of awaiting an object into dst."""
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_COROUTINE:
        state.flow(state.function_node(first, state.function(first)[1].result), dst, is_hint(obj))
    elif kind == ir.OBJ_INSTANCE and defining_class(state, first, "__await__") is not None:
        given = state.new_node()
        call_special_method(state, obj, ("__await__",), Call(where, [], given, "await"))
        state.subscribe(given, add_generator_result, dst)
    elif kind in (ir.OBJ_CONTAINER, ir.OBJ_INSTANCE):
        # Results of `gather`, and objects awaited by external libraries.
        state.add(dst, obj)


def add_generator_result(state: State, obj: Object, dst: int) -> None:
    """Put the return value of a generator into dst."""
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_GENERATOR:
        state.flow(state.function_node(first, state.function(first)[1].result), dst, is_hint(obj))


def enter_context(state: State, obj: Object, dst: int, where: SiteKey) -> None:
    """Put the value that `with` binds into dst; call the methods that enter and exit."""
    kind, first, _, _ = state.objects[obj]
    leaving = Call(where, [], -1, "with")
    if kind == ir.OBJ_INSTANCE:
        is_async = state.programs[where[0]].sites[where[1]].role == "async_with"
        enter, leave = ("__aenter__", "__aexit__") if is_async else ("__enter__", "__exit__")
        if not is_defined(state, first, enter):
            # An inherited external `__enter__`: nearly all return the instance.
            state.add(dst, obj)
        entered = state.new_node() if is_async else dst
        call_special_method(state, obj, (enter,), Call(where, [], entered, "with"))
        if is_async:
            state.subscribe(entered, await_object, dst, where)
        call_special_method(state, obj, (leave,), leaving)
    elif kind == ir.OBJ_CLOSING:
        state.flow(state.field(obj, "inner"), dst, is_hint(obj))
        state.subscribe(state.field(obj, "inner"), _close, leaving)
    elif kind == ir.OBJ_CONTEXT_MANAGER:
        state.flow(state.function_node(first, state.function(first)[1].yields), dst, is_hint(obj))
    elif kind == ir.OBJ_EXTERNAL_INSTANCE:
        state.add(dst, obj)


def _close(state: State, obj: Object, call: Call) -> None:
    """Call `close` of an object in `contextlib.closing`."""
    if state.kind[obj] == ir.OBJ_INSTANCE:
        call_node(state, attribute_node(state, obj, "close"), call)
