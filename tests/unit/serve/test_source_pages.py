"""Pages of files, folders and names: content, links that lead to the right lines, hostile repositories."""

from __future__ import annotations

import doctest
import html
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from starlette.testclient import TestClient

from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer import source_names
from codeanatomy.serve.explorer.source_text import source_file
from support.explorer import explorer_client, get_page
from support.light_builds import clean_lake

LINE = re.compile(r'<div class="line" id="L(\d+)">.*?<code>(.*?)</code></div>')
LINK = re.compile(r'<a href="([^"]*)" class="i[^"]*" title="([^"]*)"[^>]*>(?:<span[^>]*>)?([^<]*)')
TAG = re.compile(r"<[^<>]*>")
SCRIPT = "<script>alert(1)</script>"
LONG = 4_500


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """Return a client of a repository whose names and texts try to run scripts or to hang."""
    folder = tmp_path_factory.mktemp("hostile") / "app"
    files = {
        'a"b<img src=x onerror=alert(1)>.py': "x = 1\n",
        "scripts.py": f'"""{SCRIPT}"""\ndef f(a="{SCRIPT}"):\n    """{SCRIPT}"""\n    return a  # {SCRIPT}\n',
        "long_line.py": "x = '" + "<b>" * 700_000 + "'\n",
        "many_lines.py": "".join(f"v{n} = {n}\n" for n in range(1, LONG)) + "def last():\n    return v1\n",
        "bidi.py": "x = '\u202e'\n",
        "deep.py": "x = " + "(" * 90 + "1" + ")" * 90 + "\n",
        "broken.py": "def f(:\n    <script>\n",
        "several.py": (
            "import os\nif os.name:\n    def g(): return 1\nelse:\n    def g(): return 2\ng().nothing\n"
        ),
        "empty.py": "",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "bytes.py").write_bytes(b"\xff\xfe\x00x = 1\n")
    lake = folder.parent / "lake"
    clean_lake(lake, {"app": folder})
    return explorer_client(lake)


def lines_of(page: str) -> dict[int, str]:
    """Return the texts of the lines on a page."""
    return {int(number): html.unescape(TAG.sub("", code)) for number, code in LINE.findall(page)}


def test_examples() -> None:
    assert doctest.testmod(source_names).failed == 0


def test_a_file_shows_its_text(client: TestClient, ask_lake: Path) -> None:
    page = get_page(client, "/r/flask/f/flask/app.py")
    file = source_file(Lake.open(ask_lake).reader, "flask", "flask/app.py")
    assert file is not None
    assert file.text is not None
    assert list(lines_of(page).values()) == file.text.splitlines()
    assert '<li><a href="/r/flask/f/flask">flask</a></li>' in page
    assert re.search(r'<li class="depth-1"><a href="#L\d+" data-last="\d+">make_response</a>', page)


def test_names_lead_to_the_lines_of_their_definitions(client: TestClient, ask_lake: Path) -> None:
    """The line that a link of one certain target leads to has the last part of the name."""
    reader = Lake.open(ask_lake).reader
    texts: dict[str, list[str]] = {}
    checked = 0
    for address in ("/r/flask/f/flask/app.py", "/r/shop/f/shop/cart.py"):
        page = get_page(client, address)
        for link, title, name in LINK.findall(page):
            parts = urlsplit(html.unescape(link))
            if not parts.fragment or " " not in title or title.startswith("module"):
                continue
            path = unquote(parts.path or urlsplit(address).path)
            repo_id, _, file = path.removeprefix("/r/").partition("/f/")
            if path not in texts:
                source = source_file(reader, repo_id, file)
                assert source is not None
                texts[path] = (source.text or "").splitlines()
            symbol = html.unescape(title).partition(", ")[0].rpartition(" ")[2]
            line = texts[path][int(parts.fragment[1:]) - 1]
            assert symbol.rpartition(".")[2] in line, (name, link, title)
            checked += 1
    assert checked > 500


def test_every_link_of_a_file_opens(client: TestClient) -> None:
    page = get_page(client, "/r/shop/f/shop/cart.py")
    links = {html.unescape(link) for link, _, _ in LINK.findall(page) if not link.startswith("#")}
    assert links
    for link in links:
        assert client.get(link).status_code in (200, 300, 302), link


def test_an_import_leads_to_module_and_name(client: TestClient) -> None:
    page = get_page(client, "/r/flask/f/flask/app.py")
    links = {name: title for _, title, name in LINK.findall(page)}
    assert links[".sansio.app"] == "module flask.sansio.app"
    assert links["App"] == "class flask.sansio.app.App"


def test_a_folder_counts_what_is_below_it(client: TestClient, ask_lake: Path) -> None:
    page = get_page(client, "/r/flask/f/flask")
    counts = {
        html.unescape(name): tuple(re.findall(r'<td class="number">([\d,]*)</td>', cells))
        for name, cells in re.findall(
            r'<a class="\w+" href="[^"]*">([^<]*)</a></th>(.*?)</tr>', page, re.DOTALL
        )
    }
    lake = Lake.open(ask_lake)
    for name, pattern in (("json/", "flask/json/%"), ("app.py", "flask/app.py")):
        (row,) = lake.sql(
            "SELECT count(DISTINCT path) AS files,"
            " count(CASE WHEN node_kind = 'CLASS' THEN 1 END) AS classes,"
            " count(CASE WHEN node_kind = 'FUNCTION' AND subkind <> 'lambda' THEN 1 END) AS functions"
            f" FROM nodes WHERE repo_id = 'flask' AND path LIKE '{pattern}'"
        ).rows
        files, classes, functions = (f"{row[key]:,}" for key in ("files", "classes", "functions"))
        assert counts[name] == ((files if name.endswith("/") else ""), classes, functions)
    assert list(counts) == [
        *sorted(n for n in counts if n[-1] == "/"),
        *sorted(n for n in counts if n[-1] != "/"),
    ]


def test_the_root_folder_lists_packages(client: TestClient) -> None:
    page = get_page(client, "/r/flask/")
    assert 'href="/r/flask/s/flask.json">flask.json</a>' in page
    assert 'href="/r/flask/f/flask">flask/</a>' in page
    assert get_page(client, "/r/flask/f/") == page


def test_unknown_files_are_reported(client: TestClient) -> None:
    assert "did you mean flask/app.py?" in get_page(client, "/r/flask/f/flask/apps.py", 404)
    for path in ("../../etc/passwd", "%2e%2e/secret", "/etc/passwd", "flask/app.py/x", "x" * 5_000):
        assert client.get(f"/r/flask/f/{path}").status_code == 404


def test_an_older_run_stays_in_the_links(client: TestClient) -> None:
    run = client.get("/api/suggest?q=cart").json()["run"]
    page = get_page(client, f"/r/shop/f/shop/cart.py?as-of={run}")
    for link in re.findall(r'href="(/r/[^"]*)"', page):
        assert f"as-of={run}" in link


def test_the_card_of_a_name(client: TestClient) -> None:
    page = get_page(client, "/r/flask/f/flask/app.py")
    at = re.search(r'data-at="(\d+)">make_response', page)
    assert at is not None
    answer = client.get(f"/api/r/flask/name?path=flask/app.py&at={at[1]}").json()
    (row, *_) = answer["rows"]
    assert row["symbol"] == "flask.app.Flask.make_response"
    assert row["kind"] == "method"
    assert row["type"] == "Response"
    assert row["doc"].startswith("Convert the return value from a view function")
    assert {action["text"] for action in row["actions"]} >= {"callers", "calls", "control flow"}
    assert answer["run"]
    text = get_page(client, f"/r/flask/name?path=flask/app.py&at={at[1]}")
    assert "flask.app.Flask.make_response" in text


def test_the_card_of_a_definition(client: TestClient) -> None:
    page = get_page(client, "/r/flask/f/flask/app.py")
    made = re.search(r'data-id="(function:[^"]*)"><span class="f">make_response', page)
    assert made is not None
    (row,) = client.get("/api/r/flask/name", params={"id": made[1]}).json()["rows"]
    assert row["page"] == "/r/flask/s/flask.app.Flask.make_response"
    assert client.get("/api/r/flask/name", params={"id": "function:none"}).json()["rows"] == []


@pytest.mark.parametrize(
    "query", ["at=x", "at=-1", "path=flask/app.py&at=0", "path=nope&at=3", "at=99999999999999", ""]
)
def test_cards_of_nothing_are_errors(client: TestClient, query: str) -> None:
    answer = client.get(f"/api/r/flask/name?{query}")
    assert answer.status_code == 400
    assert answer.json()["next"]


def test_candidates_and_unresolved_names(hostile: TestClient) -> None:
    page = get_page(hostile, "/r/app/f/several.py")
    several = re.search(r'<a href="([^"]*)" class="i guess" title="one of [^"]*"[^>]*>g</a>', page)
    assert several is not None
    candidates = get_page(hostile, html.unescape(several[1]))
    assert "several.py:3" in candidates
    assert "several.py:5" in candidates
    nothing = re.search(r'<a href="([^"]*)" class="i none" title="not resolved"[^>]*>nothing</a>', page)
    assert nothing is not None
    assert "could not be resolved" in get_page(hostile, html.unescape(nothing[1]))


@pytest.mark.parametrize(
    "name",
    ["scripts.py", "long_line.py", "bidi.py", "deep.py", "broken.py", "empty.py", "bytes.py", "several.py"],
)
def test_hostile_files_are_only_shown(hostile: TestClient, name: str) -> None:
    page = get_page(hostile, f"/r/app/f/{name}")
    assert SCRIPT not in page
    assert "\u202e" not in page
    assert len(page) < 100_000


def test_hostile_file_names_are_only_shown(hostile: TestClient) -> None:
    page = get_page(hostile, "/r/app/")
    assert "<img" not in page
    (link,) = re.findall(r'href="(/r/app/f/a[^"]*)"', page)
    assert "x = 1" in lines_of(get_page(hostile, html.unescape(link))).values()


def test_an_undecodable_file_has_a_page(hostile: TestClient) -> None:
    assert "could not be decoded" in get_page(hostile, "/r/app/f/bytes.py")


def test_long_lines_are_cut(hostile: TestClient) -> None:
    assert "more characters" in lines_of(get_page(hostile, "/r/app/f/long_line.py"))[1]


def test_long_files_are_shown_in_parts(hostile: TestClient) -> None:
    first = get_page(hostile, "/r/app/f/many_lines.py")
    assert min(lines_of(first)) == 1
    links = [html.unescape(link) for link in re.findall(r'<a href="([^"]*line=\d+)"', first)]
    shown = list(lines_of(first))
    for link in dict.fromkeys(links[1:]):
        shown += [line for line in lines_of(get_page(hostile, link)) if line not in shown]
    assert shown == list(range(1, LONG + 2))
    last = get_page(hostile, f"/r/app/f/many_lines.py?line={LONG}")
    assert lines_of(last)[LONG] == "def last():"
    # The name of a line in another part leads to that part; that of the outline, too.
    assert re.search(r'<a href="/r/app/f/many_lines.py#L1" [^>]*>v1</a>', last)
    assert f'href="/r/app/f/many_lines.py?line={LONG}#L{LONG}" data-last="{LONG + 1}">last</a>' in first
    assert lines_of(get_page(hostile, "/r/app/f/many_lines.py?line=99999"))[LONG] == "def last():"
    assert hostile.get("/r/app/f/many_lines.py?line=x").status_code == 400
