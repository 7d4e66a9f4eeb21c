"""Branches are labelled as the source has their conditions, whatever the compiler makes of these."""

from __future__ import annotations

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.file_view import BYTECODE, FileView
from codeanatomy.normalize.flow.tables import analyze_flow, py_bc_cfg_edges_norm_v1
from support.normalize_stage import file_of, source_of

# By condition: the texts that the labels of its branches speak of.
CONDITIONS = {
    "x": {"x"},
    "not x": {"not x"},
    "not not x": {"not not x"},
    "not (\n x)": {"not (\n x)"},
    "x is None": {"x is None"},
    "x is not None": {"x is not None"},
    "not x is None": {"not x is None"},
    "not x is not None": {"not x is not None"},
    "not not x is not None": {"not not x is not None"},
    "x is y": {"x is y"},
    "x is not y": {"x is not y"},
    "not x is y": {"not x is y"},
    "not x is not y": {"not x is not y"},
    "not x in y": {"not x in y"},
    "not x not in y": {"not x not in y"},
    "x not in y": {"x not in y"},
    "not x == y": {"not x == y"},
    "not x < y < z": {"not x < y < z"},
    "not x is y is not z": {"not x is y is not z"},
    "not f(x is not y)": {"not f(x is not y)"},
    "x and not y": {"x", "not y"},
    "not x or y": {"not x", "y"},
    "not (x and y)": {"not (x and y)"},
    "not (x or not y) and z": {"not (x or not y)", "z"},
    "not (x and (y or not z is None))": {"not (x and (y or not z is None))"},
    "(not x) == y": {"(not x) == y"},
    "not (x if y else z)": {"not (x if y else z)", "y"},
    "not x if not y else z is not None": {"not x", "not y", "z is not None"},
    "not (w := x)": {"not (w := x)"},
    "not f(x or y)": {"not f(x or y)", "x or y"},
}
# Statements with a condition, and calls that follow if it is true, and if it is false.
STATEMENTS = {
    "if": "if {}:\n  yes()\nelse:\n  no()\n",
    "elif": "if first():\n  pass\nelif {}:\n  yes()\nelse:\n  no()\n",
    "while": "while {}:\n  yes()\nno()\n",
    "conditional expression": "yes() if ({}) else no()\n",
    "assert": "assert {}, no()\nyes()\n",
    "guard": "match x:\n  case {{}} if {}:\n    yes()\n  case _:\n    no()\n",
    "comprehension": "[yes() for x in y if ({})]\n",
}


def branches_of(text: str) -> list[tuple[str, str | None, str]]:
    """The branches of a program: kind, text under the span, function that is called where it leads."""
    source = source_of(text)
    flow = analyze_flow(file_of(source))
    called: dict[str, str] = {}
    for unit in flow.units:
        for block, block_id in zip(unit.flow.blocks, unit.block_ids, strict=True):
            argvals = unit.code["instructions"]["argval"][block.first : block.last]
            called[block_id] = next((name for name in argvals if name in {"yes", "no"}), "")
    edges = py_bc_cfg_edges_norm_v1(flow)
    names = ("bc_edge_kind", "bc_src_block_id", "bc_dst_block_id", "bstart", "bend")
    rows = list(zip(*(edges[name] for name in names), strict=True))
    following = {src: dst for kind, src, dst, *_ in rows if kind in {"next", "jump"}}
    branches = []
    for kind, _, target, start, end in rows:
        block = target
        if kind.startswith("branch_"):
            under = None if start is None else source.utf8[start:end].decode()
            # Loops lead back.
            seen = {block}
            while not called[block] and following.get(block, block) not in seen:
                block = following[block]
                seen.add(block)
            branches.append((kind, under, called[block]))
    return branches


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_branch_is_labelled_by_the_condition_of_the_source(condition: str, statement: str) -> None:
    branches = branches_of(STATEMENTS[statement].format(condition))
    labels = {(kind, called) for kind, _, called in branches if called}
    expected = {("branch_true", "yes"), ("branch_false", "no")}
    assert labels == (expected if statement != "comprehension" else {("branch_true", "yes")})
    texts = {text for _, text, _ in branches} - {"first()"}
    if statement != "guard":
        assert texts == CONDITIONS[condition]


def test_not_as_a_value_is_executed_and_inverts_nothing() -> None:
    """The first operand of `or` is tested after `not`: if it is true, the second is not evaluated."""
    branches = branches_of("z = not x or yes()\n")
    assert [(kind, called) for kind, _, called in branches if called == "yes"] == [("branch_false", "yes")]
    branches = branches_of("z = not (x or yes())\n")
    assert [(kind, called) for kind, _, called in branches if called == "yes"] == [("branch_false", "yes")]


def test_a_file_without_a_syntax_tree_has_the_labels_of_the_compiler() -> None:
    cells = bytecode_files_v1(source_of("if not x: yes()\n"), ExtractOptions()).cells
    flow = analyze_flow(FileView("r", "file:f", "a.py", {BYTECODE: cells}))
    assert set(py_bc_cfg_edges_norm_v1(flow)["bc_edge_kind"]) >= {"branch_true", "branch_false"}
