"""Run the stages over files: of sources that are read, and of files whose evidence is stored.

    run_files(build, stage)           # extract, normalize, compile; tools; rows of the graph
    run_stored_files(build, stage)    # normalize and compile what extract did not read in this run

Tests: `tests/unit/pipeline/test_stages.py`, `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import msgpack, structs

from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.store_policy import StorePolicy
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.partitions import RepositoryListing, partition_files
from codeanatomy.extract.worker import Task, extract_tables
from codeanatomy.file_view import Reads, TableReads, union_reads
from codeanatomy.logs import Log
from codeanatomy.normalize.rules import FILE_TABLES
from codeanatomy.normalize.rules import READS as NORMALIZE_READS
from codeanatomy.pipeline.commits import TableUpdate
from codeanatomy.pipeline.context import Run, counts_of
from codeanatomy.pipeline.drive_graph import COUNTED, graph_reads_of, write_pieces
from codeanatomy.pipeline.executors.executor import Held, StoredRows
from codeanatomy.pipeline.executors.sorted_tables import write_in_order
from codeanatomy.pipeline.frontier import NOTHING, Files, Frontier, union
from codeanatomy.pipeline.group_build import GroupBuild, Stage
from codeanatomy.pipeline.tasks.file_stage import FileStage, StoredFileStage
from codeanatomy.pipeline.tasks.pieces import COUNTS, OUTCOME, STORED, sum_counts
from codeanatomy.pipeline.tasks.sinks import Sink
from codeanatomy.pipeline.tasks.stored_rows import all_columns, read_stored, stored_rows
from codeanatomy.pipeline.tasks.tool_rows import DifferingRows, ToolOutcome
from codeanatomy.pipeline.tools import tool_tasks
from codeanatomy.plan.changes import FILES, TOOL_TABLES, read_file_states
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE
from codeanatomy.plan.stored_sources import StoredSources
from codeanatomy.relate.compile.file_program import READS as COMPILE_READS
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import PROGRAMS
from codeanatomy.sources.digest import states_digest

EXTRACTED = tuple(name for name in extract_tables(EXTRACTORS) if name not in (*TOOL_TABLES, FAILURES))
STORED_PROGRAMS: TableReads = dict.fromkeys(("program", "rows_digest"), ())
# Bytes of sources from which on tables are written while repositories are solved: it takes another job.
LARGE_BYTES = 1024 * 1024
# Jobs of a session get free cores in their order.
SOLVE_FIRST_SECONDS = 1.0


def run_files(build: GroupBuild, stage: Stage) -> None:
    """Read the files that are new or have changed, and make all rows that need no other file."""
    if build.solves and not build.is_whole(RELATE):
        # Programs of files that stay, for the solve.
        reads: Reads = {PROGRAMS: STORED_PROGRAMS}
        wanted = [rows for repo_id in build.busy[RELATE] for rows in stored_rows(repo_id, reads)]
        build.stored_programs = build.beside.submit(build.executor.stored, wanted)
    if build.busy[EXTRACT] and (build.writes or build.solves):
        with build.step(EXTRACT, is_last=False):
            fresh = _extract(build, stage)
            tools = _tool_updates(build, fresh)
        if build.busy[GRAPH] and not build.is_refresh and not build.is_indexed and _is_large(build):
            build.written = build.beside.submit(_write_beside, build, fresh)
        build.commit_later(EXTRACT, lambda: _commit_extracted(build, fresh, tools))
    if build.solves or build.writes:
        is_committed = build.writes or not build.busy[EXTRACT]
        for step in (NORMALIZE, RELATE):
            build.follow_feeds(step, is_committed=is_committed)


def _is_large(build: GroupBuild) -> bool:
    return sum(build.run.repository_bytes[each] for each in build.busy[EXTRACT]) >= LARGE_BYTES


def _write_beside(build: GroupBuild, fresh: Held) -> dict[str, list[DataFile]]:
    """Write rows of the graph while repositories are solved, which takes longest and has to begin first."""
    time.sleep(SOLVE_FIRST_SECONDS)
    with build.run.timed("graph_write"):
        return write_pieces(build, [fresh])


def _extract(build: GroupBuild, stage: Stage) -> Held:
    run = build.run
    listings = {repo_id: run.listed.listings[repo_id] for repo_id in build.busy[EXTRACT]}
    tasks: list[Task] = list(tool_tasks(listings, run.request.types, run.request.scip))
    for frontier in build.frontiers if listings else ():
        listing, paths = listings[frontier.repo_id], frontier.paths
        entries = tuple(entry for entry in listing.entries if entry.path in paths)
        listings[frontier.repo_id] = structs.replace(listing, entries=entries)
    total = sum(len(listing.entries) for listing in listings.values())
    if total:
        sources = [RepositoryListing(repo_id, listing) for repo_id, listing in listings.items()]
        tasks += partition_files(sources, run.settings.extract.partitions, run.cores)
    work = _file_work(build, _sink_of_files(build, stage), build.busy, build.writes)
    with run.timed(EXTRACT):
        held = build.executor.map_tasks(EXTRACT, [msgpack.encode(task) for task in tasks], work, total)
    for repo_id in listings:
        edited = run.frontiers[repo_id].edited if build.is_refresh else build.listed[repo_id]
        build.seen[repo_id] = edited
    build.files.append(held)
    build.count(held, COUNTED)
    return held


def _sink_of_files(build: GroupBuild, stage: Stage) -> Sink:
    """Return the sink of the tables that are written where files are read."""
    late = FILE_TABLES if build.is_indexed else ()
    # What tools report of a refreshed repository is compared with the stored rows first.
    unordered = (FAILURES, *(() if build.is_refresh else TOOL_TABLES))
    names = [name for name in stage.writes if name not in (*late, *TOOL_TABLES, FAILURES)]
    return build.sink(*names, unordered=unordered)


def _file_work(
    build: GroupBuild, sink: Sink, steps: Mapping[str, Collection[str]], with_graph: bool
) -> FileStage:
    """Return the work on files that are read; files of indexed repositories are normalized later."""
    run, late = build.run, build.is_indexed
    return FileStage(
        run.settings.extract,
        NOTHING if late else frozenset(steps[NORMALIZE]),
        frozenset(steps[RELATE]),
        frozenset(steps[GRAPH]) if with_graph and not late else NOTHING,
        run.request.profile,
        _passed(build) if late and build.writes else {},
        {repo_id: run.chunk_count(repo_id) for repo_id in build.repositories},
        sink,
        _stored_sources(build),
    )


def _passed(build: GroupBuild) -> Reads:
    """Return what the stage of the graph reads of files of which it makes all rows, but for relations."""
    return {name: each for name, each in graph_reads_of(build).items() if name != RELATIONS}


def _stored_sources(build: GroupBuild) -> StoredSources:
    """Return the repositories in object stores."""
    listings = {repo_id: build.run.listed.listings[repo_id] for repo_id in build.repositories}
    uris = {repo_id: listing.uri for repo_id, listing in listings.items() if listing.uri}
    policy = StorePolicy.from_profile(build.run.settings.runtime)
    return StoredSources(policy, uris) if uris else StoredSources()


# Tables of extract.


def _tool_updates(build: GroupBuild, fresh: Held) -> dict[str, TableUpdate]:
    """Return the rows of tools: of a refresh only for files about which they reported other rows before."""
    if not build.is_refresh:
        return build.updates(TOOL_TABLES, [fresh])
    reported = [each.repo_id for each in build.frontiers if _has_tools(build.run, each.repo_id)]
    if not reported:
        return build.updates(TOOL_TABLES, [], NOTHING)
    wanted = [
        rows for repo_id in reported for rows in stored_rows(repo_id, all_columns(*TOOL_TABLES), lead=STORED)
    ]
    names = (*TOOL_TABLES, *(STORED + name for name in TOOL_TABLES))
    work = DifferingRows(frozenset(reported), build.sink(unordered=TOOL_TABLES))
    inputs = [*build.files, build.executor.stored(wanted)]
    held = build.executor.map_groups(EXTRACT, inputs, names, "repo_id", work)
    outcomes = {
        piece.repo_id: msgpack.decode(piece.data, type=ToolOutcome)
        for piece in build.executor.results(held, OUTCOME)
    }
    for repo_id, outcome in outcomes.items():
        owners = {name: outcome.owners.get(name, ()) for name in TOOL_TABLES}
        build.extend(build.run.frontiers[repo_id].with_tools(owners, outcome.missing))
    updates = build.updates(TOOL_TABLES, [held])
    for name, update in updates.items():
        files = union(frontier.differing_in(name) for frontier in build.frontiers)
        shared = [repo_id for repo_id, outcome in outcomes.items() if name in outcome.shared]
        updates[name] = structs.replace(update, owners=files, shared=shared)
    return updates


def _has_tools(run: Run, repo_id: str) -> bool:
    """Return whether tools have reported on a repository, or will."""
    counts, listings = run.counts.get(repo_id, Counter()), {repo_id: run.listed.listings[repo_id]}
    return any(counts[name] for name in TOOL_TABLES) or bool(
        tool_tasks(listings, run.request.types, run.request.scip)
    )


def _commit_extracted(build: GroupBuild, fresh: Held, tools: Mapping[str, TableUpdate]) -> None:
    edited = union(frontier.edited for frontier in build.frontiers) if build.is_refresh else None
    extracted = build.updates(EXTRACTED, [fresh], edited)
    failures = structs.replace(build.updates((FAILURES,), [fresh])[FAILURES], is_added=True)
    counts = sum_counts(build.executor.results(fresh, COUNTS)) if build.is_refresh else {}
    for frontier in build.frontiers:
        kept = _kept_failures(build, frontier, counts.get(frontier.repo_id, {}))
        failures = structs.replace(failures, files=[*failures.files, *kept])
    with build.run.timed("extract_commit"):
        build.commit(EXTRACT, {**extracted, **tools, FAILURES: failures})
    for repo_id in build.busy[EXTRACT]:
        _warn_if_source_changed(build.run, repo_id)


def _kept_failures(build: GroupBuild, frontier: Frontier, made: Mapping[str, int]) -> list[DataFile]:
    """Write the failures of files that were not read again: readers look them up by the newest run.

    `made` are the failures of those that were read, together and by extractor.
    """
    run = build.run
    before = run.base.repositories[frontier.repo_id].extract_run_id or ""
    paths = pa.array([change.path for change in frontier.changes], pa.string())
    is_read = pc.field("path").isin(paths) | pc.field("extractor_name").isin(pa.array(TOOL_TABLES))
    [wanted] = stored_rows(frontier.repo_id, all_columns(FAILURES))
    kept = read_stored(run, wanted).filter((pc.field("run_id") == before) & ~is_read)
    extractors = kept.column("extractor_name").to_pylist()
    with run.counting:
        counts = run.counts.setdefault(frontier.repo_id, Counter())
        for name in counts_of(counts, (FAILURES,)):
            del counts[name]
        counts.update(counts_of(made, (FAILURES,)))
        counts.update({FAILURES: kept.num_rows})
        counts.update(f"{FAILURES}/{name}" for name in extractors)
    folder, table = build.new_files(FAILURES), run.store.table(FAILURES)
    return write_in_order(folder, table, kept.to_batches(), {"run_id": run.run_id})


def _warn_if_source_changed(run: Run, repo_id: str) -> None:
    """Warn if the source that was read is not the one that was planned with."""
    digest = states_digest(read_file_states(run.store.root, repo_id, run.pins[FILES]))
    if digest != run.listed.digests[repo_id]:
        warning = f"{repo_id} changed while it was read"
        run.progress.update(EXTRACT, warning, last=True)
        Log(run_id=run.run_id, step=EXTRACT).warning(warning)
        run.source_was_read(repo_id, digest)


# Files whose evidence is stored.


def run_stored_files(build: GroupBuild, stage: Stage) -> None:
    """Normalize and compile files whose evidence is stored: extract did not read them in this run."""
    if not (build.writes or build.solves):
        return
    steps = {NORMALIZE: () if build.is_indexed else build.busy[NORMALIZE], RELATE: build.busy[RELATE]}
    wanted, selected = _stored_files(build, stage, steps)
    if wanted:
        step = NORMALIZE if steps[NORMALIZE] else RELATE
        with build.step(step, is_last=False), build.run.timed(step):
            names, stored = {each.name for each in wanted}, build.executor.stored(wanted)
            work = _file_work(build, build.sink(*stage.writes), {**steps, GRAPH: ()}, with_graph=False)
            work = structs.replace(work, passed=_passed(build), selected=selected)
            held = build.executor.map_groups(step, [stored], names, "chunk", StoredFileStage(work))
        build.files.append(held)
        build.count(held, COUNTED)
    if build.busy[NORMALIZE] and not build.is_indexed:
        build.commit_later(NORMALIZE, lambda: _commit_normalized(build))


def _stored_files(
    build: GroupBuild, stage: Stage, steps: Mapping[str, Collection[str]]
) -> tuple[list[StoredRows], dict[str, Files]]:
    """Return the rows of files that steps work on and that were not read, and the files of each step."""
    reads = union_reads(NORMALIZE_READS, COMPILE_READS, graph_reads_of(build))
    evidence = {name: reads[name] for name in stage.reads if name in reads and name in EXTRACTED}
    normalized = {name: reads[name] for name in stage.reads if name in reads and name in FILE_TABLES}
    wanted: list[StoredRows] = []
    selected: dict[str, Files] = {}
    for repo_id in sorted({*steps[NORMALIZE], *steps[RELATE]}):
        seen, every = build.seen.get(repo_id, NOTHING), build.listed[repo_id]
        own = {step: every & build.files_to_redo(step, repo_id) for step in steps if repo_id in steps[step]}
        for step in (each for each in own if not build.is_whole(each)):
            selected[step] = selected.get(step, NOTHING) | own[step]
        files = union(own.values()) - seen
        if files:
            wanted += stored_rows(repo_id, evidence, files if build.is_refresh else None)
            build.seen[repo_id] = seen | files
        # The stage of the graph has the other tables from here, too.
        kept = files if repo_id not in build.busy[NORMALIZE] else files - own.get(NORMALIZE, files)
        if kept:
            wanted += stored_rows(repo_id, normalized, kept if build.is_refresh else None)
    return wanted, selected


def _commit_normalized(build: GroupBuild) -> None:
    owners = None
    if not build.is_whole(NORMALIZE):
        owners = union(frontier.files_in(NORMALIZE, FILES) for frontier in build.frontiers)
    with build.run.timed("normalize_commit"):
        build.commit(NORMALIZE, build.updates(FILE_TABLES, build.files, owners))
