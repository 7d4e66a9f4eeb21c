"""What normalize adds to extract over the standard library on local[2]: both work on a file in one pass.

    make bench-normalize                                   # python bench/normalize.py [FOLDER]

A build until extract and one until normalize, in one session, each into a lake of its own: the difference of
their wall times, with commits, is what normalize takes; the start of the session is not counted. Printed too:
rows by table, peak memory of driver, JVM and workers, and whether 1, 2 and 7 partitions give the same rows
(of a part of the standard library: `json`, `email` and `asyncio`).
"""

from __future__ import annotations

import io
import sys
import sysconfig
import tempfile
from pathlib import Path

from deltalake import DeltaTable
from memory import Memory
from pyspark.sql import SparkSession

from codeanatomy.catalog import TABLES
from codeanatomy.config import load_settings
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.plan.repositories import Repository
from codeanatomy.plan.steps import EXTRACT, NORMALIZE
from codeanatomy.progress import Progress
from codeanatomy.run.build import build
from codeanatomy.run.report import BuildReport
from codeanatomy.spark.session import open_session
from support.sessions import SharedSession

CORES = 2
LIMIT = 1.0
MB = 1024 * 1024
PARTS = ("json", "email", "asyncio")
NORMALIZED = [table for table in TABLES if table.stage == NORMALIZE]


def built(
    spark: SparkSession, lake: str, folders: dict[str, Path], *settings: str, until: str = NORMALIZE
) -> BuildReport:
    effective = load_settings((f"runtime.master=local[{CORES}]", *settings))
    sources = tuple(Repository(name, folder) for name, folder in folders.items())
    order = BuildRequest(lake, effective, sources, until=until)
    return build(order, Progress(io.StringIO()), SharedSession(spark))


def measure(spark: SparkSession, folder: Path) -> float:
    with tempfile.TemporaryDirectory() as lake:
        extract = built(spark, lake, {"stdlib": folder}, until=EXTRACT).seconds["total"]
    with tempfile.TemporaryDirectory() as lake:
        memory = Memory()
        memory.start()
        report = built(spark, lake, {"stdlib": folder})
        peak = memory.stop()
    normalize = report.seconds["total"] - extract
    print(f"extract {extract:.1f} s, normalize {normalize:.1f} s, steps {report.seconds}")
    for table in NORMALIZED:
        print(f"  {table.name}: {report.tables[table.name].rows:,} rows")
    print("peak memory: " + ", ".join(f"{name} {size / MB:.0f} MB" for name, size in sorted(peak.items())))
    print(f"ratio {normalize / extract:.2f} (limit {LIMIT})")
    return normalize / extract


def same_rows(spark: SparkSession, folder: Path) -> bool:
    """Whether the rows depend on how the files are spread."""
    found = []
    for partitions in (1, 2, 7):
        with tempfile.TemporaryDirectory() as lake:
            parts = {name: folder / name for name in PARTS}
            built(spark, lake, parts, f"extract.partitions={partitions}", "delta.readers=all")
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
