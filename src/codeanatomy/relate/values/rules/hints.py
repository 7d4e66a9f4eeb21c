"""Apply annotations: the objects that they state are hints.

    x: A               an instance of A, as a hint
    x: list[A]         a list with a hint of an A

Tests: `tests/unit/relate/test_annotations.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.rules.containers import KEYS, put
from codeanatomy.relate.values.rules.objects import CLASS_KINDS, add_instance
from codeanatomy.relate.values.solver import Object, as_hint
from codeanatomy.relate.values.state import State

CONTAINER_HINTS = (ir.HINT_CONTAINER, ir.HINT_TUPLE, ir.HINT_DICT)


def _apply_annotate(state: State, file: int, op: ir.Op) -> None:
    add_hints(state, file, op[1], state.node(file, op[2]))


def add_hints(state: State, file: int, hint: Sequence[Any] | None, dst: int) -> None:
    """Put the objects that an annotation states into dst, as hints."""
    if hint is None:
        return
    kind = hint[0]
    if kind == ir.HINT_INSTANCE:
        state.subscribe(state.node(file, hint[1]), add_instance, dst, True)
    elif kind == ir.HINT_CLASS:
        state.subscribe(state.node(file, hint[1]), _hint_classes, dst)
    elif kind == ir.HINT_UNION:
        for each in hint[1]:
            add_hints(state, file, each, dst)
    elif kind == ir.HINT_CALLABLE:
        function = state.object(ir.OBJ_HINTED_CALLABLE, dst)
        add_hints(state, file, hint[1], state.field(function, "result"))
        state.add(dst, as_hint(function))
    elif kind in CONTAINER_HINTS:
        _add_container_hint(state, file, hint, dst)


def _add_container_hint(state: State, file: int, hint: Sequence[Any], dst: int) -> None:
    container = state.object(ir.OBJ_CONTAINER, "hint", dst)
    state.containers.kinds[container] = {
        ir.HINT_CONTAINER: hint[1],
        ir.HINT_TUPLE: "tuple",
        ir.HINT_DICT: "dict",
    }[hint[0]]
    inner: list[tuple[str | None, Any]] = [(None, hint[-1])]
    if hint[0] == ir.HINT_TUPLE:
        inner = [(str(index), each) for index, each in enumerate(hint[1])]
    elif hint[0] == ir.HINT_DICT:
        add_hints(state, file, hint[1], state.field(container, KEYS))
    for key, each in inner:
        node = state.new_node()
        add_hints(state, file, each, node)
        put(state, container, key, node)
    state.add(dst, as_hint(container))


def _hint_classes(state: State, obj: Object, dst: int) -> None:
    if state.kind[obj] in CLASS_KINDS:
        state.add(dst, as_hint(obj))


OPERATIONS = {ir.OP_ANNOTATE: _apply_annotate}
