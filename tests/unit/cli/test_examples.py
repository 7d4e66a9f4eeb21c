"""The example notebook: its cells run without Spark, except those that are tagged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.notebook import CODE, LAKE, NOTEBOOK, needs_spark, run, source


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
