"""Count absolute imports that a repository has a file for, though under another name.

    lib/shop/cart.py, tests/test_cart.py: from shop.cart import total     misplaced {"lib": 1}
    cart.py, test_cart.py: from shop.cart import total                    at_root {"shop": 1}

The first repository would be built from its folder `lib`, the second one from the folder above it: a build
warns with the command (`run.report`). Rows are not changed by this.

Tests: `tests/unit/run/test_import_warnings.py`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from msgspec import Struct

from codeanatomy.relate.program import Program
from codeanatomy.relate.values.modules import Modules


class OwnImports(Struct, frozen=True):
    """Absolute imports of a repository, without those of the standard library."""

    # Of modules that the repository has.
    resolved: int = 0
    # By first name: of modules that it does not have, and those of them whose second name is at its root.
    foreign: dict[str, int] = {}
    at_root: dict[str, int] = {}
    # By folder: imports that it has a file for, if the folder were a root.
    misplaced: dict[str, int] = {}


def own_imports(programs: Iterable[Program], modules: Modules) -> OwnImports:
    resolved, foreign, at_root, misplaced = 0, Counter[str](), Counter[str](), Counter[str]()
    folders = _folders_by_module(modules.names)
    for program in programs:
        for each in program.imports:
            parts = [*each.module.split("."), *([each.name] if each.name else [])]
            if each.level or parts[0] in sys.stdlib_module_names:
                continue
            name = modules.absolute(program.path, each.module, 0) or each.module
            if modules.has(name.partition(".")[0]):
                resolved += 1
                continue
            foreign[parts[0]] += 1
            known = folders.get((parts[0], parts[1]), ()) if len(parts) > 1 else ()
            misplaced.update(known)
            at_root[parts[0]] += len(parts) > 1 and ("", parts[1]) in folders
    return OwnImports(resolved, dict(foreign), dict(+at_root), dict(misplaced))


def _folders_by_module(paths: Iterable[str]) -> dict[tuple[str, str], set[str]]:
    """Return the folders above a folder and a module or folder in it, by the names of these two.

    >>> _folders_by_module(["lib/shop/cart.py"])
    {('', 'lib'): {''}, ('lib', 'shop'): {''}, ('shop', 'cart'): {'lib'}}
    """
    folders: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        parts = ["", *PurePosixPath(path).with_suffix("").parts]
        for end in range(1, len(parts)):
            folders.setdefault((parts[end - 1], parts[end]), set()).add("/".join(parts[1 : end - 1]))
    return folders
