"""What a table needs, by its policy and its state: a task for each operation that is worth doing, and why.

    for task in tasks_of(table, condition, now):
        task.operation, task.reason      # "optimize", "96 of 102 files are below 128 MB in 31 partitions"

Pure: what is looked at is in the condition (`maintain.table_state`). Which files and log entries may go is found
by looking at them (`maintain.removal`). Tests: `tests/unit/maintain/test_choose.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from codeanatomy.catalog.describe import size_text
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.layout import recorded_lineage, resolve_stats_columns, table_properties
from codeanatomy.maintain.table_state import SMALL, Condition, Part

Operation = Literal["properties", "optimize", "zorder", "checkpoint", "vacuum", "cleanup_log"]
# In the order in which they are done.
OPERATIONS: tuple[Operation, ...] = (
    "properties",
    "optimize",
    "zorder",
    "checkpoint",
    "vacuum",
    "cleanup_log",
)


class Task(Struct, frozen=True):
    """An operation on a table, and why."""

    table: str
    operation: Operation
    reason: str
    # Partitions that it is about, by the values of their columns; none: all.
    partitions: tuple[dict[str, str | None], ...] = ()


def tasks_of(table: Table, found: Condition, now: datetime, *, by_hand: bool = False) -> Iterator[Task]:
    """What the log of a table says should be done; by hand, whatever would change something."""
    changed = differing(table, found)
    if changed:
        named = f"{', '.join(sorted(changed)[:3])}{', ...' if len(changed) > 3 else ''}"
        yield Task(table.name, "properties", f"{len(changed)} differ from the catalogue: {named}")
    ordered = [part for part in found.parts if _is_unordered(table, part, now, by_hand=by_hand)]
    compacted = [part for part in found.parts if _is_scattered(table, part, by_hand=by_hand)]
    if ordered and z_order(table):
        yield Task(table.name, "zorder", _unordered(table, ordered), _values(table, ordered))
    # What is ordered is compacted, too.
    left = [part for part in compacted if by_hand or part not in ordered or not z_order(table)]
    if left:
        yield Task(table.name, "optimize", _scattered(table, left), _values(table, left))
    if found.since_checkpoint >= (1 if by_hand else table.upkeep.checkpoint_interval):
        told = f"{found.since_checkpoint} versions since the last"
        yield Task(table.name, "checkpoint", f"{told}, one every {table.upkeep.checkpoint_interval}")


def z_order(table: Table) -> tuple[str, ...]:
    """The columns of a table's Z-order that Delta can order by: those with statistics."""
    known = resolve_stats_columns(table)
    return tuple(name for name in table.z_order if name in known)


def differing(table: Table, found: Condition) -> dict[str, str]:
    """Properties of the policy that the table has not, with the values that they shall have."""
    lineage = recorded_lineage(found.properties)
    wanted = table_properties(table, resolve_stats_columns(table, lineage), lineage)
    return {key: value for key, value in wanted.items() if found.properties.get(key) != value}


def _is_scattered(table: Table, part: Part, *, by_hand: bool) -> bool:
    """Whether a partition has small files to be made one, or many rows that are not the table's."""
    upkeep = table.upkeep
    # More than, as Delta has it.
    return part.small_files >= (2 if by_hand else upkeep.compact_files) or part.deleted_share > (
        0 if by_hand else upkeep.compact_deleted
    )


def _is_unordered(table: Table, part: Part, now: datetime, *, by_hand: bool) -> bool:
    """Whether a partition is to be put in order again; a single file is in the order of its writer."""
    if by_hand:
        return part.unordered_bytes > 0
    upkeep = table.upkeep
    complete = part.newest_ms <= _ago(now, upkeep.complete_hours)
    due = part.ordered_ms is None or part.ordered_ms <= _ago(now, upkeep.z_order_hours)
    return (
        due
        and part.files > 1
        and part.bytes >= upkeep.z_order_size
        and part.unordered_share >= upkeep.z_order_share
        and (upkeep.z_order_when == "periodic" or complete)
    )


def _ago(now: datetime, hours: float) -> float:
    """So many hours before now, in milliseconds since the epoch."""
    return (now - timedelta(hours=hours)).timestamp() * 1000


def _scattered(table: Table, parts: Sequence[Part]) -> str:
    small, files = sum(part.small_files for part in parts), sum(part.files for part in parts)
    deleted, rows = sum(part.deleted_rows for part in parts), sum(part.rows for part in parts)
    told = f"{small:,} of {files:,} files are below {size_text(int(table.write.target_file_size * SMALL))}"
    gone = f", {deleted:,} of {rows:,} rows are removed" if deleted else ""
    return f"{told}{gone}{_in(parts)}"


def _unordered(table: Table, parts: Sequence[Part]) -> str:
    unordered, size = sum(part.unordered_bytes for part in parts), sum(part.bytes for part in parts)
    files = sum(part.files for part in parts)
    return (
        f"{unordered / size:.0%} of {size / 2**20:,.1f} MB in {files:,} files were written since the last "
        f"Z-order by {', '.join(z_order(table))}{_in(parts)}"
    )


def _in(parts: Sequence[Part]) -> str:
    return f", in {len(parts):,} partition{'s' if len(parts) > 1 else ''}" if parts[0].values else ""


def _values(table: Table, parts: Sequence[Part]) -> tuple[dict[str, str | None], ...]:
    """The partitions by name; a table whose columns have other names in its log is taken as a whole."""
    is_mapped = table.schema.column_mapping_mode is not None
    return () if is_mapped else tuple(dict(part.values) for part in parts if part.values)
