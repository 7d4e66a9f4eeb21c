"""Positions of boxes: no overlap, everything inside, arrows forward, few crossings, in time."""

from __future__ import annotations

import random
import time
from itertools import combinations, pairwise

import pytest

from codeanatomy.query.pictures.diagram import Arrow, Box, BoxFrame, Diagram
from codeanatomy.query.pictures.layered import Placed, Rect, arrange, assign_ranks

Corner = tuple[float, float]


def some_diagram(boxes: int, arrows: int, frames: int = 0, *, down: bool = False, seed: int = 1) -> Diagram:
    """Make a diagram whose arrows mostly lead to later boxes, as calls and imports do."""
    chance = random.Random(seed)
    names = [f"b{number}" for number in range(boxes)]
    pairs = []
    for _ in range(arrows):
        first, second = sorted((chance.randrange(boxes), chance.randrange(boxes)))
        pairs.append((second, first) if chance.random() < 0.05 else (first, second))
    return Diagram(
        "Imports",
        tuple(
            Box(name, name * chance.randint(1, 4), frame=f"f{number * frames // boxes}" if frames else "")
            for number, name in enumerate(names)
        ),
        tuple(Arrow(names[a], names[b]) for a, b in pairs),
        tuple(BoxFrame(f"f{number}", f"package.{number}") for number in range(frames)),
        down=down,
    )


def overlap(one: Rect, other: Rect) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def inside(one: Rect, other: Rect) -> bool:
    return (
        other.x <= one.x
        and other.y <= one.y
        and one.x + one.width <= other.x + other.width
        and one.y + one.height <= other.y + other.height
    )


def check(diagram: Diagram) -> Placed:
    """Assert what must hold for every picture."""
    placed = arrange(diagram)
    for one, other in combinations(placed.boxes.values(), 2):
        assert not overlap(one, other)
    for one, other in combinations(placed.frames.values(), 2):
        assert not overlap(one, other)
    page = Rect(0, 0, placed.width, placed.height)
    for rect in (*placed.boxes.values(), *placed.frames.values()):
        assert inside(rect, page)
    for box in diagram.boxes:
        if box.frame:
            assert inside(placed.boxes[box.key], placed.frames[box.frame])
        else:
            assert not any(overlap(placed.boxes[box.key], frame) for frame in placed.frames.values())
    for route in placed.routes:
        assert all(0 <= x <= placed.width and 0 <= y <= placed.height for x, y in route.points)
    return placed


@pytest.mark.parametrize(
    "diagram",
    [
        some_diagram(0, 0),
        some_diagram(1, 0),
        some_diagram(30, 0),
        some_diagram(40, 60),
        some_diagram(120, 300, frames=12),
        some_diagram(500, 1500, frames=40),
        some_diagram(80, 110, down=True),
    ],
    ids=lambda diagram: f"{len(diagram.boxes)} boxes, {len(diagram.frames)} frames",
)
def test_nothing_overlaps_and_everything_is_in_the_picture(diagram: Diagram) -> None:
    assert check(diagram) == arrange(diagram)


def test_arrows_lead_forward_except_those_that_are_marked() -> None:
    diagram = some_diagram(60, 90)
    placed = arrange(diagram)
    forward = 0
    for arrow, route in zip(diagram.arrows, placed.routes, strict=True):
        source, target = placed.boxes[arrow.source], placed.boxes[arrow.target]
        if not route.back:
            assert source.x + source.width < target.x
            assert [x for x, _ in route.points] == sorted(x for x, _ in route.points)
            forward += 1
        assert abs(route.points[0][1] - (source.y + source.height / 2)) <= source.height / 2
        assert abs(route.points[-1][1] - (target.y + target.height / 2)) <= target.height / 2
    assert forward > len(diagram.arrows) / 2


def test_a_cycle_has_one_arrow_back() -> None:
    boxes = tuple(Box(name, name) for name in "abc")
    arrows = (Arrow("a", "b"), Arrow("b", "c"), Arrow("c", "a"), Arrow("b", "b"))
    placed = arrange(Diagram("Cycle", boxes, arrows))
    assert [route.back for route in placed.routes] == [False, False, True, True]
    assert placed.boxes["a"].x < placed.boxes["b"].x < placed.boxes["c"].x


def test_arrows_against_the_ranks_end_at_lower_ones() -> None:
    boxes = (Box("sub", "Sub", rank=1), Box("base", "Base", rank=0))
    placed = arrange(Diagram("Classes", boxes, (Arrow("sub", "base"),), against=True))
    (route,) = placed.routes
    assert placed.boxes["base"].x < placed.boxes["sub"].x
    assert route.points[0][0] == placed.boxes["sub"].x
    assert route.points[-1][0] == placed.boxes["base"].x + placed.boxes["base"].width


def test_ranks_go_down_if_wanted() -> None:
    boxes = (Box("a", "a"), Box("b", "b"))
    placed = arrange(Diagram("Flow", boxes, (Arrow("a", "b"),), down=True))
    assert placed.boxes["a"].y + placed.boxes["a"].height < placed.boxes["b"].y


def test_given_ranks_are_columns_of_one_width() -> None:
    boxes = (
        Box("a", "a", rank=-1),
        Box("b", "a longer name", rank=-1, frame="f"),
        Box("c", "c", rank=-1, frame="f"),
        Box("d", "d", rank=0),
    )
    placed = check(Diagram("Calls", boxes, (Arrow("a", "d"),), (BoxFrame("f", "f"),)))
    assert placed.boxes["b"].width == placed.boxes["c"].width
    assert placed.boxes["a"].width == placed.frames["f"].width
    assert placed.boxes["a"].x == placed.frames["f"].x


def test_boxes_are_beside_what_they_are_connected_to() -> None:
    boxes = tuple(Box(f"{side}{n}", f"{side}{n}", rank=side) for side in (0, 1) for n in range(6))
    arrows = tuple(Arrow(f"0{n}", f"1{5 - n}") for n in range(6))
    placed = arrange(Diagram("Calls", boxes, arrows))
    assert all(placed.boxes[arrow.source].y == placed.boxes[arrow.target].y for arrow in arrows)


def test_a_long_title_fits_its_frame() -> None:
    boxes = (Box("a", "a", frame="f"), Box("b", "b", frame="f"))
    placed = check(Diagram("Imports", boxes, (), (BoxFrame("f", "a.very.long.name.of.a.package"),)))
    assert placed.frames["f"].width > 28 * 6


def test_ranks_are_longest_paths() -> None:
    assert assign_ranks("abcd", [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")]) == {
        "a": 0,
        "b": 1,
        "c": 2,
        "d": 1,
    }
    # Longer than Python's stack.
    chain = [f"n{number}" for number in range(5_000)]
    assert assign_ranks(chain, pairwise(chain))["n4999"] == 4_999


@pytest.mark.parametrize("frames", [0, 40])
def test_500_boxes_and_1500_arrows_take_200_milliseconds(frames: int) -> None:
    diagram = some_diagram(500, 1_500, frames)
    times = []
    for _ in range(3):
        started = time.process_time()
        arrange(diagram)
        times.append(time.process_time() - started)
    assert min(times) < 0.2
