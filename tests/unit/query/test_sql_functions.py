"""Every function of SQL over edge values: DuckDB answers what Spark answers.

`tests/cases/sql/functions.json` has a few rows, expressions, and what Spark gives for them: for `each` row, by
`windows`, or for `all` rows together; those with DISTINCT are apart, for beside others they take seconds.
Here DuckDB is asked, without a JVM; `tests/spark/test_spark_lake.py` asks Spark, and writes the file anew with
`--regenerate`. A part is one statement.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from codeanatomy.query.sql.allowed import FORMS, FUNCTIONS
from codeanatomy.query.sql.light import SqlAnswer, run_sql
from support.ask_lake import reader_of
from support.folders import CASES

FILE = CASES / "sql" / "functions.json"
Answers: TypeAlias = dict[str, dict[str, Any]]
PARTS = ("each", "windows", "all", "distinct")
# With a value for each row.
BY_ROW = ("each", "windows")
CASES: dict[str, Any] = msgspec.json.decode(FILE.read_bytes())


def literal(value: Any) -> str:
    """A value as Spark's SQL has it."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value).upper()


def statement(part: str) -> str:
    """All expressions of a part over the rows."""
    rows = ", ".join(f"({', '.join(map(literal, row))})" for row in CASES["rows"])
    given = [f"{expression} AS e{place}" for place, expression in enumerate(CASES[part])]
    key = ["id"] if part in BY_ROW else []
    return f"SELECT {', '.join(key + given)} FROM (VALUES {rows}) AS v({', '.join(CASES['columns'])})"


def asked(ask: Callable[[str], SqlAnswer]) -> Answers:
    """The answers of an engine, by part and expression, as the file has them."""
    found: Answers = {}
    for part in PARTS:
        rows = list(ask(statement(part)))
        if part in BY_ROW:
            rows.sort(key=lambda row: row["id"])
        for place, expression in enumerate(CASES[part]):
            values = [in_order(expression, row[f"e{place}"]) for row in rows]
            found.setdefault(part, {})[expression] = values if part in BY_ROW else values[0]
    return found


def in_order(expression: str, value: Any) -> Any:
    """What is collected without an order of its own is compared without one."""
    return sorted(value) if expression.startswith("collect_") else value


def write(found: Answers) -> None:
    """Write the file anew, a line for each row and each expression."""
    parts = {"columns": CASES["columns"], "rows": CASES["rows"], **found}
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


def differences(found: Answers) -> dict[str, tuple[Any, Any]]:
    """The expressions whose answers are others than those in the file."""
    return {
        expression: (value, CASES[part][expression])
        for part, values in found.items()
        for expression, value in values.items()
        if not is_same(value, CASES[part][expression])
    }


def test_duckdb_answers_what_spark_answers(ask_lake: Path) -> None:
    reader = reader_of(ask_lake)
    found = asked(lambda text: run_sql(reader, text, limit=100, seconds=30))
    assert {len(values) for part in BY_ROW for values in found[part].values()} == {len(CASES["rows"])}
    assert differences(found) == {}


def test_every_function_and_form_is_asked() -> None:
    expressions = {expression for part in PARTS for expression in CASES[part]}
    assert {*FUNCTIONS.values(), *FORMS} <= expressions
    # An expression that is null everywhere would tell nothing.
    told = [values for values in CASES["each"].values() if values != [None] * len(values)]
    assert len(told) > len(CASES["each"]) * 0.9


def test_a_difference_would_be_seen() -> None:
    assert is_same([1, 0.1 + 0.2, None], [1, 0.3, None])
    for found, expected in ((1, 1.0), (1, True), ("a", None), ([1], [1, 2]), (0.3, 0.31), ([], "")):
        assert not is_same(found, expected)
