"""Names of a file bound to the scopes that hold them: what is read, written, deleted and defined where.

    def count(step):              DEFINES_BINDING function -> count of the module, parameter -> step of count
        global total              BINDING_RESOLVES_TO total of count -> total of the module, as global
        total += step             READS and WRITES name -> total of the module, READS name -> step of count
        print(total)              READS total; `print` is bound nowhere here: an `OpenUse`
        return lambda: step       BINDING_RESOLVES_TO step of the lambda -> step of count, as free

LibCST says where names stand, CPython's tree in which scope, CPython's symbol tables what that means; the
role of a row is the way by which the compiler gets at the name (`scopes.Found.family`). A name that nothing
in the file binds is left to those who know the builtins and the star imports.

The tree has a Name for most names. For the rest:
- Those that a pattern, a handler, a type parameter or a `global` carries have no place of their own in it.
  The last carrier of that name that begins before and has not ended is the one.
- Names in f-strings may have lost their places (Python before 3.12). Those of an f-string are taken in the
  order of the text.
- What is left is an open use without a scope; so is everything in a file that the compiler refuses.

`x: int` alone defines and writes nothing. Tests: `tests/unit/relate/test_scopes.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias
from unicodedata import normalize

from codeanatomy.ids import id_maker
from codeanatomy.node_ids import PREFIXES, binding_id, node_id_maker
from codeanatomy.relate.compile.scope import FUNCTIONS, TYPE_VARIABLES, Scope
from codeanatomy.relate.compile.scope_tree import Scopes
from codeanatomy.relate.compile.syntax_tree import Tree
from codeanatomy.relate.program import Place
from codeanatomy.relate.relation_rows import NOWHERE, Evidence, RelationRows

Columns: TypeAlias = Mapping[str, Sequence[Any]]
Saying: TypeAlias = tuple[Evidence, ...]

# Nodes that carry names which are no nodes.
CARRIERS = (
    frozenset({"ExceptHandler", "MatchAs", "MatchStar", "MatchMapping", "Global", "Nonlocal"})
    | TYPE_VARIABLES
)
NAMES = frozenset({"Name", "arg"})
STARTING = FUNCTIONS | {"ClassDef", "Lambda", "Import", "ImportFrom"}
ENTITIES = ("NAME_REF", "TYPE_PARAM", "FUNCTION", "CLASS", "PARAMETER", "IMPORT_ALIAS")
SOURCES = {"function": "FUNCTION", "class": "CLASS"}
KINDS = {"load": "READS", "store": "WRITES", "del": "DELETES"}


class OpenUse(NamedTuple):
    """A name that the file does not bind; without a scope, one of which nothing is known."""

    bstart: int
    bend: int
    line: int
    name: str
    scope: Scope | None


def binding_relations(rows: RelationRows, tree: Tree, scopes: Scopes, libcst: Mapping[str, Columns]) -> list[OpenUse]:
    """Add the rows of a file's bindings; the names that are not bound in it, in the order of the text."""
    is_read = bool(libcst) and libcst.get("refs") is not None
    if not scopes:
        refs = _names(libcst["refs"]) if is_read else ()
        return [OpenUse(start, end, line, name, None) for name, _, start, end, line in refs]
    binder = _Binder(rows, tree, scopes)
    if is_read:
        # Names first: a `global` stands before what it is about.
        binder.names(libcst["refs"])
        binder.definitions(libcst["defs"])
        binder.parameters(libcst["params"])
        binder.imports(libcst["imports"])
    binder.handed_through()
    return sorted(binder.open_uses, key=lambda use: use.bstart)


def _names(refs: Columns) -> Iterator[tuple[str, str, int, int, int]]:
    """Name, context, span and line of the refs that are no attributes."""
    columns = zip(*(refs[field] for field in ("text", "context", "bstart", "bend", "line")), strict=True)
    return compress(columns, (kind == "name" for kind in refs["kind"]))


def spelled(name: str) -> str:
    """The name as CPython reads it: letters that are the same to it are one."""
    return name if name.isascii() else normalize("NFKC", name)


class _Nodes:
    """The nodes of a tree that names can be found by."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        starts = tree.bstart
        # Names and parameters, definitions and imports by the byte where they begin.
        self.names: dict[int, int] = {}
        self.starting: dict[int, int] = {}
        self._carriers: defaultdict[str, list[tuple[int, ...]]] = defaultdict(list)
        unplaced = []
        for node, kind in enumerate(tree.kind):
            if kind in NAMES:
                start = starts[node]
                if start is None:
                    unplaced.append(node)
                else:
                    self.names[start] = node
            elif kind in STARTING:
                start = starts[node]
                if start is not None:
                    self.starting[start] = node
            elif kind in CARRIERS:
                self._carry(node)
        for places in self._carriers.values():
            places.sort()
        # Spans of f-strings, and the nodes in each that have no place, by kind and name.
        self._strings: list[tuple[int, ...]] = []
        self._lost: dict[int, defaultdict[tuple[str, str | None], list[int]]] = {}
        if unplaced:
            self._gather(unplaced)

    def _carry(self, node: int) -> None:
        start, end, name = self._tree.bstart[node], self._tree.bend[node], self._tree.name[node]
        if start is not None and end is not None and name is not None:
            for each in name.split(", "):
                self._carriers[each].append((start, end, node))

    def carrier(self, name: str, start: int) -> int | None:
        """The node that carries a name which begins here."""
        places = self._carriers.get(name, ())
        at = bisect_left(places, (start + 1,)) - 1
        while at >= 0 and places[at][1] <= start:
            at -= 1
        return places[at][2] if at >= 0 else None

    def _gather(self, unplaced: Sequence[int]) -> None:
        """Nodes without a place by the outermost f-string that they are in."""
        tree = self._tree
        for top in sorted({_outermost_string(tree, node) for node in unplaced}):
            start, end = tree.bstart[top], tree.bend[top]
            if start is not None and end is not None:
                self._strings.append((start, end, top))
                lost = self._lost[start] = defaultdict(list)
                for node in _in_order_of_text(tree, top):
                    if tree.kind[node] in NAMES and tree.bstart[node] is None:
                        lost[tree.kind[node], tree.name[node]].append(node)
        self._strings.sort()

    def string(self, start: int) -> int | None:
        """Where the f-string around a place begins, if nodes in it have lost theirs."""
        at = bisect_left(self._strings, (start + 1,)) - 1
        return self._strings[at][0] if at >= 0 and start < self._strings[at][1] else None

    def in_string(self, string: int, kind: str, name: str) -> list[int]:
        """The nodes of a name in an f-string that have no places, in the order of the text."""
        return self._lost[string][kind, name]


def _outermost_string(tree: Tree, node: int) -> int:
    """The module if there is none."""
    top, parent = 0, tree.parent[node]
    while parent is not None:
        if tree.kind[parent] == "JoinedStr":
            top = parent
        parent = tree.parent[parent]
    return top


def _in_order_of_text(tree: Tree, top: int) -> Iterator[int]:
    waiting = [top]
    while waiting:
        node = waiting.pop()
        yield node
        parts = tree.children(node)
        if tree.kind[node] == "IfExp":
            test, body, orelse = parts
            parts = [body, test, orelse]
        elif tree.kind[node] == "Dict":
            values = tree.many(node, "values")
            keys = tree.gapped(node, "keys", len(values))
            parts = [part for pair in zip(keys, values, strict=True) for part in pair if part is not None]
        waiting += parts[::-1]


class _Scoped(dict[Scope, str]):
    """Ids of the scopes of a file."""

    def __init__(self, file_id: str) -> None:
        super().__init__()
        self._made = id_maker(PREFIXES["SCOPE"], file_id)

    def __missing__(self, scope: Scope) -> str:
        made = self[scope] = self._made(scope.key)
        return made


class _Target(NamedTuple):
    """What a name means in a scope: the binding, how it is reached, and who says so."""

    binding: str
    role: str
    said: Evidence


class _Binder:
    """The rows of one file."""

    def __init__(self, rows: RelationRows, tree: Tree, scopes: Scopes) -> None:
        self.open_uses: list[OpenUse] = []
        self._rows = rows
        self._tree = tree
        self._scopes = scopes
        self._nodes = _Nodes(tree)
        self._targets: dict[tuple[Scope, str], _Target | None] = {}
        # Bindings that are told to be those of another scope.
        self._resolved: set[str] = set()
        self._scope_ids = _Scoped(rows.file_id)
        self._span_id = id_maker("span", rows.file_id)
        self._ids = {kind: node_id_maker(kind, rows.file_id) for kind in ENTITIES}

    def _target(self, scope: Scope, name: str, place: Place) -> _Target | None:
        """The binding that a name, first met at this place, means in a scope; none if the file has none."""
        key = scope, name
        if key in self._targets:
            return self._targets[key]
        found = scope.find(name)
        target = None
        if found.home is not None:
            own, home = self._scope_ids[scope], self._scope_ids[found.home]
            target = _Target(binding_id(home, found.name), found.family, Evidence("symtable", own))
            declared = scope.declares(name) if found.home is not scope else None
            source = "" if declared is None else binding_id(own, found.name)
            if source and source not in self._resolved:
                self._resolved.add(source)
                said = (target.said,) if place == NOWHERE else self._said(target, place)
                self._add("BINDING_RESOLVES_TO", "BINDING", source, target, place, declared, said)
        self._targets[key] = target
        return target

    def handed_through(self) -> None:
        """Free names that a scope only has for one inside of it; and `__class__`, which `super()` uses."""
        for scope in self._scopes.values():
            for name in scope.free():
                self._target(scope, name, NOWHERE)

    def _said(self, target: _Target, place: Place) -> Saying:
        return target.said, Evidence("libcst", self._span_id(place[0], place[1]))

    def _add(
        self,
        kind: str,
        source: str,
        src_id: str,
        target: _Target,
        place: Place,
        role: str | None,
        said: Saying,
    ) -> None:
        self._rows.add(
            kind,
            source,
            src_id,
            "BINDING",
            target.binding,
            place=place,
            origin="symtable",
            rule="scope",
            method="scope",
            confidence=1.0,
            role=role,
            evidence=said,
        )

    # Names.

    def names(self, refs: Columns) -> None:
        """Names that are read, written, deleted or declared."""
        nodes, around = self._nodes.names, self._scopes.around
        lost: defaultdict[tuple[int, str], list[tuple[str, int, int, int]]] = defaultdict(list)
        for text, context, start, end, line in _names(refs):
            name = text if text.isascii() else spelled(text)
            node = nodes.get(start)
            if node is None:
                string = self._nodes.string(start)
                if string is not None:
                    lost[string, name].append((context, start, end, line))
                    continue
                node = None if context == "load" else self._nodes.carrier(name, start)
            if node is None:
                self.open_uses.append(OpenUse(start, end, line, name, None))
            else:
                self._name(name, context, node, around[node], (start, end, line))
        for (string, name), uses in lost.items():
            self._in_string(string, name, uses)

    def _in_string(self, string: int, name: str, uses: Sequence[tuple[str, int, int, int]]) -> None:
        """Names in an f-string whose nodes have no places: in order, or if all of them stand in one scope."""
        nodes = self._nodes.in_string(string, "Name", name)
        is_even = len(nodes) == len(uses)
        if not is_even and len({self._scopes.around[node] for node in nodes}) == 1:
            nodes = nodes[:1] * len(uses)
            is_even = True
        for at, (context, start, end, line) in enumerate(uses):
            if is_even:
                self._name(name, context, nodes[at], self._scopes.around[nodes[at]], (start, end, line))
            else:
                self.open_uses.append(OpenUse(start, end, line, name, None))

    def _name(self, name: str, context: str, node: int, scope: Scope, place: tuple[int, int, int]) -> None:
        target = self._target(scope, name, place)
        if target is None:
            self.open_uses.append(OpenUse(*place, name, scope))
            return
        if context == "declare":
            return
        ref, said = self._ids["NAME_REF"](place[0], place[1]), self._said(target, place)
        if context != "store":
            self._add(KINDS[context], "NAME_REF", ref, target, place, target.role, said)
            return
        kind, parent = self._tree.kind, self._tree.parent[node] or 0
        statement = kind[parent] if self._tree.slot[node] == "target" else ""
        if statement == "AugAssign":
            self._add("READS", "NAME_REF", ref, target, place, target.role, said)
        if statement != "AnnAssign" or self._tree.one(parent, "value") is not None:
            self._add("WRITES", "NAME_REF", ref, target, place, target.role, said)
        source = "TYPE_PARAM" if kind[node] in TYPE_VARIABLES else "NAME_REF"
        src_id = ref if source == "NAME_REF" else self._ids[source](place[0], place[1])
        self._add("DEFINES_BINDING", source, src_id, target, place, None, said)

    # What else defines.

    def _define(self, kind: str, span: tuple[int, int], name: str, scope: Scope | None, line: int) -> None:
        place = (*span, line)
        target = None if scope is None else self._target(scope, spelled(name), place)
        if target is not None:
            said = self._said(target, place)
            self._add("DEFINES_BINDING", kind, self._ids[kind](*span), target, place, None, said)

    def definitions(self, defs: Columns) -> None:
        """Functions and classes, in the scope around them."""
        fields = ("kind", "name", "def_bstart", "def_bend", "line")
        for kind, name, start, end, line in zip(*(defs[field] for field in fields), strict=True):
            node = self._nodes.starting.get(start)
            if kind in SOURCES and node is not None:
                self._define(SOURCES[kind], (start, end), name, self._scopes.around[node], line)

    def parameters(self, params: Columns) -> None:
        """Parameters, in the scope of their function."""
        lost: defaultdict[tuple[int, str], list[tuple[int, int, int]]] = defaultdict(list)
        fields = ("name", "bstart", "bend", "line")
        for name, start, end, line in zip(*(params[field] for field in fields), strict=True):
            node = self._nodes.names.get(start)
            if node is not None:
                self._define("PARAMETER", (start, end), name, self._scopes.around[node], line)
            elif (string := self._nodes.string(start)) is not None:
                lost[string, name].append((start, end, line))
        for (string, name), places in lost.items():
            nodes = self._nodes.in_string(string, "arg", spelled(name))
            if len(nodes) == len(places):
                for node, (start, end, line) in zip(nodes, places, strict=True):
                    self._define("PARAMETER", (start, end), name, self._scopes.around[node], line)

    def imports(self, imports: Columns) -> None:
        """What an import binds: the name after `as`, or the first part of a module's."""
        fields = ("kind", "name", "asname", "is_star", "stmt_bstart", "alias_bstart", "alias_bend", "line")
        rows = zip(*(imports[field] for field in fields), strict=True)
        for kind, name, asname, is_star, statement, start, end, line in rows:
            node = self._nodes.starting.get(statement)
            if node is not None and not is_star:
                bound = asname or (name.partition(".")[0] if kind == "import" else name)
                self._define("IMPORT_ALIAS", (start, end), bound, self._scopes.around[node], line)
