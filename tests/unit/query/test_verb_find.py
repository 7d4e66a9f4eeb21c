from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.errors import UnknownName
from codeanatomy.query.lake import Lake


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def found(lake: Lake, name: str, **options: object) -> list[tuple[str, str, str | None, int | None]]:
    return [
        (row["symbol"], row["kind"], row["path"], row["line"])
        for row in lake.ask("find", name, limit=1000, **options)
    ]


def test_all_that_have_a_name(lake: Lake) -> None:
    assert found(lake, "total") == [
        ("depot.total", "FUNCTION", "depot.py", 11),
        ("shop.cart.Cart.total", "FUNCTION", "shop/cart.py", 28),
        ("shop.cart.total", "FUNCTION", "shop/cart.py", 11),
    ]


def test_of_one_repository_and_kind(lake: Lake) -> None:
    assert found(lake, "Price", repo_id="depot") == [("depot.Price", "CLASS", "depot.py", 6)]
    assert found(lake, "Price", kind="class", repo_id="shop") == [
        ("shop.money.Price", "CLASS", "shop/money.py", 10)
    ]
    assert found(lake, "Price", kind="function") == []


def test_variables_that_the_compiler_adds_are_no_members(lake: Lake) -> None:
    assert found(lake, "flask.app.Flask.__class__*") == []
    assert found(lake, "flask.app.Flask.*")


def test_patterns(lake: Lake) -> None:
    names = found(lake, "p?ng", repo_id="shop")
    assert [row[0] for row in names] == ["shop.cart.ping", "shop.cart.pong"]
    assert ("shop.money.TAX", "BINDING", "shop/money.py", 7) in found(lake, "T*", repo_id="shop")
    dotted = found(lake, "cart.Cart.*", repo_id="shop")
    assert [row[0] for row in dotted] == [
        "shop.cart.Cart.__init__",
        "shop.cart.Cart.add",
        "shop.cart.Cart.checkout",
        "shop.cart.Cart.prices",
        "shop.cart.Cart.total",
    ]
    # A character that LIKE would take for a pattern is itself.
    assert found(lake, "p_ng*", repo_id="shop") == []
    assert found(lake, "%*", repo_id="shop") == []


def test_a_name_through_a_re_export(lake: Lake) -> None:
    assert found(lake, "shop.Cart") == [("shop.cart.Cart", "CLASS", "shop/cart.py", 19)]


def test_nothing_is_an_answer(lake: Lake) -> None:
    answer = lake.find("no_such_name_at_all")
    assert (answer.rows, answer.total, answer.cut, answer.more) == ((), 0, 0, None)
    assert lake.find("chekout", repo_id="shop").notes == ("closest: shop.cart.Cart.checkout",)
    assert lake.find("xxxxxxxxxx", repo_id="shop").notes == ()
    in_no_file = ("no file 'crt.py' is in the lake", "closest: shop/cart.py")
    assert lake.find("crt.py:1", repo_id="shop").notes == in_no_file


def test_an_unknown_kind_is_refused(lake: Lake) -> None:
    with pytest.raises(UnknownName, match="kind"):
        lake.find("x", kind="thing")


def test_a_limit_says_what_was_cut(lake: Lake) -> None:
    answer = lake.find("*", limit=3)
    assert len(answer.rows) == 3
    assert answer.total > 500
    assert answer.cut == answer.total - 3
    assert answer.more == f"--limit {answer.total}"
    assert len({row["symbol_id"] for row in lake.find("*", limit=answer.total)}) == answer.total
