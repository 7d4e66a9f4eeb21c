"""Run one read-only statement over the views on DuckDB (`codeanatomy sql "..."`).

    run_sql(reader, "SELECT kind, count(*) FROM symbols GROUP BY kind", limit=100, seconds=30).rows

`check` examines the statement first. DuckDB is the second line of defence: a separate database that can only
read files of this lake, accepts no settings and no extensions, and runs a statement only if it parses it as
a SELECT. Each view is made of the slices it reads, so a question about
classes opens the files of classes; for views that are whole tables the conditions of the statement select the
files (`query.sql.pruning`). `seconds` is for reading and counting together.

The answer equals that of Spark, and where Spark fails it fails, too (`duck_rewrites`). Letters that have no
single capital or small letter (the final sigma, `ﬁ`) and the texts of numbers below 0.001 or from ten million
on are as DuckDB writes them; regular expressions are RE2's, not Java's, which differ where they match nothing
(`x*`), at the end of a text that ends in a line break (`$`), and in what they know at all.
Tests: `tests/unit/query/test_sql.py`.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import duckdb

from codeanatomy import catalog
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.read.duck import GB, PATTERN, connect, spill_folder, sql_literal, translate_errors
from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import StorageFailure
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Row
from codeanatomy.query.sql.answer import SqlAnswer, check_limits
from codeanatomy.query.sql.check import Checked, check
from codeanatomy.query.sql.diagnostics import Diagnostics
from codeanatomy.query.sql.pruning import view_queries
from codeanatomy.sql_functions import macros

__all__ = ["Checked", "SqlAnswer", "check", "run_sql"]

# Memory of all statements that run at the same time, and disk space for what exceeds it.
MEMORY = 2 * GB
DISK = 20 * GB
# Characters of all texts of an answer, and rows that are fetched at once.
MAX_ROWS_CHARS = 200_000_000
BATCH_ROWS = 200
# An interrupt may come between two statements and be lost, so it is repeated.
AGAIN = 0.1
# Advice in messages of DuckDB to use SET, which is refused here; and the mark of too deep nesting.
ADVICE = re.compile(r"\s*[^.]*\b(SET|PRAGMA) .*")
TOO_DEEP = "max_expression_depth"


def run_sql(reader: LightReader, text: str, *, limit: int, seconds: float) -> SqlAnswer:
    """Run a statement and return its first rows."""
    check_limits(limit, seconds)
    checked = check(text)
    connection = guarded(reader.snapshot.root, os.getpid()).cursor()
    ends = time.monotonic() + seconds
    try:
        with _refusals(checked, seconds):
            _make_views(connection, reader, checked)
            rows = selected(connection, checked.first(limit + 1), ends)
        total = _count(connection, checked, ends) if len(rows) > limit else len(rows)
    finally:
        connection.close()
    return SqlAnswer.of(checked, rows, limit=limit, total=total, sql=checked.duck_sql, reader=reader)


@lru_cache(maxsize=4)
def guarded(root: str, process: int) -> duckdb.DuckDBPyConnection:
    """Return the database of a process that can read the files of a lake, and nothing else."""
    database = connect(spill_folder(process), memory=MEMORY, disk=DISK, extensions=False)
    local = [folder_of(location(root, table.name)).local_root for table in catalog.TABLES]
    # Paths are given to it as patterns that match themselves.
    folders = [*local, *(PATTERN.sub(r"[\g<0>]", folder) for folder in local)]
    database.execute(macros())
    database.execute(f"SET allowed_directories = [{', '.join(map(sql_literal, folders))}]")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    return database


def selected(connection: duckdb.DuckDBPyConnection, sql: str, ends: float) -> list[Row]:
    """Return the rows of a statement that DuckDB itself parses as one SELECT; interrupt it at a time."""
    statements = connection.extract_statements(sql)
    if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
        raise duckdb.PermissionException("only a SELECT is run")
    rows: list[Row] = []
    size = 0
    with _until(connection, ends):
        result = connection.execute(statements[0])
        while batch := result.fetchmany(BATCH_ROWS):
            rows += batch
            # DuckDB's own limit does not count the values that Python holds.
            size += sum(_characters(value) for row in batch for value in row)
            if size > MAX_ROWS_CHARS:
                raise duckdb.OutOfMemoryException("the rows are too large")
    return rows


def _characters(value: object) -> int:
    """Return the length of a text, or of all texts of a list."""
    if isinstance(value, list):
        return sum(map(_characters, value))
    return len(value) if isinstance(value, str) else 1


def _make_views(connection: duckdb.DuckDBPyConnection, reader: LightReader, checked: Checked) -> None:
    with translate_errors():
        for name, query in view_queries(checked, reader.snapshot).items():
            connection.execute(f'CREATE TEMP VIEW "{name}" AS {query.text(reader.relation)}')


def _count(connection: duckdb.DuckDBPyConnection, checked: Checked, ends: float) -> int | None:
    """Count the rows; None if there is not enough time or memory."""
    try:
        rows = selected(connection, f"SELECT count(*) FROM ({checked.duck_sql}) AS counted", ends)
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        return None
    return int(rows[0][0])


@contextmanager
def _until(connection: duckdb.DuckDBPyConnection, ends: float) -> Iterator[None]:
    """Interrupt the statement when its time is over."""
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
    """Report refusals of DuckDB in the same way as those of `check`."""
    problems = Diagnostics(checked.text)
    try:
        yield
    except duckdb.InterruptException:
        problems.add(
            "time",
            f"it took longer than {seconds:g} seconds",
            suggestion="select less, or allow more time with --seconds",
        )
    except duckdb.OutOfMemoryException:
        problems.add(
            "engine",
            f"it needs more memory than {MEMORY // GB} GiB, or its rows have too much text",
            suggestion="select less, such as one repository",
        )
    except duckdb.IOException as problem:
        raise StorageFailure(f"the lake cannot be read: {problem}", "build the lake again") from problem
    except duckdb.Error as problem:
        _add_refusal(str(problem), problems)
    problems.refuse()


def _add_refusal(message: str, problems: Diagnostics) -> None:
    """Add the message of DuckDB, without its error class and advice."""
    if TOO_DEEP in message:
        problems.add("size", "it is nested too deeply", suggestion="split it by WITH")
        return
    first = message.splitlines()[0]
    problems.add("engine", ADVICE.sub("", first.partition(": ")[2] or first) or "DuckDB refuses it")
