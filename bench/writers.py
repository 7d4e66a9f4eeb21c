"""What it costs to write a table: Spark's sort and writer beside Arrow files, on the rows of a lake.

    make bench-writers LAKE=lake
    PYTHONPATH=tests python bench/writers.py --lake lake --only cpg_nodes,cpg_props --rounds 1

The rows of a table are packed into pieces, as the passes of a build leave them, and cached by Spark before
anything is measured, so both ways begin with the same bytes. They run in turn, `--rounds` times, after a
first round that is not counted (the JVM compiles):

    Spark's way   unpack the pieces, exchange by ranges of the table's order, sort, Delta's writer, commit
                  (`delta.write.commit.append`: what a build does on an object store)
    Arrow files   the product's way on a local lake: tables in file order by the tasks that have their rows
                  (`pipeline.tasks.sinks`), the others by executors (`pipeline.executors.spark_tables`)

Processor seconds are those of the JVM, of all Python workers and of this process. Megabytes are those of the
data files. Each round writes to a lake of its own, which is removed. Printed is Markdown for docs/writers.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from processor import difference, processor_seconds
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, decode_texts, unpack_rows
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Committed
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.file_commits import commit_files, new_files
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.pipeline.executors.executor import TableWrite
from codeanatomy.pipeline.executors.sorted_tables import complete_rows, sample_rows
from codeanatomy.pipeline.executors.spark_tables import (
    PACKED_BYTES_PER_FILE_BYTE,
    files_by_table,
    plan_tables,
    written_files,
)
from codeanatomy.pipeline.tasks.graph_rows import COPIES, SAMPLED
from codeanatomy.pipeline.tasks.pieces import DDL, Piece, data_files, in_batches, row_pieces, to_batch
from codeanatomy.pipeline.tasks.sinks import Sink, TableFolder
from codeanatomy.spark.session import close_session, open_session

TABLES = (
    "relations_v1",
    "cpg_nodes",
    "cpg_edges",
    "cpg_edges_by_dst",
    "cpg_props",
    "py_bc_def_use_events_v1",
    "ast_files_v1",
)
# Stages whose tables executors write from pieces; tables of the others are written by the tasks themselves.
FROM_PIECES = ("graph",)
CORES = 2
# Files of pieces, so many tasks: as a pass has them.
TASKS = 4 * CORES
# Source files whose rows are together in a piece of a table with one row for a file.
NESTED_ROWS = 8
MB = 1024 * 1024


class Packed(NamedTuple):
    """The cached pieces of a table."""

    frame: DataFrame
    # Name of the pieces: that of the edges for copies of them.
    name: str
    rows: int
    bytes: int
    samples: pa.Table
    # Repository and key of each piece.
    keys: list[tuple[str, str]]


class Cost(NamedTuple):
    """What one way took."""

    processor: float
    seconds: float
    bytes: int


def ordered_batches(lake: str, name: str) -> list[pa.RecordBatch]:
    """The rows of a table in the order of files, a few at a time where a row is a whole file."""
    table = catalog.table(name)
    rows = light_table(lake, name, table.column_names).cast(arrow_schema(table))
    by_file = ["path"] if name == "cpg_edges" else [table.owner or "repo_id"]
    keys = list(dict.fromkeys(("repo_id", *by_file, *table.sort_keys)))
    if table.stage == "extract" and any(pa.types.is_nested(field.type) for field in rows.schema):
        # One by one: a column of all files together may be too long for one array.
        single = [batch.slice(at, 1) for batch in rows.to_batches() for at in range(batch.num_rows)]
        single.sort(key=lambda row: tuple(str(row.column(key)[0]) for key in keys[:2]))
        return [
            pa.concat_batches(single[start : start + NESTED_ROWS])
            for start in range(0, len(single), NESTED_ROWS)
        ]
    order = pc.sort_indices(rows, sort_keys=[(key, "ascending", "at_start") for key in keys])
    return list(rows.take(order).combine_chunks().to_batches())


def pieces_of(lake: str, name: str) -> Iterator[Piece]:
    """Pack the rows of a table; the number of a piece is its key, which is in the order of files."""
    for number, batch in enumerate(ordered_batches(lake, name)):
        repo_id = batch.column("repo_id")[0].as_py()
        yield from row_pieces(repo_id, "", name, batch, f"{number:06d}")


def pack(spark: SparkSession, lake: str, name: str, folder: Path) -> Packed:
    """Cache the pieces of a table, in a few files so that they are a few tasks."""
    made_of = COPIES.get(name, name)
    pieces = list(pieces_of(lake, made_of))
    folder.mkdir(parents=True)
    share = max(1, -(-len(pieces) // TASKS))
    for start in range(0, len(pieces), share):
        part = pa.Table.from_batches([to_batch(pieces[start : start + share])])
        pq.write_table(part, folder / f"{start:06d}.parquet", row_group_size=len(part), compression="none")
    frame = spark.read.schema(DDL).parquet(str(folder)).persist(StorageLevel.DISK_ONLY)
    frame.count()
    batches = [rows for piece in pieces for rows in unpack_rows(piece.data)]
    wanted = SAMPLED.get(made_of)
    samples = pa.table({})
    if wanted:
        samples = pa.Table.from_batches([sample_rows(rows, wanted) for rows in batches])
    total = sum(rows.num_rows for rows in batches)
    keys = [(piece.repo_id, piece.key) for piece in pieces]
    return Packed(frame, made_of, total, sum(len(piece.data) for piece in pieces), samples, keys)


def by_spark(store: Store, name: str, packed: Packed) -> Committed:
    """Spark's range exchange, sort and writer."""
    table = store.table(name)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        streams = (piece.data for piece in in_batches(batches))
        for rows in complete_rows(table, (rows for data in streams for rows in unpack_rows(data))):
            yield pa.RecordBatch.from_arrays([*map(decode_texts, rows.columns)], rows.schema.names)

    ddl = ", ".join(f"`{column.name}` {column.ddl}" for column in table.columns)
    size = packed.bytes // PACKED_BYTES_PER_FILE_BYTE
    return append(store, name, packed.frame.mapInArrow(rows, ddl), Commit("bench"), file_bytes=size)


def by_arrow(store: Store, name: str, packed: Packed) -> Committed:
    """The way of the product on a local lake."""
    folder = new_files(store, name)
    if store.table(name).stage in FROM_PIECES:
        write = TableWrite(folder, store.table(name), packed.name, is_copy=name in COPIES)
        sizes, samples = {packed.name: packed.bytes}, {packed.name: packed.samples}
        plan = plan_tables([write], sizes, {packed.name: packed.keys}, samples, CORES)
        files = files_by_table(written_files(packed.frame, plan).toArrow())[name]
    else:
        files = written_by_tasks(TableFolder(folder, store.table(name)), packed)
    return commit_files(store, name, files, (), Commit("bench"), by="repo_id")


def written_by_tasks(target: TableFolder, packed: Packed) -> list[DataFile]:
    """Each task writes what it has, as it has it."""
    name = target.table.name

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sink = Sink({name: target}).open()
        for piece in in_batches(batches):
            for rows in unpack_rows(piece.data):
                sink.add(name, rows)
        yield to_batch(list(sink.close()))

    made = packed.frame.mapInArrow(run, DDL).toArrow()
    return data_files(in_batches(made.to_batches())).get(name, [])


WAYS: dict[str, Callable[[Store, str, Packed], Committed]] = {"spark": by_spark, "arrow": by_arrow}


def measured(spark: SparkSession, way: str, name: str, packed: Packed, lake: Path) -> Cost:
    """Write a table once; what was written is removed."""
    store = Store(spark, str(lake))
    before, began = processor_seconds(os.getpid()), time.monotonic()
    done = WAYS[way](store, name, packed)
    seconds = time.monotonic() - began
    spent = difference(processor_seconds(os.getpid()), before)
    if done.rows != packed.rows:
        raise SystemExit(f"{name}: {done.rows:,} of {packed.rows:,} rows were written ({way})")
    size = sum(path.stat().st_size for path in Path(store.location(name)).rglob("*.parquet"))
    shutil.rmtree(lake)
    return Cost(sum(spent.values()), seconds, size)


def compare(spark: SparkSession, lake: str, name: str, rounds: int, work: Path) -> str:
    """Measure both ways in turn and return the line of the table."""
    talk(f"{name}: pack")
    packed = pack(spark, lake, name, work / "pieces" / name)
    costs: dict[str, list[Cost]] = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for way, measurements in costs.items():
            cost = measured(spark, way, name, packed, work / f"{way}-{name}-{number}")
            talk(f"{name}: {way} {cost.processor:.1f} processor seconds, {cost.seconds:.1f} s")
            if number or not rounds:
                measurements.append(cost)
    packed.frame.unpersist(blocking=True)
    shutil.rmtree(work / "pieces" / name)
    cells = [cell for way in WAYS for cell in figures(costs[way])]
    return f"| `{name}` | {packed.rows:,} | {' | '.join(cells)} |"


def figures(costs: Iterable[Cost]) -> tuple[str, str, str]:
    processor, seconds, size = (median(values) for values in zip(*costs, strict=True))
    return f"{processor:.1f}", f"{seconds:.1f}", f"{size / MB:.1f}"


def talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lake", required=True, help="the lake whose rows are written again")
    parser.add_argument("--only", default=",".join(TABLES), help="tables, divided by commas")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    options = {"spark.sql.files.openCostInBytes": "1g", "spark.sql.files.maxPartitionBytes": "1g"}
    spark = open_session(RuntimeProfile(cores=CORES, spark=options))
    print(
        "| table | rows | Spark's sort and writer: processor seconds | seconds | MB "
        "| Arrow files: processor seconds | seconds | MB |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as folder:
            for name in given.only.split(","):
                print(compare(spark, given.lake, name, given.rounds, Path(folder)), flush=True)
    finally:
        close_session(spark)


if __name__ == "__main__":
    main()
