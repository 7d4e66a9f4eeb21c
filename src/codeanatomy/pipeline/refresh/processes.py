"""Work on several cores: a process has all that its parent knows, takes one piece after the other, and sends
what it made of them.

>>> sorted(forked(lambda number: number * number, 6, processes=2))
[0, 1, 4, 9, 16, 25]

Forked, since what the work needs is large and at hand: a solved repository, rows of many files. So the parent
must be a process of one thread, which the worker of a refresh is (`worker`). Tests: `tests/unit/pipeline/test_processes.py`.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, ParamSpec, TypeVar

from codeanatomy.config import Settings
from codeanatomy.errors import CodeAnatomyError, StepFailed

FORK = get_context("fork")
# Pieces that are worth a process.
FEWEST = 3
REPORT = "build with --full, and report it"
Made = TypeVar("Made")
Given = ParamSpec("Given")


def processes_of(settings: Settings) -> int:
    """How many processes a refresh uses: as the settings say, else as there are cores for this one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return settings.refresh.processes or cores or 1


def forked(work: Callable[[int], Made], count: int, processes: int, fewest: int = FEWEST) -> Iterator[Made]:
    """What the work makes of each number below `count`, in any order; what it returns is pickled."""
    wanted = min(processes, count // fewest)
    return _elsewhere(work, count, wanted) if wanted > 1 else map(work, range(count))


def apart(work: Callable[Given, Made], *arguments: Given.args, **named: Given.kwargs) -> Made:
    """What the work makes in a process of its own: its memory is free at once, however much that was."""
    [made] = _elsewhere(lambda _: work(*arguments, **named), 1, 1)
    return made


def _elsewhere(work: Callable[[int], Made], count: int, processes: int) -> Iterator[Made]:
    # Who has sent what it made is told the next number: some pieces take much longer than others.
    numbers = iter(range(count))
    lines: list[Connection] = []
    children = []
    try:
        for _ in range(processes):
            line, end = FORK.Pipe()
            lines.append(line)
            child = FORK.Process(target=_serve, args=(lines, end, work))
            child.start()
            end.close()
            children.append(child)
            _tell(line, next(numbers, None))
        while lines:
            ready = wait(lines)
            for line in [each for each in lines if each in ready]:
                is_last, made = _received(line)
                if is_last:
                    lines.remove(line)
                else:
                    _tell(line, next(numbers, None))
                    yield made
    finally:
        for child in children:
            child.kill()
            child.join()


def _tell(line: Connection, number: int | None) -> None:
    # Who is dead cannot be told, which is noticed when nothing comes from it.
    with suppress(BrokenPipeError, ConnectionResetError):
        line.send(number)


def _received(line: Connection) -> tuple[bool, Any]:
    try:
        is_last, made = line.recv()
    except (EOFError, ConnectionResetError):
        raise StepFailed("a process of the refresh died", REPORT) from None
    if isinstance(made, CodeAnatomyError):
        raise made
    return is_last, made


def _serve(inherited: Sequence[Connection], end: Connection, work: Callable[[int], Any]) -> None:
    # While an end to read from is open here, nobody would notice that the one who reads has died.
    for line in inherited:
        line.close()
    # What the parent made is not garbage, and looking for some would copy its pages.
    gc.disable()
    try:
        while (number := end.recv()) is not None:
            end.send((False, work(number)))
        end.send((True, None))
    except CodeAnatomyError as problem:
        end.send((True, problem))
    except Exception:  # noqa: BLE001
        end.send((True, StepFailed(traceback.format_exc(), REPORT)))
    end.close()
