"""A lake that has aged by many refreshes: what maintenance makes of it, and that nothing is lost.

    make bench-aging                                     # django, 50 refreshes: about half an hour
    PYTHONPATH=tests python bench/aging.py --package requests --runs 3 --lake DIR

The lake of a package is built in full, then refreshed after each of so many edits, drawn by a seed: a longer
body in two modules that nobody imports, and a new function in any module. Each build is the real command,
with `--engine local` and deletion vectors (`--readers modern`), which maintenance removes. With `--lake` the
folder stays, and the aged lake in it is used again, or aged on; everything else is done with a copy of it.

Measured before and after `codeanatomy maintain`, and after `vacuum` and `cleanup-log` with a retention that
half of the runs are outside of: files, bytes and logs; five lookups, each by a new reader from opening the
lake to the answer, with the files they had to read; at both ends the next refresh after the same edit.
Checked is then:

    runs within the retention   rows of all pinned tables by the manifest, content of some by a digest
    runs outside of it          gone, with an error that says so, or whole: they may share all of their files
    the newest run              row for row the aged lake's, and without findings of `verify`

Printed is Markdown for FIGURES.md; progress goes to stderr. Exit code 1 if a check fails.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median, median_low
from typing import Any, NamedTuple

from incremental import COMMAND, OPTIONS, Built, talk, with_longer_body

from codeanatomy.config import load_settings
from codeanatomy.delta.read.duck import open_database, select_rows
from codeanatomy.delta.read.readable import require_readable
from codeanatomy.errors import CodeAnatomyError, TableMissing, VersionGone
from codeanatomy.lake.snapshot import RecordedRun, Snapshot, recorded_runs
from codeanatomy.maintain.inspection import LakeInspection, MaintenanceRequest
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from codeanatomy.query.engines.statements import Query, Slice, nodes
from codeanatomy.query.lake import Lake
from support import corpus

SEED = 11
# A lake with deletion vectors; a session for each of its builds would take most of the time.
LAKE_OPTIONS = ("--engine", "local", "--readers", "modern")
# Modules whose bodies one edit changes.
BODIES = 2
# Symbols that each lookup is asked about, and how often.
SYMBOLS, TIMES = 5, 3
# The same edit is made and undone so often; both are measured.
PROBES = 2
MB = 2**20


class Reading(NamedTuple):
    """A lookup: milliseconds, and data files of the tables that it is about."""

    best: float
    middle: float
    files: int
    total: int


class State(NamedTuple):
    """A lake at one moment, as the lines of a table."""

    lines: dict[str, str]
    lookups: dict[str, Reading]
    by_id: dict[str, tuple[int, int]]


class Subject(NamedTuple):
    """A function that is asked about."""

    node_id: str
    qualname: str
    name: str
    place: str


def command(*words: str | Path) -> dict[str, Any]:
    """What a command of ours prints as JSON; it has to end well."""
    done = subprocess.run(
        [COMMAND, *words, "--format", "json"], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def build(package: str, source: Path, lake: Path) -> Built:
    """A build by the command, with the options of the other benchmark."""
    began = time.monotonic()
    done = subprocess.run(
        [COMMAND, "build", f"{package}={source}", "--lake", lake, *LAKE_OPTIONS, *OPTIONS],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Built(json.loads(done.stdout), time.monotonic() - began)


def module_of(source: Path, file: Path) -> str:
    parts = file.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(module: str, tree: ast.AST, *, is_package: bool) -> Iterator[str]:
    """The modules that a module imports, and the names from them, which may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = module.split(".")[: -(node.level - is_package) or None] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def leaves(source: Path) -> list[Path]:
    """The files with functions that no other file imports, in their order."""
    trees = {file: ast.parse(file.read_bytes()) for file in sorted(source.rglob("*.py"))}
    seen = {
        name
        for file, tree in trees.items()
        for name in imported(module_of(source, file), tree, is_package=file.name == "__init__.py")
    }
    return [
        file
        for file, tree in trees.items()
        if module_of(source, file) not in seen
        and any(isinstance(node, ast.FunctionDef) and len(node.body) > 1 for node in ast.walk(tree))
    ]


def edit(source: Path, free: Sequence[Path], number: int) -> None:
    """The edit before a run: the same for the same number."""
    drawn = random.Random(f"{SEED} {number}")
    for file in drawn.sample(free, min(BODIES, len(free))):
        file.write_text(with_longer_body(file.read_text(encoding="utf-8")), encoding="utf-8")
    file = drawn.choice(sorted(source.rglob("*.py")))
    with file.open("a", encoding="utf-8") as text:
        text.write(f"\n\ndef added_before_run_{number}(given):\n    return [given, {number}]\n")


def aged(package: str, work: Path, runs: int) -> tuple[Path, Path]:
    """The source and a lake of it after a full build and so many refreshes."""
    source, lake = work / package, work / "aged"
    if not lake.is_dir():
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(corpus.package(package), source)
        talk("full build")
        build(package, source, lake)
    # One is for the probe.
    free = leaves(source)[1:]
    for number in range(len(published(lake)), runs + 1):
        edit(source, free, number)
        done = build(package, source, lake)
        talk(f"run {number}: {done.seconds:.1f} s, {done.rows:,} rows")
    return source, lake


def published(lake: Path) -> list[RecordedRun]:
    return [run for run in recorded_runs(str(lake)) if run.succeeded]


def probed(package: str, source: Path, lake: Path) -> list[float]:
    """Seconds of the refreshes after an edit of one module, and after it was undone."""
    file, seconds = leaves(source)[0], []
    before = file.read_bytes()
    try:
        for text in [with_longer_body(before.decode()).encode(), before] * PROBES:
            file.write_bytes(text)
            seconds.append(build(package, source, lake).seconds)
    finally:
        file.write_bytes(before)
    return seconds


def subjects(lake: Path) -> list[Subject]:
    """Functions of one name that somebody calls, drawn by the seed."""
    query = Query(
        "SELECT n.node_id, n.qualname, n.name, n.path, n.line FROM n SEMI JOIN e ON e.dst_node_id = n.node_id"
        " WHERE n.subkind <> 'lambda' AND n.path IS NOT NULL"
        " QUALIFY count(*) OVER (PARTITION BY n.qualname) = 1",
        {"n": nodes(("FUNCTION",)), "e": Slice("cpg_edges", edge_kind=("CALL_GRAPH",))},
        order=("node_id",),
    )
    found = Lake.open(lake).reader.rows(query)
    chosen = random.Random(SEED).sample(found, min(SYMBOLS, len(found)))
    # A line inside of it: its own is found by the name.
    return [
        Subject(node_id, qualname, name, f"{path}:{line + 1}")
        for node_id, qualname, name, path, line in chosen
    ]


def by_id(node_id: str) -> Query:
    return Query("SELECT * FROM n", {"n": Slice("cpg_nodes", node_id=(node_id,))})


# What is asked of a lake about a function.
LOOKUPS: dict[str, Callable[[Lake, Subject], object]] = {
    "a node by its id": lambda lake, one: lake.reader.rows(by_id(one.node_id)),
    "callers of a symbol": lambda lake, one: lake.callers(one.qualname),
    "find by name": lambda lake, one: lake.find(one.name),
    "show at `file:line`": lambda lake, one: lake.show(one.place),
    "refs of a symbol": lambda lake, one: lake.refs(one.qualname),
}


def measured(root: Path, lookup: Callable[[Lake, Subject], object], asked: Sequence[Subject]) -> Reading:
    """Each lookup by a new reader; what is first read of a disk is not counted."""
    seconds, files, total = [], [], []
    for one in asked:
        for number in range(TIMES + 1):
            began = time.monotonic()
            lake = Lake.open(root)
            lookup(lake, one)
            if number:
                seconds.append(time.monotonic() - began)
        files.append(sum(scan.candidate_files or 0 for scan in lake.reader.scans))
        total.append(sum(scan.total_files or 0 for scan in lake.reader.scans))
    return Reading(1000 * min(seconds), 1000 * median(seconds), median_low(files), median_low(total))


def pruned(root: Path, node_id: str) -> dict[str, tuple[int, int]]:
    """Files that may hold a node, and files, of the lookups by its id alone and by its kind too."""
    reader = Lake.open(root).reader
    whole = len(reader.files(Slice("cpg_nodes")))
    return {
        "by id": (len(reader.files(Slice("cpg_nodes", node_id=(node_id,)))), whole),
        "by id and kind": (len(reader.files(nodes(("FUNCTION",), node_id=(node_id,)))), whole),
    }


def state(root: Path, asked: Sequence[Subject]) -> State:
    """Everything that is measured of a lake without a change to it."""
    found = LakeInspection(MaintenanceRequest(str(root), load_settings(env={}, start=None))).states.values()

    def whole(name: str) -> int:
        return sum(getattr(one, name) for one in found)

    lines = {
        "data files": f"{whole('files'):,}",
        "of them small, with others beside them": f"{whole('small_files'):,}",
        "data, MB": f"{whole('bytes') / MB:,.1f}",
        "rows removed by deletion vectors": f"{whole('deleted_rows'):,}",
        "log entries": f"{whole('log_entries'):,}",
        "log, MB": f"{whole('log_bytes') / MB:,.1f}",
        "dead files": f"{whole('dead_files'):,}",
        "dead, MB": f"{whole('dead_bytes') / MB:,.1f}",
    }
    times = {name: measured(root, lookup, asked) for name, lookup in LOOKUPS.items()}
    return State(lines, times, pruned(root, asked[0].node_id))


def counted(root: Path, run_id: str) -> list[str]:
    """Tables of a run that have other rows than its manifest says; what cannot be read is an error."""
    lake, wrong = Lake.open(root, run_id), []
    for name, pin in lake.snapshot.pins.items():
        ((rows,),) = lake.reader.rows(Query("SELECT count(*) FROM t", {"t": Slice(name)}))
        if rows != pin.rows:
            wrong.append(f"{name} of {run_id} has {rows:,} rows and not {pin.rows}")
    return wrong


def digests(root: Path, run_id: str) -> dict[str, tuple[int, int]]:
    """The content of each table of a run: rows, and the sum of their hashes, whatever their order."""
    lake, found = Snapshot.open(str(root), run_id), {}
    with open_database() as opened:
        for name in lake.pins:
            rows = select_rows(str(root), name, lake.files(name))
            (told,) = opened.sql(
                f"SELECT count(*), coalesce(sum(hash(t)::HUGEINT), 0) FROM ({rows}) AS t"
            ).fetchall()
            found[name] = told
    return found


class Gone(NamedTuple):
    """What is said of a run that cannot be read any more."""

    restoring: str
    # None: its rows were counted nevertheless.
    reading: CodeAnatomyError | None


def gone(root: Path, run_id: str) -> Gone | None:
    """What is said of a run to who restores it and to who reads it; none: it is whole."""
    lake = Snapshot.open(str(root), run_id)
    try:
        for name, pin in lake.pins.items():
            require_readable(str(root), name, pin.version)
    except VersionGone as problem:
        restoring = problem.message
    else:
        return None
    try:
        counted(root, run_id)
    except CodeAnatomyError as problem:
        return Gone(restoring, problem)
    return Gone(restoring, None)


class Retained(NamedTuple):
    """What became of the runs when files were removed."""

    hours: float
    inside: int
    # Of these, those whose content was compared.
    alike: int
    outside: int
    gone: int
    failures: list[str]
    # What is said of the oldest that is gone.
    said: Gone | None


def removed(root: Path) -> Retained:
    """Remove what the newer half of the runs does not need, and look at each of them."""
    runs = published(root)
    half = len(runs) // 2
    # The first may leave the retention while files are removed: one after it stands in for it.
    places = (half, min(half + 3, len(runs) - 1), (half + len(runs)) // 2, len(runs) - 1)
    known = {runs[place].run_id: digests(root, runs[place].run_id) for place in places}
    # Between two runs.
    moment = runs[half - 1].finished_at + (runs[half].finished_at - runs[half - 1].finished_at) / 2
    began = datetime.now(UTC)
    hours = (began - moment) / timedelta(hours=1)
    for verb in ("vacuum", "cleanup-log"):
        command(verb, "--lake", root, "--retention-hours", f"{hours:.6f}", "--unsafe", "--keep-needed")
    # What was in the retention at its beginning may have left it at the end.
    since, surely_since = (each - timedelta(hours=hours) for each in (began, datetime.now(UTC)))
    inside = [run for run in runs if run.finished_at >= surely_since]
    # That which was published when it began counts as within it.
    outside = [run for run in runs if run.finished_at < since][:-1]
    failures = []
    for run in inside:
        try:
            failures += counted(root, run.run_id)
        except CodeAnatomyError as problem:
            failures.append(f"{run.run_id}, which is within the retention, cannot be read: {problem.message}")
    alike = [run.run_id for run in inside if run.run_id in known]
    for run_id in alike:
        content, now = known[run_id], digests(root, run_id)
        failures += [f"{name} of {run_id} has other rows" for name in content if now[name] != content[name]]
    told = {run.run_id: gone(root, run.run_id) for run in outside}
    for run_id, said in told.items():
        if said is None:
            failures += counted(root, run_id)
        elif not isinstance(said.reading, VersionGone | TableMissing):
            failures.append(f"{run_id} is gone, and who reads it is told: {said.reading or 'nothing'}")
    lost = [said for said in told.values() if said]
    if not lost:
        failures.append("no run is gone: the retention was not tried")
    return Retained(
        hours, len(inside), len(alike), len(outside), len(lost), failures, lost[0] if lost else None
    )


def print_states(states: dict[str, State]) -> None:
    names = list(states)
    first = states[names[0]]
    print(f"| | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for line in first.lines:
        print(f"| {line} | {' | '.join(each.lines[line] for each in states.values())} |")
    print(f"\n| lookup: best, median ms; files read | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for name in first.lookups:
        cells = [
            f"{one.best:.0f}, {one.middle:.0f}; {one.files:,} of {one.total:,}"
            for one in (each.lookups[name] for each in states.values())
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"\n| files of cpg_nodes that may hold a node | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for name in first.by_id:
        cells = [f"{one:,} of {whole:,}" for one, whole in (each.by_id[name] for each in states.values())]
        print(f"| {name} | {' | '.join(cells)} |")


def measure(package: str, work: Path, runs: int) -> int:
    source, old = aged(package, work, runs)
    lake = work / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    # With their times: the retention goes by them.
    shutil.copytree(old, lake)
    refreshes = len(published(lake)) - 1
    asked = subjects(lake)
    talk("probe, aged")
    slow = probed(package, source, lake)
    states = {"aged": state(lake, asked)}
    talk("maintain")
    done = command("maintain", "--lake", lake)
    failures = [
        f"{each['operation']} of {each['table_name']}: {each['reason']}"
        for each in done["outcomes"]
        if each["outcome"] != "done"
    ]
    states["maintained"] = state(lake, asked)
    talk("vacuum, cleanup-log")
    kept = removed(lake)
    failures += kept.failures
    states["vacuumed"] = state(lake, asked)
    talk("probe, vacuumed")
    fast = probed(package, source, lake)
    talk("compare, verify")
    compared, checked = compare_lakes(str(lake), str(old)), verify(str(lake))
    if compared.total or checked.total:
        failures.append(f"{compared.total:,} rows differ, {checked.total:,} findings")
    operations = [each["operation"] for each in done["outcomes"]]
    listed = ", ".join(f"{name} {operations.count(name):,}" for name in dict.fromkeys(operations))
    print(f"{package}, {refreshes:,} refreshes. `maintain`: {done['seconds']:.1f} s; {listed}.\n")
    print_states(states)
    print(
        f"\nThe next refresh (least, median of {len(slow)}): aged {min(slow):.1f}, {median(slow):.1f} s;"
        f" vacuumed {min(fast):.1f}, {median(fast):.1f} s."
        f"\n\nA retention of {kept.hours:.3f} hours: {kept.inside:,} runs within it, each with the rows of"
        f" its manifest, {kept.alike:,} compared by content; of {kept.outside:,} outside of it"
        f" {kept.gone:,} are gone, the others whole."
        f"\nCompared with the aged lake: {sum(compared.rows.values()):,} rows, {compared.total:,}"
        f" differences. `verify`: {checked.total:,} findings."
    )
    if kept.said:
        restoring, reading = (str(each).replace(str(lake), "lake") for each in kept.said)
        print(f"\nWho restores a run that is gone is told: {restoring}\nWho reads it: {reading}")
    for each in failures:
        talk(f"failed: {each}")
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50, help="refreshes after the full build")
    parser.add_argument("--package", default="django", help="a pinned package of tests/packages.lock")
    parser.add_argument(
        "--lake", type=Path, help="a folder for source and lakes that stays and is used again"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as folder:
        work = given.lake or Path(folder)
        return measure(given.package, work.absolute(), given.runs)


if __name__ == "__main__":
    sys.exit(main())
