"""Call objects, by the kind of the object.

obj.m(x)      obj is in `self`
partial()     the function of the partial, with its own arguments first
os.walk()     the model of an external function (`models`), or what its name suggests
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node, call_node, call_special_method, record
from codeanatomy.relate.values.external_names import is_class_like, makes_instance
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.models.table import MODELS, call_container_method
from codeanatomy.relate.values.records import make_named_tuple
from codeanatomy.relate.values.rules.classes import construct, instantiate
from codeanatomy.relate.values.rules.containers import CONTAINERS, container_class, instance_container
from codeanatomy.relate.values.rules.functions import enter_function, remember_wrapped
from codeanatomy.relate.values.rules.objects import add_instance
from codeanatomy.relate.values.solver import Object, hint_like, is_hint, strong
from codeanatomy.relate.values.state import EXTERNAL_MEMBER, Call, CallRule, State


def apply_call(state: State, file: int, op: ir.Op) -> None:
    """Call the objects of a node."""
    _, callee, dst, site, args = op
    arguments = [(how, keyword, state.node(file, node)) for how, keyword, node in args]
    role = state.programs[file].sites[site].role
    result = state.node(file, dst)
    if role == "decorator":
        bound, result = result, state.new_node()
        state.subscribe(result, _bind_decorated, arguments[0][2], bound)
    call_node(state, state.node(file, callee), Call((file, site), arguments, result, role))


def _bind_decorated(state: State, obj: Object, definition: int, dst: int) -> None:
    """Bind the result of a decorator; of a decorated class, drop unrelated top-level classes."""
    classes = [strong(each) for each in state.points_to[definition] or () if state.kind[each] == ir.OBJ_CLASS]
    kind, first, _, _ = state.objects[obj]
    cls = {ir.OBJ_CLASS: strong(obj), ir.OBJ_INSTANCE: first}.get(kind)
    is_other = cls is not None and cls not in classes and state.cls(cls)[1].outer < 0
    if not (classes and is_other):
        state.add(dst, obj)


def _call_function(state: State, obj: Object, call: Call, receiver: Object | None = None) -> None:
    """Call a function, plain or decorated with `contextmanager`."""
    kind, inner, _, _ = state.objects[obj]
    if kind == ir.OBJ_CONTEXT_FUNCTION:
        state.add(call.dst, hint_like(state.object(ir.OBJ_CONTEXT_MANAGER, inner), obj))
        obj, call = hint_like(inner, obj), call.with_args(call.args, -1)
    enter_function(state, obj, receiver, call)


def _call_bound(state: State, obj: Object, call: Call) -> None:
    _, function, receiver, _ = state.objects[obj]
    _call_function(state, hint_like(function, obj), call, receiver)


def _call_type_call(state: State, obj: Object, call: Call) -> None:
    construct(state, state.objects[obj].first, call)


def _call_instance(state: State, obj: Object, call: Call) -> None:
    call_special_method(state, obj, ("__call__",), call)


def _call_external_member(state: State, obj: Object, call: Call) -> None:
    """Call a member of an external object, maybe one that an instance of the repository inherits."""
    _, name, receiver, _ = state.objects[obj]
    _call_external(state, hint_like(state.object(ir.OBJ_EXTERNAL, name), obj), call, EXTERNAL_MEMBER)
    owner, _, method = name.rpartition(".")
    if receiver is None:
        return
    if name == "threading.Thread.start":
        call_node(state, attribute_node(state, receiver, "run"), call.with_args([], -1, "callback"))
    elif owner in CONTAINERS and state.kind[receiver] == ir.OBJ_INSTANCE:
        call_container_method(state, instance_container(state, receiver, CONTAINERS[owner]), method, call)


def _decorate(state: State, _: Object, call: Call) -> None:
    """Call an object that returns the definition that it decorates: a context manager, an external object."""
    if call.is_decorator:
        state.flow(call.argument(0), call.dst)


def _call_container_method(state: State, obj: Object, call: Call) -> None:
    """Call a method of a builtin container."""
    _, container, name, _ = state.objects[obj]
    method = state.object(ir.OBJ_EXTERNAL, f"{container_class(state, container)}.{name}")
    record(state, call, hint_like(method, obj))
    call_container_method(state, container, name, call)


def _call_field(state: State, obj: Object, call: Call, field: str) -> None:
    """Call what an object wraps: the function of a static method, the overloads of a singledispatch."""
    call_node(state, state.field(obj, field), call, is_hint(obj))


def _call_register(state: State, obj: Object, call: Call) -> None:
    """Call `@f.register`, with or without the type in parentheses."""
    dispatcher = state.objects[obj].first
    for position in range(len(call.args)):
        state.subscribe(call.argument(position), _register_overload, dispatcher)
    if call.is_decorator:
        state.flow(call.argument(0), call.dst)
    else:
        state.add(call.dst, obj)


def _register_overload(state: State, obj: Object, dispatcher: Object) -> None:
    if state.kind[obj] == ir.OBJ_FUNCTION:
        state.add(state.field(dispatcher, "any"), obj)


def _call_wraps(state: State, obj: Object, call: Call) -> None:
    """Call `functools.wraps(f)`: returns its argument, whose `__wrapped__` is f."""
    state.subscribe(call.argument(0), remember_wrapped, state.field(obj, "wrapped"))
    state.flow(call.argument(0), call.dst)


def _call_hinted(state: State, obj: Object, call: Call) -> None:
    """Call an annotated `Callable`: its result is a hint."""
    state.flow(state.field(obj, "result"), call.dst, True)


def _call_property_decorator(state: State, obj: Object, call: Call) -> None:
    """Call `x.setter`, `x.getter` or `x.deleter`: returns a new property."""
    _, original, part, _ = state.objects[obj]
    changed = state.object(ir.OBJ_PROPERTY, call.where, part)
    for name in ("fget", "fset", "fdel"):
        state.flow(state.field(original, name), state.field(changed, name))
    state.flow(call.argument(0), state.field(changed, {"setter": "fset", "getter": "fget"}.get(part, "fdel")))
    state.add(call.dst, changed)


def _call_partial(state: State, obj: Object, call: Call) -> None:
    # Once per site: partials that refer to each other would be followed along every path.
    if state.is_first("partial", obj, call.where, call.role, call.dst):
        bound: Call = state.objects[obj].second
        inner = call.with_args([*bound.args, *call.args])
        call_node(state, state.field(obj, "callee"), inner, is_hint(obj))


def _call_external(state: State, obj: Object, call: Call, role: str = "") -> None:
    """Call an external function or class, by its model or by what its name suggests."""
    name = state.objects[obj].first
    record(state, call, obj, role)
    model = MODELS.get(name)
    if model is not None:
        model(ModelCall(state, call, obj, name))
    elif call.is_decorator:
        # An unknown decorator is assumed to return the definition.
        state.flow(call.argument(0), call.dst)
    elif name.endswith(".__new__"):
        state.subscribe(call.argument(0), add_instance, call.dst, False)
    elif is_class_like(name) or makes_instance(name):
        cls = name if is_class_like(name) else name.rpartition(".")[0]
        state.add(call.dst, hint_like(state.object(ir.OBJ_EXTERNAL_INSTANCE, cls), obj))


# How objects are called, by kind.
CALL_RULES: Mapping[str, CallRule] = {
    ir.OBJ_FUNCTION: _call_function,
    ir.OBJ_BOUND_METHOD: _call_bound,
    ir.OBJ_CONTEXT_FUNCTION: _call_function,
    ir.OBJ_CONTEXT_MANAGER: _decorate,
    ir.OBJ_CLASS: instantiate,
    ir.OBJ_TYPE_CALL: _call_type_call,
    ir.OBJ_INSTANCE: _call_instance,
    ir.OBJ_EXTERNAL: _call_external,
    ir.OBJ_EXTERNAL_MEMBER: _call_external_member,
    ir.OBJ_EXTERNAL_INSTANCE: _decorate,
    ir.OBJ_CONTAINER_METHOD: _call_container_method,
    ir.OBJ_STATIC_OR_CLASS_METHOD: partial(_call_field, field="inner"),
    ir.OBJ_PARTIAL: _call_partial,
    ir.OBJ_SINGLEDISPATCH: partial(_call_field, field="any"),
    ir.OBJ_SINGLEDISPATCH_REGISTER: _call_register,
    ir.OBJ_WRAPS: _call_wraps,
    ir.OBJ_HINTED_CALLABLE: _call_hinted,
    ir.OBJ_PROPERTY_DECORATOR: _call_property_decorator,
    ir.OBJ_NAMED_TUPLE: make_named_tuple,
}
