"""Enter functions: record the call, pass arguments to parameters, return results.

    f(x)          objects of x flow into the parameter of f, objects of its result into the call
    g()           of a generator function: an OBJ_GENERATOR; of an async function: an OBJ_COROUTINE
    obj.prop      the function of a property is entered, too (`call_accessor`)

A call through a hint returns the result as a hint, but passes no arguments. A function that returns a
parameter unchanged returns each caller its own argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codeanatomy.relate import program as ir
from codeanatomy.relate.values import arguments
from codeanatomy.relate.values.arguments import VARIADIC, ArgumentMatch, PassedArgument
from codeanatomy.relate.values.dispatch import record
from codeanatomy.relate.values.function_copies import copy_for_receiver, copy_of, original
from codeanatomy.relate.values.rules.containers import container_kind, element_nodes, merge_into, put_into
from codeanatomy.relate.values.rules.objects import admit_object
from codeanatomy.relate.values.rules.protocols import iterate, unpack
from codeanatomy.relate.values.solver import Object, as_hint, hint_like, is_hint, strong
from codeanatomy.relate.values.state import DIRECT_ROLES, NOWHERE, Call, State, positional

# Hints that keep objects of other classes out of a parameter.
ADMITTING_HINTS = (ir.HINT_INSTANCE, ir.HINT_UNION)
UNPACKED_BY_KEY = ("tuple", "list", "dict")


class MemberAccess(NamedTuple):
    """An access to an attribute in the source."""

    # get, set or del.
    how: str
    # The object on the left of the dot: the receiver of what is called, or a `super()` of it.
    owner: Object
    name: str
    # Node of the value that is read or stored; NOTHING for del.
    node: int = ir.NOTHING


def enter_function(state: State, obj: Object, receiver: Object | None, call: Call) -> None:
    """Call a function: record it, pass the arguments and return the result."""
    if not state.is_first("enter", obj, receiver, call):
        return
    file, function = state.function(obj)
    skip = int(receiver is not None)
    function_object = original(state, obj)
    match = match_arguments(state, function_object, call.args, skip)
    if not match.is_accepted and call.role in DIRECT_ROLES:
        # Python would raise a TypeError.
        return
    weak = is_hint(obj)
    record(state, call, as_hint(function_object, weak))
    if not weak:
        state.calls.arguments.setdefault((call.where, function_object), (call.args, skip))
        state.calls.invoked.add(function_object)
        key = (file, state.objects[obj].second)
        if key in state.copies.copyable:
            obj = copy_of(state, obj, call.where, is_wrapper=call.is_decorator)
        if receiver is not None:
            obj = copy_for_receiver(state, obj, receiver)
        if key in state.copies.forwarding:
            state.calls.wrappers.setdefault(call.where, {}).setdefault(obj, (call, skip))
        nodes = _parameter_nodes(state, obj)
        if receiver is not None and nodes:
            state.add(nodes[0], receiver)
        for each in match.passed:
            how = function.parameters[each.parameter].how
            pass_argument(state, call.args[each.argument][2], how, nodes[each.parameter], each)
        for number in match.unfilled:
            state.flow(state.function_node(obj, function.parameters[number].default), nodes[number])
    _flow_result(state, obj, receiver, call, match)


def match_arguments(state: State, function: Object, args: Sequence[ir.Arg], skip: int) -> ArgumentMatch:
    """Match arguments to the parameters of a function that is no copy; cached by the form of the call."""
    key = (function, skip, tuple([(how, keyword) for how, keyword, _ in args]))
    result = state.calls.matches.get(key)
    if result is None:
        parameters = state.function(function)[1].parameters
        passed, unfilled = arguments.match_parameters(parameters, args, skip)
        is_accepted = arguments.is_accepted_call(parameters, args, passed, unfilled)
        result = state.calls.matches[key] = ArgumentMatch(passed, unfilled, is_accepted)
    return result


def _parameter_nodes(state: State, obj: Object) -> list[int]:
    """Return the nodes that pass objects to the parameters of a function or copy."""
    nodes = state.calls.parameter_nodes.get(obj)
    if nodes is None:
        file, function = state.function(obj)
        nodes = state.calls.parameter_nodes[obj] = [
            state.function_node(obj, each.node) for each in function.parameters
        ]
        header = state.programs[file].ops[function.header[0] : function.header[1]]
        hints = {op[2]: op[1] for op in header if op[0] == ir.OP_ANNOTATE and op[1][0] in ADMITTING_HINTS}
        for at, each in enumerate(function.parameters):
            if each.node in hints:
                entrance = state.new_node()
                state.subscribe(entrance, admit_object, nodes[at], file, hints[each.node], each.place)
                nodes[at] = entrance
    return nodes


def pass_argument(state: State, src: int, how: str, dst: int, each: PassedArgument) -> None:
    """Let the objects of an argument flow into a parameter of kind `how`."""
    if src < 0:
        return
    if not each.is_unpacked:
        if how in VARIADIC:
            state.subscribe(dst, put_into, each.key, src, NOWHERE)
        else:
            state.flow(src, dst)
    elif how == "kwarg":
        state.subscribe(dst, merge_into, src)
    elif how == "vararg" and each.key is None:
        element = state.new_node()
        state.subscribe(src, unpack, None, element)
        state.subscribe(dst, put_into, None, element, NOWHERE)
    else:
        state.subscribe(src, _pass_unpacked, each.key, dst)


def _pass_unpacked(state: State, obj: Object, key: str | None, dst: int) -> None:
    if state.kind[obj] == ir.OBJ_CONTAINER and container_kind(state, obj) in UNPACKED_BY_KEY:
        for node in element_nodes(state, obj, key):
            state.flow(node, dst, is_hint(obj))
    else:
        iterate(state, obj, dst, NOWHERE)


def _flow_result(
    state: State, obj: Object, receiver: Object | None, call: Call, match: ArgumentMatch
) -> None:
    """Let the result of a function flow into the node of the call."""
    if call.dst < 0:
        return
    _, function = state.function(obj)
    weak = is_hint(obj)
    if function.is_generator or function.is_async:
        kind = ir.OBJ_GENERATOR if function.is_generator else ir.OBJ_COROUTINE
        state.add(call.dst, as_hint(state.object(kind, strong(obj)), weak))
        return
    state.flow(state.function_node(obj, function.result), call.dst, weak)
    for number in function.returned:
        parameter = function.parameters[number]
        if number == 0 and receiver is not None:
            state.add(call.dst, as_hint(receiver, weak))
        given = [each for each in match.passed if each.parameter == number]
        for each in given:
            if not each.is_unpacked:
                state.flow(call.args[each.argument][2], call.dst, weak)
        if any(each.is_unpacked for each in given) or parameter.how in VARIADIC:
            state.flow(state.function_node(obj, parameter.node), call.dst, weak)
        if number in match.unfilled:
            state.flow(state.function_node(obj, parameter.default), call.dst, weak)


def call_accessor(
    state: State, hook: int, access: MemberAccess, *args: Object, bound: Object | None = None
) -> None:
    """Call the objects of a node for an access to an attribute; of a `set` its value is the last argument."""
    if not state.is_first("access", hook, access):
        return
    given = []
    for arg in args:
        given.append(positional(state.new_node()))
        state.add(given[-1][2], arg)
    if access.how == "set":
        given.append(positional(access.node))
    call = Call(NOWHERE, given, access.node if access.how == "get" else -1, "attribute")
    state.subscribe(hook, _call_accessor, call, access, bound)


def _call_accessor(state: State, obj: Object, call: Call, access: MemberAccess, bound: Object | None) -> None:
    if state.kind[obj] == ir.OBJ_BOUND_METHOD:
        _, obj, bound, _ = state.objects[obj]
    if state.kind[obj] != ir.OBJ_FUNCTION:
        return
    called = state.calls.by_access.setdefault((access.name, access.how), {})
    called.setdefault(strong(access.owner), {})[original(state, obj)] = None
    if state.function(obj)[1].name == "__getattr__":
        # One copy per attribute name, because the result of `__getattr__` depends on it.
        obj = hint_like(copy_of(state, obj, (call.where[0], access.name)), obj)
    enter_function(state, obj, bound, call)


def remember_wrapped(state: State, obj: Object, wrapped: int) -> None:
    """Set `__wrapped__` of a function."""
    state.flow(wrapped, state.field(obj, "__wrapped__"))
