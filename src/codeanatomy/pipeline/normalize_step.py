"""Run the normalize step on Spark: bring the evidence about a file together and apply the rules to it.

    gathered = gather(inputs, partitions)          # lazy: rules run on the executors, rows packed by table
    commit_all(..., replacements(...))             # every table from its column

Inputs are the versions that the run has pinned. The rules are our own Python over what the extract stage
has limited already, and bounded themselves; unlike parsers they run in Spark's worker, without a process
and a clock for each file. Tests: `tests/spark/test_normalize.py`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame

from codeanatomy.normalize.file_view import file_from_parts
from codeanatomy.normalize.rules import FILE_TABLES, READS, pack_file_rows
from codeanatomy.pipeline.bundles import SETTINGS, bundled, by_file
from codeanatomy.pipeline.caching import cache_frame
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.input_frames import witness_frames
from codeanatomy.pipeline.inputs import file_tasks, input_rows, read_files, step_session
from codeanatomy.pipeline.packed_rows import commit_all, packed_ddl, packed_row, replacements, work_through
from codeanatomy.plan.steps import NORMALIZE

# Tables that the rules read.
FILE_INPUTS = (
    "repo_files_v1",
    "file_line_index_v1",
    "ast_files_v1",
    "libcst_files_v1",
    "tree_sitter_files_v1",
    "bytecode_files_v1",
    "symtable_files_v1",
    "scip_index_v1",
)


def normalize_stage(run: Run) -> None:
    """Turn evidence into flat facts and commit them."""
    store = replace(run.spark_store, spark=step_session(run, NORMALIZE, SETTINGS))
    inputs = {name: input_rows(run, store, NORMALIZE, name) for name in FILE_INPUTS}
    gathered, done = gather(inputs, file_tasks(run, NORMALIZE))
    total = read_files(run, NORMALIZE)
    with cache_frame(run, NORMALIZE, gathered) as kept:
        worked = work_through(run, NORMALIZE, kept, lambda: f"{done.value:,}/{total:,} files")
        with run.timed("normalize_commit"):
            commit_all(run, NORMALIZE, replacements(run, kept, FILE_TABLES, worked))


def gather(inputs: dict[str, DataFrame], partitions: int) -> tuple[DataFrame, Accumulator[int]]:
    """A frame with a row per file and a column per table, and a counter of the files that are done."""
    bundles = bundled(witness_frames(**inputs, reads=READS), partitions)
    done = bundles.sparkSession.sparkContext.accumulator(0)

    def rules(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # No rule makes cycles, and looking for them in millions of rows takes a sixth of the time.
        gc.disable()
        try:
            files = by_file(batches)
            for file_id in sorted(files):
                file = file_from_parts(file_id, files.pop(file_id))
                streams, counts = pack_file_rows(file)
                if file.bytecode:
                    done.add(1)
                # Most files that are not read give no rows.
                if any(counts.values()):
                    yield packed_row(file.repo_id, file.file_id, streams, {file.repo_id: counts})
        finally:
            gc.enable()

    return bundles.mapInArrow(rules, packed_ddl(FILE_TABLES)), done
