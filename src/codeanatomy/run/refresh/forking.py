"""Work on several cores: a process has all that its parent knows, takes one piece after the other, and sends
what it made of them.

>>> sorted(forked(lambda number: number * number, 6, processes=2))
[0, 1, 4, 9, 16, 25]

Forked, since what the work needs is large and at hand: a solved repository, rows of many files. So the parent
must be a process of one thread, which the worker of a refresh is (`worker`). Tests: `tests/test_forking.py`.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import Synchronized
from typing import Any, TypeVar

from codeanatomy.config import Settings
from codeanatomy.errors import CodeAnatomyError, StepFailed

FORK = get_context("fork")
# Pieces that are worth a process.
FEWEST = 3
REPORT = "build with --full, and report it"
Made = TypeVar("Made")


def processes_of(settings: Settings) -> int:
    """How many processes a refresh uses: as the settings say, else as there are cores for this one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return settings.refresh.processes or cores or 1


def forked(work: Callable[[int], Made], count: int, processes: int, fewest: int = FEWEST) -> Iterator[Made]:
    """What the work makes of each number below `count`, in any order; what it returns is pickled."""
    wanted = min(processes, count // fewest)
    if wanted <= 1:
        yield from map(work, range(count))
        return
    lines: list[Connection] = []
    children = []
    try:
        # The number of the next piece: some take much longer than others.
        following = FORK.Value("q", 0)
        for _ in range(wanted):
            line, end = FORK.Pipe(duplex=False)
            lines.append(line)
            child = FORK.Process(target=_serve, args=(lines, end, work, _numbers(following, count)))
            child.start()
            end.close()
            children.append(child)
        while lines:
            ready = wait(lines)
            for line in [each for each in lines if each in ready]:
                is_last, made = _received(line)
                if is_last:
                    lines.remove(line)
                else:
                    yield made
    finally:
        for child in children:
            child.kill()
            child.join()


def _numbers(following: Synchronized[int], count: int) -> Iterator[int]:
    """Those below `count` that no other process has taken."""
    while True:
        with following.get_lock():
            number = following.value
            following.value = number + 1
        if number >= count:
            return
        yield number


def _received(line: Connection) -> tuple[bool, Any]:
    try:
        is_last, made = line.recv()
    except EOFError:
        raise StepFailed("a process of the refresh died", REPORT) from None
    if isinstance(made, CodeAnatomyError):
        raise made
    return is_last, made


def _serve(
    inherited: Sequence[Connection], end: Connection, work: Callable[[int], Any], numbers: Iterator[int]
) -> None:
    # While an end to read from is open here, nobody would notice that the one who reads has died.
    for line in inherited:
        line.close()
    # What the parent made is not garbage, and looking for some would copy its pages.
    gc.disable()
    try:
        for number in numbers:
            end.send((False, work(number)))
        end.send((True, None))
    except CodeAnatomyError as problem:
        end.send((True, problem))
    except Exception:  # noqa: BLE001
        end.send((True, StepFailed(traceback.format_exc(), REPORT)))
    end.close()
