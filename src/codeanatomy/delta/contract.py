"""Project stored or incoming columns onto exactly the columns the catalogue declares.

The same projection serves reads and writes. Columns are matched by name at every depth (Spark's own cast
of a struct goes by position, which would silently swap reordered fields), so a table whose schema has
drifted still reads as declared:

    stored                         contract            expression
    size int                       size bigint         CAST(`size` AS bigint)
    (none)                         mtime_ns bigint     CAST(NULL AS bigint)
    marks array<struct<b,a>>       marks <a,b>         transform(`marks`, e1 -> struct(...))
    extra string                   (none)              dropped

A cast that can lose information is guarded: a value that does not fit raises an error that names the
column. A type without any cast is a ContractError when the plan is built.
Tests: `tests/spark/test_scan.py`, `tests/spark/test_drift.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import json
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.errors import ContractError
from codeanatomy.spark.jvm import spark_literal

# Prefix of our raise_error texts, which distinguishes a broken contract from a failure of the engine.
MISFIT = "CONTRACT_MISFIT"

SPARK_TYPES: dict[str, T.DataType] = {
    "string": T.StringType(),
    "int": T.IntegerType(),
    "bigint": T.LongType(),
    "double": T.DoubleType(),
    "boolean": T.BooleanType(),
    "binary": T.BinaryType(),
    "timestamp": T.TimestampType(),
    "map<string,string>": T.MapType(T.StringType(), T.StringType()),
    "map<string,bigint>": T.MapType(T.StringType(), T.LongType()),
}

# Casts that keep every value; all others are guarded.
WIDENING = {
    "int": {"tinyint", "smallint"},
    "bigint": {"tinyint", "smallint", "int"},
    "double": {"tinyint", "smallint", "int", "float"},
    "string": {"tinyint", "smallint", "int", "bigint", "boolean"},
    "map<string,bigint>": {"map<string,smallint>", "map<string,int>"},
}
# Casts that keep a value only if casting it back gives the same value.
NUMERIC = {"tinyint", "smallint", "int", "bigint", "float", "double"}


@dataclass(frozen=True)
class Projection:
    """The expressions that turn rows of some schema into rows of the contract."""

    # One SQL expression per column of the contract, in its order.
    expressions: tuple[str, ...]
    # Input columns that the contract does not declare.
    dropped: tuple[str, ...]


def spark_type(column: Column) -> T.DataType:
    """Return the column's Spark type."""
    single: T.DataType = (
        T.StructType([T.StructField(part.name, spark_type(part), part.nullable) for part in column.fields])
        if column.type == "struct"
        else SPARK_TYPES[column.type]
    )
    return T.ArrayType(single) if column.array else single


def spark_schema(table: Table) -> T.StructType:
    """Return the table's stored schema, with NOT NULL, comments and semantic types."""
    return T.StructType(
        [
            T.StructField(column.name, spark_type(column), column.nullable, column_metadata(column))
            for column in table.columns
        ]
    )


def stored_schema(info: SnapshotInfo) -> T.StructType:
    """Return the schema stored in a version of a table, which may differ from the contract."""
    return T.StructType.fromJson(json.decode(info.schema_json))


def column_metadata(column: Column) -> dict[str, str]:
    """Return the metadata of a column in the Delta schema: comment and semantic type."""
    semantic = {} if column.semantic_type is None else {"semantic_type": column.semantic_type}
    return {"comment": column.doc, **semantic}


def plan_projection(table: Table, schema: T.StructType) -> Projection:
    """Build the projection of rows of `schema` onto the table's contract."""
    given = _by_name(schema, table.name)
    known = {column.name.lower() for column in table.columns}
    expressions = tuple(
        _present_column(table, column, given[column.name.lower()])
        if column.name.lower() in given
        else _missing_column(table, column)
        for column in table.columns
    )
    return Projection(expressions, tuple(field.name for name, field in given.items() if name not in known))


def _by_name(schema: T.StructType, where: str) -> dict[str, T.StructField]:
    """Index fields by lower-case name: Spark and Delta ignore the case of names."""
    fields = {field.name.lower(): field for field in schema.fields}
    if len(fields) < len(schema.fields):
        names = [field.name for field in schema.fields]
        twice = sorted({name for name in names if [n.lower() for n in names].count(name.lower()) > 1})
        raise ContractError(
            f"duplicate columns for {where}: {', '.join(twice)}", "give every column a name of its own"
        )
    return fields


def project(table: Table, rows: DataFrame, projection: Projection, *extra: str) -> DataFrame:
    """Apply a projection; `extra` columns of `rows` are appended to the contract's."""
    columns = [
        F.expr(expression).alias(column.name, metadata=column_metadata(column))
        for column, expression in zip(table.columns, projection.expressions, strict=True)
    ]
    return rows.select(*columns, *(F.col(name) for name in extra))


def quote_identifier(name: str) -> str:
    """Quote a name as a SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def _present_column(table: Table, column: Column, given: T.StructField) -> str:
    value = _convert(column, given.dataType, quote_identifier(given.name), f"{table.name}.{column.name}", 1)
    if column.default is None or column.nullable:
        return value
    return f"coalesce({value}, {_missing_column(table, column)})"


def _missing_column(table: Table, column: Column) -> str:
    if column.default is None and not column.nullable:
        raise ContractError(
            f"{table.name}.{column.name} is missing, NOT NULL and has no default",
            "provide the column, or declare a default in the catalogue",
        )
    return f"CAST({_literal(column.default)} AS {column.ddl})"


def _literal(value: str | float | bool | None) -> str:
    if value is None:
        return "NULL"
    return spark_literal(value) if isinstance(value, str) else str(value)


def _convert(column: Column, given: T.DataType, source: str, name: str, depth: int) -> str:
    """Return the SQL expression that converts `source`, of type `given`, to the column's type."""
    if column.ddl == given.simpleString():
        return source
    if isinstance(given, T.NullType):
        return f"CAST(NULL AS {column.ddl})"
    if column.array:
        if not isinstance(given, T.ArrayType):
            raise _no_cast(name, given, column.ddl)
        item = Column(column.name, column.type, column.doc, fields=column.fields)
        each = _convert(item, given.elementType, f"e{depth}", f"{name}[]", depth + 1)
        return f"transform({source}, e{depth} -> {each})"
    if column.type == "struct":
        if not isinstance(given, T.StructType):
            raise _no_cast(name, given, column.ddl)
        return _convert_struct(column, given, source, name, depth)
    return _cast(column.ddl, given, source, name)


def _convert_struct(column: Column, given: T.StructType, source: str, name: str, depth: int) -> str:
    inner = _by_name(given, name)
    parts = []
    for part in column.fields:
        field = inner.get(part.name.lower())
        value = (
            _convert(
                part, field.dataType, f"{source}.{quote_identifier(field.name)}", f"{name}.{part.name}", depth
            )
            if field is not None
            else f"CAST({_literal(part.default)} AS {part.ddl})"
        )
        parts.append(f"{spark_literal(part.name)}, {value}")
    return f"IF({source} IS NULL, NULL, named_struct({', '.join(parts)}))"


def _cast(target: str, given: T.DataType, source: str, name: str) -> str:
    origin = given.simpleString()
    if origin in WIDENING.get(target, ()):
        return f"CAST({source} AS {target})"
    if not _castable(target, given):
        raise _no_cast(name, given, target)
    attempt = f"try_cast({source} AS {target})"
    fits = (
        f"try_cast({attempt} AS {origin}) <=> {source}"
        if target in NUMERIC and (origin in NUMERIC or origin.startswith("decimal"))
        else f"{attempt} IS NOT NULL OR {source} IS NULL"
    )
    prefix, suffix = spark_literal(f"{MISFIT} {name}: "), spark_literal(f" is not a valid {target}")
    error_text = f"concat({prefix}, CAST({source} AS string), {suffix})"
    return f"IF({fits}, {attempt}, raise_error({error_text}))"


def _castable(target: str, given: T.DataType) -> bool:
    """Return whether values of a type may be cast; booleans, times and bytes do not count as numbers."""
    origin = given.simpleString()
    nested = isinstance(given, (T.ArrayType, T.StructType, T.MapType, T.BinaryType))
    if nested or target == "binary" or target.startswith("map"):
        return False
    if (target == "timestamp") != (origin in ("timestamp", "timestamp_ntz", "date")):
        return False
    return (target == "boolean") == (origin == "boolean") or "string" in (target, origin)


def _no_cast(name: str, given: T.DataType, target: str) -> ContractError:
    return ContractError(
        f"{name} has type {given.simpleString()}, which cannot be cast to {target}",
        "fix the code that produces the column; for a stored table, build into a new lake",
    )
