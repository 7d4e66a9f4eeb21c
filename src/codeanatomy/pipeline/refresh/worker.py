"""A process that computes for a refresh: it has one thread, so that it may fork, and it ends with its memory.

    with Worker() as worker:
        worker.call(made_files, files, processes)       # a function of a module, run there

A process that reads lakes has threads of Delta and DuckDB in it. What is forked from it may wait for ever for
a lock that one of them held. So this one is started anew, with nothing but our own modules on its path, and
whatever has to fork does it there (`forking`). Tests: `tests/unit/pipeline/test_refresh_worker.py`.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import IO, Any, ParamSpec, Self, TypeVar, cast

from codeanatomy.errors import StepFailed

Made = TypeVar("Made")
Given = ParamSpec("Given")


class Raised:
    """What went wrong there."""

    def __init__(self, problem: Exception) -> None:
        try:
            self.problem: Exception = pickle.loads(pickle.dumps(problem))  # noqa: S301
        # Whatever an exception holds, its words can be sent.
        except Exception:  # noqa: BLE001
            self.problem = RuntimeError(f"{type(problem).__name__}: {problem}")


class Worker:
    """The process, started when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = Lock()
        self._calling = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, if it is not there: while it imports, others can do something else."""
        with self._starting:
            if self._process is None:
                # Not from the folder of the command, where an analysed file may have the name of a module.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __package__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
            return self._process

    def call(self, function: Callable[Given, Made], *arguments: Given.args, **_: Given.kwargs) -> Made:
        """What a function makes of arguments; its exceptions are ours."""
        process = self.start()
        with self._calling:
            try:
                _send(process.stdin, (function, arguments))
                answer = pickle.load(cast("IO[bytes]", process.stdout))  # noqa: S301
            except (EOFError, OSError, pickle.UnpicklingError) as problem:
                raise StepFailed("the process of the refresh died", "repeat the command") from problem
        if isinstance(answer, Raised):
            raise answer.problem
        made: Made = answer
        return made

    def stop(self) -> None:
        """End it, with all that it has forked."""
        with self._starting:
            if self._process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
                for line in (self._process.stdin, self._process.stdout):
                    if line is not None:
                        # What was not sent yet has nobody to read it.
                        with suppress(OSError):
                            line.close()
                self._process = None


def _send(line: Any, said: object) -> None:
    pickle.dump(said, line, protocol=pickle.HIGHEST_PROTOCOL)
    line.flush()


def serve() -> None:
    """Answer calls until the other side hangs up."""
    # What anybody prints must not get between the answers.
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError):
        while True:
            function, arguments = pickle.load(calls)  # noqa: S301
            try:
                answer = function(*arguments)
            except Exception as problem:  # noqa: BLE001
                answer = Raised(problem)
            _send(answers, answer)
