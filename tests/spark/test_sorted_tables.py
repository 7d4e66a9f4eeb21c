"""Tables in an order that is not that of the files: sorted by executors, in one range or in many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.executors.executor import TableWrite
from codeanatomy.pipeline.executors.sorted_tables import (
    choose_cuts,
    range_keys,
    sample_rows,
    split_rows,
)
from codeanatomy.pipeline.executors.spark_tables import (
    FEW_BYTES,
    TablePlan,
    TablesPlan,
    files_by_table,
    is_in_piece_order,
    plan_tables,
    written_files,
)
from codeanatomy.pipeline.tasks.pieces import DDL, Piece, to_batch

EDGES, BY_SRC, BY_DST = map(catalog.table, ("cpg_edges", "cpg_edges_by_src", "cpg_edges_by_dst"))
PROPS, PROPS_MAP = catalog.table("cpg_props"), catalog.table("cpg_props_map")
KINDS = ("AST_CHILD", "CALLS", "REFERENCES")

Row = dict[str, Any]
# By repository and path, the rows of a source file.
Files = dict[tuple[str, str], list[Row]]


def edge(number: int, repo_id: str, path: str) -> Row:
    return {
        **dict.fromkeys(EDGES.column_names),
        "repo_id": repo_id,
        "edge_kind": KINDS[number % 3],
        "src_node_id": stable_id("node", repo_id, path, number // 2),
        # One that many edges lead to.
        "dst_node_id": stable_id("node", repo_id, "hub" if number % 4 else str(number)),
        "repeat": number,
        "owner_file_id": file_id(repo_id, path),
        "path": path,
        "bstart": number,
        "bend": number + 1,
        "origin": "ast",
        "confidence": 1.0,
        "rule_name": "made_up",
    }


def edges(files: int, rows: int, repositories: Sequence[str] = ("r",)) -> Files:
    """The edges of files, each file in the order of the table."""
    return {
        (repo_id, path): ordered(EDGES, [edge(number, repo_id, path) for number in range(rows)])
        for path in (f"m{number}.py" for number in range(files))
        for repo_id in repositories
    }


def ordered(table: Table, rows: Sequence[Row]) -> list[Row]:
    """As Spark orders them: null first, text by its bytes."""

    def key(row: Row) -> list[tuple[bool, Any]]:
        cells = (row[name] for name in table.sort_keys)
        return [(cell is not None, cell.encode() if isinstance(cell, str) else cell or 0) for cell in cells]

    return sorted(rows, key=key)


def stream(table: Table, rows: Sequence[Row], size: int = 7) -> bytes:
    """Rows as a packed stream of several batches."""
    sink = pa.BufferOutputStream()
    schema = arrow_schema(table)
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
        for start in range(0, len(rows), size):
            out.write_batch(pa.RecordBatch.from_pylist(rows[start : start + size], schema=schema))
    return bytes(sink.getvalue())


def frame(spark: SparkSession, table: Table, files: Files, tasks: int = 3) -> DataFrame:
    """Pieces of a table: one per source file, with its path as the key."""
    pieces = [
        Piece(repo_id, "", path, table.name, 0, 1, stream(table, rows))
        for (repo_id, path), rows in files.items()
    ]
    return spark.createDataFrame(to_batch(pieces).to_pylist(), DDL).repartition(tasks, "key")


def samples(table: Table, rows: Sequence[Row], step: int) -> pa.Table:
    """Keys of every so many rows."""
    batch = pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(table))
    return pa.Table.from_batches([sample_rows(batch, range_keys(table, batch.schema.names), step)])


def write_ranges(
    pieces: DataFrame, table: Table, folder: Path, files: int, ranges: int, keys: pa.Table
) -> list[DataFile]:
    """Write a table that is not in the order of its pieces."""
    cuts = choose_cuts(keys, table, files * ranges)
    name = EDGES.name if table is BY_DST else table.name
    write = TableWrite(NewFiles(str(folder)), table, name, is_copy=table is BY_DST)
    plan = TablePlan(write, (), tuple(cuts), range_keys(table, keys.column_names), tuple(range(files)))
    made = written_files(pieces, TablesPlan((plan,), files)).toArrow()
    return files_by_table(made).get(table.name, [])


def read(folder: Path, table: Table, file: DataFile) -> list[Row]:
    """The rows of a file, in its order."""
    rows = pq.ParquetFile(folder / file.path).read().to_pylist()
    return [{name: {**row, **file.partition}[name] for name in table.column_names} for row in rows]


def all_rows(files: Files) -> list[Row]:
    return [row for rows in files.values() for row in rows]


@pytest.mark.parametrize(("files", "ranges"), [(1, 5), (3, 2)])
def test_rows_are_sorted_over_all_files(spark: SparkSession, tmp_path: Path, files: int, ranges: int) -> None:
    made = edges(3, 40, ("c", "a", "b"))
    keys = samples(BY_DST, all_rows(made), 5)
    found = write_ranges(frame(spark, EDGES, made), BY_DST, tmp_path, files, ranges, keys)
    parts = [read(tmp_path, BY_DST, file) for file in found]
    parts.sort(key=lambda part: [part[0][name] for name in BY_DST.sort_keys])
    # In each file and from file to file, although one node is where most edges lead to.
    assert [row for part in parts for row in part] == ordered(BY_DST, all_rows(made))
    assert len(parts) == files
    assert files == 1 or max(map(len, parts)) < 0.6 * 9 * 40
    # Most files hold rows of one repository or of two.
    assert sum(len({row["repo_id"] for row in part}) for part in parts) <= 3 + files - 1


def prop(number: int, kind: str, key: str) -> Row:
    return {
        **dict.fromkeys(PROPS.column_names),
        "repo_id": "r",
        "entity_kind": kind,
        "entity_id": stable_id("edge" if kind == "edge" else "node", number),
        "node_kind": None if kind == "edge" else "CLASS",
        "prop_key": key,
        "value_type": "int",
        "value_int": number,
    }


def test_partitions_are_sorted_each(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        prop(number, kind, key)
        for number in range(60)
        for kind in ("node", "edge")
        for key in ("a", "\u00e9", "\uffee", "\U0001f600")
    ]
    made = {("r", f"m{start}.py"): rows[start : start + 50] for start in range(0, len(rows), 50)}
    found = write_ranges(frame(spark, PROPS, made), PROPS, tmp_path, 3, 2, samples(PROPS, rows, 7))
    assert {file.partition["entity_kind"] for file in found} == {"node", "edge"}
    parts = [read(tmp_path, PROPS, file) for file in found]
    key = PROPS.sort_keys
    parts.sort(key=lambda part: [part[0][name].encode() for name in key])
    assert [row for part in parts for row in part] == ordered(PROPS, rows)


def test_nested_rows_and_none(spark: SparkSession, tmp_path: Path) -> None:
    value = {
        **dict.fromkeys(("value_string", "value_float", "value_bool", "value_json")),
        "value_type": "int",
    }
    made = {
        ("r", f"m{number}.py"): [
            {
                **{name: prop(number, "node", "a")[name] for name in PROPS_MAP.column_names[:-1]},
                "props": [{"prop_key": "a", "value_int": number, **value}] * (number % 3),
            }
        ]
        for number in range(8)
    }
    keys = samples(PROPS_MAP, all_rows(made), 2)
    (file,) = write_ranges(frame(spark, PROPS_MAP, made), PROPS_MAP, tmp_path, 1, 1, keys)
    assert read(tmp_path, PROPS_MAP, file) == ordered(PROPS_MAP, all_rows(made))
    empty = frame(spark, PROPS_MAP, {("r", "m.py"): []})
    assert write_ranges(empty, PROPS_MAP, tmp_path, 1, 1, keys) == []
    assert write_ranges(empty, PROPS_MAP, tmp_path, 2, 2, keys) == []


@pytest.mark.parametrize("ranges", [2, 5, 40])
def test_ranges_agree_with_sorting(ranges: int) -> None:
    texts = [
        None,
        "",
        "a",
        "a\u00e9",
        "b",
        "\uffee",
        "\U0001f600",
        "call:" + "k" * 20,
        "call:" + "k" * 19 + "l",
    ]
    cells = (
        [("x", text) for text in texts] + [(None, text) for text in texts] + [("xx", text) for text in texts]
    )
    rows = [
        {**prop(number, "node", "a"), "repo_id": repo_id, "entity_id": text}
        for number, (repo_id, text) in enumerate(cells * 3)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(PROPS))
    keys = range_keys(PROPS, batch.schema.names)
    cuts = choose_cuts(samples(PROPS, rows, 1), PROPS, ranges)
    pieces = dict(split_rows(batch, keys, cuts))
    assert sum(piece.num_rows for piece in pieces.values()) == len(rows)
    assert len(pieces) > 1
    # Each range is before the next, so the ranges sorted one by one are the rows sorted at once.
    by_range = [row for number in sorted(pieces) for row in ordered(PROPS, pieces[number].to_pylist())]
    assert by_range == ordered(PROPS, rows)


def test_which_tables_have_the_order_of_their_pieces() -> None:
    orders = {table.name for table in catalog.TABLES if table.stage == "graph" and is_in_piece_order(table)}
    assert orders == {"cpg_nodes", "cpg_edges", "graph_shared_v1"}
    by_file = [table for table in catalog.TABLES if table.stage in ("extract", "normalize", "relate")]
    assert {table.name for table in by_file if not is_in_piece_order(table)} == {"scip_index_v1"}
    # A user may have chosen another order.
    for chosen in ((), ("repo_id",), ("path",), ("file_id", "repo_id"), ("repo_id", "bstart")):
        assert not is_in_piece_order(replace(EDGES, write=replace(EDGES.write, zorder_by=chosen)))


def test_the_order_of_the_pieces_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    made = edges(4, 20, ("c", "a", "b"))
    pieces = frame(spark, EDGES, made)
    target = EDGES.write.target_file_size
    keys = sorted(made)
    write = TableWrite(NewFiles(str(tmp_path)), EDGES, EDGES.name)
    for size, files in ((1, 1), (6 * target, 3)):
        plan = plan_tables([write], {EDGES.name: size}, {EDGES.name: keys}, {}, 2)
        assert (plan.tables[0].is_in_piece_order, len(plan.tables[0].tasks)) == (True, files)
        found = files_by_table(written_files(pieces, plan).toArrow())[EDGES.name]
        for kind in KINDS:
            own = [file for file in found if file.partition["edge_kind"] == kind]
            assert 1 <= len(own) <= files
            parts = [read(tmp_path, EDGES, file) for file in own]
            parts.sort(key=lambda part: (part[0]["repo_id"], part[0]["path"]))
            assert [row for part in parts for row in part] == ordered(
                EDGES, [row for row in all_rows(made) if row["edge_kind"] == kind]
            )


@pytest.mark.parametrize("size", [1_000, FEW_BYTES + 1], ids=["together", "apart"])
def test_tables_and_their_copies_are_written_from_the_same_pieces(
    spark: SparkSession, tmp_path: Path, size: int
) -> None:
    made = edges(4, 30)
    writes = [
        TableWrite(NewFiles(str(tmp_path / table.name)), table, EDGES.name, is_copy=table is not EDGES)
        for table in (EDGES, BY_SRC, BY_DST)
    ]
    keys = {EDGES.name: samples(BY_SRC, all_rows(made), 5)}
    plan = plan_tables(writes, {EDGES.name: size}, {}, keys, 2)
    # Small tables share tasks.
    assert plan.tasks == (2 if size < FEW_BYTES else 3)
    found = files_by_table(written_files(frame(spark, EDGES, made), plan).toArrow())
    for table in (BY_SRC, BY_DST):
        (file,) = found[table.name]
        assert read(tmp_path / table.name, table, file) == ordered(table, all_rows(made))
    assert len(found[EDGES.name]) == len(KINDS)
    for file in found[EDGES.name]:
        kind = file.partition["edge_kind"]
        own = [row for row in all_rows(made) if row["edge_kind"] == kind]
        assert read(tmp_path / EDGES.name, EDGES, file) == ordered(EDGES, own)
    assert plan_tables(writes, {}, {}, keys, 2) == TablesPlan((), 0)
