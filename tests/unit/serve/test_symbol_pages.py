"""Pages of symbols, compared with the verbs; lists, bounds, other spellings of a name, hostile texts."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from starlette.testclient import TestClient

from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer import symbol_pages
from support.explorer import explorer_client, get_page
from support.light_builds import clean_lake

SECTION = re.compile(
    r'<section aria-labelledby="list-\d+">\s*<h2 [^>]*>([\w ]+?) <span class="count">([\d,]+)</span></h2>'
    r"(.*?)</section>",
    re.DOTALL,
)
ROW = re.compile(r'<a class="symbol" href="[^"]*/s/([^"?]*)')
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """Return a client of a repository with overloads, many uses, and texts that try to run scripts."""
    folder = tmp_path_factory.mktemp("hostile") / "app"
    folder.mkdir()
    (folder / "scripts.py").write_text(
        f'def f(a="{SCRIPT}"):\n    """{SCRIPT} \u202e"""\n    return a\n\nclass K:\n'
        + "".join(f"    def m{n}(self): return f({n})\n" for n in range(60))
    )
    (folder / "several.py").write_text(
        "from typing import overload\n@overload\ndef g(x: int) -> int: ...\n"
        "@overload\ndef g(x: str) -> str: ...\n"
        "def g(x):\n    return x\nLIMIT: int = 3\n"
    )
    (folder / "long.py").write_text("def long():\n" + "    x = 1\n" * 3_000 + "    return x\n")
    (folder / "names.py").write_text("def ünï(größe): return größe\nval = (lambda q: q)(1)\n")
    lake = folder.parent / "lake"
    clean_lake(lake, {"app": folder})
    return explorer_client(lake)


def sections(page: str) -> dict[str, tuple[int, list[str]]]:
    """Return the lists of a page: number of rows without the limit, and symbols."""
    return {
        name.lower(): (int(total.replace(",", "")), [unquote(each) for each in ROW.findall(rows)])
        for name, total, rows in SECTION.findall(page)
    }


@pytest.mark.parametrize(
    "symbol", ["flask.app.Flask.make_response", "flask.app.Flask", "flask.app", "shop.cart.Cart.total"]
)
def test_lists_are_those_of_the_verbs(client: TestClient, ask_lake: Path, symbol: str) -> None:
    repo_id = symbol.partition(".")[0]
    page = get_page(client, f"/r/{repo_id}/s/{symbol}")
    lists = sections(page)
    lake = Lake.open(ask_lake)
    for name, answer in (
        ("callers", lake.callers(symbol, repo_id=repo_id, limit=1000)),
        ("callees", lake.callees(symbol, repo_id=repo_id, limit=1000)),
    ):
        total, rows = lists.get(name, (0, []))
        assert total == answer.total
        assert set(rows) <= {row["symbol"] for row in answer.rows}
        assert len(rows) == min(total, symbol_pages.SHORT_LIST)
    assert lists.get("references", (0, []))[0] == lake.refs(symbol, repo_id=repo_id).total
    (shown, *_) = lake.show(symbol, repo_id=repo_id).rows
    if shown["signature"]:
        assert f">{html.escape(shown['signature'], quote=False)}</pre>" in page.replace("&#39;", "'").replace(
            "&#34;", '"'
        )
    if shown["docstring"]:
        assert shown["docstring"].splitlines()[0] in html.unescape(page)
    assert f"{shown['path']}:{shown['line']}</a>" in page


def test_breadcrumbs_lead_through_module_and_class(client: TestClient) -> None:
    page = get_page(client, "/r/flask/s/flask.app.Flask.make_response")
    for name in ("flask", "flask.app", "flask.app.Flask"):
        assert f'<li><a href="/r/flask/s/{name}">{name.rpartition(".")[2]}</a></li>' in page
        get_page(client, f"/r/flask/s/{name}")
    assert "<li>builtins</li>" in get_page(client, "/r/flask/s/builtins.len")


def test_members_bases_subclasses_and_overrides(client: TestClient) -> None:
    lists = sections(get_page(client, "/r/flask/s/flask.app.Flask"))
    assert "flask.app.Flask.make_response" in lists["members"][1]
    assert lists["bases"][1] == ["flask.sansio.app.App"]
    assert "flask.app.Flask" in sections(get_page(client, "/r/flask/s/flask.sansio.app.App"))["subclasses"][1]
    name = "flask.json.provider.DefaultJSONProvider.dumps"
    assert sections(get_page(client, f"/r/flask/s/{name}"))["overrides"][1] == [
        "flask.json.provider.JSONProvider.dumps"
    ]


def test_other_spellings_lead_to_the_symbol(client: TestClient) -> None:
    for typed in ("Flask.make_response", "flask.Flask.make_response", "flask/app.py:1224"):
        answer = client.get(f"/r/flask/s/{typed}?list=")
        assert answer.status_code == 302
        assert answer.headers["location"].startswith("/r/flask/s/flask.app.Flask")
    page = get_page(client, "/r/flask/s/get", 300)
    assert page.count("<li>") == 2
    assert "next" in get_page(client, "/r/flask/s/no_such_name", 404).lower()
    assert client.get("/r/flask/s/" + "x" * 3_000).status_code == 400


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        ("flask.app.Flask.make_response.rv", "type <code>ft.ResponseReturnValue</code>"),
        ("flask.app.Flask.make_response.rv", '<span class="chosen"><a href='),
        ("flask.app", '<div class="line" id="L1">'),
        ("flask.app.Flask.session_interface", "flask/app.py:"),
        ("flask.json", "flask.json.provider"),
        ("flask.app.Flask.__init__.<lambda1>", "lambda</span>"),
        ("builtins.len", "Its source is not in this repository"),
        ("collections.abc", "Its source is not in this repository"),
    ],
)
def test_all_kinds_of_symbols_have_a_page(client: TestClient, symbol: str, text: str) -> None:
    assert text in get_page(client, f"/r/flask/s/{quote(symbol)}")


def test_all_rows_of_a_list(hostile: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    page = get_page(hostile, "/r/app/s/scripts.f")
    assert sections(page)["callers"][0] == 60
    (link,) = re.findall(r'<a href="([^"]*list=callers)">45 more</a>', page)
    assert len(ROW.findall(get_page(hostile, html.unescape(link)))) == 60
    monkeypatch.setattr(symbol_pages, "LONG_LIST", 25)
    rows: list[str] = []
    following: list[str] = [link]
    while following:
        page = get_page(hostile, html.unescape(following[0]))
        rows += ROW.findall(page)
        following = re.findall(r'<a href="([^"]*after=\d+)">[\d,]+ more</a>', page)
    assert len(rows) == len(set(rows)) == 60
    assert get_page(hostile, "/r/app/s/scripts.f?list=references").count("scripts.py:") >= 25
    assert hostile.get("/r/app/s/scripts.f?list=nothing").status_code == 404
    assert hostile.get("/r/app/s/scripts.f?list=callers&after=x").status_code == 400


def test_tests_that_reach_a_symbol(client: TestClient, ask_lake: Path) -> None:
    page = get_page(client, "/r/shop/s/shop.cart.Cart.total")
    (address,) = re.findall(r'data-load="([^"]*)"', page)
    answer = client.get(html.unescape(address)).json()
    expected = [
        row["symbol"]
        for row in Lake.open(ask_lake).impact("shop.cart.Cart.total", repo_id="shop", limit=1000).rows
        if row["test"] and row["kind"] == "FUNCTION"
    ]
    assert expected
    assert [row["symbol"] for row in answer["rows"]] == expected[: symbol_pages.SHORT_LIST]
    assert answer["total"] == len(expected)
    (link,) = re.findall(r'<a href="([^"]*list=tests)">Show tests</a>', page)
    assert ROW.findall(get_page(client, html.unescape(link))) == expected


def test_overloads_are_all_shown(hostile: TestClient) -> None:
    page = get_page(hostile, "/r/app/s/several.g")
    for signature in ("def g(x: int) -&gt; int", "def g(x: str) -&gt; str", "def g(x)"):
        assert f">{signature}</pre>" in page
    assert "type <code>int</code>" in get_page(hostile, "/r/app/s/several.LIMIT")


def test_long_definitions_are_cut(hostile: TestClient) -> None:
    page = get_page(hostile, "/r/app/s/long.long")
    assert page.count('<div class="line"') == symbol_pages.EXCERPT_LINES
    assert f'#L{symbol_pages.EXCERPT_LINES + 1}">' in page
    assert "more lines</a>" in page


def test_hostile_texts_are_only_shown(hostile: TestClient) -> None:
    for symbol in ("scripts", "scripts.f", "scripts.f.a", "scripts.K", "names.ünï", "names.ünï.größe"):
        page = get_page(hostile, f"/r/app/s/{quote(symbol)}")
        assert SCRIPT not in page
        assert "\u202e" not in page
    assert hostile.get("/r/app/s/<script>").status_code == 404
    assert hostile.get("/r/app/s/%2e%2e/%2e%2e").status_code in (400, 404)


def test_links_keep_the_run(client: TestClient) -> None:
    run = client.get("/api/suggest?q=cart").json()["run"]
    page = get_page(client, f"/r/shop/s/shop.cart.Cart?as-of={run}")
    links = re.findall(r'href="(/[^"]*)"', page)
    assert all(f"as-of={run}" in link for link in links if not link.startswith("/static/"))


def test_the_name_of_a_foreign_module_leads_to_it(client: TestClient) -> None:
    # flask has a module flask.json, and imports json of the standard library.
    page = get_page(client, "/r/flask/s/json")
    assert '<h1><code>json</code> <span class="kind">external module</span></h1>' in page
    # There is no foreign symbol of this name: it is the end of several.
    assert client.get("/r/flask/s/dispatch_request", follow_redirects=False).status_code == 300
