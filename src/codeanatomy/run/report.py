"""What a build tells when it has ended.

    report(run).tables["ast_files_v1"].version
    unchanged(order, listed, plan, state, 0.3).status       # "unchanged"

Tests: `tests/spark/test_build.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from codeanatomy.extract.file_rows import failures_by_extractor
from codeanatomy.pipeline.context import Run, recorded_counts
from codeanatomy.plan.build_request import Order
from codeanatomy.plan.repositories import Listed
from codeanatomy.plan.run_plan import Plan, State


class TableReport(Struct, frozen=True):
    """A table after the run."""

    version: int
    # Rows that the run wrote.
    rows: int


class RepositoryReport(Struct, frozen=True):
    """A repository after the run."""

    status: Literal["succeeded", "failed", "unchanged"]
    # Paths that were considered, and files that were read.
    paths: int = 0
    files: int = 0
    # Failures of extractors, by extractor.
    errors: dict[str, int] = {}
    # Why the repository failed.
    error: str | None = None


class BuildReport(Struct, frozen=True):
    """What a run did."""

    # Of the run that is published now; this one, if it had anything to do.
    run_id: str
    lake: str
    # failed: at least one repository was not built; unchanged: nothing had to be done.
    status: Literal["succeeded", "failed", "unchanged"]
    repositories: dict[str, RepositoryReport]
    # What each step did: run, refresh, skip or resume, by repository.
    steps: dict[str, dict[str, str]]
    # Tables that were written.
    tables: dict[str, TableReport]
    # Failures by extractor, of all repositories.
    errors: dict[str, int]
    seconds: dict[str, float]
    # By repository that was refreshed: files that were redone, by reason.
    redone: dict[str, dict[str, int]] = {}


def unchanged(order: Order, listed: Listed, found: Plan, state: State, seconds: float) -> BuildReport:
    """Of a build that had nothing to do."""
    repositories = {
        repo_id: _repository_report("unchanged", recorded_counts(row))
        for repo_id, row in state.repositories.items()
        if repo_id in listed.listings
    }
    return BuildReport(
        run_id=state.run_id or "",
        lake=order.lake,
        status="unchanged",
        repositories=repositories,
        steps=_actions(found),
        tables={},
        errors=_errors(repositories),
        seconds={"list": listed.seconds, "total": seconds},
    )


def report(run: Run) -> BuildReport:
    """Of a run that has ended."""
    repositories = {each.repo_id: _repository(run, each.repo_id) for each in run.order.repositories}
    return BuildReport(
        run_id=run.run_id,
        lake=run.store.root,
        status="failed" if run.listed.failed else "succeeded",
        repositories=repositories,
        steps=_actions(run.plan),
        tables={name: TableReport(done.version, done.rows) for name, done in sorted(run.committed.items())},
        errors=_errors(repositories),
        seconds=run.seconds,
        redone={
            repo_id: dict(sorted(Counter(each.reason for each in refresh.impact).items()))
            for repo_id, refresh in run.refreshes.items()
        },
    )


def _repository(run: Run, repo_id: str) -> RepositoryReport:
    if repo_id in run.listed.failed:
        return RepositoryReport("failed", error=run.listed.failed[repo_id])
    busy = any(
        each.repo_id == repo_id and each.action != "skip"
        for step in run.plan.steps
        for each in step.repositories
    )
    return _repository_report("succeeded" if busy else "unchanged", run.counts[repo_id])


def _repository_report(
    status: Literal["succeeded", "unchanged"], counts: Mapping[str, int]
) -> RepositoryReport:
    paths, files = counts.get("repo_files_v1", 0), counts.get("repo_file_blobs_v1", 0)
    return RepositoryReport(status, paths, files, failures_by_extractor(counts))


def _errors(repositories: Mapping[str, RepositoryReport]) -> dict[str, int]:
    errors: Counter[str] = Counter()
    for repository in repositories.values():
        errors.update(repository.errors)
    return dict(sorted(errors.items()))


def _actions(found: Plan) -> dict[str, dict[str, str]]:
    return {step.name: {each.repo_id: each.action for each in step.repositories} for step in found.steps}
