"""Keep snapshots of one lake open: the newest published run, and older ones that visitors name.

    lakes = OpenLakes("lake")
    lakes.newest()                  # the same `Lake` until another run publishes
    lakes.at("20260501T12")         # an older run, kept open while it is used

A snapshot pins the version of every table, so whatever is read through one `Lake` belongs to one run. A
request reads the newest run once, at its start. The manifest is looked at again after `CHECK_SECONDS`, by one
request; others go on with the run that was the newest, so that a slow store delays only one.

Tests: `tests/unit/serve/test_lakes.py`.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future

from codeanatomy.lake.snapshot import LATEST, Snapshot
from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer.search import SearchIndex

# Age at which the newest run is looked up again.
CHECK_SECONDS = 1.0
# Snapshots that stay open; each keeps the file lists of its tables in memory.
KEPT = 8
KEPT_INDEXES = 3


class OpenLakes:
    """The open snapshots of a lake; safe to use in several threads."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._check = threading.Lock()
        self._lakes: OrderedDict[str, Lake] = OrderedDict()
        self._indexes: OrderedDict[str, Future[SearchIndex]] = OrderedDict()
        self._newest: Lake | None = None
        self._checked = 0.0

    def newest(self) -> Lake:
        """Return the newest published run."""
        known = self._newest
        if known is not None and time.monotonic() - self._checked < CHECK_SECONDS:
            return known
        if not self._check.acquire(blocking=known is None):
            return known or self.newest()
        try:
            newest = self._keep(Snapshot.open(self.root))
            self._newest, self._checked = newest, time.monotonic()
            return newest
        finally:
            self._check.release()

    def at(self, as_of: str | None) -> Lake:
        """Return the run with an id or prefix, or the newest at a time; None and `latest` are the newest."""
        if as_of is None or as_of == LATEST:
            return self.newest()
        with self._lock:
            if as_of in self._lakes:
                self._lakes.move_to_end(as_of)
                return self._lakes[as_of]
        return self._keep(Snapshot.open(self.root, as_of))

    def search_index(self, lake: Lake) -> SearchIndex:
        """Return the search index of a snapshot; it is built once, requests for this run wait."""
        with self._lock:
            built = self._indexes.setdefault(lake.snapshot.run_id, Future())
            is_first = not built.running() and not built.done()
            if is_first:
                built.set_running_or_notify_cancel()
            self._indexes.move_to_end(lake.snapshot.run_id)
            while len(self._indexes) > KEPT_INDEXES:
                self._indexes.popitem(last=False)
        if is_first:
            try:
                built.set_result(SearchIndex(lake.reader))
            except BaseException as problem:
                # Whatever it is, those that wait get it, and the next request tries again.
                with self._lock:
                    self._indexes.pop(lake.snapshot.run_id, None)
                built.set_exception(problem)
                raise
        return built.result()

    def _keep(self, snapshot: Snapshot) -> Lake:
        """Return the open lake of a snapshot, opened now if it is not."""
        with self._lock:
            lake = self._lakes.setdefault(snapshot.run_id, Lake(snapshot))
            self._lakes.move_to_end(snapshot.run_id)
            while len(self._lakes) > KEPT:
                self._lakes.popitem(last=False)
            return lake
