"""Refreshes of several repositories in one run: they share passes and commits, and keep their own figures."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from codeanatomy.delta.read.duck import count_rows, select_rows
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files, light_table
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.group_build import WorkGroup, work_groups
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.run.build import plan
from support.edits import Tree, write_tree
from support.light_builds import MODERN, clean_lake, order, refreshed
from support.marks import quick

# The third has no import of the first file, and a failure that is kept.
TREES: dict[str, Tree] = {
    "one": {"lib.py": b"def f():\n    return 1\n", "use.py": b"from lib import f\nf()\n"},
    "two": {"lib.py": b"class A:\n    pass\n", "use.py": b"from lib import A\nclass B(A):\n    pass\n"},
    "three": {"lib.py": b"x = 1\n", "broken.py": b"def broken(:\n"},
    "idle": {"lib.py": b"y = 1\n"},
}
EDITS: dict[str, Tree] = {
    "one": {"lib.py": b"def g():\n    return 1\n"},
    "two": {"lib.py": b"class A:\n    def m(self):\n        return self\n", "new.py": b"import os\n"},
    "three": {"lib.py": b"x = 2\ny = x\n"},
}


class Together:
    """A lake of several repositories, of which three are edited."""

    def __init__(self, work: Path, *settings: str) -> None:
        self.work, self.lake = work, work / "lake"
        self.sources = {name: work / name for name in TREES}
        for name, tree in TREES.items():
            write_tree(self.sources[name], tree)
        clean_lake(self.lake, self.sources, *settings)
        for name, tree in EDITS.items():
            write_tree(self.sources[name], TREES[name] | tree)

    def expect_clean(self) -> None:
        clean = self.work / "clean"
        clean_lake(clean, self.sources)
        assert compare_lakes(str(self.lake), str(clean)).tables == {}
        now, expected = Snapshot.open(str(self.lake)), Snapshot.open(str(clean))
        for name in TREES:
            own, other = now.repositories[name], expected.repositories[name]
            assert (own.row_counts, own.error_counts) == (other.row_counts, other.error_counts), name


@pytest.fixture(params=[(), (MODERN,)], ids=["all", "modern"])
def together(request: pytest.FixtureRequest, tmp_path: Path) -> Together:
    return Together(tmp_path, *request.param)


def test_rows_and_counts_are_those_of_a_clean_build(
    together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[tuple[str, ...]] = []

    def record_groups(run: Run) -> list[WorkGroup]:
        made = work_groups(run)
        groups.extend(group.repositories for group in made)
        return made

    monkeypatch.setattr("codeanatomy.run.build.work_groups", record_groups)
    before = Snapshot.open(str(together.lake)).pins["cpg_nodes"].version
    report = refreshed(together.lake, together.sources)
    assert groups == [("one", "three", "two")]
    actions = {name: {each[name] for each in report.steps.values()} for name in TREES}
    assert actions == {name: {"skip" if name == "idle" else "refresh"} for name in TREES}
    # One commit for all of them.
    assert Snapshot.open(str(together.lake)).pins["cpg_nodes"].version == before + 1
    assert report.redone == {
        "one": {"changed": 1, "lost": 1},
        "two": {"added": 1, "changed": 1},
        "three": {"changed": 1},
    }
    failures = light_table(str(together.lake), FAILURES, ["repo_id", "run_id"]).to_pylist()
    assert Counter(row["repo_id"] for row in failures if row["run_id"] == report.run_id)["three"] > 0
    together.expect_clean()
    assert refreshed(together.lake, together.sources).status == "unchanged"


def test_a_forecast_is_by_repository(together: Together) -> None:
    impact = plan(order(together.lake, together.sources), Progress(io.StringIO()), impact=True).impact
    assert {name: {each.path: each.reason for each in reasons} for name, reasons in impact.items()} == {
        "one": {"lib.py": "changed", "use.py": "lost"},
        "two": {"lib.py": "changed", "new.py": "added"},
        "three": {"lib.py": "changed"},
    }


def test_repositories_with_other_actions_are_groups_of_their_own(together: Together) -> None:
    """After a run of extract alone, the other steps have more to do for this repository."""
    refreshed(together.lake, {"one": together.sources["one"]}, until="extract")
    refreshed(together.lake, together.sources)
    together.expect_clean()


def test_rows_are_counted_from_the_log_where_it_counts_them(
    together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed(together.lake, together.sources)
    snapshot = Snapshot.open(str(together.lake))
    names = ("cpg_edges", "relations_v1", "diagnostics_norm_v1")
    expected = {
        name: Counter(snapshot.rows(name, ["repo_id"]).column("repo_id").to_pylist()) for name in names
    }
    queried: list[LoggedFile] = []

    def select(root: str, name: str, files: Sequence[LoggedFile]) -> str:
        queried.extend(files)
        return select_rows(root, name, files)

    monkeypatch.setattr("codeanatomy.delta.read.duck.select_rows", select)
    for name in names:
        counts = count_rows(str(together.lake), name, snapshot.pins[name].version, ("repo_id",))
        assert counts == {(repo_id,): count for repo_id, count in expected[name].items()}, name
    files = [file for name in names for file in light_files(str(together.lake), name)]
    counted = [file for file in files if file.column_range("repo_id").only_value is not None]
    assert counted
    assert len(queried) == len(files) - len(counted) > 0


TEXTS = (
    b"def f():\n    return 1\n",
    b"from b import g\n\n\ndef f():\n    return g()\n",
    b"class A:\n    def m(self):\n        return self.m()\n",
    b"def broken(:\n",
    b"import os\nfrom a import *\n\n\nclass B(A if 1 else object):\n    pass\n\n\nf()\n",
    b"from b import g as f\n\n\nclass A: pass\nclass C(A): pass\nclass D(A, C): pass\n",
)
PATHS = ("a.py", "b.py", "c.py", "d.py")


@pytest.mark.parametrize("seed", quick(range(6), 1))
def test_random_edits_of_several_repositories(seed: int, tmp_path: Path) -> None:
    """Some of them by steps alone: their groups then differ."""
    chance, lake, clean = random.Random(seed), tmp_path / "lake", tmp_path / "clean"
    trees = {name: {path: chance.choice(TEXTS) for path in PATHS} for name in ("one", "two", "three", "four")}
    sources = {name: tmp_path / name for name in trees}
    for name, tree in trees.items():
        write_tree(sources[name], tree)
    clean_lake(lake, sources, *((MODERN,) if seed % 2 else ()))
    for _ in range(3):
        for name in chance.sample([*trees], chance.randint(1, 4)):
            path = chance.choice((*PATHS, "new.py"))
            if trees[name].pop(path, None) is not None and chance.random() < 0.3:
                (sources[name] / path).unlink()
            else:
                trees[name][path] = chance.choice(TEXTS)
            write_tree(sources[name], trees[name])
        if chance.random() < 0.5:
            some = {name: sources[name] for name in chance.sample([*trees], 2)}
            refreshed(lake, some, until=chance.choice(("extract", "normalize", "relate")))
        refreshed(lake, sources)
        clean_lake(clean, sources)
        assert compare_lakes(str(lake), str(clean)).tables == {}
        now, expected = (Snapshot.open(str(each)).repositories for each in (lake, clean))
        for name in trees:
            assert now[name].row_counts == expected[name].row_counts, name
