"""How long an answer takes, and how many data files it reads: every verb, about 50 symbols of django.

    make bench-ask                                    # builds the lake first
    PYTHONPATH=tests python bench/ask.py --repositories 35 --no-spark
    PYTHONPATH=tests python bench/ask.py --lake DIR --symbols 20 --only find,callers --no-spark
    PYTHONPATH=tests python bench/ask.py --sdist --only callers --no-spark      # of the source distribution

The lake holds django, with `--repositories` also copies of small packages under names of their own, all from
one build; with `--apart` each from a build of its own, so that each has data files of its own.

Cold is the command in a process of its own, from start to end, its output thrown away; in turn with it runs
a process that only imports deltalake and duckdb, and the ratio is that of each pair. Both keep byte code, as
installed packages do, in a folder of this run, whatever the environment says. Warm is `Lake.open` once
and then the method, with and without a Spark session; there the rows are collected. The first question of
each verb is asked once more than it is counted, for caches fill. Files are the data files that may hold what
is asked for, as the light reader opens them, over all tables and steps of an answer.

The symbols are functions drawn by a seed, flows are those of their parameters, a path leads from one to
something that it calls in three steps (or to another one drawn, to which there may be none), and an
explanation is of a call. Verbs that take no symbol are asked the same thing each time, a fifth as often.
Printed is Markdown for FIGURES.md. Exit code 1 if a limit is missed, or a question has no answer.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeAlias

from codeanatomy.errors import CodeAnatomyError
from codeanatomy.query.ask import VERBS
from codeanatomy.query.engines.statements import Query, Slice
from codeanatomy.query.lake import Lake, Verbs
from support import corpus

COMMAND = Path(sys.executable).with_name("codeanatomy")
BARE = (sys.executable, "-c", "import deltalake, duckdb")
# Of the cold command to the bare process.
LIMITS = {"find": 2.5, "callers": 2.2}
SEED = 9
REPOSITORY = "django"
# What the other repositories of a lake are copies of.
SMALL = ("flask", "requests", "toolz", "pyflakes", "commonmark")
TABLES = ("cpg_nodes", "cpg_edges", "cpg_edges_by_src", "cpg_edges_by_dst", "cpg_props", "relations_v1")
# Verbs without a symbol are asked so many times less often.
SAME = 5
Question: TypeAlias = tuple[str, ...]


def questions(lake: Lake, count: int) -> dict[str, list[Question]]:
    """What is asked, by verb: the names."""
    drawn = random.Random(SEED)
    functions = names(lake, "FUNCTION", "n.subkind <> 'lambda'")
    asked = drawn.sample(functions, count)
    parameters = drawn.sample(names(lake, "PARAMETER", "n.name NOT IN ('self', 'cls')"), count)
    others = drawn.sample(functions, count)
    found: dict[str, list[Question]] = {verb: [()] * max(1, count // SAME) for verb in VERBS}
    for verb in ("find", "show", "callers", "callees", "refs", "impact", "unresolved"):
        found[verb] = [(name,) for name in asked]
    found["flows"] = [(name,) for name in parameters]
    found["path"] = [(name, far(lake, name) or other) for name, other in zip(asked, others, strict=True)]
    called = [
        (row["symbol"], name) for name in functions[: 20 * count] for row in lake.callers(name, limit=1)
    ]
    found["explain"] = drawn.sample(called, min(count, len(called)))
    return found


def names(lake: Lake, kind: str, condition: str) -> list[str]:
    """Qualified names that one node of a kind in django has."""
    query = Query(
        f"SELECT n.qualname FROM n WHERE {condition} GROUP BY n.qualname HAVING count(*) = 1",
        {"n": Slice("cpg_nodes", repo_id=(REPOSITORY,), node_kind=(kind,))},
        order=("qualname",),
    )
    return [row[0] for row in lake.reader.rows(query)]


def calls(lake: Lake) -> list[Question]:
    """Functions that call functions."""
    query = Query(
        "SELECT DISTINCT s.qualname AS caller, d.qualname AS callee"
        " FROM e JOIN n s ON s.node_id = e.src_node_id JOIN n d ON d.node_id = e.dst_node_id",
        {
            "e": Slice("cpg_edges", edge_kind=("CALL_GRAPH",)),
            "n": Slice("cpg_nodes", node_kind=("FUNCTION",)),
        },
        order=("caller", "callee"),
    )
    return [(caller, callee) for caller, callee in lake.reader.rows(query)]


def far(lake: Lake, name: str) -> str | None:
    """Something that a function calls, three steps away if there is any."""
    rows = lake.callees(name, depth=3, limit=10_000).rows
    inside = [row["symbol"] for row in rows if row["kind"] == "FUNCTION" and row["symbol"] != name]
    return inside[-1] if inside else None


def process(command: Sequence[str | Path], compiled: str) -> float:
    """Seconds of a process that must end well, with byte code in a folder."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, env=env)
    seconds = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.decode()[-2000:]}")
    return seconds


def cold(lake: str, verb: str, asked: Iterable[Question], compiled: str) -> tuple[list[float], float]:
    """Seconds of each command, and the ratio to the bare process."""
    ours, ratios = [], []
    for number, question in enumerate((next(iter(asked)), *asked)):
        seconds = process([COMMAND, verb, "--lake", lake, "--", *question], compiled)
        bare = process(BARE, compiled)
        if number:
            ours.append(seconds)
            ratios.append(seconds / bare)
    return ours, median(ratios)


def warm(
    lake: Verbs[Any], verb: str, asked: Sequence[Question], read: Callable[[Any], object]
) -> list[float]:
    """Seconds of each question in this process."""
    found = []
    for question in (asked[0], *asked):
        began = time.monotonic()
        try:
            read(lake.ask(verb, *question))
        except CodeAnatomyError as problem:
            raise SystemExit(f"{verb} {' '.join(question)}: {problem}") from problem
        found.append(time.monotonic() - began)
    return found[1:]


def files_read(lake: Lake, verb: str, asked: Sequence[Question]) -> list[int]:
    """Data files that each question reads."""
    found = []
    for question in asked:
        lake.reader.scans.clear()
        len(lake.ask(verb, *question))
        found.append(sum(scan.candidate_files or 0 for scan in lake.reader.scans))
    return found


def in_spark(lake: str, asked: dict[str, list[Question]]) -> dict[str, list[float]]:
    """Seconds of each verb in a session that was opened before."""
    from codeanatomy.config import RuntimeProfile
    from codeanatomy.spark.session import open_session

    session = open_session(RuntimeProfile(cores=2))
    try:
        opened = Lake.open(lake, spark=session)
        found = {}
        for verb, each in asked.items():
            found[verb] = warm(opened, verb, each, lambda frame: frame.collect())
            talk(f"Spark: {verb} {figures(found[verb])}")
        return found
    finally:
        session.stop()


def figures(seconds: Sequence[float] | None) -> str:
    """p50 and p95 in milliseconds, as cells of a table."""
    return cells([1000 * each for each in seconds]) if seconds else "- | -"


def cells(values: Sequence[float]) -> str:
    """p50 and p95, as cells of a table."""
    high = quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
    return f"{median(values):.0f} | {high:.0f}"


def talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def built(folder: str, repositories: int, *, apart: bool, sdist: bool) -> str:
    """A lake of django and copies of small packages."""
    lake = f"{folder}/lake"
    talk(f"building the lake of {repositories} repositories")
    django = corpus.sdist(REPOSITORY) if sdist else corpus.package(REPOSITORY)
    sources = [f"{REPOSITORY}={django}"]
    for number in range(repositories - 1):
        name = SMALL[number % len(SMALL)]
        # A folder of its own: a source belongs to one repository.
        copy = Path(folder, "sources", f"{name}{number}")
        shutil.copytree(corpus.package(name), copy)
        sources.append(f"{copy.name}={copy}")
    for together in [[source] for source in sources] if apart else [sources]:
        subprocess.run([COMMAND, "build", *together, "--lake", lake], check=True)
    return lake


def layout(lake: Lake) -> str:
    """Repositories and data files of a lake."""
    files = ", ".join(f"{name} {len(lake.reader.files(Slice(name))):,}" for name in TABLES)
    return f"{len(lake.snapshot.repositories):,} repositories; data files: {files}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lake", help="a lake with django; without one, it is built")
    parser.add_argument("--repositories", type=int, default=1, help="repositories of the lake that is built")
    parser.add_argument("--apart", action="store_true", help="build each repository by itself")
    parser.add_argument("--sdist", action="store_true", help="django with its tests")
    parser.add_argument("--symbols", type=int, default=50)
    parser.add_argument("--only", default=",".join(VERBS), help="verbs, divided by commas")
    parser.add_argument("--no-spark", action="store_true", help="leave out the lane that needs a JVM")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as folder:
        root = given.lake or built(folder, given.repositories, apart=given.apart, sdist=given.sdist)
        lake = Lake.open(root)
        asked = {
            verb: each
            for verb, each in questions(lake, given.symbols).items()
            if verb in given.only.split(",")
        }
        held = layout(lake)
        light, processes, files = {}, {}, {}
        for verb, each in asked.items():
            light[verb] = warm(lake, verb, each, len)
            files[verb] = files_read(lake, verb, each)
            processes[verb] = cold(root, verb, each, f"{folder}/compiled")
            talk(
                f"{verb}: warm {figures(light[verb])}, cold {figures(processes[verb][0])},"
                f" files {cells(files[verb])}"
            )
        spark = {} if given.no_spark else in_spark(root, asked)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Milliseconds, p50 and p95 of {given.symbols} symbols; load of the machine at the end: {load}\n")
    print(f"{held}\n")
    print("| verb | cold p50 | p95 | to bare | warm p50 | p95 | Spark p50 | p95 | files p50 | p95 |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for verb, (seconds, ratio) in processes.items():
        limit = f" (at most {LIMITS[verb]})" if verb in LIMITS else ""
        print(
            f"| {verb} | {figures(seconds)} | {ratio:.2f}{limit} |"
            f" {figures(light[verb])} | {figures(spark.get(verb))} | {cells(files[verb])} |"
        )
    missed = [verb for verb, (_, ratio) in processes.items() if ratio > LIMITS.get(verb, ratio)]
    if missed:
        print(f"\nMissed: {', '.join(missed)}")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
