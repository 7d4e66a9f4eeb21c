"""Resolve imports, and names bound outside of the file.

    import a.b               the module of the repository, a namespace package, or an external module
    from m import name       final value of the module's variable, a submodule, or a name of its star imports

Tests: `tests/unit/relate/test_attributes.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import attribute_node
from codeanatomy.relate.values.external_names import BUILTINS
from codeanatomy.relate.values.modules import INITS
from codeanatomy.relate.values.rules.functions import MemberAccess, call_accessor
from codeanatomy.relate.values.solver import Object, as_hint
from codeanatomy.relate.values.state import State

MODULE_STRINGS = frozenset({"__name__", "__file__", "__doc__", "__package__", "__path__"})


def module(state: State, name: str) -> Object:
    """Return the object of a module, by absolute name: of the repository, a namespace or external."""
    file = state.file_of(name)
    if file is not None:
        return state.object(ir.OBJ_MODULE, file)
    return state.object(ir.OBJ_NAMESPACE if name in state.modules.namespaces else ir.OBJ_EXTERNAL, name)


def bind_import(state: State, file: int, op: ir.Op) -> None:
    """Put the object that an import binds into a node."""
    _, node, number = op
    program, dst = state.programs[file], state.node(file, node)
    each = program.imports[number]
    name = state.modules.absolute(program.path, each.module, each.level)
    if name is None:
        return
    if each.name is None:
        first = name.partition(".")[0]
        state.add(dst, module(state, first if each.binds_first and each.level == 0 else name))
        if each.binds_first and first != each.module.partition(".")[0]:
            # The module is beside the file, so its first part is deeper in the absolute name.
            parts = name.split(".")[: -each.module.count(".") or None]
            state.add(dst, module(state, ".".join(parts)))
        return
    inner = f"{name}.{each.name}"
    if name == state.names[file] and state.modules.has(inner):
        # `from . import part` in the package itself: the submodule, not the variable bound by it.
        state.add(dst, module(state, inner))
    else:
        state.flow(attribute_node(state, module(state, name), each.name), dst)


def star_imports(state: State, file: int) -> list[str]:
    """Return the absolute names of the modules that a file star-imports."""
    if file not in state.lookups.stars:
        program = state.programs[file]
        modules = [
            state.modules.absolute(program.path, each.module, each.level)
            for each in program.imports
            if each.bound is None
        ]
        state.lookups.stars[file] = [name for name in dict.fromkeys(modules) if name]
    return state.lookups.stars[file]


def exports(state: State, file: int, name: str) -> bool:
    """Whether a star import of the module binds a name."""
    exported = state.programs[file].exported
    return is_exported(name, exported) and (exported is not None or has_name(state, file, name))


def has_name(state: State, file: int, name: str) -> bool:
    """Whether a module has a name, its own or by a star import."""
    return name in state.programs[file].variables or name in _star_names(state).get(file, ())


def _star_names(state: State) -> dict[int, set[str]]:
    """Return the names that star imports bind in each file, through any number of modules."""
    if state.lookups.star_names is not None:
        return state.lookups.star_names
    importers: dict[int, list[int]] = {}
    for file in range(len(state.programs)):
        for star in star_imports(state, file):
            imported = state.file_of(star)
            if imported is not None:
                importers.setdefault(imported, []).append(file)
    bound: dict[int, set[str]] = {}
    state.lookups.star_names = bound
    todo = deque((file, set(state.programs[file].variables)) for file in importers)
    while todo:
        file, names = todo.popleft()
        exported = state.programs[file].exported
        passed_on = {name for name in names if is_exported(name, exported)}
        for importer in importers.get(file, ()):
            own = bound.setdefault(importer, set())
            new = passed_on - own
            if new:
                own |= new
                todo.append((importer, new))
    return bound


def load_module_name(state: State, file: int, name: str, dst: int) -> None:
    """Put the value of a module's attribute into a node."""
    program, own = state.programs[file], state.names[file]
    others = [state.files[path] for path in state.modules.paths.get(own, ())[1:]]
    # The stub beside the module.
    stub = next((each for each in others if each != file and name in state.programs[each].variables), None)
    if name in program.variables:
        state.flow(state.node(file, program.variables[name][1]), dst)
    elif name in MODULE_STRINGS:
        state.add(dst, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    elif (star := star_source(state, file, name)) is not None:
        state.flow(attribute_node(state, module(state, star), name), dst)
    elif stub is not None:
        state.flow(state.node(stub, state.programs[stub].variables[name][1]), dst)
    elif state.modules.has(f"{own}.{name}"):
        state.add(dst, module(state, f"{own}.{name}"))
    elif "__getattr__" in program.variables:
        access = MemberAccess("get", state.object(ir.OBJ_MODULE, file), name, dst)
        hook = state.node(file, program.variables["__getattr__"][1])
        call_accessor(state, hook, access, state.object(ir.OBJ_STRING, name))
    elif not name.startswith("_"):
        _load_from_external_star(state, file, name, dst)


def bind_unbound_name(state: State, file: int, op: ir.Op) -> None:
    """Put the value of a name that the file does not bind into a node."""
    _, name, node = op
    dst, inner, star = state.node(file, node), submodule(state, file, name), star_source(state, file, name)
    if star is not None:
        state.flow(attribute_node(state, module(state, star), name), dst)
    elif inner is not None:
        state.add(dst, module(state, inner))
    elif name in BUILTINS:
        state.add(dst, state.object(ir.OBJ_EXTERNAL, f"builtins.{name}"))
    elif name in MODULE_STRINGS:
        state.add(dst, state.object(ir.OBJ_EXTERNAL_INSTANCE, "builtins.str"))
    else:
        _load_from_external_star(state, file, name, dst)


def star_source(state: State, file: int, name: str) -> str | None:
    """Return the last star-imported module of the repository that exports a name."""
    for star in reversed(star_imports(state, file)):
        other = state.file_of(star)
        if other is not None and other != file and exports(state, other, name):
            return star
    return None


def _load_from_external_star(state: State, file: int, name: str, dst: int) -> None:
    """Put a name that only one external module may bind, by a star import, into a node, as a hint."""
    external = [star for star in star_imports(state, file) if not state.modules.has(star)]
    if len(external) == 1:
        state.add(dst, as_hint(state.object(ir.OBJ_EXTERNAL, f"{external[0]}.{name}")))


def submodule(state: State, file: int, name: str) -> str | None:
    """Return the submodule of this name if the file is a package; an import binds it there."""
    inner = f"{state.names[file]}.{name}"
    is_package = state.programs[file].path.rpartition("/")[2] in INITS
    return inner if is_package and state.modules.has(inner) else None


def is_exported(name: str, exported: Sequence[str] | None) -> bool:
    """Whether a star import binds a name, by the module's `__all__` if it has one.

    >>> is_exported("_a", None), is_exported("_a", ["_a"]), is_exported("b", ["_a"])
    (False, True, False)
    """
    return not name.startswith("_") if exported is None else name in exported
