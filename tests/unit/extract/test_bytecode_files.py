"""Bytecode rows against CPython's own disassembler, its stack sizes, its syntax tree and the text itself."""

from __future__ import annotations

import dis
import math
import os
import platform
import random
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from codeanatomy.arrow import array
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.tables.extract_cpython import BYTECODE_FILES_V1
from codeanatomy.extract import bytecode_files
from codeanatomy.extract.bytecode import instructions
from codeanatomy.extract.bytecode.instructions import RELEASE, RELEASES, decode_by_dis, decode_by_tables
from codeanatomy.extract.bytecode_files import bytecode_files_v1, constant_text
from codeanatomy.extract.evidence import Problem
from codeanatomy.normalize.flow.opcodes import KNOWN_VERSIONS
from codeanatomy.sources.source_file import Source, decode
from oracles.bytecode_oracle import OPTIONS, Row, check, code_objects, compiled, rows, source_of
from support import corpus

STDLIB = Path(sysconfig.get_paths()["stdlib"])
# 3.12 compares code without positions: equal lambdas of one line are one constant, which has no place.
IS_312 = sys.version_info[:2] == (3, 12)
SINCE_312, SINCE_313 = sys.version_info >= (3, 12), sys.version_info >= (3, 13)
COLUMN = next(column for column in BYTECODE_FILES_V1.columns if column.name == "code_objects")


def units(text: str | bytes, options: ExtractOptions = OPTIONS) -> list[Row]:
    told = bytecode_files_v1(source_of(text), options)
    return rows(told.cells["code_objects"])


def steps(text: str | bytes, name: str = "<module>") -> list[Row]:
    return next(rows(unit["instructions"]) for unit in units(text) if unit["name"] == name)


def problems(text: str | bytes) -> tuple[Problem, ...]:
    return bytecode_files_v1(source_of(text), OPTIONS).problems


def check_files(files: list[Path]) -> dict[str, int]:
    total: dict[str, int] = {}
    for path in files:
        source = decode(path.name, path.read_bytes())
        if isinstance(source, Source) and compiles(source):
            for name, count in check(source).items():
                total[name] = total.get(name, 0) + count
    assert total["deepest"] > 0.99 * total["units"]
    assert total["unplaced"] < 0.005 * total["units"]
    assert total["names"] > 0.2 * total["instructions"]
    return total


def compiles(source: Source) -> bool:
    try:
        compiled(source)
    except (SyntaxError, ValueError):
        return False
    return True


def stdlib() -> list[Path]:
    return sorted(path for path in STDLIB.rglob("*.py") if "site-packages" not in path.parts)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.system
def test_requests_and_some_of_the_standard_library_as_cpython_sees_them() -> None:
    files = [*sorted(corpus.package("requests").rglob("*.py")), *stdlib()[::40]]
    assert check_files(files)["instructions"] > 60_000


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["requests", "flask", "django", "stdlib"])
def test_whole_packages_as_cpython_sees_them(name: str) -> None:
    files = stdlib() if name == "stdlib" else sorted(corpus.package(name).rglob("*.py"))
    total = check_files(files)
    print(name, total)
    assert total["units"] > 100


def test_the_bytecode_of_this_python_is_known_by_its_number() -> None:
    assert RELEASE == f"{sys.version_info.major}.{sys.version_info.minor}"
    # What is decoded has rules for its flow, and the other way round.
    assert tuple(RELEASES.values()) == KNOWN_VERSIONS


def test_an_unknown_interpreter_has_no_rows_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "RELEASE", None)
    result = bytecode_files_v1(source_of("def f(x): return x is 1\n"), OPTIONS)
    assert "code_objects" not in result.cells
    # The compiler still reports what it finds in the text.
    assert [(each.severity, each.error_type) for each in result.problems] == [
        ("warning", "SyntaxWarning"),
        ("error", "UnknownBytecode"),
    ]
    name = f"{platform.python_implementation()} {platform.python_version()}"
    assert name in result.problems[1].message
    assert [each.error_type for each in bytecode_files_v1(source_of("x = = 1"), OPTIONS).problems] == [
        "SyntaxError"
    ]


@pytest.mark.skipif(RELEASE != "3.11", reason="the tables are those of 3.11")
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_asking_dis_gives_the_same_columns_as_our_tables() -> None:
    count = 0
    for path in [*stdlib()[::150], STDLIB / "test" / "test_patma.py"]:
        source = decode(path.name, path.read_bytes())
        if isinstance(source, Source) and compiles(source):
            for code in code_objects(compiled(source)):
                texts = [constant_text(value) for value in code.co_consts]
                assert decode_by_tables(code, texts) == decode_by_dis(code, texts)
                count += dis.EXTENDED_ARG in code.co_code[::2]
    assert count > 5


# Each text is the source below an instruction: operation, argval, text.
PLACES: dict[str, tuple[str | bytes, list[tuple[str, str, str]]]] = {
    "bytes, not characters": ("é = '😀'; bb = aa", [("LOAD_NAME", "aa", "aa"), ("STORE_NAME", "bb", "bb")]),
    "crlf": ("x = 1\r\ny = (xé +\r\n  z)\r\n", [("LOAD_NAME", "xé", "xé"), ("LOAD_NAME", "z", "z")]),
    "lone cr": ("x = 1\ry = x\r", [("LOAD_NAME", "x", "x"), ("STORE_NAME", "y", "y")]),
    "form feed": ("x = 1\n\fy = x\x0c + zz\n", [("LOAD_NAME", "zz", "zz"), ("STORE_NAME", "y", "y")]),
    "line separator": ("x = '\u2028'; y = x", [("LOAD_NAME", "x", "x")]),
    "bom": (b"\xef\xbb\xbfx = yy", [("LOAD_NAME", "yy", "yy")]),
    "latin-1": (b"# coding: latin-1\nx = '\xe9' + yy", [("LOAD_NAME", "yy", "yy")]),
    "utf-7": (b"# coding: utf-7\nx = '+AOk-', yy", [("LOAD_NAME", "yy", "yy")]),
    "normalised": ("\ufb01n = \uff59", [("STORE_NAME", "fin", "\ufb01n"), ("LOAD_NAME", "y", "\uff59")]),
    "walrus": ("(n := m)", [("STORE_NAME", "n", "n"), ("LOAD_NAME", "m", "m")]),
    "attribute": ("aé.b.cc = 1", [("LOAD_ATTR", "b", "aé.b"), ("STORE_ATTR", "cc", "aé.b.cc")]),
    "star import": ("from m import *", [("IMPORT_NAME", "m", "from m import *")]),
    "decorator": ("@deco\ndef f(): pass\n", [("LOAD_NAME", "deco", "deco")]),
    "match": ("match s:\n  case {'é': v}: v\n", [("LOAD_NAME", "s", "s"), ("LOAD_NAME", "v", "v")]),
    "comparison": ("aé <= b", [("COMPARE_OP", "<=", "aé <= b")]),
    "operator": ("x @= yé", [("BINARY_OP", "@=", "x @= yé")]),
    "f-string": ("f'''é\n  é{xx:>{ww}}'''", [("LOAD_NAME", "xx", "xx"), ("LOAD_NAME", "ww", "ww")]),
    "deletion": ("é = 1\ndel é", [("DELETE_NAME", "é", "é")]),
    "no newline at the end": ("x", [("LOAD_NAME", "x", "x")]),
}


@pytest.mark.parametrize("case", PLACES)
def test_the_text_below_an_instruction(case: str) -> None:
    text, expected = PLACES[case]
    source = source_of(text)
    found = {
        (step["opname"], step["argval"], source.utf8[step["bstart"] : step["bend"]].decode())
        for step in steps(text)
        if step["bstart"] is not None
    }
    assert {*expected} <= found
    check(source)


PROGRAMS = {
    "empty": "",
    "comment only": "# nothing",
    "nothing but a form feed": "\f",
    "async": "async def f():\n async with a as b:\n  async for c in b: await c\n return [x async for x in y]",
    "async generator": "async def f():\n  try:\n    yield 1\n  finally:\n    await g()",
    "generator": "def f():\n  x = yield\n  yield from g(x)\n  return 1",
    "generator with cells": "def f(a):\n  b = yield\n  return lambda: (a, b)",
    "class with cell": "class A:\n  __x = 1\n  def f(self): return __class__, super().f(), self.__x",
    "handlers": "try:\n  a\nexcept (B, C) as e:\n  raise D from e\nexcept E: f\nelse: g\nfinally: h",
    "handler in a loop": "for x in y:\n  try:\n    a\n  except B as e:\n    continue\n  finally:\n    break",
    "exception groups": "try:\n  a\nexcept* B as e:\n  c",
    "with": "with a as b, c(d) as (e, *f):\n  return_ = 1",
    "return in with": "def f():\n  for x in y:\n    with a:\n      try:\n        return x\n      finally: g",
    "match": "match a:\n  case [1, *_]: b\n  case A(x=1, y=z) | A(w=z): c\n  case {'k': v, **r} if v: d",
    "comprehensions": "[{x: {y for y in x} for x in z} for z in (w for w in v if w)]",
    "chained": "a < b < c <= d not in e is f",
    "names of all kinds": "def f(a, /, b=1, *c, d, **e):\n global g; g = a\n def h():\n  nonlocal b; del b",
    "calls": "f(*a, b, **c, d=1)(x=1).g(2, *h)",
    "star imports": "from a.b import *\nfrom . import c as d\nimport e.f as g, h.i",
    "annotations": "x: int = 1\ny: 'str'\ndef f(a: b = 1) -> c: d: e = 2",
    "unreachable": "def f():\n  return 1\n  x\nwhile 0: y\nif 0:\n  def g(): pass",
    "assertions": "assert x, (lambda: y)()",
    "slices": "a[b:c:d, ...][1:2] = a[::]",
    "unpacking": "(a, (b, *c)), d = e = [*f, *g], {**h}",
    "except cleanup": "def f():\n  try: g()\n  except E as e:\n    cause = e\n",
    "decorators": "@a\n@b(c)\nclass D(E, metaclass=F):\n  @property\n  def g(self): pass",
    "deep": "x = " + "(" * 150 + "a" + ",)" * 150,
    "deep lambdas": "x = " + "lambda: " * 300 + "y",
    "f-strings": "f'{a!r:>{w}}{b=}' f'''\n{\nc}{d:é}'''",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_as_cpython_sees_them(program: str) -> None:
    check(source_of(PROGRAMS[program]))


def test_names_in_made_up_f_strings_are_where_they_say() -> None:
    rng = random.Random(3)
    literal = ("é", " ", "\n", "\\\n", "{{", "}}", "\t", "\\x41", "😀", "\r\n", "\\N{BULLET}")
    inner = ("xx", "\nyy", " zz ", "(\n ww, é)", "f(\txx)", "f'é{yy}'", "xx[zz]")
    spec = ("", "!r", ":>{ww}", ":é\n{yy}", "=")
    for _ in range(300):
        fields = [f"{{{rng.choice(inner)}{rng.choice(spec)}}}" for _ in range(3)]
        parts = [rng.choice(literal) + field for field in fields]
        assert check(source_of(f'é = g(1, f"""{"".join(parts)}""" rf"{{vv}}")'))["names"] >= 4


def test_the_example_of_stack_depths() -> None:
    told = [(step["stack_depth"], step["opname"], step["argval"]) for step in steps("for x in y: f")]
    target, ending = "16", [(0, "LOAD_CONST", "None"), (1, "RETURN_VALUE", None)]
    if SINCE_312:
        # The end of the loop is an operation, with two values below it: the iterator, and what it gave last.
        target, ending = "18", [(2, "END_FOR", None), (0, "RETURN_CONST", "None")]
    if SINCE_313:
        target, ending = "20", [(2, "END_FOR", None), (1, "POP_TOP", None), (0, "RETURN_CONST", "None")]
    assert told == [
        (0, "RESUME", "0"),
        (0, "LOAD_NAME", "y"),
        (1, "GET_ITER", None),
        (1, "FOR_ITER", target),
        (2, "STORE_NAME", "x"),
        (1, "LOAD_NAME", "f"),
        (2, "POP_TOP", None),
        (1, "JUMP_BACKWARD", "6"),
        *ending,
    ]


def test_what_control_never_reaches_has_no_depth() -> None:
    """An empty `try` protects nothing, so nothing enters its handler, but the compiler keeps it."""
    told = steps("def f():\n  try: pass\n  except E as e: g", "f")
    lost = [step["opname"] for step in told if step["stack_depth"] is None]
    assert "PUSH_EXC_INFO" in lost
    assert all(step["stack_depth"] is not None for step in told if step["line"] == 2)


def test_prefixes_are_folded_where_jumps_go() -> None:
    many = "\n".join(f"x{number}" for number in range(300))
    text = f"{many}\nwhile x299:\n  x298 = x299\n"
    source = source_of(text)
    prefixes = [
        step.offset
        for step in dis.get_instructions(compiled(source))
        if step.opname == "EXTENDED_ARG" and step.is_jump_target
    ]
    told = {step["offset"]: step for step in steps(text)}
    assert prefixes
    assert [(told[at]["opname"], told[at]["argval"], told[at]["arg"]) for at in prefixes] == [
        ("LOAD_NAME", "x298", 298) if told[at]["argval"] == "x298" else ("LOAD_NAME", "x299", 299)
        for at in prefixes
    ]
    assert all(told[at]["is_jump_target"] for at in prefixes)
    assert {step["jump_target"] for step in told.values()} - {None} <= told.keys()
    assert "EXTENDED_ARG" not in {step["opname"] for step in told.values()}
    check(source)


def test_handlers_are_not_called_jump_targets() -> None:
    (unit,) = units("try: a\nexcept B: c")
    told = {step["offset"]: step for step in rows(unit["instructions"])}
    handler = told[unit["exception_table"]["target_offset"][0]]
    assert (handler["opname"], handler["is_jump_target"]) == ("PUSH_EXC_INFO", False)
    assert any(step["is_jump_target"] for step in told.values())


def test_an_operation_without_argument_has_nulls() -> None:
    (step,) = (step for step in steps("-x") if step["opname"] == "UNARY_NEGATIVE")
    assert [step[name] for name in ("arg", "argval_kind", "argval", "jump_target")] == [None] * 4


def test_others_are_described_in_the_words_of_dis() -> None:
    told = steps("def f(a, b=1):\n  x += a\n  return lambda: b", "f")
    assert {(step["opname"], step["argval_kind"], step["argval"]) for step in told} >= {
        ("BINARY_OP", "other", "+="),
        ("SET_FUNCTION_ATTRIBUTE" if SINCE_313 else "MAKE_FUNCTION", "other", "closure"),
        ("MAKE_CELL", "free", "b"),
        ("LOAD_FAST", "local", "a"),
    }


def test_keys_are_paths_and_tell_equals_apart() -> None:
    text = "x = [lambda: 1, lambda: 1]\nclass A:\n def f(self): [y for y in z]\n f = f\n def f(self): 0"
    assert [unit["code_unit_key"] for unit in units(text)] == [
        "<module>",
        "<module>/<lambda>@1#0",
        *(() if IS_312 else ("<module>/<lambda>@1#1",)),
        "<module>/A@2#0",
        "<module>/A@2#0/f@3#0",
        *(() if SINCE_312 else ("<module>/A@2#0/f@3#0/<listcomp>@3#0",)),
        "<module>/A@2#0/f@5#0",
    ]


def test_a_unit_is_its_definition_without_decorators() -> None:
    text = "@é\nclass A:\n  @d\n  def f(self): return {k: 1 for k in s}\ntry: 0\nfinally: g = lambda: 2\n"
    source = source_of(text)
    told = {unit["name"]: source.utf8[unit["bstart"] : unit["bend"]].decode() for unit in units(text)}
    assert told == {
        "<module>": text,
        "A": "class A:\n  @d\n  def f(self): return {k: 1 for k in s}",
        "f": "def f(self): return {k: 1 for k in s}",
        **({} if SINCE_312 else {"<dictcomp>": "{k: 1 for k in s}"}),
        "<lambda>": "lambda: 2",
    }


def test_code_that_nothing_loads_has_no_place() -> None:
    """3.12 drops the code."""
    _, *dead = units("if 0:\n  def f(): pass")
    expected = [] if SINCE_312 else [("f", None, None)]
    assert [(unit["name"], unit["bstart"], unit["bend"]) for unit in dead] == expected


def test_a_place_outside_of_the_file_is_null() -> None:
    """As if CPython were wrong about positions: the code of a longer text, read beside a shorter one."""
    code = compile("aaaa\nbb(\n\n)\ncc = dd\n", "<longer>", "exec")
    (unit,) = rows(bytecode_files._code_objects(source_of("aaaa\nb\n"), code, 256))
    told = [
        step for step in rows(unit["instructions"]) if step["opname"] in {"LOAD_NAME", "CALL", "STORE_NAME"}
    ]
    assert [(step["argval"], step["bstart"], step["bend"], step["line"]) for step in told] == [
        ("aaaa", 0, 4, 1),
        ("bb", 5, 7, 2),
        ("0", None, None, 2),
        ("dd", None, None, None),
        ("cc", None, None, None),
    ]


def test_made_up_instructions_have_a_line_and_no_place() -> None:
    told = steps("def f():\n  pass\ndef g(): pass", "g")
    returned = [("LOAD_CONST", None, None, 3), ("RETURN_VALUE", None, None, 3)]
    if SINCE_312:
        returned = [("RETURN_CONST", None, None, 3)]
    if SINCE_313:
        # The span is that of `pass`.
        returned = [("RETURN_CONST", 25, 29, 3)]
    assert [(step["opname"], step["bstart"], step["bend"], step["line"]) for step in told] == [
        ("RESUME", None, None, 3),
        *returned,
    ]


NUMBER = 16**2000 - 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (..., "Ellipsis"),
        (True, "True"),
        (-0.0, "-0.0"),
        (math.nan, "nan"),
        (complex(0.0, -0.0), "-0j"),
        ("\ud800é\n", "'\\ud800é\\n'"),
        (b"\xff'", 'b"\\xff\'"'),
        ((), "()"),
        ((1,), "(1,)"),
        ((1, ("a", frozenset())), "(1, ('a', frozenset()))"),
        (frozenset({"c", "b", "a", 10, 9}), "frozenset({'a', 'b', 'c', 10, 9})"),
        (frozenset({(2, frozenset("ba")), 1}), "frozenset({(2, frozenset({'a', 'b'})), 1})"),
        (2**2048 - 1, str(2**2048 - 1)),
        (NUMBER, "0x" + "f" * 2000),
        (-NUMBER, "-0x" + "f" * 2000),
        ((10**5000,), f"({hex(10**5000)},)"),
    ],
    ids=lambda value: constant_text(value)[:30],
)
def test_spelled_constants(value: object, text: str) -> None:
    assert constant_text(value) == text


def test_constants_are_cut() -> None:
    text = f"x = '{'a' * 999}'; y = 0x{'f' * 9999}"
    (unit,) = units(text, ExtractOptions(max_value_chars=5))
    assert unit["consts"] == {"kind": ["str", "int", "NoneType"], "repr": ["'aaaa", "0xfff", "None"]}
    assert [step["argval"] for step in rows(unit["instructions"]) if step["argval_kind"] == "const"] == [
        "'aaaa",
        "0xfff",
        "None",
    ]


def test_the_text_is_not_run_and_our_own_futures_are_not_its() -> None:
    """Were `annotations` inherited from a module of ours, `int` would be a constant."""
    told = steps("x: int = 1\nraise SystemExit")
    assert ("LOAD_NAME", "int") in {(step["opname"], step["argval"]) for step in told}


ERRORS = {
    "x = (\n": ("SyntaxError", 1),
    "print 'python 2'": ("SyntaxError", 1),
    "x = 1\nexec 'x' in d\n": ("SyntaxError", 2),
    **(
        {}
        if SINCE_312
        else {
            "x = 1\n\ntype X = int": ("SyntaxError", 3),
            "def f[T](x: T): pass": ("SyntaxError", 1),
            "f'{'a'}'": ("SyntaxError", 1),
        }
    ),
    "if x:\npass": ("IndentationError", 2),
    "if x:\n\ty\n        z": ("TabError", 3),
    "return": ("SyntaxError", 1),
    "x = 1\nbreak": ("SyntaxError", 2),
    "from __future__ import nothing": ("SyntaxError", 1),
    "x = " + "9" * 5000: ("SyntaxError", 1),
    "a\0b": ("SyntaxError", None),
    "(" * 300: ("SyntaxError", 1),
    "-" * 100_000 + "1": ("MemoryError", None),
    "a" + "+a" * 100_000: ("RecursionError", None),
    **({} if SINCE_313 else {"if a: 0\n" + "elif b: 0\n" * 5000: ("RecursionError", None)}),
}


@pytest.mark.parametrize("text", ERRORS, ids=lambda text: repr(text[:20]))
def test_what_does_not_compile_is_one_problem_and_no_list(text: str) -> None:
    told = bytecode_files_v1(source_of(text), OPTIONS)
    assert told.cells.keys() == {"python_version"}
    (problem,) = told.problems
    assert (problem.severity, problem.stage, problem.error_type, problem.line) == (
        "error",
        "compile",
        *ERRORS[text],
    )


def test_warnings_are_problems_once_each() -> None:
    text = "try: 0\nfinally: x is 'é'\ny = '\\d'\nassert (1, '')\n"
    told = [(each.severity, each.stage, each.error_type, each.line) for each in problems(text)]
    assert told == [
        ("warning", "compile", "SyntaxWarning" if SINCE_312 else "DeprecationWarning", 3),
        ("warning", "compile", "SyntaxWarning", 2),
        ("warning", "compile", "SyntaxWarning", 4),
    ]
    assert "invalid escape sequence" in problems(text)[0].message
    assert units(text)


def test_a_warning_is_kept_beside_an_error() -> None:
    told = problems("x = '\\d'\nreturn")
    assert [(each.severity, each.line) for each in told] == [("error", 2), ("warning", 1)]


def test_the_cells_fit_the_catalogue() -> None:
    sources = [source_of(PROGRAMS[name]) for name in ("handlers", "empty", "names of all kinds")]
    cells = [bytecode_files_v1(source, OPTIONS).cells["code_objects"] for source in sources]
    for told, columns in zip(array(COLUMN, [*cells, None]).to_pylist(), [*cells, None], strict=True):
        if columns is None:
            assert told is None
            continue
        nested = ("consts", "instructions", "exception_table", "line_table")
        expected = [
            {name: rows(value) if name in nested else value for name, value in unit.items()}
            for unit in rows(columns)
        ]
        assert told == expected


TELL = """
import hashlib, sys
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.source_file import decode
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        told = bytecode_files_v1(decode("a.py", file.read()), ExtractOptions())
    print(hashlib.sha256(repr((told.cells, told.problems)).encode()).hexdigest())
"""


def test_two_processes_say_the_same(tmp_path: Path) -> None:
    sets = tmp_path / "sets.py"
    members = ", ".join(f"'m{number}'" for number in range(40))
    sets.write_text(f"x in {{{members}, (1, 'a')}}\nlambda: x in {{'a', b'b', 1.0, None, ...}}\n")
    files = [sets, *sorted(corpus.package("requests").rglob("*.py"))]
    said = [
        subprocess.run(
            [sys.executable, "-c", TELL, *map(str, files)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len({*said[0].split()}) > 10
