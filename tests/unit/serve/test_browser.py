"""The explorer in a real browser: what a visitor sees, types and clicks.

Skipped where there is no chromium.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support.browser import open_tab, running_browser, running_explorer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(ask_lake: Path) -> Iterator[str]:
    with running_explorer(ask_lake) as server:
        yield server


PAGES = ("/", "/search?q=cart", "/search?q=no-such-name", "/r/flask/")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_pages_are_accessible(browser: Browser, server: str, address: str, *, dark: bool) -> None:
    with open_tab(browser, server, dark=dark) as tab:
        tab.open(address)
        assert tab.accessibility() == []
        assert tab.page.locator("h1").count() == 1


@pytest.mark.parametrize("width", [360, 3840])
@pytest.mark.parametrize("address", PAGES)
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


def test_search_without_scripts(browser: Browser, server: str) -> None:
    with open_tab(browser, server, java_script_enabled=False) as tab:
        tab.open("/")
        tab.page.get_by_role("combobox").fill("make_response")
        tab.page.keyboard.press("Enter")
        link = tab.page.get_by_role("link", name="flask.app.Flask.make_response")
        assert link.get_attribute("href") == "/r/flask/s/flask.app.Flask.make_response"


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
