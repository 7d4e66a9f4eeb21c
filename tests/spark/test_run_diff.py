"""The difference of two runs that Spark built."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from codeanatomy.query.diff.run_diff import ElementChange, RunDiff, diff_runs
from support.spark_builds import built


def rows_of(found: RunDiff, kind: str) -> list[ElementChange]:
    return [row for row in found.rows if row.kind == kind]


BEFORE = (
    "def stays():\n    return 1\n\n\ndef goes():\n    return stays()\n\n\ndef moves(x):\n    return x\n\n\n\n"
    "def edited(x):\n    return x + 1\n"
)
AFTER = (
    BEFORE.replace("goes", "comes").replace("def moves", "# One line further.\ndef moves").replace("+", "-")
)


@pytest.mark.system
def test_two_builds_of_a_repository(spark: SparkSession, tmp_path: Path) -> None:
    source, lake = tmp_path / "pkg", tmp_path / "lake"
    source.mkdir()
    (source / "other.py").write_text("import m\n\nm.moves(2)\n")
    for text in (BEFORE, AFTER):
        (source / "m.py").write_text(text)
        assert built(spark, lake, {"pkg": source}, until=None).status == "succeeded"
    first, _ = (
        DeltaTable(str(lake / "meta" / "run_manifest")).to_pyarrow_table().sort_by("started_at")["run_id"]
    )
    found = diff_runs(str(lake), str(first), kinds=["function", "call_graph", "module"], limit=1000)
    assert [
        (row.change, row.symbol, row.path, row.line, row.was_line) for row in rows_of(found, "FUNCTION")
    ] == [
        ("added", "m.comes", "m.py", 5, None),
        ("removed", "m.goes", "m.py", 5, None),
        ("changed", "m.edited", "m.py", 15, 14),
    ]
    assert {(row.change, row.symbol) for row in rows_of(found, "CALL_GRAPH")} == {
        ("removed", "m.goes -> m.stays"),
        ("added", "m.comes -> m.stays"),
    }
    [module] = rows_of(found, "MODULE")
    assert (module.change, module.symbol, module.differs) == ("changed", "m", {})
    # All that is in the file that nobody touched is the same, and what has moved.
    everything = diff_runs(str(lake), str(first), limit=1000).rows
    assert {row.path for row in everything} == {"m.py"}
    assert not [row for row in everything if "moves" in str(row.symbol)]
