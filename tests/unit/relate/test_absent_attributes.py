"""Attributes of builtin classes, and the reasons for attributes without a target."""

from __future__ import annotations

import builtins
import pkgutil
import types

import pytest

from codeanatomy.relate.values.external_names import (
    BUILTINS,
    CLASSES,
    attributes,
    builtin_owner,
    is_class_like,
    may_have,
)
from support.relate_stage import relations, solved
from support.standard_classes import LEFT_OUT


def meaning(text: str, name: str) -> list[str]:
    """What the last attribute of a name in a text refers to: targets, or the reason for none."""
    rows = [row for part in relations(solved({"main.py": text})) for row in part.batch().to_pylist()]
    at = text.encode().rindex(f".{name}".encode()) + 1
    found = [row for row in rows if row["relation_kind"] == "REFERS_TO" and row["bstart"] == at]
    return sorted(row["dst_qname"] or row["reason"] for row in found)


@pytest.mark.parametrize(
    ("text", "name", "owner"),
    [
        ("def f(): ...\nf.__name__\n", "__name__", "types.FunctionType"),
        ("def f(): ...\nf.__code__\n", "__code__", "types.FunctionType"),
        ("class A: ...\nA.__mro__\n", "__mro__", "builtins.type"),
        ("class A:\n  def m(self): return self.__dict__\n", "__dict__", "builtins.object"),
        ("class A: ...\nA().__class__\n", "__class__", "builtins.object"),
        ("class A:\n  def m(self): ...\nA().m.__func__\n", "__func__", "types.MethodType"),
        (
            "class A:\n  @property\n  def p(self): ...\n  @p.setter\n  def p(self, v): ...\n",
            "setter",
            "builtins.property",
        ),
        ("import sub\nimport main\nmain.__dict__\n", "__dict__", "builtins.object"),
        ("import main\nmain.__file__\n", "__file__", "types.ModuleType"),
        ("def g(): yield\ng().send\n", "send", "types.GeneratorType"),
        ("async def g(): yield\ng().asend\n", "asend", "types.AsyncGeneratorType"),
        ("async def g(): ...\ng().cr_frame\n", "cr_frame", "types.CoroutineType"),
        ("try: ...\nexcept OSError as e: e.winerror\n", "winerror", "builtins.OSError"),
        ("class E(ValueError): ...\ntry: ...\nexcept E as e: e.args\n", "args", "builtins.ValueError"),
        ("len.__name__\n", "__name__", "builtins.len"),
    ],
)
def test_builtin_classes_give_their_objects_attributes(text: str, name: str, owner: str) -> None:
    assert meaning(text, name) == [f"{owner}.{name}"]


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("class A: ...\nA().x\n", "x", "no_such_attribute"),
        ("def f(): ...\nf.x\n", "x", "no_such_attribute"),
        ("len.close\n", "close", "no_such_attribute"),
        ("def g(): yield\ng().addBoth\n", "addBoth", "no_such_attribute"),
        # Set from outside, or made on access.
        ("def f(): ...\nf.x = 1\nf.x\n", "x", "dynamic_attribute"),
        ("class A:\n  def __getattr__(self, n): return n\nA().x\n", "x", "dynamic_attribute"),
        (
            "class A: ...\nclass B: ...\nclass C: ...\nfor a in (A(), B(), C()):\n  a.x = 1\nA().x\n",
            "x",
            "dynamic_attribute",
        ),
        ("class M(type): ...\nM('A', (), {}).x\n", "x", "dynamic_attribute"),
        ("list('ab').replace\n", "replace", "no_such_attribute"),
        ("import abc\nclass M(abc.ABCMeta): ...\nM('A', (), {}).x\n", "x", "dynamic_attribute"),
        # What a library gives has more attributes than are known.
        ("import m\nclass A(m.B):\n  def f(self): return self.headers.x\n", "x", "external_result"),
        ("import m\ndef f(): return m.Response().headers.x\n", "x", "external_result"),
        ("class A(nowhere): ...\nA().x\n", "x", "unknown_base"),
        ("import m\ndb = m.Store()\nclass A(db.Model): ...\nA.x\n", "x", "unknown_base"),
        ("import m\nBase = m.make()\nclass A(Base): ...\nA().x\n", "x", "unknown_base"),
        # A decorator from outside may give something else.
        ("import m\n@m.group()\ndef f(): ...\nf.x\n", "x", "external_result"),
        ("import m\n@m.app.task\ndef f(): ...\nf.x\n", "x", "external_result"),
        ("@m.task\ndef f(): ...\nf.x\n", "x", "external_result"),
        ("def same(f): return f\n@same\ndef f(): ...\nf.x\n", "x", "no_such_attribute"),
        # An annotation states only its class.
        ("class A: ...\ndef f(a: A): return a.x\n", "x", "unknown_receiver"),
    ],
)
def test_reasons_for_attributes_without_a_target(text: str, name: str, reason: str) -> None:
    assert meaning(text, name) == [reason]


def test_attributes_of_classes_are_also_those_of_their_metaclass() -> None:
    text = "class M(type):\n  def make(cls): ...\n  def __init__(cls, *a): ...\nclass A(metaclass=M): ...\n"
    assert meaning(f"{text}A.make\n", "make") == ["main.M.make"]
    assert meaning(f"{text}A.__init__\n", "__init__") == ["builtins.object.__init__"]


def test_the_table_has_all_attributes_of_builtins() -> None:
    for short, builtin in vars(builtins).items():
        if isinstance(builtin, type) and not short.startswith("_"):
            known = attributes(f"builtins.{short}") or {}
            assert set(dir(builtin)) <= {*known, "__static_attributes__"}, short
    for name in ("FunctionType", "MethodType", "ModuleType", "GeneratorType", "CoroutineType"):
        assert set(dir(getattr(types, name))) <= set(attributes(f"types.{name}") or ()), name
    assert {name for name in dir(builtins) if not name.startswith("_")} <= BUILTINS
    assert not any("." in name for name in BUILTINS)


@pytest.mark.parametrize("cls", [str, list, dict, int, Exception])
def test_classes_have_no_attributes_of_other_classes(cls: type) -> None:
    names = {name for known in CLASSES.values() for name in known.own if name.islower()}
    newer = {"is_integer", "__buffer__", "__type_params__", "add_note", "fold_note"}
    for name in names - newer:
        assert may_have(f"builtins.{cls.__name__}", name) == (
            hasattr(cls, name)
            or any(builtin_owner(each, name) for each in ("builtins.object", "builtins.type"))
        ), name


@pytest.mark.parametrize(
    "name",
    [
        *("threading.Thread", "logging.Handler", "collections.abc.MutableMapping", "unittest.TestCase"),
        *("enum.IntEnum", "datetime.date", "concurrent.futures.Executor", "html.parser.HTMLParser"),
    ],
)
def test_the_table_has_all_attributes_of_classes_of_the_standard_library(name: str) -> None:
    cls, known = pkgutil.resolve_name(name), attributes(name)
    assert known is not None
    reported = {*dir(cls), *vars(cls).get("__static_attributes__", ())}
    assert reported <= {*known, *LEFT_OUT, "__name__", "__qualname__"}
    assert not may_have(name, "_redirect")


def test_attributes_that_methods_set_and_open_classes() -> None:
    assert may_have("threading.Thread", "_target")
    assert may_have("argparse.Namespace", "verbose")
    assert may_have("unittest.mock.Mock", "verbose")
    assert may_have("socketserver.BaseServer", "nothing") is False
    assert attributes("os.PathLike") is None


def test_members_of_heirs_of_the_standard_library_are_not_invented() -> None:
    text = (
        "from collections.abc import MutableMapping\nclass A(MutableMapping):\n  def f(self): return self.x\n"
    )
    assert meaning(text, "x") == ["no_such_attribute"]
    assert meaning(text.replace(".x", ".update"), "update") == ["collections.abc.MutableMapping.update"]


def test_aliases_of_builtin_classes_are_classes() -> None:
    assert is_class_like("builtins.IOError")
    assert not is_class_like("builtins.len")
