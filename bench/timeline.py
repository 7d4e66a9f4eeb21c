"""Where a build of django's source distribution keeps two cores busy, and what it costs beside Joern.

    JOERN_RUN=joern-run.sh PYTHONPATH=tests python bench/timeline.py [--no-peer] [--every SECONDS]

One run on a machine that does nothing else, with default settings: the build with types, the build without,
then Joern on the same folder. Of each: wall seconds, processor seconds of the machine (from /proc/stat), the
fall of MemAvailable. Of the build with types also a time line: cores in use by kind of process, and the steps
that began or ended, as the log of the build has them.
Printed is Markdown for FIGURES.md. Exit code 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable
from graph import COMMAND, LOGGED, PEER
from processor import processor_seconds

from support import corpus

MB = 1024 * 1024
# Beside Joern: wall seconds with and without types, processor seconds, memory.
LIMITS = {"wall": 0.50, "wall without types": 0.45, "processor": 0.6, "memory": 0.40}
BAR = 20
# Metric of a function over pieces in a frame.
TAKEN = "data_sent_to_python_workers_bytes"


class Machine(NamedTuple):
    """Processor ticks that the machine has used, and its available bytes."""

    busy: int
    available: int

    @staticmethod
    def now() -> Machine:
        cells = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
        memory = re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())
        return Machine(sum(cells) - cells[3] - cells[4], int(memory[1]) * 1024 if memory else 0)


class Measured(NamedTuple):
    """What a command has taken."""

    seconds: float
    processor: float
    memory: int
    output: str
    log: str
    # Moment, and processor seconds by kind of process since the sample before.
    samples: list[tuple[float, dict[str, float]]]


def measure(command: Sequence[str | Path], every: float) -> Measured:
    """Run a command, and sample the machine and the processes."""
    before, began = Machine.now(), time.monotonic()
    least, samples, done = before.available, list[tuple[float, dict[str, float]]](), threading.Event()
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):

        def sample() -> None:
            nonlocal least
            known: Counter[str] = Counter()
            while not done.wait(every):
                least = min(least, Machine.now().available)
                spent = processor_seconds(process.pid)
                samples.append((time.time(), {kind: max(0.0, spent[kind] - known[kind]) for kind in spent}))
                known = Counter({kind: max(spent[kind], known[kind]) for kind in spent})

        sampler = threading.Thread(target=sample)
        sampler.start()
        output, _ = process.communicate()
        done.set()
        sampler.join()
        after, seconds = Machine.now(), time.monotonic() - began
        log.seek(0)
        text = log.read()
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with exit code {process.returncode}\n{output}{text}")
    processor = (after.busy - before.busy) / os.sysconf("SC_CLK_TCK")
    return Measured(seconds, processor, before.available - least, output, text, samples)


def build(source: Path, lake: Path, types: str, every: float) -> Measured:
    options = ("--types", types, "--lake", lake, "--format", "json")
    return measure([COMMAND, *LOGGED, "build", f"django={source}", *options], every)


def stage_marks(log: str) -> list[tuple[float, str]]:
    """Return when steps begin and end, from the log of a build."""
    records = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [
        (datetime.fromisoformat(each["time"]).timestamp(), f"{each['step']} {each['message'].split()[-1]}")
        for each in records
        if each["message"] in ("step begins", "step done")
    ]


def show_timeline(measured: Measured, every: float) -> None:
    marks = stage_marks(measured.log)
    start = measured.samples[0][0] - every
    print("\n| second | cores in use | JVM | Python | steps |\n|---|---|---|---|---|")
    last = start
    for moment, spent in measured.samples:
        span = moment - last
        of_jvm, whole = spent.get("jvm", 0.0) / span, sum(spent.values()) / span
        names = ", ".join(name for at, name in marks if last <= at < moment)
        bar = "#" * min(BAR, round(whole / 2 * BAR))
        cells = (
            f"{moment - start:.0f}",
            f"`{bar:<{BAR}}` {whole:.2f}",
            f"{of_jvm:.2f}",
            f"{whole - of_jvm:.2f}",
        )
        print(f"| {' | '.join(cells)} | {names} |")
        last = moment
    idle = sum(max(0.0, 2 * every - sum(spent.values())) for _, spent in measured.samples)
    print(f"\nIdle: about {idle:.0f} of {2 * measured.seconds:.0f} core seconds.")


def exchanged_bytes(lake: Path) -> int:
    """Return the bytes of pieces that tasks got from other tasks: what frames hand to their functions."""
    frames = DeltaTable(str(lake / "observe" / "plan_artifacts")).to_pyarrow_table().to_pylist()
    taken = 0
    for frame in frames:
        metrics = [each for each in frame["operator_metrics"] or () if each["metric"] == TAKEN]
        taken += min(metrics, key=lambda each: each["operator_no"])["value"] if metrics else 0
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--no-peer", dest="peer", action="store_false")
    parser.add_argument("--every", type=float, default=4.0, help="seconds of a line")
    given = parser.parse_args()
    source = corpus.sdist("django")
    print(f"Load before: {os.getloadavg()[0]:.1f}.")
    with tempfile.TemporaryDirectory() as work:
        typed = build(source, Path(work, "typed"), "auto", given.every)
        untyped = build(source, Path(work, "untyped"), "off", given.every)
        moved = exchanged_bytes(Path(work, "typed"))
        read = sum(path.stat().st_size for path in source.rglob("*.py"))
    show_timeline(typed, given.every)
    print(
        f"\nPieces that tasks got: {moved / MB:,.0f} MB for {read / MB:.1f} MB of sources,"
        f" {moved / read:.0f} bytes per byte."
    )
    rows = [("with types", typed), ("without types", untyped)]
    peer = measure([PEER, source], given.every) if given.peer and PEER.is_file() else None
    rows += [("Joern", peer)] if peer else []
    print(
        "\n| django sdist | wall seconds | processor seconds | fall of MemAvailable, MB |\n|---|---|---|---|"
    )
    for name, each in rows:
        print(f"| {name} | {each.seconds:.1f} | {each.processor:.1f} | {each.memory / MB:,.0f} |")
    if peer is None:
        return
    said = re.search(r"joern parse ([\d.]+) s, overlays ([\d.]+) s", peer.output)
    seconds = float(said[1]) + float(said[2]) if said else peer.seconds
    ratios = {
        "wall": typed.seconds / seconds,
        "wall without types": untyped.seconds / seconds,
        "processor": typed.processor / peer.processor,
        "memory": typed.memory / peer.memory,
    }
    print(
        f"\nJoern by its own words: {seconds:.1f} s.\n\n| beside Joern | measured | at most |\n|---|---|---|"
    )
    for name, ratio in ratios.items():
        print(f"| {name} | {ratio:.2f} | {LIMITS[name]:.2f} |")
    missed = [name for name, ratio in ratios.items() if ratio > LIMITS[name]]
    if missed:
        print(f"\nMissed: {', '.join(missed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
