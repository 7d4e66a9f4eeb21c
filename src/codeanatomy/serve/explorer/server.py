"""Run the explorer as a process: address, port, token and limits.

    serve("lake", port=8765)                       # http://127.0.0.1:8765/, for programs of this machine only
    serve("lake", host="0.0.0.0")                  # prints an address with a token

Tests: `tests/unit/serve/test_server.py`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
import webbrowser
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from codeanatomy.errors import EnvironmentProblem
from codeanatomy.serve.explorer.app import create_app

DEFAULT_PORT = 8765
LOOPBACK = "127.0.0.1"
# Seconds until a client must have sent the head of its request, and that an idle connection is kept.
HEAD_SECONDS = 10
KEEP_SECONDS = 15
# Seconds in which a client must read what was sent to it.
READ_SECONDS = 60
# Connections at the same time; further ones get status 503.
MAX_CONNECTIONS = 200
MAX_HEAD_BYTES = 32_768


class TimedProtocol(H11Protocol):
    """Close connections of clients that send or read too slowly: uvicorn itself would wait for ever."""

    # Run while the client sends what no page waits for, and while it does not read.
    _sends: asyncio.TimerHandle | None = None
    _reads: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first request."""
        super().connection_made(transport)
        self._sends = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Stop the clock when a page has begun; start it with the first bytes after an answer.

        These are the head of a further request, or a body that the answer did not wait for.
        """
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle
        is_answered = cycle is None or cycle.response_complete
        if self._sends is not None and not is_answered:
            self._sends.cancel()
            self._sends = None
        elif self._sends is None and is_answered:
            self._sends = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def pause_writing(self) -> None:
        """Start the clock of reading: as much is to be sent as is kept in memory."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """Stop the clock of reading."""
        super().resume_writing()
        if self._reads is not None:
            self._reads.cancel()
            self._reads = None

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, within a time also if the client has not read its last answer."""
        super().timeout_keep_alive_handler()
        self._expect_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        super().connection_lost(exc)
        for clock in (self._sends, self._reads):
            if clock is not None:
                clock.cancel()

    def _expect_reading(self) -> None:
        if self._reads is None:
            self._reads = self.loop.call_later(READ_SECONDS, self.transport.abort)


def serve(
    root: str,
    *,
    host: str = LOOPBACK,
    port: int = DEFAULT_PORT,
    open_browser: bool = False,
    report: Callable[[str], None] = print,
) -> None:
    """Serve a lake until the process is stopped; with port 0 the system chooses one."""
    listening = listen(host, port)
    port = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    names = {shown, "127.0.0.1", "localhost", "[::1]"} if token is None else set()
    # Browsers leave out port 80.
    hosts = {f"{name}:{port}" for name in names} | (names if port == 80 else set())
    app = create_app(root, hosts=hosts, token=token)
    address = f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_SECONDS,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_graceful_shutdown=3,
    )
    report(address)
    if open_browser:
        webbrowser.open(address)
    uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address. Raise EnvironmentProblem if it is taken or unknown."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError) as problem:
        raise EnvironmentProblem(
            f"cannot listen at {host}:{port}: {problem}", "name another port: --port 0 takes a free one"
        ) from problem
    return listening


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can connect to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
