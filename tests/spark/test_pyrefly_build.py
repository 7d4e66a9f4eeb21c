"""Types of a build by Spark, of a folder and of an archive, beside those by local processes.

A tool that fails: `tests/unit/extract/test_tool_tasks.py`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE
from codeanatomy.query.checks.compare import compare_lakes
from support import two_repositories
from support.folders import write_sources
from support.light_builds import clean_lake
from support.spark_builds import built, rows
from support.typed_program import PROGRAM


@pytest.mark.system
def test_tools_run_beside_pass_one(spark: SparkSession, tmp_path: Path) -> None:
    lake, local = tmp_path / "lake", tmp_path / "local"
    packed = two_repositories.FILES["a"] | {"packed/mod.py": b"def f(): ...\nf()\n"}
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        for path, raw in packed.items():
            archive.writestr(path, raw)
    source = write_sources(tmp_path / "source", PROGRAM)
    repositories = {"shop": source, "archive": tmp_path / "archive.zip"}
    report = built(spark, lake, repositories, types="auto", until=None)
    found = {row["path"]: row for row in rows(lake, TYPES)}
    # All but one that has no text.
    typed = packed.keys() - {"bytes.py"}
    assert (report.status, report.tables[TYPES].rows) == ("succeeded", len(PROGRAM) + len(typed))
    assert found.keys() == PROGRAM.keys() | typed
    calls = {call["target_name"]: call["target_path"] for call in found["src/shop/use.py"]["call_targets"]}
    assert calls["shop.base.Base.run"] == "src/shop/base.py"
    assert calls["builtins.print"] is None
    (call,) = found["packed/mod.py"]["call_targets"]
    assert (call["target_name"], call["target_bstart"], call["call_bstart"]) == ("packed.mod.f", 4, 13)
    assert not [row for row in rows(lake, FAILURES) if row["extractor_name"] == TYPES]
    clean_lake(local, repositories, types="auto")
    compared = compare_lakes(str(lake), str(local))
    assert not compared.tables, compared.differences[:5]
    stages = {catalog.table(name).stage for name, count in compared.rows.items() if count}
    assert stages == {EXTRACT, NORMALIZE, RELATE, GRAPH}
    by_spark, by_processes = (
        {row.repo_id: (row.row_counts, row.error_counts) for row in read_manifest(str(each))}
        for each in (lake, local)
    )
    assert by_spark == by_processes
    assert {name: counts[TYPES] for name, (counts, _) in by_spark.items()} == {
        "shop": len(PROGRAM),
        "archive": len(typed),
    }
