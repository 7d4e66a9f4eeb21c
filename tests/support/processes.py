"""The processes that a command has started in a session of its own: its JVM, and the JVM's workers."""

from __future__ import annotations

import time
from pathlib import Path


def members(session: int) -> dict[int, str]:
    """The living processes of a session, and their names; a worker of Spark is in a group of its own."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            # The name, in brackets, may hold anything.
            name, _, fields = stat.partition("(")[2].rpartition(")")
            state, _, _, of = fields.split()[:4]
            if int(of) == session and state not in "ZX":
                found[int(folder.name)] = name
    return found


def left_over(session: int, seconds: float) -> dict[int, str]:
    """Those that have not ended by themselves after a while."""
    end = time.monotonic() + seconds
    while (left := members(session)) and time.monotonic() < end:
        time.sleep(0.1)
    return left
