"""Send requests to the explorer without a socket, as a browser on this machine would.

    client = explorer_client(lake)
    client.get("/search?q=cart").text

A page must name no server but its own, and run no script that is written in it: `get_page` checks that for
every page that a test reads.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import httpx2 as httpx
from starlette.testclient import TestClient

from codeanatomy.serve.explorer.app import create_app

HOST = "127.0.0.1:8765"
VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)


def explorer_client(lake: Path | str) -> TestClient:
    """Return a client of the explorer of a lake."""
    app = create_app(str(lake), hosts=(HOST,))
    return TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False, follow_redirects=False)


def get_page(client: httpx.Client, address: str, status: int = 200) -> str:
    """Return the text of a page, after checking that it is well formed and safe."""
    answer = client.get(address)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    check_page(answer.text)
    return answer.text


class PageCheck(HTMLParser):
    """Collect what a page must not have, and elements that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check an element."""
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script" and not (given.get("src") or "").startswith("/static/"):
            self.problems.append(f"script {given}")
        if tag in ("style", "iframe", "object", "base"):
            self.problems.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.problems.append(f"{tag} {name}")
            if name in ("href", "src", "action", "formaction") and not re.match(r"[/#?]", value or "/"):
                self.problems.append(f"{tag} {name}={value}")
            if name in ("href", "src", "action") and (value or "").startswith("//"):
                self.problems.append(f"{tag} {name}={value}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check an element without content, as SVG writes it."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Check that the innermost element is closed."""
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")


def check_page(text: str) -> None:
    """Assert that a page is well formed, has no script of its own, and leads to its own server only."""
    check = PageCheck()
    check.feed(text)
    assert check.problems == []
    assert check.open == []
    assert len(check.ids) == len(set(check.ids))
