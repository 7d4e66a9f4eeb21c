"""Changed rows and owners read without a JVM: those of Spark's change feed, or an error."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.light_feed import changed_owners, changed_rows, records_changes
from codeanatomy.delta.log.replay import replay_log
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.write.restore import restore_table
from codeanatomy.errors import FeedLost, FeedOutOfRange, TableMissing, UsageError
from support.owner_tables import NODES, Lake, Row, changed, entry, featured, fed, filled, nodes_of, owner


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    table = fed(NODES)
    return Lake(LakeTables(str(tmp_path / "lake"), tables=(table,)), table, "owner_file_id")


def feed(lake: Lake, first: int, last: int, **options: Any) -> Counter[tuple[int, str, str, str]]:
    """Version, type of change, kind and id of the changed rows."""
    rows = changed_rows(lake.tables.root, NODES.name, first, last, **options).to_pylist()
    names = ("_commit_version", "_change_type", "node_kind", "node_id")
    return Counter(tuple(row[name] for name in names) for row in rows)


def changes_of(version: int, change: str, rows: list[Row]) -> Counter[tuple[int, str, str, str]]:
    return Counter((version, change, row["node_kind"], row["node_id"]) for row in rows)


def test_rows_with_the_commits_that_changed_them(lake: Lake) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    filled(lake, files=3, rows=2)
    lake.swap(*nodes_of(1, 1), owners=[owner(1)])
    lake.swap(owners=[owner(1), owner(2)])
    first = changes_of(0, "insert", [row for number in range(3) for row in nodes_of(number, 2)])
    second = changes_of(1, "delete", nodes_of(1, 2)) + changes_of(1, "insert", nodes_of(1, 1))
    third = changes_of(2, "delete", [*nodes_of(1, 1), *nodes_of(2, 2)])
    assert feed(lake, 0, 0) == first
    assert feed(lake, 0, 2) == first + second + third
    assert feed(lake, 1, 9) == second + third
    assert feed(lake, 1, 2, repo_id="b") == Counter()
    rows = changed_rows(lake.tables.root, NODES.name, 1, 1)
    assert rows.column_names == [*NODES.column_names, "_change_type", "_commit_version", "_commit_timestamp"]
    (time,) = set(rows["_commit_timestamp"].to_pylist())
    assert before < time <= datetime.now(UTC)
    assert {row["path"] for row in rows.to_pylist()} == {"1.py"}


def test_commits_of_one_moment_have_an_order(lake: Lake) -> None:
    filled(lake, files=2)
    lake.swap(owners=[owner(1)])
    for version in (0, 1):
        os.utime(entry(lake, version), (1, 1))
    rows = changed_rows(lake.tables.root, NODES.name, 0, 1).to_pylist()
    times = {row["_commit_version"]: row["_commit_timestamp"] for row in rows}
    assert times[1] - times[0] == timedelta(milliseconds=1)


def test_a_restore_has_rows_unless_what_it_undoes_is_skipped(lake: Lake) -> None:
    filled(lake, files=3, rows=2)
    lake.swap(*nodes_of(1, 1), owners=[owner(1)])
    restore_table(lake.tables.root, NODES.name, 0, Commit("undo"))
    undone = changes_of(2, "delete", nodes_of(1, 1)) + changes_of(2, "insert", nodes_of(1, 2))
    assert feed(lake, 2, 2) == undone
    assert feed(lake, 1, 2) == undone + feed(lake, 1, 1)
    assert feed(lake, 1, 2, skip_undone=True) == Counter()


def test_files_of_other_repositories_need_not_exist(lake: Lake) -> None:
    """The statistics of files, also of removed ones, tell which repositories they have."""
    lake.swap(*nodes_of(1, 2))
    lake.swap(*nodes_of(2, 2, repo_id="b"))
    lake.swap(*nodes_of(1, 1), owners=[owner(1)])
    for path in {each.path for each in light_files(lake.tables.root, NODES.name, 0)}:
        Path(lake.location, path).unlink()
    assert feed(lake, 0, 2, repo_id="b") == changes_of(1, "insert", nodes_of(2, 2, repo_id="b"))
    with pytest.raises(FeedLost, match="version 2 of cpg_nodes was vacuumed"):
        feed(lake, 2, 2, repo_id="a")


def test_whether_a_version_records_its_changes(lake: Lake, tmp_path: Path) -> None:
    filled(lake, files=1)
    assert records_changes(lake.tables.root, NODES.name, 0)
    plain = Lake(LakeTables(str(tmp_path / "plain")), NODES, "owner_file_id")
    filled(plain, files=1)
    assert not records_changes(plain.tables.root, NODES.name, 0)


def test_only_rows_of_the_repository(lake: Lake) -> None:
    lake.swap(*nodes_of(1, 2), *nodes_of(2, 2, repo_id="b"))
    lake.swap(*nodes_of(2, 1, repo_id="b"), owners=[owner(2, "b")])
    assert changed(lake, 0, 1) == {1}
    assert changed(lake, 0, 0, "b") == changed(lake, 1, 1, "b") == {2}
    assert changed(lake, 1, 1) == changed(lake, 0, 1, "c") == set()


def test_a_version_that_was_brought_back(lake: Lake) -> None:
    filled(lake, files=6)
    lake.swap(*nodes_of(1, 1), owners=[owner(1)])
    lake.swap(owners=[owner(1), owner(2)])
    restore_table(lake.tables.root, NODES.name, 1, Commit("undo"))
    # The vectors of the two versions differ in rows of 2; those of 1 are in a file of their own.
    assert changed(lake, 3, 3) == {1, 2}
    # Nothing is left of what it has undone; before that there was an edit.
    assert changed(lake, 2, 3) == set()
    assert changed(lake, 1, 3) == {1}
    restore_table(lake.tables.root, NODES.name, None, Commit("undo", sequence=1))
    assert changed(lake, 4, 4) == set(range(6))


def test_other_columns_of_changed_rows(lake: Lake) -> None:
    filled(lake, files=3)
    lake.swap(*nodes_of(1, 1, "CLASS"), owners=[owner(1)])
    found = changed_owners(lake.tables.root, NODES.name, 1, 1, "node_kind", "a")
    assert found == {"CLASS", "FUNCTION"}
    assert changed_owners(lake.tables.root, NODES.name, 1, 1, "path", "a") == {"1.py"}


def test_changed_rows_have_the_types_of_the_catalogue(tmp_path: Path) -> None:
    text = replace(NODES.column("line"), type="string", semantic_type=None)
    columns = tuple(text if each.name == "line" else each for each in NODES.columns)
    table = replace(fed(NODES), columns=columns, constraints=())
    older = Lake(LakeTables(str(tmp_path), tables=(table,)), table, "owner_file_id")
    older.swap(*({**row, "line": "7"} for row in nodes_of(1, 1, "CLASS")))
    rows = changed_rows(str(tmp_path), NODES.name, 0, 0)
    assert rows["line"].to_pylist() == [7]
    assert rows.schema.field("line").type == arrow_schema(NODES).field("line").type


def test_windows(lake: Lake) -> None:
    filled(lake, files=3)
    root = lake.tables.root
    with pytest.raises(FeedOutOfRange, match="start version 1 is after the newest version 0 of cpg_nodes"):
        changed(lake, 1, 1)
    assert changed_owners(root, NODES.name, 1, 1, "path", "a", allow_out_of_range=True) == frozenset()
    # Empty, and beyond the newest at its end.
    assert changed(lake, 0, -1) == set()
    assert changed(lake, 0, 9) == {0, 1, 2}
    for first, last in ((-1, 0), (2, 0)):
        with pytest.raises(UsageError, match=r"is negative|is after end version"):
            changed(lake, first, last)
    with pytest.raises(TableMissing):
        changed_owners(f"{root}/nowhere", NODES.name, 0, 0, "path", "a")


def test_what_is_gone_is_lost(lake: Lake) -> None:
    filled(lake, files=3)
    lake.swap(*nodes_of(1, 1), owners=[owner(1)])
    lake.swap(owners=[owner(2)])
    vectors = sorted(Path(lake.location).glob("*.bin"), key=lambda path: path.stat().st_mtime_ns)
    kept = vectors[-1].read_bytes()
    vectors[-1].unlink()
    with pytest.raises(FeedLost, match="version 2 of cpg_nodes was vacuumed"):
        changed(lake, 1, 2)
    assert changed(lake, 1, 1) == {1}
    vectors[-1].write_bytes(kept)
    path = Path(lake.location, min(replay_log(lake.location, 0).adds))
    path.unlink()
    with pytest.raises(FeedLost, match=f"was vacuumed: .*{path.name}"):
        changed(lake, 1, 1)
    DeltaTable(lake.location).create_checkpoint()
    for version in (0, 1):
        entry(lake, version).unlink()
    with pytest.raises(FeedLost, match="no entry for version 1"):
        changed(lake, 1, 2)
    assert changed(lake, 2, 1) == set()


def test_what_was_not_recorded_is_lost(lake: Lake) -> None:
    root = lake.tables.root
    plain = Lake(LakeTables(root, (featured(NODES),)), featured(NODES), "owner_file_id")
    filled(plain, files=3)
    with pytest.raises(FeedLost, match="did not record changes at version 0"):
        changed(plain, 0, 0)
    table = DeltaTable(plain.location)
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    plain.history.append(plain.history[-1])
    plain.swap(owners=[owner(1)])
    assert changed(plain, 1, 2) == {1}
    table.update_incremental()
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    with pytest.raises(FeedLost, match="stopped recording changes at version 3"):
        changed(plain, 2, 3)
