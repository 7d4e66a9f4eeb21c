"""Syntax that is newer than the interpreter: the error of the file names the version that it needs."""

from __future__ import annotations

import ast
import sys

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.newer_syntax import explain_newer_syntax
from codeanatomy.sources.source_file import Source, decode

# The version that it needs, and the words for it.
NEWER = {
    "class Box[T]: pass": ((3, 12), "type parameters"),
    "def first[T](values): pass": ((3, 12), "type parameters"),
    "async def first[T](values): pass": ((3, 12), "type parameters"),
    "class Box[T = int]: pass": ((3, 13), "defaults of type parameters"),
    "type Names = list[str]": ((3, 12), "type statements"),
    "type Pair[T] = tuple[T, T]": ((3, 12), "type statements"),
    'x = f"{a["b"]}"': ((3, 12), "quotes"),
    'x = f"{f"{1}"}"': ((3, 12), "quotes"),
    "x = f'{\"\\n\".join(a)}'": ((3, 12), "quotes, backslashes"),
    'x = t"{a}"': ((3, 14), "template strings"),
    "try: pass\nexcept A, B: pass": ((3, 14), "exception types"),
}
# Errors in every version.
BROKEN = (
    'x = f"{a"',
    'x = f"{a!}"',
    "def f(): return 1 +",
    "class A(",
    "type(x) = 3",
    "print 'done'",
)


def message_of(text: str) -> str:
    source = decode("a.py", text.encode())
    assert isinstance(source, Source)
    (problem,) = ast_files_v1(source, ExtractOptions()).problems
    return problem.message


@pytest.mark.parametrize("text", NEWER)
def test_an_error_names_the_version_that_a_file_needs(text: str) -> None:
    version, what = NEWER[text]
    if sys.version_info[:2] >= version:
        ast.parse(text)
        return
    needed = f"need Python {version[0]}.{version[1]}, and Python {sys.version_info[0]}."
    assert what in message_of(text)
    assert needed in message_of(text)


@pytest.mark.parametrize("text", BROKEN)
def test_an_error_of_every_version_names_none(text: str) -> None:
    assert "need Python" not in message_of(text)


def test_a_version_that_has_the_syntax_is_not_told_of_it() -> None:
    assert explain_newer_syntax("class Box[T]: pass", 9, "invalid syntax", (3, 11)) != ""
    assert explain_newer_syntax("class Box[T]: pass", 9, "invalid syntax", (3, 12)) == ""
