from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.answers import Answer
from codeanatomy.query.checks.callgraph import call_graphs
from codeanatomy.query.lake import Lake
from codeanatomy.query.verbs import calls


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def named(answer: Answer) -> list[tuple[str, str | None, int | None, int]]:
    return [(row["symbol"], row["path"], row["line"], row["depth"]) for row in answer]


def of_cart(answer: Answer) -> list[tuple[str, str | None, int | None, int]]:
    """Without what other labelled sources add."""
    return [row for row in named(answer) if row[1] in ("shop/cart.py", "shop/money.py", "tests/test_cart.py")]


def test_who_calls_a_function(lake: Lake) -> None:
    assert of_cart(lake.callers("shop.cart.total")) == [("shop.cart.Cart.total", "shop/cart.py", 29, 1)]


def test_who_calls_a_method(lake: Lake) -> None:
    assert of_cart(lake.callers("Cart.checkout")) == [("shop.cart.sell", "shop/cart.py", 48, 1)]


def test_a_callback_is_called_by_who_runs_it(lake: Lake) -> None:
    assert of_cart(lake.callers("print_bill")) == [("shop.cart.Cart.checkout", "shop/cart.py", 33, 1)]


def test_callers_of_callers(lake: Lake) -> None:
    rows = of_cart(lake.callers("shop.cart.Cart.total", depth=3))
    assert rows == [
        ("shop.cart.Cart.checkout", "shop/cart.py", 32, 1),
        ("shop.cart.sell", "shop/cart.py", 48, 2),
        ("tests.test_cart.TestSell.test_nothing", "tests/test_cart.py", 10, 3),
        ("tests.test_cart.test_sell", "tests/test_cart.py", 5, 3),
    ]


def test_a_cycle_ends(lake: Lake) -> None:
    assert named(lake.callers("shop.cart.ping", depth=50)) == [
        ("shop.cart.pong", "shop/cart.py", 41, 1),
        ("shop.cart.ping", "shop/cart.py", 37, 2),
    ]
    assert named(lake.callees("shop.cart.ping", depth=50)) == [
        ("shop.cart.pong", "shop/cart.py", 37, 1),
        ("shop.cart.ping", "shop/cart.py", 41, 2),
    ]


def test_a_class_is_called_where_instances_are_made(lake: Lake) -> None:
    assert of_cart(lake.callers("shop.cart.Cart")) == [("shop.cart.sell", "shop/cart.py", 45, 1)]
    rows = of_cart(lake.callers("shop.money.Price"))
    assert rows == [
        ("shop.cart.sell", "shop/cart.py", 47, 1),
        ("shop.money.Price.with_tax", "shop/money.py", 24, 1),
    ]


def test_what_a_function_calls(lake: Lake) -> None:
    rows = lake.callees("shop.cart.print_bill").rows
    assert [(row["symbol"], row["kind"], row["line"]) for row in rows] == [
        ("builtins.print", "QUALIFIED_NAME", 52),
        ("json.dumps", "QUALIFIED_NAME", 52),
    ]


def test_what_a_class_calls_is_what_is_inside_of_it(lake: Lake) -> None:
    symbols = {row["symbol"] for row in lake.callees("shop.money.Price")}
    assert {"json.dumps", "shop.money.Price.__init__"} <= symbols


def test_who_calls_what_is_outside(lake: Lake) -> None:
    rows = lake.callers("json.dumps", repo_id="shop").rows
    assert [
        (row["symbol"], row["via"]) for row in rows if row["path"] in ("shop/cart.py", "shop/money.py")
    ] == [
        ("shop.cart.print_bill", "json.dumps"),
        ("shop.money.Price.dump", "json.dumps"),
    ]


def test_nobody_is_an_answer(lake: Lake) -> None:
    answer = lake.callers("shop.cart.größe")
    assert (answer.rows, answer.total) == ((), 0)
    assert answer.symbols[0].symbol == "shop.cart.größe"


def test_every_row_is_located_and_trusted(lake: Lake) -> None:
    rows = lake.callers("flask.Flask.make_response", depth=5).rows
    assert len(rows) > 5
    for row in rows:
        assert row["path"]
        assert row["line"] > 0
        assert row["confidence"] in (1, 0.9, 0.7, 0.5, 0.3)
        assert row["method"]


@pytest.mark.parametrize("name", ["json.loads", "flask.wrappers.Response", "flask.json.tag.TagDict"])
def test_trust_is_that_of_the_weakest_call_on_the_way(lake: Lake, name: str) -> None:
    rows = lake.callers(name, depth=6, repo_id="flask").rows
    nearer = {row["symbol"]: row for row in rows}
    further = [row for row in rows if row["depth"] > 1]
    assert further
    for row in further:
        assert row["confidence"] <= nearer[row["via"]]["confidence"]


def test_who_calls_a_maker_is_no_surer_than_the_maker(lake: Lake) -> None:
    """Which class `choose` makes depends on its argument; that `chosen` calls it does not."""
    (first, second) = lake.callers("shop.ends.boxes.Tube", depth=2)
    assert [(row["symbol"], row["via"]) for row in (first, second)] == [
        ("shop.ends.boxes.choose", "shop.ends.boxes.Tube"),
        ("shop.ends.boxes.chosen", "shop.ends.boxes.choose"),
    ]
    (call,) = lake.callers("shop.ends.boxes.choose")
    assert call["confidence"] > first["confidence"] == second["confidence"]


def test_a_function_that_is_a_whole_file_makes_an_instance(lake: Lake) -> None:
    makers = [row for row in lake.callers("shop.ends.boxes.Parcel") if row["path"] == "shop/ends/whole.py"]
    assert [(row["symbol"], row["line"]) for row in makers] == [("shop.ends.whole.wrap", 4)]


def test_the_same_as_the_call_graph(lake: Lake, ask_lake: Path) -> None:
    calls = call_graphs(str(ask_lake), "shop").calls["shop"]
    for caller in ("shop.cart.sell", "shop.cart.Cart.checkout", "shop.money.Discount.dump"):
        rows = [row for row in lake.callees(caller) if row["kind"] != "CLASS"]
        assert {row["symbol"] for row in rows} == set(calls[caller])


@pytest.mark.parametrize("name", ["shop.cart.total", "shop.money.Price", "json.dumps", "shop.cart.ping"])
def test_names_of_many_nodes_are_joined_by_the_engine(
    lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [lake.ask(verb, name, depth=3, repo_id="shop") for verb in ("callers", "callees")]
    monkeypatch.setattr(calls, "MAX_ID_LOOKUPS", 0)
    assert [lake.ask(verb, name, depth=3, repo_id="shop") for verb in ("callers", "callees")] == few
    assert any(answer.rows for answer in few)


def test_a_class_without_constructor_is_a_callee(lake: Lake) -> None:
    """`callers` and `callees` agree about classes, as deep as both go."""
    assert named(lake.callers("shop.paths.keywords.Crate")) == [
        ("shop.paths.keywords.stack", "shop/paths/keywords.py", 39, 1)
    ]
    rows = lake.callees("shop.paths.keywords.stack").rows
    assert [(row["symbol"], row["kind"], row["line"], row["depth"]) for row in rows] == [
        ("shop.paths.keywords.Crate", "CLASS", 39, 1),
        ("shop.paths.keywords.Crate.area", "FUNCTION", 40, 1),
    ]
    rows = lake.callees("tests.test_cart.test_sell", depth=2).rows
    assert ("shop.cart.Cart", 2) in {(row["symbol"], row["depth"]) for row in rows}
