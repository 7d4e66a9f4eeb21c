"""Ask an engine for every SQL function over edge values, and compare with the recorded answers.

`tests/cases/sql/functions.json` has a few rows, expressions, and the answers of Spark: for `each` row, by
`windows`, or for `all` rows together; those with DISTINCT are apart, because beside others they take seconds.
A part is one statement. Tests: `tests/unit/query/test_sql_functions.py`, `tests/spark/test_spark_lake.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest

from codeanatomy.query.sql.light import SqlAnswer
from support import folders

FILE = folders.CASES / "sql" / "functions.json"
Answers: TypeAlias = dict[str, dict[str, Any]]
PARTS = ("each", "windows", "all", "distinct")
# With a value for each row.
BY_ROW = ("each", "windows")
RECORDED: dict[str, Any] = msgspec.json.decode(FILE.read_bytes())
# Expressions that both engines refuse to compute, with a part of what DuckDB reports; others on both sides of
# a condition are never computed.
FAILING: dict[str, str] = msgspec.json.decode((FILE.parent / "failing.json").read_bytes())
GUARDED = (
    "CASE WHEN line = 0 THEN 0 ELSE 1 / line END",
    "coalesce(1, line / 0)",
    "if(line > 0, line % nullif(line, line), 0)",
    "(line + NULL) / 0",
    "TRY_CAST('x' AS INT)",
    "CAST(NULL AS INT)",
)


def literal(value: Any) -> str:
    """Return a value as a literal of Spark's SQL."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value).upper()


def statement(part: str) -> str:
    """Return a statement with all expressions of a part over the rows."""
    rows = ", ".join(f"({', '.join(map(literal, row))})" for row in RECORDED["rows"])
    given = [f"{expression} AS e{place}" for place, expression in enumerate(RECORDED[part])]
    key = ["id"] if part in BY_ROW else []
    return f"SELECT {', '.join(key + given)} FROM (VALUES {rows}) AS v({', '.join(RECORDED['columns'])})"


def answers_of(ask: Callable[[str], SqlAnswer]) -> Answers:
    """Return the answers of an engine, by part and expression, as in the file."""
    found: Answers = {}
    for part in PARTS:
        rows = list(ask(statement(part)))
        if part in BY_ROW:
            rows.sort(key=lambda row: row["id"])
        for place, expression in enumerate(RECORDED[part]):
            values = [in_order(expression, row[f"e{place}"]) for row in rows]
            found.setdefault(part, {})[expression] = values if part in BY_ROW else values[0]
    return found


def in_order(expression: str, value: Any) -> Any:
    """Sort collected values, which have no order."""
    return sorted(value) if expression.startswith("collect_") else value


def write_answers(found: Answers) -> None:
    """Write the file anew, a line for each row and each expression."""
    parts = {"columns": RECORDED["columns"], "rows": RECORDED["rows"], **found}
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
    """Return whether two answers are equal, also in their types, but for the last digits of fractions."""
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    if isinstance(found, float) and isinstance(expected, float):
        return found == pytest.approx(expected, rel=1e-12)
    return type(found) is type(expected) and found == expected


def differences(found: Answers) -> dict[str, tuple[Any, Any]]:
    """Return the expressions whose answers differ from the file."""
    return {
        expression: (value, RECORDED[part][expression])
        for part, values in found.items()
        for expression, value in values.items()
        if not is_same(value, RECORDED[part][expression])
    }
