"""Names of modules from paths, and what an import leads to.

    src/pkg/__init__.py      pkg            `src` is a root, unless it is a package
    src/pkg/core.py          pkg.core
    tools/run.py             tools.run      folders without `__init__.py` are namespace packages
    back/app/__init__.py     app            a package in a folder that is none: that folder is a root ...
    ns/part/__init__.py      ns.part        ... unless something in the repository imports `ns.part`

What no root has is looked for beside the importing file, as a script finds its neighbours, and else is
outside. A `.pyi` beside a `.py` is the same module. Tests: `tests/unit/relate/test_modules.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

INITS = ("__init__.py", "__init__.pyi")
SOURCE_FOLDERS = frozenset({"src"})
STANDARD_LIBRARY = "python-stdlib"


def module_names(paths: Iterable[str], imported: Iterable[str]) -> dict[str, str]:
    """The dotted name of each path; what is imported decides between readings.

    >>> module_names(["src/a/__init__.py", "src/a/b.py", "ns/p/__init__.py"], ["ns.p"])
    {'ns/p/__init__.py': 'ns.p', 'src/a/__init__.py': 'a', 'src/a/b.py': 'a.b'}
    """
    ordered = sorted(set(paths))
    packages = {str(PurePosixPath(path).parent) for path in ordered if PurePosixPath(path).name in INITS}
    wanted = {
        ".".join(parts[:end])
        for name in imported
        for parts in [name.split(".")]
        for end in range(1, len(parts) + 1)
    }
    return {path: _name(path, packages, wanted) for path in ordered}


def _name(path: str, packages: set[str], wanted: set[str]) -> str:
    pure = PurePosixPath(path)
    folders = list(pure.parts[:-1])
    stem = pure.name.removesuffix(".pyi").removesuffix(".py")
    own = [] if pure.name in INITS else [stem]
    # From this folder on all are packages.
    top = len(folders)
    while top > 0 and "/".join(folders[:top]) in packages:
        top -= 1
    in_package = top < len(folders)
    start = top if in_package else _after_source(folders, packages)
    for longer in range(start):
        reading = folders[longer : top + 1] if in_package else [*folders[longer:], *own]
        if ".".join(reading) in wanted:
            start = longer
            break
    return ".".join([*folders[start:], *own]) or stem


def _after_source(folders: Sequence[str], packages: set[str]) -> int:
    """After the last folder named `src` that is no package."""
    for number in range(len(folders), 0, -1):
        if folders[number - 1] in SOURCE_FOLDERS and "/".join(folders[:number]) not in packages:
            return number
    return 0


class Modules:
    """The modules of a repository, by name."""

    def __init__(self, names: Mapping[str, str]) -> None:
        # By path.
        self.names = names
        self.paths: dict[str, list[str]] = {}
        for path, name in names.items():
            self.paths.setdefault(name, []).append(path)
        for found in self.paths.values():
            # A package hides a module of its name, and code the stub of it.
            found.sort(key=lambda path: (path.endswith(".pyi"), PurePosixPath(path).name not in INITS, path))
        self.namespaces = {
            ".".join(name.split(".")[:end]) for name in self.paths for end in range(1, len(name.split(".")))
        }

    def package(self, path: str) -> str:
        """The package that relative imports of a file begin in."""
        name = self.names[path]
        return name if PurePosixPath(path).name in INITS else name.rpartition(".")[0]

    def absolute(self, path: str, module: str, level: int) -> str | None:
        """The absolute name of what a file imports; None if it leads above all packages."""
        if level == 0:
            return self._beside(path, module)
        package = self.package(path)
        for _ in range(level - 1):
            if not package:
                return None
            package = package.rpartition(".")[0]
        return f"{package}.{module}".strip(".") if package or module else None

    def _beside(self, path: str, module: str) -> str:
        """A module that no root has may stand beside the file."""
        first = module.partition(".")[0]
        if self.has(first) or first in sys.stdlib_module_names:
            return module
        parts = self.names[path].split(".")[:-1]
        while parts:
            near = ".".join([*parts, first])
            if self.has(near):
                return ".".join([*parts, module])
            parts.pop()
        return module

    def has(self, name: str) -> bool:
        """Whether a module or namespace package is of the repository."""
        return name in self.paths or name in self.namespaces


def distribution(name: str) -> str:
    """Where a module outside of the repository comes from, as far as that is known.

    >>> distribution("os.path"), distribution("numpy")
    ('python-stdlib', '')
    """
    return STANDARD_LIBRARY if name.partition(".")[0] in sys.stdlib_module_names else ""
