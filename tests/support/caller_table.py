"""Write and read the callers of the relations table without a JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.open_table import location

NAME = "relations_v1"
UNDO = Commit("run-8", sequence=-1)


def write(lake: Path, *callers: str, mode: str = "append", properties: dict[str, str] | None = None) -> None:
    rows = [{"repo_id": "a", "relation_kind": "CALL_GRAPH", "src_qname": name} for name in callers]
    data = pa.Table.from_pylist(rows, arrow_schema(catalog.table(NAME)))
    write_deltalake(location(str(lake), NAME), data, mode=mode, configuration=properties)


def callers(lake: Path) -> list[str]:
    table = DeltaTable(location(str(lake), NAME)).to_pyarrow_table(columns=["src_qname"])
    return sorted(table.column(0).to_pylist())
