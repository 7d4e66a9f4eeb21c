"""What a change affects: symbols, git ranges, runs and pasted diffs; hostile and wrong input."""

from __future__ import annotations

import doctest
import html
import re
import subprocess
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer import impact_page
from codeanatomy.serve.explorer.guard import MAX_BODY_BYTES
from codeanatomy.serve.explorer.impact_page import MAX_USERS, Branch, impact_tree
from support.explorer import HOST, check_page, explorer_client, get_page
from support.light_builds import clean_lake, refreshed

MODULE = "def price(x):\n    return x\n\n\ndef sell(x):\n    return price(x)\n"
TESTS = "from m import sell\n\n\ndef test_sell():\n    assert sell(1)\n"
PATCH = "--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,2 @@\n def price(x):\n-    return x\n+    return x + 1\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> tuple[TestClient, Path]:
    """Return a client of a lake with two runs, whose source has two commits, and the source."""
    folder = tmp_path_factory.mktemp("impact")
    source = folder / "app"
    (source / "tests").mkdir(parents=True)
    (source / "m.py").write_text(MODULE, encoding="utf-8")
    (source / "tests" / "test_m.py").write_text(TESTS, encoding="utf-8")
    (source / "old.py").write_text("def gone():\n    return 1\n\n\ndef user():\n    return gone()\n")
    git(source, "init", "-q", "-b", "main")
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "first")
    clean_lake(folder / "lake", {"app": source})
    (source / "m.py").write_text(MODULE.replace("return x\n", "return x + 1\n", 1), encoding="utf-8")
    (source / "old.py").write_text("def user():\n    return 1\n")
    git(source, "commit", "-q", "-a", "-m", "second")
    refreshed(folder / "lake", {"app": source})
    return explorer_client(folder / "lake"), source


def tree(page: str) -> list[str]:
    """Return the symbols of the tree, in order."""
    shown = re.search(r'<div class="tree">(.*?)</section>', page, re.DOTALL)
    text = re.sub(r"<h3>.*", "", shown[1], flags=re.DOTALL) if shown else ""
    return [html.unescape(name) for name in re.findall(r'class="symbol[^>]*>([^<]+)<', text)]


def post(client: TestClient, status: int = 200, **fields: str) -> str:
    answer = client.post("/impact", data=fields, headers={"origin": f"http://{HOST}"})
    assert answer.status_code == status, answer.text
    check_page(answer.text)
    return answer.text


def test_examples() -> None:
    assert doctest.testmod(impact_page).failed == 0


def test_the_page_offers_every_kind_of_change(client: TestClient) -> None:
    page = get_page(client, "/impact")
    for name in ('name="symbols"', 'name="diff"', 'name="a"', 'name="b"', 'name="patch"'):
        assert name in page
    assert "<option>flask</option>" in page


def test_symbols_are_those_of_the_verb(client: TestClient, ask_lake: Path) -> None:
    page = get_page(client, "/impact?repo=shop&symbols=shop.money.Price&depth=4")
    answer = Lake.open(ask_lake).impact("shop.money.Price", repo_id="shop", depth=4, limit=1000)
    users = {row["symbol"] for row in answer}
    assert users <= set(tree(page)) <= users | {row["via"] for row in answer}
    tests = {row["symbol"] for row in answer if row["test"] and row["kind"] == "FUNCTION"}
    assert tests
    assert page.count('<span class="kind test">test</span>') == sum(row["test"] for row in answer)
    for row in answer:
        assert f'/f/{row["path"]}#L{row["line"]}">{row["path"]}:{row["line"]}</a>' in page
    assert f"Affected: {answer.total} symbols" in page


def test_several_symbols_in_one_field(client: TestClient) -> None:
    page = get_page(client, "/impact?symbols=shop.money.TAX,%20shop.cart.sell%0d%0a&repo=shop")
    assert {"shop.money.TAX", "shop.cart.sell"} <= set(tree(page)) | set(
        re.findall(r">(shop[.\w]+)</a>", page)
    )


def test_a_git_range(changed: tuple[TestClient, Path]) -> None:
    client, _ = changed
    page = get_page(client, "/impact?repo=app&diff=main~1..main")
    assert tree(page) == ["m.price", "m.sell", "tests.test_m", "tests.test_m.test_sell"]
    assert "main~1..main: 2 files differ" in page
    assert "Tests that reach it" in page
    assert "no definition in the lake differs" in get_page(client, "/impact?diff=main")


@pytest.mark.parametrize(
    "value",
    [
        "--output=/tmp/owned",
        "-h",
        "main;touch x",
        "$(touch x)",
        "main...topic",
        "\0",
        "x" * 2000,
        "..",
    ],
)
def test_hostile_git_ranges_are_refused(changed: tuple[TestClient, Path], value: str) -> None:
    client, source = changed
    before = sorted(path.name for path in source.iterdir())
    answer = client.get("/impact", params={"diff": value, "repo": "app"})
    assert answer.status_code == 400
    check_page(answer.text)
    assert sorted(path.name for path in source.iterdir()) == before


def test_a_source_without_git_is_explained(client: TestClient) -> None:
    assert "git" in get_page(client, "/impact?repo=flask&diff=no-such-branch", 400)
    assert "choose the one" in get_page(client, "/impact?diff=main", 400)


def test_two_runs(changed: tuple[TestClient, Path]) -> None:
    client, source = changed
    first, second = (run.run_id for run in recorded_runs(str(source.parent / "lake")))
    page = get_page(client, f"/impact?repo=app&a={first}&b={second}")
    assert "Affected by what was changed or added: 3 symbols, 1 test<" in page
    assert "Affected by what was removed, before that: 1 symbol, 0 tests<" in page
    assert f'href="/r/app/s/old.user?as-of={first}"' in page
    assert f'href="/r/app/s/m.sell?as-of={second}"' in page
    assert "No definition is changed" in get_page(client, f"/impact?a={second}&b={second}")
    assert "needs two runs" in get_page(client, f"/impact?a={first}", 400)
    assert "unknown run" in get_page(client, f"/impact?a={first}&b=zzz", 404)


def test_a_pasted_diff(changed: tuple[TestClient, Path]) -> None:
    client, _ = changed
    page = post(client, repo="app", patch=PATCH.replace("\n", "\r\n"))
    assert tree(page) == ["m.price", "m.sell", "tests.test_m", "tests.test_m.test_sell"]
    assert "+    return x + 1" in html.unescape(page)


@pytest.mark.parametrize(
    ("patch", "status", "text"),
    [
        ("hello", 400, "not a unified diff"),
        ("--- a/m.py\n+++ b/m.py\n@@ -1,9 +1,9 @@\n x\n", 400, "line 5 of the diff does not fit"),
        (
            "--- a/../../m.py\n+++ b/../../../etc/passwd.py\n@@ -1 +1 @@\n-a\n+b\n",
            200,
            "another version of m.py",
        ),
        ("--- a/../x.py\n+++ b/../x.py\n@@ -1 +1 @@\n-a\n+b\n", 200, "not in the lake: ../x.py"),
        ("Binary files a/x.bin and b/x.bin differ\n", 200, "No definition is changed"),
        ("--- a/<script>x.py\n+++ b/<script>x.py\n@@ -1 +1 @@\n-a\n+b\n", 200, "&lt;script&gt;x.py"),
        ("</textarea><script>alert(1)</script>", 400, "not a unified diff"),
    ],
)
def test_wrong_and_hostile_diffs(
    changed: tuple[TestClient, Path], patch: str, status: int, text: str
) -> None:
    page = post(changed[0], status, repo="app", patch=patch)
    assert text in page
    assert "<script>alert" not in page


def test_large_diffs(changed: tuple[TestClient, Path]) -> None:
    client, _ = changed
    lines = "+x\n" * 100_000
    page = post(client, repo="app", patch=f"--- a/m.py\n+++ b/m.py\n@@ -0,0 +1,100000 @@\n{lines}")
    assert "m.sell" in tree(page)
    assert len(page) < 200_000
    answer = client.post(
        "/impact", content=b"patch=" + b"x" * MAX_BODY_BYTES, headers={"origin": f"http://{HOST}"}
    )
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("symbols=no.such.name", 404, "no symbol is called"),
        ("symbols=" + "+".join(f"x{at}" for at in range(51)), 400, "51 symbols, the maximum is 50"),
        ("symbols=shop.money.TAX&depth=11", 400, "depth must be 1-10"),
        ("symbols=shop.money.TAX&depth=²", 400, "depth must be 1-10"),
        ("symbols=shop.money.TAX&repo=nope", 404, "known: depot, flask, shop"),
        ("symbols=shop.money.TAX&diff=main", 400, "the page shows one change"),
    ],
)
def test_wrong_input(client: TestClient, query: str, status: int, text: str) -> None:
    assert text in get_page(client, f"/impact?{query}", status)


def test_a_form_of_another_site_is_refused(changed: tuple[TestClient, Path]) -> None:
    answer = changed[0].post("/impact", data={"patch": PATCH}, headers={"origin": "http://evil.example"})
    assert answer.status_code == 403


def test_the_tree_counts_and_bounds_users() -> None:
    def row(symbol: str, via: str, test: bool = False) -> dict[str, object]:
        return {"symbol": symbol, "via": via, "test": test, "kind": "FUNCTION"}

    rows = [row(f"m.f{at}", "m.x") for at in range(MAX_USERS + 5)]
    rows += [row("t.test_a", "m.f0", True), row("t.test_b", "m.f0", True), row("t.helper", "t.test_a", True)]
    (root,) = impact_tree(rows)
    assert (root.total, root.tests, root.more, len(root.users)) == (MAX_USERS + 8, 2, 5, MAX_USERS)
    first = root.users[0]
    assert isinstance(first, Branch)
    assert (first.total, first.tests) == (3, 2)
    assert [user.symbol for user in first.users] == ["t.test_a", "t.test_b"]
    assert first.users[0].users[0].symbol == "t.helper"
