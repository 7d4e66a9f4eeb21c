"""SVG of diagrams: well formed, with links and labels, and nothing in a name is ever markup."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from codeanatomy.query.pictures.diagram import Arrow, Box, BoxFrame, Diagram
from codeanatomy.query.pictures.drawing import draw, draw_file, draw_legend
from codeanatomy.query.pictures.layered import arrange
from support.export_rows import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "title", "defs", "marker", "path", "rect", "text", "g", "a"}


def some_calls() -> Diagram:
    return Diagram(
        "Calls of total",
        (
            Box("a", "sell", "FUNCTION", rank=-1, frame="m", link="/a", tooltip="shop.sell"),
            Box("b", "Cart.checkout", "FUNCTION", rank=-1, frame="m", link="/b"),
            Box("c", "total", "FUNCTION", ("cart.py:11",), rank=0, focus=True, link="/c"),
            Box(
                "d", "len", "QUALIFIED_NAME", rank=1, marks=("external",), expand="/d+", expand_label="Show d"
            ),
            Box("e", "3 more", rank=1, amount=3, marks=("more",), link="/more"),
        ),
        (
            Arrow("a", "c", ("CALL_GRAPH",)),
            Arrow("b", "c", ("CALL_GRAPH",), confidence=0.7),
            Arrow("c", "d", ("CALL_GRAPH",), amount=2, label="x 2"),
            Arrow("c", "e", ("IMPORTS_MODULE",), marks=("cycle",)),
        ),
        (BoxFrame("m", "shop.cart", "/close"),),
        notes=("3 more",),
    )


def parsed(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= ELEMENTS
    for each in root.iter():
        assert not [name for name in each.attrib if name.startswith("on") or name in ("style", "src")]
    return root


def texts(root: ET.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_boxes_are_links_with_labels() -> None:
    diagram = some_calls()
    root = parsed(draw(diagram, arrange(diagram)))
    links = {each.get("href"): each.get("aria-label") for each in root.iter(f"{SVG}a")}
    assert links == {
        "/a": "sell function",
        "/b": "Cart.checkout function",
        "/c": "total function cart.py:11",
        "/d+": "Show d",
        "/more": "3 more",
        "/close": "Collapse shop.cart",
    }
    assert root.get("aria-label") == "Calls of total"
    assert {"sell", "Cart.checkout", "total", "cart.py:11", "len", "3 more", "shop.cart", "x 2"} <= set(
        texts(root)
    )
    assert "shop.sell" in [each.text for each in root.iter(f"{SVG}title")]


def test_a_long_address_is_not_cut() -> None:
    link = "/r/shop/picture/calls?" + "&".join(f"expand=function%3A{number}" for number in range(500))
    diagram = Diagram("Calls", (Box("a", "a", link=link),), ())
    (box,) = parsed(draw(diagram, arrange(diagram))).iter(f"{SVG}a")
    assert box.get("href") == link


def test_uncertain_arrows_are_dashed_and_say_so() -> None:
    diagram = some_calls()
    root = parsed(draw(diagram, arrange(diagram)))
    arrows = {
        (each.get("data-from"), each.get("data-to")): each
        for each in root.iter(f"{SVG}g")
        if "arrow" in (each.get("class") or "").split()
    }
    assert len(arrows) == 4
    dashes = {
        ends: path.get("stroke-dasharray")
        for ends, each in arrows.items()
        for path in each.iter(f"{SVG}path")
    }
    assert dashes == {("a", "c"): None, ("b", "c"): "5 4", ("c", "d"): None, ("c", "e"): None}
    assert arrows["b", "c"].findtext(f"{SVG}title") == "calls, confidence 70 %"
    assert "cycle" in (arrows["c", "e"].get("class") or "")
    assert [text for sample in draw_legend(diagram) for text in texts(parsed(sample))] == [
        "function",
        "external",
        "several nodes",
        "calls",
        "imports",
        "confidence below 90 %",
        "part of a cycle",
    ]


def test_every_arrow_head_exists() -> None:
    diagram = some_calls()
    root = parsed(draw(diagram, arrange(diagram)))
    heads = {each.get("id") for each in root.iter(f"{SVG}marker")}
    used = {path.get("marker-end") for path in root.iter(f"{SVG}path")} - {None}
    assert used == {f"url(#{head})" for head in heads}


def test_a_file_has_caption_and_legend_but_no_links() -> None:
    diagram = some_calls()
    root = parsed(draw_file(diagram, arrange(diagram), ("shop, run 7",)))
    assert not list(root.iter(f"{SVG}a"))
    assert "href" not in ET.tostring(root, encoding="unicode")
    assert texts(root)[:3] == ["Calls of total", "shop, run 7", "3 more"]
    assert "confidence below 90 %" in texts(root)
    # Colours are attributes, since no style sheet comes with the file.
    assert all(each.get("fill") for each in root.iter(f"{SVG}rect"))


@pytest.mark.parametrize("name", [*HOSTILE, "</text><script>alert(1)</script>", "x" * 10_000, '"onload="x'])
def test_hostile_names_are_text(name: str) -> None:
    diagram = Diagram(
        name,
        (
            Box(
                name, name, name, (name,), name, frame=name or "f", link=name, expand=name, expand_label=name
            ),
            Box("b", name),
        ),
        (Arrow(name, "b", (name,), label=name),),
        (BoxFrame(name or "f", name, name),),
        notes=(name,),
    )
    placed = arrange(diagram)
    for svg in (draw(diagram, placed), draw_file(diagram, placed), *draw_legend(diagram)):
        parsed(svg)
        assert "<script" not in svg
        assert 'class="box other"' in svg or 'class="arrow' in svg
