"""Choose the maintenance operations that a table needs, by its policy and its state.

    for task in choose_tasks(table, state, now):
        task.operation, task.reason      # "optimize", "96 of 102 files are below 128 MB in 31 partitions"

Pure: all input is in the state (`maintain.table_state`). The files and log entries that may be deleted are
chosen by reading the lake (`maintain.removal`). Tests: `tests/unit/maintain/test_choose.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from codeanatomy.catalog.describe import size_text
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.layout import resolve_stats_columns, table_properties
from codeanatomy.maintain.table_state import SMALL_FILE_SHARE, PartitionState, TableState

Operation = Literal["properties", "optimize", "zorder", "checkpoint", "vacuum", "cleanup_log"]
# In execution order.
OPERATIONS: tuple[Operation, ...] = (
    "properties",
    "optimize",
    "zorder",
    "checkpoint",
    "vacuum",
    "cleanup_log",
)


class Task(Struct, frozen=True):
    """An operation on a table, and the reason for it."""

    table: str
    operation: Operation
    reason: str
    # The partitions to process, by the values of their columns; empty: all.
    partitions: tuple[dict[str, str | None], ...] = ()


def choose_tasks(table: Table, state: TableState, now: datetime, *, by_hand: bool = False) -> Iterator[Task]:
    """Yield the operations that the policy requires; `by_hand`, all that would change something."""
    changed = differing_properties(table, state)
    if changed:
        names = f"{', '.join(sorted(changed)[:3])}{', ...' if len(changed) > 3 else ''}"
        yield Task(table.name, "properties", f"{len(changed)} differ from the catalogue: {names}")
    unordered = [part for part in state.parts if _needs_order(table, part, now, by_hand=by_hand)]
    scattered = [part for part in state.parts if _needs_compaction(table, part, by_hand=by_hand)]
    if unordered and order_columns(table):
        reason = _order_reason(table, unordered)
        yield Task(table.name, "zorder", reason, _partition_values(table, unordered))
    # Sorting compacts, too.
    left = [part for part in scattered if by_hand or part not in unordered or not order_columns(table)]
    if left:
        yield Task(table.name, "optimize", _compaction_reason(table, left), _partition_values(table, left))
    if state.since_checkpoint >= (1 if by_hand else table.upkeep.checkpoint_interval):
        since = f"{state.since_checkpoint} versions since the last"
        yield Task(table.name, "checkpoint", f"{since}, one every {table.upkeep.checkpoint_interval}")


def order_columns(table: Table) -> tuple[str, ...]:
    """Return the columns to sort by, or those of a Z-order that readers can prune by: with statistics."""
    known = resolve_stats_columns(table) if table.upkeep.z_order_cols else table.z_order
    return tuple(name for name in table.z_order if name in known)


def differing_properties(table: Table, state: TableState) -> dict[str, str]:
    """Return the properties of the policy that the table lacks or has with another value."""
    declared = table_properties(table)
    return {key: value for key, value in declared.items() if state.properties.get(key) != value}


def _needs_compaction(table: Table, part: PartitionState, *, by_hand: bool) -> bool:
    """Whether a partition has enough small files or deleted rows to be compacted."""
    upkeep = table.upkeep
    # Strictly greater, as in Delta.
    return part.small_files >= (2 if by_hand else upkeep.compact_files) or part.deleted_share > (
        0 if by_hand else upkeep.compact_deleted
    )


def _needs_order(table: Table, part: PartitionState, now: datetime, *, by_hand: bool) -> bool:
    """Whether a partition is to be sorted or Z-ordered; a single file keeps the order of its writer."""
    if by_hand:
        return part.unordered_bytes > 0
    upkeep = table.upkeep
    complete = part.newest_ms <= _hours_before_ms(now, upkeep.complete_hours)
    due = part.ordered_ms is None or part.ordered_ms <= _hours_before_ms(now, upkeep.z_order_hours)
    return (
        due
        and part.files > 1
        and part.bytes >= upkeep.z_order_size
        and part.unordered_share >= upkeep.z_order_share
        and (upkeep.z_order_when == "periodic" or complete)
    )


def _hours_before_ms(now: datetime, hours: float) -> float:
    """Return the time `hours` before now, in milliseconds since the epoch."""
    return (now - timedelta(hours=hours)).timestamp() * 1000


def _compaction_reason(table: Table, parts: Sequence[PartitionState]) -> str:
    small, files = sum(part.small_files for part in parts), sum(part.files for part in parts)
    deleted, rows = sum(part.deleted_rows for part in parts), sum(part.rows for part in parts)
    limit = size_text(int(table.write.target_file_size * SMALL_FILE_SHARE))
    removed = f", {deleted:,} of {rows:,} rows are removed" if deleted else ""
    return f"{small:,} of {files:,} files are below {limit}{removed}{_partition_count(parts)}"


def _order_reason(table: Table, parts: Sequence[PartitionState]) -> str:
    unordered, size = sum(part.unordered_bytes for part in parts), sum(part.bytes for part in parts)
    files = sum(part.files for part in parts)
    return (
        f"{unordered / size:.0%} of {size / 2**20:,.1f} MB in {files:,} files were written since the last "
        f"{'Z-order' if table.upkeep.z_order_cols else 'sort'} by {', '.join(order_columns(table))}"
        f"{_partition_count(parts)}"
    )


def _partition_count(parts: Sequence[PartitionState]) -> str:
    return f", in {len(parts):,} partition{'s' if len(parts) > 1 else ''}" if parts[0].values else ""


def _partition_values(table: Table, parts: Sequence[PartitionState]) -> tuple[dict[str, str | None], ...]:
    """Return the partitions by column; empty, which means all, if the log has mapped column names."""
    is_mapped = table.schema.column_mapping_mode is not None
    return () if is_mapped else tuple(dict(part.values) for part in parts if part.values)
