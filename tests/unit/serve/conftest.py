"""Share a client of the explorer, and a server with a browser, among tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from starlette.testclient import TestClient

from support.browser import running_browser, running_explorer
from support.explorer import explorer_client


@pytest.fixture(scope="session")
def client(ask_lake: Path) -> TestClient:
    """Return a client of the lake with flask, shop and depot."""
    return explorer_client(ask_lake)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser; skip where there is none."""
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(ask_lake: Path) -> Iterator[str]:
    """Serve the lake with flask, shop and depot; return the address."""
    with running_explorer(ask_lake) as server:
        yield server
