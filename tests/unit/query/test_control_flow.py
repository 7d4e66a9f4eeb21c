"""Blocks of functions: their lines are those of the source, and edges lead to blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.symbols import resolve
from codeanatomy.query.walks.control_flow import CFG_EDGES, FunctionFlow, control_flow
from support.ask_lake import reader_of


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def flow_of(reader: LightReader, name: str, repo_id: str) -> FunctionFlow:
    flow = control_flow(reader, resolve(reader, name, repo_id))
    assert flow is not None
    return flow


def test_edges_join_blocks_and_the_entry_is_first(reader: LightReader) -> None:
    flow = flow_of(reader, "flask.app.Flask.make_response", "flask")
    ids = {block.node_id for block in flow.blocks}
    assert len(ids) == len(flow.blocks) > 10
    assert flow.blocks[0].subkind == "entry"
    assert [block.subkind for block in flow.blocks].count("exit") == 1
    assert {end for edge in flow.edges for end in (edge.source, edge.target)} <= ids
    assert {edge.kind for edge in flow.edges} <= set(CFG_EDGES)
    assert {"CFG_BRANCH_TRUE", "CFG_BRANCH_FALSE", "CFG_EXCEPTION"} <= {edge.kind for edge in flow.edges}


def test_lines_are_inside_of_the_function(reader: LightReader) -> None:
    symbol = resolve(reader, "flask.app.Flask.make_response", "flask")
    flow = flow_of(reader, symbol.symbol, "flask")
    assert (flow.path, flow.line) == (symbol.path, symbol.line)
    lines = [line for block in flow.blocks for line in block.lines]
    assert lines
    assert min(lines) > flow.line
    for block in flow.blocks:
        assert list(block.lines) == sorted(block.lines)


def test_what_has_no_code_has_no_control_flow(reader: LightReader) -> None:
    assert control_flow(reader, resolve(reader, "builtins.len", "flask")) is None
