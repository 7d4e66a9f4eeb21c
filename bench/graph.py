"""The whole `build` on two cores in the default profile: time, memory, bytes and counts, beside Joern.

    make bench-graph                              # all sources, the peer on django: about half an hour
    PYTHONPATH=tests python bench/graph.py --only requests,flask --no-peer --work DIR

Every build is the real command in a process of its own with a lake of its own, wall time from process start
to its end; then `codeanatomy verify` checks the lake. `django` is the source distribution, with its tests;
`django-wheel` is what is installed; `web` is flask, werkzeug, jinja2 and click in one build. Builds
run on Spark; as information, without limits, django and requests are also built by local processes
(`--no-engines` leaves them out).

Limits: django beside Joern in wall time and memory; the standard library's cost per line beside django's; and
requests and web beside a bare process that starts PySpark and Delta with default settings, commits one row
and reads it back. Those two are built several times in turn with it, and the median of the ratios counts.

The peer is Joern's Python frontend with its overlays, run right after our build of the same folder; its time
is what its script prints, without the resolution of its jars. The peak of all processes is also given by
step, as the log of the build has its beginning and end; steps may overlap.
Printed is Markdown for FIGURES.md; progress goes to stderr. Exit code 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from memory import Memory
from run import BARE

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, EdgeKind, NodeKind
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.read.open_table import location
from support import corpus

# A script that runs Joern on a folder and prints its seconds.
PEER = Path(os.environ.get("JOERN_RUN", "joern-run.sh"))
COMMAND = Path(sys.executable).with_name("codeanatomy")
# The log of the steps, with the times at which they begin and end.
LOGGED = ("--set", "observe.log_level=info", "--set", "observe.log_format=json", "--set", "runtime.cores=2")
OPTIONS = ("--types", "off", "--profile", "default", "--format", "json")
Sources: TypeAlias = dict[str, Path]
# By source: the repositories of its build.
SOURCES: dict[str, Callable[[], Sources]] = {
    "requests": lambda: {"requests": corpus.package("requests")},
    "flask": lambda: {"flask": corpus.package("flask")},
    "web": lambda: {name: corpus.package(name) for name in ("flask", "werkzeug", "jinja2", "click")},
    "django-wheel": lambda: {"django": corpus.package("django")},
    "django": lambda: {"django": corpus.sdist("django")},
    "stdlib": lambda: {"stdlib": Path(sysconfig.get_paths()["stdlib"])},
}
# Built by local processes, too: as information.
OTHER_ENGINES = {"django": "local", "requests": "local"}
# Beside Joern.
TIME_LIMIT = 0.6
MEMORY_LIMIT = 0.45
# Seconds per line: of the first, in terms of the second.
LINE_LIMITS = {("stdlib", "django"): 1.2}
# Wall time of the command, in terms of the bare process.
BARE_LIMITS = {"requests": 0.5, "web": 1.0}
# Measurements beside the bare process, after one that is not counted.
BARE_ROUNDS = 3
STEPS = ("extract", "normalize", "relate", "graph")
NODES, EDGES, COPIES = "cpg_nodes", "cpg_edges", ("cpg_edges_by_src", "cpg_edges_by_dst")
KINDS: dict[str, Mapping[str, NodeKind | EdgeKind]] = {NODES: NODE_KINDS, EDGES: EDGE_KINDS}
MB = 1024 * 1024


class Peer(NamedTuple):
    """What Joern took for a folder."""

    seconds: float
    peak: int
    said: str


class Built(NamedTuple):
    """A build and what it left."""

    name: str
    seconds: float
    # What the command printed: repositories, tables, seconds by step.
    report: dict[str, Any]
    peak: dict[str, int]
    # Of all processes, by step.
    step_peaks: dict[str, int]
    source_bytes: int
    # On disk, by table.
    bytes: dict[str, int]
    # By table, then kind.
    kinds: dict[str, dict[str, int]]
    verify_code: int
    verify_seconds: float
    peer: Peer | None

    @property
    def files(self) -> int:
        return sum(int(repository["files"]) for repository in self.report["repositories"].values())

    @property
    def per_line(self) -> float:
        return self.seconds / self.lines

    @property
    def lines(self) -> int:
        return self.rows("file_line_index_v1")

    def rows(self, table: str) -> int:
        return int(self.report["tables"][table]["rows"])

    @property
    def steps(self) -> dict[str, float]:
        """Seconds by step; outside of their total are start and end of the process and of its JVM."""
        steps: dict[str, float] = self.report["seconds"]
        return {"start and end": self.seconds - steps["total"], **steps}


class Sampled(NamedTuple):
    """A command that has ended."""

    code: int
    output: str
    log: str
    seconds: float
    peak: dict[str, int]
    memory: Memory


def sampled(command: Sequence[str | Path]) -> Sampled:
    """Run a command, and sample the memory of its processes."""
    began = time.monotonic()
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        memory = Memory(process.pid)
        memory.start()
        output, _ = process.communicate()
        seconds, peak = time.monotonic() - began, memory.stop()
        log.seek(0)
        return Sampled(process.returncode, output, log.read(), seconds, peak, memory)


def build_command(name: str, lake: Path, engine: str) -> list[str | Path]:
    sources = [f"{repository}={source}" for repository, source in SOURCES[name]().items()]
    return [COMMAND, *LOGGED, "build", *sources, "--lake", lake, "--engine", engine, *OPTIONS]


def step_peaks(done: Sampled) -> dict[str, int]:
    """Peak of all processes between the beginning and the end of each step, by the log of the build."""
    begun: dict[str, float] = {}
    peaks: dict[str, int] = {}
    for line in done.log.splitlines():
        if not line.startswith("{"):
            continue
        record = json.loads(line)
        moment = datetime.fromisoformat(record["time"]).timestamp()
        if record["message"] == "step begins":
            begun[record["step"]] = moment
        elif record["message"] == "step done":
            peak = done.memory.peak_between(begun[record["step"]], moment)
            peaks[record["step"]] = max(peaks.get(record["step"], 0), peak)
    return peaks


def measure(name: str, lake: Path, with_peer: bool, engine: str = "spark") -> Built:
    talk(f"{name}: build ({engine})")
    built = sampled(build_command(name, lake, engine))
    if built.code:
        raise SystemExit(f"build of {name}: exit code {built.code}\n{built.output}{built.log}")
    report = json.loads(built.output)
    stored = {table: actions(lake, table) for table in report["tables"]}
    listed = light_table(str(lake), "repo_files_v1", ["size_bytes", "skipped_reason"])
    read = listed.filter(pc.field("skipped_reason").is_null())
    talk(f"{name}: verify")
    verified = sampled([COMMAND, "verify", "--lake", lake])
    if verified.code:
        talk(verified.output)
    (*_, source) = SOURCES[name]().values()
    return Built(
        name if engine == "spark" else f"{name} ({engine})",
        built.seconds,
        report,
        built.peak,
        step_peaks(built),
        source_bytes=pc.sum(read["size_bytes"]).as_py(),
        bytes={table: sum(file["size_bytes"] for file in files) for table, files in stored.items()},
        kinds={table: by_kind(table, stored[table]) for table in KINDS},
        verify_code=verified.code,
        verify_seconds=verified.seconds,
        peer=run_peer(source) if with_peer else None,
    )


def actions(lake: Path, table: str) -> list[dict[str, Any]]:
    """The files of a table, as its log has them."""
    added = DeltaTable(location(str(lake), table)).get_add_actions(flatten=True)
    files: list[dict[str, Any]] = pa.table(added).to_pylist()
    return files


def by_kind(table: str, files: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Rows of each kind: the kind is what the table is partitioned by."""
    (column,) = catalog.table(table).write.partition_by
    counts: dict[str, int] = {}
    for file in files:
        kind = file[f"partition.{column}"]
        counts[kind] = counts.get(kind, 0) + file["num_records"]
    return counts


def run_peer(source: Path) -> Peer | None:
    talk("the peer")
    done = sampled([PEER, source])
    found = re.search(r"joern parse ([\d.]+) s, overlays ([\d.]+) s.*", done.output)
    if done.code or not found:
        talk(f"the peer failed with exit code {done.code}: {done.output}{done.log}")
        return None
    return Peer(float(found[1]) + float(found[2]), done.peak["jvm"], found[0])


def talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show(title: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table in Markdown."""
    head = list(header)
    print(f"\n{title}\n\n| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def show_builds(builds: Sequence[Built]) -> None:
    names = [each.name for each in builds]
    figures: dict[str, Callable[[Built], str]] = {
        "files": lambda each: f"{each.files:,}",
        "lines": lambda each: f"{each.lines:,}",
        "MB": lambda each: f"{each.source_bytes / MB:.1f}",
        "seconds": lambda each: f"{each.seconds:.1f}",
        "seconds per 1000 lines": lambda each: f"{each.seconds / each.lines * 1000:.3f}",
        "seconds per MB": lambda each: f"{each.seconds / each.source_bytes * MB:.2f}",
        "verify: exit code": lambda each: str(each.verify_code),
        "verify: seconds": lambda each: f"{each.verify_seconds:.1f}",
    }
    rows = ((what, *(figure(each) for each in builds)) for what, figure in figures.items())
    show("Whole builds", ("what", *names), rows)
    # A build without Spark has no session.
    known = dict.fromkeys(step for each in builds for step in each.steps)
    steps = ((step, *(f"{each.steps.get(step, 0):.1f}" for each in builds)) for step in known)
    show("Seconds by step (steps may overlap; the total is their wall time)", ("step", *names), steps)
    show(
        "Peak memory, MB (together: at one moment)",
        ("of", *names),
        (
            (kind, *(f"{each.peak.get(kind, 0) / MB:,.0f}" for each in builds))
            for kind in ("driver", "jvm", "workers", "together")
        ),
    )
    show(
        "Peak memory of all processes by step, MB (steps may overlap)",
        ("step", *names),
        ((step, *(f"{each.step_peaks.get(step, 0) / MB:,.0f}" for each in builds)) for step in STEPS),
    )


def show_stored(builds: Sequence[Built]) -> None:
    names = [each.name for each in builds]
    rows = [
        (table, *(f"{each.rows(table):,}, {each.bytes[table] / MB:.1f}" for each in builds))
        for table in builds[0].bytes
    ]
    total = ("all", *(f"{sum(each.bytes.values()) / MB:,.1f}" for each in builds))
    show("Rows, and MB on disk", ("table", *names), [*rows, total])
    per_row = {
        "bytes per node": (NODES,),
        "bytes per edge": (EDGES,),
        "bytes per edge with both copies": (EDGES, *COPIES),
    }
    show(
        "Bytes on disk",
        ("what", *names),
        (
            (what, *(f"{sum(each.bytes[name] for name in of) / each.rows(of[0]):.1f}" for each in builds))
            for what, of in per_row.items()
        ),
    )
    for table, known in KINDS.items():
        kinds = [kind for kind, spec in known.items() if "default" in spec.profiles]
        counted = [(kind, *(f"{each.kinds[table].get(kind, 0):,}" for each in builds)) for kind in kinds]
        all_rows = ("all", *(f"{each.rows(table):,}" for each in builds))
        show(f"Rows of {table} by kind", ("kind", *names), [*counted, all_rows])


def beside_peer(built: Built, peer: Peer) -> list[str]:
    """Print both, and say which limits are missed."""
    compared = (
        ("wall time", built.seconds, peer.seconds, "s", TIME_LIMIT),
        ("peak memory", built.peak["together"] / MB, peer.peak / MB, "MB", MEMORY_LIMIT),
    )
    show(
        f"{built.name} beside Joern",
        ("what", "ours", "Joern", "ratio", "limit"),
        (
            (what, f"{ours:,.1f} {unit}", f"{theirs:,.1f} {unit}", f"{ours / theirs:.2f}", str(limit))
            for what, ours, theirs, unit, limit in compared
        ),
    )
    print(f"\nOurs: nodes={built.rows(NODES)} edges={built.rows(EDGES)}. Joern: {peer.said}")
    return [f"{what} beside Joern" for what, ours, theirs, _, limit in compared if ours > limit * theirs]


def per_line(builds: Sequence[Built]) -> list[str]:
    """Print how the cost of a line grows with the source, and return where it grows too much."""
    by_name = {each.name: each for each in builds}
    missed = []
    for (large, small), limit in LINE_LIMITS.items():
        if large not in by_name or small not in by_name:
            continue
        ratio = by_name[large].per_line / by_name[small].per_line
        print(f"\n{large}: {ratio:.2f} times the seconds per line of {small} (at most {limit}).")
        if ratio > limit:
            missed.append(f"cost per line of {large}")
    return missed


def beside_bare(names: Sequence[str], work: Path) -> list[str]:
    """Build small sources in turn with the bare process, and return those that take too long."""
    rows, missed = [], []
    for name in (name for name in names if name in BARE_LIMITS):
        measured = []
        for number in range(BARE_ROUNDS + 1):
            talk(f"{name} beside the bare process: {number or 'first'}")
            lake, bare = work / "beside-bare" / "lake", work / "beside-bare" / "bare"
            begun = sampled([sys.executable, "-c", BARE, bare])
            built = sampled(build_command(name, lake, "spark"))
            if begun.code or built.code:
                raise SystemExit(f"{name} beside the bare process: {begun.log}{built.log}")
            shutil.rmtree(work / "beside-bare")
            if number:
                measured.append((built.seconds, begun.seconds, built.seconds / begun.seconds))
        ours, theirs, ratio = (median(values) for values in zip(*measured, strict=True))
        rows.append((name, f"{ours:.1f} s", f"{theirs:.1f} s", f"{ratio:.2f}", str(BARE_LIMITS[name])))
        if ratio > BARE_LIMITS[name]:
            missed.append(f"{name} beside the bare process")
    if rows:
        show(
            "Small builds beside a bare process", ("source", "build", "bare process", "ratio", "limit"), rows
        )
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default=",".join(SOURCES), help="sources, divided by commas")
    parser.add_argument("--peer", default="django", help="the source that the peer reads too")
    parser.add_argument("--no-peer", dest="peer", action="store_const", const=None)
    parser.add_argument("--no-engines", dest="engines", action="store_false", help="only on Spark")
    parser.add_argument("--no-bare", dest="bare", action="store_false", help="without the bare process")
    parser.add_argument("--work", type=Path, help="a folder where the lakes stay")
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := set(names) - set(SOURCES):
        parser.error(f"no such source: {', '.join(sorted(unknown))}; there are {', '.join(SOURCES)}")
    if given.peer and not PEER.is_file():
        talk("Joern is left out: set JOERN_RUN to a script that runs it on a folder and prints its seconds")
        given.peer = None
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        if there := [name for name in names if (work / name).exists()]:
            parser.error(f"{work} has {', '.join(there)} already; name another folder")
        builds = [measure(name, work / name, name == given.peer) for name in names]
        others = {name: engine for name, engine in OTHER_ENGINES.items() if name in names and given.engines}
        informative = [
            measure(name, work / f"{name}-{engine}", False, engine) for name, engine in others.items()
        ]
        missed = beside_bare(names, work) if given.bare else []
    show_builds([*builds, *informative])
    show_stored(builds)
    missed += [f"verify of {each.name}" for each in (*builds, *informative) if each.verify_code]
    for each in builds:
        if each.peer:
            missed += beside_peer(each, each.peer)
    missed += per_line(builds)
    if missed:
        print(f"\nMissed: {', '.join(missed)}")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
