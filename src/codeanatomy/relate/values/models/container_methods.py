"""Model the methods of lists, tuples, dicts, sets and generators.

    names.append(x)          x is an element at an unknown key
    table.get("k", d)        returns the element at the constant key, or d

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.models.builtins import compare, merge
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.rules.containers import ALL_ELEMENTS, element_nodes, forget_keys


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
