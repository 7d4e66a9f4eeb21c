"""A lake beside another, built from nothing of the same sources: what a lake that was refreshed must equal.

    lake = Snapshot.open("lake")
    clean = rebuilt(lake, settings, "aside", progress, open_session)
    compare_lakes(lake, clean, clean.repositories).total        # 0

The manifest names the source of a repository; with which options it was built is in its fingerprints. They
are compared with those that each choice of options would give (profile, types, an index of SCIP that is made
or none), and the one that fits is taken. Where none does, the repository was built by other code, with other
settings or tools, or with an index that was given, and cannot be built the same again.

Tests: `tests/unit/run/test_against_clean.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct
from pyspark.sql import SparkSession

from codeanatomy.catalog.kinds import PROFILES, Profile
from codeanatomy.config import Settings
from codeanatomy.errors import StepFailed, UsageError
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan.build_request import Order, ScipChoice, TypesChoice, asked_of, made_from
from codeanatomy.plan.repositories import Repository, list_repositories
from codeanatomy.plan.run_plan import Request, State, plan_run
from codeanatomy.plan.steps import STAGES
from codeanatomy.progress import Progress
from codeanatomy.run.build import build

TYPES: tuple[TypesChoice, ...] = ("auto", "off")
NEW_LAKE = State(None, None, {}, {}, {}, frozenset())


class Way(Struct, frozen=True):
    """The options of a build that its rows depend on."""

    profile: Profile
    types: TypesChoice
    scip_is_made: bool
    until: str | None


def rebuilt(
    lake: Snapshot,
    settings: Settings,
    root: str,
    progress: Progress,
    session: Callable[[], SparkSession],
    repo_id: str | None = None,
) -> Snapshot:
    """Build all repositories of a lake, or one, into a new lake, in the way in which they were built."""
    rows = lake.select_repositories(repo_id)
    for order in orders_of(rows, settings, root, progress):
        report = build(order, progress, session)
        if report.status != "succeeded":
            failed = [f"{name}: {each.error}" for name, each in report.repositories.items() if each.error]
            raise StepFailed(f"not built anew: {'; '.join(failed)}", "mend what the message names")
    clean = Snapshot.open(root)
    for name, row in rows.items():
        _refuse_changed(row, clean.repositories[name].source_digest)
    return clean


def orders_of(
    rows: Mapping[str, RunManifest], settings: Settings, root: str, progress: Progress
) -> list[Order]:
    """How repositories were built: an order for all that were built alike."""
    repositories = [Repository(name, _source(row)) for name, row in rows.items()]
    listed = list_repositories(repositories, settings.extract, progress)
    alike: dict[Way, list[Repository]] = {}
    for repository in repositories:
        name = repository.repo_id
        if name in listed.failed:
            raise UsageError(f"{name} cannot be built anew: {listed.failed[name]}", "build it from elsewhere")
        _refuse_changed(rows[name], listed.digests[name])
        alike.setdefault(_way(rows[name], repository, settings, root), []).append(repository)
    return [_order(way, settings, root, found) for way, found in alike.items()]


def _source(row: RunManifest) -> Path:
    if not row.repo_root:
        raise UsageError(f"where {row.repo_id} was built from is not known", "build it again")
    return Path(row.repo_root)


def _refuse_changed(row: RunManifest, digest: str | None) -> None:
    if row.source_digest != digest:
        raise UsageError(f"the source of {row.repo_id} has changed since run {row.run_id}", "build it first")


def _order(way: Way, settings: Settings, root: str, repositories: Sequence[Repository]) -> Order:
    scip = ScipChoice(auto=way.scip_is_made)
    return Order(root, settings, tuple(repositories), scip, way.types, way.profile, way.until)


def _way(row: RunManifest, repository: Repository, settings: Settings, root: str) -> Way:
    """The options whose fingerprints are those of the manifest."""
    made = [stage for stage in STAGES if stage in row.plan_fingerprints]
    until = None if made == list(STAGES) else made[-1]
    for profile, types, scip_is_made in product(PROFILES, TYPES, (False, True)):
        way = Way(profile, types, scip_is_made, until)
        if _fingerprints(_order(way, settings, root, [repository]), row) == row.plan_fingerprints:
            return way
    raise UsageError(
        f"{row.repo_id} was built by another version of this program, with other settings or tools, or with"
        " a SCIP index that was given",
        "build it again; settings are those of this folder, and an index is made with --scip auto",
    )


def _fingerprints(order: Order, row: RunManifest) -> dict[str, str]:
    """By step, what an order would give the repository of a row, whose source is as it was."""
    source = made_from(order, {row.repo_id: row.source_digest or ""})
    request = Request(order.lake, order.settings.tables, order.until, asked_of(order), source, {})
    return {step.name: step.fingerprints[row.repo_id] for step in plan_run(request, NEW_LAKE, None).steps}
