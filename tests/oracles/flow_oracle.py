"""Compute control flow, events and reaching definitions a second way, one instruction at a time.

It uses `dis` alone, and neither blocks (they are drawn last, for comparison) nor the tables of opcodes
of the project. Each instruction has its successors, and facts flow along them until nothing changes:

    facts of `x`: "the def at 6 holds", "it may be unbound", "other code may have rebound it" (open)

`facts_of(source)` gives the oracle's rows and `rows_of(source)` those of the normalize stage, both as sets of
plain tuples without ids:

    blocks   (unit, start, end, kind)                     edges    (unit, kind, start of source, of target)
    events   (unit, offset, kind, name, var kind, is parameter, may be unbound)
    reaches  (kind, (unit, offset, name) of the def, (unit, offset, name) of the use)

Of an instruction that names two variables there are two steps; the second one is at the odd offset, which is
free. From 3.12 on a comprehension runs within the code around it: `LOAD_FAST_AND_CLEAR x` keeps on the stack
what the code has as `x`, and a later `STORE_FAST x` takes it from there. In between `x` is another variable,
which is told by the stack: `Unit.kept` has the offsets of the instructions that put such values on it.

A unit is the key of its code object, as `codeanatomy.extract.bytecode_files` explains it. Tests:
`tests/unit/normalize/test_flow_oracle.py` and, of the oracle itself,
`tests/unit/normalize/test_flow_cases.py`.
"""

from __future__ import annotations

import ast
import dis
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from heapq import heappop, heappush
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.file_view import AST, BYTECODE, FileView
from codeanatomy.sources.source_file import Source
from oracles.bytecode_oracle import OPTIONS, compiled

Rows: TypeAlias = dict[str, set[tuple[Any, ...]]]
TABLES = ("blocks", "edges", "events", "reaches")
# Name, space, and of an inlined comprehension's variable where the other one was put aside.
Variable: TypeAlias = tuple[str, str, int | None]
# A unit, and of a comprehension in it the position.
Owner: TypeAlias = tuple[str | None, tuple[int | None, ...]]
# Of the operands of conditions: by position whether it is negated, and whether its operator is.
Written: TypeAlias = dict[tuple[int | None, ...], tuple[bool, bool | None]]
OPERATORS: dict[type[ast.cmpop], bool] = {ast.Is: False, ast.IsNot: True, ast.In: False, ast.NotIn: True}

RETURNS = {"RETURN_VALUE", "RETURN_CONST", "INTERPRETER_EXIT"}
RAISES = {"RAISE_VARARGS", "RERAISE"}
# Before 3.12 it may be unbound.
PLAIN_LOADS = set() if "LOAD_FAST_CHECK" not in dis.opmap else {"LOAD_FAST"}
STEPS_OF_AN_ITERATOR = {"FOR_ITER", "SEND"}
HARMLESS = {
    *("NOP", "CACHE", "EXTENDED_ARG", "POP_TOP", "PUSH_NULL", "COPY", "SWAP", "LOAD_CONST", "STORE_FAST"),
    *("LOAD_CLOSURE", "MAKE_CELL", "COPY_FREE_VARS", "KW_NAMES", "PRECALL", "STORE_DEREF", "JUMP_FORWARD"),
    *("JUMP_BACKWARD_NO_INTERRUPT", "PUSH_EXC_INFO", "POP_EXCEPT", "RETURN_VALUE", "RETURN_CONST"),
    *("RETURN_GENERATOR", "LOAD_ASSERTION_ERROR", "LOAD_FAST_AND_CLEAR", "END_FOR", "END_SEND"),
    *PLAIN_LOADS,
}
EVENTS = {"LOAD": "use", "STORE": "def", "DELETE": "del"}
PLACES = {
    "FAST": "fast",
    "FAST_CHECK": "fast",
    "FAST_AND_CLEAR": "fast",
    "NAME": "name",
    "GLOBAL": "global",
    "DEREF": "cell",
    "CLASSDEREF": "cell",
    "FROM_DICT_OR_DEREF": "cell",
    "FROM_DICT_OR_GLOBALS": "global",
}
SAVE = "LOAD_FAST_AND_CLEAR"
# Two instructions in one; the slots of their variables are in four bits each.
FUSED = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}


class Step(NamedTuple):
    """An instruction, at the offset of its first prefix."""

    offset: int
    opname: str
    arg: int | None
    argval: Any
    line: int | None
    span: tuple[int | None, ...] = ()

    @property
    def jumps(self) -> bool:
        return dis.opmap[self.opname] in {*dis.hasjrel, *dis.hasjabs}

    @property
    def may_raise(self) -> bool:
        return self.opname not in HARMLESS and not self.opname.endswith(("_IF_NONE", "_IF_NOT_NONE"))


class Event(NamedTuple):
    offset: int
    kind: str
    name: str
    where: str
    is_parameter: bool = False
    # Of an inlined comprehension's own variable: the offset at which the other one was put aside.
    kept: int | None = None

    @property
    def variable(self) -> Variable:
        return self.name, self.where, self.kept

    @property
    def row(self) -> tuple[int, str, str, str, bool]:
        return self.offset & ~1, self.kind, self.name, self.where, self.is_parameter

    @property
    def place(self) -> tuple[int, str]:
        return self.offset & ~1, self.name


class Flow(NamedTuple):
    """The fixpoint of a unit's events."""

    reaches: set[tuple[Event, Event]]
    unbound: set[Event]
    open: set[Event]
    visible: set[Event]
    # Deletions that are executed at all.
    dels: set[Event]


class Unit:
    """A code object with its key and the unit around it."""

    def __init__(self, key: str, code: CodeType, parent: Unit | None, written: Written) -> None:
        self.key, self.code, self.parent, self.written = key, code, parent, written
        self.length = len(code.co_code)
        self.steps = list(steps_of(code))
        self.at = {step.offset: index for index, step in enumerate(self.steps)}
        self.entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
        self.ranges = [(entry.start, entry.end, entry.target) for entry in self.entries]
        self.handlers = {
            offset: target
            for start, end, target in self.ranges
            for offset in range(start, end)
            if offset in self.at
        }

    def handler(self, step: Step) -> int | None:
        """Offset at which an exception of this instruction is handled."""
        return self.handlers.get(step.offset)

    def next_offset(self, step: Step) -> int:
        index = self.at[step.offset] + 1
        return self.steps[index].offset if index < len(self.steps) else self.length

    def ways(self, step: Step) -> list[tuple[str, int]]:
        """Where control goes when the instruction does not raise; the exit is the code's length."""
        after = self.next_offset(step)
        if step.opname in RETURNS:
            return [("next", self.length)]
        if step.opname in RAISES:
            return []
        if not step.jumps:
            return [("next", after)] if after < self.length else []
        if step.opname in STEPS_OF_AN_ITERATOR:
            return [("loop_body", after), ("loop_exit", step.argval)]
        _, conditional, test = step.opname.partition("_IF_")
        if not conditional:
            return [("jump", step.argval)]
        taken = test.removesuffix("_OR_POP") in {"TRUE", "NONE"}
        before = self.steps[self.at[step.offset] - 1]
        about = self.written.get(step.span)
        # 3.11 places most jumps at the whole statement; the step before them ends where the operand does.
        if about is None and step.opname.startswith("POP_JUMP"):
            about = self.written.get(before.span[2:])
        if about is not None:
            has_not, reversed_operator = about
            if reversed_operator is not None:
                executed = before.opname in {"IS_OP", "CONTAINS_OP"} and before.argval == 1
                taken ^= reversed_operator ^ (executed and "NONE" not in test)
            taken ^= has_not
        kinds = ("branch_true", "branch_false") if taken else ("branch_false", "branch_true")
        return [(kinds[0], step.argval), (kinds[1], after)]

    def event(self, step: Step) -> Event | None:
        """The definition, use or deletion of a variable that the instruction is."""
        if step.opname == "SETUP_ANNOTATIONS":
            return Event(step.offset, "def", "__annotations__", "name")
        verb, _, place = step.opname.partition("_")
        if verb not in EVENTS or place not in PLACES:
            return None
        kept = self.kept_aside(step)
        if step.opname == SAVE:
            # The comprehension's variable has no value yet.
            return Event(
                step.offset, "save", step.argval, self.place_of(step.argval, step.offset), kept=step.offset
            )
        if step.offset in self.restored:
            return None
        where = PLACES[place]
        if where == "fast":
            if self.is_cell(step, kept):
                return None
        elif where == "cell" and step.argval not in self.code.co_cellvars:
            where = "free"
        own = kept if where in {"fast", "cell"} else None
        return Event(step.offset, EVENTS[verb], step.argval, where, kept=own)

    def is_cell(self, step: Step, kept: int | None) -> bool:
        """Whether what a fast variable's slot holds is a cell, which is handed over and not used."""
        code = self.code
        if step.arg is not None and step.arg >= len(code.co_varnames):
            return True
        return step.argval in code.co_cellvars and self.place_of(step.argval, kept) == "cell"

    def place_of(self, name: str, kept: int | None) -> str:
        """Where the variable of that name lives: that of the unit, or that of a comprehension."""
        if kept is None:
            return "cell" if name in self.code.co_cellvars else "fast"
        return "cell" if (name, kept) in self.made_cells else "fast"

    # What is put aside while an inlined comprehension runs

    @cached_property
    def kept(self) -> dict[int, tuple[int | None, ...]]:
        """The stack before each step: the offset at which a variable's value was put aside, or None."""
        stacks: dict[int, tuple[int | None, ...]] = {}
        todo: list[tuple[int, tuple[int | None, ...]]] = [(0, ())]
        while todo:
            offset, stack = todo.pop()
            if offset in stacks or offset == self.length:
                continue
            stacks[offset] = stack
            step = self.steps[self.at[offset]]
            todo += [
                (entry.target, (*stack[: entry.depth], *[None] * (entry.lasti + 1)))
                for entry in self.entries
                if entry.start <= offset < entry.end
            ]
            todo += [(to, self.pushed(step, stack, to)) for _, to in self.ways(step)]
        return stacks

    def pushed(self, step: Step, stack: tuple[int | None, ...], to: int) -> tuple[int | None, ...]:
        """The stack after a step that goes on at an offset."""
        if step.opname == "SWAP":
            top, other = len(stack) - 1, len(stack) - (step.arg or 0)
            values = [*stack]
            values[top], values[other] = values[other], values[top]
            return tuple(values)
        if step.opname == SAVE:
            return (*stack, step.offset)
        jumps = step.jumps and to == step.argval
        change = dis.stack_effect(dis.opmap[step.opname], step.arg, jump=jumps)
        if step.opname == "RETURN_GENERATOR":
            change = 1
        return (*stack, *[None] * change) if change >= 0 else stack[:change]

    @cached_property
    def restored(self) -> set[int]:
        """The offsets of the steps that take a value from the stack which was put aside there."""
        return {
            step.offset
            for step in self.steps
            if step.opname == "STORE_FAST" and (self.kept.get(step.offset) or (None,))[-1] is not None
        }

    @cached_property
    def made_cells(self) -> set[tuple[str, int | None]]:
        return {(step.argval, self.kept_aside(step)) for step in self.steps if step.opname == "MAKE_CELL"}

    def loading(self, code: CodeType) -> Step:
        """The first step that loads an inner code object, else the last of all."""
        return next((step for step in self.steps if step.argval is code), self.steps[-1])

    def span_at(self, offset: int | None) -> tuple[int | None, ...]:
        return () if offset is None else self.steps[self.at[offset]].span

    def kept_aside(self, step: Step, name: str | None = None) -> int | None:
        """The offset at which the unit's own variable of that name, or the step's, was last put aside."""
        held = [at for at in self.kept.get(step.offset, ()) if at is not None]
        named = [at for at in held if self.steps[self.at[at]].argval == (name or step.argval)]
        return named[-1] if named else None

    @cached_property
    def parameters(self) -> list[Event]:
        code = self.code
        stars = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]
        return [Event(0, "def", name, "cell" if name in code.co_cellvars else "fast", True) for name in names]

    @cached_property
    def events(self) -> list[Event]:
        found = [self.event(step) for step in self.steps]
        return [*self.parameters, *(event for event in found if event)]

    @property
    def shown_events(self) -> list[Event]:
        return [event for event in self.events if event.kind != "save"]

    # Blocks and their edges

    @cached_property
    def blocks(self) -> list[tuple[int, int, str]]:
        starts = {0}
        for step in self.steps:
            if step.jumps:
                starts |= {step.argval, self.next_offset(step)}
            if step.opname in RETURNS | RAISES:
                starts.add(self.next_offset(step))
        for bounds in self.ranges:
            starts.update(bounds)
        handlers = {target for _, _, target in self.ranges}
        ordered = sorted(starts - {self.length})
        kinds = ["entry" if at == 0 else "handler" if at in handlers else "normal" for at in ordered]
        ends = [*ordered[1:], self.length]
        return [*zip(ordered, ends, kinds, strict=True), (self.length, self.length, "exit")]

    @cached_property
    def edges(self) -> set[tuple[str, int, int]]:
        found = set()
        for start, end, kind in self.blocks:
            if kind == "exit":
                continue
            inside = self.steps[self.at[start] : self.at.get(end)]
            for step in inside:
                handler = self.handler(step)
                if step.may_raise and handler is not None:
                    found.add(("exception", start, handler))
                elif step.opname in RAISES:
                    found.add(("exception", start, self.length))
            found.update((kind, start, to) for kind, to in self.ways(inside[-1]))
        return found

    # Facts

    @cached_property
    def before(self) -> dict[int, int]:
        """The facts that hold before every reachable instruction, by offset: spread until nothing changes."""
        facts = self.facts
        entry = facts.all_open | sum(facts.unbound.values())
        for parameter in self.parameters:
            entry = facts.after(parameter, entry)
        before = {0: entry}
        todo = [0]
        while todo:
            step = self.steps[self.at[heappop(todo)]]
            # Other code may run during the instruction, before its own def or del.
            state = before[step.offset] | (facts.all_open if step.may_raise else 0)
            handler = self.handler(step) if step.may_raise else None
            leaving = [] if handler is None else [(handler, state)]
            leaving += [(to, facts.after(self.event(step), state)) for _, to in self.ways(step)]
            for to, new in leaving:
                old = before.get(to)
                if to < self.length and (old is None or old | new != old):
                    before[to] = new if old is None else old | new
                    heappush(todo, to)
        return before

    @cached_property
    def facts(self) -> Facts:
        return Facts(self.events)

    @cached_property
    def flow(self) -> Flow:
        flow, facts, seen = Flow(set(), set(), set(), set(), set()), self.facts, 0
        for offset, state in self.before.items():
            step = self.steps[self.at[offset]]
            if step.may_raise or step.opname in RETURNS:
                seen |= state
            event = self.event(step)
            if event is None or event.kind in {"def", "save"}:
                continue
            if state & facts.unbound[event.variable]:
                flow.unbound.add(event)
            if state & facts.opened[event.variable]:
                flow.open.add(event)
            if event.kind == "del":
                flow.dels.add(event)
            else:
                flow.reaches.update((d, event) for d in facts.defs_in(state & facts.about[event.variable]))
        flow.visible.update(facts.defs_in(seen))
        return flow


class Facts:
    """The facts about a unit's variables, each a bit, so that a state is an integer.

    Of every def: it holds. Of every variable: it may be unbound; it is open, that is other code may have
    rebound it.
    """

    def __init__(self, events: list[Event]) -> None:
        self.defs = [event for event in events if event.kind == "def"]
        variables = sorted({event.variable for event in events}, key=repr)
        count = len(self.defs)
        self.holds = {event: 1 << bit for bit, event in enumerate(self.defs)}
        self.unbound = {variable: 1 << bit for bit, variable in enumerate(variables, count)}
        self.opened = {variable: 1 << bit for bit, variable in enumerate(variables, count + len(variables))}
        self.about = {variable: self.unbound[variable] | self.opened[variable] for variable in variables}
        for event, bit in self.holds.items():
            self.about[event.variable] |= bit
        self.all_open = sum(self.opened.values())

    def after(self, event: Event | None, state: int) -> int:
        if event is None or event.kind == "use":
            return state
        state &= ~self.about[event.variable]
        return state | (self.holds[event] if event.kind == "def" else self.unbound[event.variable])

    def defs_in(self, state: int) -> Iterator[Event]:
        state &= (1 << len(self.defs)) - 1
        while state:
            lowest = state & -state
            yield self.defs[lowest.bit_length() - 1]
            state ^= lowest


def steps_of(code: CodeType) -> Iterator[Step]:
    first = None
    for found in dis.get_instructions(code, show_caches=False, adaptive=False):
        first = found.offset if first is None else first
        if found.opname == "EXTENDED_ARG":
            continue
        where = found.positions
        line = where.lineno if where else None
        span = (
            () if where is None else (where.lineno, where.col_offset, where.end_lineno, where.end_col_offset)
        )
        if found.opname in FUSED:
            assert found.arg is not None
            slots = found.arg >> 4, found.arg & 15
            names = zip(FUSED[found.opname], slots, found.argval, (span, ()), strict=True)
            for at, (name, slot, variable, own) in enumerate(names):
                yield Step(first + at, name, slot, variable, line, own)
        else:
            yield Step(first, found.opname, found.arg, found.argval, line, span)
        first = None


def tests_in(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        tests = [getattr(node, field, None) for field in ("test", "guard")]
        yield from (test for test in (*tests, *getattr(node, "ifs", ())) if isinstance(test, ast.expr))


def conditions_of(tree: ast.AST) -> Written:
    """Return the operands of conditions, from the outside in."""
    found: Written = {}

    def enter(node: ast.expr, has_not: bool) -> None:
        match node:
            case ast.UnaryOp(op=ast.Not()):
                enter(node.operand, not has_not)
            case ast.BoolOp():
                for value in node.values:
                    enter(value, has_not)
            case ast.IfExp():
                enter(node.body, has_not)
                enter(node.orelse, has_not)
            case _:
                reversed_operator = None
                if isinstance(node, ast.Compare) and len(node.ops) == 1:
                    reversed_operator = OPERATORS.get(type(node.ops[0]))
                where = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                found[where] = found[where[2:]] = has_not, reversed_operator
                if isinstance(node, ast.Compare) and reversed_operator is not None:
                    # `x is None` is a jump by what x is.
                    found[node.left.end_lineno, node.left.end_col_offset] = found[where]
                if isinstance(node, ast.NamedExpr):
                    found[node.target.end_lineno, node.target.end_col_offset] = found[where]

    for test in tests_in(tree):
        enter(test, False)
    return found


def units_of(module: CodeType, tree: ast.AST | None = None) -> list[Unit]:
    """Return the code objects in preorder; branches are labelled as the tree has them, if there is one."""
    written = {} if tree is None else conditions_of(tree)
    found: list[Unit] = []

    def add(key: str, code: CodeType, parent: Unit | None) -> None:
        unit = Unit(key, code, parent, written)
        found.append(unit)
        twins: Counter[str] = Counter()
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                name = f"{key}/{inner.co_name}@{inner.co_firstlineno}"
                add(f"{name}#{twins[name]}", inner, unit)
                twins[name] += 1

    add(module.co_name, module, None)
    return found


def owner_of(unit: Unit, event: Event) -> Owner:
    """Whose cell a `cell` or `free` variable is: a unit, and of it perhaps a comprehension, by its place."""
    if event.where == "cell":
        return unit.key, unit.span_at(event.kept)
    name, inner, around = event.name, unit, unit.parent
    while around is not None:
        kept = around.kept_aside(around.loading(inner.code), name)
        if (name, kept) in around.made_cells:
            return around.key, around.span_at(kept)
        if name in around.code.co_cellvars:
            return around.key, ()
        if name not in around.code.co_freevars:
            break
        inner, around = around, around.parent
    return None, ()


def shared(unit: Unit, event: Event) -> tuple[str, Owner, str] | None:
    """The variable of more than one unit that the event is about: kind of reach, owner, name.

    A class body's own defs and dels of a name are never the module's; its uses may be.
    """
    in_module = unit.parent is None
    if event.where in {"cell", "free"}:
        return "closure", owner_of(unit, event), event.name
    if event.where == "global" or (event.where == "name" and (in_module or event.kind == "use")):
        return "global", (None, ()), event.name
    return None


def visible_and_open(unit: Unit, event: Event) -> bool:
    """Other code may see the def, or the use may see what other code defined."""
    if event.kind == "def":
        return event in unit.flow.visible
    class_body = event.where == "name" and unit.parent is not None
    return event in (unit.flow.unbound if class_body else unit.flow.open)


def between_scopes(units: list[Unit]) -> set[tuple[str, Unit, Event, Unit, Event]]:
    groups = defaultdict(list)
    for unit in units:
        for event in unit.shown_events:
            group = shared(unit, event)
            if group and event.kind != "del" and visible_and_open(unit, event):
                groups[group].append((unit, event))
    found = set()
    for (kind, _, _), members in groups.items():
        for unit, definition in members:
            if definition.kind != "def":
                continue
            for other, use in members:
                again = use.where == "free" if kind == "closure" else unit.parent is not None
                if (
                    use.kind == "use"
                    and (unit is not other or again)
                    and not (unit is other and (definition, use) in unit.flow.reaches)
                ):
                    found.add((kind, unit, definition, other, use))
    return found


def deleted_elsewhere(units: list[Unit]) -> set[tuple[Unit, Event]]:
    """Open uses and deletions of a variable that another unit deletes."""
    groups = defaultdict(set)
    for unit in units:
        for event in unit.flow.dels:
            groups[shared(unit, event)].add(unit.key)
    return {
        (unit, event)
        for unit in units
        for event in unit.flow.open
        if groups.get(shared(unit, event), set()) - {unit.key}
        if event.where == "cell" or (event.where == "name" and unit.parent is None)
    }


def unbound_of(unit: Unit, event: Event, elsewhere: set[tuple[Unit, Event]]) -> bool | None:
    if event.kind == "def" or event.where in {"free", "global"}:
        return None
    return event in unit.flow.unbound or (unit, event) in elsewhere


def facts_of(source: Source) -> Rows:
    """Return the oracle's rows of a file."""
    return rows_of_units(units_of(compiled(source), ast.parse(source.text)))


def rows_of_units(units: list[Unit]) -> Rows:
    reaches = {
        ("local", (unit.key, *d.place), (unit.key, *use.place))
        for unit in units
        for d, use in unit.flow.reaches
    }
    reaches |= {
        (kind, (unit.key, *d.place), (other.key, *use.place))
        for kind, unit, d, other, use in between_scopes(units)
    }
    elsewhere = deleted_elsewhere(units)
    return {
        "blocks": {(unit.key, *block) for unit in units for block in unit.blocks},
        "edges": {(unit.key, *edge) for unit in units for edge in unit.edges},
        "events": {
            (unit.key, *event.row, unbound_of(unit, event, elsewhere))
            for unit in units
            for event in unit.shown_events
        },
        "reaches": reaches,
    }


# The rows of the normalize stage, ids resolved


def rows_of(source: Source) -> Rows:
    from codeanatomy.normalize.flow import tables as flow_tables

    rows = {AST: ast_files_v1(source, OPTIONS).cells, BYTECODE: bytecode_files_v1(source, OPTIONS).cells}
    file = FileView("repo:r", "file:f", "a.py", rows)
    flow = flow_tables.analyze_flow(file)
    keys = {unit.code_unit_id: unit.code["code_unit_key"] for unit in flow.units}
    assert len(keys) == len(flow.units), "code objects with one id"
    block_rows = listed(flow_tables.py_bc_blocks_norm_v1(flow))
    edge_rows = listed(flow_tables.py_bc_cfg_edges_norm_v1(flow))
    event_rows = listed(flow_tables.py_bc_def_use_events_v1(flow))
    reach_rows = listed(flow_tables.py_bc_reaches_v1(flow))
    blocks = by_id(block_rows, "bc_block_id")
    events = by_id(event_rows, "bc_event_id")
    by_id(edge_rows, "bc_edge_id")
    by_id(reach_rows, "bc_reach_id")

    def start(row: dict[str, Any], name: str) -> int:
        block = blocks[row[name]]
        assert block["code_unit_id"] == row["code_unit_id"], (name, row)
        return int(block["bc_offset_start"])

    def named(event: dict[str, Any]) -> tuple[str, int, str]:
        return keys[event["code_unit_id"]], event["bc_event_offset"], event["bc_var_name"]

    for row in event_rows:
        assert (
            start(row, "bc_block_id") <= row["bc_event_offset"] < blocks[row["bc_block_id"]]["bc_offset_end"]
        )
    for row in reach_rows:
        definition, use = events[row["bc_def_event_id"]], events[row["bc_use_event_id"]]
        assert (definition["bc_event_kind"], use["bc_event_kind"]) == ("def", "use"), row
        assert row["code_unit_id"] == use["code_unit_id"], row
        assert row["bc_var_name"] == use["bc_var_name"], row
    spans = ("bc_offset_start", "bc_offset_end", "bc_block_kind")
    about = ("bc_event_offset", "bc_event_kind", "bc_var_name", "bc_var_kind", "bc_is_parameter")
    return {
        "blocks": {(keys[row["code_unit_id"]], *(row[name] for name in spans)) for row in block_rows},
        "edges": {
            (
                keys[row["code_unit_id"]],
                row["bc_edge_kind"],
                start(row, "bc_src_block_id"),
                start(row, "bc_dst_block_id"),
            )
            for row in edge_rows
        },
        "events": {
            (keys[row["code_unit_id"]], *(row[name] for name in about), row["bc_may_be_unbound"])
            for row in event_rows
        },
        "reaches": {
            (
                row["bc_reach_kind"],
                named(events[row["bc_def_event_id"]]),
                named(events[row["bc_use_event_id"]]),
            )
            for row in reach_rows
        },
    }


def listed(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def by_id(rows: list[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    found = {row[name]: row for row in rows}
    assert len(found) == len(rows), f"{name} is not unique"
    return found


# Comparison


def difference(source: Source, label: str = "<text>", shown: int = 8) -> str:
    """Describe the differences between the normalize stage and the oracle; empty if there are none."""
    expected, told = facts_of(source), rows_of(source)
    if expected == told:
        return ""
    lines = [f"{label}: the tables differ from the oracle"]
    units: Counter[str] = Counter()
    for table in TABLES:
        for title, rows in (
            ("only in the table", told[table] - expected[table]),
            ("only in the oracle", expected[table] - told[table]),
        ):
            for row in sorted(rows, key=repr)[:shown]:
                lines.append(f"  {table}, {title}: {row}")
                units[row[0] if table != "reaches" else row[2][0]] += 1
            if len(rows) > shown:
                lines.append(f"  {table}, {title}: ... {len(rows)} in all")
    for unit in units_of(compiled(source)):
        if unit.key in units:
            lines += [f"  {unit.key}", *("    " + line for line in disassembly(unit))]
    return "\n".join(lines)


def disassembly(unit: Unit) -> list[str]:
    starts = {start for start, _, _ in unit.blocks}
    return [
        f"{'>' if step.offset in starts else ' '} {step.offset:5} {step.opname} "
        f"{step.argval if step.argval is not None else ''}"
        f"{'' if unit.handler(step) is None else f'  (raises to {unit.handler(step)})'}  line {step.line}"
        for step in unit.steps
    ]
