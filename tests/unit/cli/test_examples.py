"""The examples: a notebook whose cells run, and a script for spark-submit."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codeanatomy.catalog.views import VIEWS
from support.folders import ROOT

EXAMPLES = ROOT / "examples"
NOTEBOOK: dict[str, Any] = json.loads((EXAMPLES / "ask.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
# What the notebook calls its lake.
LAKE = 'LAKE = "lake"'


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def needs_spark(cell: dict[str, Any]) -> bool:
    return "spark" in cell["metadata"].get("tags", ())


def run(cells: list[dict[str, Any]], lake: Path, names: dict[str, Any]) -> dict[str, Any]:
    """Execute cells one after the other, as a kernel would."""
    for cell in cells:
        code = source(cell).replace(LAKE, f"LAKE = {str(lake)!r}")
        exec(compile(code, f"cell {cell['id']}", "exec"), names)
    return names


def test_the_notebook_is_one() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert NOTEBOOK.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in NOTEBOOK["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert cell.keys() == {"cell_type", "id", "metadata", "source"} | code
        assert all(line.endswith("\n") for line in cell["source"][:-1])


def test_the_notebook_has_no_outputs() -> None:
    """They would show the machine it was run on."""
    assert [cell["id"] for cell in CODE if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.parametrize("cell", CODE, ids=lambda cell: str(cell["id"]))
def test_a_cell_compiles(cell: dict[str, Any]) -> None:
    compile(source(cell), "cell", "exec")


def test_the_light_cells_run_without_a_jvm(ask_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    light = [cell for cell in CODE if not needs_spark(cell)]
    assert sum(LAKE in source(cell) for cell in light) == 1
    names = run(light, ask_lake, {})
    printed = capsys.readouterr().out
    assert "def make_response(self, rv: ft.ResponseReturnValue) -> Response\n2 callers, " in printed
    assert "flask.helpers.make_response  flask/helpers.py:" in printed
    assert [row["symbol"] for row in names["callers"]][:2] == [
        "flask.app.Flask.finalize_request",
        "flask.helpers.make_response",
    ]
    assert len(names["answer"].rows) == 5
    assert "spark" not in names


@pytest.mark.system
def test_the_rest_of_the_notebook_and_the_script_run_in_any_session(
    ask_lake: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    session = spark.newSession()
    views_before = {table.name for table in session.catalog.listTables()}
    ask_spark().main(session, str(ask_lake), "flask.json.dumps")
    printed = capsys.readouterr().out
    assert "|flask.json.tag.TaggedJSONSerializer.dumps|flask/json/tag.py|323 |0.9       |" in printed
    assert "|builtins" in printed
    assert {table.name for table in session.catalog.listTables()} == views_before

    # The cell before makes a session; here is one.
    cells = [cell for cell in CODE if not needs_spark(cell)][:1]
    cells += [cell for cell in CODE if needs_spark(cell) and "getOrCreate" not in source(cell)]
    names = run(cells, ask_lake, {"spark": session})
    assert {view.name for view in VIEWS} <= {table.name for table in session.catalog.listTables()}
    assert names["edges"].columns == names["in_spark"].graph().edges.columns
    assert "flask.app.Flask.finalize_request" in capsys.readouterr().out


def ask_spark() -> ModuleType:
    """`examples/ask_spark.py`, which is no package's."""
    spec = importlib.util.spec_from_file_location("ask_spark", EXAMPLES / "ask_spark.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
