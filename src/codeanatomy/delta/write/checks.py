"""What rows must satisfy before a commit: meaning, NOT NULL and constraints.

Meaning is checked when the plan is made: a column that says it holds EdgeIds cannot be written where
NodeIds are declared. Values are checked while they are written, in the same pass: the first column
of the projection raises an error on the first row that breaks a rule, so nothing reaches the log.
Only then, on the way to the error, the rows are looked at a second time for samples:

    rows for cpg_nodes break span_ordered: bend >= bstart
        span_ordered: {"node_id":"node:...","bstart":9,"bend":4}

Rules come from three places: the catalogue's columns (NOT NULL, semantic types), its constraints,
and CHECK constraints that somebody put on the Delta table itself. A condition that is null counts
as broken, as in Delta. Tests: `tests/spark/test_constraints.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from codeanatomy.catalog.semantic_types import BY_NAME, assignable
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.contract import column_metadata, quote_identifier
from codeanatomy.errors import ConstraintViolation, SemanticTypeError
from codeanatomy.spark.jvm import sql_text

BROKEN = "CONSTRAINT_BROKEN"
SAMPLE_ROWS = 5
DELTA_CONSTRAINT = "delta.constraints."

Rules = Mapping[str, str]


def check_semantic_types(table: Table, schema: T.StructType) -> None:
    """Refuse rows whose columns say they mean something else than the contract."""
    wrong = []
    for field in schema.fields:
        given = field.metadata.get("semantic_type")
        declared = table.column(field.name).semantic_type if field.name in table.column_names else None
        if given and declared and not assignable(given, declared):
            wrong.append(f"{field.name} holds {given}, not {declared}")
    if wrong:
        raise SemanticTypeError(
            f"{table.name}: {'; '.join(wrong)}",
            "write the column that is meant, or say so with meaning(column, semantic_type)",
        )


def with_semantic_type(column: str, semantic_type: str) -> SparkColumn:
    """The column, said to hold another meaning: the explicit way across semantic types."""
    return F.col(column).alias(column, metadata={"semantic_type": semantic_type})


def join_on(left: DataFrame, right: DataFrame, keys: Mapping[str, str]) -> SparkColumn:
    """A join condition on pairs of columns; columns of unrelated meanings are refused."""
    condition = F.lit(True)
    for mine, theirs in keys.items():
        given = left.schema[mine].metadata.get("semantic_type")
        other = right.schema[theirs].metadata.get("semantic_type")
        if given and other and not (assignable(given, other) or assignable(other, given)):
            raise SemanticTypeError(
                f"{mine} holds {given} and {theirs} holds {other}: they never meet",
                "join columns of the same meaning",
            )
        condition = condition & (left[mine] == right[theirs])
    return condition


def rules_for(table: Table, properties: Mapping[str, str]) -> dict[str, str]:
    """All conditions a row of the table must meet, by name."""
    rules = {f"{column.name}_not_null": f"{quote_identifier(column.name)} IS NOT NULL" for column in _required(table)}
    for column in table.columns:
        semantic = BY_NAME.get(column.semantic_type or "")
        if semantic is not None and semantic.check is not None:
            name = quote_identifier(column.name)
            condition = semantic.check.format(c=name)
            rules[f"{column.name}_is_{semantic.name}"] = f"{name} IS NULL OR ({condition})"
    rules.update({rule.name: rule.expression for rule in table.constraints})
    rules.update(
        {
            f"delta.{key.removeprefix(DELTA_CONSTRAINT)}": condition
            for key, condition in properties.items()
            if key.startswith(DELTA_CONSTRAINT)
        }
    )
    return rules


def guard_rows(table: Table, rows: DataFrame, rules: Rules) -> DataFrame:
    """The same rows; reading one that breaks a rule fails. Rows are of the contract's columns."""
    if not rules:
        return rows
    first, *rest = table.columns
    checked = F.expr(f"IF({_all_hold(rules)}, {quote_identifier(first.name)}, raise_error({sql_text(BROKEN)}))")
    return rows.select(
        checked.alias(first.name, metadata=column_metadata(first)), *(F.col(quote_identifier(column.name)) for column in rest)
    )


def _all_hold(rules: Rules) -> str:
    return " AND ".join(f"coalesce({condition}, false)" for condition in rules.values()) or "true"


def find_violation(table: Table, rows: DataFrame, rules: Rules) -> ConstraintViolation | None:
    """The error for rows that break rules, with samples; none if there are no such rows."""
    broken = F.expr(
        "filter(array("
        + ", ".join(
            f"IF(coalesce({condition}, false), NULL, {sql_text(name)})" for name, condition in rules.items()
        )
        + "), r -> r IS NOT NULL)"
    )
    shown = [F.col(quote_identifier(column.name)) for column in table.columns if is_printable(column)]
    # One condition first, for which Spark generates code; which of its parts failed is asked of few rows.
    found = (
        rows.where(f"NOT ({_all_hold(rules)})")
        .limit(SAMPLE_ROWS)
        .select(broken.alias("__broken"), F.to_json(F.struct(*shown)).alias("__row"))
        .collect()
    )
    if not found:
        return None
    names = sorted({name for row in found for name in row["__broken"]})
    samples = tuple(f"{', '.join(row['__broken'])}: {row['__row']}" for row in found)
    return ConstraintViolation(table.name, {name: rules[name] for name in names}, samples)


def _required(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if not column.nullable)


def is_printable(column: Column) -> bool:
    """Columns worth showing in a sample row: no nested payload, no bytes."""
    return not column.array and column.type not in ("struct", "binary")
