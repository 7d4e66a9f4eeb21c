"""Warnings about sources whose own imports do not resolve to themselves, and the command that is right."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from support.edits import write_tree
from support.light_builds import clean_lake
from support.marks import quick

# What is built, and the source of the command in the warning; None: there is none.
CASES: dict[str, tuple[dict[str, str], str, str | None]] = {
    "a part of a package": (
        {"shop/__init__.py": "", "shop/cart.py": "", "shop/sub/__init__.py": "from shop.cart import total"},
        "shop/sub",
        "shop=shop",
    ),
    "a namespace package": (
        {"ns/a/__init__.py": "from ns.b import one", "ns/b/__init__.py": "one = 1"},
        "ns",
        "app=.",
    ),
    "a root of imports below the root": (
        {"repo/lib/shop/cart.py": "", "repo/tests/test_cart.py": "from shop.cart import total"},
        "repo",
        "app=repo/lib",
    ),
    "the package itself": (
        {"shop/__init__.py": "from shop.cart import total", "shop/cart.py": ""},
        "shop",
        None,
    ),
    "another distribution with the same module": (
        {
            "shop/main.py": "from requests.errors import Error\nfrom lib.vendor import requests\n",
            "shop/lib/vendor/requests/errors.py": "",
        },
        "shop",
        None,
    ),
}


@pytest.mark.parametrize("case", quick(CASES, 0, 3))
def test_a_source_that_does_not_import_itself_has_a_warning(case: str, tmp_path: Path) -> None:
    files, built, right = CASES[case]
    write_tree(tmp_path, {path: text.encode() for path, text in files.items()})
    report = clean_lake(tmp_path / "lake", {"app": tmp_path / built}, types="off")
    warnings = report.repositories["app"].warnings
    if right is None:
        assert warnings == ()
        return
    (warning,) = warnings
    assert warning.startswith("1 import of ")
    assert " does not resolve to its files; " in warning
    name, _, source = shlex.split(warning.partition("build it as ")[2])[2].partition("=")
    assert f"{name}={Path(source).relative_to(tmp_path)}" == right
    again = clean_lake(tmp_path / "again", {name: Path(source)}, types="off")
    assert again.repositories[name].warnings == ()
