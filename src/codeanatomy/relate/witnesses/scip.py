r"""Resolve identifiers by a SCIP index.

>>> parse_symbol("scip-python python python-stdlib 3.11 `os.path`/join().")
ScipSymbol(package='scip-python python python-stdlib 3.11', parts=(('os.path', '/'), ('join', '()')))

A symbol is a package and descriptors, each a name and a suffix for its kind: `/` a module, `#` a class, `.` a
variable, `().` a function, `(x)` a parameter, `__init__:` the module itself. A symbol of the repository is
resolved by the place of its definition in the index; an attribute (`Base#path.`), which may be defined in
many places, by its class. A symbol of a package without definitions in the index is an external name.

An index is untrusted input. A symbol that breaks the grammar, has no definition at the place given, or is not
a valid Python name, claims nothing.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from codeanatomy.node_ids import module_id, span_id
from codeanatomy.relate.program import OBJ_CLASS, SCIP_DEFINITION, Program
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import MAX_OBJECTS
from codeanatomy.relate.witnesses.claims import MAX_NAME, SCIP, Claim, DefinitionIndex

# Suffixes of descriptors.
MODULE, CLASS, TERM, METHOD, META = "/", "#", ".", "()", ":"
# Four fields before the descriptors, each with a space after it; a space in a field is written twice.
PACKAGE = re.compile(r"(?:(?:[^ ]|  )*+ ){4}")
# A name is plain or in backticks. The text in the parentheses of a method distinguishes those of one name.
NAME = r"([\w+$-]++|`(?:[^`]|``)++`)"
DESCRIPTOR = re.compile(rf"\({NAME}\)|\[{NAME}\]|{NAME}(?:([/#.:!])|\(.*?\)\.)", re.DOTALL)
# Name of the descriptor that stands for the module itself.
MODULE_ITSELF = "__init__"


class ScipSymbol(NamedTuple):
    """A parsed symbol: its package, and the names of its descriptors with their suffixes."""

    package: str
    parts: tuple[tuple[str, str], ...]


@lru_cache(maxsize=65536)
def parse_symbol(symbol: str) -> ScipSymbol | None:
    """Parse a symbol; return None if it breaks the grammar."""
    package = PACKAGE.match(symbol) if len(symbol) <= 2 * MAX_NAME else None
    if package is None:
        return None
    parts: list[tuple[str, str]] = []
    at = package.end()
    while at < len(symbol):
        descriptor = DESCRIPTOR.match(symbol, at)
        if descriptor is None:
            return None
        parameter, type_parameter, other, suffix = descriptor.groups()
        name = parameter or type_parameter or other
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        parts.append((name, suffix or (METHOD if other else symbol[at])))
        at = descriptor.end()
    return ScipSymbol(symbol[: package.end() - 1], tuple(parts)) if parts else None


class SymbolTargets(NamedTuple):
    """The nodes of a symbol, and those that a call of it runs."""

    targets: tuple[Target, ...] = ()
    called: tuple[Target, ...] = ()


class ScipSymbols:
    """The symbols of a repository's SCIP index, resolved to nodes."""

    def __init__(self, index: DefinitionIndex) -> None:
        self.index = index
        self.values = index.values
        # Places of a symbol's definitions: file, first byte, byte after.
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        # The nodes of a symbol.
        self.resolve = cache(self._resolve)
        for file, program in enumerate(self.values.programs):
            for bstart, bend, symbol, roles in program.scip:
                if (roles or 0) & SCIP_DEFINITION:
                    places = self._places.setdefault(symbol, [])
                    if len(places) < MAX_OBJECTS:
                        places.append((file, bstart, bend))
        symbols = map(parse_symbol, self._places)
        self._packages = {symbol.package for symbol in symbols if symbol is not None}

    def _resolve(self, symbol: str) -> SymbolTargets:
        parsed = parse_symbol(symbol)
        if parsed is None:
            return SymbolTargets()
        if parsed.package not in self._packages:
            return self._external(parsed)
        name, suffix = parsed.parts[-1]
        places = self._places.get(symbol, ())
        if suffix == META and name == MODULE_ITSELF:
            files = dict.fromkeys(file for file, _, _ in places)
            return SymbolTargets(tuple(self._module(file) for file in files))
        if suffix == TERM:
            return SymbolTargets(self._variable(symbol, parsed))
        targets: dict[Target, None] = {}
        called: dict[Target, None] = {}
        for place in places:
            definition = self.index.at(*place)
            if isinstance(definition, Target):
                targets[definition] = None
            elif definition is not None:
                targets[self.index.target(definition)] = None
                called.update(dict.fromkeys(self.index.call_targets(definition)))
        runs = tuple(target for target in called if not self.index.is_property(target))
        return SymbolTargets(tuple(targets), runs[:MAX_OBJECTS])

    def _module(self, file: int) -> Target:
        return Target("MODULE", module_id(self.values.programs[file].file_id), self.values.names[file])

    def _variable(self, symbol: str, parsed: ScipSymbol) -> tuple[Target, ...]:
        """Return the nodes of a variable of a module, or of an attribute of a class."""
        name, outer = parsed.parts[-1][0], [suffix for _, suffix in parsed.parts[:-1]]
        targets: dict[Target, None] = {}
        if outer and outer[-1] == CLASS:
            # The symbol without its last descriptor is the class.
            head = symbol[: symbol.rindex("#") + 1]
            for file, bstart, bend in self._places.get(head, ()):
                cls = self.index.at(file, bstart, bend)
                if isinstance(cls, int) and self.values.kind[cls] == OBJ_CLASS:
                    targets.update(dict.fromkeys(self.index.member(cls, name)))
        elif all(suffix == MODULE for suffix in outer):
            for file, _, _ in self._places.get(symbol, ()):
                if name in self.values.programs[file].variables:
                    targets[self.index.resolver.module_binding(file, name)] = None
        return tuple(targets)

    def _external(self, parsed: ScipSymbol) -> SymbolTargets:
        *outer, (name, suffix) = parsed.parts
        names = [each for each, _ in outer]
        if suffix == META and name == MODULE_ITSELF and names:
            dotted = ".".join(names)
            is_valid = bool(self.index.external(dotted))
            return SymbolTargets((self.index.resolver.module(dotted),) if is_valid else ())
        if suffix not in (CLASS, TERM, METHOD):
            return SymbolTargets()
        targets = self.index.external(".".join([*names, name]))
        return SymbolTargets(targets, () if suffix == TERM else targets)


class Occurrences:
    """The occurrences of a SCIP index in one file, by their places."""

    def __init__(self, symbols: ScipSymbols, program: Program) -> None:
        self.symbols = symbols
        self.file_id = program.file_id
        self._at: dict[tuple[int, int], tuple[str, int]] = {}
        # A dotted module name `a.b` may be one occurrence: by its end.
        self._modules: dict[int, tuple[int, str, int]] = {}
        for bstart, bend, symbol, roles in program.scip:
            self._at.setdefault((bstart, bend), (symbol, roles or 0))
            if symbol.endswith("/__init__:") and bend > bstart:
                self._modules.setdefault(bend, (bstart, symbol, roles or 0))

    def claims(self, bstart: int | None, bend: int | None, *, called: bool = False) -> list[Claim]:
        """Return the claim about what the identifier at a place refers to, or what a call of it runs."""
        if bstart is None or bend is None:
            return []
        occurrence = self._at.get((bstart, bend))
        if occurrence is None and bend in self._modules and self._modules[bend][0] < bstart:
            occurrence = self._modules[bend][1:]
        if occurrence is None:
            return []
        symbol, roles = occurrence
        resolved = self.symbols.resolve(symbol)
        targets = resolved.called if called else resolved.targets
        key = span_id(self.file_id, bstart, bend)
        return [Claim(SCIP, key, targets, is_open=True, roles=roles)] if targets else []
