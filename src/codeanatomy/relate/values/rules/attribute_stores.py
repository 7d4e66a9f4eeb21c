"""Store and delete attributes: fields of objects, setters, `__setattr__`, `__delattr__`.

    obj.x = value       a field of the object, and what a property or descriptor of the class does with it
    del obj.x           the deleter of a property, `__delattr__`

Tests: `tests/unit/relate/test_attributes.py`.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node
from codeanatomy.relate.values.hierarchy import (
    add_class_field,
    class_field,
    defining_class,
    watch_attribute,
)
from codeanatomy.relate.values.rules.functions import call_accessor
from codeanatomy.relate.values.solver import Object, is_hint
from codeanatomy.relate.values.state import ANY_SITE, State

# Kind of access to an attribute by operation.
ACCESS_BY_OP = {ir.OP_LOAD_ATTRIBUTE: "get", ir.OP_STORE_ATTRIBUTE: "set", ir.OP_DELETE_ATTRIBUTE: "del"}


def _apply_store_attribute(state: State, file: int, op: ir.Op) -> None:
    src = state.node(file, op[3])
    state.subscribe(state.node(file, op[1]), store_attribute, op[2], state.new_node() if src < 0 else src)


def store_attribute(state: State, obj: Object, name: str, src: int) -> None:
    """Store the objects of a node in an attribute of objects."""
    if is_hint(obj):
        return
    kind, first, site, _ = state.objects[obj]
    if kind == ir.OBJ_CLASS:
        add_class_field(state, obj, name)
        state.flow(src, class_field(state, obj, name))
        return
    if kind == ir.OBJ_INSTANCE:
        if site is not None:
            state.flow(src, state.field(state.object(ir.OBJ_INSTANCE, first, ANY_SITE), name))
        watch_attribute(state, first, name, _watch_setter, obj, name, src)
        _call_setattr(state, obj, name, src)
    elif kind == ir.OBJ_MODULE and name in state.programs[first].variables:
        state.flow(src, state.node(first, state.programs[first].variables[name][0]))
    state.flow(src, state.field(obj, name))


def _call_setattr(state: State, obj: Object, name: str, src: int) -> None:
    """Call `__setattr__` if a class of the repository defines it."""
    if state.is_repository_class(defining_class(state, state.objects[obj].first, "__setattr__")):
        hook, text = attribute_node(state, obj, "__setattr__"), state.object(ir.OBJ_STRING, name)
        call_accessor(state, hook, [text], -1, obj, name, how="set", value=src)


def _watch_setter(state: State, holder: Object | None, receiver: Object, name: str, src: int) -> None:
    """Call the setter of a property or `__set__` of a descriptor that the class has for the attribute."""
    if not state.is_repository_class(holder):
        return
    if ("store", holder, receiver, name, src) not in state.lookups.bound:
        state.lookups.bound.add(("store", holder, receiver, name, src))
        state.subscribe(class_field(state, holder, name), _call_setter, receiver, name, src)


def _call_setter(state: State, obj: Object, receiver: Object, name: str, src: int) -> None:
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_PROPERTY:
        hook = state.field(obj, "fset")
        call_accessor(state, hook, [], -1, receiver, name, bound=receiver, how="set", value=src)
    elif kind == ir.OBJ_INSTANCE and state.is_repository_class(defining_class(state, first, "__set__")):
        call_accessor(
            state,
            attribute_node(state, obj, "__set__"),
            [receiver],
            -1,
            receiver,
            name,
            how="set",
            value=src,
        )


def _apply_delete_attribute(state: State, file: int, op: ir.Op) -> None:
    state.subscribe(state.node(file, op[1]), _delete_attribute, op[2])


def _delete_attribute(state: State, obj: Object, name: str) -> None:
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_INSTANCE:
        if state.is_repository_class(defining_class(state, first, "__delattr__")):
            text = state.object(ir.OBJ_STRING, name)
            call_accessor(state, attribute_node(state, obj, "__delattr__"), [text], -1, obj, name, how="del")
        holder = defining_class(state, first, name)
        if state.is_repository_class(holder):
            state.subscribe(class_field(state, holder, name), _call_deleter, obj, name)


def _call_deleter(state: State, obj: Object, receiver: Object, name: str) -> None:
    if state.kind[obj] == ir.OBJ_PROPERTY:
        deleter = state.field(obj, "fdel")
        call_accessor(state, deleter, [], -1, receiver, name, bound=receiver, how="del")


OPERATIONS = {ir.OP_STORE_ATTRIBUTE: _apply_store_attribute, ir.OP_DELETE_ATTRIBUTE: _apply_delete_attribute}
