"""Compute the stack depth before each instruction of a code object.

A code object does not contain the depths. `dis.stack_effect` gives the number of values that each operation
pushes or pops, so the depths are computed by following control flow. For `for x in y: f`:

    0 RESUME   0 LOAD_NAME y   1 GET_ITER   1 FOR_ITER   2 STORE_NAME x   1 LOAD_NAME f   2 POP_TOP
    1 JUMP_BACKWARD   0 LOAD_CONST None   1 RETURN_VALUE

FOR_ITER continues with one more item, or jumps with the iterator removed: a jump may have two effects. An
exception handler starts at the depth of its table entry, with the exception pushed, and below that the offset
of the failed instruction if the entry has `lasti`.

The walk continues until a return, a raise or a visited instruction, and keeps the targets of jumps for later.
Unreachable instructions have no depth: null. Every path to an instruction gives the same depth; the tests
check this on all code they compile, and the greatest depth against `co_stacksize`.

Tests: `tests/unit/extract/test_bytecode_files.py`.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from functools import lru_cache

from codeanatomy.extract.bytecode.instructions import Instructions

RETURN_GENERATOR = dis.opmap.get("RETURN_GENERATOR")
EXITS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT")
JUMPS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
# Operations after which the next instruction can be reached by a jump only.
NO_FALL_THROUGH = frozenset(dis.opmap[name] for name in (*EXITS, *JUMPS) if name in dis.opmap)


@lru_cache(maxsize=16384)
def stack_effect(op: int, arg: int | None, jump: bool) -> int:
    """Return values pushed minus values popped, if the operation jumps or if it does not."""
    # A generator is resumed after it with a value on its stack. The compiler of 3.11 counts that value from
    # the entry on.
    return 1 if op == RETURN_GENERATOR else dis.stack_effect(op, arg, jump=jump)


def stack_depths(instructions: Instructions, handlers: Iterable[tuple[int, int]]) -> list[int | None]:
    """Return the depth before each instruction; a handler is an offset and the depth it starts with."""
    index_at = {offset: index for index, offset in enumerate(instructions.offsets)}
    opcodes, args, targets = instructions.opcodes, instructions.args, instructions.targets
    depths: list[int | None] = [None] * len(opcodes)
    pending = [(index_at[offset], depth) for offset, depth in handlers]
    pending.append((0, 0))
    while pending:
        index, depth = pending.pop()
        while depths[index] is None:
            depths[index] = depth
            op, arg, target = opcodes[index], args[index], targets[index]
            if target is not None:
                pending.append((index_at[target], depth + stack_effect(op, arg, True)))
            if op in NO_FALL_THROUGH:
                break
            depth += stack_effect(op, arg, False)
            index += 1
    return depths
