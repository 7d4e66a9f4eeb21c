"""Derive module names from paths, and resolve imports to modules.

    src/pkg/__init__.py      pkg            `src` is a root, unless it is a package
    src/pkg/core.py          pkg.core
    tools/run.py             tools.run      folders without `__init__.py` are namespace packages
    back/app/__init__.py     app            a package below a plain folder: that folder is a root ...
    ns/part/__init__.py      ns.part        ... unless a file of the repository imports `ns.part`
    core.py                  pkg.core       the root is the package `pkg` (`sources.root_package`)

A module that no root has is looked up beside the importing file, as Python does for scripts; otherwise it is
external. A `.pyi` beside a `.py` is the same module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from codeanatomy.relate.program import Program

INITS = ("__init__.py", "__init__.pyi")
SOURCE_FOLDERS = frozenset({"src"})
STANDARD_LIBRARY = "python-stdlib"


def module_names_by_path(programs: Iterable[Program], package: str = "") -> dict[str, str]:
    """Return the dotted module name of each path of a repository, whose root may be a package."""
    programs = list(programs)
    imported = (
        each.module if each.name is None else f"{each.module}.{each.name}"
        for program in programs
        for each in program.imports
        if each.level == 0
    )
    below = f"{package}/" if package else ""
    names = module_names((below + program.path for program in programs), imported)
    return {path.removeprefix(below): name for path, name in names.items()}


def module_names(paths: Iterable[str], imported: Iterable[str]) -> dict[str, str]:
    """Return the dotted name of each path; imported names decide between alternatives.

    >>> module_names(["src/a/__init__.py", "src/a/b.py", "ns/p/__init__.py"], ["ns.p"])
    {'ns/p/__init__.py': 'ns.p', 'src/a/__init__.py': 'a', 'src/a/b.py': 'a.b'}
    """
    ordered = sorted(set(paths))
    packages = {str(PurePosixPath(path).parent) for path in ordered if PurePosixPath(path).name in INITS}
    imported_names = {
        ".".join(parts[:end])
        for name in imported
        for parts in [name.split(".")]
        for end in range(1, len(parts) + 1)
    }
    return {path: _module_name(path, packages, imported_names) for path in ordered}


def _module_name(path: str, packages: set[str], imported_names: set[str]) -> str:
    pure = PurePosixPath(path)
    folders = list(pure.parts[:-1])
    stem = pure.name.removesuffix(".pyi").removesuffix(".py")
    own = [] if pure.name in INITS else [stem]
    # The folders below index `top` are packages.
    top = len(folders)
    while top > 0 and "/".join(folders[:top]) in packages:
        top -= 1
    in_package = top < len(folders)
    start = top if in_package else _after_source(folders, packages)
    for earlier in range(start):
        parts = folders[earlier : top + 1] if in_package else [*folders[earlier:], *own]
        if ".".join(parts) in imported_names:
            start = earlier
            break
    return ".".join([*folders[start:], *own]) or stem


def _after_source(folders: Sequence[str], packages: set[str]) -> int:
    """Return the index after the last folder named `src` that is no package."""
    for number in range(len(folders), 0, -1):
        if folders[number - 1] in SOURCE_FOLDERS and "/".join(folders[:number]) not in packages:
            return number
    return 0


class Modules:
    """The modules of a repository, by name."""

    def __init__(self, names: Mapping[str, str]) -> None:
        # Module name by path, and paths by module name.
        self.names = names
        self.paths: dict[str, list[str]] = {}
        for path, name in names.items():
            self.paths.setdefault(name, []).append(path)
        for same_name in self.paths.values():
            # A package shadows a module of the same name, and a source file its stub.
            same_name.sort(
                key=lambda path: (path.endswith(".pyi"), PurePosixPath(path).name not in INITS, path)
            )
        self.namespaces = {
            ".".join(name.split(".")[:end]) for name in self.paths for end in range(1, len(name.split(".")))
        }

    def absolute(self, path: str, module: str, level: int) -> str | None:
        """Return the absolute name of an imported module; None if it is above the top-level package."""
        if level == 0:
            return self._resolve_beside(path, module)
        name = self.names[path]
        # Relative imports of a package start from itself.
        package = name if PurePosixPath(path).name in INITS else name.rpartition(".")[0]
        for _ in range(level - 1):
            if not package:
                return None
            package = package.rpartition(".")[0]
        return f"{package}.{module}".strip(".") if package or module else None

    def _resolve_beside(self, path: str, module: str) -> str:
        """Return the module's name below the nearest folder of the file that has it, unless a root has it."""
        first = module.partition(".")[0]
        if self.has(first) or first in sys.stdlib_module_names:
            return module
        parts = self.names[path].split(".")[:-1]
        while parts:
            beside = ".".join([*parts, first])
            if self.has(beside):
                return ".".join([*parts, module])
            parts.pop()
        return module

    def has(self, name: str) -> bool:
        """Whether the repository has a module or namespace package of this name."""
        return name in self.paths or name in self.namespaces


def distribution(name: str) -> str:
    """Return the distribution of an external module; empty if it is not the standard library.

    >>> distribution("os.path"), distribution("numpy")
    ('python-stdlib', '')
    """
    return STANDARD_LIBRARY if name.partition(".")[0] in sys.stdlib_module_names else ""
