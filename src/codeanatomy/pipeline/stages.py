"""The stages of a build, as data, and the loop that runs them over a group of repositories.

    files     --> tables of extract and normalize; of every file its program, facts, and rows of the graph
    stored        rules and programs of files that are not read again, from pinned tables
    solve     --> tables of relate; relations               | meanwhile, where a large repository is built
    graph         rows that relations decide                | as a whole, rows of the graph are written
    tables    --> rows of no file; tables of the graph

Rows go from one stage to the next in pieces that the executor holds; a stage reads tables only for files that
the stages before have not worked on: because their step was skipped, or because they did not change. A build
of a whole repository is a refresh in which every file is new: what differs is which files are worked on, and
what the commits replace. What a change reaches is a value that the stages extend (`pipeline.frontier`).

Repositories for which the steps do the same (run for all files, or refresh) are worked on together.
Tests: `tests/unit/pipeline/test_stages.py`, `tests/unit/pipeline/test_refresh.py`,
`tests/spark/test_build.py`, `tests/spark/test_incremental.py`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.graph.merge import SHARED
from codeanatomy.graph.rows import TABLES
from codeanatomy.normalize.rules import FILE_TABLES
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.drive_files import EXTRACTED, run_files, run_stored_files
from codeanatomy.pipeline.drive_graph import run_graph, run_tables
from codeanatomy.pipeline.drive_solve import run_solve
from codeanatomy.pipeline.executors.executor import Executor
from codeanatomy.pipeline.group_build import GroupBuild, Stage, StepContext, WorkGroup, work_groups
from codeanatomy.pipeline.tasks.graph_rows import COPIES, FACTS, NAMED
from codeanatomy.pipeline.tasks.impact import BEFORE
from codeanatomy.pipeline.tasks.pieces import CONTRIBUTIONS, PROGRAM
from codeanatomy.plan.changes import TOOL_TABLES, Impact
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS, PROGRAMS

RESOLVED = (RELATIONS, DIAGNOSTICS)
STAGES = (
    Stage(
        "files",
        by="task",
        reads=("sources", "type checker", "SCIP index"),
        writes=(*EXTRACTED, *TOOL_TABLES, FAILURES, *FILE_TABLES),
        # With evidence where a SCIP index is made beside it, which is evidence for normalize.
        passes_on=(PROGRAM, FACTS, NAMED, *TABLES, *TOOL_TABLES, *EXTRACTED),
        run=run_files,
    ),
    Stage(
        "stored",
        by="chunk",
        reads=(*EXTRACTED, *FILE_TABLES),
        writes=FILE_TABLES,
        passes_on=(PROGRAM, *EXTRACTED, *FILE_TABLES),
        run=run_stored_files,
    ),
    Stage(
        "solve",
        by="repo_id",
        reads=(PROGRAM, PROGRAMS, *TOOL_TABLES),
        writes=(*RESOLVED, PROGRAMS),
        passes_on=RESOLVED,
        run=run_solve,
    ),
    Stage(
        "graph",
        by="chunk",
        reads=(FACTS, NAMED, *RESOLVED, BEFORE, *EXTRACTED, *FILE_TABLES, *TOOL_TABLES),
        writes=FILE_TABLES,
        passes_on=(*TABLES, SHARED, CONTRIBUTIONS),
        run=run_graph,
    ),
    Stage(
        "tables",
        by="table",
        reads=(*TABLES, SHARED, CONTRIBUTIONS),
        writes=(*TABLES, SHARED, *COPIES),
        passes_on=(),
        run=run_tables,
    ),
)


def run_stages(run: Run, executor: Executor, group: WorkGroup, step: StepContext) -> None:
    """Build a group of repositories."""
    _run(GroupBuild(run, executor, group, step))


def forecast(run: Run, executor: Executor) -> dict[str, tuple[Impact, ...]]:
    """Return what refreshes would redo, and why, by repository; nothing is written."""
    for group in work_groups(run):
        if group.is_refresh:
            _run(GroupBuild(run, executor, group, _no_step, writes=False))
    return {repo_id: frontier.impact for repo_id, frontier in run.frontiers.items()}


def _run(build: GroupBuild) -> None:
    with build.released():
        for stage in STAGES:
            stage.run(build, stage)
        build.join_commits()


def _no_step(step: str, *, is_last: bool = True) -> AbstractContextManager[None]:
    return nullcontext()
