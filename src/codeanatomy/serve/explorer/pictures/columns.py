"""Put boxes in columns beside a focus, few enough to be read.

    columns = Columns(address)
    columns.add(-1, callers)         # those with a box of their own; others are put together or counted
    columns.homes["function:3f9c"]   # the box of a node

In a column, symbols of one module have a frame. If there are more than `COLUMN`, a module becomes one box,
which opens by a click (`open`) and closes again (`close`), and what is left is counted in a box "n more"
(`more`).

Tests: `tests/unit/serve/test_pictures.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, structs

from codeanatomy.query.answers import place
from codeanatomy.query.export.escaping import last_parts, shortened_left
from codeanatomy.query.pictures.diagram import Arrow, Box, BoxFrame, Diagram
from codeanatomy.query.symbols import EXTERNAL_KINDS
from codeanatomy.serve.explorer import links
from codeanatomy.serve.explorer.pictures.address import PictureAddress
from codeanatomy.serve.explorer.source_names import kind_label

# Boxes of a column, and those after a click on "n more"; boxes of a picture.
COLUMN, MORE, MAX_BOXES = 18, 150, 500
# External names of one package that are put together even in a short column.
EXTERNAL = 3
NAME_CHARS, TITLE_CHARS, DETAIL_CHARS = 500, 34, 40
FOCUS = "focus"


class NodeFacts(Struct, frozen=True):
    """What is known of a node that may be drawn."""

    node_id: str
    kind: str
    subkind: str | None
    name: str
    path: str | None
    line: int | None
    # Its module; of external names the package.
    module: str

    @property
    def external(self) -> bool:
        """Whether it is defined outside of the repository."""
        return self.kind in EXTERNAL_KINDS

    @property
    def title(self) -> str:
        """Its name without the module."""
        inside = self.name.removeprefix(f"{self.module}.")
        return last_parts(inside if inside and not self.external else self.name, TITLE_CHARS)


class PictureRow(Struct, frozen=True):
    """A row of the list below a picture."""

    relation: str
    name: str
    kind: str
    place: str
    link: str
    place_link: str
    picture: str
    confidence: float


class ListedDiagram(Struct, frozen=True):
    """A diagram, and the same facts as a list."""

    diagram: Diagram
    rows: tuple[PictureRow, ...]


class Linked(Struct, frozen=True):
    """An edge between two nodes."""

    source: str
    target: str
    kind: str
    confidence: float
    path: str | None = None
    line: int | None = None


class Columns:
    """The boxes of a picture, column by column; each column is limited."""

    def __init__(self, address: PictureAddress) -> None:
        self.address = address
        # By node: its column, its box, and what is known of it.
        self.ranks: dict[str, int] = {}
        self.homes: dict[str, str] = {}
        self.facts: dict[str, NodeFacts] = {}
        # By box: nodes of one module, and nodes that are not shown.
        self.groups: dict[str, list[NodeFacts]] = {}
        self.cut: dict[str, list[NodeFacts]] = {}

    def add(self, rank: int, facts: Sequence[NodeFacts]) -> list[str]:
        """Add nodes to a column, and return those that have a box of their own."""
        modules: dict[str, list[NodeFacts]] = {}
        for fact in facts:
            modules.setdefault(fact.module, []).append(fact)
        many = len(facts) > COLUMN
        items: list[list[NodeFacts]] = []
        for module, members in modules.items():
            collapsed = module in self.address.close or (
                module not in self.address.open
                and (many or (members[0].external and len(members) >= EXTERNAL))
            )
            items += [members] if collapsed and len(members) > 1 else [[fact] for fact in members]
        # Symbols of the repository first; large groups are not cut.
        items.sort(key=lambda members: (members[0].external, -len(members), members[0].name))
        room = MORE if str(rank) in self.address.more else COLUMN
        room = max(1, min(room, MAX_BOXES - len(set(self.homes.values()))))
        shown, cut = (items, []) if len(items) <= room + 1 else (items[:room], items[room:])
        own = []
        for members in shown:
            key = members[0].node_id if len(members) == 1 else f"{rank}|{members[0].module}"
            if len(members) > 1:
                self.groups[key] = list(members)
            else:
                own.append(key)
            self._put(rank, key, members)
        for members in cut:
            self.cut.setdefault(f"more|{rank}", []).extend(members)
            self._put(rank, f"more|{rank}", members)
        return own

    def _put(self, rank: int, key: str, members: Iterable[NodeFacts]) -> None:
        for fact in members:
            self.ranks[fact.node_id] = rank
            self.homes[fact.node_id] = key
            self.facts[fact.node_id] = fact


def group_box(key: str, members: Sequence[NodeFacts], columns: Columns, noun: str = "symbols") -> Box:
    """Return the box that stands for the nodes of one module or package."""
    module = members[0].module
    names = "\n".join(fact.name for fact in members[:10])
    return Box(
        key,
        last_parts(module, TITLE_CHARS),
        "",
        (f"{len(members):,} {noun}",),
        f"{module}: {len(members):,} {noun}\n{names}",
        rank=columns.ranks[members[0].node_id],
        amount=len(members),
        link=columns.address.adding(open=module),
        marks=("external", "grows") if members[0].external else ("grows",),
    )


def more_box(key: str, members: Sequence[NodeFacts], columns: Columns) -> Box:
    """Return the box that counts what a column does not show."""
    rank = columns.ranks[members[0].node_id]
    names = "\n".join(fact.name for fact in members[:10])
    can_grow = str(rank) not in columns.address.more
    return Box(
        key,
        f"{len(members):,} more",
        tooltip=f"{len(members):,} more\n{names}",
        rank=rank,
        amount=len(members),
        link=columns.address.adding(more=str(rank)) if can_grow else "",
        marks=("more", "grows"),
    )


def with_frames(boxes: Sequence[Box], columns: Columns) -> tuple[list[Box], list[BoxFrame]]:
    """Put boxes of one module and column into a frame; the others show their module."""
    members: dict[str, list[Box]] = {}
    for box in boxes:
        if box.key in columns.facts:
            members.setdefault(f"frame|{box.rank}|{columns.facts[box.key].module}", []).append(box)
    frames: list[BoxFrame] = []
    changed: dict[str, Box] = {}
    for key, inside in members.items():
        module = columns.facts[inside[0].key].module
        if len(inside) > 1:
            frames.append(
                BoxFrame(key, last_parts(module, TITLE_CHARS), columns.address.adding(close=module))
            )
            changed |= {box.key: structs.replace(box, frame=key) for box in inside}
        elif not columns.facts[inside[0].key].external and columns.facts[inside[0].key].name != module:
            detail = shortened_left(module, DETAIL_CHARS)
            changed[inside[0].key] = structs.replace(inside[0], details=(detail, *inside[0].details))
    return [changed.get(box.key, box) for box in boxes], frames


def arrows_of(linked: Iterable[Linked], homes: Mapping[str, str]) -> tuple[Arrow, ...]:
    """Put edges between the same boxes together; one that is certain makes the arrow certain."""
    joined: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
    for link in linked:
        if link.source in homes and link.target in homes:
            pairs = joined.setdefault((homes[link.source], homes[link.target], link.kind), {})
            pair = (link.source, link.target)
            pairs[pair] = max(link.confidence, pairs.get(pair, 0.0))
    return tuple(
        Arrow(source, target, (kind,), len(pairs), max(pairs.values()))
        for (source, target, kind), pairs in sorted(joined.items())
        # Calls inside of a group are not shown, only those of a symbol to itself.
        if source != target or "|" not in source
    )


def row_of(fact: NodeFacts, relation: str, link: Linked | None, address: PictureAddress) -> PictureRow:
    """Return the row of a node; its place is that of the edge, if there is one."""
    path, line = (link.path, link.line) if link and link.path else (fact.path, fact.line)
    return PictureRow(
        relation,
        fact.name,
        kind_label(fact.kind, fact.subkind),
        place(path, line),
        links.symbol_link(address.repo_id, fact.name, address.as_of),
        links.file_link(address.repo_id, path, line, address.as_of) if path else "",
        "" if fact.external else address.of(fact.name),
        link.confidence if link else 1.0,
    )
