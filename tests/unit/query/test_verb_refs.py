from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.answers import Answer
from codeanatomy.query.checks.verify import verify
from codeanatomy.query.lake import Lake
from support import corpus
from support.callers_and_refs import callers_without_reference
from support.folders import CASES
from support.light_builds import clean_lake
from support.marks import quick


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


def test_a_keyword_is_a_reference_to_the_parameter(lake: Lake) -> None:
    """At the span of its name, so that a rename finds it."""
    rows = lake.refs("shop.paths.keywords.pack.label").rows
    assert [(row["line"], row["kind"], row["relation"], row["role"], row["inside"]) for row in rows] == [
        (9, "NAME_REF", "REFERS_TO", "load", "shop.paths.keywords.pack"),
        (13, "ARGUMENT", "REFERS_TO", "keyword", "shop.paths.keywords.send"),
        (14, "ARGUMENT", "REFERS_TO", "keyword", "shop.paths.keywords.send"),
    ]
    source = (CASES / "ask/shop/shop/paths/keywords.py").read_bytes()
    spans = lake.sql(
        "SELECT e.bstart, e.bend FROM edges e JOIN nodes n ON n.node_id = e.dst_node_id"
        " WHERE e.edge_kind = 'REFERS_TO' AND n.qualname = 'shop.paths.keywords.pack.label'"
        " AND e.role = 'keyword' ORDER BY 1"
    )
    assert [source[row["bstart"] : row["bend"]] for row in spans] == [b"label", b"label"]


def test_calls_that_do_not_name_it_are_listed(lake: Lake) -> None:
    rows = lake.refs("shop.paths.keywords.Scale.__add__").rows
    assert [(row["line"], row["kind"], row["relation"], row["role"]) for row in rows] == [
        (24, "AST_NODE", "CALLS", "operator")
    ]
    rows = lake.refs("shop.paths.keywords.pack").rows
    assert [(row["line"], row["kind"], row["relation"], row["role"]) for row in rows] == [
        (13, "NAME_REF", "REFERS_TO", "load"),
        (14, "NAME_REF", "REFERS_TO", "load"),
        (25, "NAME_REF", "REFERS_TO", "load"),
        (26, "CALLSITE", "CALLS", None),
    ]


@pytest.mark.parametrize("every", quick([9, 1], 0))
def test_every_caller_has_a_reference(lake: Lake, every: int) -> None:
    """Of functions and classes of flask and the shop: `refs` and `callers` have one source."""
    assert callers_without_reference(lake, every) == []


@pytest.mark.system
def test_every_caller_in_requests_has_a_reference(tmp_path: Path) -> None:
    assert clean_lake(tmp_path / "lake", {"requests": corpus.package("requests")}).status == "succeeded"
    assert callers_without_reference(Lake.open(str(tmp_path / "lake"))) == []


def test_names_in_quoted_annotations_are_references(tmp_path: Path) -> None:
    """At the span of the name, so that a rename finds it; a class that is used only there is not dead."""
    text = (
        "from typing import Callable\n"
        "class _State: ...\nclass _Dead: ...\n"
        "def start(hook: Callable[['_State'], bool], states: \"list[_State]\"):\n    return hook, states\n"
        "Hook = Callable[['_State'], bool]\n"
    )
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "job.py").write_text(text, encoding="utf-8")
    assert clean_lake(tmp_path / "lake", {"job": tmp_path / "job"}).status == "succeeded"
    assert not verify(str(tmp_path / "lake")).findings
    lake = Lake.open(str(tmp_path / "lake"))
    rows = lake.refs("job._State").rows
    assert [
        (row["line"], row["relation"], row["inside"], row["confidence"], row["method"]) for row in rows
    ] == [
        (4, "REFERS_TO", "job.start", 0.9, "scope"),
        (4, "REFERS_TO", "job.start", 0.9, "scope"),
        (6, "REFERS_TO", "job", 0.9, "scope"),
    ]
    assert [row["symbol"] for row in lake.unused(kind="class", min_confidence=0.3)] == ["job._Dead"]


def test_outside_and_unused(lake: Lake) -> None:
    assert ("shop/cart.py", 52) in {
        (row["path"], row["line"]) for row in lake.refs("json.dumps", repo_id="shop")
    }
    assert lake.refs("shop.cart.größe").total == 0
