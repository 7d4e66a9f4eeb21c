"""The normalize stage over the standard library on local[2], against the extract stage of the same run.

    make bench-normalize                                   # python bench/normalize.py [FOLDER]

Both are wall time with their commits, in one session; the start of the session is not counted. Also printed:
rows by table, peak memory of driver, JVM and workers, and whether 1, 2 and 7 partitions give the same rows
(of a part of the standard library: `json`, `email` and `asyncio`).
"""

from __future__ import annotations

import io
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from deltalake import DeltaTable
from memory import Memory
from pyspark.sql import SparkSession

from codeanatomy.catalog import TABLES
from codeanatomy.config import load_settings
from codeanatomy.run.extraction import extract_stage
from codeanatomy.run.normalization import normalize_stage
from codeanatomy.run.progress import Progress
from codeanatomy.run.repositories import Repository, list_repositories
from codeanatomy.run.state import Run
from codeanatomy.storage.session import open_session
from codeanatomy.storage.store import Store

CORES = 2
LIMIT = 1.0
MB = 1024 * 1024
PARTS = ("json", "email", "asyncio")
NORMALIZED = [table for table in TABLES if table.stage == "normalize"]


def new_run(spark: SparkSession, lake: str, folders: dict[str, Path], *settings: str) -> Run:
    effective = load_settings((f"runtime.master=local[{CORES}]", *settings))
    progress = Progress(io.StringIO())
    sources = [Repository(name, folder) for name, folder in folders.items()]
    listed = list_repositories(sources, effective.extract, progress)
    return Run(Store.of(effective, spark, lake), effective, listed, progress)


def measure(spark: SparkSession, folder: Path) -> float:
    with tempfile.TemporaryDirectory() as lake:
        run = new_run(spark, lake, {"stdlib": folder})
        began = time.monotonic()
        extract_stage(run)
        middle = time.monotonic()
        memory = Memory()
        memory.start()
        normalize_stage(run)
        ended = time.monotonic()
        peak = memory.stop()
    extract, normalize = middle - began, ended - middle
    print(f"extract {extract:.1f} s, normalize {normalize:.1f} s, steps {run.seconds}")
    for table in NORMALIZED:
        done = run.committed[table.name]
        size = f"{done.files} files, {done.size_bytes / MB:.1f} MB"
        print(f"  {table.name}: {done.rows:,} rows, {size}, {done.seconds:.1f} s")
    print("peak memory: " + ", ".join(f"{name} {size / MB:.0f} MB" for name, size in sorted(peak.items())))
    print(f"ratio {normalize / extract:.2f} (limit {LIMIT})")
    return normalize / extract


def same_rows(spark: SparkSession, folder: Path) -> bool:
    """Whether the rows depend on how the files are spread."""
    found = []
    for partitions in (1, 2, 7):
        with tempfile.TemporaryDirectory() as lake:
            parts = {name: folder / name for name in PARTS}
            run = new_run(spark, lake, parts, f"extract.partitions={partitions}")
            extract_stage(run)
            normalize_stage(run)
            rows = {}
            for table in NORMALIZED:
                stored = DeltaTable(f"{lake}/{table.path}").to_pyarrow_table()
                rows[table.name] = stored.sort_by([(key, "ascending") for key in table.primary_key])
            found.append(rows)
    same = all(each == found[0] for each in found)
    total = sum(rows.num_rows for rows in found[0].values())
    print(f"1, 2 and 7 partitions: {'the same' if same else 'different'} {total:,} rows")
    return same


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_paths()["stdlib"])
    spark = open_session(load_settings((f"runtime.master=local[{CORES}]",)).runtime)
    ratio = measure(spark, folder)
    same = same_rows(spark, Path(sysconfig.get_paths()["stdlib"]))
    spark.stop()
    if ratio > LIMIT or not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
