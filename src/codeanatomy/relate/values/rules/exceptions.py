"""Raise and catch exceptions.

    raise E(1)         an instance of E is raised, anywhere and in this file
    except E as e      raised instances of E; if there are none, an instance of E

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.dispatch import invoke
from codeanatomy.relate.values.pending_call import Call
from codeanatomy.relate.values.rules.containers import ALL_ELEMENTS
from codeanatomy.relate.values.rules.objects import add_instance, keep_instance
from codeanatomy.relate.values.solver import Object, strong
from codeanatomy.relate.values.state import State

RAISED_KINDS = (ir.OBJ_CLASS, ir.OBJ_INSTANCE)


def _apply_raise(state: State, file: int, op: ir.Op) -> None:
    call = Call((file, op[2]), [], -1, role="raise")
    state.subscribe(state.node(file, op[1]), _raise_object, call)


def _raise_object(state: State, obj: Object, call: Call) -> None:
    kind = state.kind[obj]
    if kind == ir.OBJ_CLASS:
        invoke(state, obj, call)
    if kind in RAISED_KINDS:
        instance = state.object(ir.OBJ_INSTANCE, strong(obj)) if kind == ir.OBJ_CLASS else obj
        state.add(state.raised, instance)
        state.add(state.raised_in[call.where[0]], instance)


def _apply_except(state: State, file: int, op: ir.Op) -> None:
    state.subscribe(state.node(file, op[1]), _catch, file, state.node(file, op[2]))


def _catch(state: State, cls: Object, file: int, dst: int) -> None:
    """Put caught exceptions into dst.

    These are raised exceptions of the class: raised anywhere for a class of the repository, in this file
    for an external class, of which an instance is added as well.
    """
    kind = state.kind[cls]
    if kind == ir.OBJ_CLASS:
        state.subscribe(state.raised, keep_instance, strong(cls), dst)
    elif kind == ir.OBJ_CONTAINER:
        state.subscribe(state.field(cls, ALL_ELEMENTS), _catch, file, dst)
    else:
        add_instance(state, cls, dst, False)
        state.subscribe(state.raised_in[file], keep_instance, strong(cls), dst)


def _apply_except_unraised(state: State, file: int, op: ir.Op) -> None:
    """Put instances of caught classes into the node of a handler that no raised exception reaches."""
    if not state.points_to[state.node(file, op[2])]:
        state.subscribe(state.node(file, op[1]), add_instance, state.node(file, op[2]), 0)


OPERATIONS = {ir.OP_RAISE: _apply_raise, ir.OP_EXCEPT: _apply_except}
LATE_OPERATIONS = {ir.OP_EXCEPT: _apply_except_unraised}
