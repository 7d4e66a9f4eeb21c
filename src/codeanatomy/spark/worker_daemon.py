"""Fork Spark's Python workers from a process that has imported what the passes of a build need.

    spark.python.daemon.module = codeanatomy.spark.worker_daemon

Spark starts this module when the first Python task runs, and forks a worker for each task slot. PySpark's own
daemon has imported nothing, so that every worker imports PyArrow, the parsers and our passes by itself: two
seconds each, while a small build waits. Here they are imported once, before the first fork.

A command can do that while the JVM starts, in a process of its own:

    prepared = PreparedDaemon()          # python -m codeanatomy.spark.worker_daemon --prepare /tmp/.../daemon
    prepared.environment                 # for the JVM: where the process waits

Spark starts the module as ever; it hands its streams and its environment to the process that waits, which
becomes the daemon. If there is none, it imports by itself. Tests: `tests/unit/spark/test_worker_daemon.py`.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

MODULE = "codeanatomy.spark.worker_daemon"
# Where a prepared process waits.
VARIABLE = "CODEANATOMY_WORKER_DAEMON"
PREPARE = "--prepare"
STREAMS = (0, 1, 2)
# What tasks of a build run, by name: this package is below theirs.
IMPORTED = (
    "pyspark.worker",
    "codeanatomy.pipeline.tasks.file_stage",
    "codeanatomy.pipeline.tasks.solve_stage",
    "codeanatomy.pipeline.tasks.graph_stage",
    "codeanatomy.pipeline.executors.spark_executor",
)
# Sent back by the process that has taken the streams over.
TAKEN = b"t"


class PreparedDaemon:
    """A process that imports, and waits for the streams of Spark's daemon."""

    def __init__(self) -> None:
        # A folder that only this user can open.
        self._folder = tempfile.mkdtemp(prefix="codeanatomy-")
        address = str(Path(self._folder, "daemon"))
        self.environment = {VARIABLE: address}
        # Open before the process runs: Spark's daemon may start at any time.
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(address)
        listening.listen(1)
        # Not from the folder of the command, where an analysed file may have the name of a module.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, PREPARE, str(listening.fileno()), str(os.getpid())],
            pass_fds=(listening.fileno(),),
            # As Spark has it for its workers.
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # Ctrl-C is for the command. PySpark's daemon makes its own group, which the leader of a session
            # may not.
            process_group=0,
        )
        listening.close()

    def stop(self) -> None:
        """End the process, with what it has forked."""
        # Its workers are of its group, and look at their connection only between tasks.
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def prepare(descriptor: int, parent: int) -> None:
    """Import, wait for the streams of a daemon at an open socket, and become it."""
    listening = socket.socket(fileno=descriptor)
    import_passes()
    listening.settimeout(1.0)
    folder = Path(listening.getsockname()).parent
    while True:
        try:
            connection, _ = listening.accept()
            break
        except TimeoutError:
            if os.getppid() != parent:
                # The command has ended.
                shutil.rmtree(folder, ignore_errors=True)
                os._exit(0)
    # A command that is killed would leave it behind.
    shutil.rmtree(folder, ignore_errors=True)
    listening.close()
    _, streams, _, _ = socket.recv_fds(connection, 1, len(STREAMS))
    with connection.makefile("rb") as message:
        environment, arguments = json.loads(message.readline())
    connection.sendall(TAKEN)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    for number, stream in zip(STREAMS, streams, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    # Kept open, and inherited by all workers: the module that Spark has started waits for its end.
    connection.set_inheritable(False)
    serve()


def hand_over(address: str) -> bool:
    """Hand the streams of this process to the prepared one and wait for its end; False if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(address)
        socket.send_fds(connection, [b"\n"], STREAMS)
        connection.sendall(json.dumps([dict(os.environ), sys.argv]).encode() + b"\n")
        if connection.recv(1) != TAKEN:
            return False
    except OSError:
        return False
    for number in STREAMS[:2]:
        os.close(number)
    with suppress(OSError):
        connection.recv(1)
    return True


def import_passes() -> None:
    """Import what tasks need, so that workers have it when they are forked."""
    import pyarrow as pa

    for name in IMPORTED:
        import_module(name)
    # PyArrow imports pandas for its first array.
    pa.array([1])
    gc.collect()
    # What is here now is not looked at by collections of the workers, which would copy its memory.
    gc.freeze()


def serve() -> None:
    """Be Spark's daemon: fork a worker for each connection."""
    from pyspark.daemon import manager

    try:
        manager()
    finally:
        # Without the shutdown of the interpreter, in which libraries print warnings.
        os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:2] == [PREPARE]:
        prepare(int(sys.argv[2]), int(sys.argv[3]))
    elif not (VARIABLE in os.environ and hand_over(os.environ[VARIABLE])):
        import_passes()
        serve()
