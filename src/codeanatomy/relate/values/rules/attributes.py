"""Read, store and delete attributes of objects, by the kind of the object.

    mod.name          final value of the module's variable, a submodule, or a name from its star imports
    instance.name     values stored on instances, and attributes of classes of the MRO, bound to the instance
    Class.name        the same without an instance; through `super()` from the part of the MRO after a class
    external.name     the longer external name
    obj.x = value     a field of the object, and what a property or descriptor of the class does with it
    del obj.x         the deleter of a property, `__delattr__`

The class that defines an attribute is looked up in `hierarchy`.

Tests: `tests/unit/relate/test_attributes.py`.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values import hierarchy
from codeanatomy.relate.values.dispatch import attribute_node
from codeanatomy.relate.values.external_names import is_class_like, may_have
from codeanatomy.relate.values.rules.containers import container_has
from codeanatomy.relate.values.rules.functions import MemberAccess, call_accessor
from codeanatomy.relate.values.rules.imports import load_module_name, module
from codeanatomy.relate.values.solver import Object, hint_like, is_hint, strong
from codeanatomy.relate.values.state import ANY_SITE, State, positional

# Kind of access to an attribute by operation.
ACCESS_BY_OP = {ir.OP_LOAD_ATTRIBUTE: "get", ir.OP_STORE_ATTRIBUTE: "set", ir.OP_DELETE_ATTRIBUTE: "del"}
# Parts of an external name; longer chains of attributes are not followed.
MAX_NAME_PARTS = 12
PLAIN_OR_CONTEXT_FUNCTION = (ir.OBJ_FUNCTION, ir.OBJ_CONTEXT_FUNCTION)
# Values of an Enum's body that are no members.
ENUM_NON_MEMBERS = (ir.OBJ_FUNCTION, ir.OBJ_CLASS, ir.OBJ_PROPERTY)


# -- read, by the kind of the object


def _load_from_module(state: State, obj: Object, name: str, node: int) -> None:
    state.flow(state.field(obj, name), node)
    # Deferred: a name may come through any number of modules.
    state.defer(load_module_name, state.objects[obj].first, name, node)


def _load_from_namespace(state: State, obj: Object, name: str, node: int) -> None:
    state.add(node, module(state, f"{state.objects[obj].first}.{name}"))


def _load_from_external(state: State, obj: Object, name: str, node: int) -> None:
    kind, owner, place, _ = state.objects[obj]
    if kind == ir.OBJ_STRING:
        kind, owner = ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"
    else:
        # An object of a place, such as `pytest.raises(E)`, has attributes whose values are known.
        is_known = place is not None and name in state.fields.get(obj, ())
        state.flow(state.field(obj, name), node)
        if is_known:
            return
    if kind == ir.OBJ_EXTERNAL_INSTANCE and name == "__class__":
        state.add(node, state.object(ir.OBJ_EXTERNAL, owner))
    elif state.modules.has(f"{owner}.{name}"):
        state.add(node, module(state, f"{owner}.{name}"))
    elif owner.count(".") < MAX_NAME_PARTS and may_have(owner, name):
        # The type of a member is unknown, so it has no further attributes.
        is_member = kind == ir.OBJ_EXTERNAL_INSTANCE or (is_class_like(owner) and not is_class_like(name))
        name_kind = ir.OBJ_EXTERNAL_MEMBER if is_member else ir.OBJ_EXTERNAL
        state.add(node, state.object(name_kind, f"{owner}.{name}"))


def _load_from_instance(state: State, obj: Object, name: str, node: int) -> None:
    _, cls, site, _ = state.objects[obj]
    state.flow(state.field(obj, name), node)
    if site is not None or hierarchy.wrapping_class(state, cls) is not None:
        other = state.object(ir.OBJ_INSTANCE, cls, ANY_SITE if site is None else None)
        state.flow(state.field(other, name), node)
    if name == "__class__":
        state.add(node, cls)
    else:
        hierarchy.watch_attribute(
            state, cls, name, _resolve_on_instance, obj, MemberAccess("get", obj, name, node)
        )


def _load_from_class(state: State, obj: Object, name: str, node: int) -> None:
    hierarchy.watch_attribute(state, obj, name, _resolve_on_class, obj, MemberAccess("get", obj, name, node))


def _load_from_super(state: State, obj: Object, name: str, node: int) -> None:
    receiver = state.objects[obj].second
    kind, first, _, _ = state.objects[receiver]
    actual = first if kind == ir.OBJ_INSTANCE else receiver
    if state.kind[actual] == ir.OBJ_CLASS:
        hierarchy.watch_attribute(
            state, actual, name, _resolve_super, actual, MemberAccess("get", obj, name, node)
        )


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


# How attributes are read, by the kind of the object; the others have the attributes stored on them.
ATTRIBUTE_RULES = {
    ir.OBJ_MODULE: _load_from_module,
    ir.OBJ_NAMESPACE: _load_from_namespace,
    ir.OBJ_EXTERNAL: _load_from_external,
    ir.OBJ_EXTERNAL_INSTANCE: _load_from_external,
    ir.OBJ_STRING: _load_from_external,
    ir.OBJ_INSTANCE: _load_from_instance,
    ir.OBJ_CLASS: _load_from_class,
    ir.OBJ_SUPER: _load_from_super,
    ir.OBJ_CONTAINER: _load_from_container,
    ir.OBJ_BOUND_METHOD: _load_from_bound_method,
    ir.OBJ_PROPERTY: _load_from_property,
    ir.OBJ_SINGLEDISPATCH: _load_from_singledispatch,
}


# -- read from classes


def _resolve_super(state: State, _: Object | None, actual: Object, access: MemberAccess) -> None:
    """Resolve an attribute of `super()`: in the receiver's MRO after this class."""
    name = access.name
    cls, receiver = state.objects[access.owner][1:3]
    holder = hierarchy.defining_class(state, actual, name, after=cls)
    if state.kind[receiver] == ir.OBJ_INSTANCE:
        _resolve_on_instance(state, holder, receiver, access)
    elif cls in hierarchy.mro(state, actual):
        _resolve_on_class(state, holder, receiver, access)
    else:
        # In a method of the metaclass: the receiver, a class, is its instance.
        holder = hierarchy.defining_class(state, cls, name, after=cls)
        if name == "__call__" and not state.is_repository_class(holder):
            state.add(access.node, state.object(ir.OBJ_TYPE_CALL, receiver))
            state.add(access.node, state.object(ir.OBJ_EXTERNAL, "builtins.type.__call__"))
        else:
            _resolve_on_instance(state, holder, receiver, access)


def _resolve_on_instance(state: State, holder: Object | None, receiver: Object, access: MemberAccess) -> None:
    """Put the attribute that class `holder` defines, bound to the receiver, into a node."""
    _, owner, name, node = access
    if holder is None:
        if owner == receiver and state.kind[receiver] == ir.OBJ_INSTANCE:
            _resolve_by_getattr(state, receiver, access)
        elif owner != receiver and hasattr(object, name):
            state.add(node, state.object(ir.OBJ_EXTERNAL_MEMBER, f"builtins.object.{name}"))
        return
    kind, first, _, _ = state.objects[holder]
    if kind == ir.OBJ_EXTERNAL:
        if first in hierarchy.ENUMS and name in ("name", "value"):
            state.add(node, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
        elif not hierarchy.is_assigned(state, state.objects[receiver].first, name):
            state.add(node, state.object(ir.OBJ_EXTERNAL_MEMBER, f"{first}.{name}", receiver))
    elif state.is_first("bind", holder, receiver, name, node):
        state.subscribe(hierarchy.class_field(state, holder, name), _bind_to_instance, receiver, access)


def _resolve_by_getattr(state: State, receiver: Object, access: MemberAccess) -> None:
    """Resolve an attribute by `__getattr__` or `__getattribute__` of the class."""
    cls = state.objects[receiver].first
    if hierarchy.is_assigned(state, cls, access.name) or access.name.startswith("__"):
        return
    for hook in ("__getattr__", "__getattribute__"):
        if hierarchy.is_defined(state, cls, hook):
            name = state.object(ir.OBJ_STRING, access.name)
            call_accessor(state, attribute_node(state, receiver, hook), access, name)


def _resolve_on_class(state: State, holder: Object | None, receiver: Object, access: MemberAccess) -> None:
    """Do the same where the receiver is a class."""
    _, owner, name, node = access
    if holder is None:
        if owner == receiver:
            hierarchy.watch_metaclasses(state, receiver, _resolve_in_metaclass, receiver, access)
        elif hasattr(object, name):
            state.add(node, state.object(ir.OBJ_EXTERNAL_MEMBER, f"builtins.object.{name}"))
        return
    kind, first, _, _ = state.objects[holder]
    if kind == ir.OBJ_EXTERNAL:
        state.add(node, state.object(ir.OBJ_EXTERNAL_MEMBER, f"{first}.{name}"))
    elif state.is_first("bind", holder, receiver, name, node):
        state.subscribe(hierarchy.class_field(state, holder, name), _bind_to_class, receiver, access)
        if hierarchy.is_enum(state, receiver) and is_enum_member(state, holder, name):
            state.add(node, state.object(ir.OBJ_INSTANCE, receiver))


def _resolve_in_metaclass(state: State, meta: Object, cls: Object, access: MemberAccess) -> None:
    state.subscribe(hierarchy.method_node(state, meta, access.name), _bind_to_instance, cls, access)


def is_enum_member(state: State, cls: Object, name: str) -> bool:
    """Whether a name of an Enum's body is a member: a public variable, whatever its value."""
    file, declared = state.cls(cls)
    numbers = declared.attrs[name][1] if name in declared.attrs else ()
    kinds = {state.programs[file].definitions[number].kind for number in numbers}
    return not name.startswith("_") and kinds == {ir.VARIABLE}


def _bind_to_instance(state: State, obj: Object, receiver: Object, access: MemberAccess) -> None:
    """Bind an attribute of a class to an instance, by the descriptor protocol."""
    kind, first, how, _ = state.objects[obj]
    node = access.node
    if kind in PLAIN_OR_CONTEXT_FUNCTION:
        state.add(node, hint_like(state.object(ir.OBJ_BOUND_METHOD, strong(obj), receiver), obj))
    elif kind == ir.OBJ_SINGLEDISPATCH:
        state.subscribe(state.field(obj, "any"), _bind_to_instance, receiver, access)
    elif kind == ir.OBJ_PARTIAL_METHOD:
        _bind_partial(state, obj, receiver, node)
    elif kind == ir.OBJ_PROPERTY:
        call_accessor(state, state.field(obj, "fget"), access, bound=receiver)
    elif kind == ir.OBJ_STATIC_OR_CLASS_METHOD:
        is_instance = state.kind[receiver] == ir.OBJ_INSTANCE
        owner = state.objects[receiver].first if is_instance else receiver
        state.subscribe(state.field(obj, "inner"), _bind_wrapped, how, owner, node)
    elif kind == ir.OBJ_INSTANCE and hierarchy.is_defined(state, first, "__get__"):
        call_accessor(state, attribute_node(state, obj, "__get__"), access, receiver)
    else:
        state.add(node, obj)


def _bind_to_class(state: State, obj: Object, receiver: Object, access: MemberAccess) -> None:
    """Bind an attribute of a class read on the class itself, by the descriptor protocol."""
    kind, first, how, _ = state.objects[obj]
    if kind == ir.OBJ_FUNCTION and state.function(obj)[1].binds == "class":
        state.add(access.node, hint_like(state.object(ir.OBJ_BOUND_METHOD, strong(obj), receiver), obj))
    elif kind == ir.OBJ_STATIC_OR_CLASS_METHOD:
        state.subscribe(state.field(obj, "inner"), _bind_wrapped, how, receiver, access.node)
    elif kind == ir.OBJ_INSTANCE and hierarchy.is_defined(state, first, "__get__"):
        call_accessor(state, attribute_node(state, obj, "__get__"), access)
    elif kind not in ENUM_NON_MEMBERS and hierarchy.is_enum(state, receiver):
        state.add(access.node, state.object(ir.OBJ_INSTANCE, receiver))
    else:
        state.add(access.node, obj)


def _bind_wrapped(state: State, obj: Object, how: str, owner: Object, node: int) -> None:
    """Bind a function in a classmethod to the class; in a staticmethod it stays as it is."""
    if how == "classmethod" and state.kind[obj] == ir.OBJ_FUNCTION:
        obj = hint_like(state.object(ir.OBJ_BOUND_METHOD, strong(obj), owner), obj)
    state.add(node, obj)


def _bind_partial(state: State, obj: Object, receiver: Object, node: int) -> None:
    """Bind a `partialmethod` to an instance: a partial with the instance as first argument."""
    _, where, bound, _ = state.objects[obj]
    first = state.new_node()
    state.add(first, receiver)
    call = bound.with_args([positional(first), *bound.args])
    partial = state.object(ir.OBJ_PARTIAL, (where, receiver), call)
    state.flow(state.field(obj, "callee"), state.field(partial, "callee"))
    state.add(node, partial)


# -- store and delete


def store_attribute(state: State, obj: Object, name: str, src: int) -> None:
    """Store the objects of a node in an attribute of an object."""
    if is_hint(obj):
        return
    kind, first, site, _ = state.objects[obj]
    if kind == ir.OBJ_CLASS:
        hierarchy.add_class_field(state, obj, name)
        state.flow(src, hierarchy.class_field(state, obj, name))
        return
    if kind == ir.OBJ_INSTANCE:
        if site is not None:
            state.flow(src, state.field(state.object(ir.OBJ_INSTANCE, first, ANY_SITE), name))
        access = MemberAccess("set", obj, name, src)
        hierarchy.watch_attribute(state, first, name, _watch_setter, access)
        if hierarchy.is_defined(state, first, "__setattr__"):
            hook = attribute_node(state, obj, "__setattr__")
            call_accessor(state, hook, access, state.object(ir.OBJ_STRING, name))
    elif kind == ir.OBJ_MODULE and name in state.programs[first].variables:
        state.flow(src, state.node(first, state.programs[first].variables[name][0]))
    state.flow(src, state.field(obj, name))


def _watch_setter(state: State, holder: Object | None, access: MemberAccess) -> None:
    """Call the setter of a property or `__set__` of a descriptor that the class has for the attribute."""
    if state.is_repository_class(holder) and state.is_first("watch setter", holder, access):
        state.subscribe(hierarchy.class_field(state, holder, access.name), _call_setter, access)


def _call_setter(state: State, obj: Object, access: MemberAccess) -> None:
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_PROPERTY:
        call_accessor(state, state.field(obj, "fset"), access, bound=access.owner)
    elif kind == ir.OBJ_INSTANCE and hierarchy.is_defined(state, first, "__set__"):
        call_accessor(state, attribute_node(state, obj, "__set__"), access, access.owner)


def delete_attribute(state: State, obj: Object, name: str) -> None:
    """Delete an attribute of an object: call the deleter of a property, and `__delattr__`."""
    kind, cls, _, _ = state.objects[obj]
    if kind != ir.OBJ_INSTANCE:
        return
    access = MemberAccess("del", obj, name)
    if hierarchy.is_defined(state, cls, "__delattr__"):
        hook = attribute_node(state, obj, "__delattr__")
        call_accessor(state, hook, access, state.object(ir.OBJ_STRING, name))
    state.subscribe(hierarchy.method_node(state, cls, name), _call_deleter, access)


def _call_deleter(state: State, obj: Object, access: MemberAccess) -> None:
    if state.kind[obj] == ir.OBJ_PROPERTY:
        call_accessor(state, state.field(obj, "fdel"), access, bound=access.owner)
