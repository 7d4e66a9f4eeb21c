"""Assume values where the repository alone shows none.

def handle(self, n=1)       never called: `self` is an instance of the class, n is 1
def load() -> Config        no result is known: an instance of Config, as a hint
@unknown                    a decorator without any known object returns the definition
"""

from __future__ import annotations

from collections.abc import Mapping

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.hierarchy import defining_class, method_node
from codeanatomy.relate.values.results import program_objects
from codeanatomy.relate.values.rules.protocols import iterate
from codeanatomy.relate.values.solver import Object, strong
from codeanatomy.relate.values.state import NOWHERE, State


def enter_uncalled(state: State) -> None:
    """Give parameters of uncalled functions the values they must have: `self`, `cls` and defaults."""
    for file, program in enumerate(state.programs):
        for number, function in enumerate(program.functions):
            obj = state.object(ir.OBJ_FUNCTION, file, number)
            nodes = [state.node(file, each.node) for each in function.parameters]
            if function.owner >= 0 and function.parameters and not state.points_to[nodes[0]]:
                cls = state.object(ir.OBJ_CLASS, file, function.owner)
                if function.parameters[0].how in ("positional", "positional_only"):
                    for each in inheriting_classes(state, cls, function.name):
                        _assume_receiver(state, each, function.binds, nodes[0])
            if obj not in state.calls.invoked:
                for node, parameter in zip(nodes, function.parameters, strict=True):
                    state.flow(state.node(file, parameter.default), node)


def inheriting_classes(state: State, cls: Object, name: str) -> list[Object]:
    """Return a class and the subclasses that inherit the method from it."""
    classes = {cls: None}
    todo = [cls]
    while todo and len(classes) < state.limit:
        for each in state.classes.subclasses.get(todo.pop(), ()):
            if each not in classes and defining_class(state, each, name) == cls:
                classes[each] = None
                todo.append(each)
    return list(classes)


def _assume_receiver(state: State, cls: Object, binds: str, node: int) -> None:
    if binds in ("class", "class_argument"):
        state.add(node, cls)
    elif binds != "nothing":
        instance = state.object(ir.OBJ_INSTANCE, cls)
        state.add(node, instance)
        state.subscribe(method_node(state, cls, "__init__"), _assume_constructed, instance)


def _assume_constructed(state: State, obj: Object, instance: Object) -> None:
    """Assume that an instance was created elsewhere by its `__init__`."""
    if state.kind[obj] == ir.OBJ_FUNCTION and strong(obj) not in state.calls.invoked:
        _, function = state.function(obj)
        if function.parameters:
            state.add(state.function_node(obj, function.parameters[0].node), instance)


def hint_results(state: State) -> None:
    """Use the annotated result of functions whose result has no objects."""
    no_copy: Mapping[int, int] = {}
    originals = [
        (file, each, no_copy) for file, program in enumerate(state.programs) for each in program.functions
    ]
    copies = [(made.file, made.function, made.nodes) for made in state.copies.made]
    for file, function, nodes in originals + copies:
        if function.hinted_result == ir.NOTHING:
            continue
        annotated, result, yields = (
            nodes.get(node, state.offsets[file] + node) if node >= 0 else node
            for node in (function.hinted_result, function.result, function.yields)
        )
        if not state.points_to[result] and not function.returned:
            if function.is_generator:
                state.subscribe(annotated, iterate, yields, NOWHERE)
            else:
                state.flow(annotated, result)


def apply_unknown_decorator(state: State, file: int, op: ir.Op) -> None:
    """Assume that a decorator without any known object returns the definition."""
    _, callee, dst, site, args = op
    if state.programs[file].sites[site].role == "decorator" and not program_objects(state, file, callee):
        state.flow(state.node(file, args[0][2]), state.node(file, dst))
