"""A build: repositories into the tables of a lake, step by step, in one run.

    order = Order("lake", settings, named_sources(("src",)))
    plan(order, progress).steps[0].runs_for                    # what it would do
    report = build(order, progress, open_session)              # does it, if there is anything to do

The run is planned without a JVM; where the lake is already what was asked for, that was all. Else it takes
the lease of the lake, plans again if another run has written meanwhile, undoes what a dead run left,
runs each step as soon as those it reads are done, and publishes its manifest as the last commit. Whatever
stops it is recorded, and what it has finished is kept in the journal of the lease for the next run.

Tests: `tests/spark/test_build.py`, `tests/system/test_failures.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from msgspec import Struct, structs
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.events import Committed
from codeanatomy.delta.store import LakeTables, normalize_root
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.delta.write.restore import OPERATION, restore_with_fallback
from codeanatomy.delta.write.small import refuse_unwritable
from codeanatomy.errors import CodeAnatomyError, CommitConflict, LeaseLost, NeedsSpark, StepFailed
from codeanatomy.extract.tools.external_tool import end_tools
from codeanatomy.lake.lease import Lease, LeaseRow, StepDone, acquire, is_stale, read_lease
from codeanatomy.lake.manifest import Status, manifest_version
from codeanatomy.lake.observations import EventLog, record_events, scan_event
from codeanatomy.lake.recorded_queries import take_queries
from codeanatomy.logs import Log
from codeanatomy.pipeline.caching import release
from codeanatomy.pipeline.context import Run, counts_of, new_run_id, recorded_counts
from codeanatomy.pipeline.extract_step import extract_stage
from codeanatomy.pipeline.graph_step import graph_stage
from codeanatomy.pipeline.normalize_step import normalize_stage
from codeanatomy.pipeline.refresh.extract import refresh_extract
from codeanatomy.pipeline.refresh.file_tables import Inputs
from codeanatomy.pipeline.refresh.forecast import foreseen
from codeanatomy.pipeline.refresh.graph import refresh_graph
from codeanatomy.pipeline.refresh.normalize import refresh_normalize
from codeanatomy.pipeline.refresh.refresh_state import Refresh
from codeanatomy.pipeline.refresh.relate import refresh_relate
from codeanatomy.pipeline.refresh.worker import Worker
from codeanatomy.pipeline.relate_step import relate_stage
from codeanatomy.plan.build_request import Order, asked_of, made_from
from codeanatomy.plan.git_changes import Since
from codeanatomy.plan.repositories import Listed, list_repositories, refuse_nothing
from codeanatomy.plan.run_plan import Plan, PlannedStep, Request, State, lake_state, plan_run
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE, Asked, steps_of
from codeanatomy.progress import Progress
from codeanatomy.relate.repository import PROGRAMS
from codeanatomy.run.lineage import with_lineage
from codeanatomy.run.record import artifact_id, publish, record_artifacts, record_failure
from codeanatomy.run.report import BuildReport, report, unchanged
from codeanatomy.run.signals import stoppable
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of
from codeanatomy.spark.metrics import tagged
from codeanatomy.tracing import NO_TRACE, Trace

WORK: dict[str, Callable[[Run], None]] = {
    EXTRACT: extract_stage,
    NORMALIZE: normalize_stage,
    RELATE: relate_stage,
    GRAPH: graph_stage,
}
REFRESH: dict[str, Callable[[Run], None]] = {
    EXTRACT: refresh_extract,
    NORMALIZE: refresh_normalize,
    RELATE: refresh_relate,
    GRAPH: refresh_graph,
}
# Steps at the same time.
CONCURRENT_STEPS = 4
# So long a wait, and the source is looked at again.
STALE_SECONDS = 10.0
# Between two looks at whether the steps of a run that was stopped have ended.
CANCEL_SECONDS = 0.5
# Sequence of the commits that bring a table back, before those of the steps.
UNDO = -1
# Name of the span of the whole run.
WHOLE = "run"
KEPT = "what was published is untouched; repeat the command when the cause is gone, and it goes on from here"


class Prepared(Struct, frozen=True):
    """An order with what was found in its sources."""

    order: Order
    listed: Listed
    asked: Asked
    # By repository, what its rows are extracted from.
    made_from: dict[str, dict[str, str]]
    # When that began, by the calendar and by a clock that never jumps.
    started: datetime
    began: float

    @property
    def seconds(self) -> float:
        """How long ago that was."""
        return round(time.monotonic() - self.began, 3)

    @property
    def request(self) -> Request:
        """What is to be planned."""
        order = self.order
        tables = order.settings.tables
        return Request(
            order.lake,
            tables,
            order.until,
            self.asked,
            self.made_from,
            self.listed.failed,
            self.listed.lines,
            None if order.full else order.settings.refresh.max_share,
        )


def prepare(order: Order, progress: Progress) -> Prepared:
    """Look at what the order names; refuses what cannot be built."""
    began, started = time.monotonic(), datetime.now(UTC)
    steps_of(order.settings.tables, order.until)
    policy = StorePolicy.from_profile(order.settings.runtime)
    register_policy(normalize_root(order.lake, policy.require_local_paths), policy)
    refuse_unwritable(order.lake)
    since = None if order.since is None else Since(order.lake, order.since)
    listed = list_repositories(order.repositories, order.settings.extract, progress, since)
    refuse_nothing(listed)
    return Prepared(order, listed, asked_of(order), made_from(order, listed.digests), started, began)


def plan(order: Order, progress: Progress, *, impact: bool = False) -> Plan:
    """What a build would do now, or when the run that is writing has ended without publishing.

    With `impact`, also which files a refresh would redo and why: it is done, and nothing of it is written.
    """
    prepared = prepare(order, progress)
    row = read_lease(order.lake)
    left = _left_by(row)
    found, state = _planned(prepared, left)
    if impact and found.changes:
        with Worker() as worker:
            run = _new_run(prepared, progress, _no_session, lambda: None, found, state, new_run_id(), worker)
            _add_refreshes(run)
            found = structs.replace(found, impact=foreseen(run))
    if row is None or row is left:
        return found
    return structs.replace(found, undo=(), held_by=row.holder)


def _no_session() -> SparkSession:
    raise NeedsSpark("a plan is made without Spark", "build instead")


def build(
    order: Order, progress: Progress, session: Callable[[], SparkSession], trace: Trace = NO_TRACE
) -> BuildReport:
    """Build the repositories of an order; a session is asked for if there is work for it."""
    prepared = prepare(order, progress)
    with Worker() as worker:
        version = manifest_version(order.lake)
        if not order.full and version >= 0:
            # To be there takes it longer than to find out here whether it is needed.
            worker.start()
        return _built(prepared, version, progress, session, trace, worker)


def _built(
    prepared: Prepared,
    version: int,
    progress: Progress,
    session: Callable[[], SparkSession],
    trace: Trace,
    worker: Worker,
) -> BuildReport:
    """As planned at a version of the manifest, or again with the lease in hand."""
    order = prepared.order
    left = _left_by(read_lease(order.lake))
    first = _Planned(version, left, *_planned(prepared, left))
    if not first.plan.changes:
        worker.stop()
    if first.plan.nothing_to_do:
        return unchanged(order, prepared.listed, first.plan, first.state, prepared.seconds)
    run_id = new_run_id()

    def tell(said: str) -> None:
        progress.update("lease", said)
        Log(run_id=run_id).info(said)

    with stoppable():
        asked = time.monotonic()
        lease = acquire(
            order.lake,
            run_id,
            list(prepared.listed.listings),
            wait=order.wait,
            report=tell,
            base_run_id=first.state.run_id,
        )
        waited = time.monotonic() - asked
        return _leased(prepared, first, progress, session, lease, trace, run_id, waited, worker)


class _Planned(NamedTuple):
    """A plan, and when it was made: at which version of the manifest, and what a dead run had left."""

    version: int
    left: LeaseRow | None
    plan: Plan
    state: State


def _left_by(row: LeaseRow | None) -> LeaseRow | None:
    """What a dead run has left; one that is writing still has left nothing to go on with."""
    return row if row is not None and is_stale(row, datetime.now(UTC)) else None


def _planned(prepared: Prepared, left: LeaseRow | None) -> tuple[Plan, State]:
    """The plan, and what it is made from."""
    state = lake_state(prepared.order.lake, prepared.order.settings.tables)
    return plan_run(prepared.request, state, left), state


def _leased(
    prepared: Prepared,
    first: _Planned,
    progress: Progress,
    session: Callable[[], SparkSession],
    lease: Lease,
    trace: Trace,
    run_id: str,
    waited: float,
    worker: Worker,
) -> BuildReport:
    """The run, from the moment that nobody else may write."""
    keep_journal = True
    try:
        # First of all: what is published from here on is not what this run builds on.
        version = manifest_version(prepared.order.lake)
        if waited > STALE_SECONDS:
            # The source may have changed while another run was writing.
            prepared = prepare(prepared.order, progress)
        # Who writes has the lease: if nobody has had it since, there is nothing new to plan for.
        is_same = waited <= STALE_SECONDS and (version, lease.before) == (first.version, first.left)
        found, state = (first.plan, first.state) if is_same else _planned(prepared, lease.before)
        lease.set_base_run(state.run_id)
        if found.nothing_to_do:
            return unchanged(prepared.order, prepared.listed, found, state, prepared.seconds)
        # This run may end before it goes on from there: then the next one can.
        for done in _to_resume(found, lease).values():
            lease.record_step(done)
        with trace.span("run", {"run_id": run_id, "lake": prepared.order.lake}) as whole:
            whole.note({"repositories": len(prepared.listed.listings)})
            run = _new_run(prepared, progress, session, lease.check, found, state, run_id, worker)
            run.trace, run.spans[WHOLE] = trace, whole
            _carry_out(run, lease, version)
        keep_journal = False
        # It is published: what goes wrong from here on is no failure of it.
        _observe(run)
        with suppress(CodeAnatomyError):
            # From now on a lake without a manifest is one that has lost it.
            lease.set_base_run(run_id)
        with suppress(*ENGINE_ERRORS, OSError):
            for step in run.plan.steps:
                if step.runs_for:
                    release(run, step.name)
        run.seconds["total"] = prepared.seconds
        return report(run)
    except CommitConflict:
        # Somebody else has written meanwhile: nobody shall go on from what this run has made of it.
        keep_journal = False
        raise
    finally:
        lease.release(keep_journal=keep_journal)


def _new_run(
    prepared: Prepared,
    progress: Progress,
    session: Callable[[], SparkSession],
    check: Callable[[], None],
    found: Plan,
    state: State,
    run_id: str,
    worker: Worker,
) -> Run:
    order = prepared.order
    settings = order.settings
    observed = EventLog()
    run = Run(
        run_id,
        LakeTables(
            order.lake,
            with_lineage(order.lake, settings.tables),
            observed,
            settings.runtime.require_local_paths,
        ),
        session,
        order,
        prepared.asked,
        prepared.listed,
        found,
        prepared.request,
        progress,
        state,
        dict(found.pins),
        check,
        started=prepared.started,
        observed=observed,
        worker=worker,
    )
    run.seconds["list"] = prepared.listed.seconds
    return run


def _carry_out(run: Run, lease: Lease, manifest: int) -> None:
    """Do what is planned and publish it, or record why not; `manifest` is the version it must be at."""
    try:
        if any(step.runs_for for step in run.plan.steps):
            # Before any step asks for it.
            Log(run_id=run.run_id).debug(f"session of Spark {run.spark.version}")
        with run.timed("undo"):
            _undo(run)
        _go_on(run, lease)
        run_steps(run, lease)
        lease.check()
        with run.timed("record"):
            record_artifacts(run)
        with run.timed("publish"):
            publish(run, manifest)
    except BaseException as problem:
        stopped = isinstance(problem, KeyboardInterrupt)
        error = f"stopped by the user in {_under_way(run)}" if stopped else _message(run, problem)
        if stopped:
            run.progress.update("stopped", f"run {run.run_id} in {_under_way(run)}: {KEPT}", last=True)
        Log(run_id=run.run_id).error(error)
        # Who has lost the lease may not write: the manifest is somebody else's now.
        if not isinstance(problem, LeaseLost):
            _tell_end(run, error, "cancelled" if stopped else "failed")
        raise


def _under_way(run: Run) -> str:
    left = [step.name for step in run.plan.steps if step.is_busy and not _succeeded(run.steps.get(step.name))]
    return f"step {left[0]}" if left else "publication"


def _succeeded(step: Future[None] | None) -> bool:
    return step is not None and step.done() and not step.cancelled() and step.exception() is None


def _tell_end(run: Run, error: str, status: Status) -> None:
    """Record how a run has ended; that may be impossible for the same reason for which it did."""
    with suppress(CodeAnatomyError, OSError):
        record_failure(run, error, status)
    with suppress(CodeAnatomyError, OSError, Py4JError):
        record_artifacts(run)
    _observe(run)


def _observe(run: Run) -> None:
    """Record what the run has done to its tables; it has done it, whether that succeeds or not."""
    try:
        with run.timed("observe"):
            for asked in take_queries(run.store.root):
                run.observed.add(scan_event(asked), asked.purpose, asked.at)
            record_events(run.store, run.run_id, run.observed, run.settings.runtime)
    # Whatever it is: there is nobody who could do anything about it but by reading this.
    except Exception as problem:  # noqa: BLE001
        Log(run_id=run.run_id).warning(
            f"what the run did to its tables is not recorded: {_message(run, problem)}"
        )


def _undo(run: Run) -> None:
    """Bring back the tables that a dead run has written to.

    Its JVM may live for moments longer than its driver, so what counts is what was there when this run was
    planned: what comes later and is not our own must not be published.
    """
    run.floor.update(run.base.newest)
    for number, undo in enumerate(run.plan.undo, start=1):
        commit, began = Commit(run.run_id, UNDO), time.monotonic()
        version = restore_with_fallback(
            run.store.root, undo.table_name, undo.to_version, commit, lambda: run.spark_store
        )
        run.observed(
            Committed(
                table=undo.table_name,
                operation=OPERATION,
                version=version,
                committed=version > run.floor.get(undo.table_name, -1),
                run_id=run.run_id,
                sequence=UNDO,
                metadata=encode_stamp(commit, OPERATION),
                seconds=time.monotonic() - began,
            )
        )
        run.floor[undo.table_name] = version
        if undo.to_version is not None:
            run.pins[undo.table_name] = version
        last = number == len(run.plan.undo)
        run.progress.update("undo", f"{number}/{len(run.plan.undo)} tables of a dead run", last=last)


def _add_refreshes(run: Run) -> None:
    """The repositories that are refreshed, as they are published."""
    for number, (repo_id, changes) in enumerate(run.plan.changes.items()):
        inputs = Inputs(run.store.root, run.pins, run.observed)
        run.refreshes[repo_id] = Refresh(repo_id, number, changes, inputs)
        if repo_id in run.refreshed_in(RELATE):
            inputs.read_ahead(PROGRAMS, repo_id)


def _go_on(run: Run, lease: Lease) -> None:
    """Take over what was counted before, and what a dead run has done."""
    _add_refreshes(run)
    for repo_id in run.listed.listings:
        before = run.base.repositories.get(repo_id)
        run.counts[repo_id] = Counter(recorded_counts(before) if before is not None else {})
    run.resumed = _to_resume(run.plan, lease)
    for step in run.plan.steps:
        for planned in step.repositories:
            if planned.action in ("run", "resume"):
                for name in counts_of(run.counts[planned.repo_id], (*step.outputs, *step.adds_to)):
                    del run.counts[planned.repo_id][name]
    for each in run.resumed.values():
        run.count(each.rows)
        run.recount |= {name for name in each.pins if any(name not in rows for rows in each.rows.values())}
        lease.record_step(structs.replace(each, pins={name: run.pins[name] for name in each.pins}))


def _to_resume(found: Plan, lease: Lease) -> dict[str, StepDone]:
    """What a dead run has done and this one need not do, by step."""
    done = () if lease.before is None else lease.before.done
    resumed = {step.name for step in found.steps for each in step.repositories if each.action == "resume"}
    return {each.step_name: each for each in done if each.step_name in resumed}


def run_steps(run: Run, lease: Lease) -> None:
    """Run the steps that have work, each as soon as those it reads are done.

    Two that do not read each other run side by side: relate takes one core for most of its time, so normalize
    has the others. Each has a pool of its own in Spark's fair scheduler.
    """
    busy = [step for step in run.plan.steps if step.is_busy]
    pool = ThreadPoolExecutor(CONCURRENT_STEPS)
    try:
        # Relate, which takes longest, goes first among those that are ready.
        for step in sorted(busy, key=lambda each: (len(_before(run, each)), each.name != RELATE)):
            before = [run.steps[name] for name in _before(run, step) if name in run.steps]
            work = partial(_step, run, lease, step, before)
            # A refresh asks nothing of Spark.
            inherited = inheritable_thread_target(run.spark)(work) if step.runs_for else work
            run.steps[step.name] = pool.submit(inherited)
        wait(run.steps.values(), return_when=FIRST_EXCEPTION)
        for step in busy:
            if run.steps[step.name].done():
                run.steps[step.name].result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _stop_steps(run)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _stop_steps(run: Run) -> None:
    """Cancel the jobs of the steps under way until no step starts another."""
    run.stopping.set()
    run.worker.stop()
    end_tools()
    while not all(step.done() for step in run.steps.values()):
        wait(run.steps.values(), timeout=CANCEL_SECONDS)
        # Without a JVM there is nothing to cancel.
        with suppress(*ENGINE_ERRORS, OSError):
            for name in run.steps if run.is_open else ():
                run.spark.sparkContext.cancelJobsWithTag(artifact_id(run, name))
        end_tools()


def _before(run: Run, step: PlannedStep) -> tuple[str, ...]:
    """The steps whose tables a step reads, directly or through others."""
    found = [name for first in step.after for name in (*_before(run, run.plan.step(first)), first)]
    return tuple(dict.fromkeys(found))


def _step(run: Run, lease: Lease, step: PlannedStep, before: Sequence[Future[None]]) -> None:
    for each in before:
        each.result()
    run.check()
    name = step.name
    told: dict[str, str | int] = {"step": name, "repositories": len(step.runs_for) + len(step.refreshes)}
    Log(run_id=run.run_id, step=name).info("step begins", extra=told)
    with (
        _named(name),
        run.trace.span(f"step {name}", told, parent=run.spans[WHOLE]) as span,
        run.timed(f"{name}_step"),
        tagged(run.spark, artifact_id(run, name)) if step.runs_for else nullcontext(),
    ):
        run.spans[name] = span
        try:
            if step.runs_for:
                WORK[name](run)
            if step.refreshes:
                REFRESH[name](run)
        except Exception as problem:
            run.errors[name] = _message(run, problem)
            raise
        span.note({"rows": sum(run.committed[each].rows for each in run.written(name))})
        # A refresh that died is begun anew: that takes no longer than to find out how far it was.
        if not step.refreshes:
            lease.record_step(run.step_done(name))
        lease.check()
    Log(run_id=run.run_id, step=name).info("step done", extra={"seconds": run.seconds[f"{name}_step"]})


@contextmanager
def _named(step: str) -> Iterator[None]:
    """Whatever goes wrong names the step; a failure of another step that this one waited for has its name."""
    named = f"step {step} failed: "
    try:
        yield
    except CodeAnatomyError as problem:
        if not problem.message.startswith("step "):
            problem.message = named + problem.message
        raise
    except (*ENGINE_ERRORS, OSError) as problem:
        raise StepFailed(named + cause_of(problem), KEPT) from problem
    except Exception as problem:
        if not hasattr(problem, "__notes__"):
            problem.add_note(f"in step {step}")
        raise


def _message(run: Run, problem: BaseException) -> str:
    """What is recorded of a problem."""
    said = (
        problem.message
        if isinstance(problem, CodeAnatomyError)
        else "; ".join((f"{type(problem).__name__}: {problem}", *getattr(problem, "__notes__", ())))
    )
    return str(run.redacted(said))
