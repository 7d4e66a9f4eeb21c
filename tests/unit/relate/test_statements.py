"""What reaches a name: programs with every way through them run, and what the walk says of the same calls."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.file_view import FileView
from codeanatomy.relate.compile.file_program import compile_file
from codeanatomy.relate.program import Program
from codeanatomy.relate.values.analysis import solve
from support.marks import examples
from support.normalize_stage import OPTIONS, source_of
from support.relate_stage import programs_of, relations, solved

FUNCTIONS = 4
HEAD = "".join(f"def f{number}(): return {number}\n" for number in range(FUNCTIONS))


def program_of(text: str | bytes) -> Program:
    [program] = programs_of({"main.py": text})
    return program


def called_at(text: str) -> dict[int, set[str]]:
    """By line, what is called there."""
    found: dict[int, set[str]] = {}
    for rows in relations(solved({"main.py": text})):
        for row in rows.rows():
            if row["relation_kind"] == "CALLS" and row["dst_qname"] is not None:
                found.setdefault(row["line"], set()).add(row["dst_qname"].removeprefix("main."))
    return found


class Ran(Exception):
    """What a condition raises when it has run out of answers."""


def observed(text: str, choices: int) -> dict[int, set[str]]:
    """By line, what was called there in any run that came to its end; `c()` answers every way there is."""
    found: dict[int, set[str]] = {}
    for answers in itertools.product([False, True], repeat=choices):
        left, calls = list(answers), list[tuple[int, str]]()

        def condition(left: list[bool] = left) -> bool:
            if not left:
                raise Ran
            return left.pop(0)

        def call(line: int, function: Any, calls: list[tuple[int, str]] = calls) -> None:
            calls.append((line, function.__name__))

        world: dict[str, Any] = {"c": condition, "call": call}
        exec(text, world)
        try:
            world["run"]()
        except Ran:
            continue
        for line, name in calls:
            found.setdefault(line, set()).add(name)
    return found


# -- programs that are made up: blocks of assignments, calls and control flow over two variables

NAMES = st.sampled_from(["x", "y"])
SIMPLE = st.one_of(
    st.builds("{} = f{}".format, NAMES, st.integers(0, FUNCTIONS - 1)),
    st.builds("{} = {}".format, NAMES, NAMES),
    st.builds("x, y = {}, {}".format, NAMES, NAMES),
    st.builds("call {}".format, NAMES),
).map(lambda text: [text])


def nested(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    blocks = st.lists(inner, min_size=1, max_size=3).map(
        lambda parts: [f"  {line}" for part in parts for line in part]
    )
    return st.one_of(
        st.builds(lambda body, other: ["if c():", *body, "else:", *other], blocks, blocks),
        st.builds(lambda body: ["if c():", *body], blocks),
    )


def loops(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    blocks = st.lists(inner, min_size=1, max_size=3).map(
        lambda parts: [f"  {line}" for part in parts for line in part]
    )
    exits = st.sampled_from([["  if c(): break"], ["  if c(): continue"], ["  if c(): raise ValueError"], []])
    tried = st.sampled_from([["  if c(): raise ValueError"], []])
    return st.one_of(
        nested(inner),
        st.builds(
            lambda body, out, rest: [
                "while c():",
                *body,
                *[line for line in out if "raise" not in line],
                *rest,
            ],
            blocks,
            exits,
            blocks,
        ),
        st.builds(
            lambda body, out, other: [
                "while c():",
                *body,
                *[line for line in out if "raise" not in line],
                "else:",
                *other,
            ],
            blocks,
            exits,
            blocks,
        ),
        st.builds(
            lambda one, out, two, three: ["try:", *one, *out, *two, "except ValueError:", *three],
            blocks,
            tried,
            blocks,
            blocks,
        ),
        st.builds(
            lambda one, out, two, three: ["try:", *one, *out, "except ValueError:", *two, "finally:", *three],
            blocks,
            tried,
            blocks,
            blocks,
        ),
    )


def function(lines: list[str]) -> tuple[str, str]:
    """The program to analyse, and the same to run: `call x` in line 7 is `x()` and `call(7, x)`."""
    body = ["def run():", " x = f0; y = f1", *(f" {line}" for line in lines), " x(); y()", ""]
    first = HEAD.count("\n") + 1
    ours, theirs = [], []
    for number, line in enumerate(body, start=first):
        name = line[-1:]
        ours.append(line.replace(f"call {name}", f"{name}()"))
        run = f"call({number}, x); call({number}, y)" if line == " x(); y()" else f"call({number}, {name})"
        theirs.append(line.replace(" x(); y()", f" {run}").replace(f"call {name}", run))
    return HEAD + "\n".join(ours), HEAD + "\n".join(theirs)


def told(text: str) -> dict[int, set[str]]:
    start = HEAD.count("\n")
    return {
        line: names
        for line, names in called_at(f"{text}run()\n").items()
        if start < line <= start + text[len(HEAD) :].count("\n")
    }


BRANCHES = st.lists(st.recursive(SIMPLE, nested, max_leaves=6), min_size=1, max_size=4).map(
    lambda parts: [line for part in parts for line in part]
)
ANYTHING = st.lists(st.recursive(SIMPLE, loops, max_leaves=6), min_size=1, max_size=3).map(
    lambda parts: [line for part in parts for line in part]
)


@settings(max_examples=examples(60), deadline=None)
@given(BRANCHES)
def test_branches_give_exactly_what_some_run_calls(lines: list[str]) -> None:
    ours, theirs = function(lines)
    choices = ours.count("c():")
    if choices <= 8:
        assert told(ours) == observed(theirs, choices)


@settings(max_examples=examples(80), deadline=None)
@given(ANYTHING)
@pytest.mark.system
def test_loops_and_handlers_miss_nothing_that_a_run_calls(lines: list[str]) -> None:
    ours, theirs = function(lines)
    if ours.count("c()") > 6:
        return
    found = told(ours)
    for line, names in observed(theirs, 7).items():
        assert names <= found.get(line, set()), line


# -- by hand


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("x = f0\nx = f1\nx()\n", {"f1"}),
        ("x = f0\ndef g(): x()\nx = f1\ng()\n", {"f1"}),
        ("x = f0\ndef g(): x()\ng()\nx = f1\ng()\n", {"f0", "f1"}),
        ("def g(): x()\nfor x in [f0, f1]: g()\n", {"f0", "f1"}),
        ("def g():\n  global x\n  x = f1\nx = f0\ng()\nx()\n", {"f0", "f1"}),
        ("x = f0\nclass C:\n  x = x\n  x()\n", {"f0"}),
        ("x = f0\nclass C:\n  x = f1\n  def m(self): x()\n", {"f0"}),
        ("x = f0\n[x() for x in [f1]]\n", {"f1"}),
        ("x = f0\n(lambda x=f1: x())()\n", {"f1"}),
        ("x = f0\ndel x\ntry: x()\nexcept NameError: pass\n", set()),
        ("try: import nothing as x\nexcept ImportError: x = f0\nx()\n", {"f0"}),
        ("if (x := f1): x()\n", {"f1"}),
        ("match [f0, f1]:\n  case [x, y]: y()\n", {"f1"}),
        ("match {'k': f0}:\n  case {'k': x}: x()\n", {"f0"}),
        (
            "r = {'k': f0}\nfor _ in [1, 2]:\n  r['k']()\n  match {'k': f1}:\n    case {**r}: 0\n",
            {"f0", "f1"},
        ),
        ("x, *y = f0, f1, f2\ny[0]()\n", {"f1", "f2"}),
        ("*x, y = f0, f1, f2\ny()\n", {"f2"}),
        ("for _ in [1]:\n  x = f0\n  break\nelse:\n  x = f1\nx()\n", {"f0", "f1"}),
        ("def g(a, /, b=f1): b()\ng(f0)\n", {"f1"}),
        ("def g():\n  return f0\n  return f1\ng()()\n", {"f0"}),
    ],
)
def test_what_a_name_holds(text: str, called: set[str]) -> None:
    names = {name for line in called_at(HEAD + text).values() for name in line}
    assert {name for name in names if name in {"f0", "f1", "f2", "f3"}} == called


def test_finally_sees_what_stood_when_something_was_raised() -> None:
    text = "def g(): raise ValueError\nx = f0\ntry:\n  x = f1\n  g()\n  x = f2\nfinally:\n  x()\n"
    # And f0, for anything might have been raised before the first statement was done.
    assert called_at(HEAD + text)[FUNCTIONS + 8] == {"f0", "f1", "f2"}


def test_lambdas_are_numbered_by_scope_in_the_order_of_the_text() -> None:
    text = (
        "a = lambda: (lambda: 0)\nb = [lambda: i for i in range(3)]\n"
        "def f(x=lambda: 1):\n  return (lambda: 2), lambda: 3\nclass C:\n  d = lambda: 4\n"
    )
    program = program_of(text)
    names = sorted((each.place[0], each.qualname) for each in program.functions if "lambda" in each.name)
    assert [name for _, name in names] == [
        "<lambda1>",
        "<lambda1>.<lambda1>",
        "<lambda2>",
        "<lambda3>",
        "f.<lambda1>",
        "f.<lambda2>",
        "C.<lambda1>",
    ]


def test_private_names_are_spelled_as_the_compiler_does() -> None:
    text = "class _A:\n  def __m(self): ...\n  def n(self): self.__m()\n_A().n()\n"
    assert called_at(text)[3] == {"_A.__m"}
    assert "_A__m" in program_of(text).classes[0].attrs


def test_a_syntax_error_is_a_program_with_a_reason_and_its_calls() -> None:
    program = program_of("def (:\n f()\n")
    assert program.failure == "no_syntax_tree"
    assert (program.nodes, program.ops, program.functions) == (0, [], [])


def test_an_empty_file_is_an_empty_program() -> None:
    program = program_of("")
    assert program.failure is None
    assert (program.functions, program.classes, program.uses, program.variables) == ([], [], [], {})


# -- hostile texts; LibCST needs seconds for the deep ones and says nothing that matters here


def without_libcst(text: str) -> Program:
    source = source_of(text, "main.py")
    rows = {each.__name__: each(source, OPTIONS).cells for each in (ast_files_v1, symtable_files_v1)}
    return compile_file(FileView("test", "file:main", "main.py", rows))


DEEP = {
    "sum": "x = " + "+".join(["f()"] * 900) + "\n",
    "sum of constants": "x = " + "+".join(["'a'"] * 900) + "\n",
    "calls": "f" + "()" * 900 + "\n",
    "attributes": "f" + ".a" * 900 + "()\n",
    "subscripts": "f" + "[0]" * 900 + "()\n",
    "brackets": "x = " + "[" * 90 + "f()" + "]" * 90 + "\n",
    "arguments": "f(" * 90 + "f" + ")" * 90 + "\n",
    "lambdas": "x = " + "lambda: " * 80 + "f()\n",
    "conditions": "x = " + "f() if f() else " * 90 + "0\n",
    "functions": "".join(f"{' ' * at}def g{at}(x=f()):\n" for at in range(90)) + " " * 90 + "f()\n",
    "classes": "".join(f"{' ' * at}class C{at}:\n" for at in range(18)) + " " * 18 + "f()\n",
    "elif": "if f(): x = 1\n" + "elif f(): x = 2\n" * 900,
    "list": "x = [" + "f(), " * 20_000 + "]\n",
    "dict": "x = {" + "'k': f, " * 20_000 + "}\nx['k']()\n",
}


# Of many elements; they take seconds.
LONG = ("list", "dict")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.system) if name in LONG else name for name in DEEP]
)
def test_deep_texts_are_walked(name: str) -> None:
    before = sys.getrecursionlimit()
    program = without_libcst("def f(*_): return f\n" + DEEP[name])
    assert program.failure is None
    assert sys.getrecursionlimit() == before
    values = solve([program])
    if name not in ("sum of constants", "attributes", "subscripts"):
        called = {values.kind[thing] for things in values.calls.callees.values() for thing in things}
        assert "F" in called


@pytest.mark.parametrize("text", ["+".join(["f()"] * 3000), "f" + "()" * 3000, "f" + ".a" * 3000])
def test_what_the_compiler_finds_too_deep_is_a_program_with_a_reason(text: str) -> None:
    program = without_libcst(f"{text}\n")
    assert program.failure in ("no_syntax_tree", "too_deep", None)
    solve([program])


def test_lone_surrogates_in_texts_are_only_texts() -> None:
    text = (
        "d = {'\\ud800': print}\nd['\\ud800']()\nclass C: ...\nc = C()\nsetattr(c, '\\udfff', print)\n"
        "getattr(c, '\\udfff')()\n__all__ = ['\\ud800']\ndef f(a: '\\ud800') -> '\\ud800': ...\nf(c)\n"
    )
    for rows in relations(solved({"main.py": text})):
        assert rows.batch().num_rows > 10


def test_many_conditional_assignments_take_no_cube_of_time() -> None:
    """Versions that were shown to functions once are not looked at again at every later assignment."""
    sizes = {}
    for count in (100, 200):
        text = "x = 0\n" + "".join(f"if c: x = f{at}\n" for at in range(count)) + "def g(): x()\n"
        program = without_libcst(text)
        sizes[count] = len(program.ops)
    assert sizes[200] <= 2.5 * sizes[100]
