"""Pages without a browser: content, links, errors."""

from __future__ import annotations

import html
import re
from pathlib import Path

from starlette.testclient import TestClient

from codeanatomy.query.lake import Lake
from codeanatomy.query.verbs.stats import count_call_sites
from support.explorer import get_page


def test_home_lists_repositories_and_runs(client: TestClient, ask_lake: Path) -> None:
    text = get_page(client, "/")
    for name in ("flask", "shop", "depot"):
        assert f'href="/r/{name}/"' in text
    assert text.count('<span class="state succeeded">') == 2
    ((total, resolved),) = [
        (row[1], row[1] - row[2]) for row in count_call_sites(Lake.open(ask_lake).reader, "flask")
    ]
    assert f'<td class="number">{resolved / total:.0%}'.replace("%", " %") in text


def test_search_lists_matches(client: TestClient) -> None:
    text = get_page(client, "/search?q=make_response")
    assert 'href="/r/flask/s/flask.app.Flask.make_response"' in text
    assert "No symbol or file" in get_page(client, "/search?q=no-such-name")
    assert "Type a part" in get_page(client, "/search")


def test_suggestions_name_their_run(client: TestClient) -> None:
    answer = client.get("/api/suggest?q=Cart.total").json()
    assert answer["rows"][0]["symbol"] == "shop.cart.Cart.total"
    assert answer["rows"][0]["place"].startswith("shop/cart.py:")
    older = client.get(f"/api/suggest?q=Cart.total&as-of={answer['run']}").json()
    assert older["rows"][0]["link"].endswith(f"?as-of={answer['run']}")


def test_the_newest_run_of_a_page_keeps_its_other_values(client: TestClient) -> None:
    run = client.get("/api/suggest?q=cart").json()["run"]
    text = get_page(client, f"/search?q=a%26b&as-of={run}&repo=shop")
    assert '<a href="?q=a%26b&amp;repo=shop">Go to the newest run</a>' in text


def test_the_link_to_the_impact_of_a_symbol_shows_it(client: TestClient) -> None:
    (link,) = re.findall(r'href="(/impact\?[^"]+)">impact<', get_page(client, "/r/shop/s/shop.cart.sell"))
    assert "Affected: " in get_page(client, html.unescape(link))


def test_errors_are_pages_with_the_next_step(client: TestClient) -> None:
    assert "known: depot, flask, shop" in get_page(client, "/r/nope/", 404)
    assert "there is no such page" in get_page(client, "/nope", 404)
    assert "unknown run" in get_page(client, "/?as-of=zzz", 404)
    assert client.get("/api/suggest?as-of=zzz").json()["error"].startswith("unknown run")


def test_texts_of_visitors_are_escaped(client: TestClient) -> None:
    text = get_page(client, "/search?q=<script>alert(1)</script>\"'")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
