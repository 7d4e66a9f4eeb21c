"""Decide which requests are answered, and set the headers that every response has.

    Guard(app, hosts=("127.0.0.1:8765", "localhost:8765"))      # loopback: no token
    Guard(app, token="3f9c...")                                 # any other address

A page of another site can send requests to a server on loopback, and by DNS rebinding even read the answers.
So `Host` must be one of the server's own names, and a request that another site has started (`Origin`,
`Sec-Fetch-Site`) is refused unless it only opens a page. On other addresses a secret token is required
instead: once in the address, then as a cookie that other sites do not send.

The Content-Security-Policy permits scripts, styles and images of this server only, nothing inline: a text of
a repository that escaped its quotes would still not run.

Tests: `tests/unit/serve/test_guard.py`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 1_000_000
MAX_ADDRESS_BYTES = 16_000
COOKIE = "codeanatomy_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: browsers would then send `Origin: null` with forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-cache",
}
SAME_SITE = ("same-origin", "none")


class Guard:
    """The application in front of all routes."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] = (), token: str | None = None) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._token = token
        # Servers at other ports of this host get the same cookies: each has its own name.
        self._cookie = f"{COOKIE}_{hashlib.sha256((token or '').encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            # Web sockets are not served; there is nothing to start or stop.
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that is refused, else None."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._hosts and host not in self._hosts:
            return _refused(
                421, f"this server is not {host[:200]!r}", "open it by the address it has printed"
            )
        if not _is_own(scope, headers, host):
            return _refused(403, "the request comes from another site", "open the page itself")
        if len(scope.get("raw_path", b"")) + len(scope.get("query_string", b"")) > MAX_ADDRESS_BYTES:
            return _refused(414, "the address is too long", f"use at most {MAX_ADDRESS_BYTES:,} bytes")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return _refused(413, "the request is too large", f"send at most {MAX_BODY_BYTES:,} bytes")
        return self._without_token(scope, headers)

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request without the token; move a token in the address to a cookie."""
        if self._token is None:
            return None
        fields = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        typed = next((value for name, value in fields if name == "token"), None)
        if typed is not None and self._is_token(typed):
            rest = urlencode([(name, value) for name, value in fields if name != "token"])
            # A path that begins with two slashes would lead to another host.
            page = "/" + quote(scope["path"].lstrip("/"))
            response = RedirectResponse(page + (f"?{rest}" if rest else ""), 303)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return response
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        kept = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        if self._is_token(kept) or self._is_token(bearer):
            return None
        return _refused(401, "a token is needed", "open the address that the server has printed at its start")

    def _is_token(self, typed: str) -> bool:
        return self._token is not None and hmac.compare_digest(typed.encode(), self._token.encode())


def _is_own(scope: Scope, headers: Headers, host: str) -> bool:
    """Whether a request was started by a page of this server, by the user, or by a program."""
    origin = headers.get("origin")
    if origin is not None and origin != f"{scope.get('scheme', 'http')}://{host}":
        return False
    site = headers.get("sec-fetch-site", "none")
    opens_page = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
    is_top = headers.get("sec-fetch-dest", "document") == "document"
    return site in SAME_SITE or (opens_page and is_top)


def _refused(status: int, problem: str, hint: str) -> Response:
    return PlainTextResponse(f"{problem}\n  next: {hint}\n", status)
