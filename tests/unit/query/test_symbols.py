"""Names that people type, over the labelled repositories of tests/cases/ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.errors import AmbiguousSymbol, UnknownSymbol, UsageError
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, nodes
from codeanatomy.query.symbols import KINDS, resolve, symbols_named, with_binding_lines
from support.ask_lake import reader_of


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


@pytest.mark.parametrize(
    ("typed", "symbol", "place", "kind", "method"),
    [
        ("shop.cart.Cart.add", "shop.cart.Cart.add", "shop/cart.py:25", "FUNCTION", "qualified name"),
        ("Cart.add", "shop.cart.Cart.add", "shop/cart.py:25", "FUNCTION", "suffix"),
        ("print_bill", "shop.cart.print_bill", "shop/cart.py:51", "FUNCTION", "suffix"),
        ("shop.Cart", "shop.cart.Cart", "shop/cart.py:19", "CLASS", "re-export"),
        ("shop.Cart.add", "shop.cart.Cart.add", "shop/cart.py:25", "FUNCTION", "re-export"),
        ("shop.sum_of", "shop.cart.total", "shop/cart.py:11", "FUNCTION", "re-export"),
        ("shop.TAX", "shop.money.TAX", "shop/money.py:7", "BINDING", "star import"),
        ("shop.Price.with_tax", "shop.money.Price.with_tax", "shop/money.py:22", "FUNCTION", "star import"),
        ("shop.cart.Price", "shop.money.Price", "shop/money.py:10", "CLASS", "re-export"),
        ("Discount.with_tax", "shop.money.Price.with_tax", "shop/money.py:22", "FUNCTION", "inherited"),
        ("shop/cart.py:26", "shop.cart.Cart.add", "shop/cart.py:25", "FUNCTION", "place"),
        ("shop/cart.py:23", "shop.cart.Cart.__init__", "shop/cart.py:22", "FUNCTION", "place"),
        ("shop/cart.py:5", "shop.cart", "shop/cart.py:1", "MODULE", "place"),
        ("money.TAX", "shop.money.TAX", "shop/money.py:7", "BINDING", "suffix"),
        ("TAX", "shop.money.TAX", "shop/money.py:7", "BINDING", "suffix"),
        (
            "shop.money.Price.currency",
            "shop.money.Price.currency",
            "shop/money.py:16",
            "BINDING",
            "qualified name",
        ),
        ("Price.with_tax.rate", "shop.money.Price.with_tax.rate", "shop/money.py:22", "PARAMETER", "suffix"),
        ("größe", "shop.cart.größe", "shop/cart.py:56", "FUNCTION", "suffix"),
        ("gro\u0308ße", "shop.cart.größe", "shop/cart.py:56", "FUNCTION", "suffix"),
        ("shop.money", "shop.money", "shop/money.py:1", "MODULE", "qualified name"),
        ("shop", "shop", "shop/__init__.py:1", "MODULE", "qualified name"),
    ],
)
def test_a_name_means_one_symbol(
    reader: LightReader, typed: str, symbol: str, place: str, kind: str, method: str
) -> None:
    (found,) = with_binding_lines(reader, [resolve(reader, typed, "shop")])
    assert (found.symbol, found.place, found.kind, found.method) == (symbol, place, kind, method)


def test_what_is_only_used_is_found_outside(reader: LightReader) -> None:
    found = resolve(reader, "json.dumps", "shop")
    assert (found.symbol, found.kind, found.path) == ("json.dumps", "QUALIFIED_NAME", None)
    assert resolve(reader, "json", "shop").kind == "EXTERNAL_MODULE"


def test_what_is_defined_comes_before_what_is_used(reader: LightReader) -> None:
    # flask has flask.json.dumps, and calls json.dumps: a whole name is meant as it is.
    assert resolve(reader, "json.dumps", "flask").symbol == "json.dumps"
    assert {each.symbol for each in symbols_named(reader, "JSONProvider.dumps", "flask")} == {
        "flask.json.provider.JSONProvider.dumps"
    }


def test_an_id_means_its_node(reader: LightReader) -> None:
    known = resolve(reader, "Cart.add", "shop")
    assert resolve(reader, known.ids[0]).symbol == known.symbol


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "TYPE_ALIAS"])
def test_the_id_of_every_kind_of_symbol_is_understood(reader: LightReader, kind: str) -> None:
    """Those with a key, a name, and a repository and a name."""
    rows = reader.rows(Query("SELECT n.node_id FROM n", {"n": nodes((kind,))}, order=("node_id",)), limit=3)
    assert rows
    for node_id, _ in rows:
        symbol = resolve(reader, f" {node_id} ")
        assert (symbol.method, symbol.kind) == ("id", kind)
        assert node_id in symbol.ids


def test_an_ambiguous_name_has_candidates(reader: LightReader) -> None:
    with pytest.raises(AmbiguousSymbol) as caught:
        resolve(reader, "total")
    named = {(row["symbol"], row["repo_id"], row["path"], row["line"]) for row in caught.value.candidates}
    assert named == {
        ("depot.total", "depot", "depot.py", 11),
        ("shop.cart.Cart.total", "shop", "shop/cart.py", 28),
        ("shop.cart.total", "shop", "shop/cart.py", 11),
    }
    assert caught.value.total == 3
    assert resolve(reader, "total", "depot").symbol == "depot.total"


def test_an_unknown_name_has_the_closest_ones(reader: LightReader) -> None:
    with pytest.raises(UnknownSymbol) as caught:
        resolve(reader, "chekout", "shop")
    assert caught.value.candidates[0]["symbol"] == "shop.cart.Cart.checkout"
    with pytest.raises(UnknownSymbol) as far:
        resolve(reader, "xxxxxxxxxxxxxxxxxxxxxxx", "shop")
    assert far.value.candidates == ()


@pytest.mark.parametrize(
    ("typed", "closest"),
    [
        ("Crt.totl", "shop.cart.Cart.total"),
        # No such owner: what has such a name.
        ("nowhere.totl", "shop.cart.total"),
        # Every name of one or two letters differs from it by one.
        ("q", None),
        # As far from `checkout` as it is long.
        ("cutout_box", None),
    ],
)
def test_only_what_is_near_is_suggested(reader: LightReader, typed: str, closest: str | None) -> None:
    with pytest.raises(UnknownSymbol) as caught:
        resolve(reader, typed, "shop")
    names = [row["symbol"] for row in caught.value.candidates]
    assert (closest in names) if closest else names == []


@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        ("nofile.py:1", "no file 'nofile.py' is in the lake", "name a file by its path below the repository"),
        ("shop/crt.py:3", "no file 'shop/crt.py' is in the lake", "closest: shop/cart.py"),
        ("crt.py", "no file 'crt.py' is in the lake", "closest: shop/cart.py"),
        ("shop/cart.pz:3:5", "no file 'shop/cart.pz' is in the lake", "closest: shop/cart.py"),
        (
            "shop/cart.py:9999",
            "shop/cart.py has fewer than 9999 lines, or no code",
            "name a line of it, or shop/cart.py",
        ),
    ],
)
def test_a_place_that_is_not_there(reader: LightReader, typed: str, message: str, hint: str) -> None:
    with pytest.raises(UnknownSymbol) as caught:
        resolve(reader, typed, "shop")
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_definitions_of_one_name_are_one_symbol(reader: LightReader) -> None:
    # The function, and the variable it is bound to.
    found = resolve(reader, "shop.cart.total")
    assert [each.split(":")[0] for each in found.ids] == ["function", "binding"]


@pytest.mark.parametrize("typed", ["", "   ", "x" * 1001, "x" * 1_000_000, ".".join("a" * 200), "\udcff"])
def test_what_is_no_name_is_refused(reader: LightReader, typed: str) -> None:
    with pytest.raises(UsageError):
        resolve(reader, typed)


@pytest.mark.parametrize(
    "typed", ["'", '"', "a'; DROP TABLE n; --", "%", "_", "\\", "a\x00b", "..", ".", "🐍"]
)
def test_odd_names_are_unknown(reader: LightReader, typed: str) -> None:
    with pytest.raises(UnknownSymbol):
        resolve(reader, typed)
