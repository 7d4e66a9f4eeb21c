"""What is the same for all writers: repeated, expected, lost and failed commits, with their events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import CommitRefused, Committed, Event
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.versions import TableVersion
from codeanatomy.delta.write.commit import LOST, Conflict, PendingCommit, Retry, run_commit
from codeanatomy.delta.write.evolve import new_table
from codeanatomy.delta.write.log_writer import LogWriter
from codeanatomy.errors import CommitConflict, StorageFailure, UsageError
from support.manifest_rows import MANIFEST

QUICK = Retry(attempts=3, first_seconds=0.001, most_seconds=0.001)


class Scripted(LogWriter):
    """A writer that fails as it is told before it writes an empty version."""

    def __init__(self, *script: Exception | str) -> None:
        self.script = list(script)
        self.written = 0

    def write(self, change: PendingCommit, current: TableVersion | None) -> bool:
        step = self.script.pop(0) if self.script else None
        if isinstance(step, Exception):
            raise step
        if step == "lost":
            return True
        if step == "nothing":
            return False
        self.written += 1
        new = [] if current else entries.create_actions(new_table(change.store, change.table))
        done = self.write_entry(change, current, new)
        if step == "late":
            raise OSError("the network went away")
        return done


class Table:
    """A table, and the events of its commits."""

    def __init__(self, root: Path) -> None:
        self.events: list[Event] = []
        self.tables = LakeTables(str(root), record=self.events.append)

    def commit(self, writer: LogWriter, run_id: str = "run-1", **more: Any) -> Committed:
        given = {"retry": QUICK, **more}
        sequence = given.pop("sequence", 0)
        operation = given.pop("operation", "append")
        pending = PendingCommit(self.tables, MANIFEST, operation, Commit(run_id, sequence), writer, **given)
        return run_commit(pending)

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_conflicts_are_retried(table: Table) -> None:
    done = table.commit(Scripted(Conflict("ConcurrentWriteException"), Conflict("MetadataChangedException")))
    assert (done.version, done.attempts, done.created, done.committed) == (0, 3, True, True)
    assert done.conflicts == ("ConcurrentWriteException", "MetadataChangedException")
    assert table.told(Committed) == [done]


def test_a_commit_that_is_not_in_the_log_is_made_again(table: Table) -> None:
    done = table.commit(Scripted("lost"))
    assert (done.version, done.attempts, done.conflicts, done.repeated) == (0, 2, (LOST,), False)


def test_too_many_conflicts(table: Table) -> None:
    with pytest.raises(CommitConflict, match=r"conflicted with other writers 3 times \(A, B\)") as caught:
        table.commit(Scripted(Conflict("A"), Conflict("B"), Conflict("A")))
    assert caught.value.conflicts == ("A", "B", "A")
    (refused,) = table.told(CommitRefused)
    assert (refused.code, refused.conflicts) == (caught.value.code, ("A", "B", "A"))


def test_a_transaction_is_made_once(table: Table) -> None:
    first, second = Scripted(), Scripted()
    table.commit(first)
    done = table.commit(second)
    assert (done.version, done.committed, done.repeated, second.written) == (0, False, True, 0)
    assert table.commit(Scripted(), is_repeatable=True).version == 1
    with pytest.raises(UsageError, match=r"for another commit \(append, version 1\)"):
        table.commit(Scripted(), operation="overwrite")
    table.commit(Scripted(), sequence=4)
    with pytest.raises(UsageError, match="sequence 2 is not in its log"):
        table.commit(Scripted(), sequence=2)


def test_the_expected_version(table: Table) -> None:
    with pytest.raises(CommitConflict, match="is at version -1, not 0"):
        table.commit(Scripted(), after=0)
    assert table.commit(Scripted(), after=-1).version == 0
    # No retry: another writer has the version that was expected.
    with pytest.raises(CommitConflict, match="is at version 0"):
        table.commit(Scripted(Conflict("ConcurrentWriteException")), "run-2", after=0)
    assert table.commit(Scripted(), "run-3", after=0).version == 1


def test_nothing_to_write(table: Table) -> None:
    table.commit(Scripted())
    done = table.commit(Scripted("nothing"), "run-2")
    assert (done.version, done.committed, done.repeated, done.created) == (0, False, False, False)


def test_failures_say_what_the_log_has(table: Table) -> None:
    with pytest.raises(StorageFailure, match=r"append of run_manifest at .* failed: odd") as caught:
        table.commit(Scripted(OSError("odd")))
    assert caught.value.hint.startswith("no rows were committed")
    with pytest.raises(StorageFailure) as caught:
        table.commit(Scripted(OSError(28, "No space left on device")))
    assert caught.value.hint == "free disk space and run the command again"
    with pytest.raises(StorageFailure) as caught:
        table.commit(Scripted("late"))
    assert caught.value.hint == "the rows were committed as version 0; a repeated commit has no effect"
    assert table.commit(Scripted()).repeated
    assert [event.code for event in table.told(CommitRefused)] == ["CA041"] * 3


def test_other_errors_pass(table: Table) -> None:
    with pytest.raises(ZeroDivisionError):
        table.commit(Scripted(ZeroDivisionError()))
    assert table.events == []
