"""Print the graph of a few small files as annotated source, to be reviewed by eye.

    print(annotated({"main.py": "f(1)\\n"}, graph))

       1 | f(1)
         | ^
         # NAME_REF load f
         #     -> REFERS_TO FUNCTION f lib.py:3 (imports 0.9)

Each file has five parts: its head (file, module, what has no place), its lines with carets under the spans
and the facts below, its scopes with their bindings, its control flow with events and instructions, and its
syntax tree. What belongs to no file comes last. An edge stands at its source, after an arrow, except where
nesting or a keyword expresses it: a part stands below what has it, and `of`, `at`, `is`, `reaches`, `next`
are edges.

No id is shown. A node is referred to by kind, name and line, and by column or end only where that is not
enough. Lines count from 1, columns from 0 and in characters. Every node, edge and property is shown exactly
once; what has no place raises `Unshown`. Tests: `tests/unit/graph/test_goldens.py`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol

from codeanatomy.sources.source_file import Source, decode

Row = Mapping[str, Any]
# What something is called, and where it stands in its file.
Name = tuple[str, str]

HEAD = frozenset({"FILE", "MODULE"})
SCOPES = frozenset({"SCOPE", "BINDING"})
EVENTS = {"DEF_EVENT": "def", "USE_EVENT": "use", "DEL_EVENT": "del"}
FLOW = frozenset({"CODE_UNIT", "CFG_BLOCK", "INSTRUCTION", *EVENTS})
SYNTAX = frozenset({"AST_NODE"})

# Edges shown by standing below the other end: whether that is the source.
NESTING = {
    "SCOPE_PARENT": False,
    "SCOPE_BINDS": True,
    "HAS_BLOCK": True,
    "HAS_INSTRUCTION": True,
    "STEP_DEF": True,
    "STEP_USE": True,
    "STEP_DEL": True,
    "AST_PARENT_OF": True,
}
# Edges shown where they lead to, by a keyword.
ARRIVING = {"OWNS_SCOPE": "of", "HAS_CODE_UNIT": "of", "SYNTAX_OF": "is"}
# Edges shown on the line of their source, by a keyword.
LEAVING = {
    "REACHES": "reaches",
    "EVENT_OF": "of",
    "ANCHORED_AT": "at",
    "CFG_NEXT": "next",
    "CFG_JUMP": "jump",
    "CFG_BRANCH_TRUE": "true",
    "CFG_BRANCH_FALSE": "false",
    "CFG_EXCEPTION": "exception",
    "CONTROL_DEPENDS": "depends on",
}
# Properties that are hashes, of which there is nothing to review.
OPAQUE = frozenset({"sha256"})

WIDTH = 110
MARGIN = " " * 5
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


class Unshown(Exception):
    """The graph has rows that cannot be shown, or were shown twice."""


class Rows(Protocol):
    """A graph: rows of the catalogue's tables."""

    @property
    def nodes(self) -> Iterable[Row]: ...
    @property
    def edges(self) -> Iterable[Row]: ...
    @property
    def props(self) -> Iterable[Row]: ...


def annotated(sources: Mapping[str, str | bytes], graph: Rows) -> str:
    """The graph of these files, as text that depends on nothing else."""
    view = View(sources, graph)
    lines = [line for path in sorted(view.texts) for line in _file(view, path)]
    lines += _outside(view)
    view.check()
    return "".join(f"{line.rstrip()}\n" for line in lines)


# Places


class Text:
    """A file as it is displayed: tabs expanded, a visible character for each control character."""

    def __init__(self, path: str, raw: str | bytes) -> None:
        source = decode(path, raw if isinstance(raw, bytes) else raw.encode())
        if not isinstance(source, Source):
            raise Unshown(f"{path}: {source.message}")
        self.source = source
        self.lines = [source.line_text(number + 1) or "" for number in range(len(source.line_starts))]
        if not self.lines[-1]:
            # What follows the last newline is no line.
            self.lines.pop()

    def place(self, offset: int) -> tuple[int, int]:
        """The line, from 1, and the column in characters, from 0, of a byte."""
        if not 0 <= offset <= len(self.source.utf8):
            raise Unshown(f"{self.source.path} has no byte {offset}")
        line = self.source.line_of(offset)
        try:
            return line, len(self.source.utf8[self.source.line_starts[line - 1] : offset].decode())
        except UnicodeDecodeError:
            raise Unshown(f"{self.source.path}: byte {offset} is inside a character") from None

    def span(self, bstart: int, bend: int) -> str:
        """The span as text: `3:4-9`, or `3:4-5:2` over several lines."""
        (line, col), (end_line, end_col) = self.place(bstart), self.place(bend)
        return f"{line}:{col}-{end_col}" if line == end_line else f"{line}:{col}-{end_line}:{end_col}"

    def carets(self, bstart: int, bend: int) -> str:
        """A line of carets that stands below the first line of the span."""
        (line, col), (end_line, end_col) = self.place(bstart), self.place(bend)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        shown = text.rstrip("\r\n")
        start = len(displayed(text[:col]))
        if line != end_line:
            rest = max(len(displayed(shown)) - start - 1, 0)
            return f"{' ' * start}^{'~' * rest} ... {end_line - line + 1} lines"
        return " " * start + ("^" * (len(displayed(text[:end_col])) - start) or "|")


def displayed(text: str) -> str:
    """A line as it is shown: every character is one column wide, a tab as many as are missing to the stop.

    >>> displayed("a\\tb\\x0c")
    'a       b␌'
    """
    return UNPRINTABLE.sub(lambda found: chr(0x2400 + min(ord(found.group()), 0x21)), text.expandtabs(8))


# Lookups in the graph


class View:
    """Nodes and edges by their ends, names for them, and a record of what has been shown."""

    def __init__(self, sources: Mapping[str, str | bytes], graph: Rows) -> None:
        self.texts = {path: Text(path, raw) for path, raw in sources.items()}
        self.nodes = {row["node_id"]: row for row in graph.nodes}
        self.edges = {row["edge_id"]: row for row in graph.edges}
        self.props: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
        for row in graph.props:
            self.props[row["entity_kind"], row["entity_id"]][row["prop_key"]] = row
        self.shown: Counter[tuple[str, str]] = Counter()
        self.leaving: dict[str, list[Row]] = defaultdict(list)
        self.arriving: dict[str, list[Row]] = defaultdict(list)
        self.below: dict[str, list[tuple[Row, Row]]] = defaultdict(list)
        self.nested: set[str] = set()
        for edge in self.edges.values():
            self._file_edge(edge)
        self.files = {row["file_id"]: row["path"] for row in self.nodes.values() if row["file_id"]}
        self.groups: dict[str, int] = {}

    def _file_edge(self, edge: Row) -> None:
        source, target = self.nodes.get(edge["src_node_id"]), self.nodes.get(edge["dst_node_id"])
        if source is None or target is None:
            raise Unshown(f"an end of an edge is no node: {edge}")
        kind = edge["edge_kind"]
        if kind in NESTING:
            outer, inner = (source, target) if NESTING[kind] else (target, source)
            self.below[outer["node_id"]].append((edge, inner))
            self.nested.add(inner["node_id"])
        elif kind in ARRIVING:
            self.arriving[target["node_id"]].append(edge)
        else:
            self.leaving[source["node_id"]].append(edge)

    def show_node(self, node: Row) -> None:
        self.shown["node", node["node_id"]] += 1

    def show_edge(self, edge: Row) -> None:
        self.shown["edge", edge["edge_id"]] += 1

    def check(self) -> None:
        """Everything has been shown, and nothing twice."""
        rows = {("node", key): row for key, row in self.nodes.items()}
        rows |= {("edge", key): row for key, row in self.edges.items()}
        wrong = [f"{self.shown[key]} times: {row}" for key, row in rows.items() if self.shown[key] != 1]
        wrong += [f"property of nothing: {key}" for key in self.props if key not in rows]
        if wrong:
            raise Unshown("\n".join(wrong))

    def of_file(self, path: str) -> list[Row]:
        """The nodes of a file, as they stand in it."""
        return sorted((row for row in self.nodes.values() if self.path(row) == path), key=self.order)

    def path(self, node: Row) -> str | None:
        """The file a node stands in; a package only has a folder."""
        if node["file_id"] is None:
            return None
        if node["path"] not in self.texts:
            raise Unshown(f"no such file: {node}")
        return str(node["path"])

    def order(self, node: Row) -> tuple[Any, ...]:
        start, end = node["bstart"], node["bend"]
        return (
            node["path"] or "",
            -1 if start is None else start,
            0 if end is None else -end,
            node["node_kind"],
            node["subkind"] or "",
            node["qualname"] or "",
            node["name"] or "",
            node["node_id"],
        )

    def offset(self, node: Row) -> int | None:
        """Where an instruction stands in its bytecode."""
        row = self.props.get(("node", node["node_id"]), {}).get("offset")
        return None if row is None else row["value_int"]

    @cached_property
    def names(self) -> dict[str, Name]:
        return named(self)

    def ref(self, node: Row, path: str | None) -> str:
        """The node as text of this file, or of none, refers to it."""
        (label, place), stands = self.names[node["node_id"]], self.path(node)
        if stands is None or stands == path:
            return f"{label}@{place}" if place else label
        return f"{label} {stands}:{place}" if place else f"{label} of {stands}"

    @cached_property
    def steps(self) -> dict[str, int]:
        """The numbers of blocks in their code unit, and of events in their bytecode."""
        return {
            inner["node_id"]: edge["ordinal"]
            for parts in self.below.values()
            for edge, inner in parts
            if edge["edge_kind"] == "HAS_BLOCK" or edge["edge_kind"].startswith("STEP_")
        }

    def begins(self, node: Row) -> int:
        """The first byte of a node, or of what stands below it."""
        if node["bstart"] is not None:
            return int(node["bstart"])
        return min((self.begins(inner) for _, inner in self.below[node["node_id"]]), default=1 << 62)

    def group(self, key: str) -> int:
        """A small number for a group of alternatives."""
        return self.groups.setdefault(key, len(self.groups) + 1)


# Names

LEVELS = 4


def named(view: View) -> dict[str, Name]:
    """The shortest name of each node that no other node of its file has."""
    blocks = [key for key, row in view.nodes.items() if row["node_kind"] == "CFG_BLOCK"]
    # Nothing outside of a code unit refers to its blocks.
    names = {key: (f"b{view.steps.get(key)}", "") for key in blocks}
    # A binding is named after its scope.
    for bindings in (False, True):
        rows = [row for key, row in view.nodes.items() if key not in names]
        left = sorted((row for row in rows if (row["node_kind"] == "BINDING") is bindings), key=view.order)
        scopes = _scopes(view) if bindings else {}
        for level in range(LEVELS):
            groups: dict[tuple[str | None, Name], list[Row]] = defaultdict(list)
            for row in left:
                name = _binding_name(row, scopes, names) if bindings else _name(view, row, level)
                groups[view.path(row), name].append(row)
            alone = {key: group for key, group in groups.items() if len(group) == 1}
            names |= {group[0]["node_id"]: name for (_, name), group in alone.items()}
            left = [row for key, group in groups.items() if key not in alone for row in group]
            if level == LEVELS - 1:
                for (_, (label, place)), group in groups.items():
                    for number, row in enumerate(group if len(group) > 1 else ()):
                        names[row["node_id"]] = (f"{label}#{number}", place)
    return names


def _scopes(view: View) -> dict[str, str]:
    """The scope of each binding."""
    return {
        inner["node_id"]: edge["src_node_id"]
        for parts in view.below.values()
        for edge, inner in parts
        if edge["edge_kind"] == "SCOPE_BINDS"
    }


def _binding_name(row: Row, scopes: Mapping[str, str], names: Mapping[str, Name]) -> Name:
    if row["node_id"] not in scopes:
        raise Unshown(f"a binding of no scope: {row}")
    label, place = names[scopes[row["node_id"]]]
    return f"binding {row['name']} of {label.removeprefix('SCOPE ')}", place


def _name(view: View, row: Row, level: int) -> Name:
    """What a node is called, the more precise the higher the level."""
    kind = row["node_kind"]
    if kind == "AST_NODE":
        label, level = row["subkind"], max(level, 1)
    elif kind in EVENTS:
        label, level = f"{EVENTS[kind]} {row['name']}", max(level, 1)
    elif kind == "SCOPE":
        if row["subkind"] == "module":
            return f"{kind} module {row['qualname'] or row['name']}", ""
        label = f"{kind} {row['subkind']} {row['name']}"
    elif kind == "INSTRUCTION":
        label = f"{view.offset(row)} {row['subkind']}"
    else:
        # Of a type the qualified name is only that of its head.
        outside = row["file_id"] is None and kind != "TYPE"
        named_by = row["qualname"] if outside and row["qualname"] else row["name"]
        label = kind if named_by is None else f"{kind} {one_line(named_by)}"
        if level == 3 and row["subkind"]:
            label = f"{label} {row['subkind']}"
    return label, _place(view, row, level)


def _place(view: View, row: Row, level: int) -> str:
    path = view.path(row)
    if path is None or row["bstart"] is None or row["node_kind"] in HEAD:
        return ""
    line, col = view.texts[path].place(row["bstart"])
    if level >= 2 and row["node_kind"] in EVENTS:
        # The compiler may copy what stands at a place, such as the test of a loop or a `finally`.
        return f"{line}:{col}+{view.steps[row['node_id']]}"
    if level >= 2:
        return view.texts[path].span(row["bstart"], row["bend"])
    return f"{line}:{col}" if level else f"{line}"


def one_line(text: str) -> str:
    """Text without line ends: control characters as escapes."""
    return UNPRINTABLE.sub(lambda found: repr(found.group())[1:-1], text)


# Text of a node or edge


def props_text(view: View, kind: str, key: str, shown_names: frozenset[str] = frozenset()) -> str:
    """Return the properties in braces, if there are any, except those already shown."""
    rows = view.props.get((kind, key), {})
    pieces = [_prop(name, rows[name]) for name in sorted(rows) if name not in shown_names]
    return f"{{{', '.join(pieces)}}}" if pieces else ""


def _prop(name: str, row: Row) -> str:
    value = row[f"value_{row['value_type']}"]
    if value is True or name in OPAQUE:
        return name
    return f"{name}={value if row['value_type'] == 'json' else json.dumps(value, ensure_ascii=False)}"


def node_text(view: View, node: Row, *leading: str) -> str:
    """Kind, name and properties of a node; also an owner or a line that is not to be expected."""
    pieces = list(leading) or [node["node_kind"], node["subkind"], one_line(node["name"] or "")]
    if node["qualname"] and (node["file_id"] or node["qualname"] != node["name"]):
        pieces.append(f"({node['qualname']})")
    shown_names = frozenset({"offset"} if node["node_kind"] == "INSTRUCTION" else ())
    pieces.append(props_text(view, "node", node["node_id"], shown_names))
    path = view.path(node)
    if node["owner_file_id"] != node["file_id"]:
        pieces.append(f"owned by {view.files.get(node['owner_file_id'], 'nobody')}")
    if path is not None and node["bstart"] is not None:
        line = view.texts[path].place(node["bstart"])[0]
        pieces.append("" if node["line"] == line else f"on line {node['line']}")
    view.show_node(node)
    return " ".join(piece for piece in pieces if piece)


def edge_text(view: View, edge: Row, other: Row, here: Row) -> str:
    """The other end of an edge, after its role, before how it was found."""
    role = [edge["role"], None if edge["ordinal"] is None else str(edge["ordinal"])]
    role_text = " ".join(piece for piece in role if piece)
    pieces = [
        f"[{role_text}]" if role_text else "",
        view.ref(other, view.path(here)),
        finding_text(view, edge, other, here),
    ]
    return " ".join(piece for piece in pieces if piece)


def finding_text(view: View, edge: Row, other: Row, here: Row) -> str:
    """How an edge was found and how far to trust it; also an owner or a place that is not to be expected."""
    trust = [edge["resolution_method"], "" if edge["confidence"] == 1 else f"{edge['confidence']:g}"]
    trust_text = " ".join(piece for piece in trust if piece)
    pieces = [
        f"({trust_text})" if trust_text else "",
        f"?{view.group(edge['ambiguity_group_id'])}" if edge["ambiguity_group_id"] else "",
        f"roles={edge['symbol_roles']}" if edge["symbol_roles"] else "",
        props_text(view, "edge", edge["edge_id"]),
    ]
    # An edge from the repository is owned by the file of its target, or has no owner.
    owner = here["owner_file_id"] or (edge["owner_file_id"] and other["owner_file_id"])
    if edge["owner_file_id"] != owner:
        pieces.append(f"owned by {view.files.get(edge['owner_file_id'], 'nobody')}")
    ends = [(end["path"], end["bstart"], end["bend"]) for end in (here, other)]
    path = edge["path"]
    if edge["bstart"] is not None and (path, edge["bstart"], edge["bend"]) not in ends:
        span = view.texts[path].span(edge["bstart"], edge["bend"])
        pieces.append(f"stated at {span if path == view.path(here) else f'{path}:{span}'}")
    view.show_edge(edge)
    return " ".join(piece for piece in pieces if piece)


def leaving(view: View, node: Row, *, has_keyword: bool) -> Iterator[tuple[str, list[str]]]:
    """The edges of a node by kind, each as text: those that have a keyword, or the others."""
    kinds: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for edge in view.leaving[node["node_id"]]:
        if (edge["edge_kind"] in LEAVING) is not has_keyword:
            continue
        target = view.nodes[edge["dst_node_id"]]
        ordinal = -1 if edge["ordinal"] is None else edge["ordinal"]
        order = (ordinal, edge["role"] or "", -edge["confidence"], view.order(target), edge["edge_id"])
        kinds[edge["edge_kind"]].append((order, edge, target))
    for kind in sorted(kinds):
        found = sorted(kinds[kind], key=lambda each: each[0])
        yield kind, [edge_text(view, edge, target, node) for _, edge, target in found]


def arriving(view: View, node: Row) -> str:
    """The edges that are shown where they lead to, as text."""
    found = [
        (edge["edge_kind"], view.order(source), edge, source)
        for edge in view.arriving[node["node_id"]]
        for source in [view.nodes[edge["src_node_id"]]]
    ]
    ordered = sorted(found, key=lambda each: each[:2])
    return " ".join(
        f"{ARRIVING[kind]} {edge_text(view, edge, source, node)}" for kind, _, edge, source in ordered
    )


def edge_lines(view: View, node: Row, indent: str) -> Iterator[str]:
    """The edges of a node below it: those of one kind in one line if they fit."""
    for kind, targets in leaving(view, node, has_keyword=False):
        together = f"{indent}-> {kind} {', '.join(targets)}"
        if len(together) <= WIDTH:
            yield together
        else:
            yield from (f"{indent}-> {kind} {each}" for each in targets)


def short_edges(view: View, node: Row) -> str:
    """The edges of a node that fit on its own line."""
    return "; ".join(
        f"{LEAVING[kind]} {', '.join(targets)}" for kind, targets in leaving(view, node, has_keyword=True)
    )


# Sections


def _file(view: View, path: str) -> Iterator[str]:
    rows = view.of_file(path)
    yield from (f"==== {path}", "")
    placed = []
    for row in rows:
        if row["node_kind"] in SCOPES | FLOW | SYNTAX:
            continue
        if row["node_kind"] in HEAD or row["bstart"] is None:
            yield from _block(view, row, "")
        else:
            placed.append(row)
    yield from ("", "---- source", "", *_source(view, path, placed))
    for title, kinds in (("scopes", SCOPES), ("flow", FLOW), ("syntax", SYNTAX)):
        chosen = [row for row in rows if row["node_kind"] in kinds]
        roots = [row for row in chosen if row["node_id"] not in view.nested]
        if chosen:
            yield from ("", f"---- {title}", "")
            yield from (line for row in roots for line in _tree(view, row, None, ""))
    yield ""


def _outside(view: View) -> Iterator[str]:
    yield from ("==== outside of files", "")
    for row in sorted((row for row in view.nodes.values() if row["file_id"] is None), key=_by_kind(view)):
        yield from _block(view, row, "")


def _by_kind(view: View) -> Callable[[Row], tuple[Any, ...]]:
    return lambda row: (row["node_kind"], view.order(row))


def _block(view: View, node: Row, margin: str) -> Iterator[str]:
    """A node and its edges, each on a line."""
    pieces = (node_text(view, node), arriving(view, node), short_edges(view, node))
    yield margin + " ".join(piece for piece in pieces if piece)
    yield from edge_lines(view, node, f"{margin}    ")


def _source(view: View, path: str, rows: list[Row]) -> Iterator[str]:
    text = view.texts[path]
    by_line: dict[int, dict[tuple[int, int], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_line[text.place(row["bstart"])[0]][row["bstart"], row["bend"]].append(row)
    for number in range(1, max([len(text.lines), *by_line]) + 1):
        line = text.lines[number - 1] if number <= len(text.lines) else ""
        yield f"{number:4} | {displayed(line.rstrip(chr(13) + chr(10)))}"
        for (bstart, bend), found in by_line[number].items():
            yield f"{MARGIN}| {text.carets(bstart, bend)}"
            for row in found:
                yield from _block(view, row, f"{MARGIN}# ")


def _tree(view: View, node: Row, edge: Row | None, indent: str) -> Iterator[str]:
    """A node and below it its parts."""
    parts = sorted(view.below[node["node_id"]], key=lambda part: _part_order(view, *part))
    inline = [part for part in parts if _is_keyword(view, part[1])]
    pieces = [
        part_text(view, node, edge),
        *(_inline_text(view, *part) for part in inline),
        arriving(view, node),
    ]
    yield indent + " ".join(piece for piece in (*pieces, short_edges(view, node)) if piece)
    yield from edge_lines(view, node, f"{indent}    ")
    for joining, inner in parts:
        if not _is_keyword(view, inner):
            yield from _tree(view, inner, joining, f"{indent}    ")


def part_text(view: View, node: Row, edge: Row | None) -> str:
    """The node of a tree, after what it is to the node above."""
    kind, path, name = node["node_kind"], view.path(node), one_line(node["name"] or "")
    subkind, label = node["subkind"] or "", EVENTS.get(kind, kind.lower())
    pieces = {
        "AST_NODE": (subkind, name),
        "CFG_BLOCK": (view.names[node["node_id"]][0], subkind),
        "INSTRUCTION": (str(view.offset(node)), subkind, name),
        "SCOPE": (kind, subkind, name),
        "CODE_UNIT": (kind, subkind, name),
    }.get(kind, (label, name, subkind))
    span = ""
    if path is not None and node["bstart"] is not None:
        span = view.texts[path].span(node["bstart"], node["bend"])
    return node_text(view, node, "" if edge is None else _slot(view, edge, node), *pieces, span)


def _slot(view: View, edge: Row, node: Row) -> str:
    """Return the role of a part in the whole, unless its own text contains it."""
    kind, role, index = edge["edge_kind"], edge["role"] or "", edge["ordinal"]
    if kind.startswith("STEP_"):
        role = f"{index} {role}".strip()
    elif kind in ("HAS_BLOCK", "HAS_INSTRUCTION"):
        # The number of a block is its name, that of an instruction follows from its offset.
        role = "" if role == node["subkind"] else role
    elif kind == "SCOPE_BINDS":
        role = "" if role == node["name"] else role
    elif index is not None:
        role = f"{role}[{index}]"
    ends = edge["src_node_id"], edge["dst_node_id"]
    outer = view.nodes[ends[0] if ends[1] == node["node_id"] else ends[1]]
    return " ".join(piece for piece in (role, finding_text(view, edge, outer, node)) if piece)


def _part_order(view: View, edge: Row, node: Row) -> tuple[Any, ...]:
    """In the flow by bytecode, in a scope names first, in the tree as written."""
    ordinal = -1 if edge["ordinal"] is None else edge["ordinal"]
    offset = view.offset(node) if node["node_kind"] == "INSTRUCTION" else ordinal
    return (
        node["node_kind"] == "SCOPE",
        -1 if node["node_kind"] == "AST_NODE" else offset,
        node["node_kind"] != "INSTRUCTION",
        (node["name"] or "") if node["node_kind"] == "BINDING" else "",
        view.begins(node),
        edge["role"] or "",
        ordinal,
        view.order(node),
    )


def _is_keyword(view: View, node: Row) -> bool:
    """A leaf of the syntax tree without a place, such as Load or Add, that its parent's line can name."""
    key = node["node_id"]
    busy = view.below[key] or view.leaving[key] or view.arriving[key]
    return node["node_kind"] == "AST_NODE" and node["bstart"] is None and not busy


def _inline_text(view: View, edge: Row, node: Row) -> str:
    return f"{_slot(view, edge, node)}={node_text(view, node, node['subkind'], one_line(node['name'] or ''))}"
