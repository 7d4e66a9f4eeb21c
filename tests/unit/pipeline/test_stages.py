"""Builds of which some steps were done before: by a run that died, or by one with other rules.

What the skipped steps would have passed on is read from tables, and the rows are those of a clean build.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.lake.lease import read_lease
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.pipeline import drive_files
from codeanatomy.pipeline.group_build import GroupBuild
from codeanatomy.plan import steps
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.query.checks.compare import compare_lakes
from support.edits import GARBAGE, write_tree
from support.light_builds import clean_lake, refreshed
from support.marks import quick
from support.scip_indexes import index

STEPS = ("extract", "normalize", "relate", "graph")
SOURCES = {
    "lib.py": b"def f():\n    return 1\n\n\ndef g():\n    return f()\n",
    "use.py": b"from lib import f, g\nfrom missing import h\n\nx = f()\ng(h)\nx()\n",
    "tops.py": b"class A:\n    pass\n\n\nclass B(A):\n    pass\n",
    "order.py": b"from tops import A, B\n\n\nclass C(A, B):\n    pass\n",
    "broken.py": b"def broken(:\n",
    "garbage.py": GARBAGE,
}
# The call of `x` in use.py has a target now.
EDIT = {"lib.py": b"def f():\n    made = g\n    return made\n\n\ndef g():\n    return f()\n"}
REDONE_FROM = {
    "extract": STEPS,
    "normalize": ("normalize", "graph"),
    "relate": STEPS[2:],
    "graph": STEPS[3:],
}


class Died(Exception):
    """A run that ends here."""


def scip_index(path: Path) -> ScipChoice:
    """Write an index with a document of a file, and one of a file that is not there."""
    return index(path, ("lib.py", 0), ("lib.py", 4), ("nowhere.py", 0))


class Lakes:
    """A lake of the sources, and clean lakes of the sources before and after the edit."""

    def __init__(self, work: Path, **options: Any) -> None:
        self.options = options
        self.sources = {"app": work / "source"}
        self.before, self.after = work / "before", work / "after"
        write_tree(self.sources["app"], SOURCES | EDIT)
        clean_lake(self.after, self.sources, **options)
        write_tree(self.sources["app"], SOURCES)
        clean_lake(self.before, self.sources, **options)


@pytest.fixture(scope="module", params=quick(["plain", "scip"], 0))
def lakes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lakes:
    work = tmp_path_factory.mktemp(request.param)
    return Lakes(work, **({"scip": scip_index(work / "index.scip")} if request.param == "scip" else {}))


@pytest.fixture
def sources(lakes: Lakes) -> Iterator[dict[str, Path]]:
    """The sources, which a test may edit."""
    yield lakes.sources
    write_tree(lakes.sources["app"], SOURCES)


def expect_equal(lake: Path, clean: Path) -> None:
    """Equal rows in all tables, and the same counts in the manifest."""
    compared = compare_lakes(str(lake), str(clean))
    assert not compared.tables, (compared.tables, compared.differences[:5])
    ours, theirs = (Snapshot.open(str(each)).repositories["app"] for each in (lake, clean))
    kept = {name: count for name, count in theirs.row_counts.items() if count}
    assert {name: ours.row_counts.get(name, 0) for name in kept} == kept
    assert ours.error_counts == theirs.error_counts


# Where a run dies, and the steps that the journal has then.
PLACES = {
    "drive_solve._solve": ("extract", "normalize"),
    "drive_solve._commit": ("extract", "normalize"),
    "drive_graph._files_of_graph": ("extract", "normalize", "relate"),
    "drive_graph._refuse_collisions": ("extract", "normalize", "relate"),
}


@pytest.mark.parametrize("place", quick(PLACES, 2))
def test_a_build_resumes_what_a_dead_one_has_done(
    place: str, lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"

    def dies(build: GroupBuild, *_: object) -> None:
        # The commits that go on beside it.
        build.join_commits()
        raise Died

    with monkeypatch.context() as dead:
        dead.setattr(f"codeanatomy.pipeline.{place}", dies)
        with pytest.raises(Died):
            clean_lake(lake, lakes.sources, **lakes.options)
    row = read_lease(str(lake))
    assert row is not None
    done = tuple(each.step_name for each in row.done)
    # Documents of an index are evidence for normalize, which then ends with the graph.
    is_late = "scip" in lakes.options
    resumed = tuple(step for step in PLACES[place] if step != "normalize" or not is_late)
    assert done == resumed
    assert {each.status for each in read_manifest(str(lake))} == {"failed"}
    report = refreshed(lake, lakes.sources, **lakes.options)
    assert {step: report.steps[step]["app"] for step in STEPS} == {
        step: "resume" if step in resumed else "run" for step in STEPS
    }
    expect_equal(lake, lakes.before)
    assert refreshed(lake, lakes.sources, **lakes.options).status == "unchanged"


@pytest.mark.system
def test_steps_of_two_dead_runs_are_resumed(
    lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    for place in ("drive_solve._solve", "drive_graph._files_of_graph"):

        def dies(build: GroupBuild, *_: object) -> None:
            build.join_commits()
            raise Died

        with monkeypatch.context() as dead:
            dead.setattr(f"codeanatomy.pipeline.{place}", dies)
            with pytest.raises(Died):
                clean_lake(lake, lakes.sources, **lakes.options)
    refreshed(lake, lakes.sources, **lakes.options)
    expect_equal(lake, lakes.before)


@pytest.mark.parametrize("is_edited", quick([False, True], 1), ids=["", "edited"])
@pytest.mark.parametrize("changed", quick(STEPS, 2))
def test_steps_with_other_rules_are_done_from_tables(
    changed: str,
    is_edited: bool,
    lakes: Lakes,
    sources: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, digest = tmp_path / "lake", steps.code_digest
    shutil.copytree(lakes.before, lake)
    if is_edited:
        write_tree(sources["app"], SOURCES | EDIT)
    monkeypatch.setattr(steps, "code_digest", lambda step: "new" if step == changed else digest(step))
    report = refreshed(lake, sources, **lakes.options)
    other = "refresh" if is_edited else "skip"
    assert {step: report.steps[step]["app"] for step in STEPS} == {
        step: "run" if step in REDONE_FROM[changed] else other for step in STEPS
    }
    expect_equal(lake, lakes.after if is_edited else lakes.before)
    assert refreshed(lake, sources, **lakes.options).status == "unchanged"


def test_another_profile_and_back(lakes: Lakes, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(lakes.before, lake)
    report = refreshed(lake, lakes.sources, profile="full", **lakes.options)
    assert [step for step in STEPS if report.steps[step]["app"] == "run"] == ["graph"]
    assert compare_lakes(str(lake), str(lakes.before)).tables
    refreshed(lake, lakes.sources, **lakes.options)
    expect_equal(lake, lakes.before)


def test_step_by_step(lakes: Lakes, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for until in STEPS:
        report = clean_lake(lake, lakes.sources, until=until, **lakes.options)
        ran = [step for step, actions in report.steps.items() if actions["app"] == "run"]
        assert ran == [until]
    expect_equal(lake, lakes.before)


# How far a first build goes, and a refresh after an edit; a whole build follows.
STOPS = [
    pytest.param(
        first, second, id=f"{first}-{second}", marks=() if second == "relate" else pytest.mark.system
    )
    for first, second in product(STEPS, STEPS)
]


@pytest.mark.parametrize(("first", "second"), STOPS)
def test_stops_in_every_combination_end_in_the_rows_of_a_clean_build(
    first: str, second: str, lakes: Lakes, sources: dict[str, Path], tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    clean_lake(lake, sources, until=first, **lakes.options)
    write_tree(sources["app"], SOURCES | EDIT)
    partial = refreshed(lake, sources, until=second, **lakes.options)
    assert set(partial.steps) == set(STEPS[: STEPS.index(second) + 1])
    report = refreshed(lake, sources, **lakes.options)
    done = {step for step, each in report.steps.items() if each["app"] == "skip"}
    assert done == set(partial.steps)
    expect_equal(lake, lakes.after)
    assert refreshed(lake, sources, **lakes.options).status == "unchanged"


def test_a_step_is_finished_when_all_groups_have_done_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that is built as a whole comes before those that are refreshed."""
    sources, lake = {name: tmp_path / name for name in ("one", "two", "new")}, tmp_path / "lake"
    for source in sources.values():
        write_tree(source, {"a.py": b"x = 1\n"})
    clean_lake(lake, {name: source for name, source in sources.items() if name != "new"})
    for source in sources.values():
        write_tree(source, {"a.py": b"x = 2\n"})
    real, begun = drive_files._extract, []

    def stopped(build: GroupBuild, *more: Any) -> Any:
        begun.append(build.repositories)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return real(build, *more)

    monkeypatch.setattr(drive_files, "_extract", stopped)
    with pytest.raises(KeyboardInterrupt):
        refreshed(lake, sources)
    assert begun == [("new",), ("one", "two")]
    last = max(read_manifest(str(lake)), key=lambda row: row.finished_at)
    assert last.error == "stopped by the user in step extract"
