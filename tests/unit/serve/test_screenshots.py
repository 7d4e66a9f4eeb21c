"""Take a picture of each page of the explorer, on the lake of a real package (flask).

    pytest -m system tests/unit/serve/test_screenshots.py --regenerate      # writes docs/pictures/*.png

Without the option the pictures are compared with those of docs in size only: fonts differ between machines.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support.browser import Tab, open_tab
from support.folders import ROOT

PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 1200, 760
# By name: the page, whether it is dark, and the width of the window.
PAGES = {
    "home": ("/", False, WIDTH),
    "folder": ("/r/flask/f/flask", False, WIDTH),
    "source": ("/r/flask/f/flask/app.py#L904", False, WIDTH),
    "symbol": ("/r/flask/s/flask.app.Flask.make_response", False, WIDTH),
    "symbol-dark": ("/r/flask/s/flask.sessions.SecureCookieSessionInterface", True, WIDTH),
    "symbol-narrow": ("/r/flask/s/flask.app.Flask.make_response", False, 360),
    "calls": ("/r/flask/picture/calls?symbol=flask.app.Flask.full_dispatch_request", False, WIDTH),
    "classes": ("/r/flask/picture/classes?symbol=flask.sansio.scaffold.Scaffold", False, WIDTH),
    "imports": ("/r/flask/picture/imports", False, WIDTH),
    "control-flow": ("/r/flask/picture/control-flow?symbol=flask.helpers.make_response", False, WIDTH),
    "flow": ("/r/flask/flow?symbol=flask.app.Flask.finalize_request.rv", False, WIDTH),
    "impact": ("/impact?repo=flask&symbols=flask.helpers.get_root_path", False, WIDTH),
    "runs": ("/runs", False, WIDTH),
    "run": ("/runs/latest", False, WIDTH),
    "diff": ("/diff", False, WIDTH),
    "errors": ("/errors?repo=depot", False, WIDTH),
    "tables": ("/tables", False, WIDTH),
    "sql": ("/sql", False, WIDTH),
}


def show_more(name: str, tab: Tab) -> None:
    """Bring a page into the state that its picture shows."""
    if name == "source":
        tab.page.locator(".source a.i", has_text="preprocess_request").first.hover()
        tab.page.locator("#card").wait_for()
    if name == "diff":
        tab.page.get_by_role("button", name="Compare").click()
        tab.page.locator(".file-changes").first.wait_for()
    if name == "sql":
        tab.page.locator("#editor").fill(
            "SELECT callee, count(*) AS callers FROM calls\n"
            "WHERE NOT external GROUP BY callee ORDER BY callers DESC"
        )
        tab.page.keyboard.press("Control+Enter")
        tab.page.locator("#rows tbody tr").first.wait_for()


@pytest.mark.system
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_pictured(
    browser: Browser, server: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address, dark, width = PAGES[name]
    with open_tab(browser, server, width=width, height=HEIGHT, dark=dark) as tab:
        tab.open(address)
        show_more(name, tab)
        taken = tmp_path / f"{name}.png"
        tab.page.screenshot(path=taken)
    kept = PICTURES / f"explorer-{name}.png"
    if request.config.getoption("--regenerate"):
        PICTURES.mkdir(exist_ok=True)
        kept.write_bytes(taken.read_bytes())
    assert size_of(kept) == size_of(taken) == (width, HEIGHT)
    # A blank page compresses to a few kilobytes.
    assert taken.stat().st_size > 15_000


def size_of(picture: Path) -> tuple[int, int]:
    """Return the width and height of a PNG file."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height
