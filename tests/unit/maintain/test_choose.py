"""Operations that a policy requires in a given state, with the reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.catalog.spec import MB, Table
from codeanatomy.delta.layout import table_properties
from codeanatomy.maintain.choose import Task, choose_tasks, differing_properties, order_columns
from codeanatomy.maintain.table_state import PartitionState, TableState

NODES = catalog.table("cpg_nodes")
NOW = datetime(2026, 5, 1, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
HOUR = 3_600_000


def part(kind: str = "CLASS", **changed: Any) -> PartitionState:
    """A partition that needs nothing."""
    good = PartitionState((("node_kind", kind),), 1, 1, 100 * MB, 1000, 0, None, 0, NOW_MS - 100 * HOUR)
    return structs.replace(good, **changed)


def state(*parts: PartitionState, table: Table = NODES, **changed: Any) -> TableState:
    good = TableState(
        table=table.name,
        version=20,
        parts=parts,
        log_entries=1,
        log_bytes=1,
        since_checkpoint=0,
        first_entry=20,
        dead_files=0,
        dead_bytes=0,
        properties=table_properties(table),
        features=(),
    )
    return structs.replace(good, **changed)


def wanted(observed: TableState, table: Table = NODES, *, by_hand: bool = False) -> list[Task]:
    return list(choose_tasks(table, observed, NOW, by_hand=by_hand))


def with_policy(**changed: Any) -> Table:
    return structs.replace(NODES, upkeep=structs.replace(NODES.upkeep, **changed))


def test_a_table_in_good_state_needs_nothing() -> None:
    assert wanted(state(part())) == []


def test_a_lake_of_every_table_just_written_needs_nothing() -> None:
    for table in catalog.TABLES:
        one = structs.replace(part(unordered_bytes=100 * MB), values=())
        assert wanted(state(one, table=table), table) == []


def test_small_files_are_compacted_where_they_are() -> None:
    many = part("CALLSITE", files=5, small_files=4, bytes=MB)
    few = part("CLASS", files=3, small_files=3, bytes=MB)
    (task,) = wanted(state(many, few))
    assert (task.operation, task.partitions) == ("optimize", ({"node_kind": "CALLSITE"},))
    assert task.reason == "4 of 5 files are below 128 MB, in 1 partition"


def test_removed_rows_are_written_away() -> None:
    (task,) = wanted(state(part(deleted_rows=201)))
    assert task.operation == "optimize"
    assert "201 of 1,000 rows are removed" in task.reason
    assert wanted(state(part(deleted_rows=200))) == []


def test_rows_out_of_order_are_ordered_and_so_compacted() -> None:
    mixed = part(files=9, small_files=8, unordered_bytes=30 * MB)
    (task,) = wanted(state(mixed))
    assert task.operation == "zorder"
    assert task.reason == (
        "30% of 100.0 MB in 9 files were written since the last Z-order by file_id, node_id, in 1 partition"
    )
    (task,) = choose_tasks(with_policy(z_order_cols=()), state(mixed), NOW)
    assert "since the last sort by repo_id, file_id, bstart, node_id, in 1 partition" in task.reason


@pytest.mark.parametrize(
    ("changed", "policy"),
    [
        ({"unordered_bytes": 29 * MB}, {}),
        ({"files": 1}, {}),
        ({"bytes": 7 * MB, "unordered_bytes": 7 * MB}, {}),
        ({}, {"z_order_when": "never"}),
        ({}, {"z_order_share": 0.5}),
        ({"newest_ms": NOW_MS}, {"z_order_when": "after_partition_complete"}),
    ],
)
def test_rows_stay_in_the_order_they_have(changed: dict[str, Any], policy: dict[str, Any]) -> None:
    table = with_policy(**policy)
    mixed = part(**{"files": 3, "small_files": 0, "unordered_bytes": 40 * MB, **changed})
    assert wanted(state(mixed, table=table), table) == []


def test_a_partition_is_complete_when_nothing_was_written_for_a_while() -> None:
    table = with_policy(z_order_when="after_partition_complete", complete_hours=2)
    at_work = part("CLASS", files=3, small_files=0, unordered_bytes=40 * MB, newest_ms=NOW_MS - HOUR)
    quiet = part("CALLSITE", files=3, small_files=0, unordered_bytes=40 * MB, newest_ms=NOW_MS - 2 * HOUR)
    (task,) = wanted(state(at_work, quiet, table=table), table)
    assert task.partitions == ({"node_kind": "CALLSITE"},)


def test_an_order_is_not_made_again_too_soon() -> None:
    mixed = part(files=3, small_files=0, unordered_bytes=40 * MB, ordered_ms=NOW_MS - 23 * HOUR)
    assert wanted(state(mixed)) == []
    assert wanted(state(structs.replace(mixed, ordered_ms=NOW_MS - 24 * HOUR)))[0].operation == "zorder"


def test_a_log_is_checkpointed_every_so_often() -> None:
    assert wanted(state(part(), since_checkpoint=9)) == []
    (task,) = wanted(state(part(), since_checkpoint=10))
    assert (task.operation, task.reason) == ("checkpoint", "10 versions since the last, one every 10")


def test_properties_that_differ_are_named() -> None:
    observed = state(part())
    stale = {**observed.properties, "delta.checkpointInterval": "77"}
    changed = structs.replace(observed, properties=stale)
    assert differing_properties(NODES, changed) == {"delta.checkpointInterval": "10"}
    (task,) = wanted(changed)
    assert (task.operation, task.reason) == (
        "properties",
        "1 differ from the catalogue: delta.checkpointInterval",
    )


def test_by_hand_all_is_done_that_changes_something() -> None:
    two = part(files=2, small_files=2, bytes=MB, deleted_rows=1, unordered_bytes=MB)
    observed = state(two, since_checkpoint=1)
    assert [task.operation for task in wanted(observed)] == []
    assert [task.operation for task in wanted(observed, by_hand=True)] == ["zorder", "optimize", "checkpoint"]
    assert wanted(state(part()), by_hand=True) == []


def test_delta_orders_by_columns_with_statistics() -> None:
    events = catalog.table("py_bc_def_use_events_v1")
    assert order_columns(events) == events.z_order == events.ordering
    chosen = ("file_id", "bc_event_offset", "bc_block_id")
    z_ordered = structs.replace(events, upkeep=structs.replace(events.upkeep, z_order_cols=chosen))
    assert z_ordered.z_order == chosen
    assert order_columns(z_ordered) == ("file_id", "bc_block_id")


def test_every_policy_of_the_catalogue_keeps_what_readers_need() -> None:
    for table in catalog.TABLES:
        if table.name != "run_lease":
            assert table.upkeep.vacuum_hours >= 168
            assert timedelta(hours=table.upkeep.log_hours) >= timedelta(hours=table.upkeep.vacuum_hours)
