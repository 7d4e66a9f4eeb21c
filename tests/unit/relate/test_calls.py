"""What one place runs: methods that run together, one method of several classes, and what is meant by it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from support.relate_stage import relations, solved

Row = dict[str, Any]
CLASSES = """
class A:
    def __enter__(self): return self
    def __exit__(self, *_): ...
    async def __aenter__(self): return self
    async def __aexit__(self, *_): ...
    def __iter__(self): return self
    def __next__(self): return 1
    def __str__(self): ...
class B(A):
    def __enter__(self): return self
    def __iter__(self): return self
    def __next__(self): return 1
    def __repr__(self): ...
class C:
    def __aiter__(self): return self
    async def __anext__(self): return 1
class Meta(type):
    def __iter__(self): return A()
class D(metaclass=Meta): ...
class E:
    def __delattr__(self, name): ...
    @property
    def p(self): ...
    @p.deleter
    def p(self): ...
class F(Exception):
    def __init__(self): ...
class G:
    def __repr__(self): ...
either = A() if A else B()
"""


def rows_of(text: str, *kinds: str, path: str = "main.py") -> list[Row]:
    """The rows of some kinds in the order of the text."""
    rows = [row for rows in relations(solved({path: text})) for row in rows.batch().to_pylist()]
    found = [row for row in rows if row["relation_kind"] in kinds]
    return sorted(found, key=lambda row: (row["bstart"], row["dst_qname"] or "", row["role"] or ""))


def run_by(statement: str) -> list[str]:
    """What a statement runs by itself: `A.__iter__ 0.5 0`, with the number of its group if it has one."""
    rows = rows_of(CLASSES + statement, "CALLS", "INSTANTIATES")
    own = [row for row in rows if row["line"] > CLASSES.count("\n") and row["src_kind"] == "AST_NODE"]
    groups = list(dict.fromkeys(row["ambiguity_group_id"] for row in own if row["ambiguity_group_id"]))
    sizes = Counter(row["ambiguity_group_id"] for row in own)
    assert all(sizes[group] > 1 for group in groups)
    return [
        " ".join(
            [
                row["dst_qname"].removeprefix("main."),
                str(row["confidence"]),
                *([str(groups.index(row["ambiguity_group_id"]))] if row["ambiguity_group_id"] else []),
            ]
        )
        for row in own
    ]


ITERATED = ["A.__iter__ 0.7", "A.__next__ 0.7"]


@pytest.mark.parametrize(
    ("statement", "run"),
    [
        ("with A(): ...", ["A.__enter__ 0.7", "A.__exit__ 0.7"]),
        ("with either: ...", ["A.__enter__ 0.5 0", "A.__exit__ 0.7", "B.__enter__ 0.5 0"]),
        ("for x in A(): ...", ITERATED),
        ("[x for x in A()]", ITERATED),
        ("x, y = A()", ITERATED),
        ("x, *y = A()", ITERATED),
        ("[*A()]", ITERATED),
        ("x, y = D", [*ITERATED[1:], "Meta.__iter__ 0.7"]),
        ("for x in D: ...", [*ITERATED[1:], "Meta.__iter__ 0.7"]),
        (
            "for x in either: ...",
            ["A.__iter__ 0.5 0", "A.__next__ 0.5 1", "B.__iter__ 0.5 0", "B.__next__ 0.5 1"],
        ),
        (
            "async def f():\n    async with A(): ...\n    async for x in C(): ...",
            ["A.__aenter__ 0.7", "A.__aexit__ 0.7", "C.__aiter__ 0.7", "C.__anext__ 0.7"],
        ),
        ("f'{A() if A else G()}'", ["A.__str__ 0.5 0", "G.__repr__ 0.5 0"]),
        ("del E().p", ["E.__delattr__ 0.7", "E.p 0.7"]),
        ("raise F", ["F 0.7", "F.__init__ 0.7"]),
    ],
)
def test_methods_run_together_unless_they_are_one(statement: str, run: list[str]) -> None:
    assert run_by(statement) == run


def test_the_call_graph_is_as_sure_as_its_calls() -> None:
    rows = rows_of(CLASSES + "def f():\n    with A(): ...\n", "CALL_GRAPH")
    sure = {row["dst_qname"]: row["confidence"] for row in rows if row["src_qname"] == "main.f"}
    assert sure == {"main.A.__enter__": 0.7, "main.A.__exit__": 0.7}


def test_default_factories_run_beside_the_class() -> None:
    text = (
        "from dataclasses import dataclass, field\nclass K:\n  def __init__(self): ...\n"
        "@dataclass\nclass P:\n  x: int\n  y: list = field(default_factory=list)\n"
        "  z: K = field(default_factory=K)\n  def __post_init__(self): ...\n"
        "@dataclass\nclass Q(P): ...\n"
        "P(1)\n(P if P else Q)(2)\n"
    )
    rows = rows_of(text, "CALLS", "CALLS_NAME", "INSTANTIATES")

    def at(line: int) -> list[tuple[Any, ...]]:
        fields = ("dst_qname", "role", "resolution_method", "confidence")
        return [tuple(row[field] for field in fields) for row in rows if row["line"] == line]

    made = [
        ("main.K", "default_factory", "values", 0.7),
        ("main.K.__init__", "default_factory", "values", 0.7),
    ]
    listed = ("builtins.list", "default_factory", "values", 0.7)
    init = "main.P.__post_init__"
    assert at(12) == [listed, *made, ("main.P", None, "scope", 0.9), (init, None, "scope", 0.9)]
    either = [(name, None, "values", 0.5) for name in ("main.P", init, "main.Q")]
    assert at(13) == [listed, *made, *either]
    groups = [row["ambiguity_group_id"] for row in rows if row["line"] == 13]
    assert groups[:3] == [None] * 3
    assert len(set(groups[3:])) == 1


def test_arguments_of_alternatives_have_the_group_of_the_call() -> None:
    rows = rows_of("def f(a): ...\ndef g(b): ...\n(f if f else g)(1)\nf(2)\n", "CALLS", "PASSES_TO")
    groups = {line: {row["ambiguity_group_id"] for row in rows if row["line"] == line} for line in (3, 4)}
    assert len(groups[3]) == 1
    assert None not in groups[3]
    assert groups[4] == {None}


def test_a_property_means_the_function_that_runs() -> None:
    text = (
        "class A:\n  @property\n  def p(self): ...\n  @p.setter\n  def p(self, v): ...\n"
        "  @p.deleter\n  def p(self): ...\n  def m(self): return self.p\n"
        "a = A()\na.p\na.p = 1\ndel a.p\na.p += 1\n"
    )
    # A line below their decorators.
    functions = {
        row["dst_id"]: row["line"] + 1 for row in rows_of(text, "DECORATES") if row["dst_kind"] == "FUNCTION"
    }
    meant = [
        (row["line"], functions[row["dst_id"]])
        for row in rows_of(text, "REFERS_TO")
        if row["src_kind"] == "ATTRIBUTE_REF" and row["dst_qname"] == "main.A.p"
    ]
    assert sorted(meant) == [(8, 3), (10, 3), (11, 5), (12, 7), (13, 3), (13, 5)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import functools\ndef d(f):\n  @functools.wraps(f)\n  def w(): ...", "external_result"),
        ("class A:\n  @property\n  def p(self): ...\n  @p.setter\n  def p(self, v): ...", "external_result"),
        ("import threading\nthreading.Lock()()", "external_result"),
        ("from typing import Callable\ndef f(g: Callable[[], int]): g()", "unknown_value"),
        ("x = 1\nx()", "not_callable"),
        (
            "import contextlib\n@contextlib.contextmanager\ndef c(): yield\n@c()\ndef f(): ...\nf()",
            "external_result",
        ),
    ],
)
def test_why_nothing_runs(text: str, reason: str) -> None:
    rows = rows_of(text, "CALLS")
    assert [row["reason"] for row in rows if row["dst_id"] is None] == [reason]


def test_all_overloads_of_a_stub_may_be_meant() -> None:
    stub = (
        "from typing import overload\ndef f(n: bytes) -> bytes: ...\n"
        "@overload\ndef f(n: int) -> int: ...\n@overload\ndef f(n: str) -> str: ...\n"
        "class A:\n  @overload\n  def m(self, n: int): ...\n  @overload\n  def m(self, n: str): ...\n"
    )
    main = "from m import f, A\nf(1).bit_length()\nA().m(1)\n"

    def called(path: str) -> list[tuple[Any, ...]]:
        rows = [each for rows in relations(solved({path: stub, "main.py": main})) for each in rows.rows()]
        calls = [row for row in rows if row["src_kind"] == "CALLSITE" and row["dst_kind"] != "CLASS"]
        return sorted((row["line"], row["dst_qname"], row["confidence"]) for row in calls if row["dst_id"])

    assert called("m.pyi") == [
        (2, "builtins.int.bit_length", 0.3),
        *[(2, "m.f", 0.5)] * 2,
        *[(3, "m.A.m", 0.5)] * 2,
    ]
    # In a module the last definition is the one that stands.
    assert called("m.py") == [(2, "m.f", 0.9), (3, "m.A.m", 0.7)]


def test_imports_of_namespace_packages_lead_to_packages() -> None:
    sources = {
        "space/one/part.py": "def f(): ...\n",
        "main.py": "from space.one import part\nimport space.one.part\nspace.one.part.f()\n",
    }
    rows = [row for rows in relations(solved(sources)) for row in rows.batch().to_pylist()]
    found = {
        (row["relation_kind"], row["line"], row["dst_qname"])
        for row in rows
        if row["dst_kind"] == "PACKAGE" and row["dst_id"] == f"package:test:{row['dst_qname']}"
    }
    assert found == {
        ("IMPORTS_MODULE", 1, "space.one"),
        ("REFERS_TO", 3, "space"),
        ("REFERS_TO", 3, "space.one"),
    }
    assert all(row["confidence"] == 0.9 for row in rows if row["dst_kind"] == "PACKAGE")
    assert not [row for row in rows if row["dst_kind"] == "EXTERNAL_MODULE"]
