"""Measure builds with Spark in one process (`local[2]`) and on a cluster of two workers, into MinIO.

    PYTHONPATH=tests python bench/cluster.py                          # requests and flask
    PYTHONPATH=tests python bench/cluster.py --packages click --rounds 3

Sources and lakes are on MinIO in all cases, so that only the executors differ. The workers have one core each
and are those of `tests/support/cluster.py`, which needs root, `make minio` and `codeanatomy setup --with s3`.
A round builds a package into a new lake, and refreshes it after a function was added to one file. `s` is the
whole process of the command line; `start s` of it passed before files were read: the JVM starts, and on the
cluster the executors, which fetch jars and environment from the driver. Printed is the fastest of the
rounds. At the end all tables of both lakes are compared.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from codeanatomy.query.checks.compare import compare_lakes
from support import corpus
from support.cluster import Deployment, running_deployment
from support.minio import upload

EDIT = "\n\ndef added_by_the_benchmark(value):\n    return value.encode()\n"


def timed_build(flags: tuple[str, ...], source: str, lake: str) -> tuple[float, float]:
    """Build a source; return the seconds of the process, and those until the first line about files."""
    command = [sys.executable, "-m", "codeanatomy", *flags, "build", f"package={source}", "--lake", lake]
    began, start, lines = time.monotonic(), 0.0, []
    with subprocess.Popen(
        [*command, "--engine", "spark"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr or ():
            lines.append(line)
            if not start and line.startswith("extract"):
                start = time.monotonic() - began
    if process.returncode:
        sys.exit("".join(lines))
    return time.monotonic() - began, start


def places(deployment: Deployment) -> dict[str, tuple[str, ...]]:
    """Return flags by place."""
    return {
        "local[2]": (*deployment.minio.flags, "--set", "runtime.master=local[2]"),
        "two workers": deployment.flags,
    }


def measure(deployment: Deployment, package: str, number: int, folder: Path) -> dict[str, list[float]]:
    """Return the seconds of build and refresh by place, each with those of its start."""
    source = Path(shutil.copytree(corpus.package(package), folder / f"{package}-{number}"))
    uri = f"s3a://sources/{source.name}"
    lakes = {place: f"s3a://lakes/{source.name}-{place[:3]}" for place in places(deployment)}
    figures: dict[str, list[float]] = {place: [] for place in lakes}
    for step in ("build", "refresh"):
        if step == "refresh":
            edited = max((source / package).glob("*.py"))
            edited.write_text(edited.read_text() + EDIT)
        upload(source, uri)
        for place, flags in places(deployment).items():
            figures[place] += timed_build(flags, uri, lakes[place])
    here, there = lakes.values()
    assert not compare_lakes(here, there).total, package
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packages", nargs="+", default=["requests", "flask"])
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as temporary,
        running_deployment(Path(temporary)) as deployment,
    ):
        print("| package | executors | build s | start s | refresh s | start s |")
        print("|---" * 6 + "|")
        for package in given.packages:
            rounds = [measure(deployment, package, number, Path(temporary)) for number in range(given.rounds)]
            for place in places(deployment):
                fastest = map(min, zip(*(figures[place] for figures in rounds), strict=True))
                cells = " | ".join(f"{seconds:.1f}" for seconds in fastest)
                print(f"| {package} | {place} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
