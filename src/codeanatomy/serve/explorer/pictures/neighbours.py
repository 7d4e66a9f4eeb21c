"""Build diagrams of calls and classes around a symbol.

    address = PictureAddress("flask", "calls", "flask.app.Flask.full_dispatch_request")
    calls_diagram(reader, symbol, address).diagram

The focus is in the middle. What leads to it (callers, base classes) is left of it, what it leads to right of
it, one column for each step. A box with a plus adds the next column (`expand`).

Tests: `tests/unit/serve/test_pictures.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import structs

from codeanatomy.query.answers import Symbol, place
from codeanatomy.query.engines.statements import Query, Reader, edges, nodes
from codeanatomy.query.export.escaping import last_parts, shortened, shortened_left
from codeanatomy.query.pictures.diagram import Box, BoxFrame, Diagram
from codeanatomy.query.pictures.layered import assign_ranks
from codeanatomy.query.verbs.calls import NAMED_KINDS, callee_hops, caller_hops
from codeanatomy.query.walks.enclosing import definitions_in
from codeanatomy.query.walks.reachability import CALL_GRAPH, End, Hop, neighbours
from codeanatomy.serve.explorer import links
from codeanatomy.serve.explorer.pictures.address import PictureAddress
from codeanatomy.serve.explorer.pictures.columns import (
    DETAIL_CHARS,
    FOCUS,
    MAX_BOXES,
    NAME_CHARS,
    TITLE_CHARS,
    Columns,
    Linked,
    ListedDiagram,
    NodeFacts,
    PictureRow,
    arrows_of,
    group_box,
    more_box,
    row_of,
    with_frames,
)

MAX_STEPS = 8
# Names of overriding methods that a box shows.
METHODS = 4
INHERITS = ("INHERITS",)


def calls_diagram(reader: Reader, symbol: Symbol, address: PictureAddress) -> ListedDiagram:
    """Draw the callers and callees of a function, class or module."""
    members = set(symbol.ids)
    if symbol.kind == "CLASS":
        members.update(each for each in definitions_in(reader, symbol) if each.startswith("function:"))
    first = {-1: caller_hops(reader, symbol)[0], 1: callee_hops(reader, symbol)[0]}
    columns, linked = _grown(reader, symbol, address, members, CALL_GRAPH, first, {-1: "dst", 1: "src"})
    linked += _between(reader, columns, CALL_GRAPH, symbol.repo_id)
    if symbol.kind != "FUNCTION":
        # Calls inside of a class are not recursion.
        linked = [each for each in linked if not members >= {each.source, each.target}]
    expandable = {
        -1: _degrees(reader, columns, -1, CALL_GRAPH, "dst"),
        1: _degrees(reader, columns, 1, CALL_GRAPH, "src"),
    }
    nouns = {-1: ("caller", "callers"), 1: ("callee", "callees")}
    diagram = _diagram(f"Calls of {symbol.symbol}", symbol, columns, linked, expandable, nouns)
    return ListedDiagram(diagram, _rows(columns, linked, nouns))


def classes_diagram(reader: Reader, symbol: Symbol, address: PictureAddress) -> ListedDiagram:
    """Draw the bases and subclasses of a class, with the methods that override those of a base."""
    first = {rank: neighbours(reader, symbol.ids, INHERITS, end) for rank, end in ((-1, "src"), (1, "dst"))}  # type: ignore[arg-type]
    columns, linked = _grown(
        reader, symbol, address, symbol.ids, INHERITS, first, {-1: "src", 1: "dst"}, always=-1
    )
    linked += _between(reader, columns, INHERITS, symbol.repo_id)
    expandable = {1: _degrees(reader, columns, 1, INHERITS, "dst")}
    nouns = {-1: ("base class", "base classes"), 1: ("subclass", "subclasses")}
    methods = _overriding(reader, columns, symbol)
    diagram = _diagram(
        f"Bases and subclasses of {symbol.symbol}", symbol, columns, linked, expandable, nouns, methods
    )
    return ListedDiagram(structs.replace(_ranked(diagram), against=True), _rows(columns, linked, nouns))


def _grown(
    reader: Reader,
    symbol: Symbol,
    address: PictureAddress,
    focus_ids: Collection[str],
    kinds: Sequence[str],
    first: Mapping[int, Sequence[Hop]],
    ends: Mapping[int, End],
    always: int = 0,
) -> tuple[Columns, list[Linked]]:
    """Add the neighbours of the focus, then those of expanded boxes, column by column."""
    columns = Columns(address)
    columns.homes.update(dict.fromkeys(focus_ids, FOCUS))
    linked: list[Linked] = []
    modules = modules_by_path(reader, symbol.repo_id)
    for sign, end in ends.items():
        hops = list(first[sign])
        for step in range(1, MAX_STEPS + 1):
            linked += [_linked(hop, end) for hop in hops]
            new = {hop.node_id for hop in hops} - columns.homes.keys()
            own = columns.add(sign * step, facts_of(reader, symbol.repo_id, new, modules))
            following = own if sign == always else [each for each in own if each in address.expand]
            if not following:
                break
            hops = neighbours(reader, following, kinds, end)
    return columns, linked


def _linked(hop: Hop, end: End) -> Linked:
    near, far = hop.via, hop.node_id
    source, target = (far, near) if end == "dst" else (near, far)
    return Linked(source, target, hop.edge_kind, hop.confidence, hop.path, hop.line)


def facts_of(
    reader: Reader, repo_id: str, ids: Collection[str], modules: Mapping[str, str]
) -> list[NodeFacts]:
    """Return what is known of some nodes, by name."""
    if not ids:
        return []
    query = Query(
        "SELECT n.node_id, n.node_kind, n.subkind, coalesce(n.qualname, n.name, '') AS name, n.path, n.line"
        " FROM n",
        {"n": nodes(NAMED_KINDS, repo_id, node_id=sorted(ids))},
        order=("name", "path", "line", "node_id"),
    )
    facts = []
    for node_id, kind, subkind, name, path, line in reader.rows(query):
        short = shortened_left(name, NAME_CHARS)
        module = modules.get(path, path) if path else short.partition(".")[0]
        facts.append(NodeFacts(node_id, kind, subkind, short, path, line, shortened_left(module, NAME_CHARS)))
    return facts


def modules_by_path(reader: Reader, repo_id: str) -> dict[str, str]:
    """Return the names of modules by path."""
    query = Query("SELECT n.path, n.qualname FROM n", {"n": nodes(("MODULE",), repo_id)})
    return {path: name for path, name in reader.rows(query) if path and name}


def _between(reader: Reader, columns: Columns, kinds: Sequence[str], repo_id: str) -> list[Linked]:
    """Return the edges between nodes that have a box of their own."""
    ids = [node for node, home in columns.homes.items() if not home.startswith("more|")]
    if len(ids) < 2:
        return []
    query = Query(
        "SELECT e.src_node_id, e.dst_node_id, e.edge_kind, e.confidence, e.path, e.line FROM e",
        {"e": edges(kinds, repo_id, src_node_id=ids, dst_node_id=ids)},
        order=("src_node_id", "dst_node_id", "line"),
    )
    return [Linked(*row) for row in reader.rows(query)]


def _degrees(reader: Reader, columns: Columns, sign: int, kinds: Sequence[str], end: End) -> dict[str, int]:
    """Count what the boxes of one side would add if they were expanded."""
    ids = [
        node
        for node, home in columns.homes.items()
        if home == node and columns.ranks.get(node, 0) * sign > 0 and abs(columns.ranks[node]) < MAX_STEPS
    ]
    ids = [node for node in ids if not columns.facts[node].external]
    if not ids:
        return {}
    near, far = f"{end}_node_id", "src_node_id" if end == "dst" else "dst_node_id"
    query = Query(
        f"SELECT e.{near}, count(DISTINCT e.{far}) FROM e GROUP BY 1",
        {"e": edges(kinds, columns.address.repo_id, **{near: ids})},
    )
    return dict(reader.rows(query))


def _overriding(reader: Reader, columns: Columns, symbol: Symbol) -> dict[str, list[str]]:
    """Return the methods of each class that override a method of a base, by box."""
    names = {fact.name: node for node, fact in columns.facts.items() if columns.homes[node] == node}
    names[symbol.symbol] = FOCUS
    query = Query(
        "SELECT DISTINCT n.name, left(n.qualname, length(n.qualname) - length(n.name) - 1) AS owner"
        " FROM e JOIN n ON n.node_id = e.src_node_id",
        {"e": edges(("OVERRIDES",), symbol.repo_id), "n": nodes(("FUNCTION",), symbol.repo_id)},
        order=("owner", "name"),
    )
    methods: dict[str, list[str]] = {}
    for name, owner in reader.rows(query):
        if owner in names:
            methods.setdefault(names[owner], []).append(name)
    return methods


def _diagram(
    title: str,
    symbol: Symbol,
    columns: Columns,
    linked: Sequence[Linked],
    expandable: Mapping[int, Mapping[str, int]],
    nouns: Mapping[int, tuple[str, str]],
    methods: Mapping[str, Sequence[str]] | None = None,
) -> Diagram:
    """Make boxes, frames and arrows of the columns."""
    address = columns.address
    boxes = [_focus_box(symbol, address, (methods or {}).get(FOCUS, ()))]
    for key in dict.fromkeys(columns.homes.values()):
        if key in columns.groups:
            boxes.append(group_box(key, columns.groups[key], columns))
        elif key in columns.cut:
            boxes.append(more_box(key, columns.cut[key], columns))
        elif key != FOCUS:
            fact, rank = columns.facts[key], columns.ranks[key]
            sign = 1 if rank > 0 else -1
            amount = expandable.get(sign, {}).get(key, 0)
            box = _fact_box(fact, rank, address, (methods or {}).get(key, ()))
            boxes.append(_expandable(box, fact, address, amount, nouns[sign]) if amount else box)
    boxes, frames = with_frames(boxes, columns)
    notes = [
        f"No {several} are known."
        for sign, (_, several) in nouns.items()
        if not any(rank * sign > 0 for rank in columns.ranks.values())
    ]
    return Diagram(
        shortened(title, NAME_CHARS),
        tuple(boxes),
        arrows_of(linked, columns.homes),
        tuple(frames),
        notes=tuple(notes),
    )


def _focus_box(symbol: Symbol, address: PictureAddress, methods: Sequence[str]) -> Box:
    name = shortened_left(symbol.symbol, NAME_CHARS)
    where = shortened_left(symbol.place, DETAIL_CHARS)
    return Box(
        FOCUS,
        last_parts(name, TITLE_CHARS),
        symbol.kind,
        (where, *_methods(methods)) if where else _methods(methods),
        "\n".join((name, symbol.subkind or symbol.kind.lower(), _short_place(symbol.path, symbol.line))),
        rank=0,
        focus=True,
        link=links.symbol_link(address.repo_id, symbol.symbol, address.as_of),
    )


def _fact_box(fact: NodeFacts, rank: int, address: PictureAddress, methods: Sequence[str]) -> Box:
    return Box(
        fact.node_id,
        fact.title,
        fact.kind,
        _methods(methods),
        "\n".join((fact.name, fact.subkind or fact.kind.lower(), _short_place(fact.path, fact.line))),
        rank=rank,
        link=links.symbol_link(address.repo_id, fact.name, address.as_of),
        marks=("external",) if fact.external else (),
    )


def _short_place(path: str | None, line: int | None) -> str:
    return shortened_left(place(path, line), NAME_CHARS)


def _methods(methods: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a box for methods that override others."""
    shown = tuple(f"↑ {shortened(name, DETAIL_CHARS - 2)}" for name in methods[:METHODS])
    rest = len(methods) - len(shown)
    return (
        (*shown, f"{rest} more overrides") if rest > 1 else (*shown, *(f"↑ {n}" for n in methods[METHODS:]))
    )


def _expandable(
    box: Box, fact: NodeFacts, address: PictureAddress, amount: int, nouns: tuple[str, str]
) -> Box:
    expanded = fact.node_id in address.expand
    verb = "Hide" if expanded else "Show"
    return structs.replace(
        box,
        expand=address.without(expand=fact.node_id) if expanded else address.adding(expand=fact.node_id),
        expand_left=(box.rank or 0) < 0,
        expand_label=f"{verb} {amount:,} {nouns[amount != 1]} of {fact.title}",
        marks=(*box.marks, "expanded") if expanded else box.marks,
    )


def _ranked(diagram: Diagram) -> Diagram:
    """Give each class a column right of all of its bases, and new frames that follow."""
    keys = [box.key for box in diagram.boxes]
    ranks = assign_ranks(keys, [(arrow.target, arrow.source) for arrow in diagram.arrows])
    titles = {frame.key: frame for frame in diagram.frames}
    frames: dict[str, BoxFrame] = {}
    boxes = []
    for box in diagram.boxes:
        rank, frame = ranks[box.key], box.frame
        if frame:
            key = f"{rank}|{frame}"
            frames[key] = BoxFrame(key, titles[frame].title, titles[frame].collapse)
            frame = key
        boxes.append(structs.replace(box, rank=rank, frame=frame))
    return structs.replace(diagram, boxes=tuple(boxes), frames=tuple(frames.values()))


def _rows(
    columns: Columns, linked: Sequence[Linked], nouns: Mapping[int, tuple[str, str]]
) -> tuple[PictureRow, ...]:
    """List what the boxes stand for, nearest first."""
    best: dict[str, Linked] = {}
    for link in linked:
        for node in (link.source, link.target):
            if node not in best or link.confidence > best[node].confidence:
                best[node] = link
    rows = []
    for node in sorted(columns.facts, key=lambda each: (abs(columns.ranks[each]), columns.ranks[each])):
        if columns.homes[node].startswith("more|"):
            continue
        fact, rank = columns.facts[node], columns.ranks[node]
        noun = nouns[1 if rank > 0 else -1][0]
        rows.append(
            row_of(
                fact,
                noun if abs(rank) == 1 else f"{noun}, {abs(rank)} steps",
                best.get(node),
                columns.address,
            )
        )
    return tuple(rows[:MAX_BOXES])
