"""What is made of failures: places that are right or absent, and never an exception."""

from __future__ import annotations

import ast
import symtable
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.catalog.tables.columns import ERROR_FIELDS, SEVERITIES
from codeanatomy.extract.evidence import (
    MESSAGE_CHARS,
    Extractor,
    ExtractorResult,
    Problem,
    problem_from,
    run_extractor,
)
from codeanatomy.sources.source_file import Source, decode

OPTIONS = ExtractOptions()


def source_of(text: str) -> Source:
    source = decode("a.py", text.encode())
    assert isinstance(source, Source)
    return source


# Witnesses give CPython text, not bytes: of bytes, the parser's columns are of another kind.
STAGES: dict[str, Callable[[str], Any]] = {
    "parse": ast.parse,
    "symtable": lambda text: symtable.symtable(text, "<source>", "exec"),
    "compile": lambda text: compile(text, "<source>", "exec", dont_inherit=True),
}


def problem_of(text: str, stage: str) -> Problem:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            STAGES[stage](text)
        except SyntaxError as error:
            return problem_from(source_of(text), stage, error)
    raise AssertionError(f"{text!r} is valid")


def test_a_problem_has_the_fields_of_the_catalogue() -> None:
    problem = Problem("error", "parse", "SyntaxError", "invalid syntax")
    assert sorted(structs.asdict(problem)) == sorted(field.name for field in ERROR_FIELDS)
    assert problem.severity in SEVERITIES


# The text, what it points at, and the stages that find it.
BROKEN = [
    ("x = 1 1", "1", ("parse", "symtable", "compile")),
    ("x = (1", "(1", ("parse", "symtable", "compile")),
    ("x = 'a", "'a", ("parse", "compile")),
    ("x = '''a", "'''a", ("parse", "compile")),
    ("x = $", "$", ("parse", "compile")),
    ("x = “a”", "“a”", ("parse", "compile")),
    ("print 'x'", "print 'x'", ("parse", "compile")),
    ("f() = 1", "f() = 1", ("parse", "compile")),
    ("f(**a, *b)", "*b)" if sys.version_info < (3, 13) else ", *b)", ("parse", "compile")),
    ("x = 0777 + 1", "0777 + 1", ("parse", "symtable", "compile")),
    ("x = [0_7, é]", "0_7, é]", ("parse", "compile")),
    ("def f(a, a): pass", "a): pass", ("symtable", "compile")),
    ("lambda é, é: 1", "é: 1", ("symtable", "compile")),
    ("nonlocal x", "nonlocal x", ("symtable", "compile")),
    ("return", "return", ("compile",)),
    ("break", "break", ("compile",)),
    ("(yield)", "yield)", ("compile",)),
    ("[x async for x in y]", "[x async for x in y]", ("compile",)),
]
BEFORE = ("", "x; ", "'é'; ", "'😀\u0301ﬁ'; ", "'''a\nb'''; ", "\f", "é\r\n'ü'; ", "\n\n'ü'; ", "x\r'é'; ")


@pytest.mark.parametrize(("text", "target", "stages"), BROKEN)
@pytest.mark.parametrize("before", BEFORE)
def test_syntax_errors_say_where(text: str, target: str, stages: tuple[str, ...], before: str) -> None:
    if before.endswith("; ") and text.startswith("def"):
        before = before.removesuffix("; ") + "\n"
    source = source_of(f"{before}{text}\nnext = 1\n")
    for stage in stages:
        problem = problem_of(source.text, stage)
        assert problem.bstart is not None, (stage, problem)
        at = source.utf8[problem.bstart :].decode().split("\n")[0]
        assert at == target, (stage, problem)
        assert problem.bend == problem.bstart
        assert problem.line == source.line_of(problem.bstart)
        assert problem.bstart == source.offset_at(problem.line, problem.col or 0)
        assert (problem.severity, problem.stage, problem.error_type) == ("error", stage, "SyntaxError")


def test_after_a_string_of_several_lines_there_is_no_guess() -> None:
    """CPython turns bytes of the last line into characters of the first one."""
    for text, target, stages in BROKEN:
        source = source_of(f"'''é\né'''; {text}\n")
        for stage in () if text.startswith("def") else stages:
            problem = problem_of(source.text, stage)
            assert problem.line == 2
            assert problem.bstart in (None, len(source.utf8) - len(f"{target}\n".encode()))


@pytest.mark.parametrize("before", ["", "'é'; ", "x\n'é'; ", "'''\n''' 'é'; "])
@pytest.mark.parametrize("text", ["f'{a b}'", "f'é {a b}'", "f'''é\n{a b}'''", "f'{a b:{c}}'"])
def test_errors_in_formatted_strings_have_a_line_and_no_guess(before: str, text: str) -> None:
    """Before 3.12, CPython counts columns from the `{`."""
    source = source_of(before + text)
    problem = problem_of(source.text, "parse")
    assert problem.line == source.line_of(source.utf8.index(b"{a b"))
    place = source.utf8.index(b"a b}" if b"a b}" in source.utf8 else b"a b")
    assert problem.bstart in (None, place)
    assert (problem.bstart is None) == (problem.col is None)


@pytest.mark.parametrize(
    ("text", "col"), [("from __future__ import nope", None), ("é; from __future__ import division", 4)]
)
def test_future_statements_have_a_line_and_no_guess(text: str, col: int | None) -> None:
    """CPython counts columns from 1 for the first message and, before 3.12, from 0 for the second."""
    problem = problem_of(f"'doc'\n{text}", "compile")
    if col is None or sys.version_info < (3, 12):
        assert (problem.line, problem.col, problem.bstart) == (2, None, None)
    else:
        assert (problem.line, problem.col, problem.bstart) == (2, col, len(b"'doc'\n") + col)


@pytest.mark.parametrize(
    "text", ["if x:\n\ty\n        z\n", "if é:\né\n", "  é\n", "if é:\n  é\n é\n", "(\n\né"]
)
def test_whatever_cpython_points_at_is_in_the_text(text: str) -> None:
    for end in ("", "\n", "\r\n", "\r"):
        source = source_of(text.rstrip("\n").replace("\n", end or "\n") + end)
        problem = problem_of(source.text, "parse")
        assert problem.line is not None
        if problem.bstart is not None:
            assert 0 <= problem.bstart <= len(source.utf8)
            # Between two characters.
            source.utf8[problem.bstart :].decode()


def made_up(
    lineno: int | None, offset: int | None, text: str | None, end_offset: int | None = 1
) -> SyntaxError:
    return SyntaxError("said", ("a.py", lineno, offset, text, lineno, end_offset))


@pytest.mark.parametrize(
    ("error", "line", "col"),
    [
        (SyntaxError("said"), None, None),
        (SyntaxError(), None, None),
        (made_up(None, None, None), None, None),
        (made_up(0, 1, "é = 1"), None, None),
        (made_up(-1, 1, "é = 1"), None, None),
        (made_up(4, 1, ""), None, None),
        (made_up(10**9, 1, ""), None, None),
        (made_up(1, None, "é = 1"), 1, None),
        (made_up(1, 0, "é = 1"), 1, None),
        (made_up(1, -3, "é = 1"), 1, None),
        (made_up(1, 1, "é = 1"), 1, 0),
        (made_up(1, 2, "é = 1\n"), 1, 2),
        (made_up(1, 6, "é = 1"), 1, 6),
        # On the line end, behind it, and beyond.
        (made_up(1, 7, "é = 1\n"), 1, 7),
        (made_up(1, 8, "é = 1"), 1, 8),
        (made_up(1, 9, "é = 1"), 1, None),
        (made_up(1, 99, "é = 1\n"), 1, None),
        # CPython's text may begin some lines before; then it counts characters of other lines.
        (made_up(1, 3, "'a\né = 1\n"), 1, None),
        (made_up(2, 2, "'''a\nx\n"), 2, 1),
        # Another line than ours.
        (made_up(1, 2, "(é)"), 1, None),
        # Of the compiler: bytes, and none is within a character.
        (made_up(1, 2, None), 1, None),
        (made_up(1, 3, None), 1, 2),
        (made_up(1, 3, None, None), 1, None),
        (made_up(3, 1, ""), 3, 0),
    ],
)
def test_places_of_made_up_errors(error: SyntaxError, line: int | None, col: int | None) -> None:
    source = source_of("é = 1\r\nx\n")
    problem = problem_from(source, "parse", error)
    assert (problem.line, problem.col) == (line, col)
    assert problem.bstart == (None if line is None or col is None else source.line_starts[line - 1] + col)


def test_other_exceptions_say_what_and_not_where() -> None:
    source = source_of("x")
    problem = problem_from(source, "convert", ValueError("x" * 5_000), "warning")
    assert problem == Problem("warning", "convert", "ValueError", "x" * MESSAGE_CHARS)
    assert problem_from(source, "parse", RecursionError()).error_type == "RecursionError"
    assert problem_from(source, "parse", IndentationError("said")).error_type == "IndentationError"
    assert problem_from(source, "parse", SyntaxWarning("said"), "warning").message == "said"


# Witnesses.


def witness(
    speak: Callable[[Source, ExtractOptions], ExtractorResult], max_size: str = "max_file_size"
) -> Extractor:
    return Extractor("ast_files_v1", speak, "test 1", max_size)


def test_what_a_witness_says_is_not_touched() -> None:
    said = ExtractorResult({"nodes": {"ast_id": [0]}}, (Problem("info", "parse", "note", "said"),))
    assert run_extractor(witness(lambda *_: said), source_of("x"), OPTIONS) is said


@pytest.mark.parametrize(
    "error",
    [
        ValueError("é"),
        RecursionError("deep"),
        MemoryError(),
        KeyError("\ud800"),
        AssertionError(),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
        OSError(2, "gone"),
        ExceptionGroup("several", [ValueError()]),
        made_up(1, 1, "x"),
        made_up(99, 99, None),
    ],
)
def test_what_a_witness_raises_is_a_problem(error: Exception) -> None:
    def speak(_: Source, __: ExtractOptions) -> ExtractorResult:
        raise error

    said = run_extractor(witness(speak), source_of("x"), OPTIONS)
    assert said.cells == {}
    assert [(problem.severity, problem.stage) for problem in said.problems] == [("error", "extract")]
    assert said.problems[0].error_type == type(error).__name__


def test_an_endless_recursion_is_a_problem() -> None:
    def speak(source: Source, options: ExtractOptions) -> ExtractorResult:
        return speak(source, options)

    assert run_extractor(witness(speak), source_of("x"), OPTIONS).problems[0].error_type == "RecursionError"


def test_to_stop_is_not_a_problem() -> None:
    def speak(_: Source, __: ExtractOptions) -> ExtractorResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_extractor(witness(speak), source_of("x"), OPTIONS)


def test_large_files_are_not_shown() -> None:
    options = ExtractOptions(max_file_size=10, max_libcst_size=3)
    for max_size, limit in (("max_file_size", 10), ("max_libcst_size", 3)):
        shown: list[int] = []

        def speak(source: Source, _: ExtractOptions, shown: list[int] = shown) -> ExtractorResult:
            shown.append(len(source.raw))
            return ExtractorResult({})

        for size in (0, limit - 1, limit):
            assert run_extractor(witness(speak, max_size), source_of("x" * size), options).problems == ()
        said = run_extractor(witness(speak, max_size), source_of("x" * (limit + 1)), options)
        assert shown == [0, limit - 1, limit]
        assert said.cells == {}
        assert [(problem.stage, problem.error_type) for problem in said.problems] == [("read", "too_large")]
        assert f"extract.{max_size} = {limit}" in said.problems[0].message
