"""Suggestions by a part of a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer.search import SearchIndex


@pytest.fixture(scope="module")
def index(ask_lake: Path) -> SearchIndex:
    return SearchIndex(Lake.open(ask_lake).reader)


def test_a_whole_name_comes_first(index: SearchIndex) -> None:
    first = index.suggest("flask")[:3]
    assert {each.symbol for each in first} >= {"flask.app.Flask"}
    assert index.suggest("flask.app.Flask")[0].symbol == "flask.app.Flask"


def test_definitions_with_one_page_are_listed_once(ask_lake: Path, index: SearchIndex) -> None:
    query = "SELECT symbol FROM symbols WHERE kind = 'FUNCTION' GROUP BY symbol, repo_id, path"
    rows = Lake.open(ask_lake).sql(f"{query} HAVING count(*) > 1").rows
    assert rows
    for symbol in [str(row["symbol"]) for row in rows][:5]:
        listed = [each.path for each in index.suggest(symbol, 100) if each.symbol == symbol]
        assert listed
        assert len(listed) == len(set(listed))


def test_every_term_must_occur_in_any_case(index: SearchIndex) -> None:
    (first, *_) = index.suggest("MAKE app.fla resp")
    assert first.symbol == "flask.app.Flask.make_response"
    assert (first.kind, first.repo_id) == ("FUNCTION", "flask")
    assert index.suggest("make nonsense") == []


def test_files_are_suggested_by_their_path(index: SearchIndex) -> None:
    assert any(each.kind == "FILE" and each.symbol == "shop/cart.py" for each in index.suggest("shop/cart"))


def test_variables_of_functions_are_left_out(index: SearchIndex) -> None:
    kinds = {each.kind for each in index.suggest("a", limit=5000)}
    assert "PARAMETER" not in kinds
    assert "BINDING" in kinds


def test_one_repository(index: SearchIndex) -> None:
    assert {each.repo_id for each in index.suggest("cart", limit=100, repo_id="depot")} <= {"depot"}


@pytest.mark.parametrize("text", ["", "   ", "%", "'; DROP TABLE names; --", "x" * 100_000, "\0", "😀"])
def test_any_text_is_answered(index: SearchIndex, text: str) -> None:
    size = len(index)
    assert isinstance(index.suggest(text), list)
    assert len(index) == size > 900
