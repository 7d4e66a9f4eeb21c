"""Do slow work once for all visitors, and let a page wait for it only for a few seconds.

    inspections = SharedWork(inspect_tables, keep_seconds=10)
    inspections.result("lake", wait_seconds=8)       # None if it is not ready; the work goes on

One piece of work runs at a time. Results are kept for some seconds or, if they cannot change, until newer
ones take their place; an error is raised and not kept.

Tests: `tests/unit/serve/test_shared_work.py`.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotReady
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

# Results that are kept, and work that waits.
KEPT = 8


class SharedWork(Generic[Key, Result]):
    """Results of a function by its argument."""

    def __init__(self, function: Callable[[Key], Result], keep_seconds: float = math.inf) -> None:
        self._function = function
        self._keep_seconds = keep_seconds
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1)
        # With the time of the start.
        self._started: OrderedDict[Key, tuple[float, Future[Result]]] = OrderedDict()

    def result(self, key: Key, wait_seconds: float) -> Result | None:
        """Return the result for an argument, or None if it is not ready in time. Raise its error."""
        with self._lock:
            since, future = self._started.get(key, (0.0, None))
            if future is None or (future.done() and self._is_over(since, future)):
                future = self._worker.submit(self._function, key)
                self._started[key] = (time.monotonic(), future)
            self._started.move_to_end(key)
            while len(self._started) > KEPT:
                _, (_, oldest) = self._started.popitem(last=False)
                # Work that has not begun yet is of visitors who have left, or will come again.
                oldest.cancel()
        try:
            return future.result(wait_seconds)
        except CancelledError:
            return None
        except NotReady:
            # It may have ended since then, or have raised this error itself.
            return future.result() if future.done() else None

    def _is_over(self, since: float, future: Future[Result]) -> bool:
        is_old = time.monotonic() - since > self._keep_seconds
        return is_old or future.cancelled() or future.exception() is not None
