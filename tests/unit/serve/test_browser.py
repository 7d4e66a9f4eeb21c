"""The explorer in a real browser: what a visitor sees, types and clicks.

Skipped where there is no chromium.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from codeanatomy.lake.snapshot import recorded_runs
from support.browser import open_tab

PAGES = (
    "/",
    "/search?q=cart",
    "/search?q=no-such-name",
    "/r/flask/",
    "/r/flask/f/flask",
    "/r/flask/f/flask/sessions.py",
    "/r/flask/s/flask.app.Flask.make_response",
    "/r/flask/s/flask.sansio.scaffold.Scaffold",
    "/r/flask/picture/calls?symbol=flask.app.Flask.full_dispatch_request",
    "/r/flask/picture/classes?symbol=flask.sansio.scaffold.Scaffold",
    "/r/flask/picture/imports",
    "/r/flask/picture/control-flow?symbol=flask.app.Flask.make_response",
    "/r/flask/flow?symbol=flask.app.Flask.make_response.rv",
    "/impact",
    "/impact?repo=shop&symbols=shop.cart.Cart.total",
    "/runs",
    "/runs/latest",
    "/diff",
    "/errors",
    "/reports/unused",
    "/reports/unresolved?repo=flask",
    "/tables",
    "/sql",
)
# Those that a visitor meets first; the others are looked at by `make test-system`.
FIRST = ("/r/flask/s/flask.app.Flask.make_response",)
CHECKED = [each if each in FIRST else pytest.param(each, marks=pytest.mark.system) for each in PAGES]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("address", CHECKED)
def test_pages_are_accessible(browser: Browser, server: str, address: str, *, dark: bool) -> None:
    with open_tab(browser, server, dark=dark) as tab:
        tab.open(address)
        assert tab.accessibility() == []
        assert tab.page.locator("h1").count() == 1


@pytest.mark.parametrize("width", [360, 3840])
@pytest.mark.parametrize("address", CHECKED)
def test_pages_fit_narrow_and_wide_windows(browser: Browser, server: str, address: str, width: int) -> None:
    with open_tab(browser, server, width=width, height=800) as tab:
        tab.open(address)
        assert tab.overflow() <= 0


def test_search_by_keyboard_only(browser: Browser, server: str) -> None:
    with open_tab(browser, server) as tab:
        tab.open("/")
        tab.page.keyboard.press("/")
        tab.page.keyboard.type("cart.Cart.tot")
        options = tab.page.get_by_role("option")
        options.first.wait_for()
        assert options.first.inner_text().startswith("shop.cart.Cart.total")
        tab.page.keyboard.press("ArrowDown")
        assert options.first.get_attribute("aria-selected") == "true"
        tab.page.keyboard.press("Escape")
        assert tab.page.get_by_role("listbox").count() == 0
        tab.page.keyboard.type("a")
        options.first.wait_for()
        tab.page.keyboard.press("ArrowDown")
        with tab.page.expect_navigation():
            tab.page.keyboard.press("Enter")
        assert tab.page.url == f"{server}/r/shop/s/shop.cart.Cart.total"


@pytest.mark.system
def test_search_without_scripts(browser: Browser, server: str) -> None:
    with open_tab(browser, server, java_script_enabled=False) as tab:
        tab.open("/")
        tab.page.get_by_role("combobox").fill("make_response")
        tab.page.keyboard.press("Enter")
        link = tab.page.get_by_role("link", name="flask.app.Flask.make_response")
        assert link.get_attribute("href") == "/r/flask/s/flask.app.Flask.make_response"


def test_an_identifier_shows_a_card_and_leads_to_its_definition(browser: Browser, server: str) -> None:
    with open_tab(browser, server) as tab:
        tab.open("/r/shop/f/shop/cart.py")
        name = tab.page.locator(".source a.i", has_text="total").first
        name.hover()
        card = tab.page.locator("#card")
        card.wait_for()
        assert "shop.cart.total" in card.inner_text()
        tab.page.keyboard.press("Escape")
        card.wait_for(state="detached")
        name.focus()
        tab.page.keyboard.press("Tab")
        tab.page.keyboard.press("Shift+Tab")
        card.wait_for()
        card.get_by_role("link", name="shop.cart.total").click()
        assert tab.page.get_by_role("heading", level=1).inner_text().startswith("total")


@pytest.mark.system
def test_source_and_lists_without_scripts(browser: Browser, server: str) -> None:
    with open_tab(browser, server, java_script_enabled=False) as tab:
        tab.open("/r/shop/s/shop.cart.Cart.total")
        assert tab.page.get_by_role("link", name="shop.cart.Cart.checkout").count() > 0
        tab.page.locator("a.place").first.click()
        assert "/r/shop/f/shop/cart.py" in tab.page.url
        tab.page.locator(".source a.i").first.click()
        assert tab.page.locator("h1").count() == 1
        tab.open("/r/shop/picture/calls?symbol=shop.cart.Cart.total")
        assert tab.page.locator("svg .box").count() > 1


@pytest.mark.system
def test_a_picture_expands_zooms_and_is_exported(browser: Browser, server: str) -> None:
    with open_tab(browser, server) as tab:
        tab.open("/r/shop/picture/calls?symbol=shop.cart.Cart.total")
        boxes = tab.page.locator("#picture svg .box")
        before = boxes.count()
        tab.page.locator("#picture svg .expand").first.click()
        boxes.nth(before).wait_for(state="attached")
        seen = tab.page.locator("#picture svg").get_attribute("viewBox")
        tab.page.get_by_role("button", name="Zoom in").click()
        assert tab.page.locator("#picture svg").get_attribute("viewBox") != seen
        with tab.page.expect_download() as download:
            tab.page.get_by_role("link", name="Download SVG").click()
        text = Path(download.value.path()).read_text(encoding="utf-8")
        assert text.startswith("<")
        assert "shop.cart" in text


@pytest.mark.system
def test_a_block_and_its_lines_are_highlighted_together(browser: Browser, server: str) -> None:
    with open_tab(browser, server) as tab:
        tab.open("/r/flask/picture/control-flow?symbol=flask.app.Flask.make_response")
        tab.page.locator("#picture svg .box").nth(1).hover()
        lit = tab.page.locator(".lines li.lit, .lines li.active, .lines li.on")
        lit.first.wait_for()


@pytest.mark.system
def test_a_flow_is_followed(browser: Browser, server: str) -> None:
    with open_tab(browser, server) as tab:
        tab.open("/r/flask/flow?symbol=flask.app.Flask.make_response.rv")
        assert tab.page.locator("svg path").count() > 2
        assert tab.page.locator(".step").count() > 5
        evidence = tab.page.locator("details.evidence[data-edge]").first
        evidence.locator("summary").click()
        evidence.get_by_text("rule").first.wait_for()
        follow = tab.page.locator("a.follow").first
        name = follow.inner_text()
        follow.click()
        assert name.rpartition(".")[2] in tab.page.get_by_role("heading", level=1).inner_text()


@pytest.mark.system
def test_runs_are_compared(browser: Browser, server: str) -> None:
    with open_tab(browser, server) as tab:
        tab.open("/runs")
        tab.page.get_by_role("link", name="Compare runs").click()
        tab.page.get_by_role("button", name="Compare").click()
        page = tab.page.locator("main")
        page.get_by_text("old.retired").first.wait_for(state="attached")
        assert page.locator(".change.removed").count() > 0


def test_sql_is_completed_checked_and_run_by_keyboard(browser: Browser, server: str) -> None:
    with open_tab(browser, server) as tab:
        tab.open("/sql")
        editor = tab.page.locator("#editor")
        editor.focus()
        tab.page.keyboard.type("SELECT symbol, line FROM symbo")
        tab.page.keyboard.press("Control+Space")
        tab.page.locator("#completions li").first.wait_for()
        tab.page.keyboard.press("Enter")
        assert editor.input_value().startswith("SELECT symbol, line FROM symbols")
        tab.page.keyboard.type(" WHERE nonsense = 1")
        tab.page.locator("#problems li").first.wait_for()
        editor.fill(
            "SELECT symbol, line FROM symbols WHERE kind = 'CLASS' AND repo_id = 'shop' ORDER BY symbol"
        )
        tab.page.keyboard.press("Control+Enter")
        rows = tab.page.locator("#rows tbody tr")
        rows.first.wait_for()
        first = rows.first.inner_text()
        header = tab.page.locator("#rows thead th").first
        header.get_by_role("button").click()
        header.get_by_role("button").click()
        assert rows.first.inner_text() != first
        with tab.page.expect_download() as download:
            tab.page.get_by_role("button", name="Download CSV").click()
        assert Path(download.value.path()).read_text(encoding="utf-8").startswith("symbol,line")


@pytest.mark.system
def test_an_older_run_stays_the_same_run(browser: Browser, server: str, ask_lake: Path) -> None:
    first = recorded_runs(str(ask_lake))[0].run_id
    with open_tab(browser, server) as tab:
        tab.open(f"/r/depot/f/old.py?as-of={first}")
        assert first in tab.page.locator(".as-of").inner_text()
        tab.page.locator(".source a.i", has_text="retired").first.click()
        assert f"as-of={first}" in tab.page.url
        assert tab.page.locator("body").get_attribute("data-run") == first
        tab.page.get_by_role("link", name="Runs").click()
        assert f"as-of={first}" in tab.page.url
        tab.page.get_by_role("link", name="Go to the newest run").click()
        assert tab.page.locator(".as-of").count() == 0


@pytest.mark.system
def test_the_theme_is_kept(browser: Browser, server: str) -> None:
    with open_tab(browser, server) as tab:
        tab.open("/")
        background = "getComputedStyle(document.body).backgroundColor"
        light = tab.page.evaluate(background)
        tab.page.get_by_role("button", name="Use dark colours").click()
        dark = tab.page.evaluate(background)
        assert dark != light
        tab.open("/search")
        assert tab.page.evaluate(background) == dark
