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
back first. A table of which a file or a log entry is missing or unreadable is emptied and built again.

The plan is made without a JVM. Tests: `tests/unit/plan/test_run_plan.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from codeanatomy import catalog, node_ids
from codeanatomy.catalog.readers import VECTORS, VECTORS_NAME, without_vectors
from codeanatomy.catalog.settings import Readers
from codeanatomy.catalog.spec import Table
from codeanatomy.config import Engine
from codeanatomy.delta.gate import gate_error, gate_problems
from codeanatomy.delta.log.folder import listed_once
from codeanatomy.delta.read.light import logged_paths, newest_version_or_none, table_facts
from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.delta.read.readable import damaged_tables, is_readable
from codeanatomy.delta.store_policy import is_local
from codeanatomy.delta.write.file_commits import has_simple_policy
from codeanatomy.errors import (
    ContractError,
    FeatureError,
    FeedLost,
    StorageFailure,
    StoreUnavailable,
    TableMissing,
    UsageError,
)
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.lake.cursors import Cursors, read_cursors
from codeanatomy.lake.engine_facts import EngineFacts
from codeanatomy.lake.lease import LeaseRow, StepDone
from codeanatomy.lake.manifest import LOST_MANIFEST, OutputPin, RunManifest
from codeanatomy.lake.manifest import TABLE as MANIFEST
from codeanatomy.lake.snapshot import RECORDS, Snapshot
from codeanatomy.plan.build_request import MAX_SHOWN, BuildRequest
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
from codeanatomy.sources.digest import FileStates
from codeanatomy.sources.root_package import import_name

# The input of extract besides the source.
SCIP_INPUT = "the SCIP index or tool"
PACKAGE_INPUT = "the package that its root is"

# Why a build of all files runs a step.
FULL = "--full was given"

# Until a build names its session.
SPARK = EngineFacts("spark")

Action: TypeAlias = Literal["run", "skip", "resume", "refresh"]


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
    # Executor of the passes.
    engine_facts: EngineFacts = SPARK

    @property
    def engine(self) -> Engine:
        """Whether the passes run on Spark or on local processes."""
        return self.engine_facts.engine

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
    engine_facts: EngineFacts = SPARK
    # Whether steps run although nothing changed.
    full: bool = False


class LakeState(Struct, frozen=True):
    """State of a lake before a run: the published snapshot and the newest table versions."""

    run_id: str | None = None
    published_at: datetime | None = None
    # Published version of each table, with its row count and protocol.
    outputs: dict[str, OutputPin] = {}
    # Newest succeeded manifest row of each repository.
    repositories: dict[str, RunManifest] = {}
    # Newest version of each table that exists.
    newest: dict[str, int] = {}
    # Published tables with missing files or log entries.
    damaged: frozenset[str] = frozenset()
    # By repository.
    cursors: dict[str, Cursors] = {}
    # Version of each table of records (manifest, cursors, events) that cannot be read.
    lost_records: dict[str, int] = {}

    @property
    def pins(self) -> dict[str, int]:
        """Published version of each table."""
        return {name: pin.version for name, pin in self.outputs.items()}


def lake_state(root: str, tables: Sequence[Table], *, full: bool = False) -> LakeState:
    """Read the state of a lake, which need not exist; for a full build its manifest may be unreadable."""
    with listed_once(root):
        return _read_state(root, written_tables(tables), full=full)


def _read_state(root: str, written: Sequence[str], *, full: bool) -> LakeState:
    newest, records = (
        {name: version for name in names if (version := newest_version_or_none(root, name)) is not None}
        # A store has an object as a whole or not at all, and each look at one takes a request.
        for names in (written, sorted(RECORDS) if is_local(root) else ())
    )
    lost = {name: version for name, version in records.items() if not is_readable(root, name, version)}
    try:
        lake = Snapshot.open(root)
    except TableMissing:
        return LakeState(newest=newest, lost_records=lost)
    except StoreUnavailable:
        raise
    except StorageFailure:
        if not full:
            raise
        lost[MANIFEST] = newest_version(root, MANIFEST)
        return LakeState(newest=newest, lost_records=lost)
    # Tables that are no longer in the catalogue are ignored.
    pins = {name: pin for name, pin in lake.pins.items() if name in written}
    damaged = frozenset(damaged_tables(root, {name: pin.version for name, pin in pins.items()}))
    cursors = read_cursors(root, {name: row.run_id for name, row in lake.repositories.items()})
    return LakeState(lake.run_id, lake.published_at, pins, lake.repositories, newest, damaged, cursors, lost)


def written_tables(tables: Sequence[Table]) -> tuple[str, ...]:
    """Return the tables that steps write, which are those that a run pins."""
    return tuple(name for step in steps_of(tables) for name in step.outputs)


def tables_for_lake(request: BuildRequest, state: LakeState) -> tuple[Table, ...]:
    """Return the tables of a lake: stored ones keep their features, new ones get what the others have.

    A lake stays as it was born until `codeanatomy maintain --readers` changes it; the tables of a new one
    have no deletion vectors, so that every reader opens them. Rows and fingerprints do not depend on it.
    Raise FeatureError if the setting `delta.readers` differs, GateError if a published table fails its gate.
    """
    root, tables, readers = request.lake, request.settings.tables, request.settings.delta.readers
    stored = stored_features(root, state.outputs, state.newest)
    with_vectors = [name for name, features in stored.items() if VECTORS_NAME in features]
    declared = {table.name for table in tables if VECTORS in table.write.enable_features}
    if readers == "all":
        _refuse_features(root, readers, with_vectors, "deletion vectors, which not every reader supports")
    if readers == "modern":
        lacking = [name for name in stored if name not in with_vectors and name in declared]
        _refuse_features(root, readers, lacking, "no deletion vectors")
    if readers == "all" or (readers is None and not with_vectors):
        tables = without_vectors(tables)
    for table in tables:
        pin = state.outputs.get(table.name)
        if pin is None or pin.min_reader_version is None or pin.min_writer_version is None:
            continue
        problems = gate_problems(table.gate, pin.min_reader_version, pin.min_writer_version, pin.features)
        if problems:
            raise gate_error(table.name, pin.version, problems)
    return tables


def stored_features(
    root: str, pins: Mapping[str, OutputPin], newest: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """Return the features of the tables of a lake: of the published version, or else of the newest."""
    published = {name: pin.features for name, pin in pins.items() if pin.min_reader_version is not None}
    others: dict[str, tuple[str, ...]] = {}
    for name, version in newest.items():
        if name not in pins:
            # A damaged table that no run has published is written anew.
            with suppress(StorageFailure):
                others[name] = table_facts(root, name, version).features
    return published | others


def _refuse_features(root: str, readers: Readers, names: Sequence[str], have: str) -> None:
    if names:
        listed = ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")
        raise FeatureError(
            f"delta.readers is {readers}, but {len(names)} tables of {root} have {have}: {listed}",
            f"codeanatomy maintain --readers {readers} --lake {root}",
        )


def plan_run(request: PlanRequest, state: LakeState, before: LeaseRow | None) -> Plan:
    """Plan a run; `before` is the lease row of the last run, if that run may be resumed."""
    steps = steps_of(request.tables, request.until)
    if state.run_id is None and before is not None and before.base_run_id is not None and not request.full:
        raise StorageFailure(
            f"{request.lake} has lost its manifest: run {before.base_run_id} was published", LOST_MANIFEST
        )
    _refuse_partial_repair(steps, request, state)
    _refuse_mixed_ids(request, state)
    return _Planner(steps, request, state, before).plan()


def refuse_features(lake: str, tables: Sequence[Table], until: str | None) -> None:
    """Raise UsageError if a table would have features that a build does not write."""
    written = (catalog.table(name, tables) for step in steps_of(tables, until) for name in step.outputs)
    for table in written:
        if not has_simple_policy(table):
            raise UsageError(
                f"{lake} cannot be built: {table.name} would have features that only Spark's writer has",
                f"remove tables.{table.name}.write.enable_features and tables.{table.name}.schema from the"
                " settings",
            )


def with_fingerprints(plan: Plan, request: PlanRequest) -> Plan:
    """Return the plan with the fingerprints of another request for the same repositories."""
    _, prints = _fingerprints(steps_of(request.tables, request.until), request)
    steps = []
    for step in plan.steps:
        own = prints[step.name]
        actions = (structs.replace(each, fingerprint=own[each.repo_id]) for each in step.repositories)
        steps.append(structs.replace(step, repositories=tuple(actions)))
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


def _fingerprints(
    steps: Sequence[Step], request: PlanRequest
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the fingerprints of the rules by step, and those of the steps by step and repository."""
    rules = rule_fingerprints(steps, request.build_inputs, request.tables)
    prints: dict[str, dict[str, str]] = {}
    for step in steps:
        prints[step.name] = {}
        for repo_id, source in request.source_inputs.items():
            inputs = {name: prints[name][repo_id] for name in step.after} if step.after else source
            prints[step.name][repo_id] = step_fingerprint(step, repo_id, inputs, rules[step.name])
    return rules, prints


class _Planner:
    """Decides which steps run, and then where a refresh is sufficient."""

    def __init__(
        self, steps: Sequence[Step], request: PlanRequest, state: LakeState, before: LeaseRow | None
    ) -> None:
        self.steps, self.request, self.state, self.before = steps, request, state, before
        self.rules, self.prints = _fingerprints(steps, request)
        self.resumed = self._resumable_steps()
        # By step and repository.
        self.actions: dict[str, dict[str, tuple[Action, str]]] = {
            step.name: {repo_id: self._action(step, repo_id) for repo_id in request.source_inputs}
            for step in steps
        }
        # A damaged table starts without rows: the remaining rows cannot be matched with the missing ones. So
        # do those of a full build of a whole lake: it reads no older row, which may be damaged too.
        is_whole = request.full and state.repositories.keys() <= request.source_inputs.keys()
        written = {name for step in steps for name in step.outputs}
        self.rebuilt = (state.pins.keys() if is_whole else state.damaged) & written
        # Versions that the run starts from.
        self.pins = {name: version for name, version in state.pins.items() if name not in self.rebuilt}
        for done in self.resumed.values():
            self.pins |= {name: max(version, self.pins.get(name, -1)) for name, version in done.pins.items()}
        # What is missing of feeds, by step and repository.
        self.lost: list[str] = []

    def plan(self) -> Plan:
        """Return the plan, with the files of the refreshes that it contains."""
        changes, pending = self._plan_refreshes()
        # Tables that this run writes are read at their new version.
        changing: set[str] = set()
        for step in self.steps:
            if any(action in ("run", "refresh") for action, _ in self.actions[step.name].values()):
                changing.update(step.outputs)
        planned = tuple(
            PlannedStep(
                step.name,
                step.after,
                {name: None if name in changing else self.pins.get(name) for name in step.inputs},
                step.outputs,
                tuple(
                    PlannedAction(repo_id, action, why, self.prints[step.name][repo_id])
                    for repo_id, (action, why) in self.actions[step.name].items()
                ),
            )
            for step in self.steps
        )
        return Plan(
            self.request.lake,
            self.state.run_id,
            self.before.run_id if self.before is not None and self.resumed else None,
            tuple(self._undo()),
            self.pins,
            planned,
            self.request.failed,
            changes,
            pending,
            tuple(self.lost),
            engine_facts=self.request.engine_facts,
        )

    def _undo(self) -> Iterator[Undo]:
        """Yield the rollbacks of tables that are not at the version that the run starts from."""
        state = self.state
        # Of a table whose newest entries are lost, the published version is the newest one that was known.
        known = {name: max(state.newest.get(name, -1), state.pins[name]) for name in self.rebuilt}
        for name, version in {**state.newest, **known}.items():
            target = self.pins.get(name)
            if version == target or name in state.damaged - self.rebuilt:
                continue
            if target is None and name in state.newest and _is_empty(self.request.lake, name, version):
                continue
            yield Undo(name, version, target)
        for name, version in state.lost_records.items():
            yield Undo(name, version, None)

    def _resumable_steps(self) -> dict[str, StepDone]:
        """Return the steps that an unfinished run completed with the same fingerprints and repositories."""
        before = self.before
        if before is None or before.base_run_id != self.state.run_id or before.run_id == self.state.run_id:
            return {}
        done = {each.step_name: each for each in before.done}
        resumable: dict[str, StepDone] = {}
        for step in self.steps:
            completed = done.get(step.name)
            if completed is None or not completed.fingerprints.items() <= self.prints[step.name].items():
                continue
            exists = all(self.state.newest.get(name, -1) >= pin for name, pin in completed.pins.items())
            if exists and all(name in resumable for name in step.after if name in done):
                resumable[step.name] = completed
        # Else rows of other repositories that the unfinished run wrote would be published incomplete.
        return resumable if set(done) == set(resumable) else {}

    def _action(self, step: Step, repo_id: str) -> tuple[Action, str]:
        """Return the action of a step without refreshes, and its reason."""
        if step.name in self.resumed and repo_id in self.resumed[step.name].fingerprints:
            return "resume", "done by a run that did not finish"
        row = self.state.repositories.get(repo_id)
        if row is None:
            return "run", "never built"
        known, made = row.plan_fingerprints.get(step.name), self.prints[step.name][repo_id]
        is_same = _has_current_ids(row) and known == made
        damaged = sorted(self.state.damaged.intersection(step.outputs))
        if is_same and not damaged and not self.request.full:
            return "skip", f"unchanged since run {row.run_id}"
        reasons = [f"{', '.join(damaged)} is damaged or missing"] if damaged else []
        if not is_same:
            reasons.append(self._change_reason(step, row))
        return "run", ", and ".join(reasons or [FULL])

    def _change_reason(self, step: Step, row: RunManifest) -> str:
        """Describe all differences from the published run."""
        if step.name not in row.plan_fingerprints:
            return "last built without it"
        if not _has_current_ids(row):
            made = node_ids.ID_VERSION
            return (
                f"its ids are of version {row.id_version}, this release makes version {made}: all steps run"
            )
        if row.plan_fingerprints[step.name].startswith(RESTORED_PREFIX):
            return "one of its tables, or of those that it reads, was restored alone"
        own = changed_rules(row.rule_fingerprints.get(step.name), self.rules[step.name])
        changed = [
            name for name in step.after if row.plan_fingerprints.get(name) != self.prints[name][row.repo_id]
        ]
        if step.name == EXTRACT:
            if self.request.source_inputs[row.repo_id]["source"] != row.source_digest:
                # Settings and code decide which files are listed and read.
                changed.append("the source as it is read" if own else "the source")
            if other := self._other_input(row):
                changed.append(other)
        *others, last = [*changed, *own] or ["its inputs"]
        return f"{', '.join(others)} and {last} changed" if others else f"{last} changed"

    def _other_input(self, row: RunManifest) -> str:
        """Name the input that differs besides the source, if any: they are only parts of a fingerprint."""
        step, repo_id = self.steps[0], row.repo_id
        before, known = row.rule_fingerprints.get(step.name), row.plan_fingerprints[step.name]
        if row.source_digest is None or before is None:
            return ""
        inputs = {**self.request.source_inputs[repo_id], "source": row.source_digest}
        if step_fingerprint(step, repo_id, inputs, before) == known:
            return ""
        inputs.pop("package", None)
        earlier = (inputs, {**inputs, "package": import_name(repo_id)})
        is_package = any(step_fingerprint(step, repo_id, each, before) == known for each in earlier)
        return PACKAGE_INPUT if is_package else SCIP_INPUT

    def _plan_refreshes(self) -> tuple[dict[str, tuple[SourceChange, ...]], dict[str, tuple[str, ...]]]:
        """Replace run by refresh; return the changed paths, and the files in feeds, by repository."""
        changes: dict[str, tuple[SourceChange, ...]] = {}
        pending: dict[str, tuple[str, ...]] = {}
        first = self.actions[self.steps[0].name]
        for repo_id in sorted(self.request.file_states.keys() & self.state.repositories.keys()):
            edited = self._refresh_extract(repo_id) if first[repo_id][0] == "run" else ()
            if edited is None or self.request.max_share is None:
                continue
            files = self._refresh_later(repo_id, edited)
            if files is not None or edited or first[repo_id][0] == "refresh":
                changes[repo_id] = edited
                pending[repo_id] = tuple(sorted(files or ()))
        return changes, pending

    def _refresh_extract(self, repo_id: str) -> tuple[SourceChange, ...] | None:
        """Return the paths that extract reads if it is refreshed: its rules and tables are as they were."""
        step, request, row = self.steps[0], self.request, self.state.repositories[repo_id]
        is_refreshable = (
            _has_current_ids(row)
            and step.name in row.plan_fingerprints
            and row.rule_fingerprints.get(step.name) == self.rules[step.name]
            and not self.state.damaged.intersection((*step.outputs, *step.inputs))
        )
        if not is_refreshable:
            return None
        reasons = self.actions[step.name]
        if request.max_share is None:
            if reasons[repo_id][1] != FULL:
                reasons[repo_id] = ("run", f"{reasons[repo_id][1]}, and {FULL}")
            return None
        now = request.file_states[repo_id]
        before = read_file_states(request.lake, repo_id, self.state.pins[FILES])
        changes, paths = source_changes(repo_id, before, now), len(before.keys() | now.keys())
        if len(changes) > request.max_share * paths:
            share = f"{len(changes):,} of {paths:,} paths changed: more than refresh.max_share"
            reasons[repo_id] = ("run", f"{share}{self._and_other(repo_id)}")
            return None
        reasons[repo_id] = ("refresh", f"{_change_summary(changes)}{self._and_other(repo_id)}")
        return changes

    def _and_other(self, repo_id: str) -> str:
        other = self._other_input(self.state.repositories[repo_id])
        return f", and {other} changed" if other else ""

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
            why = f"{', and '.join(summary)}{self._and_other(repo_id)}"
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


def _has_current_ids(row: RunManifest) -> bool:
    return row.id_version == node_ids.ID_VERSION


def _change_summary(changes: Sequence[SourceChange]) -> str:
    counts = Counter(change.how for change in changes)
    summary = ", ".join(f"{count:,} {how}" for how, count in sorted(counts.items()))
    return f"paths: {summary}" if summary else "no path changed"


def _is_empty(root: str, name: str, version: int) -> bool:
    """Return whether a table is known to have no rows."""
    try:
        return not logged_paths(root, name, version)
    except StoreUnavailable:
        raise
    except (StorageFailure, TableMissing):
        return False
