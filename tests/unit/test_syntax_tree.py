"""The tree that is read back from rows is CPython's, field by field."""

from __future__ import annotations

import argparse
import ast
import dataclasses
from pathlib import Path

import pytest

from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.syntax_tree import Tree
from support.normalize_stage import OPTIONS, source_of

TEXTS = {
    "gaps": "{1: 2, **a, 3: 4, **b}\ndef f(*, a, b=1, c, d=2, e): ...\nlambda *, x, y=0: x\n",
    "patterns": "match x:\n  case {'a': 1, **r}: pass\n  case [C(1, y=2), *_, None] | 'b' as z: pass\n",
    "contexts": "a, *b = c.d[0] = [e]\ndel f, (g, h.i)\nfor j in k: pass\n",
    "everything": (
        "async def f(a, /, b: int = 1, *c, d=2, **e) -> None:\n  async with a as b, c: await d\n"
        "  return [x async for x in y if z if w]\n@d1\n@d2(1)\nclass C(A, metaclass=M):\n  x: int\n"
        "try:\n  raise A from B\nexcept* (A, B) as e:\n  pass\nfinally:\n  x = f'{a!r:>{b}} {c}'\n"
        "global g\nimport a.b as c, d\nfrom . import *\nx = (yield) if not a < b <= c else lambda: 0\n"
    ),
    "empty": "",
}
MODULES = (argparse, dataclasses)


def tree_of(text: str | bytes) -> Tree:
    nodes = ast_files_v1(source_of(text), OPTIONS).cells["nodes"]
    assert nodes is not None
    return Tree(nodes)


def check(tree: Tree, top: ast.Module) -> int:
    """Walk both at once; the number of nodes that were compared."""
    todo: list[tuple[ast.AST, int]] = [(top, 0)]
    seen = 0
    while todo:
        node, number = todo.pop()
        seen += 1
        assert tree.kind[number] == type(node).__name__
        below = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
        assert [tree.kind[child] for child in tree.children(number)] == [
            type(each).__name__ for each in below
        ]
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr_context):
                assert tree.context[number] == type(value).__name__
            elif isinstance(value, ast.AST):
                inner = tree.one(number, field)
                assert inner is not None
                assert tree.parent[inner] == number
                todo.append((value, inner))
            elif isinstance(value, list) and all(isinstance(each, ast.AST | None) for each in value):
                numbers = tree.gapped(number, field, len(value))
                assert [each is None for each in numbers] == [each is None for each in value]
                todo += [(each, at) for each, at in zip(value, numbers, strict=True) if at is not None]
            else:
                assert tree.one(number, field) is None
        assert tree.end[number] - number == sum(1 for _ in ast.walk(node))
    return seen


@pytest.mark.parametrize("name", TEXTS)
def test_every_field_is_there(name: str) -> None:
    check(tree_of(TEXTS[name]), ast.parse(TEXTS[name]))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_modules_of_the_standard_library_are_the_same(module: object) -> None:
    raw = Path(str(module.__file__)).read_bytes()  # type: ignore[attr-defined]
    assert check(tree_of(raw), ast.parse(raw)) > 3000


@pytest.mark.parametrize(
    "text",
    ["1", "-0.0", "1e400", "1j", "'a\\ud800'", "b'\\x00'", "None", "True", "'''x\ny'''", "0xff", "..."],
)
def test_constants_are_read_as_python_reads_them(text: str) -> None:
    tree = tree_of(f"x = {text.removeprefix('-')}")
    constants = [number for number, kind in enumerate(tree.kind) if kind == "Constant"]
    expected = ast.literal_eval(text.removeprefix("-"))
    assert repr(tree.constant(constants[0])) == repr(expected if text != "1e400" else ...)


def test_a_cut_constant_is_not_known() -> None:
    tree = tree_of(f"x = {'a' * 100_000!r}")
    constants = [number for number, kind in enumerate(tree.kind) if kind == "Constant"]
    assert tree.constant(constants[0]) is ...


def test_places_are_bytes() -> None:
    tree = tree_of("é = f(ü)\n")
    call = tree.kind.index("Call")
    assert (tree.bstart[call], tree.bend[call], tree.line[call]) == (5, 10, 1)
