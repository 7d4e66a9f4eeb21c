"""Share a client of the explorer among the tests of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from support.explorer import explorer_client


@pytest.fixture(scope="session")
def client(ask_lake: Path) -> TestClient:
    """Return a client of the lake with flask, shop and depot."""
    return explorer_client(ask_lake)
