"""Name the folders of the checkout that tests read, and write folders of sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
CASES = TESTS / "cases"


def write_sources(folder: Path, files: Mapping[str, str]) -> Path:
    """Write texts below a folder, by relative path; return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
