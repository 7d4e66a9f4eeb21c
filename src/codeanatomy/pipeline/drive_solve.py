"""Run the solve of repositories, and find the files whose relations a refresh has changed.

    run_solve(build, stage)

Tests: `tests/unit/pipeline/test_stages.py`, `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from msgspec import msgpack, structs

from codeanatomy.file_view import Reads
from codeanatomy.pipeline.drive_graph import graph_reads_of
from codeanatomy.pipeline.executors.executor import Held
from codeanatomy.pipeline.frontier import union
from codeanatomy.pipeline.group_build import GroupBuild, Stage
from codeanatomy.pipeline.tasks.impact import COMPARED
from codeanatomy.pipeline.tasks.pieces import OUTCOME
from codeanatomy.pipeline.tasks.solve_stage import RepositoryOutcome, Solve, SolveScope
from codeanatomy.pipeline.tasks.stored_rows import stored_rows
from codeanatomy.plan.changes import FILES, TOOL_TABLES, Impact
from codeanatomy.plan.steps import EXTRACT, GRAPH, RELATE
from codeanatomy.relate.compile.file_program import WITNESS_READS
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS, PROGRAMS

NOTHING_SOLVED = RepositoryOutcome([], [], 0)


def run_solve(build: GroupBuild, stage: Stage) -> None:
    """Solve the repositories; of refreshes, find the files whose relations differ."""
    if not build.solves:
        return
    with build.step(RELATE):
        solved = _solve(build, stage)
        build.solved.append(solved)
        if build.writes:
            build.join_commits()
            with build.run.timed("relate_commit"):
                _commit(build, stage, solved)


def _solve(build: GroupBuild, stage: Stage) -> Held:
    run, executor, is_whole = build.run, build.executor, build.is_whole(RELATE)
    work = Solve(
        scopes := _scopes(build),
        build.sink(RELATIONS, PROGRAMS, unordered=(DIAGNOSTICS,)),
        max(1, run.cores_of_task // len(scopes)),
        _passed(build, stage),
    )
    wanted = [
        rows
        for repo_id in scopes
        if repo_id not in build.busy[EXTRACT]
        for rows in stored_rows(repo_id, WITNESS_READS)
    ]
    inputs = [*build.files, *([executor.stored(wanted)] if wanted else ())]
    inputs += [build.stored_programs.result()] if build.stored_programs else []
    with run.timed(RELATE):
        solved = executor.map_groups(RELATE, inputs, stage.reads, "repo_id", work)
    counts = build.counts_of(solved)
    outcomes = {
        piece.repo_id: msgpack.decode(piece.data, type=RepositoryOutcome)
        for piece in executor.results(solved, OUTCOME)
    }
    run.imports.update({repo_id: outcome.imports for repo_id, outcome in outcomes.items()})
    if is_whole:
        run.count(counts)
    else:
        _extend_frontiers(build, outcomes)
    return solved


def _passed(build: GroupBuild, stage: Stage) -> Reads:
    """Return what the graph reads of the rows, or a comparison with the stored ones."""
    if build.writes and build.busy[GRAPH]:
        return {name: each for name, each in graph_reads_of(build).items() if name in stage.passes_on}
    return {RELATIONS: COMPARED} if build.is_refresh and not build.is_whole(RELATE) else {}


def _scopes(build: GroupBuild) -> dict[str, SolveScope]:
    listings = build.run.listed.listings
    # Files that were read in this run have the relations of their scopes in the graph already.
    read = () if build.is_refresh or build.is_indexed else build.busy[EXTRACT]
    scopes = {
        repo_id: SolveScope(package=listings[repo_id].package, with_scopes=repo_id not in read)
        for repo_id in build.busy[RELATE]
    }
    for frontier in () if build.is_whole(RELATE) else build.frontiers:
        replaced, wanted = frontier.files_in(RELATE, FILES), frontier.files_in(RELATE)
        scopes[frontier.repo_id] = SolveScope(replaced, wanted, listings[frontier.repo_id].package)
    return scopes


def _extend_frontiers(build: GroupBuild, outcomes: dict[str, RepositoryOutcome]) -> None:
    """Find the files whose relations differ from the stored ones."""
    run, version = build.run, build.run.pins.get(RELATIONS)
    for before in build.frontiers:
        outcome = outcomes.get(before.repo_id, NOTHING_SOLVED)
        frontier = before.with_solution(outcome.files, outcome.gone, version)
        witnessed = frontier.files_in(RELATE, *TOOL_TABLES) - frontier.files_in(RELATE, FILES)
        paths = run.paths_of(frontier.repo_id, witnessed - frontier.dependents)
        build.extend(frontier.with_reasons(Impact(path, "witness") for path in paths))
    total = sum(outcome.total for outcome in outcomes.values())
    differing = sum(len(each.differing_in(RELATIONS) - each.removed) for each in build.frontiers)
    status = f"{total:,}/{total:,} files, {differing:,} with other relations"
    run.progress.update(RELATE, status, last=True)


def _commit(build: GroupBuild, stage: Stage, solved: Held) -> None:
    updates = build.updates(stage.writes, [solved])
    if not build.is_whole(RELATE):
        solved_files = union(frontier.removed | frontier.solved for frontier in build.frontiers)
        differing = union(frontier.differing_in(RELATIONS) for frontier in build.frontiers)
        owners = {RELATIONS: differing, DIAGNOSTICS: differing, PROGRAMS: solved_files}
        updates = {name: structs.replace(each, owners=owners[name]) for name, each in updates.items()}
    build.commit(RELATE, updates)
