"""The SQL page: what runs, what is refused, limits, links, downloads."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from codeanatomy.catalog.views import RECORD_VIEWS, VIEWS
from codeanatomy.errors import EnvironmentProblem, SqlRefused
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.check import check
from codeanatomy.serve.explorer import sql_page
from codeanatomy.serve.explorer.sql_page import Turns, examples, harmless
from support.explorer import HOST, check_page, get_page

CLASSES = "SELECT repo_id, symbol, path, line FROM symbols WHERE kind = 'CLASS' ORDER BY symbol, path"
SLOW = "SELECT count(*) FROM nodes a, nodes b, nodes c WHERE a.line + b.line + c.line = 7"


def post(client: TestClient, text: str, **fields: str) -> httpx.Response:
    return client.post("/sql", data={"q": text, **fields})


def result(client: TestClient, text: str, **fields: str) -> str:
    answer = post(client, text, **fields)
    assert answer.status_code == 200, answer.text
    check_page(answer.text)
    return answer.text


def problems(client: TestClient, text: str, **fields: str) -> str:
    page = result(client, text, **fields)
    assert 'id="rows"' not in page
    return unescape(page.partition('id="problems"')[2].partition("<section")[0])


def rows_of(page: str) -> list[list[str]]:
    """Return the texts of the cells."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall("<td.*?</td>", row)]
        for row in re.findall("<tr>(.*?)</tr>", body, re.DOTALL)
    ]


def test_views_are_listed_with_columns(client: TestClient) -> None:
    text = get_page(client, "/sql")
    for view in (*VIEWS, *RECORD_VIEWS):
        part = text.partition(f'data-view="{view.name}"')[2].partition("</details>")[0]
        assert re.findall('data-column="([^"]+)"', part) == list(view.column_names)
        assert view.doc in unescape(part)


def test_a_link_fills_the_editor_and_runs_nothing(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lake, "sql", lambda *_, **__: pytest.fail("it has been run"))
    text = get_page(client, "/sql?q=SELECT 1 </textarea><script>alert(1)</script>")
    assert "SELECT 1 &lt;/textarea&gt;&lt;script&gt;" in text
    assert 'id="rows"' not in text


def test_rows_are_those_of_the_command(client: TestClient, ask_lake: Path) -> None:
    expected = Lake.open(str(ask_lake)).sql(CLASSES, limit=1000)
    page = result(client, CLASSES, rows="1000")
    assert rows_of(page) == [[str(value) for value in row.values()] for row in expected.rows]
    assert f"<strong>{expected.total} rows</strong>" in page
    assert expected.run_id in page
    assert re.search(r"in \d+\.\d\d s", page)


def test_rows_that_are_cut_are_counted(client: TestClient, ask_lake: Path) -> None:
    total = Lake.open(str(ask_lake)).sql("SELECT node_id FROM nodes", limit=1).total
    page = result(client, "SELECT node_id FROM nodes")
    assert f"<strong>{total:,} rows</strong>, the first 100 are shown" in page
    assert len(rows_of(page)) == 100


def test_cells_lead_to_files_symbols_and_runs(client: TestClient) -> None:
    page = result(client, f"{CLASSES} LIMIT 200", rows="1000")
    row = next(row for row in rows_of(page) if row[1] == "shop.cart.Cart")
    assert f'<a href="/r/shop/f/{row[2]}#L{row[3]}">{row[2]}</a>' in page
    assert '<a href="/r/shop/s/shop.cart.Cart">shop.cart.Cart</a>' in page
    assert '<a href="/r/shop/">shop</a>' in page
    of_cart = "FROM files WHERE path = 'shop/cart.py'"
    place = result(client, f"SELECT repo_id, concat(path, ':3') AS place {of_cart}")
    assert '<a href="/r/shop/f/shop/cart.py#L3">shop/cart.py:3</a>' in place
    run = result(client, "SELECT run_id FROM repositories WHERE repo_id = 'shop'")
    assert re.search(r'<td><a href="/runs/(\w+-\w+)">\1</a></td>', run)
    # Without a repository, a path may be of any.
    assert "<td>shop/cart.py</td>" in result(client, f"SELECT path {of_cart}")


def test_results_of_an_older_run_link_to_it(client: TestClient, ask_lake: Path) -> None:
    first = Lake.open(str(ask_lake)).snapshot.repositories["flask"].run_id
    text = "SELECT repo_id, symbol FROM symbols WHERE symbol = 'old.retired' AND kind = 'FUNCTION'"
    page = client.post(f"/sql?as-of={first}", data={"q": text}).text
    assert f'<a href="/r/depot/s/old.retired?as-of={first}">' in page
    assert f'action="/sql?as-of={first}"' in page
    assert rows_of(result(client, text)) == []


def test_texts_are_shown_as_texts(client: TestClient) -> None:
    script, image = "'<script>alert(1)</script>'", "'<img src=x onerror=alert(1)>.py:1'"
    page = result(client, f"SELECT {script} AS `<b>`, {image} AS p, repo_id FROM repositories")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert rows_of(page)[0][0] == "<script>alert(1)</script>"
    refused = post(client, "SELECT '<script>alert(1)</script>' + FROM <script>alert(2)</script>").text
    check_page(refused)
    assert "<script>alert" not in refused


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT nme FROM symbols", "Line 1, column 8: unknown column 'nme'"),
        ("SELECT *\nFROM nope", "Line 2, column 6"),
        ("DROP TABLE nodes", ""),
        ("SELECT 1; SELECT 2", ""),
        ("SELECT * FROM read_csv('/etc/passwd')", ""),
        ("SELECT * FROM '/etc/passwd'", ""),
        ("COPY (SELECT 1) TO '/tmp/x'", ""),
        ("SET memory_limit = '1TB'", ""),
        ("", ""),
    ],
)
def test_other_statements_are_refused_with_their_place(client: TestClient, text: str, problem: str) -> None:
    shown = problems(client, text)
    assert "<li" in shown
    assert problem in shown
    if text.strip():
        assert f"\n{text}</textarea>" in unescape(post(client, text).text)


def test_statements_are_checked_while_they_are_typed(client: TestClient) -> None:
    def diagnostics(text: str) -> list[dict[str, object]]:
        answer = client.post("/api/sql/check", data={"q": text})
        assert answer.status_code == 200
        return list(answer.json()["diagnostics"])

    (problem,) = diagnostics("SELECT name,\n  nme FROM symbols")
    assert (problem["line"], problem["column"], problem["end"]) == (2, 3, 6)
    assert problem["suggestion"] == "did you mean name?"
    assert diagnostics(CLASSES) == []
    assert diagnostics("") == []
    assert not client.post("/api/sql/check", data={"q": "SELECT 1" + " " * 5000}).json()["checked"]


def test_a_statement_is_stopped_when_its_time_is_over(client: TestClient) -> None:
    started = time.monotonic()
    assert "it took longer than 2 seconds" in problems(client, SLOW, seconds="2")
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(
    "fields", [{"rows": "100000"}, {"seconds": "3600"}, {"rows": "x"}, {"format": "xlsx"}, {"seconds": "-1"}]
)
def test_limits_cannot_be_raised(client: TestClient, fields: dict[str, str]) -> None:
    answer = post(client, "SELECT 1", **fields)
    assert answer.status_code == 400
    assert "must be" in answer.text


def test_long_statements_are_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lake, "sql", lambda *_, **__: pytest.fail("it has been run"))
    answer = post(client, f"SELECT 1 -- {'x' * 30_000}")
    assert answer.status_code == 400
    assert "more than 20,000" in answer.text
    assert post(client, "x" * 1_100_000).status_code == 413


def test_other_sites_cannot_run_statements(client: TestClient) -> None:
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        answer = client.post("/sql", data={"q": "SELECT 1"}, headers=headers)
        assert answer.status_code == 403
    own = client.post("/sql", data={"q": "SELECT 1"}, headers={"origin": f"http://{HOST}"})
    assert own.status_code == 200


def test_only_a_few_statements_run_at_the_same_time() -> None:
    turns = Turns(running=1, waiting=1, wait_seconds=60)
    leave, order = threading.Event(), []

    def work(name: str) -> str:
        order.append(name)
        assert leave.wait(60)
        return name

    with ThreadPoolExecutor(2) as visitors:
        first = visitors.submit(turns.run, lambda: work("first"), 60)
        while order != ["first"]:
            time.sleep(0.01)
        second = visitors.submit(turns.run, lambda: work("second"), 60)
        # The first runs, the second waits, the third is refused without waiting for its minute.
        while turns._places._value:
            time.sleep(0.01)
        started = time.monotonic()
        with pytest.raises(EnvironmentProblem, match="other statements are running"):
            turns.run(lambda: work("third"), 10)
        assert time.monotonic() - started < 30
        assert order == ["first"]
        leave.set()
        assert (first.result(), second.result()) == ("first", "second")
    assert order == ["first", "second"]
    assert turns.run(lambda: "again", 1) == "again"


def test_a_page_does_not_wait_for_what_cannot_be_interrupted() -> None:
    turns = Turns(running=1, waiting=1, wait_seconds=0.05)
    leave = threading.Event()
    with pytest.raises(SqlRefused, match=r"longer than 0\.1 seconds"):
        turns.run(lambda: leave.wait(60), 0.1)
    # It still has its turn.
    with pytest.raises(EnvironmentProblem, match="other statements are running"):
        turns.run(lambda: True, 1)
    leave.set()
    while turns._places._value < 2:
        time.sleep(0.01)
    assert turns.run(lambda: True, 1)
    with pytest.raises(TimeoutError, match="of the lake"):
        turns.run(_time_out, 1)


def _time_out() -> None:
    raise TimeoutError("of the lake")


def test_waiting_ends(monkeypatch: pytest.MonkeyPatch, client: TestClient) -> None:
    turns = Turns(running=1, waiting=1, wait_seconds=0.05)
    monkeypatch.setattr(sql_page, "TURNS", turns)
    leave = threading.Event()
    with ThreadPoolExecutor(1) as other:
        running = other.submit(turns.run, lambda: leave.wait(60), 60)
        while turns._places._value > 1:
            time.sleep(0.01)
        answer = post(client, CLASSES)
        assert answer.status_code == 503
        check_page(answer.text)
        assert "other statements are running" in answer.text
        # The statement is kept.
        assert CLASSES in unescape(answer.text)
        assert client.post("/api/sql/check", data={"q": CLASSES}).status_code == 503
        leave.set()
        assert running.result()
    while turns._places._value < 2:
        time.sleep(0.01)
    assert 'id="rows"' in post(client, CLASSES).text


def test_csv_has_all_rows_and_no_formulas(client: TestClient, ask_lake: Path) -> None:
    answer = post(client, "SELECT node_id, line FROM nodes ORDER BY node_id", format="csv")
    lake = Lake.open(str(ask_lake))
    expected = lake.sql("SELECT count(*) AS n FROM nodes").rows[0]["n"]
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0] == ["node_id", "line"]
    assert len(rows) == expected + 1
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    disposition = f'attachment; filename="codeanatomy-{lake.snapshot.run_id}.csv"'
    assert answer.headers["content-disposition"] == disposition
    others = "-3 AS e, 'a,\"b\"' AS f, NULL AS g, TRUE AS h"
    text = f"SELECT '=cmd()' AS `=a`, '+1' AS b, '-2' AS c, '@x' AS d, {others}"
    rows = list(csv.reader(io.StringIO(post(client, text, format="csv").text)))
    assert rows == [
        ["'=a", "b", "c", "d", "e", "f", "g", "h"],
        ["'=cmd()", "'+1", "'-2", "'@x", "-3", 'a,"b"', "", "true"],
    ]
    assert harmless("\tx") == "'\tx"


def test_json_has_the_run_and_what_was_cut(
    client: TestClient, ask_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_page, "DOWNLOAD_ROWS", 3)
    answer = post(client, CLASSES, format="json")
    expected = Lake.open(str(ask_lake)).sql(CLASSES, limit=3)
    value = json.loads(answer.content)
    assert value["rows"] == list(expected.rows)
    assert value["total"] == expected.total
    assert value["cut"] == (expected.total or 0) - 3
    assert value["run"] == expected.run_id
    assert "-first-3.json" in answer.headers["content-disposition"]


def test_downloads_report_refusals_by_status(client: TestClient) -> None:
    answer = post(client, "SELECT nope FROM symbols", format="csv")
    assert answer.status_code == 400
    assert "unknown column" in answer.text


def test_large_cells_and_large_pages_are_cut(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    page = result(client, "SELECT collect_list(node_id) AS ids FROM nodes")
    assert re.search(r"\.\.\. \([\d,]{6,} characters\)</td>", page)
    assert len(page) < 100_000
    monkeypatch.setattr(sql_page, "PAGE_CHARS", 5000)
    page = result(client, "SELECT node_id FROM nodes", rows="1000")
    assert 20 < len(rows_of(page)) < 1000
    assert f"the first {len(rows_of(page))} are shown" in page
    assert "too large" in page


def test_thousand_rows_make_a_small_page(client: TestClient) -> None:
    page = result(client, "SELECT repo_id, symbol, path, line, kind FROM symbols", rows="1000")
    assert len(rows_of(page)) == 1000
    assert len(page) < 1_000_000


def test_kinds_of_values(client: TestClient) -> None:
    page = result(client, "SELECT NULL AS a, TRUE AS b, 1.5 AS c, 2 AS d, 'x' AS e, collect_list(1) AS f")
    assert (
        '<td class="null">null</td><td>true</td><td class="number">1.5</td><td class="number">2</td>' in page
    )
    assert rows_of(page)[0] == ["null", "true", "1.5", "2", "x", "[1]"]
    assert re.findall(r'<th scope="col"( class="number")?>(\w)</th>', page) == [
        ("", "a"),
        ("", "b"),
        (' class="number"', "c"),
        (' class="number"', "d"),
        ("", "e"),
        ("", "f"),
    ]


def test_examples_run(client: TestClient) -> None:
    text = get_page(client, "/sql")
    addresses = [unescape(each) for each in re.findall('class="example" href="([^"]+)"', text)]
    assert len(addresses) == len(examples()) >= 6
    for (title, statement), address in zip(examples(), addresses, strict=True):
        assert parse_qs(urlsplit(address).query)["q"] == [statement]
        assert check(statement).columns
        assert rows_of(result(client, statement)), title
        assert f"{statement}</textarea>" in unescape(get_page(client, address))


def test_results_have_a_link_to_share(client: TestClient) -> None:
    page = unescape(result(client, CLASSES))
    link = re.search(r'<a href="(/sql\?q=[^"]+)">Link to this statement', page)
    assert link is not None
    assert parse_qs(urlsplit(link[1]).query)["q"] == [CLASSES]
    long = f"SELECT 1 AS a -- {'x' * 8000}"
    assert "Link to this statement" not in result(client, long)
