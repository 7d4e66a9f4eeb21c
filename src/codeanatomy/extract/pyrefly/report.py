r"""The format of pyrefly's report of a program: JSON files by module.

    report/pyrefly.pysa.json                    modules by number: name, file, name of the files below
    report/call_graphs/pkg.use:17.json          {"F:1": {"3:5-3:9": {"Call": {"call_targets": [...]}}}}
    report/type_of_expressions/pkg.use:17.json  {"F:1": {"type_table": [...], "locations": {"3:5-3:7": 0}}}
    report/definitions/pkg.use:17.json          functions and classes by number, with their parents

Only what rows need is declared here; msgspec skips the rest. Numbers (of modules, functions, classes) are of
one report and change with every run, so that none may get into a row: see `pyrefly_names`.

The files are the tool's, but their contents follow from a repository. One that is missing, damaged, too large
or of another format version is a `Problem`, not an exception:

>>> read_part(Path("nowhere.json"), Project).message
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


class Part(Struct, frozen=True):
    """Any of the files."""

    format_version: int


class Module(Struct, frozen=True):
    """A module of the program or of what it uses; the key of its path says which."""

    module_name: str
    # None for a module that it did not get to.
    info_filename: str | None
    source_path: dict[str, str]
    failed_to_load: bool = False


class Project(Part, frozen=True):
    """`pyrefly.pysa.json`."""

    modules: dict[int, Module]


class FunctionRef(Struct, frozen=True):
    """A function; the names are for people."""

    module_id: int
    function_id: str
    module_name: str
    function_name: str


class ClassRef(Struct, frozen=True):
    """A class; the names are for people."""

    module_id: int
    class_id: int
    module_name: str
    class_name: str


class Target(Struct, frozen=True):
    """A function that runs: `{"Function": ...}` or `{"Overrides": ...}`; texts are no functions."""

    target: dict[str, FunctionRef] | str
    receiver_class: ClassRef | None = None


class Callees(Struct, frozen=True):
    """What runs at a place: the union of the fields of all its kinds."""

    call_targets: tuple[Target, ...] = ()
    init_targets: tuple[Target, ...] = ()
    new_targets: tuple[Target, ...] = ()
    property_getters: tuple[Target, ...] = ()
    property_setters: tuple[Target, ...] = ()
    # Of a part of a formatted string.
    targets: tuple[Target, ...] = ()
    # Of an argument: its place.
    index: int | None = None
    higher_order_parameters: dict[str, Callees] = {}
    # Of a name or an attribute that is not called here.
    if_called: Callees | None = None
    unresolved: dict[str, str] | str | None = None


class CallGraphs(Part, frozen=True):
    """By function, by place, by kind."""

    call_graphs: dict[str, dict[str, dict[str, Callees]]]


class TypeClass(Struct, frozen=True):
    """A class in a type, and how it occurs there."""

    class_ref: ClassRef = field(name="class")
    modifiers: tuple[str, ...] = ()


class TypeClasses(Struct, frozen=True):
    """The classes of a type."""

    classes: tuple[TypeClass, ...]
    is_exhaustive: bool = False


class KnownType(Struct, frozen=True):
    """A type."""

    string: str
    class_names: TypeClasses | None = None


class TypeTable(Struct, frozen=True):
    """Types of a function's expressions, by number, and the number at each place."""

    type_table: tuple[KnownType, ...]
    locations: dict[str, int]


class Types(Part, frozen=True):
    """By function."""

    functions: dict[str, TypeTable]


class Definition(Struct, frozen=True):
    """A function or class; one that no statement defines has no location."""

    name: str
    # A word at the top level, else the id by kind: a class_id of a Class, a func_def_index of a Function.
    parent: str | dict[str, dict[str, int]]
    name_location: str | None = None


class Definitions(Part, frozen=True):
    """By id."""

    function_definitions: dict[str, Definition]
    class_definitions: dict[str, Definition]


PartT = TypeVar("PartT", bound=Part)


def read_part(path: Path, kind: type[PartT]) -> PartT | Problem:
    """A file of the report, or why it cannot be had."""
    try:
        size = path.stat().st_size
        if size > MAX_PART_BYTES:
            return _problem("too_large", f"{path.name} has {size} bytes, more than {MAX_PART_BYTES}")
        raw = path.read_bytes()
    except OSError as problem:
        return _problem("unreadable", f"{path.name}: {problem.strerror}")
    try:
        # First, because another format may have any shape.
        version = json.decode(raw, type=Part).format_version
        if version != FORMAT_VERSION:
            said = f"{path.name} has format version {version}, known is {FORMAT_VERSION}"
            return _problem("unknown_format", said)
        return json.decode(raw, type=kind)
    except (DecodeError, UnicodeDecodeError, RecursionError) as problem:
        return _problem("corrupt_report", f"{path.name}: {problem}")


def _problem(error_type: str, said: str) -> Problem:
    return Problem("error", "read", error_type, said[:MESSAGE_CHARS])
