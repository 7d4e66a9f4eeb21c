"""Pictures of a focus: what they show, that they can be read, and that nothing in a name is ever run."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from codeanatomy.cli.main import cli
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query
from codeanatomy.query.export import neighbourhood as views
from codeanatomy.query.export.html import page
from codeanatomy.query.export.neighbourhood import FOCUS, READABLE, Picture, view_of
from codeanatomy.query.export.rows import EDGES, NODES, ExportRows
from codeanatomy.query.export.selection import Chosen
from codeanatomy.query.export.svg import drawn
from codeanatomy.query.export.write import export_graph
from codeanatomy.query.pictures.diagram import Arrow
from codeanatomy.query.pictures.drawing import LABELS
from codeanatomy.query.symbols import resolve
from support.ask_lake import reader_of
from support.export_rows import HOSTILE, edge_row, node_row

SVG = "{http://www.w3.org/2000/svg}"
# All that a picture is made of.
ELEMENTS = {"svg", "title", "defs", "marker", "path", "rect", "text", "g"}


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def picture(reader: LightReader, name: str, form: str = "svg", **options: Any) -> str:
    stream = io.BytesIO()
    export_graph(reader, form, target=stream, focus=resolve(reader, name, "shop"), **options)
    return stream.getvalue().decode()


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]


def columns(svg: str) -> dict[str, float]:
    """Where the boxes are, by what is written in them first."""
    found = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        place = re.fullmatch(r"translate\(([-\d.]+) ([-\d.]+)\)", group.get("transform", ""))
        words = group.findall(f"{SVG}text")
        if place and len(words) == 2:
            found[words[0].text or ""] = float(place[1])
    return found


# Of a lake


def test_callers_are_left_and_callees_right(reader: LightReader) -> None:
    svg = picture(reader, "shop.cart.Cart.total", hops=2)
    at = columns(svg)
    order = ["shop.cart.sell", "shop.cart.Cart.checkout", "shop.cart.Cart.total", "shop.cart.total"]
    assert [at[name] for name in order] == sorted(at[name] for name in order)
    assert len({at[name] for name in order}) == 4
    said = texts(svg)
    assert {"calls", "contains", "function", "class", "module"} <= set(said)
    assert "shop/cart.py:28" in said
    assert said[0] == "What is around shop.cart.Cart.total"


def test_a_cycle_is_drawn_once(reader: LightReader) -> None:
    at = columns(picture(reader, "shop.cart.ping", hops=3))
    assert list(at).count("shop.cart.pong") == 1


def test_places_are_shown_when_pointed_at(reader: LightReader) -> None:
    titles = {
        each.text for each in ET.fromstring(picture(reader, "shop.cart.Cart.total")).iter(f"{SVG}title")
    }
    assert "shop.cart.total\nFUNCTION\nshop/cart.py:11" in titles
    assert "calls, confidence 90 %" in titles


def test_the_same_focus_gives_the_same_picture(reader: LightReader) -> None:
    assert picture(reader, "shop.money.Price", hops=2) == picture(reader, "shop.money.Price", hops=2)


def test_no_hops_is_the_focus_alone(reader: LightReader) -> None:
    assert list(columns(picture(reader, "shop.money.Price", hops=0))) == ["shop.money.Price"]


def test_a_large_focus_is_drawn_by_module(reader: LightReader) -> None:
    stream = io.BytesIO()
    flask = resolve(reader, "flask.app.Flask", "flask")
    report = export_graph(reader, "svg", target=stream, focus=flask, hops=3)
    said = texts(stream.getvalue().decode())
    assert report.nodes > READABLE
    assert any("too many to be read: one box for each" in note for note in report.notes)
    assert set(report.notes) <= set(said)
    assert "several nodes" in said
    boxes = columns(stream.getvalue().decode())
    assert "flask.app.Flask" in boxes
    assert len(boxes) <= READABLE


def test_the_page_has_the_docstring_as_text(reader: LightReader) -> None:
    html = picture(reader, "shop.money.Price", "html", hops=2)
    assert "&lt;script&gt;alert(&quot;not markup&quot;)&lt;/script&gt;" in html
    assert_harmless(html)


def test_the_command_draws(ask_lake: Path, tmp_path: Path) -> None:
    target = tmp_path / "cart.html"
    words = ["html", "--lake", str(ask_lake), "--focus", "shop.cart.Cart", "-o", str(target)]
    found = CliRunner().invoke(cli, ["export", *words])
    assert found.exit_code == 0, found.output
    assert_harmless(target.read_text())
    refused = CliRunner().invoke(cli, ["export", "svg", "--lake", str(ask_lake), "--all"])
    assert refused.exit_code != 0


# Of hand-made graphs


class NoLake:
    """A reader of nothing."""

    def rows(self, query: Query, limit: int | None = None) -> list[tuple[Any, ...]]:
        return []


def view(names: Sequence[str], docstring: str = "", **more: Any) -> Picture:
    """A focus that calls each of these names, the first of which it is."""
    ids = [f"function:{number}" for number in range(len(names))]
    focus = Symbol(names[0], "FUNCTION", None, names[0], 1, names[0] or "r", "id", (ids[0],))
    nodes = [
        node_row(key, name, qualname=name, path=name, line=7, **more)
        for key, name in zip(ids, names, strict=True)
    ]
    edges = [edge_row(f"edge:{key}", ids[0], key) for key in ids]
    steps = {key: min(number, 1) for number, key in enumerate(ids)}
    found = view_of(
        NoLake(),
        focus,
        Chosen(("FUNCTION",), ("CALL_GRAPH",), None, steps),
        ExportRows(NODES, (), [nodes]),
        ExportRows(EDGES, (), [edges]),
        "run",
    )
    return Picture(
        **{name: getattr(found, name) for name in found.__struct_fields__} | {"docstring": docstring}
    )


class Reading(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said += data


def assert_harmless(html: str) -> Reading:
    """No script, nothing that is loaded, no handler of events, and a policy that forbids them."""
    found = Reading()
    found.feed(html)
    found.close()
    page_tags = {"html", "head", "meta", "title", "style", "body", "h1", "p", "pre", "div"}
    page_tags |= {"details", "summary", "table", "tr", "th", "td"}
    assert {tag for tag, _ in found.tags} <= page_tags | ELEMENTS
    for _, attributes in found.tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("href", "src", "style")}
    policies = [a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    assert "default-src 'none'" in (policies[0] or "")
    assert "script-src" not in (policies[0] or "")
    assert "url(" not in html.replace("url(#head-", "")
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str) -> None:
    shown = view([name, "other", name, *HOSTILE], docstring=f"{name}</pre><script>x</script>")
    svg = drawn(shown)
    root = ET.fromstring(svg)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} == ELEMENTS
    assert not [
        each for each in root.iter() if any(key.startswith("on") or "href" in key for key in each.attrib)
    ]
    html = assert_harmless(page(shown))
    plain = name.replace("\r\n", "").split("\n")[0][:20]
    if plain.isprintable():
        assert plain in html.said


def test_all_hostile_names_at_once_are_told() -> None:
    html = assert_harmless(page(view(["focus", *HOSTILE])))
    assert "</text><script>alert(1)</script>" in html.said
    assert "]]> <!-- &lt; &amp; -->" in html.said
    assert "nul ␀ and bell ␇ and escape ␛[31m" in html.said
    assert "\u202e" not in html.said


def test_hostile_kinds_are_text() -> None:
    shown = view(["focus", "other"], node_kind='"/><script>{y}')
    assert '"/><script>{y}' in texts(drawn(shown))
    assert_harmless(page(shown))


def test_a_name_of_a_megabyte_is_cut() -> None:
    shown = view(["x" * 1_000_000, "y." * 500_000, "z" * 1_000_000], docstring="d" * 1_000_000)
    assert len(drawn(shown)) < 20_000
    assert len(page(shown)) < 30_000


def test_up_to_sixty_nodes_are_drawn_each() -> None:
    names = [f"pkg.mod{number}.f" for number in range(READABLE)]
    assert len(view(names).boxes) == READABLE
    assert view(names).notes == ()


def test_more_are_put_together_and_the_picture_says_so() -> None:
    modules = view(["pkg.focus", *(f"m{number % 9}" for number in range(200))])
    assert sorted(box.amount for box in modules.boxes if not box.focus) == [22] * 7 + [23] * 2
    assert modules.notes == ("201 nodes are too many to be read: one box for each module",)
    packages = view(["pkg.focus", *(f"p{number % 5}.m{number}" for number in range(200))])
    assert len(packages.boxes) == 6
    assert "one box for each package" in packages.notes[0]
    above = view(["focus", *(f"top.p{number}.q.m" for number in range(200))])
    assert len(above.boxes) == 2
    assert "by 1 parts of its name" in above.notes[0]
    scattered = view(["focus", *(f"p{number}" for number in range(200))])
    assert len(scattered.boxes) <= READABLE
    assert scattered.notes[0].endswith("the smallest of them together")
    for each in (modules, packages, above, scattered):
        assert sum(box.amount for box in each.boxes) == 201
        assert each.notes[0] in texts(drawn(each))


def test_edges_of_boxes_are_counted() -> None:
    shown = view(["pkg.focus", *("m" for _ in range(100))])
    assert Arrow(FOCUS, "1|m", ("CALL_GRAPH",), 100, 0.9, "calls x 100") in shown.arrows
    assert "calls x 100" in texts(drawn(shown))


def test_many_arrows_have_no_words_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "READABLE", 1000)
    names = ["focus", *(f"f{number}" for number in range(LABELS + 5))]
    assert texts(drawn(view(names))).count("calls") == 1
    assert texts(drawn(view(names[:10]))).count("calls") == 11
