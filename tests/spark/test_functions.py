"""Functions of our own in Spark's SQL: ids against their recipe in Python, spans against sets of bytes."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession

from codeanatomy import node_ids
from codeanatomy.sql_functions import FUNCTIONS, register_functions
from support.own_functions import ID_ARGUMENTS, SPANS, expected_id, expected_span

ROWS = 180


@pytest.fixture(scope="module")
def sql(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    register_functions(session)
    return session


def called(sql: SparkSession, name: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    """Return the values of a function for rows of arguments."""
    parameters = FUNCTIONS[name].parameters
    frame = sql.createDataFrame(rows, ", ".join(f"{each} {kind}" for each, kind in parameters))
    named = ", ".join(f"{each} => {each}" for each, _ in parameters)
    return [row[0] for row in frame.selectExpr(f"{name}({named})").collect()]


@pytest.mark.parametrize("name", ID_ARGUMENTS)
def test_ids_are_those_of_the_recipe(sql: SparkSession, name: str) -> None:
    rows: list[tuple[Any, ...]] = []

    # A job takes seconds, and shrinking would be a job per attempt.
    @settings(max_examples=ROWS, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(ID_ARGUMENTS[name])
    def collect(arguments: tuple[Any, ...]) -> None:
        rows.append(arguments)

    collect()
    assert len(rows) >= ROWS // 2
    assert called(sql, name, rows) == [expected_id(name, row) for row in rows]


@pytest.mark.parametrize("name", SPANS)
def test_spans_are_sets_of_bytes(sql: SparkSession, name: str) -> None:
    rows = list(product((None, -1, 0, 1, 2, 3), repeat=len(FUNCTIONS[name].parameters)))
    assert called(sql, name, rows) == [expected_span(name, row) for row in rows]


def test_parameters_of_ids_have_defaults(sql: SparkSession) -> None:
    key = node_ids.definition_key("shop", "shop/cart.py", "Cart.total")
    made = sql.sql(
        "WITH made AS (SELECT definition_key('shop', 'shop/cart.py', 'Cart.total') AS key) "
        "SELECT definition_key('shop', 'shop/cart.py'), node_id('FUNCTION', key), "
        "node_id('BINDING', key, 'x'), node_id('CALLSITE', key, number => 3), "
        "edge_id('CALLS', 'a', 'b'), edge_id('CALLS', 'a', 'b', 2) FROM made"
    )
    module = node_ids.definition_key("shop", "shop/cart.py")
    site = node_ids.node_id("CALLSITE", key, 3)
    assert made.collect() == [
        (module, f"function:{key}", f"binding:{key}.x", site, "CALLS;a;b", "CALLS;a;b;2")
    ]


def test_a_kind_that_does_not_exist_is_refused(sql: SparkSession) -> None:
    for call in ("node_id('FUNCTON', 'k')", "natural_id('FUNCTON', 'r', 'n')"):
        with pytest.raises(Exception, match="unknown node kind FUNCTON"):
            sql.sql(f"SELECT {call}").collect()


def test_registration_is_for_one_session_and_a_prefix(sql: SparkSession) -> None:
    register_functions(sql, "our_", ["span_len"])
    assert sql.sql("SELECT our_span_len(3, 7)").collect() == [(4,)]
    other = sql.newSession()
    for name in (*FUNCTIONS, "our_span_len"):
        assert sql.catalog.functionExists(name)
        assert not other.catalog.functionExists(name)
    assert not sql.catalog.functionExists("our_node_id")
