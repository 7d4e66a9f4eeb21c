"""Attributes and imports: MROs and lookups as CPython has them, on hierarchies that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codeanatomy.relate.values import hierarchy
from codeanatomy.relate.values.hierarchy import merge_c3, mro
from codeanatomy.relate.values.rules import imports
from codeanatomy.relate.values.state import State
from support.marks import examples
from support.relate_stage import call_edges, solved

# By class its bases, of those before it, in any order.
Hierarchy = list[list[int]]
HIERARCHIES = st.integers(1, 8).flatmap(
    lambda size: st.tuples(
        *(
            st.lists(st.integers(0, number - 1), max_size=3, unique=True) if number else st.just([])
            for number in range(size)
        )
    ).map(list)
)


def created(hierarchy: Hierarchy) -> tuple[list[type], bool]:
    """The classes as CPython makes them, up to the first that it refuses."""
    made: list[type] = []
    for number, bases in enumerate(hierarchy):
        try:
            made.append(type(f"C{number}", tuple(made[base] for base in bases), {}))
        except TypeError:
            return made, False
    return made, True


def classes(values: State) -> dict[str, int]:
    return {
        each.name: values.object("C", 0, number) for number, each in enumerate(values.programs[0].classes)
    }


def source(hierarchy: Hierarchy, bodies: list[str]) -> str:
    heads = (
        f"class C{at}({', '.join(f'C{base}' for base in bases)}):\n" for at, bases in enumerate(hierarchy)
    )
    return "".join(head + body for head, body in zip(heads, bodies, strict=True))


@given(HIERARCHIES)
def test_merge_is_c3(hierarchy: Hierarchy) -> None:
    made, _ = created(hierarchy)
    numbers = {cls: at for at, cls in enumerate(made)}
    for number, bases in enumerate(hierarchy[: len(made) + 1]):
        chains = [[numbers[each] for each in made[base].__mro__[:-1]] for base in bases]
        merged = merge_c3([*chains, list(bases)])
        if number < len(made):
            assert merged == [numbers[each] for each in made[number].__mro__[1:-1]]
        else:
            assert merged is None


@settings(max_examples=examples(60), deadline=None)
@given(HIERARCHIES)
def test_the_mro_of_a_class_is_cpythons(hierarchy: Hierarchy) -> None:
    made, consistent = created(hierarchy)
    hierarchy = hierarchy[: len(made) + 1]
    values = solved({"main.py": source(hierarchy, ["  pass\n"] * len(hierarchy))})
    things = classes(values)
    names = {thing: name for name, thing in things.items()}
    for cls in made:
        assert [names[each] for each in mro(values, things[cls.__name__])] == [
            each.__name__ for each in cls.__mro__[:-1]
        ]
    for thing in things.values():
        mro(values, thing)
    refused = [] if consistent else [f"C{len(made)}"]
    assert [names[each] for each in values.classes.inconsistent] == refused


@settings(max_examples=examples(60), deadline=None)
@given(HIERARCHIES, st.data())
def test_a_method_and_those_after_it_are_found_as_a_run_finds_them(
    hierarchy: Hierarchy, data: st.DataObject
) -> None:
    made, consistent = created(hierarchy)
    assume(consistent and made)
    # Of methods that nobody calls the receiver would be assumed.
    has = [cls in made[-1].__mro__ and data.draw(st.booleans()) for cls in made]
    bodies = [
        f"  def m(self):\n    seen.append('C{at}')\n    super().m()\n" if each else "  pass\n"
        for at, each in enumerate(has)
    ]
    text = source(hierarchy, bodies)
    seen: list[str] = []
    world: dict[str, Any] = {"seen": seen}
    exec(text, world)
    with pytest.raises(AttributeError):
        world[f"C{len(made) - 1}"]().m()
    found = call_edges(solved({"main.py": f"{text}C{len(made) - 1}().m()\n"}))
    chain: list[str] = []
    name = "main"
    while name and len(chain) <= len(seen):
        callees = [each for each in found.get(name, ()) if each.endswith(".m")]
        assert len(callees) <= 1
        name = callees[0] if callees else ""
        chain += callees
    assert chain == [f"main.{each}.m" for each in seen]


def test_a_class_may_seem_to_be_its_own_base() -> None:
    values = solved(
        {"main.py": "class A(A):\n  def m(self): self.m()\nA().m()\nfor _ in x:\n  class B(B): pass\nB()\n"}
    )
    for thing in classes(values).values():
        assert mro(values, thing).count(thing) == 1
    assert call_edges(values)["main.A.m"] == ["main.A.m"]


def test_classes_may_seem_to_be_each_others_bases() -> None:
    bodies = "  class A(B):\n    def a(self): self.b()\n  class B(A):\n    def b(self): self.a()\n"
    text = f"for _ in range(2):\n{bodies}A().a()\n"
    values = solved({"main.py": text})
    found = classes(values)
    assert {name: sorted(mro(values, thing)) for name, thing in found.items()} == dict.fromkeys(
        "AB", sorted(found.values())
    )
    assert call_edges(values)["main.A.a"] == ["main.B.b"]


def test_five_hundred_bases_are_searched_in_order() -> None:
    count = 500
    bases = "".join(f"class B{at}:\n  def m{at}(self): ...\n  def all(self): ...\n" for at in range(count))
    calls = f"d = D()\nd.m0()\nd.m{count - 1}()\nd.all()\n"
    text = f"{bases}class D({', '.join(f'B{at}' for at in range(count))}): ...\n{calls}"
    assert call_edges(solved({"main.py": text})) == {
        "main": ["main.B0.all", "main.B0.m0", f"main.B{count - 1}.m{count - 1}"]
    }


def test_a_long_mro_is_whole() -> None:
    bases = "".join(f"class B{at}:\n  def m{at}(self): ...\n" for at in range(520))
    text = f"{bases}class D({', '.join(f'B{at}' for at in range(520))}): ...\nD().m519()\n"
    assert call_edges(solved({"main.py": text})) == {"main": ["main.B519.m519"]}


def test_a_long_chain_of_classes_whose_bases_come_later() -> None:
    count = 400
    sources = {f"m{at:04}.py": f"from m{at + 1:04} import B as A\nclass B(A): ...\n" for at in range(count)}
    sources[f"m{count:04}.py"] = "class B:\n  def m(self): ...\n"
    found = call_edges(solved({**sources, "main.py": "from m0000 import B\nB().m()\n"}))
    assert found == {"main": [f"m{count:04}.B.m"]}


def test_one_base_needs_no_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    count, merged = 60, 0

    def counted(chains: list[list[int]]) -> list[int] | None:
        nonlocal merged
        merged += 1
        return merge_c3(chains)

    monkeypatch.setattr(hierarchy, "merge_c3", counted)
    factories = "".join(f"def g{at}():\n  class B(g{at + 1}()): ...\n  return B\n" for at in range(count))
    found = call_edges(
        solved(
            {"main.py": f"{factories}class Z:\n  def m(self): ...\ndef g{count}(): return Z\ng0()().m()\n"}
        )
    )
    assert "main.Z.m" in found["main"]
    assert merged <= 4 * count


@pytest.mark.parametrize(
    ("access", "called"),
    [
        ("A().plain()", ["main.A.plain"]),
        ("A.plain(0)", ["main.A.plain"]),
        ("A().prop", ["main.A.prop"]),
        ("A.made()", ["main.A.made"]),
        ("A().made()", ["main.A.made"]),
        ("A.alone()", ["main.A.alone"]),
        ("A().alone()", ["main.A.alone"]),
        ("A().nothing", ["main.A.__getattr__"]),
        ("A().plain.__func__(1)", ["main.A.plain"]),
        ("A().stored()", ["main.f"]),
        ("A.later()", ["main.f"]),
    ],
)
def test_what_an_attribute_runs(access: str, called: list[str]) -> None:
    text = (
        "def f(*_): ...\nclass A:\n  def __init__(self): self.stored = f\n  def plain(self): ...\n"
        "  @property\n  def prop(self): ...\n  @classmethod\n  def made(cls): ...\n"
        "  @staticmethod\n  def alone(): ...\n  def __getattr__(self, name): ...\n"
        f"A.later = f\ndef use(): return {access}\n"
    )
    found = call_edges(solved({"main.py": text}))["main.use"]
    assert [each for each in found if each != "main.A.__init__"] == called


def test_star_imports_of_modules_in_a_ring_end() -> None:
    sources = {
        "a.py": "from b import *\nf()\nnope()\n",
        "b.py": "from c import *\n",
        "c.py": "from a import *\nfrom c import *\ndef f(): ...\n",
    }
    assert call_edges(solved(sources)) == {"a": ["c.f"]}


def test_star_imports_of_all_from_all_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count, asked = 6, 0
    sources = {
        f"m{at}.py": "".join(f"from m{to} import *\n" for to in range(count) if to != at)
        for at in range(count)
    }
    values = solved({**sources, "main.py": "from m0 import *\n"})
    plain = imports.star_imports

    def counted(state: State, file: int) -> list[str]:
        nonlocal asked
        asked += 1
        return plain(state, file)

    monkeypatch.setattr(imports, "star_imports", counted)
    assert not imports.has_name(values, values.files["m0.py"], "nope")
    assert asked <= count**2


def test_a_long_chain_of_star_imports() -> None:
    count = 400
    sources = {f"m{at}.py": f"from m{at + 1} import *\n" for at in range(count)}
    sources |= {f"m{count}.py": "def f(): ...\n", "main.py": "from m0 import *\nf()\n"}
    assert call_edges(solved(sources)) == {"main": [f"m{count}.f"]}


@pytest.mark.parametrize(
    ("exported", "called"),
    [
        ("", ["a.f", "a.g"]),
        ("__all__ = ['f']", ["a.f"]),
        ("__all__ = ['f'] + ['_h']", ["a._h", "a.f"]),
        ("__all__ = ['f']\n__all__ += ['g']", ["a.f", "a.g"]),
        ("__all__ = ('_h',)", ["a._h"]),
        ("__all__: list[str] = ['g']", ["a.g"]),
    ],
)
def test_what_a_star_brings(exported: str, called: list[str]) -> None:
    module = f"{exported}\ndef f(): ...\ndef g(): ...\ndef _h(): ...\n"
    found = call_edges(solved({"a.py": module, "main.py": "from a import *\nf()\ng()\n_h()\n"}))
    assert [each for each in found["main"] if each.startswith("a.")] == called
