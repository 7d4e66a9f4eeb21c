"""The plan of a run: what each step does for each repository, why, from which versions to which tables.

    plan = plan_run(request, lake_state("lake", catalog.TABLES), before=None)
    plan.steps[0].repositories[0]     # Planned("requests", "skip", "unchanged since run 2026...", "8f0c...")
    plan.nothing_to_do

A step is skipped for a repository if its fingerprint is that of the published run and its tables are there.
It is resumed if a run that did not finish has done it: its journal says so, and nothing was published since.
It is refreshed, which is to redo what a change reaches, if nothing but the source is new, and of that not too
much. Else it runs.

Every table that is neither at its published nor at a resumed version holds leftovers of a dead
run, and is brought back first. One of which files are missing is emptied and made anew.

Where a step adds rows to a table of another (relate to the diagnostics of normalize), both run, or none.
Nothing here needs a JVM. Tests: `tests/unit/plan/test_run_plan.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.read.light import logged_paths, newest_version_or_none
from codeanatomy.delta.read.readable import is_readable
from codeanatomy.delta.store import SCHEME
from codeanatomy.delta.write.adopt import has_simple_policy
from codeanatomy.errors import StorageFailure, TableMissing
from codeanatomy.lake.lease import LeaseRow, StepDone
from codeanatomy.lake.manifest import OutputPin, RunManifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan.changes import FILES, Change, Impact, changes_of, stored_lines
from codeanatomy.plan.steps import EXTRACT, Asked, Step, rule_fingerprints, step_fingerprint, steps_of
from codeanatomy.sources.digest import FileStates

Action: TypeAlias = Literal["run", "skip", "resume", "refresh"]


class Planned(Struct, frozen=True):
    """What a step does for a repository, and why."""

    repo_id: str
    action: Action
    why: str
    fingerprint: str


class PlannedStep(Struct, frozen=True):
    """A step of the run."""

    name: str
    # Steps that are done before.
    after: tuple[str, ...]
    # Tables it reads, at which version; none: at the one that this run will make.
    inputs: dict[str, int | None]
    outputs: tuple[str, ...]
    adds_to: tuple[str, ...]
    repositories: tuple[Planned, ...]

    @property
    def runs_for(self) -> tuple[str, ...]:
        """The repositories that it works on."""
        return tuple(each.repo_id for each in self.repositories if each.action == "run")

    @property
    def refreshes(self) -> tuple[str, ...]:
        """The repositories of which it redoes what a change reaches."""
        return tuple(each.repo_id for each in self.repositories if each.action == "refresh")

    @property
    def is_busy(self) -> bool:
        """Whether it has anything to do in this run."""
        return bool(self.runs_for or self.refreshes)

    @property
    def fingerprints(self) -> dict[str, str]:
        """By repository."""
        return {each.repo_id: each.fingerprint for each in self.repositories}


class Undo(Struct, frozen=True):
    """A table that a dead run has written to, and the version it is brought back to; none: to no rows."""

    table_name: str
    from_version: int
    to_version: int | None


class Plan(Struct, frozen=True):
    """What a run will do."""

    lake: str
    # The published run it builds on; none in a new lake.
    base_run_id: str | None
    # The run whose work it goes on with.
    resumes: str | None
    undo: tuple[Undo, ...]
    # Versions of the tables that it goes on from, before anything is undone.
    pins: dict[str, int]
    steps: tuple[PlannedStep, ...]
    # Repositories that cannot be built, and why.
    failed: dict[str, str]
    # Of the repositories that are refreshed, the paths that differ from what is published.
    changes: dict[str, tuple[Change, ...]] = {}
    # The files that will be redone, and why; empty if that was not asked for.
    impact: dict[str, tuple[Impact, ...]] = {}
    # The run that is writing to the lake now.
    held_by: str | None = None

    @property
    def nothing_to_do(self) -> bool:
        """Whether the lake is already what was asked for."""
        busy = any(each.action != "skip" for step in self.steps for each in step.repositories)
        return not (busy or self.undo or self.failed)

    def step(self, name: str) -> PlannedStep:
        """The step of that name, which is one of the plan's."""
        return next(step for step in self.steps if step.name == name)


class Request(Struct, frozen=True):
    """What is to be planned."""

    lake: str
    tables: tuple[Table, ...]
    until: str | None
    asked: Asked
    # By repository, what its rows are extracted from.
    made_from: dict[str, dict[str, str]]
    failed: dict[str, str]
    # By repository, what is known of its paths.
    lines: dict[str, FileStates] = {}
    # Of them the share that a refresh may redo; none: nothing is refreshed.
    max_share: float | None = None


class State(Struct, frozen=True):
    """A lake before a run: what is published, and which versions its tables have."""

    run_id: str | None
    published_at: datetime | None
    # Version of each table that is published, and what is known of it.
    outputs: dict[str, OutputPin]
    # The newest succeeded row of each repository.
    repositories: dict[str, RunManifest]
    # Newest version of each table that is there.
    newest: dict[str, int]
    # Published tables of which something is missing.
    damaged: frozenset[str]

    @property
    def pins(self) -> dict[str, int]:
        """Version of each table that is published."""
        return {name: pin.version for name, pin in self.outputs.items()}


def lake_state(root: str, tables: Sequence[Table]) -> State:
    """What a lake holds; it need not be there."""
    written = written_tables(tables)
    newest = {name: version for name in written if (version := newest_version_or_none(root, name)) is not None}
    try:
        lake = Snapshot.open(root)
    except TableMissing:
        return State(None, None, {}, {}, newest, frozenset())
    # A table that the catalogue had once is left alone.
    pins = {name: pin for name, pin in lake.pins.items() if name in written}
    damaged = frozenset(
        name for name, pin in pins.items() if name not in newest or not is_readable(root, name, pin.version)
    )
    return State(lake.run_id, lake.published_at, pins, lake.repositories, newest, damaged)


def written_tables(tables: Sequence[Table]) -> tuple[str, ...]:
    """The tables that steps write, and a run therefore pins."""
    return tuple(name for step in steps_of(tables) for name in step.outputs)


def plan_run(request: Request, state: State, before: LeaseRow | None) -> Plan:
    """The plan; `before` is the row of the lease that the last run has left, if it may be gone on with."""
    steps = steps_of(request.tables, request.until)
    if state.run_id is None and before is not None and before.base_run_id is not None:
        raise StorageFailure(
            f"{request.lake} has lost its manifest: run {before.base_run_id} was published",
            "restore meta/run_manifest from a copy, or build into a new lake",
        )
    _refuse_to_mend_half(steps, request, state)
    rules = rule_fingerprints(steps, request.asked, request.tables)
    prints = _fingerprints(steps, request, rules)
    resumed = _resumed(steps, prints, state, before)
    actions = {
        step.name: {
            repo_id: _action(step, repo_id, prints, state, resumed, request) for repo_id in request.made_from
        }
        for step in steps
    }
    changes = _refreshed(steps, actions, rules, state, request)
    _together(steps, actions)
    mended = state.damaged.intersection(name for step in steps for name in step.outputs)
    # What is mended begins without rows: those that are left cannot be told from those that are gone.
    target = {name: version for name, version in state.pins.items() if name not in mended}
    for done in resumed.values():
        target |= {name: max(version, target.get(name, -1)) for name, version in done.pins.items()}
    undo = tuple(
        Undo(name, version, target.get(name))
        for name, version in state.newest.items()
        if version != target.get(name)
        and name not in state.damaged - mended
        and not (name not in target and _is_empty(request.lake, name, version))
    )
    busy = [
        step
        for step in steps
        if any(action in ("run", "refresh") for action, _ in actions[step.name].values())
    ]
    # What this run makes is read at the version it will have.
    made = {name for step in busy for name in (*step.outputs, *step.adds_to)}
    pins = {name: version for name, version in target.items() if name not in made}
    planned = tuple(_planned(step, actions[step.name], prints[step.name], pins) for step in steps)
    resumes = before.run_id if before is not None and resumed else None
    return Plan(request.lake, state.run_id, resumes, undo, target, planned, request.failed, changes)


def fingerprinted(plan: Plan, request: Request) -> Plan:
    """The plan with the fingerprints of another request for the same repositories."""
    known = steps_of(request.tables, request.until)
    prints = _fingerprints(known, request, rule_fingerprints(known, request.asked, request.tables))
    steps = (
        structs.replace(
            step,
            repositories=tuple(
                structs.replace(each, fingerprint=prints[step.name][each.repo_id])
                for each in step.repositories
            ),
        )
        for step in plan.steps
    )
    return structs.replace(plan, steps=tuple(steps))


def _refuse_to_mend_half(steps: Sequence[Step], request: Request, state: State) -> None:
    """A damaged table is made anew, so the repositories that have rows in it must all be built."""
    for step in steps:
        damaged = sorted(state.damaged.intersection(step.outputs))
        others = [
            repo_id
            for repo_id, row in state.repositories.items()
            if repo_id not in request.made_from and step.name in row.plan_fingerprints
        ]
        if damaged and others:
            raise StorageFailure(
                f"{', '.join(damaged)} is damaged or missing, and has rows of {', '.join(others)} too",
                f"build {', '.join((*request.made_from, *others))} in one run, so that no rows are lost",
            )


# By step, then by repository.
Prints: TypeAlias = Mapping[str, Mapping[str, str]]
Actions: TypeAlias = dict[str, dict[str, tuple[Action, str]]]


def _fingerprints(steps: Sequence[Step], request: Request, rules: Mapping[str, str]) -> Prints:
    prints: dict[str, dict[str, str]] = {}
    for step in steps:
        prints[step.name] = {
            repo_id: step_fingerprint(
                step,
                repo_id,
                {name: prints[name][repo_id] for name in step.after} if step.after else source,
                rules[step.name],
            )
            for repo_id, source in request.made_from.items()
        }
    return prints


def _resumed(
    steps: Sequence[Step], prints: Prints, state: State, before: LeaseRow | None
) -> dict[str, StepDone]:
    """The steps that a dead run has done just as this one would, for no repository but this one's."""
    if before is None or before.base_run_id != state.run_id or before.run_id == state.run_id:
        return {}
    done = {each.step_name: each for each in before.done}
    found: dict[str, StepDone] = {}
    for step in steps:
        one = done.get(step.name)
        if one is None or not one.fingerprints.items() <= prints[step.name].items():
            continue
        there = all(state.newest.get(name, -1) >= version for name, version in one.pins.items())
        if there and all(name in found for name in step.after if name in done):
            found[step.name] = one
    # Rows of other repositories that the dead run has written would be published half done.
    return found if set(done) == set(found) else {}


def _action(
    step: Step,
    repo_id: str,
    prints: Prints,
    state: State,
    resumed: Mapping[str, StepDone],
    request: Request,
) -> tuple[Action, str]:
    if step.name in resumed and repo_id in resumed[step.name].fingerprints:
        return "resume", "done by a run that did not finish"
    row = state.repositories.get(repo_id)
    if row is None:
        return "run", "never built"
    damaged = sorted(state.damaged.intersection(step.outputs))
    if damaged:
        return "run", f"{', '.join(damaged)} is damaged or missing"
    if row.plan_fingerprints.get(step.name) == prints[step.name][repo_id]:
        return "skip", f"unchanged since run {row.run_id}"
    return "run", _change(step, repo_id, prints, row, request)


def _change(step: Step, repo_id: str, prints: Prints, row: RunManifest, request: Request) -> str:
    """What is different from the run that was published."""
    if step.name not in row.plan_fingerprints:
        return "last built without it"
    new = [name for name in step.after if row.plan_fingerprints.get(name) != prints[name][repo_id]]
    if new:
        return f"{' and '.join(new)} changed"
    if step.name == EXTRACT and request.made_from[repo_id]["source"] != row.source_digest:
        return "the source changed"
    if step.name == EXTRACT and request.asked.witness_versions != row.witness_versions:
        return "versions of the witnesses changed"
    if request.asked.settings_hash != row.settings_hash:
        return "settings changed"
    return "its rules or inputs changed"


def _refreshed(
    steps: Sequence[Step],
    actions: Actions,
    rules: Mapping[str, str],
    state: State,
    request: Request,
) -> dict[str, tuple[Change, ...]]:
    """Refresh what need not run, and return the paths that changed, by repository."""
    found: dict[str, tuple[Change, ...]] = {}
    first, obstacle = steps[0], _obstacle(steps, request)
    for repo_id, lines in request.lines.items():
        if not _is_refreshable(first, repo_id, actions, rules, state):
            continue
        if obstacle is not None:
            actions[first.name][repo_id] = ("run", f"{actions[first.name][repo_id][1]}, and {obstacle}")
            continue
        before = stored_lines(request.lake, repo_id, state.pins[FILES])
        changes, paths = changes_of(repo_id, before, lines), len(before.keys() | lines.keys())
        if len(changes) > (request.max_share or 0) * paths:
            share = f"{len(changes):,} of {paths:,} paths changed"
            actions[first.name][repo_id] = ("run", f"{share}: more than refresh.max_share")
            continue
        found[repo_id] = changes
        for step in steps:
            is_after = all(actions[name][repo_id][0] == "refresh" for name in step.after)
            if is_after and _is_refreshable(step, repo_id, actions, rules, state):
                actions[step.name][repo_id] = ("refresh", _told(changes))
    return found


def _obstacle(steps: Sequence[Step], request: Request) -> str | None:
    """Why nothing can be refreshed."""
    if request.max_share is None:
        return "all files are asked for"
    if SCHEME.match(request.lake):
        return "the lake is not the path of a folder"
    tables = (catalog.table(name, request.tables) for step in steps for name in step.outputs)
    foreign = [table.name for table in tables if not has_simple_policy(table)]
    return f"{foreign[0]} has features that only Spark writes" if foreign else None


def _is_refreshable(
    step: Step, repo_id: str, actions: Actions, rules: Mapping[str, str], state: State
) -> bool:
    """Whether a step that would run has done the same to another source, and its rows are there."""
    row = state.repositories.get(repo_id)
    return (
        row is not None
        and actions[step.name][repo_id][0] == "run"
        and step.name in row.plan_fingerprints
        and row.rule_fingerprints.get(step.name) == rules[step.name]
        and not state.damaged.intersection((*step.outputs, *step.inputs))
    )


def _told(changes: Sequence[Change]) -> str:
    counts = Counter(change.how for change in changes)
    said = ", ".join(f"{count:,} {how}" for how, count in sorted(counts.items()))
    return f"paths: {said}" if said else "what other tools say of the source is read again"


def _together(steps: Sequence[Step], actions: Actions) -> None:
    """Steps that write to one table run both, or none."""
    for step in steps:
        for other in steps:
            if other.name == step.name or not set(step.adds_to) & set(other.outputs):
                continue
            for repo_id, (action, _) in actions[step.name].items():
                both = {action, actions[other.name][repo_id][0]}
                if "refresh" in both and len(both) > 1:
                    why = f"{step.name} and {other.name} write to one table, and one of them runs"
                    actions[step.name][repo_id] = actions[other.name][repo_id] = ("run", why)
                # A step that a dead run did may have found nothing to add, and so not waited for the other.
                elif action != "skip" and actions[other.name][repo_id][0] == "skip":
                    actions[other.name][repo_id] = ("run", f"{step.name} adds to its tables")
                elif action == "skip" and actions[other.name][repo_id][0] != "skip":
                    actions[step.name][repo_id] = ("run", f"{other.name} runs, whose tables it adds to")


def _planned(
    step: Step,
    actions: Mapping[str, tuple[Action, str]],
    prints: Mapping[str, str],
    pins: Mapping[str, int],
) -> PlannedStep:
    return PlannedStep(
        step.name,
        step.after,
        {name: pins.get(name) for name in step.inputs},
        step.outputs,
        step.adds_to,
        tuple(Planned(repo_id, action, why, prints[repo_id]) for repo_id, (action, why) in actions.items()),
    )


def _is_empty(root: str, name: str, version: int) -> bool:
    return not logged_paths(root, name, version)
