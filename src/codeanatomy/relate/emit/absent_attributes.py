"""Attributes that no code of the repository defines: those of builtin classes, and why there is none.

    f.__name__              types.FunctionType.__name__
    self.__dict__           builtins.object.__dict__
    a.nope                  no_such_attribute: nothing that `a` may be has it
    a.later                 dynamic_attribute: set from outside the class, or made by `__getattr__`
    response.headers.get    external_result: the class of a member of something outside is unknown

Tests: `tests/unit/relate/test_absent_attributes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.emit.references import FileRows
from codeanatomy.relate.values.external_names import builtin_owner, is_class_like, is_subclass
from codeanatomy.relate.values.hierarchy import defining_class, external_bases, mro
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.results import program_objects
from codeanatomy.relate.values.solver import Object, is_hint, strong
from codeanatomy.relate.values.state import State

# Class of the objects of a kind.
CLASS_BY_KIND = {
    ir.OBJ_FUNCTION: "types.FunctionType",
    ir.OBJ_CONTEXT_FUNCTION: "types.FunctionType",
    ir.OBJ_BOUND_METHOD: "types.MethodType",
    ir.OBJ_CLASS: "builtins.type",
    ir.OBJ_MODULE: "types.ModuleType",
    ir.OBJ_NAMESPACE: "types.ModuleType",
    ir.OBJ_COROUTINE: "types.CoroutineType",
    ir.OBJ_PROPERTY: "builtins.property",
    ir.OBJ_CONTAINER_METHOD: "types.BuiltinFunctionType",
    ir.OBJ_PARTIAL: "functools.partial",
    ir.OBJ_PARTIAL_METHOD: "functools.partialmethod",
    ir.OBJ_SINGLEDISPATCH: "functools.singledispatch",
    ir.OBJ_STRING_PREFIX: "builtins.str",
}
# Kinds of objects whose attributes are not known: they come from outside.
OPEN_KINDS = frozenset(
    {
        *(ir.OBJ_EXTERNAL, ir.OBJ_EXTERNAL_INSTANCE, ir.OBJ_EXTERNAL_MEMBER, ir.OBJ_WRAPS, ir.OBJ_CLOSING),
        *(ir.OBJ_HINTED_CALLABLE, ir.OBJ_CONTEXT_MANAGER, ir.OBJ_DATACLASS_FIELD),
    }
)
# What a library makes: as bases they are classes of which nothing is known.
UNKNOWN_CLASS_KINDS = frozenset({ir.OBJ_EXTERNAL_INSTANCE, ir.OBJ_EXTERNAL_MEMBER})
ATTRIBUTE_HOOKS = ("__getattr__", "__getattribute__")


def builtin_attribute(f: FileRows, obj: Object, name: str) -> Sequence[Target]:
    """Return the attribute that an object has by its builtin class: of functions, modules and so on."""
    kind, first, second, _ = f.values.objects[obj]
    if kind == ir.OBJ_STATIC_OR_CLASS_METHOD:
        cls = f"builtins.{second}"
    elif kind == ir.OBJ_GENERATOR:
        is_async = f.values.function(first)[1].is_async
        cls = "types.AsyncGeneratorType" if is_async else "types.GeneratorType"
    elif kind == ir.OBJ_EXTERNAL and is_class_like(first):
        cls = "builtins.type"
    else:
        cls = CLASS_BY_KIND.get(kind, "builtins.object")
    owner = builtin_owner(cls, name)
    return [] if owner is None else [f.resolver.external(f"{owner}.{name}")]


def stored_attributes(values: State) -> set[tuple[Object, str]]:
    """Return the attributes that are set on objects, as (class or other object, name), however uncertain."""
    return {
        (_holder(values, obj), op[2])
        for file, program in enumerate(values.programs)
        for op in program.ops
        if op[0] == ir.OP_STORE_ATTRIBUTE
        for obj in program_objects(values, file, op[1])
    }


def absence_reason(f: FileRows, receivers: Sequence[Object], name: str, node: int) -> str:
    """Return the reason why an attribute of these receivers, the objects of a node, has no target."""
    if all(is_hint(obj) for obj in receivers):
        # An annotation states only its class: a value may have more.
        return f.unknown_reason(node)
    reasons = {_absence_reason(f, obj, name) for obj in receivers}
    return next(each for each in ABSENCE_REASONS if each in reasons)


# The first that holds for any of several receivers.
ABSENCE_REASONS = ("external_result", "unknown_base", "dynamic_attribute", "no_such_attribute")


def _absence_reason(f: FileRows, obj: Object, name: str) -> str:
    values = f.values
    kind, first, _, _ = values.objects[obj]
    is_builtin = str(first).startswith("builtins.") and kind != ir.OBJ_EXTERNAL_MEMBER
    if (kind in OPEN_KINDS and not is_builtin) or builtin_attribute(f, obj, name):
        return "external_result"
    holder = _holder(values, obj)
    if values.kind[holder] != ir.OBJ_CLASS:
        is_field = kind == ir.OBJ_CONTAINER and name in values.fields.get(holder, ())
        if is_field or (holder, name) in f.stored:
            return "dynamic_attribute"
        return "external_result" if _is_decorated_outside(values, holder) else "no_such_attribute"
    order = mro(values, holder)
    if any(_has_unknown_base(values, each) for each in order):
        return "unknown_base"
    is_instance = kind != ir.OBJ_CLASS
    hooks = (defining_class(values, holder, each) for each in ATTRIBUTE_HOOKS)
    hooked = is_instance and any(map(values.is_repository_class, hooks))
    # An instance of a metaclass is a class: which one is not known.
    hooked = hooked or (
        is_instance and any(is_subclass(each, "builtins.type") for each in external_bases(values, holder))
    )
    is_stored = any((each, name) in f.stored for each in order)
    return "dynamic_attribute" if hooked or is_stored else "no_such_attribute"


def _is_decorated_outside(values: State, obj: Object) -> bool:
    """Whether an object is a function with a decorator from outside, which may replace it."""
    kind, file, number, _ = values.objects[obj]
    return kind == ir.OBJ_FUNCTION and any(
        all(values.kind[each] in OPEN_KINDS for each in program_objects(values, file, node))
        for _, decorated, index, node in values.programs[file].decorators
        if (decorated, index) == (ir.FUNCTION, number)
    )


def _has_unknown_base(values: State, cls: Object) -> bool:
    """Whether nothing is known of a base of a class of the repository."""
    kind, file, number, _ = values.objects[cls]
    return kind == ir.OBJ_CLASS and any(
        all(values.kind[each] in UNKNOWN_CLASS_KINDS for each in program_objects(values, file, node))
        for node, _, _ in values.programs[file].classes[number].bases
    )


def _holder(values: State, obj: Object) -> Object:
    """Return the class of an instance, or the one that `super()` looks at; other objects as they are."""
    kind, first, second, _ = values.objects[obj]
    if kind == ir.OBJ_SUPER:
        cls = _holder(values, second)
        return cls if first in mro(values, cls) else first
    return first if kind == ir.OBJ_INSTANCE else strong(obj)
