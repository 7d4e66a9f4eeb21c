"""The local process of a build: what it is asked, what it answers, and how it ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeanatomy.errors import StepFailed, UsageError
from codeanatomy.pipeline.executors.local_process import Raised, Worker
from codeanatomy.plan.repositories import parse_repositories
from support.processes import left_over


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.stop()


def test_a_function_runs_elsewhere_and_in_a_process_of_one_thread(worker: Worker) -> None:
    assert worker.call(os.getpid) == worker.start().pid != os.getpid()
    assert worker.call(threading.active_count) == 1
    assert worker.call(sorted, [2, 1]) == [1, 2]


def test_what_goes_wrong_there_goes_wrong_here_and_it_goes_on(worker: Worker) -> None:
    with pytest.raises(ZeroDivisionError):
        worker.call(divmod, 1, 0)
    with pytest.raises(UsageError, match="nothing to build") as caught:
        worker.call(parse_repositories, ())
    assert "--repos-file" in caught.value.hint
    assert worker.call(abs, -1) == 1


def test_words_are_sent_of_what_cannot_be() -> None:
    class Odd(Exception):
        """Of no module that another process could import."""

    sent = Raised(Odd("strange")).problem
    assert (type(sent), str(sent)) == (RuntimeError, "Odd: strange")


def test_a_process_that_dies_is_told(worker: Worker) -> None:
    with pytest.raises(StepFailed, match="died"):
        worker.call(os.kill, worker.start().pid, signal.SIGKILL)


def test_it_is_stopped_while_it_works(worker: Worker) -> None:
    process = worker.start()
    threading.Timer(1.0, worker.stop).start()
    began = time.monotonic()
    with pytest.raises(StepFailed, match="died"):
        worker.call(time.sleep, 60)
    assert time.monotonic() - began < 30
    assert not left_over(process.pid, 5)


def test_nothing_is_imported_from_the_folder_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: Worker
) -> None:
    for name in ("pickle", "typing", "pyarrow", "codeanatomy"):
        (tmp_path / f"{name}.py").write_text("import os\nos._exit(9)\n")
    monkeypatch.chdir(tmp_path)
    assert worker.call(abs, -2) == 2
