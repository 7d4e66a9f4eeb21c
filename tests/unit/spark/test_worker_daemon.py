"""Spark's daemon of Python workers is a process that has imported the passes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from codeanatomy.spark.worker_daemon import MODULE, VARIABLE, PreparedDaemon


@pytest.fixture
def prepared() -> Iterator[PreparedDaemon]:
    daemon = PreparedDaemon()
    yield daemon
    daemon.stop()


def start(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the daemon as Spark does."""
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "s", **environment},
    )


def port_of(daemon: subprocess.Popen[bytes]) -> int:
    """The port that the daemon reports: four bytes, and nothing else before them."""
    assert daemon.stdout is not None
    return int.from_bytes(daemon.stdout.read(4), "big")


def pid_of_worker(port: int) -> int:
    """Connect as Spark does: the daemon forks a worker and sends its process id."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        return int.from_bytes(connection.recv(4), "big")


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end(daemon: subprocess.Popen[bytes]) -> int:
    """End the daemon as Spark does, by closing its input."""
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    daemon.stdin.close()
    code = daemon.wait(timeout=30)
    daemon.stdout.close()
    return code


def test_the_prepared_process_becomes_the_daemon(prepared: PreparedDaemon) -> None:
    daemon = start(prepared.environment)
    connection = socket.create_connection(("127.0.0.1", port_of(daemon)), timeout=30)
    worker = int.from_bytes(connection.recv(4), "big")
    assert parent_of(worker) == prepared._process.pid
    assert not Path(prepared._folder).exists()
    connection.close()
    assert end(daemon) == 0
    assert prepared._process.wait(timeout=30) == 0


def test_stopping_it_ends_its_workers(prepared: PreparedDaemon) -> None:
    """A worker at work looks at its connection only between tasks: it would go on for minutes."""
    daemon = start(prepared.environment)
    with socket.create_connection(("127.0.0.1", port_of(daemon)), timeout=30) as connection:
        worker = int.from_bytes(connection.recv(4), "big")
        assert is_running(worker)
        prepared.stop()
        until = time.monotonic() + 30
        while is_running(worker) and time.monotonic() < until:
            time.sleep(0.1)
        assert not is_running(worker)
    end(daemon)


def test_without_a_prepared_process_the_daemon_imports_by_itself(tmp_path: Path) -> None:
    for environment in ({}, {VARIABLE: str(tmp_path / "gone")}):
        daemon = start(environment)
        assert pid_of_worker(port_of(daemon)) > 0
        assert end(daemon) == 0


def test_a_prepared_process_ends_with_the_command(tmp_path: Path) -> None:
    program = (
        f"from {MODULE} import PreparedDaemon\n"
        "daemon = PreparedDaemon()\nprint(daemon._process.pid, daemon._folder, flush=True)\n"
        "import os\nos._exit(1)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    pid, folder = done.stdout.decode().split()
    until = time.monotonic() + 60
    while is_running(int(pid)) and time.monotonic() < until:
        time.sleep(0.1)
    assert time.monotonic() < until
    assert not Path(folder).exists()
