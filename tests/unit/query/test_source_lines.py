"""The text of the source line beside each row, and where symbols are defined."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.ask import VERBS
from codeanatomy.query.lake import Lake
from codeanatomy.query.source_lines import LINE_CHARS, lines_of
from support.light_builds import clean_lake, refreshed

# Form feeds and separators of other standards end no line; lone carriage returns do.
SOURCE = "def used(x):\r\n    return x\x0c\r# \u2028\rdef user():\n\treturn used(1) + used(2)\n"
QUESTIONS = {
    "find": ("shop.cart.*",),
    "callers": ("shop.money.Price",),
    "callees": ("shop.cart.sell",),
    "refs": ("shop.money.TAX",),
    "path": ("shop.cart.sell", "shop.cart.Cart.total"),
    "impact": ("shop.money.Price.with_tax",),
    "flows": ("values.give.amount",),
    "explain": ("shop.cart.sell", "shop.money.Price.with_tax"),
    "unused": (),
    "cycles": (),
    "unresolved": (),
}


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


@pytest.fixture(scope="module")
def shop_lines(ask_lake: Path) -> dict[str, list[str]]:
    shop = ask_lake.parent / "shop"
    return {
        str(path.relative_to(shop)): [line.strip() for line in path.read_text(encoding="utf-8").split("\n")]
        for path in shop.rglob("*.py")
    }


@pytest.mark.parametrize("verb", QUESTIONS)
def test_every_row_with_a_line_has_its_text(verb: str, lake: Lake, shop_lines: dict[str, list[str]]) -> None:
    answer = lake.ask(verb, *QUESTIONS[verb], repo_id="shop", limit=500)
    placed = [row for row in answer if row["line"] is not None]
    assert placed
    assert [row["source"] for row in placed] == [shop_lines[row["path"]][row["line"] - 1] for row in placed]


def test_no_verb_with_lines_is_left_out() -> None:
    # `show` has the signature, `stats` has no lines, and `errors` may be newer than the lake.
    assert set(VERBS) - set(QUESTIONS) == {"show", "stats", "errors"}


@pytest.mark.parametrize("verb", ["callers", "callees", "refs", "path", "impact"])
def test_a_use_also_has_where_its_symbol_is_defined(verb: str, lake: Lake) -> None:
    rows = [row for row in lake.ask(verb, *QUESTIONS[verb], repo_id="shop") if row["defined"]]
    assert rows
    for row in rows:
        assert lake.find(row["symbol"], repo_id="shop").rows[0]["line"] == int(row["defined"].split(":")[1])


def test_variables_are_defined_where_they_are_first_assigned(lake: Lake) -> None:
    defined = {row["symbol"]: row["defined"] for row in lake.flows("values.give.amount", repo_id="shop")}
    assert defined["shop.paths.values.give.copied"] == "shop/paths/values.py:9"
    assert defined["shop.paths.values.take.two"] == "shop/paths/values.py:14"
    assert defined["shop.paths.values.give"] == "shop/paths/values.py:8"


def test_lines_are_those_of_the_build_and_counted_as_python_does(tmp_path: Path) -> None:
    source = tmp_path / "app" / "a.py"
    source.parent.mkdir()
    source.write_text(SOURCE, encoding="utf-8", newline="")
    assert clean_lake(tmp_path / "lake", {"app": source.parent}).status == "succeeded"
    source.write_text("changed = 1\n" * 9, encoding="utf-8")
    answer = Lake.open(str(tmp_path / "lake")).callers("a.used")
    (row,) = answer
    assert (row["line"], row["source"], row["sites"]) == (5, "return used(1) + used(2)", 2)
    assert row["defined"] == "a.py:4"
    assert answer.freshness[0].source_state == "changed"


def test_no_line_of_a_text_that_is_newer_than_the_graph(tmp_path: Path) -> None:
    source = tmp_path / "app" / "a.py"
    source.parent.mkdir()
    source.write_text(SOURCE, encoding="utf-8", newline="")
    assert clean_lake(tmp_path / "lake", {"app": source.parent}).status == "succeeded"
    source.write_text(f"# new\n{SOURCE}", encoding="utf-8", newline="")
    assert refreshed(tmp_path / "lake", {"app": source.parent}, until="normalize").status == "succeeded"
    answer = Lake.open(str(tmp_path / "lake")).callers("a.used")
    assert not answer.coverage[0].graph
    assert [row["source"] for row in answer] == [None]


def test_long_lines_are_cut() -> None:
    line = "x" * LINE_CHARS
    assert lines_of(line, {1}) == {1: line}
    assert lines_of(f"{line}y", {1}) == {1: f"{line}..."}


def test_call_sites_are_counted(lake: Lake) -> None:
    sites = {row["symbol"]: row["sites"] for row in lake.callees("shop.cart.sell", repo_id="shop")}
    assert sites["shop.cart.Cart.add"] == 1
    by_name = {row["symbol"]: row for row in lake.callers("flask.json.dumps", repo_id="flask")}
    assert all(row["sites"] >= 1 for row in by_name.values())


def test_a_row_without_a_line_stays_as_it_is(lake: Lake) -> None:
    answer = lake.find("json.dumps", repo_id="shop")
    assert [(row["kind"], row["line"], row["source"]) for row in answer] == [("QUALIFIED_NAME", None, None)]
