"""Make the ids of the nodes of one file, from its definitions and the spans of its nodes.

    ids = FileIds(PackedIds.of_file(repo_id, path, definitions, libcst, ast_nodes))
    ids.at("CALLSITE", 4, 9)                  # callsite:<key>.000003: the fourth call of its definition
    ids.ast(17)                               # ast:<key>.000005
    ids.numbered("COMMENT", spans)            # of nodes that only one stage knows

A node belongs to the innermost definition around it and is numbered among the nodes of its kind there, in
source order; a node that contains another one comes first. Numbers depend on nothing else, so ids are stable
under whitespace, comments, formatting and edits of other definitions.

Spans are those of LibCST and of CPython together: each witness knows some places in f-strings that the other
does not. A span that neither gave is a defect of ours: its id has the span itself, so that no node is lost.
`PackedIds` is what a file's program keeps (`relate.program`). Tests: `tests/unit/test_file_ids.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, pairwise
from typing import Any, TypeAlias
from unicodedata import normalize

import numpy as np
import pyarrow as pa
from msgspec import Struct

from codeanatomy.definitions import numbered_path
from codeanatomy.node_ids import PREFIXES, UNPLACED, definition_key, escaped, key_of, node_id, number_text

Columns: TypeAlias = Mapping[str, Sequence[Any]]
Span: TypeAlias = tuple[int, int]

# Codes of definitions that are nodes of their own; comprehensions are only syntax nodes.
NO_NODE, FUNCTION, CLASS = range(3)
CODES = {"FunctionDef": FUNCTION, "AsyncFunctionDef": FUNCTION, "Lambda": FUNCTION, "ClassDef": CLASS}
LIBCST_KINDS = {"function": "FunctionDef", "class": "ClassDef", "lambda": "Lambda"}
# Kinds whose numbers are those of another kind at the same span.
NUMBERED_AS = {"TYPE_PARAM": "NAME_REF"}
# Lists of LibCST and their spans, by kind of node.
SPAN_LISTS: Mapping[str, tuple[str, str, str]] = {
    "CALLSITE": ("callsites", "call_bstart", "call_bend"),
    "ARGUMENT": ("call_args", "bstart", "bend"),
    "IMPORT_ALIAS": ("imports", "alias_bstart", "alias_bend"),
    "DECORATOR": ("decorators", "bstart", "bend"),
}
REF_KINDS = {"name": "NAME_REF", "attribute": "ATTRIBUTE_REF"}
# The kinds of syntax nodes that have nodes of other kinds at their spans.
SYNTAX_KINDS = {"Call": "CALLSITE", "Name": "NAME_REF", "alias": "IMPORT_ALIAS"}
# Fields that are read of LibCST's lists.
LIBCST_FIELDS: Mapping[str, tuple[str, ...]] = {
    **{name: (start, end) for name, start, end in SPAN_LISTS.values()},
    "refs": ("kind", "bstart", "bend"),
    "defs": ("kind", "name", "def_bstart", "def_bend", "line"),
    "params": ("owner_bstart", "owner_bend", "name", "bstart", "bend"),
}
BLOCK_FIELDS = ("scope_key", "parent_key", "type", "name", "lineno")
UNIT_FIELDS = ("code_unit_key", "parent_key", "name", "bstart", "bend")
END = 1 << 62
# The digits of the numbers below a thousand, and how many numbers have twice as many digits.
THOUSAND = np.array([list(f"{number:03}".encode()) for number in range(1000)], np.uint8)
MOST_NUMBERS = len(THOUSAND) ** 2
MODULE_PATH = ""


class PackedIds(Struct, array_like=True):
    """What the ids of a file are made of, as flat lists."""

    # Keys and qualified paths of the definitions; the first is the module.
    keys: list[str]
    paths: list[str]
    # By definition four numbers: its start with decorators, its span, and a code; -1 without a position.
    places: list[int]
    # By run of syntax nodes two numbers: first node, definition.
    runs: list[int]
    # By kind, and node in the order of their numbers, three numbers: span, definition.
    spans: dict[str, list[int]] = {}
    # Definition, name and span of each parameter.
    parameters: list[tuple[int, str, int, int]] = []

    @staticmethod
    def of_definitions(repo_id: str, path: str, definitions: Columns) -> PackedIds:
        """Return the keys of a file's definitions, without spans of other nodes."""
        paths: list[str] = list(definitions["path"]) if definitions else [MODULE_PATH]
        places = list(_places(definitions)) if definitions else [0, 0, END, NO_NODE]
        runs = list(_runs(definitions)) if definitions else [0, 0]
        return PackedIds([definition_key(repo_id, path, each) for each in paths], paths, places, runs)

    @staticmethod
    def of_file(
        repo_id: str, path: str, definitions: Columns, libcst: Mapping[str, Columns | None], syntax: Columns
    ) -> PackedIds:
        """Return the keys and spans of a file; of one that CPython cannot parse, as LibCST gives them."""
        packed = PackedIds.of_definitions(
            repo_id, path, definitions or libcst_definitions(libcst.get("defs") or {})
        )
        owners = _Owners(packed.places)
        for kind, spans in _spans_of(libcst, syntax).items():
            packed.spans[kind] = list(owners.flat(spans))
        by_span = {
            (start, end): number
            for number, (_, start, end, _) in enumerate(_fours(packed.places))
            if number and start >= 0
        }
        unplaced: list[tuple[int, int, str]] = []
        for first, last, name, start, end in _parameters_of(libcst.get("params") or {}, syntax):
            if (first, last) in by_span:
                packed.parameters.append((by_span[first, last], normalize("NFKC", name), start, end))
            else:
                unplaced.append((start, end, normalize("NFKC", name)))
        # Of functions that LibCST places and CPython does not: they belong to what is around them.
        unplaced.sort()
        around = owners.of([(start, end) for start, end, _ in unplaced])
        for owner, (start, end, name) in zip(around, unplaced, strict=True):
            packed.parameters.append((owner, name, start, end))
        return packed


def _fours(places: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    numbers = iter(places)
    return zip(numbers, numbers, numbers, numbers, strict=True)


def _places(definitions: Columns) -> Iterator[int]:
    names = ("kind", "outer_bstart", "bstart", "bend")
    for kind, outer, start, end in zip(*(definitions[name] for name in names), strict=True):
        code = CODES.get(kind, NO_NODE)
        if kind == "Module":
            yield from (0, 0, END, code)
        elif start is None:
            yield from (-1, -1, -1, code)
        else:
            yield from (outer, start, end, code)


def _runs(definitions: Columns) -> Iterator[int]:
    """Yield the runs of syntax nodes: a definition begins one, and after it the one around it goes on."""
    around: list[tuple[int, int]] = []
    rows = [*zip(definitions["ast_id"], definitions["ast_end"], strict=True), (END, END)]
    for number, (first, end) in enumerate(rows):
        while around and around[-1][1] <= first:
            _, ended = around.pop()
            if around and ended < first and ended < around[-1][1]:
                yield from (ended, around[-1][0])
        if first < END:
            yield from (first, number)
            around.append((number, end))


def libcst_definitions(defs: Columns) -> dict[str, list[Any]]:
    """Return the definitions that LibCST gives, in the form of `definitions.definitions_of`."""
    rows = [] if not defs else list(zip(*(defs[name] for name in LIBCST_FIELDS["defs"]), strict=True))
    rows.sort(key=lambda row: (row[2], -row[3]))
    columns: dict[str, list[Any]] = {
        name: [] for name in ("ast_id", "ast_end", "kind", "path", "outer_bstart", "bstart", "bend", "line")
    }
    around: list[tuple[str, int, Counter[str]]] = [(MODULE_PATH, END, Counter())]
    _append(columns, "Module", MODULE_PATH, 0, END, 1)
    for kind, name, start, end, line in rows:
        while around[-1][1] < end:
            around.pop()
        outer, _, seen = around[-1]
        label = name or "<lambda>"
        path = numbered_path(outer, label, seen[label])
        seen[label] += 1
        _append(columns, LIBCST_KINDS.get(kind, "FunctionDef"), path, start, end, line)
        around.append((path, end, Counter()))
    return columns


def _append(columns: dict[str, list[Any]], kind: str, path: str, start: int, end: int, line: int) -> None:
    row = {"ast_id": 0, "ast_end": 0, "kind": kind, "path": path, "outer_bstart": start, "line": line}
    for name, cell in {**row, "bstart": start, "bend": end}.items():
        columns[name].append(cell)


def _spans_of(libcst: Mapping[str, Columns | None], syntax: Columns) -> dict[str, set[Span]]:
    """Return the spans of nodes by kind, as both witnesses give them."""
    spans: defaultdict[str, set[Span]] = defaultdict(set)
    for kind, (name, start, end) in SPAN_LISTS.items():
        columns = libcst.get(name)
        if columns:
            spans[kind].update(zip(columns[start], columns[end], strict=True))
    refs = libcst.get("refs")
    if refs:
        places = list(zip(refs["bstart"], refs["bend"], strict=True))
        for name, kind in REF_KINDS.items():
            spans[kind].update(compress(places, [each == name for each in refs["kind"]]))
    if syntax:
        _add_syntax_spans(spans, syntax, with_attributes=not refs)
    for each in spans.values():
        each.discard((None, None))
    return spans


def _add_syntax_spans(spans: defaultdict[str, set[Span]], syntax: Columns, *, with_attributes: bool) -> None:
    kinds, parents = syntax["kind"], syntax["parent_ast_id"]
    names, starts, ends = syntax["name"], syntax["bstart"], syntax["bend"]
    for node, (kind, slot) in enumerate(zip(kinds, syntax["slot"], strict=True)):
        start = starts[node]
        if start is None:
            continue
        if kind in SYNTAX_KINDS:
            spans[SYNTAX_KINDS[kind]].add((start, ends[node]))
        elif kind == "Attribute" and with_attributes:
            spans["ATTRIBUTE_REF"].add((ends[node] - len(names[node].encode()), ends[node]))
        if slot == "decorator_list":
            spans["DECORATOR"].add((start, ends[node]))
        elif slot in ("args", "value") and kinds[parents[node]] in ("Call", "keyword", "Starred"):
            spans["ARGUMENT"].add((start, ends[node]))


def _parameters_of(params: Columns, syntax: Columns) -> Iterable[tuple[int, int, str, int, int]]:
    """Yield the span of the function, and name and span of each parameter."""
    if params:
        yield from zip(*(params[name] for name in LIBCST_FIELDS["params"]), strict=True)
    elif syntax:
        kinds, parents, starts, ends = (syntax[name] for name in ("kind", "parent_ast_id", "bstart", "bend"))
        for node, (kind, name) in enumerate(zip(kinds, syntax["name"], strict=True)):
            start = starts[node]
            if kind == "arg" and start is not None:
                owner = parents[parents[node]]
                yield starts[owner], ends[owner], name, start, start + len(name.encode())


class _Owners:
    """The innermost definition around a span."""

    def __init__(self, places: Sequence[int]) -> None:
        placed = [
            (outer, -end, number) for number, (outer, _, end, _) in enumerate(_fours(places)) if outer >= 0
        ]
        placed.sort()
        self._placed = [(start, -end, number) for start, end, number in placed]

    def of(self, spans: Iterable[Span]) -> Iterator[int]:
        """Yield the definition of each span; spans must be sorted by start and, backwards, by end."""
        waiting = iter(self._placed)
        coming = next(waiting, None)
        around = [(END, 0)]
        for start, end in spans:
            # A definition with the very span belongs to the one around it, and so do nodes with it.
            while coming is not None and (coming[0] < start or (coming[0] == start and coming[1] > end)):
                while around[-1][0] < coming[1]:
                    around.pop()
                around.append((coming[1], coming[2]))
                coming = next(waiting, None)
            while around[-1][0] < end:
                around.pop()
            yield around[-1][1]

    def flat(self, spans: Iterable[Span]) -> Iterator[int]:
        """Yield start, end and definition of each span, in the order of their numbers."""
        ordered = sorted(spans, key=_outer_first)
        for (start, end), owner in zip(ordered, self.of(ordered), strict=True):
            yield start
            yield end
            yield owner


def _placed(start: int | None, end: int | None) -> Span:
    """Return a span by which to sort; nodes without one come last, and belong to the module."""
    return (END, END) if start is None or end is None else (start, end)


def _outer_first(span: Span) -> Span:
    return span[0], -span[1]


class FileIds:
    """The ids of one file."""

    def __init__(self, packed: PackedIds) -> None:
        self.packed = packed
        self._tables: dict[str, dict[tuple[int | None, int | None], str]] = {}

    def of_kind(self, kind: str) -> Iterable[str]:
        """Return the ids of all nodes of a kind that has spans."""
        if kind not in self._tables:
            self._tables[kind] = self._table(kind)
        return self._tables[kind].values()

    def at(self, kind: str, bstart: int | None, bend: int | None) -> str:
        """Return the id of the node of a kind with a span; those without a span share one."""
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = self._table(kind)
        known = table.get((bstart, bend))
        if known is None:
            part = UNPLACED if bstart is None else f"@{bstart}-{bend}"
            known = table[bstart, bend] = node_id(kind, self.packed.keys[0], part)
        return known

    def _table(self, kind: str) -> dict[tuple[int | None, int | None], str]:
        """Return the ids of a kind by span."""
        packed, prefix = self.packed, f"{PREFIXES[kind]}:"
        table: dict[tuple[int | None, int | None], str] = {}
        if kind in ("FUNCTION", "CLASS"):
            code = CLASS if kind == "CLASS" else FUNCTION
            for key, (_, start, end, own) in zip(packed.keys, _fours(packed.places), strict=True):
                if own == code:
                    # The first of those without a span stands for all of them.
                    table.setdefault((start, end) if start >= 0 else (None, None), prefix + key)
        elif kind == "PARAMETER":
            seen: Counter[tuple[int, str]] = Counter()
            for owner, name, start, end in packed.parameters:
                # Two of a name: the function does not compile, or has a lambda without a place.
                repeated = f"#{seen[owner, name]}" if seen[owner, name] else ""
                seen[owner, name] += 1
                table[start, end] = f"{prefix}{packed.keys[owner]}.{escaped(name)}{repeated}"
        else:
            numbers = iter(packed.spans.get(NUMBERED_AS.get(kind, kind), ()))
            spans = zip(numbers, numbers, numbers, strict=True)
            table.update(self._number(prefix, (((start, end), owner) for start, end, owner in spans)))
        return table

    def _number(self, prefix: str, owned: Iterable[tuple[Any, int]]) -> Iterator[tuple[Any, str]]:
        """Yield each element with its id, which has its number among those of its definition."""
        heads = [f"{prefix}{key}." for key in self.packed.keys]
        counts = [0] * len(heads)
        for each, owner in owned:
            yield each, heads[owner] + number_text(counts[owner])
            counts[owner] += 1

    def numbered(self, kind: str, spans: Sequence[tuple[int | None, int | None]]) -> list[str]:
        """Return ids of nodes with these spans; equal spans are numbered in the order given.

        Those without a span belong to the module and come last.
        """
        places = [_placed(start, end) for start, end in spans]
        order = sorted(range(len(places)), key=lambda at: _outer_first(places[at]))
        owners = _Owners(self.packed.places).of(places[at] for at in order)
        made = dict(self._number(f"{PREFIXES[kind]}:", zip(order, owners, strict=True)))
        return [made[at] for at in range(len(spans))]

    def diagnostics(self, reported: Sequence[tuple[str, str | None, int | None, int | None]]) -> list[str]:
        """Return the ids of diagnostics: kind, code and span of each.

        They are numbered among those of their kind and code in their definition, in source order.
        """
        owners = [key_of(each) for each in self.numbered("DIAGNOSTIC", [each[2:] for each in reported])]
        order = sorted(range(len(reported)), key=lambda at: _outer_first(_placed(*reported[at][2:])))
        seen: Counter[str] = Counter()
        ids = [""] * len(reported)
        for at in order:
            kind, code, _, _ = reported[at]
            head = f"{PREFIXES['DIAGNOSTIC']}:{owners[at]}.{kind}.{escaped(code or '')}"
            ids[at] = f"{head}.{number_text(seen[head])}"
            seen[head] += 1
        return ids

    def ast(self, node: int) -> str:
        """Return the id of a node of the syntax tree."""
        first, owner, number = self._run(node)
        return node_id("AST_NODE", self.packed.keys[owner], number + node - first)

    def key_of_syntax(self, node: int, name: str) -> str:
        """Return the key of the definition that a syntax node is; of another node, one of its own."""
        first, owner, number = self._run(node)
        if first == node and number == 0:
            return self.packed.keys[owner]
        return definition_key("", self.packed.keys[0], f"{self.ast(node)} {name}")

    def ast_ids(self, count: int) -> pa.StringArray:
        """Return the ids of all nodes of a syntax tree with so many nodes.

        They have the same length: text is put together in columns, which takes a third of the time.
        """
        if count > MOST_NUMBERS:
            return pa.array([self.ast(node) for node in range(count)], pa.string())
        heads = [f"{PREFIXES['AST_NODE']}:{key}.".encode() for key in self.packed.keys]
        width = len(heads[0]) + 2 * THOUSAND.shape[1]
        firsts, owners, numbers = np.array(self._runs).T
        sizes = np.diff(firsts, append=count)
        high, low = np.divmod(np.arange(count) + (numbers - firsts).repeat(sizes), len(THOUSAND))
        of_keys = np.frombuffer(b"".join(heads), np.uint8).reshape(len(heads), -1)
        text = np.hstack([of_keys[owners].repeat(sizes, axis=0), THOUSAND[high], THOUSAND[low]])
        offsets = width * np.arange(count + 1, dtype=np.int32)
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))

    def _run(self, node: int) -> tuple[int, int, int]:
        """Return the run that a syntax node is in."""
        return self._runs[bisect_right(self._runs, node, key=lambda run: run[0]) - 1]

    @cached_property
    def _runs(self) -> list[tuple[int, int, int]]:
        """First node, definition and first number of each run of syntax nodes."""
        counts: Counter[int] = Counter()
        numbers = iter(self.packed.runs)
        runs = list(zip(numbers, numbers, strict=True))
        numbered = []
        for (first, owner), (end, _) in pairwise([*runs, (END, 0)]):
            numbered.append((first, owner, counts[owner]))
            counts[owner] += end - first
        return numbered


class DefinitionKeys:
    """The keys of the scopes and code objects of a file: those of the definitions they belong to."""

    def __init__(self, repo_id: str, path: str, definitions: Columns) -> None:
        self._repo_id, self._path = repo_id, path
        self._definitions = definitions
        # Keys made so far, by qualified path.
        self.made: dict[str, str] = {}

    def _key(self, qualified: str) -> str:
        key = self.made[qualified] = definition_key(self._repo_id, self._path, qualified)
        return key

    def of_scopes(self, blocks: Columns) -> dict[str, str]:
        """Return the keys of scopes by their keys in the symbol table.

        Blocks are matched with definitions by type, name and line; those that share them are in the same
        order on both sides. What remains, such as the scopes of type parameters, has a path of its own.
        """
        if not blocks:
            return {}
        waiting = self._by_label()
        rows = list(zip(*(blocks[name] for name in BLOCK_FIELDS), strict=True))
        paths = {key: MODULE_PATH for key, _, kind, _, _ in rows if kind == "module"}
        # Definitions in f-strings have no line before Python 3.12.
        for is_placed in (True, False):
            for key, _, kind, name, line in rows:
                same = waiting.get((kind, name, line if is_placed else None))
                if same and key not in paths:
                    paths[key] = same.pop(0)
        seen: Counter[tuple[str, str]] = Counter()
        for key, parent, kind, name, _ in rows:
            if key not in paths:
                outer = paths[parent]
                label = f"<{kind} {name}>"
                paths[key] = f"{outer}/{label}#{seen[outer, label]}"
                seen[outer, label] += 1
        return {key: self._key(path) for key, path in paths.items()}

    def _by_label(self) -> dict[tuple[str, str, int | None], list[str]]:
        """Return the paths of definitions by type, name and line, in the compiler's order."""
        names = ("entered", "kind", "name", "line", "path")
        columns = [self._definitions[name] for name in names] if self._definitions else []
        rows = sorted(zip(*columns, strict=True), key=lambda row: row[0])
        waiting: defaultdict[tuple[str, str, int | None], list[str]] = defaultdict(list)
        for _, kind, name, line, path in rows:
            if kind != "Module":
                scope_type = "class" if kind == "ClassDef" else "function"
                waiting[scope_type, name.strip("<>"), line].append(path)
        return waiting

    def of_units(self, units: Columns) -> dict[str, str]:
        """Return the keys of code objects by their keys in the bytecode table.

        They are matched with definitions by span and name. The compiler copies the code of a `finally`: a
        further copy of a definition has a path of its own.
        """
        if not units:
            return {}
        names = ("bstart", "bend", "name", "path")
        rows = zip(*(self._definitions[name] for name in names), strict=True) if self._definitions else ()
        by_place = {(start, end, name): path for start, end, name, path in rows if start is not None}
        seen: Counter[str] = Counter()
        paths: dict[str, str] = {}
        for key, parent, name, start, end in zip(*(units[field] for field in UNIT_FIELDS), strict=True):
            path = MODULE_PATH if parent is None else by_place.get((start, end, name))
            if path is None:
                path = f"{paths[parent]}/{name}"
            number = seen[path]
            seen[path] += 1
            paths[key] = f"{path}~{number}" if number or "/" in path else path
        return {key: self._key(path) for key, path in paths.items()}
