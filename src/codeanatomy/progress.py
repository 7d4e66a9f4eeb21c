"""How far a build is, on stderr: a moving line on a terminal, now and then a line elsewhere.

    extract   1,204/1,790 files, 31 failures
    commit    7/9 tables, 868,417 rows

Tests: `tests/unit/test_progress.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TextIO, TypeVar

QUIET_SECONDS = 5.0
MOVING_SECONDS = 0.2
POLL_SECONDS = 0.2

Done = TypeVar("Done")


class Progress(AbstractContextManager["Progress"]):
    """Tells what is being done; `close` ends the moving line."""

    def __init__(self, to: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._to = to
        self._clock = clock
        self._moving = to.isatty()
        self._last = ""
        # By step, since two may be under way: what was said of it, and when.
        self._told: dict[str, tuple[str, float]] = {}
        self._open = False

    def tell(self, step: str, said: str, *, last: bool = False) -> None:
        """Say how far a step is; the first and the last word of a step are always printed."""
        now = self._clock()
        pause = MOVING_SECONDS if self._moving else QUIET_SECONDS
        before, when = self._told.get(step, ("", float("-inf")))
        if said == before or (not last and now - when < pause):
            return
        if step != self._last:
            self.close()
        self._last, self._told[step] = step, (said, now)
        line = f"{step:<9} {said}"
        if self._moving:
            # Back to the start of the line, and clear what was there.
            self._to.write(f"\r\x1b[K{line}")
            self._open = True
            if last:
                self.close()
        else:
            self._to.write(f"{line}\n")
        self._to.flush()

    def close(self) -> None:
        """End the moving line, if there is one."""
        if self._open:
            self._to.write("\n")
            self._open = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def watched(work: Callable[[], Done], tell: Callable[[], None]) -> Done:
    """Do the work in a thread, and tell how far it is."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        while not future.done():
            tell()
            time.sleep(POLL_SECONDS)
        return future.result()
