"""Build the four tables of control and data flow from the code objects of one file.

    flow = analyze_flow(file)                       # blocks, events, reaching definitions of all code units
    py_bc_blocks_norm_v1(flow)["bc_block_kind"]     # ["entry", "exit"]
    py_bc_reaches_v1(flow)["bc_reach_kind"]         # ["local"]

All rows of a file come from that file alone, so files are processed in any order and on any machine. The
parts are `blocks`, `events`, `reaching` (within a code unit), `cross_scope` (between code units) and
`anchors` (the spans in the source); everything that depends on the Python version is in `opcodes`.

Tests: `tests/unit/normalize/test_flow_tables.py`; the other modules name theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

from msgspec import Struct

from codeanatomy.file_view import AST, BYTECODE, INNER, Columns, FileView, iter_rows
from codeanatomy.node_ids import key_of, node_id, number_text
from codeanatomy.normalize.anchors import Anchors, Span
from codeanatomy.normalize.flow.blocks import BRANCH, ControlFlow, control_flow
from codeanatomy.normalize.flow.conditions import Conditions
from codeanatomy.normalize.flow.cross_scope import DefUsePair, SolvedUnit, cross_unit_pairs
from codeanatomy.normalize.flow.events import AT_ENTRY, VariableEvent, variable_events
from codeanatomy.normalize.flow.opcodes import opcodes_of
from codeanatomy.normalize.flow.reaching import (
    MAY_BE_UNBOUND,
    PairBudget,
    ReachingDefinitions,
    reaching_definitions,
)
from codeanatomy.normalize.table_rows import table_columns

# The fields of `bytecode_files_v1` that are read.
UNIT_FIELDS = (
    "code_unit_key",
    "parent_key",
    "name",
    "argcount",
    "kwonlyargcount",
    "flags",
    "code_len",
    "varnames",
    "freevars",
    "cellvars",
    "bstart",
    "bend",
)
LIST_FIELDS = ("instructions", "exception_table")
INSTRUCTION_FIELDS, EXCEPTION_FIELDS = (INNER[name] for name in LIST_FIELDS)
# Per file. The compiler copies `finally` blocks: twenty nested ones, of 800 bytes, are millions.
MAX_INSTRUCTIONS = 1_000_000
BRANCHES = frozenset(BRANCH.values())


class SourceSpan(NamedTuple):
    """A byte span in the source and its line."""

    bstart: int | None
    bend: int | None
    line: int | None


class CodeUnitFlow(Struct, frozen=True):
    """A code object and the result of its analysis."""

    code_unit_id: str
    code: dict[str, Any]
    flow: ControlFlow
    block_ids: list[str]
    events: list[VariableEvent]
    # Saves, which only the analysis needs, have no id.
    event_ids: list[str | None]
    # Number of each event's block, and its span in the source.
    event_blocks: list[int]
    event_spans: list[SourceSpan]
    reaching: ReachingDefinitions


class FileFlow(Struct, frozen=True):
    """The code units of a file, its pairs of definition and use, its conditions, and how many more pairs were
    omitted.
    """

    units: list[CodeUnitFlow]
    pairs: list[DefUsePair]
    conditions: Conditions
    omitted_pairs: int = 0
    # Number of instructions of a file with too many of them, which is not analysed.
    excess_instructions: int = 0


def analyze_flow(file: FileView) -> FileFlow:
    """Analyse the code objects of a file; empty if there are none, or if the Python version is unknown."""
    version, objects = file.row(BYTECODE).get("python_version"), file.list(BYTECODE, "code_objects")
    rules = opcodes_of(version) if version is not None else None
    if rules is None or not objects:
        return FileFlow([], [], Conditions({}))
    size = sum(len(instructions["offset"]) for instructions in objects["instructions"])
    if size > MAX_INSTRUCTIONS:
        return FileFlow([], [], Conditions({}), excess_instructions=size)
    anchors, conditions = Anchors(file.row(AST)), Conditions(file.list(AST, "nodes"))
    keys = file.definition_keys.of_units(objects)
    budget = PairBudget()
    units, solved = [], []
    names = (*UNIT_FIELDS, *LIST_FIELDS)
    for values in iter_rows(objects, *names):
        code = dict(zip(names, values, strict=True))
        flow = control_flow(code, rules, conditions)
        events, inlined = variable_events(code, rules)
        reaching = reaching_definitions(flow, events, budget)
        units.append(_unit(keys[code["code_unit_key"]], code, flow, events, reaching, anchors))
        solved.append(SolvedUnit(code, events, inlined, reaching))
    cross_unit = cross_unit_pairs(solved, budget)
    return FileFlow(units, [*_local_pairs(units), *cross_unit], conditions, budget.omitted)


def _unit(
    key: str,
    code: dict[str, Any],
    flow: ControlFlow,
    events: list[VariableEvent],
    reaching: ReachingDefinitions,
    anchors: Anchors,
) -> CodeUnitFlow:
    block_of: list[int] = []
    for number, block in enumerate(flow.blocks):
        block_of += [number] * (block.last - block.first)
    numbers = count()
    ids = [None if event.kind == "save" else node_id("DEF_EVENT", key, next(numbers)) for event in events]
    return CodeUnitFlow(
        node_id("CODE_UNIT", key),
        code,
        flow,
        [node_id("CFG_BLOCK", key, number) for number in range(len(flow.blocks))],
        events,
        ids,
        [0 if event.instruction == AT_ENTRY else block_of[event.instruction] for event in events],
        list(_event_spans(code, events, anchors)),
        reaching,
    )


def _event_spans(code: dict[str, Any], events: list[VariableEvent], anchors: Anchors) -> Iterator[SourceSpan]:
    instructions: Columns = code["instructions"]
    starts, ends, lines = instructions["bstart"], instructions["bend"], instructions["line"]
    whole = code["bstart"], code["bend"]
    stores: Counter[tuple[Span, str]] = Counter()
    for event in events:
        if event.instruction == AT_ENTRY:
            anchor, line = anchors.parameter(whole, event.name), None
        else:
            span = starts[event.instruction], ends[event.instruction]
            line = lines[event.instruction]
            if span[0] is None or _is_handler_cleanup(instructions, event):
                anchor = None
            elif event.ordinal:
                anchor = _fused_anchor(instructions, event, anchors)
            elif event.kind == "def":
                anchor = anchors.definition(span, event.name, stores[span, event.name])
                stores[span, event.name] += 1
            else:
                anchor = anchors.use(span, event.name)
        if anchor is None:
            yield SourceSpan(None, None, line)
        else:
            yield SourceSpan(*anchor, anchors.lines[anchor[0]])


def _fused_anchor(instructions: Columns, event: VariableEvent, anchors: Anchors) -> Span | None:
    """Return the span of the second variable that an instruction accesses."""
    starts, ends, at = instructions["bstart"], instructions["bend"], event.instruction
    first, line = (starts[at], ends[at]), instructions["line"][at]
    if event.kind == "def":
        return anchors.fused_definition(line, first, event.name)
    # A load is not the last instruction. Another load does not consume the value.
    is_consumer = starts[at + 1] is not None and not instructions["opname"][at + 1].startswith("LOAD_FAST")
    return anchors.fused_use(line, first, event.name, (starts[at + 1], ends[at + 1]) if is_consumer else None)


def _is_handler_cleanup(instructions: Columns, event: VariableEvent) -> bool:
    """Return whether an event is of the `e = None; del e` after a handler, three instructions of one span."""
    names = instructions["opname"]
    first = event.instruction - (1 if event.kind == "def" else 2)
    if event.kind == "use" or first < 0 or first + 3 > len(names) or names[first] != "LOAD_CONST":
        return False
    three = slice(first, first + 3)
    shared = len(set(zip(instructions["bstart"][three], instructions["bend"][three], strict=True))) == 1
    stored, deleted = names[first + 1 : first + 3]
    same = instructions["argval"][first + 1] == instructions["argval"][first + 2]
    return shared and same and stored.startswith("STORE_") and deleted.startswith("DELETE_")


def _local_pairs(units: list[CodeUnitFlow]) -> Iterator[DefUsePair]:
    for number, unit in enumerate(units):
        for use, definitions in unit.reaching.definitions.items():
            if unit.events[use].kind == "use":
                for definition in definitions:
                    yield DefUsePair("local", (number, definition), (number, use))


def py_bc_blocks_norm_v1(flow: FileFlow) -> Columns:
    """Return one row per basic block, the exits included."""
    rows = []
    for unit in flow.units:
        spans = _block_spans(unit)
        for block, block_id, span in zip(unit.flow.blocks, unit.block_ids, spans, strict=True):
            rows.append((unit.code_unit_id, block_id, block.kind, block.start, block.end, *span))
    return table_columns("py_bc_blocks_norm_v1", rows)


def _block_spans(unit: CodeUnitFlow) -> Iterator[SourceSpan]:
    """Yield the smallest span around the instructions of each block."""
    instructions: Columns = unit.code["instructions"]
    low, high = unit.code["bstart"], unit.code["bend"]
    spans = list(zip(instructions["bstart"], instructions["bend"], instructions["line"], strict=True))
    for block in unit.flow.blocks:
        own = spans[block.first : block.last]
        inside = [span for span in own if _is_inside(span[0], span[1], low, high)]
        if inside:
            start, _, line = min(inside)
            yield SourceSpan(start, max(span[1] for span in inside), line)
        else:
            yield SourceSpan(None, None, next((line for *_, line in own if line is not None), None))


def _is_inside(start: int | None, end: int | None, low: int | None, high: int) -> bool:
    """Return whether an instruction has a span in its unit: 3.11 misplaces parts of formatted strings."""
    if start is None or end is None:
        return False
    return low is None or (low <= start and end <= high)


def py_bc_cfg_edges_norm_v1(flow: FileFlow) -> Columns:
    """Return one row per control flow edge."""
    rows = []
    for unit in flow.units:
        instructions: Columns = unit.code["instructions"]
        ids = unit.block_ids
        key = key_of(unit.code_unit_id)
        for number, (kind, src, dst, decider) in enumerate(unit.flow.edges):
            offset = start = end = None
            if decider is not None:
                offset = instructions["offset"][decider]
                if kind in BRANCHES:
                    span = flow.conditions.span(instructions, decider)
                else:
                    span = instructions["bstart"][decider], instructions["bend"][decider]
                if _is_inside(*span, unit.code["bstart"], unit.code["bend"]):
                    start, end = span
            edge = f"cfg:{key}.{number_text(number)}"
            rows.append((unit.code_unit_id, edge, kind, ids[src], ids[dst], offset, start, end))
    return table_columns("py_bc_cfg_edges_norm_v1", rows)


def py_bc_def_use_events_v1(flow: FileFlow) -> Columns:
    """Return one row per definition, use and deletion of a variable."""
    rows = []
    for unit in flow.units:
        instructions: Columns = unit.code["instructions"]
        for index, event in enumerate(unit.events):
            event_id = unit.event_ids[index]
            if event_id is None:
                continue
            is_parameter = event.instruction == AT_ENTRY
            unbound = None
            if event.kind != "def" and event.var_kind in MAY_BE_UNBOUND:
                unbound = index in unit.reaching.unbound
            rows.append(
                (
                    unit.code_unit_id,
                    unit.block_ids[unit.event_blocks[index]],
                    event_id,
                    event.kind,
                    0 if is_parameter else instructions["offset"][event.instruction],
                    event.name,
                    event.var_kind,
                    None if is_parameter else instructions["opname"][event.instruction],
                    is_parameter,
                    unbound,
                    *unit.event_spans[index],
                )
            )
    return table_columns("py_bc_def_use_events_v1", rows)


def py_bc_reaches_v1(flow: FileFlow) -> Columns:
    """Return one row per definition and use it may reach."""
    rows = []
    for kind, (def_unit, definition), (use_unit, use) in flow.pairs:
        unit = flow.units[use_unit]
        def_id, use_id = flow.units[def_unit].event_ids[definition], unit.event_ids[use]
        # Events that only the analysis needs are in no pair.
        reach_id = f"reach:{_event_part(def_id)};{_event_part(use_id)}"
        span = unit.event_spans[use]
        rows.append((unit.code_unit_id, reach_id, kind, use_id, def_id, unit.events[use].name, *span))
    return table_columns("py_bc_reaches_v1", rows)


def _event_part(event: str | None) -> str:
    """Return an event id without its prefix.

    >>> _event_part("event:-Ypa08bsXihimzV9.000003")
    '-Ypa08bsXihimzV9.000003'
    """
    return (event or "").partition(":")[2]


def flow_problems(flow: FileFlow) -> Iterator[tuple[str, str]]:
    """Yield the code and message of a diagnostic for everything that was omitted."""
    if flow.excess_instructions:
        count = flow.excess_instructions
        message = f"{count} instructions are more than {MAX_INSTRUCTIONS}: no control and data flow"
        yield "too_much_code", message
    if flow.omitted_pairs:
        message = f"{flow.omitted_pairs} pairs of definition and use were left out: the file has too many"
        yield "too_many_reaches", message
