"""Paths and names that README.md and docs/ mention exist.

`delta/read/scan.py`, `run/build.py:build`, `tests/unit/delta/test_policy.py`
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from support.folders import ROOT

PACKAGE = ROOT / "src" / "codeanatomy"
# Other paths are those of analysed repositories.
OURS = {path.name for folder in (PACKAGE, ROOT) for path in folder.iterdir()} | {"storage", "commands"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
REFERENCE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.py)(?::([A-Za-z_]\w*))?`")


def names_in(path: Path) -> set[str]:
    """Functions, classes and constants of a module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    return names


def test_paths_and_names_on_pages_exist() -> None:
    missing = []
    for page in PAGES:
        for path, name in REFERENCE.findall(page.read_text(encoding="utf-8")):
            places = [folder / path for folder in (PACKAGE, ROOT) if (folder / path).is_file()]
            if not places and path.split("/")[0] in OURS:
                missing.append(f"{page.name}: {path}")
            elif name and not any(name in names_in(place) for place in places):
                missing.append(f"{page.name}: {path}:{name}")
    assert missing == []


def test_the_map_lists_every_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert listed == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_the_glossary_is_short_and_sorted() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([a-z][\w -]*) \|", page, re.MULTILINE)[1:]
    assert terms == sorted(terms)
    assert 30 <= len(terms) <= 40
