"""Versions of a table as readers open them: by number, by time, and those that are not there."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.read.light import newest_version
from codeanatomy.delta.read.open_table import open_table, replay_table
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import StorageFailure, TableMissing, UsageError
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
