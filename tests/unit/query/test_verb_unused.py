"""What nothing uses: labelled sources in `tests/cases/ask/shop/shop/waste`, and flask by its syntax trees
alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.errors import UsageError
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.verbs.unused import COLUMNS, unused
from support.ask_lake import reader_of

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


@pytest.fixture(scope="module")
def listed(reader: LightReader) -> list[dict[str, Any]]:
    return [
        dict(zip(COLUMNS, row, strict=True)) for row in reader.rows(unused(reader, min_confidence=0.3).query)
    ]


def labelled(listed: list[dict[str, Any]], module: str) -> list[tuple[Any, ...]]:
    start = f"shop.waste.{module}."
    return [
        (row["symbol"].removeprefix(start), row["line"], row["confidence"], row["method"])
        for row in listed
        if row["symbol"].startswith(start)
    ]


def test_how_sure_it_is(listed: list[dict[str, Any]]) -> None:
    """Not there: what `__all__` lists, what is called, overrides of it, lambdas, the inside of `_Unseen`."""
    assert labelled(listed, "bins") == [
        ("_never_named", 24, 0.9, "not named"),
        ("_calls_itself", 28, 0.9, "not named"),
        ("busy.idle_inside", 53, 0.9, "not named"),
        ("_Unseen", 63, 0.9, "not named"),
        ("Basket._rattle", 93, 0.9, "not named"),
        ("_namesake", 33, 0.7, "namesake"),
        ("open_to_all", 37, 0.5, "public"),
        ("spoken", 41, 0.3, "text"),
        ("kept", 46, 0.3, "decorated"),
        ("_Hooked", 80, 0.3, "hooked"),
        ("Worker.run", 85, 0.3, "base outside"),
        ("Basket.update", 90, 0.3, "base outside"),
        ("Square.corners", 104, 0.3, "overrides"),
        ("Draft.take_step", 121, 0.3, "overridden"),
    ]


def test_what_an_attribute_holds_is_not_dead(listed: list[dict[str, Any]]) -> None:
    """`self.engine.ignite()`, of an engine that nobody knows, may run the only method of that name."""
    assert labelled(listed, "trucks") == [
        ("Engine._cool_down", 8, 0.9, "not named"),
        ("Engine.ignite", 5, 0.3, "unresolved"),
        ("Sledge.couple", 39, 0.3, "uncertain"),
    ]


def test_names_that_are_computed(listed: list[dict[str, Any]]) -> None:
    assert labelled(listed, "piles") == [
        ("Pile._shovel", 8, 0.7, "computed"),
        ("Pile.sort_by_size", 5, 0.3, "text"),
    ]
    assert labelled(listed, "formats") == [("Format.zz", 8, 0.3, "computed")]


def test_the_reason_in_words(listed: list[dict[str, Any]]) -> None:
    details = {row["symbol"].rpartition(".")[2]: row["detail"] for row in listed if "waste" in row["path"]}
    assert details["_never_named"] == "its name does not occur elsewhere"
    assert (
        details["_namesake"]
        == "occurrences of its name, such as shop/waste/piles.py:17, refer to other definitions"
    )
    assert details["ignite"] == "shop/waste/trucks.py:22 has its name and could not be resolved"
    assert details["run"] == "threading.Thread may call it"
    assert (
        details["_Hooked"]
        == "shop.waste.bins.Holder.__init_subclass__ runs when it is created and may have registered it"
    )
    assert details["Mystery"] == "an unresolved base may register it"


def test_rows_are_whole_and_in_order(listed: list[dict[str, Any]]) -> None:
    assert all(row["kind"] in ("FUNCTION", "CLASS") and row["subkind"] != "lambda" for row in listed)
    assert [row["confidence"] for row in listed] == sorted(
        (row["confidence"] for row in listed), reverse=True
    )
    assert not [row for row in listed if "tests" in row["path"].split("/")]
    assert len({row["symbol_id"] for row in listed}) == len(listed)


def test_of_a_kind_and_of_a_repository(reader: LightReader, listed: list[dict[str, Any]]) -> None:
    classes = reader.rows(unused(reader, kind="class", repo_id="shop", min_confidence=0.3).query)
    assert [row[0] for row in classes] == [
        row["symbol"] for row in listed if row["kind"] == "CLASS" and row["repo_id"] == "shop"
    ]
    assert "shop.waste.bins._Unseen" in {row[0] for row in classes}
    assert reader.rows(unused(reader, repo_id="it's not there").query) == []
    with pytest.raises(UsageError):
        unused(reader, kind="module")


# An independent look: names in the syntax trees of the sources


class Sources:
    """What the syntax trees of a repository say: definitions, names and attributes, texts."""

    def __init__(self, root: Path) -> None:
        self.definitions: list[tuple[str, ast.AST, bool]] = []
        self.said: dict[str, list[tuple[str, int]]] = {}
        for file in sorted(root.rglob("*.py")):
            path = file.relative_to(root).as_posix()
            try:
                tree = ast.parse(file.read_bytes())
            except SyntaxError:
                continue
            for node in ast.walk(tree):
                if isinstance(node, DEFINITIONS):
                    self.definitions.append((path, node, bool(node.decorator_list)))
                for name in words(node):
                    self.said.setdefault(name, []).append((path, node.lineno))  # type: ignore[attr-defined]

    def said_outside(self, path: str, line: int, name: str) -> list[tuple[str, int]]:
        """Where a name is said, but for the text of the definition of that name at a line."""
        own = [
            node
            for file, node, _ in self.definitions
            if file == path and node.lineno == line and node.name == name  # type: ignore[attr-defined]
        ]
        assert len(own) == 1
        last = own[0].end_lineno  # type: ignore[attr-defined]
        return [
            place for place in self.said.get(name, []) if place[0] != path or not line <= place[1] <= last
        ]


def words(node: ast.AST) -> Iterator[str]:
    """Identifiers that a node says, and texts that are one."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.rpartition(".")[2]


@pytest.fixture(scope="module")
def sources(reader: LightReader) -> dict[str, Sources]:
    repositories = reader.snapshot.repositories
    return {name: Sources(Path(row.repo_root or "")) for name, row in repositories.items()}


def test_what_is_named_anywhere_is_never_sure_to_be_dead(
    listed: list[dict[str, Any]], sources: dict[str, Sources]
) -> None:
    sure = [row for row in listed if row["confidence"] >= 0.9]
    assert len(sure) >= 6
    for row in sure:
        name = row["symbol"].rpartition(".")[2]
        assert sources[row["repo_id"]].said_outside(row["path"], row["line"], name) == []


@pytest.mark.parametrize("repo_id", ["flask", "shop"])
def test_what_is_named_nowhere_is_listed(
    listed: list[dict[str, Any]], sources: dict[str, Sources], repo_id: str
) -> None:
    """Every function without decorators whose name nobody says, itself or with what it is inside of."""
    mine = [row for row in listed if row["repo_id"] == repo_id]
    found = sources[repo_id]
    spans = {(path, node.lineno): node for path, node, _ in found.definitions}  # type: ignore[attr-defined]
    covered = [(row["path"], spans[row["path"], row["line"]]) for row in mine]
    missing = []
    expected = 0
    for path, node, decorated in found.definitions:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        hidden = node.name.startswith("__") or "test" in path.lower() or "test" in node.name.lower()
        if decorated or hidden or found.said_outside(path, node.lineno, node.name):
            continue
        expected += 1
        if not any(
            file == path and outer.lineno <= node.lineno <= outer.end_lineno  # type: ignore[attr-defined]
            for file, outer in covered
        ):
            missing.append((path, node.lineno, node.name))
    assert expected >= 6
    assert missing == []
