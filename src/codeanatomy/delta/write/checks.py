"""Check rows before Spark commits them: semantic types, NOT NULL and constraints.

Semantic types are checked when the plan is built: a column of EdgeIds cannot be written where NodeIds are
declared. Values are checked while they are written, in the same pass: the first column of the projection
raises an error on the first row that violates a rule, so nothing reaches the log. Only after such a failure
are the rows read a second time, for samples:

    rows for cpg_nodes break span_ordered: bend >= bstart
        span_ordered: {"node_id":"node:...","bstart":9,"bend":4}

Rules come from three places: the catalogue's columns (NOT NULL, semantic types), its constraints, and CHECK
constraints on the Delta table itself. A condition that is null counts as violated, as in Delta. Values in
lists and structs have semantic types, too; a null among them passes:

    rows for ast_files_v1 break nodes.line_is_LineNo1: coalesce(forall(`nodes`, item1 -> ...
        nodes.line_is_LineNo1: {"repo_id":"shop","path":"cart.py"}

`delta.write.row_checks` checks the same rules on Arrow batches. Tests: `tests/spark/test_constraints.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from codeanatomy.catalog.semantic_types import BY_NAME, assignable
from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.contract import column_metadata, quote_identifier
from codeanatomy.errors import ConstraintViolation, SemanticTypeError
from codeanatomy.spark.jvm import spark_literal

BROKEN = "CONSTRAINT_BROKEN"
SAMPLE_ROWS = 5
DELTA_CONSTRAINT = "delta.constraints."

Rules = Mapping[str, str]


class NestedField(Struct, frozen=True):
    """A field of a list or struct whose semantic type has a check."""

    # Column, and fields in it.
    path: tuple[str, ...]
    semantic_type: str

    @property
    def rule(self) -> str:
        """The name of the rule, such as `nodes.bstart_is_BytePos`."""
        return f"{'.'.join(self.path)}_is_{self.semantic_type}"


def check_semantic_types(table: Table, schema: T.StructType) -> None:
    """Raise SemanticTypeError if a column is annotated with another semantic type than the contract's."""
    wrong = []
    for field in schema.fields:
        given = field.metadata.get("semantic_type")
        declared = table.column(field.name).semantic_type if field.name in table.column_names else None
        if given and declared and not assignable(given, declared):
            wrong.append(f"{field.name} holds {given}, not {declared}")
    if wrong:
        raise SemanticTypeError(
            f"{table.name}: {'; '.join(wrong)}",
            "write the right column, or convert it with with_semantic_type(column, semantic_type)",
        )


def with_semantic_type(column: str, semantic_type: str) -> SparkColumn:
    """Annotate a column with another semantic type: the explicit conversion between semantic types."""
    return F.col(column).alias(column, metadata={"semantic_type": semantic_type})


def rules_for(table: Table, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions that every row of the table must satisfy, by name."""
    rules = {
        f"{column.name}_not_null": f"{quote_identifier(column.name)} IS NOT NULL"
        for column in _required(table)
    }
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


def nested_fields(table: Table) -> tuple[NestedField, ...]:
    """Return the fields in lists and structs that are checked."""
    return tuple(
        field for column in table.columns for each in column.fields for field in _nested(each, (column.name,))
    )


def _nested(column: Column, parents: tuple[str, ...]) -> Iterator[NestedField]:
    path = (*parents, column.name)
    semantic = BY_NAME.get(column.semantic_type or "")
    if semantic is not None and semantic.check is not None:
        yield NestedField(path, semantic.name)
    for each in column.fields:
        yield from _nested(each, path)


def nested_rules(table: Table) -> dict[str, str]:
    """Return the conditions on values in lists and structs, by name; only Spark has their functions."""
    return {
        field.rule: _nested_condition(table.column(name), quote_identifier(name), [field])
        for field in nested_fields(table)
        for name in field.path[:1]
    }


def _nested_condition(column: Column, value: str, fields: Sequence[NestedField], depth: int = 1) -> str:
    """Return the condition that the values of fields in a list or struct are null or satisfy their checks."""
    item = f"item{depth}" if column.array else value
    parts = [
        f"({item} IS NULL OR coalesce({str(BY_NAME[field.semantic_type].check).format(c=item)}, false))"
        for field in fields
        if len(field.path) == depth
    ]
    for each in column.fields:
        below = [field for field in fields if field.path[depth : depth + 1] == (each.name,)]
        if below:
            parts.append(_nested_condition(each, f"{item}.{quote_identifier(each.name)}", below, depth + 1))
    held = " AND ".join(parts)
    return f"coalesce(forall({value}, {item} -> {held}), true)" if column.array else held


def guard_rows(table: Table, rows: DataFrame, rules: Rules) -> DataFrame:
    """Return the same rows, in the contract's columns, such that reading one that violates a rule fails."""
    if not rules and not nested_fields(table):
        return rows
    first, *rest = table.columns
    checked = F.expr(
        f"IF({_all_hold(table, rules)}, {quote_identifier(first.name)}, raise_error({spark_literal(BROKEN)}))"
    )
    return rows.select(
        checked.alias(first.name, metadata=column_metadata(first)),
        *(F.col(quote_identifier(column.name)) for column in rest),
    )


def _all_hold(table: Table, rules: Rules) -> str:
    """Return the condition that no rule is violated; it goes through each list once."""
    conditions = [f"coalesce({condition}, false)" for condition in rules.values()]
    nested = nested_fields(table)
    for column in table.columns:
        fields = [field for field in nested if field.path[0] == column.name]
        if fields:
            conditions.append(_nested_condition(column, quote_identifier(column.name), fields))
    return " AND ".join(conditions) or "true"


def find_violation(table: Table, rows: DataFrame, rules: Rules) -> ConstraintViolation | None:
    """Return the error for rows that violate rules, with samples; None if there are no such rows."""
    conditions = {**rules, **nested_rules(table)}
    broken = F.expr(
        "filter(array("
        + ", ".join(
            f"IF(coalesce({condition}, false), NULL, {spark_literal(name)})"
            for name, condition in conditions.items()
        )
        + "), r -> r IS NOT NULL)"
    )
    printed = [F.col(quote_identifier(column.name)) for column in table.columns if is_printable(column)]
    # One combined condition first, for which Spark generates code; the single rules only for a few rows.
    violating = (
        rows.where(f"NOT ({_all_hold(table, rules)})")
        .limit(SAMPLE_ROWS)
        .select(broken.alias("__broken"), F.to_json(F.struct(*printed)).alias("__row"))
        .collect()
    )
    if not violating:
        return None
    names = sorted({name for row in violating for name in row["__broken"]})
    samples = tuple(f"{', '.join(row['__broken'])}: {row['__row']}" for row in violating)
    return ConstraintViolation(table.name, {name: conditions[name] for name in names}, samples)


def _required(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if not column.nullable)


def is_printable(column: Column) -> bool:
    """Return whether a column is shown in sample rows: neither nested nor binary."""
    return not column.array and column.type not in ("struct", "binary")
