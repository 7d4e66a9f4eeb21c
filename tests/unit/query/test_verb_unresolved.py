"""What could not be resolved: `tests/cases/ask/shop/shop/waste/unknown.py`, and flask by its relations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice
from codeanatomy.query.symbols import resolve
from codeanatomy.query.verbs.unresolved import COLUMNS, unresolved
from support.ask_lake import reader_of

MODULE = "shop.waste.unknown"


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def asked(reader: LightReader, symbol: str | None = None, **options: Any) -> list[dict[str, Any]]:
    inside = resolve(reader, symbol) if symbol else None
    rows = reader.rows(unresolved(reader, symbol=inside, **options).query)
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def test_what_a_module_could_not_resolve(reader: LightReader) -> None:
    rows = asked(reader, MODULE)
    assert [(row["symbol"], row["kind"], row["line"], row["relation"], row["method"]) for row in rows] == [
        ("shop.waste.bins.not_there", "IMPORT_ALIAS", 3, "IMPORTS_NAME", "name_not_found"),
        ("unheard_of", "ATTRIBUTE_REF", 8, "REFERS_TO", "no_such_attribute"),
        ("thing.whisper", "CALLSITE", 10, "CALLS", "no_such_attribute"),
        # What is called has no name: `thing.whisper().murmur`.
        (None, "CALLSITE", 10, "CALLS", "unknown_receiver"),
        ("whisper", "ATTRIBUTE_REF", 10, "REFERS_TO", "no_such_attribute"),
        ("murmur", "ATTRIBUTE_REF", 10, "REFERS_TO", "unknown_receiver"),
        ("Mystery", "CLASS", 14, "INHERITS", "unknown_base"),
        (None, "CALLSITE", 15, "CALLS", "not_callable"),
    ]
    assert [row["inside"].removeprefix(MODULE) for row in rows] == [
        "",
        ".guess.deeper",
        ".guess",
        ".guess",
        ".guess",
        ".guess",
        "",
        ".Mystery",
    ]
    assert {(row["path"], row["repo_id"], row["confidence"]) for row in rows} == {
        ("shop/waste/unknown.py", "shop", None)
    }


def test_inside_of_a_definition(reader: LightReader) -> None:
    assert [row["line"] for row in asked(reader, f"{MODULE}.guess")] == [8, 10, 10, 10, 10]
    assert [row["line"] for row in asked(reader, f"{MODULE}.guess.deeper")] == [8]
    # The base of a class is written inside of it, if only in its first line.
    assert [row["line"] for row in asked(reader, f"{MODULE}.Mystery")] == [14, 15]
    assert asked(reader, "shop.waste.piles.Pile") == []


def test_inside_of_a_package_is_all_below_it(reader: LightReader) -> None:
    paths = {row["path"] for row in asked(reader, "shop.waste")}
    assert len(paths) > 1
    assert {"shop/waste/unknown.py", "shop/waste/trucks.py"} <= paths
    assert all(path.startswith("shop/waste/") for path in paths)


def test_inside_of_a_function_that_is_a_whole_file(reader: LightReader) -> None:
    rows = asked(reader, "shop.ends.whole.wrap")
    assert {row["symbol"] for row in rows} == {"paper.fold", "fold"}
    assert {row["inside"] for row in rows} == {"shop.ends.whole.wrap"}


def test_for_one_reason(reader: LightReader) -> None:
    assert [row["symbol"] for row in asked(reader, MODULE, reason="unknown_base")] == ["Mystery"]
    with pytest.raises(UnknownName, match="unknown reason"):
        asked(reader, reason="' OR 1 = 1 --")


def test_a_variable_has_nothing_inside(reader: LightReader) -> None:
    with pytest.raises(UsageError):
        asked(reader, "shop.waste.trucks.FLEET")


def test_all_of_a_repository(reader: LightReader) -> None:
    """As many rows as there are relations without a target, each once, with its place."""
    query = Query(
        "SELECT r.relation_kind, r.path, r.line, r.reason FROM r WHERE r.dst_id IS NULL",
        {"r": Slice("relations_v1", repo_id=("flask",))},
    )
    rows = asked(reader, repo_id="flask")
    assert len(rows) > 200
    assert sorted((row["relation"], row["path"], row["line"], row["method"]) for row in rows) == sorted(
        reader.rows(query)
    )
    assert all(row["inside"] for row in rows)
    assert {row["repo_id"] for row in asked(reader)} >= {"flask", "shop"}
