"""Every function of SQL over edge values: DuckDB answers what Spark answers.

`tests/sql/functions.json` has a few rows, expressions, and what Spark gives for them: of `each` row, or of
`all` of them together. Here DuckDB is asked, without a JVM; `tests/test_spark_lane.py` asks Spark, and writes
the file anew with `--regenerate`. Both are asked one statement that has all of the expressions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ask_lake import reader_of
from codeanatomy.query.sql.allowed import FORMS, FUNCTIONS
from codeanatomy.query.sql.light import SqlAnswer, run_sql

FILE = Path(__file__).with_name("sql") / "functions.json"
CASES: dict[str, Any] = msgspec.json.decode(FILE.read_bytes())


def literal(value: Any) -> str:
    """A value as Spark's SQL has it."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value).upper()


def statement() -> str:
    """All expressions over the rows, in one statement."""
    lines = ", ".join(f"({', '.join(map(literal, row))})" for row in CASES["rows"])
    rows = f"(VALUES {lines}) AS v({', '.join(CASES['columns'])})"
    each = ", ".join(f"{expression} AS e{place}" for place, expression in enumerate(CASES["each"]))
    every = ", ".join(f"{expression} AS a{place}" for place, expression in enumerate(CASES["all"]))
    return f"SELECT id, {each}, a.* FROM {rows} CROSS JOIN (SELECT {every} FROM {rows}) AS a ORDER BY id"


def answers(found: SqlAnswer) -> dict[str, dict[str, Any]]:
    """The answers by expression, as the file has them."""
    return {
        "each": {
            expression: [row[f"e{place}"] for row in found] for place, expression in enumerate(CASES["each"])
        },
        "all": {
            expression: in_order(expression, found.rows[0][f"a{place}"])
            for place, expression in enumerate(CASES["all"])
        },
    }


def in_order(expression: str, value: Any) -> Any:
    """What is collected without an order of its own is compared without one."""
    return sorted(value) if expression.startswith("collect_") else value


def write(found: SqlAnswer) -> None:
    """Write the file anew, a line for each row and each expression."""
    parts = {"columns": CASES["columns"], "rows": CASES["rows"], **answers(found)}
    lines = []
    for name, part in parts.items():
        pairs = part.items() if isinstance(part, dict) else [(None, each) for each in part]
        encoded = [f"{encode(key)}: {encode(value)}" if key else encode(value) for key, value in pairs]
        first, last = "{}" if isinstance(part, dict) else "[]"
        inner = ",\n".join(f"    {line}" for line in encoded)
        lines.append(f"  {encode(name)}: {first}\n{inner}\n  {last}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def is_same(found: Any, expected: Any) -> bool:
    """Whether two answers are equal, also in their types, but for the last digits of fractions."""
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    if isinstance(found, float) and isinstance(expected, float):
        return found == pytest.approx(expected, rel=1e-12)
    return type(found) is type(expected) and found == expected


def differences(found: SqlAnswer) -> dict[str, tuple[Any, Any]]:
    """The expressions whose answers are others than those in the file."""
    return {
        expression: (value, CASES[part][expression])
        for part, values in answers(found).items()
        for expression, value in values.items()
        if not is_same(value, CASES[part][expression])
    }


def test_duckdb_answers_what_spark_answers(ask_lake: Path) -> None:
    found = run_sql(reader_of(ask_lake), statement(), limit=100, seconds=30)
    assert len(found) == len(CASES["rows"])
    assert differences(found) == {}


def test_every_function_and_form_is_asked() -> None:
    asked = {*CASES["each"], *CASES["all"]}
    assert {*FUNCTIONS.values(), *FORMS} <= asked
    # An expression that is null everywhere would tell nothing.
    told = [values for values in CASES["each"].values() if values != [None] * len(values)]
    assert len(told) > len(CASES["each"]) * 0.9


def test_a_difference_would_be_seen() -> None:
    assert is_same([1, 0.1 + 0.2, None], [1, 0.3, None])
    for found, expected in ((1, 1.0), (1, True), ("a", None), ([1], [1, 2]), (0.3, 0.31), ([], "")):
        assert not is_same(found, expected)
