"""The recipe of ids: golden values, that different names have different ids, and what ids look like."""

from __future__ import annotations

import doctest
from base64 import urlsafe_b64encode
from collections import Counter
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy import node_ids
from codeanatomy.catalog.kinds import NODE_KINDS
from codeanatomy.node_ids import (
    ID_VERSION,
    KEY_CHARS,
    NATURAL_CHARS,
    PREFIXES,
    binding_id,
    definition_key,
    edge_id,
    escaped,
    file_id,
    key_of,
    module_id,
    natural_id,
    node_id,
    number_text,
    repository_id,
)

# Definitions and uses of variables are events of one numbering.
EVENTS = {name for name, prefix in PREFIXES.items() if prefix == "event"}
KINDS = st.sampled_from(sorted(PREFIXES.keys() - EVENTS))
NASTY = (
    "",
    ";",
    "%",
    ":",
    ".",
    "%3B",
    "%253B",
    "a;b",
    "a:b",
    "000001",
    "'",
    '"',
    "\x00",
    "é",
    "e\u0301",
    "😀",
)
TEXTS = st.one_of(st.sampled_from(NASTY), st.text("a;%:.0é😀", max_size=6), st.text(max_size=8))
KEYS = st.builds(definition_key, TEXTS, TEXTS, TEXTS)
NAMES = TEXTS.filter(lambda name: not name.isdecimal())
PARTS = st.one_of(st.none(), st.integers(0, 10**7), NAMES)

KEY = "-Ypa08bsXihimzV9"


def test_golden_values() -> None:
    """Written down, not computed: lakes hold these values, so another recipe needs another ID_VERSION."""
    assert ID_VERSION == 2
    assert definition_key("shop", "shop/cart.py", "Cart.total") == KEY
    assert definition_key("shop", "shop/cart.py") == "rZEvjYC1_H-0VeLR"
    assert definition_key("", "", "") == "Y8q46SHkEyQqRL9O"
    assert definition_key("répo", "src/😀.py", "f#1.<lambda>#0") == "2DsFhaQWUO2e7dcj"
    assert file_id("shop", "shop/cart.py") == "file:rZEvjYC1_H-0VeLR"
    assert module_id("file:rZEvjYC1_H-0VeLR") == "module:rZEvjYC1_H-0VeLR"
    assert node_id("FUNCTION", KEY) == f"function:{KEY}"
    assert node_id("CALLSITE", KEY, 3) == f"callsite:{KEY}.000003"
    assert node_id("CALLSITE", KEY, 1_234_567) == f"callsite:{KEY}.1234567"
    assert node_id("PARAMETER", KEY, "self") == f"parameter:{KEY}.self"
    assert node_id("BINDING", KEY, "a;b%c") == f"binding:{KEY}.a%3Bb%25c"
    assert binding_id(f"scope:{KEY}", "_Cart__x") == f"binding:{KEY}._Cart__x"
    assert natural_id("QUALIFIED_NAME", "shop", "builtins.sum") == "qname:shop:builtins.sum"
    assert natural_id("TYPE", "a:b;c", "x;y") == "type:a%3Ab%3Bc:x%3By"
    assert natural_id("TYPE", "shop", "x" * 161) == f"type:shop:{'x' * 143}~rv1hNbRnnqoND4ZS"
    assert repository_id("shop;1") == "repo:shop%3B1"
    assert edge_id("CALLS", "a:1", "b:2") == "CALLS;a:1;b:2"
    assert edge_id("CALLS", "a:1", "b:2", 12) == "CALLS;a:1;b:2;12"


@given(TEXTS, TEXTS, TEXTS)
def test_a_key_is_96_bits_of_framed_names(repo_id: str, path: str, qualified: str) -> None:
    framed = b"".join(
        b"%d:%b" % (len(raw), raw) for raw in (each.encode() for each in (repo_id, path, qualified))
    )
    assert (
        definition_key(repo_id, path, qualified) == urlsafe_b64encode(sha256(framed).digest()[:12]).decode()
    )


def test_names_do_not_run_into_each_other() -> None:
    names = [(one, two, three) for one in NASTY for two in NASTY for three in NASTY]
    assert len({definition_key(*each) for each in names}) == len(names)


@given(KINDS, KEYS, PARTS, KINDS, KEYS, PARTS)
def test_nodes_are_the_same_only_if_kind_key_and_part_are(
    kind: str, key: str, part: str | int | None, other: str, other_key: str, other_part: str | int | None
) -> None:
    is_same = (kind, key, part) == (other, other_key, other_part)
    assert (node_id(kind, key, part) == node_id(other, other_key, other_part)) == is_same


@given(KINDS, TEXTS, TEXTS, KINDS, TEXTS, TEXTS)
def test_natural_ids_are_the_same_only_if_the_names_are(
    kind: str, repo_id: str, name: str, other: str, other_repo: str, other_name: str
) -> None:
    is_same = (kind, repo_id, name) == (other, other_repo, other_name)
    assert (natural_id(kind, repo_id, name) == natural_id(other, other_repo, other_name)) == is_same


@given(st.text("a;%:é😀", max_size=8), st.text("a;%:é😀", max_size=8))
def test_escaped_names_can_be_read_back(one: str, two: str) -> None:
    assert ";" not in escaped(one)
    assert escaped(one).replace("%3B", ";").replace("%25", "%") == one
    assert (escaped(one) == escaped(two)) == (one == two)


@given(
    st.lists(st.tuples(KINDS, KEYS, PARTS), min_size=2, max_size=2), TEXTS.map(escaped), st.integers(0, 99)
)
def test_an_edge_id_says_its_kind_and_ends(
    ends: list[tuple[str, str, str | int | None]], kind: str, repeat: int
) -> None:
    src, dst = (node_id(*each) for each in ends)
    parts = edge_id(kind, src, dst, repeat).split(";")
    assert parts == [kind, src, dst, *([str(repeat)] if repeat else [])]


@given(st.text("aé😀;%", min_size=NATURAL_CHARS - 1, max_size=NATURAL_CHARS + 2))
def test_a_long_name_is_cut_and_ends_in_a_hash_of_all_of_it(name: str) -> None:
    made = natural_id("TYPE", "r", name).removeprefix("type:r:")
    if len(name) < NATURAL_CHARS:
        assert made == escaped(name)
    else:
        head, _, key = made.rpartition("~")
        assert head == escaped(name[: NATURAL_CHARS - KEY_CHARS - 1])
        assert key == definition_key("r", "", name)
        assert natural_id("TYPE", "r", f"{name}a") != natural_id("TYPE", "r", name)


@given(KINDS, KEYS, PARTS)
def test_the_key_is_read_from_an_id(kind: str, key: str, part: str | int | None) -> None:
    assert key_of(node_id(kind, key, part)) == key


@given(st.lists(st.integers(0, 999_999), min_size=2, max_size=5))
def test_numbers_sort_as_text(numbers: list[int]) -> None:
    assert sorted(map(number_text, numbers)) == [number_text(number) for number in sorted(numbers)]


def test_no_two_kinds_share_a_prefix() -> None:
    prefixes = Counter(prefix for name, prefix in PREFIXES.items() if name not in EVENTS)
    assert set(prefixes.values()) == {1}
    assert PREFIXES.keys() == NODE_KINDS.keys()
    assert all(prefix == prefix.lower() and prefix.isidentifier() for prefix in PREFIXES.values())


def test_a_lone_surrogate_has_an_id() -> None:
    assert definition_key("r", "a.py", "\ud800") != definition_key("r", "a.py", "\ud801")
    assert binding_id(f"scope:{KEY}", "\ud800") != binding_id(f"scope:{KEY}", "\ud801")


@pytest.mark.parametrize("kind", ["FUNCTON", "CALLS", ""])
def test_only_node_kinds_have_ids(kind: str) -> None:
    with pytest.raises(KeyError):
        node_id(kind, KEY)


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(node_ids).failed == 0
