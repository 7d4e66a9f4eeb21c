"""Types of a build by Spark, of a folder and of an archive.

A tool that fails: `tests/unit/extract/test_tool_tasks.py`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.type_checker_files import TYPES
from support.folders import write_sources
from support.spark_builds import built, rows
from support.typed_program import PROGRAM


def test_in_a_build(spark: SparkSession, tmp_path: Path) -> None:
    lake, source = tmp_path / "lake", write_sources(tmp_path / "source", PROGRAM)
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("packed/mod.py", "def f(): ...\nf()\n")
    repositories = {"shop": source, "archive": tmp_path / "archive.zip"}
    report = built(spark, lake, repositories, types="auto")
    found = {row["path"]: row for row in rows(lake, TYPES)}
    assert (report.status, report.tables[TYPES].rows) == ("succeeded", len(PROGRAM) + 1)
    assert found.keys() == {*PROGRAM, "packed/mod.py"}
    calls = {call["target_name"]: call["target_path"] for call in found["src/shop/use.py"]["call_targets"]}
    assert calls["shop.base.Base.run"] == "src/shop/base.py"
    assert calls["builtins.print"] is None
    (call,) = found["packed/mod.py"]["call_targets"]
    assert (call["target_name"], call["target_bstart"], call["call_bstart"]) == ("packed.mod.f", 4, 13)
    assert not [row for row in rows(lake, FAILURES) if row["extractor_name"] == TYPES]
