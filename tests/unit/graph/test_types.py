"""Types in the graph: annotations and what they are about, types and their arguments, aliases, parameters."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from support.graph_checks import Sources, View, names, problems_of, text_problems_of
from support.graph_stage import graph_of


def view_of(sources: Sources | str) -> View:
    texts = {"main.py": dedent(sources)} if isinstance(sources, str) else sources
    graph = graph_of(texts)
    assert problems_of(graph) == []
    assert text_problems_of(graph, texts) == []
    return View(graph)


def annotated(view: View) -> list[tuple[Any, ...]]:
    """What is annotated, with which role, the text, and the type it means."""
    found: list[tuple[Any, ...]] = []
    for row in view.all("TYPE_EXPR"):
        owners = view.sources("HAS_ANNOTATION", row)
        [meant] = view.targets("HAS_TYPE", row)
        about = [(owner["node_kind"], owner["name"]) for owner in owners]
        found.append((about[0] if about else None, row["subkind"], row["name"], meant["name"]))
        assert [edge["role"] for edge in view.into("HAS_ANNOTATION", row)] == [row["subkind"]] * len(owners)
    return found


def arguments(view: View, name: str) -> list[tuple[int | None, str]]:
    """The arguments of a type: place and normal form."""
    node = view.one("TYPE", name)
    pairs = zip(view.out("TYPE_ARGUMENT", node), view.targets("TYPE_ARGUMENT", node), strict=True)
    return sorted(((edge["ordinal"], row["name"]) for edge, row in pairs), key=str)


# Annotations


def test_annotations_of_every_role() -> None:
    view = view_of("""
        def f(a: int, *args: str, k: float = 1, **kw: bytes) -> list[int]:
            b: dict[str, int] = {}
            self.c: bool = True
            d[0]: int = 1
    """)
    assert annotated(view) == [
        (("PARAMETER", "a"), "param", "int", "int"),
        (("PARAMETER", "args"), "param", "str", "str"),
        (("PARAMETER", "k"), "param", "float", "float"),
        (("PARAMETER", "kw"), "param", "bytes", "bytes"),
        (("FUNCTION", "f"), "return", "list[int]", "list[int]"),
        (("NAME_REF", "b"), "variable", "dict[str, int]", "dict[str, int]"),
        (("ATTRIBUTE_REF", "c"), "attribute", "bool", "bool"),
        # Of a subscript nothing is a node.
        (None, "variable", "int", "int"),
    ]


def test_annotations_are_spelled_by_the_tree() -> None:
    view = view_of("def f(a: int) -> list[int]: ...\nb: 'str' = ''\n")
    found = [names(view.targets("SYNTAX_OF", row), "subkind") for row in view.all("TYPE_EXPR")]
    assert found == [["Name"], ["Subscript"], ["Constant"]]


def test_type_comments() -> None:
    view = view_of("""
        def f(a, b):
            # type: (int, str) -> bool
            x = []  # type: list[int]
            for y in x:  # type: float
                pass
            with a as z:  # type: bytes
                pass
        def g(a,  # type: int
              b):
            # type: (...) -> None
            pass
    """)
    assert annotated(view) == [
        (("PARAMETER", "a"), "param", "int", "int"),
        (("PARAMETER", "b"), "param", "str", "str"),
        (("FUNCTION", "f"), "return", "bool", "bool"),
        (("NAME_REF", "x"), "variable", "list[int]", "list[int]"),
        (("NAME_REF", "y"), "variable", "float", "float"),
        (("NAME_REF", "z"), "variable", "bytes", "bytes"),
        (("PARAMETER", "a"), "param", "int", "int"),
        (("FUNCTION", "g"), "return", "None", "None"),
    ]
    owners = [view.sources("HAS_PARAMETER", row)[0]["name"] for row in view.all("PARAMETER", name="a")]
    assert owners == ["f", "g"]


def test_strings_mean_what_is_in_them() -> None:
    view = view_of("""
        class N: ...
        a: 'int'
        b: 'list[N]'
        c: list['N']
        def f(x: "N | None"): ...
    """)
    assert annotated(view) == [
        (("NAME_REF", "a"), "variable", "'int'", "int"),
        (("NAME_REF", "b"), "variable", "'list[N]'", "list[N]"),
        (("NAME_REF", "c"), "variable", "list['N']", "list[N]"),
        (("PARAMETER", "x"), "param", '"N | None"', "N | None"),
    ]


def test_a_string_that_is_no_type_is_kept() -> None:
    view = view_of("a: 'not a type ['\n")
    assert (view.one("TYPE")["subkind"], view.one("TYPE")["name"]) == ("unparsed", "not a type [")


# Types


def test_equal_types_are_one_node() -> None:
    view = view_of("""
        from typing import Optional, Union
        a: int | None
        b: Optional[int]
        c: Union[None, int]
    """)
    assert [row["name"] for row in view.all("TYPE", subkind="union")] == ["int | None"]
    assert len(view.into("HAS_TYPE", view.one("TYPE", "int | None"))) == 3


def test_types_of_several_files_are_one_node() -> None:
    view = view_of({"a.py": "x: dict[str, int]\n", "b.py": "def f() -> dict[str, int]: ...\n"})
    row = view.one("TYPE", "dict[str, int]")
    assert sorted(names(view.sources("HAS_TYPE", row), "path")) == ["a.py", "b.py"]
    assert (row["path"], row["owner_file_id"], row["qualname"]) == (None, None, "builtins.dict")
    assert len(view.edges["TYPE_ARGUMENT"]) == 2


@pytest.mark.xfail(reason="a class of the file is named without its module, an imported one with it")
def test_a_class_is_one_type_where_it_is_defined_and_where_it_is_imported() -> None:
    view = view_of({"a.py": "class N: ...\nx: N\n", "b.py": "from a import N\ny: N\n"})
    assert len(view.all("TYPE")) == 1


def test_classes_of_one_name_are_two_types() -> None:
    view = view_of({"a.py": "class N: ...\nx: N\n", "b.py": "class N: ...\nx: N\n"})
    assert len(view.all("TYPE")) == 2


def test_arguments_have_places() -> None:
    view = view_of("a: dict[str, list[int]]\nb: tuple[int, int]\nc: tuple[int, ...]\n")
    assert arguments(view, "dict[str, list[int]]") == [(0, "str"), (1, "list[int]")]
    assert arguments(view, "list[int]") == [(0, "int")]
    # The same type twice is two edges.
    assert arguments(view, "tuple[int, int]") == [(0, "int"), (1, "int")]
    assert arguments(view, "tuple[int, ...]") == [(0, "int"), (1, "...")]


def test_the_members_of_a_union_have_no_order() -> None:
    view = view_of("a: str | bytes\nb: bytes | str\n")
    [union] = view.all("TYPE", subkind="union")
    assert arguments(view, union["name"]) == [(None, "bytes"), (None, "str")]


# Aliases


def test_aliases() -> None:
    view = view_of("""
        from typing import TypeAlias
        import typing as t
        Pair: TypeAlias = tuple[int, int]
        class C:
            Inner: t.TypeAlias = 'Pair'
            def f(self):
                Local: TypeAlias = int
        plain: int = 1
    """)
    found = [(row["name"], row["qualname"], row["subkind"]) for row in view.all("TYPE_ALIAS")]
    assert found == [
        ("Pair", "main.Pair", "annotated"),
        ("Inner", "main.C.Inner", "annotated"),
        ("Local", "main.C.f.Local", "annotated"),
    ]
    around = [names(view.sources("CONTAINS", row), "qualname") for row in view.all("TYPE_ALIAS")]
    assert around == [["main"], ["main.C"], ["main.C.f"]]
    assert {view.targets("SYNTAX_OF", row)[0]["subkind"] for row in view.all("TYPE_ALIAS")} == {"AnnAssign"}


# Type parameters

PARAMETERS = """
    from typing import Generic, Protocol, TypeVar, TypeVarTuple
    import typing as t
    T = TypeVar('T')
    P = t.ParamSpec('P')
    Ts = TypeVarTuple('Ts')
    class Box(Generic[T, P]): ...
    class Named(Protocol[T]): ...
    class Far(t.Generic[P]): ...
    class Sub(Box[T, P]): ...
"""


def test_type_parameters_are_made_by_calls() -> None:
    view = view_of(PARAMETERS)
    assert [(row["name"], row["subkind"], row["line"]) for row in view.all("TYPE_PARAM")] == [
        ("T", "TypeVar", 4),
        ("P", "ParamSpec", 5),
        ("Ts", "TypeVarTuple", 6),
    ]
    for row in view.all("TYPE_PARAM"):
        assert names(view.targets("SYNTAX_OF", row), "subkind") == ["Name"]


def test_type_parameters_are_of_classes() -> None:
    """Of those that are declared generic; `Sub` only inherits."""
    view = view_of(PARAMETERS)
    assert view.edges_told("TYPE_PARAM_OF", "ordinal") == {
        ("T", "Box", 0),
        ("P", "Box", 1),
        ("T", "Named", 0),
        ("P", "Far", 0),
    }


def test_what_is_called_alike_makes_no_type_parameter() -> None:
    view = view_of("def TypeVar(name): ...\nT = TypeVar('T')\nclass A(Generic[T]): ...\n")
    assert view.all("TYPE_PARAM") == []
    assert view.edges["TYPE_PARAM_OF"] == []


def test_type_parameters_of_one_name_are_told_apart() -> None:
    view = view_of("""
        from typing import Generic, TypeVar
        T = TypeVar('T')
        class A(Generic[T]): ...
        def f():
            T = TypeVar('T')
            class B(Generic[T]): ...
    """)
    found = {row["line"]: names(view.targets("TYPE_PARAM_OF", row)) for row in view.all("TYPE_PARAM")}
    assert found == {3: ["A"], 6: ["B"]}


@pytest.mark.xfail(reason="type variables of other files are not looked for")
def test_type_parameters_may_be_imported() -> None:
    view = view_of(
        {
            "base.py": "from typing import TypeVar\nT = TypeVar('T')\n",
            "main.py": "from typing import Generic\nfrom base import T\nclass A(Generic[T]): ...\n",
        }
    )
    assert names(view.targets("TYPE_PARAM_OF", view.one("TYPE_PARAM"))) == ["A"]
