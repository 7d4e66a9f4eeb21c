"""Run the relate step on Spark: compile files to programs in parallel, then solve each repository as a whole.

    programs = compile_programs(inputs, partitions) # a row per file: its program, packed
    gathered = solved(programs, repositories)       # a row per file: its relations, packed by table

The first step is spread over all cores. The second needs all files of a repository in one place, so there
repositories run side by side; one that is large takes one core for as long as that takes. Measured on two
cores: django's 885 files in the first step as long as in the second, so a solver spread over executors would
at best halve the second, and would shuffle every set of objects on each of some dozen rounds.

Tests: `tests/spark/test_relate.py`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import pyarrow as pa
from msgspec import msgpack
from pyspark import Accumulator
from pyspark.sql import DataFrame

from codeanatomy.arrow import pack_rows
from codeanatomy.pipeline.caching import cache_frame
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.input_frames import witnessed_files
from codeanatomy.pipeline.inputs import FILES_PER_BATCH, file_tasks, input_rows, read_files, step_session
from codeanatomy.pipeline.packed_rows import (
    append_packed,
    commit_all,
    packed_ddl,
    packed_row,
    replacements,
    work_through,
)
from codeanatomy.plan.steps import RELATE
from codeanatomy.relate.compile.file_program import compile_file
from codeanatomy.relate.file_view import files_in
from codeanatomy.relate.program import Program
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS, PROGRAMS, TABLES, SolvedRepository, program_row

INPUTS = (
    "ast_files_v1",
    "libcst_files_v1",
    "symtable_files_v1",
    "scip_index_v1",
    "type_checker_files_v1",
)
PROGRAMS_DDL = "repo_id string, path string, program binary"
# Most tasks per core; with more repositories, several share a task.
TASKS_PER_CORE = 8
# Second commit of the table in a run; the first is that of the normalize stage.
SEQUENCE = 2


def relate_stage(run: Run) -> None:
    """Resolve names, imports, classes, values and calls, and commit the relations."""
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(FILES_PER_BATCH)}
    store = replace(run.spark_store, spark=step_session(run, RELATE, settings))
    inputs = {name: input_rows(run, store, RELATE, name) for name in INPUTS}
    programs, done = compile_programs(inputs, file_tasks(run, RELATE))
    gathered = solved(programs, len(run.working(RELATE)))
    total = read_files(run, RELATE)
    with cache_frame(run, RELATE, gathered) as kept:
        worked = work_through(run, RELATE, kept, lambda: f"{done.value:,}/{total:,} files")
        with run.timed("relate_commit"):
            commit_all(run, RELATE, replacements(run, kept, (RELATIONS, PROGRAMS), worked))
            if worked.rows[DIAGNOSTICS]:
                for name in run.store.table(RELATIONS).adds_to:
                    run.wait_for(run.store.table(name).stage)
                added = append_packed(run, kept, DIAGNOSTICS, worked, run.commit(RELATE, SEQUENCE))
                run.done(RELATE, DIAGNOSTICS, added)


def compile_programs(inputs: dict[str, DataFrame], partitions: int) -> tuple[DataFrame, Accumulator[int]]:
    """Return a frame with the program of each file, and a counter of finished files."""
    files = witnessed_files(**inputs, partitions=partitions)
    done = files.sparkSession.sparkContext.accumulator(0)

    def programs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in files_in(batch):
                encoded = msgpack.encode(compile_file(file))
                done.add(1)
                yield pa.RecordBatch.from_pydict(
                    {
                        "repo_id": pa.array([file.repo_id]),
                        "path": pa.array([file.path]),
                        "program": pa.array([encoded], pa.binary()),
                    }
                )

    return files.mapInArrow(programs, PROGRAMS_DDL), done


def solved(programs: DataFrame, repositories: int) -> DataFrame:
    """A frame with a row per file and a column per table."""

    def solve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # The solver keeps millions of objects and makes no garbage to speak of.
        gc.disable()
        try:
            rows = (row for batch in batches for row in zip(batch.column(0), batch.column(2), strict=True))
            for _, members in groupby(rows, key=lambda row: row[0].as_py()):
                files = [msgpack.decode(row[1].as_buffer(), type=Program) for row in members]
                solved = SolvedRepository(files)
                for number, program in enumerate(solved.programs):
                    related = solved.file(number)
                    made = {**related.tables(), PROGRAMS: program_row(program, related.digest())}
                    counts = {name: rows.num_rows for name, rows in made.items()}
                    streams = {name: pack_rows(made[name]) for name in (*TABLES, PROGRAMS)}
                    yield packed_row(program.repo_id, program.file_id, streams, {program.repo_id: counts})
                gc.collect()
        finally:
            gc.enable()

    cores = programs.sparkSession.sparkContext.defaultParallelism
    tasks = max(1, min(repositories, TASKS_PER_CORE * cores))
    together = programs.repartition(tasks, "repo_id").sortWithinPartitions("repo_id", "path")
    return together.mapInArrow(solve, packed_ddl((*TABLES, PROGRAMS)))
