"""How many values are on the stack before each instruction of a code object.

The compiler knows and does not say. `dis.stack_effect` says how many values each operation pushes or pops, so
following control flow finds the depths again. For `for x in y: f`:

    0 RESUME   0 LOAD_NAME y   1 GET_ITER   1 FOR_ITER   2 STORE_NAME x   1 LOAD_NAME f   2 POP_TOP
    1 JUMP_BACKWARD   0 LOAD_CONST None   1 RETURN_VALUE

FOR_ITER goes on with an item more, or jumps with the iterator dropped: what jumps may have two effects. An
exception handler starts at the depth its table entry names, with the exception on it, and below that the
offset of the failed instruction if the entry says so.

The walk goes on until a return, a raise or an instruction it has seen, and keeps the targets of jumps for
later. What control never reaches has no depth: null. Every way to an instruction finds the same depth there;
the tests check it on all code they see, and the greatest depth against `co_stacksize`.

Tests: `tests/unit/extract/test_bytecode_files.py`.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from functools import lru_cache

from codeanatomy.extract.bytecode.instructions import Instructions

RETURN_GENERATOR = dis.opmap["RETURN_GENERATOR"]
LEAVING = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT")
JUMPING = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
# After these the next instruction is reached by a jump only.
ENDS = frozenset(dis.opmap[name] for name in (*LEAVING, *JUMPING) if name in dis.opmap)


@lru_cache(maxsize=16384)
def effect(op: int, arg: int | None, jump: bool) -> int:
    """Values pushed less values popped, when the operation jumps or when it goes on."""
    # A generator is resumed after it with a value on its stack. The compiler of 3.11 counts that value from
    # the entry on.
    return 1 if op == RETURN_GENERATOR else dis.stack_effect(op, arg, jump=jump)


def stack_depths(found: Instructions, handlers: Iterable[tuple[int, int]]) -> list[int | None]:
    """The depth before each instruction; a handler is an offset and the depth it starts with."""
    index = {offset: place for place, offset in enumerate(found.offsets)}
    opcodes, args, targets = found.opcodes, found.args, found.targets
    depths: list[int | None] = [None] * len(opcodes)
    waiting = [(index[offset], depth) for offset, depth in handlers]
    waiting.append((0, 0))
    while waiting:
        place, depth = waiting.pop()
        while depths[place] is None:
            depths[place] = depth
            op, arg, target = opcodes[place], args[place], targets[place]
            if target is not None:
                waiting.append((index[target], depth + effect(op, arg, True)))
            if op in ENDS:
                break
            depth += effect(op, arg, False)
            place += 1
    return depths
