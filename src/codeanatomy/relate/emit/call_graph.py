"""Who calls whom, by qualified names.

    edges(values)        # {"main": ["main.C.__init__", "main.f"], "main.f": ["builtins.len"]}

Applying `property`, `staticmethod` or `classmethod` is a declaration and no call. A class counts as the
constructors that its call reaches. Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.attributes import ACCESS_BY_OP
from codeanatomy.relate.values.models.builtins import DECLARATIONS
from codeanatomy.relate.values.solver import Object

# Sites at which names outside count; what operators of builtin types run does not.
EXPLICIT = frozenset({"call", "decorator"})


def caller(values: Values, file: int, function: int) -> str:
    """The qualified name of the function a site stands in, or of the module."""
    if function < 0:
        return values.names[file]
    return values.qualified_name(values.object("F", file, function))


def callee(values: Values, thing: Object) -> str | None:
    """The name under which something called is counted; None for a class, whose constructors count."""
    if not is_counted(values, thing):
        return None
    kind, one, _, _ = values.objects[thing >> 1]
    return values.qualified_name(thing) if kind == "F" else str(one)


def is_counted(values: Values, thing: Object) -> bool:
    """Whether something called counts itself."""
    kind, one, _, _ = values.objects[thing >> 1]
    return kind == "F" or (kind == "X" and not is_declaration(one, "decorator"))


def is_declaration(name: str, role: str) -> bool:
    """Whether the application of a decorator only says what a function is; or it is a name of ours."""
    return name.endswith("()") or (role == "decorator" and name in DECLARATIONS)


def edges(values: Values) -> dict[str, list[str]]:
    """Callees by caller, both sorted."""
    found: dict[str, set[str]] = {}
    for file, site in values.calls:
        here = values.programs[file].sites[site]
        for thing, _ in values.callees((file, site)):
            name = callee(values, thing)
            if name is not None and (here.role in EXPLICIT or values.objects[thing >> 1].kind == "F"):
                found.setdefault(caller(values, file, here.function), set()).add(name)
    for file, program in enumerate(values.programs):
        for op in program.ops:
            if op[0] in ACCESS_BY_OP and op[-1] >= 0:
                here = program.sites[op[-1]]
                run = values.accessor_calls.get((op[2], ACCESS_BY_OP[op[0]]), {})
                for thing in values.program_objects(file, op[1]):
                    for function in run.get(thing & ~1, ()):
                        name = values.qualified_name(function)
                        found.setdefault(caller(values, file, here.function), set()).add(name)
    return {name: sorted(found[name]) for name in sorted(found)}
