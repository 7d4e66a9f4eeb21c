"""Enter and leave context managers.

    with x as y        what `__enter__` returns, what a `contextmanager` function yields, or x itself

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node, call_node
from codeanatomy.relate.values.hierarchy import defining_class
from codeanatomy.relate.values.pending_call import Call, SiteKey
from codeanatomy.relate.values.rules.iteration import await_object
from codeanatomy.relate.values.rules.special_methods import call_special_method
from codeanatomy.relate.values.solver import Object, is_hint
from codeanatomy.relate.values.state import State


def _apply_with(state: State, file: int, op: ir.Op) -> None:
    _, src, dst, site = op
    state.subscribe(state.node(file, src), enter_context, state.node(file, dst), (file, site))


def enter_context(state: State, obj: Object, dst: int, where: SiteKey) -> None:
    """Put the value that `with` binds into dst; call the methods that enter and exit."""
    is_async = state.programs[where[0]].sites[where[1]].role == "async_with"
    enter, leave = ("__aenter__", "__aexit__") if is_async else ("__enter__", "__exit__")
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_INSTANCE:
        if not state.is_repository_class(defining_class(state, first, enter)):
            # An inherited external `__enter__`: nearly all return the instance.
            state.add(dst, obj)
        entered = state.new_node() if is_async else dst
        call_special_method(state, obj, [enter], Call(where, [], entered, role="with"))
        if is_async:
            state.subscribe(entered, await_object, dst, where)
        call_special_method(state, obj, [leave], Call(where, [], -1, role="with"))
    elif kind == ir.OBJ_CLOSING:
        state.flow(state.field(obj, "inner"), dst, is_hint(obj))
        state.subscribe(state.field(obj, "inner"), _close, Call(where, [], -1, role="with"))
    elif kind == ir.OBJ_CONTEXT_MANAGER:
        state.flow(state.function_node(first, state.function(first)[1].yields), dst, is_hint(obj))
    elif kind == ir.OBJ_EXTERNAL_INSTANCE:
        state.add(dst, obj)


def _close(state: State, obj: Object, call: Call) -> None:
    """Call `close` of the objects in `contextlib.closing`."""
    if state.kind[obj] == ir.OBJ_INSTANCE:
        call_node(state, attribute_node(state, obj, "close"), call)


OPERATIONS = {ir.OP_WITH: _apply_with}
