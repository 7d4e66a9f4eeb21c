"""What differs between a source and what is published of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.plan.changes import FILES, SourceChange, read_file_states, source_changes
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.digest import FileState, FileStates, file_states
from support.edits import GARBAGE, write_tree
from support.light_builds import clean_lake, order

TREE = {
    "a.py": b"x = 1\n",
    "stub.pyi": b"x: int\n",
    "empty.py": b"",
    "broken.py": b"def broken(:\n",
    "garbage.py": GARBAGE,
    "data/table.json": b"{}\n",
    "ignored.py": b"y = 1\n",
    ".gitignore": b"ignored.py\n",
    "name with 'quote'.py": b"z = 1\n",
}


def line(content: str) -> FileState:
    return False, len(content), content


@pytest.mark.parametrize(
    ("was", "now", "how"),
    [
        ({}, {}, {}),
        ({"a": "1"}, {"a": "1"}, {}),
        ({"a": "1"}, {"a": "2"}, {"a": "changed"}),
        ({}, {"a": "1"}, {"a": "added"}),
        ({"a": "1"}, {}, {"a": "removed"}),
        ({"a": "1"}, {"b": "1"}, {"a": "removed", "b": "added"}),
        ({"b": "1", "a": "1"}, {"c": "1", "a": "2", "b": "1"}, {"a": "changed", "c": "added"}),
    ],
)
def test_paths_are_added_changed_or_removed(
    was: dict[str, str], now: dict[str, str], how: dict[str, str]
) -> None:
    found = source_changes(
        "r", *({path: line(content) for path, content in side.items()} for side in (was, now))
    )
    assert {change.path: change.how for change in found} == how
    assert [change.path for change in found] == sorted(how)
    assert all(change.file_id == file_id("r", change.path) for change in found)


@pytest.mark.parametrize(
    "other",
    [(True, 1, "1"), (False, 2, "1"), (False, None, "1"), (False, 1, "too_large")],
    ids=["stub", "size", "no size", "why it is not read"],
)
def test_all_that_is_known_of_a_path_counts(other: FileState) -> None:
    assert source_changes("r", {"a": (False, 1, "1")}, {"a": other}) == (
        SourceChange("a", file_id("r", "a"), "changed"),
    )


def test_a_lake_knows_the_lines_of_its_source(tmp_path: Path) -> None:
    source, lake = tmp_path / "source", tmp_path / "lake"
    write_tree(source, TREE)
    clean_lake(lake, {"r": source, "other": source})
    assert stored(lake) == current(source, lake)
    assert {"garbage.py", "broken.py", "name with 'quote'.py"} <= stored(lake).keys()
    assert stored(lake, "nobody") == {}


def test_only_bytes_count(tmp_path: Path) -> None:
    source, lake = tmp_path / "source", tmp_path / "lake"
    write_tree(source, TREE)
    clean_lake(lake, {"r": source})
    for path in source.rglob("*"):
        os.utime(path, (1, 1))
    (source / "a.py").chmod(0o755)
    assert source_changes("r", stored(lake), current(source, lake)) == ()
    (source / "a.py").write_bytes(b"x = 2\n")
    (source / "empty.py").unlink()
    (source / ".gitignore").write_bytes(b"broken.py\n")
    found = source_changes("r", stored(lake), current(source, lake))
    assert {change.path: change.how for change in found}.items() >= {
        "a.py": "changed",
        "empty.py": "removed",
        "ignored.py": "changed" if "ignored.py" in stored(lake) else "added",
        "broken.py": "changed" if "broken.py" in current(source, lake) else "removed",
    }.items()


def stored(lake: Path, repo_id: str = "r") -> FileStates:
    return read_file_states(str(lake), repo_id, Snapshot.open(str(lake)).pin(FILES).version)


def current(source: Path, lake: Path) -> FileStates:
    options = order(lake, {"r": source}).settings.extract
    return file_states(list_source(source, options), options)
