"""Call objects and read their attributes, each kind of object by its own rule.

    call_node(state, node, call)              # calls all objects of the node, those that come later as well
    attribute_node(state, obj, "name")        # the node of the attribute `name` of an object

The rules by kind are tables that `analysis` gives to the state (`state.rules`): the rules of calls read
attributes, and those of attributes call functions, and neither imports the other.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.pending_call import Call
from codeanatomy.relate.values.solver import Object, as_hint, is_hint, strong
from codeanatomy.relate.values.state import State

# Nested calls derived from one call in the source.
MAX_DEPTH = 10
STRING_ATTRIBUTES = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})
# Kinds of objects with STRING_ATTRIBUTES.
NAMED_KINDS = frozenset({ir.OBJ_CLASS, ir.OBJ_FUNCTION, ir.OBJ_BOUND_METHOD, ir.OBJ_MODULE})


def call_node(state: State, node: int, call: Call, weak: bool = False) -> None:
    """Call all objects of a node, as hints if weak."""
    state.subscribe(node, _invoke_as_hint if weak else invoke, call)


def _invoke_as_hint(state: State, obj: Object, call: Call) -> None:
    invoke(state, as_hint(obj), call)


def invoke(state: State, obj: Object, call: Call) -> None:
    """Call an object."""
    if call.depth > MAX_DEPTH:
        return
    run = state.rules.calls.get(state.kind[obj])
    if run is not None:
        run(state, obj, call)


def record(state: State, call: Call, obj: Object, role: str = "") -> None:
    """Record that an object is called at a site."""
    if call.where[0] < 0:
        return
    callees = state.calls.callees.get(call.where)
    if callees is None:
        callees = state.calls.callees[call.where] = {}
    elif obj in callees:
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
    named = state.lookups.attributes.get(name)
    if named is None:
        named = state.lookups.attributes[name] = {}
    node = named.get(obj)
    if node is not None:
        return node
    node = named[obj] = state.new_node()
    if name in STRING_ATTRIBUTES and state.kind[obj] in NAMED_KINDS:
        state.add(node, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    state.rules.attributes.get(state.kind[obj], _load_stored)(state, obj, name, node)
    return node


def load_attribute(state: State, obj: Object, name: str, dst: int) -> None:
    """Put an attribute of an object into a node."""
    named = state.lookups.attributes.get(name, {})
    node = named.get(strong(obj))
    state.flow(attribute_node(state, obj, name) if node is None else node, dst, is_hint(obj))


def _load_stored(state: State, obj: Object, name: str, node: int) -> None:
    """Read an attribute of an object that has only those stored on it."""
    state.flow(state.field(obj, name), node)
