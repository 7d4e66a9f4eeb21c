"""Data files that Python wrote become rows of a table, as checked and as atomic as any other commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from msgspec import json

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.errors import ConstraintViolation, ContractError
from codeanatomy.ids import stable_id
from codeanatomy.storage.adopt import adopt_files, local_folder
from codeanatomy.storage.commit import Commit, append
from codeanatomy.storage.files import write_file
from codeanatomy.storage.scan import scan
from codeanatomy.storage.store import Store
from codeanatomy.storage.transaction import DataFile

TABLE = catalog.table("file_line_index_v1")


def lines(repo_id: str, count: int, /, **changed: Any) -> pa.RecordBatch:
    rows = [
        {
            "repo_id": repo_id,
            "file_id": stable_id("file", repo_id, "a.py"),
            "path": "a.py",
            "file_sha256": "0" * 64,
            "line_no": number,
            "line_start_byte": number,
            "line_end_byte": number + 1,
            "newline_kind": "lf",
            **changed,
        }
        for number in range(count)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(TABLE))


def written(store: Store, *batches: pa.RecordBatch) -> list[DataFile]:
    file = write_file(store.location(TABLE.name), TABLE, batches)
    return [file] if file is not None else []


def held(store: Store) -> dict[str, int]:
    rows = scan(store, TABLE.name).rows.groupBy("repo_id").count().collect()
    return {row["repo_id"]: row["count"] for row in rows}


def adopt(store: Store, run: str, repo_id: str, files: Sequence[DataFile]) -> Any:
    return adopt_files(store, TABLE.name, files, [repo_id], Commit(run), by="repo_id")


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()


def test_a_table_is_born_with_files(store: Store) -> None:
    done = adopt(store, "r1", "a", written(store, lines("a", 2), lines("a", 3)))
    assert (done.version, done.created, done.rows, done.files) == (0, True, 5, 1)
    assert held(store) == {"a": 5}
    # As any reader sees it: NOT NULL, properties and the protocol are those of any other table.
    other = DeltaTable(store.location(TABLE.name))
    assert other.to_pyarrow_table().num_rows == 5
    assert not other.schema().fields[0].nullable
    assert (other.protocol().min_reader_version, other.protocol().min_writer_version) == (1, 2)
    assert other.metadata().configuration["codeanatomy.table"] == TABLE.name


def test_owners_are_replaced_whatever_the_table_holds(store: Store) -> None:
    adopt(store, "r1", "a", written(store, lines("a", 2)))
    assert held(store) == {"a": 2}
    adopt(store, "r2", "a", written(store, lines("a", 3)))
    assert held(store) == {"a": 3}
    adopt(store, "r3", "b", written(store, lines("b", 4)))
    assert held(store) == {"a": 3, "b": 4}
    adopt(store, "r4", "a", written(store, lines("a", 1)))
    assert held(store) == {"a": 1, "b": 4}
    adopt(store, "r5", "a", [])
    assert held(store) == {"b": 4}
    # No file of ours is left that no version knows of: r1, r2 and r3 were adopted, r4 was written anew.
    location = store.location(TABLE.name)
    versions = range(DeltaTable(location).version() + 1)
    known = {
        Path(uri).name for version in versions for uri in DeltaTable(location, version=version).file_uris()
    }
    ours = {path.name for path in Path(location).glob("*.parquet") if "-c000" not in path.name}
    assert len(ours) == 3
    assert ours <= known


def test_the_same_commit_twice_is_one(store: Store) -> None:
    files = written(store, lines("a", 2))
    adopt(store, "r1", "a", files)
    again = adopt(store, "r1", "a", files)
    assert (again.version, again.repeated) == (0, True)
    assert held(store) == {"a": 2}


def test_rows_that_break_a_rule_are_refused(store: Store) -> None:
    for changed, rule in (
        ({"line_end_byte": -1}, "line_ordered"),
        ({"newline_kind": "nl"}, "newline_kind_known"),
        ({"repo_id": None}, "repo_id_not_null"),
        ({"path": "/etc/passwd"}, "path_is_Path"),
    ):
        with pytest.raises(ConstraintViolation, match=rule):
            adopt(store, "r1", "a", written(store, lines("a", 1, **changed)))
    assert not store.log(TABLE.name).exists()


def test_files_of_other_columns_are_refused(store: Store) -> None:
    batch = lines("a", 1).drop_columns(["newline_kind"])
    folder = Path(store.location(TABLE.name))
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_batches([batch]), folder / "x.parquet")
    with pytest.raises(ContractError, match="newline_kind"):
        adopt(store, "r1", "a", [DataFile("x.parquet", 1, 1, "{}")])


def test_statistics_prune(store: Store) -> None:
    (file,) = written(store, lines("a", 3), lines("b", 2))
    stats = json.decode(file.stats)
    low, high = sorted([stable_id("file", "a", "a.py"), stable_id("file", "b", "a.py")])
    assert stats["numRecords"] == 5
    assert (stats["minValues"]["file_id"], stats["maxValues"]["file_id"]) == (low, high)
    assert (stats["minValues"]["line_no"], stats["maxValues"]["line_no"]) == (0, 2)
    assert set(stats["minValues"]) == set(TABLE.write.stats_columns)
    assert stats["nullCount"]["path"] == 0


def test_files_and_rows_read_alike(store: Store) -> None:
    adopt(store, "r1", "a", written(store, lines("a", 4)))
    rows = store.spark.createDataFrame(lines("b", 4).to_pandas())
    append(store, TABLE.name, rows, Commit("r2"))
    found = scan(store, TABLE.name).rows
    assert found.where("repo_id = 'a'").drop("repo_id", "file_id").collect() == (
        found.where("repo_id = 'b'").drop("repo_id", "file_id").collect()
    )


def test_only_plain_local_tables(store: Store) -> None:
    assert local_folder(store, TABLE.name) == store.location(TABLE.name)
    assert local_folder(store, "cpg_nodes") is None
    assert local_folder(Store(store.spark, "s3a://bucket/lake"), TABLE.name) is None
