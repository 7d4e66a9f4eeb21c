"""Basic blocks of a code object, and the ways between them.

`while x: f()` at module level, compiled by 3.11:

    block  instructions                                       edges
    0      RESUME, LOAD_NAME x, POP_JUMP_FORWARD_IF_FALSE     branch_true -> 6, branch_false -> 34
    6      PUSH_NULL, LOAD_NAME f, ..., POP_TOP, LOAD_NAME x,
           POP_JUMP_BACKWARD_IF_TRUE                          branch_true -> 6, branch_false -> 30
    30     LOAD_CONST None, RETURN_VALUE                      next -> exit
    34     LOAD_CONST None, RETURN_VALUE                      next -> exit

- A block begins at the first instruction, after every jump, return and raise, at every target, and at every
  border and handler of the exception table. So one handler at most protects a block.
- A block that an exception may leave goes to its handler by `exception`; an explicit raise that nobody
  catches goes to the exit by `exception`. That any call may fail and end the function is not drawn: every
  block would lead to the exit, and nothing would depend on anything.
- A yield is no end: the frame goes on when it is resumed.
- Unreachable code has blocks and edges too.

Tests: `tests/unit/normalize/test_flow_cases.py` (hand-drawn), `tests/unit/normalize/test_flow_oracle.py` (a second implementation).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from codeanatomy.normalize.file_view import Columns
from codeanatomy.normalize.flow.opcodes import Opcodes

BlockKind: TypeAlias = Literal["entry", "normal", "handler", "exit"]
EdgeKind: TypeAlias = Literal[
    "next", "jump", "branch_true", "branch_false", "loop_body", "loop_exit", "exception"
]
# Where each instruction jumps.
Targets: TypeAlias = list[int | None]
BRANCH: dict[bool, EdgeKind] = {True: "branch_true", False: "branch_false"}


class Block(NamedTuple):
    """Instructions `[first, last)` of the unit, which are its bytes `[start, end)`."""

    start: int
    end: int
    kind: BlockKind
    first: int
    last: int


class Edge(NamedTuple):
    """From block to block, by their numbers; `decider` is the instruction that chooses, if one does."""

    kind: EdgeKind
    src: int
    dst: int
    decider: int | None


class ControlFlow(Struct, frozen=True):
    """The graph of a unit; the exit is the last block."""

    blocks: list[Block]
    edges: list[Edge]
    # By instruction: whether it may raise.
    raising: list[bool]


def control_flow(unit: dict[str, Any], rules: Opcodes) -> ControlFlow:
    """The graph of a row of `code_objects`."""
    steps: Columns = unit["instructions"]
    handlers: Columns = unit["exception_table"]
    targets = [
        None if name in rules.marks else target
        for name, target in zip(steps["opname"], steps["jump_target"], strict=True)
    ]
    blocks = _blocks(steps, targets, handlers, unit["code_len"], rules)
    raising = [name not in rules.never_raises for name in steps["opname"]]
    number = {block.start: place for place, block in enumerate(blocks)}
    protected = _protected(blocks, handlers)
    edges: list[Edge] = []
    for place, block in enumerate(blocks[:-1]):
        edges += _ways(place, block, steps, targets, number, rules)
        handler = protected.get(place)
        if handler is not None and any(raising[block.first : block.last]):
            edges.append(Edge("exception", place, number[handler], None))
        elif handler is None and steps["opname"][block.last - 1] in rules.raises:
            edges.append(Edge("exception", place, len(blocks) - 1, block.last - 1))
    return ControlFlow(blocks, edges, raising)


def _blocks(
    steps: Columns, targets: Targets, handlers: Columns, code_len: int, rules: Opcodes
) -> list[Block]:
    offsets, names = steps["offset"], steps["opname"]
    ends = rules.returns | rules.raises
    entered = set(handlers["target_offset"])
    starts = {0, *handlers["start_offset"], *handlers["end_offset"], *entered}
    for place, (name, target) in enumerate(zip(names, targets, strict=True), start=1):
        if target is not None:
            starts.add(target)
        if (target is not None or name in ends) and place < len(offsets):
            starts.add(offsets[place])
    firsts = [place for place, offset in enumerate(offsets) if offset in starts]
    blocks = []
    for first, last in zip(firsts, [*firsts[1:], len(offsets)], strict=True):
        start = offsets[first]
        end = offsets[last] if last < len(offsets) else code_len
        kind: BlockKind = "entry" if first == 0 else "handler" if start in entered else "normal"
        blocks.append(Block(start, end, kind, first, last))
    return [*blocks, Block(code_len, code_len, "exit", len(offsets), len(offsets))]


def _protected(blocks: list[Block], handlers: Columns) -> dict[int, int]:
    """Offset of the handler of each protected block; of ranges that overlap, the first one counts."""
    found: dict[int, int] = {}
    ranges = zip(handlers["start_offset"], handlers["end_offset"], handlers["target_offset"], strict=True)
    places = {block.start: place for place, block in enumerate(blocks)}
    for start, end, target in ranges:
        place = places[start]
        while blocks[place].start < end and place < len(blocks) - 1:
            found.setdefault(place, target)
            place += 1
    return found


def _ways(
    place: int, block: Block, steps: Columns, targets: Targets, number: dict[int, int], rules: Opcodes
) -> list[Edge]:
    """Where the last instruction of a block goes, exceptions apart."""
    decider = block.last - 1
    name, target = steps["opname"][decider], targets[decider]
    after = place + 1
    if name in rules.returns:
        return [Edge("next", place, len(number) - 1, decider)]
    if name in rules.raises:
        return []
    if target is None:
        return [Edge("next", place, after, None)]
    there = number[target]
    if name in rules.jumps:
        return [Edge("jump", place, there, decider)]
    if name in rules.steps:
        return [Edge("loop_body", place, after, decider), Edge("loop_exit", place, there, decider)]
    truth = rules.taken[name]
    return [Edge(BRANCH[truth], place, there, decider), Edge(BRANCH[not truth], place, after, decider)]
