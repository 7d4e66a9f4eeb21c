"""Emit the relations between names of a file and their bindings: reads, writes, deletions, definitions.

    def count(step):              DEFINES_BINDING function -> count of the module, parameter -> step of count
        global total              BINDING_RESOLVES_TO total of count -> total of the module, as global
        total += step             READS and WRITES name -> total of the module, READS name -> step of count
        print(total)              READS total; the file does not bind `print`: an `UnboundName`
        return lambda: step       BINDING_RESOLVES_TO step of the lambda -> step of count, as free

LibCST gives the place of a name, CPython's tree its scope, CPython's symbol tables its binding; the role of a
row is how compiled code accesses the name (`compile.scope.Access`). Names that the file does not bind are
returned, and resolved where builtins and star imports are known.

The tree has a Name node for most names. For the others:
- Names in a pattern, a handler, a type parameter or a `global` are a field of that node, without a place of
  their own. Of the nodes with that name, the last one that starts before the name and spans it is taken.
- Names in f-strings have no places before Python 3.12. Those of one f-string are matched in source order.
- Any other name is returned as unbound without a scope; so are all names of a file that does not compile.

`x: int` alone defines and writes nothing. Tests: `tests/unit/relate/test_scopes.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias
from unicodedata import normalize

from codeanatomy.file_ids import FileIds
from codeanatomy.node_ids import binding_id, span_id
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.scope_tree import Scopes
from codeanatomy.relate.program import Place
from codeanatomy.relate.relation_rows import NOWHERE, Evidence, RelationRows
from codeanatomy.syntax_tree import FUNCTIONS, TYPE_VARIABLES, Tree

Columns: TypeAlias = Mapping[str, Sequence[Any]]

# Nodes with names in a field instead of a child node.
NAME_FIELD_NODES = (
    frozenset({"ExceptHandler", "MatchAs", "MatchStar", "MatchMapping", "Global", "Nonlocal"})
    | TYPE_VARIABLES
)
NAME_NODES = frozenset({"Name", "arg"})
STATEMENT_NODES = FUNCTIONS | {"ClassDef", "Lambda", "Import", "ImportFrom"}
DEFINITION_KINDS = {"function": "FUNCTION", "class": "CLASS"}
RELATION_KINDS = {"load": "READS", "store": "WRITES", "del": "DELETES"}


class UnboundName(NamedTuple):
    """A name that the file does not bind; scope is None if its scope is not known."""

    bstart: int
    bend: int
    line: int
    name: str
    scope: Scope | None


def add_binding_relations(
    rows: RelationRows, tree: Tree, scopes: Scopes, libcst: Mapping[str, Columns], ids: FileIds
) -> list[UnboundName]:
    """Add the rows of a file's bindings; return the names that it does not bind, in source order."""
    has_refs = bool(libcst) and libcst.get("refs") is not None
    if not scopes:
        refs = _name_refs(libcst["refs"]) if has_refs else ()
        return [UnboundName(start, end, line, name, None) for name, _, start, end, line in refs]
    bindings = _BindingRows(rows, tree, scopes, ids)
    if has_refs:
        # Names first: a `global` precedes the names that it declares.
        bindings.add_names(libcst["refs"])
        bindings.add_definitions(libcst["defs"])
        bindings.add_parameters(libcst["params"])
        bindings.add_imports(libcst["imports"])
    bindings.add_free_names()
    return sorted(bindings.unbound, key=lambda use: use.bstart)


def _name_refs(refs: Columns) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield name, context, span and line of the references that are names, not attributes."""
    columns = zip(*(refs[field] for field in ("text", "context", "bstart", "bend", "line")), strict=True)
    return compress(columns, (kind == "name" for kind in refs["kind"]))


def normalize_name(name: str) -> str:
    """Return an identifier as CPython normalizes it (NFKC)."""
    return name if name.isascii() else normalize("NFKC", name)


class _NodeIndex:
    """The nodes of a tree by the places and names of identifiers."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        starts = tree.bstart
        # Names and parameters, and definitions and imports, by their first byte.
        self.names: dict[int, int] = {}
        self.statements: dict[int, int] = {}
        # Span and node of the nodes with a name in a field, by name.
        self._name_fields: defaultdict[str, list[tuple[int, ...]]] = defaultdict(list)
        unplaced = []
        for node, kind in enumerate(tree.kind):
            if kind in NAME_NODES:
                start = starts[node]
                if start is None:
                    unplaced.append(node)
                else:
                    self.names[start] = node
            elif kind in STATEMENT_NODES:
                start = starts[node]
                if start is not None:
                    self.statements[start] = node
            elif kind in NAME_FIELD_NODES:
                self._add_name_fields(node)
        for places in self._name_fields.values():
            places.sort()
        # Spans of f-strings, and the nodes without a place in each, by kind and name.
        self._strings: list[tuple[int, ...]] = []
        self._unplaced: dict[int, defaultdict[tuple[str, str | None], list[int]]] = {}
        if unplaced:
            self._index_strings(unplaced)

    def _add_name_fields(self, node: int) -> None:
        start, end, name = self._tree.bstart[node], self._tree.bend[node], self._tree.name[node]
        if start is not None and end is not None and name is not None:
            for each in name.split(", "):
                self._name_fields[each].append((start, end, node))

    def name_field(self, name: str, start: int) -> int | None:
        """Return the node with this name in a field, for a name that starts at this byte."""
        places = self._name_fields.get(name, ())
        at = bisect_left(places, (start + 1,)) - 1
        while at >= 0 and places[at][1] <= start:
            at -= 1
        return places[at][2] if at >= 0 else None

    def _index_strings(self, unplaced: Sequence[int]) -> None:
        """Group nodes without a place by their outermost f-string."""
        tree = self._tree
        for top in sorted({_outermost_string(tree, node) for node in unplaced}):
            start, end = tree.bstart[top], tree.bend[top]
            if start is not None and end is not None:
                self._strings.append((start, end, top))
                nodes = self._unplaced[start] = defaultdict(list)
                for node in _in_source_order(tree, top):
                    if tree.kind[node] in NAME_NODES and tree.bstart[node] is None:
                        nodes[tree.kind[node], tree.name[node]].append(node)
        self._strings.sort()

    def string(self, start: int) -> int | None:
        """Return the start of the f-string around a byte, if nodes in it have no places."""
        at = bisect_left(self._strings, (start + 1,)) - 1
        return self._strings[at][0] if at >= 0 and start < self._strings[at][1] else None

    def in_string(self, string: int, kind: str, name: str) -> list[int]:
        """Return the nodes of a name without a place in an f-string, in source order."""
        return self._unplaced[string][kind, name]


def _outermost_string(tree: Tree, node: int) -> int:
    """Return the outermost f-string around a node, or the module."""
    top, parent = 0, tree.parent[node]
    while parent is not None:
        if tree.kind[parent] == "JoinedStr":
            top = parent
        parent = tree.parent[parent]
    return top


def _in_source_order(tree: Tree, top: int) -> Iterator[int]:
    pending = [top]
    while pending:
        node = pending.pop()
        yield node
        parts = tree.children(node)
        if tree.kind[node] == "IfExp":
            test, body, orelse = parts
            parts = [body, test, orelse]
        elif tree.kind[node] == "Dict":
            values = tree.many(node, "values")
            keys = tree.gapped(node, "keys", len(values))
            parts = [part for pair in zip(keys, values, strict=True) for part in pair if part is not None]
        pending += parts[::-1]


class _BindingTarget(NamedTuple):
    """The binding of a name in a scope, how it is accessed, and the evidence."""

    binding: str
    role: str
    evidence: Evidence


class _BindingRows:
    """Adds the binding rows of one file."""

    def __init__(self, rows: RelationRows, tree: Tree, scopes: Scopes, ids: FileIds) -> None:
        self.unbound: list[UnboundName] = []
        self._rows = rows
        self._tree = tree
        self._scopes = scopes
        self._nodes = _NodeIndex(tree)
        self._targets: dict[tuple[Scope, str], _BindingTarget | None] = {}
        # Bindings that have a row for the binding they resolve to in another scope.
        self._resolved: set[str] = set()
        self._ids = ids

    def _target(self, scope: Scope, name: str, place: Place) -> _BindingTarget | None:
        """Return the binding of a name, None if the file has none; add a row if another scope binds it."""
        key = scope, name
        if key in self._targets:
            return self._targets[key]
        resolved = scope.resolve(name)
        target = None
        if resolved.binding_scope is not None:
            own, binding_scope = scope.key, resolved.binding_scope.key
            binding = binding_id(binding_scope, resolved.name)
            target = _BindingTarget(binding, resolved.access, Evidence("symtable", own))
            declared = scope.declares(name) if resolved.binding_scope is not scope else None
            source = "" if declared is None else binding_id(own, resolved.name)
            if source and source not in self._resolved:
                self._resolved.add(source)
                evidence = (target.evidence,) if place == NOWHERE else self._evidence(target, place)
                self._add("BINDING_RESOLVES_TO", "BINDING", source, target, place, declared, evidence)
        self._targets[key] = target
        return target

    def add_free_names(self) -> None:
        """Add free names that only an inner scope uses; and `__class__`, which `super()` uses."""
        for scope in self._scopes.values():
            for name in scope.free():
                self._target(scope, name, NOWHERE)

    def _evidence(self, target: _BindingTarget, place: Place) -> tuple[Evidence, ...]:
        return target.evidence, Evidence("libcst", span_id(self._rows.file_id, place[0], place[1]))

    def _add(
        self,
        kind: str,
        source: str,
        src_id: str,
        target: _BindingTarget,
        place: Place,
        role: str | None,
        evidence: tuple[Evidence, ...],
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
            evidence=evidence,
        )

    # Names.

    def add_names(self, refs: Columns) -> None:
        """Add names that are read, written, deleted or declared."""
        nodes, scopes = self._nodes.names, self._scopes.of_node
        unplaced: defaultdict[tuple[int, str], list[tuple[str, int, int, int]]] = defaultdict(list)
        for text, context, start, end, line in _name_refs(refs):
            name = text if text.isascii() else normalize_name(text)
            node = nodes.get(start)
            if node is None:
                string = self._nodes.string(start)
                if string is not None:
                    unplaced[string, name].append((context, start, end, line))
                    continue
                node = None if context == "load" else self._nodes.name_field(name, start)
            if node is None:
                self.unbound.append(UnboundName(start, end, line, name, None))
            else:
                self._add_name(name, context, node, scopes[node], (start, end, line))
        for (string, name), uses in unplaced.items():
            self._add_names_in_string(string, name, uses)

    def _add_names_in_string(self, string: int, name: str, uses: Sequence[tuple[str, int, int, int]]) -> None:
        """Add names of an f-string whose nodes have no places: in order, or if all nodes are in one scope."""
        nodes = self._nodes.in_string(string, "Name", name)
        is_matched = len(nodes) == len(uses)
        if not is_matched and len({self._scopes.of_node[node] for node in nodes}) == 1:
            nodes = nodes[:1] * len(uses)
            is_matched = True
        for at, (context, start, end, line) in enumerate(uses):
            if is_matched:
                self._add_name(name, context, nodes[at], self._scopes.of_node[nodes[at]], (start, end, line))
            else:
                self.unbound.append(UnboundName(start, end, line, name, None))

    def _add_name(
        self, name: str, context: str, node: int, scope: Scope, place: tuple[int, int, int]
    ) -> None:
        target = self._target(scope, name, place)
        if target is None:
            self.unbound.append(UnboundName(*place, name, scope))
            return
        if context == "declare":
            return
        ref, evidence = self._ids.at("NAME_REF", place[0], place[1]), self._evidence(target, place)
        if context != "store":
            self._add(RELATION_KINDS[context], "NAME_REF", ref, target, place, target.role, evidence)
            return
        kind, parent = self._tree.kind, self._tree.parent[node] or 0
        statement = kind[parent] if self._tree.slot[node] == "target" else ""
        if statement == "AugAssign":
            self._add("READS", "NAME_REF", ref, target, place, target.role, evidence)
        if statement != "AnnAssign" or self._tree.one(parent, "value") is not None:
            self._add("WRITES", "NAME_REF", ref, target, place, target.role, evidence)
        source = "TYPE_PARAM" if kind[node] in TYPE_VARIABLES else "NAME_REF"
        src_id = ref if source == "NAME_REF" else self._ids.at(source, place[0], place[1])
        self._add("DEFINES_BINDING", source, src_id, target, place, None, evidence)

    # Definitions, parameters and imports.

    def _add_definition(
        self, kind: str, span: tuple[int, int], name: str, scope: Scope | None, line: int
    ) -> None:
        place = (*span, line)
        target = None if scope is None else self._target(scope, normalize_name(name), place)
        if target is not None:
            evidence = self._evidence(target, place)
            self._add("DEFINES_BINDING", kind, self._ids.at(kind, *span), target, place, None, evidence)

    def add_definitions(self, defs: Columns) -> None:
        """Add functions and classes, bound in their enclosing scope."""
        fields = ("kind", "name", "def_bstart", "def_bend", "line")
        for kind, name, start, end, line in zip(*(defs[field] for field in fields), strict=True):
            node = self._nodes.statements.get(start)
            if kind in DEFINITION_KINDS and node is not None:
                self._add_definition(
                    DEFINITION_KINDS[kind], (start, end), name, self._scopes.of_node[node], line
                )

    def add_parameters(self, params: Columns) -> None:
        """Add parameters, bound in the scope of their function."""
        unplaced: defaultdict[tuple[int, str], list[tuple[int, int, int]]] = defaultdict(list)
        fields = ("name", "bstart", "bend", "line")
        for name, start, end, line in zip(*(params[field] for field in fields), strict=True):
            node = self._nodes.names.get(start)
            if node is not None:
                self._add_definition("PARAMETER", (start, end), name, self._scopes.of_node[node], line)
            elif (string := self._nodes.string(start)) is not None:
                unplaced[string, name].append((start, end, line))
        for (string, name), places in unplaced.items():
            nodes = self._nodes.in_string(string, "arg", normalize_name(name))
            if len(nodes) == len(places):
                for node, (start, end, line) in zip(nodes, places, strict=True):
                    self._add_definition("PARAMETER", (start, end), name, self._scopes.of_node[node], line)

    def add_imports(self, imports: Columns) -> None:
        """Add imports: they bind the name after `as`, or the first part of the module's name."""
        fields = ("kind", "name", "asname", "is_star", "stmt_bstart", "alias_bstart", "alias_bend", "line")
        rows = zip(*(imports[field] for field in fields), strict=True)
        for kind, name, asname, is_star, statement, start, end, line in rows:
            node = self._nodes.statements.get(statement)
            if node is not None and not is_star:
                bound = asname or (name.partition(".")[0] if kind == "import" else name)
                self._add_definition("IMPORT_ALIAS", (start, end), bound, self._scopes.of_node[node], line)
