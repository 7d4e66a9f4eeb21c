"""Decide what each step of a run does for each repository: run, refresh, resume or skip.

    plan = plan_run(request, lake_state("lake", catalog.TABLES), before=None)
    plan.steps[0].repositories[0]    # PlannedAction("requests", "skip", "unchanged since run ...", "8f0c...")
    plan.nothing_to_do

A step is skipped for a repository if its fingerprint equals that of the published run and its tables exist.
It is resumed if the journal of an unfinished run has it as completed, and nothing was published since. It is
refreshed (only affected files are processed) if its rules are those it ran with, and at most a share of
`refresh.max_share` of the files has changed: for extract, the paths of the source that differ; for the other
steps, the files that the change feeds of their inputs have after their cursors (`plan.feeds`). Else it runs.
Ids of two versions are never mixed: if those of a lake are of another version than this release makes, all
steps of all its repositories run.

A table that is neither at its published nor at a resumed version has rows of an unfinished run, and is rolled
back first. A table with missing files is emptied and built again.

If a step appends to a table of another step (relate to the diagnostics of normalize), both run or neither.
The plan is made without a JVM. Tests: `tests/unit/plan/test_run_plan.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from codeanatomy import catalog, node_ids
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.folder import listed_once
from codeanatomy.delta.read.light import logged_paths, newest_version_or_none
from codeanatomy.delta.read.readable import is_readable
from codeanatomy.delta.write.file_commits import has_simple_policy
from codeanatomy.errors import ContractError, FeedLost, StorageFailure, TableMissing, UsageError
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.lake.cursors import Cursors, read_cursors
from codeanatomy.lake.lease import LeaseRow, StepDone
from codeanatomy.lake.manifest import OutputPin, RunManifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.plan.build_request import EngineChoice
from codeanatomy.plan.changes import FILES, Impact, SourceChange, read_file_states, source_changes
from codeanatomy.plan.feeds import FeedChanges, has_changes, read_feeds, require_feeds
from codeanatomy.plan.steps import (
    EXTRACT,
    RESTORED_PREFIX,
    BuildInputs,
    Step,
    changed_rules,
    rule_fingerprints,
    step_fingerprint,
    steps_of,
)
from codeanatomy.sources.digest import DIGEST_CHARS, FileState, FileStates

# The input of extract besides the source.
SCIP_INPUT = "the SCIP index or tool"

Action: TypeAlias = Literal["run", "skip", "resume", "refresh"]
Engine: TypeAlias = Literal["spark", "local"]


class PlannedAction(Struct, frozen=True):
    """The action of a step for a repository, and its reason."""

    repo_id: str
    action: Action
    why: str
    fingerprint: str


class PlannedStep(Struct, frozen=True):
    """A step with its pinned inputs and its action for each repository."""

    name: str
    # Steps that must be completed before.
    after: tuple[str, ...]
    # Tables it reads, with their version; None: the version that this run will write.
    inputs: dict[str, int | None]
    outputs: tuple[str, ...]
    adds_to: tuple[str, ...]
    repositories: tuple[PlannedAction, ...]

    @property
    def runs_for(self) -> tuple[str, ...]:
        """Repositories that the step processes completely."""
        return tuple(each.repo_id for each in self.repositories if each.action == "run")

    @property
    def refreshes(self) -> tuple[str, ...]:
        """Repositories of which the step processes only the affected files."""
        return tuple(each.repo_id for each in self.repositories if each.action == "refresh")

    @property
    def busy(self) -> tuple[str, ...]:
        """Repositories that the step has work for."""
        return (*self.runs_for, *self.refreshes)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprint of the step by repository."""
        return {each.repo_id: each.fingerprint for each in self.repositories}


class Undo(Struct, frozen=True):
    """A rollback of a table that an unfinished run wrote to; `to_version` None removes all rows."""

    table_name: str
    from_version: int
    to_version: int | None


class Plan(Struct, frozen=True):
    """The steps, rollbacks and pins of a run."""

    lake: str
    # Published run that it builds on; None in a new lake.
    base_run_id: str | None
    # Unfinished run that it resumes.
    resumes: str | None
    undo: tuple[Undo, ...]
    # Table versions that it starts from, before rollbacks.
    pins: dict[str, int]
    steps: tuple[PlannedStep, ...]
    # Repositories that cannot be built, and why.
    failed: dict[str, str]
    # Changed paths of the repositories that are refreshed; none if only steps after extract are.
    changes: dict[str, tuple[SourceChange, ...]] = {}
    # By repository: files that earlier runs have changed and later steps have not processed.
    pending: dict[str, tuple[str, ...]] = {}
    # Steps that run in full because their change feeds are incomplete, and what is missing.
    lost_feeds: tuple[str, ...] = ()
    # Files that a refresh will process, and why; empty unless requested.
    impact: dict[str, tuple[Impact, ...]] = {}
    # Run that holds the lease now.
    held_by: str | None = None
    # Executor of the passes, and why it was chosen.
    engine: Engine = "spark"
    engine_reason: str = ""

    @property
    def nothing_to_do(self) -> bool:
        """Whether the lake is already up to date."""
        busy = any(each.action != "skip" for step in self.steps for each in step.repositories)
        return not (busy or self.undo or self.failed)

    def step(self, name: str) -> PlannedStep:
        """Return the step called `name`, which must be in the plan."""
        return next(step for step in self.steps if step.name == name)


class PlanRequest(Struct, frozen=True):
    """Input of the planner: tables, settings and the state of the sources."""

    lake: str
    tables: tuple[Table, ...]
    until: str | None
    build_inputs: BuildInputs
    # By repository: digest of the source, and the SCIP index or tool.
    source_inputs: dict[str, dict[str, str]]
    failed: dict[str, str]
    # By repository: state of each path.
    file_states: dict[str, FileStates] = {}
    # Largest share of changed paths for a refresh; None: no refreshes.
    max_share: float | None = None
    # Requested executor, and the most bytes of sources that local processes work on by themselves.
    engine: EngineChoice = "auto"
    local_bytes: int = 0


class LakeState(Struct, frozen=True):
    """State of a lake before a run: the published snapshot and the newest table versions."""

    run_id: str | None
    published_at: datetime | None
    # Published version of each table, with its row count and protocol.
    outputs: dict[str, OutputPin]
    # Newest succeeded manifest row of each repository.
    repositories: dict[str, RunManifest]
    # Newest version of each table that exists.
    newest: dict[str, int]
    # Published tables with missing files or log entries.
    damaged: frozenset[str]
    # By repository.
    cursors: dict[str, Cursors] = {}

    @property
    def pins(self) -> dict[str, int]:
        """Published version of each table."""
        return {name: pin.version for name, pin in self.outputs.items()}


def lake_state(root: str, tables: Sequence[Table]) -> LakeState:
    """Read the state of a lake, which need not exist."""
    with listed_once(root):
        return _read_state(root, written_tables(tables))


def _read_state(root: str, written: Sequence[str]) -> LakeState:
    newest = {
        name: version for name in written if (version := newest_version_or_none(root, name)) is not None
    }
    try:
        lake = Snapshot.open(root)
    except TableMissing:
        return LakeState(None, None, {}, {}, newest, frozenset())
    # Tables that are no longer in the catalogue are ignored.
    pins = {name: pin for name, pin in lake.pins.items() if name in written}
    damaged = frozenset(
        name for name, pin in pins.items() if name not in newest or not is_readable(root, name, pin.version)
    )
    cursors = read_cursors(root, {name: row.run_id for name, row in lake.repositories.items()})
    return LakeState(lake.run_id, lake.published_at, pins, lake.repositories, newest, damaged, cursors)


def written_tables(tables: Sequence[Table]) -> tuple[str, ...]:
    """Return the tables that steps write, which are those that a run pins."""
    return tuple(name for step in steps_of(tables) for name in step.outputs)


def plan_run(request: PlanRequest, state: LakeState, before: LeaseRow | None) -> Plan:
    """Plan a run; `before` is the lease row of the last run, if that run may be resumed."""
    steps = steps_of(request.tables, request.until)
    if state.run_id is None and before is not None and before.base_run_id is not None:
        raise StorageFailure(
            f"{request.lake} has lost its manifest: run {before.base_run_id} was published",
            "restore meta/run_manifest from a copy, or build into a new lake",
        )
    _refuse_partial_repair(steps, request, state)
    _refuse_mixed_ids(request, state)
    rules = rule_fingerprints(steps, request.build_inputs, request.tables)
    prints = _fingerprints(steps, request, rules)
    resumed = _resumable_steps(steps, prints, state, before)
    actions = {
        step.name: {
            repo_id: _action(step, repo_id, prints, rules, state, resumed, request)
            for repo_id in request.source_inputs
        }
        for step in steps
    }
    rebuilt = state.damaged.intersection(name for step in steps for name in step.outputs)
    # A damaged table starts without rows: the remaining rows cannot be matched with the missing ones.
    target = {name: version for name, version in state.pins.items() if name not in rebuilt}
    for done in resumed.values():
        target |= {name: max(version, target.get(name, -1)) for name, version in done.pins.items()}
    planner = _RefreshPlanner(steps, actions, rules, state, request, target)
    changes, pending = planner.plan()
    _align_shared_tables(steps, actions, state)
    undo = tuple(
        Undo(name, version, target.get(name))
        for name, version in state.newest.items()
        if version != target.get(name)
        and name not in state.damaged - rebuilt
        and not (name not in target and _is_empty(request.lake, name, version))
    )
    busy = [
        step
        for step in steps
        if any(action in ("run", "refresh") for action, _ in actions[step.name].values())
    ]
    # Tables that this run writes are read at their new version.
    written = {name for step in busy for name in (*step.outputs, *step.adds_to)}
    pins = {name: version for name, version in target.items() if name not in written}
    planned = tuple(_planned_step(step, actions[step.name], prints[step.name], pins) for step in steps)
    resumes = before.run_id if before is not None and resumed else None
    engine, reason = choose_engine(request, planned, changes, pending)
    return Plan(
        request.lake,
        state.run_id,
        resumes,
        undo,
        target,
        planned,
        request.failed,
        changes,
        pending,
        tuple(planner.lost),
        engine=engine,
        engine_reason=reason,
    )


def choose_engine(
    request: PlanRequest,
    steps: Sequence[PlannedStep],
    changes: Mapping[str, Sequence[SourceChange]],
    pending: Mapping[str, Sequence[str]],
) -> tuple[Engine, str]:
    """Choose the executor: local processes if few bytes of sources are read, else Spark."""
    if request.engine != "auto":
        return request.engine, "requested"
    obstacle = _local_obstacle(request.tables, steps)
    if obstacle is not None:
        return "spark", obstacle
    size = 0
    for repo_id in dict.fromkeys(repo_id for step in steps for repo_id in step.busy):
        states = request.file_states.get(repo_id, {})
        paths = set(states)
        if repo_id in changes and not any(repo_id in step.runs_for for step in steps):
            behind = set(pending.get(repo_id, ()))
            paths = {path for path in states if behind and file_id(repo_id, path) in behind}
            paths |= {change.path for change in changes[repo_id]}
        size += sum(_read_bytes(states[path]) for path in paths if path in states)
    relation, most = ("at most" if size <= request.local_bytes else "more than"), request.local_bytes
    reason = f"{size:,} bytes of sources, {relation} refresh.local_bytes = {most:,}"
    return ("local" if size <= most else "spark"), reason


def refuse_engine(engine: EngineChoice, lake: str, tables: Sequence[Table], until: str | None) -> None:
    """Raise UsageError if local processes are requested and cannot build a lake; nothing is read of it."""
    obstacle = _local_obstacle(tables, steps_of(tables, until))
    if engine == "local" and obstacle is not None:
        raise UsageError(f"--engine local cannot build {lake}: {obstacle}", "use --engine spark (or auto)")


def with_fingerprints(plan: Plan, request: PlanRequest) -> Plan:
    """Return the plan with the fingerprints of another request for the same repositories."""
    all_steps = steps_of(request.tables, request.until)
    rules = rule_fingerprints(all_steps, request.build_inputs, request.tables)
    prints = _fingerprints(all_steps, request, rules)
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


def _refuse_partial_repair(steps: Sequence[Step], request: PlanRequest, state: LakeState) -> None:
    """Raise StorageFailure if a damaged table, which is built again, has rows of other repositories."""
    for step in steps:
        damaged = sorted(state.damaged.intersection(step.outputs))
        others = [
            repo_id
            for repo_id, row in state.repositories.items()
            if repo_id not in request.source_inputs
            and (step.name in row.plan_fingerprints or step.name in state.cursors.get(repo_id, {}))
        ]
        if damaged and others:
            raise StorageFailure(
                f"{', '.join(damaged)} is damaged or missing, and has rows of {', '.join(others)} too",
                f"build {', '.join((*request.source_inputs, *others))} in one run, so that no rows are lost",
            )


def _refuse_mixed_ids(request: PlanRequest, state: LakeState) -> None:
    """Raise ContractError if ids of another version would stay in the lake: tables have those of one."""
    older = {repo_id: row for repo_id, row in state.repositories.items() if not _has_current_ids(row)}
    others = sorted(older.keys() - request.source_inputs.keys())
    if others:
        versions = sorted({older[repo_id].id_version for repo_id in others})
        raise ContractError(
            f"the ids of {', '.join(others)} are of version {', '.join(map(str, versions))},"
            f" this release makes version {node_ids.ID_VERSION}, and a lake has ids of one version",
            f"build {', '.join((*request.source_inputs, *others))} in one run, or build into a new lake",
        )


# By step, then by repository.
Prints: TypeAlias = Mapping[str, Mapping[str, str]]
Actions: TypeAlias = dict[str, dict[str, tuple[Action, str]]]


def _fingerprints(steps: Sequence[Step], request: PlanRequest, rules: Mapping[str, str]) -> Prints:
    prints: dict[str, dict[str, str]] = {}
    for step in steps:
        prints[step.name] = {
            repo_id: step_fingerprint(
                step,
                repo_id,
                {name: prints[name][repo_id] for name in step.after} if step.after else source,
                rules[step.name],
            )
            for repo_id, source in request.source_inputs.items()
        }
    return prints


def _resumable_steps(
    steps: Sequence[Step], prints: Prints, state: LakeState, before: LeaseRow | None
) -> dict[str, StepDone]:
    """Return the steps that an unfinished run completed with the same fingerprints and repositories."""
    if before is None or before.base_run_id != state.run_id or before.run_id == state.run_id:
        return {}
    done = {each.step_name: each for each in before.done}
    resumable: dict[str, StepDone] = {}
    for step in steps:
        completed = done.get(step.name)
        if completed is None or not completed.fingerprints.items() <= prints[step.name].items():
            continue
        exists = all(state.newest.get(name, -1) >= version for name, version in completed.pins.items())
        if exists and all(name in resumable for name in step.after if name in done):
            resumable[step.name] = completed
    # Else rows of other repositories that the unfinished run wrote would be published incomplete.
    return resumable if set(done) == set(resumable) else {}


def _action(
    step: Step,
    repo_id: str,
    prints: Prints,
    rules: Mapping[str, str],
    state: LakeState,
    resumed: Mapping[str, StepDone],
    request: PlanRequest,
) -> tuple[Action, str]:
    if step.name in resumed and repo_id in resumed[step.name].fingerprints:
        return "resume", "done by a run that did not finish"
    row = state.repositories.get(repo_id)
    if row is None:
        return "run", "never built"
    is_same = _has_current_ids(row) and row.plan_fingerprints.get(step.name) == prints[step.name][repo_id]
    damaged = sorted(state.damaged.intersection(step.outputs))
    if is_same and not damaged:
        return "skip", f"unchanged since run {row.run_id}"
    reasons = [f"{', '.join(damaged)} is damaged or missing"] if damaged else []
    if not is_same:
        reasons.append(_change_reason(step, repo_id, prints, rules, row, request))
    return "run", ", and ".join(reasons)


def _change_reason(
    step: Step,
    repo_id: str,
    prints: Prints,
    rules: Mapping[str, str],
    row: RunManifest,
    request: PlanRequest,
) -> str:
    """Describe all differences from the published run."""
    if step.name not in row.plan_fingerprints:
        return "last built without it"
    if not _has_current_ids(row):
        made = node_ids.ID_VERSION
        return f"its ids are of version {row.id_version}, this release makes version {made}: all steps run"
    if row.plan_fingerprints[step.name].startswith(RESTORED_PREFIX):
        return "one of its tables, or of those that it reads, was restored alone"
    own = changed_rules(row.rule_fingerprints.get(step.name), rules[step.name])
    changed = [name for name in step.after if row.plan_fingerprints.get(name) != prints[name][repo_id]]
    if step.name == EXTRACT:
        if request.source_inputs[repo_id]["source"] != row.source_digest:
            # Settings and code decide which files are listed and read.
            changed.append("the source as it is read" if own else "the source")
        if _has_other_scip(step, repo_id, row, request):
            changed.append(SCIP_INPUT)
    *others, last = [*changed, *own] or ["its inputs"]
    return f"{', '.join(others)} and {last} changed" if others else f"{last} changed"


def _has_other_scip(step: Step, repo_id: str, row: RunManifest, request: PlanRequest) -> bool:
    """Return whether the SCIP index or tool is another one: its digest is only part of the fingerprint."""
    before = row.rule_fingerprints.get(step.name)
    if row.source_digest is None or before is None:
        return False
    inputs = {**request.source_inputs[repo_id], "source": row.source_digest}
    return step_fingerprint(step, repo_id, inputs, before) != row.plan_fingerprints[step.name]


def _has_current_ids(row: RunManifest) -> bool:
    return row.id_version == node_ids.ID_VERSION


@dataclass(frozen=True)
class _RefreshPlanner:
    """Replaces the action run by refresh where that is sufficient."""

    steps: Sequence[Step]
    actions: Actions
    rules: Mapping[str, str]
    state: LakeState
    request: PlanRequest
    # Versions that the run starts from.
    pins: Mapping[str, int]
    # What is missing of feeds, by step and repository.
    lost: list[str] = field(default_factory=list)

    def plan(self) -> tuple[dict[str, tuple[SourceChange, ...]], dict[str, tuple[str, ...]]]:
        """Return the changed paths, and the files in change feeds, of the repositories that are refreshed."""
        changes: dict[str, tuple[SourceChange, ...]] = {}
        pending: dict[str, tuple[str, ...]] = {}
        obstacle = _obstacle(self.steps, self.request)
        for repo_id in self.request.file_states.keys() & self.state.repositories.keys():
            edited: tuple[SourceChange, ...] | None = ()
            if self.actions[self.steps[0].name][repo_id][0] == "run":
                edited = self._refresh_extract(repo_id, obstacle)
            if edited is None or obstacle is not None:
                continue
            files = self._refresh_later(repo_id, edited)
            if files is not None or edited or self.actions[self.steps[0].name][repo_id][0] == "refresh":
                changes[repo_id] = edited
                pending[repo_id] = tuple(sorted(files or ()))
        return dict(sorted(changes.items())), pending

    def _refresh_extract(self, repo_id: str, obstacle: str | None) -> tuple[SourceChange, ...] | None:
        """Return the paths that extract reads if it is refreshed."""
        step, request = self.steps[0], self.request
        if not _is_refreshable(step, repo_id, self.actions, self.rules, self.state):
            return None
        reasons = self.actions[step.name]
        if obstacle is not None:
            reasons[repo_id] = ("run", f"{reasons[repo_id][1]}, and {obstacle}")
            return None
        now = request.file_states[repo_id]
        before = read_file_states(request.lake, repo_id, self.state.pins[FILES])
        changes, paths = source_changes(repo_id, before, now), len(before.keys() | now.keys())
        if len(changes) > (request.max_share or 0) * paths:
            share = f"{len(changes):,} of {paths:,} paths changed: more than refresh.max_share"
            reasons[repo_id] = ("run", f"{share}{self._and_scip(repo_id)}")
            return None
        reasons[repo_id] = ("refresh", f"{_change_summary(changes)}{self._and_scip(repo_id)}")
        return changes

    def _and_scip(self, repo_id: str) -> str:
        row = self.state.repositories[repo_id]
        has_scip = _has_other_scip(self.steps[0], repo_id, row, self.request)
        return f", and {SCIP_INPUT} changed" if has_scip else ""

    def _refresh_later(self, repo_id: str, edited: Sequence[SourceChange]) -> frozenset[str] | None:
        """Refresh steps after extract; return the files that are in their feeds, None if no step is."""
        files: frozenset[str] | None = None
        for step in self.steps[1:]:
            action, reason = self.actions[step.name][repo_id]
            if action != "run" or any(self.actions[name][repo_id][0] == "run" for name in step.after):
                continue
            changes = self._feed_changes(step, repo_id)
            if isinstance(changes, str):
                self.actions[step.name][repo_id] = ("run", f"{reason}, and {changes}" if changes else reason)
                continue
            others = changes.all_files - {change.file_id for change in edited}
            count = len(others) + len(edited)
            if others and count > (self.request.max_share or 0) * len(self.request.file_states[repo_id]):
                many = f"{count:,} files are in its change feeds: more than refresh.max_share"
                self.actions[step.name][repo_id] = ("run", many)
                continue
            summary = [_change_summary(edited)] if edited or not others else []
            summary += [f"{len(others):,} files in its change feeds since it ran"] if others else []
            why = f"{', and '.join(summary)}{self._and_scip(repo_id)}"
            self.actions[step.name][repo_id] = ("refresh", why)
            files = changes.all_files | (files or frozenset())
        return files

    def _feed_changes(self, step: Step, repo_id: str) -> FeedChanges | str:
        """Return what a step has not processed yet; if it has to run, what its reason lacks as a text."""
        row, cursor = self.state.repositories[repo_id], self.state.cursors.get(repo_id, {}).get(step.name)
        damaged = self.state.damaged.intersection((*step.outputs, *step.inputs))
        if damaged or not _has_current_ids(row):
            return ""
        if cursor is None:
            known = row.plan_fingerprints.get(step.name, RESTORED_PREFIX)
            return "" if known.startswith(RESTORED_PREFIX) else "it has no cursors in the change feeds"
        if cursor.rules != self.rules[step.name]:
            changed = changed_rules(cursor.rules, self.rules[step.name]) or ["the rules of an earlier step"]
            return "" if step.name in row.plan_fingerprints else f"{', '.join(changed)} changed"
        try:
            require_feeds(step.inputs, self.request.tables)
            changes = read_feeds(self.request.lake, step.inputs, repo_id, cursor, self.pins)
            if SCIP in step.inputs and has_changes(self.request.lake, SCIP, repo_id, cursor, self.pins):
                # Its documents may be of files that the repository lacks, which no feed of files has.
                return "the SCIP index changed in an earlier run"
        except FeedLost as lost:
            self.lost.append(f"{step.name} runs for all files of {repo_id}: {lost.message}")
            return lost.message
        return changes


def _obstacle(steps: Sequence[Step], request: PlanRequest) -> str | None:
    """Return why no repository can be refreshed, or None."""
    if request.max_share is None:
        return "--full was given"
    return _local_obstacle(request.tables, steps)


def _read_bytes(state: FileState) -> int:
    """Return the size of a file that is read: its state has a digest then, and else a reason."""
    _, size, digest = state
    return size or 0 if len(digest) == DIGEST_CHARS else 0


def _local_obstacle(tables: Sequence[Table], steps: Sequence[Step | PlannedStep]) -> str | None:
    """Return why only Spark can write the tables, or None."""
    written = (catalog.table(name, tables) for step in steps for name in step.outputs)
    spark_only = [table.name for table in written if not has_simple_policy(table)]
    return f"{spark_only[0]} has features that only Spark writes" if spark_only else None


def _is_refreshable(
    step: Step, repo_id: str, actions: Actions, rules: Mapping[str, str], state: LakeState
) -> bool:
    """Return whether a step has unchanged rules and intact tables, so that a refresh is sufficient."""
    row = state.repositories.get(repo_id)
    return (
        row is not None
        and _has_current_ids(row)
        and actions[step.name][repo_id][0] == "run"
        and step.name in row.plan_fingerprints
        and row.rule_fingerprints.get(step.name) == rules[step.name]
        and not state.damaged.intersection((*step.outputs, *step.inputs))
    )


def _change_summary(changes: Sequence[SourceChange]) -> str:
    counts = Counter(change.how for change in changes)
    summary = ", ".join(f"{count:,} {how}" for how, count in sorted(counts.items()))
    return f"paths: {summary}" if summary else "no path changed"


def _align_shared_tables(steps: Sequence[Step], actions: Actions, state: LakeState) -> None:
    """Make both steps that write to a table run, or both be refreshed, or neither."""
    for step in steps:
        for other in steps:
            if other.name == step.name or not set(step.adds_to) & set(other.outputs):
                continue
            for repo_id, (action, _) in actions[step.name].items():
                both = {action, actions[other.name][repo_id][0]}
                cursors = state.cursors.get(repo_id, {})
                if both == {"refresh", "skip"} and {step.name, other.name} <= cursors.keys():
                    skipped, partner = (step, other) if action == "skip" else (other, step)
                    why = f"{partner.name} is refreshed and writes to one of its tables"
                    actions[skipped.name][repo_id] = ("refresh", why)
                elif "refresh" in both and len(both) > 1:
                    for name, beside in ((step.name, other.name), (other.name, step.name)):
                        before, why = actions[name][repo_id]
                        also = f"{beside} runs for all files and writes to one of its tables"
                        actions[name][repo_id] = ("run", why if before == "run" else f"{why}, and {also}")
                # A resumed step may have had no rows to append, so the other step may not have run.
                elif action != "skip" and actions[other.name][repo_id][0] == "skip":
                    actions[other.name][repo_id] = ("run", f"{step.name} adds to its tables")
                elif action == "skip" and actions[other.name][repo_id][0] != "skip":
                    actions[step.name][repo_id] = ("run", f"{other.name} runs, whose tables it adds to")


def _planned_step(
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
        tuple(
            PlannedAction(repo_id, action, why, prints[repo_id]) for repo_id, (action, why) in actions.items()
        ),
    )


def _is_empty(root: str, name: str, version: int) -> bool:
    return not logged_paths(root, name, version)
