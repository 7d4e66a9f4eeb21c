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
- Any other name is returned as unbound without a scope.

A name with a symbol in the block of its scope needs no SCOPE_BINDS row, and a scope with a block no
SCOPE_PARENT row: both are in `symtable_files_v1`. The others get one here: cells of classes (`__class__`),
and variables of scopes without a block. Attributes assigned on instances get theirs in `emit.relations`.

`x: int` alone defines and writes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple
from unicodedata import normalize

from codeanatomy.file_ids import FileIds
from codeanatomy.file_view import Columns, iter_rows
from codeanatomy.node_ids import binding_id, module_id, span_id
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.scope_tree import Scopes
from codeanatomy.relate.program import Place
from codeanatomy.relate.relation_rows import NOWHERE, Evidence, Relation, RelationRows
from codeanatomy.syntax_tree import FUNCTIONS, TYPE_VARIABLES, Tree

# Nodes with names in a field instead of a child node.
NAME_FIELD_NODES = TYPE_VARIABLES | {
    *("ExceptHandler", "MatchAs", "MatchStar", "MatchMapping", "Global", "Nonlocal")
}
NAME_NODES = frozenset({"Name", "arg"})
STATEMENT_NODES = FUNCTIONS | {"ClassDef", "Lambda", "Import", "ImportFrom"}
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
    bindings = _BindingRows(rows, tree, scopes, ids)
    if libcst and libcst.get("refs") is not None:
        # Names first: a `global` precedes the names that it declares.
        bindings.add_names(libcst["refs"])
        bindings.add_definitions(libcst["defs"])
        bindings.add_parameters(libcst["params"])
        bindings.add_imports(libcst["imports"])
    bindings.add_free_names()
    return sorted(bindings.unbound, key=lambda use: use.bstart)


def normalize_name(name: str) -> str:
    """Return an identifier as CPython normalizes it (NFKC)."""
    return name if name.isascii() else normalize("NFKC", name)


class _NodeIndex:
    """The nodes of a tree by the places and names of identifiers."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        # Names and parameters, and definitions and imports, by their first byte.
        self.names: dict[int, int] = {}
        self.statements: dict[int, int] = {}
        # Span and node of the nodes with a name in a field, by name.
        self._name_fields: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        # Spans of f-strings with names without a place, and these, by kind and name in source order.
        self.strings: list[tuple[int, int, Mapping[tuple[str, str | None], list[int]]]] = []
        end_of_string = 0
        for node, (kind, start) in enumerate(zip(tree.kind, tree.bstart, strict=True)):
            if start is None:
                continue
            if kind in NAME_NODES:
                self.names[start] = node
            elif kind in STATEMENT_NODES:
                self.statements[start] = node
            elif kind in NAME_FIELD_NODES:
                for each in (tree.name[node] or "").split(", "):
                    self._name_fields[each].append((start, tree.bend[node] or start, node))
            elif kind == "JoinedStr" and node >= end_of_string:
                end_of_string = tree.end[node]
                self._add_string(node, start)
        for places in self._name_fields.values():
            places.sort()
        self.strings.sort(key=itemgetter(0))

    def _add_string(self, top: int, start: int) -> None:
        tree, names = self._tree, defaultdict[tuple[str, str | None], list[int]](list)
        for node in _in_source_order(tree, top):
            if tree.kind[node] in NAME_NODES and tree.bstart[node] is None:
                names[tree.kind[node], tree.name[node]].append(node)
        if names:
            self.strings.append((start, tree.bend[top] or start, names))

    def name_field(self, name: str, start: int) -> int | None:
        """Return the node with this name in a field, for a name that starts at this byte."""
        places = self._name_fields.get(name, ())
        before = places[: bisect_left(places, (start + 1,))]
        return next((node for _, end, node in reversed(before) if end > start), None)

    def string(self, start: int) -> int | None:
        """Return the number of the string around a byte, if names in it have no places."""
        at = bisect_left(self.strings, start + 1, key=itemgetter(0)) - 1
        return at if at >= 0 and start < self.strings[at][1] else None


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
                self._add("BINDING_RESOLVES_TO", ("BINDING", source), target, place, declared)
        self._targets[key] = target
        return target

    def add_free_names(self) -> None:
        """Add free names that only an inner scope uses; and `__class__`, which `super()` uses."""
        for scope in self._scopes.values():
            for name in scope.names_with("is_free"):
                self._target(scope, name, NOWHERE)

    def _add(
        self, kind: str, src: tuple[str, str], target: _BindingTarget, place: Place, role: str | None
    ) -> None:
        evidence = [target.evidence]
        if place != NOWHERE:
            evidence.append(Evidence("libcst", span_id(self._rows.file_id, place[0], place[1])))
        self._rows.add(_relation(kind, src, ("BINDING", target.binding), place, role, evidence))

    # Names.

    def add_names(self, refs: Columns) -> None:
        """Add names that are read, written, deleted or declared."""
        rows = iter_rows(refs, "kind", "text", "context", "bstart", "bend", "line")
        names = (
            (normalize_name(text), context, place) for kind, text, context, *place in rows if kind == "name"
        )
        for name, context, (start, end, line), node in self._with_nodes("Name", names):
            if node is None:
                self.unbound.append(UnboundName(start, end, line, name, None))
            else:
                self._add_name(name, context, node, (start, end, line))

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
            nodes: list[int | None] = [*self._nodes.strings[string][2].get((kind, name), ())]
            if len(nodes) != len(uses):
                scopes = {self._scopes.of_node[node] for node in nodes if node is not None}
                is_same = kind == "Name" and len(scopes) == 1
                nodes = [nodes[0] if is_same else None] * len(uses)
            for (context, place), node in zip(uses, nodes, strict=True):
                yield name, context, place, node

    def _add_name(self, name: str, context: str, node: int, place: tuple[int, int, int]) -> None:
        scope = self._scopes.of_node[node]
        target = self._target(scope, name, place)
        if target is None:
            self.unbound.append(UnboundName(*place, name, scope))
            return
        if context == "declare":
            return
        ref = ("NAME_REF", self._ids.at("NAME_REF", place[0], place[1]))
        if context != "store":
            self._add(RELATION_KINDS[context], ref, target, place, target.role)
            return
        kind, parent = self._tree.kind, self._tree.parent[node] or 0
        statement = kind[parent] if self._tree.slot[node] == "target" else ""
        if statement == "AugAssign":
            self._add("READS", ref, target, place, target.role)
        if statement != "AnnAssign" or self._tree.one(parent, "value") is not None:
            self._add("WRITES", ref, target, place, target.role)
        if kind[node] in TYPE_VARIABLES:
            ref = ("TYPE_PARAM", self._ids.at("TYPE_PARAM", place[0], place[1]))
        self._add("DEFINES_BINDING", ref, target, place, None)

    # Definitions, parameters and imports.

    def _add_definition(self, kind: str, name: str, node: int | None, place: tuple[int, int, int]) -> None:
        scope = None if node is None else self._scopes.of_node[node]
        target = None if scope is None else self._target(scope, normalize_name(name), place)
        if target is not None:
            src = (kind, self._ids.at(kind, place[0], place[1]))
            self._add("DEFINES_BINDING", src, target, place, None)

    def add_definitions(self, defs: Columns) -> None:
        """Add functions and classes, bound in their enclosing scope."""
        rows = iter_rows(defs, "kind", "name", "def_bstart", "def_bend", "line")
        for kind, name, start, end, line in rows:
            if kind in ("function", "class"):
                self._add_definition(
                    kind.upper(), name, self._nodes.statements.get(start), (start, end, line)
                )

    def add_parameters(self, params: Columns) -> None:
        """Add parameters, bound in the scope of their function."""
        rows = iter_rows(params, "name", "bstart", "bend", "line")
        names = ((normalize_name(name), "load", place) for name, *place in rows)
        for name, _, (start, end, line), node in self._with_nodes("arg", names):
            self._add_definition("PARAMETER", name, node, (start, end, line))

    def add_imports(self, imports: Columns) -> None:
        """Add imports: they bind the name after `as`, or the first part of the module's name."""
        fields = ("kind", "name", "asname", "is_star", "stmt_bstart", "alias_bstart", "alias_bend", "line")
        for kind, name, asname, is_star, statement, start, end, line in iter_rows(imports, *fields):
            if not is_star:
                bound = asname or (name.partition(".")[0] if kind == "import" else name)
                node = self._nodes.statements.get(statement)
                self._add_definition("IMPORT_ALIAS", bound, node, (start, end, line))


def add_scope_relations(rows: RelationRows, tree: Tree, scopes: Scopes, ids: FileIds) -> None:
    for scope in scopes.values():
        if scope.state == "unmatched":
            continue
        node, own = scope.ast_id, ("SCOPE", scope.key)
        place = tree.bstart[node], tree.bend[node], tree.line[node]
        evidence = [Evidence("symtable", scope.key)]
        if scope.kind == "module":
            owner = ("MODULE", module_id(rows.file_id))
        elif scope.kind in OWNERS:
            owner = (OWNERS[scope.kind], ids.at(OWNERS[scope.kind], place[0], place[1]))
        else:
            owner = ("AST_NODE", ids.ast(node))
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


def class_names(scopes: Scopes, rows: RelationRows) -> dict[str, list[str]]:
    """Return the names that class scopes bind or take from others, by scope; `rows` are those of the file.

    The symbol of a variable of an inlined comprehension is none of the class, unless some row leads to it:
    the graph has no binding for it, either (`graph.scopes`).
    """
    classes = [scope for scope in scopes.values() if scope.kind == "class"]
    targets = set(rows.columns()["dst_id"]) if any(scope.inlined for scope in classes) else set()
    return {
        scope.key: sorted(
            name
            for name in scope.symbol_names() | scope.names_without_symbol()
            if name not in scope.inlined or binding_id(scope.key, name) in targets
        )
        for scope in classes
    }
