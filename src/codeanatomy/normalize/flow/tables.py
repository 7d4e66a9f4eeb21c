"""The four tables of control and data flow, from the code objects of one file.

    flow = flow_of(file)                       # blocks, events and reaching definitions of every unit
    py_bc_blocks_norm_v1(flow)["bc_block_kind"]     # ["entry", "exit"]
    py_bc_reaches_v1(flow)["bc_reach_kind"]         # ["local"]

Everything about a file comes from that file alone, so files are worked on in any order and on any machine.
The parts are `control_flow`, `def_use`, `reaching` (within a unit), `scopes` (between units) and `anchors`
(where in the source); what depends on the interpreter is in `opcodes`.

Tests: `tests/unit/normalize/test_flow_tables.py`; the parts name theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct

from codeanatomy.ids import id_maker, stable_id
from codeanatomy.normalize.anchors import Anchors, Span
from codeanatomy.normalize.file_view import Columns, File, columns_of
from codeanatomy.normalize.flow.blocks import ControlFlow, control_flow
from codeanatomy.normalize.flow.cross_scope import Pair, Solved, pairs_between
from codeanatomy.normalize.flow.events import AT_ENTRY, Event, events_of
from codeanatomy.normalize.flow.opcodes import opcodes_of
from codeanatomy.normalize.flow.reaching import MAY_BE_UNBOUND, Budget, Reached, reaching

# The fields of `bytecode_files_v1` that are read.
UNIT_FIELDS = (
    "code_unit_key",
    "parent_key",
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
INSTRUCTION_FIELDS = ("offset", "opname", "argval", "jump_target", "bstart", "bend", "line")
EXCEPTION_FIELDS = ("start_offset", "end_offset", "target_offset")
# Of a file. The compiler copies `finally` blocks: twenty nested ones, of 800 bytes, are millions.
MAX_INSTRUCTIONS = 1_000_000


class Place(NamedTuple):
    """A span and its line."""

    bstart: int | None
    bend: int | None
    line: int | None


class Unit(Struct, frozen=True):
    """A code object and all that is known of it."""

    code_unit_id: str
    unit: dict[str, Any]
    flow: ControlFlow
    block_ids: list[str]
    # Those of the analysis alone, saves and restores, have no id.
    events: list[Event]
    event_ids: list[str | None]
    # Number of an event's block, and its place in the source.
    event_blocks: list[int]
    event_places: list[Place]
    reached: Reached


class Flow(Struct, frozen=True):
    """The units of a file, and the pairs of definition and use; so many more were left out."""

    units: list[Unit]
    pairs: list[Pair]
    left_out: int = 0
    # Instructions of a file that has too many; then nothing else is told.
    too_many: int = 0


def flow_of(file: File) -> Flow:
    """Analyse the file's code objects; nothing for a file without, or of an unknown interpreter."""
    version, objects = file.bytecode.get("python_version"), file.bytecode.get("code_objects")
    rules = opcodes_of(version) if version is not None else None
    if rules is None or objects is None:
        return Flow([], [])
    size = sum(len(steps["offset"]) for steps in objects["instructions"])
    if size > MAX_INSTRUCTIONS:
        return Flow([], [], too_many=size)
    anchors = Anchors(file.ast)
    budget = Budget()
    units = []
    names = list(objects)
    for values in zip(*objects.values(), strict=True):
        unit = dict(zip(names, values, strict=True))
        flow = control_flow(unit, rules)
        events = events_of(unit, rules)
        reached = reaching(flow, events, budget)
        units.append(_unit(file.file_id, unit, flow, events, reached, anchors))
    solved = [Solved(each.unit, each.events, each.reached) for each in units]
    between = pairs_between(solved, budget)
    return Flow(units, [*_local_pairs(units), *between], budget.left_out)


def _unit(
    file_id: str,
    unit: dict[str, Any],
    flow: ControlFlow,
    events: list[Event],
    reached: Reached,
    anchors: Anchors,
) -> Unit:
    code_unit_id = stable_id("code", file_id, unit["code_unit_key"])
    steps: Columns = unit["instructions"]
    block_of: list[int] = []
    for number, block in enumerate(flow.blocks):
        block_of += [number] * (block.last - block.first)
    event_id, block_id = id_maker("event", code_unit_id), id_maker("block", code_unit_id)
    ids: list[str | None] = []
    for event in events:
        if event.kind == "save" or event.restores:
            ids.append(None)
        else:
            place = "entry" if event.step == AT_ENTRY else steps["offset"][event.step]
            ids.append(event_id(place, event.ordinal))
    return Unit(
        code_unit_id,
        unit,
        flow,
        [block_id(block.start) for block in flow.blocks],
        events,
        ids,
        [0 if event.step == AT_ENTRY else block_of[event.step] for event in events],
        list(_event_places(unit, events, anchors)),
        reached,
    )


def _event_places(unit: dict[str, Any], events: list[Event], anchors: Anchors) -> Iterator[Place]:
    steps: Columns = unit["instructions"]
    starts, ends, lines = steps["bstart"], steps["bend"], steps["line"]
    whole = unit["bstart"], unit["bend"]
    stores: Counter[tuple[Span, str]] = Counter()
    for event in events:
        if event.step == AT_ENTRY:
            found, line = anchors.parameter(whole, event.name), None
        else:
            span, line = (starts[event.step], ends[event.step]), lines[event.step]
            if span[0] is None or _made_up(steps, event):
                found = None
            elif event.ordinal:
                found = anchors.fused(line, span, event.name)
            elif event.kind == "def":
                found = anchors.definition(span, event.name, stores[span, event.name])
                stores[span, event.name] += 1
            else:
                found = anchors.use(span, event.name)
        if found is None:
            yield Place(None, None, line)
        else:
            yield Place(*found, anchors.lines[found[0]])


def _made_up(steps: Columns, event: Event) -> bool:
    """Whether it is of the `e = None; del e` after a handler: three instructions that share one place."""
    names = steps["opname"]
    first = event.step - (1 if event.kind == "def" else 2)
    if event.kind == "use" or first < 0 or first + 3 > len(names) or names[first] != "LOAD_CONST":
        return False
    three = slice(first, first + 3)
    shared = len(set(zip(steps["bstart"][three], steps["bend"][three], strict=True))) == 1
    stored, deleted = names[first + 1 : first + 3]
    same = steps["argval"][first + 1] == steps["argval"][first + 2]
    return shared and same and stored.startswith("STORE_") and deleted.startswith("DELETE_")


def _local_pairs(units: list[Unit]) -> Iterator[Pair]:
    for number, unit in enumerate(units):
        for place, definitions in unit.reached.definitions.items():
            if unit.events[place].kind == "use":
                for definition in definitions:
                    yield Pair("local", (number, definition), (number, place))


def py_bc_blocks_norm_v1(flow: Flow) -> Columns:
    """One row per basic block, and one per exit."""
    rows = []
    for unit in flow.units:
        places = _block_places(unit)
        for block, block_id, place in zip(unit.flow.blocks, unit.block_ids, places, strict=True):
            rows.append((unit.code_unit_id, block_id, block.kind, block.start, block.end, *place))
    return columns_of("py_bc_blocks_norm_v1", rows)


def _block_places(unit: Unit) -> Iterator[Place]:
    """The hull of what a block's instructions come from."""
    steps: Columns = unit.unit["instructions"]
    low, high = unit.unit["bstart"], unit.unit["bend"]
    places = list(zip(steps["bstart"], steps["bend"], steps["line"], strict=True))
    for block in unit.flow.blocks:
        own = places[block.first : block.last]
        inside = [place for place in own if _is_inside(place[0], place[1], low, high)]
        if inside:
            start, _, line = min(inside)
            yield Place(start, max(place[1] for place in inside), line)
        else:
            yield Place(None, None, next((line for *_, line in own if line is not None), None))


def _is_inside(start: int | None, end: int, low: int | None, high: int) -> bool:
    """Whether an instruction has a place, and in the unit: 3.11 misplaces parts of formatted strings."""
    return start is not None and (low is None or (low <= start and end <= high))


def py_bc_cfg_edges_norm_v1(flow: Flow) -> Columns:
    """One row per way from block to block."""
    rows = []
    for unit in flow.units:
        steps: Columns = unit.unit["instructions"]
        ids = unit.block_ids
        edge_id = id_maker("cfg", unit.code_unit_id)
        for kind, src, dst, decider in unit.flow.edges:
            offset = start = end = None
            if decider is not None:
                offset = steps["offset"][decider]
                span = steps["bstart"][decider], steps["bend"][decider]
                if _is_inside(*span, unit.unit["bstart"], unit.unit["bend"]):
                    start, end = span
            made = edge_id(unit.flow.blocks[src].start, unit.flow.blocks[dst].start, kind)
            rows.append((unit.code_unit_id, made, kind, ids[src], ids[dst], offset, start, end))
    return columns_of("py_bc_cfg_edges_norm_v1", rows)


def py_bc_def_use_events_v1(flow: Flow) -> Columns:
    """One row per definition, use and deletion of a variable."""
    rows = []
    for unit in flow.units:
        steps: Columns = unit.unit["instructions"]
        for place, event in enumerate(unit.events):
            event_id = unit.event_ids[place]
            if event_id is None:
                continue
            entering = event.step == AT_ENTRY
            unbound = None
            if event.kind != "def" and event.var_kind in MAY_BE_UNBOUND:
                unbound = place in unit.reached.unbound
            rows.append(
                (
                    unit.code_unit_id,
                    unit.block_ids[unit.event_blocks[place]],
                    event_id,
                    event.kind,
                    0 if entering else steps["offset"][event.step],
                    event.name,
                    event.var_kind,
                    None if entering else steps["opname"][event.step],
                    entering,
                    unbound,
                    *unit.event_places[place],
                )
            )
    return columns_of("py_bc_def_use_events_v1", rows)


def py_bc_reaches_v1(flow: Flow) -> Columns:
    """One row per definition and use it may reach."""
    rows = []
    for kind, (def_unit, definition), (use_unit, use) in flow.pairs:
        unit = flow.units[use_unit]
        def_id, use_id = flow.units[def_unit].event_ids[definition], unit.event_ids[use]
        reach_id = stable_id("reach", def_id, use_id)
        place = unit.event_places[use]
        rows.append((unit.code_unit_id, reach_id, kind, use_id, def_id, unit.events[use].name, *place))
    return columns_of("py_bc_reaches_v1", rows)


def flow_problems(flow: Flow) -> Iterator[tuple[str, str]]:
    """What was left out, as code and message of a diagnostic."""
    if flow.too_many:
        said = f"{flow.too_many} instructions are more than {MAX_INSTRUCTIONS}: no control and data flow"
        yield "too_much_code", said
    if flow.left_out:
        said = f"{flow.left_out} pairs of definition and use were left out: the file has too many"
        yield "too_many_reaches", said
