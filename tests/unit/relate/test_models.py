"""Models as a contributor writes them: a function of a ModelCall, entered by qualified name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.models.builtins import Model, return_argument
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.models.table import read_models
from codeanatomy.relate.values.rules import calls
from codeanatomy.relate.values.solver import Object
from support.relate_stage import call_edges, solved

CLASSES = """import outside
class A:
  def go(self): ...
class B:
  def go(self): ...
"""


def edges(text: str, models: Mapping[str, Model], monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    monkeypatch.setattr(calls, "MODELS", {**calls.MODELS, **models})
    found = call_edges(solved({"main.py": CLASSES + text}))
    return {caller: [name for name in names if name.startswith("main.")] for caller, names in found.items()}


def test_a_model_calls_its_argument_with_elements_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(c: ModelCall) -> None:
        results = c.call(c.argument(0, "key"), [c.iterate(c.argument(1))], c.node())
        c.returns(c.container("list", results))

    text = """def f(x):
  x.go()
  return B()
outside.apply(f, [A()])[0].go()
outside.apply(key=f)
outside.other(f, [A()])
"""
    assert edges(text, {"outside.apply": apply}, monkeypatch) == {
        "main": ["main.B.go", "main.f"],
        "main.f": ["main.A.go"],
    }


def test_a_model_runs_special_methods_and_returns_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(c: ModelCall) -> None:
        for node in c.positional:
            c.call_special(node, ["__missing__", "__len__"])
            c.each(node, keep_instances)

    def keep_instances(c: ModelCall, obj: Object) -> None:
        if c.state.kind[obj] == ir.OBJ_INSTANCE:
            c.returns(obj, obj)

    text = """class Sized(A):
  def __len__(self): return 0
outside.first(A, Sized()).go()
"""
    assert edges(text, {"outside.first": first}, monkeypatch) == {"main": ["main.A.go", "main.Sized.__len__"]}


def test_a_model_stores_elements_by_key_and_keyword(monkeypatch: pytest.MonkeyPatch) -> None:
    def table(c: ModelCall) -> None:
        created = c.container("dict")
        for keyword, node in c.keywords:
            c.put(created, repr(keyword), node)
        assert c.constant(0) == "'x'"
        assert c.text(0) == "x"
        assert (c.constant(1), c.text(1)) == (None, None)
        c.returns(created)

    # Constants are kept for functions whose results depend on them.
    text = "import importlib\nimportlib.import_module('x', a=A(), b=B())['a'].go()\n"
    assert edges(text, {"importlib.import_module": table}, monkeypatch) == {"main": ["main.A.go"]}


def test_arguments_that_are_not_passed_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(c: ModelCall) -> None:
        c.flow(c.iterate(c.argument(7)), c.result)
        c.call(c.argument(7, "nope"), [c.argument(8)])
        c.call_special(c.argument(7), ["__len__"])
        c.each(c.argument(7), lambda c, obj: pytest.fail("no object"))
        c.put(c.container("list"), None, c.argument(7))
        return_argument(c)

    assert edges("outside.f(A()).go()\n", {"outside.f": careless}, monkeypatch) == {"main": ["main.A.go"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cast\n    a.{b,c}\nsplit\n    a.c", "two models"),
        ("cast nope=1\n    a.b", "nope"),
        ("return_instance\n    a.b", "cls"),
        ("nope\n    a.b", "nope"),
    ],
)
def test_a_mistake_in_the_table_is_refused(text: str, problem: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError), match=problem):
        read_models(text)
