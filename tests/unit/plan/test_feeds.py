"""Feeds of the inputs of a step: windows, and what cannot be read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from codeanatomy import catalog
from codeanatomy.errors import FeedLost
from codeanatomy.lake.cursors import StepCursor
from codeanatomy.lake.manifest import ChangeWindow
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.plan.feeds import feeds_of, read_feeds
from codeanatomy.plan.steps import steps_of
from support.edits import write_tree
from support.light_builds import clean_lake, refreshed

FILES = "repo_files_v1"
NORMALIZE, RELATE, GRAPH = steps_of(catalog.TABLES)[1:]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Two repositories; in one of them a file was changed, then another was removed."""
    work = tmp_path_factory.mktemp("feeds")
    sources = {name: work / name for name in ("one", "two")}
    for source in sources.values():
        write_tree(source, {"a.py": b"x = 1\n", "b.py": b"y = 1\n", "c.py": b"z = 1\n"})
    clean_lake(work / "lake", sources)
    (sources["one"] / "a.py").write_bytes(b"x = 2\n")
    refreshed(work / "lake", sources)
    (sources["one"] / "b.py").unlink()
    refreshed(work / "lake", sources)
    return Snapshot.open(str(work / "lake"))


def versions(lake: Snapshot) -> dict[str, int]:
    return {name: pin.version for name, pin in lake.pins.items()}


def changed(lake: Snapshot, repo_id: str, cursor: dict[str, int], pins: dict[str, int]) -> frozenset[str]:
    return read_feeds(lake.root, [FILES], repo_id, StepCursor("", cursor), pins).all_files


def test_every_step_after_extract_has_the_feed_of_the_files() -> None:
    assert all(FILES in feeds_of(step.inputs) for step in (NORMALIZE, RELATE, GRAPH))
    assert "relations_v1" in feeds_of(GRAPH.inputs)


def test_what_is_after_the_cursor(lake: Snapshot) -> None:
    last = versions(lake)[FILES]
    first, second = (file_id("one", path) for path in ("a.py", "b.py"))
    assert changed(lake, "one", {FILES: last}, {FILES: last}) == frozenset()
    assert changed(lake, "one", {FILES: last - 1}, {FILES: last}) == {second}
    assert changed(lake, "one", {FILES: last - 2}, {FILES: last}) == {first, second}
    assert changed(lake, "one", {FILES: last - 2}, {FILES: last - 1}) == {first}
    assert changed(lake, "two", {FILES: last - 2}, {FILES: last}) == frozenset()


def test_a_table_that_the_step_has_never_read_is_read_from_its_beginning(lake: Snapshot) -> None:
    found = read_feeds(lake.root, [FILES], "two", StepCursor("", {}), versions(lake))
    assert found.windows == (ChangeWindow(FILES, 0, versions(lake)[FILES]),)
    assert found.all_files == {file_id("two", path) for path in ("a.py", "b.py", "c.py")}


def test_a_cursor_after_the_newest_version(lake: Snapshot) -> None:
    last = versions(lake)[FILES]
    with pytest.raises(
        FeedLost, match=f"{FILES} is at version {last}, before the cursor at version {last + 3}"
    ):
        changed(lake, "one", {FILES: last + 3}, {FILES: last})


def test_a_log_entry_that_is_gone(lake: Snapshot, tmp_path: Path) -> None:
    """Cleaned up behind a checkpoint, which the table can still be opened with."""
    root = tmp_path / "lake"
    shutil.copytree(lake.root, root)
    table, last = root / catalog.table(FILES).path, versions(lake)[FILES]
    DeltaTable(str(table)).create_checkpoint()
    for version in range(last):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(FeedLost, match=f"the log of {FILES} has no entry for version {last - 1}"):
        read_feeds(str(root), [FILES], "one", StepCursor("", {FILES: last - 2}), {FILES: last})
