"""Foreign keys of the catalogue are checked by `verify`: each by its SQL, and in a lake that lost rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from codeanatomy.catalog import TABLES
from codeanatomy.catalog.spec import ForeignKey, Table
from codeanatomy.delta.read.duck import duck_type
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import location
from codeanatomy.query.checks.key_rules import COPIES, key_rules, key_tables
from codeanatomy.query.checks.verify import verify
from support.folders import write_sources
from support.light_builds import clean_lake

KEYS = [(table, key) for table in TABLES if table.name not in COPIES for key in table.foreign_keys]
RULES = key_rules(TABLES, {})
SOURCE = {
    "a.py": "import b\n\n\ndef f(x: int) -> int:\n    while x:\n        x = b.g(x)\n    return x\n",
    "b.py": "def g(y: int) -> int:\n    return y - 1\n",
}
# The rows of b.py go from a table: columns of keys that have lost their targets, and the place of a finding.
LOST = {
    "repo_files_v1": ({"file_id", "owner_file_id"}, "b.py"),
    "type_exprs_norm_v1": ({"expr_id"}, "b.py:1"),
    "py_bc_blocks_norm_v1": ({"bc_src_block_id", "bc_dst_block_id", "bc_block_id"}, "b.py:2"),
    "py_bc_def_use_events_v1": ({"bc_use_event_id", "bc_def_event_id"}, "b.py:2"),
    "cpg_nodes": ({"src_node_id", "dst_node_id"}, "a.py:6"),
}


def rule_of(table: Table, key: ForeignKey) -> str:
    return f"{table.name}({', '.join(key.columns)})"


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """All tables, without rows."""
    with duckdb.connect(":memory:") as database:
        for table in TABLES:
            columns = ", ".join(f'"{column.name}" {duck_type(column)}' for column in table.readable_columns)
            database.execute(f"CREATE TABLE {table.name} ({columns})")
        yield database


@pytest.mark.parametrize(("table", "key"), KEYS, ids=[rule_of(*each) for each in KEYS])
def test_a_value_has_to_be_a_key_of_the_same_repository(
    database: duckdb.DuckDBPyConnection, table: Table, key: ForeignKey
) -> None:
    def insert(name: str, repo_id: str, columns: tuple[str, ...], value: str | None) -> None:
        marks = ", ".join("?" for _ in columns)
        sql = f"INSERT INTO {name} (repo_id, {', '.join(columns)}) VALUES (?, {marks})"
        database.execute(sql, [repo_id, *(value for _ in columns)])

    def found() -> list[str]:
        return [row[-1] for row in database.execute(RULES[rule_of(table, key)]).fetchall()]

    database.execute("BEGIN")
    insert(table.name, "r", key.columns, None)
    assert found() == []
    insert(table.name, "r", key.columns, "7")
    insert(key.table, "other", key.target, "7")
    names, targets = ", ".join(key.columns), ", ".join(key.target)
    assert found() == [f"{names} {', '.join('7' for _ in key.columns)} is not a {targets} of {key.table}"]
    insert(key.table, "r", key.target, "7")
    assert found() == []
    database.execute("ROLLBACK")


def test_every_key_but_those_of_copies_has_a_rule() -> None:
    assert set(RULES) == {rule_of(*each) for each in KEYS}
    assert set(key_tables(TABLES)) == {name for table, key in KEYS for name in (table.name, key.table)}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    clean_lake(folder / "lake", {"app": write_sources(folder / "app", SOURCE)})
    return folder / "lake"


def test_a_sound_lake_has_no_findings(sound: Path) -> None:
    result = verify(str(sound))
    assert result.findings == ()
    assert set(RULES) <= set(result.rules)
    assert all(result.rows[name] for name in ("py_bc_reaches_v1", "type_nodes_v1", "symtable_files_v1"))


def test_keys_are_recorded_in_the_properties_of_tables(sound: Path) -> None:
    def recorded(name: str) -> str | None:
        return DeltaTable(location(str(sound), name)).metadata().configuration.get("codeanatomy.foreignKeys")

    keys = json.loads(recorded("type_nodes_v1") or "")
    assert keys == [
        {"columns": ["file_id"], "table": "repo_files_v1", "target": ["file_id"]},
        {"columns": ["expr_id"], "table": "type_exprs_norm_v1", "target": ["expr_id"]},
    ]
    assert recorded("repo_files_v1") is None


@pytest.mark.parametrize("name", LOST)
def test_lost_rows_are_found_by_the_keys_that_refer_to_them(sound: Path, tmp_path: Path, name: str) -> None:
    lake = shutil.copytree(sound, tmp_path / "lake")
    for file in light_files(str(lake), name):
        path = f"{location(str(lake), name)}/{file.path}"
        rows = pq.read_table(path, partitioning=None)
        kept = [value != "b.py" for value in rows.column("path").to_pylist()]
        pq.write_table(rows.filter(kept), path)
    columns, place = LOST[name]
    expected = {rule_of(table, key) for table, key in KEYS if key.table == name}
    findings = [each for each in verify(str(lake), limit=1000).findings if each.rule in RULES]
    found = {each.rule for each in findings}
    assert found <= expected
    assert {rule.split("(")[1][:-1] for rule in found} == columns
    assert all(f"of {name}" in each.message for each in findings)
    assert place in {each.place for each in findings}
