"""Trees of cheap nodes: the same fields as LibCST's own trees, and no tree where LibCST refuses one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from itertools import product
from typing import Any

import libcst as cst
import pytest

from codeanatomy.extract.libcst.light_tree import LIGHT, parse_light
from codeanatomy.extract.libcst.spans import NodeSpans
from unit.extract.test_libcst_spans import FORMS, LOSSY

# The first is refused by a check of a node, the others by the parser.
REFUSED = [
    "b'a' 'b'\n",
    "f(a=1, b)\n",
    "def f(a=1, b): pass\n",
    "ª·² = 1\n",
    "x = (\n",
    "1_\n",
]


def parse(code: str) -> Any:
    try:
        return cst.parse_module(code)
    except Exception as error:  # noqa: BLE001
        return type(error)


def shape(node: Any) -> Any:
    """The names of the classes and the fields of a tree."""
    if isinstance(node, cst.CSTNode):
        kind = next((kind for kind, light in LIGHT.items() if light is type(node)), type(node))
        return kind.__name__, {field.name: shape(getattr(node, field.name)) for field in fields(kind)}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [shape(item) for item in node]
    return node


@pytest.mark.parametrize("code", [*FORMS, *LOSSY])
def test_a_light_tree_has_the_nodes_and_fields_of_libcst(code: str) -> None:
    light, own = parse_light(code, "utf-8"), parse(code)
    if light is not None:
        assert shape(light) == shape(own)
        spans, expected = NodeSpans(light, code.encode()), NodeSpans(own, code.encode())
        assert (spans.starts, spans.ends) == (expected.starts, expected.ends)


@pytest.mark.parametrize("code", REFUSED)
def test_there_is_no_light_tree_where_libcst_refuses(code: str) -> None:
    assert isinstance(parse(code), type)
    assert parse_light(code, "utf-8") is None


def test_the_parser_refuses_what_the_checks_of_replaced_classes_refuse() -> None:
    arguments = (", ".join(each) for n in range(4) for each in product(("a", "k=a", "*a", "**a"), repeat=n))
    parameters = (", ".join(each) for n in range(3) for each in product(("a", "b=a", "*c", "/"), repeat=n))
    prefixes = ("".join(each) for n in range(3) for each in product("bfruBRU", repeat=n))
    codes = [
        *(f"f({each})\n" for each in arguments),
        *(f"def f({each}): pass\n" for each in parameters),
        *(f"{each}'x'\n" for each in prefixes),
        *(f"{each}\n" for each in ("0x1", "0o7", "00", "01", "1_0", "1__0", "0xg", "1 = ", "a; b;", "a;; b")),
    ]
    for code in codes:
        light, own = parse_light(code, "utf-8"), parse(code)
        assert (light is None) == isinstance(own, type), code
        assert light is None or shape(light) == shape(own), code


def test_most_nodes_are_light() -> None:
    tree: Any = parse_light("import a\nif a.b:\n    f(x, y=[1])\n", "utf-8")
    assert type(tree.body[1].test) is LIGHT[cst.Attribute]
    assert isinstance(tree.body[1].test, cst.Attribute)
    assert not isinstance(tree.body[1].test, cst.Name)


def test_names_are_checked_if_they_are_not_ascii() -> None:
    tree: Any = parse_light("é.x\n", "utf-8")
    assert type(tree.body[0].body[0].value.value) is cst.Name
    assert type(tree.body[0].body[0].value.attr) is LIGHT[cst.Name]


@pytest.mark.parametrize("code", ["x\n", "x = (\n"])
def test_the_module_libcst_is_back_after_a_parse(code: str) -> None:
    parse_light(code, "utf-8")
    assert sys.modules["libcst"] is cst
