"""Facts about control and data flow: code units, blocks, events, and how they hang together.

    def f(x):                unit f; entry block and exit; def of x at entry, use of x at `return x`
        return x             the events are of the binding x of f, the use is anchored at the node Name

Tests: `tests/unit/graph/test_flow.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from codeanatomy.graph.context import Context
from codeanatomy.graph.control_dependence import control_dependence
from codeanatomy.graph.file_view import SPAN, Columns, columns_of, each
from codeanatomy.graph.scopes import Scope, bindings, scopes_of
from codeanatomy.ids import id_maker, stable_id
from codeanatomy.node_ids import PREFIXES, binding_id

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
# Rows of control dependence of one code unit; more have been seen in generated code only.
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
    """Code units, by what they were compiled from."""
    made = id_maker(PREFIXES["CODE_UNIT"], context.file.file_id)
    cut = context.once(control_of).cut
    rows = []
    found = context.file.list(BYTECODE, "code_objects")
    for key, qualname, name, flags, *place in each(
        found, "code_unit_key", "qualname", "name", "flags", "bstart", "bend"
    ):
        kind = _unit_kind(name, flags)
        owner, line = _origin(context, kind, name, *place)
        # In an f-string, before Python 3.12, the compiler tells a place where nothing stands.
        start, end = place if line is not None else (None, None)
        full = context.module_name if kind == "module" else f"{context.module_name}.{qualname}"
        is_generator = bool(flags & GENERATORS)
        unit = made(key)
        is_cut = True if unit in cut else None
        rows.append((unit, name, full, kind, start, end, line, owner, flags, is_generator, is_cut))
    names = ("node_id", "name", "qualname", "subkind", *SPAN, "owner_id", "flags", "is_generator")
    return columns_of(rows, *names, "control_cut")


def _origin(
    context: Context, kind: str, name: str, start: int | None, end: int | None
) -> tuple[str | None, int | None]:
    """What a unit was compiled from, and its line."""
    if kind == "module":
        return context.module_id, None if start is None else 1
    if kind == "comprehension":
        node = context.syntax.first(start, end, (COMPREHENSIONS[name],))
        return context.syntax.id_of(node), None if node is None else context.syntax.line[node]
    found = context.definitions.get((start, end))
    if found is None and kind == "lambda":
        found = context.definitions.get((None, None))
    return (found.node_id, found.line) if found else (None, None)


def _in_order(context: Context) -> dict[str, list[tuple[int, str]]]:
    """First offsets and ids of the blocks of each unit; the exit begins where the code ends: it is last."""
    found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for unit, offset, block in each(
        context.file.rows(BLOCKS), "code_unit_id", "bc_offset_start", "bc_block_id"
    ):
        found[unit].append((offset, block))
    return {unit: sorted(blocks_of) for unit, blocks_of in found.items()}


def blocks(context: Context) -> Columns:
    """Basic blocks, by place in their unit."""
    rows = context.file.rows(BLOCKS)
    if not rows:
        return {}
    units_of = context.once(_in_order).values()
    place = {block: number for found in units_of for number, (_, block) in enumerate(found)}
    return {
        "node_id": rows["bc_block_id"],
        "code_unit_id": rows["code_unit_id"],
        "subkind": rows["bc_block_kind"],
        "ordinal": [place[block] for block in rows["bc_block_id"]],
        **{name: rows[name] for name in SPAN},
    }


def cfg(context: Context) -> dict[str, Columns]:
    """Ways of control, by kind of edge."""
    found: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind, _ in CFG_KINDS.values()}
    for how, src, dst, offset, start, end in each(
        context.file.rows(CFG),
        "bc_edge_kind",
        "bc_src_block_id",
        "bc_dst_block_id",
        "bc_branch_offset",
        "bstart",
        "bend",
    ):
        kind, role = CFG_KINDS[how]
        found[kind].append((src, dst, role, offset, start, end))
    names = ("src_id", "dst_id", "role", "ordinal", "bstart", "bend")
    return {kind: columns_of(rows, *names) for kind, rows in found.items()}


class Control(NamedTuple):
    """Blocks and those that decide whether they run, and the units of which rows were left out."""

    rows: list[tuple[str, str, str]]
    cut: set[str]


def control_of(context: Context) -> Control:
    """Control dependence, unit by unit."""
    ways: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for unit, src, dst, kind in each(
        context.file.rows(CFG), "code_unit_id", "bc_src_block_id", "bc_dst_block_id", "bc_edge_kind"
    ):
        ways[unit].append((src, dst, kind))
    made = Control([], set())
    for unit, blocks_of in context.once(_in_order).items():
        ordered = [block for _, block in blocks_of]
        number = {block: place for place, block in enumerate(ordered)}
        edges = [(number[src], number[dst], kind) for src, dst, kind in ways[unit]]
        depends = control_dependence(len(ordered), edges, len(ordered) - 1, MAX_DEPENDENCES)
        made.rows.extend((ordered[one.dependent], ordered[one.controlling], one.role) for one in depends.rows)
        if depends.is_cut:
            made.cut.add(unit)
    return made


def control(context: Context) -> Columns:
    """Blocks and those that decide whether they run."""
    return columns_of(context.once(control_of).rows, "src_id", "dst_id", "role")


def events(context: Context) -> dict[str, Columns]:
    """Definitions, uses and deletions, by kind."""
    found: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in EVENT_KINDS}
    for kind, is_open, *row in each(
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
        # What most uses are not is not told of each.
        found[kind].append((is_open or None, *row))
    names = ("may_be_unbound", "node_id", "name", "subkind", "block_id", "bc_event_offset", *SPAN)
    return {kind: columns_of(rows, *names) for kind, rows in found.items()}


def reaches(context: Context) -> Columns:
    """Definitions and the uses that may get their values."""
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
    """Events and the bindings they are of."""
    scope_of = _scopes_of_units(context)
    found_in = _Homes(context)
    rows = []
    for unit, event, name, start, end in each(
        context.file.rows(EVENTS), "code_unit_id", "bc_event_id", "bc_var_name", "bstart", "bend"
    ):
        scope = scope_of.get(unit)
        binding = found_in(scope, name) if scope is not None else None
        if binding is not None:
            rows.append((event, binding, start, end))
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def _scopes_of_units(context: Context) -> dict[str, str]:
    """The scope of each code unit: the one of its name at its place."""
    made = id_maker(PREFIXES["CODE_UNIT"], context.file.file_id)
    places: dict[tuple[int | None, int | None, str], str] = {}
    for scope in context.once(scopes_of).values():
        places.setdefault((scope.bstart, scope.bend, _unit_name(scope)), scope.node_id)
    found = {}
    for key, name, start, end in each(
        context.file.list(BYTECODE, "code_objects"), "code_unit_key", "name", "bstart", "bend"
    ):
        if start is not None and (start, end, name) in places:
            found[made(key)] = places[start, end, name]
    return found


def _unit_name(scope: Scope) -> str:
    if scope.subkind == "module":
        return "<module>"
    return f"<{scope.name}>" if scope.name in SCOPE_NAMES else scope.name


SCOPE_NAMES = frozenset({"lambda", "listcomp", "setcomp", "dictcomp", "genexpr"})


class _Homes:
    """Where the variables of scopes are bound."""

    def __init__(self, context: Context) -> None:
        self._file_id = context.file.file_id
        self._known = set(context.once(bindings)["node_id"])
        self._moved: dict[str, str] = dict(each(context.listed("BINDING_RESOLVES_TO"), "src_id", "dst_id"))
        tops = [scope.node_id for scope in context.once(scopes_of).values() if scope.parent_id is None]
        self._module = tops[0] if tops else None

    def __call__(self, scope: str, name: str) -> str | None:
        """The binding that a variable of a scope is; none of what the file does not bind."""
        own = binding_id(scope, name)
        moved = self._moved.get(own)
        if moved is not None:
            return moved
        if own in self._known:
            return own
        top = binding_id(self._module, name) if self._module is not None else None
        return top if top in self._known else None


def anchors(context: Context, compiled: Sequence[Columns]) -> Columns:
    """What was compiled, and the syntax nodes at its places: the innermost where several share one."""
    syntax, rows = context.syntax, []
    for node, start, end in chain.from_iterable(
        each(found, "node_id", "bstart", "bend") for found in compiled
    ):
        if start is None:
            continue
        exact = syntax.last(start, end)
        # Of a call over several lines the compiler tells the place from the attribute on.
        anchor = syntax.id_of(syntax.ending(start, end) if exact is None else exact)
        if anchor is not None:
            rows.append((node, anchor, start, end))
    return columns_of(rows, "src_id", "dst_id", "bstart", "bend")


def instructions(context: Context) -> Columns:
    """Instructions, by the block they are in."""
    blocks_of = context.once(_in_order)
    rows = []
    for key, found in each(context.file.list(BYTECODE, "code_objects"), "code_unit_key", "instructions"):
        unit = stable_id(PREFIXES["CODE_UNIT"], context.file.file_id, key)
        made = id_maker(PREFIXES["INSTRUCTION"], unit)
        ordered = blocks_of.get(unit, [])[:-1]
        count: defaultdict[int, int] = defaultdict(int)
        for offset, opname, argval, *place in each(found, "offset", "opname", "argval", *SPAN):
            block = bisect_right(ordered, offset, key=lambda one: one[0]) - 1
            inside = ordered[block][1] if ordered else None
            rows.append((made(offset), argval, opname, offset, inside, count[block], *place))
            count[block] += 1
    return columns_of(rows, "node_id", "name", "subkind", "offset", "block_id", "ordinal", *SPAN)
