"""What annotations say: `typing.get_type_hints` knows, once they are evaluated."""

from __future__ import annotations

import collections.abc
import types
import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy.relate.compile.annotations import (
    MAX_CHARS,
    Hint,
    compile_hint,
    dotted_name,
    parse_expression,
)
from codeanatomy.relate.program import NOTHING


class A: ...


class B: ...


class C: ...


CLASSES = [A, B, C]
NAMES = {cls.__name__: cls for cls in CLASSES}
WORLD = {
    **NAMES,
    "typing": typing,
    "Optional": typing.Optional,
    "Union": typing.Union,
    "abc": collections.abc,
}
LISTS = {
    list: "list",
    set: "set",
    frozenset: "set",
    collections.abc.Sequence: "list",
    collections.abc.Iterator: "generator",
    collections.abc.Iterable: "generator",
}
# Anything hashable that says the same: unions flat and without order.
Said = Any


def ours(hint: Hint | None) -> Said:
    if hint is None:
        return None
    if hint[0] == "n":
        return CLASSES[hint[1]].__name__
    if hint[0] == "c":
        return ("type", CLASSES[hint[1]].__name__)
    if hint[0] == "l":
        return (hint[1], ours(hint[2]))
    if hint[0] == "d":
        return ("dict", ours(hint[1]), ours(hint[2]))
    if hint[0] == "f":
        return ("call", ours(hint[1]))
    if hint[0] == "t":
        return ("tuple", tuple(ours(each) for each in hint[1]))
    return union([ours(each) for each in hint[1]])


def union(said: list[Said]) -> Said:
    flat = {
        one for each in said for one in (each if isinstance(each, frozenset) else (each,)) if one is not None
    }
    return next(iter(flat)) if len(flat) == 1 else frozenset(flat) or None


def evaluated(annotation: Any) -> Said:
    """The same, from the type that an annotation is."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return union([evaluated(each) for each in args])
    if origin is type:
        return ("type", args[0].__name__)
    if origin is dict:
        return ("dict", evaluated(args[0]), evaluated(args[1]))
    if origin is collections.abc.Callable:
        return ("call", evaluated(args[-1]))
    if origin is tuple:
        return ("tuple", tuple(evaluated(each) for each in args))
    if origin in LISTS:
        return (LISTS[origin], evaluated(args[0]))
    return annotation.__name__ if annotation in CLASSES else None


def read(text: str) -> Hint | None:
    tree = parse_expression(text)
    assert tree is not None
    return compile_hint(tree, 0, lambda name: CLASSES.index(NAMES[name]) if name in NAMES else NOTHING)


def typed(text: str) -> Said:
    def annotated() -> None: ...

    annotated.__annotations__ = {"x": text}
    return evaluated(typing.get_type_hints(annotated, WORLD)["x"])


LEAVES = st.sampled_from(["A", "B", "C"])


def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def put(*shapes: str) -> st.SearchStrategy[str]:
        return st.builds(
            lambda shape, one, two: shape.format(one, two), st.sampled_from(shapes), inner, inner
        )

    return st.one_of(
        put("Optional[{}]", "Optional['{}']", "typing.Optional[{}]"),
        put("Union[{}, {}]", "Union[{}, None, {}]", "typing.Union[{}, '{}']"),
        put("list[{}]", "set[{}]", "typing.List[{}]", "frozenset[{}]", "list['{}']"),
        put("abc.Sequence[{}]", "typing.Iterator[{}]", "abc.Iterable[{}]"),
        put("dict[{}, {}]", "typing.Dict[str, {}]", "tuple[{}, {}]", "typing.Tuple[{}]"),
        put("typing.Callable[[], {}]", "abc.Callable[[{}], {}]", "typing.Callable[..., {}]"),
        st.builds("type[{}]".format, LEAVES),
        st.builds("{} | {}".format, LEAVES, LEAVES),
        st.builds("{} | None".format, LEAVES),
    )


@given(st.recursive(LEAVES, wider, max_leaves=6).filter(lambda text: text.count("'") <= 2))
def test_an_annotation_says_what_typing_makes_of_it(text: str) -> None:
    assert ours(read(text)) == typed(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("typing.Annotated[A, 'of', B]", "A"),
        ("typing.ClassVar[A]", "A"),
        ("Generator[A, B, C]", ("generator", "A")),
        ("'A'", "A"),
        ("' A '", "A"),
        ("Callable[[A], B]", ("call", "B")),
        ("Callable", None),
        ("Literal['A']", None),
        ("Any", None),
        ("None", None),
        ("unknown.Name", None),
        ("f(A)", None),
        ("A if B else C", None),
        ("[A]", None),
        ("A[B]", "A"),
    ],
)
def test_an_annotation_by_hand(text: str, said: Said) -> None:
    assert ours(read(text)) == said


def test_dotted_names_are_read_whole() -> None:
    numbers = {"a.b.C": 7}
    tree = parse_expression("a.b.C[d.E]")
    assert tree is not None
    assert compile_hint(tree, 0, numbers.__getitem__) == ("n", 7)
    calls = parse_expression("a().b")
    assert calls is not None
    assert dotted_name(calls, 0) is None


@pytest.mark.parametrize(
    "text",
    ["", "(", "A B", "x = 1", "a" * (MAX_CHARS + 1), "\ud800", "a\0b", "(" * 300 + ")" * 300, "*A", "\n"],
)
def test_what_is_no_expression_says_nothing(text: str) -> None:
    assert parse_expression(text) is None


def test_quotes_in_quotes_and_depth_are_bounded() -> None:
    text = "A"
    for _ in range(6):
        text = repr(text)
    assert read(text) in (None, ("n", 0))
    assert read("list[" * 60 + "A" + "]" * 60) is not None
    assert read("-" * 200 + "A") is None


def test_a_long_union_keeps_all_its_alternatives() -> None:
    assert ours(read(" | ".join(["A", "B", *["C"] * 30]))) == frozenset("ABC")
