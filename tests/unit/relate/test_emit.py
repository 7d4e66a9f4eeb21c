"""Rows of relations: what they say of small programs, what holds for all, and hostile repositories."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from codeanatomy import catalog
from codeanatomy.node_ids import PREFIXES
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.values.solver import MAX_OBJECTS
from codeanatomy.relate.values.state import State
from support import callgraph_score as score
from support.folders import TESTS
from support.relate_stage import call_edges, digest, relations, solved, sources_below

Row = dict[str, Any]
CASES = score.cases()
DEFINITIONS = {"CLASS", "FUNCTION", "BINDING"}
MODULES = {"MODULE", "PACKAGE", "EXTERNAL_MODULE"}
SITES = {"CALLSITE", "AST_NODE", "DECORATOR"}
# Which nodes a relation may join.
ENDS: dict[str, tuple[set[str], set[str]]] = {
    "REFERS_TO": (
        {"NAME_REF", "ATTRIBUTE_REF", "ARGUMENT", "AST_NODE"},
        {*DEFINITIONS, *MODULES, "PARAMETER", "QUALIFIED_NAME"},
    ),
    "DEFINES_BINDING": ({"ATTRIBUTE_REF"}, {"BINDING"}),
    "IMPORTS_MODULE": ({"IMPORT_ALIAS"}, MODULES),
    "IMPORTS_NAME": ({"IMPORT_ALIAS"}, {*DEFINITIONS, *MODULES, "QUALIFIED_NAME"}),
    "RE_EXPORTS": ({"MODULE"}, {*DEFINITIONS, "MODULE"}),
    "CALLS": (SITES, {"FUNCTION"}),
    "CALLS_NAME": (SITES, {"QUALIFIED_NAME"}),
    "INSTANTIATES": (SITES, {"CLASS"}),
    "CALL_GRAPH": ({"FUNCTION", "MODULE"}, {"FUNCTION", "QUALIFIED_NAME"}),
    "PASSES_TO": ({"ARGUMENT"}, {"PARAMETER", "BINDING"}),
    "INHERITS": ({"CLASS"}, {"CLASS", "QUALIFIED_NAME"}),
    "HAS_ANCESTOR": ({"CLASS"}, {"CLASS", "QUALIFIED_NAME"}),
    "ENTRY_POINT": ({"AST_NODE"}, {"FUNCTION", "CLASS"}),
    "OVERRIDES": ({"FUNCTION"}, {"FUNCTION"}),
    "DECORATES": ({"DECORATOR"}, {"FUNCTION", "CLASS"}),
}


KEY = catalog.table(RELATIONS).primary_key


def rows_of(values: State) -> list[Row]:
    return [row for rows in relations(values) for row in rows.batch().to_pylist()]


def check(rows: list[Row]) -> None:
    """What holds for every row."""
    groups = Counter(row["ambiguity_group_id"] for row in rows if row["ambiguity_group_id"])
    assert len({tuple(row[name] for name in KEY) for row in rows}) == len(rows)
    for row in rows:
        sources, targets = ENDS[row["relation_kind"]]
        assert row["src_kind"] in sources, row
        assert row["src_id"].startswith(f"{PREFIXES[row['src_kind']]}:"), row
        if row["dst_id"] is None:
            assert row["reason"] is not None, row
            assert (row["dst_kind"], row["resolution_method"], row["confidence"]) == (None, None, None), row
        else:
            assert row["dst_kind"] in targets, row
            assert row["dst_id"].startswith(f"{PREFIXES[row['dst_kind']]}:"), row
            assert row["confidence"] in (1.0, 0.9, 0.7, 0.5, 0.3), row
            assert row["resolution_method"] is not None, row
            assert row["evidence"], row
        if row["relation_kind"] != "PASSES_TO" and row["dst_kind"] in ("FUNCTION", "CLASS", "QUALIFIED_NAME"):
            assert row["dst_qname"], row
        assert row["bstart"] is None or row["bstart"] <= row["bend"], row
    assert all(count > 1 for count in groups.values()), groups


def shown(sources: dict[str, str], *kinds: str) -> list[str]:
    """Rows of some kinds in the order of the text: `2 CALLS main.f scope 0.9`."""
    found = [row for row in rows_of(solved(sources)) if row["relation_kind"] in kinds]
    found.sort(
        key=lambda row: (
            row["path"],
            row["bstart"],
            row["relation_kind"],
            row["dst_qname"] or "",
            row["role"] or "",
        )
    )
    lines = []
    for row in found:
        how = f"{row['resolution_method']} {row['confidence']}" if row["dst_id"] else row["reason"]
        words = [str(row["line"]), row["relation_kind"], row["dst_qname"], row["role"], how]
        lines.append(" ".join(word for word in words if word))
    return lines


# -- by hand


def test_calls_say_how_they_are_known() -> None:
    text = (
        "import os\ndef f(a, *r, k=0): return a\ndef g(*_): ...\nclass C:\n  def __init__(self, x): ...\n"
        "f(1, 2, k=3)\nC(4)\nos.getcwd()\nlen([])\nh = g if C else f\nh(5)\nunknown()\nmap(g, [])\n"
    )
    assert shown({"main.py": text}, "CALLS", "CALLS_NAME", "INSTANTIATES") == [
        "6 CALLS main.f scope 0.9",
        "7 CALLS main.C.__init__ scope 0.9",
        "7 INSTANTIATES main.C scope 0.9",
        "8 CALLS_NAME os.getcwd import 0.9",
        "9 CALLS_NAME builtins.len builtin 0.9",
        "11 CALLS main.f values 0.5",
        "11 CALLS main.g values 0.5",
        "12 CALLS unknown_value",
        "13 CALLS main.g callback callback 0.7",
        "13 CALLS_NAME builtins.map builtin 0.9",
    ]
    assert shown({"main.py": text}, "PASSES_TO") == [
        "6 PASSES_TO a scope 0.9",
        "6 PASSES_TO r scope 0.9",
        "6 PASSES_TO k scope 0.9",
        "7 PASSES_TO x scope 0.9",
        "11 PASSES_TO _ values 0.5",
        "11 PASSES_TO a values 0.5",
    ]


def test_keywords_refer_to_parameters() -> None:
    """At the span of the keyword as written; a key of `**more` is no parameter."""
    text = (
        "def f(name, *, größe=0, **more): ...\ndef g(name=1): ...\nf(name=1, größe=2, other=3)\n"
        "f(\n  name = g(name=(1)))\n(f if g else g)(name=2)\nlen(obj=1)\nf(gr\u00f6ße=1, name=2)\n"
        "f(gro\u0308ße=1, name=2)\n"
    )
    rows = [row for row in rows_of(solved({"main.py": text})) if row["role"] == "keyword"]
    found = [
        (
            row["line"],
            text.encode()[row["bstart"] : row["bend"]].decode(),
            row["dst_qname"],
            row["confidence"],
        )
        for row in sorted(rows, key=lambda row: (row["bstart"], row["dst_qname"]))
    ]
    assert found == [
        (3, "name", "main.f.name", 0.9),
        (3, "größe", "main.f.größe", 0.9),
        (5, "name", "main.f.name", 0.9),
        (5, "name", "main.g.name", 0.9),
        (6, "name", "main.f.name", 0.5),
        (6, "name", "main.g.name", 0.5),
        (8, "größe", "main.f.größe", 0.9),
        (8, "name", "main.f.name", 0.9),
        (9, "gro\u0308ße", "main.f.größe", 0.9),
        (9, "name", "main.f.name", 0.9),
    ]
    assert {(row["src_kind"], row["dst_kind"]) for row in rows} == {("ARGUMENT", "PARAMETER")}


def test_fixtures_are_called_where_they_are_requested() -> None:
    """At the parameter; at the function if no parameter requests them, and then they are no alternatives."""
    conftest = (
        "import pytest\n@pytest.fixture(autouse=True)\ndef a(): ...\n@pytest.fixture\ndef b(): return 's'\n"
        "@pytest.fixture\ndef c(b, unknown): return b\n"
    )
    tests = (
        "import pytest\n@pytest.mark.usefixtures('b')\ndef test_c(c):\n  c.upper()\n"
        "  with pytest.raises(OSError) as e: ...\n  e.value.args\n"
    )
    sources = {"conftest.py": conftest, "test_c.py": tests}
    assert [line for line in shown(sources, "CALLS") if "fixture" in line] == [
        "7 CALLS conftest.b fixture values 0.7",
        "3 CALLS conftest.a fixture values 0.7",
        "3 CALLS conftest.b fixture values 0.7",
        "3 CALLS conftest.c fixture values 0.7",
    ]
    rows = [
        row for row in rows_of(solved(sources)) if row["role"] == "fixture" and row["path"] == "test_c.py"
    ]
    spans = {row["dst_qname"]: tests[row["bstart"] : row["bend"]] for row in rows}
    assert spans["conftest.c"] == "c"
    assert spans["conftest.a"] == spans["conftest.b"] == tests[tests.index("def") :].rstrip()
    assert {(row["src_kind"], row["ambiguity_group_id"]) for row in rows} == {("AST_NODE", None)}
    assert shown({"test_c.py": tests}, "REFERS_TO")[-2:] == [
        "6 REFERS_TO pytest.ExceptionInfo.value values 0.7",
        "6 REFERS_TO builtins.OSError.args values 0.7",
    ]


def test_alternatives_share_a_group() -> None:
    rows = rows_of(solved({"main.py": "def f(): ...\ndef g(): ...\n(f if f else g)()\nf()\n"}))
    calls = [row for row in rows if row["relation_kind"] == "CALLS"]
    assert [
        (row["line"], row["ambiguity_group_id"] is not None)
        for row in sorted(calls, key=lambda row: row["bstart"])
    ] == [
        (3, True),
        (3, True),
        (4, False),
    ]
    assert len({row["ambiguity_group_id"] for row in calls}) == 2


def test_properties_of_several_receivers_are_alternatives() -> None:
    bodies = "".join(f"class {name}:\n  @property\n  def p(self): ...\n" for name in "AB")
    rows = rows_of(solved({"main.py": f"{bodies}x = A() if A else B()\nx.p\n"}))
    calls = [row for row in rows if row["relation_kind"] == "CALLS" and row["src_kind"] == "AST_NODE"]
    assert sorted((row["dst_qname"], row["confidence"]) for row in calls) == [
        ("main.A.p", 0.5),
        ("main.B.p", 0.5),
    ]
    assert len({row["ambiguity_group_id"] for row in calls} - {None}) == 1


def test_imports_lead_to_modules_and_names() -> None:
    sources = {
        "p/__init__.py": "from .a import f\nfrom p import a as b\n__all__ = ['f']\n",
        "p/a.py": "import os.path as o\nfrom json import dumps\nfrom ....far import x\nfrom p import none\n"
        "def f(): ...\n",
    }
    assert shown(sources, "IMPORTS_MODULE", "IMPORTS_NAME", "RE_EXPORTS") == [
        "1 IMPORTS_MODULE p.a import 0.9",
        "1 IMPORTS_NAME p.a.f import 0.9",
        "1 RE_EXPORTS p.a.f f import 0.9",
        "2 IMPORTS_MODULE p import 0.9",
        "2 IMPORTS_NAME p.a import 0.9",
        "1 IMPORTS_MODULE os.path python-stdlib import 0.9",
        "2 IMPORTS_MODULE json python-stdlib import 0.9",
        "2 IMPORTS_NAME json.dumps import 0.9",
        "3 IMPORTS_MODULE above_all_packages",
        "4 IMPORTS_MODULE p import 0.9",
        "4 IMPORTS_NAME name_not_found",
    ]


def test_classes_inherit_override_and_are_decorated() -> None:
    text = (
        "import abc\nclass A(list):\n  def m(self): ...\n  def n(self): ...\ndef d(x): return x\n"
        "@d\nclass B(A, abc.ABC, *nothing):\n  @d\n  def m(self): ...\n  n = 1\n"
    )
    assert shown({"main.py": text}, "INHERITS", "OVERRIDES", "DECORATES") == [
        "2 INHERITS builtins.list builtin 0.9",
        "6 DECORATES main.B syntax 1.0",
        "7 INHERITS main.A scope 0.9",
        "7 INHERITS abc.ABC values 0.7",
        "7 INHERITS unknown_base",
        "8 DECORATES main.B.m syntax 1.0",
        "9 OVERRIDES main.A.m mro 0.9",
    ]


def test_names_mean_what_scopes_imports_and_builtins_say() -> None:
    sources = {
        "a.py": "def f(): ...\nx = 1\n",
        "main.py": "from a import *\nfrom a import f as g\nimport os\ndef h(p): return p, len, nowhere\n"
        "f; g; os; h; x\n",
    }
    assert shown(sources, "REFERS_TO") == [
        "4 REFERS_TO main.h.p scope 0.9",
        "4 REFERS_TO builtins.len builtin 0.9",
        "4 REFERS_TO unbound",
        "5 REFERS_TO a.f star_import 0.9",
        "5 REFERS_TO a.f import 0.9",
        "5 REFERS_TO os import 0.9",
        "5 REFERS_TO main.h scope 0.9",
        "5 REFERS_TO a.x star_import 0.9",
    ]


def test_names_in_quoted_annotations_mean_what_they_would_without_quotes() -> None:
    sources = {
        "pkg/__init__.py": "",
        "pkg/a.py": "class A:\n  class B: ...\nT = 1\n",
        "main.py": "import typing as t, pkg.a\nfrom pkg.a import A as C, T\nfrom lost import L\n"
        "def f(p: 'D', q: t.Callable[['D'], \"list[ C ]\"]) -> 'pkg.a.A': ...\n"
        "class D:\n  def m(self, d: r'D | \"C\"', l: 'L.x', n: 'C.B') -> 't.Optional[T]':\n"
        "    x: t.Literal['D', 'C'] | t.Annotated['D', 'C'] = 1\n"
        "    y: t.cast('D', x) = 'D'; z: 'nowhere or D' = 2; u: 'nowhere' = 3; v: 'int' = 4\n"
        "class E:\n  def g(self): return E\n  D = None\n  def h(self, d: 'D', e: 'E'): ...\n",
    }
    text = sources["main.py"]
    rows = [row for row in rows_of(solved(sources)) if row["rule_name"] == "quoted_name"]
    check(rows)
    assert [
        (row["line"], text[row["bstart"] : row["bend"]], row["role"], row["dst_qname"], row["confidence"])
        for row in sorted(rows, key=lambda row: (row["bstart"], row["role"]))
    ] == [
        (4, "D", "D", "main.D", 0.9),
        (4, "D", "D", "main.D", 0.9),
        (4, "list", "list", "builtins.list", 0.9),
        (4, "C", "C", "pkg.a.A", 0.9),
        (4, "pkg", "pkg", "pkg", 0.9),
        (4, "a", "pkg.a", "pkg.a", 0.9),
        (4, "A", "pkg.a.A", "pkg.a.A", 0.9),
        (6, "r'D | \"C\"'", "C", "pkg.a.A", 0.9),
        (6, "r'D | \"C\"'", "D", "main.D", 0.9),
        (6, "L", "L", "lost.L", 0.9),
        (6, "x", "L.x", "lost.L.x", 0.9),
        (6, "C", "C", "pkg.a.A", 0.9),
        (6, "B", "C.B", "pkg.a.A.B", 0.9),
        (6, "t", "t", "typing", 0.9),
        (6, "Optional", "t.Optional", "typing.Optional", 0.9),
        (6, "T", "T", "pkg.a.T", 0.9),
        (7, "D", "D", "main.D", 0.9),
        (8, "int", "int", "builtins.int", 0.9),
        (12, "E", "E", "main.E", 0.9),
    ]
    assert {row["src_kind"] for row in rows} == {"AST_NODE"}
    assert {row["resolution_method"] for row in rows} == {"scope", "import", "builtin"}


def test_attributes_mean_members_bindings_and_names_outside() -> None:
    text = (
        "import os\nclass A:\n  y = 1\n  def __init__(self): self.x = os\n"
        "  def m(self): return self.x.path, self.y, self.z\n"
        "def f(a: A, b): return a.m, b.m\nA.m\n"
    )
    assert shown({"main.py": text}, "DEFINES_BINDING") == ["4 DEFINES_BINDING main.A.x self 0.9"]
    wanted = {"main.A.x", "os.path", "main.A.y", "main.A.m"}
    found = [
        line
        for line in shown({"main.py": text}, "REFERS_TO")
        if wanted & set(line.split()) or "no_such" in line or "receiver" in line
    ]
    assert found == [
        "4 REFERS_TO main.A.x values 0.7",
        "5 REFERS_TO main.A.x values 0.7",
        "5 REFERS_TO os.path import 0.9",
        "5 REFERS_TO main.A.y values 0.7",
        "5 REFERS_TO no_such_attribute",
        "6 REFERS_TO main.A.m annotation 0.3",
        "6 REFERS_TO unknown_receiver",
        "7 REFERS_TO main.A.m values 0.7",
    ]


def test_members_come_from_certain_receivers() -> None:
    text = (
        "class A:\n  kept = 0\nclass B(A): ...\nclass C: ...\nclass D: ...\n"
        "def one(): return A()\ndef two(n): return A() if n else C()\n"
        "one().p = 1\ntwo(0).q = 2\none().__class__ = D\nB().kept = 4\n"
        "for x in (A(), B()):\n  x.s = 5\ndef hinted(c: C): c.t = 6\n"
    )
    assert shown({"main.py": text}, "DEFINES_BINDING") == [
        "8 DEFINES_BINDING main.A.p values 0.7",
        "11 DEFINES_BINDING main.A.kept values 0.7",
        "13 DEFINES_BINDING main.A.s values 0.7",
    ]


def test_operators_and_their_like_are_calls_of_syntax_nodes() -> None:
    text = (
        "class A:\n  def __add__(self, o): ...\n  def __iter__(self): ...\n  def __getitem__(self, k): ...\n"
        "  def __enter__(self): ...\n  def __exit__(self, *e): ...\n  @property\n  def p(self): ...\n"
        "a = A()\na + 1\nfor _ in a: ...\na[0]\nwith a: ...\na.p\n"
    )
    rows = [row for row in rows_of(solved({"main.py": text})) if row["src_kind"] == "AST_NODE"]
    assert sorted((row["line"], row["role"], row["dst_qname"]) for row in rows) == [
        (10, "operator", "main.A.__add__"),
        (11, "iteration", "main.A.__iter__"),
        (12, "subscript", "main.A.__getitem__"),
        (13, "with", "main.A.__enter__"),
        (13, "with", "main.A.__exit__"),
        (14, "attribute", "main.A.p"),
    ]


# -- all cases


@cache
def all_rows() -> dict[str, list[Row]]:
    return {case.repo_id: rows_of(solved(sources_below(case.folder))) for case in CASES}


@pytest.mark.system
def test_rows_of_all_cases_are_sound() -> None:
    for rows in all_rows().values():
        check(rows)
    kinds = {row["relation_kind"] for rows in all_rows().values() for row in rows}
    assert kinds == set(ENDS)


@pytest.mark.system
def test_rows_of_the_call_graph_are_the_call_graph() -> None:
    for case in CASES:
        found: dict[str, set[str]] = {}
        for row in all_rows()[case.repo_id]:
            if row["relation_kind"] == "CALL_GRAPH":
                found.setdefault(row["src_qname"], set()).add(row["dst_qname"])
        calls = {name: sorted(callees) for name, callees in found.items()}
        assert calls == call_edges(solved(sources_below(case.folder)))


# -- the same rows, always

DIGEST = """
import sys
sys.path[:0] = [{tests!r}]
from support.relate_stage import digest
print(digest(int(sys.argv[1])))
"""


@pytest.mark.system
def test_neither_order_nor_hash_seed_change_a_byte() -> None:
    command = [sys.executable, "-c", DIGEST.format(tests=str(TESTS)), "2"]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert digest(0) == digest(1) == done.stdout.strip()


# -- hostile repositories

HOSTILE: dict[str, dict[str, str]] = {
    "nothing": {},
    "empty": {
        "main.py": "",
    },
    "syntax error": {
        "a.py": """
            def (:
             f()
        """,
        "b.py": """
            import a
            from a import g
            from a import *
            g(); h(); a.k()
        """,
    },
    "list in itself": {
        "main.py": """
            x = []
            x.append(x)
            for y in x: y()
            x[0][0]()
            isinstance(x, x)
            try: ...
            except x as e: e.m()
        """,
    },
    "dict in itself": {
        "main.py": """
            d = {}
            d['a'] = d
            d.update(d)
            d['a']['a']()
            for k, v in d.items(): v()
            for i in d: d = {**d, 'b': d}
        """,
    },
    "tuple of itself": {
        "main.py": """
            t = ()
            for i in r: t = (t, t)
            (a, b), c = t
            a()
            def f(*a): f(*a, a); f(a)
            f(f)
        """,
    },
    "partial of itself": {
        "main.py": """
            from functools import partial
            def f(*a): ...
            x = f
            for _ in x: x = partial(x, x)
            x()
        """,
    },
    "class of itself": {
        "main.py": """
            class A: ...
            A.__init__ = A
            A.__call__ = A()
            A.__getattr__ = A
            A()().x.y()
        """,
    },
    "own base": {
        "main.py": """
            class A(A):
              def m(self): super().m()
            A().m()
            for _ in A:
              class B(B): ...
        """,
    },
    "property of itself": {
        "main.py": """
            class A:
              @property
              def p(self): return self.p
              @p.setter
              def p(self, v): self.p = v
            a = A()
            a.p = a.p
            del a.p
        """,
    },
    "things that grow": {
        "main.py": """
            import os, functools
            o = os
            while o: o = o.path
            o()
            z = w = print
            while z: z = [z]; w = staticmethod(w)
            z[0](); w()
            s = super
            while s: s = super(s, s).__init__
            class A:
              def m(self): ...
            m = A().m
            while m: m = m.__func__.__get__(A(), A)
            m()
        """,
    },
    "imports in a ring": {
        "a.py": """
            from b import x, B
            from b import y as z
            class A(B): ...
            x()
        """,
        "b.py": """
            from a import x, z as y
            import a
            class B(a.A): ...
            B()
        """,
    },
    "above all": {
        "main.py": """
            from .... import x
            from . import y
            from .. import *
            x(); y(); z()
        """,
    },
    "one name for two": {
        "m.py": "def f(): ...\n",
        "src/m.py": "def g(): ...\n",
        "m.pyi": "def h(): ...\n",
        "m/__init__.py": "def k(): ...\n",
        "main.py": """
            from m import *
            f(); g(); h(); k()
        """,
    },
    "exports at run time": {
        "a.py": """
            import os
            __all__ = [n for n in dir(os)]
            __all__ += os.__all__
            __all__.append('f')
            def f(): ...
        """,
        "main.py": """
            from a import *
            f()
        """,
    },
    "odd paths": {
        "..py": """
            def f(): ...
            f()
        """,
        ".py": "f()\n",
        "a-b/c.d/e f.py": """
            def f(): ...
            f()
        """,
        "__init__.py": "from .x import y\n",
    },
    "surrogates": {
        "main.py": r"""
            x = {'\ud800': print}
            x['\ud800']()
            getattr(x, '\ud800')()
        """,
    },
    "names that fold": {
        "main.py": """
            def ﬁ(): ...
            fi()
        """,
    },
    "match": {
        "main.py": """
            match x:
              case {'a': f, **r}: f(r)
              case [a, *b, c]: a(b, c)
              case C(y=z) | D(z): z()
        """,
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_repository_gives_sound_rows(name: str) -> None:
    values = solved({path: dedent(text) for path, text in HOSTILE[name].items()})
    check(rows_of(values))
    assert len(rows_of(values)) < 200
    call_edges(values)


def test_a_file_that_does_not_parse_has_unresolved_calls() -> None:
    [row] = [row for row in rows_of(solved({"a.py": "f()\nnonlocal x\n"})) if row["relation_kind"] == "CALLS"]
    assert (row["dst_id"], row["reason"]) == (None, "no_syntax_tree")


def test_what_is_only_annotated_as_a_class_is_an_unknown_value() -> None:
    text = "def f(made: type): return made(1)\ndef g(): return 1()\n"
    rows = rows_of(solved({"main.py": text}))
    reasons = {row["line"]: row["reason"] for row in rows if row["relation_kind"] == "CALLS"}
    assert reasons == {1: "unknown_value", 2: "not_callable"}


def test_a_method_from_outside_that_is_stored_is_called_beside_ours() -> None:
    text = """\
from requests import Session
class Mock:
    def __init__(self, send=Session.send): self._send = send
    def run(self): return self._send(1)
def ours(request): ...
Mock().run()
Mock(ours).run()
"""
    rows = [row for row in rows_of(solved({"main.py": text})) if row["line"] == 4]
    calls = [row for row in rows if row["relation_kind"] in ("CALLS", "CALLS_NAME")]
    assert {row["dst_qname"]: row["confidence"] for row in calls} == {
        "main.ours": 0.5,
        "requests.Session.send": 0.5,
    }
    assert len({row["ambiguity_group_id"] for row in calls}) == 1


def hub(count: int) -> str:
    return "def hub(f): return f()\n" + "".join(f"def f{at}(): ...\nhub(f{at})\n" for at in range(count))


def hub_rows(text: str, line: int = 1) -> list[Row]:
    rows = rows_of(solved({"main.py": text}))
    check(rows)
    return [row for row in rows if row["relation_kind"] == "CALLS" and row["line"] == line]


def test_a_hub_has_a_bounded_number_of_candidates() -> None:
    few, many = hub_rows(hub(20)), hub_rows(hub(500))
    assert (len(few), len(many)) == (20, MAX_OBJECTS)
    assert {row["reason"] for row in few} == {None}


def test_what_was_cut_is_told() -> None:
    assert all("too_many" in (row["reason"] or "") for row in hub_rows(hub(500)))


@pytest.mark.system
def test_a_hub_of_five_thousand_is_bounded() -> None:
    assert len(hub_rows(hub(5000))) == MAX_OBJECTS


def template(count: int) -> str:
    head = "class B:\n  def run(self): self.hook()\n  def hook(self): ...\n"
    return head + "".join(f"class D{at}(B):\n  def hook(self): ...\nD{at}().run()\n" for at in range(count))


def test_subclasses_of_one_base_grow_no_faster_than_their_number() -> None:
    sizes = {count: len(rows_of(solved({"main.py": template(count)}))) for count in (100, 200, 400)}
    assert sizes[400] - sizes[200] <= 2.2 * (sizes[200] - sizes[100])


def test_overrides_of_a_receiver_of_too_many_classes_are_candidates() -> None:
    """The solver keeps 48 instances for `self`; the three classes with a hook of their own come last."""
    head = "class B:\n  def run(self): self.hook(1)\n  def hook(self, x): ...\n"
    plain = "".join(f"class P{at}(B): ...\nP{at}().run()\n" for at in range(60))
    own = "".join(f"class D{at}(B):\n  def hook(self, x): ...\nD{at}().run()\n" for at in range(3))
    mixed = "class Mixin:\n  def hook(self, x): ...\nclass M(Mixin, B): ...\nM().run()\n"
    other = "class Other:\n  def hook(self, x): ...\nOther().hook(1)\n"
    rows = rows_of(solved({"main.py": head + plain + own + mixed + other}))
    check(rows)
    wanted = {"main.B.hook", "main.D0.hook", "main.D1.hook", "main.D2.hook", "main.Mixin.hook"}
    for kind in ("CALLS", "REFERS_TO"):
        found = [row for row in rows if row["line"] == 2 and row["relation_kind"] == kind]
        called = [row for row in found if row["dst_kind"] == "FUNCTION"]
        assert {row["dst_qname"] for row in called} == wanted
        assert {row["confidence"] for row in called} == {0.5}
    calls = [row for row in rows if row["line"] == 2 and row["relation_kind"] == "CALLS"]
    assert {row["reason"] for row in calls} == {"too_many_candidates"}
    passed = [row for row in rows if row["line"] == 2 and row["relation_kind"] == "PASSES_TO"]
    assert len(passed) == len(wanted)


@pytest.mark.system
def test_two_thousand_subclasses_are_bounded() -> None:
    rows = rows_of(solved({"main.py": template(2000)}))
    check(rows)
    assert len(rows) < 2000 * 12
    assert len([row for row in rows if row["relation_kind"] == "CALLS" and row["line"] == 2]) <= MAX_OBJECTS


def sources_of_packages() -> Iterator[dict[str, bytes]]:
    """A package of the standard library with everything in it."""
    import email
    import json as encoder

    for package in (encoder, email):
        folder = Path(str(package.__file__)).parent
        yield {f"{folder.name}/{path}": raw for path, raw in sources_below(folder).items()}


@pytest.mark.system
def test_rows_of_packages_of_the_standard_library_are_sound() -> None:
    for sources in sources_of_packages():
        rows = rows_of(solved(sources))
        check(rows)
        sites = Counter(row["src_id"] for row in rows if row["relation_kind"].startswith("CALLS"))
        assert max(sites.values()) <= 2 * MAX_OBJECTS


FIELDS = """
from dataclasses import InitVar, dataclass, field


@dataclass
class Base:
    first: int
    hidden: int = field(init=False)


@dataclass
class Child(Base):
    second: InitVar[int] = 0


Child(1, second=2)
"""


def test_arguments_of_a_dataclass_refer_to_its_fields() -> None:
    rows = rows_of(solved({"main.py": FIELDS}))
    check(rows)
    passed = {row["ordinal"]: row["role"] for row in rows if row["relation_kind"] == "PASSES_TO"}
    assert {number: passed[number] for number in (0, 1)} == {0: "first", 1: "second"}
    keywords = [row["dst_qname"] for row in rows if row["role"] == "keyword"]
    assert "main.Child.second" in keywords
    assert "main.Base.hidden" not in keywords


def test_a_decorator_of_many_functions_mixes_no_arguments() -> None:
    """More than copies are made of other functions."""
    steps = "".join(f"@logged\ndef step{number}(): ...\n" for number in range(160))
    text = (
        "class A:\n    def use(self): ...\nclass B:\n    def use(self): ...\n"
        "def logged(function):\n    def wrapper(*args):\n        return function(*args)\n    return wrapper\n"
        f"{steps}@logged\ndef eat(a):\n    a.use()\n@logged\ndef build(b):\n    b.use()\n"
        "def one():\n    eat(A())\ndef two():\n    build(B())\n"
    )
    values = solved({"main.py": text})
    edges = call_edges(values)
    assert (edges["main.eat"], edges["main.build"]) == (["main.A.use"], ["main.B.use"])
    through = {
        (row["src_qname"], row["dst_qname"])
        for row in rows_of(values)
        if row["relation_kind"] == "CALL_GRAPH" and row["resolution_method"] == "forwarded"
    }
    assert through == {("main.one", "main.eat"), ("main.two", "main.build")}


def test_what_an_annotation_excludes_is_a_hint_with_a_diagnostic() -> None:
    text = (
        "class A:\n    def use(self): ...\nclass B:\n    def use(self): ...\n"
        "def run(a: A | None):\n    a.use()\nrun(B())\n"
    )
    (made,) = relations(solved({"main.py": text}))
    calls = {
        row["dst_qname"]: row["confidence"]
        for row in made.rows()
        if row["relation_kind"] == "CALLS" and row["line"] == 6
    }
    assert calls == {"main.A.use": 0.3, "main.B.use": 0.3}
    (problem,) = made.diagnostics
    assert (problem.code, problem.place[2]) == ("annotation_disagrees", 5)
    assert "main.B" in problem.message
