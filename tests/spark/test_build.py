"""Builds on Spark: every table from every file, failures as rows, repositories apart from each other."""

from __future__ import annotations

import ast
import io
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import json
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from codeanatomy import catalog
from codeanatomy.catalog.settings import ObserveOptions
from codeanatomy.config import RuntimeProfile, load_settings
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.worker import extract_tables
from codeanatomy.lake.engine_facts import engine_facts, engine_text
from codeanatomy.pipeline.tasks.pieces import COUNTS, DATA_FILE, SMALL
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.plan.repositories import Repository
from codeanatomy.progress import Progress
from codeanatomy.query.status.failures import failures
from codeanatomy.run.build import build, plan
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.digest import source_digest, states_digest, stored_file_states
from codeanatomy.tracing import open_trace
from support import corpus
from support.sessions import SharedSession
from support.spark_builds import built, rows, timeless

TABLES = extract_tables(EXTRACTORS)
WITNESS_TABLES = tuple(witness.table for witness in EXTRACTORS)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are hard to read, among some that are not."""
    folder = tmp_path_factory.mktemp("hostile")
    files = {
        "good.py": b"def f(a):\n    return a.b(1)\n",
        "empty.py": b"",
        "latin1.py": "# coding: latin-1\né = 'ü'\n".encode("latin-1"),
        "bom.py": b"\xef\xbb\xbfx = 1\r\n",
        "cr.py": b"x = 1\ry = 2\r",
        "nul.py": b"x = 1\n\0y = 2\n",
        "binary.py": bytes(range(256)) * 10,
        "undecodable.py": b"x = '\xff'\n",
        "python2.py": b"print 'hello'\nexec 'x'\n",
        "newer.py": b"type X[T] = list[T]\n",
        "parentheses.py": b"x = " + b"(" * 10_000 + b")" * 10_000 + b"\n",
        "large.py": b"#" * 300_000,
        "surrogate.py": b"'''\\ud800'''\nx = '\\udfff'\n",
    }
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    (folder / "link.py").symlink_to("good.py")
    os.mkfifo(folder / "pipe.py")
    (folder / os.fsdecode(b"caf\xe9.py")).write_bytes(b"x = 1\n")
    (folder / ".gitignore").write_text("ignored/\n")
    (folder / "ignored").mkdir()
    (folder / "ignored" / "a.py").write_text("x = 1\n")
    return folder


LIMITS = ("extract.max_file_size=256KB", "extract.file_seconds=20")


@pytest.fixture(scope="module")
def hostile_lake(spark: SparkSession, hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("hostile-lake")
    report = built(spark, lake, {"hostile": hostile}, settings=LIMITS)
    assert report.status == "succeeded"
    assert set(report.tables) == set(TABLES)
    assert report.errors == Counter(row["extractor_name"] for row in rows(lake, FAILURES))
    assert len(report.errors) >= 4
    return lake


def test_what_was_read_is_what_was_planned(hostile: Path, hostile_lake: Path) -> None:
    options = load_settings(LIMITS, env={}, start=None).extract
    found = rows(hostile_lake, "repo_files_v1")
    digest = states_digest(stored_file_states(found))
    assert digest == source_digest(list_source(hostile, options), options)
    assert [row["source_digest"] for row in rows(hostile_lake, "run_manifest")] == [digest]


def test_the_engine_is_recorded(hostile_lake: Path) -> None:
    (row,) = rows(hostile_lake, "run_manifest")
    names = ("engine", "master", "session_kind", "spark_version", "delta_version")
    expected = ("spark", "local[*]", "own", version("pyspark"), version("delta-spark"))
    assert tuple(row[name] for name in names) == expected


def test_a_source_that_changes_while_it_is_read_is_recorded_as_it_was_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, lake = tmp_path / "r", tmp_path / "lake"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")

    class EditingSession(SharedSession):
        def start(self) -> None:
            # Planned with, and not read yet.
            (source / "a.py").write_text("x = 2  # edited\n")
            super().start()

    order = BuildRequest(
        str(lake),
        load_settings((), env={}, start=None),
        (Repository("r", source),),
        until="extract",
    )
    build(order, Progress(io.StringIO()), EditingSession(spark))
    assert [row["text"] for row in rows(lake, "repo_file_blobs_v1")] == ["x = 2  # edited\n"]
    assert plan(order, Progress(io.StringIO())).nothing_to_do
    (source / "a.py").write_text("x = 1\n")
    assert plan(order, Progress(io.StringIO())).step("extract").runs_for == ("r",)


def test_every_path_has_a_row_and_its_reason(hostile_lake: Path) -> None:
    reasons = {row["path"]: row["skipped_reason"] for row in rows(hostile_lake, "repo_files_v1")}
    assert {path: reason for path, reason in reasons.items() if reason} == {
        "binary.py": "binary",
        "undecodable.py": "undecodable",
        "large.py": "too_large",
        "link.py": "symlink",
        "pipe.py": "not_a_file",
        "ignored": "ignored",
    }
    assert {"good.py", "empty.py", "nul.py", "caf\\xe9.py"} <= reasons.keys()


def test_what_one_witness_cannot_read_others_do(hostile_lake: Path) -> None:
    spoke = {
        name: {row["path"] for row in rows(hostile_lake, name) if row[first] is not None}
        for name, first in zip(
            WITNESS_TABLES, ("nodes", "blocks", "code_objects", "refs", "nodes"), strict=True
        )
    }
    everywhere = {"good.py", "empty.py", "latin1.py", "bom.py", "cr.py", "surrogate.py", "caf\\xe9.py"}
    assert all(everywhere <= paths for paths in spoke.values())
    for path in ("python2.py", "newer.py", "parentheses.py", "nul.py"):
        assert path not in spoke["ast_files_v1"]
        assert path in spoke["tree_sitter_files_v1"]
    assert "newer.py" in spoke["libcst_files_v1"]


def test_failures_name_file_extractor_and_place(hostile_lake: Path) -> None:
    found = {(row["path"], row["extractor_name"]): row for row in rows(hostile_lake, FAILURES)}
    assert found["python2.py", "ast_files_v1"]["line"] == 1
    assert found["python2.py", "ast_files_v1"]["error_type"] == "SyntaxError"
    assert found["parentheses.py", "libcst_files_v1"]["error_type"] == "crashed"
    assert found["binary.py", "repo_files_v1"]["error_type"] == "binary"
    assert not any(path in ("good.py", "empty.py", "latin1.py", "ignored") for path, _ in found)
    answer = failures(str(hostile_lake))
    assert answer.total == len(found)
    assert "python2.py:1" in {row.place for row in answer.rows}
    assert len(failures(str(hostile_lake), limit=2).rows) == 2


def test_text_is_canonical(hostile_lake: Path) -> None:
    texts = {row["path"]: row for row in rows(hostile_lake, "repo_file_blobs_v1")}
    assert texts["latin1.py"]["text"] == "# coding: latin-1\né = 'ü'\n"
    assert (texts["bom.py"]["text"], texts["bom.py"]["bytes"][:3]) == ("x = 1\r\n", b"\xef\xbb\xbf")
    assert (texts["undecodable.py"]["text"], texts["undecodable.py"]["bytes"]) == (None, b"x = '\xff'\n")
    lines = [
        row["newline_kind"] for row in rows(hostile_lake, "file_line_index_v1") if row["path"] == "cr.py"
    ]
    assert lines == ["cr", "cr"]


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.system), 7])
def test_partitions_do_not_change_rows(
    spark: SparkSession, hostile: Path, hostile_lake: Path, tmp_path: Path, partitions: int
) -> None:
    built(spark, tmp_path, {"hostile": hostile}, settings=(*LIMITS, f"extract.partitions={partitions}"))
    for name in TABLES:
        assert timeless(rows(tmp_path, name)) == timeless(rows(hostile_lake, name)), name


def test_a_real_package_is_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    folder = corpus.package("requests")
    report = built(spark, tmp_path, {"requests": folder})
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))
    assert report.errors == {}
    assert report.repositories["requests"].files == len(files)
    found = {row["path"]: len(row["nodes"]) for row in rows(tmp_path, "ast_files_v1")}
    assert sorted(found) == files
    for path, count in found.items():
        assert count == len(list(ast.walk(ast.parse((folder / path).read_bytes())))), path


def test_a_second_build_replaces_the_first(spark: SparkSession, tmp_path: Path) -> None:
    source, lake = tmp_path / "source", tmp_path / "lake"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    (source / "gone.py").write_text("def broken(:\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.py").write_text("o = 1\n")
    first = built(spark, lake, {"one": source, "two": other})
    assert failures(str(lake)).total == 4
    (source / "a.py").write_text("x = 2\n")
    (source / "gone.py").unlink()
    second = built(spark, lake, {"one": source})
    assert (first.tables["ast_files_v1"].version, second.tables["ast_files_v1"].version) == (0, 1)
    texts = {(row["repo_id"], row["path"]): row["text"] for row in rows(lake, "repo_file_blobs_v1")}
    assert texts == {("one", "a.py"): "x = 2\n", ("two", "o.py"): "o = 1\n"}
    assert {(row["repo_id"], row["path"]) for row in rows(lake, "file_line_index_v1")} == set(texts)
    assert failures(str(lake)).total == 0
    manifest = rows(lake, "run_manifest")
    assert [(row["run_id"], row["repo_id"]) for row in manifest] == sorted(
        [(first.run_id, "one"), (first.run_id, "two"), (second.run_id, "one")]
    )


def test_many_repositories_and_one_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    sources = {}
    for number in range(100):
        folder = tmp_path / f"r{number}"
        folder.mkdir()
        (folder / "m.py").write_text(f"x = {number}\n")
        sources[f"r{number}"] = folder
    sources["missing"] = tmp_path / "nowhere"
    lake = tmp_path / "lake"
    report = built(spark, lake, sources)
    assert report.status == "failed"
    assert [name for name, each in report.repositories.items() if each.status == "failed"] == ["missing"]
    assert "nowhere" in (report.repositories["missing"].error or "")
    assert {row["repo_id"] for row in rows(lake, "ast_files_v1")} == set(sources) - {"missing"}
    assert {row["repo_id"] for row in rows(lake, "run_manifest") if row["status"] == "failed"} == {"missing"}
    assert [row.extractor for row in failures(str(lake)).rows] == ["build"]


@pytest.mark.parametrize(
    ("kind", "archive"),
    [("zip", "packed.zip"), pytest.param("gztar", "packed.tar.gz", marks=pytest.mark.system)],
)
def test_an_archive_is_its_folder(spark: SparkSession, tmp_path: Path, kind: str, archive: str) -> None:
    source = tmp_path / "source"
    (source / "pkg").mkdir(parents=True)
    (source / "pkg" / "__init__.py").write_text("from . import a\n")
    (source / "pkg" / "a.py").write_text("x = 1\n")
    shutil.make_archive(str(tmp_path / "packed"), kind, source)
    built(spark, tmp_path / "plain", {"r": source})
    built(spark, tmp_path / "lake", {"r": tmp_path / archive})
    for name in ("repo_files_v1", "repo_file_blobs_v1", "libcst_files_v1"):
        assert timeless(rows(tmp_path / "lake", name)) == timeless(rows(tmp_path / "plain", name))


def test_a_build_is_a_trace_of_steps_and_commits(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "a.py").write_text("x = 1\n")
    with open_trace(ObserveOptions(trace="console")) as trace:
        report = built(spark, tmp_path / "lake", {"r": tmp_path / "r"}, trace=trace)
    spans = {each["span"]: each for each in map(json.decode, capsys.readouterr().err.splitlines())}
    assert set(spans) == {"run", "step extract", *(f"commit {name}" for name in TABLES)}
    assert {each["trace_id"] for each in spans.values()} == {trace.trace_id}
    assert spans["run"]["attributes"] | {"lake": ""} == {
        "run_id": report.run_id,
        "lake": "",
        "repositories": 1,
        "engine": engine_text(engine_facts(RuntimeProfile())),
    }
    assert spans["step extract"]["parent_id"] == spans["run"]["span_id"]
    commit = spans["commit ast_files_v1"]
    assert commit["parent_id"] == spans["step extract"]["span_id"]
    assert (commit["attributes"]["rows"], commit["attributes"]["version"]) == (1, 0)
    assert [row["trace_id"] for row in rows(tmp_path / "lake", "run_manifest")] == [trace.trace_id]


def test_a_repository_that_was_emptied(spark: SparkSession, tmp_path: Path) -> None:
    source, lake = tmp_path / "source", tmp_path / "lake"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    built(spark, lake, {"r": source})
    (source / "a.py").unlink()
    report = built(spark, lake, {"r": source})
    assert set(report.tables) == set(TABLES)
    assert all(rows(lake, name) == [] for name in TABLES)


def test_nothing_of_a_table_passes_through_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the driver takes from Spark are counts and descriptions of data files, some for each task."""
    source, files, bytes_each = tmp_path / "source", 30, 20_000
    source.mkdir()
    for number in range(files):
        text = f"x = '{random.Random(number).randbytes(bytes_each // 2).hex()}'\n"
        (source / f"m{number}.py").write_text(f"def f(a): return a\n{text}")
    taken: list[int] = []
    names: set[str] = set()
    collect, iterate, to_arrow = DataFrame.collect, DataFrame.toLocalIterator, DataFrame.toArrow

    def collected(self: DataFrame) -> list[Any]:
        found = collect(self)
        taken.append(len(found))
        return found

    def iterated(self: DataFrame, prefetchPartitions: bool = False) -> Iterator[Any]:  # noqa: N803
        found = list(iterate(self, prefetchPartitions))
        taken.append(len(found))
        return iter(found)

    def as_arrow(self: DataFrame) -> pa.Table:
        found = to_arrow(self)
        names.update(found.column("name").to_pylist())
        assert found.nbytes < bytes_each * files / 10
        return found

    monkeypatch.setattr(DataFrame, "collect", collected)
    monkeypatch.setattr(DataFrame, "toLocalIterator", iterated)
    monkeypatch.setattr(DataFrame, "toPandas", None)
    monkeypatch.setattr(DataFrame, "toArrow", as_arrow)
    settings = ("extract.partitions=2",)
    built(spark, tmp_path / "lake", {"r": source}, until=None, settings=settings)
    # Pieces, and the tables of the data files that the last job has written.
    assert {COUNTS, DATA_FILE} < names <= {*SMALL, *(table.name for table in catalog.TABLES)}
    assert max(taken, default=0) <= 2 * len(TABLES)
