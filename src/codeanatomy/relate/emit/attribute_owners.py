"""Whose attribute it is that an assignment makes.

    class A:
        def __init__(self): self.x = 1        x is A's, also for instances of classes below
    a.y = 2                                   y is that of the class of a

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from codeanatomy.relate.program import NOTHING, Op
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.solver import Object


def stored_attributes(values: Values) -> dict[tuple[Object, str], None]:
    """The attributes that are assigned on instances, by the class they are written in."""
    found: dict[tuple[Object, str], None] = {}
    for file, program in enumerate(values.programs):
        for op in program.ops:
            if op[0] == ":":
                for cls in owners(values, file, op):
                    found[cls, op[2]] = None
    return found


def owners(values: Values, file: int, op: Op) -> list[Object]:
    """The classes whose attribute an assignment makes: that of `self`, or those of the receivers."""
    own = self_class(values, file, op)
    if own is not None:
        return [own]
    found = []
    for thing in values.program_objects(file, op[1]):
        kind, one, _, _ = values.objects[thing >> 1]
        if kind == "I":
            found.append(one)
        elif kind == "C":
            found.append(thing & ~1)
    return list(dict.fromkeys(found))


def self_class(values: Values, file: int, op: Op) -> Object | None:
    """The class around, if the receiver is the first parameter of one of its methods."""
    program = values.programs[file]
    site = op[-1]
    number = program.sites[site].function if site >= 0 else -1
    while number >= 0:
        function = program.functions[number]
        if function.owner >= 0:
            first = function.parameters[0].node if function.parameters else NOTHING
            bound = function.binds != "nothing" and first == op[1]
            return values.object("C", file, function.owner) if bound else None
        number = function.outer
    return None
