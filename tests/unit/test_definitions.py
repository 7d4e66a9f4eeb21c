"""Definitions and their qualified paths, against a second implementation on `ast`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from codeanatomy.definitions import definitions_of
from codeanatomy.extract.ast_files import ast_files_v1
from support import corpus
from support.normalize_stage import OPTIONS, source_of

CASES = {
    "repeated": ("def f(): ...\ndef f(): ...\nclass f: ...\n", ["", "f", "f#1", "f#2"]),
    "overloads": (
        "@overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\ndef f(x): ...\n",
        ["", "f", "f#1", "f#2"],
    ),
    "conditional": (
        "if x:\n def f(): ...\nelse:\n def f(): ...\ntry: import A\nexcept E:\n class A: ...\nclass A: ...",
        ["", "f", "f#1", "A", "A#1"],
    ),
    "methods": (
        "class A:\n @property\n def p(self): ...\n @p.setter\n def p(self): ...\nclass B:\n def p(): ...\n",
        ["", "A", "A.p", "A.p#1", "B", "B.p"],
    ),
    "lambdas": (
        "f = lambda: (lambda: 0)\ng = [lambda: 1, lambda: 2]\n",
        ["", "<lambda>#0", "<lambda>#0.<lambda>#0", "<lambda>#1", "<lambda>#2"],
    ),
    "comprehensions": (
        "[x for x in (y for y in z)]\n{x for x in z}\n{x: [w for w in x] for x in z}\n",
        [
            "",
            "<listcomp>#0",
            "<listcomp>#0.<genexpr>#0",
            "<setcomp>#0",
            "<dictcomp>#0",
            "<dictcomp>#0.<listcomp>#0",
        ],
    ),
    "headers": (
        "@d(lambda: 0)\ndef f(x=lambda: 1, *, y: [t for t in u]) -> lambda: 2: ...\nclass A(lambda: 3): ...",
        ["", "f", "f.<lambda>#0", "f.<listcomp>#0", "f.<lambda>#1", "f.<lambda>#2", "A", "A.<lambda>#0"],
    ),
    "nested": (
        "def f():\n    def g():\n        class C:\n            def m(self): ...\n    def g(): ...\n",
        ["", "f", "f.g", "f.g.C", "f.g.C.m", "f.g#1"],
    ),
    "empty": ("", [""]),
    "unicode": ("def ﬁ(): ...\nclass Ä: ...\n", ["", "fi", "Ä"]),
}


@pytest.mark.parametrize("name", CASES)
def test_paths(name: str) -> None:
    """Repeated names are numbered in the order of the tree, whatever they define."""
    text, expected = CASES[name]
    assert sorted(definitions(text)) == sorted(expected)


def test_a_definition_is_where_its_nodes_are() -> None:
    """From the first to the last node, and from its first decorator to its end."""
    found = extracted("x = 1\n@a\n@b\ndef f(y): return [y]\nx\n")["definitions"]
    nodes = extracted("x = 1\n@a\n@b\ndef f(y): return [y]\nx\n")["nodes"]
    assert found["kind"] == ["Module", "FunctionDef"]
    inside = set(range(found["ast_id"][1], found["ast_end"][1]))
    assert [nodes["name"][node] for node in sorted(inside) if nodes["name"][node]] == [
        "f",
        "y",
        "y",
        "a",
        "b",
    ]
    assert (found["outer_bstart"][1], found["bstart"][1], found["bend"][1]) == (7, 12, 32)


def test_thousands_of_functions() -> None:
    """A generated module has a path for each of them."""
    text = "".join(f"def f{number % 700}(): return [x for x in f]\n" for number in range(5_000))
    paths = definitions(text)
    assert len(paths) == len(set(paths)) == 10_001
    assert "f0#7.<listcomp>#0" in paths


@pytest.mark.parametrize("package", ["requests", "flask"])
def test_paths_of_real_files(package: str) -> None:
    """The paths of a whole package are unique in each file, and as a walk over `ast` finds them."""
    for path in sorted(corpus.package(package).rglob("*.py")):
        text = path.read_text("utf-8")
        paths = definitions(text)
        assert len(set(paths)) == len(paths)
        assert sorted(paths) == sorted(walked(ast.parse(text)))


def extracted(text: str) -> dict[str, dict[str, list[object]]]:
    return ast_files_v1(source_of(text.encode()), OPTIONS).cells


def definitions(text: str) -> list[str]:
    return definitions_of(extracted(text)["nodes"])["path"]


LABELS = {
    ast.Lambda: "<lambda>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}


def walked(tree: ast.AST, path: str = "", seen: Counter[str] | None = None) -> Iterator[str]:
    """Paths by a recursive walk: a second implementation."""
    if seen is None:
        yield path
        seen = Counter()
    for child in ast.iter_child_nodes(tree):
        is_named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        label = child.name if is_named else LABELS.get(type(child))
        if label is None:
            yield from walked(child, path, seen)
            continue
        number = seen[label]
        seen[label] += 1
        own = label if is_named and not number else f"{label}#{number}"
        yield from walked(child, f"{path}.{own}" if path else own)
