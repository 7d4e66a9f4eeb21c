from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.query.answers import Answer
from codeanatomy.query.lake import Lake
from codeanatomy.query.walks.test_code import is_test

STEPS, VALUES, LIMITS = (f"shop/paths/{name}.py" for name in ("steps", "values", "limits"))
TESTS = "tests/test_paths.py"


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def rows(answer: Answer) -> list[tuple[int, str, str, str, int]]:
    return [(row["depth"], row["symbol"], row["relation"], row["path"], row["line"]) for row in answer]


def test_callers_and_overriders_nearest_first(lake: Lake) -> None:
    found = lake.impact("paths.steps.finish")
    assert rows(found) == [
        (1, "shop.paths.steps.Box.open", "CALL_GRAPH", STEPS, 44),
        (1, "shop.paths.steps.first", "CALL_GRAPH", STEPS, 12),
        (1, "shop.paths.steps.second", "CALL_GRAPH", STEPS, 16),
        (2, "shop.paths.steps.Crate.open", "OVERRIDES", STEPS, 48),
        (2, "shop.paths.steps.start", "CALL_GRAPH", STEPS, 7),
    ]
    assert found.notes == ("no test reaches it",)


def test_a_class_with_all_that_is_inside_of_it(lake: Lake) -> None:
    found = lake.impact("paths.steps.Box")
    assert rows(found) == [
        (1, "shop.paths.steps.Crate", "INHERITS", STEPS, 47),
        (1, "shop.paths.steps.Crate.open", "OVERRIDES", STEPS, 48),
        (1, "shop.paths.steps.pack", "CALL_GRAPH", STEPS, 53),
        (2, "shop.paths.steps.send", "CALL_GRAPH", STEPS, 57),
        (3, "shop.paths.steps.near", "CALL_GRAPH", STEPS, 65),
        (3, "shop.paths.values.idle", "CALL_GRAPH", VALUES, 48),
        (4, "shop.paths.steps.far", "CALL_GRAPH", STEPS, 61),
        (5, "tests.test_paths", "IMPORTS_NAME", TESTS, 2),
        (5, "tests.test_paths.expected", "CALL_GRAPH", TESTS, 14),
        (5, "tests.test_paths.test_far", "CALL_GRAPH", TESTS, 10),
    ]
    assert [row["test"] for row in found] == [False] * 7 + [True] * 3
    # `expected` is test code, but no test.
    assert found.notes == ("tests that reach it: 1, the nearest: tests.test_paths.test_far (depth 5)",)


def test_only_so_far(lake: Lake) -> None:
    assert [row[1] for row in rows(lake.impact("paths.steps.send", depth=1))] == [
        "shop.paths.steps.near",
        "shop.paths.values.idle",
    ]
    beyond = "beyond depth 1: 4 more definitions, tests among them: 1; use --depth 3 to list them"
    assert lake.impact("paths.steps.send", depth=1).notes == ("no test reaches it within depth 1", beyond)


def test_users_of_a_variable_here_and_in_other_modules(lake: Lake) -> None:
    found = lake.impact("paths.values.LIMIT")
    assert rows(found) == [
        (1, "shop.paths.limits", "IMPORTS_NAME", LIMITS, 3),
        (1, "shop.paths.limits.twice", "REFERS_TO", LIMITS, 13),
        (1, "shop.paths.values.bounded", "READS", VALUES, 44),
        (2, "tests.test_paths", "IMPORTS_NAME", TESTS, 1),
        (2, "tests.test_paths.test_twice", "CALL_GRAPH", TESTS, 6),
    ]
    assert [row["via"] for row in found][-2:] == ["shop.paths.limits.twice"] * 2


def test_what_a_decorator_decorates_is_a_user_of_it(lake: Lake) -> None:
    assert rows(lake.impact("paths.limits.marked", depth=1)) == [
        (1, "shop.paths.limits", "CALL_GRAPH", LIMITS, 11),
        (1, "shop.paths.limits.twice", "REFERS_TO", LIMITS, 11),
    ]


def test_a_cycle_ends(lake: Lake) -> None:
    assert rows(lake.impact("paths.steps.around", depth=50)) == [
        (1, "shop.paths.steps.again", "CALL_GRAPH", STEPS, 28)
    ]


def test_users_of_something_outside(lake: Lake) -> None:
    found = lake.impact("json.dumps", depth=1, repo_id="shop")
    assert (1, "shop.paths.steps.finish", "CALL_GRAPH", STEPS, 20) in rows(found)
    assert (1, "shop.cart.print_bill", "CALL_GRAPH", "shop/cart.py", 52) in rows(found)


def test_several_symbols_at_once(lake: Lake) -> None:
    found = lake.impact("paths.steps.first", "paths.steps.near", depth=1)
    assert rows(found) == [
        (1, "shop.paths.steps.far", "CALL_GRAPH", STEPS, 61),
        (1, "shop.paths.steps.start", "CALL_GRAPH", STEPS, 7),
    ]


def test_nobody_uses_it(lake: Lake) -> None:
    found = lake.impact("test_far")
    assert found.total == 0
    assert found.notes == ("no test reaches it",)


def test_a_module_with_all_that_is_inside_of_it(lake: Lake) -> None:
    found = rows(lake.impact("shop.paths.limits", depth=1))
    assert found == [
        (1, "tests.test_paths", "IMPORTS_NAME", TESTS, 1),
        (1, "tests.test_paths.test_twice", "CALL_GRAPH", TESTS, 6),
    ]


def test_a_package_with_all_that_is_below_it(lake: Lake) -> None:
    """Users outside of it; those of its `__init__` alone would be none."""
    found = lake.impact("shop.paths", depth=1)
    assert {row["path"] for row in found} == {TESTS}
    assert {row["symbol"] for row in found} == {
        "tests.test_paths",
        *(f"tests.test_paths.{name}" for name in ("expected", "test_far", "test_twice")),
    }
    # It has no `__init__.py`.
    outside = lake.impact("flask.sansio", depth=1).rows
    assert "flask.app.Flask" in {row["symbol"] for row in outside}
    assert not [row for row in outside if row["symbol"].startswith("flask.sansio.")]


def test_what_uses_a_class_in_a_function_that_is_a_whole_file(lake: Lake) -> None:
    rows = lake.impact("shop.ends.boxes.Parcel", depth=1).rows
    assert "shop.ends.whole.wrap" in {row["symbol"] for row in rows}
    assert "shop.ends.whole" not in {row["symbol"] for row in rows}


@pytest.mark.parametrize(
    ("path", "name", "test"),
    [
        ("tests/conftest.py", "tests.conftest.lake", True),
        ("pkg/test/tools.py", "pkg.test.tools", True),
        ("conftest.py", "conftest.fixture", True),
        ("pkg/cart_test.py", "pkg.cart_test.run", True),
        ("pkg/cart.py", "pkg.cart.test_run", True),
        ("pkg/cart.py", "pkg.cart.TestCart.run", True),
        ("pkg/cart.py", "pkg.cart.Test", True),
        ("pkg/cart.py", "pkg.cart.Testament.read", False),
        ("pkg/test_cart.pyi", "pkg.test_cart.run", True),
        ("conftest.pyi", "conftest.fixture", True),
        ("pkg/testing.py", "pkg.testing.client", False),
        ("pkg/latest/fastest.py", "pkg.latest.fastest.attest", False),
        ("", "json.dumps", False),
    ],
)
def test_test_code_is_told_by_path_and_name(path: str, name: str, test: bool) -> None:
    assert is_test(path, name) is test
