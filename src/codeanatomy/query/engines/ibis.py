"""Provide the views as Ibis tables, on DuckDB or on the caller's Spark.

    views = Lake.open("lake").ibis()                     # DuckDB; Lake.open("lake", spark=...).ibis(): Spark
    calls = views.calls                                  # or views.tables["calls"]
    views.execute(calls.filter(calls.callee == "shop.money.total").select("caller", "path", "line"))
    views.artifacts[-1].sql                              # what was run, of which state of the lake
    views.save_artifacts("questions.jsonl")              # one line of JSON each, wherever the user wants them

The views are those of one snapshot. Readers write nothing to a lake, so the record of what was run is kept
here until it is saved. Only what goes through `execute` is recorded: an
expression that is run by its own `execute()` is not.

Ibis sets a time zone and more in any Spark session that it is given. So it gets a session of its own beside
the caller's, in the same Spark; the views of one are not seen in the other. Ibis 12 declares PySpark below
4.1; with 4.2 what is used here works. Tests: `tests/spark/test_ibis.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct, json

from codeanatomy.catalog.views import VIEWS, View, view
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.query.engines.views import view_query

if TYPE_CHECKING:
    from codeanatomy.query.engines.spark_lake import SparkLake
    from codeanatomy.query.lake import Lake

Engine = Literal["duckdb", "pyspark"]
# Of Ibis, which ships no types.
Backend: TypeAlias = Any
Expression: TypeAlias = Any
Table: TypeAlias = Any
NAMES = tuple(each.name for each in VIEWS)


class Artifact(Struct, frozen=True):
    """An expression that was run."""

    lane: Engine
    # The statement that Ibis made of it, over the views.
    sql: str
    # Digest of the statement.
    sha256: str
    # The published run that was read.
    run_id: str
    # Views in the statement.
    views: tuple[str, ...]


class IbisTables(Mapping[str, Table]):
    """The views as tables of an Ibis backend, by name; each is made on first use."""

    def __init__(self, backend: Backend, make: Callable[[View], object]) -> None:
        self._backend = backend
        self._make = make
        self._made: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._made:
            self._make(view(name))
            self._made[name] = self._backend.table(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


class IbisViews:
    """The views of one snapshot in an Ibis backend: `tables`, of which each is an attribute too."""

    def __init__(self, engine: Engine, backend: Backend, run_id: str, make: Callable[[View], object]) -> None:
        self.engine = engine
        self.backend = backend
        self.run_id = run_id
        self.tables = IbisTables(backend, make)
        self.artifacts: list[Artifact] = []

    def __getattr__(self, name: str) -> Table:
        if name not in NAMES:
            raise AttributeError(f"there is no view {name}; there are {', '.join(NAMES)}")
        return self.tables[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *NAMES})

    def compile(self, expression: Expression) -> str:
        """The statement that an expression becomes."""
        return str(self.backend.compile(expression.as_table()))

    def execute(self, expression: Expression) -> Any:
        """Run an expression, and record what was run; a table becomes a pandas DataFrame."""
        sql = self.compile(expression)
        result = self.backend.execute(expression)
        self.artifacts.append(
            Artifact(
                self.engine, sql, sha256(sql.encode()).hexdigest(), self.run_id, self._views_of(expression)
            )
        )
        return result

    def save_artifacts(self, path: str | Path) -> None:
        """Write the record as lines of JSON."""
        Path(path).write_bytes(b"".join(json.encode(each) + b"\n" for each in self.artifacts))

    def _views_of(self, expression: Expression) -> tuple[str, ...]:
        tables = expression.op().find(_ibis().expr.operations.DatabaseTable)
        return tuple(sorted({table.name for table in tables}.intersection(NAMES)))


def duckdb_views(lake: Lake) -> IbisViews:
    """The views on a DuckDB connection of their own."""
    from codeanatomy.delta.read.duck import lookup_connection, translate_errors

    ibis = _ibis()
    connection = lookup_connection()

    def make(wanted: View) -> None:
        query = view_query(wanted, lake.snapshot)
        with translate_errors():
            connection.execute(f'CREATE TEMP VIEW "{wanted.name}" AS {query.text(lake.reader.relation)}')

    return IbisViews("duckdb", ibis.duckdb.from_connection(connection), lake.snapshot.run_id, make)


def spark_views(lake: SparkLake) -> IbisViews:
    """The views in a session beside the lake's."""
    from codeanatomy.query.engines.spark_lake import SparkLake

    ibis = _ibis()
    beside = SparkLake(lake.snapshot, lake.spark.newSession())

    def make(wanted: View) -> None:
        beside.view(wanted.name).createTempView(wanted.name)

    return IbisViews("pyspark", ibis.pyspark.connect(beside.spark), lake.snapshot.run_id, make)


def _ibis() -> Any:
    try:
        return import_module("ibis")
    except ModuleNotFoundError as problem:
        raise EnvironmentProblem(
            f"Ibis is not installed ({problem.name} is missing)", "pip install 'codeanatomy[ibis]'"
        ) from problem
