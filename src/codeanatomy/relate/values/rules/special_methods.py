"""Call special methods that the language runs: operators, conversions, `with`, iteration.

    -x            `__neg__` of the class of x; of a class, of its metaclass
    a < b         the first of `__lt__` and its fallbacks that the class has

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node, call_node
from codeanatomy.relate.values.hierarchy import (
    defining_class,
    metaclass_nodes,
    watch_attribute,
)
from codeanatomy.relate.values.pending_call import Call
from codeanatomy.relate.values.solver import Object, is_hint, strong
from codeanatomy.relate.values.state import State


def call_special_method(state: State, obj: Object, names: Sequence[str], call: Call) -> None:
    """Call the first of these special methods that the class of each instance has."""
    names = tuple(names)
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_INSTANCE:
        watch_attribute(state, first, names[0], _call_first_special, obj, names, call)
    elif kind == ir.OBJ_CLASS:
        _call_class_special(state, obj, names, call)


def _call_class_special(state: State, obj: Object, names: Sequence[str], call: Call) -> None:
    for value in metaclass_nodes(state, obj):
        state.subscribe(value, _call_metaclass_special, obj, names, call)


def _call_metaclass_special(
    state: State, meta: Object, obj: Object, names: Sequence[str], call: Call
) -> None:
    if state.kind[meta] == ir.OBJ_CLASS:
        call_special_method(state, state.object(ir.OBJ_INSTANCE, strong(meta)), names, call)


def _call_first_special(
    state: State, _: Object | None, obj: Object, names: Sequence[str], call: Call
) -> None:
    cls = state.objects[obj].first
    for name in names:
        holder = defining_class(state, cls, name)
        if state.is_repository_class(holder):
            call_node(state, attribute_node(state, obj, name), call, is_hint(obj))
            return


def _apply_special_method(state: State, file: int, op: ir.Op) -> None:
    _, receiver, names, args, dst, site = op
    role = state.programs[file].sites[site].role
    arguments = [(how, keyword, state.node(file, node)) for how, keyword, node in args]
    call = Call((file, site), arguments, state.node(file, dst), role=role)
    state.subscribe(state.node(file, receiver), call_special_method, tuple(names), call)


OPERATIONS = {ir.OP_SPECIAL_METHOD: _apply_special_method}
