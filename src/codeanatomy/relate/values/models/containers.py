"""What the methods of lists, tuples, dicts, sets and generators do with elements.

    names.append(x)          x is an element, anywhere
    table.get("k", d)        what is at the constant key, or d

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from codeanatomy.relate.program import (
    OBJ_DICT_VIEW,
)
from codeanatomy.relate.values.models.builtins import compared, element_of, entries
from codeanatomy.relate.values.solver import Object

if TYPE_CHECKING:
    from codeanatomy.relate.values.calls import Calls
    from codeanatomy.relate.values.pending_call import Call


def container_method(values: Calls, container: Object, name: str, call: Call) -> None:
    """A method of a list, tuple, dict, set or generator."""
    model = METHODS.get(name)
    if model is not None:
        model(values, container, name, call)


def _added(values: Calls, container: Object, name: str, call: Call) -> None:
    values.put(container, None, call.argument(0))


def _extended(values: Calls, container: Object, name: str, call: Call) -> None:
    values.put(container, None, element_of(values, call, call.argument(0)))
    values.add(call.dst, container)


def _inserted(values: Calls, container: Object, name: str, call: Call) -> None:
    values.put(container, None, call.argument(1))
    values.forget_keys(container)


def _reordered(values: Calls, container: Object, name: str, call: Call) -> None:
    values.forget_keys(container)
    if name == "sort":
        compared(values, call, values.field(container, "[*]"), "__lt__")


def _updated(values: Calls, container: Object, name: str, call: Call) -> None:
    if values.container_kind(container) == "set":
        _extended(values, container, name, call)
        return
    for _, word, node in call.args:
        if word is not None:
            values.put(container, repr(word), node)
    values.subscribe(call.argument(0), entries, values, container, call)


def _set(values: Calls, container: Object, name: str, call: Call) -> None:
    values.put(container, None, call.argument(1))


def _itself(values: Calls, container: Object, name: str, call: Call) -> None:
    values.add(call.dst, container)


def _yielded(values: Calls, container: Object, name: str, call: Call) -> None:
    values.flow(values.field(container, "[*]"), call.dst)


def _taken(values: Calls, container: Object, name: str, call: Call) -> None:
    keyed = values.container_kind(container) == "dict"
    key = values.constant_argument(call, 0) if keyed else None
    if not keyed and name == "pop":
        values.forget_keys(container)
    for node in values.element_nodes(container, key):
        values.flow(node, call.dst)
    if name != "pop" or keyed:
        values.flow(call.argument(1), call.dst)
    if name == "setdefault":
        values.put(container, key, call.argument(1))


def _viewed(values: Calls, container: Object, name: str, call: Call) -> None:
    values.add(call.dst, values.object(OBJ_DICT_VIEW, container, name))


def _popped_item(values: Calls, container: Object, name: str, call: Call) -> None:
    node = values.new_node()
    values.add(node, values.object(OBJ_DICT_VIEW, container, "items"))
    values.iterate(node, call.dst, call.where)


Method: TypeAlias = "Callable[[Calls, Object, str, Call], None]"
METHODS: Mapping[str, Method] = {
    **dict.fromkeys(("append", "add", "appendleft"), _added),
    **dict.fromkeys(("extend", "extendleft", "union", "intersection", "difference"), _extended),
    **dict.fromkeys(("sort", "reverse", "remove"), _reordered),
    **dict.fromkeys(("pop", "popleft", "get", "setdefault", "__getitem__"), _taken),
    **dict.fromkeys(("values", "keys", "items"), _viewed),
    **dict.fromkeys(("__next__", "__anext__", "send"), _yielded),
    "insert": _inserted,
    "__setitem__": _set,
    "popitem": _popped_item,
    "copy": _itself,
    "update": _updated,
}
