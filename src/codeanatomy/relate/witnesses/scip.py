r"""What a SCIP index says that identifiers refer to.

>>> parsed("scip-python python python-stdlib 3.11 `os.path`/join().")
Symbol(package='scip-python python python-stdlib 3.11', parts=(('os.path', '/'), ('join', '()')))

A symbol is a package and descriptors, each a name and a suffix that says what it is: `/` a module, `#` a
class, `.` a variable, `().` a function, `(x)` a parameter, `__init__:` the module itself. What the repository
defines is found by where the index has the symbol's definition; an attribute (`Base#path.`), which may be
defined in many places, by its class. A symbol of a package that defines nothing here is a name outside.

Symbols are text that anybody may write. One that breaks the grammar, has no definition where it says, or
names what no program can name, claims nothing. Tests: `tests/unit/relate/test_witnesses.py`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from codeanatomy.node_ids import module_id
from codeanatomy.relate.values.name_resolution import MODULE_KEY, Target
from codeanatomy.relate.values.solver import MAX_OBJECTS
from codeanatomy.relate.witnesses.claims import MAX_NAME, SCIP, Claim, Landmarks, span_key

MODULE, CLASS, TERM, METHOD, META, PARAMETER, TYPE_PARAMETER, MACRO = "/", "#", ".", "()", ":", "(", "[", "!"
ITSELF = "__init__"
DEFINITION = 1


class Symbol(NamedTuple):
    """A package, and names with their suffixes."""

    package: str
    parts: tuple[tuple[str, str], ...]


@lru_cache(maxsize=65536)
def parsed(symbol: str) -> Symbol | None:
    """The parts of a symbol; None if it is none."""
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
        part = _descriptor(symbol, at)
        if part is None:
            return None
        name, suffix, at = part
        parts.append((name, suffix))
    return Symbol(symbol[: start - 1], tuple(parts)) if parts else None


def _descriptor(symbol: str, at: int) -> tuple[str, str, int] | None:
    """Name, suffix, and where the next begins."""
    opening = symbol[at]
    if opening in "([":
        name, end = _name(symbol, at + 1)
        closing = ")" if opening == "(" else "]"
        return (name, opening, end + 1) if name and symbol[end : end + 1] == closing else None
    name, end = _name(symbol, at)
    suffix = symbol[end : end + 1]
    if not name or not suffix:
        return None
    if suffix == "(":
        # What is in the parentheses tells functions of one name apart.
        closing_at = symbol.find(").", end)
        return (name, METHOD, closing_at + 2) if closing_at >= 0 else None
    return (name, suffix, end + 1) if suffix in "/#.:!" else None


def _name(symbol: str, at: int) -> tuple[str, int]:
    """A name, plain or between backticks, and where it ends."""
    if symbol[at : at + 1] != "`":
        end = at
        while end < len(symbol) and (symbol[end].isalnum() or symbol[end] in "_+-$"):
            end += 1
        return symbol[at:end], end
    end = symbol.find("`", at + 1)
    while end >= 0 and symbol[end + 1 : end + 2] == "`":
        end = symbol.find("`", end + 2)
    return (symbol[at + 1 : end].replace("``", "`"), end + 1) if end >= 0 else ("", at)


class Meaning(NamedTuple):
    """The nodes of a symbol, and those that a call of it reaches."""

    targets: tuple[Target, ...] = ()
    called: tuple[Target, ...] = ()


class Symbols:
    """The symbols of a repository's index."""

    def __init__(self, landmarks: Landmarks) -> None:
        self.landmarks = landmarks
        self.values = landmarks.values
        # Where a symbol is defined: file, first byte, byte after.
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        self._meanings: dict[str, Meaning] = {}
        for file, program in enumerate(self.values.programs):
            for bstart, bend, symbol, roles in program.scip:
                if (roles or 0) & DEFINITION:
                    places = self._places.setdefault(symbol, [])
                    if len(places) < MAX_OBJECTS:
                        places.append((file, bstart, bend))
        heads = (parsed(symbol) for symbol in self._places)
        self._packages = {head.package for head in heads if head is not None}

    def meaning(self, symbol: str) -> Meaning:
        """What a symbol stands for."""
        found = self._meanings.get(symbol)
        if found is None:
            found = self._meanings[symbol] = self._meaning(symbol)
        return found

    def _meaning(self, symbol: str) -> Meaning:
        read = parsed(symbol)
        if read is None:
            return Meaning()
        if read.package not in self._packages:
            return self._outside(read)
        name, suffix = read.parts[-1]
        places = self._places.get(symbol, ())
        if suffix == META and name == ITSELF:
            files = dict.fromkeys(file for file, _, _ in places)
            return Meaning(tuple(self._module(file) for file in files))
        if suffix == TERM:
            return Meaning(self._variable(symbol, read, name, places))
        targets: dict[Target, None] = {}
        called: dict[Target, None] = {}
        for place in places:
            found = self.landmarks.at(*place)
            if isinstance(found, Target):
                targets[found] = None
            elif found is not None:
                is_class = self.values.objects[found >> 1].kind == "C"
                target = self.landmarks.target(found)
                targets[target] = None
                called.update(dict.fromkeys(self.landmarks.called(found) if is_class else (target,)))
        runs = tuple(one for one in called if not self.landmarks.is_property(one))
        return Meaning(tuple(targets), runs[:MAX_OBJECTS])

    def _module(self, file: int) -> Target:
        return Target("MODULE", module_id(self.values.programs[file].file_id), self.values.names[file])

    def _variable(
        self, symbol: str, read: Symbol, name: str, places: list[tuple[int, int, int]] | tuple[()]
    ) -> tuple[Target, ...]:
        """A variable of a module, or an attribute of a class."""
        outer = [suffix for _, suffix in read.parts[:-1]]
        definitions = self.landmarks.definitions
        found: dict[Target, None] = {}
        if outer and outer[-1] == CLASS:
            # Cut off the last descriptor: the same text without it is the class.
            head = symbol[: symbol.rindex("#") + 1]
            for file, bstart, bend in self._places.get(head, ()):
                cls = self.landmarks.at(file, bstart, bend)
                if isinstance(cls, int) and self.values.objects[cls >> 1].kind == "C":
                    found.update(dict.fromkeys(self.landmarks.member(cls, name)))
        elif all(suffix == MODULE for suffix in outer):
            for file in dict.fromkeys(file for file, _, _ in places):
                if name in self.values.programs[file].variables:
                    found[definitions.binding(file, MODULE_KEY, name, self.values.names[file])] = None
        return tuple(found)

    def _outside(self, read: Symbol) -> Meaning:
        *outer, (name, suffix) = read.parts
        if suffix not in (CLASS, TERM, METHOD, META):
            return Meaning()
        names = [each for each, _ in outer]
        if suffix == META:
            if name != ITSELF or not names:
                return Meaning()
            dotted = ".".join(names)
            is_named = bool(self.landmarks.outside(dotted))
            return Meaning((self.landmarks.definitions.module(dotted),) if is_named else ())
        targets = self.landmarks.outside(".".join([*names, name]))
        return Meaning(targets, targets if suffix in (CLASS, METHOD) else ())


class Occurrences:
    """The occurrences of one file by their places."""

    def __init__(self, symbols: Symbols, file: int) -> None:
        self.symbols = symbols
        program = symbols.values.programs[file]
        self.file_id = program.file_id
        self._at: dict[tuple[int, int], tuple[str, int]] = {}
        # `a.b` may be one occurrence, of a module.
        self._modules: dict[int, tuple[int, str, int]] = {}
        for bstart, bend, symbol, roles in program.scip:
            self._at.setdefault((bstart, bend), (symbol, roles or 0))
            if symbol.endswith("/__init__:") and bend > bstart:
                self._modules.setdefault(bend, (bstart, symbol, roles or 0))

    def reference(self, bstart: int | None, bend: int | None) -> list[Claim]:
        """What the identifier at a place refers to."""
        return self._claim(bstart, bend, called=False)

    def call(self, bstart: int | None, bend: int | None) -> list[Claim]:
        """What a call of the identifier at a place runs."""
        return self._claim(bstart, bend, called=True)

    def _claim(self, bstart: int | None, bend: int | None, *, called: bool) -> list[Claim]:
        if bstart is None or bend is None:
            return []
        found = self._at.get((bstart, bend))
        if found is None and bend in self._modules and self._modules[bend][0] < bstart:
            found = self._modules[bend][1:]
        if found is None:
            return []
        symbol, roles = found
        meaning = self.symbols.meaning(symbol)
        targets = meaning.called if called else meaning.targets
        key = span_key(self.file_id, bstart, bend)
        return [Claim(SCIP, key, targets, is_open=True, roles=roles)] if targets else []
