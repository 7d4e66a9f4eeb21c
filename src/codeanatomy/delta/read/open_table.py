"""Open a version of a table: the part of a scan that is the same for Spark and for readers without a JVM.

    opened = open_table(tables, "cpg_nodes", pin=3)          # or a datetime; None is the newest version
    opened.info.version, opened.files                        # after the check of the gate
    replay_table("lake", "cpg_nodes")                        # (7, LogState(...)), without gate and files

A pin is resolved to a version number. A missing table, a missing version and a damaged log have one error
each, for all readers.

Tests: `tests/spark/test_scan.py`, `tests/unit/delta/test_open_table.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from msgspec import MsgspecError

from codeanatomy import catalog
from codeanatomy.delta.gate import check_gate
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.replay import LogListing, LogState, list_log, replay_log
from codeanatomy.delta.log.versions import TableVersion, describe_version
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import StorageFailure, TableMissing, UsageError

# None: the newest version; an int: that version; a time: the version that was current at that time.
Pin = int | datetime | None
# What to do about a table that is damaged.
REPAIR = (
    "a log or a data file is damaged: run `codeanatomy build` with all sources of the lake, which builds what"
    " cannot be read again; with --full, everything"
)
# Unsupported in the path of a lake: deltalake panics at brackets, and decodes percent escapes.
UNREADABLE = re.compile(r"[\[\]]|%[0-9A-Fa-f]{2}")


def location(root: str, name: str) -> str:
    """Return the path or URI of a table of the lake."""
    return f"{root.rstrip('/')}/{catalog.table(name).path}"


def open_table(tables: LakeTables, name: str, pin: Pin = None) -> TableVersion:
    """Open a version of a table after checking its gate."""
    place, table = tables.location(name), tables.table(name)
    with _explain_damage(place, name):
        listing = _list(place, name, pin)
        opened = describe_version(table, place, resolve_pin(place, listing, pin), listing)
    check_gate(table, opened.info, tables.record, reading=True)
    return opened


def replay_table(root: str, name: str, version: int | None = None) -> tuple[int, LogState]:
    """Return a version of a table (default: the newest) and its state."""
    place = location(root, name)
    with _explain_damage(place, name):
        listing = _list(place, name, version)
        number = resolve_pin(place, listing, version)
        state = replay_log(place, number, listing)
        if "minReaderVersion" not in state.protocol or not state.metadata:
            raise ValueError("its log has no protocol or no schema")
    return number, state


def newest_version(root: str, name: str) -> int:
    """Return the newest version of a table; raise TableMissing if it was never written."""
    place = location(root, name)
    with _explain_damage(place, name):
        return _list(place, name).newest


def resolve_pin(place: str, listing: LogListing, pin: Pin) -> int:
    """Return the version number of a pin."""
    newest = listing.newest
    if pin is None:
        return newest
    if isinstance(pin, datetime):
        return _version_at(place, listing, pin)
    if type(pin) is not int or not 0 <= pin < 2**63:
        raise UsageError(
            f"{pin!r} is not a table version", "pin a version number or a datetime with a time zone"
        )
    if pin > newest:
        raise TableMissing(f"{place} has no version {pin}", f"choose a version up to {newest}, the newest")
    return pin


def _version_at(place: str, listing: LogListing, moment: datetime) -> int:
    """Return the version that was current at a time."""
    if moment.tzinfo is None:
        raise UsageError(f"{moment.isoformat()} has no time zone", "write it like 2026-01-31T12:00:00+00:00")
    wanted, times = int(moment.timestamp() * 1000), commit_times(listing)
    current = max((version for version, at in times.items() if at <= wanted), default=None)
    if current is None:
        first = datetime.fromtimestamp(min(times.values()) / 1000, UTC)
        raise TableMissing(
            f"{place} did not exist at {moment.isoformat()}",
            f"choose a time after its first version, {first.isoformat()}",
        )
    return current


def commit_times(listing: LogListing) -> dict[int, int]:
    """Return the time of each commit in milliseconds: that of its entry, and later than the one before."""
    times: dict[int, int] = {}
    last = -1
    for version, entry in listing.entries.items():
        last = times[version] = max(entry.modified_ms, last + 1)
    return times


def _list(place: str, name: str, pin: Pin = None) -> LogListing:
    listing = list_log(place, pin if type(pin) is int else None)
    if listing.newest < 0:
        raise TableMissing(
            f"table {name} was never written at {place}", "check the path of the lake, or build it"
        )
    return listing


@contextmanager
def _explain_damage(place: str, name: str) -> Iterator[None]:
    """Raise StorageFailure if the log of a table cannot be read."""
    try:
        yield
    except (OSError, ValueError, MsgspecError) as problem:
        odd = UNREADABLE.search(place) if is_local(place) else None
        hint = REPAIR
        raise StorageFailure(
            f"{name} at {place} cannot be read: {problem}",
            hint if odd is None else f"rename the folder of the lake: its path must not contain {odd[0]}",
        ) from problem
