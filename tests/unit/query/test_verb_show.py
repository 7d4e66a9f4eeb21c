from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.lake import Lake
from codeanatomy.query.verbs.show import signature


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def test_a_method(lake: Lake) -> None:
    (row,) = lake.show("shop.money.Price.with_tax")
    assert row["signature"] == "def with_tax(self, rate: float=TAX) -> 'Price'"
    assert row["docstring"] == "The price with tax on it."
    assert (row["path"], row["line"], row["kind"], row["subkind"]) == (
        "shop/money.py",
        22,
        "FUNCTION",
        "method",
    )
    assert (row["callers"], row["callees"], row["refs"]) == (
        lake.callers("shop.money.Price.with_tax").total,
        lake.callees("shop.money.Price.with_tax").total,
        lake.refs("shop.money.Price.with_tax").total,
    )


@pytest.mark.parametrize(
    "name", ["shop.cart.total", "shop.money.Price", "flask.Flask", "flask.json", "json.dumps"]
)
def test_counts_are_those_of_the_verbs(lake: Lake, name: str) -> None:
    repo_id = "shop" if name.startswith("shop") else "flask"
    (row,) = lake.show(name, repo_id=repo_id)
    for verb in ("callers", "callees", "refs"):
        assert row[verb] == lake.ask(verb, name, repo_id=repo_id).total, verb


def test_a_class(lake: Lake) -> None:
    (row,) = lake.show("Discount")
    assert (row["signature"], row["members"]) == ("class Discount(Price)", 1)
    (price,) = lake.show("shop.money.Price")
    assert price["docstring"] == 'An amount of money.\n\n<script>alert("not markup")</script>'
    assert price["callees"] == lake.callees("shop.money.Price").total > 0


def test_what_has_no_head(lake: Lake) -> None:
    (module,) = lake.show("shop.cart")
    assert (module["signature"], module["docstring"]) == (
        None,
        "Carts: classes, methods, callbacks, a cycle.",
    )
    (variable,) = lake.show("shop.money.TAX")
    assert (variable["signature"], variable["line"]) == (None, 7)
    (outside,) = lake.show("json.dumps", repo_id="shop")
    assert (outside["path"], outside["signature"], outside["kind"]) == (None, None, "QUALIFIED_NAME")


@pytest.mark.parametrize(
    ("source", "head"),
    [
        (
            "def f(a, /, b: int=2, *c, d=(1, 2), **e) -> int: ...",
            "def f(a, /, b: int=2, *c, d=(1, 2), **e) -> int",
        ),
        ("async def f(): pass", "async def f()"),
        ("class A(B, metaclass=C):\n    x = 1", "class A(B, metaclass=C)"),
        ("lambda x: x", "lambda x: x"),
        # Not of this interpreter: the first line.
        ("def f[T](x) ->\n  {{", "def f[T](x) ->"),
        ('def f(x="a:\\n"):\n    pass', "def f(x='a:\\n')"),
        # A span that does not fit the text.
        ("", None),
    ],
)
def test_heads(source: str, head: str | None) -> None:
    text = f"ü = 1\n{source}\n"
    start = len(b"\xc3\xbc = 1\n")
    assert signature(text.encode(), start, start + len(source.encode())) == head
