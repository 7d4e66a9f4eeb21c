"""A code object's instructions: prefixes folded, arguments resolved, jumps placed.

>>> code = compile("while x: y = 'é'", "<example>", "exec")
>>> found = decoded(code, [repr(value) for value in code.co_consts])
>>> [*zip(found.offsets, found.opnames, found.args, found.kinds, found.argvals)][1:4]
[(2, 'LOAD_NAME', 0, 'name', 'x'), (4, 'POP_JUMP_FORWARD_IF_FALSE', 6, 'jump', '18'), \
(6, 'LOAD_CONST', 0, 'const', "'é'")]

Bytecode is a row of two-byte units: operation, argument. An argument above 255 is spread over EXTENDED_ARG
prefixes; some operations are followed by CACHE units, which `co_code` shows as zeros.

- An offset is that of the instruction's first byte, prefixes included: what jumps to it, the range that
  protects it and the run of its line all begin there. (dis shows the prefix as an instruction of its own, and
  calls this `start_offset` from 3.13 on.)
- An argument is whole. An operation without one has neither argument nor kind nor argval: null.
- Kinds are const, name, local, free (closure cells, the code's own included), compare, jump and other, as the
  tables of dis sort operations.
- The argval is the constant's text, the name, the comparison, the offset jumped to; of the others what dis
  prints in parentheses (`+=`, `closure`), or else the number.
- A jump's argument counts units from the end of the jump and its caches, backwards where its name says so.

How names are packed into arguments is known here for 3.11 only. Under another Python `decoded` asks dis,
which is slower and gives the same columns; from 3.13 on one instruction may name two variables, "a, b". The
tests compare both ways. Tests: `tests/unit/extract/test_bytecode_files.py`.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import NamedTuple

# The first two bytes of a .pyc file name the bytecode; this is 3.11's.
KNOWN = int.from_bytes(MAGIC_NUMBER[:2], "little") == 3495
LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
BACKWARD = frozenset(op for name, op in dis.opmap.items() if "JUMP_BACKWARD" in name)
EMPTY = compile("", "<empty>", "exec")


def _kinds() -> list[str | None]:
    """The kind of argument of each operation; where tables overlap, the first that dis would ask wins."""
    tables = {
        "const": dis.hasconst,
        "name": dis.hasname,
        "jump": [*dis.hasjabs, *dis.hasjrel],
        "local": dis.haslocal,
        "free": dis.hasfree,
        "compare": dis.hascompare,
    }
    takes = getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 256))
    kinds: list[str | None] = ["other" if op in takes else None for op in range(256)]
    for kind, table in reversed(tables.items()):
        for op in table:
            if op < 256:
                kinds[op] = kind
    return kinds


KINDS = _kinds()


class Instructions(NamedTuple):
    """Instructions of one code object, by columns; `units` is where `co_positions` has each of them."""

    units: list[int]
    offsets: list[int]
    opcodes: list[int]
    args: list[int | None]
    kinds: list[str | None]
    argvals: list[str | None]
    targets: list[int | None]

    @property
    def opnames(self) -> list[str]:
        names = dis.opname
        return [names[op] for op in self.opcodes]


def decoded(code: CodeType, consts: Sequence[str]) -> Instructions:
    """The instructions of the code; `consts` are the texts of its constants."""
    return by_tables(code, consts) if KNOWN else by_dis(code, consts)


def by_tables(code: CodeType, consts: Sequence[str]) -> Instructions:
    """Decode 3.11's bytecode."""
    units, starts, opcodes, numbers = _folded(code.co_code)
    slots = _slots(code)
    pools = {"const": consts, "name": code.co_names, "local": slots, "free": slots}
    kinds = [KINDS[op] for op in opcodes]
    args: list[int | None] = [*numbers]
    argvals: list[str | None] = []
    targets: list[int | None] = [None] * len(units)
    for place, (op, arg, kind) in enumerate(zip(opcodes, numbers, kinds, strict=True)):
        if kind is None:
            args[place] = None
            argvals.append(None)
        elif (pool := pools.get(kind)) is not None:
            argvals.append(pool[arg >> 1 if op == LOAD_GLOBAL else arg])
        elif kind == "jump":
            # A jump of 3.11 has no caches, so it ends with its own unit.
            target = 2 * (units[place] + 1 + (-arg if op in BACKWARD else arg))
            targets[place] = target
            argvals.append(str(target))
        else:
            argvals.append(_described(op, arg))
    return Instructions(units, [2 * unit for unit in starts], opcodes, args, kinds, argvals, targets)


def _folded(raw: bytes) -> tuple[list[int], list[int], list[int], list[int]]:
    """Per instruction: its unit, the unit of its first prefix, operation and whole argument."""
    operations, arguments = raw[::2], raw[1::2]
    units = [unit for unit, op in enumerate(operations) if op]
    if dis.EXTENDED_ARG not in operations:
        return units, units, [op for op in operations if op], [arguments[unit] for unit in units]
    kept, starts, numbers = [], [], []
    prefix, start = 0, -1
    for unit in units:
        arg = prefix | arguments[unit]
        start = unit if start < 0 else start
        if operations[unit] == dis.EXTENDED_ARG:
            prefix = arg << 8
            continue
        kept.append(unit)
        starts.append(start)
        numbers.append(arg)
        prefix, start = 0, -1
    return kept, starts, [operations[unit] for unit in kept], numbers


def _slots(code: CodeType) -> list[str]:
    """Names of the frame's variables as LOAD_FAST and LOAD_DEREF count them: a parameter has one slot."""
    local = code.co_varnames
    return [*local, *(name for name in code.co_cellvars if name not in local), *code.co_freevars]


@lru_cache(maxsize=4096)
def _described(op: int, arg: int) -> str:
    """What an argument that is neither a name nor a constant stands for, in the words of dis."""
    prefixes = b"".join(
        bytes((dis.EXTENDED_ARG, arg >> shift & 255)) for shift in (24, 16, 8) if arg >> shift
    )
    *_, found = dis.get_instructions(EMPTY.replace(co_code=prefixes + bytes((op, arg & 255))))
    return found.argrepr or str(found.argval)


def by_dis(code: CodeType, consts: Sequence[str]) -> Instructions:
    """Ask dis, which knows the tables of the Python that runs."""
    found = Instructions([], [], [], [], [], [], [])
    start: int | None = None
    for step in dis.get_instructions(code):
        if step.opcode == dis.EXTENDED_ARG:
            start = step.offset if start is None else start
            continue
        kind = KINDS[step.opcode]
        found.units.append(step.offset // 2)
        found.offsets.append(step.offset if start is None else start)
        found.opcodes.append(step.opcode)
        found.args.append(step.arg)
        found.kinds.append(kind)
        found.targets.append(step.argval if kind == "jump" else None)
        found.argvals.append(None if kind is None else _argval(step, kind, consts))
        start = None
    return found


def _argval(step: dis.Instruction, kind: str, consts: Sequence[str]) -> str:
    if kind == "const" and step.arg is not None:
        return consts[step.arg]
    if kind == "jump" or isinstance(step.argval, str):
        return str(step.argval)
    return step.argrepr or str(step.argval)
