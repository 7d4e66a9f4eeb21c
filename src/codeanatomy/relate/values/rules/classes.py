"""Apply class statements and instantiation: metaclasses, constructors, dataclass fields.

class C(Base, metaclass=Meta)   Meta.__new__, Meta.__init__, Base.__init_subclass__, __set_name__
C(x)                            Meta.__call__, else C.__new__ and C.__init__; or the fields of a dataclass
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values import hierarchy
from codeanatomy.relate.values.dispatch import attribute_node, call_node, call_special_method, record
from codeanatomy.relate.values.function_copies import MAX_WRAPPER_COPIES
from codeanatomy.relate.values.models.table import call_container_method
from codeanatomy.relate.values.records import fill_record, find_record
from codeanatomy.relate.values.rules.attributes import is_enum_member
from codeanatomy.relate.values.rules.containers import as_container, container_kind
from codeanatomy.relate.values.rules.functions import enter_function
from codeanatomy.relate.values.solver import Object, as_hint, is_hint, strong
from codeanatomy.relate.values.state import Call, State


def instantiate(state: State, cls: Object, call: Call) -> None:
    """Call a class: by `__call__` of its metaclass if it has one, else construct an instance."""
    hierarchy.watch_metaclasses(state, cls, _call_method_of, "__call__", strong(cls), call)
    record(state, call, cls)
    metas = [meta for value in hierarchy.metaclass_nodes(state, cls) for meta in state.points_to[value] or ()]
    own = [strong(meta) for meta in metas if state.kind[meta] == ir.OBJ_CLASS]
    if not any(hierarchy.is_defined(state, meta, "__call__") for meta in own):
        construct(state, cls, call)


def _call_method_of(state: State, cls: Object, name: str, receiver: Object, call: Call) -> None:
    """Call a method of a class of the repository, with this receiver."""
    state.subscribe(hierarchy.method_node(state, cls, name), _call_function, receiver, call)


def _call_function(state: State, obj: Object, receiver: Object, call: Call) -> None:
    """Call a function with a receiver; one in a classmethod when a class is created."""
    if state.kind[obj] == ir.OBJ_FUNCTION:
        enter_function(state, obj, receiver, call)
    elif state.kind[obj] == ir.OBJ_STATIC_OR_CLASS_METHOD and call.role == "class":
        state.subscribe(state.field(obj, "inner"), _call_function, receiver, call)


def construct(state: State, obj: Object, call: Call) -> None:
    """Create an instance of a class by `__new__` and `__init__`; without them fill its fields or elements."""
    weak, cls = is_hint(obj), strong(obj)
    site = call.dst if call.dst >= 0 and not weak and _is_new_wrapper(state, cls) else None
    instance = state.object(ir.OBJ_INSTANCE, cls, site)
    if hierarchy.is_defined(state, cls, "__new__"):
        created = state.new_node()
        _call_method_of(state, cls, "__new__", cls, call.with_args(call.args, created))
        state.flow(created, call.dst, weak)
    state.add(call.dst, as_hint(instance, weak))
    is_record = find_record(state, cls) is not None
    if not is_record and hierarchy.is_defined(state, cls, "__init__"):
        init = attribute_node(state, instance, "__init__")
        call_node(state, init, call.with_args(call.args, -1), weak)
        return
    late = call.with_args(call.args)
    hierarchy.watch_attribute(state, cls, "__init__", _construct_late, instance, late, weak)
    container = None if weak or is_record else as_container(state, instance, "__init__")
    if container is not None:
        # The initial elements of an instance of a list or dict subclass.
        method = "update" if container_kind(state, container) == "dict" else "extend"
        call_container_method(state, container, method, call.with_args(call.args, -1))


def _is_new_wrapper(state: State, cls: Object) -> bool:
    """Whether instances of a class wrap functions, and one more of them is distinguished; count it."""
    holder = hierarchy.wrapping_class(state, cls)
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


def create_class(state: State, file: int, op: ir.Op) -> None:
    """Call metaclass, `__init_subclass__`, `__set_name__` of a new class; construct Enum members."""
    _, number, site = op
    cls = state.object(ir.OBJ_CLASS, file, number)
    call = Call((file, site), [], -1, "class")
    declared = state.programs[file].classes[number]
    hierarchy.watch_metaclasses(state, cls, _create_by_metaclass, cls, call)
    inherited = hierarchy.method_node(state, cls, "__init_subclass__", after=cls)
    state.subscribe(inherited, _call_function, cls, call)
    for name in declared.attrs:
        state.subscribe(hierarchy.class_field(state, cls, name), _call_set_name, call)
    if hierarchy.is_enum(state, cls) and hierarchy.is_defined(state, cls, "__init__"):
        init = attribute_node(state, state.object(ir.OBJ_INSTANCE, cls), "__init__")
        for name, (node, _) in declared.attrs.items():
            if is_enum_member(state, cls, name):
                given = [] if node < 0 else [(ir.STAR, None, state.node(file, node))]
                call_node(state, init, call.with_args(given, -1))


def _create_by_metaclass(state: State, meta: Object, cls: Object, call: Call) -> None:
    for name in ("__prepare__", "__new__", "__init__"):
        _call_method_of(state, meta, name, cls if name == "__init__" else meta, call)


def _call_set_name(state: State, obj: Object, call: Call) -> None:
    if state.kind[obj] == ir.OBJ_INSTANCE:
        call_special_method(state, obj, ("__set_name__",), call)
