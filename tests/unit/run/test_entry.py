from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import codeanatomy
from codeanatomy import catalog
from codeanatomy.errors import EnvironmentProblem, UnknownName, UsageError
from codeanatomy.query.checks.compare import compare_lakes
from support.folders import write_sources

SOURCE = {"m.py": "def f(): ...\n\n\ndef g():\n    return f()\n"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_sources(tmp_path / "app", SOURCE)


def test_importing_the_package_imports_nothing_else() -> None:
    script = """
import sys
import codeanatomy
heavy = ("codeanatomy.", "pyspark", "pyarrow", "duckdb")
print(*sorted(name for name in sys.modules if name.startswith(heavy)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_public_names_are_found_and_others_are_not() -> None:
    assert {*codeanatomy.__all__} <= {*dir(codeanatomy)}
    assert all(getattr(codeanatomy, name) for name in codeanatomy.__all__)
    assert codeanatomy.errors.UsageError is UsageError
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = codeanatomy.nothing  # type: ignore[attr-defined]


def test_a_python_without_the_packages_is_named() -> None:
    script = """
import sys
sys.modules["pyarrow"] = None
import codeanatomy
try:
    codeanatomy.build
except codeanatomy.errors.EnvironmentProblem as problem:
    print(problem.message)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "this Python cannot import pyarrow, which codeanatomy needs\n"
    assert EnvironmentProblem.exit_code == 4


@pytest.mark.parametrize("form", ["path", "text", "list", "mapping"])
def test_sources_may_be_one_several_or_named(source: Path, tmp_path: Path, form: str) -> None:
    sources: dict[str, Any] = {
        "path": source,
        "text": str(source),
        "list": [source],
        "mapping": {"app": source},
    }
    planned = codeanatomy.plan_build(sources[form], tmp_path / "lake", engine="local", types="off")
    assert [each.repo_id for each in planned.steps[0].repositories] == ["app"]
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"types": "maybe"}, "types='maybe': Invalid enum value 'maybe'", "known: auto, off"),
        ({"profile": "x"}, "profile='x': Invalid enum value 'x'", "known: default, full"),
        ({"engine": "auto"}, "engine='auto': Invalid enum value 'auto'", "known: spark, local"),
        ({"full": "no"}, "full='no': Expected `bool`, got `str`", "give it a value of that type"),
        ({"since": 3}, "since=3: Expected `str | null`, got `int`", "give it a value of that type"),
        ({"until": 3}, "until=3: Expected `str | null`, got `int`", "give it a value of that type"),
        ({"scip": 5}, "scip=5: Expected `str`, or several", "name an index, several, or auto"),
        ({"scip": [5]}, "scip=[5]: Expected `str`, or several", "name an index, several, or auto"),
        ({"settings": 3}, "settings=3: Expected Settings or a mapping", 'write {"extract.partitions": 64}'),
    ],
)
def test_options_of_another_type_or_value_are_refused(
    source: Path, tmp_path: Path, options: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        codeanatomy.plan_build(source, tmp_path / "lake", **{"engine": "local", "types": "off", **options})
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("sources", [None, 5, [5], {"app": None}])
def test_sources_that_are_no_paths_are_refused(sources: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no path or URI of a source"):
        codeanatomy.plan_build(sources, tmp_path / "lake", engine="local")


def test_a_name_that_is_none_of_a_repository_is_named(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'a b' is no name of a repository"):
        codeanatomy.plan_build({"a b": source}, tmp_path / "lake", engine="local")


@pytest.mark.parametrize("lake", [None, 4])
def test_a_lake_that_is_no_path_is_refused(source: Path, lake: Any) -> None:
    with pytest.raises(UsageError, match="is no path or URI of a lake"):
        codeanatomy.plan_build(source, lake, engine="local")


def test_a_lake_is_built_and_read(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"runtime.cores": 1, "delta.readers": "all"}
    lake = tmp_path / "lake"
    report = codeanatomy.build({"app": source}, lake, engine="local", types="off", settings=settings)
    assert (report.status, report.repositories["app"].files) == ("succeeded", 1)
    assert capsys.readouterr() == ("", "")
    assert [row["symbol"] for row in codeanatomy.Lake.open(lake).callers("m.f").rows] == ["m.g"]
    other = tmp_path / "other"
    codeanatomy.build([source], str(other), engine="local", types="off", progress=True)
    assert "extract" in capsys.readouterr().err
    compared = compare_lakes(str(lake), str(other))
    assert not compared.tables
    assert compared.rows[catalog.table("cpg_nodes").name] > 0


def test_options_that_are_not_valid_are_refused(source: Path, tmp_path: Path) -> None:
    session: Any = object()
    with pytest.raises(UsageError, match="runs on Spark, not on the engine local"):
        codeanatomy.build(source, tmp_path / "lake", spark=session, engine="local")
    with pytest.raises(UsageError, match="--master is for builds on Spark"):
        codeanatomy.build(source, tmp_path / "lake", settings={"runtime.master": "yarn"}, engine="local")
    with pytest.raises(UnknownName, match=r"unknown setting 'runtime\.core'"):
        codeanatomy.build(source, tmp_path / "lake", settings={"runtime.core": 1})
    with pytest.raises(UsageError, match="nothing to build"):
        codeanatomy.build([], tmp_path / "lake")
