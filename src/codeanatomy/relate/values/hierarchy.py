"""Compute method resolution orders (C3), and look up which class defines an attribute.

    mro(state, cls)                        # the class and its ancestors, external classes included
    defining_class(state, cls, "run")      # first class of the repository that has it, else an external one

Bases are the objects of expressions, so they become known during the analysis. When the bases of a class
change, or an attribute is stored on a class, all lookups in the class and its subclasses are repeated. An
external base may have any attribute that no class of the repository has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.external_names import may_have
from codeanatomy.relate.values.solver import Object, prefer_strong, strong
from codeanatomy.relate.values.state import State

ENUMS = frozenset(f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum"))
# Classes of one MRO.
MAX_MRO = 5000


def watch_bases(state: State, file: int) -> None:
    """Repeat the lookups in each class of a file when its bases become known."""
    for number, declared in enumerate(state.programs[file].classes):
        obj = state.object(ir.OBJ_CLASS, file, number)
        for node, _, _ in declared.bases:
            state.subscribe(state.node(file, node), _add_base, obj)


def note_assigned(state: State, file: int) -> None:
    """Note the attributes that the methods of a file assign on their first parameters."""
    program = state.programs[file]
    methods = [each for each in program.functions if each.owner >= 0 and each.parameters]
    owners = {each.parameters[0].node: each.owner for each in methods}
    for op in program.ops:
        if op[0] == ir.OP_STORE_ATTRIBUTE and op[1] in owners:
            state.classes.assigned[state.object(ir.OBJ_CLASS, file, owners[op[1]])].add(op[2])


def _add_base(state: State, base: Object, cls: Object) -> None:
    state.classes.subclasses.setdefault(strong(base), {})[cls] = None
    repeat_lookups(state, cls)


def repeat_lookups(state: State, cls: Object) -> None:
    """Repeat the lookups in a class and its subclasses."""
    affected: dict[Object, None] = {cls: None}
    todo = [cls]
    while todo:
        for each in state.classes.subclasses.get(todo.pop(), ()):
            if each not in affected:
                affected[each] = None
                todo.append(each)
    for each in affected:
        state.classes.mros.pop(each, None)
        state.classes.lookups.pop(each, None)
    for each in affected:
        for name, then, data in list(state.classes.watchers.get(each, ())):
            then(state, defining_class(state, each, name), *data)


def bases(state: State, cls: Object) -> list[Object]:
    """Return the base classes; of alternatives the first one, preferably of the repository."""
    file, declared = state.cls(cls)
    parents: list[Object] = []
    for node, _, _ in declared.bases:
        objects = prefer_strong(state.points_to[state.node(file, node)] or ()) if node >= 0 else []
        kinds = [(strong(obj), state.kind[obj]) for obj in objects]
        own = [obj for obj, kind in kinds if kind == ir.OBJ_CLASS and obj != cls]
        external = [obj for obj, kind in kinds if kind == ir.OBJ_EXTERNAL]
        if any(kind == ir.OBJ_NAMED_TUPLE for _, kind in kinds):
            external.append(state.object(ir.OBJ_EXTERNAL, "collections.namedtuple"))
        parents += (own or external)[:1]
    return parents


def mro(state: State, cls: Object) -> list[Object]:
    """Return the MRO of a class, the class itself first, external classes included."""
    known = state.classes.mros.get(cls)
    if known is not None:
        return known
    todo = [cls]
    # Not recursive: a chain of classes may be longer than the stack is deep.
    visited: set[Object] = set()
    while todo:
        each = todo[-1]
        missing = [
            base
            for base in bases(state, each)
            if state.kind[base] == ir.OBJ_CLASS and base not in state.classes.mros and base not in visited
        ]
        visited.add(each)
        if missing:
            todo += missing
        else:
            todo.pop()
            if each not in state.classes.mros:
                state.classes.mros[each] = _linearize(state, each)
    return state.classes.mros[cls]


def _linearize(state: State, cls: Object) -> list[Object]:
    parents = list(dict.fromkeys(bases(state, cls)))
    # A class that is its own ancestor has no MRO yet.
    chains = [state.classes.mros.get(base, [base]) for base in parents]
    if len(chains) == 1 and cls not in chains[0]:
        return [cls, *chains[0]][:MAX_MRO]
    order = merge_c3([*map(list, chains), parents])
    if order is None or cls in order:
        state.classes.inconsistent[cls] = None
        order = [each for each in dict.fromkeys(base for chain in chains for base in chain) if each != cls]
    return [cls, *order][:MAX_MRO]


def defining_class(state: State, cls: Object, name: str, after: Object | None = None) -> Object | None:
    """Return the class that defines an attribute: one of the repository, else an external one, else None.

    With `after`, search only the part of the MRO behind that class, as `super()` does.
    """
    if after is not None:
        order = mro(state, cls)
        return _first_defining(state, order[order.index(after) + 1 :], name) if after in order else None
    known = state.classes.lookups[cls]
    if name not in known:
        known[name] = _first_defining(state, mro(state, cls), name)
    return known[name]


def _first_defining(state: State, order: Sequence[Object], name: str) -> Object | None:
    objects, programs, added = state.objects, state.programs, state.classes.added_fields
    external = None
    for each in order:
        kind, first, second, _ = objects[each]
        if kind == ir.OBJ_CLASS:
            if name in programs[first].classes[second].attrs or (each, name) in added:
                return each
        elif external is None and may_have(first, name):
            external = each
    return external


def watch_attribute(state: State, cls: Object, name: str, then: Callable[..., None], *data: Any) -> None:
    """Call then(state, defining class, *data) now and whenever the lookup is repeated."""
    state.classes.watchers[cls].append((name, then, data))
    then(state, defining_class(state, cls, name), *data)


def class_field(state: State, cls: Object, name: str) -> int:
    """Return the node of an attribute defined by a class itself."""
    is_new = name not in state.fields.get(cls, ())
    node = state.field(cls, name)
    if is_new:
        file, declared = state.cls(cls)
        if name in declared.attrs:
            state.flow(state.node(file, declared.attrs[name][0]), node)
    return node


def is_defined(state: State, cls: Object, name: str) -> bool:
    """Whether a class of the repository in the MRO is the first to define an attribute."""
    return state.is_repository_class(defining_class(state, cls, name))


def method_node(state: State, cls: Object, name: str, after: Object | None = None) -> int:
    """Return the node of an attribute that a class of the repository defines; NOTHING if none does."""
    holder = defining_class(state, cls, name, after)
    return class_field(state, holder, name) if state.is_repository_class(holder) else ir.NOTHING


def wrapping_class(state: State, cls: Object) -> Object | None:
    """Return the class whose `__call__` passes its arguments on to a stored function, if `cls` has it."""
    holder = defining_class(state, cls, "__call__") if state.classes.wrapping else None
    return holder if holder in state.classes.wrapping else None


def external_bases(state: State, cls: Object) -> list[str]:
    """Return the names of the external classes in the MRO of a class."""
    return [state.objects[each].first for each in mro(state, cls) if state.kind[each] == ir.OBJ_EXTERNAL]


def is_enum(state: State, cls: Object) -> bool:
    """Whether the attributes of a class are its instances."""
    return any(name in ENUMS for name in external_bases(state, cls))


def metaclass_nodes(state: State, cls: Object) -> list[int]:
    """Return the nodes of the `metaclass` keywords of a class and its ancestors."""
    nodes = []
    for each in mro(state, strong(cls)):
        kind, file, number, _ = state.objects[each]
        keywords = state.programs[file].classes[number].keywords if kind == ir.OBJ_CLASS else ()
        for keyword, value in keywords:
            if keyword == "metaclass" and value >= 0:
                nodes.append(state.node(file, value))
    return nodes


def watch_metaclasses(state: State, cls: Object, rule: Callable[..., None], *data: Any) -> None:
    """Call rule(state, metaclass, *data) for each metaclass of the repository that a class has."""
    for node in metaclass_nodes(state, cls):
        state.subscribe(node, _apply_to_class, rule, data)


def _apply_to_class(state: State, obj: Object, rule: Callable[..., None], data: tuple[Any, ...]) -> None:
    if state.kind[obj] == ir.OBJ_CLASS:
        rule(state, strong(obj), *data)


def is_assigned(state: State, cls: Object, name: str) -> bool:
    """Whether a method of the class or of an ancestor assigns the attribute on its first parameter."""
    is_class = state.kind[cls] == ir.OBJ_CLASS
    return is_class and any(name in state.classes.assigned.get(each, ()) for each in mro(state, cls))


def add_class_field(state: State, cls: Object, name: str) -> None:
    """Record that an attribute is stored on a class whose body does not define it."""
    if name not in state.cls(cls)[1].attrs and (cls, name) not in state.classes.added_fields:
        state.classes.added_fields.add((cls, name))
        state.classes.lookups.clear()
        repeat_lookups(state, cls)


def merge_c3(chains: list[list[Object]]) -> list[Object] | None:
    """Merge chains by C3 into one that keeps the order of each; None if there is none.

    >>> merge_c3([[1, 3], [2, 3], [1, 2]])
    [1, 2, 3]
    >>> merge_c3([[1, 2], [2, 1]])
    """
    order: list[Object] = []
    chains = [chain for chain in chains if chain]
    while chains:
        later = {each for chain in chains for each in chain[1:]}
        head = next((chain[0] for chain in chains if chain[0] not in later), None)
        if head is None:
            return None
        order.append(head)
        chains = [rest for chain in chains if (rest := chain[1:] if chain[0] == head else chain)]
    return order
