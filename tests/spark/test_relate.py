"""The relate stage in a build: the same rows as in one process, for many repositories and hostile files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.cli.main import cli
from codeanatomy.relate.compile.file_program import compile_file
from codeanatomy.relate.relation_rows import RELATIONS
from support.callgraph_score import FOLDER, cases
from support.relate_stage import repository_rows, sources_below, witnessed
from support.spark_builds import built, rows
from support.two_repositories import apart_lake, copied_lake, put


@pytest.fixture(scope="module")
def stored(lake: Path) -> list[dict[str, Any]]:
    return rows(lake, RELATIONS)


def test_rows_are_those_of_one_process(stored: list[dict[str, Any]], repositories: dict[str, Path]) -> None:
    columns = catalog.table(RELATIONS).column_names
    chosen = {"hostile", *(case.repo_id for case in cases())}
    for repo_id in sorted(chosen & repositories.keys()):
        folder = repositories[repo_id]
        sources = {path: text for path, text in sources_below(folder).items() if path != "undecodable.py"}
        programs = [compile_file(witnessed(text, path, repo_id)) for path, text in sources.items()]
        here = [row for _, tables in repository_rows(programs) for row in tables[RELATIONS].to_pylist()]
        there = [row for row in stored if row["repo_id"] == repo_id]
        assert len(here) == len(there)
        by_key = {key_of(row): row for row in here}
        same = (row == {name: by_key[key_of(row)][name] for name in columns} for row in there)
        assert all(same), repo_id


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in catalog.table(RELATIONS).primary_key)


def test_keys_are_unique_and_owners_exist(stored: list[dict[str, Any]], lake: Path) -> None:
    assert len(set(map(key_of, stored))) == len(stored)
    files = {row["file_id"]: row["path"] for row in rows(lake, "repo_files_v1")}
    assert all(files[row["owner_file_id"]] == row["path"] for row in stored)


def test_every_call_has_an_answer_or_a_reason(stored: list[dict[str, Any]], lake: Path) -> None:
    answered = {
        (row["owner_file_id"], row["bstart"], row["bend"])
        for row in stored
        if row["src_kind"] == "CALLSITE" and row["relation_kind"] in ("CALLS", "CALLS_NAME", "INSTANTIATES")
    }
    for file in rows(lake, "libcst_files_v1"):
        if file["repo_id"] == "f_strings_misplaced":
            # Before Python 3.12 these calls have no place in the tree: their rows start from its nodes.
            continue
        for call in file["callsites"] or ():
            place = (file["file_id"], call["call_bstart"], call["call_bend"])
            assert place in answered, (file["path"], call)
    reasons = Counter(row["reason"] for row in stored if row["dst_id"] is None)
    assert reasons["no_syntax_tree"] > 0
    assert None not in reasons


def test_an_inconsistent_hierarchy_is_a_diagnostic(lake: Path) -> None:
    found = [row for row in rows(lake, "relate_diagnostics_v1") if row["diag_kind"] == "relate"]
    told = {(row["path"], row["diag_line_start"], row["diag_code"]) for row in found}
    assert ("mro.py", 3, "inconsistent_mro") in told


def test_the_command_prints_the_labelled_call_graphs(lake: Path) -> None:
    said = CliRunner().invoke(cli, ["callgraph", "--lake", str(lake), "--format", "jsonl"])
    assert said.exit_code == 0
    graphs = {line["repo_id"]: line["calls"] for line in map(json.loads, said.output.splitlines())}
    misses = json.loads((FOLDER / "misses.json").read_text(encoding="utf-8"))
    labelled = {case.repo_id: case.calls for case in cases() if case.repo_id in graphs.keys() - misses.keys()}
    assert labelled
    assert {name: graphs[name] for name in labelled} == labelled


def test_one_repository_as_one_object(lake: Path) -> None:
    case = next(case for case in cases() if case.construct == "imports")
    asked = ["callgraph", "--lake", str(lake), "--repo-id", case.repo_id, "--format", "json"]
    said = CliRunner().invoke(cli, asked)
    assert json.loads(said.output) == case.calls
    wrong = CliRunner().invoke(cli, ["callgraph", "--lake", str(lake), "--repo-id", "nope"])
    assert wrong.exit_code != 0
    assert "imports" in str(wrong.exception)


def test_the_command_ends_well(lake: Path) -> None:
    """Threads that are still there when the interpreter ends once aborted a tenth of the calls."""
    command = [sys.executable, "-m", "codeanatomy", "callgraph", "--lake", str(lake), "--format", "jsonl"]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(6)]
    assert [process.wait(60) for process in running] == [0] * 6


@pytest.mark.system
def test_a_build_that_ends_earlier_is_told(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = copied_lake(tmp_path, apart_lake(spark, tmp_path_factory))
    asked = ["callgraph", "--lake", str(lake), "--repo-id", "b", "--format", "json"]
    assert CliRunner().invoke(cli, asked).stderr == ""
    changed = put(tmp_path, "b")
    (changed / "one_more.py").write_text("x = 1\n")
    built(spark, lake, {"b": changed}, until="extract")
    assert "build it again without --until" in CliRunner().invoke(cli, asked).stderr
