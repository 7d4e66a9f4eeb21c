"""The normalize stage in a build: nine tables that fit together, for any files, however they are spread."""

from __future__ import annotations

import shutil
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.normalize.diagnostics import diagnostics_norm_v1
from codeanatomy.normalize.span_errors import span_errors_v1
from support import corpus
from support.spark_builds import built, rows

NORMALIZED = [table for table in catalog.TABLES if table.stage == "normalize"]
FILES = {
    "pkg/__init__.py": b"from .flow import f\n",
    "pkg/flow.py": b"import os\n\ndef f(a: 'int | None', *b):\n    try:\n        x = os.getcwd()\n"
    b"    except OSError as e:\n        raise ValueError(x) from e\n    return [i for i in b if i == a]\n",
    "pkg/umlaut.py": "größe: int = 1\r\ndef ü(ß): return ß + größe\r\n".encode(),
    "pkg/latin.py": "# -*- coding: latin-1 -*-\nx = 'é'; y = x\n".encode("latin-1"),
    "broken.py": b"def f(:\n    pass\n",
    "python2.py": b"print 'x'\n",
    "undecodable.py": b"x = '\xff'\n",
    "warned.py": b"x = 1 is 1\n",
    "empty.py": b"",
}


def write(folder: Path) -> Path:
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repositories of the same files; one of them was built before, with a file that is gone."""
    lake = tmp_path_factory.mktemp("lake")
    before = shutil.copytree(source, tmp_path_factory.mktemp("before") / "copy")
    (before / "extra.py").write_text("def g(x: int): return x\n")
    (before / "worse.py").write_text("def g(:\n")
    report = built(spark, lake, {"one": before, "two": source}, until="normalize")
    assert report.status == "succeeded"
    assert {table.name for table in NORMALIZED} <= set(report.tables)
    built(spark, lake, {"one": source}, until="normalize")
    return lake


@pytest.fixture(scope="module")
def stored(lake: Path) -> dict[str, list[dict[str, Any]]]:
    return {table.name: rows(lake, table.name) for table in NORMALIZED}


def test_keys_are_unique_and_point_somewhere(lake: Path, stored: dict[str, list[dict[str, Any]]]) -> None:
    files = {row["file_id"] for row in rows(lake, "repo_files_v1")}
    for table in NORMALIZED:
        found = stored[table.name]
        keys = [tuple(row[name] for name in table.primary_key) for row in found]
        assert len(set(keys)) == len(keys), table.name
        for key in table.foreign_keys:
            there = files
            if key.table in stored:
                there = {row[key.target[0]] for row in stored[key.table]}
            assert {row[key.columns[0]] for row in found} <= there, (table.name, key)


def test_equal_files_of_two_repositories_differ_in_ids_only(stored: dict[str, list[dict[str, Any]]]) -> None:
    """Also: a second build of one leaves what a first build gives, and the other is untouched."""
    for table in NORMALIZED:
        ids = {column.name for column in table.columns if column.name.endswith("_id")} | {"evidence_key"}
        plain = [
            {
                repr({name: value for name, value in row.items() if name not in ids})
                for row in stored[table.name]
                if row["repo_id"] == repo
            }
            for repo in ("one", "two")
        ]
        assert plain[0] == plain[1], table.name


def test_every_row_has_evidence(stored: dict[str, list[dict[str, Any]]]) -> None:
    evidence = stored["normalize_evidence_v1"]
    for table in NORMALIZED[:-1]:
        key = table.primary_key[0]
        known = {row["evidence_key"] for row in evidence if row["dataset_name"] == table.name}
        assert known == {row[key] for row in stored[table.name]}, table.name
    trust = {row["evidence_key"]: row["confidence"] for row in evidence}
    kinds = {row["bc_reach_id"]: row["bc_reach_kind"] for row in stored["py_bc_reaches_v1"]}
    assert {(kind, trust[key]) for key, kind in kinds.items()} == {
        ("local", 0.9),
        ("closure", 0.7),
        ("global", 0.7),
    }
    assert {confidence for key, confidence in trust.items() if key not in kinds} == {1.0}
    assert {row["timestamp_ms"] is None for row in evidence} == {False}
    anchored = [row["bc_event_id"] for row in stored["py_bc_def_use_events_v1"] if row["bstart"] is not None]
    assert sorted(anchored) == sorted(row["evidence_key"] for row in evidence if row["role"] == "anchor")


def test_inputs_are_those_of_the_catalogue() -> None:
    for make in (span_errors_v1, diagnostics_norm_v1):
        assert tuple(signature(make).parameters) == ("file", *catalog.table(make.__name__).inputs)


def test_flow_of_a_function(stored: dict[str, list[dict[str, Any]]]) -> None:
    """`x` is unbound in the handler: the only definition did not happen when the call failed."""
    events = {row["bc_event_id"]: row for row in stored["py_bc_def_use_events_v1"] if row["repo_id"] == "one"}
    of_x = [row for row in events.values() if row["bc_var_name"] == "x" and row["path"] == "pkg/flow.py"]
    assert [(row["bc_event_kind"], row["line"], row["bc_may_be_unbound"]) for row in of_x] in (
        [("def", 5, None), ("use", 7, True)],
        [("use", 7, True), ("def", 5, None)],
    )
    reached = {row["bc_use_event_id"] for row in stored["py_bc_reaches_v1"]}
    assert not reached & {row["bc_event_id"] for row in of_x}
    closure = [
        (row["bc_var_name"], row["line"], events[row["bc_def_event_id"]]["line"])
        for row in stored["py_bc_reaches_v1"]
        if row["repo_id"] == "one" and row["bc_reach_kind"] != "local" and row["path"] == "pkg/flow.py"
    ]
    assert sorted(closure) == [("a", 8, 3), ("os", 5, 1)]


def test_types_and_places_on_lines_that_are_not_ascii(stored: dict[str, list[dict[str, Any]]]) -> None:
    types = [row for row in stored["type_exprs_norm_v1"] if row["repo_id"] == "one"]
    assert {(row["path"], row["expr_role"], row["target_name"], row["type_repr"]) for row in types} == {
        ("pkg/flow.py", "param", "a", "int | None"),
        ("pkg/umlaut.py", "variable", "größe", "int"),
    }
    text = FILES["pkg/umlaut.py"]
    for row in stored["py_bc_def_use_events_v1"]:
        if row["path"] == "pkg/umlaut.py" and row["bc_event_kind"] == "use" and row["bstart"] is not None:
            assert text[row["bstart"] : row["bend"]].decode() == row["bc_var_name"]


def test_broken_files_are_rows_and_the_others_are_whole(stored: dict[str, list[dict[str, Any]]]) -> None:
    told = {
        (row["path"], row["diag_kind"], row["diag_code"])
        for row in stored["diagnostics_norm_v1"]
        if row["repo_id"] == "one"
    }
    assert {
        ("broken.py", "cpython", "syntax_error"),
        ("python2.py", "cpython", "syntax_error"),
        ("python2.py", "disagreement", "parse_outcome"),
        ("warned.py", "cpython", "syntax_warning"),
    } <= told
    assert any(path == "undecodable.py" for path, *_ in told)
    assert {path for path, *_ in told} == {"broken.py", "python2.py", "warned.py", "undecodable.py"}
    units = {row["path"] for row in stored["py_bc_blocks_norm_v1"]}
    assert units == set(FILES) - {"broken.py", "python2.py", "undecodable.py"}
    assert stored["span_errors_v1"] == []


@pytest.mark.system
@pytest.mark.parametrize("name", ["requests", "flask"])
def test_a_package_built_in_1_2_and_7_partitions(spark: SparkSession, tmp_path: Path, name: str) -> None:
    found = []
    for partitions in (1, 2, 7):
        lake = tmp_path / str(partitions)
        built(
            spark,
            lake,
            {name: corpus.package(name)},
            until="normalize",
            settings=(f"extract.partitions={partitions}",),
        )
        found.append({table.name: rows(lake, table.name) for table in NORMALIZED})
    assert found[0] == found[1] == found[2]
