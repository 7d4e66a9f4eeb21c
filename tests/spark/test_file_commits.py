"""Data files that Python wrote become rows of a table, as checked and as atomic as any other commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from msgspec import json, structs

from codeanatomy import catalog, node_ids
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.store_policy import StorePolicy
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import OPERATION, commit_files, new_files
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.errors import ConstraintViolation, ContractError, NeedsSpark
from codeanatomy.ids import stable_id
from codeanatomy.spark.jars import cache_folder
from support.delta_log import delta_log
from support.owner_tables import featured

TABLE = catalog.table("file_line_index_v1")
NODES = catalog.table("cpg_nodes")


def lines(repo_id: str, count: int, /, **changed: Any) -> pa.RecordBatch:
    rows = [
        {
            "repo_id": repo_id,
            "file_id": node_ids.file_id(repo_id, "a.py"),
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
    return write_files(store.location(TABLE.name), TABLE, batches)


def held(store: Store) -> dict[str, int]:
    rows = scan(store, TABLE.name).rows.groupBy("repo_id").count().collect()
    return {row["repo_id"]: row["count"] for row in rows}


def adopt(store: Store, run: str, repo_id: str, files: Sequence[DataFile]) -> Any:
    return commit_files(store, TABLE.name, files, [repo_id], Commit(run), by="repo_id")


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store()


def test_a_table_is_born_with_files(make_store: Callable[..., Store]) -> None:
    store = make_store(featured(TABLE))
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
    # No file of ours is left that no version knows of.
    location = store.location(TABLE.name)
    versions = range(DeltaTable(location).version() + 1)
    known = {
        Path(uri).name for version in versions for uri in DeltaTable(location, version=version).file_uris()
    }
    ours = {path.name for path in Path(location).glob("*.parquet") if "-c000" not in path.name}
    assert len(ours) == 4
    assert ours == known


@pytest.mark.system
def test_a_file_of_several_owners_stays(store: Store) -> None:
    both = written(store, lines("a", 2), lines("b", 3))
    commit_files(store, TABLE.name, both, ["a", "b"], Commit("r1"), by="repo_id")
    done = adopt(store, "r2", "a", written(store, lines("a", 1)))
    assert (done.operation, done.version, done.rows_deleted) == (OPERATION, 1, 2)
    assert (done.files, done.files_removed) == (1, 0)
    assert held(store) == {"a": 1, "b": 3}
    adopt(store, "r3", "b", [])
    assert held(store) == {"a": 1}
    # Nothing was written twice, and the first file went with its last row.
    assert len(list(Path(store.location(TABLE.name)).glob("*.parquet"))) == 2
    assert both[0].path not in DeltaTable(store.location(TABLE.name)).file_uris()


def test_nothing_to_change_is_no_commit(store: Store) -> None:
    assert adopt(store, "r1", "a", []).created
    adopt(store, "r2", "a", written(store, lines("a", 1)))
    done = adopt(store, "r3", "b", [])
    assert (done.committed, done.repeated, done.version) == (False, False, 1)
    assert delta_log(store, TABLE.name).snapshot().version == 1


@pytest.mark.system
def test_without_a_session_what_only_spark_can_do_is_refused(store: Store) -> None:
    tables = LakeTables(store.root)
    commit_files(tables, TABLE.name, written(store, lines("a", 1)), ["a"], Commit("r1"), by="repo_id")
    assert held(store) == {"a": 1}
    address = f"delta.`{store.location(TABLE.name)}`"
    files = written(store, lines("a", 2))
    featured = structs.replace(
        TABLE, write=structs.replace(TABLE.write, enable_features=("in_commit_timestamps",))
    )
    with pytest.raises(NeedsSpark, match="needs new columns or features"):
        commit_files(
            LakeTables(store.root, (featured,)), TABLE.name, files, ["a"], Commit("r2"), by="repo_id"
        )
    store.spark.sql(f"ALTER TABLE {address} ADD CONSTRAINT few CHECK (line_no < 2)")
    with pytest.raises(NeedsSpark, match="has features that only Spark writes"):
        commit_files(tables, TABLE.name, files, ["a"], Commit("r2"), by="repo_id")
    assert commit_files(store, TABLE.name, files, ["a"], Commit("r2"), by="repo_id").committed
    assert held(store) == {"a": 2}


@pytest.mark.system
def test_properties_come_with_the_commit(store: Store) -> None:
    """Spark would alter the table first; without it the same commit does both."""
    adopt(store, "r1", "a", written(store, lines("a", 1)))
    before = delta_log(store, TABLE.name).snapshot()
    address = f"delta.`{store.location(TABLE.name)}`"
    store.spark.sql(
        f"ALTER TABLE {address} SET TBLPROPERTIES"
        " ('parquet.enable.dictionary' = 'false', 'codeanatomy.old' = 'x', 'somebody.elses' = 'y')"
    )
    files = written(store, lines("b", 1))
    done = commit_files(LakeTables(store.root), TABLE.name, files, ["b"], Commit("r2"), by="repo_id")
    after = delta_log(store, TABLE.name).snapshot()
    assert done.version == after.version == before.version + 2
    assert after.properties == {**before.properties, "somebody.elses": "y"}
    assert held(store) == {"a": 1, "b": 1}
    # Together with what lets a file lose rows.
    files = written(store, lines("b", 1), lines("c", 1))
    commit_files(store, TABLE.name, files, ["b", "c"], Commit("r3"), by="repo_id")
    store.spark.sql(f"ALTER TABLE {address} SET TBLPROPERTIES ('codeanatomy.old' = 'x')")
    files = written(store, lines("b", 2))
    done = commit_files(LakeTables(store.root), TABLE.name, files, ["b"], Commit("r4"), by="repo_id")
    entry = Path(store.location(TABLE.name), "_delta_log", f"{done.version:020}.json")
    actions = [json.decode(line) for line in entry.read_bytes().splitlines()]
    (told,) = [each["metaData"]["configuration"] for each in actions if "metaData" in each]
    assert told == after.properties
    assert held(store) == {"a": 1, "b": 2, "c": 1}


@pytest.mark.system
def test_spark_makes_the_commit_where_the_table_asks_for_more(store: Store) -> None:
    adopt(store, "r1", "a", written(store, lines("a", 1)))
    address = f"delta.`{store.location(TABLE.name)}`"
    store.spark.sql(f"ALTER TABLE {address} ADD CONSTRAINT few CHECK (line_no < 2)")
    assert adopt(store, "r2", "b", written(store, lines("b", 1))).operation == "replace_by_owner"
    with pytest.raises(ConstraintViolation, match="few"):
        adopt(store, "r3", "b", written(store, lines("b", 3)))
    assert held(store) == {"a": 1, "b": 1}


def test_a_version_that_somebody_else_makes_is_not_taken(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt(store, "r1", "a", written(store, lines("a", 1)))
    put = entries.write_entry

    def late(location: str, version: int, actions: Iterable[Any], interval: int) -> bool:
        monkeypatch.setattr(entries, "write_entry", put)
        adopt(store, "r2", "b", written(store, lines("b", 2)))
        return put(location, version, actions, interval)

    monkeypatch.setattr(entries, "write_entry", late)
    done = adopt(store, "r3", "a", written(store, lines("a", 4)))
    assert (done.version, done.attempts) == (2, 2)
    assert held(store) == {"a": 4, "b": 2}


def test_a_log_of_many_versions_has_checkpoints(store: Store) -> None:
    for number in range(12):
        adopt(store, f"r{number}", "a", written(store, lines("a", number + 1)))
    log = Path(store.location(TABLE.name), "_delta_log")
    assert list(log.glob("*10.checkpoint.parquet"))
    assert adopt(store, "r3", "a", written(store, lines("a", 4))).repeated
    assert held(store) == {"a": 12}
    assert not list(log.glob("*.tmp"))


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
    assert not delta_log(store, TABLE.name).exists()


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
    low, high = sorted([node_ids.file_id("a", "a.py"), node_ids.file_id("b", "a.py")])
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


def test_where_new_files_are_written(store: Store) -> None:
    assert new_files(store, NODES.name) == NewFiles(store.location(NODES.name))
    assert new_files(store, NODES.name, published=True) == NewFiles(store.location(NODES.name))
    remote = Store(store.spark, "s3a://bucket/lake")
    assert new_files(remote, NODES.name).location.startswith(str(cache_folder()))
    uploaded = new_files(remote, NODES.name, published=True)
    assert uploaded == NewFiles(remote.location(NODES.name), StorePolicy())


def node(repo_id: str, kind: str, number: int, /, **changed: Any) -> dict[str, Any]:
    file_id = node_ids.file_id(repo_id, "a.py")
    return {
        "repo_id": repo_id,
        "node_id": stable_id("node", repo_id, kind, number),
        "node_kind": kind,
        "subkind": None,
        "file_id": file_id,
        "path": "a.py",
        "bstart": number,
        "bend": number + 1,
        "line": 1,
        "name": None,
        "qualname": f"m.{number}",
        "owner_file_id": file_id,
        **changed,
    }


def nodes(repo_id: str, *kinds: str, rows: int = 3, start: int = 0) -> pa.RecordBatch:
    """So many nodes of each kind."""
    found = [node(repo_id, kind, start + number) for kind in kinds for number in range(rows)]
    return pa.RecordBatch.from_pylist(found, schema=arrow_schema(NODES))


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["node_id"])


def test_a_file_for_each_partition_value(tmp_path: Path) -> None:
    batches = [nodes("a", "CLASS", "FUNCTION"), nodes("a", "FUNCTION", start=3), nodes("a")]
    batches.append(nodes("a", "CLASS", rows=1, start=3))
    found = {file.partition["node_kind"]: file for file in write_files(str(tmp_path), NODES, batches)}
    assert {kind: file.rows for kind, file in found.items()} == {"CLASS": 4, "FUNCTION": 6}
    for kind, file in found.items():
        assert file.path.startswith(f"node_kind={kind}/part-")
        rows = pq.ParquetFile(tmp_path / file.path)
        assert rows.schema_arrow.names == [name for name in NODES.column_names if name != "node_kind"]
        assert rows.read().column("bstart").to_pylist() == list(range(file.rows))
        assert file.size_bytes == (tmp_path / file.path).stat().st_size
        stats = json.decode(file.stats)
        assert set(stats["minValues"]) == set(NODES.write.stats_columns) - {"node_kind"}
        assert (stats["minValues"]["bstart"], stats["maxValues"]["bend"]) == (0, file.rows)
    assert write_files(str(tmp_path), NODES, [nodes("a")]) == []


def test_bloom_filters_as_large_as_their_rows(tmp_path: Path) -> None:
    (file,) = write_files(str(tmp_path), NODES, [nodes("a", "CLASS", rows=200)])
    path = str(tmp_path / file.path)
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    assert [name for name, column in columns.items() if column.bloom_filter_length] == ["node_id"]
    assert columns["node_id"].bloom_filter_length < 1024
    assert not columns["node_id"].has_dictionary_page
    assert columns["path"].has_dictionary_page

    def excluded(kind: str) -> set[bool]:
        probe = "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, 'node_id', ?)"
        ids = (stable_id("node", "a", kind, number) for number in range(200))
        return {duckdb.execute(probe, [path, node_id]).fetchall()[0][0] for node_id in ids}

    assert excluded("CLASS") == {False}
    assert True in excluded("FUNCTION")


def test_all_groups_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeanatomy.delta.write.data_files.SPLIT_BYTES", 1)
    monkeypatch.setattr("codeanatomy.delta.write.data_files.GROUP_BYTES", 3 * nodes("a", "CLASS").nbytes)
    batches = [nodes("a", "CLASS", "FUNCTION", rows=3, start=start) for start in range(0, 30, 3)]
    found = write_files(str(tmp_path), NODES, batches)
    assert len(found) == 2
    for file in found:
        rows = pq.ParquetFile(tmp_path / file.path)
        assert rows.metadata.num_row_groups > 4
        assert rows.read().column("bstart").to_pylist() == list(range(30))
        assert json.decode(file.stats)["maxValues"]["bstart"] == 29


@pytest.mark.parametrize("kind", ["a/b", "A B", "", "\u00c4", None])
def test_partition_values_are_plain_words(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ContractError, match="node_kind"):
        write_files(str(tmp_path), NODES, [nodes("a", kind)])


def test_partitioned_files_are_rows_of_the_table(store: Store) -> None:
    location = store.location(NODES.name)

    def adopted(run: str, repo_id: str, *batches: pa.RecordBatch) -> None:
        files = write_files(location, NODES, batches)
        commit_files(store, NODES.name, files, [repo_id], Commit(run), by="repo_id")

    def spark_rows(kind: str) -> list[dict[str, Any]]:
        kept = scan(store, NODES.name).rows.where(f"node_kind = '{kind}'")
        plan = kept._jdf.queryExecution().executedPlan().toString()
        # Files of other kinds are not opened.
        assert re.search(rf"PartitionFilters: \[.*node_kind#\d+ = {kind}", plan)
        return [row.asDict() for row in kept.collect()]

    first, other = nodes("a", "CLASS", "FUNCTION"), nodes("b", "CLASS")
    adopted("r1", "a", first)
    adopted("r2", "b", other)
    light = DeltaTable(location)
    assert light.metadata().partition_columns == ["node_kind"]
    assert in_order(light_table(store.root, NODES.name, NODES.column_names).to_pylist()) == in_order(
        first.to_pylist() + other.to_pylist()
    )
    pruned = light.file_uris(file_pruning_predicate=[("node_kind", "=", "CLASS")])
    assert len(pruned) == 2
    columns = ", ".join(NODES.column_names)
    by_path = f"SELECT {columns} FROM read_parquet(?, hive_partitioning = true)"
    found = duckdb.sql(by_path, params=[pruned]).to_arrow_table().to_pylist()
    classes = in_order(nodes("a", "CLASS").to_pylist() + other.to_pylist())
    assert in_order(found) == in_order(spark_rows("CLASS")) == classes
    # Rows of others stay where they are, and files of the new rows are written anew.
    newer = nodes("a", "CLASS", "MODULE", rows=1)
    adopted("r3", "a", newer)
    assert in_order(light_table(store.root, NODES.name, NODES.column_names).to_pylist()) == in_order(
        newer.to_pylist() + other.to_pylist()
    )
    adopted("r4", "b")
    assert spark_rows("CLASS") == nodes("a", "CLASS", rows=1).to_pylist()


def test_rules_hold_in_partitions(store: Store) -> None:
    location = store.location(NODES.name)
    broken = pa.RecordBatch.from_pylist([node("a", "CLASS", 1, bend=0)], schema=arrow_schema(NODES))
    files = write_files(location, NODES, [broken])
    with pytest.raises(ConstraintViolation, match=r"span_ordered[\s\S]*CLASS"):
        commit_files(store, NODES.name, files, ["a"], Commit("r1"), by="repo_id")
    for wrong in (structs.replace(files[0], partition={}), write_whole(location)):
        with pytest.raises(ContractError, match="node_kind"):
            commit_files(store, NODES.name, [wrong], ["a"], Commit("r1"), by="repo_id")
    assert not delta_log(store, NODES.name).exists()


def write_whole(location: str) -> DataFile:
    """A file that has the partition column, which Delta's files have not."""
    pq.write_table(pa.Table.from_batches([nodes("a", "CLASS")]), f"{location}/node_kind=CLASS/x.parquet")
    return DataFile("node_kind=CLASS/x.parquet", 1, 3, "{}", {"node_kind": "CLASS"})
