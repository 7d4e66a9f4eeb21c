"""Create objects, instances of classes, and keep those that are instances of a class.

    x = []                    a container object
    isinstance(x, A)          the objects of x that are instances of A; as a hint an instance of A
    issubclass(x, A)          the classes of x that are A or below; as a hint A
    def f(x: A)               what is passed: objects of other classes than A and those below only as hints

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.external_names import is_subclass
from codeanatomy.relate.values.hierarchy import bases, defining_class, external_bases, mro
from codeanatomy.relate.values.rules.containers import ALL_ELEMENTS, container_kind
from codeanatomy.relate.values.solver import Object, as_hint, is_hint, strong
from codeanatomy.relate.values.state import State

# Prefixes of names in annotations that are no classes.
SPECIAL_FORMS = ("typing.", "typing_extensions.", "collections.abc.")
PROTOCOLS = frozenset({"typing.Protocol", "typing_extensions.Protocol"})
STRING_KINDS = (ir.OBJ_STRING, ir.OBJ_STRING_PREFIX)
# Objects that each function copy creates for itself.
COPIED_KINDS = (ir.OBJ_FUNCTION, ir.OBJ_CONTAINER)
CLASS_KINDS = (ir.OBJ_CLASS, ir.OBJ_EXTERNAL)
EXTERNAL_VALUE_KINDS = (ir.OBJ_EXTERNAL_INSTANCE, ir.OBJ_STRING)


def _apply_copy(state: State, file: int, op: ir.Op) -> None:
    state.flow(state.node(file, op[1]), state.node(file, op[2]))


def _apply_make(state: State, file: int, op: ir.Op) -> None:
    _, node, kind, operand = op
    if kind == ir.OBJ_CONSTANT:
        state.add(state.node(file, node), state.object(ir.OBJ_EXTERNAL_INSTANCE, f"builtins.{operand}"))
        return
    if kind in STRING_KINDS:
        state.add(state.node(file, node), state.object(kind, operand))
        return
    obj = state.object(kind, file, operand, state.active_copy_number if kind in COPIED_KINDS else None)
    if kind == ir.OBJ_CONTAINER:
        state.containers.kinds[obj], state.containers.sizes[obj] = state.programs[file].containers[operand]
    state.add(state.node(file, node), obj)


def add_instances(state: State, objects: Sequence[Object], dst: int, weak: bool) -> None:
    """Put instances of classes, of the repository or external, into dst."""
    for obj in objects:
        kind, first, _, _ = state.objects[obj]
        if kind == ir.OBJ_CLASS:
            state.add(dst, as_hint(state.object(ir.OBJ_INSTANCE, strong(obj)), weak))
        elif kind == ir.OBJ_EXTERNAL and not first.startswith(SPECIAL_FORMS):
            state.add(dst, as_hint(state.object(ir.OBJ_EXTERNAL_INSTANCE, first), weak))
        elif kind == ir.OBJ_CONTAINER:
            state.subscribe(state.field(obj, ALL_ELEMENTS), add_instances, dst, weak)


def _apply_isinstance(state: State, file: int, op: ir.Op) -> None:
    _, src, classes, dst = op
    state.subscribe(
        state.node(file, classes),
        _narrow,
        state.node(file, src),
        state.node(file, dst),
    )


def _narrow(state: State, classes: Sequence[Object], src: int, dst: int) -> None:
    """Put the objects of src that pass `isinstance` into dst, and instances of the classes as hints."""
    for cls in classes:
        kind = state.kind[cls]
        if kind == ir.OBJ_CONTAINER:
            state.subscribe(state.field(cls, ALL_ELEMENTS), _narrow, src, dst)
        elif kind in CLASS_KINDS:
            state.subscribe(src, keep_instances, strong(cls), dst)
            add_instances(state, [cls], dst, True)


def _apply_issubclass(state: State, file: int, op: ir.Op) -> None:
    _, src, classes, dst = op
    state.subscribe(
        state.node(file, classes),
        _narrow_classes,
        state.node(file, src),
        state.node(file, dst),
    )


def _narrow_classes(state: State, classes: Sequence[Object], src: int, dst: int) -> None:
    """Put the classes of src that pass `issubclass` into dst, and the given classes as hints."""
    for cls in classes:
        kind = state.kind[cls]
        if kind == ir.OBJ_CONTAINER:
            state.subscribe(state.field(cls, ALL_ELEMENTS), _narrow_classes, src, dst)
        elif kind in CLASS_KINDS:
            state.subscribe(src, _keep_classes, strong(cls), dst)
            state.add(dst, as_hint(cls))


def _keep_classes(state: State, objects: Sequence[Object], cls: Object, dst: int) -> None:
    """Put the objects that are this class or inherit from it into dst."""
    wanted = state.objects[cls]
    for obj in objects:
        kind = state.kind[obj]
        if kind == ir.OBJ_CLASS:
            keep = cls in mro(state, strong(obj)) or any(
                is_subclass(base, wanted.first) for base in external_bases(state, strong(obj))
            )
        else:
            keep = kind not in (ir.OBJ_INSTANCE, ir.OBJ_CONTAINER) and wanted.kind == ir.OBJ_EXTERNAL
        if keep:
            state.add(dst, obj)


def keep_instances(state: State, objects: Sequence[Object], cls: Object, dst: int) -> None:
    """Put the objects that are instances of a class into dst."""
    wanted = state.objects[cls]
    for obj in objects:
        kind, first, _, _ = state.objects[obj]
        if kind == ir.OBJ_INSTANCE:
            keep = cls in mro(state, first) or any(
                is_subclass(base, wanted.first) for base in external_bases(state, first)
            )
        elif kind in EXTERNAL_VALUE_KINDS:
            keep = wanted.kind == ir.OBJ_EXTERNAL and wanted.first == (
                first if kind == ir.OBJ_EXTERNAL_INSTANCE else "builtins.str"
            )
        elif kind == ir.OBJ_CONTAINER:
            keep = wanted.kind == ir.OBJ_EXTERNAL and wanted.first == f"builtins.{container_kind(state, obj)}"
        else:
            keep = wanted.kind == ir.OBJ_EXTERNAL
        if keep:
            state.add(dst, obj)


def admit_objects(
    state: State, objects: Sequence[Object], dst: int, file: int, hint: Sequence[Any], place: ir.Place
) -> None:
    """Pass objects to a parameter, as hints if its annotation excludes them."""
    declared = _declared_classes(state, file, hint)
    for obj in objects:
        if declared and not is_hint(obj) and _is_excluded(state, obj, declared):
            cls = state.objects[obj].first
            state.calls.excluded.setdefault(file, {}).setdefault(place, {})[cls] = None
            state.add(dst, as_hint(obj))
        else:
            state.add(dst, obj)


def _declared_classes(state: State, file: int, hint: Sequence[Any]) -> list[Object]:
    """Return the classes that an annotation names; none if any is not known to be of the repository."""
    classes: list[Object] = []
    for each in hint[1] if hint[0] == ir.HINT_UNION else [hint]:
        is_named = each[0] == ir.HINT_INSTANCE and each[1] >= 0
        named = state.objects_at(state.offsets[file] + each[1]) if is_named else ()
        if not named or any(state.kind[obj] != ir.OBJ_CLASS or is_hint(obj) for obj in named):
            return []
        classes += named
    is_protocol = any(not PROTOCOLS.isdisjoint(external_bases(state, cls)) for cls in classes)
    return [] if is_protocol else classes


def _is_excluded(state: State, obj: Object, declared: Sequence[Object]) -> bool:
    """Whether an object is an instance of a class without kinship to the declared ones."""
    kind, cls, _, _ = state.objects[obj]
    if kind != ir.OBJ_INSTANCE or defining_class(state, cls, "__getattr__") is not None:
        return False
    order = mro(state, cls)
    own = [each for each in order if state.kind[each] == ir.OBJ_CLASS]
    if any(len(bases(state, each)) < len(state.cls(each)[1].bases) for each in own):
        # Nothing is known of a base.
        return False
    return not any(each in order or cls in mro(state, each) for each in declared)


OPERATIONS = {ir.OP_COPY: _apply_copy, ir.OP_MAKE: _apply_make}
LATE_OPERATIONS = {ir.OP_ISINSTANCE: _apply_isinstance, ir.OP_ISSUBCLASS: _apply_issubclass}
