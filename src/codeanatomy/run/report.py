"""Summarize a finished build for the command line.

    report_run(run).tables["ast_files_v1"].version
    report_unchanged(request, listed, plan, state, 0.3).status       # "unchanged"

Tests: `tests/spark/test_build.py`, `tests/unit/run/test_import_warnings.py`.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from codeanatomy.extract.file_rows import failures_by_extractor
from codeanatomy.pipeline.context import Run, recorded_counts
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.plan.repositories import ListedRepositories
from codeanatomy.plan.run_plan import LakeState, Plan
from codeanatomy.relate.own_imports import OwnImports
from codeanatomy.sources.listing import Listing, decode_location


class TableReport(Struct, frozen=True):
    """Version of a table after the run."""

    version: int
    # Number of rows that the run wrote.
    rows: int


class RepositoryReport(Struct, frozen=True):
    """Result of a run for a repository."""

    status: Literal["succeeded", "failed", "unchanged"]
    # Number of listed paths, and of files that were read.
    paths: int = 0
    files: int = 0
    # Number of failures by extractor.
    errors: dict[str, int] = {}
    # Error message, if the repository could not be built.
    error: str | None = None
    # What makes its answers incomplete, with the command that would be right.
    warnings: tuple[str, ...] = ()


class BuildReport(Struct, frozen=True):
    """Result of a build."""

    # The run that is published now: this one, unless it had nothing to do.
    run_id: str
    lake: str
    # failed: at least one repository was not built; unchanged: there was nothing to do.
    status: Literal["succeeded", "failed", "unchanged"]
    repositories: dict[str, RepositoryReport]
    # Action by step and repository: run, refresh, skip or resume.
    steps: dict[str, dict[str, str]]
    # Tables that the run wrote.
    tables: dict[str, TableReport]
    # Number of failures by extractor, for all repositories.
    errors: dict[str, int]
    seconds: dict[str, float]
    # By refreshed repository: number of processed files by reason.
    redone: dict[str, dict[str, int]] = {}


def report_unchanged(
    request: BuildRequest, listed: ListedRepositories, plan: Plan, state: LakeState, seconds: float
) -> BuildReport:
    """Report a build that had nothing to do."""
    repositories = {
        repo_id: _repository_report("unchanged", recorded_counts(row))
        for repo_id, row in state.repositories.items()
        if repo_id in listed.listings
    }
    return BuildReport(
        run_id=state.run_id or "",
        lake=request.lake,
        status="unchanged",
        repositories=repositories,
        steps=_actions(plan),
        tables={},
        errors=_errors(repositories),
        seconds={"list": listed.seconds, "total": seconds},
    )


def report_run(run: Run) -> BuildReport:
    """Report a finished run."""
    repositories = {each.repo_id: _repository(run, each.repo_id) for each in run.request.repositories}
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
            repo_id: dict(sorted(Counter(each.reason for each in frontier.impact).items()))
            for repo_id, frontier in run.frontiers.items()
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
    report = _repository_report("succeeded" if busy else "unchanged", run.counts[repo_id])
    imports, listing = run.imports.get(repo_id, OwnImports()), run.listed.listings[repo_id]
    return structs.replace(report, warnings=import_warnings(imports, listing, repo_id, run.store.root))


def _repository_report(
    status: Literal["succeeded", "unchanged"], counts: Mapping[str, int]
) -> RepositoryReport:
    paths, files = counts.get("repo_files_v1", 0), counts.get("repo_file_blobs_v1", 0)
    return RepositoryReport(status, paths, files, failures_by_extractor(counts))


def _errors(repositories: Mapping[str, RepositoryReport]) -> dict[str, int]:
    errors = sum((Counter(each.errors) for each in repositories.values()), Counter[str]())
    return dict(sorted(errors.items()))


def _actions(plan: Plan) -> dict[str, dict[str, str]]:
    return {step.name: {each.repo_id: each.action for each in step.repositories} for step in plan.steps}


def import_warnings(imports: OwnImports, listing: Listing, repo_id: str, lake: str) -> tuple[str, ...]:
    """Warn about a source whose own imports do not resolve to itself, with the command that would be right.

    build shop/sub, whose files import shop.cart             shop, the package that it is a part of
    build google, whose files import google.cloud            the folder above, because it has no `__init__.py`
    build repo, where repo/lib/shop is imported as shop      repo/lib, the folder that is a root of imports

    There is at most one, and none about an archive.
    """
    if listing.kind != "folder":
        return ()
    root = Path(decode_location(listing.root))
    packages = list(takewhile(lambda folder: (folder / "__init__.py").exists(), root.parents))
    if packages and imports.foreign.get(packages[-1].name):
        top = packages[-1]
        what = f"{top.name}, the package that it is a part of,"
        return (_warning(what, imports.foreign[top.name], top.name, top, lake),)
    if imports.at_root.get(root.name):
        what = f"{root.name}, which has no __init__.py,"
        return (_warning(what, imports.at_root[root.name], repo_id, root.parent, lake),)
    folder, count = max(imports.misplaced.items(), key=lambda each: (each[1], each[0]), default=("", 0))
    if count > imports.resolved:
        return (_warning(f"modules in {folder}", count, repo_id, root / folder, lake),)
    return ()


def _warning(what: str, count: int, repo_id: str, source: Path, lake: str) -> str:
    command = shlex.join(("codeanatomy", "build", f"{repo_id}={source}", "--lake", lake))
    imports = f"{count:,} imports of {what} do" if count > 1 else f"1 import of {what} does"
    return f"{imports} not resolve to its files; build it as {command}"
