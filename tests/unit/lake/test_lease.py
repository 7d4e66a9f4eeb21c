"""The lease: one of many gets it, the dead and the silent lose it, the journal stays, files do not pile up.

Other processes are real ones, driven line by line (`Other`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import LeaseHeld, LeaseLost, StorageFailure
from codeanatomy.lake import lease as lease_module
from codeanatomy.lake.lease import TABLE, Lease, LeaseRow, StepDone, acquire, is_stale, read_lease
from support.marks import quick

EXTRACT = StepDone(
    "extract",
    {"one": "e" * 22, "two": "f" * 22},
    {"one": {"a": 1}, "two": {}},
    {"a": 3, "b": 4},
    {"one": "run-1", "two": "run-0"},
)
GRAPH = StepDone("graph", {"one": "g" * 22}, {"one": {"c": 9}}, {"c": 0})
OTHER = """
import sys
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.lake.lease import StepDone, acquire

lease = None
for line in sys.stdin:
    verb, *given = line.split()
    try:
        if verb == "acquire":
            root, run_id, ttl, beat = given
            lease = acquire(root, run_id, ["one", "two"], wait=False, report=print, base_run_id=None,
                            ttl_seconds=int(ttl), beat_seconds=float(beat))
        elif verb == "note":
            lease.record_step(StepDone("extract", {"one": "e" * 22}, {"one": {"a": 1}}, {"a": 3}))
        elif verb == "check":
            lease.check()
        elif verb == "release":
            lease.release(keep_journal=False)
        print("done", flush=True)
    except CodeAnatomyError as problem:
        print(type(problem).__name__, flush=True)
"""


class Other:
    """Another process, which does as it is told."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-c", OTHER], stdin=pipe, stdout=pipe, text=True)

    def tell(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, *words: object) -> str:
        self.tell(*words)
        return self.answer()

    def close(self) -> int:
        """Let it come to its end, and say how it ended."""
        self.process.communicate()
        return self.process.returncode


@pytest.fixture
def others() -> Iterator[Callable[[], Other]]:
    made: list[Other] = []

    def make() -> Other:
        made.append(Other())
        return made[-1]

    yield make
    for other in made:
        other.process.kill()
        other.close()


def held(root: Path, run_id: str = "run-1", ttl: int = 120, beat: float = 15) -> Lease:
    return acquire(
        str(root),
        run_id,
        ["one", "two"],
        wait=False,
        report=print,
        base_run_id=None,
        ttl_seconds=ttl,
        beat_seconds=beat,
    )


def row_of(root: Path) -> LeaseRow:
    found = read_lease(str(root))
    assert found is not None
    return found


def eventually(condition: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def test_one_holds_it_and_the_other_is_told_who(tmp_path: Path) -> None:
    assert read_lease(str(tmp_path)) is None
    with held(tmp_path) as lease:
        assert lease.before is None
        lease.check()
        with pytest.raises(LeaseHeld) as refused:
            held(tmp_path, "run-2")
        assert str(refused.value.message).startswith(
            f"lake {tmp_path} is being written by run run-1 since 20"
        )
        assert f"process {os.getpid()}), building one, two" in refused.value.message
    assert row_of(tmp_path).state == "released"
    with held(tmp_path, "run-2") as lease:
        assert lease.before is not None
        assert (lease.before.run_id, lease.before.done) == ("run-1", ())


def test_the_journal(tmp_path: Path) -> None:
    with held(tmp_path) as lease:
        lease.set_base_run("run-0")
        lease.record_step(replace(EXTRACT, pins={"a": 2}))
        lease.record_step(GRAPH)
        lease.record_step(EXTRACT)
        row = row_of(tmp_path)
        assert (row.base_run_id, row.state, row.repo_ids) == ("run-0", "held", ("one", "two"))
        # In the order in which they were noted last; where nothing else is said this run has done them.
        assert row.done == (replace(GRAPH, made_by={"one": "run-1"}), EXTRACT)
    assert row_of(tmp_path).done == ()


def failing(root: Path) -> None:
    with held(root) as lease:
        lease.record_step(EXTRACT)
        raise ZeroDivisionError


def test_a_failure_keeps_the_journal(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        failing(tmp_path)
    assert row_of(tmp_path).state == "released"
    with held(tmp_path, "run-2") as lease:
        assert lease.before is not None
        assert lease.before.done == (EXTRACT,)
        # It is the journal of the new run from now on.
        assert row_of(tmp_path).done == ()


def test_what_was_released_may_not_be_used(tmp_path: Path) -> None:
    lease = held(tmp_path)
    lease.release(keep_journal=True)
    lease.release(keep_journal=False)
    with pytest.raises(LeaseLost, match="it was released"):
        lease.check()
    with pytest.raises(LeaseLost):
        lease.record_step(EXTRACT)
    assert not [thread for thread in threading.enumerate() if thread.name == "codeanatomy-lease"]


@pytest.mark.parametrize("rounds", quick([6, 40], 0))
def test_of_two_processes_one_gets_it(tmp_path: Path, others: Callable[[], Other], rounds: int) -> None:
    pair = (others(), others())
    for turn in range(rounds):
        # Every other time the table has to be made first.
        root = tmp_path / str(turn // 2)
        for number, other in enumerate(pair):
            other.tell("acquire", root, f"run-{turn}-{number}", 120, 15)
        answers = [other.answer() for other in pair]
        assert sorted(answers) == ["LeaseHeld", "done"]
        winner = answers.index("done")
        assert row_of(root).run_id == f"run-{turn}-{winner}"
        assert pair[winner].ask("check") == "done"
        assert pair[winner].ask("release") == "done"


def test_a_killed_holder_is_known_to_be_gone(tmp_path: Path, others: Callable[[], Other]) -> None:
    other = others()
    assert other.ask("acquire", tmp_path, "run-1", 120, 15) == "done"
    assert other.ask("note") == "done"
    with pytest.raises(LeaseHeld):
        held(tmp_path, "run-2")
    other.process.kill()
    # Nobody has asked for its end yet: it is a zombie now.
    eventually(lambda: is_stale(row_of(tmp_path), datetime.now(UTC)), seconds=5)
    with held(tmp_path, "run-2") as lease:
        assert lease.before is not None
        assert [step.step_name for step in lease.before.done] == ["extract"]
    other.close()
    assert is_stale(replace(row_of(tmp_path), state="held", process=lease.before.process), datetime.now(UTC))


@pytest.mark.system
def test_a_stopped_holder_loses_it(tmp_path: Path, others: Callable[[], Other]) -> None:
    other = others()
    assert other.ask("acquire", tmp_path, "run-1", 1, 0.2) == "done"
    first = row_of(tmp_path).heartbeat_at
    eventually(lambda: row_of(tmp_path).heartbeat_at > first + timedelta(seconds=1))
    assert other.ask("check") == "done"
    os.kill(other.process.pid, signal.SIGSTOP)
    told: list[str] = []
    lease = acquire(str(tmp_path), "run-2", ["one"], wait=True, report=told.append, base_run_id="run-0")
    assert len(told) == 1
    assert told[0].startswith(f"waiting: lake {tmp_path} is being written by run run-1 ")
    os.kill(other.process.pid, signal.SIGCONT)
    assert other.ask("check") == "LeaseLost"
    assert other.ask("note") == "LeaseLost"
    assert other.ask("release") == "done"
    lease.check()
    assert (row_of(tmp_path).run_id, row_of(tmp_path).state) == ("run-2", "held")
    lease.release(keep_journal=False)


def test_a_holder_nobody_missed_keeps_it(tmp_path: Path, others: Callable[[], Other]) -> None:
    other = others()
    assert other.ask("acquire", tmp_path, "run-1", 1, 0.2) == "done"
    os.kill(other.process.pid, signal.SIGSTOP)
    time.sleep(1.3)
    assert is_stale(row_of(tmp_path), datetime.now(UTC))
    last = row_of(tmp_path).heartbeat_at
    os.kill(other.process.pid, signal.SIGCONT)
    assert other.ask("check") == "done"
    assert row_of(tmp_path).heartbeat_at > last + timedelta(seconds=1)


def test_a_process_that_ends_without_release_ends_well(tmp_path: Path, others: Callable[[], Other]) -> None:
    """The beat is stopped before the interpreter goes away, however busy it is."""
    for turn in range(3):
        other = others()
        assert other.ask("acquire", tmp_path, f"run-{turn}", 120, 0.001) == "done"
        assert other.close() == 0
        assert row_of(tmp_path).state == "held"


def test_beats_that_fail_are_forgiven_for_some_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise StorageFailure("overwrite of run_lease failed: No space left on device")

    with held(tmp_path, ttl=2, beat=0.05) as lease:
        with monkeypatch.context() as patched:
            patched.setattr(lease_module, "_overwrite", full)
            lease.check()
            time.sleep(2.2)
            with pytest.raises(LeaseLost, match="No space left on device"):
                lease.check()
        # There is room again, and nobody has come.
        eventually(lambda: not is_stale(row_of(tmp_path), datetime.now(UTC)))
        lease.check()


def test_a_release_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise StorageFailure("No space left on device")

    told: list[str] = []
    lease = acquire(str(tmp_path), "run-1", [], wait=False, report=told.append, base_run_id=None)
    monkeypatch.setattr(lease_module, "_overwrite", full)
    lease.release(keep_journal=True)
    assert told == [f"the lease of {tmp_path} could not be released: No space left on device"]


def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def jump(hours: int) -> None:
        monkeypatch.setattr(lease_module, "_now", lambda: datetime.now(UTC) + timedelta(hours=hours))

    lease = held(tmp_path, beat=0.05)
    jump(-1)
    lease.check()
    lease.record_step(EXTRACT)
    with pytest.raises(LeaseHeld):
        held(tmp_path, "run-2")
    lease.release(keep_journal=False)

    # Forward it costs the lease, if somebody else looks before the next beat; the holder learns of it.
    lease = held(tmp_path, "run-3")
    jump(1)
    with held(tmp_path, "run-4") as taker:
        with pytest.raises(LeaseLost, match="it is held by run run-4"):
            lease.record_step(EXTRACT)
        with pytest.raises(LeaseLost):
            lease.check()
        taker.check()
        lease.release(keep_journal=False)
        assert row_of(tmp_path).run_id == "run-4"


def test_files_of_old_beats_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "VACUUM_BEATS", 3)
    folder = Path(location(str(tmp_path), TABLE))

    def files() -> int:
        return len(list(folder.glob("*.parquet")))

    most = 0
    with held(tmp_path, beat=0.01) as lease:
        first = row_of(tmp_path).heartbeat_at
        until = time.monotonic() + 60
        while DeltaTable(str(folder)).version() < 30 and time.monotonic() < until:
            # Readers are not disturbed.
            row = row_of(tmp_path)
            assert (row.run_id, row.state) == ("run-1", "held")
            most = max(most, files())
        lease.check()
        assert row.heartbeat_at > first
    assert files() == 1
    assert most <= 8
    table = DeltaTable(str(folder))
    assert table.version() > 30
    assert table.protocol().min_writer_version == 2
    configuration = table.metadata().configuration
    assert configuration["delta.logRetentionDuration"] == "interval 24 hours"
    assert configuration["delta.deletedFileRetentionDuration"] == "interval 24 hours"


def test_when_others_may_take_it() -> None:
    now = datetime(2026, 3, 4, 12, tzinfo=UTC)
    mine = lease_module._this_process()
    parts = dict(part.split("=") for part in mine.split())

    def process(**changed: object) -> str:
        return " ".join(f"{name}={value}" for name, value in {**parts, **changed}.items())

    living = LeaseRow(
        run_id="run-1",
        state="held",
        host="here",
        process=mine,
        acquired_at=now - timedelta(hours=1),
        heartbeat_at=now - timedelta(seconds=100),
        ttl_seconds=120,
    )
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_stale(living, now)
    assert is_stale(replace(living, state="released"), now)
    assert is_stale(living, now + timedelta(seconds=21))
    assert not is_stale(living, now - timedelta(hours=2))
    # The same number, given to another process; a process that is no more; processes of other machines.
    assert is_stale(replace(living, process=process(start=int(parts["start"]) + 1)), now)
    assert is_stale(replace(living, process=process(pid=ended.pid)), now)
    assert not is_stale(replace(living, process=process(pid=ended.pid, boot="another")), now)
    assert not is_stale(replace(living, process=process(pid=ended.pid, space="1")), now)
    assert not is_stale(replace(living, process=f"token=abc pid={ended.pid}"), now)
