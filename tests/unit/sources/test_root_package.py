"""The package that the root of a source is, and the names of its modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.root_package import root_package
from support.archives import zip_bytes

INIT = "__init__.py"

# The name of the folder and that of the repository, its files, and the package that it is.
CASES: dict[str, tuple[str, str, dict[str, str], str]] = {
    "no package": ("shop", "shop", {"cart.py": "import shop.cart"}, ""),
    "a package": ("shop", "shop", {INIT: "", "cart.py": ""}, "shop"),
    "a package of stubs": ("shop", "shop", {"__init__.pyi": "", "cart.pyi": ""}, "shop"),
    "no identifier": ("my-shop", "my-shop", {INIT: ""}, ""),
    "a keyword": ("class", "class", {INIT: ""}, ""),
    "a version in its name": ("shop-1.10.2", "x-y", {INIT: ""}, "shop"),
    "a checkout named as the repository": (
        "a1b2",
        "org/shop@1.0",
        {INIT: "import shop.cart"},
        "shop",
    ),
    "a repository with another name": (
        "shop",
        "core",
        {INIT: "", "a.py": "from shop.b import c"},
        "shop",
    ),
    "relative imports only": ("shop", "core", {INIT: "from .a import b", "a.py": ""}, "shop"),
    "a stray file": ("shop", "shop", {INIT: "", "main.py": "from app.x import y", "app/x.py": ""}, ""),
    "modules named as others outside": (
        "shop",
        "shop",
        {INIT: "", "json.py": "import json, typing", "a.py": "import requests"},
        "shop",
    ),
    "an init that is a folder": ("shop", "shop", {"__init__.py/a.py": ""}, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_root_with_an_init_is_the_package_of_its_name(case: str, tmp_path: Path) -> None:
    folder, repo_id, files, expected = CASES[case]
    for path, text in files.items():
        file = tmp_path / folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    archive = tmp_path / f"{folder}.zip"
    archive.write_bytes(zip_bytes((path, text.encode()) for path, text in files.items()))
    for source in (tmp_path / folder, archive):
        options = ExtractOptions()
        assert root_package(list_source(source, options), repo_id, options) == expected, source
