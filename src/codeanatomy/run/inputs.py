"""What stages after the first read, into how many tasks it is cut, and how they add to a table.

    input_rows(run, store, "ast_files_v1")                     # to be cut into file_tasks(run)
    add_rows(run, "diagnostics_norm_v1", few, sequence=2)      # to what the stage before has written

Inputs are the rows of the run's repositories at the versions that this run has committed. A table that two
stages of a run write to is replaced by the first and appended to by the second.

Tests: `tests/test_normalize.py`, `tests/test_relate.py`.
"""

from __future__ import annotations

import math

from msgspec import structs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from codeanatomy.run.state import Run
from codeanatomy.storage.commit import append
from codeanatomy.storage.scan import scan
from codeanatomy.storage.stamps import Commit
from codeanatomy.storage.store import Store

# Files that a Python worker holds at a time: one of 8 MB is a hundred times that as objects.
FILES_PER_BATCH = 16
FILES_PER_TASK = 256
TASKS_PER_CORE = 4
# Bytes of which it is enough to know that they are few.
SMALL = 1


def input_rows(run: Run, store: Store, name: str) -> DataFrame:
    """The rows of the run's repositories, at the version the run has committed."""
    rows = scan(store, name, run.committed[name].version).rows
    return rows.where(F.col("repo_id").isin(sorted(run.listings)))


def file_tasks(run: Run) -> int:
    """Into how many tasks the files are cut."""
    options = run.settings.extract
    if options.partitions is not None:
        return options.partitions
    cores = run.store.spark.sparkContext.defaultParallelism
    return max(TASKS_PER_CORE * cores, math.ceil(read_files(run) / FILES_PER_TASK))


def read_files(run: Run) -> int:
    """How many files the witnesses have read."""
    return sum(counts.get("ast_files_v1", 0) for counts in run.counts.values())


def add_rows(run: Run, name: str, rows: DataFrame, sequence: int) -> None:
    """Append a few rows to a table that this run has written to already."""
    before = run.committed[name]
    run.recount.add(name)
    added = append(run.store, name, rows, Commit(run.run_id, sequence=sequence), file_bytes=SMALL)
    run.committed[name] = structs.replace(
        added,
        created=before.created,
        rows=before.rows + added.rows,
        files=before.files + added.files,
        size_bytes=before.size_bytes + added.size_bytes,
        seconds=before.seconds + added.seconds,
    )
