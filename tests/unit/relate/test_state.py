"""A repository before any rule runs: programs side by side, things that are told apart."""

from __future__ import annotations

from codeanatomy.relate.values.state import State
from support.relate_stage import programs_of

SOURCES = {
    "pkg/b.py": "class C:\n  def m(self):\n    def inner(): return lambda: 0\n    return inner\n",
    "pkg/__init__.py": "from pkg.b import C\n",
    "a.py": "def f(): ...\nx = lambda: (lambda: 0)\n",
}


def world(sources: dict[str, str]) -> State:
    return State(programs_of(sources))


def test_programs_are_in_the_order_of_their_paths() -> None:
    made = world(SOURCES)
    assert [program.path for program in made.programs] == sorted(SOURCES)
    assert made.names == ["a", "pkg", "pkg.b"]
    assert [made.files[path] for path in sorted(SOURCES)] == [0, 1, 2]


def test_nodes_of_programs_do_not_overlap() -> None:
    made = world(SOURCES)
    ranges = [
        range(made.node(file, 0), made.node(file, program.nodes))
        for file, program in enumerate(made.programs)
    ]
    numbers = [number for each in ranges for number in each]
    assert numbers == list(range(sum(program.nodes for program in made.programs)))
    assert made.node(2, -1) == -1
    assert made.new_node() not in numbers


def test_a_thing_has_one_even_number() -> None:
    made = world(SOURCES)
    first = made.object("F", 0, 0)
    assert made.object("F", 0, 0) == first
    others = {made.object("F", 0, 1), made.object("C", 0, 0), made.object("I", first), made.object("X", "os")}
    assert len(others | {first}) == 5
    assert all(each % 2 == 0 for each in others)
    assert made.objects[first] == made.objects[first | 1] == ("F", 0, 0, None)
    assert made.kind[first] == made.kind[first | 1] == "F"


def test_a_hint_has_the_fields_of_what_it_hints_at() -> None:
    made = world(SOURCES)
    thing = made.object("X", "os")
    assert made.field(thing, "a") == made.field(thing | 1, "a")
    assert made.field(thing, "a") != made.field(thing, "b")


def test_qualified_names_are_python_s_without_locals() -> None:
    made = world(SOURCES)
    functions = [
        made.qualified_name(made.object("F", file, number))
        for file, program in enumerate(made.programs)
        for number in range(len(program.functions))
    ]
    assert sorted(functions) == [
        "a.<lambda1>",
        "a.<lambda1>.<lambda1>",
        "a.f",
        "pkg.b.C.m",
        "pkg.b.C.m.inner",
        "pkg.b.C.m.inner.<lambda1>",
    ]
    assert made.qualified_name(made.object("C", 2, 0)) == "pkg.b.C"


def test_what_is_imported_decides_what_a_folder_is() -> None:
    sources = {"ns/part/__init__.py": "", "main.py": ""}
    assert world(sources).names == ["main", "part"]
    assert world({**sources, "main.py": "import ns.part\n"}).names == ["main", "ns.part"]
    assert world({**sources, "main.py": "from ns import part\n"}).names == ["main", "ns.part"]


def test_a_world_may_be_empty() -> None:
    made = State([])
    assert (made.programs, made.names, made.modules.paths) == ([], [], {})
