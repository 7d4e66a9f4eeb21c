"""Find out what a refresh redoes beside the files that were edited, from what is stored and what is new.

    compare_tools(run, executor, refreshes, views, sink)   # files about which tools report other rows
    read_outcome(run, executor, refreshes, solved)         # files with other relations
    explain_impact(run, executor, refreshes, compared)     # why files are redone that were not edited
    follow_feeds(run, refresh, "graph")                    # files with other rows in the inputs of a step
    merge_changed(run, executor, made, files)              # tables in which rows of no file are others

All of it is collected in `context.Refresh`, one for each repository.
Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import json, msgpack, structs

from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.file_commits import new_files
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP
from codeanatomy.pipeline.context import Refresh, Run, counts_of, union
from codeanatomy.pipeline.executors.executor import Executor, Held, StoredRows
from codeanatomy.pipeline.executors.sorted_tables import write_in_order
from codeanatomy.pipeline.graph_stage import MergeShared, shared_digests
from codeanatomy.pipeline.impact import BEFORE, COMPARED, ExplainImpact, edited_first
from codeanatomy.pipeline.pieces import COUNTS, IMPACT, OUTCOME, SHARED_DIGESTS, STORED, sum_costs
from codeanatomy.pipeline.sinks import Sink
from codeanatomy.pipeline.solve_stage import RepositoryOutcome
from codeanatomy.pipeline.stored_rows import all_columns, read_stored, stored_rows
from codeanatomy.pipeline.tool_rows import DifferingRows, ToolOutcome
from codeanatomy.pipeline.tools import tool_tasks
from codeanatomy.plan.changes import FILES, TOOL_TABLES, Impact
from codeanatomy.plan.feeds import changed_paths, read_feeds
from codeanatomy.plan.steps import EXTRACT, GRAPH, RELATE
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS

NOTHING_SOLVED = RepositoryOutcome([], [], 0)


def compare_tools(
    run: Run, executor: Executor, refreshes: Sequence[Refresh], views: Sequence[Held], sink: Sink
) -> tuple[list[Held], dict[str, ToolOutcome]]:
    """Find the files about which tools reported other rows before, and write their rows."""
    reported = {refresh.repo_id: refresh for refresh in refreshes if _has_tools(run, refresh.repo_id)}
    if not reported:
        return [], {}
    wanted = [
        rows for repo_id in reported for rows in stored_rows(repo_id, all_columns(*TOOL_TABLES), lead=STORED)
    ]
    names = (*TOOL_TABLES, *(STORED + name for name in TOOL_TABLES))
    work = DifferingRows(frozenset(reported), sink)
    held = executor.map_groups(EXTRACT, [*views, executor.stored(wanted)], names, "repo_id", work)
    outcomes = {
        piece.repo_id: msgpack.decode(piece.data, type=ToolOutcome)
        for piece in executor.results(held, OUTCOME)
    }
    for repo_id, outcome in outcomes.items():
        refresh = reported[repo_id]
        refresh.touched |= {name: frozenset(outcome.owners.get(name, ())) for name in TOOL_TABLES}
        refresh.missing = frozenset(outcome.missing)
    return [held], outcomes


def _has_tools(run: Run, repo_id: str) -> bool:
    """Return whether tools have reported on a repository, or will."""
    counts, listings = run.counts.get(repo_id, Counter()), {repo_id: run.listed.listings[repo_id]}
    return any(counts[name] for name in TOOL_TABLES) or bool(
        tool_tasks(listings, run.request.types, run.request.scip)
    )


def keep_failures(run: Run, refresh: Refresh, made: Mapping[str, int]) -> list[DataFile]:
    """Write the failures of files that were not read again: readers look them up by the newest run.

    `made` are the failures of those that were read, together and by extractor.
    """
    before = run.base.repositories[refresh.repo_id].extract_run_id or ""
    paths = pa.array([change.path for change in refresh.changes], pa.string())
    is_read = pc.field("path").isin(paths) | pc.field("extractor_name").isin(pa.array(TOOL_TABLES))
    [wanted] = stored_rows(refresh.repo_id, all_columns(FAILURES))
    kept = read_stored(run, wanted).filter((pc.field("run_id") == before) & ~is_read)
    extractors = kept.column("extractor_name").to_pylist()
    with run.counting:
        counts = run.counts.setdefault(refresh.repo_id, Counter())
        for name in counts_of(counts, (FAILURES,)):
            del counts[name]
        counts.update(counts_of(made, (FAILURES,)))
        counts.update({FAILURES: kept.num_rows})
        counts.update(f"{FAILURES}/{name}" for name in extractors)
    folder = new_files(run.store, FAILURES)
    return write_in_order(folder, run.store.table(FAILURES), kept.to_batches(), {"run_id": run.run_id})


def read_outcome(run: Run, executor: Executor, refreshes: Sequence[Refresh], solved: Held) -> None:
    """Find the files whose relations differ from the stored ones."""
    outcomes = {
        piece.repo_id: msgpack.decode(piece.data, type=RepositoryOutcome)
        for piece in executor.results(solved, OUTCOME)
    }
    for refresh in refreshes:
        _add_outcome(run, refresh, outcomes.get(refresh.repo_id, NOTHING_SOLVED))
    total = sum(outcome.total for outcome in outcomes.values())
    differing = sum(len(refresh.touched[RELATIONS] - refresh.gone) for refresh in refreshes)
    status = f"{total:,}/{total:,} files, {differing:,} with other relations"
    run.progress.update(RELATE, status, last=True)


def _add_outcome(run: Run, refresh: Refresh, outcome: RepositoryOutcome) -> None:
    refresh.emitted = frozenset(each.file_id for each in outcome.files)
    refresh.gone = frozenset(outcome.gone)
    differing = frozenset(each.file_id for each in outcome.files if not each.is_same)
    refresh.touched[RELATIONS] = refresh.touched[DIAGNOSTICS] = differing | refresh.gone
    redone = refresh.in_feed(RELATE, FILES)
    refresh.relations_version = run.pins.get(RELATIONS)
    refresh.unexplained = differing - refresh.gone - redone
    witnessed = refresh.in_feed(RELATE, *TOOL_TABLES) - redone - refresh.unexplained
    witness = (Impact(path, "witness") for path in run.paths_of(refresh.repo_id, witnessed))
    refresh.impact = edited_first((*refresh.impact, *witness))


def relations_before(refreshes: Sequence[Refresh]) -> list[StoredRows]:
    """Return the stored relations that explain why files are redone which were not edited."""
    return [
        structs.replace(rows, version=refresh.relations_version)
        for refresh in refreshes
        if refresh.unexplained
        for rows in stored_rows(refresh.repo_id, {RELATIONS: COMPARED}, refresh.unexplained, STORED)
    ]


def compare_relations(executor: Executor, refreshes: Sequence[Refresh], solved: Held) -> list[Held]:
    """Compare relations with the stored ones, where no pass over files does it."""
    before = relations_before(refreshes)
    if not before:
        return []
    work = ExplainImpact(union(refresh.unexplained for refresh in refreshes))
    return [
        executor.map_groups(RELATE, [solved, executor.stored(before)], (RELATIONS, BEFORE), "chunk", work)
    ]


def explain_impact(
    run: Run, executor: Executor, refreshes: Sequence[Refresh], compared: Iterable[Held]
) -> None:
    """Add why files are redone: their relations, as pieces have it, or changes of earlier runs."""
    pieces = [piece for held in compared for piece in executor.results(held, IMPACT)]
    for refresh in refreshes:
        own = (piece.data for piece in pieces if piece.repo_id == refresh.repo_id)
        explained = (each for data in own for each in json.decode(data, type=list[Impact]))
        refresh.impact = edited_first((*refresh.impact, *explained))
        # Files that graph redoes because an earlier run has changed their relations or diagnostics.
        known = {each.path for each in refresh.impact}
        paths = run.paths_of(refresh.repo_id, refresh.in_feed(GRAPH))
        refresh.impact += tuple(Impact(path, "pending") for path in paths if path not in known)


def merge_changed(
    run: Run, executor: Executor, made: Held, files: Mapping[str, frozenset[str]]
) -> tuple[list[Held], dict[str, frozenset[str]]]:
    """Merge rows of no file where files contribute others; return the repositories by differing table.

    `files` are those that are redone, by repository.
    """
    now: dict[str, dict[str, str]] = {repo_id: {} for repo_id in files}
    for piece in executor.results(made, SHARED_DIGESTS):
        now[piece.repo_id] |= json.decode(piece.data, type=dict[str, str])
    wanted: dict[str, list[StoredRows]] = {}
    for repo_id, redone in files.items():
        [contributed] = stored_rows(repo_id, all_columns(SHARED), redone)
        if now[repo_id] != shared_digests(read_stored(run, contributed)):
            tables = all_columns(NODES, EDGES, PROPS, PROPS_MAP)
            wanted[repo_id] = [
                *stored_rows(repo_id, all_columns(SHARED), lead=STORED),
                *stored_rows(repo_id, tables, lead=STORED, is_unowned=True),
            ]
    if not wanted:
        return [], {}
    stored = executor.stored([rows for of_repository in wanted.values() for rows in of_repository])
    names = (SHARED, *(STORED + name for name in (SHARED, NODES, EDGES, PROPS, PROPS_MAP)))
    work = MergeShared(frozenset(wanted), union(files.values()))
    merged = executor.map_groups(GRAPH, [made, stored], names, "repo_id", work)
    run.add_costs(sum_costs(executor.results(merged, COUNTS)))
    changed: dict[str, frozenset[str]] = {}
    for piece in executor.results(merged, OUTCOME):
        for name in msgpack.decode(piece.data, type=list[str]):
            changed[name] = changed.get(name, frozenset()) | {piece.repo_id}
    return [merged], changed


def follow_feeds(
    run: Run, refresh: Refresh, step: str, uncommitted: Mapping[str, frozenset[str]] = MappingProxyType({})
) -> None:
    """Find what a step redoes: the files that the change feeds of its inputs have after its cursor.

    `uncommitted` are files that would be in the feeds, by table, where nothing is committed.
    """
    repo_id, root = refresh.repo_id, run.store.root
    cursor = run.base.cursors[repo_id][step]
    changes = read_feeds(root, run.plan.step(step).inputs, repo_id, cursor, run.pins)
    refresh.feeds[step] = {
        name: changes.files.get(name, frozenset()) | uncommitted.get(name, frozenset())
        for name in changes.files.keys() | uncommitted.keys()
    }
    refresh.windows = tuple(dict.fromkeys((*refresh.windows, *changes.windows)))
    if refresh.in_feed(step, FILES) - refresh.edited:
        # Files that earlier runs have extracted.
        known = {each.path for each in refresh.impact}
        windows = (window for window in changes.windows if window.table_name == FILES)
        paths = {path: how for each in windows for path, how in changed_paths(root, each, repo_id).items()}
        refresh.impact += tuple(Impact(path, how) for path, how in paths.items() if path not in known)
