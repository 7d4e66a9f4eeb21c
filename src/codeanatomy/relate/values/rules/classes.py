"""Apply class statements and instantiation: metaclasses, constructors, dataclass fields.

    class C(Base, metaclass=Meta)   Meta.__new__, Meta.__init__, Base.__init_subclass__, __set_name__
    C(x)                            Meta.__call__, else C.__new__ and C.__init__; or the fields of a dataclass

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node, call_node, record
from codeanatomy.relate.values.function_copies import MAX_WRAPPER_COPIES
from codeanatomy.relate.values.hierarchy import (
    class_field,
    defining_class,
    is_enum,
    metaclass_nodes,
    watch_attribute,
    wrapping_class,
)
from codeanatomy.relate.values.models.container_methods import call_container_method
from codeanatomy.relate.values.pending_call import Call
from codeanatomy.relate.values.records import fill_record, find_record
from codeanatomy.relate.values.rules.attributes import is_enum_member
from codeanatomy.relate.values.rules.containers import as_container, container_kind
from codeanatomy.relate.values.rules.functions import enter_function
from codeanatomy.relate.values.rules.special_methods import call_special_method
from codeanatomy.relate.values.solver import Object, as_hint, is_hint, strong
from codeanatomy.relate.values.state import State


def instantiate(state: State, cls: Object, call: Call) -> None:
    """Call a class: by `__call__` of its metaclass if it has one, else construct an instance."""
    for value in metaclass_nodes(state, cls):
        state.subscribe(value, _instantiate_by_metaclass, cls, call)
    record(state, call, cls)
    if not _has_metaclass_call(state, strong(cls)):
        construct(state, cls, call)


def _has_metaclass_call(state: State, cls: Object) -> bool:
    metas = [meta for value in metaclass_nodes(state, cls) for meta in state.points_to[value] or ()]
    own = [strong(meta) for meta in metas if state.kind[meta] == ir.OBJ_CLASS]
    return any(state.is_repository_class(defining_class(state, meta, "__call__")) for meta in own)


def _instantiate_by_metaclass(state: State, meta: Object, cls: Object, call: Call) -> None:
    if state.kind[meta] == ir.OBJ_CLASS:
        holder = defining_class(state, strong(meta), "__call__")
        if state.is_repository_class(holder):
            state.subscribe(class_field(state, holder, "__call__"), _call_metaclass, cls, call)


def _call_metaclass(state: State, obj: Object, cls: Object, call: Call) -> None:
    if state.kind[obj] == ir.OBJ_FUNCTION:
        enter_function(state, obj, strong(cls), call)


def construct(state: State, cls: Object, call: Call) -> None:
    """Create an instance by `__new__` and `__init__`; without them fill dataclass fields or elements."""
    weak = is_hint(cls)
    site = call.dst if call.dst >= 0 and not weak and is_new_wrapper(state, cls) else None
    instance = state.object(ir.OBJ_INSTANCE, strong(cls), site)
    new = defining_class(state, strong(cls), "__new__")
    if state.is_repository_class(new):
        created = state.new_node()
        state.subscribe(
            class_field(state, new, "__new__"), _call_new, strong(cls), call.with_args(call.args, created)
        )
        state.flow(created, call.dst, weak)
    state.add(call.dst, as_hint(instance, weak))
    record_class = find_record(state, strong(cls))
    if record_class is None and state.is_repository_class(defining_class(state, strong(cls), "__init__")):
        call_node(
            state, attribute_node(state, instance, "__init__"), call.with_args(call.args, -1, call.role), weak
        )
    else:
        late = call.with_args(call.args, call.dst, call.role)
        watch_attribute(state, strong(cls), "__init__", _construct_late, instance, late, weak)
        if not weak and record_class is None:
            _fill_container(state, instance, call)


def is_new_wrapper(state: State, cls: Object) -> bool:
    """Whether instances of a class wrap functions, and one more of them is distinguished; count it."""
    holder = wrapping_class(state, cls)
    if holder is None or state.classes.wrapping[holder] >= MAX_WRAPPER_COPIES:
        return False
    state.classes.wrapping[holder] += 1
    return True


def _construct_late(state: State, holder: Object | None, instance: Object, call: Call, weak: bool) -> None:
    """Construct an instance by its fields, or by the `__init__` of a base that was not known before."""
    record_class = find_record(state, state.objects[instance].first)
    if record_class is not None:
        if not weak:
            fill_record(state, record_class, instance, call)
    elif state.is_repository_class(holder):
        call_node(state, attribute_node(state, instance, "__init__"), call.with_args(call.args, -1), weak)


def _call_new(state: State, obj: Object, cls: Object, call: Call) -> None:
    if state.kind[obj] == ir.OBJ_FUNCTION:
        enter_function(state, obj, cls, call)


def _fill_container(state: State, instance: Object, call: Call) -> None:
    """Add the initial elements of an instance of a list or dict subclass."""
    container = as_container(state, instance, "__init__")
    if container is not None:
        method = "update" if container_kind(state, container) == "dict" else "extend"
        call_container_method(state, container, method, call.with_args(call.args, -1))


def _apply_create_class(state: State, file: int, op: ir.Op) -> None:
    """Call metaclass, `__init_subclass__`, `__set_name__` of a new class; construct Enum members."""
    _, number, site = op
    cls = state.object(ir.OBJ_CLASS, file, number)
    call = Call((file, site), [], -1, role="class")
    declared = state.programs[file].classes[number]
    for value in metaclass_nodes(state, cls):
        state.subscribe(value, _create_by_metaclass, cls, call)
    holder = defining_class(state, cls, "__init_subclass__", after=cls)
    if state.is_repository_class(holder):
        state.subscribe(class_field(state, holder, "__init_subclass__"), _call_on_class, cls, call)
    for name in declared.attrs:
        state.subscribe(class_field(state, cls, name), _call_set_name, call)
    if is_enum(state, cls) and state.is_repository_class(defining_class(state, cls, "__init__")):
        members = [name for name in declared.attrs if is_enum_member(state, cls, name)]
        for name in members:
            node = state.node(file, declared.attrs[name][0])
            given = [(ir.STAR, None, node)] if node >= 0 else []
            call_node(
                state,
                attribute_node(state, state.object(ir.OBJ_INSTANCE, cls), "__init__"),
                call.with_args(given, -1),
            )


def _create_by_metaclass(state: State, meta: Object, cls: Object, call: Call) -> None:
    if state.kind[meta] != ir.OBJ_CLASS:
        return
    for name in ("__prepare__", "__new__", "__init__"):
        holder = defining_class(state, strong(meta), name)
        if state.is_repository_class(holder):
            receiver = cls if name == "__init__" else strong(meta)
            state.subscribe(class_field(state, holder, name), _call_on_class, receiver, call)


def _call_on_class(state: State, obj: Object, receiver: Object, call: Call) -> None:
    """Call functions, plain or in a classmethod, with a class as receiver."""
    kind = state.kind[obj]
    if kind == ir.OBJ_FUNCTION:
        enter_function(state, obj, receiver, call)
    elif kind == ir.OBJ_STATIC_OR_CLASS_METHOD:
        state.subscribe(state.field(obj, "inner"), _call_on_class, receiver, call)


def _call_set_name(state: State, obj: Object, call: Call) -> None:
    if state.kind[obj] == ir.OBJ_INSTANCE:
        call_special_method(state, obj, ["__set_name__"], call)


OPERATIONS = {ir.OP_CREATE_CLASS: _apply_create_class}
