"""The Spark cells of the example notebook and the script for spark-submit."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from codeanatomy.catalog.views import VIEWS
from support.notebook import CODE, EXAMPLES, needs_spark, run, source


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
