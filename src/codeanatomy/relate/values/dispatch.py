"""Call objects and read their attributes, each kind of object by its own rule; call special methods.

    call_node(state, node, call)              # calls all objects of the node, those that come later as well
    attribute_node(state, obj, "name")        # the node of the attribute `name` of an object
    call_special_method(state, obj, ("__lt__", "__gt__"), call)

The rules by kind are tables that `analysis` gives to the state (`state.rules`): the rules of calls read
attributes, and those of attributes call functions, and neither imports the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.hierarchy import is_defined, watch_attribute, watch_metaclasses
from codeanatomy.relate.values.solver import Object, as_hint, is_hint, strong
from codeanatomy.relate.values.state import Call, State

# Nested calls derived from one call in the source.
MAX_DEPTH = 10
STRING_ATTRIBUTES = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})
# Kinds of objects with STRING_ATTRIBUTES.
NAMED_KINDS = frozenset({ir.OBJ_CLASS, ir.OBJ_FUNCTION, ir.OBJ_BOUND_METHOD, ir.OBJ_MODULE})


def call_node(state: State, node: int, call: Call, weak: bool = False) -> None:
    """Call all objects of a node, as hints if weak."""
    state.subscribe(node, call_object, call, weak)


def call_object(state: State, obj: Object, call: Call, weak: bool = False) -> None:
    """Call an object, as a hint if weak."""
    run = state.rules.calls.get(state.kind[obj])
    if run is not None and call.depth <= MAX_DEPTH:
        run(state, as_hint(obj, weak), call)


def record(state: State, call: Call, obj: Object, role: str = "") -> None:
    """Record that an object is called at a site."""
    if call.where[0] < 0:
        return
    callees = state.calls.callees[call.where]
    if obj in callees:
        return
    # Copies of a function share their sites; a class comes with its constructors.
    if len(callees) >= state.limit:
        classes = sum(state.kind[each] == ir.OBJ_CLASS for each in callees)
        if len(callees) - 2 * classes >= state.limit:
            state.calls.truncated_sites.add(call.where)
            return
    callees[obj] = role or call.role


def attribute_node(state: State, obj: Object, name: str) -> int:
    """Return the node of an attribute of an object; read the attribute on first use."""
    obj = strong(obj)
    named = state.lookups.attributes[name]
    node = named.get(obj)
    if node is not None:
        return node
    node = named[obj] = state.new_node()
    if name in STRING_ATTRIBUTES and state.kind[obj] in NAMED_KINDS:
        state.add(node, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    load = state.rules.attributes.get(state.kind[obj])
    if load is None:
        # Such an object has only the attributes stored on it.
        state.flow(state.field(obj, name), node)
    else:
        load(state, obj, name, node)
    return node


def load_attribute(state: State, obj: Object, name: str, dst: int) -> None:
    """Put an attribute of an object into a node."""
    # Most attributes are read many times.
    node = state.lookups.attributes[name].get(strong(obj))
    state.flow(attribute_node(state, obj, name) if node is None else node, dst, is_hint(obj))


def call_special_method(state: State, obj: Object, names: Sequence[str], call: Call) -> None:
    """Call the first of these special methods that the class of an instance has; of a class its metaclass."""
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_INSTANCE:
        watch_attribute(state, first, names[0], _call_first_special, obj, names, call)
    elif kind == ir.OBJ_CLASS:
        watch_metaclasses(state, obj, _call_metaclass_special, tuple(names), call)


def _call_metaclass_special(state: State, meta: Object, names: Sequence[str], call: Call) -> None:
    call_special_method(state, state.object(ir.OBJ_INSTANCE, meta), names, call)


def _call_first_special(
    state: State, _: Object | None, obj: Object, names: Sequence[str], call: Call
) -> None:
    cls = state.objects[obj].first
    defined = next((name for name in names if is_defined(state, cls, name)), None)
    if defined is not None:
        call_node(state, attribute_node(state, obj, defined), call, is_hint(obj))
