"""Two questions to a built lake, without Spark: what is called most, and which locals may be unbound?

    make demo

The tables are plain Delta: any reader will do. Here it is deltalake and pyarrow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable

LAKE = Path(__file__).resolve().parents[1] / ".demo" / "lake"


def most_called() -> None:
    table = DeltaTable(str(LAKE / "extract" / "libcst_files_v1"))
    calls: Counter[str] = Counter()
    first: dict[str, str] = {}
    for file in table.to_pyarrow_table(columns=["path", "callsites"]).sort_by("path").to_pylist():
        for call in file["callsites"] or ():
            for name in call["qualified_names"] or ():
                calls[name["name"]] += 1
                first.setdefault(name["name"], f"{file['path']}:{call['line']}")
    for name, count in calls.most_common(3):
        print(f"{count:5} calls of {name}, first at {first[name]}")


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
    may_be_unbound()
