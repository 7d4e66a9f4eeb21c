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

from functools import cache, lru_cache
from typing import NamedTuple

from codeanatomy.node_ids import module_id, span_id
from codeanatomy.relate.program import OBJ_CLASS
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import MAX_OBJECTS
from codeanatomy.relate.witnesses.claims import MAX_NAME, SCIP, Claim, DefinitionIndex

# Suffixes of descriptors.
MODULE, CLASS, TERM, METHOD, META = "/", "#", ".", "()", ":"
# Name of the descriptor that stands for the module itself.
MODULE_ITSELF = "__init__"
# Bit of the symbol roles.
DEFINITION = 1


class ScipSymbol(NamedTuple):
    """A parsed symbol: its package, and the names of its descriptors with their suffixes."""

    package: str
    parts: tuple[tuple[str, str], ...]


@lru_cache(maxsize=65536)
def parse_symbol(symbol: str) -> ScipSymbol | None:
    """Parse a symbol; return None if it breaks the grammar."""
    if len(symbol) > 2 * MAX_NAME:
        return None
    start = 0
    for _ in range(4):
        # A space in a name is written twice.
        start = symbol.find(" ", start)
        while start >= 0 and symbol[start + 1 : start + 2] == " ":
            start = symbol.find(" ", start + 2)
        if start < 0:
            return None
        start += 1
    parts: list[tuple[str, str]] = []
    at = start
    while at < len(symbol):
        part = _read_descriptor(symbol, at)
        if part is None:
            return None
        name, suffix, at = part
        parts.append((name, suffix))
    return ScipSymbol(symbol[: start - 1], tuple(parts)) if parts else None


def _read_descriptor(symbol: str, at: int) -> tuple[str, str, int] | None:
    """Return name, suffix, and the offset of the next descriptor."""
    opening = symbol[at]
    if opening in "([":
        name, end = _read_name(symbol, at + 1)
        closing = ")" if opening == "(" else "]"
        return (name, opening, end + 1) if name and symbol[end : end + 1] == closing else None
    name, end = _read_name(symbol, at)
    suffix = symbol[end : end + 1]
    if not name or not suffix:
        return None
    if suffix == "(":
        # The text in the parentheses distinguishes functions of one name.
        closing_at = symbol.find(").", end)
        return (name, METHOD, closing_at + 2) if closing_at >= 0 else None
    return (name, suffix, end + 1) if suffix in "/#.:!" else None


def _read_name(symbol: str, at: int) -> tuple[str, int]:
    """Return a name, plain or in backticks, and the offset of its end."""
    if symbol[at : at + 1] != "`":
        end = at
        while end < len(symbol) and (symbol[end].isalnum() or symbol[end] in "_+-$"):
            end += 1
        return symbol[at:end], end
    end = symbol.find("`", at + 1)
    while end >= 0 and symbol[end + 1 : end + 2] == "`":
        end = symbol.find("`", end + 2)
    return (symbol[at + 1 : end].replace("``", "`"), end + 1) if end >= 0 else ("", at)


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
                if (roles or 0) & DEFINITION:
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
            return SymbolTargets(self._variable(symbol, parsed, name, places))
        targets: dict[Target, None] = {}
        called: dict[Target, None] = {}
        for place in places:
            definition = self.index.at(*place)
            if isinstance(definition, Target):
                targets[definition] = None
            elif definition is not None:
                is_class = self.values.kind[definition] == OBJ_CLASS
                target = self.index.target(definition)
                targets[target] = None
                called.update(dict.fromkeys(self.index.call_targets(definition) if is_class else (target,)))
        runs = tuple(target for target in called if not self.index.is_property(target))
        return SymbolTargets(tuple(targets), runs[:MAX_OBJECTS])

    def _module(self, file: int) -> Target:
        return Target("MODULE", module_id(self.values.programs[file].file_id), self.values.names[file])

    def _variable(
        self, symbol: str, parsed: ScipSymbol, name: str, places: list[tuple[int, int, int]] | tuple[()]
    ) -> tuple[Target, ...]:
        """Return the nodes of a variable of a module, or of an attribute of a class."""
        outer = [suffix for _, suffix in parsed.parts[:-1]]
        resolver = self.index.resolver
        targets: dict[Target, None] = {}
        if outer and outer[-1] == CLASS:
            # The symbol without its last descriptor is the class.
            head = symbol[: symbol.rindex("#") + 1]
            for file, bstart, bend in self._places.get(head, ()):
                cls = self.index.at(file, bstart, bend)
                if isinstance(cls, int) and self.values.kind[cls] == OBJ_CLASS:
                    targets.update(dict.fromkeys(self.index.member(cls, name)))
        elif all(suffix == MODULE for suffix in outer):
            for file in dict.fromkeys(file for file, _, _ in places):
                if name in self.values.programs[file].variables:
                    targets[resolver.module_binding(file, name)] = None
        return tuple(targets)

    def _external(self, parsed: ScipSymbol) -> SymbolTargets:
        *outer, (name, suffix) = parsed.parts
        if suffix not in (CLASS, TERM, METHOD, META):
            return SymbolTargets()
        names = [each for each, _ in outer]
        if suffix == META:
            if name != MODULE_ITSELF or not names:
                return SymbolTargets()
            dotted = ".".join(names)
            is_valid = bool(self.index.external(dotted))
            return SymbolTargets((self.index.resolver.module(dotted),) if is_valid else ())
        targets = self.index.external(".".join([*names, name]))
        return SymbolTargets(targets, targets if suffix in (CLASS, METHOD) else ())


class Occurrences:
    """The occurrences of a SCIP index in one file, by their places."""

    def __init__(self, symbols: ScipSymbols, file: int) -> None:
        self.symbols = symbols
        program = symbols.values.programs[file]
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
