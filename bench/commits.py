"""Measure a commit of one data file: our log entry beside delta-rs' transaction, in turns, in one process.

    PYTHONPATH=tests python bench/commits.py       # median and maximum in milliseconds, of 40 commits each

Both open the newest version of the table first. delta-rs neither checks rules, contract and gate nor makes a
transaction at most once. Delta's own transaction needs a JVM: `bench/writers.py` measures it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import commit_files

TABLE = catalog.table("cpg_props")
COMMITS, ROWS = 40, 50


def rows(number: int) -> pa.RecordBatch:
    """Return rows of a table; their values do not matter."""
    texts = {column.name: f"{number}" for column in TABLE.columns if column.type == "string"}
    cells = {**texts, "entity_kind": "NODE"}
    return pa.RecordBatch.from_pylist([cells] * ROWS, schema=arrow_schema(TABLE))


def commit_by_entry(tables: LakeTables, files: list[DataFile], number: int) -> None:
    """Commit as a build does."""
    commit_files(tables, TABLE.name, files, [], Commit(f"run-{number}"), by="repo_id")


def commit_by_transaction(tables: LakeTables, files: list[DataFile], number: int) -> None:
    """Commit with delta-rs."""
    table = DeltaTable(tables.location(TABLE.name))
    now = int(time.time() * 1000)
    adds: list[AddAction | RemoveAction] = [
        AddAction(each.path, each.size_bytes, dict(each.partition), now, True, each.stats) for each in files
    ]
    table.create_write_transaction(adds, "append", table.schema())


WAYS: dict[str, Callable[[LakeTables, list[DataFile], int], None]] = {
    "log entry": commit_by_entry,
    "delta-rs": commit_by_transaction,
}


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as folder:
        for number in range(COMMITS + 1):
            for name, commit in WAYS.items():
                tables = LakeTables(f"{folder}/{name}")
                files = write_files(tables.location(TABLE.name), TABLE, [rows(number)], is_copy=True)
                began = time.perf_counter()
                # The first commit creates the table.
                (commit if number else commit_by_entry)(tables, files, number)
                if number:
                    seconds[name].append(1000 * (time.perf_counter() - began))
    for name, each in seconds.items():
        print(f"{name:12} median {statistics.median(each):6.2f} ms, maximum {max(each):6.1f} ms")


if __name__ == "__main__":
    main()
