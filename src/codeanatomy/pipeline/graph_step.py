"""Run the graph step on Spark: nodes, edges and properties of each file, and those of the repository.

    per_file, done = graph_files(inputs, "default", tasks) # a row per file: its rows, packed by table
    shared = merge_repositories(per_file)                  # a row per repository: packages, types, ...

Both go into the same tables, the second without an owner. The copies of the edges are the same rows in
another order, written from the same packed streams. Tests: `tests/spark/test_graph.py`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

import pyarrow as pa
from pyspark import Accumulator, StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from codeanatomy.arrow import pack_rows, unpack_rows
from codeanatomy.catalog.kinds import Profile
from codeanatomy.catalog.tables.extract import DELIBERATE_SKIPS
from codeanatomy.graph.file_view import READS
from codeanatomy.graph.merge import EMPTY_SHARED, SHARED, merge_shared_rows, shared_row, unpack_shared_rows
from codeanatomy.graph.rows import EDGES, TABLES, file_rows
from codeanatomy.pipeline.bundles import FILES, SETTINGS, bundled, files_in, selected
from codeanatomy.pipeline.caching import cache_frame
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.inputs import file_tasks, input_rows, read_files, step_session
from codeanatomy.pipeline.key_collisions import KEYS, pack_keys, refuse_equal_keys
from codeanatomy.pipeline.packed_rows import (
    PATH,
    REPO,
    commit_all,
    packed_ddl,
    packed_row,
    replacements,
    work_through,
)
from codeanatomy.plan.steps import GRAPH

# Copies of the edges in another order.
COPIES = {"cpg_edges_by_src": EDGES, "cpg_edges_by_dst": EDGES}


def graph_stage(run: Run) -> None:
    """Make the graph from the tables of the other steps and commit it."""
    store = replace(run.spark_store, spark=step_session(run, GRAPH, SETTINGS))
    inputs = {name: input_rows(run, store, GRAPH, name) for name in READS}
    frame, done = graph_files(inputs, run.request.profile, file_tasks(run, GRAPH))
    total = read_files(run, GRAPH)
    with cache_frame(run, GRAPH, frame) as per_file, _kept(merge_repositories(per_file)) as shared:
        gathered = per_file.drop(KEYS).unionByName(shared)
        worked = work_through(run, GRAPH, gathered, lambda: f"{min(done.value, total):,}/{total:,} files")
        refuse_equal_keys(run, per_file)
        with run.timed("graph_commit"):
            names = (*TABLES, *COPIES, SHARED)
            commit_all(run, GRAPH, replacements(run, gathered, names, worked, COPIES))


@contextmanager
def _kept(shared: DataFrame) -> Iterator[DataFrame]:
    """Cache the rows of the repositories, which are few, for all tables."""
    kept = shared.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept.unpersist()


def graph_files(
    inputs: dict[str, DataFrame], profile: Profile, tasks: int
) -> tuple[DataFrame, Accumulator[int]]:
    """Return a frame with a row per file and a column per table, and a counter of finished files."""
    frames = {
        name: selected(name, _wanted(name, rows), instructions=profile == "full")
        for name, rows in inputs.items()
    }
    bundles = bundled(frames, tasks)
    done = bundles.sparkSession.sparkContext.accumulator(0)

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # No rule makes cycles, and looking for them among millions of values takes long.
        gc.disable()
        try:
            for file in files_in(batches):
                made = file_rows(file, profile)
                streams, counts = _streams({**made.tables, SHARED: shared_row(file, made.shared)})
                done.add(1)
                counted = {file.repo_id: counts}
                streams[KEYS] = pack_keys(file.repo_id, file.path, made.keys)
                yield packed_row(file.repo_id, file.file_id, streams, counted, **{PATH: file.path})
        finally:
            gc.enable()

    return bundles.mapInArrow(make, packed_ddl((*TABLES, SHARED, KEYS), PATH)), done


def merge_repositories(per_file: DataFrame) -> DataFrame:
    """Return a frame with a row per repository and a column per table: rows that belong to no single file."""

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in zip(*batch.columns, strict=True))
        for repo_id, files in groupby(rows, key=lambda row: row[0].as_py()):
            batches_of_repo = (row for _, stream in files for row in unpack_rows(stream.as_buffer()))
            parts = (part for row in batches_of_repo for part in unpack_shared_rows(row))
            streams, counts = _streams({**merge_shared_rows(parts), SHARED: EMPTY_SHARED})
            yield packed_row(repo_id, None, streams, {repo_id: counts}, **{PATH: None})

    ordered = per_file.select(REPO, SHARED).repartition(REPO).sortWithinPartitions(REPO)
    return ordered.mapInArrow(merge, packed_ddl((*TABLES, SHARED), PATH))


def _streams(tables: Mapping[str, pa.RecordBatch]) -> tuple[dict[str, bytes], dict[str, int]]:
    """Pack the rows by table and count them, copies included."""
    counts = {name: rows.num_rows for name, rows in tables.items()}
    copied = {copy: counts[name] for copy, name in COPIES.items()}
    return {name: pack_rows(tables[name]) for name in (*TABLES, SHARED)}, {**counts, **copied}


def _wanted(name: str, rows: DataFrame) -> DataFrame:
    if name == FILES:
        chosen = F.col("skipped_reason").isin(list(DELIBERATE_SKIPS))
        return rows.where(F.col("skipped_reason").isNull() | ~chosen)
    if name == "scip_index_v1":
        return rows.where("row_kind = 'document' AND file_id IS NOT NULL")
    return rows
