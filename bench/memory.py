"""The memory of this process and its descendants, sampled while something runs.

    memory = Memory()
    memory.start()
    work()
    memory.stop()               # {"driver": ..., "jvm": ..., "workers": ...}: peaks in bytes

Processes that forked from each other share pages; each page counts once.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path


class Memory(threading.Thread):
    """Samples the proportional set size of this process and its descendants, by kind."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak: dict[str, int] = {}
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.25):
            now: dict[str, int] = {}
            for pid, name in _family(os.getpid()):
                now[name] = now.get(name, 0) + _proportional(pid)
            for name, size in now.items():
                self.peak[name] = max(self.peak.get(name, 0), size)

    def stop(self) -> dict[str, int]:
        self.done.set()
        self.join()
        return self.peak


def _family(root: int) -> list[tuple[int, str]]:
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
