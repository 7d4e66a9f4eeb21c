"""Build the sources of a lake again into a new lake, which a refreshed lake must equal.

    lake = Snapshot.open("lake")
    clean = build_clean(lake, settings, "clean", progress, session)
    compare_lakes(lake, clean, clean.repositories).total        # 0

The manifest has the path of a repository's source, and its fingerprints depend on the options of the build.
Each combination of options (profile, type checker, SCIP indexer) is tried until the fingerprints match. If
none matches, the repository was built by other code, with other settings or tools, or with an existing SCIP
index, and cannot be reproduced.

Tests: `tests/unit/run/test_clean_build.py`, `tests/spark/test_clean_build.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct

from codeanatomy.catalog.kinds import PROFILES, Profile
from codeanatomy.config import Settings
from codeanatomy.errors import StepFailed, UsageError
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.pipeline.build_session import BuildSession
from codeanatomy.plan.build_request import BuildRequest, ScipChoice, TypesChoice, build_inputs, source_inputs
from codeanatomy.plan.repositories import ListedRepositories, Repository, list_repositories
from codeanatomy.plan.run_plan import LakeState, PlanRequest, plan_run
from codeanatomy.plan.steps import STAGES
from codeanatomy.plan.stored_sources import is_stored, register_sources
from codeanatomy.progress import Progress
from codeanatomy.run.build import build
from codeanatomy.sources.listing import Listing

TYPES: tuple[TypesChoice, ...] = ("auto", "off")
NEW_LAKE = LakeState(None, None, {}, {}, {}, frozenset())


class RowOptions(Struct, frozen=True):
    """Options of a build that its rows depend on."""

    profile: Profile
    types: TypesChoice
    scip_is_made: bool
    until: str | None


def build_clean(
    lake: Snapshot,
    settings: Settings,
    root: str,
    progress: Progress,
    session: BuildSession,
    repo_id: str | None = None,
) -> Snapshot:
    """Build all repositories of a lake, or one, into a new lake with the options of their last build."""
    rows = lake.select_repositories(repo_id)
    for request in build_requests(rows, settings, root, progress):
        report = build(request, progress, session)
        if report.status != "succeeded":
            failed = [f"{name}: {each.error}" for name, each in report.repositories.items() if each.error]
            raise StepFailed(
                f"not built again: {'; '.join(failed)}", "fix the problem above and run the command again"
            )
    clean = Snapshot.open(root)
    for name, row in rows.items():
        _refuse_changed(row, clean.repositories[name].source_digest)
    return clean


def build_requests(
    rows: Mapping[str, RunManifest], settings: Settings, root: str, progress: Progress
) -> list[BuildRequest]:
    """Return the build requests of repositories, one for all that were built with the same options."""
    repositories = [Repository(name, _source(row)) for name, row in rows.items()]
    register_sources((each.path for each in repositories), settings.runtime)
    listed = list_repositories(repositories, settings.extract, progress)
    by_options: dict[RowOptions, list[Repository]] = {}
    for repository in repositories:
        name = repository.repo_id
        if name in listed.failed:
            raise UsageError(
                f"{name} cannot be built again: {listed.failed[name]}", "build it from another path first"
            )
        _refuse_changed(rows[name], listed.digests[name])
        by_options.setdefault(_row_options(rows[name], repository, listed, settings, root), []).append(
            repository
        )
    return [_request(options, settings, root, group) for options, group in by_options.items()]


def _source(row: RunManifest) -> Path | str:
    if not row.repo_root:
        raise UsageError(f"the source path of {row.repo_id} is not recorded", "build it again")
    return row.repo_root if is_stored(row.repo_root) else Path(row.repo_root)


def _refuse_changed(row: RunManifest, digest: str | None) -> None:
    if row.source_digest != digest:
        raise UsageError(f"the source of {row.repo_id} has changed since run {row.run_id}", "build it first")


def _request(
    options: RowOptions, settings: Settings, root: str, repositories: Sequence[Repository]
) -> BuildRequest:
    scip = ScipChoice(auto=options.scip_is_made)
    return BuildRequest(
        root, settings, tuple(repositories), scip, options.types, options.profile, options.until
    )


def _row_options(
    row: RunManifest, repository: Repository, listed: ListedRepositories, settings: Settings, root: str
) -> RowOptions:
    """Return the options whose fingerprints equal those of the manifest row."""
    made = [stage for stage in STAGES if stage in row.plan_fingerprints]
    until = None if made == list(STAGES) else made[-1]
    for profile, types, scip_is_made in product(PROFILES, TYPES, (False, True)):
        options = RowOptions(profile, types, scip_is_made, until)
        request = _request(options, settings, root, [repository])
        if _fingerprints(request, row, listed.listings) == row.plan_fingerprints:
            return options
    raise UsageError(
        f"{row.repo_id} was built by another version of this program, with other settings or tools, or with"
        " an existing SCIP index",
        "build it again with the settings of this folder, and --scip auto for an index",
    )


def _fingerprints(request: BuildRequest, row: RunManifest, listings: Mapping[str, Listing]) -> dict[str, str]:
    """Return the fingerprints by step that a build of the row's source would have."""
    inputs = source_inputs(request, {row.repo_id: row.source_digest or ""}, listings)
    tables = request.settings.tables
    planned = PlanRequest(request.lake, tables, request.until, build_inputs(request), inputs, {})
    return {step.name: step.fingerprints[row.repo_id] for step in plan_run(planned, NEW_LAKE, None).steps}
