"""Fork work over several cores: a child inherits its parent's data, takes piece after piece, returns results.

>>> sorted(map_in_forks(lambda number: number * number, 6, processes=2))
[0, 1, 4, 9, 16, 25]

Fork avoids copying the input, which is large: a solved repository, rows of many files. The parent must be a
process with one thread, such as the local process of a build (`local_process`) or Spark's Python
worker. A child ends with its parent.

Tests: `tests/unit/pipeline/test_processes.py`.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import Synchronized
from typing import Any, TypeVar

from codeanatomy.config import Settings
from codeanatomy.errors import CodeAnatomyError, StepFailed

FORK = get_context("fork")
# Pieces that are worth a process.
FEWEST = 3
PR_SET_PDEATHSIG = 1
REPORT = "report it as a bug, with the output of codeanatomy doctor; --engine spark may work meanwhile"
DIED = "run the command again; if it dies again, memory may be short: set refresh.processes=1"
Made = TypeVar("Made")


def processes_of(settings: Settings) -> int:
    """Return the number of local processes: the setting, otherwise the available cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return settings.refresh.processes or cores or 1


def map_in_forks(
    work: Callable[[int], Made], count: int, processes: int, fewest: int = FEWEST
) -> Iterator[Made]:
    """Yield the result of `work` for each number below `count`, in any order; results are pickled."""
    wanted = min(processes, count // fewest)
    return _fork_workers(work, count, wanted) if wanted > 1 else map(work, range(count))


def iterate_in_fork(work: Callable[[], Iterable[Made]]) -> Iterator[Made]:
    """Yield what `work` yields in a process of its own, so that its memory is freed at once.

    >>> list(iterate_in_fork(lambda: iter("abc")))
    ['a', 'b', 'c']
    """
    line, end = FORK.Pipe()
    child = FORK.Process(target=_serve_items, args=(line, end, work))
    child.start()
    end.close()
    try:
        while True:
            is_last, made = _received(line)
            if is_last:
                return
            yield made
    finally:
        child.kill()
        child.join()
        line.close()


def map_after(prepare: Callable[[], tuple[Callable[[int], Made], int]], processes: int) -> Iterator[Made]:
    """Yield what the work that `prepare` returns makes of each number below the count that it returns.

    >>> sorted(map_after(lambda: (lambda number: number * number, 6), processes=2))
    [0, 1, 4, 9, 16, 25]

    One process prepares, and then works beside others that are forked from it; results come in any order.
    CPython writes to objects that it only reads (it counts references), so each process copies the pages that
    it visits, except the last: after the solve of django's sdist one that only waits costs 0.3 GB of 4.9.
    """
    pipes = [FORK.Pipe(duplex=False) for _ in range(processes)]
    child = FORK.Process(target=_prepare, args=(pipes, prepare))
    child.start()
    for _, end in pipes:
        end.close()
    lines = [line for line, _ in pipes]
    try:
        for _, made in _receive_until_end(lines):
            yield made
    finally:
        child.kill()
        child.join()
        for line, _ in pipes:
            line.close()


def _prepare(
    pipes: Sequence[tuple[Connection, Connection]], prepare: Callable[[], tuple[Callable[[int], Any], int]]
) -> None:
    for line, _ in pipes:
        line.close()
    end_with_parent()
    own, *others = ends = [end for _, end in pipes]
    helpers = []
    with _reporting_errors(own):
        work, count = prepare()
        # Of the numbers below the count.
        taken = FORK.Value("q", 0)
        for number, end in enumerate(others, 2):
            if number * FEWEST <= count:
                helpers.append(FORK.Process(target=_serve_rest, args=(ends, end, work, count, taken)))
                helpers[-1].start()
            else:
                end.send((True, None))
            end.close()
        _send_rest(own, work, count, taken)
    own.close()
    # They would end with this process.
    for helper in helpers:
        helper.join()
    os._exit(0)


def _serve_rest(
    inherited: Sequence[Connection],
    end: Connection,
    work: Callable[[int], Any],
    count: int,
    taken: Synchronized[int],
) -> None:
    for each in inherited:
        if each is not end:
            each.close()
    end_with_parent()
    gc.disable()
    with _reporting_errors(end):
        _send_rest(end, work, count, taken)
    end.close()
    os._exit(0)


def _send_rest(end: Connection, work: Callable[[int], Any], count: int, taken: Synchronized[int]) -> None:
    """Take the next number until there is none, and send what is made of it."""
    while True:
        with taken.get_lock():
            number = taken.value
            taken.value += 1
        if number >= count:
            break
        end.send((False, work(number)))
    end.send((True, None))


def _serve_items(inherited: Connection, end: Connection, work: Callable[[], Iterable[Any]]) -> None:
    inherited.close()
    end_with_parent()
    with _reporting_errors(end):
        for item in work():
            end.send((False, item))
        end.send((True, None))
    end.close()
    # Without freeing what the work has made.
    os._exit(0)


def end_with_parent() -> None:
    """Have this process killed when its parent ends, where the system can do that (Linux)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


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
        for line, made in _receive_until_end(lines):
            _send_number(line, next(numbers, None))
            yield made
    finally:
        for child in children:
            child.kill()
            child.join()


def _receive_until_end(lines: list[Connection]) -> Iterator[tuple[Connection, Any]]:
    """Yield results with the lines that they come from, until all lines have ended."""
    while lines:
        ready = wait(lines)
        for line in [each for each in lines if each in ready]:
            is_last, made = _received(line)
            if is_last:
                lines.remove(line)
            else:
                yield line, made


def _send_number(line: Connection, number: int | None) -> None:
    # A dead child is noticed when nothing is received from it.
    with suppress(BrokenPipeError, ConnectionResetError):
        line.send(number)


def _received(line: Connection) -> tuple[bool, Any]:
    try:
        is_last, made = line.recv()
    except (EOFError, ConnectionResetError):
        raise StepFailed("a process of the build died", DIED) from None
    if isinstance(made, CodeAnatomyError | OSError):
        raise made
    return is_last, made


def _serve(inherited: Sequence[Connection], end: Connection, work: Callable[[int], Any]) -> None:
    # Open read ends in a child would hide the death of a reader.
    for line in inherited:
        line.close()
    end_with_parent()
    # The parent's data is not garbage, and a collection would copy the memory pages shared with it.
    gc.disable()
    with _reporting_errors(end):
        while (number := end.recv()) is not None:
            end.send((False, work(number)))
        end.send((True, None))
    end.close()
    os._exit(0)


@contextmanager
def _reporting_errors(end: Connection) -> Iterator[None]:
    """Send an exception of the block to the parent."""
    try:
        yield
    # Of the system, such as a full disk, which the driver explains.
    except (CodeAnatomyError, OSError) as problem:
        end.send((True, problem))
    except Exception:  # noqa: BLE001
        end.send((True, StepFailed(traceback.format_exc(), REPORT)))
