"""Run the value analysis of a repository: apply the operations of its programs to sets of objects.

    state = solve(programs)
    callees(state, (file, site))    # [(object, role), ...]: what is called there

The analysis is an inclusion-based points-to analysis. Each operation (`relate.program`) becomes an edge, an
object, or a rule that subscribes to a node. Operations are applied in rounds, each to its fixpoint: names,
imports and attributes; then calls and everything that may call; then annotations, as hints. After the
second round, parameters of functions that nothing in the repository calls get the values they must have:
`self` is an instance of its class, a default is one of the values, and pytest passes fixtures. A call through
a hint returns a hint and passes no arguments. All instances of a class are one object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import load_attribute
from codeanatomy.relate.values.forwarding import forwarding_calls
from codeanatomy.relate.values.function_copies import apply_to_copy, copyable_functions
from codeanatomy.relate.values.hierarchy import note_assigned, watch_bases
from codeanatomy.relate.values.rules import (
    assumptions,
    attributes,
    calls,
    classes,
    containers,
    fixtures,
    imports,
    objects,
    operators,
    protocols,
)
from codeanatomy.relate.values.solver import MAX_OBJECTS
from codeanatomy.relate.values.state import OperationRule, Round, RuleTables, State

# What an operand is: a node, a site, or a plain value.
NODE, SITE, VALUE = range(3)


def on(rule: Callable[..., None], *operands: int) -> OperationRule:
    """Return the rule that calls `rule` with each object of the first operand and with the other operands."""

    def apply(state: State, file: int, op: ir.Op) -> None:
        data = [
            state.node(file, value) if operand == NODE else (file, value) if operand == SITE else value
            for operand, value in zip(operands, op[2:], strict=False)
        ]
        state.subscribe(state.node(file, op[1]), rule, *data)

    return apply


def read_attribute(state: State, file: int, op: ir.Op) -> None:
    """Read an attribute: not by `on`, because it is by far the most frequent operation."""
    state.subscribe(state.node(file, op[1]), load_attribute, op[2], state.node(file, op[3]))


# Names, imports and attributes, before anything is called.
NAMES: Round = {
    ir.OP_COPY: objects.copy_node,
    ir.OP_MAKE: objects.make,
    ir.OP_UNBOUND_NAME: imports.bind_unbound_name,
    ir.OP_IMPORT: imports.bind_import,
    ir.OP_LOAD_ATTRIBUTE: read_attribute,
}
# Calls and everything that may call.
CALLS: Round = {
    ir.OP_STORE_ATTRIBUTE: on(attributes.store_attribute, VALUE, NODE),
    ir.OP_DELETE_ATTRIBUTE: on(attributes.delete_attribute, VALUE),
    ir.OP_CALL: calls.apply_call,
    ir.OP_LOAD_ITEM: on(containers.load_item, VALUE, NODE, SITE, NODE),
    ir.OP_STORE_ITEM: on(containers.put_into, VALUE, NODE, SITE),
    ir.OP_STORE_KEY: on(containers.put_key, NODE),
    ir.OP_UPDATE: on(containers.merge_into, NODE),
    ir.OP_ITERATE: on(protocols.iterate, NODE, SITE),
    ir.OP_UNPACK: on(protocols.unpack, VALUE, NODE),
    ir.OP_WITH: on(protocols.enter_context, NODE, SITE),
    ir.OP_AWAIT: on(protocols.await_object, NODE, SITE),
    ir.OP_YIELD_FROM: on(protocols.add_generator_result, NODE),
    ir.OP_SPECIAL_METHOD: operators.apply_special_method,
    ir.OP_BINARY: operators.apply_binary,
    ir.OP_RAISE: on(objects.raise_object, SITE),
    ir.OP_EXCEPT: objects.catch,
    ir.OP_ISINSTANCE: objects.narrow,
    ir.OP_ISSUBCLASS: objects.narrow,
    ir.OP_CREATE_CLASS: classes.create_class,
}
# Annotations, and exceptions that are caught but not raised.
HINTS: Round = {ir.OP_ANNOTATE: objects.annotate, ir.OP_EXCEPT: objects.catch_unraised}
# Decorators of which nothing is known.
DECORATORS: Round = {ir.OP_CALL: assumptions.apply_unknown_decorator}
RULES = RuleTables((NAMES, CALLS, HINTS), calls.CALL_RULES, attributes.ATTRIBUTE_RULES)


def solve(programs: Sequence[ir.Program], limit: int = MAX_OBJECTS, package: str = "") -> State:
    """Solve the values of a repository, with at most `limit` objects in a node."""
    state = State(programs, RULES, limit, package)
    for file, program in enumerate(state.programs):
        forwarding = forwarding_calls(program)
        state.copies.forwarding |= {(file, number): calls for number, calls in forwarding.items()}
        given = [at for at, calls in forwarding.items() if any(each.is_parameter for each in calls)]
        for number, nested in copyable_functions(program, given).items():
            state.copies.copyable[file, number] = nested
        for number, cls in enumerate(program.classes):
            methods = {program.definitions[at].index for at in cls.attrs.get("__call__", (0, ()))[1]}
            if any(call.is_attribute for each in methods for call in forwarding.get(each, ())):
                state.classes.wrapping[state.object(ir.OBJ_CLASS, file, number)] = 0
    for number, rules in enumerate(state.rules.rounds):
        state.round = number
        _apply_round(state, rules)
        state.solver.run()
        if rules is CALLS:
            fixtures.link_fixtures(state)
            assumptions.enter_uncalled(state)
            state.solver.run()
    assumptions.hint_results(state)
    _apply_round(state, DECORATORS)
    state.solver.run()
    return state


def _apply_round(state: State, rules: Round) -> None:
    """Apply the rules of a round to the operations of all function copies and files."""
    for copy in range(len(state.copies.made)):
        apply_to_copy(state, copy, (rules,))
    for file, program in enumerate(state.programs):
        for op in program.ops:
            rule = rules.get(op[0])
            if rule is not None:
                rule(state, file, op)
        if rules is NAMES:
            watch_bases(state, file)
            note_assigned(state, file)
