"""Build the control flow graph of a code object: basic blocks and the edges between them.

`while x: f()` at module level, compiled by 3.11:

    block  instructions                                       edges
    0      RESUME, LOAD_NAME x, POP_JUMP_FORWARD_IF_FALSE     branch_true -> 6, branch_false -> 34
    6      PUSH_NULL, LOAD_NAME f, ..., POP_TOP, LOAD_NAME x,
           POP_JUMP_BACKWARD_IF_TRUE                          branch_true -> 6, branch_false -> 30
    30     LOAD_CONST None, RETURN_VALUE                      next -> exit
    34     LOAD_CONST None, RETURN_VALUE                      next -> exit

- A block begins at the first instruction, after every jump, return and raise, at every jump target, and at
  every border and handler of the exception table. So at most one handler protects a block.
- A block that an exception may leave has an `exception` edge to its handler; an explicit raise without a
  handler has one to the exit. That any call may fail and end the function is not an edge: every block would
  lead to the exit, and control dependence would be meaningless.
- Labels are those of the source: the compiler may test the opposite (`conditions`).
- A yield does not end a block: the frame continues when it is resumed.
- Unreachable code has blocks and edges too.

Tests: `tests/unit/normalize/test_flow_cases.py` (graphs written by hand),
`tests/unit/normalize/test_flow_oracle.py` (a second implementation).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from codeanatomy.file_view import Columns
from codeanatomy.normalize.flow.conditions import Conditions
from codeanatomy.normalize.flow.opcodes import Opcodes

BlockKind: TypeAlias = Literal["entry", "normal", "handler", "exit"]
EdgeKind: TypeAlias = Literal[
    "next", "jump", "branch_true", "branch_false", "loop_body", "loop_exit", "exception"
]
# The jump target of each instruction, as an offset.
Targets: TypeAlias = list[int | None]
BRANCH: dict[bool, EdgeKind] = {True: "branch_true", False: "branch_false"}


class Block(NamedTuple):
    """A basic block: instructions `[first, last)` of the code object, its bytes `[start, end)`."""

    start: int
    end: int
    kind: BlockKind
    first: int
    last: int


class Edge(NamedTuple):
    """An edge between blocks, given by number; `decider` is the instruction that chooses, if one does."""

    kind: EdgeKind
    src: int
    dst: int
    decider: int | None


class ControlFlow(Struct, frozen=True):
    """The control flow graph of a code object; the exit is the last block."""

    blocks: list[Block]
    edges: list[Edge]
    # Whether each instruction may raise.
    raising: list[bool]


def control_flow(code: dict[str, Any], rules: Opcodes, conditions: Conditions) -> ControlFlow:
    """Build the control flow graph of a row of `code_objects`."""
    instructions: Columns = code["instructions"]
    handlers: Columns = code["exception_table"]
    targets = [
        None if name in rules.offset_markers else target
        for name, target in zip(instructions["opname"], instructions["jump_target"], strict=True)
    ]
    blocks = _blocks(instructions, targets, handlers, code["code_len"], rules)
    raising = [name not in rules.never_raises for name in instructions["opname"]]
    number_at = {block.start: number for number, block in enumerate(blocks)}
    handler_of = _handlers_by_block(blocks, handlers)
    edges: list[Edge] = []
    for number, block in enumerate(blocks[:-1]):
        edges += _normal_edges(number, block, instructions, targets, number_at, rules, conditions)
        handler = handler_of.get(number)
        if handler is not None and any(raising[block.first : block.last]):
            edges.append(Edge("exception", number, number_at[handler], None))
        elif handler is None and instructions["opname"][block.last - 1] in rules.raises:
            edges.append(Edge("exception", number, len(blocks) - 1, block.last - 1))
    return ControlFlow(blocks, edges, raising)


def _blocks(
    instructions: Columns, targets: Targets, handlers: Columns, code_len: int, rules: Opcodes
) -> list[Block]:
    offsets, names = instructions["offset"], instructions["opname"]
    ends = rules.returns | rules.raises
    entered = set(handlers["target_offset"])
    starts = {0, *handlers["start_offset"], *handlers["end_offset"], *entered}
    for following, (name, target) in enumerate(zip(names, targets, strict=True), start=1):
        if target is not None:
            starts.add(target)
        if (target is not None or name in ends) and following < len(offsets):
            starts.add(offsets[following])
    firsts = [index for index, offset in enumerate(offsets) if offset in starts]
    blocks = []
    for first, last in zip(firsts, [*firsts[1:], len(offsets)], strict=True):
        start = offsets[first]
        end = offsets[last] if last < len(offsets) else code_len
        kind: BlockKind = "entry" if first == 0 else "handler" if start in entered else "normal"
        blocks.append(Block(start, end, kind, first, last))
    return [*blocks, Block(code_len, code_len, "exit", len(offsets), len(offsets))]


def _handlers_by_block(blocks: list[Block], handlers: Columns) -> dict[int, int]:
    """Return the handler's offset of each protected block; of overlapping ranges the first one counts."""
    handler_of: dict[int, int] = {}
    ranges = zip(handlers["start_offset"], handlers["end_offset"], handlers["target_offset"], strict=True)
    number_at = {block.start: number for number, block in enumerate(blocks)}
    for start, end, target in ranges:
        number = number_at[start]
        while blocks[number].start < end and number < len(blocks) - 1:
            handler_of.setdefault(number, target)
            number += 1
    return handler_of


def _normal_edges(
    number: int,
    block: Block,
    instructions: Columns,
    targets: Targets,
    number_at: dict[int, int],
    rules: Opcodes,
    conditions: Conditions,
) -> list[Edge]:
    """Return the edges of a block's last instruction, other than exceptions."""
    decider = block.last - 1
    name, target = instructions["opname"][decider], targets[decider]
    following = number + 1
    if name in rules.returns:
        return [Edge("next", number, len(number_at) - 1, decider)]
    if name in rules.raises:
        return []
    if target is None:
        return [Edge("next", number, following, None)]
    jumped_to = number_at[target]
    if name in rules.jumps:
        return [Edge("jump", number, jumped_to, decider)]
    if name in rules.iterations:
        return [Edge("loop_body", number, following, decider), Edge("loop_exit", number, jumped_to, decider)]
    truth = conditions.label(instructions, decider, rules.jumps_if[name])
    return [
        Edge(BRANCH[truth], number, jumped_to, decider),
        Edge(BRANCH[not truth], number, following, decider),
    ]
