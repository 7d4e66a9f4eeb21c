"""Read from change feeds which files a step has to redo: those with changed rows in its input tables.

>>> from codeanatomy.plan.steps import steps_of
>>> feeds_of(steps_of(catalog.TABLES)[1].inputs)
('repo_files_v1', 'scip_index_v1')

    read_feeds("lake", graph.inputs, "shop", cursor, pins={"repo_files_v1": 14, "relations_v1": 11, ...})
    FeedChanges(files={"repo_files_v1": {"file:rZEv..."}, ...},
                windows=(ChangeWindow("repo_files_v1", 13, 14), ...))

A step reads the feed of each of its inputs that records one (`change_data_feed` in the table's policy), from
the version after its cursor (`lake.cursors`) to the version that the run has pinned. FeedLost is raised if a
feed is incomplete; then the step runs in full. Tests: `tests/unit/plan/test_feeds.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.delta.light_feed import (
    CHANGE_TYPE,
    COMMIT_VERSION,
    DELETIONS,
    changed_owners,
    changed_rows,
    records_changes,
)
from codeanatomy.errors import FeedLost
from codeanatomy.lake.cursors import StepCursor
from codeanatomy.lake.manifest import ChangeWindow

READ_INSTEAD = "the step runs in full"
FEED: FeatureName = "change_data_feed"


class FeedChanges(Struct, frozen=True):
    """What the feeds of a step have after its cursor."""

    # By table: the files with rows that were inserted, changed or deleted.
    files: dict[str, frozenset[str]]
    windows: tuple[ChangeWindow, ...]

    @property
    def all_files(self) -> frozenset[str]:
        """The files of all tables."""
        return frozenset[str]().union(*self.files.values())


def feeds_of(inputs: Iterable[str]) -> tuple[str, ...]:
    """Return the inputs of a step that record their changes."""
    return tuple(name for name in inputs if FEED in catalog.table(name).write.enable_features)


def read_feeds(
    root: str, inputs: Iterable[str], repo_id: str, cursor: StepCursor, pins: Mapping[str, int]
) -> FeedChanges:
    """Read the changes of the inputs of a step after its cursor, up to the pinned versions."""
    files: dict[str, frozenset[str]] = {}
    windows: list[ChangeWindow] = []
    for name in feeds_of(inputs):
        first, last = cursor.versions.get(name, -1) + 1, pins.get(name, -1)
        if last < first - 1:
            raise FeedLost(
                f"{name} is at version {last}, before the cursor at version {first - 1}", READ_INSTEAD
            )
        if first <= last:
            owner = catalog.table(name).owner or ""
            files[name] = changed_owners(root, name, first, last, owner, repo_id)
            windows.append(ChangeWindow(name, first, last))
        elif last >= 0 and not records_changes(root, name, last):
            raise FeedLost(f"{name} does not record changes at version {last}", READ_INSTEAD)
    return FeedChanges(files, tuple(windows))


def require_feeds(inputs: Iterable[str], tables: Sequence[Table]) -> None:
    """Raise FeedLost if the policy of an input that a step follows does not ask for a change feed."""
    for name in feeds_of(inputs):
        if FEED not in catalog.table(name, tables).write.enable_features:
            raise FeedLost(f"the policy of {name} does not enable {FEED}", READ_INSTEAD)


def has_changes(root: str, name: str, repo_id: str, cursor: StepCursor, pins: Mapping[str, int]) -> bool:
    """Return whether a table has changed rows of a repository after a cursor, also such of no file."""
    first, last = cursor.versions.get(name, -1) + 1, pins.get(name, -1)
    return first <= last and bool(changed_owners(root, name, first, last, "repo_id", repo_id))


def changed_paths(root: str, window: ChangeWindow, repo_id: str) -> dict[str, str]:
    """Return what happened to each path of `repo_files_v1` in a window: added, changed or removed."""
    rows = changed_rows(
        root, window.table_name, window.from_version, window.to_version, repo_id=repo_id, skip_undone=True
    )
    # By path: the versions that have it, and whether it was deleted there.
    rows_of: dict[str, set[tuple[int, bool]]] = defaultdict(set)
    for row in rows.select(["path", CHANGE_TYPE, COMMIT_VERSION]).to_pylist():
        rows_of[row["path"]].add((row[COMMIT_VERSION], row[CHANGE_TYPE] in DELETIONS))
    changes: dict[str, str] = {}
    for path, versions in rows_of.items():
        (first, _), (last, _) = min(versions), max(versions)
        if (last, False) not in versions:
            changes[path] = "removed"
        else:
            changes[path] = "changed" if (first, True) in versions else "added"
    return changes
