"""State of a repository during a refresh: what changed, what is redone, and why.

Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from codeanatomy.lake.manifest import ChangeWindow
from codeanatomy.pipeline.refresh.file_tables import Inputs
from codeanatomy.pipeline.refresh.relink import NOTHING, Relinked
from codeanatomy.plan.changes import Impact, SourceChange


@dataclass
class Refresh:
    """What a run redoes of a repository."""

    repo_id: str
    # Among those of the run: its commits to a table come in this order.
    number: int
    changes: tuple[SourceChange, ...]
    inputs: Inputs
    # By table, the files of which it has other rows now.
    touched: dict[str, frozenset[str]] = field(default_factory=dict)
    # Windows of the change feeds that were read.
    windows: tuple[ChangeWindow, ...] = ()
    # Diagnostics of the normalize step, until the relate step has added to them.
    diagnostics: pa.Table | None = None
    # Relations of files that were not edited, and lead elsewhere.
    relinked: Relinked = NOTHING
    # Why files are redone; those that were edited, until the relations of the others are known.
    impact: tuple[Impact, ...] = ()

    def __post_init__(self) -> None:
        self.impact = tuple(Impact(change.path, change.how) for change in self.changes)

    def touched_in(self, *tables: str) -> frozenset[str]:
        """The files of which one of these tables has other rows now."""
        return frozenset[str]().union(*(self.touched.get(name, frozenset()) for name in tables))

    @property
    def read(self) -> list[SourceChange]:
        """The paths that are there, and have to be read."""
        return [change for change in self.changes if change.how != "removed"]


def ids_of(changes: Iterable[SourceChange]) -> frozenset[str]:
    """The files of changes."""
    return frozenset(change.file_id for change in changes)
