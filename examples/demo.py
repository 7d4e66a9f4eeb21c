"""A question to a built lake, without Spark: which names does the project call most, and where first?

    make demo

The tables are plain Delta: any reader will do. Here it is deltalake and pyarrow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from deltalake import DeltaTable

LAKE = Path(__file__).resolve().parents[1] / ".demo" / "lake"


def main() -> None:
    table = DeltaTable(str(LAKE / "extract" / "libcst_files_v1"))
    calls: Counter[str] = Counter()
    first: dict[str, str] = {}
    for file in table.to_pyarrow_table(columns=["path", "callsites"]).sort_by("path").to_pylist():
        for call in file["callsites"] or ():
            for name in call["qualified_names"] or ():
                calls[name["name"]] += 1
                first.setdefault(name["name"], f"{file['path']}:{call['line']}")
    for name, count in calls.most_common(5):
        print(f"{count:5} calls of {name}, first at {first[name]}")


if __name__ == "__main__":
    main()
