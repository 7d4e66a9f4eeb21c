"""A build: repositories into the tables of a lake, stage by stage, in one run.

    listed = list_repositories(repositories, settings.extract, progress)
    report = build(Run(store, settings, listed, progress))
    report.tables["ast_files_v1"].version

The stages and their order follow from the inputs that the catalogue declares; a stage takes part once it has
a function in STAGES. A repository that cannot be listed fails alone. The last commit of a run is its
manifest.

Tests: `tests/test_build.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Literal

from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.errors import UnknownName
from codeanatomy.extract.files import failures_by_extractor
from codeanatomy.run.extraction import extract_stage
from codeanatomy.run.graphing import graph_stage
from codeanatomy.run.manifest import publish
from codeanatomy.run.normalization import normalize_stage
from codeanatomy.run.relation import relate_stage
from codeanatomy.run.state import Run

STAGES: dict[str, Callable[[Run], None]] = {
    "extract": extract_stage,
    "normalize": normalize_stage,
    "relate": relate_stage,
    "graph": graph_stage,
}


class TableReport(Struct, frozen=True):
    """A table after the run."""

    version: int
    # Rows that the run wrote.
    rows: int


class RepositoryReport(Struct, frozen=True):
    """A repository after the run."""

    status: Literal["succeeded", "failed"]
    # Paths that were considered, and files that were read.
    paths: int = 0
    files: int = 0
    # Failures of extractors, by extractor.
    errors: dict[str, int] = {}
    # Why the repository failed.
    error: str | None = None


class BuildReport(Struct, frozen=True):
    """What a run did."""

    run_id: str
    lake: str
    # failed: at least one repository was not built.
    status: Literal["succeeded", "failed"]
    repositories: dict[str, RepositoryReport]
    tables: dict[str, TableReport]
    # Failures by extractor, of all repositories.
    errors: dict[str, int]
    seconds: dict[str, float]


def build(run: Run, until: str | None = None) -> BuildReport:
    """Build the run's repositories up to a stage, by default the last one there is."""
    stages = planned_stages(run.store.tables, until)
    began = time.monotonic()
    if run.listings:
        run_stages(run, stages)
    with run.step("publish"):
        publish(run)
    run.seconds["total"] = round(run.listed.seconds + time.monotonic() - began, 3)
    return _report(run)


def run_stages(run: Run, stages: Sequence[str]) -> None:
    """Run stages, each as soon as those it reads are done.

    Two that do not read each other run side by side: relate takes one core for most of its time, so normalize
    has the others. Spark serves jobs in their order, so relate, which takes longest, goes first.
    """
    with ThreadPoolExecutor(len(stages)) as pool:
        for stage in sorted(stages, key=lambda each: (len(_read(run, each, stages)), each != "relate")):
            before = [run.stages[name] for name in _read(run, stage, stages)]
            run.stages[stage] = pool.submit(_after, before, partial(STAGES[stage], run))
        for stage in stages:
            run.stages[stage].result()


def _after(before: Sequence[Future[None]], work: Callable[[], None]) -> None:
    for stage in before:
        stage.result()
    work()


def _read(run: Run, stage: str, stages: Sequence[str]) -> list[str]:
    """The stages whose tables a stage reads, directly or through others."""
    stage_of = {table.name: table.stage for table in run.store.tables}
    inputs = {stage_of[name] for table in run.store.tables if table.stage == stage for name in table.inputs}
    found = [each for each in stages if each in inputs and each != stage]
    return [each for each in stages if each in found or any(each in _read(run, one, stages) for one in found)]


def planned_stages(tables: Sequence[Table], until: str | None = None) -> list[str]:
    """The stages that a build runs, each after those it takes its inputs from.

    >>> planned_stages(catalog.TABLES, "extract")
    ['extract']
    """
    order = dict.fromkeys(table.stage for table in catalog.derivation_order(tables))
    known: list[str] = [stage for stage in order if stage in STAGES]
    if until is None:
        return known
    if until not in known:
        raise UnknownName("stage", until, known)
    return known[: known.index(until) + 1]


def _report(run: Run) -> BuildReport:
    repositories = {each.repo_id: _repository(run, each.repo_id) for each in run.listed.repositories}
    errors: Counter[str] = Counter()
    for repository in repositories.values():
        errors.update(repository.errors)
    return BuildReport(
        run_id=run.run_id,
        lake=run.store.root,
        status="failed" if run.failed else "succeeded",
        repositories=repositories,
        tables={name: TableReport(done.version, done.rows) for name, done in sorted(run.committed.items())},
        errors=dict(sorted(errors.items())),
        seconds=run.seconds,
    )


def _repository(run: Run, repo_id: str) -> RepositoryReport:
    if repo_id in run.failed:
        return RepositoryReport("failed", error=run.failed[repo_id])
    counts = run.counts.get(repo_id, Counter())
    errors = failures_by_extractor(counts)
    return RepositoryReport("succeeded", counts["repo_files_v1"], counts["repo_file_blobs_v1"], errors)
