"""Rows of the run manifest, and the table that holds them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.read.light import light_table

MANIFEST = catalog.table("run_manifest")
NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)


def row(run_id: str = "run-1", **cells: Any) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "repo_id": "one",
        "status": "succeeded",
        "mode": "full",
        "started_at": NOON,
        "finished_at": NOON,
        "profile_hash": "p" * 32,
        "input_pins": [{"table_name": "ast_files_v1", "version": 3}],
        "row_counts": {"ast_files_v1": 18},
        **cells,
    }


def opened(root: Path, table: Table = MANIFEST) -> DeltaTable:
    return DeltaTable(str(root / table.path))


def runs(root: Path) -> list[str]:
    return sorted(light_table(str(root), MANIFEST.name, ["run_id"])["run_id"].to_pylist())
