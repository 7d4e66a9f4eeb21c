"""List the processes of a command that runs in its own session: its JVM, and the JVM's workers."""

from __future__ import annotations

import time
from pathlib import Path


def members(session: int) -> dict[int, str]:
    """Return the living processes of a session with their names; Spark workers have their own groups."""
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
    """Return those that have not ended by themselves after a while."""
    end = time.monotonic() + seconds
    while (left := members(session)) and time.monotonic() < end:
        time.sleep(0.1)
    return left
