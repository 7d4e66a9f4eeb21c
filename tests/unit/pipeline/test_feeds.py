"""The change feeds decide what the steps after extract redo: with another feed the rows would be others."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from codeanatomy import catalog
from codeanatomy.delta.read.light import light_files, location, newest_version
from codeanatomy.lake.cursors import read_cursors
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.plan import feeds
from codeanatomy.plan.run_plan import Plan
from codeanatomy.plan.steps import steps_of
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.run.build import plan
from support.edits import write_tree
from support.light_builds import clean_lake, order, refreshed

APP = "app"
NAMES = ("a", "b", "c", "d", "e", "f")
TREE = {f"{name}.py": f"def {name}():\n    return 1\n\n\n{name}()\n".encode() for name in NAMES}
LATER = ("normalize", "relate", "graph")
# By step, a table with rows of every file.
TABLES = {"normalize": "py_bc_blocks_norm_v1", "relate": "relate_programs_v1", "graph": "cpg_nodes"}


class Behind:
    """A lake whose extract has run after each of some edits, and the other steps have not."""

    def __init__(self, work: Path) -> None:
        self.source, self.lake, self.work = work / "source", work / "lake", work
        write_tree(self.source, TREE)
        clean_lake(self.lake, {APP: self.source})
        self.built = {name: newest_version(str(self.lake), name) for name in TABLES.values()}

    def extract(self, *names: str) -> None:
        """Edit some files and extract them."""
        for name in names:
            path = self.source / f"{name}.py"
            path.write_text(f"{path.read_text()}\n\ndef more_{len(path.read_text())}():\n    {name}()\n")
        refreshed(self.lake, {APP: self.source}, until="extract")

    def plan(self) -> Plan:
        return plan(order(self.lake, {APP: self.source}), Progress(io.StringIO()), impact=True)

    def redone(self) -> dict[str, set[str]]:
        """By step: the files of which it has written rows since the first build."""
        return {step: self._written(name) for step, name in TABLES.items()}

    def _written(self, name: str) -> set[str]:
        now, then = (light_files(str(self.lake), name, version) for version in (None, self.built[name]))
        new = {file.path for file in now} - {file.path for file in then}
        folder = location(str(self.lake), name)
        return {
            path
            for file in new
            for path in pq.ParquetFile(f"{folder}/{file}").read(["path"])["path"].to_pylist()
            if path is not None
        }

    def differences(self) -> dict[str, int]:
        clean = self.work / "clean"
        clean_lake(clean, {APP: self.source})
        return compare_lakes(str(self.lake), str(clean)).tables


@pytest.fixture
def behind(tmp_path: Path) -> Behind:
    return Behind(tmp_path)


def test_what_was_extracted_in_several_runs_is_redone_at_once(behind: Behind) -> None:
    for names in (("a",), ("b",), ("a",), ("c",), ("b", "a")):
        behind.extract(*names)
    (behind.source / "d.py").unlink()
    behind.extract()
    forecast = behind.plan()
    assert [forecast.step(step).refreshes for step in LATER] == [(APP,)] * 3
    assert len(forecast.pending[APP]) == 4
    assert {each.path for each in forecast.impact[APP]} == {"a.py", "b.py", "c.py"}
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {key: {"a.py", "b.py", "c.py"} for key in LATER}
    assert behind.differences() == {}
    assert refreshed(behind.lake, {APP: behind.source}).status == "unchanged"


def test_an_edit_on_top_of_what_was_extracted_before(behind: Behind) -> None:
    behind.extract("a")
    path = behind.source / "b.py"
    path.write_text(f"{path.read_text()}\nb()\n")
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {key: {"a.py", "b.py"} for key in LATER}
    assert behind.differences() == {}


def test_steps_may_stop_at_different_places(behind: Behind) -> None:
    behind.extract("a")
    refreshed(behind.lake, {APP: behind.source}, until="relate")
    assert behind.redone() == {"normalize": {"a.py"}, "relate": {"a.py"}, "graph": set()}
    behind.extract("b")
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {key: {"a.py", "b.py"} for key in LATER}
    assert behind.differences() == {}


@pytest.mark.parametrize("lost", ["repo_files_v1", "relations_v1"])
def test_without_what_a_feed_says_rows_are_wrong(
    behind: Behind, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed that says nothing: what it would have said is not redone."""
    real = feeds.changed_owners

    def silent(root: str, name: str, *window: Any, **options: Any) -> frozenset[str]:
        return frozenset() if name == lost else real(root, name, *window, **options)

    monkeypatch.setattr(feeds, "changed_owners", silent)
    # The calls of c now lead elsewhere, so its relations change, too.
    write_tree(behind.source, {**TREE, "c.py": b"from a import a\n\na()\n"})
    refreshed(behind.lake, {APP: behind.source})
    write_tree(
        behind.source, {**TREE, "c.py": b"from a import a\n\na()\n", "a.py": b"from b import b as a\n"}
    )
    refreshed(behind.lake, {APP: behind.source})
    assert behind.differences()


def test_a_lost_feed_is_told_and_the_steps_run_in_full(behind: Behind) -> None:
    behind.extract("a")
    behind.extract("a")
    folder = Path(location(str(behind.lake), "repo_files_v1"))
    kept = {file.path for file in light_files(str(behind.lake), "repo_files_v1")}
    vacuumed = [path for path in folder.rglob("*.parquet") if str(path.relative_to(folder)) not in kept]
    assert vacuumed
    for path in vacuumed:
        path.unlink()
    made = behind.plan()
    assert [made.step(step).runs_for for step in LATER] == [(APP,)] * 3
    for step in ("normalize", "relate"):
        assert "was vacuumed" in made.step(step).repositories[0].why
    refreshed(behind.lake, {APP: behind.source})
    assert behind.redone() == {step: set(TREE) for step in LATER}
    assert behind.differences() == {}


def test_cursors_are_at_the_pins_of_the_run_that_is_published(behind: Behind) -> None:
    def cursors() -> dict[str, dict[str, int]]:
        lake = Snapshot.open(str(behind.lake))
        runs = {name: row.run_id for name, row in lake.repositories.items()}
        return {step: each.versions for step, each in read_cursors(str(behind.lake), runs)[APP].items()}

    def pins() -> dict[str, int]:
        return {name: pin.version for name, pin in Snapshot.open(str(behind.lake)).pins.items()}

    before, built = cursors(), pins()
    assert before.keys() == set(LATER)
    for step in steps_of(catalog.TABLES)[1:]:
        assert before[step.name] == {name: built[name] for name in feeds.feeds_of(step.inputs)}
    behind.extract("a")
    assert cursors() == before
    refreshed(behind.lake, {APP: behind.source})
    assert all(versions == {name: pins()[name] for name in versions} for versions in cursors().values())
