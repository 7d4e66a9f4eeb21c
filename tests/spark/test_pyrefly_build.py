"""Types of a build by Spark: a folder, an archive, and a repository on which the checker fails."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.tools.pyrefly import find_pyrefly
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.pipeline import type_checker
from support.folders import write_sources
from support.spark_builds import built, rows
from support.typed_program import PROGRAM


def test_in_a_build(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, an archive, and a repository on which the tool fails."""
    lake, source, tool = tmp_path / "lake", write_sources(tmp_path / "source", PROGRAM), tmp_path / "tool"
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("packed/mod.py", "def f(): ...\nf()\n")
    failing = write_sources(tmp_path / "failing", {"fatal.py": "print(1)\n"})
    tool.write_text(f'#!/bin/sh\n[ -e tree/fatal.py ] && exit 3\nexec {find_pyrefly()} "$@"\n')
    tool.chmod(0o755)
    monkeypatch.setattr(type_checker, "find_pyrefly", lambda: tool)
    repositories = {"shop": source, "archive": tmp_path / "archive.zip", "failing": failing}
    report = built(spark, lake, repositories, types="auto")
    found = {row["path"]: row for row in rows(lake, TYPES)}
    assert (report.status, report.tables[TYPES].rows) == ("succeeded", len(PROGRAM) + 1)
    assert found.keys() == {*PROGRAM, "packed/mod.py"}
    calls = {call["target_name"]: call["target_path"] for call in found["src/shop/use.py"]["call_targets"]}
    assert calls["shop.base.Base.run"] == "src/shop/base.py"
    assert calls["builtins.print"] is None
    (call,) = found["packed/mod.py"]["call_targets"]
    assert (call["target_name"], call["target_bstart"], call["call_bstart"]) == ("packed.mod.f", 4, 13)
    failures = [row for row in rows(lake, FAILURES) if row["extractor_name"] == TYPES]
    assert [(row["repo_id"], row["error_type"]) for row in failures] == [("failing", "checker_failed")]
