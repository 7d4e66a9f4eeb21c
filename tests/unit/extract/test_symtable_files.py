# ruff: noqa: RUF001  # Characters that look alike are what some cases are about.
"""Rows of symbol tables against the `symtable` module, the compiler and the syntax tree."""

from __future__ import annotations

import ast
import subprocess
import symtable
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from inspect import CO_NEWLOCALS, CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from time import process_time
from types import CodeType
from typing import Any

import pytest

from codeanatomy.arrow import array
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.tables.extract_cpython import SYMTABLE_FILES_V1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.sources.source_file import Source, decode
from support import corpus
from support.folders import TESTS

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
        assert (said.cells, problem.severity, problem.line, problem.message) == expected
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
    check_bindings(told)
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


def check_bindings(told: list[Row]) -> None:
    """Each definition binds one symbol of the scope around it; lambdas and comprehensions bind none."""
    bound = {key: row["scope_key"] for row in told for keys in row["symbols"]["namespaces"] for key in keys}
    for row in told:
        if row["type"] in {"class", "function"}:
            is_anonymous = row["name"] == "lambda" or ".0" in row["symbols"]["name"]
            in_type_scope = row["parent_key"].split("/")[-1].startswith("type ")
            expected = None if is_anonymous or in_type_scope else row["parent_key"]
            assert bound.get(row["scope_key"]) == expected


def check_compiled(source: Source, told: list[Row]) -> None:
    """Each function that is compiled has a block of its name with its parameters and free variables."""
    try:
        stack = [compile(source.raw, "a.py", "exec", dont_inherit=True)]
    except (SyntaxError, RecursionError):
        return
    if {row["type"] for row in told} - {"module", "class", "function"}:
        # Type parameters have code of their own, which is no function.
        return
    functions = [row for row in told if row["type"] == "function"]
    known = {(row["name"], *row["parameters"], None, *row["frees"]) for row in functions}
    while stack:
        code = stack.pop()
        stack.extend(const for const in code.co_consts if isinstance(const, CodeType))
        if code.co_flags & CO_NEWLOCALS and code.co_flags & CO_OPTIMIZED:
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
    total = check_files([*sorted(corpus.package("requests").rglob("*.py")), *stdlib()[::40]])
    assert total["symbols"] > 7_000


@quietly
@pytest.mark.system
@pytest.mark.parametrize("name", ["requests", "flask", "django", "stdlib"])
def test_whole_packages(name: str) -> None:
    files = stdlib() if name == "stdlib" else sorted(corpus.package(name).rglob("*.py"))
    total = check_files(files)
    print(name, dict(total))
    assert total["symbols"] > 1000
    if (STDLIB / "test").is_dir():
        assert (total["broken"] > 0) == (name == "stdlib")


# Traps, each with all the checks above

TRAPS: dict[str, str | bytes] = {
    "nothing": "",
    "only a comment": "# nothing",
    "no final newline": "x = y",
    "two lambdas on a line": "a, b = lambda: x, lambda: lambda: y\n"
    "c = [[z for z in q] for q in r], [w for w in s]\n",
    "two definitions on a line": "if a: f = lambda: 1; g = lambda: 2\ndef h(): return lambda: 1, lambda: 2\n",
    "redefined": "def f(): pass\ndef f(a): pass\nclass f: pass\n",
    "latin-1": "# coding: latin-1\nÿ = 'é'\ndef é(ü): return ÿ\n".encode("latin-1"),
    "bom": b"\xef\xbb\xbfa = b\n",
    "crlf": "def f():\r\n    a = 'é'\r\n    return a\r\n",
    "lone cr": "def f():\r    a = 1\r    def g(): return a\r",
    "form feed": "def f(): pass\n\x0cdef g(): pass\n",
    "normalised names": "ﬁ = 1\ndef 𝐟(ｗ): return ｗ + ﬁ\n",
    "closures": "def f(a):\n    b = 1\n    def g():\n        nonlocal b\n"
    "        b = a\n        global c\n        c = d\n",
    "classes": "class A:\n    x = 1\n    def f(self): return __class__, super(), x\n"
    "    class B: y = x\n    z = [x for _ in y]\n",
    "private": "class __A:\n    __x = 1\n    def __f(self, __a): return __a.__b, lambda: __c\n"
    "    class __B:\n        def __g(self): def_ = __x\n    def __h__(self): import __i, j.__k as __l\n",
    "class of underscores": "class __:\n    def __f(self): __x\n",
    "a function called top": "def top(a):\n    b = a\n    return c\nclass C:\n    class top: d = e\n",
    "names of comprehensions": "genexpr = listcomp = 1\n[x for x in y]; (x for x in y)\n"
    "def setcomp(): {x for x in y}\nclass C:\n    def genexpr(self): pass\n    listcomp = [x for x in y]\n",
    "methods": "class C:\n    if a:\n        def f(self): pass\n    else:\n        async def f(self): pass\n"
    "    g = lambda self: 0\n    class h: pass\n    global i\n    def i(self): pass\n"
    "    class j:\n        def j(self): pass\n",
    "parameters": "def f(a, /, b, c=1, *args, d, e=2, **kw): return lambda kw: kw\n",
    "walrus": "def f(): return [y := x for x in z], y\n",
    "imports": "import a.b, c as d\nfrom e import f as g, h\nfrom i import *\ndef j(): import k\n",
    "annotations": "a: int\nb: str = c\ndef f(d: e = g) -> h: i: j\n",
    "future annotations": "from __future__ import annotations\ndef f(a: b) -> c: d: e = 1\n",
    "match": "match a:\n    case {'k': b, **c}: d\n    case [e] | C(g=e) as h: pass\n",
    "async": "async def f():\n    async with a as b: await c\n    return [d async for d in e]\n",
    "except": "try: pass\nexcept A as b: del b\nfor c in d: pass\nwith e as f: pass\n",
    "decorators": "@a\n@b(lambda: c)\ndef f(d=lambda: e): pass\n\n@g\nclass C(h, metaclass=i): pass\n",
}


@pytest.mark.parametrize("code", TRAPS.values(), ids=TRAPS)
def test_traps(code: str | bytes) -> None:
    assert check(source_of(code))["files"] == 1


def test_keys_tell_apart_what_is_on_one_line() -> None:
    keys = [row["scope_key"] for row in blocks("a = lambda: 0, lambda: lambda: 1\n")]
    assert keys == [
        "module:top@0#0",
        "module:top@0#0/function:lambda@1#0",
        "module:top@0#0/function:lambda@1#1",
        "module:top@0#0/function:lambda@1#1/function:lambda@1#0",
    ]


def test_flags() -> None:
    code = "import a\nb: int = a\ndef f(c):\n    global d\n    e = d = 1\n"
    code += "    def g():\n        nonlocal e\n        e = c + b\n"
    assert flags(code, "top", "a") == {"imported", "referenced", "global", "local"}
    assert flags(code, "top", "b") == {"annotated", "assigned", "global", "local"}
    assert flags(code, "top", "f") == {"assigned", "namespace", "global", "local"}
    assert flags(code, "f", "c") == {"parameter", "local"}
    assert flags(code, "f", "d") == {"declared_global", "global", "assigned"}
    assert flags(code, "f", "e") == {"assigned", "local"}
    assert flags(code, "g", "e") == {"assigned", "free", "nonlocal"}
    assert flags(code, "g", "c") == {"referenced", "free"}
    assert flags(code, "g", "b") == {"referenced", "global"}


def test_lists_of_a_function() -> None:
    code = "def f(z, /, y, *args, x, **kw):\n    def g():\n        nonlocal y\n        y = m = z + k + j\n"
    found = block(code, "g")
    assert (found["parameters"], found["locals"], found["globals"]) == ([], ["m"], ["j", "k"])
    assert (found["nonlocals"], found["frees"], found["methods"]) == (["y"], ["y", "z"], None)
    assert block(code, "f")["parameters"] == ["z", "y", "x", "args", "kw"]
    assert (found["is_nested"], found["is_optimized"], block(code, "f")["is_nested"]) == (True, True, False)


def test_lists_of_a_class() -> None:
    code = TRAPS["methods"]
    assert (block(code, "C")["methods"], block(code, "C")["locals"]) == (["f"], None)
    assert block(code, "h")["methods"] == []
    assert block(TRAPS["private"], "__A")["methods"] == ["__f", "__h__"]


def test_a_redefined_name_has_all_its_namespaces() -> None:
    found = symbols(TRAPS["redefined"])["f"]["namespaces"]
    assert [key.split("/")[1] for key in found] == ["function:f@1#0", "function:f@2#0", "class:f@3#0"]


# Where the `symtable` module is wrong


def test_a_function_called_top_is_not_the_module() -> None:
    code = TRAPS["a function called top"]
    (function,) = (row for row in blocks(code) if row["name"] == "top" and row["type"] == "function")
    found = {row["name"]: row for row in rows(function["symbols"])}
    assert [(name, row["is_global"], row["is_local"]) for name, row in found.items()] == [
        ("a", False, True),
        ("b", False, True),
        ("c", True, False),
    ]
    top = symtable.symtable(source_of(code).text, "a.py", "exec").get_children()[0]
    if not top.lookup("b").is_global():
        pytest.fail("repaired in this Python: the exception is no longer needed")


def test_a_private_name_is_bound_by_its_definition() -> None:
    found = symbols("class _A:\n    def __f(self): pass\n", "_A")
    assert found["_A__f"]["is_namespace"]
    assert found["_A__f"]["namespaces"] == ["module:top@0#0/class:_A@1#0/function:__f@2#0"]


def test_private_names_in_the_functions_of_a_class() -> None:
    code = "class A:\n    def f(self):\n        def __g(): pass\n"
    code += "        class __B:\n            def __h(self): pass\n"
    assert symbols(code, "f")["_A__g"]["is_namespace"]
    assert symbols(code, "f")["_A__B"]["is_namespace"]
    assert symbols(code, "__B")["_B__h"]["is_namespace"]


def test_a_comprehension_binds_no_name() -> None:
    assert not symbols("genexpr = (x for x in y)\n")["genexpr"]["is_namespace"]
    assert symbols("def genexpr(): pass\n")["genexpr"]["is_namespace"]


# What the compiler refuses

BROKEN = {
    "python 2": ("x = 1\nprint 'é'\n", "SyntaxError", 2),
    "indentation": ("def f():\nx\n", "IndentationError", 2),
    "nonlocal": ("x = 1\nnonlocal x\n", "SyntaxError", 2),
    "parameter and global": ("é = 1\ndef f(a):\n    global a\n", "SyntaxError", 3),
    "twice a parameter": ("def f(a, a): pass\n", "SyntaxError", 1),
    "unknown future": ("from __future__ import braces\n", "SyntaxError", 1),
    "star in a function": ("def f():\n    from a import *\n", "SyntaxError", 2),
}


@pytest.mark.parametrize(("code", "kind", "line"), BROKEN.values(), ids=BROKEN)
def test_refused_files(code: str, kind: str, line: int) -> None:
    said = symtable_files_v1(source_of(code), OPTIONS)
    (problem,) = said.problems
    assert (said.cells, problem.severity, problem.stage) == ({}, "error", "symtable")
    assert (problem.error_type, problem.line) == (kind, line)


def test_nul_bytes() -> None:
    said = symtable_files_v1(source_of("a\0b"), OPTIONS)
    # ValueError in early releases of Python 3.11.
    assert [problem.error_type in {"SyntaxError", "ValueError"} for problem in said.problems] == [True]


def test_scopes_of_python_3_12() -> None:
    code = "type X[T] = list[T]\ndef f[T: int](a: T): pass\nclass C[T]:\n    def g[U](self): pass\n"
    said = symtable_files_v1(source_of(code), OPTIONS)
    if sys.version_info < (3, 12):
        assert [(problem.error_type, problem.line) for problem in said.problems] == [("SyntaxError", 1)]
    else:
        assert check(source_of(code))["files"] == 1
        assert {row["type"] for row in blocks(code)} > {"module", "function", "class"}


@pytest.mark.parametrize("code", ["'\\d'", "1or 2", "x = 1\nx is 1\n"])
def test_warnings_are_left_to_the_bytecode_witness(code: str) -> None:
    assert symtable_files_v1(source_of(code), OPTIONS).problems == ()


# Depth, size and determinism


@pytest.mark.parametrize(
    "code", ["-" * 50_000 + "1", "x" + "+x" * 100_000, "(" * 1000, "lambda: " * 9_000 + "0"]
)
def test_what_is_too_deep_is_a_problem(code: str) -> None:
    said = symtable_files_v1(source_of(code), OPTIONS)
    (problem,) = said.problems
    assert said.cells == {}
    assert problem.error_type in {"SyntaxError", "RecursionError", "MemoryError"}


@pytest.mark.system
def test_many_definitions_take_their_share_of_time_and_not_its_square() -> None:
    def seconds(count: int) -> float:
        source = source_of("".join(f"def f{i}(): pass\n" for i in range(count)))
        start = process_time()
        assert len(symtable_files_v1(source, OPTIONS).cells["blocks"]["name"]) == count + 1
        return process_time() - start

    # The public objects need 16 times the time for 4 times the definitions.
    assert min(seconds(8_000) for _ in range(2)) < 10 * min(seconds(2_000) for _ in range(2))


def test_the_same_bytes_give_the_same_rows_in_another_process() -> None:
    paths = ":".join(filter(None, sys.path))
    runs = {
        subprocess.run(
            [sys.executable, "-c", "from unit.extract import test_symtable_files as t; print(t.digest())"],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{TESTS}:{paths}"},
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{digest()}\n"}


def digest() -> str:
    said = [repr(symtable_files_v1(source_of(code), OPTIONS)) for code in TRAPS.values()]
    return sha256("".join(said).encode()).hexdigest()
