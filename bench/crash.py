"""Builds that are killed at random moments: nothing is lost, nothing is doubled, readers never notice.

    make bench-crash                                         # requests, 30 kills
    PYTHONPATH=tests python bench/crash.py --source src/x --rounds 50 --seed 7

A lake holds two repositories: one that changes between three versions (files edited, added, removed), and one
that stays as it is. For every version a clean build in a fresh lake tells which rows there must be. Then each
round chooses a version, starts `codeanatomy build`, and kills it with SIGKILL at a random moment between its
start and the time that a whole build takes:

    group     the driver and the JVM at once, as when memory runs out
    driver    Python alone; its JVM notices, and may finish a commit meanwhile
    jvm       the JVM alone; the driver has to say so and to end by itself

After each, the published rows of all tables must be those of before, every count of the manifest right, and
`verify` clean. Every few rounds the next build runs to its end, at once after a kill, and must publish the
rows of a clean build. A line per round tells when and in which step it died, what the next plan would do, and
how long the round took. Exit code 1 on any difference. The short version is in
`tests/system/test_failures.py`.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from codeanatomy.config import load_settings
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.plan.repositories import Repository
from codeanatomy.progress import Progress
from codeanatomy.query.checks.verify import verify
from codeanatomy.run.build import plan
from support import corpus
from support.processes import left_over, members
from support.published_rows import Figures, counted, current, published

VERSIONS = 3
STEADY = {
    "kept/__init__.py": b"from kept.area import Circle\n",
    "kept/area.py": b"class Circle:\n    def area(self, pi=3):\n        return pi * self.r ** 2\n",
    "kept/broken.py": b"x = = 1\ny = 2\n",
    "kept/latin.py": b"name = '\xe9'\n",
}
HOW = ("group", "driver", "jvm")
# A whole build is never waited for longer.
MOST_SECONDS = 900
MOST_TRIES = 3
# Before and after what a run says of its own time.
STARTUP_SECONDS = 3
# Of a build that has everything to do.
STEPS = 4
# Processes that a dead driver or JVM has left must be gone by then.
ORPHAN_SECONDS = 30
# Share of rounds that repeat the published version, so that a run has only leftovers to undo.
REPEATED = 0.15
# The options that the plan is asked with, too.
OPTIONS = ("--types", "off")


@dataclass
class Bench:
    """The folders, and what was seen so far."""

    work: Path
    source: Path
    chance: random.Random
    # By version.
    clean: dict[int, Figures] = field(default_factory=dict)
    # Of the last whole build.
    seconds: float = 0.0
    version: int = 0
    # Whether the last run has left something to undo.
    leftovers: bool = False
    figures: Figures = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def lake(self) -> Path:
        return self.work / "lake"

    @property
    def sources(self) -> dict[str, Path]:
        return {"changing": self.work / "changing", "steady": self.work / "steady"}

    def wrong(self, what: str) -> None:
        self.problems.append(what)
        print(f"    WRONG: {what}", flush=True)


def put(bench: Bench, version: int) -> None:
    """Give the source one of its versions: 1 has edited and added files, 2 lacks some."""
    place = bench.sources["changing"]
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(bench.source, place, ignore=shutil.ignore_patterns("*.pyc", ".git"))
    files = sorted(path for path in place.rglob("*.py") if path.stat().st_size)
    if version == 1:
        for path in files[::2]:
            path.write_bytes(path.read_bytes() + b"\n\ndef added_at_the_end(x):\n    return x.again()\n")
        (place / "added").mkdir()
        (place / "added" / "__init__.py").write_bytes(b"def added():\n    return 1\n")
        (place / "added" / "broken.py").write_bytes(b"z = (1 2)\nw = 3\n")
    if version == 2:
        for path in files[1::3]:
            path.unlink()


def command(bench: Bench, lake: Path) -> list[str]:
    named = [f"{name}={path}" for name, path in bench.sources.items()]
    program = [sys.executable, "-m", "codeanatomy", "build", *named, "--lake", str(lake)]
    return [*program, *OPTIONS, "--log-format", "json"]


def whole_build(bench: Bench, lake: Path, said: Path) -> float:
    """A build that is left alone; returns how long it took."""
    began = time.monotonic()
    with said.open("wb") as log:
        done = subprocess.run(command(bench, lake), stdout=log, stderr=log, check=False, timeout=MOST_SECONDS)
    if done.returncode:
        bench.wrong(f"a build ended with {done.returncode}: {last_words(said)}")
    seconds = time.monotonic() - began
    learn(bench, seconds, said)
    return seconds


def learn(bench: Bench, seconds: float, said: Path) -> None:
    """How long a build takes that has everything to do: that changes with what else the machine does."""
    if sum(event.get("message") == "step done" for event in events(said)) == STEPS:
        bench.seconds = seconds


def clean_builds(bench: Bench) -> None:
    """What there must be for every version, and the lake that is attacked."""
    for version in range(VERSIONS):
        put(bench, version)
        lake, fresh = bench.work / f"clean-{version}", bench.work / "fresh"
        if not lake.exists():
            shutil.rmtree(fresh, ignore_errors=True)
            whole_build(bench, fresh, bench.work / "said")
            fresh.rename(lake)
        bench.clean[version] = current(lake)
        rows = sum(count for count, _ in bench.clean[version].values())
        run = recorded_runs(str(lake))[-1]
        bench.seconds = (run.finished_at - run.started_at).total_seconds() + STARTUP_SECONDS
        print(f"clean build of version {version}: {rows:,} rows, {bench.seconds:.1f} s", flush=True)
    bench.version = VERSIONS - 1
    shutil.rmtree(bench.lake, ignore_errors=True)
    shutil.copytree(bench.work / f"clean-{bench.version}", bench.lake)
    bench.figures = published(bench.lake)


def killed_build(bench: Bench, how: str, moment: float, said: Path) -> tuple[int, int, bool]:
    """Start a build and kill it at a moment; its process, its exit code, and whether it was killed."""
    began = time.monotonic()
    with said.open("wb") as log:
        process = subprocess.Popen(command(bench, bench.lake), stdout=log, stderr=log, start_new_session=True)
    try:
        code = process.wait(moment)
    except subprocess.TimeoutExpired:
        killed = kill(process, how)
    else:
        learn(bench, time.monotonic() - began, said)
        return process.pid, code, False
    try:
        code = process.wait(MOST_SECONDS)
    except subprocess.TimeoutExpired:
        bench.wrong("the driver did not end although its JVM was killed")
        process.kill()
        code = process.wait()
    return process.pid, code, killed


def kill(process: subprocess.Popen[bytes], how: str) -> bool:
    if how == "group":
        os.killpg(process.pid, signal.SIGKILL)
    elif how == "driver":
        process.kill()
    else:
        machines = [pid for pid, name in members(process.pid).items() if name == "java"]
        for pid in machines:
            os.kill(pid, signal.SIGKILL)
        return bool(machines)
    return True


def orphans(bench: Bench, session: int) -> None:
    """Whatever a killed build has left must end by itself."""
    left = left_over(session, ORPHAN_SECONDS)
    if left:
        bench.wrong(f"processes are left: {left}")
        for pid in left:
            os.kill(pid, signal.SIGKILL)


def events(said: Path) -> Iterator[dict[str, str]]:
    for line in said.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def died_in(said: Path) -> str:
    """The steps that had begun and had not ended, and the last table that was committed."""
    begun: dict[str, str] = {}
    for event in events(said):
        step, message = event.get("step", ""), event.get("message", "")
        if message == "step begins":
            begun[step] = ""
        elif message == "step done":
            begun.pop(step, None)
        elif message == "committed" and step in begun:
            begun[step] = f" after {event['table']}"
    if begun:
        return ", ".join(f"{step}{after}" for step, after in begun.items())
    # What was being done, not what was said of its end.
    lines = [line for line in said.read_text(errors="replace").splitlines() if line[:1].islower()]
    lines = [line for line in lines if not line.startswith("error")]
    return "after the last step" if any(True for _ in events(said)) else (lines or ["start"])[-1].split()[0]


def last_words(said: Path) -> str:
    return " | ".join(said.read_text(errors="replace").splitlines()[-3:])


def next_plan(bench: Bench) -> str:
    repositories = tuple(Repository(name, path) for name, path in bench.sources.items())
    settings = load_settings((), env={}, start=None)
    found = plan(BuildRequest(str(bench.lake), settings, repositories), Progress(io.StringIO()))
    actions: dict[str, set[str]] = {"run": set(), "resume": set()}
    for step in found.steps:
        for each in step.repositories:
            if each.action != "skip":
                actions[each.action].add(step.name)
    bench.leftovers = bool(found.undo)
    bench.seen["rounds with something to undo"] += bench.leftovers
    bench.seen["rounds with something to resume"] += bool(actions["resume"])
    told = [f"{action} {'+'.join(sorted(names))}" for action, names in actions.items() if names]
    return ", ".join([f"undo {len(found.undo)}", *told]) if found.undo or told else "nothing to do"


def check(bench: Bench, before: str, version: int, *, must_publish: bool) -> str:
    """Compare what readers see with what they must see; tells whether something new was published."""
    opened = Snapshot.open(str(bench.lake))
    new = opened.run_id != before
    if new:
        bench.version, bench.figures = version, published(bench.lake)
        if current(bench.lake) != bench.clean[version]:
            bench.wrong(
                f"version {version} differs: {differences(current(bench.lake), bench.clean[version])}"
            )
    elif must_publish and version != bench.version:
        bench.wrong("nothing was published")
    elif published(bench.lake) != bench.figures:
        bench.wrong(f"published rows changed: {differences(published(bench.lake), bench.figures)}")
    for said in counted(bench.lake):
        bench.wrong(said)
    checked = verify(str(bench.lake))
    if checked.findings:
        bench.wrong(f"verify: {checked.findings[:3]}")
    bench.seen["snapshots checked"] += 1
    return "published" if new else "as before"


def differences(found: Figures, wanted: Figures) -> str:
    return ", ".join(
        f"{name} {found.get(name, (0, 0))[0]} rows instead of {wanted.get(name, (0, 0))[0]}"
        for name in sorted({*found, *wanted})
        if found.get(name) != wanted.get(name)
    )


def chosen(bench: Bench, last: int) -> int:
    """The version of a round: often that of the last, so that there is something to resume."""
    if bench.leftovers and bench.chance.random() < REPEATED:
        return bench.version
    others = [version for version in range(VERSIONS) if version != bench.version]
    return last if last in others and bench.chance.random() < 0.5 else bench.chance.choice(others)


def attack(bench: Bench, number: int, how: str, version: int, moment: float) -> bool:
    """A round; whether a build was killed in it."""
    began = time.monotonic()
    before = Snapshot.open(str(bench.lake)).run_id
    put(bench, version)
    said = bench.work / f"said-{number}"
    pid, code, killed = killed_build(bench, how, moment, said)
    # Without its JVM a build ends with a message of ours, or had all it needed of it.
    if code not in ((-signal.SIGKILL,) if killed and how != "jvm" else (0, 4, 5) if killed else (0,)):
        bench.wrong(f"the build ended with {code}: {last_words(said)}")
    bench.seen[f"kills: {how}" if killed else "ended by themselves"] += 1
    state = check(bench, before, version, must_publish=False)
    orphans(bench, pid)
    print(
        f"{number:>3} {how:<6} at {moment:5.1f} s in {died_in(said) if killed else '-':<42.42} {state:<10}"
        f" next: {next_plan(bench):<48} {time.monotonic() - began:5.1f} s",
        flush=True,
    )
    return killed


def mend(bench: Bench, number: int, version: int) -> None:
    """The build after a kill, left alone."""
    before = Snapshot.open(str(bench.lake)).run_id
    put(bench, version)
    seconds = whole_build(bench, bench.lake, bench.work / f"mend-{number}")
    state = check(bench, before, version, must_publish=True)
    bench.leftovers = False
    bench.seen["whole builds after kills"] += 1
    print(f"    whole build of version {version}: {state}, {seconds:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", type=Path, help="a folder; by default the package requests")
    parser.add_argument("--rounds", type=int, default=30, help="kills")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--every", type=int, default=5, help="rounds until the next whole build")
    parser.add_argument(
        "--keep", type=Path, help="a folder for lakes and logs: clean builds in it are not repeated"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codeanatomy-crash-") as folder:
        work = given.keep or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        source = given.source or corpus.package("requests")
        bench = Bench(work.absolute(), source, random.Random(given.seed))
        for name, raw in STEADY.items():
            path = bench.sources["steady"] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        began = time.monotonic()
        clean_builds(bench)
        version = 0
        # Each in a part of its own, so that the moments are spread over the whole build.
        parts = bench.chance.sample(range(given.rounds), given.rounds)
        number = 0
        # A build that was faster than its killer counts for nothing.
        while parts and number < MOST_TRIES * given.rounds:
            number += 1
            version = chosen(bench, version)
            moment = bench.seconds * (parts[-1] + bench.chance.random()) / given.rounds
            if attack(bench, number, HOW[len(parts) % len(HOW)], version, moment):
                parts.pop()
            if number % given.every == 0 or not parts:
                # One that has something to do, also where the last was faster than its killer.
                version = version if version != bench.version else (version + 1) % VERSIONS
                mend(bench, number, version)
        kills = given.rounds - len(parts)
        told = "; ".join(f"{name} {count}" for name, count in sorted(bench.seen.items()))
        print(f"{kills} kills in {time.monotonic() - began:.0f} s; {told}; differences {len(bench.problems)}")
    raise SystemExit(1 if bench.problems else 0)


if __name__ == "__main__":
    main()
