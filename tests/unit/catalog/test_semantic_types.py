"""Checks of semantic types: what they accept and refuse, as DuckDB evaluates them for writers."""

from __future__ import annotations

import duckdb
import pytest

from codeanatomy import catalog
from codeanatomy.catalog.kinds import NODE_KINDS
from codeanatomy.catalog.semantic_types import BY_NAME, EVIDENCE_KEY, KEY_CHARS, assignable
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import KEY_CHARS as CHARS_OF_IDS
from codeanatomy.node_ids import definition_key, edge_id, file_id, natural_id, node_id, repository_id

KEY = definition_key("shop", "shop/cart.py", "Cart.total")
NUMBERED = f"{KEY}.000003"
CALL, TOTAL = node_id("CALLSITE", KEY, 3), node_id("FUNCTION", KEY)
CUT = natural_id("TYPE", "a;b:c", "Literal['x;y']" * 30)

RIGHT = {
    "FileId": (file_id("shop", "shop/cart.py"),),
    "ScopeId": (f"scope:{KEY}",),
    "CodeUnitId": (f"code:{KEY}",),
    "TypeId": ("type:shop:dict[str, int]", CUT),
    "ExprId": (f"type_expr:{NUMBERED}",),
    "BlockId": (f"block:{NUMBERED}", f"block:{KEY}.exit"),
    "EventId": (f"event:{NUMBERED}",),
    "DiagId": (f"diag:{KEY}.syntax.E1.000000",),
    "SpanId": (f"span:{KEY}.0-17",),
    "CfgEdgeId": (f"cfg:{NUMBERED}",),
    "ReachId": (f"reach:{NUMBERED}",),
    "SpanErrorId": (f"span_error:{NUMBERED}",),
    "IndexId": (stable_id("index", "shop", "index.scip"),),
    "AmbiguityGroupId": (f"ambig:{CALL};CALLS",),
    "NodeId": (CALL, TOTAL, CUT, repository_id("a;b"), node_id("BINDING", KEY, "a;b%c")),
    "EdgeId": (edge_id("CALLS", CALL, TOTAL), edge_id("CALLS", CALL, CUT, 3)),
    "EntityId": (CALL, edge_id("CALLS", CALL, TOTAL)),
    EVIDENCE_KEY: (f"reach:{NUMBERED}", f"diag:{KEY}.a.b.000001"),
}
WRONG = {
    "FileId": ("", "file:", f"file:{KEY}.0", f"module:{KEY}", f"file:{KEY[1:]}"),
    "ScopeId": (f"scope:{KEY}.x",),
    "TypeId": ("type:shop", "type::int", "types:shop:int"),
    "BlockId": (f"block:{KEY}", f"block:{KEY}.", f"block:{KEY}x0", f"event:{NUMBERED}"),
    "IndexId": (f"index:{KEY}",),
    "AmbiguityGroupId": (f"ambig:{KEY}", CALL),
    "NodeId": ("", "callsite", ":x", "callsite:", edge_id("CALLS", CALL, TOTAL)),
    "EdgeId": (CALL, "", ";a:b;c:d", "CALLS;a;b"),
}


def holds(name: str, value: str) -> bool:
    check = BY_NAME[name].check
    assert check is not None
    connection = duckdb.connect()
    connection.execute("CREATE MACRO startswith(a, b) AS starts_with(a, b)")
    [(held,)] = connection.execute(f"SELECT {check.format(c='c')} FROM (SELECT ? AS c)", [value]).fetchall()
    return bool(held)


@pytest.mark.parametrize(("name", "value"), [(name, each) for name, all_ in RIGHT.items() for each in all_])
def test_ids_of_the_recipe_are_accepted(name: str, value: str) -> None:
    assert holds(name, value)


@pytest.mark.parametrize(("name", "value"), [(name, each) for name, all_ in WRONG.items() for each in all_])
def test_other_texts_are_refused(name: str, value: str) -> None:
    assert not holds(name, value)


def test_every_id_has_an_example() -> None:
    ids = {name for name in BY_NAME if name.endswith("Id") and name not in ("RepoId", "RunId")}
    assert ids | {EVIDENCE_KEY} == RIGHT.keys()


@pytest.mark.parametrize("name", RIGHT)
def test_an_id_meets_the_checks_of_its_supertypes(name: str) -> None:
    for wider in BY_NAME:
        if assignable(name, wider):
            assert all(holds(wider, value) for value in RIGHT[name])


def test_definition_keys_have_one_length() -> None:
    assert KEY_CHARS == CHARS_OF_IDS == len(KEY)


def test_ids_of_nodes_are_of_declared_kinds() -> None:
    prefixes = {kind.prefix for kind in NODE_KINDS.values()}
    for name in ("FileId", "ScopeId", "CodeUnitId", "TypeId", "ExprId", "BlockId", "EventId", "DiagId"):
        assert assignable(name, "NodeId")
        assert RIGHT[name][0].partition(":")[0] in prefixes


def test_no_column_is_of_a_type_that_is_gone() -> None:
    used = {column.semantic_type for table in catalog.TABLES for column in table.readable_columns}
    assert used - {None} <= BY_NAME.keys()
