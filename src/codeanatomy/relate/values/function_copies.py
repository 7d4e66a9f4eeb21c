"""Copy functions that create functions for each call site (selective context sensitivity).

    def logged(f):                   @logged             two copies of `logged`, each with its own `wrapper`
        def wrapper(*args):          def a(): ...        that calls its own function with its own arguments
            return f(*args)          @logged
        return wrapper               def b(x): ...

With a single `wrapper`, every wrapped function would get the arguments of all the others. A copy has fresh
nodes for the function and the functions nested in it; constants, globals and variables of enclosing functions
are shared. Functions of a line or two are copied as well. Number, size and depth of copies are bounded, and
beyond the bounds calls share the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.solver import Object, strong
from codeanatomy.relate.values.state import FunctionCopy, Round, State

# Copies of one function.
MAX_COPIES = 128
# Copies of one decorator, or of one method of wrapping objects.
MAX_WRAPPER_COPIES = 1024
# Copies of functions within copies.
MAX_COPY_DEPTH = 3
# Operations of a copied function.
MAX_COPIED_OPS = 400
# A function of so few operations is copied even if it creates no function: it is cheap and separates callers.
MAX_SHORT_OPS = 8


def original(state: State, obj: Object) -> Object:
    """Return the original of a function copy; a function that is no copy as it is."""
    kind, file, number, copy = state.objects[obj]
    return strong(obj) if copy is None else state.object(kind, file, number)


def copy_for_receiver(state: State, obj: Object, receiver: Object) -> Object:
    """Return the copy of a method for an object that wraps a function; for other objects the method."""
    kind, _, site, _ = state.objects[receiver]
    if kind != ir.OBJ_INSTANCE or site is None:
        return obj
    return copy_of(state, obj, (ir.NOTHING, receiver), is_wrapper=True)


def copy_of(state: State, obj: Object, where: tuple[int, Any], *, is_wrapper: bool = False) -> Object:
    """Return the copy of a function for a call site or other key; itself beyond the bounds."""
    _, file, number, outer = state.objects[obj]
    key = (strong(obj), where)
    if key not in state.copies.by_site:
        inner = state.copies.copyable.get((file, number), [number])
        depth = 0 if outer is None else state.copies.made[outer].depth + 1
        used = state.copies.counts.get((file, number), 0)
        limit = MAX_WRAPPER_COPIES if is_wrapper else MAX_COPIES
        functions = [state.programs[file].functions[each] for each in inner]
        size = sum(each.body[1] - each.body[0] for each in functions)
        if depth >= MAX_COPY_DEPTH or used >= limit or size > MAX_COPIED_OPS:
            return obj
        state.copies.counts[file, number] = used + 1
        state.copies.by_site[key] = _make_copy(state, obj, inner, depth)
    return state.copies.by_site[key]


def _make_copy(state: State, obj: Object, inner: Sequence[int], depth: int) -> Object:
    """Create fresh nodes for a function and those nested in it, and apply its operations to them."""
    _, file, number, outer = state.objects[obj]
    program, function = state.programs[file], state.programs[file].functions[number]
    # First operation, end, first node, end.
    ranges = [function.header, *(program.functions[each].body for each in inner)]
    cells = [cell for cell in program.cells if cell[0] in inner]
    own = {node for _, _, first, end in ranges for node in range(first, end)}
    own -= {*program.shared, *(node for _, node, _ in program.cells)}
    own |= {node for _, node, _ in cells}
    nodes = dict(state.copies.made[outer].nodes) if outer is not None else {}
    for node in sorted(own):
        nodes[node] = state.new_node()
        state.copies.by_node.setdefault(state.offsets[file] + node, []).append(nodes[node])
    ops = [op for first, end, _, _ in ranges for op in program.ops[first:end] if op[0] != ir.OP_CREATE_CLASS]
    copy = len(state.copies.made)
    state.copies.made.append(FunctionCopy(file, function, nodes, ops, depth))
    apply_to_copy(state, copy, state.rules.rounds[: state.round + 1])
    for _, node, versions in cells:
        for version in versions:
            if version != ir.NOTHING:
                state.flow(nodes.get(version, state.offsets[file] + version), nodes[node])
    return state.object(ir.OBJ_FUNCTION, file, number, copy)


def apply_to_copy(state: State, copy: int, rounds: Sequence[Round]) -> None:
    """Apply the rules of some rounds to the operations of a copy."""
    made = state.copies.made[copy]
    before = state.active_copy, state.active_copy_number
    state.active_copy, state.active_copy_number = made.nodes, copy
    try:
        for rules in rounds:
            for op in made.ops:
                rule = rules.get(op[0])
                if rule is not None:
                    rule(state, made.file, op)
    finally:
        state.active_copy, state.active_copy_number = before


def copyable_functions(program: ir.Program, wrappers: Iterable[int] = ()) -> dict[int, list[int]]:
    """Return the functions to copy, each with the functions nested in it.

    These are functions with variables that nested functions use, short ones, and those that pass their
    arguments on to a parameter.
    """
    copied = {*wrappers, *(number for number, _, _ in program.cells)}
    copied |= {
        number
        for number, function in enumerate(program.functions)
        if function.parameters and function.owner < 0 and function.body[1] - function.body[0] <= MAX_SHORT_OPS
    }
    inner: dict[int, list[int]] = {number: [number] for number in copied}
    for number, function in enumerate(program.functions):
        outer = function.outer
        while outer >= 0:
            if outer in inner:
                inner[outer].append(number)
            outer = program.functions[outer].outer
    # A class is not copied, so its methods would miss the arguments of the copy.
    with_classes = {cls.outer for cls in program.classes}
    return {number: nested for number, nested in inner.items() if not with_classes.intersection(nested)}
