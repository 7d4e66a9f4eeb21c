from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Answer
from codeanatomy.query.lake import Lake

STEPS = "shop/paths/steps.py"


@pytest.fixture(scope="module")
def lake(ask_lake: Path) -> Lake:
    return Lake.open(str(ask_lake))


def steps(answer: Answer) -> list[tuple[str, str, str, int]]:
    """What is reached from what, and where."""
    assert [row["depth"] for row in answer] == list(range(1, len(answer) + 1))
    return [(row["via"], row["symbol"], row["path"], row["line"]) for row in answer]


def test_of_two_paths_of_one_length_the_first_by_name(lake: Lake) -> None:
    found = lake.path("paths.steps.start", "json.dumps")
    assert steps(found) == [
        ("shop.paths.steps.start", "shop.paths.steps.first", STEPS, 7),
        ("shop.paths.steps.first", "shop.paths.steps.finish", STEPS, 12),
        ("shop.paths.steps.finish", "json.dumps", STEPS, 20),
    ]
    assert [(row["kind"], row["relation"], row["confidence"], row["method"]) for row in found] == [
        ("FUNCTION", "CALL_GRAPH", 0.9, "calls"),
        ("FUNCTION", "CALL_GRAPH", 0.9, "calls"),
        ("QUALIFIED_NAME", "CALL_GRAPH", 0.9, "calls"),
    ]
    assert found.notes == ()


def test_from_a_function_to_itself_is_a_cycle(lake: Lake) -> None:
    assert steps(lake.path("paths.steps.around", "paths.steps.around")) == [
        ("shop.paths.steps.around", "shop.paths.steps.again", STEPS, 24),
        ("shop.paths.steps.again", "shop.paths.steps.around", STEPS, 28),
    ]


def test_a_class_is_reached_where_an_instance_is_made(lake: Lake) -> None:
    found = lake.path("test_far", "paths.steps.Box")
    assert steps(found) == [
        ("tests.test_paths.test_far", "shop.paths.steps.far", "tests/test_paths.py", 10),
        ("shop.paths.steps.far", "shop.paths.steps.near", STEPS, 61),
        ("shop.paths.steps.near", "shop.paths.steps.send", STEPS, 65),
        ("shop.paths.steps.send", "shop.paths.steps.pack", STEPS, 57),
        ("shop.paths.steps.pack", "shop.paths.steps.Box", STEPS, 53),
    ]
    assert [row["relation"] for row in found] == ["CALL_GRAPH"] * 4 + ["INSTANTIATES"]


def test_a_class_begins_with_its_methods(lake: Lake) -> None:
    assert steps(lake.path("paths.steps.Box", "json.dumps")) == [
        ("shop.paths.steps.Box.open", "shop.paths.steps.finish", STEPS, 44),
        ("shop.paths.steps.finish", "json.dumps", STEPS, 20),
    ]


def test_a_method_by_a_callback(lake: Lake) -> None:
    assert [row[1] for row in steps(lake.path("shop.cart.sell", "shop.cart.print_bill"))] == [
        "shop.cart.Cart.checkout",
        "shop.cart.print_bill",
    ]


def test_none_is_proven_if_every_call_on_the_way_is_resolved(lake: Lake) -> None:
    found = lake.path("paths.steps.pack", "paths.steps.start")
    assert found.total == 0
    [note] = found.notes
    assert note.startswith("no path from shop.paths.steps.pack to shop.paths.steps.start: every call")


def test_unknown_if_a_call_on_the_way_is_not_resolved(lake: Lake) -> None:
    found = lake.path("paths.steps.blind", "paths.steps.start")
    assert found.total == 0
    [note] = found.notes
    assert note.startswith("unknown whether there is a path")
    assert "but at least 1 call sites" in note


def test_a_function_that_is_a_whole_file(lake: Lake) -> None:
    """It makes an instance, and has a call that is not resolved; its module has neither."""
    assert steps(lake.path("ends.whole.wrap", "ends.boxes.Parcel")) == [
        ("shop.ends.whole.wrap", "shop.ends.boxes.Parcel", "shop/ends/whole.py", 4)
    ]
    [note] = lake.path("ends.whole.wrap", "paths.steps.start").notes
    assert "but at least 1 call sites" in note
    [note] = lake.path("shop.ends.whole", "paths.steps.start").notes
    assert note.startswith("no path")


def test_both_ways_have_the_same_columns(lake: Lake) -> None:
    calls = lake.path("paths.steps.start", "json.dumps")
    values = lake.path("values.give", "values.keep", by="flow")
    nothing = lake.path("values.keep.value", "values.give.amount", by="flow")
    assert calls.columns == values.columns == nothing.columns
    assert {row["inside"] for row in calls} == {None}
    assert [row["inside"] for row in values] == ["shop.paths.values.give", "shop.paths.values.take"]


def test_unknown_if_the_depth_is_too_small(lake: Lake) -> None:
    assert lake.path("paths.steps.far", "paths.steps.pack", depth=3).total == 3
    found = lake.path("paths.steps.far", "paths.steps.pack", depth=2)
    assert found.total == 0
    [note] = found.notes
    assert note.startswith("unknown whether there is a path")
    assert note.endswith("none of up to 2 steps; use a larger --depth")


def test_what_something_outside_calls_is_unknown(lake: Lake) -> None:
    found = lake.path("json.dumps", "paths.steps.start")
    assert found.total == 0
    assert found.notes == ("unknown whether there is a path: what json.dumps calls is not in the lake",)


def test_a_value_goes_through_arguments_and_attributes(lake: Lake) -> None:
    found = lake.path("values.Shelf.__init__.item", "values.keep.value", by="flow")
    assert [(row["symbol"], row["relation"], row["line"], row["depth"]) for row in found] == [
        ("shop.paths.values.Shelf.item", "COPIES", 30, 1),
        ("shop.paths.values.keep.value", "PASSES_TO", 33, 2),
    ]


def test_a_function_stands_for_its_parameters_where_values_go(lake: Lake) -> None:
    found = lake.path("values.give", "values.keep", by="flow")
    assert [(row["symbol"], row["via"], row["line"]) for row in found] == [
        ("shop.paths.values.take.two", "shop.paths.values.give.amount", 10),
        ("shop.paths.values.keep.value", "shop.paths.values.take.two", 15),
    ]


def test_no_way_of_a_value_is_never_a_proof(lake: Lake) -> None:
    found = lake.path("values.keep.value", "values.give.amount", by="flow")
    assert found.total == 0
    assert found.notes[0].startswith("unknown whether a value flows")


def test_questions_that_make_no_sense(lake: Lake) -> None:
    with pytest.raises(UsageError, match="is a variable and has no calls"):
        lake.path("values.give.amount", "values.keep")
    with pytest.raises(UsageError, match="is not a variable or function"):
        lake.path("shop.paths.values", "values.keep.value", by="flow")
    with pytest.raises(UsageError, match="--by must be calls or flow, got 'hope'"):
        lake.ask("path", "values.give", "values.keep", by="hope")
