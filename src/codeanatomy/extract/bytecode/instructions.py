"""Decode the instructions of a code object: fold prefixes, resolve arguments and jump targets.

>>> code = compile("while x: y = 'é'", "<example>", "exec")
>>> result = decode_instructions(code, [repr(value) for value in code.co_consts])
>>> [*zip(result.offsets, result.opnames, result.args, result.kinds, result.argvals)][1:4]
[(2, 'LOAD_NAME', 0, 'name', 'x'), (4, 'POP_JUMP_FORWARD_IF_FALSE', 6, 'jump', '18'), \
(6, 'LOAD_CONST', 0, 'const', "'é'")]

Bytecode is a sequence of two-byte units: operation, argument. An argument above 255 is split over
EXTENDED_ARG prefixes; some operations are followed by CACHE units, which are zeros in `co_code`.

- An offset is that of the instruction's first byte, prefixes included: jumps to it, the exception range that
  covers it and the range of its line all begin there. (dis lists the prefix as a separate instruction, and
  calls this `start_offset` from 3.13 on.)
- An argument includes its prefixes. An operation without one has neither argument nor kind nor argval: null.
- Kinds are const, name, local, free (closure cells, the code's own included), compare, jump and other, as the
  tables of dis classify operations.
- The argval is the constant's text, the name, the comparison, the target offset; for others what dis prints
in
  parentheses (`+=`, `closure`), or else the number.
- A jump's argument counts units from the end of the jump and its caches, backwards if JUMP_BACKWARD is in the
  name of the operation.

The encoding of names in arguments is implemented for 3.11 only. Under another Python `decode_instructions`
uses dis, which is slower and gives the same columns; from 3.13 on one instruction may name two variables, "a,
b". The tests compare both. Tests: `tests/unit/extract/test_bytecode_files.py`.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import NamedTuple

# The first two bytes of a .pyc file identify the bytecode of a release; 3.14 by its source.
RELEASES = {3495: "3.11", 3531: "3.12", 3571: "3.13", 3627: "3.14"}
RELEASE = RELEASES.get(int.from_bytes(MAGIC_NUMBER[:2], "little"))
LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
BACKWARD = frozenset(op for name, op in dis.opmap.items() if "JUMP_BACKWARD" in name)
EMPTY = compile("", "<empty>", "exec")


def _kinds() -> list[str | None]:
    """Return the kind of argument of each operation; if tables overlap, the first that dis checks wins."""
    tables = {
        "const": dis.hasconst,
        "name": dis.hasname,
        "jump": [*dis.hasjabs, *dis.hasjrel],
        "local": dis.haslocal,
        "free": dis.hasfree,
        "compare": dis.hascompare,
    }
    with_argument = getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 256))
    kinds: list[str | None] = ["other" if op in with_argument else None for op in range(256)]
    for kind, table in reversed(tables.items()):
        for op in table:
            if op < 256:
                kinds[op] = kind
    return kinds


ARGUMENT_KINDS = _kinds()


class Instructions(NamedTuple):
    """Instructions of one code object, by columns; `units` are indexes into `co_positions`."""

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


def decode_instructions(code: CodeType, consts: Sequence[str]) -> Instructions:
    """Decode the instructions of a code object; `consts` are the texts of its constants."""
    return decode_by_tables(code, consts) if RELEASE == "3.11" else decode_by_dis(code, consts)


def decode_by_tables(code: CodeType, consts: Sequence[str]) -> Instructions:
    """Decode 3.11's bytecode."""
    units, starts, opcodes, numbers = _fold_prefixes(code.co_code)
    slots = _slots(code)
    pools = {"const": consts, "name": code.co_names, "local": slots, "free": slots}
    kinds = [ARGUMENT_KINDS[op] for op in opcodes]
    args: list[int | None] = [*numbers]
    argvals: list[str | None] = []
    targets: list[int | None] = [None] * len(units)
    for index, (op, arg, kind) in enumerate(zip(opcodes, numbers, kinds, strict=True)):
        if kind is None:
            args[index] = None
            argvals.append(None)
        elif (pool := pools.get(kind)) is not None:
            argvals.append(pool[arg >> 1 if op == LOAD_GLOBAL else arg])
        elif kind == "jump":
            # A jump of 3.11 has no caches, so it ends with its own unit.
            target = 2 * (units[index] + 1 + (-arg if op in BACKWARD else arg))
            targets[index] = target
            argvals.append(str(target))
        else:
            argvals.append(_describe_argument(op, arg))
    return Instructions(units, [2 * unit for unit in starts], opcodes, args, kinds, argvals, targets)


def _fold_prefixes(raw: bytes) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return the units of the instructions, those of their first prefixes, operations and full arguments."""
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
    """Return the names of the frame's variables as LOAD_FAST and LOAD_DEREF number them, each name once."""
    local = code.co_varnames
    return [*local, *(name for name in code.co_cellvars if name not in local), *code.co_freevars]


@lru_cache(maxsize=4096)
def _describe_argument(op: int, arg: int) -> str:
    """Return the text of dis for an argument that is neither a name nor a constant."""
    prefixes = b"".join(
        bytes((dis.EXTENDED_ARG, arg >> shift & 255)) for shift in (24, 16, 8) if arg >> shift
    )
    *_, instruction = dis.get_instructions(EMPTY.replace(co_code=prefixes + bytes((op, arg & 255))))
    return instruction.argrepr or str(instruction.argval)


def decode_by_dis(code: CodeType, consts: Sequence[str]) -> Instructions:
    """Decode with dis, which has the tables of the running Python."""
    columns = Instructions([], [], [], [], [], [], [])
    start: int | None = None
    # dis writes every constant, also an integer that is too long to be written in decimal.
    for instruction in dis.get_instructions(code.replace(co_consts=(None,) * len(code.co_consts))):
        if instruction.opcode == dis.EXTENDED_ARG:
            start = instruction.offset if start is None else start
            continue
        kind = ARGUMENT_KINDS[instruction.opcode]
        columns.units.append(instruction.offset // 2)
        columns.offsets.append(instruction.offset if start is None else start)
        columns.opcodes.append(instruction.opcode)
        columns.args.append(instruction.arg)
        columns.kinds.append(kind)
        columns.targets.append(instruction.argval if kind == "jump" else None)
        columns.argvals.append(None if kind is None else _argval(instruction, kind, consts))
        start = None
    return columns


def _argval(instruction: dis.Instruction, kind: str, consts: Sequence[str]) -> str:
    if kind == "const" and instruction.arg is not None:
        return consts[instruction.arg]
    if kind == "jump" or isinstance(instruction.argval, str):
        return str(instruction.argval)
    return instruction.argrepr or str(instruction.argval)
