"""`codeanatomy sql "..."`: one read-only statement over the views, answered by DuckDB.

    answer = run_sql(reader, "SELECT kind, count(*) FROM symbols GROUP BY kind", limit=100, seconds=30)
    answer.rows[0]      # {"kind": "CLASS", "count": 52}
    answer.total        # 6; None if there was no time to count them

`check` looks at the statement first. DuckDB is the second line, for what it might overlook: a database of its
own that reads files of this lake and no others, takes no settings and no extensions, and is given a
statement only if it takes it for a SELECT. Each view is made of the slices it reads, so a question about
classes opens the files of classes. `seconds` is for reading and counting together.

An answer may differ from Spark's where that stops: a division by zero and a CAST that fails are null here.
Tests: `tests/test_sql.py`.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
from msgspec import Struct

from codeanatomy.catalog.views import view
from codeanatomy.errors import StorageFailure
from codeanatomy.query.lanes.light import LightReader
from codeanatomy.query.lanes.reading import Row
from codeanatomy.query.lanes.views import view_query
from codeanatomy.query.sql.check import Checked, check
from codeanatomy.query.sql.diagnostics import Complaints
from codeanatomy.storage.duck import PATTERN, local, reading, sql_text

__all__ = ["Checked", "SqlAnswer", "check", "run_sql"]

# Of all questions at a time; beyond the first, the second is used.
MEMORY = "2 GiB"
DISK = "20 GiB"
# An interrupt may come between two statements and be lost, so it is repeated.
AGAIN = 0.1


class SqlAnswer(Struct, frozen=True):
    """Rows of a statement, and how many there are."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    # None if counting them would have taken too long.
    total: int | None
    # Whether there are rows that are not among these.
    truncated: bool
    views: tuple[str, ...]
    run_id: str
    # As the engine has run it.
    sql: str


def run_sql(reader: LightReader, text: str, *, limit: int, seconds: float) -> SqlAnswer:
    """The first rows of a statement's answer."""
    checked = check(text)
    connection = guarded(local(reader.snapshot.root)).cursor()
    ends = time.monotonic() + seconds
    try:
        with _refusals(checked, seconds):
            _make_views(connection, reader, checked.views)
            rows = selected(connection, checked.first(limit + 1), ends)
        total = _count(connection, checked, ends) if len(rows) > limit else len(rows)
    finally:
        connection.close()
    return SqlAnswer(
        checked.columns,
        tuple(dict(zip(checked.columns, map(_plain, row), strict=True)) for row in rows[:limit]),
        total,
        len(rows) > limit,
        checked.views,
        reader.snapshot.run_id,
        checked.duck_sql,
    )


@lru_cache(maxsize=4)
def guarded(root: str) -> duckdb.DuckDBPyConnection:
    """A database that can read the files below a folder, and nothing else."""
    database = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": MEMORY,
            "max_temp_directory_size": DISK,
            "temp_directory": str(Path(tempfile.gettempdir()) / f"codeanatomy-sql-{os.getpid()}"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
            "python_enable_replacements": False,
        },
    )
    # Paths are given to it as patterns that match themselves.
    folders = (root, PATTERN.sub(r"[\g<0>]", root))
    database.execute(f"SET allowed_directories = [{', '.join(map(sql_text, folders))}]")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    return database


def selected(connection: duckdb.DuckDBPyConnection, sql: str, ends: float) -> list[Row]:
    """The rows of what DuckDB itself takes for one SELECT, if they are there by a time of the clock."""
    statements = connection.extract_statements(sql)
    if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
        raise duckdb.PermissionException("only a SELECT is run")
    with _until(connection, ends):
        return connection.execute(statements[0]).fetchall()


def _make_views(connection: duckdb.DuckDBPyConnection, reader: LightReader, names: Iterable[str]) -> None:
    with reading():
        for name in names:
            rows = view_query(view(name), reader.snapshot).text(reader.relation)
            connection.execute(f'CREATE TEMP VIEW "{name}" AS {rows}')


def _count(connection: duckdb.DuckDBPyConnection, checked: Checked, ends: float) -> int | None:
    """How many rows there are, if that is found out in time."""
    try:
        rows = selected(connection, f"SELECT count(*) FROM ({checked.duck_sql}) AS asked", ends)
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        return None
    return int(rows[0][0])


@contextmanager
def _until(connection: duckdb.DuckDBPyConnection, ends: float) -> Iterator[None]:
    """Interrupt what runs when its time is over."""
    done = threading.Event()

    def watch() -> None:
        if done.wait(max(0.0, ends - time.monotonic())):
            return
        while not done.wait(AGAIN):
            connection.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextmanager
def _refusals(checked: Checked, seconds: float) -> Iterator[None]:
    """What DuckDB refuses is told like what `check` refuses."""
    complaints = Complaints(checked.text)
    try:
        yield
    except duckdb.InterruptException:
        complaints.add(
            "time", f"it took longer than {seconds:g} seconds", suggestion="ask for less, or allow more time"
        )
    except duckdb.OutOfMemoryException:
        complaints.add(
            "engine", f"it needs more memory than {MEMORY}", suggestion="ask for less, such as one repository"
        )
    except duckdb.IOException as problem:
        raise StorageFailure(f"the lake cannot be read: {problem}", "build the lake again") from problem
    except duckdb.Error as problem:
        # Without the class of the error.
        complaints.add("engine", str(problem).splitlines()[0].partition(": ")[2] or str(problem))
    complaints.refuse()


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return float(value) if isinstance(value, Decimal) else value
