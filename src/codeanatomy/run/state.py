"""A run under way: what it works on, and what it has done so far. Steps read it and add to it.

Tests: `tests/test_build.py`.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from codeanatomy.config import Settings
from codeanatomy.extract.files import FAILURES
from codeanatomy.extract.listing import Listing
from codeanatomy.run.order import Order
from codeanatomy.run.plan import Plan, State
from codeanatomy.run.progress import Progress
from codeanatomy.run.repositories import Listed
from codeanatomy.run.steps import Asked, fingerprint
from codeanatomy.storage.events import Committed
from codeanatomy.storage.lease import StepDone
from codeanatomy.storage.plans import PlanTexts
from codeanatomy.storage.stamps import Commit
from codeanatomy.storage.store import Store


def new_run_id() -> str:
    """A name for a run that sorts by time; it is never part of the data of a graph."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


@dataclass
class Run:
    """The context of every step."""

    run_id: str
    store: Store
    order: Order
    asked: Asked
    listed: Listed
    plan: Plan
    progress: Progress
    # What was published when it began.
    base: State
    # Versions of the tables as the run sees them: those it began with, then those it has made.
    pins: dict[str, int]
    # Newest version of each table when its first step began; what comes after is its own.
    floor: dict[str, int] = field(default_factory=dict)
    trace_id: str | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    # By repository: rows by table, failures by extractor.
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    committed: dict[str, Committed] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    # Plans of the steps that ran.
    plans: dict[str, PlanTexts] = field(default_factory=dict)
    # Tables that Spark has added rows to, which nobody has counted by repository.
    recount: set[str] = field(default_factory=set)
    # Steps under way, or done.
    steps: dict[str, Future[None]] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The settings of the order."""
        return self.order.settings

    def working(self, step: str) -> dict[str, Listing]:
        """The repositories that a step works on."""
        return {repo_id: self.listed.listings[repo_id] for repo_id in self.plan.step(step).runs_for}

    def fingerprints(self, step: str) -> dict[str, str]:
        """What the rows that a step makes follow from, by repository."""
        known = self.plan.step(step).fingerprints
        return {repo_id: known[repo_id] for repo_id in self.working(step)}

    def commit(self, step: str, sequence: int = 0) -> Commit:
        """The transaction of a step's commit to a table, and what its rows are made from."""
        inputs = {name: self.pins[name] for name in self.plan.step(step).inputs}
        return Commit(self.run_id, sequence, fingerprint(self.fingerprints(step)), inputs)

    def done(self, name: str, commit: Committed) -> None:
        """A table was committed to."""
        self.committed[name] = commit
        self.pins[name] = commit.version

    def wait_for(self, step: str) -> None:
        """Until another step of this run is done; its failure is ours."""
        if step in self.steps:
            self.steps[step].result()

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Measure how long something takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 3)

    def count(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Add what a step has counted."""
        for repo_id, named in counts.items():
            self.counts.setdefault(repo_id, Counter()).update(named)

    def step_done(self, step: str) -> StepDone:
        """What the journal says of a step that has ended."""
        planned = self.plan.step(step)
        tables = (*planned.outputs, *planned.adds_to)
        return StepDone(
            step,
            self.fingerprints(step),
            {
                repo_id: counts_of(self.counts.get(repo_id, Counter()), tables)
                for repo_id in self.working(step)
            },
            {name: self.pins[name] for name in tables if name in self.committed},
        )


def counts_of(counts: Mapping[str, int], tables: tuple[str, ...]) -> dict[str, int]:
    """Of the counts of a repository, those of tables; failures are counted by extractor, too."""
    lead = f"{FAILURES}/" if FAILURES in tables else None
    return {
        name: count
        for name, count in counts.items()
        if name in tables or (lead is not None and name.startswith(lead))
    }
