"""Lakes that Spark built, compared with a clean build."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec import structs
from pyspark.sql import SparkSession

from codeanatomy.config import load_settings
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import UsageError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.run.clean_build import build_clean, build_requests
from codeanatomy.spark import session as sessions
from support.commands import RunCommand, command_runner
from support.sessions import SharedSession
from support.spark_builds import built
from support.two_repositories import apart_lake, built_lake, copied_lake, put

NODES, EDGES, FILES, TREES, MAP = "cpg_nodes", "cpg_edges", "repo_files_v1", "ast_files_v1", "cpg_props_map"


@pytest.mark.system
def test_repositories_built_at_once_are_those_built_apart(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    apart, once = apart_lake(spark, tmp_path_factory), built_lake(spark, tmp_path_factory, 0)
    found = compare_lakes(str(apart), str(once))
    assert not found.differences
    assert all(found.rows[name] for name in (NODES, EDGES, "relations_v1", "normalize_evidence_v1", TREES))
    # Another version of `a` is another; `b` is the same.
    other = built_lake(spark, tmp_path_factory, 1)
    assert {NODES, EDGES, FILES, TREES} < set(compare_lakes(str(apart), str(other)).tables)
    assert compare_lakes(str(apart), str(other), ["b"]).total == 0


SETTINGS = load_settings((), env={}, start=None)


def quiet() -> Progress:
    return Progress(io.StringIO())


@pytest.fixture(scope="module")
def refreshed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake whose repositories were built in two ways, one of them twice, and its sources beside it."""
    folder = tmp_path_factory.mktemp("refreshed")
    lake = folder / "lake"
    assert built(spark, lake, {"b": put(folder, "b")}, until="normalize").status == "succeeded"
    for version in (0, 1):
        source = {"a": put(folder, "a", version)}
        assert built(spark, lake, source, until=None, profile="full").status == "succeeded"
    return lake


@pytest.mark.system
def test_a_lake_is_what_a_clean_build_gives(spark: SparkSession, refreshed: Path, tmp_path: Path) -> None:
    here = Snapshot.open(str(refreshed))
    clean = build_clean(here, SETTINGS, str(tmp_path / "clean"), quiet(), SharedSession(spark))
    assert {name: row.plan_fingerprints for name, row in clean.repositories.items()} == {
        name: row.plan_fingerprints for name, row in here.repositories.items()
    }
    found = compare_lakes(here, clean)
    assert not found.differences, found.differences


@pytest.mark.system
def test_the_options_are_those_of_the_build(refreshed: Path) -> None:
    rows = Snapshot.open(str(refreshed)).repositories
    orders = build_requests(rows, SETTINGS, "aside", quiet())
    assert {order.repositories[0].repo_id: (order.profile, order.until) for order in orders} == {
        "a": ("full", None),
        "b": ("default", "normalize"),
    }


@pytest.mark.system
def test_what_cannot_be_repeated_is_refused(refreshed: Path, tmp_path: Path) -> None:
    rows = Snapshot.open(str(refreshed)).select_repositories("b")
    copy = shutil.copytree(refreshed.parent / "b", tmp_path / "b")
    moved = {"b": structs.replace(rows["b"], repo_root=str(copy))}
    assert len(build_requests(moved, SETTINGS, "aside", quiet())) == 1
    with pytest.raises(UsageError, match="other settings"):
        build_requests(
            moved, load_settings(("extract.max_value_chars=9",), env={}, start=None), "aside", quiet()
        )
    (copy / "m.py").write_text("changed = 1\n")
    with pytest.raises(UsageError, match="the source of b has changed since run"):
        build_requests(moved, SETTINGS, "aside", quiet())
    shutil.rmtree(copy)
    with pytest.raises(UsageError, match="b cannot be built again"):
        build_requests(moved, SETTINGS, "aside", quiet())
    with pytest.raises(UsageError, match="is not recorded"):
        build_requests({"b": structs.replace(rows["b"], repo_root=None)}, SETTINGS, "aside", quiet())


@pytest.fixture
def run(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> RunCommand:
    """Commands in this process, with the session of the tests."""
    monkeypatch.setattr(sessions, "open_session", lambda *_: spark)
    monkeypatch.setattr(sessions, "leave_session", lambda _: None)
    runner = command_runner(capfd, monkeypatch, tmp_path)
    monkeypatch.setenv("CODEANATOMY_RUNTIME__ENGINE", "spark")
    return runner


@pytest.mark.system
def test_the_command_tells_what_differs(run: RunCommand, refreshed: Path, tmp_path: Path) -> None:
    lake = copied_lake(tmp_path, refreshed)
    where = ("verify", "--against-clean", "--lake", str(lake), "--repo-id", "b")
    code, out, err = run(*where, "--format", "json")
    assert (code, json.loads(out)["total"], json.loads(out)["differences"]) == (0, 0, [])
    assert "0 rows differ;" in err
    # A data file that has lost a row, although the log knows nothing of it.
    name = "file_line_index_v1"
    for file in light_files(str(lake), name):
        place = Path(location(str(lake), name), file.path)
        rows = pq.read_table(place)
        pq.write_table(rows.slice(1) if rows["repo_id"][0].as_py() == "b" else rows, place)
    code, out, err = run(*where)
    assert code == 1
    assert "only_clean" in out
    assert f"{name}: 0 rows only here, 1 only clean" in err
    assert "1 rows differ;" in err
