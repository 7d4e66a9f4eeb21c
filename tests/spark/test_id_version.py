"""A lake with ids of another version: the plan gives the reason, and all ids are made again."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy import file_ids, node_ids
from codeanatomy.cli.build import plan_lines
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import ContractError
from codeanatomy.graph.rows import NODES
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import ID_VERSION, definition_key
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.run.build import build, plan
from support import light_builds
from support.light_builds import SameProcess, clean_lake, order, refreshed
from support.sessions import SharedSession

WHY = f"its ids are of version {ID_VERSION - 1}, this release makes version {ID_VERSION}: all steps run"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two sources, and a lake of both whose ids a release with other keys has made."""
    folder = tmp_path_factory.mktemp("older")
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "a.py").write_text("def f(x):\n    return f(x)\n")
        (folder / name / "b.py").write_text("from a import f\nf(1)\n")

    def key(repo_id: str, path: str, qualified: str = "") -> str:
        return definition_key(f"older {repo_id}", path, qualified)

    with pytest.MonkeyPatch.context() as patch:
        for module in (node_ids, file_ids):
            patch.setattr(module, "definition_key", key)
        patch.setattr(node_ids, "ID_VERSION", ID_VERSION - 1)
        patch.setattr(light_builds, "KEPT", SameProcess())
        clean_lake(folder / "lake", sources(folder))
    return folder


def sources(folder: Path) -> dict[str, Path]:
    return {name: folder / name for name in ("one", "two")}


def ids_in(lake: Path) -> dict[str, set[str]]:
    """The ids of the nodes of files by repository."""
    columns, version = ["repo_id", "owner_file_id", "node_id"], Snapshot.open(str(lake)).pins[NODES].version
    ids: dict[str, set[str]] = {}
    for row in light_table(str(lake), NODES, columns, version=version).to_pylist():
        if row["owner_file_id"] is not None:
            ids.setdefault(row["repo_id"], set()).update((row["node_id"], row["owner_file_id"]))
    return ids


def test_an_edit_is_not_a_refresh(older: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(older, tmp_path / "copy")
    (folder / "one/b.py").write_text("from a import f\nf(2)\n")
    made = plan(order(folder / "lake", sources(folder)), Progress(io.StringIO()))
    assert {(each.action, each.why) for step in made.steps for each in step.repositories} == {("run", WHY)}
    assert made.changes == {}
    assert f"  run     one: {WHY}" in list(plan_lines(made))
    report = refreshed(folder / "lake", sources(folder))
    assert {each for done in report.steps.values() for each in done.values()} == {"run"}


def test_all_ids_are_made_again(older: Path, tmp_path: Path, spark: SparkSession) -> None:
    folder = shutil.copytree(older, tmp_path / "copy")
    lake = folder / "lake"
    before = ids_in(lake)
    with pytest.raises(ContractError, match="the ids of two are of version 1"):
        build(order(lake, {"one": folder / "one"}), Progress(io.StringIO()), SharedSession(spark))
    report = build(order(lake, sources(folder)), Progress(io.StringIO()), SharedSession(spark))
    assert {each for done in report.steps.values() for each in done.values()} == {"run"}
    after = ids_in(lake)
    for repo_id, ids in before.items():
        assert len(after[repo_id]) == len(ids)
        assert not after[repo_id] & ids
    assert {row.id_version for row in read_manifest(str(lake))[-2:]} == {ID_VERSION}
    assert plan(order(lake, {"one": folder / "one"}), Progress(io.StringIO())).nothing_to_do
    clean_lake(folder / "clean", sources(folder))
    assert not compare_lakes(str(lake), str(folder / "clean")).differences
