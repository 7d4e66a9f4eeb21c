"""Cursors of steps: only those of published runs count."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import ConstraintViolation
from codeanatomy.lake.cursors import CURSORS, StepCursor, append_cursors, read_cursors

GRAPH = StepCursor("code=1", {"repo_files_v1": 3, "relations_v1": 2})
LATER = StepCursor("code=2", {"repo_files_v1": 5, "relations_v1": 4})


def test_the_cursors_of_a_repository_are_those_of_its_run(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert read_cursors(root, {"a": "run-1"}) == {}
    append_cursors(root, {"a": {"graph": GRAPH}, "b": {"graph": LATER}}, Commit("run-1"))
    append_cursors(root, {"a": {"graph": LATER}}, Commit("run-2"))
    assert read_cursors(root, {"a": "run-1", "b": "run-1"}) == {"a": {"graph": GRAPH}, "b": {"graph": LATER}}
    # As soon as the second run is published.
    assert read_cursors(root, {"a": "run-2", "b": "run-1"}) == {"a": {"graph": LATER}, "b": {"graph": LATER}}
    assert read_cursors(root, {"a": "run-3"}) == {}


def test_writing_them_twice_is_writing_them_once(tmp_path: Path) -> None:
    for _ in range(2):
        append_cursors(str(tmp_path), {"a": {"graph": GRAPH}}, Commit("run-1"))
    assert len(light_table(str(tmp_path), CURSORS, ["run_id"])) == 2


def test_a_run_without_steps_writes_nothing(tmp_path: Path) -> None:
    append_cursors(str(tmp_path), {"a": {}}, Commit("run-1"))
    assert not list(tmp_path.iterdir())


def test_a_version_below_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConstraintViolation, match="version_counted"):
        append_cursors(str(tmp_path), {"a": {"graph": StepCursor("", {"x": -1})}}, Commit("run-1"))
