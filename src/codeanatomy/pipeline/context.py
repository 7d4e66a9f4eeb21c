"""Hold the state of a run: its inputs, plan, pins and results so far. Steps read it and add to it.

Tests: `tests/spark/test_build.py`.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from threading import Event, Lock
from typing import Any

from msgspec import Struct, structs
from pyspark.sql import SparkSession

from codeanatomy.config import Settings
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Committed
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.store import Store
from codeanatomy.delta.store_policy import StorePolicy, is_local
from codeanatomy.errors import StepFailed
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.lease import LeaseRow, StepDone
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.observations import EventLog, redactor
from codeanatomy.logs import Log
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.build_session import BuildSession
from codeanatomy.pipeline.executors.local_process import Worker
from codeanatomy.pipeline.executors.processes import processes_of
from codeanatomy.pipeline.frontier import Frontier
from codeanatomy.pipeline.tasks.chunks import chunk_count
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.plan.repositories import ListedRepositories
from codeanatomy.plan.run_plan import LakeState, Plan, PlanRequest, with_fingerprints
from codeanatomy.plan.steps import BuildInputs, fingerprint, rule_fingerprints, steps_of
from codeanatomy.progress import Progress
from codeanatomy.relate.own_imports import OwnImports
from codeanatomy.spark.metrics import OperatorMetric
from codeanatomy.spark.plans import PlanTexts
from codeanatomy.spark.session import default_parallelism
from codeanatomy.spark.settings import is_local_master
from codeanatomy.tracing import Span, Trace


def new_run_id() -> str:
    """Make a run id that sorts by time, to the second; it is never part of the data of a graph."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


class FrameRecord(Struct, frozen=True):
    """A frame that Spark has computed for a step."""

    step: str
    # What it computes: "files", "stored files", "solve", "graph rows", "shared rows", "tables", ...
    name: str
    # None if the session does not show plans.
    plans: PlanTexts | None
    operators: tuple[OperatorMetric, ...]
    seconds: float

    @property
    def plan_hash(self) -> str | None:
        """Hash of the normalised physical plan: two frames with the same hash did the same work.

        The other texts are left out, because a name or a rewriting that leads to the same scans, exchanges
        and operators is no difference; and whatever changes the work shows in the physical plan.
        """
        return None if self.plans is None else fingerprint(self.plans.physical)


@dataclass
class Run:
    """The context of every step of a run."""

    run_id: str
    store: LakeTables
    # Opens the session on first use.
    session: BuildSession
    request: BuildRequest
    build_inputs: BuildInputs
    listed: ListedRepositories
    plan: Plan
    plan_request: PlanRequest
    progress: Progress
    # What was published when it began.
    base: LakeState
    # Versions of the tables as the run sees them: those it began with, then those it has made.
    pins: dict[str, int]
    # Raises if another run has taken over the lake.
    check_lease: Callable[[], None]
    # Newest version of each table when the run was planned or has rolled back; later ones must be its own.
    initial_versions: dict[str, int] = field(default_factory=dict)
    # Steps that a dead run has done, and the lease that it left.
    resumed: dict[str, StepDone] = field(default_factory=dict)
    dead: LeaseRow | None = None
    trace: Trace = field(default_factory=Trace)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    # By repository: rows by table, failures by extractor.
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    counting: Lock = field(default_factory=Lock)
    opening: Lock = field(default_factory=Lock)
    # Set to stop the steps that are running.
    stopping: Event = field(default_factory=Event)
    committed: dict[str, Committed] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    # By repository that was solved.
    imports: dict[str, OwnImports] = field(default_factory=dict)
    # Frames that Spark has computed, in their order.
    frames: list[FrameRecord] = field(default_factory=list)
    # By step and name of an extractor or a rule: microseconds of all processes.
    costs: Counter[tuple[str, str]] = field(default_factory=Counter)
    # What stopped a step.
    errors: dict[str, str] = field(default_factory=dict)
    # Events of its reads and commits.
    observed: EventLog = field(default_factory=EventLog)
    spans: dict[str, Span] = field(default_factory=dict)
    # Tables taken over from a dead run, whose rows are not counted by repository yet.
    recount: set[str] = field(default_factory=set)
    # Steps that have started, in their order, and those that are done.
    begun: list[str] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    # By repository that is refreshed.
    frontiers: dict[str, Frontier] = field(default_factory=dict)
    # The process in which the local engine computes.
    worker: Worker = field(default_factory=Worker)
    # Tasks that a caller's session runs at a time.
    parallelism: int | None = None

    @property
    def settings(self) -> Settings:
        """The settings of the build request."""
        return self.request.settings

    @property
    def spark(self) -> SparkSession:
        """The session, opened on first use."""
        with self.opening:
            return self._opened

    @cached_property
    def _opened(self) -> SparkSession:
        with self.timed("session"):
            return self.session()

    @property
    def is_open(self) -> bool:
        """Whether the session is open."""
        return "_opened" in self.__dict__

    @property
    def spark_store(self) -> Store:
        """The tables, for operations that need Spark."""
        settings = structs.replace(self.settings, tables=self.store.tables)
        return Store.from_settings(settings, self.spark, self.store.root, self.observed)

    @property
    def store_policy(self) -> StorePolicy | None:
        """Access to the object store of the lake; None for a local lake."""
        return None if is_local(self.store.root) else StorePolicy.from_profile(self.settings.runtime)

    @cached_property
    def redacted(self) -> Callable[[Any], Any]:
        """Masks the values of storage options in everything that is recorded."""
        return redactor(self.settings.runtime)

    @cached_property
    def rules(self) -> dict[str, str]:
        """Fingerprint of the rules of each step, independent of the source."""
        request = self.plan_request
        return rule_fingerprints(
            steps_of(request.tables, request.until), request.build_inputs, request.tables
        )

    def chunk_count(self, repo_id: str) -> int:
        """Return the number of chunks that the files of a repository are divided into."""
        return chunk_count(len(self.listed.listings[repo_id].entries), self.repository_bytes[repo_id])

    def paths_of(self, repo_id: str, files: Collection[str]) -> list[str]:
        """Return the paths of some files of a repository, given their ids, in the order of its listing."""
        entries = self.listed.listings[repo_id].entries if files else ()
        return [entry.path for entry in entries if file_id(repo_id, entry.path) in files]

    def bytes_of(self, repo_id: str, files: Collection[str]) -> int:
        """Return the bytes of the sources of some files of a repository."""
        entries = self.listed.listings[repo_id].entries if files else ()
        return sum(entry.size_bytes or 0 for entry in entries if file_id(repo_id, entry.path) in files)

    def files_of(self, step: str) -> int:
        """Return the number of files that are read of the repositories that a step works on."""
        listings = [self.listed.listings[repo_id] for repo_id in self.plan.step(step).busy]
        return sum(entry.skipped_reason is None for listing in listings for entry in listing.entries)

    @cached_property
    def repository_bytes(self) -> dict[str, int]:
        """Bytes of the sources by repository."""
        return {
            repo_id: sum(entry.size_bytes or 0 for entry in listing.entries if entry.skipped_reason is None)
            for repo_id, listing in self.listed.listings.items()
        }

    @property
    def cores(self) -> int:
        """The number of cores that tasks are divided for."""
        if self.plan.engine == "local":
            return processes_of(self.settings)
        return self.parallelism or default_parallelism(self.spark)

    @property
    def cores_of_task(self) -> int:
        """The number of cores that a task may use while it is the only one of its repository."""
        # Of a caller's session, the master is its own; without one it may be a cluster.
        if self.plan.engine == "local" or is_local_master(self.plan.engine_facts.master or ""):
            return self.cores
        return int(self.spark.conf.get("spark.executor.cores", "1") or 1)

    def check(self) -> None:
        """Raise if the run may not go on: it was stopped, or another has taken over the lake."""
        if self.stopping.is_set():
            raise StepFailed("the run was stopped", "run the command again")
        self.check_lease()

    def refreshed_in(self, step: str) -> tuple[str, ...]:
        """The repositories that a step refreshes, if it is one of the run's."""
        return next((each.refreshes for each in self.plan.steps if each.name == step), ())

    def fingerprints(self, step: str) -> dict[str, str]:
        """The fingerprint of a step by repository, for those that it runs or refreshes for."""
        planned = self.plan.step(step)
        return {repo_id: planned.fingerprints[repo_id] for repo_id in planned.busy}

    def commit(self, step: str, sequence: int = 0) -> Commit:
        """The identity of a step's commit to a table: transaction, fingerprint and versions of the inputs."""
        inputs = {name: self.pins[name] for name in self.plan.step(step).inputs}
        prints = self.fingerprints(step)
        # For a single repository it is the fingerprint in the manifest.
        made_from = fingerprint(prints) if len(prints) > 1 else next(iter(prints.values()))
        return Commit(self.run_id, sequence, made_from, inputs)

    def source_was_read(self, repo_id: str, digest: str) -> None:
        """Record the digest of the source that was actually read, which differs from the planned one."""
        digests = {**self.listed.digests, repo_id: digest}
        self.listed = structs.replace(self.listed, digests=digests)
        known = self.plan_request.source_inputs
        source_inputs = {**known, repo_id: {**known[repo_id], "source": digest}}
        self.plan_request = structs.replace(self.plan_request, source_inputs=source_inputs)
        self.plan = with_fingerprints(self.plan, self.plan_request)

    def done(self, step: str, name: str, commit: Committed) -> None:
        """Record a commit of a step to a table."""
        before = self.committed.get(name)
        self.committed[name] = commit if before is None else _both(before, commit)
        self.pins[name] = commit.version
        figures = ("operation", "version", "rows", "files", "size_bytes", "attempts")
        fields: dict[str, str | int] = {"table": name, **{each: getattr(commit, each) for each in figures}}
        self.trace.event(f"commit {name}", commit.seconds, fields, parent=self.spans.get(step))
        Log(run_id=self.run_id, step=step).info("committed", extra=fields)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the duration of the block to the timings of the run."""
        began = time.monotonic()
        try:
            yield
        finally:
            took = time.monotonic() - began
            self.seconds[name] = round(self.seconds.get(name, 0) + took, 3)

    def count(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Add the counts of a step; two steps may end at the same time."""
        with self.counting:
            for repo_id, named in counts.items():
                self.counts.setdefault(repo_id, Counter()).update(named)

    def add_costs(self, costs: Mapping[tuple[str, str], int]) -> None:
        """Add what extractors and rules have cost in tasks; two steps may end at the same time."""
        with self.counting:
            self.costs.update(costs)

    def step_done(self, step: str) -> StepDone:
        """Return the journal entry of a finished step."""
        planned = self.plan.step(step)
        counted = tuple(name for name in planned.outputs if name not in self.recount)
        known = [each for each in planned.repositories if each.action != "skip"]
        with self.counting:
            rows = {each.repo_id: counts_of(self.counts[each.repo_id], counted) for each in known}
        return StepDone(
            step,
            {each.repo_id: each.fingerprint for each in known},
            rows,
            {name: self.pins[name] for name in planned.outputs if name in self.pins},
            {each.repo_id: self.made_by(step, each.repo_id) for each in known},
        )

    def written(self, step: str) -> list[str]:
        """The tables of a step that this run has committed to."""
        return [name for name in self.plan.step(step).outputs if name in self.committed]

    def made_by(self, step: str, repo_id: str) -> str:
        """The run that did a step for a repository: this one, or one that has died."""
        done = self.resumed.get(step)
        return self.run_id if done is None else done.made_by.get(repo_id, self.run_id)


# Figures of two commits of a run to one table that are added.
SUMMED = ("rows", "files", "size_bytes", "seconds")


def _both(first: Committed, second: Committed) -> Committed:
    """Merge the records of two commits of a run to one table."""
    sums = {each: getattr(first, each) + getattr(second, each) for each in SUMMED}
    return structs.replace(second, created=first.created, **sums)


def recorded_counts(row: RunManifest) -> dict[str, int]:
    """Return the counts in a manifest row: rows by table, failures by extractor."""
    return {**row.row_counts, **{f"{FAILURES}/{name}": count for name, count in row.error_counts.items()}}


def counts_of(counts: Mapping[str, int], tables: tuple[str, ...]) -> dict[str, int]:
    """Select the counts of tables; those of the failures table include the counts by extractor."""
    return {
        name: count
        for name, count in counts.items()
        if name in tables or (FAILURES in tables and name.startswith(f"{FAILURES}/"))
    }
