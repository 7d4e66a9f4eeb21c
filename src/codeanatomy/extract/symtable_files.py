r"""CPython's symbol tables of a file: every scope, and what the compiler knows of each name in it.

>>> from codeanatomy.catalog.settings import ExtractOptions
>>> from codeanatomy.sources.source_file import Source
>>> text = "class A:\n    def __f(self): return lambda: self\n"
>>> said = symtable_files_v1(Source("a.py", text.encode(), text, "utf-8", False), ExtractOptions())
>>> blocks = said.cells["blocks"]
>>> for key, symbols in zip(blocks["scope_key"], blocks["symbols"]):
...     print(key, symbols["name"], symbols["is_free"], symbols["namespaces"])
module:top@0#0 ['A'] [False] [['module:top@0#0/class:A@1#0']]
module:top@0#0/class:A@1#0 ['_A__f'] [False] [['module:top@0#0/class:A@1#0/function:__f@2#0']]
module:top@0#0/class:A@1#0/function:__f@2#0 ['self'] [False] [[]]
module:top@0#0/class:A@1#0/function:__f@2#0/function:lambda@2#0 ['self'] [True] [[]]

A scope's key is the key of the enclosing one and `type:name@line#n`, where n counts the scopes of that type,
name and line among their siblings. The compiler's own entries are read, because the objects of the `symtable`
module look through all children of a scope for each of its symbols; but what a word of flags or the number of
a type means is asked of that module, once for each. In three places it is wrong, and we are not:

- A function or class called `top` is not the module: its locals are not global.
- A private name is bound by its definition: `_A__f` above is a namespace, though the scope is called `__f`.
- A comprehension does not bind a name `genexpr` or `listcomp`, nor does it, a lambda or a class count as a
  method; before Python 3.13 `Class.get_methods` gives the names of all scopes in the class.

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
# What CPython raises for a file that it does not like, or that is too deep for it.
UNREAD = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError)
FILENAME = "<file>"

Columns: TypeAlias = dict[str, list[Any]]
# The compiler's `symtable entry`; its `symbols` are words of flags by name, its `varnames` the parameters.
Entry: TypeAlias = Any

BLOCK_FIELDS = ("scope_key", "parent_key", "type", "name", "lineno", "is_nested", "is_optimized", "symbols")
LIST_FIELDS = ("parameters", "locals", "globals", "nonlocals", "frees", "methods")
# Columns of a symbol that `symtable.Symbol` has methods for; those of a newer Python are false in an older.
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
    """The scopes of a file; nothing but a problem where the compiler refuses it."""
    with warnings.catch_warnings():
        # The bytecode witness records them.
        warnings.simplefilter("ignore")
        try:
            top = symtable.symtable(source.text, FILENAME, "exec")
        except UNREAD as error:
            return ExtractorResult({}, (problem_from(source, "symtable", error),))
    # The public objects cost a look at every child for every symbol.
    return ExtractorResult({"blocks": _blocks(top._table)})  # type: ignore[attr-defined]  # noqa: SLF001


def _blocks(top: Entry) -> Columns:
    """Columns of all scopes, in preorder."""
    blocks: Columns = {field: [] for field in (*BLOCK_FIELDS, *LIST_FIELDS)}
    stack: list[tuple[Entry, str | None, str, str | None]] = [(top, None, f"{_label(top)}#0", None)]
    while stack:
        entry, parent_key, key, private = stack.pop()
        kind, is_optimized = _type(entry)
        # Names are mangled with the innermost class around them.
        private = entry.name if kind == "class" else private
        children = entry.children
        keys = _child_keys(key, children)
        bound: dict[str, list[str]] = {}
        for child, child_key in zip(children, keys, strict=True):
            if _is_definition(child):
                bound.setdefault(_mangled(child.name, private), []).append(child_key)
        symbols = _symbols(entry.symbols, kind == "module", bound)
        row = (key, parent_key, kind, entry.name, entry.lineno, bool(entry.nested), is_optimized, symbols)
        for field, cell in zip(BLOCK_FIELDS, row, strict=True):
            blocks[field].append(cell)
        lists = _lists(kind, entry, symbols, private)
        for field in LIST_FIELDS:
            blocks[field].append(lists.get(field))
        below = [(child, key, child_key, private) for child, child_key in zip(children, keys, strict=True)]
        stack.extend(reversed(below))
    return blocks


def _label(entry: Entry) -> str:
    return f"{_type(entry)[0]}:{entry.name}@{entry.lineno}"


def _child_keys(key: str, children: list[Entry]) -> list[str]:
    """Keys of the scopes in a scope; equal labels are counted, as two lambdas on a line have."""
    seen: Counter[str] = Counter()
    keys = []
    for child in children:
        label = _label(child)
        keys.append(f"{key}/{label}#{seen[label]}")
        seen[label] += 1
    return keys


_TYPES: dict[int, tuple[str, bool]] = {}


def _type(entry: Entry) -> tuple[str, bool]:
    """What the `symtable` module calls the type of a scope, and whether its locals are fast."""
    number = entry.type
    if number not in _TYPES:
        table = symtable.SymbolTable(entry, FILENAME)
        _TYPES[number] = str(table.get_type()), table.is_optimized()
    return _TYPES[number]


class _Meanings(dict[tuple[int, bool], tuple[bool, ...]]):
    """What a word of flags means, in the module or elsewhere, in the order of `FLAGS`."""

    def __missing__(self, word: tuple[int, bool]) -> tuple[bool, ...]:
        symbol = symtable.Symbol("", word[0], module_scope=word[1])
        meaning = self[word] = tuple(bool(getattr(symbol, flag, bool)()) for flag in FLAGS)
        return meaning


_MEANINGS = _Meanings()


def _symbols(words: Mapping[str, int], is_module: bool, bound: Mapping[str, list[str]]) -> Columns:
    names = sorted(words)
    meanings = [_MEANINGS[words[name], is_module] for name in names]
    flags = zip(*meanings, strict=True) if names else [()] * len(FLAGS)
    columns: Columns = {flag: list(values) for flag, values in zip(FLAGS, flags, strict=True)}
    columns["name"] = names
    columns["is_namespace"] = [name in bound for name in names]
    columns["namespaces"] = [bound.get(name, []) for name in names]
    return columns


def _lists(kind: str, entry: Entry, symbols: Columns, private: str | None) -> Columns:
    """The names of a function by what they are to it, or the methods of a class."""
    names = symbols["name"]
    if kind == "function":
        lists = {field: list(compress(names, symbols[flag])) for field, flag in PARTITIONS.items()}
        return {"parameters": entry.varnames, **lists}
    if kind == "class":
        own = set(compress(names, symbols["is_local"]))
        functions = {child.name for child in entry.children if _is_function(child)}
        return {"methods": sorted(name for name in functions if _mangled(name, private) in own)}
    return {}


def _is_definition(entry: Entry) -> bool:
    """Whether the scope has its name from the source: a comprehension's first parameter shows it has not."""
    return ".0" not in entry.symbols and _type(entry)[0] != "annotation"


def _is_function(entry: Entry) -> bool:
    """A function, or the type parameters around one."""
    kind, _ = _type(entry)
    if kind == "function":
        return _is_definition(entry)
    named_alike = (child for child in entry.children if child.name == entry.name)
    return kind != "class" and any(_type(child)[0] == "function" for child in named_alike)


def _mangled(name: str, private: str | None) -> str:
    """A name as the compiler spells it inside of a class."""
    prefix = (private or "").lstrip("_")
    if not prefix or not name.startswith("__") or name.endswith("__"):
        return name
    return f"_{prefix}{name}"
