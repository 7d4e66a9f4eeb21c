"""State of a repository during a refresh: what changed, what is redone, and why.

Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from codeanatomy.lake.manifest import ChangeWindow
from codeanatomy.plan.changes import Impact, SourceChange


@dataclass
class Refresh:
    """What a run redoes of a repository."""

    repo_id: str
    # Number of the refresh within the run; refreshes commit to a table in this order.
    number: int
    changes: tuple[SourceChange, ...]
    # By table: the files whose rows changed.
    touched: dict[str, frozenset[str]] = field(default_factory=dict)
    # Windows of the change feeds that were read.
    windows: tuple[ChangeWindow, ...] = ()
    # Why files are redone; only the edited ones until the relations of the others are known.
    impact: tuple[Impact, ...] = ()

    def __post_init__(self) -> None:
        self.impact = tuple(Impact(change.path, change.how) for change in self.changes)

    def touched_in(self, *tables: str) -> frozenset[str]:
        """The files whose rows changed in one of these tables."""
        return frozenset[str]().union(*(self.touched.get(name, frozenset()) for name in tables))

    @property
    def read(self) -> list[SourceChange]:
        """The changes of paths that exist and have to be read."""
        return [change for change in self.changes if change.how != "removed"]


def ids_of(changes: Iterable[SourceChange]) -> frozenset[str]:
    """Return the ids of the changed files."""
    return frozenset(change.file_id for change in changes)
