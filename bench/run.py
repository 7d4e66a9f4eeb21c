"""A whole small build, split into its parts, against a bare PySpark + Delta process.

    make bench-run                          # or: PYTHONPATH=tests python bench/run.py --rounds 3

Both are real processes on local[2], started in turn, from start to end; the first of each is not counted
(caches fill). The bare one starts a session, commits one row and reads it back. Ours is `codeanatomy build`
of `requests` into an empty lake, and then the same command again, which finds nothing to do. The parts are
what the build reports of itself; commits of extract and normalize run while relate works. `--engine` is that
of the build, by default Spark; with local processes there is no session. Printed is Markdown for FIGURES.md.

Exit code 1 if the build takes more than 0.5 times as long as the bare process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from support import corpus

LIMIT = 0.5
COMMAND = Path(sys.executable).with_name("codeanatomy")
BARE = """
import sys
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
spark.createDataFrame([(1, "x")], "a int, b string").write.format("delta").save(sys.argv[1])
assert spark.read.format("delta").load(sys.argv[1]).count() == 1
spark.stop()
"""
# By step: what it computes, and what it commits.
STEPS = ("extract", "normalize", "relate", "graph")


class Ran(NamedTuple):
    """A process that has ended."""

    seconds: float
    # Of parts, as the build reports them.
    parts: dict[str, float]


def ran(command: Sequence[str | Path]) -> Ran:
    """Run a process to its end; what it prints, if anything, is the report of a build."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=folder)
        seconds = time.monotonic() - started
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr[-2000:]}")
    return Ran(seconds, json.loads(done.stdout)["seconds"] if done.stdout else {})


def round_of(source: Path, engine: str) -> tuple[Ran, Ran, Ran]:
    """The bare process, a build, and the same build again."""
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as work:
        bare = ran([sys.executable, "-c", BARE, f"{work}/bare"])
        build: list[str | Path] = [COMMAND, "--set", "runtime.cores=2", "build", f"requests={source}"]
        build += ["--lake", f"{work}/lake", "--types", "off", "--engine", engine, "--format", "json"]
        return bare, ran(build), ran(build)


def parts_of(built: Ran) -> dict[str, float]:
    """The parts of a build in their order, each with its seconds."""
    known = built.parts
    found = {"session start": known.get("session", 0.0)}
    for step in STEPS:
        # Normalize is computed with extract.
        computed, committed = known.get(step, 0.0), known.get(f"{step}_commit", 0.0)
        found[step] = computed
        found[f"{step}: commit"] = committed
        # To plan what it computes, to report it, and to wait for what runs beside it.
        found[f"{step}: around"] = known[f"{step}_step"] - computed - committed
    found["recording"] = known["record"]
    found["publication"] = known["publish"]
    found["the process before and after"] = built.seconds - known["total"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", default="spark", choices=("spark", "local"))
    given = parser.parse_args()
    rounds, source = given.rounds, corpus.package("requests")
    counted: list[tuple[Ran, Ran, Ran]] = []
    for number in range(rounds + 1):
        bare, built, again = round_of(source, given.engine)
        told = f"bare {bare.seconds:.1f} s, build {built.seconds:.1f} s, again {again.seconds:.1f} s"
        print(f"{number or 'first'}: {told}", file=sys.stderr, flush=True)
        if number:
            counted.append((bare, built, again))
    names = ("bare process", "build", "the same build again")
    print("| what | seconds |\n|---|---|")
    for name, same in zip(names, zip(*counted, strict=True), strict=True):
        print(f"| {name} | {median(one.seconds for one in same):.1f} |")
    print("\n| part of the build | seconds |\n|---|---|")
    parts = [parts_of(built) for _, built, _ in counted]
    for name in parts[0]:
        print(f"| {name} | {median(one[name] for one in parts):.2f} |")
    # Of each round: neighbours have been as busy for both.
    ratio = median(built.seconds / bare.seconds for bare, built, _ in counted)
    print(f"\nbuild to bare process: {ratio:.2f} (at most {LIMIT})")
    raise SystemExit(0 if ratio <= LIMIT else 1)


if __name__ == "__main__":
    main()
