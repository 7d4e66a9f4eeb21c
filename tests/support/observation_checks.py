"""Compare the observation tables of a lake with the Delta logs of its tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from codeanatomy import catalog
from codeanatomy.catalog.tables.meta import CDF_CURSORS, RUN_LEASE, RUN_MANIFEST
from codeanatomy.catalog.tables.observe import TABLES as OBSERVE_TABLES
from codeanatomy.delta.read.light import light_table

FIRST = {
    "shop/__init__.py": "",
    "shop/money.py": "TAX = 2\n\n\ndef price(amount):\n    return amount * TAX\n",
    "shop/cart.py": "from shop.money import price\n\n\ndef total(a, b):\n    return price(a) + price(b)\n",
}


class Entry(NamedTuple):
    """An entry of a Delta log, and its totals."""

    table: str
    version: int
    run_id: str
    transaction: tuple[str, int] | None
    rows: int
    files: int
    size_bytes: int
    metadata: dict[str, Any]
    protocol: dict[str, Any]
    # Data files of the version.
    held: frozenset[str]
    written: datetime


def log_of(lake: Path, name: str) -> list[Entry]:
    """Read the whole log of a table line by line: the reference of all checks here."""
    found: list[Entry] = []
    held: set[str] = set()
    metadata: dict[str, Any] = {}
    protocol: dict[str, Any] = {}
    for version, path in enumerate(sorted((lake / catalog.table(name).path).glob("_delta_log/*.json"))):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        said = next(each["commitInfo"] for each in actions if "commitInfo" in each)
        removed = {each["remove"]["path"] for each in actions if "remove" in each}
        added = {each["add"]["path"]: each["add"] for each in actions if "add" in each}
        # A file that loses rows to a vector is removed and added; it was not written.
        new = [add for path, add in added.items() if path not in removed]
        held = (held - removed) | added.keys()
        metadata = next((each["metaData"] for each in actions if "metaData" in each), metadata)
        protocol = next((each["protocol"] for each in actions if "protocol" in each), protocol)
        txn = next((each["txn"] for each in actions if "txn" in each), None)
        found.append(
            Entry(
                name,
                version,
                json.loads(said.get("userMetadata") or "{}").get("run_id", ""),
                None if txn is None else (txn["appId"], txn["version"]),
                sum(json.loads(add["stats"])["numRecords"] for add in new),
                len(new),
                sum(add["size"] for add in new),
                metadata,
                protocol,
                frozenset(held),
                datetime.fromtimestamp(path.stat().st_mtime, UTC),
            )
        )
    return found


def logs_of(lake: Path) -> dict[tuple[str, int], Entry]:
    """Read the logs of the tables with data."""
    names = [
        table.name
        for table in catalog.TABLES
        if table not in (*OBSERVE_TABLES, RUN_MANIFEST, RUN_LEASE, CDF_CURSORS)
    ]
    return {(entry.table, entry.version): entry for name in names for entry in log_of(lake, name)}


def recorded(lake: Path, name: str, run_id: str | None = None) -> list[dict[str, Any]]:
    rows = light_table(str(lake), name, catalog.table(name).column_names).to_pylist(maps_as_pydicts="strict")
    rows.sort(key=lambda row: (row["run_id"], row["event_no"]))
    return [row for row in rows if run_id in (None, row["run_id"])]


def check_mutations(lake: Path, run_id: str) -> None:
    """Check that every log entry of the run is one mutation, with the figures of the entry."""
    entries = {key: entry for key, entry in logs_of(lake).items() if entry.run_id == run_id}
    rows = {
        (row["table_name"], row["delta_version"]): row for row in recorded(lake, "delta_mutations", run_id)
    }
    assert rows.keys() == entries.keys()
    assert len(rows) == len(recorded(lake, "delta_mutations", run_id)) > 10
    for key, entry in entries.items():
        row = rows[key]
        assert (row["rows"], row["files"], row["bytes"]) == (entry.rows, entry.files, entry.size_bytes)
        assert (row["app_id"], row["app_version"]) == entry.transaction
        assert (row["constraint_status"], row["error"], row["attempts"]) == ("passed", None, 1)
        assert row["commit_metadata"]["run_id"] == run_id
        assert row["commit_metadata"]["operation"] == row["operation"]
        assert len(row["commit_metadata"]["plan_fingerprint"]) == 32
        assert row["metrics"]["numOutputRows"] == entry.rows
        assert row["duration_ms"] >= 0
        # A file system may keep coarser times.
        assert abs(row["event_time"] - entry.written) < timedelta(seconds=10)


def check_snapshots(lake: Path, run_id: str) -> None:
    """Check that every version that was written or read is described as in its log."""
    entries = logs_of(lake)
    rows = recorded(lake, "delta_snapshots", run_id)
    keys = [(row["table_name"], row["delta_version"]) for row in rows]
    assert len({*keys}) == len(keys)
    made = {key for key, entry in entries.items() if entry.run_id == run_id}
    read = {(row["table_name"], row["delta_version"]) for row in recorded(lake, "delta_scan_plans", run_id)}
    assert {*keys} >= made | read
    for key, row in zip(keys, rows, strict=True):
        entry = entries[key]
        assert row["properties"] == entry.metadata["configuration"]
        assert json.loads(row["schema_json"]) == json.loads(entry.metadata["schemaString"])
        assert row["partition_columns"] == entry.metadata["partitionColumns"]
        assert row["min_reader_version"] == entry.protocol["minReaderVersion"]
        assert row["min_writer_version"] == entry.protocol["minWriterVersion"]
        assert {*row["reader_features"]} == {*entry.protocol.get("readerFeatures", ())}
        assert {*row["writer_features"]} == {*entry.protocol.get("writerFeatures", ())}
        assert abs(row["committed_at"] - entry.written) < timedelta(milliseconds=2)
