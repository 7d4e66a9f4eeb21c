"""Tables of a lake as DuckDB reads them: the Parquet files that a version's log names. No JVM, no PyArrow.

    rows_of(local("lake"), "cpg_nodes", files)      # SQL: the rows of these files, in the catalogue's columns
    with database() as found:
        found.execute(f"SELECT count(*) FROM ({rows_of(...)})")

Which files are read is the caller's choice, by what the log says of them (`delta.read.file_index`); the values
of partition columns are taken from the log too. A column that a file lacks is null. Rows that a deletion
vector removes are left out.

Tests: `tests/unit/delta/test_duck.py`, `tests/unit/query/test_verify.py`.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import duckdb

from codeanatomy import catalog
from codeanatomy.catalog.spec import Column
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files, light_table, location
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import EnvironmentProblem, StorageFailure, UsageError

if TYPE_CHECKING:
    from codeanatomy.delta.log.deletion_vectors import DeletionVector, PositionBits

GB = 1024**3
# Beyond it, or half of what the machine has, the disk is used.
MEMORY = 4 * GB
# A column that DuckDB has on demand: where in its file a row stands.
ROW_NUMBER = "file_row_number"
# What DuckDB would take for a pattern in a path.
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


def local_path(lake: str) -> str:
    """A lake as a path; one that is elsewhere is not read this way."""
    if not is_local(lake):
        raise UsageError(f"{lake} is remote", "copy the lake to a local folder, or ask it with Spark")
    return unquote(urlsplit(lake).path) if lake.lower().startswith("file:") else str(Path(lake).absolute())


@contextmanager
def open_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory and, where that is not enough, in a temporary folder; all cores work for it."""
    with tempfile.TemporaryDirectory(prefix="codeanatomy-") as folder, translate_errors():
        found = connect(folder)
        try:
            yield found
        finally:
            found.close()


@cache
def _shared(process: int) -> duckdb.DuckDBPyConnection:
    """The database of a process: what was made before a fork hangs after it."""
    return connect(spill_folder(process))


@cache
def spill_folder(process: int) -> str:
    """A folder that nobody else can read or has made before, until this process ends."""
    folder = tempfile.mkdtemp(prefix="codeanatomy-")
    atexit.register(_remove, folder, process)
    return folder


def _remove(folder: str, process: int) -> None:
    # A fork has the functions of its parent, but not its folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def lookup_connection() -> duckdb.DuckDBPyConnection:
    """A connection for short questions: to make a database takes longer than most of them."""
    return _shared(os.getpid()).cursor()


@contextmanager
def translate_errors() -> Iterator[None]:
    """What goes wrong while DuckDB reads a lake is an error of ours."""
    try:
        yield
    except duckdb.OutOfMemoryException as problem:
        raise EnvironmentProblem(
            f"not enough memory: {problem}", "ask about one --repo-id at a time"
        ) from problem
    except duckdb.Error as problem:
        raise StorageFailure(f"the lake cannot be read: {problem}", "build the lake again") from problem


def connect(
    folder: str, *, memory: int = MEMORY, disk: int | None = None, extensions: bool = True
) -> duckdb.DuckDBPyConnection:
    """A database in memory that spills into a folder, with the extensions that DuckDB comes with or none."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{min(memory, _machine_memory() // 2) // 1024} KiB",
        "temp_directory": folder,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": extensions,
        "preserve_insertion_order": False,
        # A name in a statement never means a variable of this process.
        "python_enable_replacements": False,
    }
    if disk is not None:
        settings["max_temp_directory_size"] = f"{disk // 1024} KiB"
    return duckdb.connect(":memory:", config=settings)


def select_rows(root: str, name: str, files: Sequence[LoggedFile]) -> str:
    """The rows of files of a table, in the catalogue's columns: what a file lacks is null."""
    table = catalog.table(name)
    place = location(root, name)
    parts: dict[tuple[tuple[tuple[str, str | None], ...], DeletionVector | None], list[str]] = {}
    for file in files:
        values = tuple(file.partition.items())
        parts.setdefault((values, file.vector), []).append(f"{place}/{file.path}")
    nothing = ", ".join(f'NULL::{duck_type(column)} AS "{column.name}"' for column in table.columns)
    selects = [f"SELECT {nothing} WHERE FALSE"]
    for (values, vector), paths in parts.items():
        constants = "".join(f", {sql_literal(value)} AS {key}" for key, value in values)
        # Spark writes the columns of partitions into its files, we do not.
        stored = f"COLUMNS(lambda c: c NOT IN ({', '.join(sql_literal(key) for key, _ in values)}))"
        rows = parquet_relation(paths) if vector is None else _remaining(place, paths, vector)
        selects.append(f"SELECT {stored if values else '*'}{constants} FROM {rows}")
    names = ", ".join(f'"{name}"' for name in table.column_names)
    return f"SELECT {names} FROM ({' UNION ALL BY NAME '.join(selects)})"


def count_rows(root: str, name: str, version: int, by: Sequence[str]) -> dict[tuple[Any, ...], int]:
    """How many rows of a version of a table have the same values in some columns."""
    if not is_local(root):
        found = light_table(root, name, by, version=version).group_by(list(by)).aggregate([([], "count_all")])
        return {tuple(row[column] for column in by): row["count_all"] for row in found.to_pylist()}
    # As it is read: a column of a large table does not fit into memory.
    rows = select_rows(local_path(root), name, light_files(root, name, version))
    names = ", ".join(f'"{column}"' for column in by)
    with translate_errors(), lookup_connection() as database:
        counted = database.execute(f"SELECT {names}, count(*) FROM ({rows}) GROUP BY ALL").fetchall()
    return {tuple(values): count for *values, count in counted}


def parquet_relation(paths: Iterable[str], *options: str) -> str:
    """A relation of Parquet files."""
    more = "".join(f", {option} = true" for option in options)
    return f"read_parquet({sql_path_list(paths)}, hive_partitioning = false, union_by_name = true{more})"


def _remaining(place: str, paths: Iterable[str], vector: DeletionVector) -> str:
    """Without the rows that a vector removes."""
    # Here: most files have none.
    from codeanatomy.delta.log.deletion_vectors import removed_bits

    return rows_except(paths, removed_bits(place, vector))


def rows_except(paths: Iterable[str], removed: PositionBits) -> str:
    """A relation of the rows of Parquet files that do not stand at the positions removed from each.

    As a string of bits: of 100,000 scattered positions among a million a lookup takes 3 ms, with a list of
    the positions 35 ms. Row groups are skipped as in other files.
    """
    return f"(SELECT * FROM {parquet_relation(paths, ROW_NUMBER)} WHERE NOT {_stands_at(removed)})"


def rows_at(paths: Iterable[str], positions: PositionBits) -> str:
    """A relation of the other rows."""
    return f"(SELECT * FROM {parquet_relation(paths, ROW_NUMBER)} WHERE {_stands_at(positions)})"


def _stands_at(positions: PositionBits) -> str:
    number = f"least({ROW_NUMBER}, {positions.count - 1})::INTEGER"
    return f"get_bit(from_base64('{positions.coded}')::BIT, {number})"


def sql_path_list(paths: Iterable[str]) -> str:
    """Paths as a list of SQL, in which none is a pattern."""
    literal = (PATTERN.sub(r"[\g<0>]", path) for path in paths)
    return f"[{', '.join(map(sql_literal, literal))}]"


def sql_literal(value: str | None) -> str:
    """A text as a literal of SQL.

    >>> sql_text("it's"), sql_text(None)
    ("'it''s'", 'NULL')
    """
    return "NULL" if value is None else f"'{value.replace(chr(39), chr(39) * 2)}'"


def duck_type(column: Column) -> str:
    """The type of a column as DuckDB spells it.

    >>> duck_type(catalog.table("cpg_nodes").column("bstart"))
    'BIGINT'
    """
    inner = ", ".join(f'"{field.name}" {duck_type(field)}' for field in column.fields)
    single = f"STRUCT({inner})" if column.fields else TYPES[column.type]
    return f"{single}[]" if column.array else single


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
