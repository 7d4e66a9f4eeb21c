"""A run that is told to stop: by Ctrl-C, or by SIGTERM as schedulers do.

    with stoppable():
        work()              # raises Terminated here, in the main thread, where SIGTERM arrives

Tests: `tests/system/test_failures.py`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """The process was asked to end; like Ctrl-C, with an exit code of its own."""

    exit_code = 128 + signal.SIGTERM


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGTERM into an exception for a while; only the main thread can hear it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
