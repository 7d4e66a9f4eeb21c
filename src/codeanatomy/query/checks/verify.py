"""Check every row of a lake's graph against the rules of the catalogue: kinds, and keys of all tables.

    result = verify("lake")
    result.rules["cpg_edges(src_node_id)"]     # 2 rows break the rule
    result.findings[0].place                   # "requests/api.py:12"

The lake is read at the table versions that its newest published run pins. The Delta log lists the Parquet
files and the values of partition columns; DuckDB reads the files, without a JVM and with a memory limit,
above which it spills to disk.

Measured with 3.5 million nodes and 5.4 million edges: 30 seconds of processor time, spread over the cores,
and 2.3 GB; a limit of 1 GB is enough, one of 700 MB is not.

Tests: `tests/unit/query/test_verify.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.catalog.tables.graph import TABLES as GRAPH_TABLES
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.read.duck import open_database, select_rows, sql_literal, sql_path_list
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.open_table import location, newest_version
from codeanatomy.errors import StorageFailure, TableMissing
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.checks.verify_rules import (
    CATALOGUE,
    CHECKED,
    ENTITIES,
    FINDING_COLUMNS,
    PREPARED,
    RULES,
    VIEWS,
)
from codeanatomy.query.engines.derived_columns import with_derived

# Tables that many rules read are copied if they have at most this many rows: planning reads of a file per
# kind again for each rule takes longer than reading a small graph.
MAX_COPIED_ROWS = 200_000
GRAPH = tuple(table.name for table in GRAPH_TABLES)
DATA_FILES = pa.schema(
    {
        "table_name": pa.string(),
        # Relative to the lake.
        "file": pa.string(),
        "place": pa.string(),
        "column_name": pa.string(),
        "value": pa.string(),
        "folder": pa.string(),
        "logged": pa.int64(),
        # Rows removed by its deletion vector.
        "removed": pa.int64(),
    }
)
PINS = pa.schema({"table_name": pa.string(), "rows": pa.int64()})
RECORDED = pa.schema({"table_name": pa.string(), "repo_id": pa.string(), "rows": pa.int64()})


class Finding(Struct, frozen=True):
    """A row that breaks a rule."""

    rule: str
    table: str
    repo_id: str | None
    kind: str | None
    entity_id: str | None
    # File of the repository; for a wrong data file, that file relative to the lake.
    path: str | None
    # Counted from 1.
    line: int | None
    message: str

    @property
    def place(self) -> str:
        """The location as `path:line`."""
        return (self.path or "") if self.line is None else f"{self.path}:{self.line}"


class Verification(Struct, frozen=True):
    """The result of checking a lake."""

    lake: str
    # Run id of the checked rows of each repository.
    runs: dict[str, str]
    # Repositories whose newest build ended before the graph stage; they were not checked.
    unbuilt: tuple[str, ...]
    # Number of rows that break each rule.
    rules: dict[str, int]
    # The first of them, by rule.
    findings: tuple[Finding, ...]
    # Number of checked rows, by table.
    rows: dict[str, int]
    # Tables with newer versions than the published ones that were checked.
    newer: tuple[str, ...]
    seconds: float

    @property
    def total(self) -> int:
        """Number of findings, listed or not."""
        return sum(self.rules.values())


class _CheckedLake(Struct, frozen=True):
    """The tables at their pinned versions, and the repositories that have a graph."""

    root: str
    lake: Snapshot
    repositories: dict[str, RunManifest]


def verify(root: str, repo_id: str | None = None, limit: int = 20, as_of: str | None = None) -> Verification:
    """Check the graph of each repository, or of one. Return at most `limit` findings per rule."""
    began = time.monotonic()
    lake = Snapshot.open(root, as_of)
    repositories, unbuilt = _with_graph(lake, repo_id)
    checked = [name for name in CHECKED if name in VIEWS.values() or lake.has(name)]
    with _database() as database:
        _create_views(database, _CheckedLake(root, lake, repositories))
        broken = {name: _check_rule(database, name, sql, limit) for name, sql in RULES.items()}
        rows = dict.fromkeys(checked, 0) | _checked_rows(database)
    return Verification(
        root,
        {name: row.run_id for name, row in repositories.items()},
        unbuilt,
        {name: count for name, (count, _) in broken.items()},
        tuple(finding for _, shown in broken.values() for finding in shown),
        rows,
        tuple(name for name in checked if newest_version(root, name) > lake.pin(name).version),
        round(time.monotonic() - began, 3),
    )


def _with_graph(lake: Snapshot, repo_id: str | None) -> tuple[dict[str, RunManifest], tuple[str, ...]]:
    """Split the repositories into those with a graph and the names of those without."""
    wanted = lake.select_repositories(repo_id)
    built = {name: row for name, row in wanted.items() if "graph" in row.plan_fingerprints}
    unbuilt = tuple(name for name in wanted if name not in built)
    if not built:
        raise TableMissing(
            f"there is no graph in {lake.root}: {', '.join(unbuilt)} was last built without it",
            "build again without --until",
        )
    return built, unbuilt


@contextmanager
def _database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB database with the tables of `CATALOGUE`."""
    with open_database() as database:
        # The catalogue's constraints are in Spark's dialect.
        database.execute("CREATE MACRO startswith(a, b) AS starts_with(a, b)")
        for name, rows in CATALOGUE.items():
            database.register(name, pa.Table.from_pylist(rows))
        yield database


def _create_views(database: duckdb.DuckDBPyConnection, subject: _CheckedLake) -> None:
    """Create the views and tables that the rules read."""
    root = subject.root
    names = dict.fromkeys((*subject.lake.pins, *VIEWS.values()))
    files = {name: subject.lake.files(name) for name in names}
    _create_counts(database, subject, files)
    views = {**VIEWS} | {name: name for name in CHECKED if name not in VIEWS.values()}
    for view, name in views.items():
        logged = files.get(name, ())
        rows = f"{select_rows(root, name, logged)} WHERE {_repository_condition(subject)}"
        few = view in VIEWS and sum(file.rows or 0 for file in logged) <= MAX_COPIED_ROWS
        database.execute(f"CREATE {'TABLE' if few else 'VIEW'} {view} AS {with_derived(name, rows)}")
    database.execute(f"CREATE VIEW entities AS {ENTITIES}")
    for name, sql in PREPARED.items():
        database.execute(f"CREATE TABLE {name} AS {sql}")


def _create_counts(
    database: duckdb.DuckDBPyConnection, subject: _CheckedLake, files: Mapping[str, Sequence[LoggedFile]]
) -> None:
    """Create tables of row counts by data file, table and repository: actual, logged, and in the manifest."""
    missing = [each for name, logged in files.items() for each in _missing_files(subject.root, name, logged)]
    if missing:
        more = f" and {len(missing) - 1:,} other data files" if len(missing) > 1 else ""
        raise StorageFailure(
            f"data file {missing[0]}{more} is missing", "build the repository again, or check a newer run"
        )
    listed = [row for name, logged in files.items() for row in _data_file_rows(subject.root, name, logged)]
    database.register("listed", pa.Table.from_pylist(listed, DATA_FILES))
    places = sql_path_list(row["place"] for row in listed)
    # A lake of repositories without files has none.
    stored = f"parquet_file_metadata({places})" if listed else "(SELECT '' AS file_name, 0 AS num_rows)"
    database.execute(
        "CREATE TABLE data_files AS SELECT l.*, m.num_rows AS rows FROM listed l"
        f" LEFT JOIN {stored} m ON m.file_name = l.place"
    )
    counts = " UNION ALL ".join(_count_sql(subject, name, logged) for name, logged in files.items())
    database.execute(f"CREATE TABLE counted AS {counts}")
    pins = [{"table_name": name, "rows": pin.rows} for name, pin in subject.lake.pins.items()]
    database.register("pins", pa.Table.from_pylist(pins, PINS))
    recorded = [
        {"table_name": name, "repo_id": repo_id, "rows": rows}
        for repo_id, row in subject.repositories.items()
        # A graph table without a recorded count must be empty.
        for name, rows in {**dict.fromkeys(GRAPH, 0), **row.row_counts}.items()
    ]
    database.register("recorded", pa.Table.from_pylist(recorded, RECORDED))


def _missing_files(root: str, name: str, files: Sequence[LoggedFile]) -> list[str]:
    """Return the data files of a table that do not exist, relative to the lake."""
    present = {file.name for file in folder_of(location(root, name)).list_tree()} if files else set()
    return [f"{catalog.table(name).path}/{file.path}" for file in files if file.path not in present]


def _data_file_rows(root: str, name: str, files: Sequence[LoggedFile]) -> Iterator[dict[str, Any]]:
    places = folder_of(location(root, name)).local_paths([file.path for file in files])
    for file, place in zip(files, places, strict=True):
        column = next(iter(file.partition), None)
        yield {
            "table_name": name,
            "file": f"{catalog.table(name).path}/{file.path}",
            "place": place,
            "column_name": column,
            "value": column and file.partition[column],
            "folder": column and Path(file.path).parts[0],
            "logged": file.rows,
            "removed": file.deleted_rows,
        }


def _count_sql(subject: _CheckedLake, name: str, files: Sequence[LoggedFile]) -> str:
    """Return SQL for the row count of each repository.

    Of a table that runs append to, only rows of the run that read the repository's files count.
    """
    pairs = (
        f"({sql_literal(repo_id)}, {sql_literal(row.extract_run_id)})"
        for repo_id, row in subject.repositories.items()
    )
    of_runs = (
        f" AND (repo_id, run_id) IN ({', '.join(pairs)})"
        if "run_id" in catalog.table(name).column_names
        else ""
    )
    return (
        f"SELECT {sql_literal(name)} AS table_name, repo_id, count(*) AS rows"
        f" FROM ({select_rows(subject.root, name, files)})"
        f" WHERE {_repository_condition(subject)}{of_runs} GROUP BY repo_id"
    )


def _check_rule(
    database: duckdb.DuckDBPyConnection, rule: str, sql: str, limit: int
) -> tuple[int, list[Finding]]:
    """Count the rows that break a rule, and return the first of them."""
    columns = ", ".join(f"{name}::{kind} AS {name}" for name, kind in FINDING_COLUMNS.items())
    database.execute(
        f"CREATE OR REPLACE TABLE broken AS SELECT {columns} FROM ({sql}) AS b ({', '.join(FINDING_COLUMNS)})"
    )
    count = _scalar(database, "SELECT count(*) FROM broken")
    if not count:
        return count, []
    rows = database.execute(FIRST_FINDINGS, {"limit": limit}).fetchall()
    return count, [Finding(rule, *row) for row in rows]


# A finding without a location gets that of its node or edge. The file is found by its id, else by its path.
# The line is computed from the line index, since that of the row may be wrong.
FIRST_FINDINGS = """
WITH first AS (SELECT * FROM broken ORDER BY path, bstart, entity_id, message LIMIT $limit),
meant AS (
  SELECT repo_id, entity_id, any_value(path) AS path, any_value(bstart) AS bstart
  FROM entities WHERE entity_id IN (SELECT entity_id FROM first WHERE path IS NULL) GROUP BY ALL
),
placed AS (
  SELECT b.table_name, b.repo_id, b.kind, b.entity_id, b.message, coalesce(b.bstart, m.bstart) AS bstart,
    coalesce(known.path, b.path, m.path) AS path, coalesce(known.file_id, named.file_id) AS file_id
  FROM first b
  LEFT JOIN meant m ON m.entity_id = b.entity_id AND m.repo_id = b.repo_id
  LEFT JOIN files known ON known.file_id = b.file_id AND known.repo_id = b.repo_id
  LEFT JOIN files named ON named.path = coalesce(b.path, m.path) AND named.repo_id = b.repo_id
)
SELECT table_name, repo_id, kind, entity_id, path, CASE WHEN bstart IS NOT NULL THEN (
    SELECT coalesce(max(line_no), 0) + 1 FROM lines
    WHERE lines.file_id = placed.file_id AND line_start_byte <= bstart
  ) END,
  coalesce(message, 'a value is null')
FROM placed ORDER BY path, bstart, entity_id, message
"""


def _checked_rows(database: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the row counts of the tables that the rules read."""
    counts = database.execute(
        "SELECT table_name, sum(rows)::BIGINT FROM counted GROUP BY table_name"
    ).fetchall()
    return {name: rows for name, rows in counts if name in CHECKED}


def _scalar(database: duckdb.DuckDBPyConnection, sql: str) -> int:
    row = database.execute(sql).fetchone()
    return 0 if row is None else int(row[0])


def _repository_condition(subject: _CheckedLake) -> str:
    return f"repo_id IN ({', '.join(map(sql_literal, subject.repositories))})"
