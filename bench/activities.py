"""Processor seconds of a build by activity, and what a real build of the same folder takes in all.

    make bench-activities                                            # django's source distribution
    PYTHONPATH=tests python bench/activities.py FOLDER --every 20 --engine local
    PYTHONPATH=tests python bench/activities.py FOLDER --lake DIR    # without a build: DIR has one of FOLDER

The functions of the product work on every Nth file of the folder, in this process, one activity after the
other; their processor seconds are multiplied by N. The programs of all files are decoded and solved, because
a part of a repository is another repository; they are read from the lake of the real build.

    files         read, decode, parse by extractor, rows to Arrow, view, normalize, compile, graph rows, pack
    solve         decode programs, solve, emit relations
    resolution    load relations, graph rows, names of nodes, pack
    tables        sort (copies of the edges, properties), write Parquet

The real build is the command in a process of its own, on two cores. Its processor seconds are sampled from
/proc by kind of process; `idle` is what two cores had left of its wall time, and `other Python` what its
Python processes took beyond the activities: start, imports, pipes, commits, exchange of pieces. With `--lake`
there is no build, and only the activities are printed. Printed is Markdown for FIGURES.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
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
from codeanatomy.extract.worker import extract_tables
from codeanatomy.file_view import fresh_view, load_views
from codeanatomy.graph.context import RELATIONS
from codeanatomy.graph.facts import KeptFacts
from codeanatomy.graph.merge import SHARED, shared_row
from codeanatomy.graph.reads import reads as graph_reads
from codeanatomy.graph.resolution import ResolvedFile, complete_names
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP, resolution_rows, rows_of_files
from codeanatomy.graph.table_rows import sort_files
from codeanatomy.normalize.rules import FILE_TABLES, chunk_rows, file_columns
from codeanatomy.pipeline.executors.sorted_tables import in_order
from codeanatomy.pipeline.tasks.graph_rows import COPIES
from codeanatomy.pipeline.tasks.pieces import row_pieces
from codeanatomy.pipeline.tasks.sinks import Sink, TableFolder
from codeanatomy.plan.changes import TOOL_TABLES
from codeanatomy.relate.compile.file_program import compile_with_scopes
from codeanatomy.relate.program import Program
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
READ, WRITE = "files: read and decode", "tables: write Parquet"
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


# Rows of the graph by table.
GraphTables: TypeAlias = dict[str, list[pa.RecordBatch]]


class WorkedFiles(NamedTuple):
    """What a group of files leaves for resolution, packed."""

    paths: Sequence[str]
    facts: Sequence[bytes]
    # Nodes that lack the name of their module.
    named: bytes


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


def extracted(
    clock: Clock, repo_id: str, readings: Sequence[Reading], options: ExtractOptions
) -> list[FileRows]:
    """Run the extractors; before each step of a file the clock is switched to it."""
    steps = [
        READ,
        *(f"files: parse, {extractor.table}" for extractor in EXTRACTORS),
    ]
    files = []
    for reading in readings:
        clock.switch(steps[0])
        files.append(
            extract_file(repo_id, reading, EXTRACTORS, options, {}, lambda step: clock.switch(steps[step]))
        )
    return files


def write(clock: Clock, name: str, batches: Sequence[pa.RecordBatch], folder: Path) -> None:
    """Write the rows of a table that are in its order."""
    clock.switch(WRITE)
    write_files(new_folder(folder, name), catalog.table(name), iter(batches), is_copy=name in COPIES)


def work_on_files(
    clock: Clock, repo_id: str, readings: Sequence[Reading], options: ExtractOptions
) -> tuple[WorkedFiles, dict[str, pa.RecordBatch], GraphTables]:
    """Work on files as the stage of files does; rows for data files, and of the graph, are returned, too."""
    files = extracted(clock, repo_id, readings, options)
    clock.switch("files: rows to Arrow")
    names = [name for name in extract_tables(EXTRACTORS) if name not in TOOL_TABLES]
    tables = table_batches(names, files)
    clock.switch("files: view")
    views = [fresh_view(rows) for rows in files]
    clock.switch("files: normalize")
    normalized = [file_columns(view) for view in views]
    tables |= chunk_rows(normalized)
    clock.switch("files: compile")
    complete = []
    for view, made in zip(views, normalized, strict=True):
        scopes = {}
        if view.row("libcst_files_v1"):
            compiled = compile_with_scopes(view)
            msgpack.encode(compiled.program)
            scopes = {RELATIONS: compiled.scopes.columns()}
        complete.append(view.with_tables({**made.tables, **scopes}))
    clock.switch("files: graph rows")
    graphs = list(rows_of_files(complete, "default"))
    clock.switch("files: pack graph rows")
    graph = packed([each.tables for each in graphs])
    facts = [each.facts.pack() for each in graphs]
    named = pack_rows(pa.concat_batches([each.named for each in graphs]))
    clock.switch("files: rows through the pipe of the child")
    for rows in tables.values():
        list(unpack_rows(pack_rows(rows)))
    clock.switch("")
    return WorkedFiles([view.path for view in views], facts, named), tables, graph


def packed(files: Sequence[Mapping[str, pa.RecordBatch]]) -> GraphTables:
    """Pack rows of the graph as pieces; return them by table."""
    tables: GraphTables = {}
    for rows_of_file in files:
        for name, rows in rows_of_file.items():
            tables.setdefault(name, []).append(rows)
    for name, parts in tables.items():
        for rows in parts if name == EDGES else [pa.concat_batches(parts)]:
            list(row_pieces(REPOSITORY, "", name, rows))
    return tables


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
            made = solved.file(number, program)
            made.digest()
            relations[program.path] = tables_of([made])[RELATIONS]
    clock.switch("")
    gc.enable()
    return relations


def resolve(clock: Clock, worked: WorkedFiles, relations: dict[str, pa.RecordBatch]) -> GraphTables:
    """Make the graph rows that other files decide, as the stage of the graph does."""
    own = [relations[path] for path in worked.paths if path in relations]
    clock.switch("resolution: load facts and relations")
    views = load_views({RELATIONS: own}, {RELATIONS: graph_reads("default")[RELATIONS]})
    facts = [KeptFacts.unpack(each) for each in worked.facts]
    named = pa.concat_batches(list(unpack_rows(worked.named)))
    files = [
        ResolvedFile(each, views[each.file_id].rows(RELATIONS) if each.file_id in views else {})
        for each in facts
    ]
    clock.switch("resolution: names of nodes")
    nodes = complete_names(named, {each.facts.file_id: each.module_name for each in files})
    clock.switch("resolution: graph rows")
    made = list(resolution_rows(files, "default"))
    clock.switch("resolution: rows of no file, sort nodes")
    tables = []
    whole = pa.concat_batches([nodes, *(rows.tables[NODES] for rows in made)])
    nodes_of = sort_files(NODES, whole, [file.facts.file_id for file in files])
    for file, rows, own_nodes in zip(files, made, nodes_of, strict=True):
        shared = shared_row(file.facts, rows.shared)
        tables.append({**rows.tables, NODES: own_nodes, SHARED: shared})
    clock.switch("resolution: pack")
    graph = packed(tables)
    clock.switch("")
    return graph


def measured(folder: Path, lake: str, every: int, work: Path) -> tuple[dict[str, float], int]:
    """Processor seconds by activity for the whole folder, and the number of files that were worked on."""
    clock, options = Clock(), ExtractOptions()
    # Relations belong to files by id, which has the name of the repository.
    repo_id = light_table(lake, PROGRAMS, ["repo_id"]).column("repo_id")[0].as_py()
    worked: list[WorkedFiles] = []
    graph: GraphTables = {}
    gc.disable()
    names = (*extract_tables(EXTRACTORS), *FILE_TABLES)
    sink = Sink(
        {name: TableFolder(NewFiles(new_folder(work, name)), catalog.table(name)) for name in names}
    ).open()
    for readings in groups(clock, folder, every, options):
        made, tables, rows_of_graph = work_on_files(clock, repo_id, readings, options)
        worked.append(made)
        add(graph, rows_of_graph)
        clock.switch(WRITE)
        for name, rows in tables.items():
            if rows.num_rows and name != FAILURES:
                sink.add(name, rows)
    clock.switch(WRITE)
    list(sink.close())
    clock.switch("")
    gc.enable()
    files = {path for each in worked for path in each.paths}
    talk(f"{len(files):,} files; solve")
    relations = solve(clock, lake, files)
    write(clock, RELATIONS, list(relations.values()), work)
    clock.switch("")
    talk("resolution")
    gc.disable()
    for each in worked:
        add(graph, resolve(clock, each, relations))
    gc.enable()
    for name, of in {**{name: name for name in graph}, **COPIES}.items():
        batches = graph[of]
        if name in SORTED:
            clock.switch("tables: sort")
            batches = list(in_order(catalog.table(name).sort_keys, batches))
        write(clock, name, batches, work)
    clock.switch("")
    # All programs are decoded and solved.
    whole = ("solve: decode programs", "solve: solve")
    return {name: s if name in whole else s * every for name, s in clock.spent.items()}, len(files)


def add(graph: GraphTables, tables: GraphTables) -> None:
    """Add rows to those of the same table."""
    for name, parts in tables.items():
        graph.setdefault(name, []).extend(parts)


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
