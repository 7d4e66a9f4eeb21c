"""Arrange the boxes of a diagram in ranks: arrows lead to next ranks, few of them cross, no boxes overlap.

    placed = arrange(Diagram("Calls", (Box("a", "f"), Box("b", "g")), (Arrow("a", "b"),)))
    placed.boxes["a"].x < placed.boxes["b"].x
    placed.routes[0]          # Route(points=((60.0, 16.0), (130.0, 16.0)), back=False)

The method is that of Sugiyama. Ranks are the longest paths from the sources, after arrows that close a cycle
have been turned around (`back`). A rank is ordered by the average position of its neighbours in the next
rank, forth and back a few times. Then each box moves as near to its neighbours as others permit (`_packed`).
An arrow that passes ranks has a place in each of them; arrows to one target share it, so that they run
together. The boxes of a frame are arranged first, then the frames as large boxes.

Everything is a function of the diagram: the same diagram gives the same picture. 500 boxes with 1,500 arrows
take about 100 ms. Well-known packages were no help: those in pure Python are slower and have no frames.

Tests: `tests/unit/query/test_layered.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from codeanatomy.query.pictures.diagram import DETAIL_PX, Arrow, Box, Diagram, text_width

# Between ranks; between boxes of a rank; between boxes and arrows that pass.
RANK_GAP, GAP, LANE = 74.0, 14.0, 9.0
# FRAME_SIGN: margins beside the title of a frame, with the sign to collapse it.
FRAME_PAD, FRAME_TITLE, FRAME_SIGN = 12.0, 24.0, 44.0
MARGIN = 16.0
SWEEPS, MOVES = 8, 6
# If arrows pass more places on ranks, the longest ones are drawn straight.
MAX_LANES = 1_500

Point: TypeAlias = tuple[float, float]
Key: TypeAlias = Hashable


class Rect(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


class Route(Struct, frozen=True):
    """The way of an arrow, from box to box."""

    points: tuple[Point, ...]
    # It leads against the ranks, or stays in one.
    back: bool = False


class Placed(Struct, frozen=True):
    """Positions of a diagram; the upper left corner is (0, 0)."""

    width: float
    height: float
    boxes: dict[str, Rect]
    frames: dict[str, Rect]
    # One for each arrow of the diagram, in its order.
    routes: tuple[Route, ...]


class _Item(Struct, frozen=True):
    """A box or a frame; `along` is its size in the direction of the ranks, `across` the other one."""

    key: str
    along: float
    across: float
    rank: int | None = None


class _Grid(Struct, frozen=True):
    """Positions of items: (along, across) of their corners, and what arrows pass on their way."""

    corners: dict[str, Point]
    along: float
    across: float
    passed: dict[tuple[str, str], list[Point]]
    ranks: dict[str, int]


def arrange(diagram: Diagram) -> Placed:
    """Return the positions of boxes, frames and arrows."""
    sizes = _sizes(diagram)
    pairs = list(dict.fromkeys(_pair(arrow, diagram) for arrow in diagram.arrows if _drawn(arrow, sizes)))
    home = {box.key: box.frame or box.key for box in diagram.boxes}
    members: dict[str, list[Box]] = {}
    for box in diagram.boxes:
        members.setdefault(home[box.key], []).append(box)
    titles = {frame.key: text_width(frame.title, DETAIL_PX) + FRAME_SIGN for frame in diagram.frames}
    compact = not diagram.down
    inner: dict[str, _Grid] = {}
    items = []
    for key, inside in members.items():
        if not inside[0].frame:
            items.append(_Item(key, *sizes[key], inside[0].rank))
            continue
        # Boxes with given ranks are one column.
        own = [_Item(box.key, *sizes[box.key], None if box.rank is None else 0) for box in inside]
        within = [pair for pair in pairs if home[pair[0]] == home[pair[1]] == key]
        inner[key] = grid = _layered(own, within, compact)
        along = max(grid.along, titles.get(key, 0.0) - FRAME_PAD) + 2 * FRAME_PAD
        items.append(_Item(key, along, grid.across + FRAME_PAD + FRAME_TITLE, inside[0].rank))
    outer = _layered(items, [(home[a], home[b]) for a, b in pairs if home[a] != home[b]], compact)
    corners = dict(outer.corners)
    for key, grid in inner.items():
        along, across = outer.corners[key]
        for name, (x, y) in grid.corners.items():
            corners[name] = (along + FRAME_PAD + x, across + FRAME_TITLE + y)
    areas = {key: Rect(*corners[key], *size) for key, size in sizes.items()}
    frames = {
        item.key: Rect(*outer.corners[item.key], item.along, item.across)
        for item in items
        if item.key in inner
    }
    ways = {pair: _way(pair, areas, home, inner, outer) for pair in pairs}
    routes = []
    for arrow in diagram.arrows:
        route = ways.get(_pair(arrow, diagram), Route(()))
        routes.append(Route(route.points[::-1], route.back) if diagram.against else route)
    return _shifted(areas, frames, routes, diagram.down)


def _drawn(arrow: Arrow, boxes: Collection[str]) -> bool:
    return arrow.source in boxes and arrow.target in boxes


def _sizes(diagram: Diagram) -> dict[str, tuple[float, float]]:
    """Return the sizes of boxes along and across the ranks; boxes of a given rank have one width."""
    if diagram.down:
        return {box.key: box.size[::-1] for box in diagram.boxes}
    widest: dict[int | None, float] = {}
    for box in diagram.boxes:
        pads = 2 * FRAME_PAD if box.frame else 0.0
        widest[box.rank] = max(widest.get(box.rank, 0.0), box.size[0] + pads)
    titles = {frame.key: text_width(frame.title, DETAIL_PX) + FRAME_SIGN for frame in diagram.frames}
    for box in diagram.boxes:
        widest[box.rank] = max(widest[box.rank], titles.get(box.frame, 0.0) + FRAME_PAD)
    sizes = {}
    for box in diagram.boxes:
        width, height = box.size
        if box.rank is not None:
            width = widest[box.rank] - (2 * FRAME_PAD if box.frame else 0.0)
        sizes[box.key] = (width, height)
    return sizes


def assign_ranks(keys: Sequence[str], pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the rank of each key: the longest path from a key without arrows to it, without cycles."""
    after = _without_cycles(keys, pairs)
    waiting = dict.fromkeys(keys, 0)
    for following in after.values():
        for to in following:
            waiting[to] += 1
    sources = [key for key in keys if not waiting[key]]
    rank, ready = dict.fromkeys(keys, 0), list(sources)
    while ready:
        key = ready.pop()
        for to in after[key]:
            rank[to] = max(rank[to], rank[key] + 1)
            waiting[to] -= 1
            if not waiting[to]:
                ready.append(to)
    # A source moves next to the first box it leads to.
    for key in sources:
        rank[key] = min((rank[to] for to in after[key]), default=1) - 1
    return rank


def _without_cycles(keys: Sequence[str], pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return what follows each key; arrows that close a cycle are turned around."""
    after: dict[str, list[str]] = {key: [] for key in keys}
    for a, b in dict.fromkeys(pairs):
        if a != b:
            after[a].append(b)
    for a, b in sorted(_closing(keys, after)):
        after[a].remove(b)
        if a not in after[b]:
            after[b].append(a)
    return after


def _limited(ranks: dict[str, int], most: int) -> dict[str, int]:
    """Put neighbouring ranks together until there are at most `most`."""
    lowest, highest = min(ranks.values(), default=0), max(ranks.values(), default=0)
    if highest - lowest < most:
        return ranks
    return {key: (rank - lowest) * most // (highest - lowest + 1) for key, rank in ranks.items()}


def _pair(arrow: Arrow, diagram: Diagram) -> tuple[str, str]:
    return (arrow.target, arrow.source) if diagram.against else (arrow.source, arrow.target)


def _closing(keys: Sequence[str], after: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    """Return the arrows that close a cycle, in a search from the first keys, depth first."""
    closing: set[tuple[str, str]] = set()
    done: set[str] = set()
    for root in keys:
        if root in done:
            continue
        path = {root}
        stack = [(root, iter(after[root]))]
        while stack:
            key, following = stack[-1]
            for to in following:
                if to in path:
                    closing.add((key, to))
                elif to not in done:
                    path.add(to)
                    stack.append((to, iter(after[to])))
                    break
            else:
                stack.pop()
                path.remove(key)
                done.add(key)
    return closing


def _layered(items: Sequence[_Item], pairs: Sequence[tuple[str, str]], compact: bool) -> _Grid:
    """Arrange items without overlap; pairs are arrows between different or equal items."""
    pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    ranks = _ranks(items, pairs, compact)
    # Places on ranks: items, and what arrows pass. An arrow to a target passes at the place of the target.
    joined: set[tuple[Key, Key]] = set()
    lanes: dict[Key, int] = {}
    chains: dict[tuple[str, str], list[Key]] = {}
    for a, b in sorted(pairs, key=lambda pair: abs(ranks[pair[0]] - ranks[pair[1]])):
        step = 1 if ranks[a] < ranks[b] else -1
        if ranks[a] == ranks[b] or len(lanes) > MAX_LANES:
            continue
        chain: list[Key] = []
        for rank in range(ranks[a] + step, ranks[b], step):
            chain.append((b, step, rank))
            lanes[chain[-1]] = rank
        joined.update(pairwise([a, *chain, b][::step]))
        chains[a, b] = chain
    every: dict[Key, int] = dict(lanes)
    every.update(ranks)
    order = _ordered(every, joined)
    breadth: dict[Key, float] = dict.fromkeys(lanes, 0.0)
    breadth.update((item.key, item.across) for item in items)
    middles = _middles(order, joined, breadth)
    corners: dict[str, Point] = {}
    sizes: dict[Key, _Item] = {item.key: item for item in items}
    starts: dict[int, tuple[float, float]] = {}
    at = 0.0
    for rank in sorted(order):
        along = max((sizes[key].along for key in order[rank] if key in sizes), default=0.0)
        starts[rank] = (at, at + along)
        at += along + RANK_GAP
    for item in items:
        first, last = starts[ranks[item.key]]
        begin = first if compact else (first + last - item.along) / 2
        corners[item.key] = (begin, middles[item.key] - item.across / 2)
    top = min((y for _, y in corners.values()), default=0.0)
    top = min([top, *(middles[lane] - LANE for lane in lanes)])
    bottom = max(
        [
            0.0,
            *(corners[item.key][1] + item.across for item in items),
            *(middles[lane] + LANE for lane in lanes),
        ]
    )
    passed = {
        pair: [
            (end, middles[lane] - top)
            for lane in chain
            for end in (starts[lanes[lane]] if ranks[pair[0]] < ranks[pair[1]] else starts[lanes[lane]][::-1])
        ]
        for pair, chain in chains.items()
    }
    return _Grid(
        {key: (x, y - top) for key, (x, y) in corners.items()},
        max(at - RANK_GAP, 0.0),
        bottom - top,
        passed,
        ranks,
    )


def _ranks(items: Sequence[_Item], pairs: Sequence[tuple[str, str]], compact: bool) -> dict[str, int]:
    """Return given ranks, or those that follow from the arrows; items without arrows fill the ranks.

    Compact ranks are not many more than a rank has items: a long row cannot be read on a screen.
    """
    if all(item.rank is not None for item in items):
        return {item.key: item.rank or 0 for item in items}
    linked = {key for pair in pairs for key in pair}
    most = max(3, round(1.2 * len(items) ** 0.5)) if compact else len(items)
    ranks = _limited(assign_ranks([item.key for item in items if item.key in linked], pairs), most)
    alone = [item for item in items if item.key not in linked]
    if not alone:
        return ranks
    filled: dict[int, float] = dict.fromkeys(sorted(set(ranks.values())), 0.0)
    for item in items:
        if item.key in ranks:
            filled[ranks[item.key]] += item.across + GAP
    # Without arrows, the items form a block that is not much higher than wide.
    first = min(filled, default=0)
    height = sum(item.across + GAP for item in items)
    width = max(item.along for item in items) + RANK_GAP
    columns = max(1, len(filled), round((1.25 * height / width) ** 0.5))
    for number in range(columns):
        filled.setdefault(first + number, 0.0)
    for item in alone:
        rank = min(filled, key=lambda each: (filled[each], each))
        ranks[item.key] = rank
        filled[rank] += item.across + GAP
    return ranks


def _ordered(ranks: Mapping[Key, int], joined: Collection[tuple[Key, Key]]) -> dict[int, list[Key]]:
    """Order each rank so that few arrows between neighbouring ranks cross."""
    before: dict[Key, list[Key]] = {key: [] for key in ranks}
    after: dict[Key, list[Key]] = {key: [] for key in ranks}
    for a, b in sorted(joined, key=repr):
        after[a].append(b)
        before[b].append(a)
    order: dict[int, list[Key]] = {}
    for key, rank in ranks.items():
        order.setdefault(rank, []).append(key)
    place = {key: float(number) for keys in order.values() for number, key in enumerate(keys)}
    best, fewest = order, None
    for sweep in range(SWEEPS):
        beside, steps = (before, sorted(order)) if sweep % 2 == 0 else (after, sorted(order, reverse=True))
        for rank in steps:
            keys = order[rank]
            wanted = {key: _average(beside[key], place, place[key]) for key in keys}
            keys = sorted(keys, key=wanted.__getitem__)
            order[rank] = keys
            place.update((key, float(number)) for number, key in enumerate(keys))
        crossings = _crossings(order, after, place)
        if fewest is None or crossings < fewest:
            best, fewest = {rank: list(keys) for rank, keys in order.items()}, crossings
    return best


def _average(keys: Sequence[Key], place: Mapping[Key, float], default: float) -> float:
    return sum(map(place.__getitem__, keys)) / len(keys) if keys else default


def _crossings(
    order: Mapping[int, Sequence[Key]], after: Mapping[Key, Sequence[Key]], place: Mapping[Key, float]
) -> int:
    """Count the crossings between neighbouring ranks, by the inversions of the ends."""
    total = 0
    for keys in order.values():
        ends = [end for key in keys for end in sorted(map(place.__getitem__, after[key]))]
        total += _inversions([int(end) for end in ends])
    return total


def _inversions(numbers: Sequence[int]) -> int:
    """Count the pairs in the wrong order, with a tree of counts.

    >>> _inversions([2, 0, 1])
    2
    """
    size = max(numbers, default=0) + 1
    tree = [0] * (size + 1)
    total = 0
    for count, number in enumerate(numbers):
        at, smaller = number + 1, 0
        while at:
            smaller += tree[at]
            at &= at - 1
        total += count - smaller
        at = number + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return total


def _middles(
    order: Mapping[int, Sequence[Key]], joined: Collection[tuple[Key, Key]], breadth: Mapping[Key, float]
) -> dict[Key, float]:
    """Return the middle of each item across the ranks: near to its neighbours, and not over another."""
    before: dict[Key, list[Key]] = {key: [] for key in breadth}
    after: dict[Key, list[Key]] = {key: [] for key in breadth}
    for a, b in joined:
        after[a].append(b)
        before[b].append(a)
    middles: dict[Key, float] = {}
    for keys in order.values():
        middles.update(zip(keys, _packed([(0.0, 1.0, breadth[key]) for key in keys]), strict=True))
    for move in range(MOVES):
        ranks = sorted(order, reverse=move % 2 == 1)
        for rank in ranks:
            keys = order[rank]
            wishes = []
            for key in keys:
                near = before[key] + after[key] if move >= MOVES - 2 else (after if move % 2 else before)[key]
                # Arrows that pass should be straight.
                weight = 4.0 if not breadth[key] else 1.0 if near else 0.05
                wishes.append((_average(near, middles, middles[key]), weight, breadth[key]))
            middles.update(zip(keys, _packed(wishes), strict=True))
    return middles


def _packed(wishes: Sequence[tuple[float, float, float]]) -> list[float]:
    """Return middles in order, with gaps, as near as possible to those wished for (least squares).

    A wish is (middle, weight, breadth). Neighbours that would overlap form a block, which moves as one.

    >>> _packed([(0.0, 1.0, 10.0), (0.0, 1.0, 10.0)])
    [-12.0, 12.0]
    """
    offsets, at, last = [], 0.0, 0.0
    for number, (_, _, breadth) in enumerate(wishes):
        gap = LANE if not breadth or not last else GAP
        at += (last + breadth) / 2 + gap if number else 0.0
        offsets.append(at)
        last = breadth
    # Blocks: sum of weighted wishes, sum of weights, number of members.
    blocks: list[tuple[float, float, int]] = []
    for (middle, weight, _), offset in zip(wishes, offsets, strict=True):
        block = ((middle - offset) * weight, weight, 1)
        while blocks and blocks[-1][0] / blocks[-1][1] >= block[0] / block[1]:
            above = blocks.pop()
            block = (above[0] + block[0], above[1] + block[1], above[2] + block[2])
        blocks.append(block)
    shifts = [total / weight for total, weight, count in blocks for _ in range(count)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=True)]


def _way(
    pair: tuple[str, str],
    areas: Mapping[str, Rect],
    home: Mapping[str, str],
    inner: Mapping[str, _Grid],
    outer: _Grid,
) -> Route:
    """Return the way between two boxes, in the direction of the ranks and across."""
    a, b = pair
    source, target = areas[a], areas[b]
    from_middle, to_middle = source.y + source.height / 2, target.y + target.height / 2
    if home[a] == home[b]:
        # Two boxes of a frame, or a box with an arrow to itself.
        if home[a] == a:
            ranks, points = {a: 0}, []
        else:
            grid = inner[home[a]]
            along, across = outer.corners[home[a]]
            ranks = grid.ranks
            shift = (along + FRAME_PAD, across + FRAME_TITLE)
            points = [(x + shift[0], y + shift[1]) for x, y in grid.passed.get(pair, [])]
        distance = ranks[b] - ranks[a]
    else:
        distance = outer.ranks[home[b]] - outer.ranks[home[a]]
        points = list(outer.passed.get((home[a], home[b]), []))
    if distance > 0:
        start, end = (source.x + source.width, from_middle), (target.x, to_middle)
        return Route((start, *points, end))
    if distance < 0:
        start, end = (source.x, from_middle), (target.x + target.width, to_middle)
        return Route((start, *points, end), back=True)
    # In one rank: around the far side; further out if the boxes are further apart.
    x = max(source.x + source.width, target.x + target.width)
    out = x + min(18 + abs(to_middle - from_middle) / 10, RANK_GAP - 26)
    if a == b:
        from_middle, to_middle = from_middle - source.height / 4, to_middle + source.height / 4
    start, end = (source.x + source.width, from_middle), (target.x + target.width, to_middle)
    return Route((start, (out, from_middle), (out, to_middle), end), back=True)


def _shifted(areas: dict[str, Rect], frames: dict[str, Rect], routes: Sequence[Route], down: bool) -> Placed:
    """Turn the positions down if wanted, and move them so that everything is inside of the picture."""

    def turned(point: Point) -> Point:
        return point[::-1] if down else point

    if down:
        areas = {key: Rect(r.y, r.x, r.height, r.width) for key, r in areas.items()}
    every = [*areas.values(), *frames.values()]
    points = [turned(point) for route in routes for point in route.points]
    left = min([rect.x for rect in every] + [x for x, _ in points], default=0.0) - MARGIN
    top = min([rect.y for rect in every] + [y for _, y in points], default=0.0) - MARGIN
    right = max([rect.x + rect.width for rect in every] + [x for x, _ in points], default=0.0) + MARGIN
    bottom = max([rect.y + rect.height for rect in every] + [y for _, y in points], default=0.0) + MARGIN

    def moved(rect: Rect) -> Rect:
        return Rect(round(rect.x - left, 1), round(rect.y - top, 1), rect.width, rect.height)

    return Placed(
        round(right - left, 1),
        round(bottom - top, 1),
        {key: moved(rect) for key, rect in areas.items()},
        {key: moved(rect) for key, rect in frames.items()},
        tuple(
            Route(
                tuple((round(x - left, 1), round(y - top, 1)) for x, y in map(turned, route.points)),
                route.back,
            )
            for route in routes
        ),
    )
