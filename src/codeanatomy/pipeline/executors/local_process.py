"""Run the computations of a local build in a process with one thread, so that it may fork.

    with Worker() as worker:
        worker.call(hold_tasks, ...)                      # a function of a module, run there

A process that reads lakes has threads of Delta and DuckDB in it. What is forked from it may wait for ever for
a lock that one of them held. So this one is started anew, with nothing but our own modules on its path, and
whatever has to fork does it there (`pipeline.executors.processes`). While a call runs, finished files are
counted in a file that both processes have open.

Tests: `tests/unit/pipeline/test_local_process.py`.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from threading import Lock, current_thread, main_thread
from typing import IO, Any, ParamSpec, Self, TypeVar, cast
from weakref import finalize

from codeanatomy.errors import StepFailed
from codeanatomy.pipeline.executors.processes import end_with_parent

Made = TypeVar("Made")
Given = ParamSpec("Given")
# An entry of the file of counts: files and failures.
ENTRY = struct.Struct("=II")
# Option of the worker process.
END_WITH_PARENT = "end-with-parent"
# In the worker process: descriptor of the file of counts.
COUNTS_FILE: list[int] = []


class Raised:
    """An exception of the worker process."""

    def __init__(self, problem: Exception) -> None:
        try:
            self.problem: Exception = pickle.loads(pickle.dumps(problem))  # noqa: S301
        # An exception that cannot be pickled is sent as its text.
        except Exception:  # noqa: BLE001
            self.problem = RuntimeError(f"{type(problem).__name__}: {problem}")


class Worker:
    """The process, started on first use."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        # Descriptor of the file of counts.
        self._counts: int | None = None
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
                counts = self._open_counts()
                # Not from the folder of the command, where an analysed file may have the name of a module.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__, str(counts), *self._parent()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    pass_fds=(counts,),
                    start_new_session=True,
                )
            return self._process

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def _open_counts(self) -> int:
        if self._counts is None:
            self._counts, path = mkstemp()
            Path(path).unlink()
            # Not by `stop`: it may be read at that moment.
            finalize(self, os.close, self._counts)
        return self._counts

    @staticmethod
    def _parent() -> list[str]:
        """Have it end with this process; Linux would end it with the thread that has started it."""
        return [END_WITH_PARENT] if current_thread() is main_thread() else []

    @property
    def finished(self) -> tuple[int, int]:
        """Files that all calls so far have finished, and their failures."""
        if self._counts is None:
            return 0, 0
        data = os.pread(self._counts, os.fstat(self._counts).st_size, 0)
        entries = list(ENTRY.iter_unpack(data))
        return sum(files for files, _ in entries), sum(failures for _, failures in entries)

    def call(self, function: Callable[Given, Made], *arguments: Given.args, **_: Given.kwargs) -> Made:
        """Run a function in the process and return its result; its exceptions are raised here."""
        process = self.start()
        with self._calling:
            try:
                _send(process.stdin, (function, arguments))
                answer = pickle.load(cast("IO[bytes]", process.stdout))  # noqa: S301
            # A ValueError: the pipe was closed by `stop` while it was read.
            except (EOFError, OSError, ValueError, pickle.UnpicklingError) as problem:
                raise StepFailed("the local process of the build died", "run the command again") from problem
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
                        # Unsent data has no reader any more.
                        with suppress(OSError):
                            line.close()
                self._process = None


def count_finished(files: int, failures: int) -> None:
    """Report finished files to the process of the command; in the worker process, or one forked from it."""
    for number in COUNTS_FILE:
        # All processes share the position in the file, so that entries follow each other.
        os.write(number, ENTRY.pack(files, failures))


def _send(line: Any, message: object) -> None:
    pickle.dump(message, line, protocol=pickle.HIGHEST_PROTOCOL)
    line.flush()


class WithoutPandas:
    """Hides pandas: pyarrow imports it, if it is there, for the first array it makes, which takes 0.2 s."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse the import."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def serve(counts: int, *options: str) -> None:
    """Answer calls until the parent closes the pipe; finished files are counted in an open file."""
    COUNTS_FILE.append(counts)
    if END_WITH_PARENT in options:
        # Also while it works, and with it what it has forked.
        end_with_parent()
    # Output of libraries must not mix with the answers.
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


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutPandas())
    # Functions are sent by the name of their module, and this one has another name here. The passes are
    # imported before they are needed.
    from codeanatomy.pipeline.executors import local_executor  # noqa: F401
    from codeanatomy.pipeline.executors.local_process import serve as serve_calls
    from codeanatomy.pipeline.tasks import file_stage, graph_stage, solve_stage  # noqa: F401

    serve_calls(int(sys.argv[1]), *sys.argv[2:])
    # The parent has closed the pipe. Skip the shutdown of the interpreter: libraries print warnings there.
    os._exit(0)
