"""Fork work over several cores: a child inherits its parent's data, takes piece after piece, returns results.

>>> sorted(map_in_forks(lambda number: number * number, 6, processes=2))
[0, 1, 4, 9, 16, 25]

Fork avoids copying the input, which is large: a solved repository, rows of many files. The parent must be a
process with one thread, such as the worker of a refresh (`pipeline.refresh.worker`).

Tests: `tests/unit/pipeline/test_processes.py`.
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
REPORT = "build with --full, and report it as a bug, with the output of codeanatomy doctor"
Made = TypeVar("Made")
Given = ParamSpec("Given")


def processes_of(settings: Settings) -> int:
    """Return the number of processes of a refresh: the setting, otherwise the available cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return settings.refresh.processes or cores or 1


def map_in_forks(
    work: Callable[[int], Made], count: int, processes: int, fewest: int = FEWEST
) -> Iterator[Made]:
    """Yield the result of `work` for each number below `count`, in any order; results are pickled."""
    wanted = min(processes, count // fewest)
    return _fork_workers(work, count, wanted) if wanted > 1 else map(work, range(count))


def run_in_fork(work: Callable[Given, Made], *arguments: Given.args, **named: Given.kwargs) -> Made:
    """Run `work` in a process of its own, so that its memory is freed at once."""
    [made] = _fork_workers(lambda _: work(*arguments, **named), 1, 1)
    return made


def _fork_workers(work: Callable[[int], Made], count: int, processes: int) -> Iterator[Made]:
    # A child gets its next number when it returns a result: some pieces take much longer than others.
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
            _send_number(line, next(numbers, None))
        while lines:
            ready = wait(lines)
            for line in [each for each in lines if each in ready]:
                is_last, made = _received(line)
                if is_last:
                    lines.remove(line)
                else:
                    _send_number(line, next(numbers, None))
                    yield made
    finally:
        for child in children:
            child.kill()
            child.join()


def _send_number(line: Connection, number: int | None) -> None:
    # A dead child is noticed when nothing is received from it.
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
    # Open read ends in a child would hide the death of a reader.
    for line in inherited:
        line.close()
    # The parent's data is not garbage, and a collection would copy the memory pages shared with it.
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
