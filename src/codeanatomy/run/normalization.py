"""The normalize stage on Spark: what the witnesses said of a file, joined, and worked on where it lies.

    gathered = gather(inputs, partitions)          # lazy: rules run on the executors, rows packed by table
    commit_files(...)                              # seven tables from their columns, two by Spark
    add_evidence(...)                              # the evidence of those two, to that of the files

Inputs are the versions that this run has committed. The rules are our own Python over what the extract stage
has limited already, and bounded themselves; unlike parsers they run in Spark's worker, without a process
and a clock for each file. Tests: `tests/test_normalize.py`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TypeAlias

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame

from codeanatomy.normalize.diagnostics import diagnostics_norm_v1
from codeanatomy.normalize.evidence import EVIDENCE, normalize_evidence_v1
from codeanatomy.normalize.files import files_in, witness_files
from codeanatomy.normalize.rules import DIAGNOSTICS, FILE_TABLES, PACKED_TABLES, READS, packed_rows
from codeanatomy.normalize.span_errors import span_errors_v1
from codeanatomy.run.caching import held
from codeanatomy.run.inputs import FILES_PER_BATCH, SMALL, add_rows, file_tasks, input_rows, read_files
from codeanatomy.run.packing import (
    Worked,
    commit_all,
    packed_ddl,
    packed_row,
    replacements,
    table_rows,
    work_through,
)
from codeanatomy.run.state import Run
from codeanatomy.run.steps import NORMALIZE
from codeanatomy.storage.commit import replace_by_owner
from codeanatomy.storage.events import Committed
from codeanatomy.storage.session import isolated

# What the rules of single files read.
FILE_INPUTS = ("repo_files_v1", "bytecode_files_v1", "ast_files_v1", "libcst_files_v1")

# Rows of an input by its name; several tables ask for the same ones.
Read: TypeAlias = Callable[[str], DataFrame]


def normalize_stage(run: Run) -> None:
    """Turn what the witnesses said into flat facts, and commit them."""
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(FILES_PER_BATCH)}
    store = replace(run.store, spark=isolated(run.store.spark, settings))
    read = cache(partial(input_rows, run, store, NORMALIZE))
    gathered, done = gather({name: read(name) for name in FILE_INPUTS}, file_tasks(run, NORMALIZE))
    total = read_files(run, NORMALIZE)
    with held(run, NORMALIZE, gathered) as kept:
        worked = work_through(run, NORMALIZE, kept, lambda: f"{done.value:,}/{total:,} files")
        with run.timed("normalize_commit"):
            commit_files(run, read, kept, worked)
            add_evidence(run, read)


def gather(inputs: dict[str, DataFrame], partitions: int) -> tuple[DataFrame, Accumulator[int]]:
    """A frame with a row per file and a column per table, and a counter of the files that are done."""
    files = witness_files(**inputs, reads=READS, partitions=partitions)
    done = files.sparkSession.sparkContext.accumulator(0)

    def rules(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # No rule makes cycles, and looking for them in millions of rows takes a sixth of the time.
        gc.disable()
        try:
            for batch in batches:
                for file in files_in(batch):
                    streams, counts = packed_rows(file)
                    done.add(1)
                    yield packed_row(file.file_id, streams, {file.repo_id: counts})
        finally:
            gc.enable()

    return files.mapInArrow(rules, packed_ddl(PACKED_TABLES)), done


def commit_files(run: Run, read: Read, gathered: DataFrame, worked: Worked) -> None:
    """The tables that are made file by file, and those that Spark makes of whole tables."""

    def spans() -> Committed:
        return _replace(run, "span_errors_v1", span_errors_v1(**_inputs(run, read, "span_errors_v1")))

    def diagnostics() -> Committed:
        told = diagnostics_norm_v1(**_inputs(run, read, DIAGNOSTICS))
        ours = table_rows(gathered, DIAGNOSTICS, run.store.table(DIAGNOSTICS).columns)
        return _replace(run, DIAGNOSTICS, told.unionByName(ours))

    made = replacements(run, gathered, FILE_TABLES, worked)
    commit_all(run, NORMALIZE, {DIAGNOSTICS: diagnostics, **made, "span_errors_v1": spans})


def add_evidence(run: Run, read: Read) -> None:
    """The evidence of what Spark made, to that of the files."""
    names = ("repo_files_v1", "span_errors_v1", DIAGNOSTICS)
    if not any(run.committed[name].rows for name in names[1:]):
        return
    add_rows(
        run, NORMALIZE, EVIDENCE, normalize_evidence_v1(**{name: read(name) for name in names}), sequence=1
    )


def _replace(run: Run, name: str, rows: DataFrame) -> Committed:
    owners, commit = sorted(run.working(NORMALIZE)), run.commit(NORMALIZE)
    run.recount.add(name)
    # An exchange of its own: else one task would read and compare everything.
    few = rows.repartition(1)
    return replace_by_owner(run.store, name, few, owners, commit, by="repo_id", file_bytes=SMALL)


def _inputs(run: Run, read: Read, name: str) -> dict[str, DataFrame]:
    """The inputs that the catalogue declares for a table, by name."""
    return {each: read(each) for each in run.store.table(name).inputs}
