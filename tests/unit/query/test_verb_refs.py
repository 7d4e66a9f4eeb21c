from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.answers import Answer
from codeanatomy.query.lake import Lake


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def places(answer: Answer) -> list[tuple[str, int, str, str | None]]:
    """Those in the files of the shop that all tests share."""
    shared = ("shop/__init__.py", "shop/cart.py", "shop/money.py", "tests/test_cart.py")
    return [
        (row["path"], row["line"], row["relation"], row["inside"]) for row in answer if row["path"] in shared
    ]


def test_a_function_where_it_is_named_and_imported(lake: Lake) -> None:
    assert places(lake.refs("shop.cart.total")) == [
        ("shop/__init__.py", 3, "IMPORTS_NAME", "shop"),
        ("shop/cart.py", 29, "REFERS_TO", "shop.cart.Cart.total"),
    ]
    assert places(lake.refs("shop.cart.sell")) == [
        ("tests/test_cart.py", 1, "IMPORTS_NAME", "tests.test_cart"),
        ("tests/test_cart.py", 5, "REFERS_TO", "tests.test_cart.test_sell"),
        ("tests/test_cart.py", 10, "REFERS_TO", "tests.test_cart.TestSell.test_nothing"),
    ]


def test_a_method_where_an_attribute_means_it(lake: Lake) -> None:
    assert places(lake.refs("Cart.checkout")) == [("shop/cart.py", 48, "REFERS_TO", "shop.cart.sell")]


def test_a_variable_where_it_is_written_and_read(lake: Lake) -> None:
    rows = places(lake.refs("shop.money.TAX"))
    assert ("shop/money.py", 7, "WRITES", "shop.money") in rows
    # A default value is read where the function is defined; the place is inside of the function all the same.
    assert ("shop/money.py", 22, "READS", "shop.money.Price.with_tax") in rows


def test_inside_of_a_function_that_is_a_whole_file(lake: Lake) -> None:
    rows = [row for row in lake.refs("shop.ends.boxes.Parcel") if row["path"] == "shop/ends/whole.py"]
    assert [(row["line"], row["inside"]) for row in rows] == [
        (2, "shop.ends.whole.wrap"),
        (4, "shop.ends.whole.wrap"),
    ]


def test_a_place_is_told_once(lake: Lake) -> None:
    rows = lake.refs("flask.Flask", limit=1000).rows
    spots = [(row["path"], row["line"], row["inside"]) for row in rows]
    assert len(rows) == 47
    assert len(set(spots)) > 30


def test_outside_and_unused(lake: Lake) -> None:
    assert ("shop/cart.py", 52) in {
        (row["path"], row["line"]) for row in lake.refs("json.dumps", repo_id="shop")
    }
    assert lake.refs("shop.cart.größe").total == 0
