"""Questions to a built lake, without Spark: what is called most, what is resolved, what may be unbound?

    make demo

The tables are plain Delta. A new lake has no feature that a reader may lack, so any reader will do: here it
is deltalake and pyarrow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable

LAKE = Path(__file__).resolve().parents[1] / ".demo" / "lake"


def most_called() -> None:
    table = DeltaTable(str(LAKE / "relate" / "relations_v1"))
    wanted = (
        (pc.field("relation_kind") == "CALLS")
        & (pc.field("src_kind") == "CALLSITE")
        & pc.field("dst_id").is_valid()
    )
    rows = table.to_pyarrow_dataset().to_table(columns=["dst_qname", "path", "line"], filter=wanted)
    calls: Counter[str] = Counter()
    first: dict[str, str] = {}
    for row in rows.sort_by([("path", "ascending"), ("line", "ascending")]).to_pylist():
        calls[row["dst_qname"]] += 1
        first.setdefault(row["dst_qname"], f"{row['path']}:{row['line']}")
    for name, count in sorted(calls.items(), key=lambda item: (-item[1], item[0]))[:3]:
        print(f"{count:5} calls of {name}, first at {first[name]}")


def unresolved() -> None:
    table = DeltaTable(str(LAKE / "relate" / "relations_v1"))
    kinds = pc.field("relation_kind").isin(["CALLS", "CALLS_NAME", "INSTANTIATES"])
    wanted = kinds & (pc.field("src_kind") == "CALLSITE")
    rows = table.to_pyarrow_dataset().to_table(columns=["src_id", "dst_id"], filter=wanted).to_pylist()
    known = {row["src_id"] for row in rows if row["dst_id"] is not None}
    print(f"{len(known):5} of {len({row['src_id'] for row in rows}):,} calls resolved")


def may_be_unbound() -> None:
    table = DeltaTable(str(LAKE / "normalize" / "py_bc_def_use_events_v1"))
    events = table.to_pyarrow_table()
    wanted = (pc.field("bc_event_kind") == "use") & (pc.field("bc_var_kind") == "fast")
    rows = events.filter(wanted & pc.field("bc_may_be_unbound"))
    print(f"{rows.num_rows:5} uses of locals that some path leaves unbound")
    for row in rows.sort_by([("path", "ascending"), ("line", "ascending")]).slice(0, 3).to_pylist():
        print(f"      {row['bc_var_name']} at {row['path']}:{row['line']}")


if __name__ == "__main__":
    most_called()
    unresolved()
    may_be_unbound()
