"""Choose what a picture shows of a focus: boxes and arrows, few enough to be read.

    view = view_of(reader, symbol, around(reader, symbol, (), 2, straight=True), nodes, edges, run_id)
    view.boxes, view.arrows, view.notes

Up to sixty nodes are a box each. More are drawn by module: a box for those of a module that are as many steps
away, with how many there are. If that is too much, by package, then by packages further up; at last the
smallest are put together. The focus always has a box of its own. The notes, which are in the picture too,
describe the grouping.

Tests: `tests/unit/query/test_picture.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from codeanatomy.query.answers import Symbol, place
from codeanatomy.query.engines.statements import Query, Reader
from codeanatomy.query.engines.statements import nodes as nodes_of
from codeanatomy.query.export.escaping import last_parts, shortened, shortened_left
from codeanatomy.query.export.rows import ExportRows, place_of
from codeanatomy.query.export.selection import Chosen
from codeanatomy.query.pictures.diagram import Arrow, Box, Diagram
from codeanatomy.query.pictures.drawing import kind_label
from codeanatomy.query.walks.docstrings import docstrings

# Most boxes of a readable picture.
READABLE = 60
# Longer names from a source are truncated first.
NAME_CHARS = 500
TITLE_CHARS = 32
DETAIL_CHARS = 38
# Most parts of a package name by which packages are grouped.
FURTHER_UP = 4
# Names of members in the tooltip of a box of several nodes.
SHOWN = 10
FOCUS = "focus"
OTHERS = "(others)"


class Node(NamedTuple):
    """What is known of a node that is drawn; there may be many."""

    key: str
    kind: str
    name: str
    place: str
    # Of its file; empty if it has none.
    path: str


class Picture(Struct, frozen=True):
    """A picture, not drawn yet."""

    focus: Symbol
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    # Everything that the boxes stand for.
    nodes: tuple[Node, ...]
    edges: int
    steps: Mapping[str, int]
    run_id: str
    docstring: str
    notes: tuple[str, ...]

    @property
    def diagram(self) -> Diagram:
        """What is drawn of it."""
        title = f"What is around {shortened(self.focus.symbol, NAME_CHARS)}"
        return Diagram(title, self.boxes, self.arrows, notes=self.notes)


def view_of(
    reader: Reader, focus: Symbol, chosen: Chosen, nodes: ExportRows, edges: ExportRows, run_id: str
) -> Picture:
    """What to draw of the nodes and edges around a focus."""
    drawn = _nodes(nodes)
    steps = {node: step for node, step in (chosen.steps or {}).items() if node in drawn}
    pairs = _pairs(edges)
    focused = set(focus.ids)
    # Names of the focus that nothing leads to or from are not drawn beside it.
    others = [node for node in drawn.values() if node.key not in focused]
    homes, notes = _homes(reader, focus, others, steps)
    boxes = _boxes(focus, others, steps, homes)
    return Picture(
        focus,
        boxes,
        _arrows(pairs, {**homes, **dict.fromkeys(focus.ids, FOCUS)}),
        tuple(drawn.values()),
        edges.count,
        steps,
        run_id,
        _docstring(reader, focus),
        (*chosen.notes, *notes),
    )


def _nodes(rows: ExportRows) -> dict[str, Node]:
    columns = ("node_id", "node_kind", "name", "qualname", "path", "line")
    places = place_of(rows.columns, *columns)
    nodes = {}
    for batch in rows:
        for row in batch:
            key, kind, name, qualname, path, line = (row[each] for each in places)
            # A name may be a megabyte long; what is drawn of it is not.
            names = shortened_left(qualname or name or kind, NAME_CHARS)
            where = shortened_left(place(path, line), NAME_CHARS)
            nodes[key] = Node(key, kind, names, where, path or "")
    return nodes


def _pairs(rows: ExportRows) -> dict[tuple[str, str, str], list[float]]:
    """Return the confidences of the edges between two nodes, by kind."""
    columns = ("src_node_id", "dst_node_id", "edge_kind", "confidence")
    source, target, kind, confidence = place_of(rows.columns, *columns)
    pairs: dict[tuple[str, str, str], list[float]] = {}
    for batch in rows:
        for row in batch:
            pairs.setdefault((row[source], row[target], row[kind]), []).append(row[confidence])
    return pairs


def _homes(
    reader: Reader, focus: Symbol, nodes: Sequence[Node], steps: Mapping[str, int]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the key of the box of each node, and notes on the grouping."""
    if len(nodes) < READABLE:
        return {node.key: node.key for node in nodes}, ()
    modules = _modules(reader, focus.repo_id)
    dotted = {node.key: _module(node, modules) for node in nodes}
    many = f"{len(steps):,} nodes are too many to be read:"
    levels: list[tuple[str, Callable[[str], str]]] = [
        ("one box for each module", lambda name: name),
        ("one box for each package", _package),
    ]
    deepest = max(name.count(".") for name in dotted.values())
    levels += [
        (f"one box for each package, by {depth} parts of its name", _first_parts(depth))
        for depth in range(min(deepest - 1, FURTHER_UP), 0, -1)
    ]
    for rule, group in levels:
        homes = {key: f"{steps.get(key, 0)}|{group(name)}" for key, name in dotted.items()}
        if len(set(homes.values())) < READABLE:
            return homes, (f"{many} {rule}",)
    most = Counter(homes.values()).most_common()
    kept = {home for home, _ in sorted(most, key=lambda each: (-each[1], each[0]))[: READABLE // 2]}
    homes = {key: home if home in kept else f"{home.split('|')[0]}|{OTHERS}" for key, home in homes.items()}
    return homes, (f"{many} {rule}, the smallest of them together",)


def _modules(reader: Reader, repo_id: str) -> dict[str, str]:
    """Names of modules by path."""
    query = Query("SELECT n.path, n.qualname FROM n", {"n": nodes_of(("MODULE",), repo_id)})
    return {path: shortened_left(name, NAME_CHARS) for path, name in reader.rows(query) if path and name}


def _module(node: Node, modules: Mapping[str, str]) -> str:
    """The module of a node; of what is outside of the repository, the first part of its name."""
    if node.kind in ("MODULE", "PACKAGE"):
        return node.name
    return modules.get(node.path, node.path) if node.path else node.name.partition(".")[0]


def _package(module: str) -> str:
    return module.rpartition(".")[0] or module


def _first_parts(depth: int) -> Callable[[str], str]:
    return lambda name: ".".join(name.split(".")[:depth])


def _boxes(
    focus: Symbol, nodes: Iterable[Node], steps: Mapping[str, int], homes: Mapping[str, str]
) -> tuple[Box, ...]:
    whole = shortened(focus.symbol, NAME_CHARS)
    boxes = [
        Box(
            FOCUS,
            last_parts(whole, TITLE_CHARS),
            focus.kind,
            (shortened_left(focus.place, DETAIL_CHARS),),
            f"{whole}\n{focus.kind}\n{shortened_left(focus.place, NAME_CHARS)}",
            rank=0,
            focus=True,
        )
    ]
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        groups.setdefault(homes[node.key], []).append(node)
    for key, members in sorted(groups.items()):
        first, step = members[0], steps.get(members[0].key, 0)
        if len(members) == 1:
            detail, title, tooltip = first.place or first.kind, first.name, f"{first.kind}\n{first.place}"
            boxes.append(_box(key, step, title, detail, first.kind, tooltip))
            continue
        counted = Counter(node.kind for node in members)
        kinds = ", ".join(f"{amount:,} {kind}" for kind, amount in sorted(counted.items()))
        some = "\n".join(sorted(node.name for node in members)[:SHOWN])
        boxes.append(_box(key, step, key.partition("|")[2], kinds, "", f"{kinds}\n{some}", len(members)))
    return tuple(boxes)


def _box(key: str, step: int, title: str, detail: str, kind: str, tooltip: str, amount: int = 1) -> Box:
    cut = shortened if amount > 1 else shortened_left
    return Box(
        key,
        last_parts(title, TITLE_CHARS),
        kind,
        (cut(detail, DETAIL_CHARS),),
        f"{title}\n{tooltip}",
        rank=step,
        amount=amount,
    )


def _arrows(
    pairs: Mapping[tuple[str, str, str], Sequence[float]], homes: Mapping[str, str]
) -> tuple[Arrow, ...]:
    """Put the edges between two boxes together; one that is certain makes the arrow certain."""
    joined: dict[tuple[str, str], dict[str, list[float]]] = {}
    for (source, target, kind), confidences in pairs.items():
        if source in homes and target in homes:
            kinds = joined.setdefault((homes[source], homes[target]), {})
            kinds.setdefault(kind, []).extend(confidences)
    arrows = []
    for (source, target), kinds in sorted(joined.items()):
        amount = sum(map(len, kinds.values()))
        label = ", ".join(map(kind_label, sorted(kinds))) + (f" x {amount:,}" if amount > len(kinds) else "")
        surest = max(max(confidences) for confidences in kinds.values())
        arrows.append(Arrow(source, target, tuple(sorted(kinds)), amount, surest, label))
    return tuple(arrows)


def _docstring(reader: Reader, focus: Symbol) -> str:
    """The docstring of the focus, of the first definition that has one; else nothing."""
    return next(iter(docstrings(reader, focus.ids).values()), "")
