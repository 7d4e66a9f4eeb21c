"""Read attributes of objects, by the kind of the object.

    mod.name          final value of the module's variable, a submodule, or a name from its star imports
    instance.name     values stored on instances, and attributes of classes of the MRO, bound to the instance
    Class.name        the same without an instance; through `super()` from the part of the MRO after a class
    external.name     the longer external name

The class that defines an attribute is looked up in `hierarchy`.

Tests: `tests/unit/relate/test_attributes.py`.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node, load_attribute
from codeanatomy.relate.values.external_names import is_class_like, may_have
from codeanatomy.relate.values.hierarchy import (
    ENUMS,
    class_field,
    defining_class,
    is_assigned,
    is_enum,
    metaclass_nodes,
    mro,
    watch_attribute,
    wrapping_class,
)
from codeanatomy.relate.values.pending_call import positional
from codeanatomy.relate.values.rules.containers import container_has
from codeanatomy.relate.values.rules.functions import call_accessor
from codeanatomy.relate.values.rules.imports import load_module_name, module
from codeanatomy.relate.values.solver import Object, as_hint, hint_like, is_hint, strong
from codeanatomy.relate.values.state import ANY_SITE, State

# Parts of an external name; longer chains of attributes are not followed.
MAX_NAME_PARTS = 12
PLAIN_OR_CONTEXT_FUNCTION = (ir.OBJ_FUNCTION, ir.OBJ_CONTEXT_FUNCTION)
# Values of an Enum's body that are no members.
ENUM_NON_MEMBERS = (ir.OBJ_FUNCTION, ir.OBJ_CLASS, ir.OBJ_PROPERTY)


def _apply_load_attribute(state: State, file: int, op: ir.Op) -> None:
    state.subscribe(state.node(file, op[1]), load_attribute, op[2], state.node(file, op[3]))


def _load_from_module(state: State, obj: Object, name: str, node: int) -> None:
    state.flow(state.field(obj, name), node)
    # Deferred: a name may come through any number of modules.
    state.defer(load_module_name, state.objects[obj].first, name, node)


def _load_from_namespace(state: State, obj: Object, name: str, node: int) -> None:
    state.add(node, module(state, f"{state.objects[obj].first}.{name}"))


def _load_from_external(state: State, obj: Object, name: str, node: int) -> None:
    kind, first, place, _ = state.objects[obj]
    # An object of a place, such as `pytest.raises(E)`, has attributes whose values are known.
    is_known = place is not None and name in state.fields.get(obj, ())
    state.flow(state.field(obj, name), node)
    if not is_known:
        _load_external(state, kind, first, name, node)


def _load_from_string(state: State, obj: Object, name: str, node: int) -> None:
    _load_external(state, ir.OBJ_EXTERNAL_INSTANCE, "builtins.str", name, node)


def _load_from_instance(state: State, obj: Object, name: str, node: int) -> None:
    _, cls, site, _ = state.objects[obj]
    state.flow(state.field(obj, name), node)
    if site is not None or wrapping_class(state, cls) is not None:
        other = state.object(ir.OBJ_INSTANCE, cls, ANY_SITE if site is None else None)
        state.flow(state.field(other, name), node)
    if name == "__class__":
        state.add(node, cls)
    else:
        watch_attribute(state, cls, name, _resolve_on_instance, obj, obj, name, node)


def _load_from_class(state: State, obj: Object, name: str, node: int) -> None:
    watch_attribute(state, obj, name, _resolve_on_class, obj, obj, name, node)


def _load_from_super(state: State, obj: Object, name: str, node: int) -> None:
    _, cls, receiver, _ = state.objects[obj]
    kind, first, _, _ = state.objects[receiver]
    actual = first if kind == ir.OBJ_INSTANCE else receiver
    if state.kind[actual] == ir.OBJ_CLASS:
        watch_attribute(state, actual, name, _resolve_super, actual, cls, obj, receiver, name, node)


def _load_from_container(state: State, obj: Object, name: str, node: int) -> None:
    if container_has(state, obj, name):
        state.add(node, state.object(ir.OBJ_CONTAINER_METHOD, obj, name))
    elif name in state.fields.get(strong(obj), ()):
        state.flow(state.field(obj, name), node)


def _load_from_bound_method(state: State, obj: Object, name: str, node: int) -> None:
    _, function, receiver, _ = state.objects[obj]
    state.flow(attribute_node(state, function, name), node)
    if name in ("__self__", "__func__"):
        state.add(node, receiver if name == "__self__" else function)


def _load_from_property(state: State, obj: Object, name: str, node: int) -> None:
    if name in ("setter", "getter", "deleter"):
        state.add(node, state.object(ir.OBJ_PROPERTY_DECORATOR, obj, name))


def _load_from_singledispatch(state: State, obj: Object, name: str, node: int) -> None:
    if name == "register":
        state.add(node, state.object(ir.OBJ_SINGLEDISPATCH_REGISTER, obj))


def _load_external(state: State, kind: str, owner: str, name: str, node: int) -> None:
    if kind == ir.OBJ_EXTERNAL_INSTANCE and name == "__class__":
        state.add(node, state.object(ir.OBJ_EXTERNAL, owner))
    elif state.modules.has(f"{owner}.{name}"):
        state.add(node, module(state, f"{owner}.{name}"))
    elif owner.count(".") < MAX_NAME_PARTS and may_have(owner, name):
        # The type of a member is unknown, so it has no further attributes.
        is_member = kind == ir.OBJ_EXTERNAL_INSTANCE or (is_class_like(owner) and not is_class_like(name))
        state.add(
            node, state.object(ir.OBJ_EXTERNAL_MEMBER if is_member else ir.OBJ_EXTERNAL, f"{owner}.{name}")
        )


def _resolve_super(
    state: State,
    _: Object | None,
    actual: Object,
    cls: Object,
    proxy: Object,
    receiver: Object,
    name: str,
    node: int,
) -> None:
    """Resolve an attribute of `super()`: in the receiver's MRO after this class."""
    if state.kind[receiver] == ir.OBJ_INSTANCE:
        _resolve_on_instance(
            state, defining_class(state, actual, name, after=cls), receiver, proxy, name, node
        )
    elif cls in mro(state, actual):
        _resolve_on_class(state, defining_class(state, actual, name, after=cls), receiver, proxy, name, node)
    else:
        # In a method of the metaclass: the receiver, a class, is its instance.
        holder = defining_class(state, cls, name, after=cls)
        if name == "__call__" and (holder is None or state.kind[holder] == ir.OBJ_EXTERNAL):
            state.add(node, state.object(ir.OBJ_TYPE_CALL, receiver))
            state.add(node, state.object(ir.OBJ_EXTERNAL, "builtins.type.__call__"))
        else:
            _resolve_on_instance(state, holder, receiver, proxy, name, node)


def _resolve_on_instance(
    state: State, holder: Object | None, receiver: Object, access: Object, name: str, node: int
) -> None:
    """Put the attribute that class `holder` defines, bound to the receiver, into a node.

    `access` is the object whose attribute the source reads: the receiver, or a `super()` of it.
    """
    if holder is None:
        if access == receiver and state.kind[receiver] == ir.OBJ_INSTANCE:
            _resolve_by_getattr(state, receiver, name, node)
        elif access != receiver and hasattr(object, name):
            state.add(node, state.object(ir.OBJ_EXTERNAL_MEMBER, f"builtins.object.{name}"))
        return
    kind, first, _, _ = state.objects[holder]
    if kind == ir.OBJ_EXTERNAL:
        if first in ENUMS and name in ("name", "value"):
            state.add(node, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
        elif not is_assigned(state, state.objects[receiver].first, name):
            state.add(node, state.object(ir.OBJ_EXTERNAL_MEMBER, f"{first}.{name}", receiver))
    elif (holder, receiver, name, node) not in state.lookups.bound:
        state.lookups.bound.add((holder, receiver, name, node))
        state.subscribe(class_field(state, holder, name), _bind_to_instance, receiver, access, name, node)


def _resolve_by_getattr(state: State, receiver: Object, name: str, node: int) -> None:
    """Resolve an attribute by `__getattr__` or `__getattribute__` of the class."""
    cls = state.objects[receiver].first
    if is_assigned(state, cls, name):
        return
    for hook in ("__getattr__", "__getattribute__"):
        if not name.startswith("__") and state.is_repository_class(defining_class(state, cls, hook)):
            call_accessor(
                state,
                attribute_node(state, receiver, hook),
                [state.object(ir.OBJ_STRING, name)],
                node,
                receiver,
                name,
            )


def _resolve_on_class(
    state: State, holder: Object | None, receiver: Object, access: Object, name: str, node: int
) -> None:
    """Do the same where the receiver is a class."""
    if holder is None:
        if access == receiver:
            _resolve_on_metaclass(state, receiver, name, node)
        elif hasattr(object, name):
            state.add(node, state.object(ir.OBJ_EXTERNAL_MEMBER, f"builtins.object.{name}"))
        return
    kind, first, _, _ = state.objects[holder]
    if kind == ir.OBJ_EXTERNAL:
        state.add(node, state.object(ir.OBJ_EXTERNAL_MEMBER, f"{first}.{name}"))
    elif (holder, receiver, name, node) not in state.lookups.bound:
        state.lookups.bound.add((holder, receiver, name, node))
        state.subscribe(class_field(state, holder, name), _bind_to_class, receiver, access, name, node)
        if is_enum(state, receiver) and is_enum_member(state, holder, name):
            state.add(node, state.object(ir.OBJ_INSTANCE, receiver))


def is_enum_member(state: State, cls: Object, name: str) -> bool:
    """Whether a name of an Enum's body is a member: a public variable, whatever its value."""
    file, declared = state.cls(cls)
    numbers = declared.attrs[name][1] if name in declared.attrs else ()
    kinds = {state.programs[file].definitions[number].kind for number in numbers}
    return not name.startswith("_") and kinds == {ir.VARIABLE}


def _resolve_on_metaclass(state: State, cls: Object, name: str, node: int) -> None:
    for value in metaclass_nodes(state, cls):
        state.subscribe(value, _resolve_in_metaclass, cls, name, node)


def _resolve_in_metaclass(state: State, obj: Object, cls: Object, name: str, node: int) -> None:
    if state.kind[obj] == ir.OBJ_CLASS:
        holder = defining_class(state, strong(obj), name)
        if state.is_repository_class(holder):
            state.subscribe(class_field(state, holder, name), _bind_to_instance, cls, cls, name, node)


def _bind_to_instance(
    state: State, obj: Object, receiver: Object, access: Object, name: str, node: int
) -> None:
    """Bind attributes of a class to an instance, by the descriptor protocol."""
    kind, first, second, _ = state.objects[obj]
    weak = is_hint(obj)
    if kind in PLAIN_OR_CONTEXT_FUNCTION:
        state.add(node, as_hint(state.object(ir.OBJ_BOUND_METHOD, strong(obj), receiver), weak))
    elif kind == ir.OBJ_SINGLEDISPATCH:
        state.subscribe(state.field(obj, "any"), _bind_to_instance, receiver, access, name, node)
    elif kind == ir.OBJ_PARTIAL_METHOD:
        bind_partial(state, obj, receiver, node)
    elif kind == ir.OBJ_PROPERTY:
        call_accessor(state, state.field(obj, "fget"), [], node, access, name, bound=receiver)
    elif kind == ir.OBJ_STATIC_OR_CLASS_METHOD:
        owner = receiver
        if state.kind[receiver] == ir.OBJ_INSTANCE:
            owner = state.objects[receiver].first
        state.subscribe(state.field(obj, "inner"), _bind_wrapped, second, owner, node)
    elif kind == ir.OBJ_INSTANCE and state.is_repository_class(defining_class(state, first, "__get__")):
        call_accessor(state, attribute_node(state, obj, "__get__"), [receiver], node, access, name)
    else:
        state.add(node, obj)


def _bind_to_class(state: State, obj: Object, receiver: Object, access: Object, name: str, node: int) -> None:
    """Bind attributes of a class read on the class itself, by the descriptor protocol."""
    kind, first, second, _ = state.objects[obj]
    if kind == ir.OBJ_FUNCTION and state.function(obj)[1].binds == "class":
        state.add(node, hint_like(state.object(ir.OBJ_BOUND_METHOD, strong(obj), receiver), obj))
    elif kind == ir.OBJ_STATIC_OR_CLASS_METHOD:
        state.subscribe(state.field(obj, "inner"), _bind_wrapped, second, receiver, node)
    elif kind == ir.OBJ_INSTANCE and state.is_repository_class(defining_class(state, first, "__get__")):
        call_accessor(state, attribute_node(state, obj, "__get__"), [], node, access, name)
    elif kind not in ENUM_NON_MEMBERS and is_enum(state, receiver):
        state.add(node, state.object(ir.OBJ_INSTANCE, receiver))
    else:
        state.add(node, obj)


def _bind_wrapped(state: State, obj: Object, how: str, owner: Object, node: int) -> None:
    """Bind the functions in a classmethod to the class; those in a staticmethod stay as they are."""
    if how == "classmethod" and state.kind[obj] == ir.OBJ_FUNCTION:
        state.add(node, hint_like(state.object(ir.OBJ_BOUND_METHOD, strong(obj), owner), obj))
    else:
        state.add(node, obj)


def bind_partial(state: State, obj: Object, receiver: Object, node: int) -> None:
    """Bind a `partialmethod` to an instance: a partial with the instance as first argument."""
    _, where, bound, _ = state.objects[obj]
    first = state.new_node()
    state.add(first, receiver)
    partial = state.object(
        ir.OBJ_PARTIAL, (where, receiver), bound.with_args([positional(first), *bound.args])
    )
    state.flow(state.field(obj, "callee"), state.field(partial, "callee"))
    state.add(node, partial)


OPERATIONS = {ir.OP_LOAD_ATTRIBUTE: _apply_load_attribute}
# How attributes are read, by the kind of the object; the others have the attributes stored on them.
ATTRIBUTE_RULES = {
    ir.OBJ_MODULE: _load_from_module,
    ir.OBJ_NAMESPACE: _load_from_namespace,
    ir.OBJ_EXTERNAL: _load_from_external,
    ir.OBJ_EXTERNAL_INSTANCE: _load_from_external,
    ir.OBJ_STRING: _load_from_string,
    ir.OBJ_INSTANCE: _load_from_instance,
    ir.OBJ_CLASS: _load_from_class,
    ir.OBJ_SUPER: _load_from_super,
    ir.OBJ_CONTAINER: _load_from_container,
    ir.OBJ_BOUND_METHOD: _load_from_bound_method,
    ir.OBJ_PROPERTY: _load_from_property,
    ir.OBJ_SINGLEDISPATCH: _load_from_singledispatch,
}
