"""Recognize test code by its path and name: one rule for all verbs.

    is_test("tests/data.py", "tests.data.make")     # True: in a folder of tests
    is_test("pkg/a.py", "pkg.a.TestA.run")          # True: by the name of its class

Tests: `tests/unit/query/test_verb_impact.py`.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

FOLDERS = frozenset({"test", "tests", "_tests"})
# File name without its suffix.
FILE = re.compile(r"test_.*|.*_test|conftest")
# A part of a qualified name: `TestA` or `test_a`, not `Testament`.
NAME = re.compile(r"(^|\.)(test_|Test([A-Z0-9_.]|$))")


def is_test(path: str, name: str) -> bool:
    """Whether a definition is test code, by its path and qualified name.

    >>> is_test("pkg/test_a.pyi", "pkg.test_a.f"), is_test("pkg/latest.py", "pkg.latest.contest")
    (True, False)
    """
    file = PurePosixPath(path)
    in_folder = not FOLDERS.isdisjoint(file.parts[:-1])
    return in_folder or bool(FILE.fullmatch(file.stem)) or bool(NAME.search(name))
