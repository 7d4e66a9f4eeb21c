"""Look through functions that pass their own `*args` and `**kwargs` on: wrappers of decorators, factories.

    def logged(f):
        def wrapper(*args, **kwargs):        eat(apple, times=2) runs wrapper, and through it f: the apple is
            return f(*args, **kwargs)        passed to the first parameter of f, 2 to `times`
        return wrapper

A wrapper calls a value that it was given: a variable of the function around it, a parameter, or an attribute
of one. A function that passes its arguments on to a definite one (`super().save(*args)`) is a caller like any
other. What a call site runs through wrappers is read off the solved values; nothing is added to them.

Tests: `tests/cases/callgraph/forwarding`, `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import MAX_DEPTH
from codeanatomy.relate.values.function_copies import copy_for_receiver, original
from codeanatomy.relate.values.hierarchy import method_node
from codeanatomy.relate.values.rules.functions import match_arguments
from codeanatomy.relate.values.solver import Object, is_hint, strong
from codeanatomy.relate.values.state import DIRECT_ROLES, ForwardingCall, SiteKey, State

UNPACKED = (ir.STAR, ir.STAR_STAR)
CONSTRUCTORS = ("__new__", "__init__")
# A call that passes arguments on: its function, the operation, number of bound parameters of the callee.
Step: TypeAlias = tuple[Object, ir.Op, int]


class Forwarded(NamedTuple):
    """A callee that a call reaches through a wrapper, with the arguments that it gets.

    Their nodes are indexes of the arguments of the call, or negative for those that a wrapper adds.
    """

    callee: Object
    args: Sequence[ir.Arg]
    # Number of parameters that are bound already.
    skip: int
    # Whether it runs because a class is called.
    is_constructor: bool


class Way(NamedTuple):
    """A way from a wrapper to what it runs: the calls between them, from the outside in."""

    steps: Sequence[Step]
    # Whether it runs because a class is called.
    is_constructor: bool


def forwarding_calls(program: ir.Program) -> dict[int, list[ForwardingCall]]:
    """Return the calls that pass all variadic arguments of their function on, by number of the function."""
    made = {op[1] for op in program.ops if op[0] == ir.OP_MAKE and op[2] in (ir.OBJ_FUNCTION, ir.OBJ_CLASS)}
    variables = {node for _, node, versions in program.cells if not made.issuperset(versions)}
    forwarding: dict[int, list[ForwardingCall]] = {}
    for number, function in enumerate(program.functions):
        passed = {each.node for each in function.parameters if each.how in ("vararg", "kwarg")}
        if not passed:
            continue
        own = {each.node for each in function.parameters} - passed
        selves = {each.node for each in function.parameters[:1] if function.owner >= 0}
        body = program.ops[function.body[0] : function.body[1]]
        loads = [op for op in body if op[0] == ir.OP_LOAD_ATTRIBUTE]
        attributes = {op[3] for op in loads if op[1] in selves}
        own |= {op[3] for op in loads if op[1] in own - selves}
        calls = [
            ForwardingCall(op, op[1] in variables, op[1] in own - selves, op[1] in attributes)
            for op in body
            if op[0] == ir.OP_CALL and passed <= {node for how, _, node in op[4] if how in UNPACKED}
        ]
        if calls:
            forwarding[number] = calls
    return forwarding


def forwarded_calls(state: State, where: SiteKey, written: int) -> list[Forwarded]:
    """Return what a call site with so many arguments runs through wrappers, without what it calls itself."""
    reached: dict[Object, tuple[Object, Way]] = {}
    wrappers = state.calls.wrappers.get(where, {})
    for wrapper in wrappers:
        for callee, way in ways_through(state, wrapper).items():
            if len(reached) < state.limit:
                reached.setdefault(callee, (wrapper, way))
    called = state.calls.callees.get(where, ())
    forwarded = []
    for callee, (wrapper, way) in reached.items():
        if callee in called:
            continue
        call, skip = wrappers[wrapper]
        # A partial has put its own arguments before those written at the call; a callback gets others.
        own = len(call.args) - written if call.role in DIRECT_ROLES else len(call.args)
        args = [(how, keyword, number - own) for number, (how, keyword, _) in enumerate(call.args)]
        for through, op, bound in way.steps:
            args, skip = _inner_arguments(state, through, op, args, skip), bound
        forwarded.append(Forwarded(callee, args, skip, way.is_constructor))
    return forwarded


def ways_through(state: State, wrapper: Object) -> Mapping[Object, Way]:
    """Return what a wrapper runs; it does not depend on the arguments, and many sites call one wrapper."""
    ways = state.copies.ways.get(wrapper)
    if ways is None:
        ways = state.copies.ways[wrapper] = {}
        for callee, way in _run_through(state, wrapper, (), 0, {wrapper}):
            ways.setdefault(callee, way)
    return ways


def _run_through(
    state: State, wrapper: Object, steps: Sequence[Step], depth: int, entered: set[Object]
) -> Iterator[tuple[Object, Way]]:
    """Yield what a wrapper runs; of the many ways into a function the first counts."""
    _, file, number, _ = state.objects[wrapper]
    for call in state.copies.forwarding.get((file, number), ()) if depth < MAX_DEPTH else ():
        for obj in state.objects_at(state.function_node(wrapper, call.op[1])):
            # A method of the same object is a definite one.
            is_stored = call.is_attribute and state.kind[obj] != ir.OBJ_BOUND_METHOD
            is_given = call.is_variable or call.is_parameter or is_stored
            for callee, bound in _callees(state, obj):
                through: list[tuple[Object, Way]] = []
                inner = (*steps, (wrapper, call.op, bound))
                if state.kind[callee] == ir.OBJ_FUNCTION:
                    function = state.copies.by_site.get((callee, (file, call.op[3])), callee)
                    if function in entered:
                        continue
                    if state.objects[function][1:3] in state.copies.forwarding:
                        entered.add(function)
                    through += _run_through(state, function, inner, depth + 1, entered)
                yield from through
                if is_given and not through:
                    is_constructor = state.kind[obj] == ir.OBJ_CLASS and bound > 0
                    yield original(state, callee), Way(inner, is_constructor)


def _callees(state: State, obj: Object) -> Iterator[tuple[Object, int]]:
    """Yield what a call of an object runs, and how many parameters are bound: of a class its constructors."""
    kind, first, _, _ = state.objects[obj]
    if is_hint(obj):
        return
    if kind == ir.OBJ_FUNCTION:
        yield strong(obj), 0
    elif kind == ir.OBJ_CONTEXT_FUNCTION:
        yield first, 0
    elif kind == ir.OBJ_BOUND_METHOD:
        yield from ((callee, 1) for callee, _ in _callees(state, first))
    elif kind == ir.OBJ_CLASS:
        yield strong(obj), 0
        for name in CONSTRUCTORS:
            yield from _methods(state, strong(obj), name)
    elif kind == ir.OBJ_INSTANCE:
        for callee, bound in _methods(state, first, "__call__"):
            yield copy_for_receiver(state, callee, obj), bound


def _methods(state: State, cls: Object, name: str) -> Iterator[tuple[Object, int]]:
    for obj in state.objects_at(method_node(state, cls, name)):
        if state.kind[obj] == ir.OBJ_FUNCTION and not is_hint(obj):
            yield obj, 1


def _inner_arguments(
    state: State, wrapper: Object, op: ir.Op, args: Sequence[ir.Arg], skip: int
) -> list[ir.Arg]:
    """Return the arguments of a call within a wrapper, as those that the wrapper was called with."""
    parameters = state.function(wrapper)[1].parameters
    given: dict[int, list[ir.Arg]] = {each.node: [] for each in parameters}
    for each in match_arguments(state, original(state, wrapper), args, skip).passed:
        given[parameters[each.parameter].node].append(args[each.argument])
    inner: list[ir.Arg] = []
    for how, keyword, node in op[4]:
        passed = given.get(node, [])
        if how in UNPACKED and node in given:
            inner += passed
        else:
            is_plain = len(passed) == 1 and passed[0][0] in (ir.POSITIONAL, ir.KEYWORD)
            inner.append((how, keyword, passed[0][2] if is_plain else -1))
    return inner
