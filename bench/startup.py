"""Time from process start to the first committed row: our session against a plain one.

    make bench-startup                    # or: python bench/startup.py --rounds 3

Both are real processes, started in turn; the first start of each is not counted (caches fill). The
plain one is what Delta's own quick start shows: `configure_spark_with_delta_pip` and a save. Ours
goes through the commit boundary: create a catalogued table, check, sort, commit, find the commit.
Exit code 1 if ours takes more than 0.7 of the plain one's time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from statistics import median

LIMIT = 0.7

PLAIN = """
import sys
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
row = [("repo_files_v1", "bench", "repo", 1, "run")]
columns = "dataset string, consumer string, repo_id string, last_version bigint, run_id string"
spark.createDataFrame(row, columns).write.format("delta").save(sys.argv[1])
print("committed", flush=True)
"""

OURS = """
import sys
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.spark.session import open_session
from codeanatomy.delta.store import Store
spark = open_session(RuntimeProfile(cores=2))
row = [("repo_files_v1", "bench", "repo", 1, "run")]
columns = "dataset string, consumer string, repo_id string, last_version bigint, run_id string"
append(Store(spark, sys.argv[1]), "cdf_cursors", spark.createDataFrame(row, columns), Commit("run"))
print("committed", flush=True)
"""


def seconds_to_first_row(program: str) -> float:
    """Start the program and wait for its word."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", program, f"{folder}/lake"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        )
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        seconds = time.monotonic() - started
        process.communicate()
    if said != "committed":
        raise SystemExit("a process ended without its commit; run it by hand to see why")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    for number in range(rounds + 1):
        for name, program in (("plain", PLAIN), ("ours", OURS)):
            seconds = seconds_to_first_row(program)
            print(f"{'first' if number == 0 else number} {name}: {seconds:.2f} s", flush=True)
            if number:
                times[name].append(seconds)
    plain, ours = median(times["plain"]), median(times["ours"])
    print(f"plain {plain:.2f} s, ours {ours:.2f} s, ratio {ours / plain:.2f} (at most {LIMIT})")
    raise SystemExit(0 if ours <= LIMIT * plain else 1)


if __name__ == "__main__":
    main()
