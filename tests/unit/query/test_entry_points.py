"""Entry points of a lake: the facts that verbs read. The rules: `tests/unit/graph/test_entry_points.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from codeanatomy.catalog.entry_points import ROOT_KINDS
from codeanatomy.cli.main import cli
from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.lake import Lake
from codeanatomy.query.walks.entry_points import by_definition, read_entry_points
from support.ask_lake import reader_of
from support.folders import CASES
from support.light_builds import clean_lake


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("entries") / "lake"
    assert clean_lake(lake, {"site": CASES / "entry_points"}).status == "succeeded"
    return lake


@pytest.fixture(scope="module")
def reader(folder: Path) -> LightReader:
    return reader_of(folder)


def test_facts_are_read(reader: LightReader) -> None:
    found = by_definition(read_entry_points(reader))
    routes = {each.symbol: each for each in found.values()}
    items = routes["site.flask_app.items"]
    assert (items.kind, items.name, items.framework, items.evidence) == (
        "http",
        "/items",
        "flask",
        "@app.route",
    )
    assert items.is_root
    assert routes["site.python_itself.Shape.area"].is_declaration
    assert [each.symbol for each in read_entry_points(reader, ids=[items.node_id])] == [items.symbol]


def test_find_lists_them_by_kind_and_name(folder: Path) -> None:
    lake = Lake.open(str(folder))
    tasks = lake.find(entry_points="task")
    assert {(row["symbol"], row["name"]) for row in tasks.rows} >= {
        ("site.tasks.send", "send"),
        ("site.tasks.Report.run", "run"),
    }
    assert {row["entry"] for row in tasks.rows} == {"task"}
    [row] = lake.find("Report.run", entry_points="all").rows
    assert (row["entry"], row["detail"], row["confidence"]) == ("task", "celery.Task", 0.9)
    [viewed] = lake.find("viewed", entry_points="http", kind="function").rows
    assert viewed["detail"] == "app.add_url_rule in site/flask_app.py:29"
    assert lake.find("viewed", entry_points="http", kind="class").rows == ()
    roots, every = (
        {row["entry"] for row in lake.find(entry_points=each, limit=1000).rows} for each in ("root", "all")
    )
    assert roots <= set(ROOT_KINDS)
    assert every - roots >= {"protocol", "interface", "validator"}


def test_find_refuses_what_is_no_kind_and_no_name(folder: Path) -> None:
    lake = Lake.open(str(folder))
    with pytest.raises(UnknownName, match="htp"):
        lake.find(entry_points="htp")
    with pytest.raises(UsageError, match="--entry-points"):
        lake.find()


def test_find_is_a_command_with_an_optional_kind(folder: Path) -> None:
    for options, expected in ((["--entry-points"], 21), (["--entry-points", "websocket"], 2)):
        result = CliRunner().invoke(cli, ["find", *options, "--lake", str(folder), "--limit", "21"])
        assert (result.exit_code, result.stdout.count('"entry": ')) == (0, expected)
    assert CliRunner().invoke(cli, ["find", "--lake", str(folder)]).exit_code != 0


def test_view_has_what_registers_them(folder: Path) -> None:
    answer = Lake.open(str(folder)).sql(
        "SELECT kind, framework, name, path, line, defined_line, method FROM entry_points"
        " WHERE symbol = 'site.flask_app.viewed'"
    )
    [row] = answer.rows
    assert tuple(row.values()) == ("http", "flask", "/viewed", "site/flask_app.py", 29, 24, "call")


def test_packaging_files_declare_programs_and_plugins(folder: Path) -> None:
    lake = Lake.open(str(folder))
    declared = [
        (row["symbol"], row["entry"], row["name"], row["framework"], row["detail"])
        for row in lake.find(entry_points="all", limit=1000).rows
        if row["path"] == "site/packaged.py"
    ]
    assert sorted(declared) == [
        ("site.packaged.Window.open", "command", "window", "gui_scripts", "site/pyproject.toml:9"),
        ("site.packaged.audit", "plugin", "audit", "site.plugins", "site/pyproject.toml:12"),
        ("site.packaged.fixtures", "plugin", "fixtures", "pytest11", "site/setup.cfg:7"),
        ("site.packaged.main_program", "command", "site", "console_scripts", "site/pyproject.toml:6"),
        ("site.packaged.report", "command", "site-report", "console_scripts", "site/pyproject.toml:5"),
        ("site.packaged.table", "command", "table", "console_scripts", "site/pyproject.toml:17"),
    ]
    dead = {row["symbol"]: row["method"] for row in lake.unused(min_confidence=0, limit=1000).rows}
    by_module = ("audit", "fixtures", "report", "table")
    assert {dead[f"site.packaged.{name}"] for name in by_module} == {"entry point"}
    assert dead["site.packaged.unnamed"] == "program"


def test_impact_ends_in_them(folder: Path) -> None:
    answer = Lake.open(str(folder)).impact("site.flask_app.helper")
    [row] = [each for each in answer.rows if each["symbol"] == "site.flask_app.items"]
    assert row["entry"] == "http /items"
    assert "entry points that reach it: 1 http" in answer.notes
