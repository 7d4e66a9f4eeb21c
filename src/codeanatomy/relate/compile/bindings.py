"""Emit the relations of a file's scopes, and between its names and their bindings.

    def count(step):              DEFINES_BINDING function -> count of the module, parameter -> step of count
        global total              BINDING_RESOLVES_TO total of count -> total of the module, as global
        total += step             READS and WRITES name -> total of the module, READS name -> step of count
        print(total)              READS total; the file does not bind `print`: an `UnboundName`
        return lambda: step       BINDING_RESOLVES_TO step of the lambda -> step of count, as free

    class A:                      OWNS_SCOPE          module, A, m, comprehension -> their scopes
        def m(self):              SCOPE_PARENT        scope of the comprehension -> that of m, ...
            return [i for i in s] SCOPE_BINDS         ... -> i, where the compiler has no block for it (3.12)

LibCST gives the place of a name, CPython's tree its scope, CPython's symbol tables its binding; the role of a
row is how compiled code accesses the name (`compile.scope.Access`). Names that the file does not bind are
returned, and resolved where builtins and star imports are known.

The tree has a Name node for most names. For the others:
- Names in a pattern, a handler, a type parameter or a `global` are a field of that node, without a place of
  their own. Of the nodes with that name, the last one that starts before the name and spans it is taken.
- Names in f-strings have no places before Python 3.12. Those of one f-string are matched in source order.
- Any other name is returned as unbound without a scope; so are all names of a file that does not compile.

A name with a symbol in the block of its scope needs no SCOPE_BINDS row, and a scope with a block no
SCOPE_PARENT row: both are in `symtable_files_v1`. The others get one here: cells of classes (`__class__`),
and variables of scopes without a block. Attributes assigned on instances get theirs in `emit.relations`.

`x: int` alone defines and writes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias
from unicodedata import normalize

from codeanatomy.file_ids import FileIds
from codeanatomy.file_view import iter_rows
from codeanatomy.node_ids import binding_id, module_id, span_id
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.scope_tree import Scopes
from codeanatomy.relate.program import Place
from codeanatomy.relate.relation_rows import NOWHERE, Evidence, Relation, RelationRows
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
# Kinds of owners by kind of scope; other scopes are owned by their syntax node.
OWNERS = {"class": "CLASS", "function": "FUNCTION", "lambda": "FUNCTION"}
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
    columns = iter_rows(refs, "text", "context", "bstart", "bend", "line")
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
            for name in scope.names_with("is_free"):
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
        dst = ("BINDING", target.binding)
        self._rows.add(_relation(kind, (source, src_id), dst, place, role, evidence))

    # Names.

    def add_names(self, refs: Columns) -> None:
        """Add names that are read, written, deleted or declared."""
        names = (
            (text if text.isascii() else normalize_name(text), context, place)
            for text, context, *place in _name_refs(refs)
        )
        for name, context, (start, end, line), node in self._with_nodes("Name", names):
            if node is None:
                self.unbound.append(UnboundName(start, end, line, name, None))
            else:
                self._add_name(name, context, node, self._scopes.of_node[node], (start, end, line))

    def _with_nodes(
        self, kind: str, names: Iterable[tuple[str, str, Sequence[int]]]
    ) -> Iterator[tuple[str, str, Sequence[int], int | None]]:
        """Yield names with their nodes; last those in f-strings, whose nodes have no places.

        These are matched in order. If the counts differ, reads get a node if all nodes are in one scope.
        """
        unplaced: defaultdict[tuple[int, str], list[tuple[str, Sequence[int]]]] = defaultdict(list)
        for name, context, place in names:
            node = self._nodes.names.get(place[0])
            if node is None:
                string = self._nodes.string(place[0])
                if string is not None:
                    unplaced[string, name].append((context, place))
                    continue
                node = None if context == "load" else self._nodes.name_field(name, place[0])
            yield name, context, place, node
        for (string, name), uses in unplaced.items():
            nodes: list[int | None] = [*self._nodes.in_string(string, kind, name)]
            if len(nodes) != len(uses):
                scopes = {self._scopes.of_node[node] for node in nodes if node is not None}
                is_same = kind == "Name" and len(scopes) == 1
                nodes = [nodes[0] if is_same else None] * len(uses)
            for (context, place), node in zip(uses, nodes, strict=True):
                yield name, context, place, node

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
        rows = iter_rows(defs, "kind", "name", "def_bstart", "def_bend", "line")
        for kind, name, start, end, line in rows:
            node = self._nodes.statements.get(start)
            if kind in DEFINITION_KINDS and node is not None:
                self._add_definition(
                    DEFINITION_KINDS[kind], (start, end), name, self._scopes.of_node[node], line
                )

    def add_parameters(self, params: Columns) -> None:
        """Add parameters, bound in the scope of their function."""
        rows = iter_rows(params, "name", "bstart", "bend", "line")
        names = ((normalize_name(name), "load", place) for name, *place in rows)
        for name, _, (start, end, line), node in self._with_nodes("arg", names):
            if node is not None:
                self._add_definition("PARAMETER", (start, end), name, self._scopes.of_node[node], line)

    def add_imports(self, imports: Columns) -> None:
        """Add imports: they bind the name after `as`, or the first part of the module's name."""
        fields = ("kind", "name", "asname", "is_star", "stmt_bstart", "alias_bstart", "alias_bend", "line")
        rows = iter_rows(imports, *fields)
        for kind, name, asname, is_star, statement, start, end, line in rows:
            node = self._nodes.statements.get(statement)
            if node is not None and not is_star:
                bound = asname or (name.partition(".")[0] if kind == "import" else name)
                self._add_definition("IMPORT_ALIAS", (start, end), bound, self._scopes.of_node[node], line)


def add_scope_relations(rows: RelationRows, tree: Tree, scopes: Scopes, ids: FileIds) -> None:
    """Add the rows of a file's scopes."""
    for scope in scopes.values():
        if scope.state == "unmatched":
            continue
        node, own = scope.ast_id, ("SCOPE", scope.key)
        place = tree.bstart[node], tree.bend[node], tree.line[node]
        evidence = [Evidence("symtable", scope.key)]
        owner = _owner(ids, rows.file_id, scope, place)
        rows.add(_relation("OWNS_SCOPE", owner, own, place, scope.kind, evidence))
        if scope.state == "synthetic" and scope.parent is not None:
            parent, name = ("SCOPE", scope.parent.key), scope.label[1]
            relation = _relation("SCOPE_PARENT", own, parent, place, scope.kind, evidence)
            rows.add(relation._replace(src_qname=name))
        for name in sorted(scope.names_without_symbol()):
            binding = ("BINDING", binding_id(scope.key, name))
            rows.add(_relation("SCOPE_BINDS", own, binding, NOWHERE, name, evidence))


def _relation(
    kind: str,
    src: tuple[str, str],
    dst: tuple[str, str],
    place: Place,
    role: str | None,
    evidence: Sequence[Evidence],
) -> Relation:
    ends = (kind, *src, *dst, *place)
    return Relation(*ends, "symtable", "scope", "scope", 1.0, role=role, evidence=evidence)


def _owner(ids: FileIds, file_id: str, scope: Scope, place: Place) -> tuple[str, str]:
    """Return kind and id of the node that owns a scope."""
    if scope.kind == "module":
        return "MODULE", module_id(file_id)
    kind = OWNERS.get(scope.kind)
    if kind is None:
        return "AST_NODE", ids.ast(scope.ast_id)
    return kind, ids.at(kind, place[0], place[1])


def class_names(scopes: Scopes) -> dict[str, list[str]]:
    """Return the names that symbol tables or SCOPE_BINDS rows list for class scopes, by scope."""
    return {
        scope.key: sorted(scope.symbol_names() | scope.names_without_symbol())
        for scope in scopes.values()
        if scope.kind == "class"
    }
