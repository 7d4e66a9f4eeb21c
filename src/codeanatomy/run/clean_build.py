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

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TypeAlias

from msgspec import structs

from codeanatomy.catalog.kinds import PROFILES, Profile
from codeanatomy.config import Settings
from codeanatomy.errors import StepFailed, UsageError
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.pipeline.build_session import BuildSession
from codeanatomy.plan.build_request import BuildRequest, ScipChoice, TypesChoice, build_inputs, source_inputs
from codeanatomy.plan.repositories import Repository, list_repositories
from codeanatomy.plan.run_plan import LakeState, PlanRequest, plan_run
from codeanatomy.plan.steps import STAGES
from codeanatomy.plan.stored_sources import is_stored, register_sources
from codeanatomy.progress import Progress
from codeanatomy.run.build import build
from codeanatomy.sources.listing import Listing

TYPES: tuple[TypesChoice, ...] = ("auto", "off")
# Options of a build that its rows depend on: profile, type checker, whether SCIP indexes are made, last step.
RowOptions: TypeAlias = tuple[Profile, TypesChoice, bool, str | None]


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
    requests: dict[RowOptions, BuildRequest] = {}
    for repository in repositories:
        name = repository.repo_id
        if name in listed.failed:
            raise UsageError(
                f"{name} cannot be built again: {listed.failed[name]}", "build it from another path first"
            )
        _refuse_changed(rows[name], listed.digests[name])
        options, request = _matching_request(rows[name], repository, listed.listings, settings, root)
        others = requests[options].repositories if options in requests else ()
        requests[options] = structs.replace(request, repositories=(*others, repository))
    return list(requests.values())


def _source(row: RunManifest) -> Path | str:
    if not row.repo_root:
        raise UsageError(f"the source path of {row.repo_id} is not recorded", "build it again")
    return row.repo_root if is_stored(row.repo_root) else Path(row.repo_root)


def _refuse_changed(row: RunManifest, digest: str | None) -> None:
    if row.source_digest != digest:
        raise UsageError(f"the source of {row.repo_id} has changed since run {row.run_id}", "build it first")


def _matching_request(
    row: RunManifest, repository: Repository, listings: Mapping[str, Listing], settings: Settings, root: str
) -> tuple[RowOptions, BuildRequest]:
    """Return the options and the request whose fingerprints by step equal those of the manifest row."""
    made = [stage for stage in STAGES if stage in row.plan_fingerprints]
    until = None if made == list(STAGES) else made[-1]
    for profile, types, makes_scip in product(PROFILES, TYPES, (False, True)):
        scip = ScipChoice(auto=makes_scip)
        request = BuildRequest(root, settings, (repository,), scip, types, profile, until)
        inputs = source_inputs(request, {row.repo_id: row.source_digest or ""}, listings)
        planned = PlanRequest(root, settings.tables, until, build_inputs(request), inputs, {})
        steps = plan_run(planned, LakeState(), None).steps
        if {step.name: step.fingerprints[row.repo_id] for step in steps} == row.plan_fingerprints:
            return (profile, types, makes_scip, until), request
    raise UsageError(
        f"{row.repo_id} was built by another version of this program, with other settings or tools, or with"
        " an existing SCIP index",
        "build it again with the settings of this folder, and --scip auto for an index",
    )
