"""Stand between a client and an S3 server: count requests, and make some of them fail.

    with flaky_proxy(server.port, lambda request: "lose" if request.method == "PUT" else None) as proxy:
        proxy.endpoint                 # give it to the client instead of the server's
        proxy.requests                 # [Request("PUT", "/lakes/a"), ...]

| fault | effect |
|---|---|
| throttle | the request is answered with 503 SlowDown, and not done |
| drop | the connection is closed, and the request is not done |
| lose | the request is done, but the connection is closed instead of an answer |
| cut | the connection is closed in the middle of the answer's body |
| expired | the request is refused as S3 does it for a session token that has expired |
| skewed | the request is refused as S3 does it for a client whose clock is wrong |
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple, TypeAlias

Fault: TypeAlias = Literal["throttle", "drop", "lose", "cut", "expired", "skewed"]
# A part of answers that must not be shown: S3 repeats the token of a request.
REPEATED = "token-of-the-request"
# Status and body of answers without forwarding, as recorded from S3.
REFUSALS: dict[Fault, tuple[int, str]] = {
    "throttle": (503, "<Code>SlowDown</Code><Message>Please reduce your request rate.</Message>"),
    "expired": (400, f"<Code>ExpiredToken</Code><Token-0>{REPEATED}</Token-0><HostId>h</HostId>"),
    "skewed": (
        403,
        f"<Code>RequestTimeTooSkewed</Code><RequestTime>20260504T120000Z</RequestTime><Id>{REPEATED}</Id>",
    ),
}
# Headers that belong to one connection.
HOP = ("connection", "transfer-encoding", "keep-alive")


class Request(NamedTuple):
    """A request of the client; the path has the query."""

    method: str
    path: str


Choice: TypeAlias = Callable[[Request], Fault | None]


@dataclass
class Proxy:
    """A running proxy; `choose` may be replaced at any time."""

    port: int
    choose: Choice
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Listener(ThreadingHTTPServer):
    """The server of a proxy."""

    daemon_threads = True
    proxy: Proxy
    target: int


class Handler(BaseHTTPRequestHandler):
    """One connection of the client."""

    protocol_version = "HTTP/1.1"
    server: Listener

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        request, proxy = Request(self.command, self.path), self.server.proxy
        fault = proxy.choose(request)
        proxy.requests.append(request)
        if fault:
            proxy.faults.append(fault)
        if fault in REFUSALS:
            status, text = REFUSALS[fault]
            self._answer(status, {"content-type": "application/xml"}, f"<Error>{text}</Error>".encode())
        elif fault == "drop":
            self.close_connection = True
        else:
            self._forward(body, fault)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle  # noqa: N815

    def _forward(self, body: bytes, fault: Fault | None) -> None:
        connection = HTTPConnection("127.0.0.1", self.server.target, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, HTTPException):
            self.close_connection = True
            return
        finally:
            connection.close()
        if fault == "lose":
            self.close_connection = True
            return
        kept = {name: value for name, value in response.getheaders() if name.lower() not in HOP}
        self._answer(response.status, kept, content, cut=fault == "cut")

    def _answer(self, status: int, headers: dict[str, str], content: bytes, *, cut: bool = False) -> None:
        self.send_response_only(status)
        # The answer to HEAD has the length of what GET would return.
        if not any(name.lower() == "content-length" for name in headers):
            headers = {**headers, "content-length": str(len(content))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.wfile.flush()
            self.close_connection = True

    def handle(self) -> None:
        # The client may close a connection at any time.
        with suppress(OSError):
            super().handle()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def flaky_proxy(target: int, choose: Choice = lambda _: None) -> Iterator[Proxy]:
    """Run a proxy to a port of this machine in threads of this process."""
    with Listener(("127.0.0.1", 0), Handler) as listener:
        listener.target = target
        listener.proxy = Proxy(listener.server_address[1], choose)
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        try:
            yield listener.proxy
        finally:
            listener.shutdown()
            thread.join()
