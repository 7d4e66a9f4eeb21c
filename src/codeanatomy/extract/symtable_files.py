r"""Extract CPython's symbol tables: every scope, and the compiler's flags of each name in it.

>>> from codeanatomy.catalog.settings import ExtractOptions
>>> from codeanatomy.sources.source_file import Source
>>> text = "class A:\n    def __f(self): return lambda: self\n"
>>> result = symtable_files_v1(Source("a.py", text.encode(), text, "utf-8", False), ExtractOptions())
>>> blocks = result.cells["blocks"]
>>> for key, symbols in zip(blocks["scope_key"], blocks["symbols"]):
...     print(key, symbols["name"], symbols["is_free"], symbols["namespaces"])
module:top@0#0 ['A'] [False] [['module:top@0#0/class:A@1#0']]
module:top@0#0/class:A@1#0 ['_A__f'] [False] [['module:top@0#0/class:A@1#0/function:__f@2#0']]
module:top@0#0/class:A@1#0/function:__f@2#0 ['self'] [False] [[]]
module:top@0#0/class:A@1#0/function:__f@2#0/function:lambda@2#0 ['self'] [True] [[]]

A scope's key is the key of the enclosing one and `type:name@line#n`, where n counts the scopes of that type,
name and line among their siblings. The compiler's own entries are read, because the objects of the `symtable`
module search all children of a scope for each of its symbols; but that module decodes each combination of
flags and each number of a type, once. We deviate from it in three cases where it is wrong:

- A function or class called `top` is not the module: its locals are not global.
- A private name is bound by its definition: `_A__f` above is a namespace, though the scope is called `__f`.
- A comprehension does not bind a name `genexpr` or `listcomp`, and neither it nor a lambda or a class is a
  method; before Python 3.13 `Class.get_methods` returns the names of all scopes in the class.

Parameters are in the compiler's order: by position, keyword-only, `*args`, `**kwargs`. The lists of a
function are null for other scopes, methods for all but classes. Scopes of annotations and type parameters
appear where the interpreter has them.

Tests: `tests/unit/extract/test_symtable_files.py`.
"""

from __future__ import annotations

import symtable
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from itertools import compress
from typing import Any, TypeAlias

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import ExtractorResult, problem_from
from codeanatomy.sources.source_file import Source

VERSION = f"symtable, python {sys.version_info.major}.{sys.version_info.minor}, rules 1"
# Exceptions of CPython for a file that is invalid or nested too deeply.
PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError)
FILENAME = "<file>"

Columns: TypeAlias = dict[str, list[Any]]
# The compiler's `symtable entry`; its `symbols` are flags by name, its `varnames` the parameters.
TableEntry: TypeAlias = Any

BLOCK_FIELDS = ("scope_key", "parent_key", "type", "name", "lineno", "is_nested", "is_optimized", "symbols")
LIST_FIELDS = ("parameters", "locals", "globals", "nonlocals", "frees", "methods")
# Columns of a symbol that are methods of `symtable.Symbol`; those of a newer Python are false in an older
# one.
FLAGS = (
    "is_referenced",
    "is_imported",
    "is_parameter",
    "is_type_parameter",
    "is_global",
    "is_nonlocal",
    "is_declared_global",
    "is_local",
    "is_annotated",
    "is_free",
    "is_assigned",
)
PARTITIONS = {"locals": "is_local", "globals": "is_global", "nonlocals": "is_nonlocal", "frees": "is_free"}


def symtable_files_v1(source: Source, options: ExtractOptions) -> ExtractorResult:
    """Extract the scopes of a file; only a problem if the compiler rejects it."""
    with warnings.catch_warnings():
        # The bytecode extractor records them.
        warnings.simplefilter("ignore")
        try:
            top = symtable.symtable(source.text, FILENAME, "exec")
        except PARSE_ERRORS as error:
            return ExtractorResult({}, (problem_from(source, "symtable", error),))
    # The public objects would search every child for every symbol.
    return ExtractorResult({"blocks": _blocks(top._table)})  # type: ignore[attr-defined]  # noqa: SLF001


def _blocks(top: TableEntry) -> Columns:
    """Return the columns of all scopes, in preorder."""
    blocks: Columns = {field: [] for field in (*BLOCK_FIELDS, *LIST_FIELDS)}
    stack: list[tuple[TableEntry, str | None, str, str | None]] = [(top, None, f"{_label(top)}#0", None)]
    while stack:
        entry, parent_key, key, class_name = stack.pop()
        kind, is_optimized = _type(entry)
        # Names are mangled with the innermost class around them.
        class_name = entry.name if kind == "class" else class_name
        children = entry.children
        keys = _child_keys(key, children)
        bound: dict[str, list[str]] = {}
        for child, child_key in zip(children, keys, strict=True):
            if _is_definition(child):
                bound.setdefault(_mangle(child.name, class_name), []).append(child_key)
        symbols = _symbols(entry.symbols, kind == "module", bound)
        row = (key, parent_key, kind, entry.name, entry.lineno, bool(entry.nested), is_optimized, symbols)
        for field, cell in zip(BLOCK_FIELDS, row, strict=True):
            blocks[field].append(cell)
        lists = _lists(kind, entry, symbols, class_name)
        for field in LIST_FIELDS:
            blocks[field].append(lists.get(field))
        inner = [(child, key, child_key, class_name) for child, child_key in zip(children, keys, strict=True)]
        stack.extend(reversed(inner))
    return blocks


def _label(entry: TableEntry) -> str:
    return f"{_type(entry)[0]}:{entry.name}@{entry.lineno}"


def _child_keys(key: str, children: list[TableEntry]) -> list[str]:
    """Return the keys of the scopes in a scope; equal labels, as of two lambdas on a line, are numbered."""
    counts: Counter[str] = Counter()
    keys = []
    for child in children:
        label = _label(child)
        keys.append(f"{key}/{label}#{counts[label]}")
        counts[label] += 1
    return keys


_TYPES: dict[int, tuple[str, bool]] = {}


def _type(entry: TableEntry) -> tuple[str, bool]:
    """Return the type of a scope as the `symtable` module names it, and whether its locals are fast."""
    number = entry.type
    if number not in _TYPES:
        table = symtable.SymbolTable(entry, FILENAME)
        _TYPES[number] = str(table.get_type()), table.is_optimized()
    return _TYPES[number]


class _DecodedFlags(dict[tuple[int, bool], tuple[bool, ...]]):
    """Booleans in the order of `FLAGS`, by the compiler's flags and whether the scope is the module."""

    def __missing__(self, key: tuple[int, bool]) -> tuple[bool, ...]:
        symbol = symtable.Symbol("", key[0], module_scope=key[1])
        decoded = self[key] = tuple(bool(getattr(symbol, flag, bool)()) for flag in FLAGS)
        return decoded


_DECODED_FLAGS = _DecodedFlags()


def _symbols(flags_by_name: Mapping[str, int], is_module: bool, bound: Mapping[str, list[str]]) -> Columns:
    names = sorted(flags_by_name)
    decoded = [_DECODED_FLAGS[flags_by_name[name], is_module] for name in names]
    flags = zip(*decoded, strict=True) if names else [()] * len(FLAGS)
    columns: Columns = {flag: list(values) for flag, values in zip(FLAGS, flags, strict=True)}
    columns["name"] = names
    columns["is_namespace"] = [name in bound for name in names]
    columns["namespaces"] = [bound.get(name, []) for name in names]
    return columns


def _lists(kind: str, entry: TableEntry, symbols: Columns, class_name: str | None) -> Columns:
    """Return the names of a function by kind, or the methods of a class."""
    names = symbols["name"]
    if kind == "function":
        lists = {field: list(compress(names, symbols[flag])) for field, flag in PARTITIONS.items()}
        return {"parameters": entry.varnames, **lists}
    if kind == "class":
        own = set(compress(names, symbols["is_local"]))
        functions = {child.name for child in entry.children if _is_function(child)}
        return {"methods": sorted(name for name in functions if _mangle(name, class_name) in own)}
    return {}


def _is_definition(entry: TableEntry) -> bool:
    """Return whether the source names a scope; a comprehension is recognized by its first parameter."""
    return ".0" not in entry.symbols and _type(entry)[0] != "annotation"


def _is_function(entry: TableEntry) -> bool:
    """Return whether a scope is a function, or the type parameters around one."""
    kind, _ = _type(entry)
    if kind == "function":
        return _is_definition(entry)
    same_name = (child for child in entry.children if child.name == entry.name)
    return kind != "class" and any(_type(child)[0] == "function" for child in same_name)


def _mangle(name: str, class_name: str | None) -> str:
    """Mangle a private name as the compiler does inside of a class."""
    prefix = (class_name or "").lstrip("_")
    if not prefix or not name.startswith("__") or name.endswith("__"):
        return name
    return f"_{prefix}{name}"
