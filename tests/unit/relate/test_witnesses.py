"""SCIP and a type checker as witnesses of the relate stage: recorded, hostile, and the real ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.extract.scip.documents import document_cells
from codeanatomy.extract.scip.index_file import read_document, scan_index
from codeanatomy.extract.tools.pyrefly import check_with_pyrefly, find_pyrefly
from codeanatomy.extract.type_checker_files import CheckerReport, extract_types, partition_reports
from codeanatomy.node_ids import definition_key
from codeanatomy.relate.compile.file_program import compile_file, with_witnesses
from codeanatomy.relate.program import Program
from codeanatomy.relate.relation_rows import RelationDiagnostic
from codeanatomy.relate.values.analysis import solve
from codeanatomy.relate.witnesses.claims import public_name
from codeanatomy.relate.witnesses.scip import parse_symbol
from codeanatomy.sources.listing import list_folder
from codeanatomy.sources.source_file import Source, decode
from support import corpus, scip_tool
from support.marks import examples
from support.relate_stage import programs_of, relations, sources_below, witnessed

Row = dict[str, Any]
OWN, STDLIB = "scip-python python test 0 ", "scip-python python python-stdlib 3.11 "
DEFINITION, READ = 1, 8
CALLS = ("CALLS", "CALLS_NAME", "INSTANTIATES")


class Repository:
    """Sources, and what witnesses say of them; places are given by the text that stands there."""

    def __init__(self, sources: Mapping[str, str] | str) -> None:
        self.sources = {"main.py": sources} if isinstance(sources, str) else dict(sources)
        self.programs: list[Program] = programs_of(self.sources)
        self.disagreements: list[RelationDiagnostic] = []

    def place(self, text: str, path: str = "main.py", number: int = 0) -> tuple[int, int]:
        """The place of the text's occurrence with this number; of a part of it between bars, of that."""
        whole, start = text.replace("|", ""), -1
        for _ in range(number + 1):
            start = self.sources[path].index(whole, start + 1)
        before, bar, rest = text.partition("|")
        part = rest.partition("|")[0] if bar else whole
        start += len(before) if bar else 0
        return start, start + len(part)

    def program(self, path: str) -> Program:
        return next(program for program in self.programs if program.path == path)

    def scip(self, text: str, symbol: str, roles: int = READ, path: str = "main.py", number: int = 0) -> None:
        self.program(path).scip.append((*self.place(text, path, number), symbol, roles))

    def typed(
        self,
        text: str,
        name: str,
        target: str | None = None,
        *,
        form: str = "call",
        receiver: str | None = None,
        is_open: bool = False,
        path: str = "main.py",
        target_path: str = "main.py",
        number: int = 0,
    ) -> None:
        place = (None, None) if target is None else self.place(target, target_path)
        found = None if target is None else target_path
        row = (*self.place(text, path, number), form, name, found, *place, receiver, is_open)
        self.program(path).checker_calls.append(row)

    def rows(self, *kinds: str) -> list[Row]:
        values = solve(self.programs)
        self.disagreements.clear()
        found = [row for rows in relations(values, self.disagreements) for row in rows.rows()]
        return [row for row in found if row["relation_kind"] in kinds]

    def at(self, text: str, *kinds: str, number: int = 0) -> dict[str | None, Row]:
        """The rows of a place of main.py by what they lead to."""
        place = self.place(text, number=number)
        return {row["dst_qname"]: row for row in self.rows(*kinds) if (row["bstart"], row["bend"]) == place}


def words(row: Row) -> dict[str, bool]:
    return dict(zip(row["evidence"]["witness"], row["evidence"]["agrees"], strict=True))


# -- symbols


@pytest.mark.parametrize(
    ("symbol", "parts"),
    [
        ("`os.path`/join().", [("os.path", "/"), ("join", "()")]),
        ("os/__init__:", [("os", "/"), ("__init__", ":")]),
        ("a/B#c.", [("a", "/"), ("B", "#"), ("c", ".")]),
        ("a/f(+1).(x)", [("a", "/"), ("f", "()"), ("x", "(")]),
        ("a/C#[T]", [("a", "/"), ("C", "#"), ("T", "[")]),
        ("`a``b`/m!", [("a`b", "/"), ("m", "!")]),
        ("`unfinished/x.", None),
        ("a/f(.", None),
        ("a/b", None),
        ("/", None),
        ("", None),
    ],
)
def test_descriptors_of_a_symbol(symbol: str, parts: list[tuple[str, str]] | None) -> None:
    read = parse_symbol(OWN + symbol)
    assert (None if read is None else list(read.parts)) == parts


def test_spaces_in_the_package_are_doubled() -> None:
    read = parse_symbol("tool python my  own  thing 1.0 a/f().")
    assert read is not None
    assert (read.package, read.parts) == ("tool python my  own  thing 1.0", (("a", "/"), ("f", "()")))


@given(st.text())
def test_any_text_may_be_a_symbol(text: str) -> None:
    for symbol in (text, OWN + text, OWN + f"`{text.replace('`', '``')}`/f()."):
        read = parse_symbol(symbol)
        assert read is None or read.parts
    assert text == "" or len(text) > 900 or parse_symbol(OWN + f"`{text.replace('`', '``')}`/") is not None


@given(st.text())
def test_only_names_that_can_be_written_are_believed(text: str) -> None:
    name = public_name(text)
    assert name is None or all(part.isidentifier() for part in name.split("."))


# -- names


ONE = "def f(): ...\nf()\n"


def test_scip_agrees_on_a_name() -> None:
    repository = Repository(ONE)
    repository.scip("def |f|", OWN + "main/f().", DEFINITION)
    repository.scip("|f|()\n", OWN + "main/f().")
    (row,) = repository.at("f", "REFERS_TO", number=2).values()
    assert (row["dst_qname"], row["confidence"], row["symbol_roles"]) == ("main.f", 1.0, READ)
    assert words(row) == {"scopes": True, "scip": True}
    key = definition_key("test", "main.py")
    assert row["evidence"]["key"] == [f"name_ref:{key}.000000", f"span:{key}.13-14"]
    (call,) = [row for row in repository.rows("CALLS") if row["bstart"] == 13]
    assert (call["confidence"], words(call)) == (1.0, {"values": True, "scip": True})
    assert repository.disagreements == []


def test_without_witnesses_nobody_else_is_evidence() -> None:
    rows = Repository(ONE).rows("REFERS_TO", *CALLS)
    assert {witness for row in rows for witness in words(row)} == {"scopes", "values"}
    assert {row["confidence"] for row in rows} == {0.9}


def test_scip_names_parameters_variables_attributes_and_modules() -> None:
    repository = Repository(
        {
            "main.py": "import lib\nfrom lib import LIMIT\ndef f(a, b):\n    LIMIT; a; b.size; lib.other\n",
            "lib.py": "LIMIT = 1\nclass Box:\n    other = 2\n    def __init__(self): self.size = 1\n",
        }
    )
    repository.scip("LIMIT", OWN + "lib/LIMIT.", DEFINITION, path="lib.py")
    repository.scip("class |Box|", OWN + "lib/Box#", DEFINITION, path="lib.py")
    repository.scip("self.|size|", OWN + "lib/Box#size.", DEFINITION, path="lib.py")
    repository.program("lib.py").scip.append((0, 0, OWN + "lib/__init__:", DEFINITION))
    repository.scip("f(|a|", OWN + "main/f().(a)", DEFINITION)
    repository.scip("|LIMIT|; a", OWN + "lib/LIMIT.")
    repository.scip("; |a|;", OWN + "main/f().(a)")
    repository.scip("b.|size|", OWN + "lib/Box#size.")
    repository.scip("|lib|.other", OWN + "lib/__init__:")
    repository.scip("lib.|other|", OWN + "lib/Box#nothing.")
    rows = {row["bstart"]: row for row in repository.rows("REFERS_TO") if words(row).get("scip")}
    told = {row["dst_qname"]: (row["dst_kind"], row["origin"]) for row in rows.values()}
    assert told == {
        "lib.LIMIT": ("BINDING", "scopes"),
        "main.f.a": ("PARAMETER", "scopes"),
        # We do not know what b is.
        "lib.Box.size": ("BINDING", "scip"),
        "lib": ("MODULE", "scopes"),
    }


def test_a_dotted_module_is_one_occurrence() -> None:
    repository = Repository(
        {"main.py": "import a.b\na.b.f()\n", "a/__init__.py": "", "a/b.py": "def f(): ...\n"}
    )
    repository.program("a/b.py").scip.append((0, 0, OWN + "`a.b`/__init__:", DEFINITION))
    repository.scip("\n|a.b|.f", OWN + "`a.b`/__init__:")
    (row,) = repository.at("b", "REFERS_TO", number=1).values()
    assert (row["dst_kind"], row["confidence"]) == ("MODULE", 1.0)


def test_a_name_that_may_be_two_things() -> None:
    """By scope rules the module is the better answer; SCIP has the variable, which we have met too."""
    repository = Repository("try:\n    import json\nexcept ImportError:\n    json = None\njson\n")
    repository.scip("|json| = None", OWN + "main/json.", DEFINITION)
    repository.scip("\n|json|\n", OWN + "main/json.")
    (row,) = repository.at("json", "REFERS_TO", number=2).values()
    assert (row["dst_qname"], row["confidence"], words(row)["scip"]) == ("json", 0.9, True)
    assert repository.disagreements == []


def test_the_class_of_an_instance_is_what_its_class_attribute_is() -> None:
    repository = Repository("class A: ...\nA().__class__\n")
    repository.scip("class |A|", OWN + "main/A#", DEFINITION)
    repository.scip("A().|__class__|", OWN + "main/A#")
    (row,) = repository.at("A().|__class__|", "REFERS_TO").values()
    assert (row["dst_qname"], words(row)["scip"]) == ("builtins.object.__class__", True)
    assert repository.disagreements == []


# -- calls

METHODS = """\
class Base:
    def run(self): ...
class Child(Base):
    def run(self): ...
def make(): ...
def given(x):
    x.run()
Child().run()
"""


def test_a_call_that_only_a_witness_resolves() -> None:
    repository = Repository(METHODS)
    repository.typed("x.run()", "main.Base.run", "|run|(self)", receiver="main.Base", is_open=False)
    assert "main.Base.run" in {row["dst_qname"] for row in repository.rows("CALLS")}
    (row,) = repository.at("x.run()", *CALLS).values()
    assert (row["dst_qname"], row["origin"], row["resolution_method"]) == (
        "main.Base.run",
        "pyrefly",
        "pyrefly",
    )
    assert (row["confidence"], words(row), row["ambiguity_group_id"]) == (0.9, {"pyrefly": True}, None)
    graph = {(row["src_qname"], row["dst_qname"]): row for row in repository.rows("CALL_GRAPH")}
    assert graph["main.given", "main.Base.run"]["confidence"] == 0.9
    # The identifier refers to what is called.
    (named,) = repository.at("x.|run|()", "REFERS_TO").values()
    assert (named["dst_qname"], named["origin"]) == ("main.Base.run", "pyrefly")


def test_an_override_of_what_only_a_witness_resolves_may_run() -> None:
    repository = Repository(METHODS)
    repository.typed("x.run()", "main.Base.run", "|run|(self)", receiver="main.Base", is_open=True)
    for text, kinds in (("x.run()", CALLS), ("x.|run|()", ("REFERS_TO",))):
        rows = repository.at(text, *kinds)
        assert {name: row["confidence"] for name, row in rows.items()} == {
            "main.Base.run": 0.9,
            "main.Child.run": 0.5,
        }
        assert {row["ambiguity_group_id"] is None for row in rows.values()} == {False}
        assert {row["origin"] for row in rows.values()} == {"pyrefly"}
    graph = {(row["src_qname"], row["dst_qname"]): row for row in repository.rows("CALL_GRAPH")}
    assert graph["main.given", "main.Child.run"]["confidence"] == 0.5
    # Below the class of the receiver nothing overrides it; and a value is better than a class.
    repository = Repository(METHODS + "given(Base())\n")
    repository.typed("x.run()", "main.Base.run", "|run|(self)", receiver="main.Child", is_open=True)
    assert repository.at("x.run()", *CALLS).keys() == {"main.Base.run"}
    repository.program("main.py").checker_calls.clear()
    repository.typed("x.run()", "main.Base.run", "|run|(self)", receiver="main.Base", is_open=True)
    assert repository.at("x.run()", *CALLS).keys() == {"main.Base.run"}


def test_an_annotation_is_no_better_than_the_class_of_a_witness() -> None:
    source = METHODS.replace("def given(x):", "def given(x: Base):")
    repository = Repository(source)
    repository.typed("x.run()", "main.Base.run", "|run|(self)", receiver="main.Base", is_open=True)
    for text, kinds in (("x.run()", CALLS), ("x.|run|()", ("REFERS_TO",))):
        rows = repository.at(text, *kinds)
        assert {name: row["confidence"] for name, row in rows.items()} == {
            "main.Base.run": 0.9,
            "main.Child.run": 0.5,
        }


def test_what_overrides_the_static_answer_is_no_disagreement() -> None:
    repository = Repository(METHODS)
    repository.scip("class |Base|", OWN + "main/Base#", DEFINITION)
    repository.scip("def |run|(", OWN + "main/Base#run().", DEFINITION)
    repository.scip("Child().|run|", OWN + "main/Base#run().")
    repository.typed("Child().run()", "main.Base.run", "|run|(self)", receiver="main.Base", is_open=True)
    (row,) = repository.at("Child().run()", *CALLS).values()
    assert (row["dst_qname"], row["confidence"]) == ("main.Child.run", 0.7)
    assert words(row) == {"values": True, "scip": True, "pyrefly": True}
    assert repository.disagreements == []


def test_an_exact_target_is_not_overridden() -> None:
    repository = Repository(METHODS)
    repository.typed("Child().run()", "main.Base.run", "|run|(self)", receiver="main.Base", is_open=False)
    rows = repository.at("Child().run()", *CALLS)
    assert {name: words(row)["pyrefly"] for name, row in rows.items()} == {
        "main.Child.run": False,
        "main.Base.run": True,
    }
    (problem,) = repository.disagreements
    assert problem.code == "pyrefly_disagrees"
    assert problem.message == "found main.Child.run, pyrefly says main.Base.run"
    # Once, though the identifier and the call both disagree.
    assert problem.place[:2] == repository.place("Child().|run|()")


def test_all_witnesses_disagree() -> None:
    repository = Repository("def a(): ...\ndef b(): ...\ndef c(): ...\ndef go(x):\n    x()\ngo(a)\n")
    for name in "abc":
        repository.scip(f"def |{name}|", OWN + f"main/{name}().", DEFINITION)
    repository.scip("|x|()", OWN + "main/b().")
    repository.typed("x()", "main.c", "def |c|")
    rows = repository.at("x()", *CALLS)
    assert {name: (row["origin"], row["confidence"], words(row)) for name, row in rows.items()} == {
        "main.a": ("values", 0.7, {"values": True, "scip": False, "pyrefly": False}),
        "main.b": ("scip", 1.0, {"scip": True, "pyrefly": False}),
        "main.c": ("pyrefly", 0.9, {"pyrefly": True}),
    }
    assert len({row["ambiguity_group_id"] for row in rows.values()}) == 1
    assert sorted(rows, key=lambda name: -rows[name]["score"]) == ["main.b", "main.c", "main.a"]
    calls = [problem for problem in repository.disagreements if problem.place[:2] == repository.place("x()")]
    assert [problem.code for problem in calls] == ["scip_disagrees", "pyrefly_disagrees"]


def test_agreement_picks_one_of_several() -> None:
    repository = Repository("def a(): ...\ndef b(): ...\nx = a if input() else b\nx()\n")
    repository.typed("x()", "main.a", "def |a|")
    rows = repository.at("x()", *CALLS)
    assert {name: (row["confidence"], words(row)["pyrefly"]) for name, row in rows.items()} == {
        "main.a": (0.9, True),
        "main.b": (0.5, False),
    }
    assert repository.disagreements == []


def test_a_class_is_its_constructor() -> None:
    repository = Repository("class A:\n    def __init__(self): ...\nclass B(A): ...\nB()\ndef f(k): k()\n")
    for text in ("B()", "k()"):
        repository.typed(text, "main.A.__init__", "|__init__|", form="init", receiver="main.B")
    found = repository.at("B()", *CALLS)
    assert {name: row["relation_kind"] for name, row in found.items()} == {
        "main.B": "INSTANTIATES",
        "main.A.__init__": "CALLS",
    }
    assert all(words(row)["pyrefly"] for row in found.values())
    # Of a call of which we know nothing, the same rows.
    unknown = repository.at("k()", *CALLS)
    assert unknown.keys() == found.keys()
    assert {row["ambiguity_group_id"] for row in unknown.values()} == {None}
    assert ("main.f", "main.B") not in {
        (row["src_qname"], row["dst_qname"]) for row in repository.rows("CALL_GRAPH")
    }


def test_the_arguments_of_a_call_that_only_a_witness_resolves() -> None:
    repository = Repository("class A:\n    def run(self, x, *, y): ...\ndef f(a): a.run(1, y=2)\n")
    repository.typed("a.run(1, y=2)", "main.A.run", "|run|(self", receiver="main.A", is_open=True)
    rows = repository.rows("PASSES_TO")
    assert [(row["role"], row["ordinal"], row["origin"], row["confidence"]) for row in rows] == [
        ("x", 0, "pyrefly", 0.9),
        ("y", 1, "pyrefly", 0.9),
    ]


def test_a_constructor_without_its_class() -> None:
    repository = Repository("class A:\n    def __new__(cls): ...\nclass B(A): ...\nB()\n")
    repository.typed("B()", "builtins.object.__init__", form="init")
    repository.typed("B()", "main.A.__new__", "|__new__|", form="new")
    found = repository.at("B()", *CALLS)
    assert {name: (row["confidence"], words(row)["pyrefly"]) for name, row in found.items()} == {
        "main.B": (0.9, True),
        "main.A.__new__": (0.9, True),
    }


def test_a_synthesised_constructor_is_its_class() -> None:
    repository = Repository(
        "from dataclasses import dataclass\n@dataclass\nclass D:\n    x: int\ndef f(k): k(1)\n"
    )
    row = (*repository.place("k(1)"), "init", "main.D.__init__", "main.py", None, None, "main.D", False)
    repository.programs[0].checker_calls.append(row)
    assert {name: row["relation_kind"] for name, row in repository.at("k(1)", *CALLS).items()} == {
        "main.D": "INSTANTIATES"
    }


def test_what_a_decorator_put_there_is_what_runs() -> None:
    """The witness names the function below the decorator: evidence against us, and nothing else."""
    source = "def d(f):\n    def w(): f()\n    return w\n@d\ndef g(): ...\ng()\n"
    repository = Repository(source)
    repository.typed("\n|g()|", "main.g", "def |g|")
    (row,) = repository.at("g()", *CALLS, number=1).values()
    assert (row["dst_qname"], words(row)) == ("main.d.w", {"values": True, "pyrefly": False})
    assert repository.disagreements == []


def test_names_outside_have_many_modules() -> None:
    repository = Repository(
        "import os, hashlib\nos.path.join('a')\nhashlib.md5()\ndef f(p): p.stat()\nint('1')\n"
    )
    repository.scip("path.|join|", STDLIB + "ntpath/join().")
    repository.typed("os.path.join('a')", "posixpath.join")
    repository.typed("hashlib.md5()", "_hashlib.openssl_md5")
    repository.typed("p.stat()", "pathlib.PurePath.stat", receiver="pathlib.Path", is_open=True)
    repository.scip("p.|stat|", STDLIB + "pathlib/PurePath#stat().")
    repository.typed("int('1')", "builtins.object.__init__", form="init")
    repository.typed("int('1')", "builtins.int.__new__", form="new")
    (join,) = repository.at("os.path.join('a')", *CALLS).values()
    assert (join["dst_qname"], join["confidence"]) == ("os.path.join", 1.0)
    (md5,) = repository.at("hashlib.md5()", *CALLS).values()
    assert (md5["dst_qname"], words(md5)["pyrefly"]) == ("hashlib.md5", False)
    # Named by the class of the receiver, as values are.
    (stat,) = repository.at("p.stat()", *CALLS).values()
    assert (stat["dst_qname"], words(stat)) == ("pathlib.Path.stat", {"pyrefly": True, "scip": True})
    (made,) = repository.at("int('1')", *CALLS).values()
    assert (made["dst_qname"], words(made)["pyrefly"]) == ("builtins.int", True)
    assert repository.disagreements == []


STAND_INS = """\
from unittest import mock
import other
class Fake:
    def stat(self): ...
class Heir(other.Path):
    def stat(self): ...
def f(p): p.stat()
def g(p): p.stat()
def h(p): p.stat()
f(mock.Mock())
g(Fake())
h(Heir())
"""


def test_a_stand_in_does_not_deny_the_declared_class() -> None:
    """Tests pass a mock, or a class of their own: programs call what the annotation names."""
    repository = Repository(STAND_INS)
    for number in range(3):
        repository.typed(
            "p.stat()", "pathlib.Path.stat", receiver="pathlib.Path", is_open=True, number=number
        )
    assert [
        {name: row["confidence"] for name, row in repository.at("p.stat()", *CALLS, number=number).items()}
        for number in range(3)
    ] == [
        {"unittest.mock.Mock.stat": 0.7, "pathlib.Path.stat": 0.9},
        {"main.Fake.stat": 0.7, "pathlib.Path.stat": 0.9},
        # What inherits from outside may be the declared class.
        {"main.Heir.stat": 0.7},
    ]


def test_a_stub_beside_the_module_is_the_same() -> None:
    repository = Repository(
        {
            "main.py": "from lib import f\nf()\n",
            "lib.py": "def f(): ...\n",
            "lib.pyi": "\ndef f() -> None: ...\n",
        }
    )
    repository.typed("f()", "lib.f", "def |f|", target_path="lib.pyi")
    (row,) = repository.at("f()", *CALLS).values()
    assert (row["dst_qname"], words(row)["pyrefly"]) == ("lib.f", True)
    assert repository.disagreements == []


SPECIAL = """\
class A:
    def __add__(self, other): ...
    def __getitem__(self, key): ...
    def __delitem__(self, key): ...
    def __setitem__(self, key, value): ...
    def __iter__(self): ...
    def __enter__(self): ...
    def __exit__(self, *a): ...
    def __str__(self): ...
    @property
    def size(self): ...
def f(a):
    a + 1
    a[0]
    a[1] = 2
    del a[3]
    for x in |a|: ...
    with (a): ...
    str(a)
    a.size
""".replace("|", "")


def test_what_runs_without_a_call() -> None:
    repository = Repository(SPECIAL)
    told = [
        ("a + 1", "operator", "__add__"),
        ("a[0]", "subscript", "__getitem__"),
        ("a[1] = 2", "subscript", "__setitem__"),
        # The checker says that a deleted subscript is read.
        ("a[3]", "subscript", "__getitem__"),
        ("in |a|:", "iteration", "__iter__"),
        ("with (|a|)", "with", "__enter__"),
        ("str(a)", "dunder", "__str__"),
        ("a.size", "property", "size"),
    ]
    for text, form, name in told:
        receiver = {"form": form, "receiver": "main.A", "is_open": True}
        repository.typed(text, f"main.A.{name}", f"def |{name}|", **receiver)  # type: ignore[arg-type]
    rows = [row for row in repository.rows("CALLS") if row["dst_id"] is not None]
    assert sorted(
        (row["line"], row["dst_qname"].rpartition(".")[2], row["role"], row["origin"]) for row in rows
    ) == [
        (13, "__add__", "operator", "pyrefly"),
        (14, "__getitem__", "subscript", "pyrefly"),
        (15, "__setitem__", "subscript", "pyrefly"),
        (17, "__iter__", "iteration", "pyrefly"),
        (18, "__enter__", "with", "pyrefly"),
        (19, "__str__", "builtin", "pyrefly"),
        (20, "size", "attribute", "pyrefly"),
    ]
    (named,) = repository.at("a.|size|", "REFERS_TO").values()
    assert (named["dst_qname"], named["origin"]) == ("main.A.size", "pyrefly")


def test_who_names_the_builtin_says_nothing_of_what_it_runs() -> None:
    repository = Repository("class A:\n    def __str__(self): ...\nstr(A())\n")
    repository.scip("|str|(A", STDLIB + "builtins/str#")
    rows = repository.at("str(A())", *CALLS)
    assert words(rows["builtins.str"]) == {"values": True, "scip": True}
    assert words(rows["main.A.__str__"]) == {"values": True}


def test_the_value_of_a_variable_is_not_what_its_name_refers_to() -> None:
    repository = Repository("def f(): ...\ndef g(p):\n    p\ng(f)\n")
    repository.typed("    |p|", "main.f", "def |f|", form="reference")
    (row,) = repository.at("    |p|", "REFERS_TO").values()
    assert (row["dst_kind"], row["dst_qname"], words(row)) == ("PARAMETER", "main.g.p", {"scopes": True})


# -- witnesses that lie

SYMBOLS = (
    "main/f().",
    "main/A#",
    "main/A#x.",
    "main/__init__:",
    "main/f().(p)",
    "`ma``in`/x.",
    "",
    "main/A#[T]",
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-2, 90), st.integers(-2, 90), st.sampled_from(SYMBOLS) | st.text(), st.integers(0, 9)
        )
    ),
    st.lists(
        st.tuples(
            st.none() | st.integers(-2, 90),
            st.none() | st.integers(-2, 90),
            st.sampled_from(("call", "init", "reference", "property", "dunder", "other")),
            st.sampled_from(("main.f", "main.A.__init__", "builtins.len", "..", "a b")) | st.text(),
            st.sampled_from((None, "main.py", "gone.py")),
            st.none() | st.integers(-2, 90),
            st.none() | st.integers(-2, 90),
            st.sampled_from((None, "main.A", "x.Y", "", "\x00")),
            st.booleans(),
        )
    ),
)
def test_claims_may_be_anything(scip: list[Any], typed: list[Any]) -> None:
    """No exception, no row that leads to what is not there."""
    repository = Repository(
        "class A:\n    def __init__(self): self.x = 1\ndef f(p): p.x; A(); p()\nf(A().x)\n"
    )
    nodes = {row["dst_id"] for row in repository.rows("REFERS_TO", *CALLS)}
    repository.programs[0].scip += [(*place, OWN + symbol, roles) for *place, symbol, roles in scip]
    repository.programs[0].checker_calls += typed
    for row in repository.rows("REFERS_TO", *CALLS):
        if row["dst_kind"] in ("FUNCTION", "CLASS", "BINDING"):
            assert row["dst_qname"] in ("main.A", "main.A.__init__", "main.A.x", "main.f")
        elif row["dst_kind"] == "QUALIFIED_NAME" and row["dst_id"] not in nodes:
            assert public_name(row["dst_qname"]) is not None


def test_candidates_are_bounded() -> None:
    names = [f"f{number}" for number in range(200)]
    source = "".join(f"def {name}(): ...\n" for name in names) + "def g(x): x()\n"
    repository = Repository(source)
    for name in names:
        repository.typed("x()", f"main.{name}", f"def |{name}|()")
        repository.scip(f"def |{name}|()", OWN + "main/same().", DEFINITION)
    repository.scip("): |x|()", OWN + "main/same().")
    assert len(repository.at("x()", *CALLS)) <= 48


def test_the_same_rows_in_any_order() -> None:
    def batches(order: Callable[[list[Any]], list[Any]]) -> list[Any]:
        repository = Repository({"main.py": METHODS, "other.py": ONE})
        repository.scip("class |Base|", OWN + "main/Base#", DEFINITION)
        repository.scip("Child().|run|", OWN + "main/Base#")
        repository.typed("x.run()", "main.Base.run", "|run|(self)", receiver="main.Base", is_open=True)
        values = solve(order(repository.programs))
        return [rows.batch() for rows in relations(values, repository.disagreements)]

    assert batches(list) == batches(lambda programs: programs[::-1])


# -- the real tools


def typed_cells(folder: Path) -> dict[str, Any]:
    """What pyrefly says of the files of a folder."""
    tool = find_pyrefly()
    if tool is None:
        pytest.skip("pyrefly is not installed")
    listing = list_folder(folder, ExtractOptions())
    entries = [entry for entry in listing.entries if entry.skipped_reason is None]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        made = check_with_pyrefly(tool, folder, [entry.path for entry in entries], work, 120)
        assert made.problems == ()
        place = RepositoryRoot("test", listing.kind, listing.root)
        report = CheckerReport(place, str(work / "report"), str(work / "tree"), made.version)
        found = {}
        for share in partition_reports([(report, entries)]):
            for rows in extract_types(share, ExtractOptions(), {}, lambda *_: None):
                if rows["type_checker_files_v1"] is not None:
                    found[rows["file"]["path"]] = rows["type_checker_files_v1"]
    return found


def scip_cells(folder: Path, index: Path) -> dict[str, Any]:
    """What an index says of the files of a folder."""
    frames = scan_index(index)
    found = {}
    for frame in frames.documents:
        source = decode(frame.path, (folder / frame.path).read_bytes())
        if isinstance(source, Source):
            found[frame.path] = document_cells(read_document(index, frame), source, frames.dialect, {}).cells
    return found


@pytest.mark.system
def test_pyrefly_itself(tmp_path: Path) -> None:
    source = (
        "from pathlib import Path\ndef f(p: Path, n: 'Node'):\n    p.read_text().strip()\n    n.next().go()\n"
    )
    source += "class Node:\n    def next(self) -> 'Node': ...\n    def go(self): ...\n"
    (tmp_path / "main.py").write_text(source)
    repository = Repository(source)
    repository.programs = [
        with_witnesses(each, [], typed_cells(tmp_path)["main.py"]) for each in repository.programs
    ]
    graph = {(row["src_qname"], row["dst_qname"]): row for row in repository.rows("CALL_GRAPH")}
    assert graph.keys() == {
        ("main.f", name)
        for name in ("pathlib.Path.read_text", "builtins.str.strip", "main.Node.next", "main.Node.go")
    }
    assert {row["confidence"] for row in graph.values()} == {0.9}
    assert repository.disagreements == []


@pytest.mark.system
def test_the_witnesses_of_requests() -> None:
    """Nearly all that they say is what we say; what they disagree on is known."""
    folder = corpus.package("requests")
    scip, typed = scip_cells(folder, scip_tool.index("requests")), typed_cells(folder)
    repository = Repository({})
    repository.programs = [
        with_witnesses(compile_file(witnessed(text, path)), [scip.get(path, {})], typed.get(path))
        for path, text in sources_below(folder).items()
    ]
    rows = [row for row in repository.rows("REFERS_TO", *CALLS) if row["dst_id"] is not None]
    for witness, least in (("scip", 4000), ("pyrefly", 1400)):
        told = [words(row)[witness] for row in rows if row["origin"] != witness and witness in words(row)]
        assert sum(told) > least
        assert sum(told) / len(told) > 0.98
    # A name of the module that is also a builtin; a module that is imported from one of the repository.
    assert len(repository.disagreements) <= 12
