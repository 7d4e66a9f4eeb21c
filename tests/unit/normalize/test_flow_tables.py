"""The four flow tables of a file: keys, blocks that tile the code, and the limits for generated code."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from codeanatomy import catalog
from codeanatomy.catalog.tables.columns import FILE_COLUMNS
from codeanatomy.file_view import Columns
from codeanatomy.node_ids import definition_key
from codeanatomy.normalize.flow import reaching
from codeanatomy.normalize.flow import tables as flow_tables
from codeanatomy.normalize.flow.tables import (
    FileFlow,
    analyze_flow,
    flow_problems,
    py_bc_blocks_norm_v1,
    py_bc_cfg_edges_norm_v1,
    py_bc_def_use_events_v1,
    py_bc_reaches_v1,
)
from support import corpus
from support.normalize_stage import file_of, source_of, sources_in

TABLES = {
    "py_bc_blocks_norm_v1": py_bc_blocks_norm_v1,
    "py_bc_cfg_edges_norm_v1": py_bc_cfg_edges_norm_v1,
    "py_bc_def_use_events_v1": py_bc_def_use_events_v1,
    "py_bc_reaches_v1": py_bc_reaches_v1,
}


def flow_in(text: str) -> FileFlow:
    return analyze_flow(file_of(source_of(text)))


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("text", ["", "def f(x): return x\n"])
def test_columns_are_those_of_the_catalogue(text: str) -> None:
    place = {column.name for column in FILE_COLUMNS}
    for name, make in TABLES.items():
        declared = [column for column in catalog.table(name).column_names if column not in place]
        assert list(make(flow_in(text))) == declared


def test_the_example_of_the_catalogue() -> None:
    """`def f(x): return x` has one entry, one exit, an edge, two events and the row that joins them."""
    flow = flow_in("def f(x): return x\n")
    inner = flow.units[1].code_unit_id
    blocks = [row for row in rows_of(py_bc_blocks_norm_v1(flow)) if row["code_unit_id"] == inner]
    edges = [row for row in rows_of(py_bc_cfg_edges_norm_v1(flow)) if row["code_unit_id"] == inner]
    events = [row for row in rows_of(py_bc_def_use_events_v1(flow)) if row["code_unit_id"] == inner]
    assert [row["bc_block_kind"] for row in blocks] == ["entry", "exit"]
    assert [(row["bc_edge_kind"], row["bc_src_block_id"], row["bc_dst_block_id"]) for row in edges] == [
        ("next", blocks[0]["bc_block_id"], blocks[1]["bc_block_id"])
    ]
    assert [(row["bc_event_kind"], row["bc_is_parameter"], row["bstart"]) for row in events] == [
        ("def", True, 6),
        ("use", False, 17),
    ]
    [reach] = rows_of(py_bc_reaches_v1(flow))
    assert reach["bc_def_event_id"] == events[0]["bc_event_id"]
    assert reach["bc_use_event_id"] == events[1]["bc_event_id"]
    assert (reach["bc_reach_kind"], reach["bstart"], reach["line"]) == ("local", 17, 1)


LAMBDAS = "x = 1\n@d\ndef f(a, b=lambda: 0):\n    return [lambda: a for _ in b], lambda: 0\n"


def test_ids_are_made_of_definitions_and_numbers() -> None:
    """Wherever a definition is in its file."""
    keys = {
        definition_key("test", "a.py", path): path
        for path in (
            "",
            "f",
            "f.<lambda>#0",
            "f.<lambda>#1",
            "f.<listcomp>#0",
            "f.<listcomp>#0.<lambda>#0",
        )
    }
    for text in (LAMBDAS, f"# Moved.\n\n{LAMBDAS}"):
        flow = flow_in(text)
        made = {keys[unit.code_unit_id.removeprefix("code:")]: unit.code["name"] for unit in flow.units}
        assert made == {
            "": "<module>",
            "f": "f",
            "f.<lambda>#0": "<lambda>",
            "f.<lambda>#1": "<lambda>",
            # From 3.12 on it has no code of its own; the keys of what is in it remain.
            **({"f.<listcomp>#0": "<listcomp>"} if sys.version_info < (3, 12) else {}),
            "f.<listcomp>#0.<lambda>#0": "<lambda>",
        }
        for unit in flow.units:
            key = unit.code_unit_id.removeprefix("code:")
            assert unit.block_ids == [f"block:{key}.{number:06}" for number in range(len(unit.block_ids))]
            events = [each for each in unit.event_ids if each is not None]
            assert events == [f"event:{key}.{number:06}" for number in range(len(events))]
        edges = py_bc_cfg_edges_norm_v1(flow)
        units = [unit.removeprefix("code:") for unit in edges["code_unit_id"]]
        assert [edge.partition(".")[0] for edge in edges["bc_edge_id"]] == [f"cfg:{key}" for key in units]
        for reach in rows_of(py_bc_reaches_v1(flow)):
            ends = (reach["bc_def_event_id"], reach["bc_use_event_id"])
            assert reach["bc_reach_id"] == f"reach:{';'.join(end.removeprefix('event:') for end in ends)}"


@pytest.mark.parametrize("name", ["requests", "flask"])
def test_keys_and_shapes_of_a_package(name: str) -> None:
    """Ids are unique over files, references hold, and the blocks of a unit tile its code."""
    seen: dict[str, set[str]] = {table: set() for table in TABLES}
    total = 0
    for source in sources_in(corpus.package(name)):
        flow = analyze_flow(file_of(source))
        made = {table: make(flow) for table, make in TABLES.items()}
        for table, columns in made.items():
            [key] = catalog.table(table).primary_key
            ids = columns[key]
            assert len(set(ids)) == len(ids)
            assert not seen[table] & set(ids)
            seen[table] |= set(ids)
            total += len(ids)
        blocks = set(made["py_bc_blocks_norm_v1"]["bc_block_id"])
        edges, events = made["py_bc_cfg_edges_norm_v1"], made["py_bc_def_use_events_v1"]
        assert {*edges["bc_src_block_id"], *edges["bc_dst_block_id"], *events["bc_block_id"]} <= blocks
        reaches = made["py_bc_reaches_v1"]
        kinds = dict(zip(events["bc_event_id"], events["bc_event_kind"], strict=True))
        assert {kinds[each] for each in reaches["bc_def_event_id"]} <= {"def"}
        assert {kinds[each] for each in reaches["bc_use_event_id"]} <= {"use"}
        for unit in flow.units:
            code = [block for block in unit.flow.blocks if block.kind != "exit"]
            assert [block.end for block in code[:-1]] == [block.start for block in code[1:]]
            assert (code[0].start, code[-1].end) == (0, unit.code["code_len"])
    assert total > 10_000


def test_variables_in_groups_give_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound on memory changes nothing but memory."""
    sources = sources_in(corpus.package("requests"))[:6]
    whole = [py_bc_reaches_v1(analyze_flow(file_of(source))) for source in sources]
    events = [py_bc_def_use_events_v1(analyze_flow(file_of(source))) for source in sources]
    monkeypatch.setattr(reaching, "STATE_BITS", 1)
    for source, reaches, event in zip(sources, whole, events, strict=True):
        flow = analyze_flow(file_of(source))
        assert py_bc_def_use_events_v1(flow) == event
        assert sorted(py_bc_reaches_v1(flow)["bc_reach_id"]) == sorted(reaches["bc_reach_id"])


def test_too_many_pairs_are_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x = 0\nwhile c:\n" + " if a: x = 1\n" * 30 + " use(x)\n" * 30
    flow = flow_in(text)
    assert len(flow.pairs) > 900
    assert list(flow_problems(flow)) == []
    monkeypatch.setattr(reaching, "MAX_PAIRS", 100)
    flow = flow_in(text)
    assert 0 < len(flow.pairs) <= 100
    [(code, message)] = flow_problems(flow)
    assert code == "too_many_reaches"
    assert int(message.split()[0]) > 800


def test_too_many_pairs_between_units_are_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "f()\nx = 1\n" * 20 + "def g(): " + "; ".join(["x()"] * 20) + "\n"
    assert sum(pair.kind == "global" for pair in flow_in(text).pairs) == 400
    monkeypatch.setattr(reaching, "MAX_PAIRS", 100)
    flow = flow_in(text)
    assert sum(pair.kind == "global" for pair in flow.pairs) == 0
    assert [code for code, _ in flow_problems(flow)] == ["too_many_reaches"]


def test_a_generated_file_of_many_branches_is_done_in_bounded_time() -> None:
    """Twenty thousand blocks and as many variables; without groups the states would be some gigabytes."""
    text = "".join(f"if c: v{number} = {number}\nw = v{number}\n" for number in range(5_000))
    flow = flow_in(text)
    found = [pair for pair in flow.pairs if pair.kind == "local"]
    assert len(found) == 5_000


@pytest.mark.system
def test_straight_code_of_many_names_is_done_in_bounded_memory() -> None:
    """Forty thousand variables in one block: masks of all of them at once would be gigabytes."""
    flow = flow_in("".join(f"v{number} = 1\n" for number in range(40_000)))
    assert len(flow.units[0].events) == 40_000


def test_many_names_of_one_statement_are_looked_up_by_name() -> None:
    names = [f"n{number}" for number in range(8_000)]
    began = time.process_time()
    flow = flow_in(f"from m import {', '.join(names)}\nlambda {', '.join(names)}: 0\n")
    assert sum(place.bstart is not None for unit in flow.units for place in unit.event_spans) == 16_000
    assert time.process_time() - began < 10


def test_pairs_that_are_left_out_do_not_come_back_as_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f():\n global x\n" + " if c: x = 1\n" * 5 + " g(x)\n" * 5
    whole = {pair for pair in flow_in(text).pairs if pair.kind == "global"}
    monkeypatch.setattr(reaching, "MAX_PAIRS", 60)
    assert {pair for pair in flow_in(text).pairs if pair.kind == "global"} <= whole


def test_a_file_of_too_many_instructions_has_no_flow_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level of `finally` doubles the code; a thousand bytes would be gigabytes of rows."""
    depth = 12
    text = "".join(f"{' ' * level}try: x = 1\n{' ' * level}finally:\n" for level in range(depth))
    text += " " * depth + "x = 2\n"
    assert len(flow_in(text).units[0].flow.blocks) > 2**depth
    monkeypatch.setattr(flow_tables, "MAX_INSTRUCTIONS", 10_000)
    flow = flow_in(text)
    assert flow.units == []
    [(code, _)] = flow_problems(flow)
    assert code == "too_much_code"
