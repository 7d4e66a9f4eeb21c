"""Hash the code that the rows of a step depend on: its package, and what this imports.

>>> sorted(path for path in code_files("normalize") if path.startswith("normalize/types"))[:2]
['normalize/types/__init__.py', 'normalize/types/names.py']
>>> "file_view.py" in code_files("normalize"), "graph/rows.py" in code_files("normalize")
(True, False)

Imports are read from the text of the modules, without importing them, wherever they stand: a module that is
imported in a function belongs to the code as well. So no list of modules can become stale. Declarations of
tables and settings are left out, because the contracts and settings that change rows have hashes of their own
(`plan.steps`); two modules of them stay, whose constants decide rows. What carries rows from one step to the
next, and decides which files are redone, belongs to the code of every step, without its imports: it maps the
functions of all steps.

Tests: `tests/unit/plan/test_step_code.py`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import codeanatomy

# Packages and modules of all steps, and those of each.
DRIVERS = ("pipeline", "plan/feeds.py", "lake/cursors.py", "delta/light_feed.py")
PACKAGES = {
    "extract": ("extract", "sources"),
    "normalize": ("normalize",),
    "relate": ("relate",),
    "graph": ("graph", "catalog/kinds", "catalog/entry_points.py"),
}
# What no step's code includes.
DECLARED = re.compile(r"catalog/(?!kinds|tables/(?:columns|extract)\.py)|config\.py")
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+codeanatomy([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)"
    r"|import[ \t]+codeanatomy([\w.]*))",
    re.MULTILINE,
)
ROOT = Path(codeanatomy.__file__).parent


@cache
def code_digest(step: str) -> str:
    """Hash the modules that a step uses, and the files of data beside them."""
    whole = hashlib.sha256()
    for path in sorted(code_files(step)):
        whole.update(f"{path} {hashlib.sha256((ROOT / path).read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()[:32]


@cache
def code_files(step: str) -> frozenset[str]:
    """Return the paths of the files that the rows of a step depend on, relative to the package."""
    files = {path for part in (*DRIVERS, *PACKAGES[step]) for path in _files_below(part)}
    waiting = [path for part in PACKAGES[step] for path in _files_below(part)]
    while waiting:
        for path in _imported(waiting.pop()):
            if path not in files and not DECLARED.match(path):
                files.add(path)
                waiting.append(path)
    return frozenset(files)


def _files_below(part: str) -> list[str]:
    """Return a module, or all files of a package but compiled ones."""
    if part.endswith(".py"):
        return [part]
    files = (path for path in (ROOT / part).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [path.relative_to(ROOT).as_posix() for path in files]


def _imported(path: str) -> Iterator[str]:
    """Yield the modules of ours that a module imports; those that its package imports are its own matter."""
    if not path.endswith(".py"):
        return
    for package, names, module in IMPORT.findall((ROOT / path).read_text(encoding="utf-8")):
        base = (package or module).strip(".").replace(".", "/")
        without_comments = re.sub("#.*", "", names).strip("()")
        listed = (name.split()[0] for name in without_comments.split(",") if name.split())
        for each in (base, *(f"{base}/{name}".strip("/") for name in listed)):
            for module_path in (f"{each}.py", f"{each}/__init__.py"):
                if each and (ROOT / module_path).is_file():
                    yield module_path
