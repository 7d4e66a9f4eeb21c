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


def rows(answer: Answer) -> list[tuple[str, str, str, str, str, int]]:
    names = ("relation", "symbol", "kind", "target", "path", "line")
    return [tuple(row[name] for name in names) for row in answer]  # type: ignore[misc]


def test_a_call_and_all_that_is_behind_it(lake: Lake) -> None:
    found = lake.explain("paths.steps.finish", "json.dumps")
    assert rows(found) == [
        ("CALLS_NAME", "json.dumps", "CALLSITE", "json.dumps", STEPS, 20),
        ("CALL_GRAPH", "shop.paths.steps.finish", "FUNCTION", "json.dumps", STEPS, 20),
        ("REFERS_TO", "dumps", "ATTRIBUTE_REF", "json.dumps", STEPS, 20),
    ]
    call = found.rows[0]
    assert (call["origin"], call["rule"], call["method"], call["confidence"]) == (
        "values",
        "call",
        "import",
        0.9,
    )
    assert call["evidence"].startswith("values agrees")
    assert call["inside"] == "shop.paths.steps.finish"
    assert call["detail"] == (
        "A call of a name defined outside of the repository. Target: resolved by following imports."
    )
    assert (call["group_id"], call["amount"]) == (None, None)


def test_one_edge_by_its_id(lake: Lake) -> None:
    first = lake.explain("paths.steps.finish", "json.dumps").rows[0]
    assert lake.explain(first["edge_id"]).rows == (first,)


def test_a_base_class(lake: Lake) -> None:
    found = lake.explain("paths.steps.Crate", "paths.steps.Box")
    assert ("INHERITS", "shop.paths.steps.Crate", "CLASS", "shop.paths.steps.Box", STEPS, 47) in rows(found)
    by_relation = {row["relation"]: row for row in found}
    assert by_relation["INHERITS"]["evidence"] == "values agrees"
    assert by_relation["READS"]["evidence"] == "symtable agrees, libcst agrees"
    # An edge that comes from no relation has the source for evidence.
    assert by_relation["EVENT_OF"]["evidence"] == "the source itself; nothing had to be resolved"


def test_an_instance_is_made_and_an_argument_passed(lake: Lake) -> None:
    found = rows(lake.explain("paths.steps.pack", "paths.steps.Box"))
    assert ("INSTANTIATES", "Box", "CALLSITE", "shop.paths.steps.Box", STEPS, 53) in found
    [passed] = lake.explain("values.give", "values.take.two")
    assert (passed["relation"], passed["role"], passed["line"]) == ("PASSES_TO", "two", 10)
    # What has no name is named by what it stands in.
    assert passed["symbol"] == passed["inside"] == "shop.paths.values.give"


def test_a_module_has_the_places_of_all_its_functions(lake: Lake) -> None:
    calls = [row for row in lake.explain("shop.paths.values", "values.keep") if row["relation"] == "CALLS"]
    assert [(row["inside"].rpartition(".")[2], row["line"]) for row in calls] == [
        ("take", 15),
        ("show", 33),
        ("inner", 38),
        ("bounded", 44),
    ]


def test_inside_of_a_function_that_is_a_whole_file(lake: Lake) -> None:
    found = lake.explain("ends.whole.wrap", "ends.boxes.Parcel")
    assert {(row["relation"], row["inside"]) for row in found} >= {
        ("INSTANTIATES", "shop.ends.whole.wrap"),
        ("REFERS_TO", "shop.ends.whole.wrap"),
    }
    assert {row["inside"] for row in found} == {"shop.ends.whole.wrap"}


def test_alternatives_are_counted(lake: Lake) -> None:
    ambiguous = lake.explain("paths.choices.either", "paths.choices.one")
    calls = [row for row in ambiguous if row["relation"] == "CALLS"]
    assert [(row["line"], row["amount"]) for row in calls] == [(14, 2)]
    assert calls[0]["group_id"].startswith("ambig:")


def test_none_from_here_to_there(lake: Lake) -> None:
    found = lake.explain("paths.steps.start", "json.dumps")
    assert found.total == 0
    assert found.notes == ("no edge leads from shop.paths.steps.start to json.dumps",)
    back = lake.explain("paths.steps.first", "paths.steps.start")
    assert back.total == 0
    assert back.notes[0].endswith("; 5 lead in the opposite direction")


def test_no_such_edge(lake: Lake) -> None:
    with pytest.raises(UsageError, match="no edge has the id"):
        lake.explain("edge:'; DROP TABLE x --")
