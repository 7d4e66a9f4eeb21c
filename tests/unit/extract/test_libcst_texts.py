"""Docstrings and type comments as CPython sees them."""

from __future__ import annotations

import ast
import warnings

import pytest

from support.libcst_rows import extract_libcst, read, rows, table, texts

DOCSTRINGS = [
    '"""a"""\n',
    "'a' \"b\"\n",
    "('a'\n 'b')\n",
    "(('a'))\n",
    "# c\n\n'''a\n  b\n'''\n",
    "'''a\r\nb\rc'''\r\n",
    "r'\\d'\nx\n",
    "u'é😀'\n",
    "'\\n\\x41\\N{DIGIT ONE}\\\nb'\n",
    "'\\ud800'\n",
    "'\\d'\n",
    "'a'; x = 1\n",
    "''\n",
    "b'a'\n",
    "f'a'\n",
    "'a' f'b'\n",
    "'a' + 'b'\n",
    "'a',\n",
    "'a'.b\n",
    "x = 'a'\n",
    "if x: 'a'\n",
    "[\n'a']\n",
    "1\n",
    "",
    "# 'a'\n",
    "class C: 'a'\n",
    "class C:\n    'a' 'b'\n    def f(self): 'c'; return 1\n",
    "def f():\n    # c\n    'a'\n",
    "async def f():\n    '''a'''\n",
    "def f():\n    x = 1\n    'a'\n",
    "def f():\n    def g():\n        'a'\n",
    "def f():\n    if x:\n        'a'\n",
    "'''it's \"\" fine'''\n",
    "'a''b'\n",
    "''''a'''\n",
]


def docstrings_by_ast(code: str) -> list[tuple[str, str]]:
    kinds = {ast.Module: "module", ast.ClassDef: "class"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(code)
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, owners)]
    found = [(kinds.get(type(node), "function"), ast.get_docstring(node, clean=False)) for node in nodes]
    return [(kind, text) for kind, text in found if text is not None]


@pytest.mark.parametrize("code", DOCSTRINGS)
def test_a_docstring_is_what_cpython_says(code: str) -> None:
    assert rows(code, "docstrings", "owner_kind", "text") == docstrings_by_ast(code)


def test_docstrings_know_their_owner_and_their_place() -> None:
    code = "'é'\nclass C:\n    '''m\n    '''\n    def f(self): ('n'\n'o')\n"
    assert texts(code, "docstrings") == ["'é'", "'''m\n    '''", "'n'\n'o'"]
    assert texts(code, "docstrings", "owner_") == [None, *texts(code, "defs", "def_")]
    assert rows(code, "docstrings", "line") == [1, 3, 5]


def test_a_docstring_without_a_value_has_no_text() -> None:
    assert rows("'\\N{no such name}'\n", "docstrings", "text", "bstart") == [(None, 0)]


TYPED = """\
x = []  # type: list[int]
self.y = é = 1  # type: int
self.y = 1  #type:int\t
a, b = c  # type: int, str
for i in j:  # type: int
    pass
with k as l:  # type: str
    pass
with k as l.m, n:  # type: str
    pass
def f(a, b):  # type: (int, str) -> bool
    z = 1  # type: 😀
def g(a,  # type: int
      *b,  # type: str
      c=1  # type: bool
      ):
    # no type
    # type: (...) -> None
    # type: ignore[no]
    pass
v = 1  # type: ignore
v = 1  # type: ignore[x]
v = 1  # type: ignored
v = 1  # a type: int
"""


def test_type_comments() -> None:
    found = rows(TYPED, "type_exprs", "kind", "role", "name", "text", "line")
    assert {kind for kind, *_ in found} == {"type_comment"}
    assert [row for _, *row in found] == [
        ["variable", "x", "list[int]", 1],
        ["variable", None, "int", 2],
        ["attribute", "y", "int", 3],
        ["variable", None, "int, str", 4],
        ["variable", "i", "int", 5],
        ["variable", "l", "str", 7],
        ["variable", None, "str", 9],
        ["signature", None, "(int, str) -> bool", 11],
        ["variable", "z", "😀", 12],
        ["param", "a", "int", 13],
        ["param", "b", "str", 14],
        ["param", "c", "bool", 15],
        ["signature", None, "(...) -> None", 18],
        ["variable", "v", "ignored", 23],
    ]
    assert texts(TYPED, "type_exprs") == [text for _, _, text, _ in (row[1:] for row in found)]
    assert texts(TYPED, "type_exprs", "target_") == [name for _, name, _, _ in (row[1:] for row in found)]
    owners = [
        read(TYPED).line_of(start) if start is not None else None
        for start in rows(TYPED, "type_exprs", "owner_bstart")
    ]
    assert owners == [None] * 7 + [11, 11, 13, 13, 13, 13, None]


def type_comments_by_ast(code: str) -> set[tuple[int, str]]:
    """Line and text; CPython counts trailing white space in, and says the line of the statement."""
    tree = ast.parse(code, type_comments=True)
    found = [getattr(node, "type_comment", None) for node in ast.walk(tree)]
    return sorted(text.rstrip() for text in found if text is not None)


def test_type_comments_are_those_of_cpython() -> None:
    assert sorted(rows(TYPED, "type_exprs", "text")) == type_comments_by_ast(TYPED)


@pytest.mark.parametrize(
    "code",
    [
        "# type: int\n",
        "x  # type: int\n",
        "x: int = 1  # type: int\n",
        "f(a)  # type: int\n",
        "x += 1  # type: int\n",
    ],
)
def test_elsewhere_it_is_a_comment(code: str) -> None:
    said = extract_libcst(code)
    assert "type_comment" not in table(said, "type_exprs", "kind")
    assert len(table(said, "comments", "text")) == 1


def test_annotations() -> None:
    code = (
        "def f(a: int, *b: 'str', c: ('x' 'y') = 1, **d: List['T']) -> (None): pass\n"
        "class C:\n    x: é = 1\n    y: 'int'\ndef g():\n    self.z: int = 2\n    w[0]: str = 3\n"
    )
    assert rows(code, "type_exprs", "kind", "role", "name", "text") == [
        ("annotation", "param", "a", "int"),
        ("string_annotation", "param", "b", "'str'"),
        ("string_annotation", "param", "c", "'x' 'y'"),
        ("annotation", "param", "d", "List['T']"),
        ("annotation", "return", None, "None"),
        ("annotation", "variable", "x", "é"),
        ("string_annotation", "variable", "y", "'int'"),
        ("annotation", "attribute", "z", "int"),
        ("annotation", "variable", None, "str"),
    ]
    assert texts(code, "type_exprs") == rows(code, "type_exprs", "text")
    assert texts(code, "type_exprs", "target_") == rows(code, "type_exprs", "name")
    definitions = texts(code, "defs", "def_")
    owners = [definitions[0]] * 5 + [definitions[1]] * 2 + [definitions[2]] * 2
    assert texts(code, "type_exprs", "owner_") == owners
