"""The process of the explorer: its address, its port, slow clients, and its end."""

from __future__ import annotations

import doctest
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2 as httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from codeanatomy.serve.explorer import server
from support.commands import command_runner

# The command, with less patience for requests than users get.
HEAD_SECONDS = 2
EXPLORE = f"""
from codeanatomy.cli.main import main
from codeanatomy.serve.explorer import server
server.HEAD_SECONDS = {HEAD_SECONDS}
main()
"""


@pytest.fixture(scope="module")
def address(ask_lake: Path) -> Iterator[str]:
    command = [sys.executable, "-c", EXPLORE, "explore", "--lake", str(ask_lake), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)


def test_examples() -> None:
    assert doctest.testmod(server).failed == 0


def test_it_prints_its_address_and_answers(address: str) -> None:
    assert address.startswith("http://127.0.0.1:")
    answer = httpx.get(address)
    assert answer.status_code == 200
    assert "server" not in answer.headers
    assert httpx.get(address.replace("127.0.0.1", "localhost")).status_code == 200


@pytest.mark.parametrize("requests_before", [0, 1])
def test_a_client_that_sends_no_complete_request_is_disconnected(address: str, requests_before: int) -> None:
    port = int(address.rstrip("/").rpartition(":")[2])
    # `recv` raises TimeoutError for a connection that stays open.
    with socket.create_connection(("127.0.0.1", port), timeout=HEAD_SECONDS + 30) as slow:
        for _ in range(requests_before):
            slow.sendall(f"HEAD /static/base.css HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            assert slow.recv(10_000).startswith(b"HTTP/1.1 200")
        slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
        start = time.monotonic()
        assert slow.recv(100) == b""
        assert time.monotonic() - start > HEAD_SECONDS / 2
    assert httpx.get(address).status_code == 200


@pytest.mark.parametrize("reads", [True, False], ids=["sends a body slowly", "does not read"])
def test_clients_that_hold_an_answered_connection_are_disconnected(
    monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(b"x" * (10 if reads else 20_000_000), 413)(scope, receive, send)

    monkeypatch.setattr(server, "HEAD_SECONDS", 1)
    monkeypatch.setattr(server, "READ_SECONDS", 1)
    running = uvicorn.Server(
        uvicorn.Config(refuse, http=server.TimedProtocol, lifespan="off", log_level="error")
    )
    listening = server.listen("127.0.0.1", 0)
    thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
    thread.start()
    try:
        with socket.create_connection(listening.getsockname(), timeout=10) as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
            if reads:
                assert client.recv(1000).startswith(b"HTTP/1.1 413")
            deadline = time.monotonic() + 10
            connected = True
            while connected and time.monotonic() < deadline:
                time.sleep(0.1)
                if reads:
                    with suppress(OSError):
                        client.sendall(b"a")
                connected = bool(running.server_state.connections)
            assert not connected
    finally:
        running.should_exit = True
        thread.join(10)


def test_a_missing_lake_and_a_taken_port_are_reported(
    address: str,
    ask_lake: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    run = command_runner(capfd, monkeypatch, tmp_path)
    code, _, err = run("explore", "--lake", str(tmp_path / "none"))
    assert code != 0
    assert "build it" in err
    code, _, err = run("explore", "--lake", str(ask_lake), "--port", address.rstrip("/").rpartition(":")[2])
    assert code == 4
    assert "--port 0" in err
