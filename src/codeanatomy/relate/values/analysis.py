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

from collections.abc import Sequence

from codeanatomy.relate.program import OBJ_CLASS, Program
from codeanatomy.relate.values.forwarding import forwarding_calls
from codeanatomy.relate.values.function_copies import apply_to_copy, copyable_functions
from codeanatomy.relate.values.hierarchy import watch_bases
from codeanatomy.relate.values.rules import (
    attribute_stores,
    attributes,
    calls,
    classes,
    containers,
    contexts,
    exceptions,
    hints,
    imports,
    iteration,
    objects,
    operators,
    special_methods,
)
from codeanatomy.relate.values.rules.assumptions import (
    apply_unknown_decorators,
    enter_uncalled,
    hint_results,
)
from codeanatomy.relate.values.rules.fixtures import link_fixtures
from codeanatomy.relate.values.solver import MAX_OBJECTS
from codeanatomy.relate.values.state import Round, RuleTables, State

# Names, imports and attributes, before anything is called.
NAMES: Round = {**objects.OPERATIONS, **imports.OPERATIONS, **attributes.OPERATIONS}
# Calls and everything that may call.
CALLS: Round = {
    **attribute_stores.OPERATIONS,
    **calls.OPERATIONS,
    **containers.OPERATIONS,
    **iteration.OPERATIONS,
    **contexts.OPERATIONS,
    **special_methods.OPERATIONS,
    **operators.OPERATIONS,
    **exceptions.OPERATIONS,
    **objects.LATE_OPERATIONS,
    **classes.OPERATIONS,
}
# Annotations, and exceptions that are caught but not raised.
HINTS: Round = {**hints.OPERATIONS, **exceptions.LATE_OPERATIONS}
RULES = RuleTables((NAMES, CALLS, HINTS), calls.CALL_RULES, attributes.ATTRIBUTE_RULES)


def solve(programs: Sequence[Program], limit: int = MAX_OBJECTS, package: str = "") -> State:
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
                state.classes.wrapping[state.object(OBJ_CLASS, file, number)] = 0
    for number, rules in enumerate(state.rules.rounds):
        state.round = number
        _apply_round(state, rules)
        state.solver.run()
        if rules is CALLS:
            link_fixtures(state)
            enter_uncalled(state)
            state.solver.run()
    hint_results(state)
    apply_unknown_decorators(state)
    state.solver.run()
    return state


def _apply_round(state: State, rules: Round) -> None:
    """Apply the rules of a round to the operations of all function copies and files."""
    for copy in range(len(state.copies.nodes)):
        apply_to_copy(state, copy, (rules,))
    for file, program in enumerate(state.programs):
        for op in program.ops:
            rule = rules.get(op[0])
            if rule is not None:
                rule(state, file, op)
        if rules is NAMES:
            watch_bases(state, file)
