"""Versions of a table as readers open them: by number, by time, and those that are not there."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import replay
from codeanatomy.delta.log.entries import write_checkpoint
from codeanatomy.delta.log.folder import StoredFile
from codeanatomy.delta.log.replay import CheckpointCache
from codeanatomy.delta.log.versions import open_version
from codeanatomy.delta.read import readable
from codeanatomy.delta.read.open_table import newest_version, open_table, replay_table
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import StorageFailure, StoreUnavailable, TableMissing, UsageError
from support.log_files import entry_path
from support.manifest_rows import MANIFEST, row

FIRST = datetime(2026, 3, 4, 12, tzinfo=UTC)
NAME = MANIFEST.name


@pytest.fixture
def tables(tmp_path: Path) -> LakeTables:
    """Three versions, an hour apart; the clock of the third writer was an hour late."""
    for number, hours in enumerate((0, 1, 0)):
        append_small(str(tmp_path), MANIFEST, [row(f"run-{number}")], Commit(f"run-{number}"))
        moment = (FIRST + timedelta(hours=hours)).timestamp()
        os.utime(entry_path(str(tmp_path / MANIFEST.path), number), (moment, moment))
    return LakeTables(str(tmp_path))


def test_pins(tables: LakeTables) -> None:
    assert open_table(tables, NAME).info.version == newest_version(tables.root, NAME) == 2
    opened = open_table(tables, NAME, 1)
    assert (opened.info.version, len(opened.files)) == (1, 2)
    assert opened.state.transactions == {"run-0": 0, "run-1": 0}
    for minutes, version in ((0, 0), (59, 0), (60, 1), (61, 2), (9999, 2)):
        assert open_table(tables, NAME, FIRST + timedelta(minutes=minutes)).info.version == version


def test_what_is_not_there(tables: LakeTables) -> None:
    with pytest.raises(TableMissing, match="has no version 3"):
        open_table(tables, NAME, 3)
    with pytest.raises(TableMissing, match="did not exist at"):
        open_table(tables, NAME, FIRST - timedelta(seconds=1))
    with pytest.raises(TableMissing, match="cpg_nodes was never written"):
        open_table(tables, "cpg_nodes")
    with pytest.raises(UsageError, match="no time zone"):
        open_table(tables, NAME, FIRST.replace(tzinfo=None))
    with pytest.raises(UsageError, match="is not a table version"):
        open_table(tables, NAME, -1)


def test_a_damaged_log(tables: LakeTables) -> None:
    entry_path(tables.location(NAME), 1).write_text("{")
    with pytest.raises(StorageFailure, match=r"run_manifest at .* cannot be read") as caught:
        open_table(tables, NAME)
    assert "damaged" in caught.value.hint
    # Older versions are.
    assert open_table(tables, NAME, 0).info.version == 0
    entry_path(tables.location(NAME), 1).unlink()
    with pytest.raises(StorageFailure):
        replay_table(tables.root, NAME)


def test_an_empty_last_entry_is_no_version(tables: LakeTables) -> None:
    """What a machine leaves that stops while it writes; of an empty one before others, rows would be lost."""
    place, table = tables.location(NAME), tables.table(NAME)
    entry_path(place, 3).touch()
    for read in (open_table, lambda *_: open_version(table, place)):
        with pytest.raises((StorageFailure, ValueError), match=r"0003\.json is empty"):
            read(tables, NAME)
    with pytest.raises(StorageFailure, match="is empty"):
        append_small(tables.root, MANIFEST, [row("run-4")], Commit("run-4"))
    assert open_table(tables, NAME, 2).info.version == 2
    entry_path(place, 3).unlink()
    assert append_small(tables.root, MANIFEST, [row("run-4")], Commit("run-4")) == 3
    entry_path(place, 2).write_bytes(b"")
    with pytest.raises(StorageFailure, match=r"0002\.json is empty"):
        open_table(tables, NAME)


def test_a_damaged_checkpoint_is_not_needed(tables: LakeTables) -> None:
    place = tables.location(NAME)
    files = open_table(tables, NAME).files
    assert write_checkpoint(place) == 2
    append_small(tables.root, MANIFEST, [row("run-3")], Commit("run-3"))
    checkpoint = next(Path(place, "_delta_log").glob("*.checkpoint.parquet"))
    for content in (b"", b"PAR1 and no more", checkpoint.read_bytes()[:-9]):
        checkpoint.write_bytes(content)
        opened = open_table(tables, NAME)
        assert {file.path for file in opened.files} > {file.path for file in files}
        assert len(opened.files) == 4
        assert {file.path for file in open_table(tables, NAME, 2).files} == {file.path for file in files}
    assert append_small(tables.root, MANIFEST, [row("run-4")], Commit("run-4")) == 4
    # Without the entries that it replaces, it is.
    entry_path(place, 1).unlink()
    with pytest.raises(StorageFailure, match="cannot be read"):
        open_table(tables, NAME)


def test_checkpoints_in_memory_are_bounded_by_their_bytes(
    tables: LakeTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tables.location(NAME)
    write_checkpoint(place)
    (checkpoint,) = Path(place, "_delta_log").glob("*.checkpoint.parquet")
    size, cache = checkpoint.stat().st_size, CheckpointCache()
    monkeypatch.setattr(replay, "_CHECKPOINTS", cache)
    copies = [checkpoint.with_name(f"{number:020}.checkpoint.parquet") for number in range(5)]
    for copy in copies[:2] + copies[3:]:
        copy.write_bytes(checkpoint.read_bytes())
    monkeypatch.setattr(replay, "MAX_CHECKPOINT_BYTES", 2 * size)
    for copy in copies:
        cache.read(place, StoredFile(f"_delta_log/{copy.name}", size, 0))
    assert [file.name[11:31] for _, file in cache._files] == [f"{number:020}" for number in (3, 4)]
    copies[3].unlink()
    again = cache.read(place, StoredFile(f"_delta_log/{copies[3].name}", size, 0))
    assert [file.name[11:31] for _, file in cache._files] == [f"{number:020}" for number in (4, 3)]
    assert sum(each.add is not None for each in again) == 3
    monkeypatch.setattr(replay, "MAX_CHECKPOINT_BYTES", size - 1)
    cache.read(place, StoredFile(f"_delta_log/{copies[0].name}", size, 0))
    assert not cache._files


@pytest.mark.parametrize("root", ["s3a://bucket//lake", "s3a://bucket/a//b", "s3a://bucket/a///b/"])
def test_an_empty_part_of_a_uri_is_refused(root: str) -> None:
    with pytest.raises(UsageError, match="empty part between two slashes"):
        LakeTables(root)
    assert LakeTables("s3a://bucket/lake//").root == "s3a://bucket/lake"


@pytest.mark.parametrize("root", ["s3a://", "s3a:///lake", "s3a:/bucket/lake"])
def test_a_uri_without_a_bucket_is_refused(root: str) -> None:
    with pytest.raises(UsageError, match="names no bucket"):
        LakeTables(root)


def test_a_store_that_cannot_be_used_has_lost_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreUnavailable("s3a://bucket/lake: the store does not answer", "check the network")

    monkeypatch.setattr(readable, "newest_version", lambda *_: 3)
    monkeypatch.setattr(readable, "logged_paths", refuse)
    for check in (readable.is_readable, readable.require_readable):
        with pytest.raises(StoreUnavailable):
            check("s3a://bucket/lake", "cpg_nodes", 3)
