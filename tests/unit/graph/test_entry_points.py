"""Entry points: sources in `tests/cases/entry_points`, each definition labelled `# kind name framework`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec import structs

from codeanatomy.catalog.entry_points import RULES, Rule, RuleSet
from codeanatomy.file_view import FileView, iter_rows
from codeanatomy.graph.entry_points import EntryFact, match_rules
from codeanatomy.graph.resolution import ResolvedFile
from codeanatomy.graph.rows import FileGraph, rows_of_files
from support.folders import CASES
from support.graph_stage import graph_files, nodes_of, resolved_file
from support.relate_stage import sources_below

SOURCES = CASES / "entry_points"
DEFINITION = re.compile(r"^ *(async )?(def|class) (?P<name>\w+)[^#]*(?:# (?P<entry>.+))?$")


@pytest.fixture(scope="module")
def files() -> list[FileView]:
    return files_of(sources_below(SOURCES))


def files_of(sources: Mapping[str, str | bytes]) -> list[FileView]:
    return graph_files(sources, {}, "site")


def found_in(files: list[FileView], rules: tuple[Rule, ...] = RULES) -> Iterator[dict[str, Any]]:
    """The entry points, each with the place and the name of the definition."""
    resolved = resolved_files(files)
    places = {
        row["node_id"]: (row["path"], row["line"], row["qualname"])
        for file, graph in resolved
        for row in nodes_of(graph, file.module_name).to_pylist()
        if row["node_kind"] in ("FUNCTION", "CLASS")
    }
    for file, _ in resolved:
        for row in iter_rows(file.lists(RuleSet(rules))["entry_points"], *EntryFact._fields):
            cells = dict(zip(EntryFact._fields, row, strict=True))
            path, line, symbol = places[cells["dst_id"]]
            yield {**cells, "path": path, "defined": line, "symbol": symbol}


def resolved_files(files: list[FileView]) -> list[tuple[ResolvedFile, FileGraph]]:
    """The files with their relations, and the rows that need no other file."""
    graphs = rows_of_files(files, "full")
    return [(resolved_file(file, graph.facts), graph) for file, graph in zip(files, graphs, strict=True)]


def labels() -> set[tuple[str, int, str]]:
    """File, line, and the label of each labelled definition."""
    return {
        (file.relative_to(SOURCES).as_posix(), number, found["entry"])
        for file in SOURCES.rglob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if (found := DEFINITION.match(line)) and found["entry"]
    }


def test_each_framework_and_nothing_else(files: list[FileView]) -> None:
    found = {
        (each["path"], each["defined"], f"{each['role']} {each['entry_name']} {each['rule_name']}")
        for each in found_in(files)
    }
    assert found == labels()


def test_each_rule_has_a_case(files: list[FileView]) -> None:
    numbered = tuple(structs.replace(rule, framework=str(number)) for number, rule in enumerate(RULES))
    rules = RuleSet(numbered)
    found = {
        each.rule_name
        for file, _ in resolved_files(files)
        for each in match_rules(file.facts, file.relations, rules)
    }
    assert [rule for number, rule in enumerate(RULES) if str(number) not in found] == []


def test_rule_of_a_user(files: list[FileView]) -> None:
    own = Rule("ours", "task", name=("make",), path=("*tests/*",))
    assert [
        (each["symbol"], each["role"])
        for each in found_in(files, (own, *RULES))
        if each["rule_name"] == "ours"
    ] == [("site.tests.test_all.make", "task")]


def test_evidence_and_certainty(files: list[FileView]) -> None:
    found = {each["symbol"]: each for each in found_in(files)}
    route = found["site.flask_app.items"]
    assert (route["evidence"], route["confidence"], route["resolution_method"]) == (
        "@app.route",
        0.7,
        "decorator",
    )
    guess = found["site.flask_app.register.inner"]
    assert (guess["evidence"], guess["confidence"]) == ("@somewhere.route", 0.5)
    base = found["site.tests.test_all.Cases.test_case"]
    assert (base["evidence"], base["confidence"]) == ("unittest.TestCase", 0.9)


def test_a_main_module_runs_what_it_calls_itself() -> None:
    sources = {
        "site/cli.py": "def run(): ...\ndef setup(): ...\n",
        "site/__main__.py": "from site.cli import run, setup\n\ndef main():\n    setup()\n\nrun()\nmain()\n",
    }
    found = {each["symbol"] for each in found_in(files_of(sources)) if each["role"] == "main"}
    assert "site.cli.run" in found
    assert "site.cli.setup" not in found
