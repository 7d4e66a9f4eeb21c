"""Work in several processes: all of it is done once, and a process that fails or dies is told."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from codeanatomy.config import load_settings
from codeanatomy.errors import StepFailed, StorageFailure
from codeanatomy.pipeline.executors.processes import (
    FEWEST,
    FORK,
    iterate_in_fork,
    map_after,
    map_in_forks,
    processes_of,
)

LARGE = 3_000_000
# So many pieces are worth several processes.
MANY = 4 * FEWEST
HERE = os.getpid()


class Odd(Exception):
    """A problem that can be pickled, and not be made again."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def at(number: int, problem: Callable[[], object]) -> Callable[[int], int]:
    """Work that has a problem with one number."""

    def work(given: int) -> int:
        if given == number:
            problem()
        return given

    return work


def elsewhere(value: int) -> int:
    """The value, in a process that may die of it."""
    assert os.getpid() != HERE
    return value


def slowly(value: int, seconds: float = 0.05) -> int:
    """The value, when others had time to take something too."""
    time.sleep(seconds)
    return value


def fail(problem: BaseException) -> Callable[[], object]:
    def raised() -> object:
        raise problem

    return raised


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 30])
def test_every_number_is_worked_on_once(processes: int, count: int) -> None:
    assert sorted(map_in_forks(lambda number: number * number, count, processes)) == [
        number * number for number in range(count)
    ]


def test_one_process_works_in_order_and_here() -> None:
    assert list(map_in_forks(lambda number: (number, os.getpid()), 3, processes=1)) == [
        (number, os.getpid()) for number in range(3)
    ]


def meet(folder: Path, processes: int) -> int:
    """Wait until so many processes have come here, and return the number of this one."""
    (folder / str(os.getpid())).touch()
    wait_until(lambda: len(list(folder.iterdir())) >= processes)
    return os.getpid()


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_several_work_elsewhere_and_share_the_numbers(tmp_path: Path) -> None:
    found = list(map_in_forks(lambda number: (meet(tmp_path, 3), number), MANY, processes=3))
    shares = {pid: [number for each, number in found if each == pid] for pid, _ in found}
    assert os.getpid() not in shares
    assert len(shares) == 3
    # Each takes the next that nobody has, and sends them in their order.
    assert sorted(number for share in shares.values() for number in share) == list(range(MANY))
    assert all(share == sorted(share) for share in shares.values())


def test_a_long_piece_delays_no_other(tmp_path: Path) -> None:
    """The first one takes as long as all others together."""

    def work(number: int) -> tuple[int, int]:
        (tmp_path / str(number)).touch()
        if number == 0:
            wait_until((tmp_path / str(MANY - 1)).exists)
        return os.getpid(), number

    found = list(map_in_forks(work, MANY, 2))
    [busy] = [pid for pid, number in found if number == 0]
    assert [number for pid, number in found if pid == busy] == [0]


def test_few_pieces_are_worked_on_here(tmp_path: Path) -> None:
    pids = set(map_in_forks(lambda _: os.getpid(), 2 * FEWEST - 1, processes=8))
    assert pids == {os.getpid()}
    assert len(set(map_in_forks(lambda _: meet(tmp_path, 2), 2 * FEWEST, processes=8))) == 2


def test_a_process_has_what_its_parent_knows() -> None:
    known = {number: object() for number in range(100)}
    assert sorted(map_in_forks(lambda number: len(known) + number, MANY, processes=2)) == [
        len(known) + number for number in range(MANY)
    ]


def test_large_answers_arrive_whole() -> None:
    found = list(map_in_forks(lambda number: bytes([number]) * LARGE, MANY, processes=2))
    assert sorted(found) == [bytes([number]) * LARGE for number in range(MANY)]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("number", [0, 3])
def test_what_goes_wrong_in_a_process_is_raised_here(processes: int, number: int) -> None:
    with pytest.raises(ValueError if processes == 1 else StepFailed, match="no such thing"):
        list(map_in_forks(at(number, fail(ValueError("no such thing"))), MANY, processes))
    assert not FORK.active_children()


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_ours_keeps_its_advice(processes: int) -> None:
    with pytest.raises(StorageFailure) as told:
        list(map_in_forks(at(1, fail(StorageFailure("no room", "make some"))), MANY, processes))
    assert (told.value.message, told.value.hint) == ("no room", "make some")


@pytest.mark.parametrize(
    "problem",
    [
        lambda: os._exit(elsewhere(3)),
        lambda: os._exit(elsewhere(0)),
        lambda: os.kill(os.getpid(), elsewhere(signal.SIGKILL)),
    ],
    ids=["exit 3", "exit 0", "killed"],
)
@pytest.mark.parametrize("number", [0, 3])
def test_a_process_that_dies_is_told(problem: Callable[[], object], number: int) -> None:
    with pytest.raises(StepFailed, match="died"):
        list(map_in_forks(at(number, problem), MANY, processes=2))
    assert not FORK.active_children()


def test_a_process_that_dies_while_it_answers_is_told() -> None:
    class Half:
        """Its process is gone before the answer is sent."""

        def __reduce__(self) -> tuple[object, ...]:
            os.kill(os.getpid(), elsewhere(signal.SIGKILL))
            raise AssertionError

    with pytest.raises(StepFailed, match="died"):
        list(map_in_forks(lambda number: Half() if number == 1 else number, MANY, processes=2))


@pytest.mark.parametrize("answer", [lambda: lambda: None, fail(Odd(1, 2))], ids=["answer", "problem"])
def test_what_cannot_be_sent_is_a_failure(answer: Callable[[], object]) -> None:
    with pytest.raises(StepFailed, match=r"pickle|local object|1 and 2"):
        list(map_in_forks(lambda number: answer() if number == 1 else number, MANY, processes=2))
    assert not FORK.active_children()


def test_who_stops_to_listen_ends_the_processes() -> None:
    found = map_in_forks(lambda number: bytes(LARGE), 100, processes=2)
    assert len(list(islice(found, 1))) == 1
    found.close()  # type: ignore[attr-defined]
    assert not FORK.active_children()


def test_as_many_processes_as_settings_say_or_cores_are_there() -> None:
    settings = load_settings(("refresh.processes=3",), env={}, start=None)
    assert processes_of(settings) == 3
    assert processes_of(load_settings((), env={}, start=None)) == len(os.sched_getaffinity(0))


def test_items_are_made_in_one_process_that_leaves_nothing_here() -> None:
    large: list[int] = []

    def work() -> Iterator[tuple[int, int]]:
        for _ in range(3):
            large.append(1)
            yield elsewhere(len(large)), os.getpid()

    made = list(iterate_in_fork(work))
    assert [number for number, _ in made] == [1, 2, 3]
    assert len({pid for _, pid in made}) == 1
    assert large == []
    assert not FORK.active_children()


def test_items_arrive_while_others_are_made() -> None:
    def work() -> Iterator[bytes]:
        yield bytes(LARGE)
        time.sleep(600)

    began = time.monotonic()
    items = iterate_in_fork(work)
    assert next(items) == bytes(LARGE)
    items.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 60
    assert not FORK.active_children()


@pytest.mark.parametrize(
    ("problem", "raised", "said"),
    [
        (lambda: os.kill(os.getpid(), elsewhere(signal.SIGKILL)), StepFailed, "died"),
        (lambda: os._exit(elsewhere(0)), StepFailed, "died"),
        (fail(StorageFailure("full", "")), StorageFailure, "full"),
        (fail(ValueError("no such thing")), StepFailed, "no such thing"),
    ],
    ids=["killed", "exit 0", "an error of ours", "a bug"],
)
def test_items_before_a_problem_arrive_and_then_it_is_raised(
    problem: Callable[[], object], raised: type[Exception], said: str
) -> None:
    def work() -> Iterator[int]:
        yield 1
        problem()
        yield 2

    items = iterate_in_fork(work)
    assert next(items) == 1
    with pytest.raises(raised, match=said):
        next(items)
    assert not FORK.active_children()


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2 * FEWEST, MANY])
def test_prepared_work_is_done_once_for_every_number(processes: int, count: int) -> None:
    def prepare() -> tuple[Callable[[int], int], int]:
        prepared = elsewhere(100)
        return lambda number: prepared + number, count

    assert sorted(map_after(prepare, processes)) == [100 + number for number in range(count)]
    assert not FORK.active_children()


def test_the_process_that_prepares_works_too(tmp_path: Path) -> None:
    preparing = tmp_path / "preparing"

    def prepare() -> tuple[Callable[[int], int], int]:
        preparing.write_text(str(os.getpid()))
        (tmp_path / "working").mkdir()
        return lambda _: meet(tmp_path / "working", 3), MANY

    found = list(map_after(prepare, processes=3))
    assert len(found) == MANY
    assert len(set(found)) == 3
    assert int(preparing.read_text()) in found


def test_large_results_of_prepared_work_arrive_whole() -> None:
    found = list(map_after(lambda: (lambda number: bytes([number]) * LARGE, MANY), processes=2))
    assert sorted(found) == [bytes([number]) * LARGE for number in range(MANY)]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("problem", "raised", "said"),
    [
        (lambda: os.kill(os.getpid(), elsewhere(signal.SIGKILL)), StepFailed, "died"),
        (lambda: os._exit(elsewhere(0)), StepFailed, "died"),
        (fail(StorageFailure("full", "")), StorageFailure, "full"),
        (fail(ValueError("no such thing")), StepFailed, "no such thing"),
    ],
    ids=["killed", "exit 0", "an error of ours", "a bug"],
)
def test_a_problem_of_prepared_work_is_raised(
    problem: Callable[[], object], raised: type[Exception], said: str, processes: int
) -> None:
    for prepare in (lambda: (at(4, problem), MANY), lambda: problem() or (at(0, problem), 1)):
        with pytest.raises(raised, match=said):
            list(map_after(prepare, processes))
        assert not FORK.active_children()


def test_who_stops_to_listen_ends_prepared_work() -> None:
    found = map_after(lambda: (lambda _: bytes(LARGE), 100), processes=2)
    assert len(next(found)) == LARGE
    found.close()  # type: ignore[attr-defined]
    assert not FORK.active_children()
