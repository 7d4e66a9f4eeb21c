"""Pictures without a browser: what they show is what the verbs answer, and addresses expand them."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree import ElementTree as ET

import pytest
from starlette.testclient import TestClient

from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Reader, nodes
from codeanatomy.query.symbols import resolve
from codeanatomy.query.verbs.calls import callees, callers
from codeanatomy.query.walks.control_flow import control_flow
from codeanatomy.query.walks.imports import module_imports
from codeanatomy.serve.explorer.pictures import columns as columns_module
from codeanatomy.serve.explorer.pictures.address import PictureAddress
from codeanatomy.serve.explorer.pictures.columns import COLUMN, Columns, NodeFacts
from codeanatomy.serve.explorer.pictures.control_flow import ranges
from support.ask_lake import reader_of
from support.explorer import explorer_client, get_page
from support.light_builds import clean_lake

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def address(kind: str, repo_id: str = "shop", **values: Any) -> str:
    return f"/r/{repo_id}/picture/{kind}?{urlencode(values, doseq=True)}"


def drawing(text: str) -> ET.Element:
    """Return the first picture of a page."""
    svg = re.search(r"<svg .*?</svg>", text, re.DOTALL)
    assert svg is not None
    return ET.fromstring(svg.group())


def boxes(root: ET.Element) -> dict[str, ET.Element]:
    """Return the boxes by the name in them."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        if group.get("data-key"):
            found[group.findtext(f".//{SVG}text") or ""] = group
    return found


def column(box: ET.Element) -> float:
    place = re.fullmatch(r"translate\(([-\d.]+) [-\d.]+\)", box.get("transform") or "")
    assert place is not None
    return float(place[1])


def arrows(root: ET.Element) -> set[tuple[str, str]]:
    """Return the ends of arrows by the names in their boxes."""
    names = {box.get("data-key"): name for name, box in boxes(root).items()}
    return {
        (names[group.get("data-from")], names[group.get("data-to")])
        for group in root.iter(f"{SVG}g")
        if group.get("data-from")
    }


def link_of(box: ET.Element, css: str = "") -> str:
    for link in box.iter(f"{SVG}a"):
        if (link.get("class") or "") == css:
            return link.get("href") or ""
    raise AssertionError(f"no link {css!r}")


def names(reader: Reader, verb: Any, symbol: str, repo_id: str = "shop") -> set[str]:
    return {row[0] for row in reader.rows(verb(reader, resolve(reader, symbol, repo_id)).query)}


# Calls


def test_callers_are_left_and_callees_right(client: TestClient, reader: LightReader) -> None:
    text = get_page(client, address("calls", symbol="shop.cart.Cart.total"))
    root = drawing(text)
    at = {name: column(box) for name, box in boxes(root).items()}
    focus = at["shop.cart.Cart.total"]
    left = {f"shop.cart.{name}" for name, x in at.items() if x < focus}
    assert {
        name for name in names(reader, callers, "shop.cart.Cart.total") if name.startswith("shop.cart.")
    } == left
    assert {name for name, x in at.items() if x > focus} >= {"total"}
    assert "shop.cart.total" in names(reader, callees, "shop.cart.Cart.total")
    assert ("shop.cart.Cart.total", "total") in arrows(root)


def test_the_list_has_every_symbol_with_place_and_confidence(client: TestClient, reader: LightReader) -> None:
    text = get_page(client, address("calls", symbol="shop.cart.Cart.total"))
    listed = text.partition("The same as a list")[2]
    for verb in (callers, callees):
        for name in names(reader, verb, "shop.cart.Cart.total"):
            assert f">{html.escape(name)}</a>" in listed
    assert 'href="/r/shop/f/shop/cart.py#L' in listed
    assert re.search(r'<td class="number">\d+ %</td>', listed)


def test_a_box_expands_and_collapses(client: TestClient) -> None:
    first = boxes(drawing(get_page(client, address("calls", symbol="shop.cart.total"))))
    caller = next(box for name, box in first.items() if name == "Cart.total")
    link = link_of(caller, "expand")
    assert parse_qs(urlsplit(link).query)["expand"] == [caller.get("data-key")]
    second = boxes(drawing(get_page(client, link)))
    assert first.keys() < second.keys()
    assert column(second["Cart.checkout"]) < column(second["Cart.total"])
    third = boxes(drawing(get_page(client, link_of(second["Cart.total"], "expand"))))
    assert third.keys() == first.keys()


def test_a_cycle_is_drawn_once(client: TestClient) -> None:
    root = drawing(get_page(client, address("calls", symbol="shop.cart.ping")))
    assert {("shop.cart.ping", "pong"), ("pong", "shop.cart.ping")} <= arrows(root)


def test_a_class_calls_what_its_methods_call(client: TestClient, reader: LightReader) -> None:
    text = get_page(client, address("calls", "flask", symbol="flask.app.Flask"))
    shown = boxes(drawing(text))
    assert len(shown) <= 2 * COLUMN + 5
    members = sum(int(each) for each in re.findall(r">(\d+) symbols</text>", text))
    single = [name for name, box in shown.items() if "several" not in (box.get("class") or "").split()]
    more = sum(int(each) for each in re.findall(r">(\d+) more</text>", text))
    symbol = resolve(reader, "flask.app.Flask", "flask")
    found = [reader.rows(verb(reader, symbol).query) for verb in (callers, callees)]
    every = {row[-1] for rows in found for row in rows if not row[0].startswith("flask.app.Flask.")}
    assert members + len(single) - 1 + more == len(every)


def test_modules_open_and_close(client: TestClient) -> None:
    root = boxes(drawing(get_page(client, address("calls", "flask", symbol="flask.app.Flask"))))
    opened = get_page(client, link_of(root["flask.helpers"]))
    assert "flask.helpers" not in boxes(drawing(opened))
    assert 'aria-label="Collapse flask.helpers"' in opened
    close = re.search(r'<a href="([^"]*)" aria-label="Collapse flask.helpers">', opened)
    assert close is not None
    assert "flask.helpers" in boxes(drawing(get_page(client, html.unescape(close[1]))))


def test_a_column_is_limited_and_counts_the_rest() -> None:
    facts = [
        NodeFacts(f"function:{n}", "FUNCTION", None, f"m{n}.f", f"m{n}.py", 1, f"m{n}") for n in range(100)
    ]
    shown = Columns(PictureAddress("r", "calls", "s"))
    assert len(shown.add(1, facts)) == COLUMN
    assert len(shown.cut["more|1"]) == 100 - COLUMN
    more = columns_module.more_box("more|1", shown.cut["more|1"], shown)
    assert (more.title, more.link) == ("82 more", "/r/r/picture/calls?symbol=s&more=1")
    everything = Columns(PictureAddress("r", "calls", "s", more=("1",)))
    assert len(everything.add(1, facts)) == 100
    assert everything.cut == {}


def test_many_symbols_of_a_module_are_one_box() -> None:
    facts = [NodeFacts(f"function:{n}", "FUNCTION", None, f"m.f{n}", "m.py", n, "m") for n in range(30)]
    shown = Columns(PictureAddress("r", "calls", "s"))
    assert shown.add(-1, facts) == []
    assert len(shown.groups["-1|m"]) == 30
    opened = Columns(PictureAddress("r", "calls", "s", open=("m",)))
    assert len(opened.add(-1, facts)) == COLUMN
    few = Columns(PictureAddress("r", "calls", "s", close=("m",)))
    assert few.add(-1, facts[:2]) == []


# Classes


def test_bases_are_left_of_subclasses_with_what_they_override(client: TestClient) -> None:
    text = get_page(client, address("classes", "flask", symbol="flask.app.Flask"))
    at = {name: column(box) for name, box in boxes(drawing(text)).items()}
    assert at["Scaffold"] < at["App"] < at["flask.app.Flask"]
    assert {("flask.app.Flask", "App"), ("App", "Scaffold")} <= arrows(drawing(text))
    assert "↑ create_jinja_environment" in text
    assert "No subclasses are known." in text


# Imports


def test_imports_of_a_repository_are_those_between_its_modules(
    client: TestClient, reader: LightReader
) -> None:
    root = drawing(get_page(client, address("imports", "flask")))
    expected = {(link.start, link.end) for link in module_imports(reader, "flask") if link.start != link.end}
    assert len(arrows_by_key(root)) == len(expected)
    at = boxes(root)
    assert {"app", "scaffold", "ctx", "provider"} <= at.keys()


def arrows_by_key(root: ET.Element) -> set[tuple[str | None, str | None]]:
    return {(g.get("data-from"), g.get("data-to")) for g in root.iter(f"{SVG}g") if g.get("data-from")}


def test_cycles_of_imports_are_marked(client: TestClient) -> None:
    root = drawing(get_page(client, address("imports", "shop")))
    marked = {
        (group.get("data-from"), group.get("data-to"))
        for group in root.iter(f"{SVG}g")
        if group.get("data-from") and "cycle" in (group.get("class") or "").split()
    }
    followers = dict[str | None, set[str | None]]()
    for a, b in marked:
        followers.setdefault(a, set()).add(b)
    # Every marked import leads to a module with another marked import.
    assert all(b in followers for _, b in marked)


def test_a_package_shows_its_own_modules(client: TestClient) -> None:
    root = drawing(get_page(client, address("imports", "flask", symbol="flask.json")))
    assert boxes(root).keys() == {"__init__", "provider", "tag"}


def test_a_module_is_between_importers_and_imported(client: TestClient, reader: LightReader) -> None:
    text = get_page(client, address("imports", "flask", symbol="flask.sessions"))
    at = {name: column(box) for name, box in boxes(drawing(text)).items()}
    focus = at["flask.sessions"]
    query = Query("SELECT n.node_id, n.qualname FROM n", {"n": nodes(("MODULE",), "flask")})
    modules = dict(reader.rows(query))
    own = next(node for node, name in modules.items() if name == "flask.sessions")
    imports = module_imports(reader, "flask")
    imported = {modules[link.end] for link in imports if link.start == own}
    importers = {modules[link.start] for link in imports if link.end == own} - imported
    assert {name for name, x in at.items() if x < focus} == importers
    assert imported < {name for name, x in at.items() if x > focus}
    assert at["standard library"] > focus
    assert "hashlib" in text


# Control flow


def test_blocks_and_lines_belong_together(client: TestClient, reader: LightReader) -> None:
    symbol = resolve(reader, "flask.app.Flask.make_response", "flask")
    text = get_page(client, address("control-flow", "flask", symbol=symbol.symbol))
    flow = control_flow(reader, symbol)
    assert flow is not None
    root = drawing(text)
    shown = [g for g in root.iter(f"{SVG}g") if "box" in (g.get("class") or "").split()]
    assert len(shown) == len(flow.blocks)
    lines = {int(number) for number in re.findall(r'<li id="L(\d+)"', text)}
    assert min(lines) == symbol.line
    for box in shown:
        for part in (box.get("data-lines") or "").split():
            first, _, last = part.partition("-")
            assert set(range(int(first), int(last or first) + 1)) <= lines
    assert {"true", "false"} <= {each.text for each in root.iter(f"{SVG}text")}
    kinds = {(g.get("class") or "") for g in root.iter(f"{SVG}g")}
    assert any("CFG_EXCEPTION" in kind for kind in kinds)


def test_exceptions_can_be_hidden(client: TestClient) -> None:
    every = get_page(client, address("control-flow", "flask", symbol="flask.app.Flask.make_response"))
    link = re.search(r'href="([^"]*exceptions=hide[^"]*)"', every)
    assert link is not None
    without = get_page(client, html.unescape(link[1]))
    assert "CFG_EXCEPTION" in every
    assert "CFG_EXCEPTION" not in without
    assert without.count('class="box ') < every.count('class="box ')


def test_lines_are_written_as_ranges() -> None:
    assert ranges([]) == ""
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3 7 9-10"


# All of them


@pytest.mark.parametrize("kind", ["calls", "classes", "imports", "control-flow"])
def test_a_picture_is_also_a_file(client: TestClient, kind: str) -> None:
    symbol = "flask.app.Flask.make_response" if kind == "control-flow" else "flask.app.Flask"
    page = client.get(address(kind, "flask", symbol=symbol)).text
    link = re.search(r'<a href="([^"]*\.svg[^"]*)" download>', page)
    assert link is not None
    answer = client.get(html.unescape(link[1]))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert answer.headers["content-disposition"] == f'attachment; filename="{kind}-{symbol}.svg"'
    root = ET.fromstring(answer.text)
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert tags <= {"svg", "g", "rect", "path", "text", "title", "defs", "marker"}
    assert "href" not in answer.text
    assert "style=" not in answer.text
    assert boxes(root).keys() == boxes(drawing(page)).keys()


def test_pictures_keep_the_run(client: TestClient) -> None:
    run = client.get("/api/suggest?q=Cart").json()["run"]
    text = get_page(client, address("calls", symbol="shop.cart.Cart.total", **{"as-of": run}))
    links = re.findall(r'href="(/r/[^"]*)"', text)
    assert links
    assert all(f"as-of={run}" in link for link in links)


def test_what_cannot_be_drawn_is_explained(client: TestClient) -> None:
    assert "unknown picture" in get_page(client, "/r/shop/picture/nope?symbol=shop.cart", 404)
    assert "needs a symbol" in get_page(client, "/r/shop/picture/calls", 400)
    assert "no picture of classes of a function" in get_page(
        client, address("classes", symbol="shop.cart.total"), 400
    )
    assert get_page(client, address("calls", symbol="no.such.name"), 404)
    assert "at most 60 times" in get_page(
        client, address("calls", symbol="shop.cart.total", expand=[f"x{n}" for n in range(61)]), 400
    )


@pytest.mark.parametrize(
    "name", ['"><script>alert(1)</script>', "</svg><img src=x>", "\x00\x1b\u202e", "x" * 900]
)
def test_hostile_addresses_are_text(client: TestClient, name: str) -> None:
    values = {
        "symbol": "shop.cart.total",
        "expand": name,
        "open": name,
        "close": name,
        "more": name,
        "exceptions": name,
    }
    for kind in ("calls", "imports", "control-flow"):
        text = get_page(client, address(kind, **values))
        assert "<script>alert" not in text
        assert "<img" not in text
    assert client.get(address("calls", symbol=name)).status_code in (400, 404)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """Return a client of a repository with hostile file names, long names, and many definitions."""
    folder = tmp_path_factory.mktemp("hostile") / "app"
    folder.mkdir()
    long = "n" * 10_000
    (folder / '"><script>alert(1)<').mkdir()
    (folder / '"><script>alert(1)<' / "'onload='x.py").write_text("import many\nmany.f0()\n")
    (folder / "\u202e\x1b.py").write_text("import many\nmany.f0()\n")
    (folder / "many.py").write_text(
        "".join(f"def f{number}():\n    f{number + 1}()\n\n" for number in range(300))
        + f"def {long}():\n    f0()\n\n"
        + "def f300():\n    x = '</svg><script>alert(2)</script>'\n    return x\n\n"
        + "class Base: ...\n"
        + "".join(f"class C{number}(Base): ...\n" for number in range(120))
        + "def branches(x):\n"
        + "".join(f"    if x == {number}:\n        f0()\n" for number in range(700))
    )
    clean_lake(folder.parent / "lake", {"app": folder})
    return explorer_client(folder.parent / "lake")


def test_hostile_names_of_a_repository_are_text(hostile: TestClient) -> None:
    for kind in ("calls", "control-flow", "imports"):
        text = get_page(hostile, address(kind, "app", symbol="many.f0"))
        assert "<script>alert" not in text
        assert len(text) < 200_000
    assert "\u202e" not in get_page(hostile, address("imports", "app"))
    assert "&lt;/svg&gt;&lt;script&gt;" in get_page(
        hostile, address("control-flow", "app", symbol="many.f300")
    )


def test_many_boxes_are_limited(hostile: TestClient) -> None:
    text = get_page(hostile, address("classes", "app", symbol="many.Base"))
    assert "120 symbols" in text
    opened = get_page(hostile, address("classes", "app", symbol="many.Base", open="many"))
    assert "102 more" in opened
    everything = get_page(hostile, address("classes", "app", symbol="many.Base", open="many", more="1"))
    assert len(boxes(drawing(everything))) == 121
    flow = get_page(hostile, address("control-flow", "app", symbol="many.branches"))
    assert len(boxes_of(flow)) == 500
    assert re.search(r"[\d,]+ more blocks are not shown", flow)


def boxes_of(text: str) -> list[str]:
    return re.findall(r' data-key="(block[^"]*)"', text)


def test_a_chain_expands_step_by_step_up_to_a_limit(hostile: TestClient) -> None:
    link = address("calls", "app", symbol="many.f0")
    for step in range(1, 9):
        shown = boxes(drawing(get_page(hostile, link)))
        assert f"f{step}" in shown
        if step < 8:
            link = link_of(shown[f"f{step}"], "expand")
    # The last column has no button.
    with pytest.raises(AssertionError):
        link_of(shown["f8"], "expand")
