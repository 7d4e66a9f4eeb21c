"""Compare bindings with the compiler: for every name, the instruction at the same place.

    found = agreement(source_of("def f(a): return a + len(b)"))
    found.counts                 # {"references": 3, "by place": 3, "homes": 1}
    found.disagreements          # []

The operation gives the access to the name (LOAD_FAST: fast), its code object gives the scope of the name, and
for a cell the nearest enclosing code object that owns it gives the binding scope. So a row is compared with
three facts that were not made from symbol tables.

A name without an instruction is compared with the other instructions of its code object that have the name,
for within one the compiler goes one way per name; what remains is counted by why there is none. In a class it
has two ways, and such names are compared by their places only.

Tests: `tests/unit/relate/test_scopes.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unicodedata import normalize

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.ast_files import ast_files_v1
from codeanatomy.extract.bytecode_files import bytecode_files_v1
from codeanatomy.extract.libcst_files import libcst_files_v1
from codeanatomy.extract.symtable_files import symtable_files_v1
from codeanatomy.file_ids import DefinitionKeys, FileIds, PackedIds
from codeanatomy.node_ids import binding_id, file_id
from codeanatomy.relate.compile.bindings import UnboundName, add_binding_relations
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.scope_tree import Scopes, build_scopes, name_scopes
from codeanatomy.relate.relation_rows import RelationRows
from codeanatomy.sources.source_file import Source
from codeanatomy.syntax_tree import Tree

OPTIONS = ExtractOptions()
FAMILIES = {
    **{f"{verb}_{word}": word.lower() for verb in ("LOAD", "STORE", "DELETE") for word in ("FAST", "DEREF")},
    **{f"{verb}_{word}": word.lower() for verb in ("LOAD", "STORE", "DELETE") for word in ("GLOBAL", "NAME")},
    "LOAD_CLASSDEREF": "deref",
    "LOAD_FAST_CHECK": "fast",
    "LOAD_FROM_DICT_OR_DEREF": "deref",
    "LOAD_FROM_DICT_OR_GLOBALS": "global",
}
TOUCHES = frozenset({"READS", "WRITES", "DELETES"})


@dataclass
class Bound:
    """A file and the bindings of its names."""

    tree: Tree
    scopes: Scopes
    libcst: Mapping[str, Any]
    ids: FileIds
    rows: RelationRows
    unbound_uses: list[UnboundName]

    def __post_init__(self) -> None:
        tree = self.tree
        self.makers = {(tree.bstart[node], tree.bend[node]): node for node in self.scopes if node > 0}
        self.by_id = {scope.key: scope for scope in self.scopes.values()}


@dataclass
class Agreement:
    """Counts, and every name that the compiler treats differently."""

    counts: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)


def bound(source: Source) -> Bound | None:
    """Return the bindings of a file; None if an extractor cannot read it."""
    ast, libcst = ast_files_v1(source, OPTIONS).cells, libcst_files_v1(source, OPTIONS).cells
    symbols = symtable_files_v1(source, OPTIONS).cells
    if not ast or not libcst or not symbols:
        return None
    tree = Tree(ast["nodes"])
    scopes = build_scopes(tree, symbols["blocks"])
    place = "test", source.path
    ids = FileIds(PackedIds.of_file(*place, ast["definitions"], libcst, ast["nodes"]))
    name_scopes(scopes, ids, DefinitionKeys(*place, ast["definitions"]).of_scopes(symbols["blocks"]))
    rows = RelationRows("test", file_id(*place), source.path)
    return Bound(tree, scopes, libcst, ids, rows, add_binding_relations(rows, tree, scopes, libcst, ids))


class Touch(NamedTuple):
    """An instruction that names a variable."""

    name: str
    family: str
    # Number of its code object.
    unit: int


class Compiled:
    """The instructions of a file by place, and the code objects that they are in."""

    def __init__(self, cells: Mapping[str, Any]) -> None:
        self.units: dict[str, list[Any]] = cells["code_objects"]
        self.at: defaultdict[tuple[int, int], set[Touch]] = defaultdict(set)
        self.ways: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
        self.spans: dict[tuple[int, int, bool], int] = {}
        self.numbers = {key: number for number, key in enumerate(self.units["code_unit_key"])}
        for unit, steps in enumerate(self.units["instructions"]):
            span = self.span(unit)
            # A class and the module may have one span; a decorated class never has that of what is in it.
            self.spans.setdefault(span, unit)
            columns = (steps[name] for name in ("opname", "argval", "bstart", "bend"))
            for opname, name, start, end in zip(*columns, strict=True):
                family = FAMILIES.get(opname)
                if family:
                    self.at[start, end].add(Touch(name, family, unit))
                    self.ways[unit, name].add(family)

    def span(self, unit: int) -> tuple[int, int, bool]:
        """Span of a code object, and whether it is that of type parameters: what has them has the same."""
        units = self.units
        return units["bstart"][unit], units["bend"][unit], units["name"][unit].startswith("<generic ")

    def owner(self, touch: Touch) -> int | None:
        """The code object that binds a local variable or cell."""
        if touch.family == "fast":
            return touch.unit
        unit, cells = touch.unit, self.units["cellvars"]
        # A class may have two `__class__`: its body uses that of the class around, its methods its own.
        is_free = touch.name in self.units["freevars"][unit]
        while touch.name not in cells[unit] or (is_free and unit == touch.unit):
            parent = self.units["parent_key"][unit]
            if parent is None:
                return None
            unit = self.numbers[parent]
        return unit


class Use(NamedTuple):
    """The product's rows of a name."""

    kind: str
    name: str
    family: str
    binding: str | None
    # The scope of the name by these rows.
    scope: Scope


def agreement(source: Source) -> Agreement:
    """Compare every name of a file with the compiler."""
    found, file = Agreement(), bound(source)
    code = bytecode_files_v1(source, OPTIONS).cells
    if file is None or "code_objects" not in code:
        found.counts["files not compiled"] += 1
        return found
    found.counts["files"] += 1
    found.counts["lost scopes"] += len(file.scopes.unmatched)
    compiled, uses = Compiled(code), _uses(file)
    refs = file.libcst["refs"]
    columns = (refs[name] for name in ("kind", "context", "text", "bstart", "bend", "line"))
    starts = {start: node for node, start in enumerate(file.tree.bstart) if file.tree.kind[node] == "Name"}
    for kind, context, text, start, end, line in zip(*columns, strict=True):
        if kind != "name" or context == "declare":
            continue
        found.counts["references"] += 1
        place = f"{source.path}:{line} {text}"
        said = uses.get((start, end), [])
        if not said:
            reason = "declared only" if _is_declared_only(file, starts.get(start)) else None
            found.counts[reason or "unanswered"] += 1
            found.disagreements += [] if reason else [f"{place}: no rows"]
            continue
        for use in said:
            _compare(found, file, compiled, use, (start, end), starts.get(start), place)
    return found


def _uses(file: Bound) -> dict[tuple[int, int], list[Use]]:
    names = dict(zip(file.libcst["refs"]["bstart"], file.libcst["refs"]["text"], strict=True))
    uses: defaultdict[tuple[int, int], list[Use]] = defaultdict(list)
    for row in file.rows.rows():
        if row["relation_kind"] in TOUCHES:
            scope = file.by_id[row["evidence"]["key"][0]]
            use = Use(row["relation_kind"], names[row["bstart"]], row["role"], row["dst_id"], scope)
            uses[row["bstart"], row["bend"]].append(use)
    for open_use in file.unbound_uses:
        if open_use.scope is not None:
            found = open_use.scope.resolve(open_use.name)
            use = Use("READS", open_use.name, found.access, None, open_use.scope)
            uses[open_use.bstart, open_use.bend].append(use)
    return uses


def _compare(
    found: Agreement,
    file: Bound,
    compiled: Compiled,
    use: Use,
    span: tuple[int, int],
    node: int | None,
    place: str,
) -> None:
    name = use.scope.resolve(normalize("NFKC", use.name)).name
    touches = {touch for touch in compiled.at.get(span, ()) if touch.name == name}
    if touches:
        found.counts["by place"] += 1
        families = {touch.family for touch in touches}
        if families != {use.family}:
            found.disagreements.append(f"{place}: {use.kind} {use.family}, the compiler {sorted(families)}")
        found.disagreements += (
            f"{place}: {text}" for text in _misplaced(found, file, compiled, use, touches)
        )
        return
    unit = _unit(file, compiled, use.scope)
    ways = set() if unit is None else compiled.ways.get((unit, name), set())
    if node is not None and _is_annotation(file.tree, node):
        found.counts["in annotations that are not evaluated"] += 1
    elif len(ways) == 1:
        found.counts["by code object"] += 1
        if ways != {use.family}:
            found.disagreements.append(f"{place}: {use.kind} {use.family}, its code object {sorted(ways)}")
    else:
        found.counts["in code that is left out"] += 1


def _misplaced(
    found: Agreement, file: Bound, compiled: Compiled, use: Use, touches: Iterable[Touch]
) -> Iterator[str]:
    """Bindings that are not those of the scope whose code object has the variable."""
    for touch in touches:
        if use.binding is None:
            continue
        homes = {"module": 0}
        owner = compiled.owner(touch) if touch.family in {"fast", "deref"} else touch.unit
        node = None if owner is None else _node(file, compiled, owner)
        if node is None:
            found.counts["homes not known"] += 1
            continue
        if touch.family in {"fast", "deref"}:
            homes = {"own": _inlined(file, use.scope, touch.name, node)}
        elif touch.family == "name":
            homes["own"] = node
        keys = [file.scopes[home].key for home in homes.values()]
        found.counts["homes"] += 1
        if use.binding not in {binding_id(key, touch.name) for key in keys}:
            yield f"{use.kind} {use.family} of {touch.name}: not the binding of {homes}"


def _node(file: Bound, compiled: Compiled, unit: int) -> int | None:
    """The node whose code object this is."""
    if unit == 0:
        return 0
    start, end, is_generic = span = compiled.span(unit)
    if None in span or compiled.spans[span] != unit:
        return None
    node = file.makers.get((start, end))
    return ~node if node is not None and is_generic else node


def _inlined(file: Bound, scope: Scope | None, name: str, node: int) -> int:
    """The comprehension in a unit that has the variable, which is inlined, or the node of the unit itself."""
    while scope is not None and scope is not file.scopes[node]:
        if scope.kind == "comprehension" and scope.state == "synthetic" and name in scope.bound:
            return scope.ast_id
        scope = scope.parent
    return node


def _unit(file: Bound, compiled: Compiled, scope: Scope) -> int | None:
    node = scope.ast_id
    span = file.tree.bstart[node], file.tree.bend[node], scope.kind == "type_parameters"
    return 0 if node == 0 else compiled.spans.get(span)  # type: ignore[arg-type]  # Null spans are not there.


def _is_annotation(tree: Tree, node: int) -> bool:
    above: int | None = node
    while above is not None:
        if tree.slot[above] in {"annotation", "returns"}:
            return True
        above = tree.parent[above]
    return False


def _is_declared_only(file: Bound, node: int | None) -> bool:
    """`x: int`, which defines a name and does not touch it."""
    if node is None:
        return False
    parent = file.tree.parent[node] or 0
    return file.tree.kind[parent] == "AnnAssign" and file.tree.one(parent, "value") is None
