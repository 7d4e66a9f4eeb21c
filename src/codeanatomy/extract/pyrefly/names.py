"""Resolve the numbers in a pyrefly report to qualified names and spans.

    Function {module 17, "F:1"}  ->  pkg.use.Holder.go, in pkg/use.py, with the span of `go`

A qualified name has the names of the module and of the parents: `pkg.use.outer.nested`. The tool has no
module name for a file that cannot be imported, such as `a-b.py`; then its path is used. Positions are counted
from 1, columns in bytes of UTF-8, of which a byte order mark has three; lines end where CPython's do:

>>> from codeanatomy.sources.source_file import decode
>>> source = decode("a.py", "é = 'x'; é.strip()".encode())
>>> span_of(positions_in(source), "1:11-1:12"), source.utf8[10:12].decode()
((None, None), 'é')
>>> span_of(positions_in(source), "1:11-1:21")
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
    FunctionRef,
    ModuleDefinitions,
    ReportedDefinition,
    ReportedModule,
    read_report_file,
)
from codeanatomy.sources.source_file import Source, decode

UNKNOWN_MODULE = "__unknown__"
BOM_COLUMNS = 3
LOCATION = re.compile(r"(\d{1,9}):(\d{1,9})-(\d{1,9}):(\d{1,9})")
# Limit for nested definitions; CPython allows a hundred levels of indentation.
MAX_DEPTH = 200
# Files and modules that are cached.
MAX_CACHED = 256
NO_DEFINITIONS = ModuleDefinitions(FORMAT_VERSION, {}, {})

Span: TypeAlias = tuple[int | None, int | None]
NO_SPAN: Span = (None, None)


def positions_in(source: Source | None) -> PositionConverter:
    """Return the converter for positions of a file in the tool's units."""
    return PositionConverter(source, "utf8", BOM_COLUMNS)


def span_of(positions: PositionConverter, location: str) -> Span:
    """Convert a location such as `3:5-3:9` to a span; record it in `positions` if it cannot be converted."""
    match = LOCATION.match(location)
    numbers = [] if match is None else [int(number) - 1 for number in match.groups()]
    if not numbers or min(numbers) < 0 or numbers[2:] < numbers[:2]:
        positions.malformed.append(numbers)
        return NO_SPAN
    line, col, end_line, end_col = numbers
    bstart, bend = positions.offset_at(line, col), positions.offset_at(end_line, end_col)
    if bstart is None or bend is None:
        positions.unplaced.append((line, col, end_line, end_col))
        return NO_SPAN
    return bstart, bend


class TargetFunction(Struct, frozen=True):
    """A function with the names and the span that rows need."""

    module: str
    name: str
    # In the repository; None outside of it.
    path: str | None
    span: Span = NO_SPAN
    # Whether the location of its name in the report is not in the file.
    is_misplaced: bool = False


class ReportNames:
    """The names of one report; the definitions of a module are read when they are first needed."""

    def __init__(self, folder: Path, tree: Path, modules: Mapping[int, ReportedModule]) -> None:
        self.folder = folder
        self.tree = tree
        self.modules = modules
        self._definitions: dict[int, ModuleDefinitions] = {}
        self._problems: dict[int, Problem] = {}
        self._positions: dict[str, PositionConverter] = {}
        self._functions: dict[tuple[int, str], TargetFunction] = {}
        self._classes: dict[tuple[int, int], str] = {}

    def path_of(self, module: ReportedModule) -> str | None:
        """Return the path of a module in the repository; None outside of it."""
        path = module.source_path.get("FileSystem")
        prefix = f"{self.tree}/"
        return path[len(prefix) :] if path is not None and path.startswith(prefix) else None

    def report_file(self, module: ReportedModule, folder: str) -> Path:
        """Return the path of a module's file of the report; its name cannot lead out of the folder."""
        return self.folder / folder / PurePath(module.info_filename or "missing").name

    def problems(self, module_ids: Iterable[int]) -> list[Problem]:
        """Return why the definitions of some of these modules could not be read."""
        problems = {self._problems[module_id] for module_id in module_ids if module_id in self._problems}
        return sorted(problems, key=lambda problem: (problem.error_type, problem.message))

    def function(self, ref: FunctionRef) -> TargetFunction:
        """Resolve a function; without its parents if the report does not define it."""
        key = ref.module_id, ref.function_id
        if key not in self._functions:
            self._functions[key] = self._function(ref)
        return self._functions[key]

    def class_name(self, ref: ClassRef) -> str:
        """Return the qualified name of a class; without its parents if the report does not define it."""
        key = ref.module_id, ref.class_id
        if key not in self._classes:
            definition = self._definitions_of(ref.module_id).class_definitions.get(str(ref.class_id))
            inner = ref.class_name if definition is None else self._local_name(ref.module_id, definition)
            self._classes[key] = f"{self._module_name(ref)}.{inner}"
        return self._classes[key]

    def _function(self, ref: FunctionRef) -> TargetFunction:
        module = self.modules.get(ref.module_id)
        path = None if module is None else self.path_of(module)
        name = self._module_name(ref)
        definition = self._definitions_of(ref.module_id).function_definitions.get(ref.function_id)
        if definition is None:
            return TargetFunction(name, f"{name}.{ref.function_name}", path)
        full_name = f"{name}.{self._local_name(ref.module_id, definition)}"
        if path is None or definition.name_location is None:
            return TargetFunction(name, full_name, path)
        span = span_of(self._positions_in_file(path), definition.name_location)
        return TargetFunction(name, full_name, path, span, span == NO_SPAN)

    def _module_name(self, ref: FunctionRef | ClassRef) -> str:
        """Return the import name of a module; if it has none, its path with dots."""
        module = self.modules.get(ref.module_id)
        if module is None:
            return ref.module_name
        path = self.path_of(module) if module.module_name == UNKNOWN_MODULE else None
        if path is None:
            return module.module_name
        return path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")

    def _local_name(self, module_id: int, definition: ReportedDefinition) -> str:
        """Return the definition's name after those of its parents, without the module."""
        definitions = self._definitions_of(module_id)
        names = [definition.name]
        parent = _parent(definitions, definition)
        while parent is not None and len(names) < MAX_DEPTH:
            names.append(parent.name)
            parent = _parent(definitions, parent)
        return ".".join(reversed(names))

    def _definitions_of(self, module_id: int) -> ModuleDefinitions:
        if module_id not in self._definitions:
            module = self.modules.get(module_id)
            definitions: ModuleDefinitions | Problem = NO_DEFINITIONS
            if module is not None:
                definitions = read_report_file(self.report_file(module, "definitions"), ModuleDefinitions)
            if isinstance(definitions, Problem):
                self._problems[module_id] = definitions
                definitions = NO_DEFINITIONS
            if len(self._definitions) >= MAX_CACHED:
                self._definitions.clear()
            self._definitions[module_id] = definitions
        return self._definitions[module_id]

    def _positions_in_file(self, path: str) -> PositionConverter:
        """Return the converter for another file, which is read here: another task may build its rows."""
        if path not in self._positions:
            try:
                source = decode(path, (self.tree / path).read_bytes())
            except OSError:
                source = None
            if len(self._positions) >= MAX_CACHED:
                self._positions.clear()
            self._positions[path] = positions_in(source if isinstance(source, Source) else None)
        return self._positions[path]


def _parent(definitions: ModuleDefinitions, definition: ReportedDefinition) -> ReportedDefinition | None:
    parent = definition.parent
    if isinstance(parent, str):
        return None
    if "Class" in parent:
        return definitions.class_definitions.get(str(parent["Class"].get("class_id")))
    index = parent.get("Function", {}).get("func_def_index")
    return definitions.function_definitions.get(f"F:{index}")
