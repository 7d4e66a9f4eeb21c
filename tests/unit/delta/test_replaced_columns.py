"""Data files of a newer contract: columns are replaced in the same commit if no older row is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from msgspec import structs

from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.spec import Column, DeltaWritePolicy, Table, WriterProperties
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Committed
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import commit_files
from codeanatomy.errors import SchemaDrift
from support.item_table import ITEMS

REPO = Column("repo_id", "string", "Repository.", nullable=False)
NAME = Column("name", "string", "Its name.", nullable=False)
OLDER = structs.replace(
    ITEMS,
    columns=(REPO, NAME, Column("id", "string", "Its hash.", nullable=False)),
    primary_key=("id",),
    owner=None,
    constraints=(),
    write=DeltaWritePolicy(zorder_by=("repo_id",), stats_policy="explicit", stats_columns=("repo_id",)),
)
NEWER = structs.replace(
    OLDER,
    columns=(REPO, NAME, Column("number", "int", "Its number.", nullable=False)),
    primary_key=("repo_id", "name", "number"),
    write=structs.replace(OLDER.write, writer=WriterProperties(row_group_rows=1000)),
)


def adopt(lake: Path, table: Table, run_id: str, repos: Sequence[str], rows: Sequence[str]) -> Committed:
    """Replace the rows of repositories by a row for each given one."""
    store = LakeTables(str(lake), (table,))
    cells = {"name": "n", "id": "hash", "number": 1}
    batches = [
        pa.RecordBatch.from_pylist(
            [{"repo_id": repo_id, **{name: cells[name] for name in table.column_names[1:]}}],
            schema=arrow_schema(table),
        )
        for repo_id in rows
    ]
    files = [file for batch in batches for file in write_files(store.location(table.name), table, [batch])]
    return commit_files(store, table.name, files, repos, Commit(run_id), by="repo_id")


def stored(lake: Path, version: int | None = None) -> DeltaTable:
    return DeltaTable(LakeTables(str(lake), (OLDER,)).location(OLDER.name), version=version)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    adopt(tmp_path, OLDER, "run-1", ["a", "b"], ["a", "b"])
    return tmp_path


def test_columns_are_replaced_with_all_rows(lake: Path) -> None:
    done = adopt(lake, NEWER, "run-2", ["a", "b"], ["a", "b"])
    assert (done.version, done.rows, done.rows_deleted) == (1, 2, 2)
    now, before = stored(lake), stored(lake, 0)
    assert [field.name for field in now.schema().fields] == ["repo_id", "name", "number"]
    assert all(not field.nullable for field in now.schema().fields)
    assert now.to_pyarrow_table().num_rows == 2
    assert now.metadata().id == before.metadata().id
    assert now.metadata().configuration["parquet.block.row.count.limit"] == "1000"
    # Readers of the older version have its columns.
    assert before.to_pyarrow_table().column("id").to_pylist() == ["hash", "hash"]


def test_rows_of_others_keep_their_columns(lake: Path) -> None:
    assert adopt(lake, NEWER, "run-2", ["a"], ["a"]).version == 1
    now = stored(lake)
    assert {field.name: field.nullable for field in now.schema().fields} == {
        "repo_id": False,
        "name": False,
        "id": True,
        "number": True,
    }
    rows = now.to_pyarrow_table(columns=["repo_id", "id", "number"]).sort_by("repo_id").to_pylist()
    assert rows == [
        {"repo_id": "a", "id": None, "number": 1},
        {"repo_id": "b", "id": "hash", "number": None},
    ]


def test_a_policy_may_allow_no_change(lake: Path) -> None:
    fixed = structs.replace(NEWER, schema=structs.replace(NEWER.schema, schema_mode=None))
    with pytest.raises(SchemaDrift):
        adopt(lake, fixed, "run-2", ["a", "b"], ["a", "b"])


def test_the_last_rows_may_go_without_new_ones(lake: Path) -> None:
    adopt(lake, NEWER, "run-2", ["a", "b"], [])
    assert [field.name for field in stored(lake).schema().fields] == ["repo_id", "name", "number"]
    assert stored(lake).to_pyarrow_table().num_rows == 0


def test_a_table_may_get_other_partitions(lake: Path) -> None:
    parted = structs.replace(NEWER, write=structs.replace(NEWER.write, partition_by=("name",)))
    adopt(lake, parted, "run-2", ["a", "b"], ["a"])
    assert stored(lake).metadata().partition_columns == ["name"]
    assert stored(lake).to_pyarrow_table().to_pylist() == [{"repo_id": "a", "name": "n", "number": 1}]


def test_equal_columns_are_not_replaced(lake: Path) -> None:
    adopt(lake, OLDER, "run-2", ["a", "b"], ["a"])
    log = Path(LakeTables(str(lake), (OLDER,)).location(OLDER.name), "_delta_log")
    assert "metaData" not in (log / f"{1:020}.json").read_text()
