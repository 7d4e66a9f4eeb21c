"""Compare bytecode rows with CPython: dis, stack sizes, syntax tree and text."""

from __future__ import annotations

import ast
import dis
import math
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from types import CodeType
from typing import Any

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.sources.source_file import Source, decode

OPTIONS = ExtractOptions()
Row = dict[str, Any]


def source_of(text: str | bytes) -> Source:
    source = decode("a.py", text.encode() if isinstance(text, str) else text)
    assert isinstance(source, Source)
    return source


def rows(columns: dict[str, list[Any]]) -> list[Row]:
    """Return columns as one mapping per row."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def compiled(source: Source) -> CodeType:
    return compile(source.text, "<oracle>", "exec", dont_inherit=True, optimize=0)


def code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from code_objects(value)


TABLES = {
    "const": dis.hasconst,
    "name": dis.hasname,
    "jump": [*dis.hasjrel, *dis.hasjabs],
    "local": dis.haslocal,
    "free": dis.hasfree,
    "compare": dis.hascompare,
}


def argument(step: dis.Instruction, texts: list[str]) -> tuple[str | None, str | None]:
    """Return kind and text of an argument, from dis."""
    if step.arg is None:
        return None, None
    kind = next((kind for kind, table in TABLES.items() if step.opcode in table), "other")
    if kind == "const":
        return kind, texts[step.arg]
    # An operation that names two variables has both as a tuple.
    in_words = kind == "other" or isinstance(step.argval, tuple)
    return kind, (step.argrepr or str(step.argval)) if in_words else str(step.argval)


def place(step: dis.Instruction, source: Source) -> tuple[int | None, int | None, int | None]:
    assert step.positions is not None
    line, end_line, col, end_col = step.positions
    start = None if line is None or col is None else source.offset_at(line, col)
    end = None if end_line is None or end_col is None else source.offset_at(end_line, end_col)
    if start is None or end is None or start == end:
        return None, None, line or None
    return start, end, line


def disassembled(code: CodeType, source: Source, texts: list[str]) -> dict[str, list[Any]]:
    """The columns of `instructions` except the depth, from dis."""
    names = ("offset", "opname", "arg", "argval_kind", "argval", "jump_target", "is_jump_target")
    found: dict[str, list[Any]] = {name: [] for name in (*names, "bstart", "bend", "line")}
    prefix: dis.Instruction | None = None
    for step in dis.get_instructions(code, show_caches=False, adaptive=False):
        if step.opname == "EXTENDED_ARG":
            prefix = prefix or step
            continue
        head = prefix or step
        kind, text = argument(step, texts)
        target = step.argval if kind == "jump" else None
        jumped = head.is_jump_target or step.is_jump_target
        told = (head.offset, step.opname, step.arg, kind, text, target, jumped, *place(step, source))
        for column, value in zip(found.values(), told, strict=True):
            column.append(value)
        prefix = None
    return found


def check_tables(unit: Row, code: CodeType) -> None:
    entries = [tuple(row.values()) for row in rows(unit["exception_table"])]
    assert entries == [tuple(entry) for entry in dis.Bytecode(code).exception_entries]  # type: ignore[attr-defined]
    runs = [(line, [*run]) for line, run in groupby(code.co_lines(), key=lambda entry: entry[2])]
    expected = [(run[0][0], run[-1][1], line or None) for line, run in runs]
    assert [tuple(row.values()) for row in rows(unit["line_table"])] == expected


# Values on the stack before a function returns: a constant is none of them.
RETURNED = {"RETURN_VALUE": 1, "RETURN_CONST": 0}
NOT_FOLLOWED = {"RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}


def check_depths(unit: Row) -> bool:
    """Check that all paths to an instruction have one depth; return whether the maximum is `co_stacksize`."""
    told = unit["instructions"]
    depths = dict(zip(told["offset"], told["stack_depth"], strict=True))
    offsets = told["offset"]
    for at, (name, arg, target) in enumerate(
        zip(told["opname"], told["arg"], told["jump_target"], strict=True)
    ):
        depth = told["stack_depth"][at]
        if depth is None:
            continue
        op = dis.opmap[name]
        if target is not None:
            assert depths[target] == depth + dis.stack_effect(op, arg, jump=True)
        if name in RETURNED:
            assert depth == RETURNED[name]
        elif name == "RETURN_GENERATOR":
            assert (depth, depths[offsets[at + 1]]) == (0, 1)
        elif name not in NOT_FOLLOWED:
            assert depths[offsets[at + 1]] == depth + dis.stack_effect(op, arg, jump=False)
    for entry in rows(unit["exception_table"]):
        assert depths[entry["target_offset"]] == entry["depth"] + entry["lasti"] + 1
        guarded = [
            depths[offset] for offset in offsets if entry["start_offset"] <= offset < entry["end_offset"]
        ]
        assert all(depth is None or depth >= entry["depth"] for depth in guarded)
    known = [depth for depth in told["stack_depth"] if depth is not None]
    assert 0 <= min(known) <= max(known) <= unit["stacksize"]
    return bool(max(known) == unit["stacksize"])


def check_consts(unit: Row, code: CodeType) -> None:
    scope = {"frozenset": frozenset, "Ellipsis": ..., "inf": math.inf, "nan": math.nan}
    scope |= {"infj": complex(0, math.inf), "nanj": complex(0, math.nan)}
    assert unit["consts"]["kind"] == [type(value).__name__ for value in code.co_consts]
    for text, value in zip(unit["consts"]["repr"], code.co_consts, strict=True):
        if isinstance(value, str):
            assert text == repr(value)[: OPTIONS.max_value_chars]
        elif isinstance(value, CodeType):
            assert text == value.co_name
        elif len(text) < OPTIONS.max_value_chars:
            again = eval(text, scope)  # a spelled constant
            assert type(again) is type(value)
            assert again == value or repr(again) == repr(value)


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
UNNAMED = {
    ast.Lambda: "<lambda>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}


def check_units(found: list[Row], source: Source, tree: ast.Module) -> int:
    """Check that a unit lies where the tree defines its name; return how many have no place."""
    known = {
        (*span_of(node, source), UNNAMED.get(type(node)) or getattr(node, "name", None))
        for node in ast.walk(tree)
        if isinstance(node, (*DEFINITIONS, *UNNAMED))
    }
    placed = [unit for unit in found[1:] if unit["bstart"] is not None]
    assert {(unit["bstart"], unit["bend"], unit["name"]) for unit in placed} <= known
    return len(found[1:]) - len(placed)


def span_of(node: Any, source: Source) -> tuple[int | None, int | None]:
    return source.offset_at(node.lineno, node.col_offset), source.offset_at(
        node.end_lineno, node.end_col_offset
    )


def check_names(found: list[Row], source: Source, tree: ast.Module) -> int:
    """Check that each plain name of the tree has an instruction at its place; return their number.

    The text is the name before the compiler normalised and mangled it.
    """
    places = {span_of(node, source): node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    classes = {node.name.lstrip("_") for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    checked = 0
    for unit in found:
        told = unit["instructions"]
        for at, span in enumerate(zip(told["bstart"], told["bend"], strict=True)):
            if span not in places or told["argval_kind"][at] not in {"name", "local", "free"}:
                continue
            if borrowed(told, at):
                continue
            text = unicodedata.normalize("NFKC", source.utf8[slice(*span)].decode())
            assert text == places[span]
            mangled = {f"_{owner}{text}" for owner in classes} if text.startswith("__") else set()
            # Of two variables that one operation names, the first has the span.
            assert told["argval"][at].partition(", ")[0] in {text, *mangled}, (
                unit["code_unit_key"],
                told["offset"][at],
            )
            checked += 1
    return checked


def borrowed(told: dict[str, list[Any]], at: int) -> bool:
    """Return whether the compiler made it up, at the place of the last expression before it.

    That is the end of `except E as e`, which stores None to `e` and deletes it, and the end of a class whose
    methods use `super()`.
    """
    name, argval = told["opname"][at], told["argval"][at]
    if (name, argval) in {("LOAD_CLOSURE", "__class__"), ("STORE_NAME", "__classcell__")}:
        return True
    first = at - 1 if name.startswith("STORE") else at - 2
    ending = told["argval"][first : first + 3] == ["None", argval, argval]
    return name.startswith(("STORE", "DELETE")) and ending


def check(source: Source) -> dict[str, int]:
    """Run all checks; return counts of the compared rows."""
    told = bytecode_files_v1(source, OPTIONS)
    assert all(problem.severity == "warning" for problem in told.problems)
    found = rows(told.cells["code_objects"])
    codes = [*code_objects(compiled(source))]
    assert len(found) == len(codes)
    keys = [unit["code_unit_key"] for unit in found]
    assert len({*keys}) == len(keys)
    exact = 0
    for unit, code in zip(found, codes, strict=True):
        assert unit["qualname"] == code.co_qualname
        assert unit["code_len"] == len(code.co_code)
        parent, _, own = unit["code_unit_key"].rpartition("/") if unit["parent_key"] else ("", "", "")
        assert (parent or None) == unit["parent_key"]
        assert not own or own.startswith(f"{code.co_name}@{code.co_firstlineno}#")
        expected = disassembled(code, source, unit["consts"]["repr"])
        for name, column in expected.items():
            assert unit["instructions"][name] == column, (unit["code_unit_key"], name)
        check_tables(unit, code)
        check_consts(unit, code)
        exact += check_depths(unit)
    tree = ast.parse(source.text)
    return {
        "units": len(found),
        "instructions": sum(len(unit["instructions"]["offset"]) for unit in found),
        "deepest": exact,
        "unplaced": check_units(found, source, tree),
        "names": check_names(found, source, tree),
    }
