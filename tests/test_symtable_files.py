"""Rows of symbol tables against the `symtable` module, the compiler and the syntax tree."""

from __future__ import annotations

import ast
import subprocess
import symtable
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from inspect import CO_NEWLOCALS, CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import corpus
from codeanatomy.catalog.extract_cpython import SYMTABLE_FILES_V1
from codeanatomy.extract.arrow import array
from codeanatomy.extract.options import ExtractOptions
from codeanatomy.extract.source import Source, decode
from codeanatomy.extract.symtable_files import symtable_files_v1

OPTIONS = ExtractOptions()
STDLIB = Path(sysconfig.get_paths()["stdlib"])
BLOCKS = next(column for column in SYMTABLE_FILES_V1.columns if column.name == "blocks")
SYMBOLS = next(field for field in BLOCKS.fields if field.name == "symbols")
FLAGS = [field.name for field in SYMBOLS.fields if field.type == "boolean"]

Row = dict[str, Any]


def source_of(code: str | bytes) -> Source:
    source = decode("a.py", code.encode() if isinstance(code, str) else code)
    assert isinstance(source, Source)
    return source


def rows(columns: Any) -> list[Row]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def blocks(code: str | bytes) -> list[Row]:
    return rows(symtable_files_v1(source_of(code), OPTIONS).cells["blocks"])


def block(code: str | bytes, name: str) -> Row:
    (found,) = (row for row in blocks(code) if row["name"] == name)
    return found


def symbols(code: str | bytes, name: str = "top") -> dict[str, Row]:
    return {row["name"]: row for row in rows(block(code, name)["symbols"])}


def flags(code: str | bytes, scope: str, name: str) -> set[str]:
    """What is true of a name, such as {'local', 'assigned'}."""
    return {flag.removeprefix("is_") for flag in FLAGS if symbols(code, scope)[name][flag]}


# The whole of a file


def check(source: Source) -> Counter[str]:
    """All blocks and symbols against the public objects; counts of what was compared."""
    said = symtable_files_v1(source, OPTIONS)
    try:
        top = symtable.symtable(source.raw, "a.py", "exec")
    except SyntaxError as error:
        problem = said.problems[0]
        expected = ({}, "error", error.lineno, error.msg)
        assert (said.cells, problem.severity, problem.line, problem.message) == expected  # noqa: PT017
        return Counter(broken=1)
    array(BLOCKS, [said.cells["blocks"]]).validate(full=True)
    told = rows(said.cells["blocks"])
    tables = list(preorder(top))
    keys = {table.get_id(): row["scope_key"] for row, (table, _) in zip(told, tables, strict=True)}
    assert len(set(keys.values())) == len(told)
    counts = Counter(files=1, blocks=len(told))
    for row, (table, parent) in zip(told, tables, strict=True):
        assert row["parent_key"] == (keys[parent.get_id()] if parent else None)
        assert (row["type"], row["name"]) == (table.get_type(), table.get_name())
        assert (row["lineno"], row["is_nested"]) == (table.get_lineno(), table.is_nested())
        assert row["is_optimized"] == table.is_optimized()
        check_lists(row, table)
        counts += check_symbols(row, table, keys)
    check_compiled(source, told)
    check_methods(ast.parse(source.raw), told)
    return counts


def preorder(
    table: symtable.SymbolTable, parent: symtable.SymbolTable | None = None
) -> Iterator[tuple[symtable.SymbolTable, symtable.SymbolTable | None]]:
    yield table, parent
    for child in table.get_children():
        yield from preorder(child, table)


def check_symbols(row: Row, table: symtable.SymbolTable, keys: dict[int, str]) -> Counter[str]:
    """Flag by flag, but where the module is wrong."""
    told = {symbol["name"]: symbol for symbol in rows(row["symbols"])}
    assert list(told) == sorted(table.get_identifiers())
    counts = Counter(symbols=len(told))
    for symbol in table.get_symbols():
        ours = told[symbol.get_name()]
        theirs = {flag: getattr(symbol, flag, bool)() for flag in FLAGS}
        theirs["namespaces"] = [keys[space.get_id()] for space in symbol.get_namespaces()]
        different = {field for field in theirs if ours[field] != theirs[field]}
        if different:
            counts["different"] += 1
            assert is_known(different, row, symbol, ours)
    return counts


def is_known(different: set[str], row: Row, symbol: symtable.Symbol, ours: Row) -> bool:
    name = symbol.get_name()
    if row["name"] == "top" and row["type"] != "module":
        return different <= {"is_global", "is_local"}
    if different == {"is_namespace", "namespaces"} and ours["is_namespace"]:
        # A private name: the definition is called by what follows the class.
        return all(name.endswith(key.split(":")[-1].split("@")[0]) for key in ours["namespaces"])
    return different <= {"is_namespace", "namespaces"} and name in {
        "genexpr",
        "listcomp",
        "setcomp",
        "dictcomp",
    }


def check_lists(row: Row, table: symtable.SymbolTable) -> None:
    lists = ("locals", "globals", "nonlocals", "frees")
    if isinstance(table, symtable.Function):
        assert row["parameters"] == list(table.get_parameters())
        for field in lists:
            assert row[field] == sorted(getattr(table, f"get_{field}")())
    else:
        assert [row[field] for field in ("parameters", *lists)] == [None] * 5
    assert (row["methods"] is not None) == isinstance(table, symtable.Class)


def check_compiled(source: Source, told: list[Row]) -> None:
    """Each function that is compiled has a block of its name with its parameters and free variables."""
    try:
        stack = [compile(source.raw, "a.py", "exec", dont_inherit=True)]
    except (SyntaxError, RecursionError):
        return
    functions = [row for row in told if row["type"] == "function"]
    known = {(row["name"], *row["parameters"], None, *row["frees"]) for row in functions}
    while stack:
        code = stack.pop()
        stack.extend(const for const in code.co_consts if isinstance(const, CodeType))
        if code.co_flags & CO_NEWLOCALS and code.co_flags & CO_OPTIMIZED and "generic" not in code.co_name:
            stars = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
            parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]
            assert (code.co_name.strip("<>"), *parameters, None, *code.co_freevars) in known


def check_methods(tree: ast.Module, told: list[Row]) -> None:
    """The functions in the body of a class, wherever in it, unless they are declared global."""
    expected = Counter(
        (node.name, node.lineno, *sorted(functions_of(node)))
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    classes = [row for row in told if row["type"] == "class"]
    assert Counter((row["name"], row["lineno"], *row["methods"]) for row in classes) == expected


def functions_of(node: ast.ClassDef) -> set[str]:
    found, elsewhere = set(), set()
    stack: list[ast.AST] = list(node.body)
    while stack:
        match stack.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Global(names=names):
                elsewhere.update(names)
            case ast.ClassDef() | ast.Lambda():
                pass
            case inner:
                stack.extend(ast.iter_child_nodes(inner))
    return found - elsewhere


# Real code


def stdlib() -> list[Path]:
    return sorted(path for path in STDLIB.rglob("*.py") if "site-packages" not in path.parts)


def check_files(files: list[Path]) -> Counter[str]:
    total: Counter[str] = Counter()
    for path in files:
        source = decode(path.name, path.read_bytes())
        if isinstance(source, Source):
            try:
                total += check(source)
            except AssertionError as failed:
                failed.add_note(str(path))
                raise
    assert total["different"] < 0.01 * total["symbols"]
    return total


quietly = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")


@quietly
def test_requests_and_some_of_the_standard_library() -> None:
    total = check_files([*sorted(corpus.package("requests").rglob("*.py")), *stdlib()[::20]])
    assert total["symbols"] > 10_000


@quietly
@pytest.mark.full
@pytest.mark.parametrize("name", ["requests", "flask", "django", "stdlib"])
def test_whole_packages(name: str) -> None:
    files = stdlib() if name == "stdlib" else sorted(corpus.package(name).rglob("*.py"))
    total = check_files(files)
    print(name, dict(total))
    assert total["symbols"] > 1000
    if (STDLIB / "test").is_dir():
        assert (total["broken"] > 0) == (name == "stdlib")
