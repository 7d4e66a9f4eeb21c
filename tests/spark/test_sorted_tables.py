"""Tables in an order that is not that of the files: sorted by executors, in one range or in many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.store import Store
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline import packed_rows as packing
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.packed_rows import (
    FIRST,
    PATH,
    REPO,
    StepResult,
    count,
    frame_order,
    packed_ddl,
    packed_row,
    replacements,
    write_ordered,
)
from codeanatomy.pipeline.sorted_tables import sort_keys, split_rows, write_ranges, write_sorted

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
        cells = (row[name] for name in sort_keys(table))
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
    """The frame of a stage: a row per source file."""
    rows = [
        packed_row(
            repo_id,
            file_id(repo_id, path),
            {table.name: stream(table, rows)},
            {repo_id: {table.name: len(rows)}},
            path=path,
        )
        for (repo_id, path), rows in files.items()
    ]
    schema = packed_ddl((table.name,), PATH)
    found = pa.Table.from_batches(rows).to_pylist()
    return spark.createDataFrame(found, schema).repartition(tasks, FIRST)


def read(folder: Path, table: Table, file: DataFile) -> list[Row]:
    """The rows of a file, in its order."""
    rows = pq.ParquetFile(folder / file.path).read().to_pylist()
    return [{name: {**row, **file.partition}[name] for name in table.column_names} for row in rows]


def all_rows(files: Files) -> list[Row]:
    return [row for rows in files.values() for row in rows]


@pytest.mark.parametrize(("files", "ranges"), [(1, 5), (3, 2)])
def test_rows_are_sorted_over_all_files(spark: SparkSession, tmp_path: Path, files: int, ranges: int) -> None:
    made = edges(3, 40, ("c", "a", "b"))
    streams = frame(spark, EDGES, made).select(EDGES.name)
    found = write_ranges(streams, BY_DST, str(tmp_path), files, ranges, step=500)
    parts = [read(tmp_path, BY_DST, file) for file in found]
    parts.sort(key=lambda part: [part[0][name] for name in sort_keys(BY_DST)])
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
    found = write_ranges(frame(spark, PROPS, made).select(PROPS.name), PROPS, str(tmp_path), 3, 2, step=300)
    assert {file.partition["entity_kind"] for file in found} == {"node", "edge"}
    parts = [read(tmp_path, PROPS, file) for file in found]
    key = sort_keys(PROPS)
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
    streams = frame(spark, PROPS_MAP, made).select(PROPS_MAP.name)
    (file,) = write_sorted(streams, PROPS_MAP, str(tmp_path), 1)
    assert read(tmp_path, PROPS_MAP, file) == ordered(PROPS_MAP, all_rows(made))
    empty = frame(spark, PROPS_MAP, {("r", "m.py"): []}).select(PROPS_MAP.name)
    assert write_sorted(empty, PROPS_MAP, str(tmp_path), 1) == []
    assert write_ranges(empty, PROPS_MAP, str(tmp_path), 2, 2, step=300) == []


def test_ranges_agree_with_sorting() -> None:
    cells = [None, "", "a", "b", "\u00e9", "\uffee", "\U0001f600"]
    rows = [{"text": text, "number": number} for text in cells for number in (None, 1, 2)]
    batch = pa.RecordBatch.from_pylist(rows[::2] + rows[1::2])
    cuts = [("", None), ("a", 2), ("\u00e9", 1), ("\uffee", None), ("\U0001f600", 2)]
    pieces = dict(split_rows(batch, ("text", "number"), cuts))

    def ordinal(row: Row) -> int:
        return rows.index(row)

    starts = [0, *(ordinal({"text": text, "number": number}) for text, number in cuts), len(rows)]
    for place, (start, end) in enumerate(pairwise(starts)):
        assert sorted(pieces[place].to_pylist(), key=ordinal) == rows[start:end]


def test_which_tables_have_the_order_of_the_frame() -> None:
    orders = {table.name: frame_order(table) for table in catalog.TABLES if table.stage == "graph"}
    assert orders == {
        "cpg_nodes": (REPO, FIRST),
        "cpg_edges": (REPO, PATH),
        "cpg_props": (),
        "cpg_props_map": (),
        "cpg_edges_by_src": (),
        "cpg_edges_by_dst": (),
        "graph_shared_v1": (REPO, FIRST),
    }
    by_file = [table for table in catalog.TABLES if table.stage in ("extract", "normalize", "relate")]
    assert {table.name for table in by_file if frame_order(table) != (REPO, FIRST)} == {"scip_index_v1"}
    # A user may have chosen another order.
    for chosen in ((), ("repo_id",), ("path",), ("file_id", "repo_id"), ("repo_id", "bstart")):
        assert frame_order(replace(EDGES, write=replace(EDGES.write, zorder_by=chosen))) == ()


def test_the_order_of_the_frame_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    made = edges(4, 20, ("c", "a", "b"))
    gathered = frame(spark, EDGES, made)
    target = EDGES.write.target_file_size
    for size, files in ((1, 1), (3 * target, 3)):
        found = write_ordered(gathered, EDGES.name, EDGES, str(tmp_path), size, frame_order(EDGES))
        for kind in KINDS:
            own = [file for file in found if file.partition["edge_kind"] == kind]
            assert 1 <= len(own) <= files
            parts = [read(tmp_path, EDGES, file) for file in own]
            parts.sort(key=lambda part: (part[0]["repo_id"], part[0]["path"]))
            assert [row for part in parts for row in part] == ordered(
                EDGES, [row for row in all_rows(made) if row["edge_kind"] == kind]
            )


def in_file(table: Table, path: Path) -> list[dict[str, Any]]:
    """The rows of a file, with the values that its folders have."""
    folders = [part.split("=") for part in path.parts if "=" in part]
    partition = {name: value for name, value in folders if name in table.write.partition_by}
    return [row | partition for row in pq.ParquetFile(path).read().to_pylist()]


@pytest.mark.parametrize("few_bytes", [packing.FEW_BYTES, 0], ids=["together", "apart"])
def test_tables_and_their_copies_are_committed_from_a_column(
    spark: SparkSession, make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch, few_bytes: int
) -> None:
    monkeypatch.setattr(packing, "FEW_BYTES", few_bytes)
    store = make_store()
    gathered = frame(spark, EDGES, edges(4, 30))
    counts, sizes = count(gathered)
    run = cast(
        "Run",
        SimpleNamespace(store=store, spark=spark, working=lambda _: ["r"], commit=Commit, check=lambda: None),
    )
    copies = {BY_SRC.name: EDGES.name, BY_DST.name: EDGES.name}

    def committed(run_id: str, rows: int) -> dict[str, list[list[dict[str, Any]]]]:
        run.commit = lambda _: Commit(run_id)  # type: ignore[method-assign, assignment]
        worked = StepResult({EDGES.name: rows}, sizes)
        found = {}
        for name, commit in replacements(run, gathered, (EDGES.name, *copies), worked, copies).items():
            assert commit().rows == rows
            uris = DeltaTable(store.location(name)).file_uris()
            found[name] = [in_file(store.table(name), Path(uri)) for uri in uris]
        return found

    assert counts["r"][EDGES.name] == 120
    files = committed("r1", 120)
    made = all_rows(edges(4, 30))
    for table in (BY_SRC, BY_DST):
        assert files[table.name] == [ordered(table, made)]
    assert len(files[EDGES.name]) == len(KINDS)
    for kept in files[EDGES.name]:
        assert kept == ordered(EDGES, [row for row in made if row["edge_kind"] == kept[0]["edge_kind"]])
    assert committed("r2", 0) == {name: [] for name in (EDGES.name, *copies)}
