"""Edits one after the other: after each of them a refreshed lake has the rows of a clean one.

The edits are those of `edits.script`, and the releases of real packages. A failure names the seed, the number
of the step and the kind of the edit, from which it can be repeated.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
from deltalake import DeltaTable

from codeanatomy.catalog.readers import VECTORS_NAME
from codeanatomy.delta.read.open_table import location
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from codeanatomy.run.build import plan
from support.edits import Tree, read_tree, repository, script, write_tree
from support.histories import history
from support.light_builds import MODERN, clean_lake, order, refreshed

REPOSITORY = "app"
# Their rows are counted, in every published run.
COUNTED = ("repo_files_v1", "relations_v1", "cpg_nodes", "cpg_edges")
# After so many steps the runs that were published before are opened again.
LOOK_BACK = 10


class Version(NamedTuple):
    """A tree, and how it came about."""

    name: str
    tree: Tree
    # Written although their bytes are equal.
    touched: tuple[str, ...] = ()


def scripted(seed: int, steps: int) -> Iterator[Version]:
    tree = repository(seed)
    yield Version("start", tree)
    for number, edit in enumerate(script(seed, steps), start=1):
        tree = edit.apply(tree)
        yield Version(f"seed {seed}, step {number}, {edit.name} {edit.parts}", tree, tuple(edit.writes))


def released(package: str) -> Iterator[Version]:
    return (Version(f"{package} {version}", read_tree(source)) for version, source in history(package))


def follow(work: Path, versions: Iterator[Version], *settings: str) -> None:
    """Build the first version, refresh to each other one, and hold every state against a clean lake."""
    source, lake = work / "source", work / "lake"
    first = next(versions)
    write_tree(source, first.tree)
    clean_lake(lake, {REPOSITORY: source}, *settings)
    counts: dict[str, dict[str, int]] = {}
    for number, version in enumerate(versions, start=1):
        write_tree(source, version.tree, version.touched)
        if not is_small(lake, source):
            shutil.rmtree(lake)
            counts.clear()
            clean_lake(lake, {REPOSITORY: source}, *settings)
            continue
        report = refreshed(lake, {REPOSITORY: source}, *settings)
        clean = work / "clean"
        shutil.rmtree(clean, ignore_errors=True)
        clean_lake(clean, {REPOSITORY: source})
        found = compare_lakes(str(lake), str(clean))
        assert not found.tables, (version.name, found.tables, found.differences[:5])
        ours, theirs = (Snapshot.open(str(each)).repositories[REPOSITORY] for each in (lake, clean))
        assert nonzero(ours.row_counts) == nonzero(theirs.row_counts), version.name
        assert ours.error_counts == theirs.error_counts, version.name
        counts[report.run_id] = {
            name: len(Snapshot.open(str(lake)).rows(name, ["repo_id"])) for name in COUNTED
        }
        if number % LOOK_BACK == 0:
            assert published(lake, counts) == counts, version.name
    checked = verify(str(lake))
    assert not checked.total, checked.findings[:5]
    assert published(lake, counts) == counts


def is_small(lake: Path, source: Path) -> bool:
    """Whether a change is refreshed: of a release, more paths may have changed than there are now."""
    found = plan(order(lake, {REPOSITORY: source}), Progress(io.StringIO()))
    return not found.step("extract").runs_for


def nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def published(lake: Path, runs: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The rows of tables as older runs have published them."""
    known = recorded_runs(str(lake))
    opened = {run.run_id: Snapshot.after(str(lake), known[: number + 1]) for number, run in enumerate(known)}
    return {
        run_id: {name: len(opened[run_id].rows(name, ["repo_id"])) for name in COUNTED} for run_id in runs
    }


@pytest.mark.system
@pytest.mark.parametrize("seed", [4])
def test_edits_one_after_the_other(seed: int, tmp_path: Path) -> None:
    follow(tmp_path, scripted(seed, 1))


@pytest.mark.system
def test_a_few_releases(tmp_path: Path) -> None:
    follow(tmp_path, islice(released("requests"), 3))


@pytest.mark.system
@pytest.mark.parametrize("seed", range(2))
def test_many_edits_one_after_the_other(seed: int, tmp_path: Path) -> None:
    follow(tmp_path, scripted(seed, 100))


@pytest.mark.system
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_edits_of_a_lake_with_deletion_vectors(seed: int, tmp_path: Path) -> None:
    follow(tmp_path, scripted(seed, 100), MODERN)
    assert VECTORS_NAME in Snapshot.open(str(tmp_path / "lake")).pins["cpg_nodes"].features


@pytest.mark.system
def test_many_edits_of_a_lake_for_all_readers(tmp_path: Path) -> None:
    follow(tmp_path, scripted(5, 40), "delta.readers=all")
    lake = str(tmp_path / "lake")
    for name, pin in Snapshot.open(lake).pins.items():
        rows = DeltaTable(location(lake, name)).to_pyarrow_dataset().to_table(columns=["repo_id"])
        assert len(rows) == pin.rows, name


@pytest.mark.system
@pytest.mark.parametrize("package", ["flask", "requests"])
def test_releases_one_after_the_other(package: str, tmp_path: Path) -> None:
    follow(tmp_path, released(package))
