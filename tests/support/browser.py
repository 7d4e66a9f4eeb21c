"""Open pages of the explorer in a real browser (Debian's chromium, driven by Playwright).

    with running_explorer(lake) as server, running_browser() as browser:
        with open_tab(browser, server, width=360, dark=True) as tab:
            tab.open("/search?q=cart")
            tab.page.keyboard.press("/")

A tab records messages of the console, errors of scripts, and requests to other servers; leaving the block
fails if there was any. `tab.accessibility()` returns the violations of axe-core's rules. Tests are skipped
where there is no chromium (`make browser` installs it).
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# WCAG 2.2 at level AA, and axe's best practices.
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
WAIT_MS = 20_000


@contextmanager
def running_explorer(lake: Path) -> Iterator[str]:
    """Run `codeanatomy explore` at a free port and return its address, without the last slash."""
    command = [sys.executable, "-m", "codeanatomy", "explore", "--lake", str(lake), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip().rstrip("/")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Start chromium without a window."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no chromium: `make browser` installs Debian's")
    with sync_playwright() as playwright:
        # Its sandbox needs rights that a container may lack; the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Tab:
    """A tab of the browser, and what went wrong in it."""

    page: Page
    server: str
    problems: list[str] = field(default_factory=list)

    def open(self, address: str, status: int = 200) -> None:
        """Open a page of the server, and wait until it is quiet."""
        answer = self.page.goto(self.server + address)
        assert answer is not None
        assert answer.status == status, answer.text()[:500]
        self.page.wait_for_load_state("networkidle")

    def accessibility(self) -> list[str]:
        """Return violations of the rules of accessibility: rule, and the elements."""
        results = Axe().run(self.page, options={"runOnly": {"type": "tag", "values": list(RULES)}})
        return [
            f"{each['id']}: {[node['html'][:200] for node in each['nodes']][:3]}"
            for each in results.response["violations"]
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@contextmanager
def open_tab(
    browser: Browser, server: str, *, width: int = 1280, height: int = 900, dark: bool = False, **options: Any
) -> Iterator[Tab]:
    """Open a tab with a window of its own; the end of the block fails if anything went wrong in it."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        **options,
    )
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    tab = Tab(page, server)
    page.on("console", lambda message: tab.problems.append(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: tab.problems.append(f"script: {error}"))
    page.on("requestfailed", lambda request: _note_failure(tab, request))
    page.on("request", lambda request: _note_foreign(tab, request.url))
    try:
        yield tab
    finally:
        context.close()
    assert tab.problems == []


def _note_foreign(tab: Tab, url: str) -> None:
    # Downloads are made of data by the browser itself.
    if not url.startswith((tab.server + "/", "blob:", "data:")):
        tab.problems.append(f"request: {url}")


def _note_failure(tab: Tab, request: Any) -> None:
    # A search that is typed further cancels the one before.
    if request.failure != "net::ERR_ABORTED":
        tab.problems.append(f"failed: {request.url} {request.failure}")
