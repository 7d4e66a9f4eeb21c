"""Read the control flow of a function, class body or module: its basic blocks, and the edges between them.

    flow = control_flow(reader, resolve(reader, "shop.cart.Cart.total"))
    flow.blocks[0]     # FlowBlock("block:3f...000000", "entry", line=28, lines=(28,), ...)
    flow.edges[0]      # BlockEdge("block:3f...000000", "block:3f...000001", "CFG_BRANCH_TRUE", None)

The span of a block reaches from its first to its last instruction, and that of a `with` or a loop may include
other blocks. So its lines are those of the names that it reads and writes, and of its first instruction.

Of several definitions of one name (overloads) the last one is taken.

Tests: `tests/unit/query/test_control_flow.py`.
"""

from __future__ import annotations

from msgspec import Struct

from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import Query, Reader, Slice, edges, nodes

CFG_EDGES = ("CFG_NEXT", "CFG_JUMP", "CFG_BRANCH_TRUE", "CFG_BRANCH_FALSE", "CFG_EXCEPTION")
EVENTS = ("STEP_DEF", "STEP_USE", "STEP_DEL")


class FlowBlock(Struct, frozen=True):
    """A basic block."""

    node_id: str
    # entry, normal, handler or exit.
    subkind: str
    bstart: int | None
    bend: int | None
    # Lines of its names and of its first instruction, ascending; empty for blocks that the compiler adds.
    lines: tuple[int, ...]


class BlockEdge(Struct, frozen=True):
    """A way from a block to another."""

    source: str
    target: str
    kind: str
    # loop_body and loop_exit for iterators.
    role: str | None


class FunctionFlow(Struct, frozen=True):
    """The control flow of one code unit."""

    path: str
    # Lines and bytes of the code unit.
    line: int
    bstart: int
    bend: int
    # In the order of the bytecode: the first is the entry.
    blocks: tuple[FlowBlock, ...]
    edges: tuple[BlockEdge, ...]


def control_flow(reader: Reader, symbol: Symbol) -> FunctionFlow | None:
    """Return the control flow of a symbol, or None if it has no code."""
    unit = _code_unit(reader, symbol)
    if unit is None:
        return None
    unit_id, path, line, bstart, bend = unit
    blocks = Query(
        "SELECT h.ordinal, n.node_id, n.subkind, n.bstart, n.bend, n.line FROM h"
        " JOIN n ON n.node_id = h.dst_node_id",
        {
            "h": Slice("cpg_edges_by_src", edge_kind=("HAS_BLOCK",), src_node_id=(unit_id,)),
            "n": nodes(("CFG_BLOCK",), symbol.repo_id, path=(path,)),
        },
        order=("ordinal", "node_id"),
    )
    rows = reader.rows(blocks)
    ids = [row[1] for row in rows]
    if not ids:
        return None
    steps = Query(
        "SELECT e.src_node_id, e.line FROM e WHERE e.line IS NOT NULL",
        {"e": edges(EVENTS, symbol.repo_id, path=(path,), src_node_id=ids)},
    )
    lines: dict[str, set[int]] = {}
    for node_id, number in reader.rows(steps):
        lines.setdefault(node_id, set()).add(number)
    between = Query(
        "SELECT e.src_node_id, e.dst_node_id, e.edge_kind, e.role, e.ordinal FROM e",
        {"e": edges(CFG_EDGES, symbol.repo_id, path=(path,), src_node_id=ids)},
        order=("src_node_id", "ordinal", "edge_kind", "dst_node_id"),
        columns=("src_node_id", "dst_node_id", "edge_kind", "role"),
    )
    return FunctionFlow(
        path,
        line,
        bstart,
        bend,
        tuple(
            # The entry also writes the parameters, above its first instruction.
            FlowBlock(
                node_id,
                kind,
                start,
                end,
                tuple(
                    sorted(each for each in {first, *lines.get(node_id, ())} if each and each >= (first or 0))
                ),
            )
            for _, node_id, kind, start, end, first in rows
        ),
        tuple(BlockEdge(*row) for row in reader.rows(between)),
    )


def _code_unit(reader: Reader, symbol: Symbol) -> tuple[str, str, int, int, int] | None:
    """Return id and place of the last code unit of a symbol."""
    query = Query(
        "SELECT u.node_id, d.path, d.line, d.bstart, d.bend FROM e"
        " JOIN d ON d.node_id = e.src_node_id JOIN u ON u.node_id = e.dst_node_id"
        " WHERE d.bstart IS NOT NULL",
        {
            "e": edges(("HAS_CODE_UNIT",), symbol.repo_id, src_node_id=symbol.ids),
            "d": nodes(("FUNCTION", "CLASS", "MODULE"), symbol.repo_id, node_id=symbol.ids),
            "u": nodes(("CODE_UNIT",), symbol.repo_id),
        },
        order=("path", "line DESC"),
    )
    return next(iter(reader.rows(query)), None)
