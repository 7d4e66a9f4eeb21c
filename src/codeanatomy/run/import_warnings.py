"""Warn about a source whose own imports do not resolve to itself, with the command that would be right.

    build shop/sub, whose files import shop.cart             shop, the package that it is a part of
    build google, whose files import google.cloud            the folder above, because it has no `__init__.py`
    build repo, where repo/lib/shop is imported as shop      repo/lib, the folder that is a root of imports

Tests: `tests/unit/run/test_import_warnings.py`.
"""

from __future__ import annotations

import shlex
from itertools import takewhile
from pathlib import Path

from codeanatomy.relate.own_imports import OwnImports
from codeanatomy.sources.listing import Listing, decode_location


def import_warnings(imports: OwnImports, listing: Listing, repo_id: str, lake: str) -> tuple[str, ...]:
    """Return the warnings about a repository that was solved: at most one, and none about an archive."""
    if listing.kind != "folder":
        return ()
    root = Path(decode_location(listing.root))
    packages = list(takewhile(lambda folder: (folder / "__init__.py").exists(), root.parents))
    if packages and imports.foreign.get(packages[-1].name):
        top = packages[-1]
        what = f"{top.name}, the package that it is a part of,"
        return (_warning(what, imports.foreign[top.name], top.name, top, lake),)
    if imports.at_root.get(root.name):
        what = f"{root.name}, which has no __init__.py,"
        return (_warning(what, imports.at_root[root.name], repo_id, root.parent, lake),)
    folder, count = max(imports.misplaced.items(), key=lambda each: (each[1], each[0]), default=("", 0))
    if count > imports.resolved:
        return (_warning(f"modules in {folder}", count, repo_id, root / folder, lake),)
    return ()


def _warning(what: str, count: int, repo_id: str, source: Path, lake: str) -> str:
    command = shlex.join(("codeanatomy", "build", f"{repo_id}={source}", "--lake", lake))
    imports = f"{count:,} imports of {what} do" if count > 1 else f"1 import of {what} does"
    return f"{imports} not resolve to its files; build it as {command}"
