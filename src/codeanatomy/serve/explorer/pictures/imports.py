"""Build diagrams of the imports between modules: of a repository, of a package, or around one module.

    imports_diagram(reader, None, PictureAddress("django", "imports", ""))    # packages of the repository
    imports_diagram(reader, resolve(reader, "django.db"), address)            # modules of a package

A package is one box until it is opened. Packages are opened level by level while all boxes fit a picture that
can be read (`READABLE`); others open by a click (`open`), and close by one on their frame (`close`).
Modules that import each other at module level are marked as a cycle, because such an import may fail with a
partially initialized module; imports inside of functions and for type checking are drawn as weak.

Around a module: what imports it is left, what it imports right, with external modules.

Tests: `tests/unit/serve/test_pictures.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

from codeanatomy.query.answers import Symbol, place
from codeanatomy.query.engines.statements import Query, Reader, edges, nodes
from codeanatomy.query.export.escaping import last_parts, shortened, shortened_left
from codeanatomy.query.pictures.diagram import Arrow, Box, BoxFrame, Diagram
from codeanatomy.query.walks.components import components
from codeanatomy.query.walks.imports import AT_ONCE, Link, module_imports
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
    group_box,
    more_box,
    row_of,
)

# Boxes of a picture while packages are opened without a click.
READABLE = 60
IMPORTS = "IMPORTS_MODULE"
# Imported modules that a row of the list names.
LISTED = 5


def imports_diagram(reader: Reader, symbol: Symbol | None, address: PictureAddress) -> ListedDiagram:
    """Draw the imports of a repository, a package, or around a module."""
    modules = _modules(reader, address.repo_id)
    imports = module_imports(reader, address.repo_id)
    if symbol is not None and not any(each.startswith("package:") for each in symbol.ids):
        return _around(reader, symbol, address, modules, imports)
    package = symbol.symbol if symbol is not None else ""
    inside = {node: fact for node, fact in modules.items() if _is_below(fact.name, package)}
    return _inside(package, address, inside, imports)


def _modules(reader: Reader, repo_id: str) -> dict[str, NodeFacts]:
    query = Query(
        "SELECT n.node_id, n.node_kind, n.subkind, coalesce(n.qualname, n.name, n.path) AS name, n.path"
        " FROM n",
        {"n": nodes(("MODULE",), repo_id)},
        order=("name", "path"),
    )
    return {
        node: NodeFacts(node, kind, subkind, name, path, 1, name.rpartition(".")[0] or name)
        for node, kind, subkind, name, path in (
            (*row[:3], shortened_left(row[3], NAME_CHARS), row[4]) for row in reader.rows(query)
        )
    }


def _is_below(name: str, package: str) -> bool:
    """Whether a module is a package or in it.

    >>> _is_below("shop.cart", "shop"), _is_below("shopping", "shop"), _is_below("a", "")
    (True, False, True)
    """
    return not package or name == package or name.startswith(f"{package}.")


def _inside(
    package: str, address: PictureAddress, modules: Mapping[str, NodeFacts], imports: Sequence[Link]
) -> ListedDiagram:
    """Draw the modules of a package, with packages inside of it as boxes or frames."""
    within = [
        link for link in imports if link.start in modules and link.end in modules and link.start != link.end
    ]
    cyclic = _cyclic(within)
    names = sorted({fact.name for fact in modules.values()})
    opened = _opened(names, package, address)
    homes = {node: _home(fact.name, opened) for node, fact in modules.items()}
    members: dict[str, list[NodeFacts]] = {}
    for node, fact in modules.items():
        members.setdefault(homes[node], []).append(fact)
    arrows = _arrows(within, homes, cyclic)
    in_cycle = {node for pair in cyclic for node in pair}
    boxes = [_box(key, inside, address, opened, in_cycle) for key, inside in sorted(members.items())]
    # Importers first: the layout begins with them.
    balance = dict.fromkeys(members, 0)
    for arrow in arrows:
        balance[arrow.source] -= arrow.amount
        balance[arrow.target] += arrow.amount
    boxes.sort(key=lambda box: (balance[box.key], box.title))
    notes = _notes(len(boxes))
    boxes = boxes[:MAX_BOXES]
    frames = [
        BoxFrame(
            key, last_parts(key.partition("|")[2], TITLE_CHARS), address.adding(close=key.partition("|")[2])
        )
        for key in dict.fromkeys(box.frame for box in boxes)
        if key
    ]
    title = f"Imports in {package}" if package else f"Imports in {address.repo_id}"
    diagram = Diagram(title, tuple(boxes), arrows, tuple(frames), notes=notes)
    best = {
        node: Linked(link.start, link.end, IMPORTS, link.confidence, link.path, link.line)
        for link in reversed(within)
        for node in (link.start,)
    }
    imported: dict[str, set[str]] = {}
    for link in within:
        imported.setdefault(link.start, set()).add(modules[link.end].name)
    rows = [
        row_of(
            fact,
            _relation(sorted(imported.get(node, ())), cycle=node in in_cycle),
            best.get(node),
            address,
        )
        for node, fact in list(modules.items())[:MAX_BOXES]
    ]
    return ListedDiagram(diagram, tuple(rows))


def _relation(names: Sequence[str], *, cycle: bool) -> str:
    """Describe the imports of a module in the list.

    >>> _relation(["a", "b"], cycle=True)
    'in a cycle; imports a, b'
    """
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    text = f"imports {', '.join(names[:LISTED])}{more}" if names else "imports no module of this picture"
    return f"in a cycle; {text}" if cycle else text


def _notes(boxes: int) -> tuple[str, ...]:
    return (f"{boxes - MAX_BOXES:,} more boxes are not shown",) if boxes > MAX_BOXES else ()


def _opened(names: Sequence[str], package: str, address: PictureAddress) -> set[str]:
    """Return the packages whose modules have boxes of their own."""
    opened = {"", package}
    # What is above an opened package is open, too.
    for each in (package, *address.open):
        parts = each[:NAME_CHARS].split(".")
        opened.update(".".join(parts[:length]) for length in range(1, len(parts) + 1))
    opened -= set(address.close) - {package}
    while True:
        boxes: dict[str, set[str]] = {}
        for name in names:
            boxes.setdefault(_home(name, opened), set()).add(name)
        packages = {each for each, inside in boxes.items() if inside != {each} and each not in address.close}
        following = opened | packages
        # All packages of a level, or none of them.
        if not packages or len({_home(name, following) for name in names}) > READABLE:
            return opened
        opened = following


def _home(name: str, opened: Collection[str]) -> str:
    """Return the box of a module: the first package around it that is not open, or itself.

    >>> _home("a.b.c", {"", "a"}), _home("a.b.c", {"", "a", "a.b"}), _home("a", {"", "a"})
    ('a.b', 'a.b.c', 'a')
    """
    parts = name.split(".")
    for length in range(1, len(parts)):
        package = ".".join(parts[:length])
        if package not in opened:
            return package
    return name


def _box(
    key: str,
    members: Sequence[NodeFacts],
    address: PictureAddress,
    opened: Collection[str],
    in_cycle: Collection[str],
) -> Box:
    parent = (
        key
        if key in opened and any(fact.name == key for fact in members) and members[0].subkind == "package"
        else key.rpartition(".")[0]
    )
    frame = f"frame|{parent}" if parent else ""
    marks = ("cycle",) if any(fact.node_id in in_cycle for fact in members) else ()
    single = all(fact.name == key for fact in members)
    inside = key.removeprefix(f"{parent}.") if parent and key != parent else key
    if single:
        fact = members[0]
        title = "__init__" if fact.subkind == "package" else inside
        return Box(
            key,
            last_parts(title, TITLE_CHARS),
            "MODULE",
            (),
            f"{fact.name}\nmodule\n{shortened_left(fact.path or '', NAME_CHARS)}",
            frame=frame,
            link=links.symbol_link(address.repo_id, fact.name, address.as_of),
            marks=marks,
        )
    some = "\n".join(fact.name for fact in members[:10])
    return Box(
        key,
        last_parts(inside, TITLE_CHARS),
        "PACKAGE",
        (f"{len(members):,} modules",),
        f"{key}: {len(members):,} modules\n{some}",
        frame=frame,
        amount=len(members),
        link=address.adding(open=key),
        marks=(*marks, "grows"),
    )


def _cyclic(imports: Sequence[Link]) -> set[tuple[str, str]]:
    """Return the imports at module level that are part of a cycle."""
    graph: dict[str, set[str]] = {}
    for link in imports:
        if link.method == AT_ONCE:
            graph.setdefault(link.start, set()).add(link.end)
            graph.setdefault(link.end, set())
    group = {node: number for number, members in enumerate(components(graph)) for node in members}
    return {
        (start, end)
        for start, ends in graph.items()
        for end in ends
        if start in group and group[start] == group.get(end)
    }


def _arrows(
    imports: Sequence[Link], homes: Mapping[str, str], cyclic: AbstractSet[tuple[str, str]]
) -> tuple[Arrow, ...]:
    joined: dict[tuple[str, str], set[tuple[str, str]]] = {}
    strong: set[tuple[str, str]] = set()
    for link in imports:
        ends = (homes[link.start], homes[link.end])
        if ends[0] != ends[1]:
            joined.setdefault(ends, set()).add((link.start, link.end))
            if link.method == AT_ONCE:
                strong.add(ends)
    return tuple(
        Arrow(
            *ends,
            (IMPORTS,),
            len(pairs),
            marks=("cycle",) if pairs & cyclic else () if ends in strong else ("weak",),
        )
        for ends, pairs in sorted(joined.items())
    )


def _around(
    reader: Reader,
    symbol: Symbol,
    address: PictureAddress,
    modules: Mapping[str, NodeFacts],
    imports: Sequence[Link],
) -> ListedDiagram:
    """Draw what imports a module, and what it imports."""
    own = next((fact for fact in modules.values() if fact.path == symbol.path), None)
    if own is None:
        return ListedDiagram(Diagram(f"Imports of {symbol.symbol}", (), ()), ())
    columns = Columns(address)
    columns.homes[own.node_id] = FOCUS
    near = [link for link in imports if own.node_id in (link.start, link.end) and link.start != link.end]
    imported = {link.end for link in near if link.start == own.node_id}
    importing = {link.start for link in near if link.end == own.node_id} - imported
    external, outside = _external(reader, own, address.repo_id)
    columns.add(1, [*(modules[node] for node in sorted(imported)), *external])
    columns.add(-1, [modules[node] for node in sorted(importing)])
    cyclic = _cyclic(imports)
    arrows = _arrows([*near, *outside], columns.homes, cyclic)
    boxes = [_module_focus(own, address)]
    in_cycle = {node for pair in cyclic for node in pair if own.node_id in pair}
    for node, home in columns.homes.items():
        if home == node:
            boxes.append(_module_box(columns.facts[node], columns.ranks[node], address, node in in_cycle))
    boxes += [group_box(key, inside, columns, "modules") for key, inside in columns.groups.items()]
    boxes += [more_box(key, inside, columns) for key, inside in columns.cut.items()]
    diagram = Diagram(f"Imports of {own.name}", tuple(boxes), arrows)
    by_node = {
        node: Linked(link.start, link.end, IMPORTS, link.confidence, link.path, link.line)
        for link in reversed([*near, *outside])
        for node in (link.start, link.end)
    }
    rows = [
        row_of(fact, "imported" if columns.ranks[node] > 0 else "imports it", by_node.get(node), address)
        for node, fact in columns.facts.items()
    ]
    return ListedDiagram(diagram, tuple(rows[:MAX_BOXES]))


def _module_focus(own: NodeFacts, address: PictureAddress) -> Box:
    return Box(
        FOCUS,
        last_parts(own.name, TITLE_CHARS),
        "MODULE",
        (shortened_left(own.path or "", DETAIL_CHARS),),
        f"{own.name}\nmodule\n{own.path or ''}",
        rank=0,
        focus=True,
        link=links.symbol_link(address.repo_id, own.name, address.as_of),
    )


def _module_box(fact: NodeFacts, rank: int, address: PictureAddress, in_cycle: bool) -> Box:
    return Box(
        fact.node_id,
        last_parts(fact.name, TITLE_CHARS),
        fact.kind,
        tooltip=f"{fact.name}\n{shortened(place(fact.path, None), NAME_CHARS)}",
        rank=rank,
        link=links.symbol_link(address.repo_id, fact.name, address.as_of),
        expand=address.of(fact.name) if not fact.external else "",
        expand_left=rank < 0,
        expand_label=f"Show the imports of {fact.title}",
        marks=(*(("external",) if fact.external else ()), *(("cycle",) if in_cycle else ())),
    )


def _external(reader: Reader, own: NodeFacts, repo_id: str) -> tuple[list[NodeFacts], list[Link]]:
    """Return the modules outside of the repository that a module imports, and these imports."""
    query = Query(
        "SELECT x.node_id, x.node_kind, x.subkind, x.qualname AS name, min(e.line), max(e.confidence)"
        " FROM e JOIN x ON x.node_id = e.dst_node_id GROUP BY 1, 2, 3, 4",
        {
            "e": edges((IMPORTS,), repo_id, path=(own.path or "",)),
            "x": nodes(("EXTERNAL_MODULE",), repo_id),
        },
        order=("name",),
    )
    facts, imports = [], []
    for node, kind, subkind, name, line, confidence in reader.rows(query):
        short = shortened_left(name, NAME_CHARS)
        facts.append(
            NodeFacts(
                node,
                kind,
                subkind,
                short,
                None,
                None,
                "standard library" if subkind else short.partition(".")[0],
            )
        )
        imports.append(Link(own.node_id, node, IMPORTS, own.path, line, confidence, AT_ONCE))
    return facts, imports
