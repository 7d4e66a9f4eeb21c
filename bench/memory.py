"""The memory of a process and its descendants, sampled while something runs.

    memory = Memory()           # of this process, or of another: Memory(process.pid)
    memory.start()
    work()
    memory.stop()               # {"driver": ..., "jvm": ..., "workers": ..., "together": ...}: peaks in bytes
    memory.peak_between(begin, end)                             # of all at one moment, by the system's clock

The driver is the process itself, workers are all descendants that run no Java. Processes that forked from
each other share pages; each page counts once. `together` is the most that all had at one moment.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
EVERY_SECONDS = 0.25
# Pauses for each second that a sample takes: walking the pages of large forks slows them down, too.
PAUSES = 20


class Memory(threading.Thread):
    """Samples the memory of a process and its descendants, by kind."""

    def __init__(self, root: int | None = None) -> None:
        super().__init__(daemon=True)
        self.root = os.getpid() if root is None else root
        self.peak: dict[str, int] = {}
        # Time, and what all had together.
        self.samples: list[tuple[float, int]] = []
        self.done = threading.Event()

    def run(self) -> None:
        taken = 0.0
        while not self.done.wait(max(EVERY_SECONDS, PAUSES * taken)):
            began = time.monotonic()
            now: dict[str, int] = {}
            for pid, name in family(self.root):
                now[name] = now.get(name, 0) + (_resident(pid) if name == "jvm" else _proportional(pid))
            now["together"] = sum(now.values())
            self.samples.append((time.time(), now["together"]))
            for name, size in now.items():
                self.peak[name] = max(self.peak.get(name, 0), size)
            taken = time.monotonic() - began

    def peak_between(self, begin: float, end: float) -> int:
        return max((size for moment, size in self.samples if begin <= moment <= end), default=0)

    def stop(self) -> dict[str, int]:
        self.done.set()
        self.join()
        return self.peak


def family(root: int) -> list[tuple[int, str]]:
    """A process and its descendants, each with its kind."""
    parents: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                head, _, tail = (path / "stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(path.name)] = (int(tail.split()[1]), head.partition("(")[2])
    found = [(root, "driver")]
    for pid, _ in found:
        for child, (parent, name) in parents.items():
            if parent == pid:
                found.append((child, "jvm" if name == "java" else "workers"))
    return found


def _proportional(pid: int) -> int:
    """Proportional set size: pages that forked workers share count once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _resident(pid: int) -> int:
    """Resident set size: a JVM shares next to nothing, and a walk over a large heap slows it down."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0
