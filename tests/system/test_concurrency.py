"""Several processes at one table, and one that dies in the middle."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write import commit as commit_module
from codeanatomy.delta.write.commit import LOST, Retry
from codeanatomy.delta.write.spark_rows import append
from codeanatomy.errors import CommitConflict
from support import committer
from support.delta_log import delta_log
from support.item_table import frame, item

MakeStore = Callable[..., Store]
Start = Callable[..., subprocess.Popen[str]]
EACH = 4


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts committers, each in a process group of its own with its JVM; none outlives the test."""
    running: list[subprocess.Popen[str]] = []

    def start_one(verb: str, lake: Path, *words: str) -> subprocess.Popen[str]:
        script = Path(committer.__file__)
        process = subprocess.Popen(
            [sys.executable, str(script), verb, str(lake), *words],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=script.parent,
        )
        running.append(process)
        return process

    yield start_one
    for process in running:
        if process.poll() is None:
            kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """End a committer and its JVM at once."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == "ready"


def test_two_processes_lose_nothing_and_double_nothing(
    make_store: MakeStore, spark: SparkSession, tmp_path: Path, start: Start
) -> None:
    store = make_store(committer.TABLE)
    append(store, "items", frame(spark, item(0)), Commit("before"))
    lake = tmp_path / "lake"
    both = [start("swap", lake, name, str(EACH)) for name in ("left", "right")]
    for process in both:
        ready(process)
    (lake / "go").touch()
    told = [json.loads(line) for process in both for line in process.communicate(timeout=500)[0].splitlines()]
    assert [process.returncode for process in both] == [0, 0]

    assert len(told) == 2 * EACH
    rows = scan(store, "items").rows.collect()
    assert len(rows) == 2 * EACH + 1
    assert len({row.item_id for row in rows}) == 2 * EACH + 1

    log = delta_log(store, "items")
    made = [log.commit(version) for version in range(1, log.snapshot().version + 1)]
    commits = [msgspec.json.decode(record.user_metadata or "", type=Commit) for record in made]
    assert sorted((one.run_id, one.sequence) for one in commits) == [
        (name, number) for name in ("left", "right") for number in range(EACH)
    ]
    assert sorted(version for version, _, _ in told) == [record.version for record in made]
    assert all(attempts == 1 + len(conflicts) for _, attempts, conflicts in told)
    assert any(conflicts for _, _, conflicts in told), "they never met: the test shows nothing"


@pytest.mark.system
def test_a_killed_writer_leaves_the_old_version_and_the_repeated_commit_succeeds_once(
    make_store: MakeStore, spark: SparkSession, tmp_path: Path, start: Start
) -> None:
    store = make_store(committer.TABLE)
    append(store, "items", frame(spark, item(0)), Commit("before"))
    folder = Path(store.location("items"))
    whole = set(folder.glob("*.parquet"))
    process = start("slow", tmp_path / "lake", "killed")
    ready(process)
    (tmp_path / "lake" / "go").touch()
    while set(folder.glob("*.parquet")) == whole:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    kill(process)

    assert set(folder.glob("*.parquet")) > whole, "it was killed before it wrote"
    assert scan(store, "items").snapshot.version == 0
    assert scan(store, "items").rows.count() == 1
    done = append(store, "items", committer.many(spark), Commit("killed"))
    again = append(store, "items", committer.many(spark), Commit("killed"))
    assert (done.committed, done.version, again.repeated, again.version) == (True, 1, True, 1)
    assert scan(store, "items").rows.count() == committer.SLOW_ROWS + 1


@pytest.mark.system
def test_killed_at_any_moment_even_while_the_table_is_born(
    make_store: MakeStore, spark: SparkSession, tmp_path: Path, start: Start
) -> None:
    chance = random.Random(20)
    store = make_store(committer.TABLE)
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "go").touch()
    log, ended = delta_log(store, "items"), 0
    for number in range(12):
        before = log.snapshot().version if log.exists() else -1
        process = start("slow", lake, f"killed-{number}")
        ready(process)
        time.sleep(chance.uniform(0, 6))
        ended += process.poll() is not None
        kill(process)
        after = log.snapshot().version if log.exists() else -1
        assert after - before in (0, 1)
        done = append(store, "items", committer.many(spark), Commit(f"killed-{number}"))
        assert done.repeated == (after > before)
        assert done.version == before + 1
        rows = scan(store, "items").rows.selectExpr("count(*) AS n", "count(DISTINCT item_id) AS ids").first()
        assert rows is not None
        assert (rows.n, rows.ids) == ((number + 1) * committer.SLOW_ROWS, committer.SLOW_ROWS)
    assert ended < 12, "none was killed while it ran"


def test_a_commit_that_vanished_from_the_log_is_made_again(
    make_store: MakeStore, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two local processes may both rename their commit to the same version; the loser is not told."""
    store = make_store(committer.TABLE)
    append(store, "items", frame(spark, item(0)), Commit("before"))
    real = commit_module._own_commit
    looks: list[int] = []

    def once_overwritten(log: object, commit: Commit, after: int) -> object:
        looks.append(after)
        if len(looks) == 1:
            entry = Path(store.location("items")) / "_delta_log" / f"{after + 1:020}.json"
            lines = [json.loads(line) for line in entry.read_text().splitlines()]
            lines[0]["commitInfo"].pop("userMetadata")
            kept = [line for line in lines if not {"add", "txn"} & set(line)]
            entry.write_text("\n".join(json.dumps(line) for line in kept) + "\n")
            for side in (entry.with_suffix(".crc"), entry.with_name(f".{entry.name}.crc")):
                side.unlink(missing_ok=True)
            store.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
            return None
        return real(log, commit, after)  # type: ignore[arg-type]

    monkeypatch.setattr(commit_module, "_own_commit", once_overwritten)
    done = append(store, "items", frame(spark, item(1)), Commit("lost"), retry=Retry(first_seconds=0))
    assert (done.conflicts, done.attempts, done.version) == ((LOST,), 2, 2)
    assert sorted(row.bstart for row in scan(store, "items").rows.collect()) == [0, 1]


def test_endless_conflicts_end_in_one_error(
    make_store: MakeStore, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(committer.TABLE)
    append(store, "items", frame(spark, item(0)), Commit("before"))
    monkeypatch.setattr(commit_module, "_own_commit", lambda *_, **__: None)
    monkeypatch.setattr(commit_module, "_find_repeated", lambda *_: None)
    with pytest.raises(CommitConflict, match="conflicted with other writers 2 times"):
        append(store, "items", frame(spark, item(1)), Commit("r"), retry=Retry(attempts=2, first_seconds=0))
