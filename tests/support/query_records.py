"""A small source, and records of queries that read its tables."""

from __future__ import annotations

from datetime import UTC, datetime

from codeanatomy.lake.recorded_queries import RecordedQuery

NODES = "cpg_nodes"
AT = datetime(2026, 5, 1, tzinfo=UTC)
SOURCE = {
    "a.py": b"def f():\n    return 1\n",
    "b.py": b"import a\n\n\nclass C:\n    def g(self):\n        return a.f()\n",
}


def recorded_query(
    table: str = NODES, *columns: str, purpose: str = "find", joins: tuple[str, ...] = ()
) -> RecordedQuery:
    return RecordedQuery(AT, purpose, table, 0, filter_columns=columns, join_columns=joins)
