"""Read the inputs of the steps after extract, and decide into how many tasks they are cut.

    input_rows(run, store, "relate", "ast_files_v1")                  # cut into file_tasks(run, "relate")

Inputs are the rows of the repositories that a step works on, at the versions that the run has pinned. A table
that two steps of a run write to is replaced by the first and appended to by the second.

Tests: `tests/spark/test_normalize.py`, `tests/spark/test_relate.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from codeanatomy.delta.read.predicate import InList, Predicate
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.pipeline.context import Run
from codeanatomy.spark.session import clone_session

# Files that a Python worker holds at a time: one of 8 MB is a hundred times that as objects.
FILES_PER_BATCH = 16
FILES_PER_TASK = 256
TASKS_PER_CORE = 4
# Bytes of sources whose rows are so few that compiling code for them takes longer than it spares: in a build
# of `requests` (0.2 MB) it was a sixth of the processor time of the JVM.
FEW_BYTES = 4 * 1024 * 1024
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def step_session(run: Run, step: str, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """Return a session for a step, with its own settings."""
    entries = (entry for listing in run.working(step).values() for entry in listing.entries)
    is_small = sum(entry.size_bytes or 0 for entry in entries) <= FEW_BYTES
    return clone_session(run.spark, {**settings, **(INTERPRETED if is_small else {})})


def input_rows(run: Run, store: Store, step: str, name: str) -> DataFrame:
    """Scan the rows of the repositories that a step works on, at the pinned version."""
    return scan_rows(run, store, name, run.working(step))


def scan_rows(run: Run, store: Store, name: str, repo_ids: Iterable[str]) -> DataFrame:
    """Scan the rows of repositories at the pinned version."""
    table = store.table(name)
    wanted = Predicate.all_of(table, InList.of(table.column("repo_id"), repo_ids))
    return scan(store, name, run.pins[name], where=wanted).rows


def file_tasks(run: Run, step: str) -> int:
    """Return the number of tasks for the files of a step."""
    options = run.settings.extract
    if options.partitions is not None:
        return options.partitions
    cores = run.spark.sparkContext.defaultParallelism
    return max(TASKS_PER_CORE * cores, math.ceil(read_files(run, step) / FILES_PER_TASK))


def read_files(run: Run, step: str) -> int:
    """Count the files that the extractors have read, of the repositories that a step works on."""
    return sum(run.counts[repo_id]["ast_files_v1"] for repo_id in run.working(step) if repo_id in run.counts)
