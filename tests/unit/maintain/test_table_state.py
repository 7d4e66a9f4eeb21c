"""The state of a table, read from its log and its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.read.open_table import location
from codeanatomy.maintain.table_state import TableState, inspect_table, list_table_files
from support.owner_tables import NODES, Lake, filled, nodes_of, owner


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(LakeTables(str(tmp_path / "lake"), tables=(NODES,)), NODES, "owner_file_id")


def inspected(lake: Lake, **ordered: int) -> TableState:
    """The state, after partitions were ordered at a time."""
    times = {f"node_kind={kind}": time for kind, time in ordered.items()}
    observed = inspect_table(location(lake.tables.root, NODES.name), NODES, times)
    assert observed is not None
    return observed


def deleted(observed: TableState) -> int:
    return sum(part.deleted_rows for part in observed.parts)


def test_no_table_has_no_state(tmp_path: Path) -> None:
    assert inspect_table(str(tmp_path / "nothing"), NODES) is None


def test_files_rows_and_bytes_are_those_of_the_disk(lake: Lake) -> None:
    filled(lake, files=6, rows=3)
    observed = inspected(lake)
    place = Path(location(lake.tables.root, NODES.name))
    on_disk = [path for path in place.rglob("*.parquet") if "_delta_log" not in path.parts]
    assert observed.version == 0
    assert observed.files == len(on_disk)
    assert observed.bytes == sum(path.stat().st_size for path in on_disk)
    assert sum(part.rows for part in observed.parts) == 36
    assert (observed.dead_files, deleted(observed), observed.since_checkpoint) == (0, 0, 1)
    assert observed.log_entries == 1
    assert observed.properties["codeanatomy.table"] == NODES.name


def test_removed_rows_and_old_files_are_counted(lake: Lake) -> None:
    filled(lake, files=6, rows=3)
    lake.swap(*nodes_of(2, 3), owners=[owner(2)])
    shared = inspected(lake)
    assert deleted(shared) == 6
    assert "deletionVectors" in shared.features
    # The vector is read by the newest version.
    assert shared.dead_files == 0
    lake.swap(*nodes_of(2, 3), owners=[owner(2)])
    again = inspected(lake)
    # The files of the owner are replaced; those that it shares with others have the same vector still.
    assert again.dead_files > 0
    assert deleted(again) == 6


def test_small_files_are_those_far_below_the_target(lake: Lake) -> None:
    filled(lake, files=4, rows=2)
    lake.swap(*nodes_of(10, 2), owners=[owner(10)])
    small = NODES.write.target_file_size // 2
    place = Path(location(lake.tables.root, NODES.name))
    for part in inspected(lake).parts:
        ((column, kind),) = part.values
        sizes = [path.stat().st_size for path in (place / f"{column}={kind}").glob("*.parquet")]
        assert (part.files, part.small_files) == (2, sum(size < small for size in sizes)) == (2, 2)


def test_what_came_after_the_last_order_is_out_of_order(lake: Lake) -> None:
    filled(lake, files=4, rows=2)
    first = inspected(lake)
    assert {part.unordered_share for part in first.parts} == {1.0}
    newest = max(part.newest_ms for part in first.parts)
    # Each partition by itself.
    shares = {part.values[0][1]: part.unordered_share for part in inspected(lake, CLASS=newest).parts}
    assert shares == {"CLASS": 0.0, "FUNCTION": 1.0}
    assert {part.unordered_share for part in inspected(lake, CLASS=0, FUNCTION=0).parts} == {1.0}


def test_only_what_writers_leave_is_listed(tmp_path: Path) -> None:
    for name in (
        "a=1/part-0.parquet",
        "_delta_log/0.json",
        "_queries/1.jsonl",
        ".tmp/x",
        "_change_data/cdc.parquet",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / ".hidden").write_bytes(b"x")
    (tmp_path / "link.parquet").symlink_to(tmp_path / ".hidden")
    assert {file.name for file in list_table_files(str(tmp_path))} == {
        "a=1/part-0.parquet",
        "_change_data/cdc.parquet",
    }
