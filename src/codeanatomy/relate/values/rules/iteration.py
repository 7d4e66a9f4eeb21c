"""Iterate, unpack and await.

    for x in xs            elements of containers, values that generators yield, or what `__next__` returns
    a, *b = xs             the elements at a position, as far as the number of elements is known
    await x                results of coroutines, or of `__await__`

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.hierarchy import defining_class, is_enum
from codeanatomy.relate.values.pending_call import NOWHERE, Call, SiteKey, positional
from codeanatomy.relate.values.rules.containers import (
    ALL_ELEMENTS,
    KEYS,
    STRING_TYPES,
    as_container,
    container_kind,
    element_nodes,
    put,
)
from codeanatomy.relate.values.rules.special_methods import call_special_method
from codeanatomy.relate.values.solver import Object, as_hint, hint_like, is_hint, strong
from codeanatomy.relate.values.state import State

UNPACKED_KINDS = (ir.OBJ_CONTAINER, ir.OBJ_INSTANCE)


def iterate(state: State, src: int, dst: int, where: SiteKey) -> None:
    """Put what iteration over the objects of a node yields into dst."""
    state.subscribe(src, iterate_object, dst, where)


def iterate_object(state: State, obj: Object, dst: int, where: SiteKey) -> None:
    """Put what iteration over objects yields into dst."""
    kind, first, second, _ = state.objects[obj]
    weak = is_hint(obj)
    if kind == ir.OBJ_CONTAINER:
        is_dict = container_kind(state, obj) == "dict"
        state.flow(state.field(obj, KEYS if is_dict else ALL_ELEMENTS), dst, weak)
    elif kind == ir.OBJ_DICT_VIEW:
        _iterate_view(state, first, second, dst, weak)
    elif kind == ir.OBJ_GENERATOR:
        state.flow(state.function_node(first, state.function(first)[1].yields), dst, weak)
    elif kind == ir.OBJ_EXTERNAL_INSTANCE and first in STRING_TYPES:
        state.add(dst, obj)
    elif kind == ir.OBJ_STRING or (kind == ir.OBJ_EXTERNAL_INSTANCE and first == "io.TextIOWrapper"):
        state.add(dst, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    elif kind == ir.OBJ_CLASS:
        _iterate_class(state, obj, dst, where)
    elif kind == ir.OBJ_INSTANCE:
        inner = as_container(state, obj, "__iter__")
        if inner is not None:
            iterate_object(state, inner, dst, where)
        _iterate_instance(state, obj, dst, where)


def _iterate_view(state: State, container: Object, part: str, dst: int, weak: bool) -> None:
    if part == "values":
        state.flow(state.field(container, ALL_ELEMENTS), dst, weak)
    elif part == "keys":
        state.flow(state.field(container, KEYS), dst, weak)
    else:
        pair = state.object(ir.OBJ_CONTAINER, "items", container)
        state.containers.kinds[pair] = "tuple"
        put(state, pair, "0", state.field(container, KEYS))
        put(state, pair, "1", state.field(container, ALL_ELEMENTS))
        state.add(dst, as_hint(pair, weak))


def _iterate_class(state: State, cls: Object, dst: int, where: SiteKey) -> None:
    """Iterate over a class: the members of an Enum, else by its metaclass."""
    if is_enum(state, strong(cls)):
        state.add(dst, hint_like(state.object(ir.OBJ_INSTANCE, strong(cls)), cls))
    else:
        _iterate_by(state, cls, "__iter__", "__next__", dst, where)


def _iterate_instance(state: State, obj: Object, dst: int, where: SiteKey) -> None:
    cls = state.objects[obj].first
    for name, next_name in (("__aiter__", "__anext__"), ("__iter__", "__next__")):
        if state.is_repository_class(defining_class(state, cls, name)):
            _iterate_by(state, obj, name, next_name, dst, where)
            return
    call = Call(where, [positional(-1)], dst, role="iteration")
    call_special_method(state, obj, ["__getitem__"], call)


def _iterate_by(state: State, obj: Object, name: str, next_name: str, dst: int, where: SiteKey) -> None:
    iterator = state.new_node()
    call_special_method(state, obj, [name], Call(where, [], iterator, role="iteration"))
    state.subscribe(iterator, call_next, next_name, dst, where)


def call_next(state: State, obj: Object, name: str, dst: int, where: SiteKey) -> None:
    """Put what `__next__` or `__anext__` of iterators returns into dst."""
    if state.kind[obj] != ir.OBJ_INSTANCE:
        iterate_object(state, obj, dst, where)
        return
    if name == "__anext__":
        given = state.new_node()
        call_special_method(state, obj, [name], Call(where, [], given, role="iteration"))
        state.subscribe(given, await_object, dst, where)
    else:
        call_special_method(state, obj, [name], Call(where, [], dst, role="iteration"))


def unpack_object(state: State, obj: Object, position: str | None, dst: int) -> None:
    """Put the elements of objects at a position of ir.OP_UNPACK into dst."""
    kind = state.kind[obj]
    inner = as_container(state, obj, "__iter__") if kind == ir.OBJ_INSTANCE else obj
    if kind in UNPACKED_KINDS and inner is not None and container_kind(state, inner) in ("tuple", "list"):
        for key in _unpacked_keys(state, inner, position):
            for node in element_nodes(state, inner, key):
                state.flow(node, dst, is_hint(obj))
    else:
        # Special methods are recorded at the site of the assignment, by ir.OP_ITERATE.
        iterate_object(state, obj, dst, NOWHERE)


def _unpacked_keys(state: State, container: Object, position: str | None) -> list[str | None]:
    """Return the keys at a position of ir.OP_UNPACK: `-1` from the end, `1:1` all but first and last."""
    size = state.containers.sizes.get(strong(container), -1)
    if position is None or (size < 0 and not position.isdigit()):
        return [None]
    if ":" in position:
        start, end = position.split(":")
        return [str(number) for number in range(int(start), size - int(end))] or [None]
    return [str(size + int(position)) if position.startswith("-") else position]


def await_object(state: State, obj: Object, dst: int, where: SiteKey) -> None:
    """Put the results of awaiting objects into dst."""
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_COROUTINE:
        state.flow(state.function_node(first, state.function(first)[1].result), dst, is_hint(obj))
    elif kind == ir.OBJ_INSTANCE and defining_class(state, first, "__await__") is not None:
        given = state.new_node()
        call_special_method(state, obj, ["__await__"], Call(where, [], given, role="await"))
        state.subscribe(given, add_generator_result, dst)
    elif kind in (ir.OBJ_CONTAINER, ir.OBJ_INSTANCE):
        # Results of `gather`, and objects awaited by external libraries.
        state.add(dst, obj)


def add_generator_result(state: State, obj: Object, dst: int) -> None:
    """Put the return values of generators into dst."""
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_GENERATOR:
        state.flow(state.function_node(first, state.function(first)[1].result), dst, is_hint(obj))


def _apply_iterate(state: State, file: int, op: ir.Op) -> None:
    _, src, dst, site = op
    iterate(state, state.node(file, src), state.node(file, dst), (file, site))


def _apply_unpack(state: State, file: int, op: ir.Op) -> None:
    _, src, position, dst = op
    state.subscribe(state.node(file, src), unpack_object, position, state.node(file, dst))


def _apply_await(state: State, file: int, op: ir.Op) -> None:
    _, src, dst, site = op
    state.subscribe(state.node(file, src), await_object, state.node(file, dst), (file, site))


def _apply_yield_from(state: State, file: int, op: ir.Op) -> None:
    state.subscribe(state.node(file, op[1]), add_generator_result, state.node(file, op[2]))


OPERATIONS = {
    ir.OP_ITERATE: _apply_iterate,
    ir.OP_UNPACK: _apply_unpack,
    ir.OP_AWAIT: _apply_await,
    ir.OP_YIELD_FROM: _apply_yield_from,
}
