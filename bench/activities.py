"""Processor seconds of a build by activity, and what a real build of the same folder takes in all.

    make bench-activities                                            # django's source distribution
    PYTHONPATH=tests python bench/activities.py FOLDER --every 20 --engine local
    PYTHONPATH=tests python bench/activities.py FOLDER --lake DIR    # without a build: DIR has one of FOLDER

The functions of the product work on every Nth file of the folder, in this process, one activity after the
other; their processor seconds are multiplied by N. The programs of all files are decoded and solved, because
a part of a repository is another repository; they are read from the lake of the real build.

    first pass    read and decode, parse by extractor, rows to Arrow, view, normalize, compile, pack
    solve         decode programs, solve, emit relations
    second pass   load views, graph rows, pack
    files         sort (copies of the edges, properties), write Parquet

The real build is the command in a process of its own, on two cores. Its processor seconds are sampled from
/proc by kind of process; `idle` is what two cores had left of its wall time, and `other Python` what its
Python processes took beyond the activities: start, imports, pipes, commits, exchange of pieces. With `--lake`
there is no build, and only the activities are printed. Printed is Markdown for FIGURES.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from codeanatomy.pipeline.second_pass import COPIES
from msgspec import msgpack
from processor import Processor

from codeanatomy import catalog
from codeanatomy.arrow import pack_rows, unpack_rows
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.delta.read.light import light_table
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import FAILURES, FileRows, extract_file, table_batches
from codeanatomy.extract.shared_rows import map_streams, shared_file, write_rows
from codeanatomy.extract.worker import extract_tables
from codeanatomy.file_view import FileView, fresh_view, load_views, project
from codeanatomy.graph.merge import SHARED, shared_row
from codeanatomy.graph.reads import reads as graph_reads
from codeanatomy.graph.rows import EDGES, PROPS, PROPS_MAP
from codeanatomy.graph.rows import file_rows as graph_rows
from codeanatomy.normalize.rules import FILE_TABLES, chunk_rows, file_columns
from codeanatomy.pipeline.executors.sorted_tables import in_order
from codeanatomy.pipeline.pieces import row_pieces
from codeanatomy.pipeline.sinks import Sink, TableFolder
from codeanatomy.plan.changes import TOOL_TABLES
from codeanatomy.relate.compile.file_program import compile_file
from codeanatomy.relate.program import Program
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import PROGRAMS, SolvedRepository, tables_of
from codeanatomy.sources.listing import list_folder
from codeanatomy.sources.reading import Reading, read_entries
from support import corpus

COMMAND = Path(sys.executable).with_name("codeanatomy")
OPTIONS = ("--types", "off", "--profile", "default", "--format", "json")
REPOSITORY = "measured"
CORES = 2
# Files that are worked on together, as in a chunk of a task.
GROUP = 16
READ, WRITE = "first pass: read and decode", "files: write Parquet"
SORTED = {**COPIES, PROPS: PROPS, PROPS_MAP: PROPS_MAP}


class Clock:
    """Processor seconds of this process by activity."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._activity = ""
        self._since = time.process_time()

    def switch(self, activity: str) -> None:
        """Begin an activity, and so end the one before; empty: nothing that counts."""
        now = time.process_time()
        if self._activity:
            self.spent[self._activity] += now - self._since
        self._activity, self._since = activity, now


class FirstPassed(NamedTuple):
    """What a group of files leaves for the second pass, packed."""

    views: Sequence[FileView]
    streams: dict[str, bytes]


class Totals(NamedTuple):
    """What a real build took."""

    seconds: float
    # Processor seconds.
    jvm: float
    python: float
    report: dict[str, Any]


def built(folder: Path, lake: Path, engine: str) -> Totals:
    """Run the real build and sample the processor seconds of its processes."""
    talk(f"build by --engine {engine}")
    command = [
        str(COMMAND),
        "--set",
        "runtime.cores=2",
        "build",
        f"{REPOSITORY}={folder}",
        "--lake",
        str(lake),
        "--engine",
        engine,
        *OPTIONS,
    ]
    began, before = time.monotonic(), children_seconds()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        processor = Processor(process.pid)
        processor.start()
        output, _ = process.communicate()
        seconds, spent = time.monotonic() - began, processor.stop()
    if process.returncode:
        raise SystemExit(f"the build ended with exit code {process.returncode}")
    jvm = spent.get("jvm", 0.0)
    # The system's sum has the last moments of all processes, but a JVM only if it was waited for.
    python = max(spent.get("driver", 0.0) + spent.get("workers", 0.0), children_seconds() - before - jvm)
    return Totals(seconds, jvm, python, json.loads(output))


def children_seconds() -> float:
    """Processor seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def groups(clock: Clock, folder: Path, every: int, options: ExtractOptions) -> Iterator[list[Reading]]:
    """Every Nth file of the folder, a few at a time."""
    listing = list_folder(folder, options)
    entries = [entry for entry in listing.entries if entry.skipped_reason is None][::every]
    for start in range(0, len(entries), GROUP):
        clock.switch(READ)
        yield list(read_entries("folder", listing.root, entries[start : start + GROUP], options))


def extracted(clock: Clock, readings: Sequence[Reading], options: ExtractOptions) -> list[FileRows]:
    """Run the extractors; before each step of a file the clock is switched to it."""
    steps = [
        READ,
        *(f"first pass: parse, {extractor.table}" for extractor in EXTRACTORS),
    ]
    files = []
    for reading in readings:
        clock.switch(steps[0])
        files.append(
            extract_file(REPOSITORY, reading, EXTRACTORS, options, {}, lambda step: clock.switch(steps[step]))
        )
    return files


def write(clock: Clock, name: str, batches: Sequence[pa.RecordBatch], folder: Path) -> None:
    """Write the rows of a table that are in its order."""
    clock.switch(WRITE)
    write_files(new_folder(folder, name), catalog.table(name), iter(batches), is_copy=name in COPIES)


def first_pass(
    clock: Clock, readings: Sequence[Reading], options: ExtractOptions
) -> tuple[FirstPassed, dict[str, pa.RecordBatch]]:
    """Work on files as pass one does; the rows for data files are returned, too."""
    files = extracted(clock, readings, options)
    clock.switch("first pass: rows to Arrow")
    names = [name for name in extract_tables(EXTRACTORS) if name not in TOOL_TABLES]
    tables = table_batches(names, files)
    clock.switch("first pass: view")
    views = [fresh_view(rows) for rows in files]
    clock.switch("first pass: normalize")
    tables |= chunk_rows([file_columns(view) for view in views])
    clock.switch("first pass: compile")
    for view in views:
        if view.row("libcst_files_v1"):
            msgpack.encode(compile_file(view))
    clock.switch("first pass: project and pack")
    passed = graph_reads("default")
    streams = {
        name: pack_rows(project(name, rows, passed[name]))
        for name, rows in tables.items()
        if name in passed and rows.num_rows
    }
    clock.switch("first pass: rows through the pipe of the child")
    with shared_file() as file:
        shared = map_streams(os.dup(file.fileno()), write_rows(file, tables))
    for stream in shared.values():
        list(unpack_rows(stream))
    clock.switch("")
    return FirstPassed(views, streams), tables


def solve(clock: Clock, lake: str, wanted: set[str]) -> dict[str, pa.RecordBatch]:
    """Solve the repository from its stored programs, and emit the relations of some files."""
    stored = light_table(lake, PROGRAMS, ["program"]).column("program").to_pylist()
    gc.disable()
    clock.switch("solve: decode programs")
    programs = [msgpack.decode(encoded, type=Program) for encoded in stored]
    clock.switch("solve: solve")
    solved = SolvedRepository(programs)
    clock.switch("solve: emit relations")
    relations = {}
    for number, program in enumerate(solved.programs):
        if program.path in wanted:
            made = solved.file(number)
            made.digest()
            relations[program.path] = tables_of([made])[RELATIONS]
    clock.switch("")
    gc.enable()
    return relations


def second_pass(
    clock: Clock, passed: FirstPassed, relations: dict[str, pa.RecordBatch]
) -> dict[str, list[pa.RecordBatch]]:
    """Make the graph rows of files as pass two does."""
    own = [relations[view.path] for view in passed.views if view.path in relations]
    clock.switch("second pass: load views")
    batches: dict[str, Sequence[pa.RecordBatch]] = {
        name: list(unpack_rows(stream)) for name, stream in passed.streams.items()
    }
    views = load_views({**batches, RELATIONS: own}, graph_reads("default"))
    clock.switch("second pass: graph rows")
    tables: dict[str, list[pa.RecordBatch]] = {}
    for view in views.values():
        made = graph_rows(view, "default")
        for name, rows in {**made.tables, SHARED: shared_row(view, made.shared)}.items():
            tables.setdefault(name, []).append(rows)
    clock.switch("second pass: pack")
    for name, parts in tables.items():
        for rows in parts if name == EDGES else [pa.concat_batches(parts)]:
            list(row_pieces(REPOSITORY, "", name, rows))
    clock.switch("")
    return tables


def measured(folder: Path, lake: str, every: int, work: Path) -> tuple[dict[str, float], int]:
    """Processor seconds by activity for the whole folder, and the number of files that were worked on."""
    clock, options = Clock(), ExtractOptions()
    passed: list[FirstPassed] = []
    gc.disable()
    names = (*extract_tables(EXTRACTORS), *FILE_TABLES)
    sink = Sink(
        {name: TableFolder(NewFiles(new_folder(work, name)), catalog.table(name)) for name in names}
    ).open()
    for readings in groups(clock, folder, every, options):
        made, tables = first_pass(clock, readings, options)
        passed.append(FirstPassed([FileView(*view_key(view), {}) for view in made.views], made.streams))
        clock.switch(WRITE)
        for name, rows in tables.items():
            if rows.num_rows and name != FAILURES:
                sink.add(name, rows)
    clock.switch(WRITE)
    list(sink.close())
    clock.switch("")
    gc.enable()
    files = {view.path for each in passed for view in each.views}
    talk(f"first pass: {len(files):,} files; solve")
    relations = solve(clock, lake, files)
    write(clock, RELATIONS, list(relations.values()), work)
    clock.switch("")
    talk("second pass")
    graph: dict[str, list[pa.RecordBatch]] = {}
    gc.disable()
    for each in passed:
        for name, parts in second_pass(clock, each, relations).items():
            graph.setdefault(name, []).extend(parts)
    gc.enable()
    for name, of in {**{name: name for name in graph}, **COPIES}.items():
        batches = graph[of]
        if name in SORTED:
            clock.switch("files: sort")
            batches = list(in_order(catalog.table(name).sort_keys, batches))
        write(clock, name, batches, work)
    clock.switch("")
    # All programs are decoded and solved.
    whole = ("solve: decode programs", "solve: solve")
    return {name: s if name in whole else s * every for name, s in clock.spent.items()}, len(files)


def view_key(view: FileView) -> tuple[str, str, str]:
    return view.repo_id, view.file_id, view.path


def new_folder(work: Path, name: str) -> str:
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def report(spent: dict[str, float], totals: Totals | None, files: int, every: int) -> None:
    print(f"{files:,} files, one of {every}; seconds are those of all files.\n")
    print("| activity | processor seconds |\n|---|---|")
    for name, seconds in spent.items():
        print(f"| {name} | {seconds:.1f} |")
    known = sum(spent.values())
    print(f"| all activities | {known:.1f} |")
    if totals is None:
        return
    print("\n| the real build | seconds |\n|---|---|")
    print(f"| wall | {totals.seconds:.1f} |")
    print(f"| processor, JVM | {totals.jvm:.1f} |")
    print(f"| processor, Python | {totals.python:.1f} |")
    print(f"| of that other Python | {totals.python - known:.1f} |")
    print(f"| idle, of {CORES} cores | {CORES * totals.seconds - totals.jvm - totals.python:.1f} |")
    for step, seconds in totals.report["seconds"].items():
        print(f"| {step} | {seconds:.1f} |")


def talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, nargs="?", help="default: django's source distribution")
    parser.add_argument("--every", type=int, default=10, help="work on every Nth file")
    parser.add_argument("--engine", default="spark", choices=("spark", "local"))
    parser.add_argument("--lake", help="a lake with this folder only; without one, it is built and measured")
    given = parser.parse_args()
    folder = given.folder or corpus.sdist("django")
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as name:
        work = Path(name)
        totals = None if given.lake else built(folder, work / "lake", given.engine)
        lake = given.lake or str(work / "lake")
        spent, files = measured(folder, lake, given.every, work / "files")
    report(spent, totals, files, given.every)


if __name__ == "__main__":
    main()
