r"""Read the files of pyrefly's report: JSON files by module.

    report/pyrefly.pysa.json                    modules by number: name, source file, name of the files below
    report/call_graphs/pkg.use:17.json          {"F:1": {"3:5-3:9": {"Call": {"call_targets": [...]}}}}
    report/type_of_expressions/pkg.use:17.json  {"F:1": {"type_table": [...], "locations": {"3:5-3:7": 0}}}
    report/definitions/pkg.use:17.json          functions and classes by number, with their parents

Only the fields that rows need are declared here; msgspec skips the rest. Numbers (of modules, functions,
classes) are valid in one report and change with every run, so none may get into a row: see `pyrefly.names`.

The tool writes the files, but their contents depend on an untrusted repository. One that is missing, damaged,
too large or of another format version is a `Problem`, not an exception:

>>> read_report_file(Path("nowhere.json"), Project).message
'nowhere.json: No such file or directory'

Tests: `tests/unit/extract/test_pyrefly_report.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from msgspec import DecodeError, Struct, field, json

from codeanatomy.extract.evidence import MESSAGE_CHARS, Problem

FORMAT_VERSION = 1
PROJECT = "pyrefly.pysa.json"
MAX_PART_BYTES = 256 * 1024 * 1024


class ReportFile(Struct, frozen=True):
    """Any file of the report."""

    format_version: int


class ReportedModule(Struct, frozen=True):
    """A module of the repository or of its dependencies; the key in `source_path` distinguishes them."""

    module_name: str
    # None for a module that was not checked.
    info_filename: str | None
    source_path: dict[str, str]
    failed_to_load: bool = False


class Project(ReportFile, frozen=True):
    """The file `pyrefly.pysa.json`: the modules by number."""

    modules: dict[int, ReportedModule]


class FunctionRef(Struct, frozen=True):
    """A reference to a function by number; the names are not unique."""

    module_id: int
    function_id: str
    module_name: str
    function_name: str


class ClassRef(Struct, frozen=True):
    """A reference to a class by number; the names are not unique."""

    module_id: int
    class_id: int
    module_name: str
    class_name: str


class CallTarget(Struct, frozen=True):
    """A function that is called: `{"Function": ...}` or `{"Overrides": ...}`; a text is not a function."""

    target: dict[str, FunctionRef] | str
    receiver_class: ClassRef | None = None


class Callees(Struct, frozen=True):
    """The callees at a location: the union of the fields of all kinds of them."""

    call_targets: tuple[CallTarget, ...] = ()
    init_targets: tuple[CallTarget, ...] = ()
    new_targets: tuple[CallTarget, ...] = ()
    property_getters: tuple[CallTarget, ...] = ()
    property_setters: tuple[CallTarget, ...] = ()
    # For a part of a formatted string.
    targets: tuple[CallTarget, ...] = ()
    # For an argument: its position.
    index: int | None = None
    higher_order_parameters: dict[str, Callees] = {}
    # For a name or an attribute that is not called here.
    if_called: Callees | None = None
    unresolved: dict[str, str] | str | None = None


class ModuleCallGraphs(ReportFile, frozen=True):
    """Callees by function, location and kind."""

    call_graphs: dict[str, dict[str, dict[str, Callees]]]


class TypeClass(Struct, frozen=True):
    """A class in a type, and the modifiers around it."""

    class_ref: ClassRef = field(name="class")
    modifiers: tuple[str, ...] = ()


class TypeClasses(Struct, frozen=True):
    """The classes of a type."""

    classes: tuple[TypeClass, ...]
    is_exhaustive: bool = False


class KnownType(Struct, frozen=True):
    """The type of an expression."""

    string: str
    class_names: TypeClasses | None = None


class TypeTable(Struct, frozen=True):
    """Types of a function's expressions, and the index of the type at each location."""

    type_table: tuple[KnownType, ...]
    locations: dict[str, int]


class ModuleTypes(ReportFile, frozen=True):
    """Types of expressions by function."""

    functions: dict[str, TypeTable]


class ReportedDefinition(Struct, frozen=True):
    """A function or class; one that is not defined by a statement has no location."""

    name: str
    # A string at the top level, else the id by kind: a class_id of a Class, a func_def_index of a Function.
    parent: str | dict[str, dict[str, int]]
    name_location: str | None = None


class ModuleDefinitions(ReportFile, frozen=True):
    """Functions and classes by id."""

    function_definitions: dict[str, ReportedDefinition]
    class_definitions: dict[str, ReportedDefinition]


FileT = TypeVar("FileT", bound=ReportFile)


def read_report_file(path: Path, kind: type[FileT]) -> FileT | Problem:
    """Read a file of the report, or return why that is not possible."""
    try:
        size = path.stat().st_size
        if size > MAX_PART_BYTES:
            return _problem("too_large", f"{path.name} has {size} bytes, more than {MAX_PART_BYTES}")
        raw = path.read_bytes()
    except OSError as problem:
        return _problem("unreadable", f"{path.name}: {problem.strerror}")
    try:
        # Check the version first, because another format may have any structure.
        version = json.decode(raw, type=ReportFile).format_version
        if version != FORMAT_VERSION:
            message = f"{path.name} has format version {version}, known is {FORMAT_VERSION}"
            return _problem("unknown_format", message)
        return json.decode(raw, type=kind)
    except (DecodeError, UnicodeDecodeError, RecursionError) as problem:
        return _problem("corrupt_report", f"{path.name}: {problem}")


def _problem(error_type: str, message: str) -> Problem:
    return Problem("error", "read", error_type, message[:MESSAGE_CHARS])
