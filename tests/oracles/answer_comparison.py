"""Compare the answers of queries on a lake with the oracle of its sources."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.answers import Symbol
from codeanatomy.query.ask import verb_function
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.symbols import resolve, with_binding_lines
from codeanatomy.query.verbs.result import VerbResult as Answered
from oracles.ask_oracle import Definition, Found, Sources

COMMAND = Path(sys.executable).with_name("codeanatomy")
SEED = 9
ALL = 1_000_000
# What is drawn of each 20 symbols.
SHARES = {"function": 5, "method": 6, "class": 4, "module": 2, "variable": 3}
INSIDE = ("FUNCTION", "CLASS", "MODULE", "BINDING")
Graph: TypeAlias = Mapping[str, set[str]]


@dataclass(frozen=True)
class Compared:
    """A repository of a lake, and its sources."""

    lake: Path
    repo_id: str
    sources: Sources
    resolved: dict[str, Symbol] = field(default_factory=dict)

    @cached_property
    def reader(self) -> LightReader:
        return LightReader(Snapshot.open(str(self.lake)))

    @cached_property
    def callees(self) -> Graph:
        """Callees by caller, by name, from the call graph command."""
        command = [
            str(COMMAND),
            "callgraph",
            "--lake",
            str(self.lake),
            "--repo-id",
            self.repo_id,
            "--format",
            "json",
        ]
        said = subprocess.run(command, capture_output=True, check=True).stdout
        return {caller: set(called) for caller, called in json.loads(said).items()}

    @cached_property
    def callers(self) -> Graph:
        found: dict[str, set[str]] = defaultdict(set)
        for caller, called in self.callees.items():
            for each in called:
                found[each].add(caller)
        return found

    def find(self, name: str) -> list[dict[str, Any]]:
        """Return all matches."""
        return self._rows(verb_function("find")(self.reader, name, repo_id=self.repo_id))

    def ask(self, verb: str, name: str, **options: Any) -> list[dict[str, Any]]:
        """Return all rows of an answer about a symbol; its name is resolved once."""
        if name not in self.resolved:
            (self.resolved[name],) = with_binding_lines(
                self.reader, [resolve(self.reader, name, self.repo_id)]
            )
        return self._rows(verb_function(verb)(self.reader, self.resolved[name], **options))

    def _rows(self, found: Answered) -> list[dict[str, Any]]:
        rows = self.reader.rows(found.query, ALL)
        return [dict(zip(found.columns, row, strict=False)) for row in rows]

    def drawn(self, count: int) -> list[Definition]:
        """Draw some symbols of each kind."""
        sorts: dict[str, list[Definition]] = defaultdict(list)
        for _, defined in sorted(self.sources.definitions.items()):
            if sort := self._sort(defined):
                sorts[sort].append(defined[-1])
        chosen = random.Random(SEED)
        found = []
        for sort, share in SHARES.items():
            wanted = count * share // sum(SHARES.values())
            found += chosen.sample(sorts[sort], min(wanted, len(sorts[sort])))
        rest = [each for each in sorts["method"] if each not in found]
        return found + chosen.sample(rest, count - len(found))

    def _sort(self, defined: list[Definition]) -> str | None:
        kinds = {each.kind for each in defined}
        first = defined[0]
        if kinds == {"BINDING"}:
            return "variable" if first.owner == "module" and not self.is_imported(first) else None
        if len(kinds) > 1:
            return None
        return "method" if first.kind == "FUNCTION" and first.owner == "class" else first.kind.lower()

    def is_one(self, name: str) -> bool:
        """Return whether a name has one definition, or is not defined in these sources."""
        return len(self.sources.definitions.get(name, ())) < 2

    def is_imported(self, variable: Definition) -> bool:
        """Return whether a variable is also imported by a module, so that its definition is uncertain."""
        module = self.sources.by_path[variable.path]
        scope = module.scopes[variable.qualname.rpartition(".")[0]]
        return "import" in scope.bound[variable.name]


def disagreements(compared: Compared, symbols: list[Definition], some: int = 1) -> Iterator[str]:
    """Yield differences between answers and sources as text; slow queries only for some of the symbols."""
    for number, symbol in enumerate(symbols):
        thorough = number % some == 0
        yield from found_by_name(compared, symbol)
        yield from places(compared, symbol)
        if symbol.kind in ("FUNCTION", "MODULE"):
            yield from called(compared, symbol, depth=3 if thorough else 1)
        if thorough:
            yield from found_by_pattern(compared, symbol)
            yield from shown(compared, symbol)


def found_by_name(compared: Compared, symbol: Definition) -> Iterator[str]:
    """`find` by qualified name and by bare name."""
    named = compared.sources.found[symbol.name]
    expected = [each for each in named if each.qualname == symbol.qualname]
    if (got := things(compared.find(symbol.qualname))) != expected:
        yield f"find {symbol.qualname}: {got}, not {expected}"
    if symbol.name not in compared.sources.modules:
        yield from compared_names(compared, symbol.name, compared.find(symbol.name), named)


def found_by_pattern(compared: Compared, symbol: Definition) -> Iterator[str]:
    """`find` by a pattern, which has a row for each definition of a name."""
    pattern = f"{symbol.name[:4]}*{symbol.name[5:]}"
    expected = {
        found
        for name, named in compared.sources.found.items()
        if fnmatchcase(name, pattern)
        for each in named
        for found in compared.sources.places(each)
    }
    yield from compared_names(compared, pattern, compared.find(pattern), expected)


def compared_names(
    compared: Compared, asked: str, rows: list[dict[str, Any]], expected: set[Found]
) -> Iterator[str]:
    """Definitions have their places; of variables of classes, which methods set as well, it is the name."""
    # Attributes that only methods set are not read here, and private ones are called otherwise.
    inside = [row for row in rows if row["kind"] in INSIDE and row["subkind"] != "attribute"]
    got = {each for each in things(inside) if each.kind != "BINDING"}
    wanted = {each for each in expected if each.kind != "BINDING"}
    if got != wanted:
        yield f"find {asked}: too much {sorted(got - wanted)}, missing {sorted(wanted - got)}"
    variables = {each.qualname: compared.sources.definitions[each.qualname][0] for each in expected - wanted}
    certain = {
        name
        for name, each in variables.items()
        if not compared.is_imported(each) and not (each.owner == "class" and is_private(each.name))
    }
    named = {each.qualname for each in things(inside) if each.kind == "BINDING"}
    if not certain <= named <= variables.keys():
        yield f"find {asked}: variables {sorted(named - variables.keys())}, missing {sorted(certain - named)}"


def shown(compared: Compared, symbol: Definition) -> Iterator[str]:
    """`show`: signature, docstring, line and members of each definition."""
    rows = compared.ask("show", symbol.qualname)
    defined = compared.sources.definitions[symbol.qualname]
    if symbol.kind != "BINDING":
        expected = [(each.line, each.signature, each.docstring) for each in defined]
        got = [(row["line"], row["signature"], row["docstring"]) for row in rows]
        if got != expected:
            yield f"show {symbol.qualname}: {got}, not {expected}"
        # A package has its modules, too.
        members = compared.sources.members(symbol.qualname)
        if rows[0]["members"] != members and not symbol.path.endswith("__init__.py"):
            yield f"show {symbol.qualname}: {rows[0]['members']} members, not {members}"


def places(compared: Compared, symbol: Definition) -> Iterator[str]:
    """`refs`: every certain use is listed, and every listed place contains the name."""
    rows = compared.ask("refs", symbol.qualname)
    got = Counter((row["path"], row["line"]) for row in rows)
    if missing := compared.sources.uses[symbol.qualname] - got:
        yield f"refs {symbol.qualname}: missing {sorted(missing)}"
    for path, line in got:
        if not compared.sources.spelled(symbol.qualname, path, line):
            yield f"refs {symbol.qualname}: {path}:{line} does not spell it"


def called(compared: Compared, symbol: Definition, depth: int) -> Iterator[str]:
    """`callers` and `callees`: those of the call graph command, one and more steps away."""
    for verb, graph in (("callers", compared.callers), ("callees", compared.callees)):
        rows = compared.ask(verb, symbol.qualname, depth=depth)
        near = {row["symbol"] for row in rows if row["depth"] == 1}
        if near != graph.get(symbol.qualname, set()):
            yield f"{verb} {symbol.qualname}: {near}, not {graph.get(symbol.qualname, set())}"
        # A name with several definitions is gone on from by the one that is meant: so it is between both.
        least = reached(graph, symbol.qualname, depth, compared.is_one)
        most = reached(graph, symbol.qualname, depth, lambda _: True)
        got = {row["symbol"] for row in rows}
        if not least <= got <= most:
            wrong = f"{sorted(got - most)}, missing {sorted(least - got)}"
            yield f"{verb} {symbol.qualname} --depth {depth}: {wrong}"


def reached(graph: Graph, start: str, depth: int, goes_on: Callable[[str], bool]) -> set[str]:
    """Return the names that are at most this many steps away."""
    found: set[str] = set()
    level = {start}
    for _ in range(depth):
        level = {to for name in level if name == start or goes_on(name) for to in graph.get(name, ())} - found
        found |= level
    return found


def things(rows: list[dict[str, Any]]) -> list[Found]:
    return [Found(row["symbol"], row["kind"], row["path"], row["line"]) for row in rows]


def is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")
