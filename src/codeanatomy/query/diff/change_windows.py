"""Resolve two published states of a lake to windows of versions in the change feeds of its tables.

    window = open_window("lake", "20260501T12", "2026-05-02T18:00Z")
    window.versions("repo_files_v1")      # range(5, 8): the commits after the first state, up to the second

The start is a run, or a time and so the newest run at that time; its own changes are not in the window. A
time before the first run starts with the first version of each table. The end is a run or a time, or the
newest run. A start that is the newest run, or a time after it, is FeedOutOfRange, or with
`allow_out_of_range` an empty window. So a consumer that calls again and again passes the run it read last:

    window = open_window("lake", last_run, allow_out_of_range=True)
    ...
    last_run = window.after.run_id

Tests: `tests/unit/query/test_changes.py`.
"""

from __future__ import annotations

from msgspec import Struct, json

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.light_feed import records_changes
from codeanatomy.errors import FeedLost, FeedOutOfRange, UnknownName, UsageError
from codeanatomy.lake.snapshot import LATEST, Snapshot, is_time, parse_time, recorded_runs
from codeanatomy.plan.feeds import feeds_of

# Hint of FeedLost: what to do if changes of a window are gone.
READ_INSTEAD = (
    "choose a later start, or compare the two runs: `codeanatomy diff` for the graph, "
    "Lake.open(as_of=...) for other tables"
)


class RunWindow(Struct, frozen=True):
    """The changes between two published states."""

    # None: before the first run.
    before: Snapshot | None
    after: Snapshot

    @property
    def run_a(self) -> str | None:
        """The run after which the window starts."""
        return None if self.before is None else self.before.run_id

    def versions(self, name: str) -> range:
        """Return the versions of a table in the window; empty if it was not written."""
        last = self.after.pin(name).version
        first = self.before.pins[name].version + 1 if self.before and name in self.before.pins else 0
        if last < first - 1:
            raise FeedLost(
                f"{name} is at version {last} in run {self.after.run_id}, "
                f"but was at version {first - 1} in run {self.run_a}: the table was recreated",
                READ_INSTEAD,
            )
        return range(first, last + 1)

    def check_repository(self, repo_id: str | None) -> None:
        """Raise UnknownName for a repository that neither state has."""
        states = (self.after, *([] if self.before is None else [self.before]))
        known = {name for state in states for name in state.repositories}
        if repo_id is not None and repo_id not in known:
            raise UnknownName("repository", repo_id, known)


def open_window(
    root: str,
    since: str,
    until: str | None = None,
    *,
    newest: Snapshot | None = None,
    allow_out_of_range: bool = False,
) -> RunWindow:
    """Return the window after a run or time, up to another one or to the newest published state."""
    if until is not None and is_time(since) and is_time(until) and parse_time(since) > parse_time(until):
        raise UsageError(f"the start {since} is after the end {until}", "swap --since and --until")
    before = _open_start(root, since)
    after = newest if newest is not None and until is None else _open(root, until)
    if before is not None and _order(before) > _order(after):
        raise UsageError(
            f"run {before.run_id} was published after run {after.run_id}", "swap --since and --until"
        )
    is_newest = before is not None and until is None and before.run_id == after.run_id
    if is_newest and not allow_out_of_range:
        raise FeedOutOfRange(
            f"nothing was published after run {after.run_id}",
            "wait for another run, or pass --allow-out-of-range (allow_out_of_range=True) for no rows",
        )
    return RunWindow(before, after)


def feed_tables() -> tuple[str, ...]:
    """Return the tables that record a change feed by their policy in the catalogue."""
    return feeds_of(table.name for table in catalog.TABLES)


def require_feed(window: RunWindow, name: str) -> Table:
    """Return a table; raise an error, with the tables that have a feed, for one without or an unknown one."""
    known = feed_tables()
    if name not in {table.name for table in catalog.TABLES}:
        raise UnknownName("table with a change feed", name, known)
    if name in known or _is_enabled(window.after, name):
        return catalog.table(name)
    features = json.encode((*catalog.table(name).write.enable_features, "change_data_feed")).decode()
    raise UsageError(
        f"{name} records no change feed",
        f"use one of {', '.join(known)}, "
        f"or build it with the setting tables.{name}.write.enable_features = {features}",
    )


def _is_enabled(state: Snapshot, name: str) -> bool:
    """Return whether a setting has enabled the feed."""
    pin = state.pins.get(name)
    return pin is not None and records_changes(state.root, name, pin.version)


def _open(root: str, as_of: str | None) -> Snapshot:
    return Snapshot.open(root, None if as_of == LATEST else as_of)


def _open_start(root: str, since: str) -> Snapshot | None:
    """Return the state at the start of a window; None for a time before the first run."""
    if is_time(since):
        published = [run for run in recorded_runs(root) if run.succeeded]
        # A run ends in a second.
        if published and parse_time(since) < published[0].finished_at.replace(microsecond=0):
            return None
    return _open(root, since)


def _order(state: Snapshot) -> tuple[object, str]:
    """Return the sort key of a state, as that of recorded runs."""
    return state.published_at, state.run_id
