"""Work that several visitors wait for is done once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from codeanatomy.errors import UsageError
from codeanatomy.serve.explorer.runs.shared_work import KEPT, SharedWork


def test_visitors_share_one_piece_of_work() -> None:
    calls: list[str] = []

    def work(key: str) -> str:
        calls.append(key)
        time.sleep(0.1)
        return key.upper()

    shared = SharedWork(work)
    with ThreadPoolExecutor(10) as visitors:
        results = list(visitors.map(lambda _: shared.result("a", 5), range(10)))
    assert results == ["A"] * 10
    assert shared.result("b", 5) == "B"
    assert calls == ["a", "b"]


def test_waiting_ends_and_the_work_goes_on() -> None:
    ready = threading.Event()
    shared = SharedWork(lambda _: ready.wait(60))
    started = time.monotonic()
    assert shared.result("a", 0.05) is None
    assert time.monotonic() - started < 30
    ready.set()
    assert shared.result("a", 60) is True


def test_errors_are_raised_and_not_kept() -> None:
    problems = [UsageError("first", ""), TimeoutError("of the lake")]

    def work(_: str) -> str:
        if problems:
            raise problems.pop(0)
        return "done"

    shared = SharedWork(work)
    with pytest.raises(UsageError, match="first"):
        shared.result("a", 5)
    with pytest.raises(TimeoutError, match="of the lake"):
        shared.result("a", 5)
    assert shared.result("a", 5) == "done"


def test_results_are_kept_for_a_time_and_not_too_many() -> None:
    calls: list[int] = []
    short = SharedWork(calls.append, keep_seconds=0.0)
    short.result(1, 5)
    time.sleep(0.01)
    short.result(1, 5)
    assert calls == [1, 1]
    calls.clear()
    long = SharedWork(calls.append)
    for key in (*range(KEPT + 1), KEPT, 0):
        long.result(key, 5)
    assert calls == [*range(KEPT + 1), 0]


def test_more_work_than_can_wait_is_dropped() -> None:
    ready = threading.Event()
    shared = SharedWork(lambda _: ready.wait(60))
    with ThreadPoolExecutor(KEPT * 3) as visitors:
        waiting = [visitors.submit(shared.result, key, 60) for key in range(KEPT * 3)]
        # All have come; those that were dropped have no result, and raise nothing.
        while sum(each.done() for each in waiting) < KEPT:
            time.sleep(0.01)
        ready.set()
        results = [each.result() for each in waiting]
    assert None in results
    assert results.count(True) >= KEPT
