"""Ids of nodes: told apart by kind, file and place, and the same on every machine."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from codeanatomy.ids import stable_id
from codeanatomy.node_ids import (
    PREFIXES,
    ast_node_id,
    binding_id,
    external_module_id,
    module_id,
    node_id,
    node_id_maker,
    qualified_name_id,
    scope_id,
)

# Definitions and uses of variables have one key: each event is of one of these kinds.
EVENTS = {name for name, prefix in PREFIXES.items() if prefix == "event"}
KINDS = st.sampled_from(sorted(PREFIXES.keys() - EVENTS))
BYTES = st.none() | st.integers(0, 50)
PLACES = st.tuples(KINDS, st.text(max_size=5), BYTES, BYTES)
Place = tuple[str, str, int | None, int | None]


def test_an_id_is_a_prefix_and_a_hash_of_framed_parts() -> None:
    framed = b"8:callsite6:file:a1:42:10"
    digest = urlsafe_b64encode(sha256(framed).digest()[:16]).decode().rstrip("=")
    assert node_id("CALLSITE", "file:a", 4, 10) == f"callsite:{digest}"


def test_no_two_kinds_share_a_prefix() -> None:
    prefixes = Counter(prefix for name, prefix in PREFIXES.items() if name not in EVENTS)
    assert set(prefixes.values()) == {1}
    assert all(prefix == prefix.lower() and ":" not in prefix for prefix in PREFIXES.values())


@given(PLACES, PLACES)
def test_ids_are_equal_only_if_everything_is(one: Place, two: Place) -> None:
    assert (node_id(*one) == node_id(*two)) == (one == two)


def test_what_has_lost_its_place_is_no_other_node() -> None:
    lost = node_id("FUNCTION", "file:a", None, None)
    assert lost == stable_id("function", "file:a", None, None, "unplaced")
    assert lost != stable_id("function", "file:a", None, None)


def test_many_ids_of_a_kind_are_those_of_one() -> None:
    made = node_id_maker("CLASS", "file:a")
    assert [made(start, 9) for start in range(3)] == [
        node_id("CLASS", "file:a", start, 9) for start in range(3)
    ]


def test_nodes_of_the_tree_with_one_span_differ() -> None:
    # The statement, the expression and the name in `x`.
    assert len({ast_node_id("file:a", 0, 1, number) for number in (1, 2, 3)}) == 3
    assert ast_node_id("file:a", None, None, 0) != ast_node_id("file:a", 0, 0, 0)


def test_what_has_no_place_has_a_natural_key() -> None:
    scopes = {
        scope_id(file, key) for file in ("file:a", "file:b") for key in ("module:top@0#0", "class:A@3#0")
    }
    bindings = {binding_id(scope, name) for scope in scopes for name in ("x", "_A__x")}
    assert (len(scopes), len(bindings)) == (4, 8)
    assert module_id("file:a") != module_id("file:b")
    assert qualified_name_id("r", "os.path") != external_module_id("r", "os.path")
    assert qualified_name_id("r", "os.path") != qualified_name_id("s", "os.path")


def test_a_lone_surrogate_has_an_id() -> None:
    assert binding_id("scope:a", "\ud800") != binding_id("scope:a", "\ud801")
