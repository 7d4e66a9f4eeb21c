"""Qualified names: those of LibCST's provider where that follows Python, and what Python says elsewhere."""

from __future__ import annotations

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, QualifiedNameProvider

from codeanatomy.extract.libcst.qualified_names import NO_CANDIDATES, NameScope
from support.libcst_rows import names, rows


def by_provider(code: str) -> list[list[str]]:
    """The names of the calls, in source order."""
    wrapper = MetadataWrapper(cst.parse_module(code))
    found = wrapper.resolve(QualifiedNameProvider)
    calls = [node() if callable(node) else node for node in map(found.get, in_order(wrapper.module))]
    return [sorted(name.name for name in names or ()) for names in calls]


def in_order(module: cst.Module) -> list[cst.Call]:
    todo: list[cst.CSTNode] = [module]
    calls = []
    while todo:
        node = todo.pop()
        todo += reversed(node.children)
        if isinstance(node, cst.Call):
            calls.append(node)
    return calls


SAME = {
    "import os\nos.path.join()\n": [["os.path.join"]],
    "import os.path\nos.path.join()\nos.getcwd()\n": [["os.path.join"], ["os.getcwd"]],
    "import os.path as p\np.join()\n": [["os.path.join"]],
    "try:\n    import a.b.c\nexcept E:\n    a = None\na.b.d()\na.d()\n": [["a.b.d"], ["a.d", "a.d"]],
    "from os import path\npath.join()\n": [["os.path.join"]],
    "from os import path as p\np.join()\n": [["os.path.join"]],
    "from . import a\nfrom .b import c\nfrom ..d.e import f as g\na(); c.x(); g()\n": [
        [".a"],
        [".b.c.x"],
        ["..d.e.f"],
    ],
    "print()\nunknown()\n": [["builtins.print"], []],
    "from a import *\nb()\n": [[]],
    "def f(): pass\nf()\n": [["f"]],
    "class C:\n    def m(self):\n        self.n()\n        C.m()\n": [["C.m.<locals>.self.n"], ["C.m"]],
    "def f():\n    def g(): pass\n    g()\n": [["f.<locals>.g"]],
    "class C:\n    def m(): pass\n    m()\n    class D:\n        m()\n": [["C.m"], []],
    "class C:\n    len = 1\n    def m(self): len()\n    x = [len() for i in j]\n": [
        ["builtins.len"],
        ["builtins.len"],
    ],
    "if a:\n    from b import c\nelif d:\n    from e import f as c\nelse:\n    c = None\nc()\n": [
        ["b.c", "c", "e.f"]
    ],
    "[i() for i in j()]\n{k: v() for k, v in i()}\n": [["<comprehension>.i"], [], ["<comprehension>.v"], []],
    "def f(x=y(), *z: w()) -> v():\n    x(); z()\n": [[], [], [], ["f.<locals>.x"], ["f.<locals>.z"]],
    "def y(): pass\ndef f(y=y()): y()\n": [["y"], ["f.<locals>.y"]],
    "g = lambda x: x()\n": [["<locals>.x"]],
    "import a as x\n[x() for x in x() if x()]\n": [["<comprehension>.x"], ["a"], ["<comprehension>.x"]],
    "class C:\n    def g(): 0\n    def f[T](a: g()): g()\n": [["C.g"], []],
    "from m import x\ndef a():\n    x = 1\n    def f():\n        global x\n        x()\n": [["m.x"]],
    "def f():\n    global g\n    def g(): pass\n    g()\ng()\n": [["g"], ["g"]],
    "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n        x()\n": [["f.<locals>.x"]],
    "with a as b: b()\nfor c, *d in e: c(); d()\ntry: f\nexcept G as h: h()\n": [["b"], ["c"], ["d"], ["h"]],
    "def f(x):\n    x()\n    from a import x\n": [["a.x", "f.<locals>.x"]],
    "@d()\nclass C(b(), k=m()):\n    d = b = m = None\n": [[], [], []],
}


@pytest.mark.parametrize("code", SAME)
def test_as_the_provider(code: str) -> None:
    assert [sorted(found) for found in names(code)] == SAME[code] == by_provider(code)


OTHERWISE = {
    "the first name decides": (
        "import a.b\ndef f(a):\n    a.b.c()\n",
        [["f.<locals>.a.b.c"]],
        [["a.b.c"]],
    ),
    "what follows a builtin is kept": ("str.join()\n", [["builtins.str.join"]], [["builtins.str"]]),
    "module attributes are no builtins": ("__doc__.strip()\n", [[]], [["builtins.__doc__"]]),
    "walrus leaves comprehensions": (
        "def f():\n    [(y := x) for x in z]\n    y()\n",
        [["f.<locals>.y"]],
        [[]],
    ),
    "nonlocal goes to the function that has it": (
        "def f():\n  x = 1\n  def g():\n    def h():\n      nonlocal x\n      x = 2\n    x()\n",
        [["f.<locals>.x"]],
        [["f.<locals>.g.<locals>.x"]],
    ),
    "patterns bind": ("match a:\n    case [b, *c]: b(); c()\n", [["b"], ["c"]], [[], []]),
    "only names joined by dots are named": ("'a'.join()\nf[0]()\n", [[], []], [["builtins.None"], []]),
}


@pytest.mark.parametrize("rule", OTHERWISE)
def test_as_python(rule: str) -> None:
    code, ours, theirs = OTHERWISE[rule]
    assert names(code) == ours
    # The difference is one: should LibCST come to agree, the rule can go.
    assert theirs != ours
    assert by_provider(code) == theirs


def test_candidates_come_in_the_order_of_their_bindings() -> None:
    code = "try:\n    import json as j\nexcept E:\n    j = None\n    import simplejson as j\nj.loads()\n"
    (found,) = rows(code, "callsites", "qualified_names")
    assert found == {
        "name": ["json.loads", "j.loads", "simplejson.loads"],
        "source": ["import", "local", "import"],
    }


def test_definitions() -> None:
    code = "class C:\n  def m(self):\n    def g(): pass\n    class D: 0\n    x = lambda: 0\ndef m(): 0\n"
    assert names(code, "defs") == [
        ["C"],
        ["C.m"],
        ["C.m.<locals>.g"],
        ["C.m.<locals>.D"],
        [],
        ["m"],
    ]


def test_a_definition_declared_global_or_nonlocal() -> None:
    code = "def f():\n  h = 1\n  def k():\n    global g\n    nonlocal h\n    def g(): 0\n    def h(): 0\n"
    assert names(code, "defs")[2:] == [["g"], ["f.<locals>.h"]]
    assert names("def f():\n  global \N{LATIN SMALL LIGATURE FI}\n  def fi(): 0\n", "defs") == [["f"], ["fi"]]


def test_type_parameters_are_seen_in_the_definition_and_nowhere_else() -> None:
    code = "def f[T](a=T()) -> T(): T()\nclass C[T](T()):\n  x = T()\n  def m(): T()\ntype X[T] = T()\nT()\n"
    assert names(code) == [["T"], ["T"], ["T"], ["T"], ["T"], ["T"], ["T"], []]


def test_names_are_compared_as_the_compiler_reads_them() -> None:
    assert names("from a import \N{LATIN SMALL LIGATURE FI}x\nfix()\n") == [["a.fix"]]
    assert rows("\N{LATIN SMALL LIGATURE FI}x()\n", "callsites", "dotted") == ["\N{LATIN SMALL LIGATURE FI}x"]


def test_an_unknown_name_has_no_candidates() -> None:
    scope = NameScope()
    assert scope.resolve("a.b") == scope.resolve(None) == NO_CANDIDATES == {"name": [], "source": []}
    scope.bind("a")
    # Answers are kept, so questions come after the last binding.
    assert NameScope("function", scope, "f").resolve("a.b") == {"name": ["a.b"], "source": ["local"]}
