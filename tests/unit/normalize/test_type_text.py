"""Texts of types: their parts, their places and their normal form."""

from __future__ import annotations

import time
import typing
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeanatomy.catalog.tables.normalize import TYPE_KINDS
from codeanatomy.file_view import LIBCST, FileView
from codeanatomy.normalize.types.names import TypeScope, TypeScopes
from codeanatomy.normalize.types.text import (
    MAX_CHAIN,
    MAX_CHARS,
    MAX_DEPTH,
    Kind,
    Signature,
    SignatureType,
    TypePart,
    read_signature,
    read_type,
)
from support.libcst_rows import extract_libcst
from support.marks import examples

IMPORTS = """
import typing
import typing as t
import typing_extensions as te
import collections.abc
import numpy as np
import a.b
import types
from typing import *
from typing import (
    Annotated, Any, Callable, ClassVar, Concatenate, Dict, Final, List, Literal, Optional, Tuple, Type, Union,
)
from typing import Optional as Opt, Self
from types import NoneType
from .models import User
from . import views
class Local: pass
class Color: RED = 1
"""


def scope_of(code: str, path: str = "pkg/a.py") -> TypeScope:
    return TypeScopes(FileView("repo", "file", path, {LIBCST: extract_libcst(code).cells})).module


IN = scope_of(IMPORTS)
NOTHING = TypeScope("module", "pkg/a.py")


def shape(part: TypePart) -> Any:
    """Kinds, of the parts below too."""
    return (part.kind, *map(shape, part.args)) if part.args else part.kind


def parts(part: TypePart) -> list[TypePart]:
    return [part, *(below for arg in part.args for below in parts(arg))]


def spans(text: str, scope: TypeScope = IN) -> list[str | None]:
    """The texts under the spans of all parts, in preorder."""
    utf8 = text.encode()
    return [
        None if part.span is None else utf8[slice(*part.span)].decode()
        for part in parts(read_type(text, scope))
    ]


NORMAL_FORMS = [
    # Names.
    ("int", "int"),
    ("  int ", "int"),
    ("(int)", "int"),
    ("((\nint # a comment\n))", "int"),
    ("np.ndarray", "numpy.ndarray"),
    ("np . ndarray", "numpy.ndarray"),
    ("np.typing.NDArray[np.int8]", "numpy.typing.NDArray[numpy.int8]"),
    ("a.b.C", "a.b.C"),
    ("User", ".models.User"),
    ("views.View", ".views.View"),
    ("Local", "Local"),
    ("Local.Inner", "Local.Inner"),
    ("Unknown", "Unknown"),
    ("Any", "typing.Any"),
    ("t.Any", "typing.Any"),
    ("Self", "typing.Self"),
    ("str.join", "str.join"),
    ("None", "None"),
    ("NoneType", "None"),
    ("types.NoneType", "None"),
    ("...", "..."),
    ("ﬁle", "file"),
    # Quotes.
    ("'int'", "int"),
    ('"""int"""', "int"),
    ("u'int'", "int"),
    ("'in' 't'", "int"),
    ("'\\x69nt'", "int"),
    ("'\"int\"'", "int"),
    ("List['User']", "typing.List[.models.User]"),
    ("'List[\"User\"]'", "typing.List[.models.User]"),
    ("'''\n  Dict[\n  str, int]\n'''", "typing.Dict[str, int]"),
    # Unions.
    ("int | str", "int | str"),
    ("str | int", "int | str"),
    ("Union[str, int]", "int | str"),
    ("t.Union[str, int,]", "int | str"),
    ("te.Union[int, str, int]", "int | str"),
    ("int | int", "int"),
    ("Union[int]", "int"),
    ("Union[int, Union[str, Union[bytes]]]", "bytes | int | str"),
    ("int | (str | (bytes | int))", "bytes | int | str"),
    ("Optional[int]", "int | None"),
    ("Opt[int]", "int | None"),
    ("typing.Optional[int]", "int | None"),
    ("None | int", "int | None"),
    ("Union[None, int]", "int | None"),
    ("Union['int', None]", "int | None"),
    ("'int | None'", "int | None"),
    ("'int' | None", "int | None"),
    ("Optional['int | None']", "int | None"),
    ("Optional[Union[str, int]]", "int | str | None"),
    ("Optional[None]", "None"),
    ("int | NoneType", "int | None"),
    ("List[Optional[Union[str, int]]]", "typing.List[int | str | None]"),
    ("Optional", "typing.Optional"),
    ("Optional[int, str]", "typing.Optional[int, str]"),
    ("Union[()]", "typing.Union[()]"),
    ("Union[*Ts]", "typing.Union[*Ts]"),
    ("Zebra | apple | int", "Zebra | apple | int"),
    ("Literal['b'] | Literal['a']", "typing.Literal['a'] | typing.Literal['b']"),
    # Generics.
    ("list[int]", "list[int]"),
    ("List[int]", "typing.List[int]"),
    ("Dict[str,Tuple[int,...]]", "typing.Dict[str, typing.Tuple[int, ...]]"),
    ("tuple[int, ...]", "tuple[int, ...]"),
    ("Tuple[()]", "typing.Tuple[()]"),
    ("Tuple[int,]", "typing.Tuple[int]"),
    ("Tuple[(int, str)]", "typing.Tuple[int, str]"),
    ("Tuple[(int, str),]", "typing.Tuple[(int, str),]"),
    ("Type['User']", "typing.Type[.models.User]"),
    ("type[User]", "type[.models.User]"),
    ("ClassVar[Optional[int]]", "typing.ClassVar[int | None]"),
    ("Final[int]", "typing.Final[int]"),
    ("Final", "typing.Final"),
    ("te.Required[int]", "typing_extensions.Required[int]"),
    ("te.NotRequired[te.ReadOnly[str]]", "typing_extensions.NotRequired[typing_extensions.ReadOnly[str]]"),
    ("Local[int]", "Local[int]"),
    ("np.ndarray[\n    Any, # shape\n    np.dtype]", "numpy.ndarray[typing.Any, numpy.dtype]"),
    ("int |\\\n str", "int | str"),
    ("Dict[str: int]", "typing.Dict[str:int]"),
    # Callables.
    ("Callable", "typing.Callable"),
    ("Callable[[int, str], bool]", "typing.Callable[[int, str], bool]"),
    ("Callable[[], None]", "typing.Callable[[], None]"),
    ("Callable[..., Any]", "typing.Callable[..., typing.Any]"),
    ("Callable[P, T]", "typing.Callable[P, T]"),
    ("Callable[Concatenate[int, P], T]", "typing.Callable[typing.Concatenate[int, P], T]"),
    ("collections.abc.Callable[[Opt[str]], 'int']", "collections.abc.Callable[[str | None], int]"),
    ("Callable[[*Ts], None]", "typing.Callable[[*Ts], None]"),
    ("Z[[int, str], bool]", "Z[[int, str], bool]"),
    ("*Ts", "*Ts"),
    ("*tuple[int, ...]", "*tuple[int, ...]"),
    ("tuple[int, *Ts]", "tuple[int, *Ts]"),
    # Literals.
    (
        'Literal["a", \'b\', b"c", 1, 0x10, True, None, -1]',
        "typing.Literal['a', 'b', b'c', 1, 16, True, None, -1]",
    ),
    ("Literal['b', 'a', 'b']", "typing.Literal['b', 'a']"),
    ("Literal[Literal[1, 2], 2, te.Literal[3]]", "typing.Literal[1, 2, 3]"),
    ("Literal['int']", "typing.Literal['int']"),
    ("'Literal[\"int\"]'", "typing.Literal['int']"),
    ("Literal[Color.RED]", "typing.Literal[Color.RED]"),
    ("Literal[1, True]", "typing.Literal[1, True]"),
    ("Literal[f(x)]", "typing.Literal[f(x)]"),
    ("Literal['\\ud800']", "typing.Literal['\\ud800']"),
    ("Literal[1e999]", "typing.Literal[1e309]"),
    # Annotated.
    ("Annotated[int, 'int']", "typing.Annotated[int, 'int']"),
    ("Annotated['int', Gt(0), [1]]", "typing.Annotated[int, Gt(0), [1]]"),
    ("Annotated[Annotated[Opt[int], 1], 2]", "typing.Annotated[int | None, 1, 2]"),
    ("Annotated[int]", "typing.Annotated[int]"),
    # Constants and other expressions.
    ("1", "1"),
    ("True", "True"),
    ("b'int'", "b'int'"),
    ("-1", "-1"),
    ("1+ 2", "(1 + 2)"),
    ("f( x )", "f(x)"),
    ("f(x) | None", "f(x) | None"),
    ("(a if b else c) | None", "(a if b else c) | None"),
    ("f(x).y[z]", "f(x).y[z]"),
    ("list[int].x", "list[int].x"),
    ("{'a':1}", "{'a': 1}"),
    ("x:=1", "(x := 1)"),
    ("f'int'", "f'int'"),
    ("int, str", "(int, str)"),
    ("(int,)", "(int,)"),
    ("()", "()"),
    # What is not Python.
    ("not  a\n type", "not a type"),
    ("'not  a type'", "not a type"),
    ("List['not  a type']", "typing.List['not a type']"),
    ("''", ""),
    ("'\\ud800'", "\ud800"),
    ("int] + _[str", "int] + _[str"),
    ("int][str", "int][str"),
    ("a: b", "a: b"),
    ("int\0", "int\0"),
    ("yield", "yield"),
]


@pytest.mark.parametrize(("text", "normal"), NORMAL_FORMS)
def test_normal_form(text: str, normal: str) -> None:
    assert read_type(text, IN).repr == normal


@pytest.mark.parametrize("normal", [normal for _, normal in NORMAL_FORMS if ".models" not in normal])
def test_the_normal_form_of_a_normal_form_is_itself(normal: str) -> None:
    assert read_type(normal, NOTHING).repr == normal


def test_kinds_are_those_of_the_catalogue() -> None:
    assert get_args(Kind) == TYPE_KINDS
    seen = {part.kind for text, _ in NORMAL_FORMS for part in parts(read_type(text, IN))}
    assert seen == set(TYPE_KINDS)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("int", "name"),
        ("'int'", "name"),
        ("Optional[int]", ("union", "name", "none")),
        ("int | str | None", ("union", "name", "name", "none")),
        ("int | (str | None)", ("union", "name", "name", "none")),
        ("Union[int, Optional[str]]", ("union", "name", ("union", "name", "none"))),
        ("Union[int]", ("union", "name")),
        ("Callable[[int], None]", ("callable", ("parameters", "name"), "none")),
        ("Callable[[], int]", ("callable", "parameters", "name")),
        ("Callable[..., int]", ("callable", "ellipsis", "name")),
        ("Callable[int]", ("generic", "name")),
        ("Tuple[int, ...]", ("generic", "name", "ellipsis")),
        ("Tuple[()]", "generic"),
        ("Tuple[*Ts]", ("generic", ("unpacked", "name"))),
        ("*Ts", ("unpacked", "name")),
        ("Literal['a', Color.RED, f(x)]", ("literal", "constant", "name", "expression")),
        ("Annotated[List['a'], 'a', f]", ("annotated", ("generic", "name"), "constant", "expression")),
        ("int, None", ("tuple", "name", "none")),
        ("List['a b']", ("generic", "unparsed")),
        ("a b", "unparsed"),
    ],
)
def test_structure(text: str, kinds: Any) -> None:
    assert shape(read_type(text, IN)) == kinds


def test_names_of_parts() -> None:
    whole = read_type("Optional[Callable[[np.int8], Local | 1]]", IN)
    assert [(part.kind, part.name, part.is_qualified) for part in parts(whole)] == [
        ("union", "typing.Union", True),
        ("callable", "typing.Callable", True),
        ("parameters", "", False),
        ("name", "numpy.int8", True),
        ("union", "typing.Union", True),
        ("name", "Local", False),
        ("constant", "", False),
        ("none", "None", True),
    ]
    assert read_type("int", IN).name == "builtins.int"


@pytest.mark.parametrize(
    ("text", "under"),
    [
        (" Optional[ int ] ", ["Optional[ int ]", "int", None]),
        ("é | (ü)", ["é | (ü)", "é", "ü"]),
        ("int  # noqa", ["int"]),
        (
            "Dict[\n  str,\r\n  'é | 1',\r bytes]",
            ["Dict[\n  str,\r\n  'é | 1',\r bytes]", "str", "é | 1", "é", "1", "bytes"],
        ),
        ("'X | None'", ["X | None", "X", "None"]),
        ("'''\n é[\n X]'''", ["é[\n X]", "X"]),
        ("r'X'", ["X"]),
        ("'X' '[Y]'", [None, None]),
        ("'\\x58[Y]'", [None, None]),
        ("'X[\\\nY]'", [None, None]),
        ("List['X' 'Y']", ["List['X' 'Y']", None]),
        ("'List[\"X\"]'", ['List["X"]', "X"]),
        ("'List[\\'X\\']'", [None, None]),
        ("List['a b']", ["List['a b']", "'a b'"]),
        ("*Ts", ["*Ts", "Ts"]),
        ("int, str", ["int, str", "int", "str"]),
        ("( int, str )", ["( int, str )", "int", "str"]),
        ("not a type ", ["not a type "]),
        ("Literal['a', -1]", ["Literal['a', -1]", "'a'", "-1"]),
    ],
)
def test_places(text: str, under: list[str | None]) -> None:
    assert spans(text) == under


def test_places_are_within_each_other() -> None:
    for text, _ in NORMAL_FORMS:
        for part in parts(read_type(text, IN)):
            placed = [arg.span for arg in part.args if arg.span]
            assert not placed or part.span, text
            for start, end in placed:
                assert part.span is not None
                assert part.span[0] <= start <= end <= part.span[1]


# Identity: what makes two types one.


@pytest.mark.parametrize(
    "same",
    [
        ("Optional[Local]", "Local | None", "Union[None, 'Local']", "'Local|None'"),
        ("t.List[int]", "List[int]"),
        ("Literal['a']", 'Literal["a"]'),
        ("f(x)", "f( x )"),
    ],
)
def test_equal_types_have_one_identity(same: tuple[str, ...]) -> None:
    assert len({read_type(text, IN).identity for text in same}) == 1


@pytest.mark.parametrize(
    "different",
    [
        ("List[int]", "list[int]"),
        ("int", "Int", "'i n t'"),
        ("Literal[1]", "Literal[True]", "Literal['1']"),
        ("Literal['int']", "int"),
        ("List['a b']", "Literal['a b']"),
        ("Tuple[int, str]", "Tuple[str, int]"),
        ("te.Literal[1]", "t.Literal[1]"),
        ("*Ts", "Ts"),
    ],
)
def test_different_types_have_different_identities(different: tuple[str, ...]) -> None:
    assert len({read_type(text, IN).identity for text in different}) == len(different)


def test_what_is_local_or_unknown_belongs_to_its_file() -> None:
    here, there = NOTHING, TypeScope("module", "pkg/b.py")
    for text in ("Unknown", "List[Unknown]", "f(x)", "not a type", "int | Unknown"):
        assert read_type(text, here).repr == read_type(text, there).repr
        assert read_type(text, here).identity != read_type(text, there).identity
    for text in ("int", "list[int | None]", "tuple[1, ...]"):
        assert read_type(text, here).identity == read_type(text, there).identity


# Random trees in random spellings.

LEAVES = ["int", "str", "bytes", "typing.Any", "numpy.int8", "Local"]
Tree = Any


def trees(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[Tree]:
    literals = st.sets(st.sampled_from(["1", "True", "'int'", "b'x'"]), min_size=1).map(
        lambda values: ("literal", *sorted(values))
    )

    def deeper(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        return st.one_of(
            st.tuples(st.just("list"), inner),
            st.tuples(st.just("typing.Dict"), inner, inner),
            st.tuples(st.just("callable"), inner, inner),
            st.tuples(st.just("union"), inner, st.one_of(inner, st.just("None"))),
            st.tuples(st.just("union"), inner, inner, inner),
        )

    return st.recursive(st.one_of(leaves, literals), deeper, max_leaves=8)


def members(tree: Tree) -> set[str]:
    if isinstance(tree, tuple) and tree[0] == "union":
        return {member for arg in tree[1:] for member in members(arg)}
    return {plainly(tree)}


def plainly(tree: Tree) -> str:
    """The normal form, by definition."""
    if isinstance(tree, str):
        return tree
    head, *args = tree
    if head == "union":
        return " | ".join(sorted(members(tree), key=lambda text: (text == "None", text)))
    if head == "callable":
        return f"typing.Callable[[{plainly(args[0])}], {plainly(args[1])}]"
    if head == "literal":
        return f"typing.Literal[{', '.join(args)}]"
    return f"{head}[{', '.join(map(plainly, args))}]"


SPELLED = {"typing.Any": ["Any", "t.Any"], "numpy.int8": ["np.int8"], "typing.Dict": ["Dict", "typing.Dict"]}


def spelled(tree: Tree, dice: Random, *, quotes: str) -> str:
    """Some spelling of the tree; parts may be in these quotes, tripled, each within the one before."""
    quote, rest = (quotes[0], quotes[1:]) if quotes and dice.random() < 0.2 else ("", quotes)

    def below(part: Tree) -> str:
        return spelled(part, dice, quotes=rest)

    def name(text: str) -> str:
        return dice.choice(SPELLED.get(text, [text]))

    if isinstance(tree, str):
        text = name(tree)
    else:
        head, *args = tree
        if head == "union":
            text = union_spelled([below(arg) for arg in dice.sample(args, len(args))], dice)
        elif head == "callable":
            text = f"Callable[[{below(args[0])}], {below(args[1])}]"
        elif head == "literal":
            text = f"Literal[{', '.join(args)}]"
        else:
            text = f"{name(head)}[{', '.join(map(below, args))}]"
    text = dice.choice([text, f"({text})", text.replace(", ", ",\n  "), text.replace("[", " [ ")])
    return f"{quote * 3}{text}{quote * 3}" if quote else text


def union_spelled(texts: list[str], dice: Random) -> str:
    if "None" in texts and dice.random() < 0.5:
        others = [text for text in texts if text != "None"]
        return f"Optional[{others[0] if len(others) == 1 else union_spelled(others, dice)}]"
    if dice.random() < 0.5:
        return f"{dice.choice(['Union', 't.Union', 'te.Union'])}[{', '.join(texts)}]"
    return f"({' | '.join(texts)})"


DICE = st.integers(0, 2**32).map(Random)


@settings(max_examples=examples(200), deadline=None)
@given(trees(st.sampled_from(LEAVES)), DICE)
def test_all_spellings_have_one_normal_form(tree: Tree, dice: Random) -> None:
    one, other = spelled(tree, dice, quotes="\"'"), spelled(tree, dice, quotes="'\"")
    first, second = read_type(one, IN), read_type(other, IN)
    assert first.repr == second.repr == plainly(tree)
    assert first.identity == second.identity
    assert read_type(first.repr, NOTHING).repr == first.repr


SCRAPS = [*"ab[](),|*.'\"\\ \n\r:=-1#é", "int", "Optional", "Literal", "Annotated", "None", "f'"]


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.sampled_from(SCRAPS), max_size=25).map("".join))
def test_any_text_has_a_type(text: str) -> None:
    whole, utf8 = read_type(text, NOTHING), text.encode()
    for part in parts(whole):
        if part.span is not None:
            start, end = part.span
            assert 0 <= start <= end <= len(utf8)
            # It does not tear a character apart.
            utf8[start:end].decode()
    if whole.kind != "unparsed":
        again = read_type(whole.repr, NOTHING)
        assert (again.repr, again.identity) == (whole.repr, whole.identity)


# Python's own opinion.

TYPING = {**vars(typing), "typing": typing, "t": typing, "te": typing}
KNOWN_TREES = trees(st.sampled_from(["int", "str", "typing.Any"]))


def evaluated(text: str) -> object:
    # In parentheses, as lines may break in them.
    return eval(f"({text})", dict(TYPING))


@settings(max_examples=examples(200), deadline=None)
@given(KNOWN_TREES, KNOWN_TREES, DICE)
def test_types_are_equal_where_typing_says_so(tree: Tree, another: Tree, dice: Random) -> None:
    one, same, other = (spelled(each, dice, quotes="") for each in (tree, tree, another))
    assert evaluated(one) == evaluated(same)
    assert read_type(one, IN).identity == read_type(same, IN).identity
    assert (evaluated(one) == evaluated(other)) == (
        read_type(one, IN).identity == read_type(other, IN).identity
    )


# Signatures.


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("() -> None", ["", "None"]),
        (
            "(int, 'é', *str, **Any) -> Tuple[int, str]  # noqa",
            ["int", "'é'", "*str", "**Any", "Tuple[int, str]"],
        ),
        ("(* ( str )) -> (x)", ["*str", "x"]),
        ("((int)) -> x", ["int", "x"]),
        ("(Callable[[int], str]) -> 'x'", ["Callable[[int], str]", "'x'"]),
    ],
)
def test_signatures(text: str, pieces: list[str]) -> None:
    signature, utf8 = read_signature(text), text.encode()
    assert signature is not None
    assert signature.params is not None

    def shown(piece: SignatureType) -> str:
        return "*" * piece.stars + utf8[piece.start : piece.end].decode()

    assert [*map(shown, signature.params), shown(signature.result)] == [piece for piece in pieces if piece]


def test_a_signature_may_leave_parameters_out() -> None:
    assert read_signature("(...) -> str") == Signature(None, SignatureType(0, 9, 12))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int",
        "(int",
        "(int)",
        "(*str, int) -> x",
        "(" * 5_000 + ") -> x",
        f"(int{', int' * MAX_CHARS}) -> x",
        "\0",
    ],
)
def test_what_is_no_signature(text: str) -> None:
    assert read_signature(text) is None


# Hostile texts.

LONG_NAME = scope_of(f"from {'a' * 200} import b as c, d\nfrom {'a' * 300} import e\n")
HOSTILE = {
    "chain": "|".join(["int"] * 5_000),
    "chain_of_expressions": "|".join(["f()"] * 2_000),
    "long_chain_in_bounds": "|".join(f"x{i}" for i in range(1_500)),
    "dots": "a" + ".b" * 4_000,
    "calls": "f" + "()" * 4_000,
    "brackets": "a[" * 2_000 + "]" * 2_000,
    "levels": "a[" * 150 + "b" + "]" * 150,
    "subscripts": "a" + "[b]" * 3_000,
    "minus": "-" * 9_000 + "1",
    "not": "not " * 2_000 + "1",
    "parentheses": "(" * 4_000 + "a" + ")" * 4_000,
    "string": "'" + "a" * 1_000_000 + "'",
    "text": "a " * 500_000,
    "digits": "1" * 9_000,
    "hex": "0x" + "f" * 9_000,
    "literal_hex": "Literal[0x" + "f" * 9_000 + "]",
    "quotes": "'" * 9_999,
    "backslashes": "'" + "\\" * 9_998 + "'",
    "wide": "tuple[" + ",".join(["'a'"] * 2_400) + "]",
    "nested_strings": repr(repr(repr(repr(repr(repr("int | None")))))),
    "surrogates": "a\ud800",
    "lambda": "lambda: " * 1_000 + "1",
    "f_string": "f'" + "{a}" * 3_000 + "'",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_take_no_time(text: str) -> None:
    began = time.process_time()
    whole = read_type(text, IN)
    assert time.process_time() - began < 1
    assert sum(len(part.repr) for part in parts(whole)) < 5_000 + 17 * len(text)


def test_bounds() -> None:
    def kind(text: str) -> str:
        return read_type(text, IN).kind

    assert kind("a" * MAX_CHARS) == "name"
    assert kind("a" * (MAX_CHARS + 1)) == "unparsed"
    assert kind("|".join(["a"] * MAX_CHAIN)) == "union"
    assert kind("|".join(["a"] * (MAX_CHAIN + 1))) == "unparsed"
    assert kind("a[" * MAX_DEPTH + "b" + "]" * MAX_DEPTH) == "generic"
    assert kind("a[" * (MAX_DEPTH + 1) + "b" + "]" * (MAX_DEPTH + 1)) == "unparsed"


def test_long_identities_are_hashed() -> None:
    names = [f"Name{i}" for i in range(100)]
    one, same = (
        read_type("|".join(names), NOTHING),
        read_type(f"Union[{', '.join(reversed(names))}]", NOTHING),
    )
    other = read_type("|".join([*names, "x"]), NOTHING)
    assert one.identity == same.identity != other.identity
    assert all(len(part.identity) < 300 for part in parts(one))


def test_long_names_do_not_multiply() -> None:
    text = "x[" * 40 + ",".join("c" * 4_900) + "]" * 40
    assert read_type("c", LONG_NAME).name == f"{'a' * 200}.b"
    assert read_type("e", LONG_NAME).is_qualified is False
    assert read_type(text, LONG_NAME).kind == "unparsed"
