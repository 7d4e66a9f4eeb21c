"""Read the published tables in the caller's own Spark session.

    reader = SparkReader(Snapshot.open("lake"), spark)
    reader.frame(Query("SELECT * FROM n", {"n": Slice("cpg_nodes", node_kind=("CLASS",))}))    # not run yet
    reader.rows(query)                                                                      # collected

The session only has to support Delta; it may be one of Spark Connect (`query.engines.public_store`). Nothing
is set or stopped in it, and only the public API of Spark SQL is called here. The session gets temporary
views: one for each table that was used, and one for each slice of a table whose other files need not be
opened (`delta.read.scan`). Their names begin with `codeanatomy_` and a number that no other reader has. A
DataFrame may be analysed again whenever it is run, so they stay until `close`.

Engines differ where SQL leaves it to them: Spark puts nulls first and DuckDB last, so the order is explicit.
With Delta's parser in the session, Spark 4.2 binds no argument to a `?` (delta-io/delta, issue 7640); and it
replaces `${...}` in a statement by settings and variables of the environment, even inside of a literal. So a
text of other than plain characters, and whatever a user typed, becomes the hexadecimal digits of its bytes:
these have only one meaning. Tests: `tests/spark/test_spark_lake.py`, `tests/spark/test_connect.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pyarrow as pa
from msgspec import structs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow

from codeanatomy import catalog
from codeanatomy.arrow import arrow_field
from codeanatomy.catalog.spec import Column
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.log.versions import TableVersion
from codeanatomy.delta.read.open_table import open_table
from codeanatomy.delta.read.predicate import SPARK, Predicate, spark_bytes
from codeanatomy.delta.read.scan import can_read_parquet, read_parquet_files, scan
from codeanatomy.errors import StorageFailure
from codeanatomy.lake.snapshot import RECORDS, Snapshot
from codeanatomy.query.answers import COLUMNS
from codeanatomy.query.engines.public_store import open_store
from codeanatomy.query.engines.statements import InlineRows, Query, Relation, Row
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of

# More rows in memory, or values of a column, are passed as a temporary view: parsing them is slow.
FEW = 100
# Length of the hash of a condition.
DIGITS = 32


class SparkReader:
    """Reads one snapshot with the caller's session."""

    def __init__(self, snapshot: Snapshot, spark: SparkSession) -> None:
        self.snapshot = snapshot
        self.spark = spark
        self.store = open_store(snapshot, spark)
        self._prefix = f"codeanatomy_{uuid4().hex[:12]}"
        # Number of relations in memory that were passed as temporary views.
        self._held = 0
        self._tables: dict[str, DataFrame] = {}
        # None if only Spark can read the log.
        self._opened: dict[str, TableVersion] = {}
        self._views: list[str] = []

    def table(self, name: str) -> DataFrame:
        """The published rows of a table."""
        if name not in self._tables:
            table = catalog.table(name)
            self._tables[name] = (
                read_parquet_files(self.spark, "", spark_schema(table), ())
                if name in RECORDS and not self.snapshot.has(name)
                else self._scanned(name)
            )
        return self._tables[name]

    def _scanned(self, name: str, predicate: Predicate | None = None) -> DataFrame:
        rows = scan(self.store, name, self.snapshot.pin(name).version, where=predicate).rows
        derived = catalog.table(name).derived
        return rows.selectExpr("*", *(each.sql for each in derived)) if derived else rows

    def _spares_files(self, predicate: Predicate) -> bool:
        """Return whether pruning leaves fewer files, and these can be read as plain Parquet.

        Other files cannot be read with the public API alone.
        """
        name = predicate.table
        if not predicate.columns or not self.snapshot.has(name):
            return False
        if name not in self._opened:
            self._opened[name] = open_table(self.store, name, self.snapshot.pin(name).version)
        opened = self._opened[name]
        kept = opened.index.candidates(predicate)
        return len(kept) < opened.index.total and can_read_parquet(opened.info, kept)

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        """Return the few rows of a query; with a limit, each row ends with the number of rows without it."""
        inline = query.inline_rows(limit)
        if inline is not None:
            return inline
        with self._reading():
            return [tuple(map(plain_value, row)) for row in self._run(query, limit).collect()]

    def frame(self, query: Query, columns: Sequence[Column] = ()) -> DataFrame:
        """Return a query as a DataFrame with the types of `columns`, else of the columns of answers."""
        declared = columns or [COLUMNS[name] for name in query.columns if name in COLUMNS]
        with self._reading():
            frame = self._run(query)
            types = {column.name: column.ddl for column in declared}
            return frame.select(
                *(
                    frame[name]
                    if types.get(name, kind) == kind
                    else frame[name].cast(types[name]).alias(name)
                    for name, kind in frame.dtypes
                )
            )

    def relation(self, relation: Relation) -> str:
        """Return a slice, or rows in memory, as a statement of Spark."""
        if isinstance(relation, InlineRows):
            if len(relation.rows) > FEW:
                return f"SELECT * FROM {self._temporary_view(relation)}"
            return values_sql(relation)
        table = catalog.table(relation.table)
        many = {name: values for name, values in relation.wanted.items() if len(values) > FEW}
        few = (relation.among(name) for name in relation.wanted if name not in many)
        predicate = Predicate.all_of(table, *few, *relation.ranges)
        columns = {column.name: column for column in table.readable_columns}
        conditions = [self._among(columns[name], values) for name, values in many.items()]
        if self._spares_files(predicate):
            view = self.named(_view_name(predicate), lambda: self._scanned(table.name, predicate))
        else:
            view = self.named(table.name, lambda: self.table(table.name))
            conditions += [predicate.sql(SPARK)] if predicate.columns else []
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(columns)} FROM {view}{where}"

    def named(self, name: str, make: Callable[[], DataFrame]) -> str:
        """Return the temporary view of some rows, which are made on first use."""
        view = f"{self._prefix}_{name}"
        if view not in self._views:
            make().createTempView(view)
            self._views.append(view)
        return view

    def close(self) -> None:
        """Drop the temporary views; DataFrames made from them cannot be run any more."""
        with self._reading():
            while self._views:
                self.spark.catalog.dropTempView(self._views.pop())

    def _run(self, query: Query, limit: int | None = None) -> DataFrame:
        order = tuple(map(nulls_last, query.order))
        stated = structs.replace(query, sql=bound(query.sql, query.args), order=order)
        return self.spark.sql(stated.text(self.relation, limit))

    def _among(self, column: Column, values: Sequence[str]) -> str:
        """Return the condition that a column has one of many values."""
        inline = InlineRows((column,), [(value,) for value in dict.fromkeys(values)])
        return f"{column.name} IN (SELECT {column.name} FROM {self._temporary_view(inline)})"

    def _temporary_view(self, inline: InlineRows) -> str:
        """Return a temporary view of many rows in memory."""
        fields = [arrow_field(column) for column in inline.columns]
        cells = zip(*inline.rows, strict=True)
        arrays = [pa.array(values, field.type) for field, values in zip(fields, cells, strict=True)]
        rows = self.spark.createDataFrame(pa.table(arrays, pa.schema(fields)))
        self._held += 1
        return self.named(f"held_{self._held}", lambda: rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise errors of Spark as StorageFailure."""
        try:
            yield
        except ENGINE_ERRORS as problem:
            raise StorageFailure(
                f"the lake cannot be read: {cause_of(problem)}",
                "build the lake again, or look into Spark's log",
            ) from problem


def values_sql(inline: InlineRows) -> str:
    """Return rows in memory as a statement, with the types of their columns.

    >>> values_sql(InlineRows((Column("name", "string", "."),), [("f",)]))
    "SELECT CAST(NULL AS string) AS name WHERE FALSE UNION ALL SELECT * FROM (VALUES ('f')) AS held (name)"
    """
    nothing = ", ".join(f"CAST(NULL AS {column.ddl}) AS {column.name}" for column in inline.columns)
    empty = f"SELECT {nothing} WHERE FALSE"
    if not inline.rows:
        return empty
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in inline.rows)
    names = ", ".join(column.name for column in inline.columns)
    return f"{empty} UNION ALL SELECT * FROM (VALUES {values}) AS held ({names})"


def literal(value: Any) -> str:
    """Return a value as a literal of Spark.

    >>> literal("shop.cart"), literal(None), literal(True), literal(0.5), literal(7)
    ("'shop.cart'", 'NULL', 'TRUE', '0.5D', '7')
    """
    return "NULL" if value is None else SPARK.literal(value)


def _view_name(predicate: Predicate) -> str:
    """Return the name of the view of a condition, the same for the same condition."""
    digest = hashlib.sha256(predicate.sql(SPARK).encode()).hexdigest()[:DIGITS]
    return f"{predicate.table}_{digest}"


def bound(sql: str, args: Sequence[Any]) -> str:
    """Return a statement with its arguments in place of `?`; it has no other question marks.

    >>> bound("SELECT * FROM n WHERE name = ? AND line > ?", ("f", 3))
    "SELECT * FROM n WHERE name = CAST(X'66' AS STRING) AND line > 3"
    """
    first, *rest = sql.split("?")
    typed = (spark_bytes(each) if isinstance(each, str) else literal(each) for each in args)
    return first + "".join(f"{value}{after}" for value, after in zip(typed, rest, strict=True))


def nulls_last(term: str) -> str:
    """Return a term of ORDER BY with nulls last, as in DuckDB.

    >>> nulls_last("line"), nulls_last("depth DESC")
    ('line NULLS LAST', 'depth DESC NULLS LAST')
    """
    return term if " NULLS " in term.upper() else f"{term} NULLS LAST"


def plain_value(value: Any) -> Any:
    """Return a value as DuckDB returns it: structs are dictionaries."""
    if isinstance(value, SparkRow):
        return value.asDict(recursive=True)
    return [plain_value(each) for each in value] if isinstance(value, list) else value
