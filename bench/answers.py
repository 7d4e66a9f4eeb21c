"""What our relations answer to "what does the text at this place refer to": places of definitions.

    answers = Answers(analysis)
    answers.at("requests/api.py", 1234, 1241)      # Answer(kind, {(path, bstart, bend), ...}, reasons)

A definition is given by the place of its name, a module by the beginning of its file. A variable has as many
places as it is assigned at. What leads outside of the repository has none. Places of imports are kept apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from analysis import Analysis, Row, line_starts, scope_rows

from codeanatomy.file_ids import FileIds
from codeanatomy.node_ids import module_id
from codeanatomy.relate.program import FUNCTION
from codeanatomy.relate.values.hierarchy import mro
from codeanatomy.relate.values.solver import Object

Site: TypeAlias = tuple[str, int, int]
NAMES = ("READS", "WRITES", "DELETES", "REFERS_TO", "DEFINES_BINDING")
IMPORTS = ("IMPORTS_NAME", "IMPORTS_MODULE")
CALLS = ("CALLS", "CALLS_NAME", "INSTANTIATES")
OUTSIDE = ("QUALIFIED_NAME", "EXTERNAL_MODULE")
REFERENCES = ("NAME_REF", "ATTRIBUTE_REF")


class Answer(NamedTuple):
    """What is known of a place."""

    # name, attribute, keyword, import, module or "" if nothing of ours stands there.
    kind: str
    sites: frozenset[Site]
    # Imports that bind the name.
    aliases: frozenset[Site] = frozenset()
    # Names outside of the repository, and reasons why nothing is known.
    outside: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    # The places by what is defined there: a variable with all its assignments is one.
    targets: frozenset[frozenset[Site]] = frozenset()


NOTHING = Answer("", frozenset())


class Answers:
    """The relations of a repository, by place."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        # By node.
        self.sites: dict[str, set[Site]] = {}
        self.imported: set[Site] = set()
        self.leads: dict[str, set[str]] = {}
        self.places: dict[Site, list[Row]] = {}
        self.aliases: dict[tuple[str, int], list[Row]] = {}
        self.arguments: dict[str, list[Row]] = {}
        self.keywords: dict[Site, str] = {}
        self.modules: dict[str, list[tuple[int, int, int]]] = {}
        self.called: dict[Site, list[Row]] = {}
        # Functions and classes by the places of their names.
        self.names: dict[Site, tuple[int, int]] = {}
        for program in analysis.values.programs:
            self._definitions(program.path)
            self._syntax(program.path)
        for path, rows in analysis.rows.items():
            self._rows(path, [*rows, *scope_rows(analysis, path)])

    def _definitions(self, path: str) -> None:
        values = self.analysis.values
        program = values.programs[values.files[path]]
        names = {(start, end): (path, first, last) for first, last, start, end in program.names}
        self.names |= {site: place for place, site in names.items()}
        self.sites[module_id(program.file_id)] = {(path, 0, 0)}
        ids = FileIds(program.ids)
        for kind, found in (("FUNCTION", program.functions), ("CLASS", program.classes)):
            for each in found:
                start, end, _ = each.place
                if (start, end) in names and start is not None and end is not None:
                    self.sites[ids.at(kind, start, end)] = {names[start, end]}
        for function in program.functions:
            for parameter in function.parameters:
                start, end, _ = parameter.place
                if start is not None and end is not None:
                    self.sites[ids.at("PARAMETER", start, end)] = {(path, start, end)}

    def _syntax(self, path: str) -> None:
        """Keywords of calls lead to their values, modules of imports to their aliases."""
        source = self.analysis.sources[path]
        lines = line_starts(source)
        ids = FileIds(self.analysis.values.programs[self.analysis.values.files[path]].ids)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.keyword) and node.arg is not None:
                start = lines[node.lineno - 1] + node.col_offset
                value = lines[node.value.lineno - 1] + node.value.col_offset
                end = lines[(node.value.end_lineno or 1) - 1] + (node.value.end_col_offset or 0)
                place = (path, start, start + len(node.arg.encode()))
                self.keywords[place] = ids.at("ARGUMENT", value, end)
            elif isinstance(node, ast.ImportFrom):
                start = lines[node.lineno - 1] + node.col_offset
                first = lines[node.names[0].lineno - 1] + node.names[0].col_offset
                self.modules.setdefault(path, []).append((start, first, first))

    def _rows(self, path: str, rows: Iterable[Row]) -> None:
        for row in rows:
            kind, start, end = row["relation_kind"], row["bstart"], row["bend"]
            if start is None:
                continue
            if kind == "DEFINES_BINDING":
                found = self.sites.get(row["src_id"]) or {(path, start, end)}
                self.sites.setdefault(row["dst_id"], set()).update(found)
                if row["src_kind"] == "IMPORT_ALIAS":
                    self.imported |= found
            elif kind == "BINDING_RESOLVES_TO" and row["dst_id"] is not None:
                self.leads.setdefault(row["src_id"], set()).add(row["dst_id"])
            if row["src_kind"] == "CALLSITE" and kind in CALLS and row["role"] != "callback":
                self.called.setdefault((path, start, end), []).append(row)
            elif row["src_kind"] in REFERENCES and kind in NAMES:
                self.places.setdefault((path, start, end), []).append(row)
            elif kind in IMPORTS:
                self.aliases.setdefault((path, start), []).append(row)
            elif kind == "PASSES_TO":
                self.arguments.setdefault(row["src_id"], []).append(row)

    def at(self, path: str, start: int, end: int) -> Answer:
        """What the text at a place refers to."""
        place = (path, start, end)
        rows = self.places.get(place)
        if rows:
            return self._answer("name" if rows[0]["src_kind"] == "NAME_REF" else "attribute", rows)
        if place in self.keywords:
            return self._answer("keyword", self.arguments.get(self.keywords[place], []))
        aliases = self.aliases.get((path, start))
        if aliases:
            named = [row for row in aliases if row["relation_kind"] == "IMPORTS_NAME"]
            return self._answer("import", named or aliases)
        for begin, last, alias in self.modules.get(path, ()):
            if begin < start < last:
                found = self.aliases.get((path, alias), ())
                rows = [row for row in found if row["relation_kind"] == "IMPORTS_MODULE"]
                return self._answer("module", rows)
        return NOTHING

    def all(self) -> list[Site]:
        """All places that refer to something."""
        aliases = [
            (path, row["bstart"], row["bend"]) for (path, _), rows in self.aliases.items() for row in rows[:1]
        ]
        return [*self.places, *self.keywords, *aliases]

    def calls(self) -> dict[Site, Answer]:
        """The functions that call sites call."""
        found = {}
        for site, rows in self.called.items():
            run = [row for row in rows if row["relation_kind"] != "INSTANTIATES"]
            found[site] = self._answer("call", run or rows)
            if not run:
                # A class without a constructor of its own.
                found[site] = Answer("call", frozenset(), outside=frozenset({"object.__init__"}))
        return found

    def owner(self, site: Site) -> Object | None:
        """The innermost class around a place."""
        values = self.analysis.values
        path, start, end = site
        file = values.files[path]
        around = [
            (each.place[1] - each.place[0], number)
            for number, each in enumerate(values.programs[file].classes)
            if each.place[0] is not None and each.place[1] is not None
            if each.place[0] < start and end <= each.place[1]
        ]
        return values.object("C", file, min(around)[1]) if around else None

    def derives(self, site: Site, other: Site) -> bool:
        """Whether the class around one place has the class around the other among its bases."""
        first, second = self.owner(site), self.owner(other)
        if first is None or second is None or first == second:
            return False
        return second in mro(self.analysis.values, first)

    def wraps(self, site: Site, other: Site) -> bool:
        """Whether a function within another may be what a decorator made of a third."""
        values = self.analysis.values
        found = []
        for each in (site, other):
            program = values.programs[values.files[each[0]]]
            place = self.names.get(each)
            numbers = [number for number, known in enumerate(program.functions) if known.place[:2] == place]
            decorated = {number for _, kind, number, _ in program.decorators if kind == FUNCTION}
            found.append([(program.functions[number].outer >= 0, number in decorated) for number in numbers])
        return any(is_inner for is_inner, _ in found[0]) and any(is_decorated for _, is_decorated in found[1])

    def text(self, site: Site) -> bytes:
        path, start, end = site
        return self.analysis.sources[path][start:end]

    def where(self, site: Site) -> str:
        """For people."""
        path, start, _ = site
        line = self.analysis.sources[path].count(b"\n", 0, start) + 1
        text = self.text(site).decode(errors="replace").partition("\n")[0]
        return f"{path}:{line} `{text[:60]}`"

    def _answer(self, kind: str, rows: Iterable[Row]) -> Answer:
        nodes = {row["dst_id"] for row in rows if row["dst_id"] is not None}
        while more := {other for node in nodes for other in self.leads.get(node, ())} - nodes:
            nodes |= more
        sites = frozenset(site for node in nodes for site in self.sites.get(node, ()))
        outside = frozenset(row["dst_qname"] for row in rows if (row["dst_kind"] or "") in OUTSIDE)
        reasons = frozenset(row["reason"] for row in rows if row["dst_id"] is None)
        defined = {frozenset(self.sites.get(node, set()) - self.imported) for node in nodes}
        targets = frozenset(each for each in defined if each)
        return Answer(kind, sites - self.imported, sites & self.imported, outside, reasons, targets)
