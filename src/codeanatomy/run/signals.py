"""Turn SIGTERM, which schedulers send, into an exception like that of Ctrl-C.

    with raise_on_sigterm():
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
    """SIGTERM was received; like KeyboardInterrupt, with its own exit code."""

    exit_code = 128 + signal.SIGTERM


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Raise Terminated on SIGTERM inside the `with` block; does nothing outside of the main thread."""
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
