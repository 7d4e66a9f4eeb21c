from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Answer
from codeanatomy.query.lake import Lake
from support.light_builds import clean_lake

GIVE, TAKE, KEEP = (f"shop.paths.values.{name}" for name in ("give", "take", "keep"))


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def rows(answer: Answer) -> list[tuple[int, int, str, str, str]]:
    return [(row["depth"], row["line"], row["relation"], row["symbol"], row["inside"]) for row in answer]


def test_a_parameter_through_copies_and_calls(lake: Lake) -> None:
    found = lake.flows("values.give.amount")
    assert rows(found) == [
        (1, 9, "COPIES", f"{GIVE}.copied", GIVE),
        (1, 10, "PASSES_TO", f"{TAKE}.two", GIVE),
        (1, 11, "RETURNED", GIVE, GIVE),
        (2, 10, "PASSES_TO", f"{TAKE}.one", GIVE),
        (2, 15, "PASSES_TO", f"{KEEP}.value", TAKE),
        # What `value` gets in line 19 is another value.
        (3, 19, "REACHES", f"{KEEP}.value", KEEP),
    ]
    by_line = {(row["line"], row["relation"]): row for row in found}
    assert by_line[9, "COPIES"]["method"] == "assignment"
    assert by_line[11, "RETURNED"]["method"] == "return"
    assert by_line[11, "RETURNED"]["kind"] == "FUNCTION"
    assert by_line[15, "PASSES_TO"]["via"] == f"{TAKE}.two"
    # A way is trusted as much as its least trusted step.
    assert by_line[19, "REACHES"]["confidence"] == 0.9
    assert "not followed" in found.notes[0]


def test_only_so_far(lake: Lake) -> None:
    assert {row[0] for row in rows(lake.flows("values.give.amount", depth=1))} == {1}


def test_recursion_ends(lake: Lake) -> None:
    loop = "shop.paths.values.loop"
    assert rows(lake.flows("values.loop.n", depth=50)) == [
        (1, 24, "REACHES", f"{loop}.n", loop),
        (1, 25, "PASSES_TO", f"{loop}.n", loop),
    ]


def test_into_an_attribute_and_out_of_it(lake: Lake) -> None:
    shelf = "shop.paths.values.Shelf"
    assert rows(lake.flows("values.Shelf.__init__.item")) == [
        (1, 30, "COPIES", f"{shelf}.item", f"{shelf}.__init__"),
        (2, 33, "PASSES_TO", f"{KEEP}.value", f"{shelf}.show"),
        (3, 19, "REACHES", f"{KEEP}.value", KEEP),
    ]
    assert rows(lake.flows("values.Shelf.item", depth=1)) == [
        (1, 33, "PASSES_TO", f"{KEEP}.value", f"{shelf}.show"),
    ]


def test_into_a_function_inside(lake: Lake) -> None:
    inner = "shop.paths.values.outer.inner"
    assert rows(lake.flows("values.outer.x", depth=1)) == [
        (1, 38, "PASSES_TO", f"{KEEP}.value", inner),
    ]


def test_a_variable_of_a_module_here_and_elsewhere(lake: Lake) -> None:
    limit, twice = "shop.paths.values.LIMIT", "shop.paths.limits.twice"
    found = lake.flows("values.LIMIT", depth=1)
    assert rows(found) == [
        (1, 13, "PASSES_TO", f"{KEEP}.value", twice),
        (1, 13, "REFERS_TO", limit, twice),
        (1, 44, "PASSES_TO", f"{KEEP}.value", "shop.paths.values.bounded"),
    ]
    assert [row["path"] for row in found] == ["shop/paths/limits.py"] * 2 + ["shop/paths/values.py"]


def test_a_variable_that_an_expression_assigns(lake: Lake) -> None:
    idle = "shop.paths.values.idle"
    assert rows(lake.flows("values.idle.order")) == [
        (1, 49, "RETURNED", idle, idle),
    ]


def test_inside_of_a_function_that_is_a_whole_file(lake: Lake) -> None:
    rows = lake.flows("ends.whole.wrap.paper", depth=1).rows
    assert len(rows) == 2
    assert {row["inside"] for row in rows} == {"shop.ends.whole.wrap"}


def test_a_value_that_nobody_uses(lake: Lake) -> None:
    assert lake.flows("values.idle.unused").total == 0


def test_a_function_has_no_value_of_its_own(lake: Lake) -> None:
    with pytest.raises(UsageError, match="not a parameter or variable") as refused:
        lake.flows("values.take")
    assert refused.value.hint == f"its parameters: {TAKE}.one, {TAKE}.two"
    with pytest.raises(UsageError, match="not a parameter or variable"):
        lake.flows("json.dumps", repo_id="shop")


def test_values_pass_through_fields_and_annotated_receivers(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "m.py").write_text(
        "from dataclasses import dataclass\n\n\n"
        "class Db:\n    def move(self, a: int, to: int) -> int:\n        return a + to\n\n\n"
        "@dataclass\nclass Item:\n    size: int\n\n\n"
        "def use(db: Db, amount: int) -> None:\n    db.move(1, to=amount)\n    Item(size=amount)\n"
    )
    assert clean_lake(tmp_path / "lake", {"app": tmp_path / "app"}).status == "succeeded"
    lake = Lake.open(tmp_path / "lake")
    assert {(row["line"], row["symbol"]) for row in lake.flows("m.use.amount") if row["depth"] == 1} == {
        (15, "m.Db.move.to"),
        (16, "m.Item.size"),
    }
    origins = [row for row in lake.flows("m.Item.size", direction="from") if row["depth"] == 1]
    assert [(row["line"], row["symbol"]) for row in origins] == [(16, "m.use.amount")]
    # An annotation is a hint: its calls pass arguments with its confidence.
    (row,) = (each for each in lake.refs("m.Db.move.to") if each["line"] == 15)
    assert row["confidence"] == 0.3
