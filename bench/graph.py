"""The whole `build` on local[2] in the default profile: time, memory, bytes and counts, beside Joern.

    make bench-graph                              # all sources, the peer on django: about half an hour
    PYTHONPATH=tests python bench/graph.py --only requests,flask --no-peer --work DIR

Every build is the real command in a process of its own with a lake of its own, wall time from process start
to its end; then `codeanatomy verify` checks the lake. `django` is the source distribution, with its tests;
`django-wheel` is what is installed. The peer is Joern's Python frontend with its overlays, run right after
our build of the same folder; its time is what its script prints, without the resolution of its jars.
Printed is Markdown for FIGURES.md; progress goes to stderr. Exit code 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from memory import Memory

from codeanatomy import catalog
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, EdgeKind, NodeKind
from codeanatomy.delta.read.light import light_table, location
from support import corpus

# A script that runs Joern on a folder and prints its seconds.
PEER = Path(os.environ.get("JOERN_RUN", "joern-run.sh"))
COMMAND = Path(sys.executable).with_name("codeanatomy")
OPTIONS = ("--types", "off", "--master", "local[2]", "--profile", "default", "--format", "json")
SOURCES: dict[str, Callable[[], Path]] = {
    "requests": lambda: corpus.package("requests"),
    "flask": lambda: corpus.package("flask"),
    "django-wheel": lambda: corpus.package("django"),
    "django": lambda: corpus.sdist("django"),
    "stdlib": lambda: Path(sysconfig.get_paths()["stdlib"]),
}
# From each to the next, time may grow as the lines do.
GROWTH = ("flask", "django", "stdlib")
TIME_LIMIT = 0.85
MEMORY_LIMIT = 0.6
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
        (repository,) = self.report["repositories"].values()
        return int(repository["files"])

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


def sampled(command: Sequence[str | Path]) -> tuple[int, str, float, dict[str, int]]:
    """Exit code, output, seconds and peak memory of a command."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        memory = Memory(process.pid)
        memory.start()
        said, _ = process.communicate()
        return process.returncode, said, time.monotonic() - began, memory.stop()


def measure(name: str, lake: Path, with_peer: bool) -> Built:
    talk(f"{name}: build")
    source = SOURCES[name]()
    code, said, seconds, peak = sampled([COMMAND, "build", f"{name}={source}", "--lake", lake, *OPTIONS])
    if code:
        raise SystemExit(f"build of {name}: exit code {code}\n{said}")
    report = json.loads(said)
    stored = {table: actions(lake, table) for table in report["tables"]}
    read = light_table(str(lake), "repo_files_v1", ["size_bytes"], pc.field("skipped_reason").is_null())
    talk(f"{name}: verify")
    verify_code, said, verify_seconds, _ = sampled([COMMAND, "verify", "--lake", lake])
    if verify_code:
        talk(said)
    return Built(
        name,
        seconds,
        report,
        peak,
        source_bytes=pc.sum(read["size_bytes"]).as_py(),
        bytes={table: sum(file["size_bytes"] for file in files) for table, files in stored.items()},
        kinds={table: by_kind(table, stored[table]) for table in KINDS},
        verify_code=verify_code,
        verify_seconds=verify_seconds,
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
    code, said, _, peak = sampled([PEER, source])
    found = re.search(r"joern parse ([\d.]+) s, overlays ([\d.]+) s.*", said)
    if code or not found:
        talk(f"the peer failed with exit code {code}: {said}")
        return None
    return Peer(float(found[1]) + float(found[2]), peak["jvm"], found[0])


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
    steps = ((step, *(f"{each.steps[step]:.1f}" for each in builds)) for step in builds[0].steps)
    show("Seconds by step (steps may overlap; the total is their wall time)", ("step", *names), steps)
    show(
        "Peak memory, MB (together: at one moment)",
        ("of", *names),
        (
            (kind, *(f"{each.peak.get(kind, 0) / MB:,.0f}" for each in builds))
            for kind in ("driver", "jvm", "workers", "together")
        ),
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


def growth(builds: Sequence[Built]) -> list[str]:
    """Print how time grows with the lines, and say where it grows faster."""
    missed = []
    for small, large in pairwise(each for name in GROWTH for each in builds if each.name == name):
        lines, seconds = large.lines / small.lines, large.seconds / small.seconds
        further = (large.seconds - small.seconds) / (large.lines - small.lines) * 1000
        what = f"{small.name} to {large.name}"
        judged = "faster" if seconds > lines else "no faster"
        print(f"\n{what}: {lines:.2f} times the lines, {seconds:.2f} times the time: {judged} than linear;")
        print(f"{further:.3f} s for each further 1000 lines.")
        if seconds > lines:
            missed.append(f"linear growth from {what}")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default=",".join(SOURCES), help="sources, divided by commas")
    parser.add_argument("--peer", default="django", help="the source that the peer reads too")
    parser.add_argument("--no-peer", dest="peer", action="store_const", const=None)
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
    show_builds(builds)
    show_stored(builds)
    missed = [f"verify of {each.name}" for each in builds if each.verify_code]
    for each in builds:
        if each.peer:
            missed += beside_peer(each, each.peer)
    missed += growth(builds)
    if missed:
        print(f"\nMissed: {', '.join(missed)}")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
