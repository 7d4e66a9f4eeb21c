"""What may go of a table and what stays, for whom: files and log entries, under every guard."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.replay import logged_versions, read_actions
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import StillNeeded, StorageFailure
from codeanatomy.lake.cursors import StepCursor, append_cursors
from codeanatomy.lake.lease import StepDone, acquire
from codeanatomy.lake.manifest import OutputPin, RunManifest, append_manifest
from codeanatomy.maintain.removal import removable_entries, removable_files, remove
from codeanatomy.maintain.retention import RetentionGuard
from codeanatomy.maintain.table_state import inspect_table
from support.log_files import entry_path
from support.owner_tables import NODES, Lake, fed, filled, nodes_of, owner

NAME = NODES.name
NOW = datetime.now(UTC)
# Long after everything that a test writes.
LATER = NOW + timedelta(hours=2000)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Twelve versions, each of which has replaced files of the one before."""
    table = fed(NODES)
    made = Lake(LakeTables(str(tmp_path / "lake"), tables=(table,)), table, "owner_file_id")
    filled(made, files=5, rows=2)
    for number in range(11):
        made.swap(*nodes_of(number % 3, 2), owners=[owner(number % 3)])
    return made


def published(lake: Lake, version: int, finished: datetime, run_id: str) -> None:
    """A run that reads a version."""
    row = RunManifest(
        run_id=run_id,
        repo_id="a",
        status="succeeded",
        started_at=finished,
        finished_at=finished,
        profile_hash="0" * 32,
        output_pins=(OutputPin(NAME, version),),
    )
    append_manifest(lake.tables.root, [row], Commit(run_id), after=None)


def cursor(lake: Lake, last_version: int) -> None:
    """A run that publishes nothing but a step that has read the feed up to a version."""
    append_cursors(lake.tables.root, {"a": {"relate": StepCursor("", {NAME: last_version})}}, Commit("r"))
    row = RunManifest(
        run_id="r",
        repo_id="a",
        status="succeeded",
        started_at=LATER,
        finished_at=LATER,
        profile_hash="0" * 32,
    )
    append_manifest(lake.tables.root, [row], Commit("r"), after=None)


def readable(lake: Lake) -> set[int]:
    """The versions that everybody can read still, with the rows that they had."""
    versions = set()
    for version in range(len(lake.history)):
        try:
            lake.light(version)
        except (StorageFailure, DeltaError, OSError):
            continue
        versions.add(version)
    return versions


def vacuumed(lake: Lake, hours: float, now: datetime = LATER) -> dict[str, int]:
    removal = removable_files(RetentionGuard(lake.tables.root, now), NAME, hours)
    remove(removal)
    return removal.kept


def test_only_the_newest_version_is_left_if_no_other_is_read(lake: Lake) -> None:
    assert readable(lake) == set(range(12))
    assert vacuumed(lake, hours=168) == {}
    # Of the first version all files are there still: later ones only take rows out of them.
    assert readable(lake) == {0, 11}
    state = inspect_table(lake.location, lake.table)
    assert state is not None
    assert (state.dead_files, state.dead_bytes) == (0, 0)


def test_nothing_goes_within_the_retention(lake: Lake) -> None:
    assert removable_files(RetentionGuard(lake.tables.root, datetime.now(UTC)), NAME, 168).files == ()
    assert vacuumed(lake, hours=3000) == {}
    assert readable(lake) == set(range(12))


def test_the_same_twice_changes_nothing(lake: Lake) -> None:
    vacuumed(lake, hours=168)
    assert removable_files(RetentionGuard(lake.tables.root, LATER), NAME, 168).files == ()


def test_a_stray_file_goes_when_it_is_old(lake: Lake) -> None:
    stray = Path(lake.location, "part-of-a-dead-writer.parquet")
    stray.write_bytes(b"rows")
    vacuumed(lake, hours=168, now=datetime.now(UTC))
    assert stray.exists()
    vacuumed(lake, hours=168)
    assert not stray.exists()


# Guards.


def test_what_is_published_stays_although_a_newer_version_is_there(lake: Lake) -> None:
    published(lake, 4, NOW - timedelta(hours=900), "run-old")
    published(lake, 7, NOW - timedelta(hours=500), "run-new")
    kept = vacuumed(lake, hours=168)
    # The newest run is what readers open, however old; that of the run before it is out of the retention.
    assert list(kept) == ["run run-new, which reads version 7"]
    assert readable(lake) == {0, 7, 11}


@pytest.mark.system
def test_every_run_within_the_retention_stays_and_the_one_before_it(lake: Lake) -> None:
    for version, hours in ((1, 900), (3, 400), (6, 100), (8, 50)):
        published(lake, version, LATER - timedelta(hours=hours), f"run-{version}")
    kept = vacuumed(lake, hours=168)
    # At the moment at which the retention begins, run 3 was what was published.
    assert {who.split(",")[0] for who in kept} == {"run run-3", "run run-6", "run run-8"}
    assert {3, 6, 8, 11} <= readable(lake)
    assert 1 not in readable(lake)


def test_failed_runs_need_nothing(lake: Lake) -> None:
    failed = RunManifest(
        run_id="run-x",
        repo_id="a",
        status="failed",
        error="no",
        started_at=LATER,
        finished_at=LATER,
        profile_hash="0" * 32,
        output_pins=(OutputPin(NAME, 2),),
    )
    append_manifest(lake.tables.root, [failed], Commit("run-x"), after=None)
    assert vacuumed(lake, hours=168) == {}


def test_the_changes_after_a_cursor_stay(lake: Lake) -> None:
    from codeanatomy.delta.light_feed import changed_owners

    def feed(first: int) -> frozenset[str]:
        return changed_owners(lake.tables.root, NAME, first, 11, "owner_file_id", "a")

    before = feed(9)
    cursor(lake, 8)
    kept = vacuumed(lake, hours=168)
    assert list(kept) == ["the cursor of relate for a, which reads on from version 9"]
    assert feed(9) == before


def test_what_a_build_that_died_has_left_to_go_on_from_stays(lake: Lake) -> None:
    root = lake.tables.root
    lease = acquire(root, "run-dead", ["a"], wait=False, report=print, base_run_id=None)
    lease.record_step(StepDone("graph", {"a": "f" * 32}, {"a": {NAME: 9}}, {NAME: 6}))
    lease.release(keep_journal=True)
    assert list(vacuumed(lake, hours=168)) == ["run run-dead, which has not finished, which reads version 6"]
    assert 6 in readable(lake)


def test_without_a_manifest_nothing_is_removed(lake: Lake) -> None:
    acquire(lake.tables.root, "run-x", ["a"], wait=False, report=print, base_run_id="run-w").release(
        keep_journal=False
    )
    with pytest.raises(StillNeeded, match="has lost its manifest: run run-w was published"):
        vacuumed(lake, hours=168)


def test_checksums_go_with_their_files(lake: Lake) -> None:
    files = removable_files(RetentionGuard(lake.tables.root, LATER), NAME, 168).files
    for file in files:
        path = Path(lake.location, file.name)
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    Path(lake.location, "_delta_log", f".{0:020}.json.crc").write_bytes(b"crc")
    assert vacuumed(lake, hours=168) == {}
    remove(removable_entries(RetentionGuard(lake.tables.root, LATER), NAME, 720))
    assert not list(Path(lake.location).rglob("*.crc"))


@pytest.mark.parametrize("spelling", ["file://{0}/{1}", "file:{0}/{1}", "{0}/{1}"])
def test_a_path_may_be_spelled_otherwise(lake: Lake, spelling: str) -> None:
    newest = entry_path(lake.location, 11)
    path = next(action.add.path for action in read_actions(lake.location, 11) if action.add)
    other = spelling.format(lake.location, path)
    newest.write_text(newest.read_text().replace(f'"path":"{path}"', f'"path":"{other}"'))
    assert path in RetentionGuard(lake.tables.root, LATER).retained_files(NAME, 168).recent
    vacuumed(lake, hours=168)
    assert Path(lake.location, path).is_file()


def test_entries_go_up_to_the_checkpoint_that_all_readers_can_start_from(lake: Lake) -> None:
    removal = removable_entries(RetentionGuard(lake.tables.root, LATER), NAME, 720)
    remove(removal)
    # There is a checkpoint at version 10.
    assert logged_versions(lake.location) == [10, 11]
    assert {Path(file.name).name[:20] for file in removal.files} == {f"{n:020}" for n in range(10)}
    lake.light(11)
    lake.light(10)


def test_entries_that_are_young_stay(lake: Lake) -> None:
    assert removable_entries(RetentionGuard(lake.tables.root), NAME, 720).files == ()


@pytest.mark.parametrize(
    ("hold", "who"),
    [
        (lambda lake: published(lake, 4, LATER, "run-4"), "run run-4"),
        (lambda lake: cursor(lake, 6), "the cursor of relate for a"),
    ],
)
def test_entries_that_a_reader_needs_stay(lake: Lake, hold: Callable[[Lake], None], who: str) -> None:
    hold(lake)
    removal = removable_entries(RetentionGuard(lake.tables.root, LATER), NAME, 720)
    assert removal.files == ()
    assert removal.kept == {who: 10}


def test_a_version_with_a_deleted_log_is_not_needed_any_more(lake: Lake) -> None:
    remove(removable_entries(RetentionGuard(lake.tables.root, LATER), NAME, 720))
    published(lake, 4, LATER, "run-4")
    assert RetentionGuard(lake.tables.root, LATER).retained_files(NAME, 168).files == {}
    lake.light(11)


def test_what_cannot_be_removed_is_an_error(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(StorageFailure, match=r"cannot be removed: Permission denied"):
        vacuumed(lake, hours=168)


def test_rows_are_read_after_all_of_it(lake: Lake) -> None:
    before = light_table(lake.tables.root, NAME, ["node_id"]).num_rows
    vacuumed(lake, hours=168)
    remove(removable_entries(RetentionGuard(lake.tables.root, LATER), NAME, 720))
    assert light_table(lake.tables.root, NAME, ["node_id"]).num_rows == before
