"""Functions of our own in DuckDB: ids against their recipe in Python, spans against sets of bytes."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings

from codeanatomy import sql_functions
from codeanatomy.errors import SqlRefused
from codeanatomy.node_ids import definition_key, node_id
from codeanatomy.query.sql.light import run_sql
from codeanatomy.sql_functions import FUNCTIONS, macros
from support.ask_lake import reader_of
from support.own_functions import ID_ARGUMENTS, SPANS, expected_id, expected_span


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as database:
        database.execute(macros())
        yield database


@pytest.mark.parametrize("name", ID_ARGUMENTS)
def test_ids_are_those_of_the_recipe(database: duckdb.DuckDBPyConnection, name: str) -> None:
    types = ["BIGINT" if kind == "BIGINT" else "VARCHAR" for _, kind in FUNCTIONS[name].parameters]
    call = f"SELECT {name}({', '.join(f'?::{kind}' for kind in types)})"

    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(ID_ARGUMENTS[name])
    def agrees(arguments: tuple[str | int | None, ...]) -> None:
        assert database.execute(call, arguments).fetchall() == [(expected_id(name, arguments),)]

    agrees()


@pytest.mark.parametrize("name", SPANS)
def test_spans_are_sets_of_bytes(database: duckdb.DuckDBPyConnection, name: str) -> None:
    bounds = list(product((None, -1, 0, 1, 2, 3), repeat=len(FUNCTIONS[name].parameters)))
    names = [each for each, _ in FUNCTIONS[name].parameters]
    rows = ", ".join(f"({', '.join('NULL' if v is None else str(v) for v in row)})" for row in bounds)
    sql = f"SELECT {name}({', '.join(names)}) FROM (VALUES {rows}) AS v({', '.join(names)})"
    found = [row[0] for row in database.execute(sql).fetchall()]
    assert found == [expected_span(name, row) for row in bounds]


def test_a_kind_that_does_not_exist_is_an_error(database: duckdb.DuckDBPyConnection) -> None:
    for call in ("node_id('FUNCTON', 'k')", "natural_id('FUNCTON', 'r', 'n')"):
        with pytest.raises(duckdb.Error, match="unknown node kind FUNCTON"):
            database.execute(f"SELECT {call}").fetchall()


def answer(lake: Path, sql: str) -> list[dict[str, object]]:
    return [*run_sql(reader_of(lake), sql, limit=100, seconds=30).rows]


def test_statements_call_them(ask_lake: Path) -> None:
    (row,) = answer(
        ask_lake, "SELECT repo_id, path, symbol_id FROM symbols WHERE name = 'Cart' AND kind = 'CLASS'"
    )
    key = definition_key(str(row["repo_id"]), str(row["path"]), "Cart")
    assert row["symbol_id"] == node_id("CLASS", key)
    made = "node_id('CLASS', definition_key(repo_id, path, 'Cart'))"
    found = answer(ask_lake, f"SELECT name FROM symbols WHERE symbol_id = {made}")
    assert found == [{"name": "Cart"}]
    inside = answer(ask_lake, "SELECT count(*) AS n FROM nodes WHERE span_contains(bstart, bend, 0, 1)")
    outside = answer(ask_lake, "SELECT count(*) AS n FROM nodes WHERE bstart <= 0 AND bend >= 1")
    assert inside == outside != [{"n": 0}]
    for function in FUNCTIONS.values():
        table = "edges" if function.name == "edge_id" else "nodes"
        example = function.example.replace("caller_id", "src_node_id").replace("callee_id", "dst_node_id")
        assert len(answer(ask_lake, f"SELECT {example} AS x FROM {table} LIMIT 3")) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("node_id('CLASS')", "1 arguments"),
        ("span_len(1)", "1 arguments"),
        ("span_len(1, 2, 3)", "3 arguments"),
        ("node_id(1, 'k')", "node_id needs a text"),
        ("span_len('a', 2)", "span_len needs a number"),
        ("span_len(bstart / 2, 2)", "span_len needs whole numbers"),
        ("1 + node_id('CLASS', 'k')", "needs a number"),
        ("node_id('CLASS', key => 'k')", "not supported"),
        ("nod_id('CLASS', 'k')", "'nod_id' is not supported"),
        ("node_id('NOTHING', 'k')", "unknown node kind"),
        (f"{'node_id(path, ' * 4}'k'{')' * 4}", "nested too deeply"),
    ],
)
def test_wrong_calls_are_refused(ask_lake: Path, call: str, message: str) -> None:
    with pytest.raises(SqlRefused, match=message):
        answer(ask_lake, f"SELECT {call} FROM nodes")


def test_declarations_survive_every_quoting() -> None:
    for function in FUNCTIONS.values():
        assert "\\" not in function.statement() + function.macro
        assert "'" not in function.doc
        names = [name for name, _ in function.parameters]
        assert names[len(names) - len(function.defaults) :] == list(function.defaults)


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(sql_functions).failed == 0
