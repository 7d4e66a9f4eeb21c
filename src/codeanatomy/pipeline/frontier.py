"""Describe what a change reaches in a repository: changed, dependent and removed files, and why.

    frontier = Frontier.of("shop", [SourceChange("shop/cart.py", "changed", ...)])
    frontier = frontier.with_feed("graph", files_by_table, windows)    # what the change feeds of a step have
    frontier = frontier.with_solution(outcome, version)                # files with other relations

    edited       shop/cart.py       differs from what extract has read before
    dependents   shop/order.py      not edited, but its relations differ: it calls what cart.py has changed
    removed      shop/old.py        has a program in the lake, and no source
    files_in     "graph"            what a step redoes: the files in the change feeds of its inputs

A frontier is a value: stages return the next one, nothing else knows what a change reaches, and a plan prints
it. A build of a whole repository has none: every file is new. Tests: `tests/unit/pipeline/test_frontier.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, structs

from codeanatomy.lake.manifest import ChangeWindow
from codeanatomy.pipeline.tasks.impact import edited_first
from codeanatomy.plan.changes import FILES, Impact, SourceChange
from codeanatomy.plan.steps import RELATE
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS

# Ids of files.
Files: TypeAlias = frozenset[str]
FilesByTable: TypeAlias = Mapping[str, Files]
NOTHING: Files = frozenset()


class FileOutcome(Struct, frozen=True, array_like=True):
    """A file that is emitted: whether its relations differ from the stored ones."""

    file_id: str
    path: str
    is_same: bool


class Frontier(Struct, frozen=True):
    """What a refresh reaches in a repository, as far as it is known."""

    repo_id: str
    # Paths that differ from those that extract has read before.
    changes: tuple[SourceChange, ...]
    # By step: files in the change feeds of its inputs, after its cursor; windows that were read of them.
    feeds: Mapping[str, FilesByTable] = {}
    windows: tuple[ChangeWindow, ...] = ()
    # Files whose rows this run has found to differ from the stored ones.
    differing: FilesByTable = {}
    # Files that a SCIP index has or had documents of, but the repository lacks.
    unlisted: Files = NOTHING
    # Files whose relations the solve has returned, those of them that depend on an edit, files that are gone.
    solved: Files = NOTHING
    dependents: Files = NOTHING
    removed: Files = NOTHING
    # Version of the relations that they are compared with.
    relations_version: int | None = None
    # Why files are redone; only the edited ones until the relations of the others are known.
    impact: tuple[Impact, ...] = ()

    @staticmethod
    def of(repo_id: str, changes: Iterable[SourceChange]) -> Frontier:
        """Return the frontier of edits."""
        edits = tuple(changes)
        return Frontier(repo_id, edits, impact=tuple(Impact(each.path, each.how) for each in edits))

    @property
    def edited(self) -> Files:
        """The files that differ from those that extract has read before."""
        return frozenset(change.file_id for change in self.changes)

    @property
    def paths(self) -> frozenset[str]:
        """The changed paths that exist and have to be read."""
        return frozenset(change.path for change in self.changes if change.how != "removed")

    def differing_in(self, *tables: str) -> Files:
        """Return the files whose rows differ in one of these tables."""
        return union(self.differing.get(name, NOTHING) for name in tables)

    def files_in(self, step: str, *tables: str) -> Files:
        """Return the files that feeds have for a step: of some of its inputs, or of all."""
        feeds = self.feeds.get(step, {})
        return union(feeds.get(name, NOTHING) for name in tables or feeds)

    def with_feed(
        self, step: str, files: FilesByTable, windows: Sequence[ChangeWindow], hows: Mapping[str, str]
    ) -> Frontier:
        """Add what the feeds of a step have; `hows` has what earlier runs have extracted, by path."""
        known = {each.path for each in self.impact}
        return structs.replace(
            self,
            feeds={**self.feeds, step: files},
            windows=tuple(dict.fromkeys((*self.windows, *windows))),
            impact=(*self.impact, *(Impact(path, how) for path, how in hows.items() if path not in known)),
        )

    def with_tools(self, owners: Mapping[str, Iterable[str]], unlisted: Iterable[str]) -> Frontier:
        """Add the files about which tools report other rows, by table."""
        differing = {name: frozenset(files) for name, files in owners.items()}
        return structs.replace(self, differing={**self.differing, **differing}, unlisted=frozenset(unlisted))

    def with_solution(
        self, files: Sequence[FileOutcome], removed: Collection[str], version: int | None
    ) -> Frontier:
        """Add the files with other relations than those of a version."""
        gone = frozenset(removed)
        differing = frozenset(each.file_id for each in files if not each.is_same)
        return structs.replace(
            self,
            solved=frozenset(each.file_id for each in files),
            removed=gone,
            dependents=differing - gone - self.files_in(RELATE, FILES),
            differing={**self.differing, **dict.fromkeys((RELATIONS, DIAGNOSTICS), differing | gone)},
            relations_version=version,
        )

    def with_reasons(self, reasons: Iterable[Impact]) -> Frontier:
        """Add why files are redone that were not edited."""
        return structs.replace(self, impact=edited_first((*self.impact, *reasons)))

    def with_pending(self, paths: Iterable[str]) -> Frontier:
        """Add files that are redone because an earlier run has changed their rows."""
        known = {each.path for each in self.impact}
        pending = (Impact(path, "pending") for path in paths if path not in known)
        return structs.replace(self, impact=(*self.impact, *pending))


def union(files: Iterable[Files]) -> Files:
    """Return the files of several sets."""
    return NOTHING.union(*files)
