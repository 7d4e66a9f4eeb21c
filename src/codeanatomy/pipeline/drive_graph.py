"""Run the stages of the graph: rows that relations decide, rows of no file, and the graph's tables.

    run_graph(build, stage)
    run_tables(build, stage)

Tests: `tests/unit/pipeline/test_stages.py`, `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import json, msgpack, structs

from codeanatomy.catalog.entry_points import RULES
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.file_view import Reads
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import TABLES
from codeanatomy.normalize.rules import FILE_TABLES
from codeanatomy.pipeline.executors.executor import Held, StoredRows, TableWrite
from codeanatomy.pipeline.frontier import NOTHING, Files, FilesByTable, Frontier, union
from codeanatomy.pipeline.group_build import GroupBuild, Stage
from codeanatomy.pipeline.key_collisions import refuse_equal_keys, refuse_refreshed_keys
from codeanatomy.pipeline.tasks.graph_rows import COPIES, FACTS, GRAPH_PIECES, NAMED
from codeanatomy.pipeline.tasks.graph_stage import GraphStage, MergeShared, shared_digests
from codeanatomy.pipeline.tasks.impact import BEFORE, COMPARED, ExplainImpact
from codeanatomy.pipeline.tasks.pieces import (
    CONTRIBUTIONS,
    COUNTS,
    IMPACT,
    KEY_OWNERS,
    KEYS,
    OUTCOME,
    SHARED_DIGESTS,
    STORED,
    sum_costs,
)
from codeanatomy.pipeline.tasks.sinks import Sink
from codeanatomy.pipeline.tasks.stored_rows import all_columns, read_stored, stored_rows
from codeanatomy.plan.changes import FILES, TOOL_TABLES, Impact
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS

# Of at most so many files a refresh writes the graph's rows where they are made: of more, in too small files.
MOST_AT_ONCE, MOST_BYTES_AT_ONCE = 16, 1024 * 1024
# Tables whose rows are counted where they are made, if the step works on whole repositories.
COUNTED = {NORMALIZE: FILE_TABLES, GRAPH: (*GRAPH_PIECES, "graph_files")}


def run_graph(build: GroupBuild, stage: Stage) -> None:
    """Make the rows that relations decide, and normalize files where a SCIP index is evidence."""
    build.join_commits()
    if build.written is not None and build.written.done():
        # An error of it ends the build now.
        build.written.result()
    late = build.is_indexed and build.busy[NORMALIZE]
    step = GRAPH if build.busy[GRAPH] else NORMALIZE if late else RELATE
    if not build.writes or step == RELATE:
        if build.is_refresh and (build.solved or build.busy[GRAPH]):
            with build.step(step, is_last=False):
                build.follow_feeds(GRAPH, is_committed=build.writes)
                _explain(build, _compare_relations(build))
        return
    with build.step(step, is_last=step == NORMALIZE):
        build.follow_feeds(GRAPH)
        files = _files_of_graph(build, step)
        wanted = _stored_inputs(build, files)
        inputs = [*build.files, *build.solved, *([build.executor.stored(wanted)] if wanted else ())]
        every = _all(files)
        build.at_once = step == GRAPH and _are_few(build, files)
        work = _graph_work(
            build, build.sink(*FILE_TABLES, unordered=tuple(GRAPH_PIECES) if build.at_once else ())
        )
        with build.run.timed(step):
            names = {BEFORE, FACTS, NAMED, *({*stage.reads} & work.reads.keys())}
            names |= {*TABLES} if build.at_once else set()
            made = build.executor.map_groups(step, inputs, names, "chunk", work)
        build.graph.append(made)
        build.graph_files = files
        build.count(made, COUNTED)
        if build.is_refresh:
            _explain(build, [made])
        if late:
            with build.run.timed("normalize_commit"):
                build.commit(NORMALIZE, build.updates(FILE_TABLES, [made], every))
    if late and step != NORMALIZE:
        # Its tables are complete only now.
        with build.step(NORMALIZE):
            pass


def graph_reads_of(build: GroupBuild) -> Reads:
    """Return what the stage of the graph reads of files of which it makes all rows."""
    return _graph_work(build, Sink()).reads


def _are_few(build: GroupBuild, files: FilesByTable | None) -> bool:
    """Return whether files of a refresh are so few and small that one task may have all of their rows."""
    if files is None or len(union(files.values())) > MOST_AT_ONCE:
        return False
    return sum(build.run.bytes_of(repo_id, each) for repo_id, each in files.items()) <= MOST_BYTES_AT_ONCE


def _all(files: FilesByTable | None) -> Files | None:
    return None if files is None else union(files.values())


def _graph_work(build: GroupBuild, sink: Sink) -> GraphStage:
    run = build.run
    normalized = frozenset(build.busy[NORMALIZE] if build.is_indexed else ())
    dependents = union(frontier.dependents for frontier in build.frontiers)
    rules = (*run.settings.entry_points, *RULES)
    return GraphStage(normalized, frozenset(build.busy[GRAPH]), run.request.profile, sink, rules, dependents)


def _files_of_graph(build: GroupBuild, step: str) -> FilesByTable | None:
    """Return the files that are worked on, by repository; None: all files of the repositories."""
    if build.is_whole(step):
        return None
    # It normalizes all files that it sees, where it normalizes any.
    return {
        frontier.repo_id: frontier.files_in(GRAPH)
        | _normalized(build, frontier)
        | build.seen.get(frontier.repo_id, NOTHING)
        for frontier in build.frontiers
    }


def _normalized(build: GroupBuild, frontier: Frontier) -> Files:
    """Return the files of a refresh that normalize redoes, with those that only a SCIP index has."""
    redone = frontier.files_in(NORMALIZE, FILES, SCIP) | frontier.unlisted
    return redone if build.busy[NORMALIZE] else NOTHING


def _stored_inputs(build: GroupBuild, files: FilesByTable | None) -> list[StoredRows]:
    """Return the stored rows of files that are worked on and the stages before have not passed on."""
    wanted = _relations_before(build)
    late = build.busy[NORMALIZE] if build.is_indexed else ()
    for repo_id in dict.fromkeys((*build.busy[GRAPH], *late)):
        every = build.listed[repo_id] if files is None else files[repo_id]
        for name, columns in graph_reads_of(build).items():
            passed = _passed_files(build, name, repo_id)
            if passed is not None and not every <= passed:
                owners = None if files is None and not passed else every - passed
                wanted += stored_rows(repo_id, {name: columns}, owners)
    return wanted


def _passed_files(build: GroupBuild, name: str, repo_id: str) -> Files | None:
    """Return the files whose rows of a table are in pieces, or are made here; None: all files."""
    seen = build.seen.get(repo_id, NOTHING)
    if name in TOOL_TABLES:
        return None if repo_id in build.busy[EXTRACT] else NOTHING
    if name in FILE_TABLES and build.is_indexed and repo_id in build.busy[NORMALIZE]:
        return None
    if name in (RELATIONS, DIAGNOSTICS):
        if repo_id not in build.busy[RELATE]:
            return NOTHING
        if build.is_whole(RELATE):
            return None
        return seen & build.files_to_redo(RELATE, repo_id) | build.run.frontiers[repo_id].solved
    return seen


# Why files are redone.


def _relations_before(build: GroupBuild) -> list[StoredRows]:
    """Return the stored relations that explain why files are redone which were not edited."""
    return [
        structs.replace(rows, version=frontier.relations_version)
        for frontier in build.frontiers
        if frontier.dependents
        for rows in stored_rows(frontier.repo_id, {RELATIONS: COMPARED}, frontier.dependents, STORED)
    ]


def _compare_relations(build: GroupBuild) -> list[Held]:
    """Compare relations with the stored ones, where no stage over files does it."""
    before = _relations_before(build) if build.solved else []
    if not before:
        return []
    work = ExplainImpact(union(frontier.dependents for frontier in build.frontiers))
    inputs = [*build.solved, build.executor.stored(before)]
    return [build.executor.map_groups(RELATE, inputs, (RELATIONS, BEFORE), "chunk", work)]


def _explain(build: GroupBuild, compared: Iterable[Held]) -> None:
    """Add why files are redone: their relations, as pieces have it, or changes of earlier runs."""
    pieces = [piece for held in compared for piece in build.executor.results(held, IMPACT)]
    for frontier in build.frontiers:
        own = (piece.data for piece in pieces if piece.repo_id == frontier.repo_id)
        reasons = (each for data in own for each in json.decode(data, type=list[Impact]))
        paths = build.run.paths_of(frontier.repo_id, frontier.files_in(GRAPH))
        build.extend(frontier.with_reasons(reasons).with_pending(paths))


# Tables.


def run_tables(build: GroupBuild, stage: Stage) -> None:
    """Merge rows of no file, write the tables of the graph, and commit them."""
    if not build.graph or not build.busy[GRAPH]:
        return
    with build.step(GRAPH):
        [made], files = build.graph, build.graph_files
        _refuse_collisions(build, [*build.files, made], files)
        shared, changed = _merge(build, made, files)
        written = {} if build.written is None else build.written.result()
        with build.run.timed("graph_commit"):
            # Rows of files that were written with others are in no piece of later stages.
            held = [*(() if written or build.at_once else build.files), made, *shared]
            updates = build.updates(stage.writes, [*build.files, made], _all(files))
            late = write_pieces(build, held)
            for name, update in updates.items():
                rows = [*update.files, *written.get(name, ()), *late.get(name, ())]
                shared_of = changed.get(GRAPH_PIECES[name], ())
                updates[name] = structs.replace(update, files=rows, shared=shared_of)
            build.commit(GRAPH, updates)


def write_pieces(build: GroupBuild, held: Sequence[Held]) -> dict[str, list[DataFile]]:
    """Sort the rows of the graph's tables in pieces, and write them to data files."""
    writes = [
        TableWrite(build.new_files(name), build.run.store.table(name), pieces, name in COPIES)
        for name, pieces in GRAPH_PIECES.items()
    ]
    return build.executor.write_files(held, writes)


def _refuse_collisions(build: GroupBuild, held: Sequence[Held], files: FilesByTable | None) -> None:
    executor = build.executor
    keys = [piece.data for each in held for piece in executor.results(each, KEYS)]

    def owners() -> Iterator[bytes]:
        return (piece.data for each in held for piece in executor.read(each, KEY_OWNERS))

    if files is None:
        refuse_equal_keys(build.run, build.busy[GRAPH], keys, owners)
    else:
        changed = union(frontier.files_in(GRAPH, FILES) for frontier in build.frontiers)
        refuse_refreshed_keys(build.run, changed, union(files.values()), keys, owners)


def _merge(
    build: GroupBuild, made: Held, files: FilesByTable | None
) -> tuple[list[Held], Mapping[str, Files]]:
    """Merge rows of no file; of a refresh where files contribute others: repositories by differing table."""
    executor, repositories = build.executor, frozenset(build.busy[GRAPH])
    if files is None:
        work = MergeShared(repositories)
        merged = executor.map_groups(GRAPH, [made], (CONTRIBUTIONS,), "repo_id", work)
        build.run.count(build.counts_of(merged))
        return [merged], {}
    wanted = _other_contributions(build, made, files)
    if not wanted:
        return [], {}
    stored = executor.stored([rows for of_repository in wanted.values() for rows in of_repository])
    names = (CONTRIBUTIONS, *(STORED + name for name in (SHARED, *TABLES)))
    work = MergeShared(frozenset(wanted), union(files.values()))
    merged = executor.map_groups(GRAPH, [made, stored], names, "repo_id", work)
    build.run.add_costs(sum_costs(executor.results(merged, COUNTS)))
    changed: dict[str, Files] = {}
    for piece in executor.results(merged, OUTCOME):
        for name in msgpack.decode(piece.data, type=list[str]):
            changed[name] = changed.get(name, NOTHING) | {piece.repo_id}
    return [merged], changed


def _other_contributions(build: GroupBuild, made: Held, files: FilesByTable) -> dict[str, list[StoredRows]]:
    """Return the stored rows of no file of the repositories to which files contribute others than before."""
    now: dict[str, dict[str, str]] = {repo_id: {} for repo_id in files}
    for piece in build.executor.results(made, SHARED_DIGESTS):
        now[piece.repo_id] |= json.decode(piece.data, type=dict[str, str])
    wanted: dict[str, list[StoredRows]] = {}
    for repo_id, redone in files.items():
        [contributed] = stored_rows(repo_id, all_columns(SHARED), redone)
        if now[repo_id] != shared_digests(read_stored(build.run, contributed)):
            wanted[repo_id] = [
                *stored_rows(repo_id, all_columns(SHARED), lead=STORED),
                *stored_rows(repo_id, all_columns(*TABLES), lead=STORED, is_unowned=True),
            ]
    return wanted
