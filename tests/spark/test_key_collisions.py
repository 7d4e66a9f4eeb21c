"""Definitions that share a key in a build on Spark: of a file, of two files, of a repository that stays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from codeanatomy.errors import KeyCollision
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.node_ids import definition_key
from codeanatomy.pipeline.executors.spark_executor import SparkExecutor, SparkHeld
from codeanatomy.pipeline.key_collisions import FileKeys, owner_rows, pack_keys
from codeanatomy.pipeline.tasks import graph_rows
from codeanatomy.pipeline.tasks.pieces import Pieces
from codeanatomy.progress import Progress
from codeanatomy.run.build import build, plan
from support.light_builds import clean_lake, order
from support.sessions import SharedSession

# By path: definitions of `new` that get the key of another definition.
SAME = {
    ("a.py", "g"): ("new", "a.py", "f"),
    ("b.py", "A"): ("new", "a.py", "<lambda>#0"),
    ("b.py", "A.m"): ("old", "c.py", "C.<lambda>#0"),
}


def test_nothing_is_published(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "old/c.py": "class C:\n    x = lambda: 0\n",
        "new/a.py": "def f(): ...\ndef g(): ...\nh = lambda: 0\n",
        "new/b.py": "class A:\n    def m(self): ...\n",
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    lake = tmp_path / "lake"
    clean_lake(lake, {"old": tmp_path / "old"})
    replaced = {place: definition_key(*other) for place, other in SAME.items()}

    map_tasks = SparkExecutor.map_tasks

    # Nested functions are sent to the executors as they are here.
    def equal(keys: FileKeys) -> FileKeys:
        return [
            (path, {qualified: replaced.get((path, qualified), key) for qualified, key in named.items()})
            for path, named in keys
        ]

    def with_equal_keys(executor: SparkExecutor, step: str, tasks: Any, work: Any, total: int) -> SparkHeld:
        # The process in which a task makes the rows of files is forked from this one.
        def patched(task: bytes) -> Pieces:
            with (
                patch.object(graph_rows, "owner_rows", lambda repo, keys: owner_rows(repo, equal(keys))),
                patch.object(graph_rows, "pack_keys", lambda keys: pack_keys(equal(keys))),
            ):
                yield from work(task)

        return map_tasks(executor, step, tasks, patched, total)

    request = order(lake, {"new": tmp_path / "new"}, engine="spark")
    monkeypatch.setattr(SparkExecutor, "map_tasks", with_equal_keys)
    with pytest.raises(KeyCollision) as raised:
        build(request, Progress(io.StringIO()), SharedSession(spark))
    monkeypatch.undo()
    message = raised.value.message
    assert message.startswith("step graph failed: key ")
    assert (
        f"key {definition_key('new', 'a.py', 'f')} is shared by f of a.py in new, g of a.py in new" in message
    )
    assert "<lambda>#0 of a.py in new, A of b.py in new" in message
    assert "A.m of b.py in new, c.C.<lambda1> of c.py in old" in message
    assert [(row.repo_id, row.status) for row in read_manifest(str(lake))] == [
        ("old", "succeeded"),
        ("new", "failed"),
    ]
    # With keys of its own it is built, from the graph on.
    again = plan(request, Progress(io.StringIO()))
    actions = {step.name: [each.action for each in step.repositories] for step in again.steps}
    assert actions == {"extract": ["resume"], "normalize": ["resume"], "relate": ["resume"], "graph": ["run"]}
