"""A statement means the same before and after it was rewritten, and in the other engine's SQL.

`tests/cases/sql/rewrites.json` has tiny views, statements, and the rows that each statement has by hand.
SQLGlot's own executor, which is Python, runs a statement as it was typed and as `check` has written it anew;
DuckDB runs the translation. All three have to give the rows of the case.
"""

from __future__ import annotations

from typing import Any

import duckdb
import msgspec
import pytest
from sqlglot.executor import execute

from codeanatomy.catalog.views import VIEWS
from codeanatomy.query.engines.light import values_sql
from codeanatomy.query.engines.statements import InlineRows
from codeanatomy.query.sql.light import check
from support.folders import CASES

FIXTURES: dict[str, Any] = msgspec.json.decode((CASES / "sql" / "rewrites.json").read_bytes())
CASES: list[dict[str, Any]] = FIXTURES["cases"]
each_case = pytest.mark.parametrize("case", CASES, ids=[case["title"] for case in CASES])
# Every view with all its columns; what a row does not have is null.
TABLES = {
    view.name: [dict.fromkeys(view.column_names) | row for row in FIXTURES["tables"].get(view.name, [])]
    for view in VIEWS
}
SCHEMA = {view.name: {column.name: column.type for column in view.columns} for view in VIEWS}


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect(":memory:")
    for view in VIEWS:
        held = InlineRows(view.columns, [tuple(row.values()) for row in TABLES[view.name]])
        found.execute(f'CREATE TABLE "{view.name}" AS {values_sql(held)}')
    return found


def compared(case: dict[str, Any], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in their order, if the statement gives them one."""
    return rows if "ORDER BY" in case["sql"] else sorted(rows, key=repr)


def by_sqlglot(sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in execute(sql, schema=SCHEMA, dialect="spark", tables=TABLES).rows]


def expected(case: dict[str, Any]) -> list[tuple[Any, ...]]:
    return compared(case, [tuple(row) for row in case["rows"]])


@each_case
def test_the_statement_as_it_was_typed(case: dict[str, Any]) -> None:
    assert compared(case, by_sqlglot(case["sql"])) == expected(case)


@each_case
def test_the_statement_as_it_was_rewritten(case: dict[str, Any]) -> None:
    assert compared(case, by_sqlglot(check(case["sql"]).spark_sql)) == expected(case)


@each_case
def test_the_statement_as_duckdb_runs_it(case: dict[str, Any], database: duckdb.DuckDBPyConnection) -> None:
    checked = check(case["sql"])
    found = database.execute(checked.duck_sql)
    assert tuple(column[0] for column in found.description) == checked.columns
    assert compared(case, found.fetchall()) == expected(case)


@each_case
def test_a_rewritten_statement_is_rewritten_to_itself(case: dict[str, Any]) -> None:
    once = check(case["sql"])
    again = check(once.spark_sql)
    assert (again.spark_sql, again.duck_sql, again.columns) == (once.spark_sql, once.duck_sql, once.columns)
