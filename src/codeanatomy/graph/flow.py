"""List facts about control and data flow: code units, basic blocks, variable events and their edges.

    def f(x):                unit f; entry block and exit; def of x at entry, use of x at `return x`
        return x             the events belong to the binding x of f, the use is anchored at the node Name

Tests: `tests/unit/graph/test_flow.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.context import Context
from codeanatomy.graph.control_dependence import control_dependence
from codeanatomy.graph.reads import SPAN
from codeanatomy.graph.scopes import INLINED, GraphScope, bindings, scopes_of
from codeanatomy.node_ids import binding_id, node_id

BYTECODE = "bytecode_files_v1"
BLOCKS = "py_bc_blocks_norm_v1"
CFG = "py_bc_cfg_edges_norm_v1"
EVENTS = "py_bc_def_use_events_v1"
REACHES = "py_bc_reaches_v1"
# Flags of code objects: fast locals; generator, coroutine, asynchronous generator.
OPTIMIZED, GENERATORS = 0x1, 0x20 | 0x80 | 0x200
COMPREHENSIONS = {
    "<listcomp>": "ListComp",
    "<setcomp>": "SetComp",
    "<dictcomp>": "DictComp",
    "<genexpr>": "GeneratorExp",
}
CFG_KINDS = {
    "next": ("CFG_NEXT", None),
    "jump": ("CFG_JUMP", None),
    "branch_true": ("CFG_BRANCH_TRUE", None),
    "branch_false": ("CFG_BRANCH_FALSE", None),
    "loop_body": ("CFG_BRANCH_TRUE", "loop_body"),
    "loop_exit": ("CFG_BRANCH_FALSE", "loop_exit"),
    "exception": ("CFG_EXCEPTION", None),
}
EVENT_KINDS = ("def", "use", "del")
# Limit of control dependences per code unit; more were seen only in generated code.
MAX_DEPENDENCES = 200_000


def _unit_kind(name: str, flags: int) -> str:
    if name == "<module>":
        return "module"
    if name == "<lambda>":
        return "lambda"
    if name in COMPREHENSIONS:
        return "comprehension"
    return "function" if flags & OPTIMIZED else "class"


def units(context: Context) -> Columns:
    """List code units with the definition they were compiled from."""
    cut = context.cached(control_dependences).cut
    rows = []
    objects = context.file.list(BYTECODE, "code_objects")
    for key, qualname, name, flags, *span in iter_rows(
        objects, "code_unit_key", "qualname", "name", "flags", "bstart", "bend"
    ):
        kind = _unit_kind(name, flags)
        owner, line = _origin(context, kind, name, *span)
        # In an f-string, before Python 3.12, the compiler reports a span without a definition.
        start, end = span if line is not None else (None, None)
        full = "" if kind == "module" else f".{qualname}"
        is_generator = bool(flags & GENERATORS)
        unit = node_id("CODE_UNIT", context.unit_keys[key])
        is_cut = True if unit in cut else None
        rows.append((unit, name, full, kind, start, end, line, owner, flags, is_generator, is_cut))
    names = ("node_id", "name", "qualname", "subkind", *SPAN, "owner_id", "flags", "is_generator")
    return columns_of(rows, *names, "control_cut")


def _origin(
    context: Context, kind: str, name: str, start: int | None, end: int | None
) -> tuple[str | None, int | None]:
    """Return the node that a unit was compiled from, and its line."""
    if kind == "module":
        return context.module_id, None if start is None else 1
    if kind == "comprehension":
        node = context.syntax.first(start, end, frozenset({COMPREHENSIONS[name]}))
        return context.syntax.id_of(node), None if node is None else context.syntax.line[node]
    definition = context.definitions.get((start, end))
    if definition is None and kind == "lambda":
        definition = context.definitions.get((None, None))
    return (definition.node_id, definition.line) if definition else (None, None)


def _sorted_blocks(context: Context) -> dict[str, list[tuple[int, str]]]:
    """Return offset and id of the blocks of each unit in order; the exit begins at the end of the code."""
    by_unit: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for unit, offset, block in iter_rows(
        context.file.rows(BLOCKS), "code_unit_id", "bc_offset_start", "bc_block_id"
    ):
        by_unit[unit].append((offset, block))
    return {unit: sorted(unit_blocks) for unit, unit_blocks in by_unit.items()}


def blocks(context: Context) -> Columns:
    """List basic blocks with their number in the code unit."""
    rows = context.file.rows(BLOCKS)
    if not rows:
        return {}
    by_unit = context.cached(_sorted_blocks).values()
    ordinal = {block: number for unit in by_unit for number, (_, block) in enumerate(unit)}
    return {
        "node_id": rows["bc_block_id"],
        "code_unit_id": rows["code_unit_id"],
        "subkind": rows["bc_block_kind"],
        "ordinal": [ordinal[block] for block in rows["bc_block_id"]],
        **{name: rows[name] for name in SPAN},
    }


def cfg(context: Context) -> dict[str, Columns]:
    """List control flow edges by kind."""
    edges: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind, _ in CFG_KINDS.values()}
    for cfg_kind, src, dst, offset, start, end in iter_rows(
        context.file.rows(CFG),
        "bc_edge_kind",
        "bc_src_block_id",
        "bc_dst_block_id",
        "bc_branch_offset",
        "bstart",
        "bend",
    ):
        kind, role = CFG_KINDS[cfg_kind]
        edges[kind].append((src, dst, role, offset, start, end))
    names = ("src_id", "dst_id", "role", "ordinal", "bstart", "bend")
    return {kind: columns_of(rows, *names) for kind, rows in edges.items()}


class ControlDependences(NamedTuple):
    """Pairs of dependent and controlling block with a role, and the units with omitted pairs."""

    rows: list[tuple[str, str, str]]
    cut: set[str]


def control_dependences(context: Context) -> ControlDependences:
    """Compute control dependence unit by unit."""
    edges_of: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for unit, src, dst, kind in iter_rows(
        context.file.rows(CFG), "code_unit_id", "bc_src_block_id", "bc_dst_block_id", "bc_edge_kind"
    ):
        edges_of[unit].append((src, dst, kind))
    result = ControlDependences([], set())
    for unit, unit_blocks in context.cached(_sorted_blocks).items():
        ordered = [block for _, block in unit_blocks]
        number = {block: index for index, block in enumerate(ordered)}
        edges = [(number[src], number[dst], kind) for src, dst, kind in edges_of[unit]]
        depends = control_dependence(len(ordered), edges, len(ordered) - 1, MAX_DEPENDENCES)
        result.rows.extend(
            (ordered[row.dependent], ordered[row.controlling], row.role) for row in depends.rows
        )
        if depends.is_cut:
            result.cut.add(unit)
    return result


def control(context: Context) -> Columns:
    """List control dependences between blocks."""
    return columns_of(context.cached(control_dependences).rows, "src_id", "dst_id", "role")


def events(context: Context) -> dict[str, Columns]:
    """List definitions, uses and deletions of variables by kind."""
    by_kind: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in EVENT_KINDS}
    for kind, may_be_unbound, *row in iter_rows(
        context.file.rows(EVENTS),
        "bc_event_kind",
        "bc_may_be_unbound",
        "bc_event_id",
        "bc_var_name",
        "bc_var_kind",
        "bc_block_id",
        "bc_event_offset",
        *SPAN,
    ):
        # Stored only where it is true, which is rare.
        by_kind[kind].append((may_be_unbound or None, *row))
    names = ("may_be_unbound", "node_id", "name", "subkind", "block_id", "bc_event_offset", *SPAN)
    return {kind: columns_of(rows, *names) for kind, rows in by_kind.items()}


def reaches(context: Context) -> Columns:
    """List definitions with the uses they may reach."""
    rows = context.file.rows(REACHES)
    if not rows:
        return {}
    return {
        "src_id": rows["bc_def_event_id"],
        "dst_id": rows["bc_use_event_id"],
        "role": rows["bc_reach_kind"],
        "bstart": rows["bstart"],
        "bend": rows["bend"],
    }


def event_bindings(context: Context) -> Columns:
    """List events with the bindings they access."""
    scope_of = _scopes_of_units(context)
    resolver, inlined = _BindingResolver(context), _InlinedScopes(context)
    rows = []
    for unit, event, name, kind, start, end in iter_rows(
        context.file.rows(EVENTS),
        "code_unit_id",
        "bc_event_id",
        "bc_var_name",
        "bc_var_kind",
        "bstart",
        "bend",
    ):
        scope = scope_of.get(unit)
        if scope is None:
            continue
        inner = inlined.find(scope, name, start, end)
        if inner is not None:
            binding: str | None = binding_id(inner, name)
        else:
            # Code in a class may use a global variable of the name of an attribute: that of a comprehension.
            binding = resolver.find_global(name) if kind == "global" else resolver(scope.node_id, name)
        if binding is not None:
            rows.append((event, binding, start, end))
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def _scopes_of_units(context: Context) -> dict[str, GraphScope]:
    """Return the scope of each code unit: the one with its name and span."""
    by_span: dict[tuple[int | None, int | None, str], GraphScope] = {}
    for scope in context.cached(scopes_of).values():
        by_span.setdefault((scope.bstart, scope.bend, _unit_name(scope)), scope)
    scope_of = {}
    for key, name, start, end in iter_rows(
        context.file.list(BYTECODE, "code_objects"), "code_unit_key", "name", "bstart", "bend"
    ):
        if start is not None and (start, end, name) in by_span:
            scope_of[node_id("CODE_UNIT", context.unit_keys[key])] = by_span[start, end, name]
    return scope_of


class _InlinedScopes:
    """The scopes of comprehensions that are part of the code unit around them, from Python 3.12 on."""

    def __init__(self, context: Context) -> None:
        self._syntax = syntax = context.syntax
        relations = context.relations_of("SCOPE_BINDS")
        self._bound = set(iter_rows(relations, "src_id", "role"))
        # The innermost comprehension around each node, and around each comprehension.
        self._around: dict[int, GraphScope] = {}
        self._outer: dict[str, GraphScope | None] = {}
        nodes = {}
        for scope in context.cached(scopes_of).values():
            if scope.subkind == INLINED:
                node = syntax.first(scope.bstart, scope.bend, frozenset(COMPREHENSIONS.values()))
                if node is not None:
                    nodes[node] = scope
        for node in sorted(nodes):
            scope = nodes[node]
            self._outer[scope.node_id] = self._around.get(node)
            # The first iterable is evaluated in the enclosing scope.
            generator = syntax.children(node, "generators")[0]
            iterable = syntax.children(generator, "iter")[0]
            outside = range(iterable, syntax.end(iterable))
            for inner in range(node + 1, syntax.end(node)):
                if inner not in outside:
                    self._around[inner] = scope

    def find(self, unit: GraphScope, name: str, start: int | None, end: int | None) -> str | None:
        """Return the scope of the innermost comprehension in a unit around a span that binds a name."""
        node = self._syntax.last(start, end) if self._around else None
        scope = self._around.get(node) if node is not None else None
        while scope is not None and _is_in(scope, unit):
            if (scope.node_id, name) in self._bound:
                return scope.node_id
            scope = self._outer[scope.node_id]
        return None


def _is_in(inner: GraphScope, outer: GraphScope) -> bool:
    """Return whether a scope lies in another one by their spans."""
    return (outer.bstart or 0) <= (inner.bstart or 0) and (inner.bend or 0) <= (outer.bend or 0)


def _unit_name(scope: GraphScope) -> str:
    if scope.subkind == "module":
        return "<module>"
    if scope.subkind.startswith("type parameter"):
        return f"<generic parameters of {scope.name}>"
    return f"<{scope.name}>" if scope.name in SCOPE_NAMES else scope.name


SCOPE_NAMES = frozenset({"lambda", "listcomp", "setcomp", "dictcomp", "genexpr"})


class _BindingResolver:
    """Resolve variables of scopes to bindings of the file."""

    def __init__(self, context: Context) -> None:
        self._known = set(context.cached(bindings)["node_id"])
        self._resolved: dict[str, str] = dict(
            iter_rows(context.relations_of("BINDING_RESOLVES_TO"), "src_id", "dst_id")
        )
        tops = [scope.node_id for scope in context.cached(scopes_of).values() if scope.parent_id is None]
        self._module = tops[0] if tops else None
        self._resolutions: dict[tuple[str, str], str | None] = {}

    def __call__(self, scope: str, name: str) -> str | None:
        """Return the binding of a variable of a scope; None if the file does not bind it."""
        if (scope, name) not in self._resolutions:
            self._resolutions[scope, name] = self._find(scope, name)
        return self._resolutions[scope, name]

    def _find(self, scope: str, name: str) -> str | None:
        own = binding_id(scope, name)
        resolved = self._resolved.get(own)
        if resolved is not None:
            return resolved
        return own if own in self._known else self.find_global(name)

    def find_global(self, name: str) -> str | None:
        """Return the binding of a variable of the module."""
        top = binding_id(self._module, name) if self._module is not None else None
        return top if top in self._known else None


def anchors(context: Context, compiled: Sequence[Columns]) -> Columns:
    """List events and instructions with the syntax node at their span: the innermost of several."""
    syntax, rows = context.syntax, []
    exact = syntax.lasts
    for node, start, end in chain.from_iterable(
        iter_rows(columns, "node_id", "bstart", "bend") for columns in compiled
    ):
        if start is None:
            continue
        anchor = exact.get((start, end))
        # The span of a call over several lines begins at the attribute.
        if anchor is None:
            anchor = syntax.ending(start, end)
        if anchor is not None:
            rows.append((node, anchor, start, end))
    columns = columns_of(rows, "src_id", "dst_id", "bstart", "bend")
    return {**columns, "dst_id": syntax.ids_of(columns["dst_id"])}


def instructions(context: Context) -> Columns:
    """List instructions with the block that contains them."""
    blocks_of = context.cached(_sorted_blocks)
    rows = []
    for key, columns in iter_rows(
        context.file.list(BYTECODE, "code_objects"), "code_unit_key", "instructions"
    ):
        unit_key = context.unit_keys[key]
        ordered = blocks_of.get(node_id("CODE_UNIT", unit_key), [])[:-1]
        count: defaultdict[int, int] = defaultdict(int)
        listed = iter_rows(columns, "offset", "opname", "argval", *SPAN)
        for number, (offset, opname, argval, *span) in enumerate(listed):
            block = bisect_right(ordered, offset, key=lambda item: item[0]) - 1
            block_id = ordered[block][1] if ordered else None
            instruction = node_id("INSTRUCTION", unit_key, number)
            rows.append((instruction, argval, opname, offset, block_id, count[block], *span))
            count[block] += 1
    return columns_of(rows, "node_id", "name", "subkind", "offset", "block_id", "ordinal", *SPAN)
