"""Extract the code objects that CPython compiles a file to, with their instructions and source spans.

The text is compiled and never run. `f = lambda: x` makes two code objects:

| code_unit_key | instructions |
|---|---|
| `<module>` | RESUME, LOAD_CONST `<lambda>`, MAKE_FUNCTION, STORE_NAME f, LOAD_CONST None, RETURN_VALUE |
| `<module>/<lambda>@1#0` | RESUME, LOAD_GLOBAL x, RETURN_VALUE |

A key is the parent's key, the name, the first line, and a number among children that share both: two lambdas
of one line are `#0` and `#1`, in the order of the parent's constants.

Decisions about columns: - Spans are CPython's positions of an instruction. They are null where a part is
missing, where the position is
  not in the file, and where the span is empty: CPython writes columns 0 to 0 for generated code, such as
  RESUME or the `return None` of an empty body. The line is kept. Other generated code has the position of the
  last expression before it: `e = None; del e` after `except E as e:`, the cell after a class with `super()`.
- The span of a unit is that of the instruction of its parent that loads it: the `def` without decorators, the
  class, lambda or comprehension. Null for code that no instruction loads, such as a function below `if 0:`;
  the whole file for the module.
- `is_jump_target` covers jumps only. Exception handlers are entered by `exception_table`. - `line_table` is
`co_lines`, with neighbours of one line joined; line 0, which a module starts with, is null. - The text of a
constant is the same in every process: members of a frozenset are sorted by their text, code is
  its name, an integer of more than 2,048 bits is in hex because Python may refuse to write it in decimal.

`bytecode.instructions` decodes instructions, `bytecode.stack_depth` computes depths. A warning of the
compiler becomes one problem, though it compiles a `finally` block twice. Under an interpreter whose bytecode
is not known (`RELEASES`) a file has no code objects, and a problem that names the interpreter.

Tests: `tests/unit/extract/test_bytecode_files.py`.
"""

from __future__ import annotations

import platform
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any, TypeAlias

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.bytecode import instructions as bytecode
from codeanatomy.extract.bytecode.instructions import Instructions, decode_instructions
from codeanatomy.extract.bytecode.stack_depth import stack_depths
from codeanatomy.extract.evidence import MESSAGE_CHARS, ExtractorResult, Problem, problem_from
from codeanatomy.sources.source_file import Source

VERSION = f"cpython {platform.python_version()}, rules 1"
# Columns that are attributes of a code object with the prefix `co_`.
NUMBERS = ("argcount", "posonlyargcount", "kwonlyargcount", "nlocals", "stacksize", "flags", "firstlineno")
NAMES = ("varnames", "freevars", "cellvars", "names")
# Longer integers may have more digits than Python's smallest limit for writing them in decimal, 640.
DECIMAL_BITS = 2048
UNKNOWN_BYTECODE = (
    f"the bytecode of {platform.python_implementation()} {platform.python_version()} is not known: "
    f"build with Python {' or '.join(bytecode.RELEASES.values())}"
)

Columns: TypeAlias = dict[str, list[Any]]
Span: TypeAlias = tuple[int | None, int | None]
NO_SPAN: Span = (None, None)


def bytecode_files_v1(source: Source, options: ExtractOptions) -> ExtractorResult:
    """Extract the code objects that the running Python compiles the file to."""
    cells: dict[str, Any] = {"python_version": platform.python_version()}
    code, problems = _compile(source)
    if code is not None and bytecode.RELEASE is None:
        problems.append(Problem("error", "decode", "UnknownBytecode", UNKNOWN_BYTECODE))
    elif code is not None:
        cells["code_objects"] = _code_objects(source, code, options.max_value_chars)
    return ExtractorResult(cells, tuple(problems))


def _compile(source: Source) -> tuple[CodeType | None, list[Problem]]:
    code, problems = None, []
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        try:
            code = compile(source.text, "<source>", "exec", flags=0, dont_inherit=True, optimize=0)
        # Besides SyntaxError: ValueError, RecursionError, MemoryError, OverflowError, SystemError.
        except Exception as error:  # noqa: BLE001
            problems.append(problem_from(source, "compile", error))
    unique = {(warning.category.__name__, str(warning.message), warning.lineno): None for warning in recorded}
    for kind, message, line in unique:
        problems.append(Problem("warning", "compile", kind, message[:MESSAGE_CHARS], line=line))
    return code, problems


def _code_objects(source: Source, module: CodeType, limit: int) -> Columns:
    """Return every code object in preorder, by columns."""
    columns: Columns = {}
    pending: list[tuple[CodeType, str, str | None, Span]] = [
        (module, module.co_name, None, (0, len(source.utf8)))
    ]
    bounds = [*source.line_starts, len(source.utf8)]
    while pending:
        code, key, parent_key, span = pending.pop()
        kinds = [type(value).__name__ for value in code.co_consts]
        texts = [constant_text(value)[:limit] for value in code.co_consts]
        instructions = decode_instructions(code, texts)
        exceptions = exception_table(code.co_exceptiontable)
        spans = _spans(code, instructions.units, bounds)
        row: dict[str, Any] = {
            "code_unit_key": key,
            "parent_key": parent_key,
            "qualname": code.co_qualname,
            "name": code.co_name,
            **{name: getattr(code, "co_" + name) for name in NUMBERS},
            **{name: list(getattr(code, "co_" + name)) for name in NAMES},
            "code_len": len(code.co_code),
            "consts": {"kind": kinds, "repr": texts},
            "instructions": _instructions(instructions, exceptions, spans),
            "exception_table": exceptions,
            "line_table": line_table(code),
            "bstart": span[0],
            "bend": span[1],
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
        children = list(_children(code, key, instructions, spans))
        pending.extend(reversed(children))
    return columns


def _instructions(instructions: Instructions, exceptions: Columns, spans: Columns) -> Columns:
    targets = set(instructions.targets)
    handlers = [
        (target, depth + lasti + 1)
        for target, depth, lasti in zip(
            exceptions["target_offset"], exceptions["depth"], exceptions["lasti"], strict=True
        )
    ]
    return {
        "offset": instructions.offsets,
        "opname": instructions.opnames,
        "arg": instructions.args,
        "argval_kind": instructions.kinds,
        "argval": instructions.argvals,
        "jump_target": instructions.targets,
        "is_jump_target": [offset in targets for offset in instructions.offsets],
        "stack_depth": stack_depths(instructions, handlers),
        **spans,
    }


def _spans(code: CodeType, units: Sequence[int], bounds: Sequence[int]) -> Columns:
    """Return span and line of each instruction; `bounds` are the starts of the lines, and the file's end."""
    positions = list(code.co_positions())
    count = len(bounds) - 1
    starts: list[int | None] = []
    ends: list[int | None] = []
    lines: list[int | None] = []
    for unit in units:
        line, end_line, col, end_col = positions[unit]
        start = end = None
        if line is None or not 0 < line <= count:
            line = None
        elif end_line is not None and end_line <= count and col is not None and end_col is not None:
            start = bounds[line - 1] + col
            end = bounds[end_line - 1] + end_col
            if not start < end or start > bounds[line] or end > bounds[end_line]:
                start = end = None
        starts.append(start)
        ends.append(end)
        lines.append(line)
    return {"bstart": starts, "bend": ends, "line": lines}


def _children(
    code: CodeType, key: str, instructions: Instructions, spans: Columns
) -> Iterator[tuple[CodeType, str, str, Span]]:
    """Yield the code objects among the constants with their keys and the spans of their definitions."""
    inner = {index: value for index, value in enumerate(code.co_consts) if isinstance(value, CodeType)}
    if not inner:
        return
    load_spans: dict[int, set[Span]] = {index: set() for index in inner}
    for kind, arg, start, end in zip(
        instructions.kinds, instructions.args, spans["bstart"], spans["bend"], strict=True
    ):
        if kind == "const" and arg in load_spans:
            load_spans[arg].add((start, end))
    counts: Counter[str] = Counter()
    for index, value in inner.items():
        name = f"{key}/{value.co_name}@{value.co_firstlineno}"
        span = load_spans[index].pop() if len(load_spans[index]) == 1 else NO_SPAN
        yield value, f"{name}#{counts[name]}", key, span
        counts[name] += 1


def exception_table(raw: bytes) -> Columns:
    """Decode the protected ranges: four numbers each, in groups of six bits, high ones first, bit 6: "more".

    >>> exception_table(bytes([0x80 + 1, 0x41, 0x02, 0x05, 0x03]))["end_offset"]
    [134]
    """
    numbers, number = [], 0
    for byte in raw:
        number = number << 6 | byte & 63
        if not byte & 64:
            numbers.append(number)
            number = 0
    starts = [2 * unit for unit in numbers[::4]]
    return {
        "start_offset": starts,
        "end_offset": [start + 2 * size for start, size in zip(starts, numbers[1::4], strict=True)],
        "target_offset": [2 * unit for unit in numbers[2::4]],
        "depth": [packed >> 1 for packed in numbers[3::4]],
        "lasti": [bool(packed & 1) for packed in numbers[3::4]],
    }


def line_table(code: CodeType) -> Columns:
    """Return the ranges of bytecode of one line."""
    starts: list[int] = []
    ends: list[int] = []
    lines: list[int | None] = []
    for start, end, number in code.co_lines():
        line = number or None
        if lines and line == lines[-1]:
            ends[-1] = end
        else:
            starts.append(start)
            ends.append(end)
            lines.append(line)
    return {"start_offset": starts, "end_offset": ends, "line": lines}


def constant_text(value: object) -> str:
    """Return the `repr` of a constant, made the same in every process.

    >>> constant_text((frozenset({"b", "a"}), -0.0, ..., 1 << 4096 > 0, compile("", "", "exec")))
    "(frozenset({'a', 'b'}), -0.0, Ellipsis, True, <module>)"
    """
    if isinstance(value, tuple):
        inner = ", ".join(map(constant_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(sorted(map(constant_text, value)))}}})" if value else "frozenset()"
    if isinstance(value, CodeType):
        return value.co_name
    if isinstance(value, int) and value.bit_length() > DECIMAL_BITS:
        return hex(value)
    return repr(value)
