"""Processor seconds of a process and its descendants, by kind: the process itself, JVMs, other processes.

    before = processor_seconds(pid)
    work()
    spent = difference(processor_seconds(pid), before)        # {"driver": ..., "jvm": ..., "workers": ...}

Processes that have ended count for the parent that waited for them (Python workers end as children of
PySpark's daemon), except for the driver: what it has waited for was counted by its own kind while it lived.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from memory import family

TICKS = os.sysconf("SC_CLK_TCK")
EVERY_SECONDS = 0.25


def processor_seconds(root: int) -> dict[str, float]:
    """Seconds until now, by kind."""
    spent: dict[str, float] = {}
    for pid, kind in family(root):
        try:
            cells = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # User and system time, of the process and of children that it waited for.
        counted = cells[11:13] if kind == "driver" else cells[11:15]
        spent[kind] = spent.get(kind, 0.0) + sum(map(int, counted)) / TICKS
    return spent


def difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """What was spent between two moments, by kind."""
    return {kind: max(0.0, seconds - before.get(kind, 0.0)) for kind, seconds in after.items()}


class Processor(threading.Thread):
    """Samples the processor seconds of a command: once it has ended, they cannot be read any more."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.spent: dict[str, float] = {}
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(EVERY_SECONDS):
            for kind, seconds in processor_seconds(self.root).items():
                self.spent[kind] = max(self.spent.get(kind, 0.0), seconds)

    def stop(self) -> dict[str, float]:
        self.done.set()
        self.join()
        return self.spent
