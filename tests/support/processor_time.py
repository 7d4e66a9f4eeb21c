"""Measure the processor seconds of a piece of work, whatever else the process does.

seconds_of(lambda: LexedText(text))        # of this thread; objects of earlier tests are not collected
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def seconds_of(work: Callable[[], object]) -> float:
    """Return the processor seconds that `work` takes in this thread.

    A process that runs thousands of tests has millions of objects, which each full collection would visit:
    they are left out from now on.
    """
    gc.collect()
    gc.freeze()
    start = time.thread_time()
    work()
    return time.thread_time() - start
