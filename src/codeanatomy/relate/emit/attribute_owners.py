"""Find the classes that own attributes assigned on instances.

    class A:
        def __init__(self): self.x = 1        A owns x, also for instances of its subclasses
    a.y = 2                                   the class of `a` owns y

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from codeanatomy.relate.program import NOTHING, OBJ_CLASS, OBJ_INSTANCE, OP_STORE_ATTRIBUTE, Op
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.solver import Object


def assigned_attributes(values: Values) -> dict[tuple[Object, str], None]:
    """Return all attributes that assignments create, as (owning class, name), in source order."""
    attributes: dict[tuple[Object, str], None] = {}
    for file, program in enumerate(values.programs):
        for op in program.ops:
            if op[0] == OP_STORE_ATTRIBUTE:
                for cls in owner_classes(values, file, op):
                    attributes[cls, op[2]] = None
    return attributes


def owner_classes(values: Values, file: int, op: Op) -> list[Object]:
    """Return the classes that own an assigned attribute: the class of `self`, or of the receivers."""
    own = self_class(values, file, op)
    if own is not None:
        return [own]
    classes = []
    for obj in values.program_objects(file, op[1]):
        kind, first, _, _ = values.objects[obj >> 1]
        if kind == OBJ_INSTANCE:
            classes.append(first)
        elif kind == OBJ_CLASS:
            classes.append(obj & ~1)
    return list(dict.fromkeys(classes))


def self_class(values: Values, file: int, op: Op) -> Object | None:
    """Return the enclosing class if the receiver is the first parameter of one of its methods, else None."""
    program = values.programs[file]
    site = op[-1]
    number = program.sites[site].function if site >= 0 else -1
    while number >= 0:
        function = program.functions[number]
        if function.owner >= 0:
            first = function.parameters[0].node if function.parameters else NOTHING
            is_self = function.binds != "nothing" and first == op[1]
            return values.object(OBJ_CLASS, file, function.owner) if is_self else None
        number = function.outer
    return None
