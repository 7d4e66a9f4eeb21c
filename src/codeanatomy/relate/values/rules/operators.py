"""Apply operators: special methods of instances, results of builtin operands.

-x            `__neg__` of the class of x; of a class, of its metaclass
a + b         `__add__` of a, else `__radd__` of b; of two lists, a list with the elements of both
"%s" % x      calls `__str__` of x
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import call_special_method
from codeanatomy.relate.values.hierarchy import defining_class
from codeanatomy.relate.values.rules import containers
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.values.state import Call, State, positional

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


CONVERSIONS = ("__str__", "__repr__")


def apply_special_method(state: State, file: int, op: ir.Op) -> None:
    """Call a special method that the language runs, such as that of a unary operator."""
    _, receiver, names, args, dst, site = op
    role = state.programs[file].sites[site].role
    arguments = [(how, keyword, state.node(file, node)) for how, keyword, node in args]
    call = Call((file, site), arguments, state.node(file, dst), role)
    state.subscribe(state.node(file, receiver), call_special_method, tuple(names), call)


def apply_binary(state: State, file: int, op: ir.Op) -> None:
    """Apply a binary operator to the objects of its operands."""
    _, left, right, name, dst, site = op
    first, second = state.node(file, left), state.node(file, right)
    bare = name.removeprefix("i")
    names = FALLBACKS.get(name, tuple(dict.fromkeys((f"__{name}__", f"__{bare}__"))))
    reflected = f"__{REFLECTED.get(name, 'r' + bare)}__"
    result = state.node(file, dst)
    call = Call((file, site), [positional(second)], result, "operator")
    state.subscribe(first, _apply_to_left, names, call)
    back = Call((file, site), [positional(first)], result, "operator")
    state.subscribe(second, _apply_to_right, reflected, names, first, back)


def _apply_to_left(state: State, obj: Object, names: Sequence[str], call: Call) -> None:
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_INSTANCE:
        call_special_method(state, obj, names, call)
    elif kind == ir.OBJ_CONTAINER:
        both = containers.new_container(state, containers.container_kind(state, obj), call.where)
        containers.put(state, both, None, state.field(obj, containers.ALL_ELEMENTS))
        state.subscribe(call.argument(0), containers.merge_from, both)
        state.add(call.dst, both)
    elif kind == ir.OBJ_STRING or (
        kind == ir.OBJ_EXTERNAL_INSTANCE and first.startswith(("builtins.", "pathlib."))
    ):
        cls = "builtins.str" if kind == ir.OBJ_STRING else first
        state.add(call.dst, state.object(ir.OBJ_EXTERNAL_INSTANCE, cls))
        if names[0] == "__mod__":
            conversion = Call(call.where, [], -1, "operator")
            state.subscribe(call.argument(0), _format, conversion)


def _format(state: State, obj: Object, conversion: Call) -> None:
    """Call the string conversions of `"%s" % x` and `"%s" % (x, y)`."""
    if state.kind[obj] == ir.OBJ_CONTAINER:
        elements = state.field(obj, containers.ALL_ELEMENTS)
        state.subscribe(elements, call_special_method, CONVERSIONS, conversion)
    else:
        call_special_method(state, obj, CONVERSIONS, conversion)


def _apply_to_right(
    state: State, obj: Object, name: str, names: Sequence[str], left: int, call: Call
) -> None:
    """Call the reflected method of the right operand unless the left one has the operator."""
    for other in state.points_to[left] or ():
        kind, first, _, _ = state.objects[other]
        if kind == ir.OBJ_INSTANCE and any(defining_class(state, first, each) is not None for each in names):
            return
    call_special_method(state, obj, (name,), call)
