"""The meanings of operations against what the running interpreter says of them."""

from __future__ import annotations

import dis
import platform

import pytest

from codeanatomy.file_view import AST, BYTECODE, FileView
from codeanatomy.normalize.flow.opcodes import ACCESSES, KNOWN_VERSIONS, Opcodes, opcodes_of
from codeanatomy.normalize.flow.tables import analyze_flow, py_bc_blocks_norm_v1
from support.normalize_stage import file_of, source_of


def current() -> Opcodes:
    rules = opcodes_of(platform.python_version())
    assert rules is not None
    return rules


def test_every_jump_of_this_python_is_known() -> None:
    jumps = {dis.opname[op] for op in (*dis.hasjrel, *dis.hasjabs) if op < 256}
    rules = current()
    assert jumps <= {*rules.jumps, *rules.iterations, *rules.offset_markers, *rules.jumps_if}


def test_every_variable_of_this_python_is_known() -> None:
    """Operations with a local or a cell are events, but for those that hand over the cell itself."""
    touching = {dis.opname[op] for op in (*dis.haslocal, *dis.hasfree) if op < 256}
    # 3.12 lists forms that only running code has; they are without a name.
    touching = {name for name in touching if not name.startswith("<")}
    assert touching - set(ACCESSES) == {"LOAD_CLOSURE", "MAKE_CELL"} & touching


def test_names_that_are_no_variables() -> None:
    named = {dis.opname[op] for op in dis.hasname if op < 256}
    others = named - set(ACCESSES)
    assert all("ATTR" in name or "METHOD" in name or name.startswith("IMPORT_") for name in others), others


@pytest.mark.parametrize("version", KNOWN_VERSIONS)
def test_a_known_version_has_rules(version: str) -> None:
    assert opcodes_of(f"{version}.1") is not None


@pytest.mark.parametrize("version", ["2.7.18", "3.10.1", "3.99.0", "nonsense", ""])
def test_an_unknown_version_is_refused(version: str) -> None:
    assert opcodes_of(version) is None
    file = file_of(source_of("x = 1\n"))
    bytecode = {**file.row(BYTECODE), "python_version": version}
    other = FileView("r", file.file_id, "a.py", {AST: file.row(AST), BYTECODE: bytecode})
    assert py_bc_blocks_norm_v1(analyze_flow(other))["bc_block_id"] == []
