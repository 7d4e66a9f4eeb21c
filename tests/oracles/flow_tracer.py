"""Run a program of the tests and record every definition, use and jump.

    def f():
        x = 1
        return x        # observed: the def of line 2 is what this use saw

`sys.settrace` reports every instruction before it is executed. A store is recorded at once and removed if
the instruction raises. The last definition is kept per variable: of a frame for a fast variable,
of a cell object for a closure, of the module for a global. The cell of a frame is read from the frame's
memory, because Python itself has no name for it; that layout is CPython 3.11's, and so is this tracer.

Only programs written for the tests are run, never analysed code. Tests:
`tests/unit/normalize/test_flow_execution.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import POINTER, c_void_p, cast, py_object
from types import CellType, CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

from oracles.flow_oracle import Event, Rows, Step, Unit, units_of

READS_FRAMES = sys.implementation.name == "cpython" and sys.version_info[:2] == (3, 11)
# In a frame object: header, f_back, and then where the interpreter's frame is; there the locals come after
# eight pointers and eight bytes of flags.
FRAME_AT, LOCALS_AT = 24, 72

PLAIN = ("next", "jump", "branch_true", "branch_false", "loop_body", "loop_exit")
# They re-raise what was reported before.
QUIET = {"RERAISE", "RAISE_VARARGS", "END_ASYNC_FOR"}

Place: TypeAlias = tuple[str, int, str]
Variable: TypeAlias = tuple[Any, ...]


class Pair(NamedTuple):
    """An observed definition and use, and the expected kind of its row."""

    definition: Place
    use: Place
    kinds: frozenset[str]


class Trace:
    """The observations of one program."""

    def __init__(self, module: CodeType, limit: int = 2_000_000) -> None:
        # By address: code objects compare equal when their contents do.
        self.units = {id(unit.code): unit for unit in units_of(module)}
        self.pairs: set[Pair] = set()
        self.unbound: set[Place] = set()
        self.moves: set[tuple[str, int, int, bool]] = set()
        self.left = limit
        self._last: dict[Variable, tuple[Place, FrameType] | None] = {}
        self._undo: dict[FrameType, tuple[int, Variable, tuple[Place, FrameType] | None]] = {}
        self._at: dict[FrameType, int] = {}
        self._raised: set[FrameType] = set()
        # Objects that must not be freed, or another object could take their address.
        self._kept: dict[int, Any] = {}

    def run(self, action: Callable[[], object]) -> BaseException | None:
        """Run under the tracer; return the exception, if any."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            action()
        except BaseException as error:  # noqa: BLE001
            return error
        finally:
            sys.settrace(before)
        return None

    def _called(self, frame: FrameType, event: str, _arg: Any) -> Any:
        unit = self.units.get(id(frame.f_code))
        if unit is None or event != "call" or self.left <= 0:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if id(frame) not in self._kept:
            self._kept[id(frame)] = frame
            for parameter in unit.parameters:
                slot = frame.f_code.co_varnames.index(parameter.name)
                variable = self._variable(frame, unit, parameter, slot)
                self._last[variable] = (unit.key, 0, parameter.name), frame
        # RESUME is not reported as a step; a generator that is thrown into is still at its yield.
        if frame.f_lasti != self._at.get(frame):
            self._moved(frame, unit, frame.f_lasti)
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, arg: Any) -> Any:
        unit = self.units[id(frame.f_code)]
        index = unit.at.get(frame.f_lasti)
        if event == "exception":
            self._thrown(frame, unit, arg[0])
        elif event == "opcode" and index is not None:
            self.left -= 1
            self._moved(frame, unit, frame.f_lasti)
            step = unit.steps[index]
            happened = unit.event(step)
            self._undo.pop(frame, None)
            if happened:
                self._happened(frame, unit, step, happened)
        return self._stepped

    def _moved(self, frame: FrameType, unit: Unit, offset: int) -> None:
        if frame in self._at:
            self.moves.add((unit.key, self._at[frame], offset, frame in self._raised))
        self._at[frame] = offset
        self._raised.discard(frame)

    def _happened(self, frame: FrameType, unit: Unit, step: Step, event: Event) -> None:
        slot = slot_of(frame.f_code, step) if event.where in {"cell", "free"} else 0
        variable = self._variable(frame, unit, event, slot)
        place = unit.key, event.offset, event.name
        if event.kind != "use":
            self._undo[frame] = step.offset, variable, self._last.get(variable)
            self._last[variable] = (place, frame) if event.kind == "def" else None
            return
        if variable[0] == "class" and self._last.get(variable) is None:
            variable = self._global(frame, event.name)
        last = self._last.get(variable)
        if last is not None:
            between = "closure" if variable[0] == "cell" else "global"
            same = last[1] is frame
            self.pairs.add(Pair(last[0], place, frozenset({"local"} if same else {"local", between})))

    def _thrown(self, frame: FrameType, unit: Unit, error: type[BaseException]) -> None:
        self._raised.add(frame)
        undo = self._undo.pop(frame, None)
        if undo is not None and undo[0] == self._at.get(frame):
            self._last[undo[1]] = undo[2]
        step = unit.steps[unit.at[self._at[frame]]] if frame in self._at else None
        event = unit.event(step) if step else None
        if event and event.kind != "def" and issubclass(error, NameError):
            self.unbound.add((unit.key, event.offset, event.name))

    def _variable(self, frame: FrameType, unit: Unit, event: Event, slot: int) -> Variable:
        if event.where == "fast":
            return "fast", frame, event.name
        if event.where in {"cell", "free"}:
            cell = cell_of(frame, slot)
            self._kept[id(cell)] = cell
            return "cell", id(cell)
        if event.where == "name" and unit.parent is not None:
            return "class", frame, event.name
        return self._global(frame, event.name)

    def _global(self, frame: FrameType, name: str) -> Variable:
        module = frame.f_globals
        self._kept[id(module)] = module
        return "global", id(module), name


def slot_of(code: CodeType, step: Step) -> int:
    """Where the cell of a variable lies in its frame: after the locals, except that of a parameter."""
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    slots = [*code.co_varnames, *cells, *code.co_freevars]
    # A name may be both cell and free in a class body; LOAD_CLASSDEREF means the free one.
    return len(slots) - 1 - slots[::-1].index(step.argval)


def cell_of(frame: FrameType, slot: int) -> CellType:
    inner = cast(id(frame) + FRAME_AT, POINTER(c_void_p)).contents.value
    assert inner is not None
    found = cast(inner + LOCALS_AT + 8 * slot, POINTER(py_object)).contents.value
    assert isinstance(found, CellType), (frame.f_code, slot, type(found))
    return found


# What was observed, held against the tables


def unexplained(trace: Trace, rows: Rows) -> list[str]:
    """Return the observations that the rows do not allow; empty if the rows are sound."""
    told: dict[tuple[Place, Place], str] = {(d, use): kind for kind, d, use in rows["reaches"]}
    wrong = [
        f"observed but without a row: {pair}"
        for pair in sorted(trace.pairs, key=repr)
        if told.get((pair.definition, pair.use)) not in pair.kinds
    ]
    maybe = {
        (unit, at, name): unbound for unit, at, kind, name, *_, unbound in rows["events"] if kind != "def"
    }
    bound = [place for place in sorted(trace.unbound) if maybe[place] is False]
    wrong += [f"unbound but bound by its row: {place}" for place in bound]
    return wrong + [
        f"no way in the tables: {move}" for move in sorted(trace.moves) if not known(trace, rows, move)
    ]


def known(trace: Trace, rows: Rows, move: tuple[str, int, int, bool]) -> bool:
    """There is an edge for the step, or it is the next instruction of the same block."""
    key, source, target, raised = move
    unit = next(unit for unit in trace.units.values() if unit.key == key)
    start, end = next(
        (start, end) for owner, start, end, _ in rows["blocks"] if owner == key and start <= source < end
    )
    step = unit.steps[unit.at[source]]
    after = unit.next_offset(step)
    if after < end:
        plain = not raised and target == after
    else:
        plain = any((key, kind, start, target) in rows["edges"] for kind in PLAIN)
    thrown = (key, "exception", start, target) in rows["edges"] and (raised or step.opname in QUIET)
    return plain or thrown or (step.opname == "YIELD_VALUE" and goes_on(unit, step, target))


def goes_on(unit: Unit, step: Step, target: int) -> bool:
    """Steps after a yield that are not reported one by one.

    The RESUME of an await is silent. And after a `throw` into a delegated generator that then returns,
    CPython itself moves on past the SEND.
    """
    index = unit.at[step.offset]
    before, resume, after = unit.steps[index - 1], unit.steps[index + 1], unit.steps[index + 2]
    silent = resume.opname == "RESUME" and target == after.offset
    return silent or (before.opname == "SEND" and target == before.argval)
