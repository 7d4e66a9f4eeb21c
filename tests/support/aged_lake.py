"""Build a lake of several runs for the tests of maintenance, and move the clock ahead a year."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from codeanatomy.maintain import inspection
from codeanatomy.maintain.retention import RetentionGuard
from support.light_builds import MODERN, clean_lake, refreshed

RUNS = 6


def source(folder: Path, version: int) -> Path:
    """Return the sources of a package whose versions differ in one body."""
    package = folder / "app"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text("class Base:\n    def run(self):\n        return 1\n")
    (package / "user.py").write_text("from app.base import Base\n\n\ndef use():\n    return Base().run()\n")
    (package / "leaf.py").write_text(f"def leaf(x):\n    return x + {version}\n\n\nleaf({version})\n")
    return folder


def build_aged_lake(folder: Path) -> Path:
    """Build a lake of several runs, each of which has changed one file and left deletion vectors."""
    for version in range(RUNS):
        build = refreshed if version else clean_lake
        build(folder / "lake", {"app": source(folder / "src", version)}, MODERN)
    return folder / "lake"


def copied(lake: Path, folder: Path) -> Path:
    """Copy a lake, so that a test may write to it."""
    shutil.copytree(lake, folder / "lake")
    return folder / "lake"


def in_a_year(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let maintenance see files and logs long after they were written."""
    later = datetime.now(UTC) + timedelta(hours=24 * 365)
    monkeypatch.setattr(inspection, "RetentionGuard", lambda root: RetentionGuard(root, later))
