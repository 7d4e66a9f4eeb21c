"""Hand-drawn pictures of control flow and of reaching definitions, one construct each.

The notation is explained in `tests/support/flow_cases.py`. Steps within a line, from the `def` line to the
first statement, and into code that only passes an exception on are not drawn. Each picture is held against
the oracle and against the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from codeanatomy.sources.source_file import Source
from oracles.bytecode_oracle import compiled, source_of
from oracles.flow_oracle import Rows, Unit, facts_of, rows_of, units_of
from support.flow_cases import ARROWS, CASES, drawn, parts, passes_on


def lines_of(unit: Unit) -> dict[int, int]:
    """Line by offset; an instruction without one belongs to the next that has one."""
    found: dict[int, int] = {}
    line = unit.code.co_firstlineno
    for step in reversed(unit.steps):
        line = step.line or line
        found[step.offset] = line
    return found


def flow_picture(unit: Unit, rows: Rows) -> set[str]:
    blocks = [(start, end) for key, start, end, _ in rows["blocks"] if key == unit.key and start < end]
    inside = {start: unit.steps[unit.at[start] : unit.at.get(end)] for start, end in blocks}
    edges = [edge[1:] for edge in rows["edges"] if edge[0] == unit.key]
    thrown = {source: to for kind, source, to in edges if kind == "exception"}
    passed_on = {start: thrown[start] for start, steps in inside.items() if passes_on(steps)}
    hops = {
        source: to
        for kind, source, to in edges
        if kind == "jump" and [step.line for step in inside[source]] == [None]
    }
    plain: dict[int, int] = {}
    labelled: set[tuple[int, str, int]] = set()
    for start, steps in inside.items():
        if start not in passed_on:
            offsets = [step.offset for step in steps]
            plain.update(pairwise(offsets))
    for kind, start, to in edges:
        arrow, target = ARROWS[kind], to
        while target in passed_on or target in hops:
            if target in passed_on:
                arrow = "raise"
            target = passed_on.get(target) or hops[target]
        last = inside[start][-1]
        only_passing_on = to in passed_on or last.opname == "RERAISE"
        if (
            start in passed_on
            or start in hops
            or (arrow == "raise" and target == unit.length and only_passing_on)
        ):
            continue
        if arrow == "to":
            plain[last.offset] = target
        else:
            sources = [step for step in inside[start] if step.may_raise] if kind == "exception" else [last]
            labelled.update((step.offset, arrow, target) for step in sources)
    return drawn_by_lines(unit, plain, labelled)


def drawn_by_lines(unit: Unit, plain: dict[int, int], labelled: set[tuple[int, str, int]]) -> set[str]:
    """The steps from line to line; one that follows an answer within its line bears the answer's name."""
    lines: dict[int, int | str] = {**lines_of(unit), unit.length: "exit"}
    arrows = {(source, arrow, to) for source, arrow, to in labelled if lines[source] != lines[to]}
    starts = {(arrow, to) for source, arrow, to in labelled if lines[source] == lines[to]}
    starts |= {("to", to) for source, _, to in arrows}
    starts |= {("to", to) for source, to in plain.items() if lines[source] != lines[to]}
    starts.add(("to", 0))
    drawn = {f"{lines[source]} {arrow} {lines[to]}" for source, arrow, to in arrows}
    for arrow, start in starts:
        here, seen = start, {start}
        while here in plain and lines[plain[here]] == lines[start] and plain[here] not in seen:
            here = plain[here]
            seen.add(here)
        if here in plain and lines[plain[here]] != lines[start] and lines[start] != unit.code.co_firstlineno:
            drawn.add(f"{lines[start]} {arrow} {lines[plain[here]]}")
    return drawn


def reach_picture(units: list[Unit], rows: Rows) -> set[str]:
    """Definitions and the lines that use them, except what class bodies are given by the compiler."""
    lines = {(unit.key, offset): line for unit in units for offset, line in lines_of(unit).items()}
    lines |= {(unit.key, 0): unit.code.co_firstlineno for unit in units}
    found = set()
    for kind, (unit, offset, name), (other, use_offset, _) in rows["reaches"]:
        label = name if kind == "local" else f"{kind} {name}"
        found.add(f"{label} {lines[unit, offset]}-{lines[other, use_offset]}")
    return found


def unbound_picture(units: list[Unit], rows: Rows) -> set[str]:
    """Only of variables the unit itself defines: the others are builtins, or the module's."""
    lines = {(unit.key, offset): line for unit in units for offset, line in lines_of(unit).items()}
    own = {(unit, name) for unit, _, kind, name, *_ in rows["events"] if kind != "use"}
    return {
        f"{name} {lines[unit, offset]}"
        for unit, offset, _, name, _, _, unbound in rows["events"]
        if unbound and (unit, name) in own
    }


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("opinion", [facts_of, rows_of], ids=["oracle", "tables"])
def test_a_construct_is_as_drawn(opinion: Callable[[Source], Rows], name: str) -> None:
    case = drawn(name)
    source = source_of(case.code.lstrip("\n"))
    units = units_of(compiled(source))
    rows = opinion(source)
    unit = next(unit for unit in units if unit.code.co_name == case.of)
    assert flow_picture(unit, rows) == parts(case.flow)
    assert reach_picture(units, rows) == parts(case.reaches)
    assert unbound_picture(units, rows) == parts(case.unbound)


@pytest.mark.parametrize("opinion", [facts_of, rows_of], ids=["oracle", "tables"])
def test_blocks_tile_the_code(opinion: Callable[[Source], Rows]) -> None:
    for case in CASES.values():
        source = source_of(case.code.lstrip("\n"))
        rows = opinion(source)
        for unit in units_of(compiled(source)):
            blocks = sorted(block[1:] for block in rows["blocks"] if block[0] == unit.key)
            kinds = [kind for _, _, kind in blocks]
            assert kinds[0] == "entry"
            assert blocks[-1] == (unit.length, unit.length, "exit")
            assert set(kinds[1:-1]) <= {"normal", "handler"}
            assert [0, *(end for _, end, _ in blocks[:-1])] == [start for start, _, _ in blocks]


@pytest.mark.parametrize("opinion", [facts_of, rows_of], ids=["oracle", "tables"])
def test_handlers_are_where_exceptions_go(opinion: Callable[[Source], Rows]) -> None:
    source = source_of(CASES["try, except, finally"].code.lstrip("\n"))
    unit = units_of(compiled(source))[1]
    lines = lines_of(unit)
    starts = [
        start for key, start, _, kind in opinion(source)["blocks"] if (key, kind) == (unit.key, "handler")
    ]
    places = sorted(lines[start] for start in starts if unit.steps[unit.at[start]].opname == "PUSH_EXC_INFO")
    assert places == [4, 7]
    # Each of the two has another that passes on what is raised inside of it.
    assert len(starts) == 4
