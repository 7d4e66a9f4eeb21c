"""Parquet files of a version as DuckDB relations, with files of older contracts among them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs
from pyroaring import BitMap64

from codeanatomy import catalog
from codeanatomy.delta.log.deletion_vectors import write_vectors
from codeanatomy.delta.read.duck import (
    duck_type,
    lookup_connection,
    open_database,
    select_rows,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.store_policy import is_local, local_path
from codeanatomy.errors import EnvironmentProblem, StorageFailure, UsageError

NODES = catalog.table("cpg_nodes")


def test_no_progress_is_printed_in_an_interactive_process(tmp_path: Path) -> None:
    """For DuckDB, `python -c` is one, as a REPL and a notebook are."""
    script = f"""
from codeanatomy.delta.read.duck import connect
print(connect({str(tmp_path)!r}).execute("SELECT current_setting('enable_progress_bar')").fetchall())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[(False,)]\n"


def written(root: Path, path: str, **columns: list[object]) -> LoggedFile:
    file = root / NODES.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
    return LoggedFile(path, 1, {"node_kind": "CLASS"})


def test_a_column_that_a_file_lacks_is_null(tmp_path: Path) -> None:
    old = written(tmp_path, "node_kind=CLASS/a.parquet", node_id=["a"], repo_id=["r"])
    new = written(tmp_path, "node_kind=CLASS/b.parquet", node_id=["b"], repo_id=["r"], line=[3])
    nodes = select_rows(str(tmp_path), "cpg_nodes", [old, new])
    rows = lookup_connection().execute(
        f"SELECT node_id, node_kind, line, qualname FROM ({nodes}) ORDER BY node_id"
    )
    assert rows.fetchall() == [("a", "CLASS", None, None), ("b", "CLASS", 3, None)]


def test_rows_that_a_vector_removes_are_left_out(tmp_path: Path) -> None:
    ids = [f"{number:04}" for number in range(3000)]
    some = written(tmp_path, "node_kind=CLASS/a.parquet", node_id=ids)
    whole = written(tmp_path, "node_kind=CLASS/b.parquet", node_id=["z"])
    removed = [0, *range(7, 2100, 3)]
    vectors = write_vectors(str(tmp_path / NODES.path), {"a": BitMap64(removed)})
    some = structs.replace(some, vector=vectors["a"])
    rows = lookup_connection().execute(
        f"SELECT node_id FROM ({select_rows(str(tmp_path), 'cpg_nodes', [some, whole])})"
    )
    gone = {ids[number] for number in removed}
    assert sorted(rows.fetchall()) == [(each,) for each in [*ids, "z"] if each not in gone]


def test_no_files_are_no_rows_of_the_right_types() -> None:
    found = lookup_connection().execute(f"DESCRIBE {select_rows('x', 'relations_v1', [])}").fetchall()
    types = {name: kind for name, kind, *_ in found}
    table = catalog.table("relations_v1")
    assert tuple(types) == table.column_names
    assert types["bstart"] == "BIGINT"
    assert types["evidence"].startswith("STRUCT(witness VARCHAR")


def test_every_type_of_the_catalogue_is_one_of_duckdbs() -> None:
    for table in catalog.TABLES:
        names = ", ".join(f'NULL::{duck_type(column)} AS "{column.name}"' for column in table.columns)
        assert lookup_connection().execute(f"SELECT {names}").fetchone() is not None


@pytest.mark.parametrize("folder", ["la*ke", "la?ke", "la[k]e", "la'ke", "lä ke"])
def test_a_path_is_no_pattern(tmp_path: Path, folder: str) -> None:
    root = tmp_path / folder
    file = written(root, "node_kind=CLASS/a.parquet", node_id=["a"])
    rows = (
        lookup_connection()
        .execute(f"SELECT node_id FROM ({select_rows(str(root), 'cpg_nodes', [file])})")
        .fetchall()
    )
    assert rows == [("a",)]


def test_lakes_elsewhere_are_refused() -> None:
    assert is_local("lake")
    assert is_local("file:///lake")
    assert not is_local("s3://bucket/lake")
    assert local_path("file:///la%20ke") == "/la ke"
    with pytest.raises(UsageError, match="remote"):
        local_path("s3://bucket/lake")


def test_failures_are_ours() -> None:
    with pytest.raises(StorageFailure, match="cannot be read"), translate_errors():
        lookup_connection().execute("SELECT * FROM read_parquet('nowhere.parquet')")
    with pytest.raises(EnvironmentProblem, match="memory"), translate_errors():
        raise duckdb.OutOfMemoryException("full")


def test_a_name_is_no_variable_of_this_process() -> None:
    secret = pa.table({"x": [1]})
    assert secret.num_rows == 1
    with pytest.raises(StorageFailure), translate_errors():
        lookup_connection().execute("SELECT * FROM secret")


def test_a_database_leaves_nothing_behind() -> None:
    with open_database() as found:
        (folder,) = found.execute("SELECT current_setting('temp_directory')").fetchall()[0]
        assert Path(folder).is_dir()
    assert not Path(folder).exists()


def test_texts() -> None:
    assert lookup_connection().execute(f"SELECT {sql_literal(chr(39) + chr(92))}").fetchall() == [("'\\",)]
