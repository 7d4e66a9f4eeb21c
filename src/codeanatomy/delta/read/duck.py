"""Read tables with DuckDB, from the Parquet files of a version: no JVM, and PyArrow only for Arrow results.

    select_rows("lake", "cpg_nodes", files)      # SQL for the rows of these files
    with open_database() as database:
        database.execute(f"SELECT count(*) FROM ({select_rows(...)})")

The caller chooses the files, usually with `delta.read.file_index`; the values of partition columns come from
the log. A column that a file lacks is null. Rows deleted by a deletion vector are left out.

Tests: `tests/unit/delta/test_duck.py`, `tests/unit/query/test_verify.py`.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from codeanatomy import catalog
from codeanatomy.catalog.spec import Column
from codeanatomy.delta.log.folder import folder_of
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import REPAIR, location
from codeanatomy.errors import EnvironmentProblem, StorageFailure

if TYPE_CHECKING:
    import pyarrow as pa

    from codeanatomy.delta.log.deletion_vectors import DeletionVector, PositionBits

GB = 1024**3
# Memory limit, at most half of the machine's memory; beyond it DuckDB spills to disk.
MEMORY = 4 * GB
# DuckDB's virtual column with the position of a row in its file.
ROW_NUMBER = "file_row_number"
# Characters of a path that DuckDB would interpret as a glob pattern.
PATTERN = re.compile(r"[*?[]")
TYPES = {
    "string": "VARCHAR",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
    "map<string,string>": "MAP(VARCHAR, VARCHAR)",
    "map<string,bigint>": "MAP(VARCHAR, BIGINT)",
}


@contextmanager
def open_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database that uses all cores and spills to a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="codeanatomy-") as folder, translate_errors():
        database = connect(folder)
        try:
            yield database
        finally:
            database.close()


@cache
def _shared(process: int) -> duckdb.DuckDBPyConnection:
    """Return the database of a process: one opened before a fork hangs in the child."""
    return connect(spill_folder(process))


@cache
def spill_folder(process: int) -> str:
    """Create a private temporary folder, deleted when this process ends.

    A Python worker of Spark ends without exit handlers: its folder is in Spark's own, which Spark deletes.
    """
    local = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    folder = tempfile.mkdtemp(prefix="codeanatomy-", dir=local if local and Path(local).is_dir() else None)
    atexit.register(_remove, folder, process)
    return folder


def _remove(folder: str, process: int) -> None:
    # A forked child inherits the exit handler, but must not delete its parent's folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def lookup_connection() -> duckdb.DuckDBPyConnection:
    """Return a connection to a shared database: opening one takes longer than most lookups."""
    return _shared(os.getpid()).cursor()


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise DuckDB's errors as EnvironmentProblem (out of memory) or StorageFailure."""
    try:
        yield
    except duckdb.OutOfMemoryException as problem:
        raise EnvironmentProblem(
            f"not enough memory: {problem}", "query one repository at a time (--repo-id)"
        ) from problem
    except duckdb.Error as problem:
        # After the first paragraph, DuckDB quotes the statement.
        why = str(problem).partition("\n\n")[0]
        raise StorageFailure(f"the lake cannot be read: {why}", REPAIR) from problem


def connect(
    folder: str, *, memory: int = MEMORY, disk: int | None = None, extensions: bool = True
) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database that spills into a folder, with DuckDB's bundled extensions or none."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{min(memory, _machine_memory() // 2) // 1024} KiB",
        "temp_directory": folder,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": extensions,
        "preserve_insertion_order": False,
        # A name in a statement must never refer to a Python variable of this process.
        "python_enable_replacements": False,
    }
    if disk is not None:
        settings["max_temp_directory_size"] = f"{disk // 1024} KiB"
    database = duckdb.connect(":memory:", config=settings)
    # In a REPL or a notebook DuckDB prints one; a setting of `config` would not change that.
    database.execute("SET enable_progress_bar = false")
    return database


def select_rows(root: str, name: str, files: Sequence[LoggedFile]) -> str:
    """Return the SQL query for the rows of some data files of a table, in the catalogue's columns."""
    table, folder = catalog.table(name), location(root, name)
    names, sizes = [file.path for file in files], [file.size_bytes for file in files]
    paths = dict(zip(names, folder_of(folder).local_paths(names, sizes), strict=True))
    parts: dict[tuple[tuple[tuple[str, str | None], ...], DeletionVector | None], list[str]] = {}
    for file in files:
        values = tuple(file.partition.items())
        parts.setdefault((values, file.vector), []).append(paths[file.path])
    no_values = ", ".join(f'NULL::{duck_type(column)} AS "{column.name}"' for column in table.columns)
    selects = [f"SELECT {no_values} WHERE FALSE"]
    for (values, vector), members in parts.items():
        constants = "".join(f", {sql_literal(value)} AS {key}" for key, value in values)
        # Files written by Spark contain the partition columns, files written by us do not.
        stored = f"COLUMNS(lambda c: c NOT IN ({', '.join(sql_literal(key) for key, _ in values)}))"
        rows = parquet_relation(members) if vector is None else _remaining_rows(folder, members, vector)
        selects.append(f"SELECT {stored if values else '*'}{constants} FROM {rows}")
    columns = ", ".join(map(contract_value, table.columns))
    return f"SELECT {columns} FROM ({' UNION ALL BY NAME '.join(selects)})"


def contract_value(column: Column) -> str:
    """Return the SQL expression of a column of the contract: of its type, with its default for a null.

    A value that does not fit the type is an error.
    """
    name, kind = f'"{column.name}"', duck_type(column)
    # DuckDB drops a cast to the same type.
    value = f"CAST({name} AS {kind})"
    if column.default is not None and not column.nullable:
        value = f"coalesce({value}, CAST({sql_literal(str(column.default))} AS {kind}))"
    return f"{value} AS {name}"


def read_arrow(
    root: str,
    name: str,
    files: Sequence[LoggedFile],
    columns: Sequence[str],
    where: Mapping[str, Collection[str]],
) -> pa.Table:
    """Read columns of the rows of some data files in which other columns have one of some values."""
    import pyarrow as pa

    table = catalog.table(name)
    kept = [file for file in files if all(file.may_hold(key, values) for key, values in where.items())]
    moments = {column for column in columns if table.column(column).ddl == "timestamp"}
    # As numbers: DuckDB would look up the time zone of this machine.
    selected = (
        f'epoch_us("{column}") AS "{column}"' if column in moments else f'"{column}"' for column in columns
    )
    conditions = [
        f'"{key}" IN ({", ".join(map(sql_literal, sorted(values)))})' if values else "false"
        for key, values in where.items()
    ]
    query = f"SELECT {', '.join(selected)} FROM ({select_rows(root, name, kept)})"
    with translate_errors(), lookup_connection() as database:
        rows: pa.Table = database.sql(f"{query} WHERE {' AND '.join(conditions) or 'true'}").to_arrow_table()
    fields = [
        pa.field(field.name, pa.timestamp("us", "UTC")) if field.name in moments else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def count_rows(root: str, name: str, version: int, by: Sequence[str]) -> dict[tuple[Any, ...], int]:
    """Count the rows of a version of a table by the values of some columns.

    Only files that the log does not count are read: those with several values, or without statistics.
    """
    counts, uncounted = Counter[tuple[Any, ...]](), list[LoggedFile]()
    for file in light_files(root, name, version):
        values = tuple(file.column_range(column).only_value for column in by)
        if file.rows is None or None in values:
            uncounted.append(file)
        else:
            counts[values] += file.rows - file.deleted_rows
    if uncounted:
        query, names = select_rows(root, name, uncounted), ", ".join(f'"{column}"' for column in by)
        with translate_errors(), lookup_connection() as database:
            rows = database.execute(f"SELECT {names}, count(*) FROM ({query}) GROUP BY ALL").fetchall()
        counts.update({tuple(values): count for *values, count in rows})
    return {values: count for values, count in counts.items() if count}


def parquet_relation(paths: Iterable[str], *options: str) -> str:
    """Return the SQL relation over Parquet files."""
    more = "".join(f", {option} = true" for option in options)
    return f"read_parquet({sql_path_list(paths)}, hive_partitioning = false, union_by_name = true{more})"


def _remaining_rows(folder: str, paths: Iterable[str], vector: DeletionVector) -> str:
    """Return the SQL relation of the rows that a deletion vector keeps."""
    # Imported here: most files have no vector.
    from codeanatomy.delta.log.deletion_vectors import removed_bits

    return rows_except(paths, removed_bits(folder, vector))


def rows_except(paths: Iterable[str], removed: PositionBits) -> str:
    """Return the SQL relation of the rows of Parquet files without those at the given positions of each file.

    A bit string, because a lookup with 100,000 scattered positions among a million takes 3 ms, with a list of
    the positions 35 ms. Row groups are skipped as in other files.
    """
    return f"(SELECT * FROM {parquet_relation(paths, ROW_NUMBER)} WHERE NOT {_is_at(removed)})"


def rows_at(paths: Iterable[str], positions: PositionBits) -> str:
    """Return the SQL relation of the rows of Parquet files at the given positions of each file."""
    return f"(SELECT * FROM {parquet_relation(paths, ROW_NUMBER)} WHERE {_is_at(positions)})"


def _is_at(positions: PositionBits) -> str:
    number = f"least({ROW_NUMBER}, {positions.count - 1})::INTEGER"
    return f"get_bit(from_base64('{positions.encoded}')::BIT, {number})"


def sql_path_list(paths: Iterable[str]) -> str:
    """Return paths as a SQL list, with glob characters escaped."""
    escaped = (PATTERN.sub(r"[\g<0>]", path) for path in paths)
    return f"[{', '.join(map(sql_literal, escaped))}]"


def sql_literal(value: str | None) -> str:
    """Return a string as a SQL literal.

    >>> sql_literal("it's"), sql_literal(None)
    ("'it''s'", 'NULL')
    """
    return "NULL" if value is None else f"'{value.replace(chr(39), chr(39) * 2)}'"


def duck_type(column: Column) -> str:
    """Return the DuckDB type of a column.

    >>> duck_type(catalog.table("cpg_nodes").column("bstart"))
    'BIGINT'
    """
    inner = ", ".join(f'"{field.name}" {duck_type(field)}' for field in column.fields)
    single = f"STRUCT({inner})" if column.fields else TYPES[column.type]
    return f"{single}[]" if column.array else single


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
