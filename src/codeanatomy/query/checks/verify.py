"""Whether the graph of a lake is what the catalogue of kinds says: every rule, over every row.

    answer = verify("lake")
    answer.rules["src_exists"]     # 2: so many rows break the rule
    answer.findings[0].place       # "requests/api.py:12"

The lake is looked at as readers see it: at the table versions that its newest published run pins. The log
says which Parquet files those are and what the partition columns hold; DuckDB reads them, without a JVM and
with a bound on memory, beyond which it uses the disk.

Measured with 3.5 million nodes and 5.4 million edges: 30 seconds of processor time, spread over the cores,
and 2.3 GB; a bound of 1 GB is enough for it, one of 700 MB is not.

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
from codeanatomy.delta.read.duck import local_path, open_database, select_rows, sql_literal, sql_path_list
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import location, newest_version
from codeanatomy.errors import StorageFailure, TableMissing
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.checks.verify_rules import CATALOGUE, ENTITIES, PLACE, PREPARED, RULES, VIEWS

# Tables of up to so many rows are copied into the database: to plan reads of a file per kind, for each rule
# anew, takes longer than to read a small graph.
SMALL = 100_000
GRAPH = tuple(table.name for table in GRAPH_TABLES)
DATA_FILES = pa.schema(
    {
        "table_name": pa.string(),
        # Below the lake.
        "file": pa.string(),
        "place": pa.string(),
        "column_name": pa.string(),
        "value": pa.string(),
        "folder": pa.string(),
        "logged": pa.int64(),
        # By its deletion vector.
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
    # File of the repository; where a data file is wrong, that file below the lake.
    path: str | None
    # Counted from 1.
    line: int | None
    message: str

    @property
    def place(self) -> str:
        """As an editor opens it."""
        return (self.path or "") if self.line is None else f"{self.path}:{self.line}"


class Verification(Struct, frozen=True):
    """What was checked, and what is wrong."""

    lake: str
    # The run each repository was checked at.
    runs: dict[str, str]
    # Repositories whose newest build ended before the graph stage: nothing of theirs was checked.
    unbuilt: tuple[str, ...]
    # Rows that break each rule.
    rules: dict[str, int]
    # Some of them, by rule.
    findings: tuple[Finding, ...]
    # Rows that were checked, by table.
    rows: dict[str, int]
    # Tables that have versions after those that were published and checked.
    newer: tuple[str, ...]
    seconds: float

    @property
    def total(self) -> int:
        """How many findings there are, shown or not."""
        return sum(self.rules.values())


class _Subject(Struct, frozen=True):
    """What is checked: tables at their versions, and the repositories that have a graph."""

    # A path.
    root: str
    lake: Snapshot
    repositories: dict[str, RunManifest]


def verify(root: str, repo_id: str | None = None, limit: int = 20, as_of: str | None = None) -> Verification:
    """Check the graph of each repository, or of one; of each rule at most so many findings are told."""
    began = time.monotonic()
    path = local_path(root)
    lake = Snapshot.open(root, as_of)
    repositories, unbuilt = _with_graph(lake, repo_id)
    with _database() as database:
        _open(database, _Subject(path, lake, repositories))
        broken = {name: _broken(database, name, sql, limit) for name, sql in RULES.items()}
        rows = dict.fromkeys(VIEWS.values(), 0) | _rows(database)
    return Verification(
        root,
        {name: row.run_id for name, row in repositories.items()},
        unbuilt,
        {name: count for name, (count, _) in broken.items()},
        tuple(finding for _, shown in broken.values() for finding in shown),
        rows,
        tuple(name for name in VIEWS.values() if newest_version(root, name) > lake.pin(name).version),
        round(time.monotonic() - began, 3),
    )


def _with_graph(lake: Snapshot, repo_id: str | None) -> tuple[dict[str, RunManifest], tuple[str, ...]]:
    """The repositories whose newest build made a graph, and those whose did not."""
    wanted = lake.select_repositories(repo_id)
    found = {name: row for name, row in wanted.items() if "graph" in row.plan_fingerprints}
    unbuilt = tuple(name for name in wanted if name not in found)
    if not found:
        raise TableMissing(
            f"there is no graph in {lake.root}: {', '.join(unbuilt)} was last built without it",
            "build it again, without --until",
        )
    return found, unbuilt


@contextmanager
def _database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that knows the catalogue."""
    with open_database() as found:
        # The catalogue's constraints are in Spark's dialect.
        found.execute("CREATE MACRO startswith(a, b) AS starts_with(a, b)")
        for name, rows in CATALOGUE.items():
            found.register(name, pa.Table.from_pylist(rows))
        yield found


def _open(database: duckdb.DuckDBPyConnection, subject: _Subject) -> None:
    """Make what the rules look at, of the tables as they are published."""
    root = subject.root
    names = dict.fromkeys((*subject.lake.pins, *VIEWS.values()))
    files = {name: subject.lake.files(name) for name in names}
    _open_counts(database, subject, files)
    for view, name in VIEWS.items():
        rows = select_rows(root, name, files[name])
        form = "TABLE" if sum(file.rows or 0 for file in files[name]) <= SMALL else "VIEW"
        database.execute(f"CREATE {form} {view} AS {rows} WHERE {_of_repositories(subject)}")
    database.execute(f"CREATE VIEW entities AS {ENTITIES}")
    for name, sql in PREPARED.items():
        database.execute(f"CREATE TABLE {name} AS {sql}")


def _open_counts(
    database: duckdb.DuckDBPyConnection, subject: _Subject, files: Mapping[str, Sequence[LoggedFile]]
) -> None:
    """Rows by data file, table and repository: as they are, as the log and as the manifest has them."""
    listed = [_listed(subject.root, name, file) for name, found in files.items() for file in found]
    gone = [row["file"] for row in listed if not Path(row["place"]).is_file()]
    if gone:
        more = f" and {len(gone) - 1:,} other data files" if len(gone) > 1 else ""
        raise StorageFailure(f"{gone[0]}{more} is gone", "build the repository again, or check a newer run")
    database.register("listed", pa.Table.from_pylist(listed, DATA_FILES))
    places = sql_path_list(row["place"] for row in listed)
    database.execute(
        "CREATE TABLE data_files AS SELECT l.*, m.num_rows AS rows FROM listed l"
        f" LEFT JOIN parquet_file_metadata({places}) m ON m.file_name = l.place"
    )
    counts = " UNION ALL ".join(_counted(subject, name, found) for name, found in files.items() if found)
    database.execute(f"CREATE TABLE counted AS {counts}")
    pins = [{"table_name": name, "rows": pin.rows} for name, pin in subject.lake.pins.items()]
    database.register("pins", pa.Table.from_pylist(pins, PINS))
    recorded = [
        {"table_name": name, "repo_id": repo_id, "rows": rows}
        for repo_id, row in subject.repositories.items()
        # A table of the graph of which nothing was recorded should have no rows.
        for name, rows in {**dict.fromkeys(GRAPH, 0), **row.row_counts}.items()
    ]
    database.register("recorded", pa.Table.from_pylist(recorded, RECORDED))


def _listed(root: str, name: str, file: LoggedFile) -> dict[str, Any]:
    column = next(iter(file.partition), None)
    return {
        "table_name": name,
        "file": f"{catalog.table(name).path}/{file.path}",
        "place": f"{location(root, name)}/{file.path}",
        "column_name": column,
        "value": column and file.partition[column],
        "folder": column and Path(file.path).parts[0],
        "logged": file.rows,
        "removed": file.vector.cardinality if file.vector else 0,
    }


def _counted(subject: _Subject, name: str, files: Sequence[LoggedFile]) -> str:
    """Rows of each repository; of a table to which runs add, those of the run that read its files."""
    pairs = (
        f"({sql_literal(repo_id)}, {sql_literal(row.extract_run_id)})"
        for repo_id, row in subject.repositories.items()
    )
    added = (
        f" AND (repo_id, run_id) IN ({', '.join(pairs)})"
        if "run_id" in catalog.table(name).column_names
        else ""
    )
    return (
        f"SELECT {sql_literal(name)} AS table_name, repo_id, count(*) AS rows"
        f" FROM ({select_rows(subject.root, name, files)})"
        f" WHERE {_of_repositories(subject)}{added} GROUP BY repo_id"
    )


def _broken(
    database: duckdb.DuckDBPyConnection, rule: str, sql: str, limit: int
) -> tuple[int, list[Finding]]:
    """How many rows break a rule, and the first of them."""
    columns = ", ".join(f"{name}::{kind} AS {name}" for name, kind in PLACE.items())
    database.execute(
        f"CREATE OR REPLACE TABLE broken AS SELECT {columns} FROM ({sql}) AS b ({', '.join(PLACE)})"
    )
    count = _one(database, "SELECT count(*) FROM broken")
    if not count:
        return count, []
    rows = database.execute(FIRST, {"limit": limit}).fetchall()
    return count, [Finding(rule, *row) for row in rows]


# The first findings. A row without a place has that of its node or edge. Which file it is says its id, or the
# path where that says nothing; the line says the index, not the row, which may be wrong.
FIRST = """
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


def _rows(database: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Rows of the tables that the rules look at."""
    found = database.execute(
        "SELECT table_name, sum(rows)::BIGINT FROM counted GROUP BY table_name"
    ).fetchall()
    return {name: rows for name, rows in found if name in VIEWS.values()}


def _one(database: duckdb.DuckDBPyConnection, sql: str) -> int:
    row = database.execute(sql).fetchone()
    return 0 if row is None else int(row[0])


def _of_repositories(subject: _Subject) -> str:
    return f"repo_id IN ({', '.join(map(sql_literal, subject.repositories))})"
