"""A run under way: what it works on, and what it has done so far. Stages read it and add to it.

Tests: `tests/test_build.py`.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from codeanatomy.catalog.kinds import Profile
from codeanatomy.config import Settings
from codeanatomy.extract.listing import Listing
from codeanatomy.run.progress import Progress
from codeanatomy.run.repositories import Listed
from codeanatomy.storage.events import Committed
from codeanatomy.storage.store import Store


def new_run_id() -> str:
    """A name for a run that sorts by time; it is never part of the data of a graph."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


class ScipChoice(Struct, frozen=True):
    """Whether SCIP indexes are made, and those that are given, by repository."""

    auto: bool = False
    given: dict[str, Path] = {}


# Whether a type checker is asked, where it is installed.
TypesChoice: TypeAlias = Literal["auto", "off"]


@dataclass
class Run:
    """The context of every stage."""

    store: Store
    settings: Settings
    listed: Listed
    progress: Progress
    scip: ScipChoice = field(default_factory=ScipChoice)
    types: TypesChoice = "off"
    # Which kinds of nodes and edges are made.
    profile: Profile = "default"
    run_id: str = field(default_factory=new_run_id)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    # By repository: rows by table, failures by extractor.
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    committed: dict[str, Committed] = field(default_factory=dict)
    witness_versions: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    # Tables that Spark has added rows to, which nobody has counted by repository.
    recount: set[str] = field(default_factory=set)
    # Stages under way, or done.
    stages: dict[str, Future[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seconds["list"] = self.listed.seconds

    @property
    def listings(self) -> dict[str, Listing]:
        """What was found, by repository."""
        return self.listed.listings

    @property
    def failed(self) -> dict[str, str]:
        """Why a repository failed, by its name."""
        return self.listed.failed

    def wait_for(self, stage: str) -> None:
        """Until another stage of this run is done; its failure is ours."""
        if stage in self.stages:
            self.stages[stage].result()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 3)

    def count(self, counts: dict[str, dict[str, int]]) -> None:
        """Add what a stage has counted."""
        for repo_id, named in counts.items():
            self.counts.setdefault(repo_id, Counter()).update(named)
