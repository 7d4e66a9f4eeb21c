"""Every function of SQL over edge values: DuckDB answers what Spark answers.

The recorded answers are described in `tests/support/sql_functions.py`. This file compares DuckDB with them,
without a JVM; `tests/spark/test_spark_lake.py` compares Spark, and writes the file anew with `--regenerate`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.errors import SqlRefused
from codeanatomy.query.sql.allowed import FORMS, FUNCTIONS
from codeanatomy.query.sql.light import run_sql
from support.ask_lake import reader_of
from support.sql_functions import BY_ROW, FAILING, GUARDED, PARTS, RECORDED, answers_of, differences, is_same


def test_duckdb_answers_what_spark_answers(ask_lake: Path) -> None:
    reader = reader_of(ask_lake)
    found = answers_of(lambda text: run_sql(reader, text, limit=100, seconds=30))
    assert {len(values) for part in BY_ROW for values in found[part].values()} == {len(RECORDED["rows"])}
    assert differences(found) == {}


@pytest.mark.parametrize(("expression", "message"), FAILING.items())
def test_what_cannot_be_computed_is_an_error(ask_lake: Path, expression: str, message: str) -> None:
    with pytest.raises(SqlRefused, match=message):
        run_sql(reader_of(ask_lake), f"SELECT {expression} FROM calls WHERE line > 1", limit=100, seconds=30)


@pytest.mark.parametrize("expression", GUARDED)
def test_what_is_not_computed_is_no_error(ask_lake: Path, expression: str) -> None:
    statement = f"SELECT {expression} FROM calls WHERE line > 1"
    assert len(run_sql(reader_of(ask_lake), statement, limit=5, seconds=30).rows) == 5


def test_every_function_and_form_is_asked() -> None:
    expressions = {expression for part in PARTS for expression in RECORDED[part]}
    assert {*FUNCTIONS.values(), *FORMS} <= expressions
    # An expression that is null everywhere would tell nothing.
    told = [values for values in RECORDED["each"].values() if values != [None] * len(values)]
    assert len(told) > len(RECORDED["each"]) * 0.9


def test_a_difference_would_be_seen() -> None:
    assert is_same([1, 0.1 + 0.2, None], [1, 0.3, None])
    for found, expected in ((1, 1.0), (1, True), ("a", None), ([1], [1, 2]), (0.3, 0.31), ([], "")):
        assert not is_same(found, expected)
