"""SCIP indexes in a build: given or made, whole or damaged, the build goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codeanatomy.config import SCIP_VARIABLE
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.scip.schema import Document, Index, Metadata, Occurrence
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.run import build as building
from codeanatomy.spark.executors import check_scip_python
from support import corpus, scip_tool
from support.spark_builds import built, rows

SOURCE = {"a.py": "é = 1\nprint(é)\n", "b.py": "import a\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    for name, text in SOURCE.items():
        (source / name).write_text(text, encoding="utf-8")
    return source


def write_index(path: Path) -> Path:
    """Two documents of which the repository has one."""
    seen = [Occurrence(range=[1, 6, 7], symbol="local 0"), Occurrence(range=[9, 0, 1], symbol="local 1")]
    documents = [
        Document(relative_path="a.py", language="python", position_encoding=3, occurrences=seen),
        Document(relative_path="elsewhere.py", language="python", occurrences=seen[:1]),
    ]
    metadata = Metadata(tool_info={"name": "by-hand", "version": "1"})
    path.write_bytes(Index(metadata=metadata, documents=documents).SerializeToString())
    return path


def scip_rows(lake: Path) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in rows(lake, "scip_index_v1")}


def scip_failures(lake: Path) -> list[tuple[str, str]]:
    found = [row for row in rows(lake, FAILURES) if row["extractor_name"] == "scip_index_v1"]
    return [(row["path"], row["error_type"]) for row in found]


def test_documents_are_joined_with_their_files(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    lake, index = tmp_path / "lake", write_index(tmp_path / "index.scip")
    report = built(spark, lake, {"r": folder}, scip=ScipChoice(given={"r": index}))
    found = scip_rows(lake)
    assert report.tables["scip_index_v1"].rows == 3
    assert {path: row["row_kind"] for path, row in found.items()} == {
        "index.scip": "index",
        "a.py": "document",
        "elsewhere.py": "document",
    }
    assert found["index.scip"]["metadata"]["tool_name"] == "by-hand"
    assert found["index.scip"]["metadata"]["document_count"] == 2
    here, nowhere = found["a.py"]["occurrences"], found["elsewhere.py"]["occurrences"]
    assert "é = 1\nprint(é)\n".encode()[here[0]["bstart"] : here[0]["bend"]].decode() == "é"
    assert (here[1]["bstart"], nowhere[0]["bstart"]) == (None, None)
    files = {row["path"]: row["file_id"] for row in rows(lake, "repo_files_v1")}
    assert (found["a.py"]["file_id"], found["elsewhere.py"]["file_id"]) == (files["a.py"], None)
    # Built again without an index, its rows are gone.
    built(spark, lake, {"r": folder})
    assert scip_rows(lake) == {}


@pytest.mark.parametrize(
    ("damage", "error_type", "kept"),
    [
        (lambda raw: raw[:-5], "corrupt_index", {"index.scip", "a.py"}),
        (lambda raw: b"not an index at all", "corrupt_index", {"index.scip"}),
        (lambda raw: b"", "no_metadata", {"index.scip"}),
        (None, "unreadable", set()),
    ],
)
def test_a_damaged_index_is_a_failure(
    spark: SparkSession, folder: Path, tmp_path: Path, damage: Any, error_type: str, kept: set[str]
) -> None:
    lake, index = tmp_path / "lake", write_index(tmp_path / "index.scip")
    if damage is None:
        index.unlink()
    else:
        index.write_bytes(damage(index.read_bytes()))
    report = built(spark, lake, {"r": folder}, scip=ScipChoice(given={"r": index}))
    assert report.status == "succeeded"
    assert scip_failures(lake)[0] == ("index.scip", error_type)
    assert set(scip_rows(lake)) == kept
    assert len(rows(lake, "ast_files_v1")) == len(SOURCE)


def test_without_the_tool_the_build_goes_on(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCIP_VARIABLE, str(tmp_path / "nowhere"))
    report = built(spark, tmp_path / "lake", {"r": folder}, scip=ScipChoice(auto=True))
    assert report.errors == {"scip_index_v1": 1}
    assert scip_failures(tmp_path / "lake") == [("index.scip", "missing_tool")]


@pytest.mark.system
def test_scip_python_speaks_for_a_real_package(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCIP_VARIABLE, str(scip_tool.installed()))
    package = corpus.package("requests")
    report = built(spark, tmp_path, {"requests": package}, scip=ScipChoice(auto=True))
    assert report.errors == {}
    texts = {row["path"]: row["text"].encode() for row in rows(tmp_path, "repo_file_blobs_v1")}
    documents = {path: row for path, row in scip_rows(tmp_path).items() if row["row_kind"] == "document"}
    assert documents.keys() == texts.keys()
    get = [
        (path, seen["is_definition"])
        for path, row in documents.items()
        for seen in row["occurrences"]
        if seen["symbol"] == "scip-python python requests 0 `requests.api`/get()."
        and texts[path][seen["bstart"] : seen["bend"]] == b"get"
    ]
    assert ("requests/api.py", True) in get
    assert ("requests/__init__.py", False) in get


def test_hosts_without_the_indexer_are_reported_before_work_starts(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "scip-python"
    tool.write_text("#!/bin/sh\necho 0.6.6\n")
    tool.chmod(0o755)
    check_scip_python(spark, str(tool))
    tool.unlink()
    monkeypatch.setenv(SCIP_VARIABLE, str(tool))
    monkeypatch.setattr(building, "is_local_master", lambda _: False)
    with pytest.raises(EnvironmentProblem, match="scip-python is missing on this machine") as caught:
        built(spark, tmp_path / "lake", {"r": folder}, scip=ScipChoice(auto=True))
    assert SCIP_VARIABLE in caught.value.hint
    assert not (tmp_path / "lake" / "extract").exists()
