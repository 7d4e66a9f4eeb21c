"""Hostile repositories: script in every text that a repository controls, huge lines and files.

All pages that links lead to are read; `get_page` fails if a page has a script, a style or an event handler of
its own, a link to another server, or an element that is not closed. The browser opens some of them: no script
runs that is not the server's.
"""

from __future__ import annotations

import re
import time
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from support.browser import open_tab, running_browser, running_explorer
from support.explorer import explorer_client, get_page
from support.light_builds import clean_lake
from support.marks import quick

ALERT = "<img src=x onerror=alert(1)>"
CLOSE = "</title></textarea></script><script>alert(1)</script>"
NAMES = (
    f"{ALERT}.py",
    'a" onmouseover="alert(1).py',
    "javascript:alert(1).py",
    "{{7*7}}{% include 'base.html' %}.py",
    "..%2f..%2fetc%2fpasswd.py",
    "back\\slash and space #?&=.py",
    "\u202egnp.py",
    "tab\tnew\nline.py",
)
SOURCE = f'''"""Module {ALERT} {CLOSE} {{{{7*7}}}}."""
import os  # {CLOSE}
from json import loads as naïve_\uff4e\uff41\uff4d\uff45

MARK: "{ALERT}" = "{CLOSE}"


class Größe(dict):
    """{CLOSE}"""

    def method(self, value: "{CLOSE}" = "{ALERT}", *args: "'\\"><b>") -> "{ALERT}":
        """{ALERT}"""
        copied = value
        missing_name({CLOSE!r}, copied)
        return self.other(copied, key="{CLOSE}")

    def other(self, given, key=None):
        """'\\"><svg onload=alert(1)>"""
        if given:
            for each in given:
                os.system(each)
        return given


def test_method():
    assert Größe().method("{ALERT}")
'''
LONG_LINE = 'LONG = "' + "<b>x" * 2_000_000 + '"\n'
MANY_LINES = "".join(f"value_{number} = {number}\n" for number in range(5_000))
DEEP = "x = " + "(" * 80 + "1" + ")" * 80 + "\n" + "y = " + "-" * 2000 + "1\n"


@pytest.fixture(scope="module")
def hostile_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    source = folder / "source"
    source.mkdir()
    for name in NAMES:
        (source / name).write_text(SOURCE, encoding="utf-8")
    (source / "long_line.py").write_text(LONG_LINE, encoding="utf-8")
    (source / "many_lines.py").write_text(MANY_LINES, encoding="utf-8")
    (source / "deep.py").write_text(DEEP, encoding="utf-8")
    (source / "broken.py").write_text(f"def f(:\n    '{CLOSE}'\n", encoding="utf-8")
    (source / "binary.py").write_bytes(b"# coding: latin-1\nx = '\x85\x00<script>'\n\xff")
    clean_lake(folder / "lake", {"bad": source})
    return folder / "lake"


@pytest.fixture(scope="module")
def hostile(hostile_lake: Path) -> TestClient:
    return explorer_client(hostile_lake)


def links(text: str) -> list[str]:
    return [unescape(link).partition("#")[0] for link in re.findall(r'href="([^"]*)"', text)]


@pytest.mark.parametrize("most", quick([1, 12], 0))
def test_every_page_that_links_lead_to_is_safe(hostile: TestClient, most: int) -> None:
    """Dozens or hundreds of pages, of each kind of address at most so many."""
    waiting, known, kinds = ["/"], {"/"}, dict[str, int]()
    opened = 0
    while waiting:
        address = waiting.pop(0)
        kind = re.sub(r"=[^&]*", "=", re.sub(r"(/[fs]|/runs)/[^?]*", r"\1", address))
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] > most or address.startswith("/static/") or ".svg" in address:
            continue
        answer = hostile.get(address)
        assert answer.status_code in (200, 300, 400, 404), (address, answer.text[:500])
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        text = get_page(hostile, address, answer.status_code)
        opened += 1
        assert "<script>alert" not in text
        assert ALERT not in text
        for link in links(text):
            if link.startswith("/") and link not in known:
                known.add(link)
                waiting.append(link)
    assert opened > 12 * most
    assert {"/r/bad/f", "/r/bad/s", "/sql", "/impact"} <= {kind.partition("?")[0] for kind in kinds}


@pytest.mark.parametrize(
    "address",
    [
        "/r/bad/f/long_line.py",
        "/r/bad/f/many_lines.py",
        "/r/bad/f/many_lines.py?line=4999",
        "/r/bad/f/deep.py",
        "/r/bad/f/broken.py",
        "/r/bad/f/binary.py",
        "/r/bad/s/many_lines",
        "/r/bad/picture/imports",
        "/errors?repo=bad",
    ],
)
def test_large_and_broken_files_are_shown_in_part(hostile: TestClient, address: str) -> None:
    start = time.process_time()
    text = get_page(hostile, address)
    assert time.process_time() - start < 10
    assert len(text) < 2_000_000


@pytest.mark.parametrize(
    "path",
    [
        "/r/bad/f/../../../etc/passwd",
        "/r/bad/f/..%2f..%2f..%2fetc%2fpasswd",
        "/r/bad/f//etc/passwd",
        "/r/bad/f/%00",
        "/r/..%2f..%2f/f/x",
        "/r/bad/s/%00",
        "/r/bad/s/" + "a." * 2000,
        "/r/bad/s/..%2f..%2fetc",
        "/r/bad/picture/..%2f..%2fetc?symbol=x",
        "/r/bad/picture/calls?symbol=" + "%3Cscript%3E" * 300,
        "/r/bad/flow?symbol=" + "x" * 5000,
        "/r/bad/flow?symbol=x&depth=999999999999999999999",
        "/runs/..%2f..%2fetc",
        "/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/diff?a=../../x&b=%00",
        "/?as-of=../../etc",
        "/errors?repo=../..",
        "/impact?repo=bad&range=--output%3D/tmp/x",
        "/sql?q=" + "(" * 5000,
    ],
)
def test_addresses_of_attackers_are_refused_or_harmless(hostile: TestClient, path: str) -> None:
    answer = hostile.get(path)
    assert answer.status_code < 500, answer.text[:500]
    assert "root:" not in answer.text
    assert "<script>alert" not in answer.text


def test_statements_of_attackers_show_as_text(hostile: TestClient) -> None:
    answer = hostile.post("/sql", data={"q": f"SELECT '{CLOSE}' AS a, '{ALERT}' AS b"})
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert ALERT not in answer.text


@pytest.mark.system
def test_no_script_of_a_repository_runs(hostile_lake: Path, hostile: TestClient) -> None:
    pages = [link for link in links(hostile.get("/r/bad/").text) if link.startswith("/r/bad/f/")]
    symbols = [
        link for page in pages for link in links(hostile.get(page).text) if link.startswith("/r/bad/s/")
    ]
    addresses = ["/", "/r/bad/", *pages, *symbols[:10], "/errors?repo=bad", "/search?q=alert"]
    with (
        running_explorer(hostile_lake) as server,
        running_browser() as browser,
        open_tab(browser, server) as tab,
    ):
        tab.page.on("dialog", lambda dialog: (tab.problems.append(dialog.message), dialog.dismiss()))
        for address in addresses:
            tab.open(address)
            for name in tab.page.locator(".source a.i").all()[:5]:
                name.hover()
            tab.page.keyboard.press("/")
            tab.page.keyboard.type("alert")
            tab.page.wait_for_timeout(300)
