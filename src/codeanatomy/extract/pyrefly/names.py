"""Names and places of what a pyrefly report gives numbers.

    Function {module 17, "F:1"}  ->  pkg.use.Holder.go, in pkg/use.py, with the span of `go`

A qualified name is the module's and those of the parents: `pkg.use.outer.nested`. The tool has no module name
for a file that cannot be imported, such as `a-b.py`; there the path stands for it. Positions count from 1,
columns in bytes of UTF-8, of which a byte order mark is three; lines end where CPython's do:

>>> from codeanatomy.sources.source_file import decode
>>> source = decode("a.py", "é = 'x'; é.strip()".encode())
>>> placed(places_of(source), "1:11-1:12"), source.utf8[10:12].decode()
((None, None), 'é')
>>> placed(places_of(source), "1:11-1:21")
(10, 20)

Tests: `tests/unit/extract/test_pyrefly_report.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import TypeAlias

from msgspec import Struct

from codeanatomy.extract.evidence import Problem
from codeanatomy.extract.positions import PositionConverter
from codeanatomy.extract.pyrefly.report import (
    FORMAT_VERSION,
    ClassRef,
    Definition,
    Definitions,
    FunctionRef,
    Module,
    read_part,
)
from codeanatomy.sources.source_file import Source, decode

UNKNOWN_MODULE = "__unknown__"
BOM_COLUMNS = 3
LOCATION = re.compile(r"(\d{1,9}):(\d{1,9})-(\d{1,9}):(\d{1,9})")
# Definitions in definitions; CPython allows a hundred levels of indentation.
MAX_DEPTH = 200
# Files and modules that are kept for the next question.
MAX_KEPT = 256
NOTHING = Definitions(FORMAT_VERSION, {}, {})

Span: TypeAlias = tuple[int | None, int | None]
NO_SPAN: Span = (None, None)


def places_of(source: Source | None) -> PositionConverter:
    """The places of a file, in the tool's units."""
    return PositionConverter(source, "utf8", BOM_COLUMNS)


def placed(places: PositionConverter, location: str) -> Span:
    """The span of a location such as `3:5-3:9`; what cannot be placed is noted in `places`."""
    found = LOCATION.match(location)
    numbers = [] if found is None else [int(number) - 1 for number in found.groups()]
    if not numbers or min(numbers) < 0 or numbers[2:] < numbers[:2]:
        places.malformed.append(numbers)
        return NO_SPAN
    line, col, end_line, end_col = numbers
    bstart, bend = places.at(line, col), places.at(end_line, end_col)
    if bstart is None or bend is None:
        places.unplaced.append((line, col, end_line, end_col))
        return NO_SPAN
    return bstart, bend


class KnownFunction(Struct, frozen=True):
    """A function as rows tell it."""

    module: str
    name: str
    # In the repository; null outside.
    path: str | None
    span: Span = NO_SPAN
    # Whether the report says where its name is, and that is nowhere in the file.
    is_lost: bool = False


class Names:
    """The names of one report; what they need of a module is read when it is first met."""

    def __init__(self, folder: Path, tree: Path, modules: Mapping[int, Module]) -> None:
        self.folder = folder
        self.tree = tree
        self.modules = modules
        self._definitions: dict[int, Definitions] = {}
        self._broken: dict[int, Problem] = {}
        self._places: dict[str, PositionConverter] = {}
        self._functions: dict[tuple[int, str], KnownFunction] = {}
        self._classes: dict[tuple[int, int], str] = {}

    def path_of(self, module: Module) -> str | None:
        """Where the module is in the repository; null outside."""
        place = module.source_path.get("FileSystem")
        lead = f"{self.tree}/"
        return place[len(lead) :] if place is not None and place.startswith(lead) else None

    def part(self, module: Module, folder: str) -> Path:
        """A file of the report; its name cannot lead elsewhere."""
        return self.folder / folder / PurePath(module.info_filename or "missing").name

    def problems(self, met: Iterable[int]) -> list[Problem]:
        """Why the definitions of some of these modules could not be read."""
        found = {self._broken[module_id] for module_id in met if module_id in self._broken}
        return sorted(found, key=lambda problem: (problem.error_type, problem.message))

    def function(self, ref: FunctionRef) -> KnownFunction:
        """A function; by its bare name where the report does not define it."""
        key = ref.module_id, ref.function_id
        if key not in self._functions:
            self._functions[key] = self._function(ref)
        return self._functions[key]

    def class_name(self, ref: ClassRef) -> str:
        """The qualified name of a class; by its bare name where the report does not define it."""
        key = ref.module_id, ref.class_id
        if key not in self._classes:
            definition = self._of(ref.module_id).class_definitions.get(str(ref.class_id))
            inner = ref.class_name if definition is None else self._qualified(ref.module_id, definition)
            self._classes[key] = f"{self._module_name(ref)}.{inner}"
        return self._classes[key]

    def _function(self, ref: FunctionRef) -> KnownFunction:
        module = self.modules.get(ref.module_id)
        path = None if module is None else self.path_of(module)
        name = self._module_name(ref)
        definition = self._of(ref.module_id).function_definitions.get(ref.function_id)
        if definition is None:
            return KnownFunction(name, f"{name}.{ref.function_name}", path)
        full_name = f"{name}.{self._qualified(ref.module_id, definition)}"
        if path is None or definition.name_location is None:
            return KnownFunction(name, full_name, path)
        span = placed(self._places_in(path), definition.name_location)
        return KnownFunction(name, full_name, path, span, span == NO_SPAN)

    def _module_name(self, ref: FunctionRef | ClassRef) -> str:
        """The import name of a module; without one, its path with dots."""
        module = self.modules.get(ref.module_id)
        if module is None:
            return ref.module_name
        path = self.path_of(module) if module.module_name == UNKNOWN_MODULE else None
        if path is None:
            return module.module_name
        return path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")

    def _qualified(self, module_id: int, definition: Definition) -> str:
        """The definition's name after those of its parents."""
        known = self._of(module_id)
        names = [definition.name]
        parent = _parent(known, definition)
        while parent is not None and len(names) < MAX_DEPTH:
            names.append(parent.name)
            parent = _parent(known, parent)
        return ".".join(reversed(names))

    def _of(self, module_id: int) -> Definitions:
        if module_id not in self._definitions:
            module = self.modules.get(module_id)
            read: Definitions | Problem = NOTHING
            if module is not None:
                read = read_part(self.part(module, "definitions"), Definitions)
            if isinstance(read, Problem):
                self._broken[module_id] = read
                read = NOTHING
            if len(self._definitions) >= MAX_KEPT:
                self._definitions.clear()
            self._definitions[module_id] = read
        return self._definitions[module_id]

    def _places_in(self, path: str) -> PositionConverter:
        """The places of another file, which is read again: its rows may be made elsewhere."""
        if path not in self._places:
            try:
                source = decode(path, (self.tree / path).read_bytes())
            except OSError:
                source = None
            if len(self._places) >= MAX_KEPT:
                self._places.clear()
            self._places[path] = places_of(source if isinstance(source, Source) else None)
        return self._places[path]


def _parent(known: Definitions, definition: Definition) -> Definition | None:
    parent = definition.parent
    if isinstance(parent, str):
        return None
    if "Class" in parent:
        return known.class_definitions.get(str(parent["Class"].get("class_id")))
    index = parent.get("Function", {}).get("func_def_index")
    return known.function_definitions.get(f"F:{index}")
