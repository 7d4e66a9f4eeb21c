"""The flow of a value in the source: steps, spans, arrows, ends, evidence; hostile and wrong input."""

from __future__ import annotations

import doctest
import html
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer import flow_pages
from codeanatomy.serve.explorer.flows.excerpts import MAX_LINES
from codeanatomy.serve.explorer.flows.flow_steps import MAX_STEPS
from support.explorer import explorer_client, get_page
from support.light_builds import clean_lake

FLOW = "/r/shop/flow?symbol=shop.paths.values."
TEXT = (Path(__file__).parents[2] / "cases/ask/shop/shop/paths/values.py").read_text(encoding="utf-8")


def steps(page: str) -> dict[int, str]:
    """Return the texts of the steps without tags, by number."""
    found = re.findall(r'<li id="step-(\d+)".*?<ul class="leads">(.*?)</ul>', page, re.DOTALL)
    return {int(number): " ".join(re.sub(r"<[^>]+>", " ", text).split()) for number, text in found}


def spans(page: str) -> dict[str, str]:
    """Return the highlighted texts by the number of their span."""
    marked = re.findall(r'<span class="flow at-(\d+)[^"]*">(.*?)</span>(?=[^<]|$|<)', page)
    return {number: html.unescape(re.sub(r"<[^>]+>", "", text)) for number, text in marked}


def arrows(page: str) -> set[tuple[str, str]]:
    return set(re.findall(r'data-tail="(\d+)" data-head="(\d+)"', page))


def test_examples() -> None:
    assert doctest.testmod(flow_pages).failed == 0


def test_where_a_value_goes(client: TestClient) -> None:
    page = get_page(client, FLOW + "give.amount&direction=to")
    texts = steps(page)
    assert list(texts) == [1, 2, 3, 4, 5, 6]
    assert "give.amount is used here" in texts[1]
    assert "assigned to give.copied" in texts[1]
    assert "passed to the parameter take.two" in texts[2]
    assert "returned by values.give" in texts[3]
    assert "no call of it is known" in texts[3]
    assert "part of an expression (BinOp)" in texts[6]
    marked = spans(page)
    assert sorted(marked.values()) == sorted(
        # Definitions: the parameter itself, a copy, two parameters, a function; and six uses.
        [
            "amount",
            "copied",
            "one",
            "two",
            "value",
            "give",
            "amount",
            "amount",
            "amount",
            "copied",
            "two",
            "value",
        ]
    )
    assert ("0", "1") in arrows(page)
    assert {number for pair in arrows(page) for number in pair} == set(marked)
    assert 'href="/r/shop/flow?symbol=shop.paths.values.take.two&amp;direction=to&amp;depth=3"' in page


def test_steps_are_those_of_the_verb(client: TestClient, ask_lake: Path) -> None:
    name = "flask.cli.ScriptInfo.load_app.app"
    for direction in ("to", "from"):
        page = get_page(client, f"/r/flask/flow?symbol={name}&direction={direction}&depth=4")
        answer = Lake.open(ask_lake).flows(
            name, repo_id="flask", direction=direction, depth=4, returns=True, limit=1000
        )
        shown = set(re.findall(r'<a class="place" href="[^"]*">([^<]+:\d+)</a>', page))
        assert shown == {f"{row['path']}:{row['line']}" for row in answer}
        assert len(answer) > 5


def test_where_a_value_comes_from(client: TestClient) -> None:
    page = get_page(client, FLOW + "keep.value&direction=from")
    texts = steps(page)
    assert "the parameter keep.value gets this argument" in texts[1]
    assert "this is the value of limits.LIMIT" in texts[1]
    assert "external imported" in texts[1]
    assert "this is the value of Shelf.item 70 %" in texts[3]
    constant = next(text for text in texts.values() if "values.LIMIT is assigned here" in text)
    assert "constant a constant" in constant
    # Excerpts of both files, with the lines as they are.
    assert 'aria-label="shop/paths/limits.py, lines' in page
    for line in ("def keep(value):", "LIMIT = 3"):
        assert line in TEXT
        assert line in html.unescape(re.sub(r"<[^>]+>", "", page))


def test_both_directions_are_numbered_through(client: TestClient) -> None:
    page = get_page(client, FLOW + "take.two")
    assert [int(number) for number in re.findall(r'id="step-(\d+)"', page)] == [1, 2, 3]
    assert page.index("Where it comes from") < page.index("Where it goes")
    assert re.findall(r'id="span-(\d+)" href="#step-(\d+)"', page) == [("1", "1"), ("2", "2"), ("3", "3")]


def test_a_variable_without_a_known_value(client: TestClient) -> None:
    page = get_page(client, FLOW + "give.amount&direction=from")
    assert "no call that passes a value for it is known" in page
    assert "No use of its value is known" in get_page(client, FLOW + "idle.unused&direction=to")


def test_depth_is_bounded_and_further_steps_are_offered(client: TestClient) -> None:
    page = get_page(client, FLOW + "give.amount&direction=to&depth=1")
    assert max(steps(page)) == 3
    assert 'depth=3">Follow further</a>' in page
    for depth in ("0", "21", "-1", "999999999999", "x", "1e3"):
        assert "depth must be 1-20" in get_page(client, FLOW + f"give.amount&depth={depth}", 400)


def test_a_function_offers_its_parameters_and_variables(client: TestClient) -> None:
    page = get_page(client, FLOW + "give")
    assert "Choose a parameter or variable" in page
    for name in ("amount", "copied"):
        assert f"symbol=shop.paths.values.give.{name}&amp;" in page
    assert page.index("give.amount&amp;") < page.index("give.copied&amp;")
    assert "symbol=shop.paths.values.Shelf.item&amp;" in get_page(client, FLOW + "Shelf")
    assert "symbol=shop.paths.values.LIMIT&amp;" in get_page(client, "/r/shop/flow?symbol=shop.paths.values")


def test_no_symbol_is_a_form(client: TestClient) -> None:
    assert "Type the qualified name" in get_page(client, "/r/shop/flow")


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("/r/shop/flow?symbol=no.such.name", 404, "no symbol"),
        ("/r/nope/flow?symbol=x", 404, "known: depot, flask, shop"),
        ("/r/shop/flow?symbol=json.dumps", 400, "is not a variable and has none"),
        ("/r/shop/flow?symbol=" + "x" * 1500, 400, "the maximum is 1,000"),
        ("/r/shop/flow?symbol=" + "a." * 200, 400, "parts"),
        (FLOW + "give.amount&direction=<up>", 400, "direction must be to, from or both"),
        ("/r/shop/flow?symbol=%ff%fe", 404, "no symbol"),
        ("/r/shop/flow?symbol='; DROP TABLE x; --", 404, "no symbol"),
        ("/r/shop/edge?id=nonsense", 400, "no edge has the id"),
        ("/r/shop/edge?id=" + "x" * 9000, 400, "no edge has the id"),
    ],
)
def test_wrong_input(client: TestClient, address: str, status: int, text: str) -> None:
    assert text in get_page(client, address, status)


def test_the_evidence_of_an_edge(client: TestClient) -> None:
    page = get_page(client, FLOW + "give.amount&direction=to")
    (edge, *_) = re.findall(r'data-edge="(PASSES_TO;[^"]+)"', page)
    answer = client.get("/api/r/shop/edge", params={"id": html.unescape(edge)}).json()["edge"]
    assert answer["target"] == "shop.paths.values.take.two"
    assert (answer["relation"], answer["confidence"]) == ("PASSES_TO", 0.9)
    (link, *_) = re.findall(r'href="(/r/shop/edge\?id=PASSES_TO[^"]+)"', page)
    shown = get_page(client, html.unescape(link))
    assert answer["evidence"] in html.unescape(shown)
    assert answer["rule"] in shown
    # An edge of another repository is not shown as one of this.
    assert client.get("/api/r/flask/edge", params={"id": html.unescape(edge)}).status_code == 400


def test_hostile_source(tmp_path: Path) -> None:
    """Names, strings and paths of a repository are text; many uses and long lines are cut."""
    folder = tmp_path / "app"
    (folder / "<b>&").mkdir(parents=True)
    uses = "".join(f"    print(value)  # <script>alert({at})</script>\n\n\n\n\n\n\n\n" for at in range(200))
    source = f"def f(value='</code><script>x</script>'):\n{uses}    return [value, '{'<i>' * 20_000}']\n"
    (folder / "<b>&" / "m.py").write_text(source, encoding="utf-8")
    clean_lake(tmp_path / "lake", {"app": folder})
    client = explorer_client(tmp_path / "lake")
    page = get_page(client, "/r/app/flow?symbol=m.f.value&direction=to")
    assert len(steps(page)) == MAX_STEPS
    assert f"{201 - MAX_STEPS} more places are not shown" in page
    assert page.count('class="line') <= MAX_LINES
    assert "<script>x" not in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(0)" in page
    assert len(page) < 1_000_000
