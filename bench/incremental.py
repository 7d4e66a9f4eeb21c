"""A refresh of django against a full build of it: seconds, files redone, rows written.

    make bench-incremental                              # about ten minutes
    PYTHONPATH=tests python bench/incremental.py --check --work DIR     # each lake against a clean one, too
    PYTHONPATH=tests python bench/incremental.py --engine spark         # only these refreshes
    PYTHONPATH=tests python bench/incremental.py --readers modern       # a lake with deletion vectors
    PYTHONPATH=tests python bench/incremental.py --beside               # the leaf by both engines, in turn

One lake: a full build, then a refresh after each of the edits below, each the real command in a process of
its own, on Spark. The limits are those of refreshes on Spark; without `--engine` the same refreshes are then
made by local processes, in a new lake and without limits. Seconds are those that the command reports, without
the start of its session; beside them the whole process, as a user waits for it. An edit is undone before the
next one by another refresh, which is not measured. At last nothing has changed: the whole process against a
bare session.

    leaf     the body of one function in a module that nobody imports
    wide     the body of one function in a module that many import, with functions after it
    percent  the body of a function in every hundredth file

No edit changes what a name, call or value of another file leads to, and ids do not depend on positions: the
functions after an edit keep theirs, so leaf and wide redo the edited file only, which is a limit, too.

Printed is Markdown for FIGURES.md, with the files that each step has written; progress goes to stderr. Exit
code 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from codeanatomy import catalog
from codeanatomy.delta.read.light import light_files, light_table
from codeanatomy.delta.read.open_table import location
from codeanatomy.query.checks.compare import compare_lakes
from support import corpus

COMMAND = Path(sys.executable).with_name("codeanatomy")
TWO_CORES = ("--set", "runtime.cores=2")
OPTIONS = ("--types", "off", "--format", "json")
SESSION = "from codeanatomy.spark.session import *; close_session(open_session())"
LEAF, WIDE = "django/utils/lorem_ipsum.py", "django/utils/functional.py"
LIMITS = {"leaf": 0.06, "wide": 0.10, "percent": 0.12}
# The refreshes of the first have to keep the limits, those of the second are reported beside them.
ENGINES = ("spark", "local")
# Files redone.
FILE_LIMITS = {"leaf": 1, "wide": 1}
# By step, a table with rows of every file of django.
STEP_TABLES = {
    "extract": "repo_files_v1",
    "normalize": "py_bc_blocks_norm_v1",
    "relate": "relations_v1",
    "graph": "cpg_nodes",
}
NOTHING_LIMIT = 1.3
# Seconds that a refresh on Spark may take longer than one by local processes.
BESIDE_LIMIT = 3.0
ROUNDS = 3


class Built(NamedTuple):
    """A build: what it said of itself, and how long the whole process took."""

    report: dict[str, Any]
    process: float

    @property
    def seconds(self) -> float:
        """Without the start of the session."""
        told: dict[str, float] = self.report["seconds"]
        return told["total"] - told.get("session", 0)

    @property
    def rows(self) -> int:
        return sum(int(table["rows"]) for table in self.report["tables"].values())


def build(source: Path, lake: Path, engine: str = "spark", readers: str = "all") -> Built:
    began = time.monotonic()
    done = subprocess.run(
        [
            COMMAND,
            *TWO_CORES,
            "build",
            "--readers",
            readers,
            f"django={source}",
            "--lake",
            lake,
            "--engine",
            engine,
            *OPTIONS,
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Built(json.loads(done.stdout), time.monotonic() - began)


def with_longer_body(text: str) -> str:
    """The text with a statement more in its first function that has a body worth the name."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    first = min(
        (node for node in functions if len(node.body) > 1), key=lambda node: node.lineno, default=None
    )
    if first is None:
        return f"{text}\n\ndef added_by_the_benchmark():\n    return 1\n"
    lines = text.splitlines(keepends=True)
    place = first.body[1].lineno - 1
    lines.insert(place, f"{' ' * first.body[1].col_offset}measured = 1\n")
    return "".join(lines)


def chosen(source: Path) -> dict[str, list[Path]]:
    files = sorted(source.rglob("*.py"))
    return {"leaf": [source / LEAF], "wide": [source / WIDE], "percent": files[50::100]}


def edits(source: Path) -> Iterator[tuple[str, int, Callable[[], None]]]:
    """The name of each edit, which has been made, the files it is in, and what undoes it."""
    for name, files in chosen(source).items():
        before = {file: file.read_bytes() for file in files}
        for file, raw in before.items():
            file.write_text(with_longer_body(raw.decode()))

        def undo(before: dict[Path, bytes] = before) -> None:
            for file, raw in before.items():
                file.write_bytes(raw)

        yield name, len(files), undo


def reasons(lake: Path, run_id: str) -> Counter[str]:
    found = light_table(str(lake), "refresh_impact", ["run_id", "reason"]).to_pylist()
    return Counter(row["reason"] for row in found if row["run_id"] == run_id)


def data_files(lake: Path) -> dict[str, set[str]]:
    """Data files by table."""
    return {name: {file.path for file in light_files(str(lake), name)} for name in STEP_TABLES.values()}


def parquet_files(lake: Path) -> int:
    """Number of files that were ever written for tables, change files among them."""
    return sum("_delta_log" not in path.parts for path in lake.rglob("*.parquet"))


def redone_by_step(lake: Path, before: dict[str, set[str]]) -> dict[str, int]:
    """Number of files whose rows each step has written since."""
    counts = {}
    for step, name in STEP_TABLES.items():
        owner = catalog.table(name).owner or ""
        new = data_files(lake)[name] - before[name]
        paths = [f"{location(str(lake), name)}/{path}" for path in sorted(new)]
        owners = {each for path in paths for each in pq.read_table(path, columns=[owner])[owner].to_pylist()}
        counts[step] = len(owners - {None})
    return counts


def seconds_of(command: Sequence[str | Path]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def talk(said: str) -> None:
    print(said, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, help="a folder for sources and lakes that stays")
    parser.add_argument("--engine", choices=ENGINES, help="the engine of the refreshes; all have limits then")
    parser.add_argument("--readers", choices=("modern", "all"), default="all", help="what can open the lake")
    parser.add_argument("--beside", action="store_true", help="only the leaf, by both engines in turn")
    parser.add_argument("--check", action="store_true", help="compare each lake with a clean one, row by row")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = asked.work or Path(name)
        missed = compare_engines(work, asked.readers) if asked.beside else []
        for engine in () if asked.beside else (asked.engine,) if asked.engine else ENGINES:
            of_engine = measure(work, engine, asked.readers, check=asked.check)
            missed += of_engine if engine in (asked.engine, ENGINES[0]) else []
        for each in missed:
            talk(f"missed: {each}")
        return 1 if missed else 0


def measure(work: Path, engine: str, readers: str, *, check: bool) -> list[str]:
    """Refresh a lake after each edit, print what that took, and return the limits that were missed."""
    source, lake = work / "django", work / "lake"
    for folder in (source, lake):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(corpus.package("django"), source)
    talk("full build")
    full = build(source, lake, readers=readers)
    print(f"\nRefreshes by `--engine {engine}`, `delta.readers = {readers}`\n")
    print(
        "| build | files edited | files redone | by step | rows written | data files | seconds | of full "
        "| limit | whole process |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    files = int(full.report["repositories"]["django"]["files"])
    print(
        f"| full | | {files:,} | | {full.rows:,} | {parquet_files(lake):,} | {full.seconds:.1f} | 1 | "
        f"| {full.process:.1f} |",
        flush=True,
    )
    missed = []
    for name, count, undo in edits(source):
        talk(name)
        before, written = data_files(lake), parquet_files(lake)
        done = build(source, lake, engine, readers)
        why = reasons(lake, done.report["run_id"])
        told = ", ".join(f"{reason} {number:,}" for reason, number in why.most_common())
        ratio = done.seconds / full.seconds
        steps = ", ".join(f"{step} {number:,}" for step, number in redone_by_step(lake, before).items())
        print(
            f"| {name} | {count:,} | {why.total():,} ({told}) | {steps} | {done.rows:,} "
            f"| {parquet_files(lake) - written:,} | {done.seconds:.1f} "
            f"| {ratio:.3f} | {LIMITS[name]:.2f} | {done.process:.1f} |",
            flush=True,
        )
        talk(json.dumps(done.report["seconds"]))
        if ratio > LIMITS[name]:
            missed.append(name)
        if why.total() > FILE_LIMITS.get(name, why.total()):
            missed.append(f"{name}: {why.total():,} files redone")
        if check and not is_clean(source, lake, work / "clean"):
            missed.append(f"{name}: rows differ from those of a clean build")
        undo()
        build(source, lake, readers=readers)
    nothing = median(build(source, lake, readers=readers).process for _ in range(ROUNDS))
    session = median(seconds_of([sys.executable, "-c", SESSION]) for _ in range(ROUNDS))
    print(f"\nNothing changed: {nothing:.2f} s, {nothing / session:.2f} of a bare session ({session:.2f} s).")
    if nothing > NOTHING_LIMIT * session:
        missed.append("nothing changed")
    return missed


def compare_engines(work: Path, readers: str) -> list[str]:
    """Refresh one lake after an edit of the leaf, by both engines in turn."""
    source, lake = work / "django", work / "lake"
    for folder in (source, lake):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(corpus.package("django"), source)
    talk("full build")
    build(source, lake, readers=readers)
    seconds: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for number in range(ROUNDS):
        for engine in ENGINES:
            leaf = source / LEAF
            leaf.write_text(with_longer_body(leaf.read_text()))
            done = build(source, lake, engine, readers)
            seconds[engine].append(done.seconds)
            talk(f"{number + 1} {engine}: {done.seconds:.1f} s, {json.dumps(done.report['seconds'])}")
    spark, local = (median(seconds[engine]) for engine in ENGINES)
    print(f"\nLeaf of django's wheel, `delta.readers = {readers}`, without the session's start, medians:")
    print(f"Spark {spark:.1f} s, local processes {local:.1f} s (limit: {BESIDE_LIMIT:.0f} s more).")
    return [] if spark <= local + BESIDE_LIMIT else ["Spark beside local processes"]


def is_clean(source: Path, lake: Path, clean: Path) -> bool:
    shutil.rmtree(clean, ignore_errors=True)
    build(source, clean)
    found = compare_lakes(str(lake), str(clean))
    talk(f"compared {sum(found.rows.values()):,} rows: {found.total:,} differences")
    return not found.total


if __name__ == "__main__":
    sys.exit(main())
