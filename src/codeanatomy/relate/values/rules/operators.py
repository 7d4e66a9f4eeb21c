"""Apply binary operators: special methods of instances, results of builtin operands.

    a + b         `__add__` of a, else `__radd__` of b; of two lists, a list with the elements of both
    "%s" % x      calls `__str__` of x

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.hierarchy import defining_class
from codeanatomy.relate.values.pending_call import Call, positional
from codeanatomy.relate.values.rules.containers import (
    ALL_ELEMENTS,
    container_kind,
    merge_from,
    new_container,
    put,
)
from codeanatomy.relate.values.rules.special_methods import call_special_method
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.values.state import State

# Reflected method of a comparison; other operators have `r` before the name.
REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
# Methods to try in order: `object.__ne__` calls `__eq__`, methods of `total_ordering` call the one defined.
FALLBACKS = {
    "ne": ("__ne__", "__eq__"),
    **{
        name: tuple(f"__{each}__" for each in (name, "lt", "le", "gt", "ge"))
        for name in ("lt", "le", "gt", "ge")
    },
}


def _apply_binary(state: State, file: int, op: ir.Op) -> None:
    _, left, right, name, dst, site = op
    where = (file, site)
    first, second = state.node(file, left), state.node(file, right)
    bare = name.removeprefix("i")
    names = tuple(dict.fromkeys((f"__{name}__", f"__{bare}__")))
    names = FALLBACKS.get(name, names)
    call = Call(where, [positional(second)], state.node(file, dst), role="operator")
    state.subscribe(first, _apply_operator, names, call)
    reflected = Call(where, [positional(first)], state.node(file, dst), role="operator")
    state.subscribe(
        second, _apply_reflected, f"__{REFLECTED.get(name, 'r' + bare)}__", names, first, reflected
    )


def _apply_operator(state: State, obj: Object, names: Sequence[str], call: Call) -> None:
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_INSTANCE:
        call_special_method(state, obj, names, call)
    elif kind == ir.OBJ_CONTAINER:
        both = new_container(state, container_kind(state, obj), call.where)
        put(state, both, None, state.field(obj, ALL_ELEMENTS))
        state.subscribe(call.argument(0), merge_from, both)
        state.add(call.dst, both)
    elif kind == ir.OBJ_STRING or (
        kind == ir.OBJ_EXTERNAL_INSTANCE and first.startswith(("builtins.", "pathlib."))
    ):
        state.add(
            call.dst,
            state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str" if kind == ir.OBJ_STRING else first),
        )
        if names[0] == "__mod__":
            _format(state, call)


def _format(state: State, call: Call) -> None:
    """Call the string conversions of `"%s" % x` and `"%s" % (x, y)`."""
    conversion = Call(call.where, [], -1, role="operator")
    state.subscribe(call.argument(0), call_special_method, ("__str__", "__repr__"), conversion)
    state.subscribe(call.argument(0), _format_elements, conversion)


def _format_elements(state: State, obj: Object, conversion: Call) -> None:
    if state.kind[obj] == ir.OBJ_CONTAINER:
        state.subscribe(
            state.field(obj, ALL_ELEMENTS),
            call_special_method,
            ("__str__", "__repr__"),
            conversion,
        )


def _apply_reflected(
    state: State, obj: Object, name: str, names: Sequence[str], left: int, call: Call
) -> None:
    """Call the reflected method of the right operand unless the left one has the operator."""
    for other in state.points_to[left] or ():
        kind, first, _, _ = state.objects[other]
        if kind == ir.OBJ_INSTANCE and any(defining_class(state, first, each) is not None for each in names):
            return
    call_special_method(state, obj, [name], call)


OPERATIONS = {ir.OP_BINARY: _apply_binary}
