"""Build repositories into a lake: plan, execute the steps, publish.

    request = BuildRequest("lake", settings, parse_repositories(("src",)))
    plan(request, progress).steps[0].runs_for                    # what a build would do
    report = build(request, progress, session)                   # does it, if needed

The run is planned without a JVM; if the lake is up to date, that is all. Else the run acquires the lease of
the lake, plans again if another run has published meanwhile, rolls back tables that an unfinished run wrote,
runs the passes over one group of repositories after the other, and publishes its manifest rows as the last
commit. A failure is recorded, and the completed steps are in the journal of the lease for the next run.

Tests: `tests/spark/test_build.py`, `tests/system/test_failures.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from msgspec import Struct, structs
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.events import Committed
from codeanatomy.delta.lake_tables import LakeTables, normalize_root
from codeanatomy.delta.read.light import newest_version_or_none
from codeanatomy.delta.read.readable import has_readable_log
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.delta.write.commit import CAUSES, system_cause
from codeanatomy.delta.write.restore import (
    OPERATION,
    ROLLBACK_SEQUENCE,
    delete_entries,
    restart_table,
    restore_with_fallback,
)
from codeanatomy.delta.write.small_rows import refuse_unwritable
from codeanatomy.errors import (
    CodeAnatomyError,
    CommitConflict,
    EnvironmentProblem,
    LeaseLost,
    NeedsSpark,
    StepFailed,
    UsageError,
)
from codeanatomy.extract.tools.external_tool import kill_tools
from codeanatomy.lake.engine_facts import EngineFacts, engine_text
from codeanatomy.lake.lease import Lease, LeaseRow, StepDone, acquire, is_stale, read_lease
from codeanatomy.lake.manifest import TABLE as MANIFEST
from codeanatomy.lake.manifest import Status, manifest_version
from codeanatomy.lake.observations import EventLog, record_events
from codeanatomy.lake.recorded_queries import take_records
from codeanatomy.logs import Log
from codeanatomy.pipeline.build_session import BuildSession
from codeanatomy.pipeline.context import Run, counts_of, new_run_id, recorded_counts
from codeanatomy.pipeline.executors.executor import Executor
from codeanatomy.pipeline.executors.local_executor import LocalExecutor
from codeanatomy.pipeline.executors.local_process import Worker
from codeanatomy.pipeline.executors.processes import processes_of
from codeanatomy.pipeline.executors.spark_executor import SparkExecutor
from codeanatomy.pipeline.frontier import Frontier
from codeanatomy.pipeline.group_build import work_groups
from codeanatomy.pipeline.key_collisions import refuse_equal_files
from codeanatomy.pipeline.stages import forecast, run_stages
from codeanatomy.pipeline.tools import scip_command
from codeanatomy.plan.build_request import (
    BuildRequest,
    build_inputs,
    refuse_unshared_sources,
    source_inputs,
)
from codeanatomy.plan.changes import GitBaseline
from codeanatomy.plan.repositories import ListedRepositories, list_repositories
from codeanatomy.plan.run_plan import (
    LakeState,
    Plan,
    PlanRequest,
    Undo,
    lake_state,
    plan_run,
    refuse_features,
    tables_for_lake,
)
from codeanatomy.plan.stored_sources import register_sources
from codeanatomy.progress import Progress
from codeanatomy.run.record import publish, record_artifacts, record_failure
from codeanatomy.run.report import BuildReport, report_run, report_unchanged
from codeanatomy.run.signals import raise_on_sigterm
from codeanatomy.spark.executors import check_scip_python
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of, jvm_has_ended
from codeanatomy.spark.session import refuse_missing_connector, set_pass_settings
from codeanatomy.spark.settings import is_local_master
from codeanatomy.tracing import NO_TRACE, Trace

# After a longer wait for the lease, the source is listed again.
STALE_SECONDS = 10.0
# Poll interval while the steps of a stopped run end.
CANCEL_SECONDS = 0.5
# Name of the trace span of the run.
RUN_SPAN = "run"
SNAPSHOT_UNCHANGED = "the published snapshot is unchanged"
STOPPED_HINT = f"{SNAPSHOT_UNCHANGED}; run the command again, which resumes from here"
RESUME_HINT = f"{SNAPSHOT_UNCHANGED}; fix the cause and run the command again, which resumes from here"
JVM_HINT = (
    f"{SNAPSHOT_UNCHANGED}; run the command again, which goes on after the steps in the journal; if the JVM"
    " ends again, memory may be short: close other programs, or set runtime.cores=1"
)


class Prepared(Struct, frozen=True):
    """A build request with the listings of its sources, and what the planner needs of them."""

    request: BuildRequest
    listed: ListedRepositories
    plan_request: PlanRequest
    # Start of the preparation, by the system clock and by the monotonic clock.
    started: datetime
    began: float

    @property
    def seconds(self) -> float:
        """Seconds since the start of the preparation."""
        return round(time.monotonic() - self.began, 3)


def prepare(request: BuildRequest, progress: Progress) -> Prepared:
    """List the sources of a request; raise an error if nothing can be built."""
    began, started = time.monotonic(), datetime.now(UTC)
    lake, settings = request.lake, request.settings
    # First: nothing of a lake that cannot be written is looked at, which may be far away.
    refuse_features(lake, settings.tables, request.until)
    refuse_unshared_sources(request)
    policy = StorePolicy.from_profile(settings.runtime)
    register_policy(normalize_root(lake, policy.require_local_paths), policy)
    register_sources((each.path for each in request.repositories), settings.runtime)
    refuse_unwritable(lake)
    since = None if request.since is None else GitBaseline(lake, request.since)
    listed = list_repositories(request.repositories, settings.extract, progress, since)
    if not listed.listings:
        errors = "; ".join(f"{name}: {error}" for name, error in listed.failed.items())
        raise UsageError(f"nothing can be built: {errors}", "fix the problem above and run the command again")
    plan_request = PlanRequest(
        lake,
        settings.tables,
        request.until,
        build_inputs(request),
        source_inputs(request, listed.digests, listed.listings),
        listed.failed,
        listed.file_states,
        None if request.full else settings.refresh.max_share,
        request.engine_facts,
        full=request.full,
    )
    return Prepared(request, listed, plan_request, started, began)


def plan(request: BuildRequest, progress: Progress, *, impact: bool = False) -> Plan:
    """Plan a build; if another run holds the lease, as if that run ended without publishing.

    With `impact`, also compute which files a refresh would process and why: the refresh is executed without
    writing.
    """
    prepared = prepare(request, progress)
    row = read_lease(request.lake)
    unfinished = _resumable_lease(row)
    plan, state = _make_plan(prepared, unfinished)
    if impact and plan.changes:
        with Worker() as worker:
            run = _Build(prepared, progress, NoSession(), worker).new_run(plan, state, lambda: None)
            _add_refreshes(run)
            _restore_counts(run)
            run.plan = structs.replace(plan, engine_facts=EngineFacts("local"))
            plan = structs.replace(plan, impact=forecast(run, _executor(run)))
    if row is None or row is unfinished:
        return plan
    return structs.replace(plan, undo=(), held_by=row.holder)


def _executor(run: Run) -> Executor:
    """Return the executor of the plan."""
    if run.plan.engine == "spark":
        # One beside a caller's session is of the build already.
        own = run.spark if run.request.session is not None else run.spark.newSession()
        return SparkExecutor(run, set_pass_settings(own))
    return LocalExecutor(run, run.worker, processes_of(run.settings))


class NoSession:
    """The session of a plan, which is made without Spark."""

    facts = None

    def start(self) -> None:
        """Start nothing."""

    def __call__(self) -> SparkSession:
        raise NeedsSpark("a plan is made without Spark", "run `codeanatomy build` instead")


def build(
    request: BuildRequest,
    progress: Progress,
    session: BuildSession,
    trace: Trace = NO_TRACE,
    started: Worker | None = None,
) -> BuildReport:
    """Build the repositories of a request; `session` is started only if Spark is needed.

    A worker process that the caller has started is stopped at the end.
    """
    progress.update("engine", engine_text(request.engine_facts), last=True)
    with started or Worker() as worker:
        prepared = prepare(request, progress)
        version = manifest_version(request.lake)
        if request.engine_facts.engine == "local":
            # Starting it takes longer than planning, which decides whether it is needed.
            worker.start()
        return _Build(prepared, progress, session, worker, trace).plan_and_run(version)


class _FirstPlan(NamedTuple):
    """A plan made before the lease was acquired, with the manifest version and lease row it is based on."""

    version: int
    unfinished: LeaseRow | None
    plan: Plan
    state: LakeState


@dataclass
class _Build:
    """A build from the listing of its sources to its report."""

    prepared: Prepared
    progress: Progress
    session: BuildSession
    worker: Worker
    trace: Trace = NO_TRACE
    run_id: str = field(default_factory=new_run_id)

    def plan_and_run(self, version: int) -> BuildReport:
        """Plan at a version of the manifest; if there is work, acquire the lease and run."""
        request, listed = self.prepared.request, self.prepared.listed
        unfinished = _resumable_lease(read_lease(request.lake))
        first = _FirstPlan(version, unfinished, *_make_plan(self.prepared, unfinished))
        if first.plan.nothing_to_do:
            return report_unchanged(request, listed, first.plan, first.state, self.prepared.seconds)
        _refuse_missing_connector(request, first.plan)
        if first.plan.engine == "spark":
            # A caller's is checked: nothing is written if it lacks something.
            self.session.start()

        def report_wait(message: str) -> None:
            self.progress.update("lease", message)
            Log(run_id=self.run_id).info(message)

        with raise_on_sigterm():
            before = time.monotonic()
            lease = acquire(
                request.lake,
                self.run_id,
                list(listed.listings),
                wait=request.wait,
                report=report_wait,
                base_run_id=first.state.run_id,
            )
            return self._run_with_lease(first, lease, time.monotonic() - before)

    def _run_with_lease(self, first: _FirstPlan, lease: Lease, waited: float) -> BuildReport:
        """Execute the run while it holds the lease, and release the lease."""
        keep_journal = True
        try:
            # Read first: a publication after this point is a conflict.
            version = manifest_version(self.prepared.request.lake)
            if waited > STALE_SECONDS:
                # The source may have changed during the wait.
                self.prepared = prepare(self.prepared.request, self.progress)
            request, listed = self.prepared.request, self.prepared.listed
            # Writers hold the lease: if no run has had it since the first plan, that plan is still valid.
            is_same = waited <= STALE_SECONDS and (version, lease.before) == (first.version, first.unfinished)
            plan, state = (first.plan, first.state) if is_same else _make_plan(self.prepared, lease.before)
            lease.set_base_run(state.run_id)
            if plan.nothing_to_do:
                return report_unchanged(request, listed, plan, state, self.prepared.seconds)
            _refuse_missing_connector(request, plan)
            # Keep the resumed steps in the journal, for the next run if this one fails.
            for done in _resumed_steps(plan, lease).values():
                lease.record_step(done)
            with self.trace.span("run", {"run_id": self.run_id, "lake": request.lake}) as span:
                engine = engine_text(plan.engine_facts)
                span.note({"repositories": len(listed.listings), "engine": engine})
                run = self.new_run(plan, state, lease.check)
                run.trace, run.spans[RUN_SPAN] = self.trace, span
                if lease.before is not None and lease.before.state == "held":
                    run.dead = lease.before
                _execute(run, lease, version)
            keep_journal = False
            # The run is published: later errors do not make it fail.
            _record_events(run)
            with suppress(CodeAnatomyError):
                # The lease names the published run, so that a lost manifest is detected later.
                lease.set_base_run(self.run_id)
            run.seconds["total"] = self.prepared.seconds
            return report_run(run)
        except CommitConflict:
            # Another run wrote at the same time, so the steps of this run must not be resumed.
            keep_journal = False
            raise
        finally:
            lease.release(keep_journal=keep_journal)

    def new_run(self, plan: Plan, state: LakeState, check_lease: Callable[[], None]) -> Run:
        """Return the context of the steps."""
        prepared, request, observed = self.prepared, self.prepared.request, EventLog()
        tables = tables_for_lake(request, state)
        return Run(
            self.run_id,
            LakeTables(request.lake, tables, observed, request.settings.runtime.require_local_paths),
            self.session,
            request,
            prepared.plan_request.build_inputs,
            prepared.listed,
            plan,
            prepared.plan_request,
            self.progress,
            state,
            dict(plan.pins),
            check_lease,
            started=prepared.started,
            observed=observed,
            worker=self.worker,
            seconds={"list": prepared.listed.seconds},
        )


def _resumable_lease(row: LeaseRow | None) -> LeaseRow | None:
    """Return the lease row of the last run, whose journal may be resumed; None while it is active."""
    return row if row is not None and is_stale(row, datetime.now(UTC)) else None


def _make_plan(prepared: Prepared, unfinished: LeaseRow | None) -> tuple[Plan, LakeState]:
    """Read the state of the lake, check the features of its tables, and plan the run."""
    state = lake_state(prepared.request.lake, prepared.request.settings.tables, full=prepared.request.full)
    tables_for_lake(prepared.request, state)
    plan = plan_run(prepared.plan_request, state, unfinished)
    return plan, state


def _refuse_missing_connector(request: BuildRequest, plan: Plan) -> None:
    """Raise EnvironmentProblem if a session of the build could not open the lake; a plan needs no session."""
    if plan.nothing_to_do or plan.engine == "local" or request.session is not None:
        return
    try:
        refuse_missing_connector(request.settings.runtime, request.lake)
    except EnvironmentProblem as problem:
        hint = f"{problem.hint}; or build with --engine local, which needs none"
        raise EnvironmentProblem(problem.message, hint) from problem


def _execute(run: Run, lease: Lease, manifest: int) -> None:
    """Execute the plan and publish, or record the failure; the manifest must be at version `manifest`."""
    try:
        for lost in run.plan.lost_feeds:
            run.progress.update("feed", lost, last=True)
            Log(run_id=run.run_id).warning(lost)
        if run.plan.engine == "spark" and any(step.busy for step in run.plan.steps):
            # Open the session before the steps need it, and check that it can open the lake.
            facts = run.session.facts
            if facts is not None:
                run.parallelism = facts.parallelism
                run.plan = structs.replace(run.plan, engine_facts=facts.engine)
            else:
                # Opening its tables compares its storage options with the settings.
                spark = run.spark_store.spark
                if run.request.scip.auto and not is_local_master(str(spark.sparkContext.master)):
                    check_scip_python(spark, scip_command())
            Log(run_id=run.run_id).debug(f"Spark {run.spark.version} session opened")
        with run.timed("undo"):
            _roll_back(run)
        _restore_progress(run, lease)
        refuse_equal_files(run)
        run_steps(run, lease)
        lease.check()
        with run.timed("record"):
            record_artifacts(run)
        with run.timed("publish"):
            # A damaged manifest has begun anew meanwhile.
            publish(run, run.initial_versions.get(MANIFEST, manifest))
    except BaseException as problem:
        status: Status = "failed"
        error = _message(run, problem)
        if isinstance(problem, KeyboardInterrupt):
            waiting = [step.name for step in run.plan.steps if step.busy and step.name not in run.finished]
            place = f"step {waiting[0]}" if waiting else "publication"
            error, status = f"stopped by the user in {place}", "cancelled"
            run.progress.update("stopped", f"run {run.run_id} in {place}: {STOPPED_HINT}", last=True)
        Log(run_id=run.run_id).error(error)
        # Without the lease this run may not write to the manifest.
        if not isinstance(problem, LeaseLost):
            # What caused the failure may prevent recording it, too.
            with suppress(CodeAnatomyError, OSError):
                record_failure(run, error, status)
            with suppress(CodeAnatomyError, OSError, Py4JError):
                record_artifacts(run)
            _record_events(run)
        if isinstance(problem, ENGINE_ERRORS):
            # Outside of the steps, such as in a rollback.
            raise _engine_failure(f"run {run.run_id} failed: ", problem) from problem
        raise


def _record_events(run: Run) -> None:
    """Record the events of the run in the observe tables; an error is only logged."""
    try:
        with run.timed("observe"):
            taken = take_records(run.store.root)
            for query in taken.queries:
                run.observed.add(query)
            record_events(run.store, run.run_id, run.observed, run.settings.runtime, taken.questions)
    # Any error: the run is already published or failed, and a log line is all that can be done.
    except Exception as problem:  # noqa: BLE001
        Log(run_id=run.run_id).warning(f"the events of the run are not recorded: {_message(run, problem)}")


def _roll_back(run: Run) -> None:
    """Roll back the tables that an unfinished run wrote to.

    Its JVM may live a moment longer than its driver, so `run.initial_versions` has the versions at the time
    of the plan: later commits that are not from this run must not be published.
    """
    run.initial_versions.update(run.base.newest)
    for number, undo in enumerate(run.plan.undo, start=1):
        commit, began = Commit(run.run_id, ROLLBACK_SEQUENCE), time.monotonic()
        version = _restore(run, undo, commit)
        run.observed(
            Committed(
                table=undo.table_name,
                operation=OPERATION,
                version=version,
                committed=version > run.initial_versions.get(undo.table_name, -1),
                run_id=run.run_id,
                sequence=ROLLBACK_SEQUENCE,
                metadata=encode_stamp(commit, OPERATION),
                seconds=time.monotonic() - began,
            )
        )
        run.initial_versions[undo.table_name] = version
        if undo.to_version is not None:
            run.pins[undo.table_name] = version
        last = number == len(run.plan.undo)
        run.progress.update("undo", f"{number}/{len(run.plan.undo)} tables rolled back", last=last)


def _restore(run: Run, undo: Undo, commit: Commit) -> int:
    """Roll back a table, also one whose log cannot be read, and return its new version."""
    root, name = run.store.root, undo.table_name
    if (newest_version_or_none(root, name) or 0) < undo.from_version or not has_readable_log(root, name):
        if undo.to_version is None:
            return restart_table(run.store, name, commit, undo.from_version)
        delete_entries(root, name, after=undo.to_version)
    return restore_with_fallback(root, name, undo.to_version, commit, lambda: run.spark_store)


def _add_refreshes(run: Run) -> None:
    """Add the repositories that are refreshed."""
    for repo_id, changes in run.plan.changes.items():
        run.frontiers[repo_id] = Frontier.of(repo_id, changes)


def _restore_counts(run: Run) -> None:
    """Take over the row counts of the published run."""
    for repo_id in run.listed.listings:
        before = run.base.repositories.get(repo_id)
        run.counts[repo_id] = Counter(recorded_counts(before) if before is not None else {})


def _restore_progress(run: Run, lease: Lease) -> None:
    """Take over the row counts of the published run and the completed steps of an unfinished run."""
    _add_refreshes(run)
    _restore_counts(run)
    run.resumed = _resumed_steps(run.plan, lease)
    for step in run.plan.steps:
        for planned in step.repositories:
            if planned.action in ("run", "resume"):
                for name in counts_of(run.counts[planned.repo_id], step.outputs):
                    del run.counts[planned.repo_id][name]
    for each in run.resumed.values():
        run.count(each.rows)
        run.recount |= {name for name in each.pins if any(name not in rows for rows in each.rows.values())}
        lease.record_step(structs.replace(each, pins={name: run.pins[name] for name in each.pins}))


def _resumed_steps(plan: Plan, lease: Lease) -> dict[str, StepDone]:
    """Return the journal entries of the steps that are resumed, by step."""
    done = () if lease.before is None else lease.before.done
    resumed = {step.name for step in plan.steps for each in step.repositories if each.action == "resume"}
    return {each.step_name: each for each in done if each.step_name in resumed}


def run_steps(run: Run, lease: Lease) -> None:
    """Run the passes of the build in another thread, so that this one can stop them."""
    executor = _executor(run)

    def work() -> None:
        groups = work_groups(run)
        for number, group in enumerate(groups, start=1):
            run.check()
            repositories = {repo_id for later in groups[number:] for repo_id in later.repositories}
            run_stages(run, executor, group, partial(_run_step, run, lease, repositories))

    pool = ThreadPoolExecutor(1)
    passes = pool.submit(work)
    try:
        passes.result()
    except BaseException:
        _stop_passes(run, executor, passes)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _stop_passes(run: Run, executor: Executor, passes: Future[None]) -> None:
    """Cancel jobs and tools until the passes have ended."""
    run.stopping.set()
    executor.cancel()
    kill_tools()
    while not passes.done():
        wait([passes], timeout=CANCEL_SECONDS)
        # Also what was started meanwhile.
        executor.cancel()
        kill_tools()


@contextmanager
def _run_step(
    run: Run, lease: Lease, later: AbstractSet[str], name: str, *, is_last: bool = True
) -> Iterator[None]:
    """Run a step, or a part of it; the last part enters it in the journal, if no repository comes later."""
    run.check()
    step = run.plan.step(name)
    attributes: dict[str, str | int] = {"step": name, "repositories": len(step.busy)}
    log = Log(run_id=run.run_id, step=name)
    if name not in run.begun:
        log.info("step begins", extra=attributes)
        run.begun.append(name)
    with (
        _name_step_in_errors(name),
        run.trace.span(f"step {name}", attributes, parent=run.spans[RUN_SPAN]) as span,
        run.timed(f"{name}_step"),
    ):
        run.spans[name] = span
        try:
            yield
        except Exception as problem:
            run.errors[name] = _message(run, problem)
            raise
        span.note({"rows": sum(run.committed[each].rows for each in run.written(name))})
        is_done = is_last and not later & {*step.busy}
        if is_done:
            run.finished.add(name)
            # A refresh is never resumed: to start again takes no longer than to find its progress.
            if not step.refreshes:
                lease.record_step(run.step_done(name))
        lease.check()
    if is_done:
        log.info("step done", extra={"seconds": run.seconds[f"{name}_step"]})


@contextmanager
def _name_step_in_errors(step: str) -> Iterator[None]:
    """Add the step to the message of an error, unless it is of a step that this one waited for."""
    prefix = f"step {step} failed: "
    try:
        yield
    except CodeAnatomyError as problem:
        if not problem.message.startswith("step "):
            problem.message = prefix + problem.message
        raise
    except (*ENGINE_ERRORS, OSError) as problem:
        raise _engine_failure(prefix, problem) from problem
    except Exception as problem:
        if jvm_has_ended(problem):
            # Such as an EOFError of PySpark, which reads from it.
            raise _engine_failure(prefix, problem) from problem
        if not hasattr(problem, "__notes__"):
            problem.add_note(f"in step {step}")
        raise


def _engine_failure(prefix: str, problem: Exception) -> StepFailed:
    """Return the error of a step for an error of Spark, its JVM or the system."""
    why = cause_of(problem)
    cause = None if jvm_has_ended(problem) else system_cause(why)
    if cause is not None:
        return StepFailed(prefix + why, f"{SNAPSHOT_UNCHANGED}; {CAUSES[cause]}")
    return StepFailed(prefix + why, JVM_HINT if jvm_has_ended(problem) else RESUME_HINT)


def _message(run: Run, problem: BaseException) -> str:
    """Return the error message to record, without credentials."""
    message = (
        problem.message
        if isinstance(problem, CodeAnatomyError)
        else "; ".join((f"{type(problem).__name__}: {problem}", *getattr(problem, "__notes__", ())))
    )
    return str(run.redacted(message))
