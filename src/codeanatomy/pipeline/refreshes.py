"""Find out what a refresh redoes beside the files that were edited, from what is stored and what is new.

    compare_tools(run, executor, refresh, views)       # files about which tools report other rows
    read_outcome(run, executor, refresh, solved)       # files with other relations
    explain_impact(run, executor, refresh, explained)  # why files are redone that were not edited
    follow_feeds(run, refresh, "graph")                # files with other rows in the inputs of a step
    merge_changed(run, executor, refresh, made, files) # tables in which rows of no file are others

All of it is collected in `context.Refresh`. Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import json, msgpack, structs

from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.write.file_commits import new_files
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP
from codeanatomy.normalize.rules import DIAGNOSTICS
from codeanatomy.pipeline.context import Refresh, Run, counts_of
from codeanatomy.pipeline.executors.executor import Executor, Held, StoredRows
from codeanatomy.pipeline.executors.sorted_tables import write_in_order
from codeanatomy.pipeline.impact import BEFORE, COMPARED, ExplainImpact, edited_first
from codeanatomy.pipeline.pieces import COUNTS, IMPACT, OUTCOME, SHARED_DIGESTS, STORED, sum_costs
from codeanatomy.pipeline.second_pass import MergeShared, shared_digests
from codeanatomy.pipeline.sinks import Sink
from codeanatomy.pipeline.solve import RepositoryOutcome
from codeanatomy.pipeline.stored_rows import all_columns, read_stored, stored_rows
from codeanatomy.pipeline.tool_rows import DifferingRows, ToolOutcome
from codeanatomy.pipeline.tools import tool_tasks
from codeanatomy.plan.changes import FILES, TOOL_TABLES, Impact
from codeanatomy.plan.feeds import changed_paths, read_feeds
from codeanatomy.plan.steps import EXTRACT, GRAPH, RELATE
from codeanatomy.relate.relation_rows import RELATIONS

# Kinds of diagnostics that relate writes; normalize writes disagreements, too.
RELATE_KINDS = ("disagreement", "relate")
NOTHING_SOLVED = RepositoryOutcome([], [], 0)


def compare_tools(
    run: Run, executor: Executor, refresh: Refresh, views: Sequence[Held], sink: Sink
) -> tuple[list[Held], ToolOutcome]:
    """Find the files about which tools reported other rows before, and write their rows."""
    repo_id, outcome = refresh.repo_id, ToolOutcome()
    counts, listings = run.counts.get(repo_id, Counter()), {repo_id: run.listed.listings[repo_id]}
    if not any(counts[name] for name in TOOL_TABLES) and not tool_tasks(
        listings, run.request.types, run.request.scip
    ):
        return [], outcome
    stored = executor.stored(stored_rows(repo_id, all_columns(*TOOL_TABLES), lead=STORED))
    names = (*TOOL_TABLES, *(STORED + name for name in TOOL_TABLES))
    held = executor.map_groups(EXTRACT, [*views, stored], names, "repo_id", DifferingRows(repo_id, sink))
    pieces = executor.results(held, OUTCOME)
    outcome = msgpack.decode(pieces[0].data, type=ToolOutcome) if pieces else outcome
    refresh.touched |= {name: frozenset(outcome.owners.get(name, ())) for name in TOOL_TABLES}
    refresh.missing = frozenset(outcome.missing)
    return [held], outcome


def keep_failures(run: Run, refresh: Refresh, made: Mapping[str, int]) -> list[DataFile]:
    """Write the failures of files that were not read again: readers look them up by the newest run.

    `made` are the failures by extractor of those that were read.
    """
    before = run.base.repositories[refresh.repo_id].extract_run_id or ""
    paths = pa.array([change.path for change in refresh.changes], pa.string())
    is_read = pc.field("path").isin(paths) | pc.field("extractor_name").isin(pa.array(TOOL_TABLES))
    [wanted] = stored_rows(refresh.repo_id, all_columns(FAILURES))
    kept = read_stored(run, wanted).filter((pc.field("run_id") == before) & ~is_read).to_batches()
    with run.counting:
        counts = run.counts.setdefault(refresh.repo_id, Counter())
        for name in counts_of(counts, (FAILURES,)):
            del counts[name]
        # All of them together are counted by their commit.
        counts.update(
            {name: count for name, count in counts_of(made, (FAILURES,)).items() if name != FAILURES}
        )
        for rows in kept:
            counts.update(f"{FAILURES}/{name}" for name in rows.column("extractor_name").to_pylist())
    folder = new_files(run.store, FAILURES)
    return write_in_order(folder, run.store.table(FAILURES), kept, {"run_id": run.run_id})


def read_outcome(run: Run, executor: Executor, refresh: Refresh, solved: Held) -> None:
    """Find the files whose relations differ from the stored ones."""
    pieces = executor.results(solved, OUTCOME)
    outcome = msgpack.decode(pieces[0].data, type=RepositoryOutcome) if pieces else NOTHING_SOLVED
    refresh.emitted = frozenset(each.file_id for each in outcome.files)
    refresh.reported = frozenset(each.file_id for each in outcome.files if each.has_diagnostics)
    refresh.gone = frozenset(outcome.gone)
    differing = frozenset(each.file_id for each in outcome.files if not each.is_same)
    refresh.touched[RELATIONS] = differing | refresh.gone
    status = f"{outcome.total:,}/{outcome.total:,} files, {len(differing):,} with other relations"
    run.progress.update(RELATE, status, last=True)
    redone = refresh.in_feed(RELATE, FILES)
    refresh.relations_version = run.pins.get(RELATIONS)
    refresh.unexplained = refresh.touched[RELATIONS] - refresh.gone - redone
    witnessed = refresh.in_feed(RELATE, *TOOL_TABLES) - redone - refresh.unexplained
    witness = (Impact(path, "witness") for path in run.paths_of(refresh.repo_id, witnessed))
    refresh.impact = edited_first((*refresh.impact, *witness))


def relations_before(refresh: Refresh) -> list[StoredRows]:
    """Return the stored relations that explain why files are redone which were not edited."""
    others = refresh.unexplained
    rows = stored_rows(refresh.repo_id, {RELATIONS: COMPARED}, others, STORED) if others else []
    return [structs.replace(each, version=refresh.relations_version) for each in rows]


def compare_relations(executor: Executor, refresh: Refresh, solved: Held) -> list[Held]:
    """Compare relations with the stored ones, where no pass over files does it."""
    before = relations_before(refresh)
    inputs = [solved, executor.stored(before)]
    work = ExplainImpact(refresh.unexplained)
    return [executor.map_groups(RELATE, inputs, (RELATIONS, BEFORE), "chunk", work)] if before else []


def explain_impact(run: Run, executor: Executor, refresh: Refresh, compared: Iterable[Held]) -> None:
    """Add why files are redone: their relations, as pieces have it, or changes of earlier runs."""
    pieces = (piece for held in compared for piece in executor.results(held, IMPACT))
    explained = (each for piece in pieces for each in json.decode(piece.data, type=list[Impact]))
    refresh.impact = edited_first((*refresh.impact, *explained))
    # Files that graph redoes because an earlier run has changed their relations or diagnostics.
    known = {each.path for each in refresh.impact}
    paths = run.paths_of(refresh.repo_id, refresh.in_feed(GRAPH))
    refresh.impact += tuple(Impact(path, "pending") for path in paths if path not in known)


def had_diagnostics(run: Run, refresh: Refresh, files: Collection[str]) -> frozenset[str]:
    """Return those of some files that have diagnostics of relate in the lake."""
    [wanted] = stored_rows(refresh.repo_id, {DIAGNOSTICS: {"diag_kind": ()}}, files)
    of_relate = pc.field("diag_kind").isin(pa.array(RELATE_KINDS))
    return frozenset(read_stored(run, wanted).filter(of_relate).column("file_id").to_pylist())


def merge_changed(
    run: Run, executor: Executor, refresh: Refresh, made: Held, files: frozenset[str]
) -> tuple[list[Held], frozenset[str]]:
    """Merge rows of no file if a file contributes others; return the tables in which they differ."""
    [wanted] = stored_rows(refresh.repo_id, all_columns(SHARED), files)
    now: dict[str, str] = {}
    for piece in executor.results(made, SHARED_DIGESTS):
        now |= json.decode(piece.data, type=dict[str, str])
    if now == shared_digests(read_stored(run, wanted)):
        return [], frozenset()
    tables = all_columns(NODES, EDGES, PROPS, PROPS_MAP)
    stored = executor.stored(
        [
            *stored_rows(refresh.repo_id, all_columns(SHARED), lead=STORED),
            *stored_rows(refresh.repo_id, tables, lead=STORED, is_unowned=True),
        ]
    )
    names = (SHARED, *(STORED + name for name in (SHARED, *tables)))
    merged = executor.map_groups(
        GRAPH, [made, stored], names, "repo_id", MergeShared(frozenset({refresh.repo_id}), files)
    )
    run.add_costs(sum_costs(executor.results(merged, COUNTS)))
    changed = (msgpack.decode(piece.data, type=list[str]) for piece in executor.results(merged, OUTCOME))
    return [merged], frozenset(name for names in changed for name in names)


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
