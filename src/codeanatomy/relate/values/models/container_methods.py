"""Model the methods of lists, tuples, dicts, sets and generators.

    names.append(x)          x is an element at an unknown key
    table.get("k", d)        returns the element at the constant key, or d

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from codeanatomy.relate.program import (
    OBJ_DICT_VIEW,
)
from codeanatomy.relate.values.containers import ALL_ELEMENTS
from codeanatomy.relate.values.models.builtins import call_comparisons, element_node, merge_entries
from codeanatomy.relate.values.solver import Object

if TYPE_CHECKING:
    from codeanatomy.relate.values.calls import Calls
    from codeanatomy.relate.values.pending_call import Call


def call_container_method(values: Calls, container: Object, name: str, call: Call) -> None:
    """Call a method of a list, tuple, dict, set or generator."""
    model = METHODS.get(name)
    if model is not None:
        model(values, container, name, call)


def _add(values: Calls, container: Object, name: str, call: Call) -> None:
    values.put(container, None, call.argument(0))


def _extend(values: Calls, container: Object, name: str, call: Call) -> None:
    values.put(container, None, element_node(values, call, call.argument(0)))
    values.add(call.dst, container)


def _insert(values: Calls, container: Object, name: str, call: Call) -> None:
    values.put(container, None, call.argument(1))
    values.forget_keys(container)


def _reorder(values: Calls, container: Object, name: str, call: Call) -> None:
    values.forget_keys(container)
    if name == "sort":
        call_comparisons(values, call, values.field(container, ALL_ELEMENTS), "__lt__")


def _update(values: Calls, container: Object, name: str, call: Call) -> None:
    if values.container_kind(container) == "set":
        _extend(values, container, name, call)
        return
    for _, keyword, node in call.args:
        if keyword is not None:
            values.put(container, repr(keyword), node)
    values.subscribe(call.argument(0), merge_entries, values, container, call)


def _set_item(values: Calls, container: Object, name: str, call: Call) -> None:
    values.put(container, None, call.argument(1))


def _return_container(values: Calls, container: Object, name: str, call: Call) -> None:
    values.add(call.dst, container)


def _yield_element(values: Calls, container: Object, name: str, call: Call) -> None:
    values.flow(values.field(container, ALL_ELEMENTS), call.dst)


def _take(values: Calls, container: Object, name: str, call: Call) -> None:
    is_dict = values.container_kind(container) == "dict"
    key = values.constant_argument(call, 0) if is_dict else None
    if not is_dict and name == "pop":
        values.forget_keys(container)
    for node in values.element_nodes(container, key):
        values.flow(node, call.dst)
    if name != "pop" or is_dict:
        values.flow(call.argument(1), call.dst)
    if name == "setdefault":
        values.put(container, key, call.argument(1))


def _view(values: Calls, container: Object, name: str, call: Call) -> None:
    values.add(call.dst, values.object(OBJ_DICT_VIEW, container, name))


def _pop_item(values: Calls, container: Object, name: str, call: Call) -> None:
    node = values.new_node()
    values.add(node, values.object(OBJ_DICT_VIEW, container, "items"))
    values.iterate(node, call.dst, call.where)


Method: TypeAlias = "Callable[[Calls, Object, str, Call], None]"
METHODS: Mapping[str, Method] = {
    **dict.fromkeys(("append", "add", "appendleft"), _add),
    **dict.fromkeys(("extend", "extendleft", "union", "intersection", "difference"), _extend),
    **dict.fromkeys(("sort", "reverse", "remove"), _reorder),
    **dict.fromkeys(("pop", "popleft", "get", "setdefault", "__getitem__"), _take),
    **dict.fromkeys(("values", "keys", "items"), _view),
    **dict.fromkeys(("__next__", "__anext__", "send"), _yield_element),
    "insert": _insert,
    "__setitem__": _set_item,
    "popitem": _pop_item,
    "copy": _return_container,
    "update": _update,
}
