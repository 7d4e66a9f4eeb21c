"""Create objects, keep instances of a class, hint at objects that annotations state, raise and catch.

    x = []                    a container object
    isinstance(x, A)          the objects of x that are instances of A; as a hint an instance of A
    issubclass(x, A)          the classes of x that are A or below; as a hint A
    def f(x: A)               what is passed: objects of other classes than A and those below only as hints
    x: list[A]                a list with an instance of A, both as hints
    except E as e             raised instances of E; if there are none, an instance of E

Tests: `tests/unit/relate/test_callgraph_cases.py`, of annotations `tests/unit/relate/test_annotations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import call_object
from codeanatomy.relate.values.external_names import is_subclass
from codeanatomy.relate.values.hierarchy import bases, defining_class, external_bases, mro
from codeanatomy.relate.values.rules.containers import ALL_ELEMENTS, KEYS, container_kind, put
from codeanatomy.relate.values.solver import Object, as_hint, is_hint, strong
from codeanatomy.relate.values.state import Call, Container, SiteKey, State

# Prefixes of names in annotations that are no classes.
SPECIAL_FORMS = ("typing.", "typing_extensions.", "collections.abc.")
PROTOCOLS = frozenset({"typing.Protocol", "typing_extensions.Protocol"})
STRING_KINDS = (ir.OBJ_STRING, ir.OBJ_STRING_PREFIX)
# Objects that each function copy creates for itself.
COPIED_KINDS = (ir.OBJ_FUNCTION, ir.OBJ_CONTAINER)
CLASS_KINDS = (ir.OBJ_CLASS, ir.OBJ_EXTERNAL)


def copy_node(state: State, file: int, op: ir.Op) -> None:
    """Let the objects of a node flow into another."""
    state.flow(state.node(file, op[1]), state.node(file, op[2]))


def make(state: State, file: int, op: ir.Op) -> None:
    """Create the object of an expression or definition."""
    _, node, kind, operand = op
    if kind == ir.OBJ_CONSTANT:
        obj = state.object(ir.OBJ_EXTERNAL_INSTANCE, f"builtins.{operand}")
    elif kind in STRING_KINDS:
        obj = state.object(kind, operand)
    else:
        obj = state.object(kind, file, operand, state.active_copy_number if kind in COPIED_KINDS else None)
    if kind == ir.OBJ_CONTAINER:
        name, size = state.programs[file].containers[operand]
        state.containers[obj] = Container(name, size=size)
    state.add(state.node(file, node), obj)


# -- instances of classes


def add_instance(state: State, obj: Object, dst: int, weak: bool) -> None:
    """Put an instance of a class, of the repository or external, into dst."""
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_CLASS:
        state.add(dst, as_hint(state.object(ir.OBJ_INSTANCE, strong(obj)), weak))
    elif kind == ir.OBJ_EXTERNAL and not first.startswith(SPECIAL_FORMS):
        state.add(dst, as_hint(state.object(ir.OBJ_EXTERNAL_INSTANCE, first), weak))
    elif kind == ir.OBJ_CONTAINER:
        state.subscribe(state.field(obj, ALL_ELEMENTS), add_instance, dst, weak)


def narrow(state: State, file: int, op: ir.Op) -> None:
    """Put the objects that pass `isinstance` or `issubclass` into the node behind it."""
    code, src, classes, dst = op
    of_classes = code == ir.OP_ISSUBCLASS
    narrowed = state.node(file, src), state.node(file, dst)
    state.subscribe(state.node(file, classes), _narrow_to, *narrowed, of_classes)


def _narrow_to(state: State, cls: Object, src: int, dst: int, of_classes: bool) -> None:
    """Put the objects of src that are of a class into dst, and an instance of it or the class as a hint."""
    kind = state.kind[cls]
    if kind == ir.OBJ_CONTAINER:
        state.subscribe(state.field(cls, ALL_ELEMENTS), _narrow_to, src, dst, of_classes)
    elif kind in CLASS_KINDS and of_classes:
        state.subscribe(src, _keep_subclass, strong(cls), dst)
        state.add(dst, as_hint(cls))
    elif kind in CLASS_KINDS:
        state.subscribe(src, keep_instance, strong(cls), dst)
        add_instance(state, cls, dst, True)


def _inherits(state: State, cls: Object, wanted: Object) -> bool:
    """Whether a class of the repository is another class or below it."""
    name = state.objects[wanted].first
    return wanted in mro(state, cls) or any(is_subclass(base, name) for base in external_bases(state, cls))


def _keep_subclass(state: State, obj: Object, cls: Object, dst: int) -> None:
    """Put an object that is a class or inherits from it into dst."""
    kind = state.kind[obj]
    if kind == ir.OBJ_CLASS:
        keep = _inherits(state, strong(obj), cls)
    else:
        is_value = kind in (ir.OBJ_INSTANCE, ir.OBJ_CONTAINER)
        keep = not is_value and state.kind[cls] == ir.OBJ_EXTERNAL
    if keep:
        state.add(dst, obj)


def keep_instance(state: State, obj: Object, cls: Object, dst: int) -> None:
    """Put an object that is an instance of a class into dst."""
    wanted = state.objects[cls]
    kind, first, _, _ = state.objects[obj]
    if kind == ir.OBJ_INSTANCE:
        keep = _inherits(state, first, cls)
    else:
        own = {ir.OBJ_EXTERNAL_INSTANCE: first, ir.OBJ_STRING: "builtins.str"}.get(kind)
        if kind == ir.OBJ_CONTAINER:
            own = f"builtins.{container_kind(state, obj)}"
        # The class of other objects is unknown.
        keep = wanted.kind == ir.OBJ_EXTERNAL and own in (None, wanted.first)
    if keep:
        state.add(dst, obj)


def admit_object(
    state: State, obj: Object, dst: int, file: int, hint: Sequence[Any], place: ir.Place
) -> None:
    """Pass an object to a parameter, as a hint if its annotation excludes it."""
    declared = _declared_classes(state, file, hint)
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


# -- annotations


def annotate(state: State, file: int, op: ir.Op) -> None:
    """Put the objects that an annotation states into a node, as hints."""
    _add_hints(state, file, op[1], state.node(file, op[2]))


def _add_hints(state: State, file: int, hint: Sequence[Any] | None, dst: int) -> None:
    if hint is None:
        return
    kind = hint[0]
    if kind == ir.HINT_INSTANCE:
        state.subscribe(state.node(file, hint[1]), add_instance, dst, True)
    elif kind == ir.HINT_CLASS:
        state.subscribe(state.node(file, hint[1]), _hint_class, dst)
    elif kind == ir.HINT_UNION:
        for each in hint[1]:
            _add_hints(state, file, each, dst)
    elif kind == ir.HINT_CALLABLE:
        function = state.object(ir.OBJ_HINTED_CALLABLE, dst)
        _add_hints(state, file, hint[1], state.field(function, "result"))
        state.add(dst, as_hint(function))
    elif kind == ir.HINT_CONTAINER:
        _hint_container(state, file, hint[1], {None: hint[2]}, dst)
    elif kind == ir.HINT_TUPLE:
        _hint_container(state, file, "tuple", {str(at): each for at, each in enumerate(hint[1])}, dst)
    elif kind == ir.HINT_DICT:
        container = _hint_container(state, file, "dict", {None: hint[2]}, dst)
        _add_hints(state, file, hint[1], state.field(container, KEYS))


def _hint_container(
    state: State, file: int, kind: str, elements: Mapping[str | None, Any], dst: int
) -> Object:
    """Put a container with elements that annotations state into dst."""
    container = state.object(ir.OBJ_CONTAINER, "hint", dst)
    state.containers[container] = Container(kind)
    for key, hint in elements.items():
        node = state.new_node()
        _add_hints(state, file, hint, node)
        put(state, container, key, node)
    state.add(dst, as_hint(container))
    return container


def _hint_class(state: State, obj: Object, dst: int) -> None:
    if state.kind[obj] in CLASS_KINDS:
        state.add(dst, as_hint(obj))


# -- exceptions


def raise_object(state: State, obj: Object, where: SiteKey) -> None:
    """Raise an object, or an instance of it if it is a class, in its file."""
    kind = state.kind[obj]
    if kind == ir.OBJ_CLASS:
        call_object(state, obj, Call(where, [], -1, "raise"))
        obj = state.object(ir.OBJ_INSTANCE, strong(obj))
    if kind in (ir.OBJ_CLASS, ir.OBJ_INSTANCE):
        state.add(state.raised, obj)
        state.add(state.raised_in[where[0]], obj)


def catch(state: State, file: int, op: ir.Op) -> None:
    """Put raised exceptions into the node of the handler that catches them."""
    state.subscribe(state.node(file, op[1]), _catch_class, file, state.node(file, op[2]))


def _catch_class(state: State, cls: Object, file: int, dst: int) -> None:
    """Put caught exceptions of a class into dst.

    These are raised exceptions of the class: raised anywhere for a class of the repository, in this file
    for an external class, of which an instance is added as well.
    """
    kind = state.kind[cls]
    if kind == ir.OBJ_CLASS:
        state.subscribe(state.raised, keep_instance, strong(cls), dst)
    elif kind == ir.OBJ_CONTAINER:
        state.subscribe(state.field(cls, ALL_ELEMENTS), _catch_class, file, dst)
    else:
        add_instance(state, cls, dst, False)
        state.subscribe(state.raised_in[file], keep_instance, strong(cls), dst)


def catch_unraised(state: State, file: int, op: ir.Op) -> None:
    """Put instances of caught classes into the node of a handler that no raised exception reaches."""
    if not state.points_to[state.node(file, op[2])]:
        state.subscribe(state.node(file, op[1]), add_instance, state.node(file, op[2]), False)
