"""Model the methods of lists, tuples, dicts, sets and generators.

    names.append(x)          x is an element at an unknown key
    table.get("k", d)        returns the element at the constant key, or d

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.models.builtins import Model, compare, merge
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.rules.containers import ALL_ELEMENTS, element_nodes, forget_keys
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.values.state import Call, State


def call_container_method(state: State, container: Object, name: str, call: Call) -> None:
    """Call a method of a list, tuple, dict, set or generator."""
    model = METHODS.get(name)
    if model is not None:
        model(ModelCall(state, call, container, name))


def add(c: ModelCall, position: int = 0) -> None:
    c.put(c.callee, None, c.argument(position))


def extend(c: ModelCall) -> None:
    c.put(c.callee, None, c.iterate(c.argument(0)))
    c.returns(c.callee)


def insert(c: ModelCall) -> None:
    add(c, 1)
    forget_keys(c.state, c.callee)


def reorder(c: ModelCall) -> None:
    forget_keys(c.state, c.callee)
    if c.name == "sort":
        compare(c, c.field(c.callee, ALL_ELEMENTS), ["__lt__"])


def update(c: ModelCall) -> None:
    if c.is_container(c.callee, "set"):
        extend(c)
    else:
        merge(c, c.callee)


def return_container(c: ModelCall) -> None:
    c.returns(c.callee)


def return_element(c: ModelCall) -> None:
    c.flow(c.field(c.callee, ALL_ELEMENTS), c.result)


def take(c: ModelCall) -> None:
    is_dict = c.is_container(c.callee, "dict")
    key = c.constant(0) if is_dict else None
    if not is_dict and c.name == "pop":
        forget_keys(c.state, c.callee)
    for node in element_nodes(c.state, c.callee, key):
        c.flow(node, c.result)
    if c.name != "pop" or is_dict:
        c.flow(c.argument(1), c.result)
    if c.name == "setdefault":
        c.put(c.callee, key, c.argument(1))


def view(c: ModelCall) -> None:
    c.returns(c.object(ir.OBJ_DICT_VIEW, c.callee, c.name))


def pop_item(c: ModelCall) -> None:
    c.iterate(c.node(c.object(ir.OBJ_DICT_VIEW, c.callee, "items")), c.result)


METHODS: Mapping[str, Model] = {
    **dict.fromkeys(("append", "add", "appendleft"), add),
    **dict.fromkeys(("extend", "extendleft", "union", "intersection", "difference"), extend),
    **dict.fromkeys(("sort", "reverse", "remove"), reorder),
    **dict.fromkeys(("pop", "popleft", "get", "setdefault", "__getitem__"), take),
    **dict.fromkeys(("values", "keys", "items"), view),
    **dict.fromkeys(("__next__", "__anext__", "send"), return_element),
    "insert": insert,
    "__setitem__": partial(add, position=1),
    "popitem": pop_item,
    "copy": return_container,
    "update": update,
}
